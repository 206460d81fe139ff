"""Assembles the messages of a request from the lines of a log, in the order they are sent."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from math import inf

from builder.conversation import LOST_RECORD, Json
from builder.readers.agents.claude_code.lines import (
    INTERRUPTED,
    LEAVES_PLAN_MODE,
    NOT_SENT,
    LoggedResult,
    SessionLine,
    SessionTurn,
    Turns,
)
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str

# -- writes JSON values as Claude Code does before it computes a digest ----------------------------

_EXACT = 2**53
"""Integers up to this size are exact as doubles; digests over larger ones do not match."""


def digest_text(value: Json) -> str:
    """Returns the JSON text over which a digest is computed."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256(text: str) -> str:
    """Returns the digest of a text in hex; "" for text with a lone surrogate."""
    try:
        return hashlib.sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        return ""


def _plain(value: Json) -> Json:
    """Returns the value with integers for whole numbers, as JavaScript writes them."""
    if isinstance(value, float) and abs(value) <= _EXACT and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


# -- finds where a request contained something else than the results that the log has --------------

REPLACEMENTS = "content-replacement"
"""Type of the lines with texts that were sent in place of results."""


def replacement_texts(records: Iterable[Mapping[str, Json]]) -> dict[str, str]:
    """Returns the texts that were sent in place of results, by call id."""
    texts: dict[str, str] = {}
    for record in records:
        for item in map(as_dict, as_list(record.get("replacements"))):
            call_id, text = as_str(item.get("toolUseId")), item.get("replacement")
            if call_id and isinstance(text, str):
                texts[call_id] = text
    return texts


def with_replacements(line: SessionLine, texts: Mapping[str, str]) -> SessionLine:
    """Returns the line with the texts that were sent in place of its results."""
    if not any(call_id in texts for call_id in line.answered):
        return line
    blocks: list[Json] = []
    for block in line.blocks:
        text = texts.get(as_str(block.get("tool_use_id")))
        is_replaced = block.get("type") == "tool_result" and text is not None
        blocks.append({**block, "content": text} if is_replaced else block)
    message = {**as_dict(line.value.get("message")), "content": blocks}
    return replace(line, value={**line.value, "message": message})


def _clears_results(line: SessionLine) -> bool:
    metadata = as_dict(line.value.get("microcompactMetadata"))
    return line.value.get("subtype") == "microcompact_boundary" and bool(
        metadata.get("compactedToolIds") or metadata.get("clearedAttachmentUUIDs")
    )


# -- rebuilds and checks the requests that a Claude Code log describes by digests (since 2.1.310) --

KINDS = frozenset({"api-request", "api-request-shape", "api-request-blob"})
"""Types of the lines that this module reads."""

_MAX_MESSAGES = 5_000_000
"""Maximum number of digests to keep for the requests of a file; others are not rebuilt."""
_MAX_RUN = 64
"""Maximum number of consecutive user lines that a request may have merged into one message."""


@dataclass(frozen=True)
class SentMessage:
    """A message of a request.

    value   role and content as sent, string content as one text block
    turn    its turn in the log; None: it is no turn
    code    for an assistant message without a turn: why it is not a target; `lost_record`: lines
            are lost here
    """

    value: dict[str, Json]
    turn: SessionTurn | None = None
    code: str = "inserted"

    @cached_property
    def digest_text(self) -> str:
        """Returns the JSON text over which digests are computed."""
        return digest_text(self.value)

    @cached_property
    def digest(self) -> str:
        """Returns the digest of the message."""
        return sha256(self.digest_text)


@dataclass(frozen=True, slots=True)
class Shape:
    """System texts and tool definitions of a request; `known`: which of the two the log has."""

    system: tuple[str, ...] = ()
    tools: tuple[Json, ...] = ()
    known: frozenset[str] = frozenset({"system", "tools"})


@dataclass(frozen=True, slots=True)
class _Rebuilt:
    """A request as logged.

    proven   all of its digests match
    trimmed  it has a turn without an argument that the model wrote
    """

    messages: tuple[SentMessage, ...]
    shape: Shape
    proven: bool
    trimmed: bool


def digest(value: Json) -> str:
    """Returns the digest of a JSON value; "" for text with a lone surrogate."""
    return sha256(digest_text(value))


def _without_cache_marks(message: Mapping[str, Json]) -> dict[str, Json]:
    """Returns the message without cache marks, string content as one text block."""
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    blocks: list[Json] = [
        {key: item for key, item in block.items() if key != "cache_control"}
        if isinstance(block, dict)
        else block
        for block in as_list(content)
    ]
    return {**message, "content": blocks}


class Requests:
    """The requests that a file describes, and the messages that they may contain.

    arguments  the arguments of calls in messages that are not lines of the log, by call id
    """

    def __init__(self, records: Iterable[dict[str, Json]]) -> None:
        self.arguments: dict[str, dict[str, Json]] = {}
        self._requests: dict[str, tuple[dict[str, Json], tuple[str, ...]]] = {}
        self._shapes: dict[str, dict[str, Json]] = {}
        self._known: dict[str, SentMessage] = {}
        self._altered: dict[str, SentMessage] = {}
        self._turns: dict[str, dict[str, SessionTurn]] = {}
        size = 0
        for record in records:
            match record.get("type"):
                case "api-request-shape":
                    shape = as_dict(record.get("shape"))
                    self._shapes.setdefault(as_str(record.get("shapeHash")), shape)
                case "api-request-blob":
                    self._add_blob(as_str(record.get("hash")), as_dict(record.get("message")))
                case "api-request" if size < _MAX_MESSAGES:
                    keep, tail = record.get("keep"), as_list(record.get("tail"))
                    base = self._requests.get(as_str(record.get("base")), ({}, ()))[1]
                    kept = base[: keep if isinstance(keep, int) and keep > 0 else 0]
                    hashes = (*kept, *(as_str(item) for item in tail))
                    size += len(hashes)
                    self._requests.setdefault(as_str(record.get("id")), (record, hashes))

    def __bool__(self) -> bool:
        return bool(self._requests)

    def _add_blob(self, name: str, message: dict[str, Json]) -> None:
        sent = SentMessage(_without_cache_marks(message))
        if sent.digest == name:
            self._known.setdefault(name, sent)
            for block in as_dicts(sent.value.get("content")):
                if block.get("type") == "tool_use" and isinstance(block.get("input"), dict):
                    self.arguments.setdefault(as_str(block.get("id")), as_dict(block["input"]))
        else:
            self._altered.setdefault(name, sent)

    def add_lines(self, lines: Sequence[SessionLine], turns: Turns) -> None:
        """Adds the messages of a branch, in every form in which a request may contain them."""
        results = turns.answered(lines)
        for blocks in turns.partial_on(lines).values():
            self._add("assistant", blocks, "stripped")
        for turn in turns.on(lines):
            for form in _answer_forms(turn):
                sent = self._add("assistant", form)
                self._turns.setdefault(sent.digest, {})[turn.key] = turn
            answers = [answer.block for answer in results.get(turn.key, ())]
            in_order = sorted(answers, key=_call_order(turn))
            for group in (answers, in_order):
                if group:
                    self._add("user", group)
        run: list[SessionLine] = []
        answers = []
        for line in lines:
            if line.kind == "user":
                run.append(line)
            elif line.kind == "assistant":
                self._add_run(run, answers)
                run = []
                if line.is_answer:
                    turn = turns.of(line)
                    answers = [answer.block for answer in results.get(turn.key, ())]
                    answers.sort(key=_call_order(turn))
                else:
                    self._add("assistant", line.blocks)
        self._add_run(run, answers)

    def _add_run(self, run: Sequence[SessionLine], answers: Sequence[dict[str, Json]]) -> None:
        """Adds each user line of a run, and the prefixes and suffixes that may be one message.

        `answers`: all results of the turn before the run, in the order of its calls. They may begin
        the message, and a branch of parallel calls lacks the lines of some.
        """
        for line in run:
            self._add("user", line.blocks)
        for start in range(len(run) - 1 if len(run) <= _MAX_RUN else 0):
            blocks: list[Json] = []
            for line in run[start:]:
                blocks += line.blocks
                results = [b for b in blocks if as_dict(b).get("type") == "tool_result"]
                others = [b for b in blocks if as_dict(b).get("type") != "tool_result"]
                self._add("user", [*results, *others])
        others = []
        for line in run[:_MAX_RUN] if len(answers) > 1 else ():
            others += [block for block in line.blocks if block.get("type") != "tool_result"]
            if others:
                self._add("user", [*answers, *others])

    def _add(self, role: str, blocks: Iterable[Json], code: str = "inserted") -> SentMessage:
        sent = SentMessage(_without_cache_marks({"role": role, "content": [*blocks]}), code=code)
        return self._known.setdefault(sent.digest, sent)

    def rebuild(self, reference: str) -> _Rebuilt | None:
        """Returns the request with that id; None if the log lacks it or one of its messages."""
        if reference not in self:
            return None
        record, hashes = self._requests[reference]
        name = as_str(record.get("shapeHash"))
        logged = self._shapes.get(name)
        messages = [self._known.get(item) or self._altered.get(item) for item in hashes]
        rebuilt = [message for message in messages if message is not None]
        if logged is None or len(rebuilt) < len(messages):
            return None
        proven = digest(logged) == name and all(item in self._known for item in hashes)
        if proven and (whole := as_str(record.get("requestDigest"))):
            proven = self._body_digest(record, logged, rebuilt) == whole
        sent = tuple(self._with_turns(rebuilt))
        trimmed = any(one.turn is not None and _is_trimmed(one) for one in sent)
        return _Rebuilt(sent, _read_shape(logged), proven, trimmed)

    def exact_shape(self, reference: str) -> Shape | None:
        """Returns system and tools of the request with that id, if their digest matches."""
        record = self._requests[reference][0] if reference in self else {}
        name = as_str(record.get("shapeHash"))
        logged = self._shapes.get(name)
        return _read_shape(logged) if logged is not None and digest(logged) == name else None

    def _with_turns(self, messages: Iterable[SentMessage]) -> Iterator[SentMessage]:
        """Yields the messages, the model's with their turns; equal answers in logged order."""
        taken: set[str] = set()
        for sent in messages:
            candidates = self._turns.get(sent.digest, {})
            if not candidates and sent.value.get("role") == "assistant":
                blocks = as_dicts(sent.value.get("content"))
                silent = _without_cache_marks({"role": "assistant", "content": _silent(blocks)})
                candidates = self._turns.get(digest(silent), {})
            turn = next((turn for key, turn in candidates.items() if key not in taken), None)
            if turn is None:
                yield sent
                continue
            taken.add(turn.key)
            yield SentMessage(sent.value, turn)

    def __contains__(self, reference: str) -> bool:
        return reference in self._requests

    def _body_digest(
        self, record: dict[str, Json], shape: dict[str, Json], messages: Sequence[SentMessage]
    ) -> str:
        """Returns the digest of the whole request; "" if a cache mark is at a missing block."""
        system = [dict(as_dict(block)) for block in as_list(shape.get("system"))]
        marked: dict[int, dict[str, Json]] = {}
        for mark in as_list(record.get("cacheControl")):
            path = as_list(mark, "path")
            value = as_dict(mark).get("value")
            match path:
                case ["system", int(at)] if 0 <= at < len(system):
                    system[at]["cache_control"] = value
                case ["messages", int(at), "content", int(block)] if 0 <= at < len(messages):
                    message = marked.setdefault(at, dict(messages[at].value))
                    content = [dict(as_dict(item)) for item in as_list(message.get("content"))]
                    if not 0 <= block < len(content):
                        return ""
                    content[block]["cache_control"] = value
                    message["content"] = [*content]
                case _:
                    return ""
        written = (
            digest_text(marked[at]) if at in marked else message.digest_text
            for at, message in enumerate(messages)
        )
        body: dict[str, Json] = {**shape, **as_dict(record.get("params"))}
        if "system" in shape:
            body["system"] = [*system]
        texts = {key: digest_text(value) for key, value in body.items()}
        texts["messages"] = f"[{','.join(written)}]"
        pairs = (f"{json.dumps(key, ensure_ascii=False)}:{texts[key]}" for key in sorted(texts))
        return sha256(f"{{{','.join(pairs)}}}")


def _answer_forms(turn: SessionTurn) -> Iterator[list[Json]]:
    """Yields the contents of a turn that a request may have: with and without its thoughts.

    The call that leaves plan mode is sent back without the plan that the model wrote.
    """
    for blocks in (turn.blocks, tuple(map(_without_plan, turn.blocks))):
        silent = _silent(blocks)
        yield [*blocks]
        if len(silent) < len(blocks):
            yield silent


def _silent(blocks: Iterable[dict[str, Json]]) -> list[Json]:
    return [b for b in blocks if b.get("type") not in ("thinking", "redacted_thinking")]


def _without_plan(block: dict[str, Json]) -> dict[str, Json]:
    leaves = block.get("type") == "tool_use" and block.get("name") == LEAVES_PLAN_MODE
    return {**block, "input": {}} if leaves else block


def _is_trimmed(sent: SentMessage) -> bool:
    """Returns whether a message lacks the plan that its turn has."""
    assert sent.turn is not None, "the caller looked"
    written = [block for block in sent.turn.blocks if block != _without_plan(block)]
    blocks = as_dicts(sent.value.get("content"))
    given = [as_str(block.get("id")) for block in blocks if block.get("input") == {}]
    return any(as_str(block.get("id")) in given for block in written)


def _call_order(turn: SessionTurn) -> Callable[[dict[str, Json]], int]:
    order = {call_id: at for at, (call_id, _) in enumerate(turn.calls)}
    return lambda block: order.get(as_str(block.get("tool_use_id")), 0)


def _read_shape(shape: dict[str, Json]) -> Shape:
    system = shape.get("system")
    texts = [system] if isinstance(system, str) else []
    texts += [as_str(block, "text") for block in as_list(system)]
    return Shape(tuple(text for text in texts if text), tuple(as_list(shape.get("tools"))))


def adds_only(before: Sequence[SentMessage], after: Sequence[SentMessage]) -> bool:
    """Returns whether the second request begins with the messages of the first."""
    return len(before) <= len(after) and all(
        _same(old, new) for old, new in zip(before, after, strict=False)
    )


def _same(old: SentMessage, new: SentMessage) -> bool:
    if old.turn is not None and new.turn is not None:
        return old.turn.key == new.turn.key
    return old.digest == new.digest


# -- finds system prompt and tools in `prompt_snapshot` lines, for turns without a logged request --


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """A line that a process of the program wrote at its end.

    at      position in the file
    began   the start of the process, or of the session that it resumed, in the format of
            `timestamp`; "" if the line lacks it
    """

    at: int
    began: str = ""

    @classmethod
    def read(cls, at: int, value: dict[str, Json]) -> ProcessEnd:
        """Returns a `cost-state` line, whose `startTime` is in milliseconds since 1970."""
        start = value.get("startTime")
        try:
            began = datetime.fromtimestamp(start / 1000, UTC) if isinstance(start, int) else None
        except (ValueError, OverflowError, OSError):
            began = None
        return cls(at, "" if began is None else began.isoformat(timespec="milliseconds"))


class PromptSnapshots:
    """The snapshots of a branch.

    `ends`: the lines of the file that a process wrote at its end.
    """

    def __init__(self, lines: Sequence[SessionLine], ends: Sequence[ProcessEnd]) -> None:
        snapshots = [line for line in lines if line.attachment.get("type") == "prompt_snapshot"]
        self._process = _processes(lines, ends)
        # The processes with logged tools.
        self._confirmed = {
            self._process[line.at] for line in snapshots if "tools" in line.attachment
        }
        self._shapes: list[tuple[int, Shape]] = []
        whole: dict[str, Json] = {}
        for line in reversed(snapshots):
            whole = {**whole, **line.attachment}
            self._shapes.insert(0, (line.at, _shape(whole)))

    def before(self, following: SessionTurn | None) -> Shape | None:
        """Returns the shape of a turn's request, given the next turn; None without snapshots."""
        if not self._shapes:
            return None
        end = following.lines[0].at if following is not None else inf
        fits = [shape for place, shape in self._shapes if place < end]
        return fits[-1] if fits else self._shapes[0][1]

    def has_tools_of(self, turn: SessionTurn) -> bool:
        """Returns whether a snapshot lists the tools of the turn's process."""
        return self._process.get(turn.lines[0].at) in self._confirmed


def _processes(
    lines: Iterable[SessionLine], ends: Sequence[ProcessEnd]
) -> dict[int, tuple[int, ...]]:
    """Returns a key of the process that wrote each line, by the line's position.

    A process writes a line with its start time at its end, and the terminal interface may restart
    its count of prompts at 1. Some lines cannot be assigned: those copied from another session (a
    fork), those older than the process with the next end line, and those without an end line after
    them (killed, or still running). There, each prompt gets a key of its own.
    """
    ordered = sorted(lines, key=lambda line: line.at)
    places = [end.at for end in ends]
    copied = _copied(ordered)
    processes: dict[int, tuple[int, ...]] = {}
    restarts = last = 0
    for line in ordered:
        prompt, turn = _position(line)
        restarts += prompt == 1 and turn > 1
        last = turn or last
        number = bisect(places, line.at)
        is_known = (
            line.at >= copied
            and "forkedFrom" not in line.value
            and number < len(ends)
            and as_str(line.value.get("timestamp")) >= ends[number].began
        )
        processes[line.at] = (number, restarts, 0 if is_known else last)
    return processes


def _copied(lines: Iterable[SessionLine]) -> int:
    """Returns the position before which all lines are copies; 0 if there are none.

    A fork logs the copies with the `promptId` of its own first prompt. Otherwise each prompt has
    its own id.
    """
    turns: dict[str, int] = {}
    copied = 0
    for line in lines:
        prompt_id, (_, turn) = as_str(line.value.get("promptId")), _position(line)
        if prompt_id and turn and turns.setdefault(prompt_id, turn) != turn:
            copied = line.at
    return copied


def _position(line: SessionLine) -> tuple[int, int]:
    """Returns the numbers of a prompt in its process and in the session; zeros if it has none."""
    position = as_dict(line.value.get("turnPosition"))
    prompt, turn = position.get("promptIndex"), position.get("turnIndex")
    return (prompt, turn) if isinstance(prompt, int) and isinstance(turn, int) else (0, 0)


def _shape(snapshot: dict[str, Json]) -> Shape:
    prompts = [as_str(item) for item in as_list(snapshot.get("systemPrompt"))]
    prefix = as_str(snapshot.get("cliPrefix"))
    system = [prefix, "\n\n".join(prompts)]
    tools = tuple(as_dict(tool).get("schema") for tool in as_list(snapshot.get("tools")))
    known = {"system"} if any(prompts) else set()
    known |= {"tools"} if "tools" in snapshot else set()
    return Shape(tuple(text for text in system if text), tools, frozenset(known))


_JOINS_WITH_NEWLINE = (2, 1, 80)
_SENDS_PLACEHOLDERS = (2, 1, 290)

_REMINDER = re.compile(r"<system-reminder>\n([\s\S]*?)\n?</system-reminder>\n?")
_NO_CONTEXT = frozenset({"prompt_snapshot", "command_permissions", "deferred_tools_record"})


def assemble(
    lines: Sequence[SessionLine],
    turns: Turns,
    *,
    renders: bool,
    prompt: str | None,
    unsummarised: Collection[str] = (),
    unknown: int | None = None,
) -> Assembly:
    """Returns the messages of a branch.

    `renders`: the log contains the text of attachments as sent. `prompt`: the user message before
    the first line if the branch lacks it (`parent_prompt`). `unsummarised`: uuids of the
    lines after a compaction whose summary the log lacks. `unknown`: the position in the file of the
    first line of an unknown type with a message whose place in the tree is not known.
    """
    assembly = Assembly(lines, turns, renders)
    if prompt:
        assembly.add("user", [{"type": "text", "text": prompt}])
        assembly.changes["parent_prompt"] += 1
    run: list[SessionLine] = []
    for line in lines:
        if unknown is not None and line.at > unknown:
            assembly.lack("unknown_part")
            unknown = None
        if line.kind == "hole" or line.uuid in unsummarised or _clears_results(line):
            assembly.lack("history")
        if line.kind in ("user", "attachment", "unknown", "hole"):
            run.append(line)
        elif line.kind == "assistant":
            if line.is_answer and assembly.has(line):
                continue
            if not line.is_answer and line.value.get(NOT_SENT) is True:
                assembly.members.add(line.uuid)
                assembly.changes["synthetic_turn"] += 1
                continue
            assembly.close(run)
            run = []
            assembly.answer(line)
    assembly.close(run, last=True)
    return assembly


class Assembly:
    """The messages of a branch.

    messages   all messages in order; those with a turn are the model's
    places     indexes of the turns among the messages, by key
    left_out   turns that are left out, each with the number of messages before it and the reason:
               aborted (the user interrupted it) or unanswered
    lacking    {code of `Context.missing`: the index of the first message that lacks it}
    members    uuids of the lines that are part of it
    changes    counts of omissions, by code
    """

    def __init__(self, lines: Sequence[SessionLine], turns: Turns, renders: bool) -> None:
        self.messages: list[SentMessage] = []
        self.places: dict[str, int] = {}
        self.left_out: list[tuple[SessionTurn, int, str]] = []
        self.lacking: dict[str, int] = {}
        self.members: set[str] = set()
        self.changes: Counter[str] = Counter()
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

    def lack(self, *codes: str, after: int = 0) -> None:
        """Records that messages from here on, after so many, lack what the codes say."""
        for code in codes:
            self.lacking.setdefault(code, len(self.messages) + after)

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

    def has(self, line: SessionLine) -> bool:
        """Returns whether the turn of an assistant line was added or left out."""
        key = self._turns.of(line).key
        left_out = (turn.key for turn, _, _ in self.left_out)
        return key in self.places or key in left_out

    def answer(self, line: SessionLine) -> None:
        """Adds the turn of an assistant line; `close` adds its results."""
        if not line.is_answer:
            self.members.add(line.uuid)
            self.changes["synthetic_turn"] += 1
            if line.version >= _SENDS_PLACEHOLDERS:
                self.lack("history")
            return
        turn = self._turns.of(line)
        if turn.key in self._cut:
            self.members.add(line.uuid)
            blocks, self._cut[turn.key] = self._cut[turn.key], []
            if blocks:
                self.add("assistant", blocks, code="stripped")
            return
        self.members.update(item.uuid for item in turn.lines)
        self.members.update(answer.line.uuid for answer in self._answers[turn.key])
        self.changes["repeated_block"] += turn.repeated
        self.changes["arguments_added"] += turn.added
        self.places[turn.key] = len(self.messages)
        self.add("assistant", turn.blocks, turn)
        self._open = turn

    def close(self, run: Sequence[SessionLine], *, last: bool = False) -> None:
        """Adds the lines between two answers as messages; `last`: no answer follows."""
        holes = (at for at, line in enumerate(run) if line.kind == "hole" and line.parent)
        hole = next(holes, None)
        turn, self._open = self._open, None
        answers: Sequence[LoggedResult] = ()
        if turn is not None:
            answers = self._answers[turn.key]
            stopped = _interrupted(run[:hole])
            is_unanswered = bool(turn.calls) and not last and hole is None
            if not answers and (stopped or is_unanswered):
                self._leave_out(turn, "aborted" if stopped else "unanswered")
        if hole is None:
            self._between(run, answers)
        elif any(line.results for line in run[hole:]):  # they are sent first
            self.add("user", [], code=LOST_RECORD.code)
            self._between(run, answers)
        else:
            self._between(run[:hole], answers)
            self.add("user", [], code=LOST_RECORD.code)
            self._between(run[hole + 1 :], ())

    def _between(self, run: Sequence[SessionLine], answers: Sequence[LoggedResult]) -> None:
        """Adds lines between two answers as messages, the results first."""
        user: list[list[Json]] = [[answer.block for answer in answers]] if answers else []
        system: list[str] = []
        segment: list[SessionLine] = []
        for line in run:
            if line.kind == "user":
                self.members.add(line.uuid)
            self.changes["compact_summary"] += line.is_summary
            if line.results:
                self._segment(segment, user, system, answers)
                segment = []
            segment.append(line)
        self._segment(segment, user, system, answers)
        newline = "\n" if run and run[0].version >= _JOINS_WITH_NEWLINE else ""
        content = _merged(user, newline)
        if self._renders and any(map(_is_unrendered, run)):
            self.lack("media", "reminders", after=1)
        origins = (as_dict(line.value.get("origin")).get("kind") for line in run)
        if "task-notification" in origins:  # the note around it that is sent is not logged
            self.lack("reminders", after=1)
        if content:
            self.add("user", content)
        if system:
            self.add("system", [{"type": "text", "text": "\n\n".join(system)}])

    def _leave_out(self, turn: SessionTurn, code: str) -> None:
        place = self.places.pop(turn.key)
        self.left_out.append((turn, place, code))
        self.changes[f"{code}_turn"] += 1
        self.lacking.setdefault("history", place)
        del self.messages[place]

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
            self.members.add(line.uuid)
            if line.value.get("renderedRole") == "system" and self._system_turns:
                texts = (as_str(block, "text") for block in blocks)
                tagged = ((text, _REMINDER.fullmatch(text)) for text in texts)
                system.append("\n".join(match[1] if match else text for text, match in tagged))
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


def _is_unrendered(line: SessionLine) -> bool:
    """Returns whether a file was mentioned that is sent but not rendered, such as an image."""
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
