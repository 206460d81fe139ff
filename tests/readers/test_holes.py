"""A line that is missing or broken is a hole: what stands around it is not joined.

Each line of each golden case of an agent's log is removed or cut in half. Then

- counts add up, and nothing is ignored, or said to be rewound, that was not before,
- no answer is trained that the whole log does not train,
- an answer whose context changed lacks `history`, and its context has all calls before the hole, or
  nothing from there; no result is in it that the whole log does not have.

Where no later line names the missing one, a removed line leaves no trace: there only the counts
hold.
"""

import json
import random
from collections import Counter
from dataclasses import dataclass, replace

import pytest
from support.logs.cases import case_sources
from support.places import CASES

from builder.conversation import (
    Conversation,
    Ignored,
    Message,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import JsonFault, loads
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.problem import Problem
from builder.readers import readers
from builder.readers.toolkit.comparison import without_key
from builder.sources.source import Source
from builder.testing import read_counted

AGENTS = sorted(name for name, reader in readers().items() if reader.is_agent)
LINKED = ("claude-code", "pi", "qwen-code")
"""Formats whose lines name the line before them: a removed line is missed."""
HOLED = ("lost-lines", "lost-parents", "hole", "answers-cut", "requests-rebuilt", "sent-again")
"""Cases that have holes, or answers whose end is not that of their lines."""
FEW = 4
"""How many lines of a file are tried in the quick tier."""
LONG = 200
OPTIONS = NormalizeOptions(untrained_turns="weight", reasoning="keep", harness="drop")
MARKS = {"history", "unknown_part", "encrypted_context"}
HONEST = {"orphan_result", "attachment"}
"""Codes of records that cannot be shown without the lost one."""
HIDDEN = {
    "claude-code/compaction-kept": (6,),  # the boundary names what was kept
    "claude-code/replaced-results": (5,),  # it has what was sent in place of a result
    "claude-code/requests": (9,),  # the answer's first block says that it ended
    "claude-code/results": (2, 3),  # it has a call of several
    "codex/cut-0.171": (9, 10),  # it says that the answer was cut, or that tokens are counted
    "codex/interleaved-0.36": (14,),  # it is the second call of an answer
    "codex/not-by-model": (7, 8),  # it says that the program wrote an answer
    "codex/old-bare": (11,),
    "codex/template-0.169": (15,),  # it is the compaction that has the answer as its summary
    "codex/tools-and-media": (6,),  # the call's name has its namespace before it
    "copilot-cli/subagents": (11, 15),  # it is a chunk of an answer
    "dsh/compacted": (1,),  # the header says how many events are copies
    "kimi-code/undo-reminders": (8, 9),  # they are parts of an answer that was taken back
    "pi/context-edited": (7,),  # it has what was sent in place of a result
    "pi/letta-store": (5,),  # it was written again, as below
    "pi/openclaw": (1, 8),  # the header has the name, the mirror follows an answer
    "pi/overtaken": (8, 9),  # their times give the order
    "pi/tree": (13, 14, 16),  # the label and the prompt continue another branch
    "pi/unanswered-v3": (11,),  # a record of an unknown type ends the sample
    "qwen-code/output-limit-0.24": (3,),  # the second half says that the first was cut
    "qwen-code/repeated": (3,),
    "qwen-code/twice-0.21": (6, 7, 8),
}
"""Lines without which the log of a case does not show what the laws ask for."""
KNOWN: set[str] = set()
"""Readers that still break a law: most train an answer that may lack a part beside a cut line."""


@dataclass(frozen=True)
class Trained:
    """A trained answer, the turns before it (role, text, calls, results), and what it lacks."""

    answer: tuple
    before: tuple
    missing: frozenset


def trained(events):
    """Yields the trained answers of a build's samples."""
    for event in events:
        found = normalise(event, OPTIONS) if isinstance(event, Conversation) else None
        if found is None or found.dialogue is None:
            continue
        contexts = iter(found.contexts)
        before = []
        for turn in found.dialogue.turns:
            calls = tuple((call.name, call.text) for call in turn.calls)
            this = (turn.role, turn.content, calls, turn.responses)
            if turn.role == "assistant":
                context = next(contexts)
                if turn.trained:
                    yield Trained(this, tuple(before), frozenset(context.missing))
            if turn.role != "system":
                before.append(this)


def answers(events):
    """Yields the answers that a reader says are whole, whatever becomes of them."""
    for event in events:
        if isinstance(event, Conversation) and not event.problems:
            for message in event.messages:
                if message.role == "assistant":
                    asked = Message("user", (Text("?"),))
                    made = [part for part in message.parts if isinstance(part, ToolCall)]
                    results = tuple(ToolResult((Text("."),), call.id) for call in made)
                    own = replace(message, turn=None)  # one id would join the two
                    alone = (asked, own, Message("tool", results), *([own] if made else []))
                    yield from (one.answer for one in trained([replace(event, messages=alone)]))


def rewound(events):
    return {
        repr([without_key(part) for part in message.parts if not isinstance(part, Unparsed)])
        for event in events
        if isinstance(event, Conversation) and any(p.code == "rewound" for p in event.problems)
        for message in event.messages
        if message.role == "assistant"
    }


def ignored(events):
    counts = Counter()
    for event in events:
        if isinstance(event, Ignored) and event.code not in HONEST:
            counts[event.code] += event.records
    return counts


def calls(turns):
    return Counter(call for turn in turns for call in turn[2])


def shape(turns):
    return [(*turn[:3], len(turn[3])) for turn in turns]


def invents(before, whole, lost):
    """Returns whether another result stands in the place of one that the lost line had."""
    return shape(before) == shape(whole) and any(
        text != other and json.dumps(other)[1:-1] in lost
        for turn, old in zip(before, whole, strict=True)
        for text, other in zip(turn[3], old[3], strict=True)
    )


def broken_laws(whole, holed, lost, is_seen):
    """Yields the laws that the events of a log with a hole break.

    `lost`: the text of the lost line. `is_seen`: the log shows that a line is missing.
    """
    more = ignored(holed) - ignored(whole)
    if more and "assistant" not in lost:  # else its prompt has no answer any more
        yield f"ignored: {dict(more)}"
    if is_seen and rewound(holed) - rewound(whole):
        yield "rewound"
    known, whole_answers = {}, set(answers(whole))
    for one in trained(whole):
        known.setdefault(one.answer, []).append(one)
    for one in trained(holed):
        if not is_seen or rewound(whole):  # it may have begun the branch that was kept
            break
        if one.answer not in known:
            if one.answer not in whole_answers or not one.missing & MARKS:
                yield f"trained: {one.answer}"
            continue
        wholes = [other.before for other in known[one.answer]]
        if all(invents(one.before, whole, lost) for whole in wholes):
            yield f"result: {one.answer}"
        if any(shape(one.before) == shape(whole) for whole in wholes):
            continue
        if not one.missing & MARKS:
            yield f"not marked: {one.answer}"
        if all(joins(one.before, whole, lost) for whole in wholes):
            yield f"joined: {one.answer}"


def joins(before, whole, lost):
    """Returns whether turns lack a call between turns that the whole log has around it."""
    gone = calls(whole) - calls(before)
    at = next(
        (n for n, turn in enumerate(whole) if any(c in gone and c[0] not in lost for c in turn[2])),
        0,
    )
    return any(turn in before for turn in whole[:at])


def logs(name, scratch):
    """Yields the golden cases of a reader that are lines: (case, lines)."""
    for case in sorted(path.parent for path in (CASES / name).glob("*/input")):
        for source in case_sources(case, scratch / case.name):
            if case.name not in HOLED and not source.members and source.peek.kind == "jsonl":
                lines = b"".join(source.raw()).splitlines()
                if 2 < len(lines) < LONG:
                    yield f"{case.name}/{source.name}", lines


def is_named(lines, at):
    """Returns whether another line names the one at a position."""
    try:
        value = loads(lines[at])
    except JsonFault:  # several values in a line
        return False
    name = value.get("uuid") or value.get("id") if isinstance(value, dict) else None
    shown = json.dumps(name).encode()
    return bool(name) and any(shown in line for n, line in enumerate(lines) if n != at)


def broken_by(name, where, lines, picked):
    """Yields the laws that holes in the picked lines break."""
    reader = readers()[name]
    plain = Source("log.jsonl", data=b"\n".join(lines) + b"\n")
    if reader.recognise(plain) is None:
        return
    whole = read_counted(reader, plain)
    if any(isinstance(event, Problem) for event in whole):
        return
    hidden = HIDDEN.get(f"{name}/{where.partition('/')[0]}", ())
    for at in picked:
        if at + 1 in hidden:
            continue
        half = lines[at][: max(len(lines[at]) // 2, 1)]
        for how, new in (("cut", [half]), ("removed", [])):
            data = b"\n".join([*lines[:at], *new, *lines[at + 1 :]]) + b"\n"
            holed = read_counted(reader, Source("log.jsonl", data=data))
            lost = lines[at].decode("utf-8", "replace")
            is_seen = how == "cut" or (name in LINKED and is_named(lines, at))
            for law in broken_laws(whole, holed, lost, is_seen):
                yield f"{where}, line {at + 1} {how}: {law}"


@pytest.mark.parametrize("name", AGENTS)
def test_a_hole_joins_nothing(name, tmp_path):
    pick = random.Random(name)
    found = [
        law
        for where, lines in logs(name, tmp_path)
        for law in broken_by(
            name, where, lines, pick.sample(range(len(lines)), min(FEW, len(lines)))
        )
    ]
    assert not found or name in KNOWN, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_no_hole_joins_anything(name, tmp_path):
    found = [
        law
        for where, lines in logs(name, tmp_path)
        for law in broken_by(name, where, lines, range(len(lines)))
    ]
    assert bool(found) == (name in KNOWN), "\n".join(found)
