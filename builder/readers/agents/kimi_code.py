"""Reads Kimi Code. Source: docs/formats/kimi-code.md."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from builder.conversation import (
    Content,
    Context,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
)
from builder.jsonio import packed
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import as_harness, content_block
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory, lost_message
from builder.readers.toolkit.marks import cut_code, finish_fault
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_str,
    name_or_none,
    one_or_many,
    tuple_or_none,
    unknown_code,
)
from builder.readers.toolkit.rows import RecordLog, add_records, objects
from builder.readers.toolkit.unknown_keys import PART_KEYS, message_keys, noted, unknown_names
from builder.readers.traces.parts import read_call, read_part, read_parts
from builder.sources.listing import Listing
from builder.sources.source import Source

# -- messages and results as they are sent ---------------------------------------------------------

_TIMED = frozenset({"Agent", "AgentSwarm", "Bash", "FetchURL", "Glob", "Grep", "WebSearch"})
"""Tools whose results are sent with their duration; MCP tools are, too (2.1.0)."""

_INTERRUPTED = (
    "Tool execution was interrupted before its result was recorded. Do not assume the tool "
    "completed successfully."
)
"""What the agent sends for a call whose result it did not record (2.1.0)."""

_FAILED = "<system>ERROR: Tool execution failed.</system>"
_FAILED_EMPTY = "<system>ERROR: Tool execution failed. Tool output is empty.</system>"
_EMPTY = "<system>Tool output is empty.</system>"


def _contents(value: Json) -> tuple[Content, ...]:
    """Returns the parts of a user message or of a result: text, a part, or a list of parts."""
    items = one_or_many(value) if value is not None else []
    return tuple(Text(item) if isinstance(item, str) else content_block(item) for item in items)


def _is_blank(value: dict[str, Json]) -> bool:
    """Returns whether a part of an answer is nothing: blank text, or an empty thought."""
    if value.get("type") == "text":
        return not as_str(value.get("text")).strip()
    hidden = value.get("encrypted") is not None
    return value.get("type") == "think" and not hidden and not as_str(value.get("think")).strip()


def _sent_result(call_id: str, name: str, result: dict[str, Json]) -> ToolResult:
    """Returns a result as the agent sends it: with its status, its duration and its note."""
    failed = result.get("isError") is True
    parts = list(_with_status(_contents(result.get("output")), failed))
    duration = result.get("durationMs")
    if isinstance(duration, int | float) and (name in _TIMED or name.startswith("mcp__")):
        header = f"Wall time: {duration / 1e3:.3f} seconds"
        if parts and isinstance(parts[0], Text):
            parts[0] = Text(f"{header}\n{parts[0].text}")
        else:
            parts.insert(0, Text(header))
    if note := as_str(result.get("note")):
        if len(parts) == 1 and isinstance(parts[0], Text):
            parts = [Text(f"{parts[0].text}\n{note}")]
        else:
            parts.append(Text(note))
    return ToolResult(tuple(parts), call_id or None, name or None, is_error=failed)


def _with_status(output: tuple[Content, ...], failed: bool) -> Sequence[Content]:
    texts = [part.text for part in output if isinstance(part, Text)]
    if len(texts) == len(output) <= 1:
        text = "".join(texts)
        if failed:
            return [Text(f"{_FAILED}\n{text}" if text else _FAILED_EMPTY)]
        empty = text.strip() in ("", "Tool output is empty.")
        return [Text(_EMPTY)] if empty else output
    if len(texts) == len(output) and not any(text.strip() for text in texts):
        return [Text(_FAILED_EMPTY if failed else _EMPTY)]
    return [Text(_FAILED), *output] if failed else output


# -- the replay ------------------------------------------------------------------------------------

_CONTINUE = (
    "<system-reminder>\nContext compaction is complete \u2014 continue the work that was in "
    "progress when it began.\n</system-reminder>"
)
"""What 2.1.0 adds after the summary of a compaction; older versions add nothing."""


_SUMMARY = "compaction_summary"
_ADDED = "compaction_continuation"
_REMINDER = "injection"
"""The kind of messages that the program inserted as reminders."""


@dataclass(slots=True)
class _OpenStep:
    """The step that is open: its answer, what is blank so far, whether a record of it is lost."""

    entry: HistoryEntry
    uuid: str
    blank: bool = True
    has_calls: bool = False
    is_damaged: bool = False


@dataclass(slots=True)
class _Replay(RecordLog):
    """The replay of one wire file.

    `model` is that of the last request.
    `has_gap`: the log lacks messages of the later requests. `has_lost`: a record before the next
    step cannot be read, which may have begun one. `counted` are the messages counted so
    far: the history, the number of its entries, that of messages, whether the next can be joined.
    `prompts`: the id of each prompt, and of the prompt to which a reminder belongs.
    `steered`: messages of the user to a turn that was running, which an undo does not count.
    `keeps_reminders`: the next undo keeps those that belong to no prompt (2.1).
    """

    CUT_IS_LOST: ClassVar[bool] = True

    system: str | None = None
    tools: dict[str, Json] = field(default_factory=dict)
    model: str | None = None
    is_damaged: bool = False
    open: _OpenStep | None = None
    pending: dict[str, str] = field(default_factory=dict)
    deferred: list[HistoryEntry] = field(default_factory=list)
    has_gap: bool = False
    has_lost: bool = False
    counted: tuple[list[HistoryEntry], int, int, bool] | None = None
    prompts: dict[HistoryEntry, str] = field(default_factory=dict)
    steered: set[HistoryEntry] = field(default_factory=set)
    keeps_reminders: bool = False

    def lose(self, where: str) -> None:
        """Notes that a record cannot be read: of the open step, or perhaps the begin of one."""
        self.is_damaged = True
        if self.open is not None:
            self.open.is_damaged = True
        else:
            self.has_lost = True
            self.history.append(lost_message(), where, kind="lost")

    def add(self, where: str, value: dict[str, Json]) -> str:
        kind = as_str(value.get("type"))
        if kind not in _HISTORY:
            known = "state" if kind.startswith(_STATE) else unknown_code(value.get("type"))
            return "repeated_message" if kind in _REPEATS else known
        match kind:
            case "context.append_message":
                self.append_message(as_dict(value.get("message")), where)
                self._note_damage(*self.history.entries[-1:])
            case "context.append_loop_event":
                event = as_dict(value.get("event"))
                self.loop_event(event, where)
                if event.get("type") == "step.begin" and self.open is not None:
                    self.open.entry.request = RequestHead(self.system, None, self.model)
                    self._note_damage(self.open.entry)
            case "context.undo":
                count = value.get("count")
                self.undo(count if isinstance(count, int) else 0)
            case "agent.switched":  # precedes the undo
                self.keeps_reminders = True
            case "context.clear":
                self.reset([])
            case "context.apply_compaction":
                self.settle(where)
                self.compact(value, where)
            case "config.update" | "profile.bind":
                self.system = name_or_none(value.get("systemPrompt")) or self.system
            case "llm.tools_snapshot":
                self.tools[as_str(value.get("hash"))] = value.get("tools")
            case "llm.request":
                self._request(value)
        return ""

    def _note_damage(self, *entries: HistoryEntry) -> None:
        """Marks answers after a lost record; a logged request states more about them."""
        for entry in entries:
            if self.is_damaged and entry.message.role == "assistant":
                missing = {"history", "tools", *(["system"] if self.system is None else [])}
                entry.message = replace(entry.message, context=Context.lacking(missing))

    def _request(self, value: dict[str, Json]) -> None:
        """Notes the request of the open step, and what the log lacks of it."""
        if value.get("kind") == "compaction":
            return
        self.model = name_or_none(value.get("model")) or self.model
        if self.open is None:  # the request of the step that begins next
            return
        sent = value.get("messageCount")
        if isinstance(sent, int):
            self.continue_compacted(sent)
        missing: set[str] = set()
        system = name_or_none(value.get("systemPrompt")) or self.system
        tools = tuple_or_none(self.tools.get(as_str(value.get("toolsHash"))))
        if system is None:
            missing.add("system")
        elif _digest(system.encode("utf-8", "surrogatepass")) != value.get("systemPromptHash"):
            missing.add("digest")
        if tools is None:
            missing.add("tools")
        elif _digest(packed(list(tools))) != value.get("toolsHash"):
            missing.add("digest")
        if self.has_gap or self.is_damaged or (sent is not None and sent != self.count()):
            missing.add("history")
        if "media" in as_str(value.get("projection")):
            missing.add("media")
        entry = self.open.entry
        entry.request = RequestHead(system, tools, name_or_none(value.get("model")))
        entry.message = replace(entry.message, context=Context.lacking(missing, "rendered"))

    # -- messages ----------------------------------------------------------------------------

    def append_message(self, value: dict[str, Json], where: str) -> None:
        """Appends a message; while calls are pending, it waits for their results."""
        origin = as_dict(value.get("origin"))
        kind = _kind(origin)
        message = noted([_message(value, kind)], value, message_keys("kimi-code"))[0]
        entry = HistoryEntry(
            message,
            where,
            RequestHead(self.system) if message.role == "assistant" else None,
            kind=kind,
        )
        owner = origin.get("ownerPromptId") if kind == _REMINDER else value.get("id")
        self.prompts[entry] = as_str(owner)
        if origin.get("inTurn") is True:
            self.steered.add(entry)
        if self.pending:
            self.deferred.append(entry)
        else:
            self.history.entries.append(entry)

    def loop_event(self, event: dict[str, Json], where: str) -> None:
        kind = event.get("type")
        if self.has_lost and kind in ("content.part", "tool.call") and not self._step(event):
            self._begin(as_str(event.get("stepUuid")), where, is_damaged=True)
        match kind:
            case "step.begin":
                self._begin(as_str(event.get("uuid")), where)
            case "content.part" if step := self._step(event):
                logged = as_dict(event.get("part"))
                step.blank = step.blank and _is_blank(logged)
                for part in read_part(event.get("part")):
                    self._extend(step, part, logged)
            case "tool.call" if step := self._step(event):
                call_id = as_str(event.get("toolCallId"))
                name = as_str(event.get("name"))
                step.has_calls = True
                self.pending[call_id] = name
                self._extend(step, ToolCall(name, event.get("args"), call_id or None), {})
            case "tool.result" if (call_id := as_str(event.get("toolCallId"))) in self.pending:
                name = self.pending.pop(call_id)
                result = _sent_result(call_id, name, as_dict(event.get("result")))
                self.history.append(Message("tool", (result,)), where)
                self._release()
            case "step.end" if self._step(event, "uuid"):
                self._end(event, where)
            case _:
                pass

    def _begin(self, uuid: str, where: str, *, is_damaged: bool = False) -> None:
        self.settle(where)
        self.has_lost = False
        entry = self.history.append(Message("assistant", (), turn=uuid or None), where)
        self.open = _OpenStep(entry, uuid, is_damaged=is_damaged)

    def _step(self, event: dict[str, Json], key: str = "stepUuid") -> _OpenStep | None:
        return self.open if self.open and self.open.uuid == as_str(event.get(key)) else None

    @staticmethod
    def _extend(step: _OpenStep, part: Part, logged: dict[str, Json]) -> None:
        message = step.entry.message
        names = (f"content.{name}" for name in unknown_names(logged, PART_KEYS))
        unknown = (*message.unknown, *names)
        step.entry.message = replace(message, parts=(*message.parts, part), unknown=unknown)

    def _end(self, event: dict[str, Json], where: str) -> None:
        assert self.open is not None
        message = self.open.entry.message
        if event.get("finishReason") in ("interrupted", "error"):  # the step stays open
            if not self.open.has_calls:
                self.open.entry.message = replace(message, untrained="aborted")
            return
        code = finish_fault(event.get("finishReason"))
        if code := code or finish_fault(event.get("providerFinishReason")):
            self.open.entry.message = replace(message, untrained=code)
        self.settle(where)

    def settle(self, where: str) -> None:
        """Closes the open step: supplies missing results, drops an answer without content."""
        step, self.open = self.open, None
        if step is None:
            return
        if step.is_damaged:
            step.entry.message = replace(step.entry.message, untrained="truncated")
            self.pending.clear()
            self.history.append(lost_message(), where, kind="lost")
        for call_id, name in self.pending.items():
            result = _sent_result(call_id, name, {"output": _INTERRUPTED, "isError": True})
            result = replace(result, is_error=False, is_interrupted=True)
            self.history.append(Message("tool", (result,)), where, changes=("result_supplied",))
        self.pending.clear()
        self._release()
        if step.blank and not step.has_calls:
            self.history.entries.remove(step.entry)
            self.counted = None

    def _release(self) -> None:
        if not self.pending:
            self.history.entries += self.deferred
            self.deferred.clear()

    def end(self) -> None:
        """Ends the replay with the log: an answer that has no end is not complete."""
        step = self.open
        if step is not None and step.blank and not step.has_calls:
            self.history.entries.remove(step.entry)
        elif step is not None and (step.is_damaged or not step.has_calls):
            step.entry.message = replace(step.entry.message, untrained="aborted")

    # -- changes of the history --------------------------------------------------------------

    def undo(self, count: int) -> None:
        """Takes back the last `count` prompts with all that followed, unless there are fewer."""
        entries = self.history.entries
        keeps_reminders, self.keeps_reminders = self.keeps_reminders, False
        cut, left = len(entries), count
        for at in reversed(range(len(entries))):
            if left == 0 or entries[at].kind == _SUMMARY:
                break
            if _is_prompt(entries[at]) and entries[at] not in self.steered:
                left -= 1
                cut = at
        if left or count <= 0:
            return
        while cut > 0 and self._belongs(entries[cut - 1], entries[cut : cut + 1]):
            cut -= 1
        left_over = [
            entry
            for entry in entries[cut:]
            if entry.kind == _REMINDER and self._belongs(entry, entries[:cut], or_to_none=True)
        ]
        self.reset()
        self.history.rewind(cut)
        if keeps_reminders:
            self.history.entries += left_over

    def _belongs(
        self, entry: HistoryEntry, prompts: Sequence[HistoryEntry], *, or_to_none: bool = False
    ) -> bool:
        owner = self.prompts.get(entry, "")
        if entry.kind != _REMINDER or not owner:
            return or_to_none
        return any(_is_prompt(item) and self.prompts.get(item) == owner for item in prompts)

    def compact(self, value: dict[str, Json], where: str) -> None:
        """Replaces the history by a summary and the kept messages."""
        entries = self.history.entries
        summary = as_dict(value.get("summary"))
        text = name_or_none(value.get("contextSummary")) or as_str(value.get("summary"))
        parts = _contents(summary.get("content")) if summary else (Text(text),)
        entry = HistoryEntry(Message("user", as_harness(parts)), where, kind=_SUMMARY)
        kept = value.get("keptUserMessageCount")
        if not isinstance(kept, int):
            count = value.get("compactedCount", value.get("count"))
            rest = entries[count:] if isinstance(count, int) and count >= 0 else []
            self.has_gap = self.has_gap or not isinstance(count, int)
            self.reset([entry, *rest])
            return
        prompts = list(filter(_is_prompt, entries))
        # Otherwise the agent kept a selection, and cut messages, by its estimate of tokens.
        whole = kept == len(prompts) and "keptHeadUserMessageCount" not in value
        self.has_gap = self.has_gap or not whole
        self.reset([*(prompts if whole else []), entry])

    def continue_compacted(self, messages: int) -> None:
        """Adds the reminder after a summary if the number of messages of a request shows it."""
        entries = self.history.entries
        if messages != self.count() + 1:
            return
        kinds = [entry.kind for entry in entries]
        if _SUMMARY not in kinds or _ADDED in kinds:
            return
        self.counted = None
        at = len(kinds) - 1 - kinds[::-1].index(_SUMMARY)
        message = Message("user", (Text(_CONTINUE, harness=True),))
        changes = ("reminder_supplied",)
        entries.insert(
            at + 1, HistoryEntry(message, entries[at].where, changes=changes, kind=_ADDED)
        )

    def reset(self, entries: Sequence[HistoryEntry] | None = None) -> None:
        """Forgets the open step and its calls; replaces the history, unless it is None."""
        self.open = None
        self.pending.clear()
        self.deferred.clear()
        if entries is not None:
            self.history.replace(entries)

    # -- what a request contains -------------------------------------------------------------

    def count(self) -> int:
        """Returns the number of messages in the next request, without the system prompt."""
        entries = self.history.entries
        begun = self.open.entry if self.open is not None else None
        if self.counted is None or self.counted[0] is not entries or self.counted[1] > len(entries):
            self.counted = (entries, 0, 0, False)
        _, start, count, joins = self.counted
        closed = len(entries) - (entries[-1:] == [begun])
        for entry in entries[start:closed]:
            joined = entry.message.role == "user" and entry.kind == "user"
            if entry.message.parts and entry is not begun:
                count += not (joins and joined)
                joins = joined
        is_last = begun is None or closed < len(entries)
        self.counted = (entries, closed, count, joins) if is_last else None
        return count


def _kind(origin: dict[str, Json]) -> str:
    """Returns the kind of an origin, "user-slash" for a skill or plugin that the user called."""
    slash = origin.get("trigger") == "user-slash"
    kind = as_str(origin.get("kind"))
    return "user-slash" if slash and kind in ("skill_activation", "plugin_command") else kind


def _is_prompt(entry: HistoryEntry) -> bool:
    return entry.message.role == "user" and entry.kind in ("", "user", "user-slash")


def _message(value: dict[str, Json], kind: str) -> Message:
    role = as_str(value.get("role"))
    if role == "assistant":
        parts = read_parts(value.get("content"))
        parts += map(read_call, as_dicts(value.get("toolCalls")))
        return Message(role, tuple(parts), untrained="inserted" if kind else cut_code(value))
    if role == "tool":
        call_id = as_str(value.get("toolCallId"))
        result = {**value, "output": value.get("content")}
        return Message(role, (_sent_result(call_id, "", result),))
    sent = _contents(value.get("content"))
    return Message(role[:40], sent if kind in ("", "user") else as_harness(sent))


# -- files ----------------------------------------------------------------------------------------

_NAME = "kimi-code"

_WIRE = "wire.jsonl"
_INTERNAL = ("ctitle-", "sklsum-", "dvlt-")
"""Beginnings of the names of Kimi Work's own sessions: titles, summaries of skills, its tasks."""

_HISTORY = frozenset({
    "context.append_message", "context.append_loop_event", "context.undo", "context.clear",
    "context.apply_compaction", "config.update", "profile.bind", "llm.request",
    "llm.tools_snapshot", "agent.switched",
})  # fmt: skip
_REPEATS = frozenset({"agent.message.appended", "turn.prompt", "turn.steer"})
_STATE = (
    "agent.", "config.", "cron.", "file_history.", "forked", "full_compaction.", "goal.",
    "interaction.", "interruptionReminder.", "llm.", "mcp.", "metadata", "permission.", "plan.",
    "plan_mode.", "plugin.", "profile.", "prompt.", "runtime.", "staleGuard.", "swarm_mode.",
    "task.", "token_counting.", "tools.", "tower_mode.", "turn.", "usage.",
)  # fmt: skip
"""Beginnings of types of records that are in no request."""


def _is_store(folder: Listing) -> bool:
    """Returns whether a folder is a session: agents, each with a wire file, and a state file."""
    if not (folder.is_dir("agents") and folder.is_file("state.json")):
        return False
    return any(folder.is_file(f"agents/{name}/{_WIRE}") for name in folder.folder("agents").names())


def _holds(name: str) -> bool:
    """Returns whether a file of a session's folder is read: the wire files and the state."""
    parts = name.split("/")
    return name == "state.json" or (len(parts) == 3 and parts[0] == "agents" and parts[2] == _WIRE)


def _recognise(source: Source) -> str | None:
    """Claims a head with protocol_version and created_at, or records of the context."""
    if source.peek.kind == "folder":
        reasons = (_recognise(item) for item in source.members if item.name.endswith(_WIRE))
        return next((reason for reason in reasons if reason), None)
    for value in source.peek.objects:
        kind = as_str(value.get("type"))
        if kind == "metadata" and {"protocol_version", "created_at"} <= value.keys():
            return "a head with protocol_version and created_at"
        if kind.startswith(("context.append_", "llm.tools_snapshot")) and "time" in value:
            return f"{kind} records"
    return None


def _read(source: Source) -> Iterator[Event]:
    """Yields the conversations of each agent of a session."""
    names: Counter[str] = Counter()
    is_internal = any(part.startswith(_INTERNAL) for part in source.name.split("/"))
    folder = source.name.rpartition("/")[2]
    for member in source.members or (source,):
        if member is not source and not member.name.endswith(_WIRE):
            member.count_records()
            yield Ignored("other_file")
        elif is_internal:
            for record in member.json_lines():
                yield record if isinstance(record, Problem) else Ignored("helper_request")
        else:
            session, scope = folder.removesuffix(".jsonl") or "session", source.name
            if member is not source:
                session = f"{folder}/{member.name.split('/')[-2]}" if "/" in member.name else folder
                scope = f"{source.name}/{member.name}"
            prefix = "" if member is source else f"{member.name} "
            replay = _Replay(SessionHistory(_NAME, session, scope, prefix))
            records = objects(member.json_lines(), "a record that is ")
            used = yield from add_records(replay, records)
            replay.end()
            yield from replay.history.conversations(used, names=names)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


READER = declared(
    _NAME,
    recognise=_recognise,
    read=_read,
    is_store=_is_store,
    holds=_holds,
)
