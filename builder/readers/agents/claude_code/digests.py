"""Rebuilds and checks the requests that a Claude Code log describes by digests (since 2.1.310).

Observed by running the program against a recording server (scripts/wire):

- `api-request-shape`: system blocks and tools as sent, without the billing block. `shapeHash` is
  the digest of both.
- `api-request-blob`: a message that is not a line of the log, with its digest.
- `api-request`: the first `keep` messages of the request `base`, then `tail`, all as digests.
  `requestDigest` is the digest of one object with system, tools, messages and `params`, with cache
  marks at the places in `cacheControl`. An assistant line names its request by `requestRef`.
- A digest is the SHA-256 of the value as JSON: keys sorted, no spaces, UTF-8, a message's string
  content as one text block, messages without cache marks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from builder.conversation import Json
from builder.readers.agents.claude_code.canonical import canonical, sha256
from builder.readers.agents.claude_code.lines import (
    LEAVES_PLAN_MODE,
    SessionLine,
    SessionTurn,
    Turns,
)
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str

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
    code    for an assistant message without a turn: why it is not a target
    """

    value: dict[str, Json]
    turn: SessionTurn | None = None
    code: str = "inserted"

    @cached_property
    def canonical(self) -> str:
        """Returns the JSON text over which digests are computed."""
        return canonical(self.value)

    @cached_property
    def digest(self) -> str:
        """Returns the digest of the message."""
        return sha256(self.canonical)


@dataclass(frozen=True, slots=True)
class Shape:
    """System texts and tool definitions of a request; `known`: which of the two the log has."""

    system: tuple[str, ...] = ()
    tools: tuple[Json, ...] = ()
    known: frozenset[str] = frozenset({"system", "tools"})


@dataclass(frozen=True, slots=True)
class Rebuilt:
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
    return sha256(canonical(value))


def without_cache_marks(message: Mapping[str, Json]) -> dict[str, Json]:
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
        sent = SentMessage(without_cache_marks(message))
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
        sent = SentMessage(without_cache_marks({"role": role, "content": [*blocks]}), code=code)
        return self._known.setdefault(sent.digest, sent)

    def rebuild(self, reference: str) -> Rebuilt | None:
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
        return Rebuilt(sent, read_shape(logged), proven, trimmed)

    def exact_shape(self, reference: str) -> Shape | None:
        """Returns system and tools of the request with that id, if their digest matches."""
        record = self._requests[reference][0] if reference in self else {}
        name = as_str(record.get("shapeHash"))
        logged = self._shapes.get(name)
        return read_shape(logged) if logged is not None and digest(logged) == name else None

    def _with_turns(self, messages: Iterable[SentMessage]) -> Iterator[SentMessage]:
        """Yields the messages, the model's with their turns; equal answers in logged order."""
        taken: set[str] = set()
        for sent in messages:
            candidates = self._turns.get(sent.digest, {})
            if not candidates and sent.value.get("role") == "assistant":
                blocks = as_dicts(sent.value.get("content"))
                silent = without_cache_marks({"role": "assistant", "content": _silent(blocks)})
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
            canonical(marked[at]) if at in marked else message.canonical
            for at, message in enumerate(messages)
        )
        body: dict[str, Json] = {**shape, **as_dict(record.get("params"))}
        if "system" in shape:
            body["system"] = [*system]
        texts = {key: canonical(value) for key, value in body.items()}
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
    """Returns the blocks without thoughts, which the program may move when it sends them again."""
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


def read_shape(shape: dict[str, Json]) -> Shape:
    """Returns the system texts and the tools of a logged shape."""
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
