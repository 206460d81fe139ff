"""Finds the preference pairs of a build.

Those within a conversation are found with its samples; `match` looks for replacements elsewhere.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from builder.build.prove import VerifiedExample, prepare
from builder.conversation import Conversation, Json
from builder.dataset.forms import read_sample, targets
from builder.dataset.meta import Preference, SampleMeta
from builder.jsonio import dumps, loads
from builder.normalize.normalise import Normalised
from builder.normalize.options import LengthOptions, NormalizeOptions
from builder.qwen3.flat import flat_turn, to_dialogue
from builder.qwen3.templates import Style
from builder.qwen3.tokenizer import Target
from builder.sample import Dialogue, Sample
from builder.scrub.redact import Scrubber
from builder.select.alternatives import (
    REASONS,
    WITHIN_SESSION,
    Alternative,
    Successor,
    Successors,
    alternative_of,
    answers_of,
    corrections,
    replaced,
    tools_digest,
)
from builder.select.choice import Choice
from builder.select.table import DIGEST_BYTES, ConversationRow, Table

_LOGGED = ("logged", "supplied", "captured", "none")
"""Values of `tools_source` for definitions that do not depend on the calls."""


def abandonment(conversation: Conversation) -> str | None:
    """Returns why a conversation was abandoned; None if it was not, or has another fault."""
    codes = {problem.code for problem in conversation.problems}
    return REASONS[min(codes)] if codes and codes <= REASONS.keys() else None


def alternative(
    conversation: Conversation,
    reason: str,
    options: NormalizeOptions,
    lengths: LengthOptions,
    target: Target,
    scrubber: Scrubber,
) -> Alternative:
    """Normalises and scrubs an abandoned conversation and returns it as an alternative."""
    record = scrubber.text(conversation.record)
    kept = replace(options, mask=tuple(kind for kind in options.mask if kind != "rewound"))
    normalised, _ = prepare(replace(conversation, problems=()), kept, lengths, target, scrubber)
    dialogue = normalised.dialogue
    if dialogue is None:
        assert normalised.problem is not None, "a rejected conversation has a reason"
        return Alternative(reason, record, normalised.problem.code)
    turns = [turn for turn in dialogue.turns if turn.role == "assistant"]
    usable = [
        turn.trained and "history" not in context.missing
        for turn, context in zip(turns, normalised.contexts, strict=True)
    ]
    digest = _digest(dialogue, normalised.tools_source, options.tools)
    return alternative_of(reason, record, dialogue, digest, usable, target.style)


def _digest(dialogue: Dialogue | Sample, tools_source: str, tools: str) -> bytes:
    """Returns the digest of the definitions; b"" if they are inferred or incomplete."""
    counts = tools_source in _LOGGED and tools == "all"
    return tools_digest(list(map(dumps, dialogue.tools)) if counts else None)


@dataclass(slots=True)
class Corrected:
    """Finds the pairs within one conversation, each once; `left_out` counts the uncertain ones.

    `style` is that of the target's template.
    """

    style: Style
    left_out: Counter[str] = field(default_factory=Counter)
    _done: set[int] = field(default_factory=set)

    def of(self, proof: VerifiedExample, normalised: Normalised, record: str) -> list[Preference]:
        """Returns the pairs of a proven sample; `record` contains the rejected answers."""
        example = proof.example
        dialogue = example.dialogue
        failures = [normalised.failures[origin] for origin in example.origins]
        has_results = _have_results(normalised)
        answered = [has_results[origin] for origin in example.origins]
        answers = [at for at, turn in enumerate(dialogue.turns) if turn.role == "assistant"]
        violating: set[int] = set()
        if normalised.tools_source in _LOGGED:
            schema_turns = (item.turn for item in proof.verdict.warnings if item.code == "schema")
            violating = {answers.index(at) for at in schema_turns if at in answers}
        pairs: list[Preference] = []
        for item in corrections(dialogue, failures, answered, violating):
            origin = example.origins[item.chosen]
            is_adjacent = example.origins[item.rejected] + 1 == origin
            if item.chosen not in example.targets or origin in self._done or not is_adjacent:
                continue
            self._done.add(origin)
            if item.fault:
                self.left_out[item.fault] += 1
                continue
            rejected = dialogue.turns[answers[item.rejected]]
            bare = None
            if rejected.reasoning:
                bare = flat_turn(replace(rejected, reasoning=""), self.style)[1]
            chosen = flat_turn(dialogue.turns[answers[item.chosen]], self.style)[1]
            pair = Preference(
                reason=item.reason, turn=item.rejected, chosen=chosen, rejected=bare, record=record
            )
            pairs.append(pair)
        return pairs


def _have_results(normalised: Normalised) -> list[bool]:
    assert normalised.dialogue is not None, "it has samples"
    turns = normalised.dialogue.turns
    after = [turn.role == "tool" for turn in turns[1:]] + [False]
    return [follows for turn, follows in zip(turns, after, strict=True) if turn.role == "assistant"]


@dataclass(slots=True)
class Matched:
    """Pairs by sample number; `left_out` counts, by code, the conversations without a pair."""

    pairs: dict[int, list[Preference]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


def match(
    table: Table, choice: Choice, samples: Iterable[tuple[bytes, bytes]], style: Style
) -> Matched:
    """Finds the replacement of each abandoned conversation among the selected samples.

    `samples` are (line, meta line) of each sample of the table, in order; they are read only if
    there is an abandoned conversation. `style` is that of the target's template.
    """
    matched = Matched()
    abandoned = [(row, left) for row in table if (left := row.entry.alternative) is not None]
    if not abandoned:
        return matched
    scopes: dict[int | bytes, Successors] = {_scope(*item): Successors() for item in abandoned}
    numbered = enumerate(samples)
    for row in table:
        places = (scopes.get(row.source), scopes.get(row.entry.session))
        is_used = row.entry.alternative is None
        searched = [successors for successors in places if successors is not None and is_used]
        for sample in row.samples:
            number, (line, meta) = next(numbered)
            if searched and choice.splits[number] is not None:
                is_last = sample is row.samples[-1]
                for successor in _successors(number, line, meta, style, is_last=is_last):
                    for successors in searched:
                        successors.add(successor)
    seen: set[tuple[int, int, str]] = set()
    for row, left in abandoned:
        pair = scopes[_scope(row, left)].pair(left)
        if isinstance(pair, str):
            matched.left_out[pair] += 1
            continue
        successor, answer = pair
        key = (successor.number, successor.ordinal, answer.content)
        if key in seen:
            matched.left_out["duplicate"] += 1
            continue
        seen.add(key)
        matched.pairs.setdefault(successor.number, []).append(replaced(left, successor, answer))
    return matched


def _scope(row: ConversationRow, left: Alternative) -> int | bytes:
    return row.entry.session if left.reason in WITHIN_SESSION else row.source


def _successors(
    number: int, line: bytes, meta_line: bytes, style: Style, *, is_last: bool
) -> Iterator[Successor]:
    """Yields the assistant turns of a sample. `is_last`: it is the last of its conversation."""
    row, meta = cast("Any", loads(line)), SampleMeta.read(loads(meta_line))
    sample = read_sample(row)
    assert isinstance(sample, Sample), "it was verified"
    dialogue = to_dialogue(sample, style)
    answers = answers_of(dialogue, style)
    trained = targets(sample, meta.unit, meta.assistant_turns)
    digest = _digest(sample, meta.tools_source, "all")
    names = frozenset(tool["function"]["name"] for tool in row["tools"])
    for ordinal, answer in enumerate(answers):
        yield Successor(
            number,
            ordinal,
            answer,
            is_target=ordinal in trained,
            is_continued=ordinal + 1 < len(answers) or not is_last,
            tools=digest,
            names=names,
        )


# -- computes digests of a conversation's prefixes, which identify duplicates ----------------------


def prefix_digests(
    messages: Iterable[tuple[str, str, bool]], definitions: Sequence[Json] | None
) -> tuple[bytes, ...]:
    """Returns a digest of the messages up to each assistant turn.

    `messages` are (role, content, whether it is trained). The third is part of the digest, so that
    a continuation that does not train a turn cannot replace the conversation that does.
    `definitions` are the result of `digested_definitions`.
    """
    seed = dumps(list(definitions)) if definitions is not None else ""
    digest = hashlib.blake2b(seed.encode(), digest_size=DIGEST_BYTES).digest()
    prefixes = []
    for role, content, trained in messages:
        text = f"{role}{'' if trained else ' untrained'}\n{content}"
        digest = hashlib.blake2b(digest + text.encode(), digest_size=DIGEST_BYTES).digest()
        if role == "assistant":
            prefixes.append(digest)
    return tuple(prefixes)


def line_digest(sample: Sample) -> bytes:
    """Returns a digest of the sample's line: equal samples have equal digests."""
    return bytes.fromhex(sample.id)[:DIGEST_BYTES]


def digested_definitions(
    definitions: Sequence[Json], tools_source: str, tools: str
) -> Sequence[Json] | None:
    """Returns the definitions for `prefix_digests`. `tools` is the option `normalize.tools`.

    None if they depend on the calls (inferred, or only the called ones): a conversation and its
    continuation then have different definitions.
    """
    return (
        definitions
        if tools_source in ("logged", "supplied", "captured") and tools == "all"
        else None
    )
