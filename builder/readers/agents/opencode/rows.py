"""Converts the rows of an opencode session (messages with their parts) to conversations.

Source: docs/formats/opencode.md; for the messages made of rows: anomalyco/opencode
packages/opencode/src/session/message-v2.ts (MIT).

- The program sends the summary of a compaction as an answer to its own question. Here it becomes a
  user message: it is context, and the request that it answered is not logged. Answers that a
  compaction kept are repeats.
- The program does not send an answer again if its request failed: the answer becomes a conversation
  with the problem `request_failed`. It sends an aborted answer as far as it got: this is a target
  if it called a tool, since calls end an answer.
- A call that was still running is sent with the result "[Tool execution was interrupted]". After
  results that were cleared later (`time.compacted`), answers lack `history`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Data,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import json_type
from builder.problem import Problem
from builder.readers.toolkit.call_keys import CallKeys
from builder.readers.toolkit.chat_messages import as_harness, media_of
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str, name_or_none
from builder.readers.toolkit.segments import Segments
from builder.readers.toolkit.unanswered import supply_results
from builder.readers.toolkit.unknown_keys import PART_KEYS, unknown_names

_KEYS = PART_KEYS | {"time", "metadata", "synthetic", "ignored", "snapshot", "state", "files"}
"""Keys of parts that are known."""
_SILENT = frozenset({"step-start", "step-finish", "snapshot", "patch", "retry", "agent"})
"""Parts that never reach the model."""
_INLINED = frozenset({"text/plain", "application/x-directory"})
"""Files whose content reaches the model as synthetic text that is logged with them."""
_QUESTION = "What did we do so far?"
"""The text that the program sends before the summary of a compaction."""
_INTERRUPTED = "[Tool execution was interrupted]"
"""The result that the program sends for a call that was still running."""
_ABORTED = "Tool execution aborted"
_DENIED = ("The user rejected permission", "The user has specified a rule which prevents")
_MISSING = frozenset({"system", "tools"})
_REPLACED = "invalid"
"""The program's own tool, of which it makes a call in place of one that names no tool or that has
arguments it cannot decode. The model's call is lost, and later requests contain this one."""
_CUT_SHORT = frozenset({"length", "content-filter"})


@dataclass(frozen=True, slots=True)
class StoreRow:
    """One message: its id, its metadata, and its parts in order, each with its id."""

    id: str
    info: dict[str, Json]
    parts: tuple[dict[str, Json], ...]

    @property
    def role(self) -> str:
        """The logged role."""
        return as_str(self.info.get("role"))

    def of_type(self, kind: str) -> dict[str, Json] | None:
        """Returns the first part of the type, or None."""
        return next((part for part in self.parts if part.get("type") == kind), None)


def conversations(
    session_id: str,
    session: dict[str, Json],
    rows: Sequence[StoreRow],
    records: int,
    problems: tuple[Problem, ...] = (),
) -> Iterator[Conversation]:
    """Yields the session as the model saw it: one conversation, and one more for each compaction.

    `rows` are in the order of their ids. If the user reverted to an earlier message (`revert`), the
    undone part is a conversation with the code `rewound`. `records` are counted in the first
    conversation. A session without messages yields nothing.
    """
    where = f"session {session_id}"
    kept = list(_kept(rows, as_dict(session.get("revert"))))
    numbered = Segments(session_id, records)
    targets: set[str] = set()
    known = frozenset(row.id for row in rows)
    segments = [(segment, False) for segment in _segments(kept)]
    if any(row.role == "assistant" for row in rows[len(kept) :]) or _calls(rows) > _calls(kept):
        segments.append((_segments(rows)[-1], True))
    for segment, undone in segments:
        reading = _Reading(session_id, targets, known)
        for row in segment:
            reading.take(row)
        context = Context.lacking(_MISSING)
        empty = Conversation(
            id=session_id,
            record=where,
            messages=(),
            model=reading.model,
            context=context,
            version=name_or_none(session.get("version")),
        )
        for number, failed in enumerate(reading.failed, start=1):
            name = f"{session_id}#{numbered.segments + 1}~{number}"
            problem = Problem("request_failed", where, "the request for the answer failed", 0)
            yield replace(empty, id=name, messages=failed, problems=(problem,))
        if not reading.messages:
            continue
        targets |= {message.turn for message in reading.messages if message.turn}
        rewound = Problem("rewound", where, "the user reverted to an earlier message", records=0)
        messages, supplied = supply_results(reading.messages, _interrupted)
        reading.changes["result_supplied"] += supplied
        yield replace(
            empty,
            id=numbered.next_name(),
            messages=tuple(messages),
            records=numbered.take_records(),
            problems=(*problems, *reading.problems, *((rewound,) if undone else ())),
            changes=dict(sorted((+reading.changes).items())),
        )


def _interrupted(call: ToolCall) -> ToolResult:
    return ToolResult((Text(_INTERRUPTED),), call.id, call.name, is_interrupted=True)


def _calls(rows: Sequence[StoreRow]) -> int:
    return sum(part.get("type") == "tool" for row in rows for part in row.parts)


def _kept(rows: Sequence[StoreRow], revert: dict[str, Json]) -> Iterator[StoreRow]:
    """Yields the rows before the point to which the user reverted."""
    message, part = name_or_none(revert.get("messageID")), name_or_none(revert.get("partID"))
    for row in rows:
        if message is None or row.id < message:
            yield row
        elif row.id == message and part is not None:
            before = tuple(item for item in row.parts if as_str(item.get("id")) < part)
            if before:
                yield StoreRow(row.id, row.info, before)


def _segments(rows: Sequence[StoreRow]) -> list[list[StoreRow]]:
    """Splits the rows at compactions: a segment begins with the summary and the kept rows."""
    segments: list[list[StoreRow]] = [[]]
    markers: dict[str, StoreRow] = {}
    for row in rows:
        marker = row.of_type("compaction")
        if row.role == "user" and marker is not None:
            markers[row.id] = row
            continue
        asked = markers.get(as_str(row.info.get("parentID")))
        if row.info.get("summary") is not True or row.role != "assistant":
            segments[-1].append(row)
        elif row.info.get("finish") and not row.info.get("error"):
            marker = asked.of_type("compaction") if asked else None
            start = name_or_none(as_dict(marker).get("tail_start_id"))
            tail = [
                old for old in rows if start is not None and asked and start <= old.id < asked.id
            ]
            segments.append([row, *(old for old in tail if old.id not in markers)])
    return segments


@dataclass(slots=True)
class _Reading:
    """Reads the rows of a segment.

    targets  turns that are targets in an earlier segment
    known    ids of all messages of the session
    is_cut   an answer's question is not in the store, so earlier messages are missing
    failed   the conversations that end with a failed request
    cleared  when the first result was cleared
    """

    session: str
    targets: set[str]
    known: frozenset[str]
    messages: list[Message] = field(default_factory=list)
    model: str | None = None
    system: str | None = None
    problems: list[Problem] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[Message, ...]] = field(default_factory=list)
    cleared: float | None = None
    is_cut: bool = False
    keys: CallKeys = field(init=False)

    def __post_init__(self) -> None:
        self.keys = CallKeys(self.session)

    def take(self, row: StoreRow) -> None:
        if row.role == "user":
            self._user(row)
        elif row.role != "assistant":
            if content := self._parts(row, row.parts)[0]:
                self.messages.append(Message(row.role, tuple(content), turn=row.id))
        elif row.info.get("summary") is True:
            # The next request begins with it: context, not an answer.
            texts = self._parts(row, [p for p in row.parts if p.get("type") == "text"])[0]
            self.changes["summary_as_context"] += 1
            parts = as_harness([Text(_QUESTION), *texts])
            self.messages.append(Message("user", parts, turn=row.id))
        else:
            self._assistant(row)

    def _reject(self, code: str, row: StoreRow, detail: str) -> None:
        self.problems.append(Problem(code, f"message {row.id}", detail[:200], records=0))

    def _user(self, row: StoreRow) -> None:
        system = name_or_none(row.info.get("system"))
        if not any(message.role == "user" for message in self.messages):
            self.system = system
            if system is not None:
                self.messages.append(Message("system", (Text(system),)))
        elif system != self.system:
            self._reject("late_system", row, "a different system text than before")
        if row.of_type("subtask") is not None:  # answered by a call that the program made
            self._reject("harness_call", row, "a subtask that the user started")
        parts = [part for part in row.parts if part.get("type") != "subtask"]
        if content := self._parts(row, parts)[0]:
            unknown = _unknown(parts)
            self.messages.append(Message("user", tuple(content), turn=row.id, unknown=unknown))

    def _assistant(self, row: StoreRow) -> None:
        model = name_or_none(row.info.get("modelID"))
        self.model = model or self.model
        asked = name_or_none(row.info.get("parentID"))
        self.is_cut = self.is_cut or (asked is not None and asked not in self.known)
        steps = _steps(row.parts)
        for number, step in enumerate(steps, start=1):
            fault = self._fault(row) if number == len(steps) else None
            parts, results = self._parts(row, step)
            turn = row.id if number == 1 else f"{row.id}/{number}"
            untrained = REPEAT if turn in self.targets else None
            if any(part.get("type") == "tool" and part.get("tool") == _REPLACED for part in step):
                untrained = "undefined_tool"
            has_content = any(isinstance(part, Text | ToolCall | Media) for part in parts)
            if fault == "request_failed":
                if has_content:  # the program omits it from the next request
                    message = Message("assistant", tuple(parts), turn=turn, model=model)
                    self.failed.append((*self.messages, message))
                continue
            if fault == "aborted":
                if not has_content:
                    continue
                is_whole = any(isinstance(part, ToolCall) for part in parts)
                untrained = untrained if is_whole else "aborted"
            elif fault:
                parts.append(Unparsed("", fault))
            if not parts:
                continue
            saw_cleared = self.cleared is not None and _created(row) >= self.cleared
            lacks = saw_cleared or self.is_cut
            context = Context.lacking(_MISSING | {"history"}) if lacks else None
            message = Message("assistant", tuple(parts), turn, untrained, context, model)
            self.messages.append(replace(message, unknown=_unknown(step)))
            if results:
                self.messages.append(Message("tool", tuple(results)))

    def _fault(self, row: StoreRow) -> str | None:
        """Returns the code for an answer that is not whole, or None."""
        error = row.info.get("error")
        if error:
            name = as_dict(error).get("name")
            return "aborted" if name == "MessageAbortedError" else "request_failed"
        return "truncated" if as_str(row.info.get("finish")) in _CUT_SHORT else None

    def _parts(
        self, row: StoreRow, items: Sequence[dict[str, Json]]
    ) -> tuple[list[Part], list[ToolResult]]:
        parts: list[Part] = []
        results: list[ToolResult] = []
        for item in items:
            match kind := item.get("type"):
                case "text":
                    text = as_str(item.get("text"))
                    if text and item.get("ignored") is not True:
                        parts.append(Text(text, harness=item.get("synthetic") is True))
                case "reasoning":
                    parts += [Reasoning(text)] if (text := as_str(item.get("text"))) else []
                case "file":
                    if as_str(item.get("mime")) not in _INLINED:
                        parts.append(media_of(as_str(item.get("mime"))))
                case "tool":
                    call, result = self._tool(item)
                    parts.append(call)
                    results += [result] if result else []
                case _:
                    if as_str(kind) not in _SILENT:
                        parts.append(unknown_part(as_str(kind) or json_type(kind)))
        return parts, results

    def _tool(self, item: dict[str, Json]) -> tuple[ToolCall, ToolResult | None]:
        """Returns the call, and its result unless it was still pending or running."""
        state = as_dict(item.get("state"))
        name, call_id = as_str(item.get("tool")), name_or_none(item.get("callID"))
        raw = name_or_none(state.get("raw")) if state.get("status") == "pending" else None
        call = ToolCall(name, raw or state.get("input"), call_id, self.keys.of(call_id))
        failed = state.get("status") == "error"
        if not failed and state.get("status") != "completed":
            return call, None
        output = state.get("error" if failed else "output")
        metadata = as_dict(state.get("metadata"))
        stopped = failed and metadata.get("interrupted") is True
        if stopped and isinstance(metadata.get("output"), str):
            output = metadata["output"]  # what the tool had written is sent, not the error
        content: list[Text | Data | Media]
        content = [Text(output) if isinstance(output, str) else Data(output, compact=True)]
        if not failed:
            cleared = as_dict(state.get("time")).get("compacted")
            if isinstance(cleared, int | float):
                self.cleared = min(cleared, self.cleared or cleared)
            for file in as_dicts(state.get("attachments")):
                content.append(media_of(as_str(file.get("mime"))))
        error = as_str(output) if failed else ""
        interrupted = stopped or error.startswith(_ABORTED)
        denied = error.startswith(_DENIED)
        return call, ToolResult(
            tuple(content),
            call_id=call_id,
            name=name or None,
            is_error=failed and not (interrupted or denied),
            is_denied=denied,
            is_interrupted=interrupted,
        )


def _unknown(parts: Sequence[dict[str, Json]]) -> tuple[str, ...]:
    """Returns the keys of parts for the model that hold text and are not known."""
    sent = (part for part in parts if as_str(part.get("type")) not in _SILENT)
    names = (f"parts.{name}" for part in sent for name in unknown_names(part, _KEYS))
    return tuple(dict.fromkeys(names))


def _created(row: StoreRow) -> float:
    created = as_dict(row.info.get("time")).get("created")
    return created if isinstance(created, int | float) else 0


def _steps(parts: Sequence[dict[str, Json]]) -> list[list[dict[str, Json]]]:
    """Splits the parts into steps of the model: old versions kept several in one message."""
    steps: list[list[dict[str, Json]]] = [[]]
    for part in parts:
        if part.get("type") == "step-start" and steps[-1]:
            steps.append([])
        else:
            steps[-1].append(part)
    return steps
