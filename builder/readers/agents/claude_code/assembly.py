"""Assembles the messages of a request from the lines of a log, in the order they are sent.

Used for versions that do not log their requests, and for logs with digests that do not match.
Observed by running the program against a recording server (scripts/wire):

- Everything between two answers is one user message: results first, then attachments, then the
  user's lines. Attachments never move across the results of a line.
- Where user lines meet, the first one ends with a newline (seen in 2.1.80, not in 2.1.42).
- Attachments contain their text in `rendered` since 2.1.290. Those with `renderedRole: system`
  follow as one system message, without their `<system-reminder>` tags, joined by blank lines (the
  texts of one attachment by newlines). For models that accept no system message within a
  conversation, they are user text with tags, inside the last result logged before them; once text
  follows the results, as text after it.
- If the calls of an answer were never answered, later requests contain only its text, or nothing of
  it. An answer interrupted before it called a tool stays, and so does a placeholder that the
  program writes instead of an answer ("No response requested.", seen in 2.1.290, not in 2.1.260).
  None of these is a complete answer of the model, and a sample would have to end there: they are
  left out, and the messages after them lack `history`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from builder.conversation import Json
from builder.readers.agents.claude_code.digests import SentMessage
from builder.readers.agents.claude_code.lines import (
    INTERRUPTED,
    NOT_SENT,
    LoggedResult,
    SessionLine,
    SessionTurn,
    Turns,
)
from builder.readers.agents.claude_code.replacements import clears_results
from builder.readers.toolkit.narrow import as_dict, as_list, as_str

_JOINS_WITH_NEWLINE = (2, 1, 80)
_SENDS_PLACEHOLDERS = (2, 1, 290)

_REMINDER = re.compile(r"<system-reminder>\n([\s\S]*?)\n?</system-reminder>\n?")
_NO_CONTEXT = frozenset({"prompt_snapshot", "command_permissions", "deferred_tools_record"})


@dataclass
class Assembly:
    """The messages of a branch.

    messages   all messages in order; those with a turn are the model's
    places     indexes of the turns among the messages, by key
    left_out   turns that are left out, each with the number of messages before it and the reason:
               aborted (the user interrupted it) or unanswered
    gap        the number of messages before the first omission; None: nothing is left out
    notified   the same for the first notification of a background task, which is sent with a note
               that its line lacks
    unknown    the same for the first line of an unknown type that is not in the tree
    unrendered the same for the first mentioned image, which is sent but not rendered in the log
    members    uuids of the lines that are part of it
    changes    counts of omissions, by code
    """

    messages: list[SentMessage] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    left_out: list[tuple[SessionTurn, int, str]] = field(default_factory=list)
    gap: int | None = None
    notified: int | None = None
    unknown: int | None = None
    unrendered: int | None = None
    members: set[str] = field(default_factory=set)
    changes: Counter[str] = field(default_factory=Counter)

    def before_turns(self) -> list[SentMessage]:
        """Returns the messages before the first turn."""
        return self.messages[: min(self.places.values(), default=len(self.messages))]

    def add(
        self,
        role: str,
        blocks: Iterable[Json],
        turn: SessionTurn | None = None,
        code: str = "inserted",
    ) -> None:
        """Adds a message (see `SentMessage`)."""
        self.messages.append(SentMessage({"role": role, "content": [*blocks]}, turn, code))


def assemble(
    lines: Sequence[SessionLine],
    turns: Turns,
    *,
    renders: bool,
    prompt: str | None,
    orphans: Collection[str] = (),
    unknown: int | None = None,
) -> Assembly:
    """Returns the messages of a branch.

    `renders`: the log contains the text of attachments as sent. `prompt`: the user message before
    the first line if the branch lacks it (`parent_prompt`). `orphans`: uuids of lines with a parent
    that the log lacks: what was sent before them is not known. `unknown`: the position in the file
    of the first line of an unknown type with a message whose place in the tree is not known.
    """
    builder = _Builder(lines, turns, renders)
    if prompt:
        builder.assembly.add("user", [{"type": "text", "text": prompt}])
        builder.assembly.changes["parent_prompt"] += 1
    run: list[SessionLine] = []
    for line in lines:
        if unknown is not None and line.at > unknown:
            builder.assembly.unknown = len(builder.assembly.messages)
            unknown = None
        if line.uuid in orphans or clears_results(line):
            builder.lose_history()
        if line.kind in ("user", "attachment", "unknown"):
            run.append(line)
        elif line.kind == "assistant":
            if line.is_answer and builder.has(line):
                continue
            if not line.is_answer and line.value.get(NOT_SENT) is True:
                builder.assembly.members.add(line.uuid)
                builder.assembly.changes["synthetic_turn"] += 1
                continue
            builder.close(run)
            run = []
            builder.answer(line)
    builder.close(run, last=True)
    return builder.assembly


class _Builder:
    def __init__(self, lines: Sequence[SessionLine], turns: Turns, renders: bool) -> None:
        self.assembly = Assembly()
        self._turns = turns
        self._renders = renders
        # The model accepts system messages within a conversation.
        self._system_turns = any(
            line.kind == "attachment" and line.attachment.get("systemTurns") is True
            for line in lines
        )
        self._answers = turns.answered(lines)
        self._cut = turns.partial_on(lines)
        self._claimed = {answer.key for answers in self._answers.values() for answer in answers}
        self._open: SessionTurn | None = None

    def lose_history(self) -> None:
        """Records that messages before the next one are not in the log."""
        self._skip(len(self.assembly.messages))

    def has(self, line: SessionLine) -> bool:
        """Returns whether the turn of an assistant line was added or left out."""
        key = self._turns.of(line).key
        left_out = (turn.key for turn, _, _ in self.assembly.left_out)
        return key in self.assembly.places or key in left_out

    def answer(self, line: SessionLine) -> None:
        """Adds the turn of an assistant line; `close` adds its results."""
        assembly = self.assembly
        if not line.is_answer:
            assembly.members.add(line.uuid)
            assembly.changes["synthetic_turn"] += 1
            if line.version >= _SENDS_PLACEHOLDERS:
                self._skip(len(assembly.messages))
            return
        turn = self._turns.of(line)
        if turn.key in self._cut:
            assembly.members.add(line.uuid)
            blocks, self._cut[turn.key] = self._cut[turn.key], []
            if blocks:
                assembly.add("assistant", blocks, code="stripped")
            return
        assembly.members.update(item.uuid for item in turn.lines)
        assembly.members.update(answer.line.uuid for answer in self._answers[turn.key])
        assembly.changes["repeated_block"] += turn.repeated
        assembly.changes["arguments_added"] += turn.added
        assembly.places[turn.key] = len(assembly.messages)
        assembly.add("assistant", turn.blocks, turn)
        self._open = turn

    def close(self, run: Sequence[SessionLine], *, last: bool = False) -> None:
        """Adds the lines between two answers as messages; `last`: no answer follows."""
        turn, self._open = self._open, None
        answers: Sequence[LoggedResult] = ()
        if turn is not None:
            answers = self._answers[turn.key]
            stopped = _interrupted(run)
            if not answers and (stopped or (turn.calls and not last)):
                self._leave_out(turn, "aborted" if stopped else "unanswered")
        user: list[list[Json]] = [[answer.block for answer in answers]] if answers else []
        system: list[str] = []
        segment: list[SessionLine] = []
        for line in run:
            if line.kind == "user":
                self.assembly.members.add(line.uuid)
            self.assembly.changes["compact_summary"] += line.is_summary
            if line.results:
                self._segment(segment, user, system, answers)
                segment = []
            segment.append(line)
        self._segment(segment, user, system, answers)
        newline = "\n" if run and run[0].version >= _JOINS_WITH_NEWLINE else ""
        content = _merged(user, newline)
        if self.assembly.unrendered is None and self._renders and any(map(_is_unrendered, run)):
            self.assembly.unrendered = len(self.assembly.messages)
        if self.assembly.notified is None and any(map(_is_notification, run)):
            self.assembly.notified = len(self.assembly.messages)
        if content:
            self.assembly.add("user", content)
        if system:
            self.assembly.add("system", [{"type": "text", "text": "\n\n".join(system)}])

    def _leave_out(self, turn: SessionTurn, code: str) -> None:
        place = self.assembly.places.pop(turn.key)
        self.assembly.left_out.append((turn, place, code))
        self.assembly.changes[f"{code}_turn"] += 1
        self._skip(place)
        del self.assembly.messages[place]

    def _skip(self, place: int) -> None:
        """Records that something before the message at `place` is missing."""
        self.assembly.gap = place if self.assembly.gap is None else self.assembly.gap

    def _segment(
        self,
        lines: Sequence[SessionLine],
        user: list[list[Json]],
        system: list[str],
        answers: Sequence[LoggedResult],
    ) -> None:
        """Adds the blocks between two groups of results: attachments before the user's lines."""
        inside = self._renders and not self._system_turns
        attached: list[Json] = []
        typed: list[list[Json]] = []
        for line in lines:
            if line.kind == "user":
                number = 0
                blocks: list[Json] = []
                for block in line.blocks:
                    is_result = block.get("type") == "tool_result"
                    if not is_result or (line.uuid, number) not in self._claimed:
                        blocks.append(block)
                    number += is_result
                typed += [blocks] if blocks else []
                continue
            if line.kind == "unknown":
                kind = as_str(line.value.get("type")) or "unknown"
                typed.append([{"type": f"{kind} line"}])  # no type of a block has this name
                continue
            blocks = rendered(line.attachment, line.value, renders=self._renders)
            if not blocks:
                continue
            self.assembly.members.add(line.uuid)
            if line.value.get("renderedRole") == "system" and self._system_turns:
                texts = [_untagged(as_str(block, "text")) for block in blocks]
                system.append("\n".join(texts))
            elif attached or not inside or not _join_result(user, answers, line, blocks):
                attached += blocks
        if attached and not typed and inside and user:
            user[-1] = [*user[-1], *attached]
        elif attached:
            user.append(attached)
        user += typed


def rendered(attachment: dict[str, Json], line: dict[str, Json], *, renders: bool) -> list[Json]:
    """Returns the blocks that a request contains for an attachment; [] if it contains none.

    Logs without rendered text have the pieces of a few kinds of attachments, which are assembled
    here as their version of the program did.
    """
    kind = as_str(attachment.get("type"))
    if kind in _NO_CONTEXT:
        return []
    if renders or "rendered" in line:
        blocks: list[Json] = []
        for item in as_list(line.get("rendered")):
            content = as_dict(item).get("content")
            if isinstance(content, str):
                blocks.append({"type": "text", "text": content})
            else:
                blocks += as_list(content)
        return blocks
    return [
        block if isinstance(block, dict) else {"type": "text", "text": block}
        for block in _pieces(kind, attachment)
    ]


def _pieces(kind: str, attachment: dict[str, Json]) -> list[Json]:
    """Returns the texts or blocks of an attachment that is not rendered."""
    content = attachment.get("content")
    name = as_str(attachment.get("hookName"))
    match kind:
        case "queued_command":
            prompt = attachment.get("prompt")
            return [prompt] if isinstance(prompt, str) else as_list(prompt)
        case "hook_additional_context":
            items = content if isinstance(content, list) else [content]
            text = "\n".join(item for item in items if isinstance(item, str))
            return [_tagged(f"{name} hook additional context: {text}" if name else text)]
        case "hook_success" if attachment.get("hookEvent") in ("SessionStart", "UserPromptSubmit"):
            return [_tagged(f"{name} hook success: {content}")] if content else []
    return []


def _tagged(text: str) -> str:
    return f"<system-reminder>\n{text}\n</system-reminder>"


def _untagged(text: str) -> str:
    match = _REMINDER.fullmatch(text)
    return match[1] if match else text


def _merged(units: Sequence[Sequence[Json]], newline: str) -> list[Json]:
    """Merges the blocks of messages; `newline` is added where texts of two messages meet."""
    content: list[Json] = []
    for unit in units:
        last, first = as_dict(content[-1] if content else None), as_dict(unit[0])
        if last.get("type") == "text" == first.get("type"):
            content[-1] = {**last, "text": as_str(last.get("text")) + newline}
        content += unit
    return content


def _join_result(
    user: list[list[Json]],
    answers: Sequence[LoggedResult],
    line: SessionLine,
    blocks: Sequence[Json],
) -> bool:
    """Appends an attachment to the content of the last result before its line; False if it cannot.

    `user`: the units of the message, which must be nothing but the results of `answers`.
    """
    at = sum(answer.line.at < line.at for answer in answers) - 1
    if at < 0 or len(user) != 1 or len(user[0]) != len(answers):
        return False
    result = as_dict(user[0][at])
    content = result.get("content")
    if isinstance(content, str):
        texts = [as_str(block, "text") for block in blocks]
        user[0][at] = {**result, "content": "\n\n".join([content.rstrip(), *texts])}
    elif isinstance(content, list):
        user[0][at] = {
            **result,
            "content": _merged([content, blocks] if content else [blocks], "\n"),
        }
    else:
        return False
    return True


def _is_notification(line: SessionLine) -> bool:
    return as_dict(line.value.get("origin")).get("kind") == "task-notification"


def _is_unrendered(line: SessionLine) -> bool:
    return line.attachment.get("type") == "file" and not line.value.get("rendered")


def _interrupted(run: Sequence[SessionLine]) -> bool:
    """Returns whether the user stopped the model before sending anything else."""
    for line in run:
        if line.kind != "user":
            continue
        if line.is_typed:
            return False
        texts = (as_str(block.get("text")) for block in line.blocks if "text" in block)
        if any(text.startswith(INTERRUPTED) for text in texts):
            return True
    return False
