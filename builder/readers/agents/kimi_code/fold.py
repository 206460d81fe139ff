"""Replays the records of an agent of Kimi Code into the messages of its requests.

Source: docs/formats/kimi-code.md, "How the history is rebuilt".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import Json, Message, Part, Text, ToolCall
from builder.readers.agents.kimi_code.results import (
    INTERRUPTED,
    answer_part,
    contents,
    is_blank,
    sent_result,
)
from builder.readers.toolkit.chat_messages import as_harness
from builder.readers.toolkit.finish_reasons import finish_fault
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, PART_KEYS, noted, unknown_names

_CONTINUE = (
    "<system-reminder>\nContext compaction is complete \u2014 continue the work that was in "
    "progress when it began.\n</system-reminder>"
)
"""What 2.1.0 adds after the summary of a compaction; older versions add nothing."""


_SUMMARY = "compaction_summary"
_ADDED = "compaction_continuation"
_REMINDERS = frozenset({"injection", "swarm_mode"})
"""Kinds of messages that the program inserted as reminders."""


_KEYS = MESSAGE_KEYS | {"toolCalls", "toolCallId", "origin", "isError", "durationMs", "note"}
"""Keys of messages that are known."""


@dataclass(slots=True)
class OpenStep:
    """The step that is open: its answer, and what is blank so far."""

    entry: HistoryEntry
    uuid: str
    blank: bool = True
    has_calls: bool = False


@dataclass(slots=True)
class Fold:
    """The state of the replay.

    `has_gap`: the log lacks messages of the later requests. `counted` are the messages counted so
    far: the history, the number of its entries, that of messages, whether the next can be joined.
    `prompts`: the id of each prompt, and of the prompt to which a reminder belongs.
    `steered`: messages of the user to a turn that was running, which an undo does not count.
    `keeps_reminders`: the next undo keeps those that belong to no prompt (2.1).
    """

    history: SessionHistory
    open: OpenStep | None = None
    pending: dict[str, str] = field(default_factory=dict)
    deferred: list[HistoryEntry] = field(default_factory=list)
    has_gap: bool = False
    counted: tuple[list[HistoryEntry], int, int, bool] | None = None
    prompts: dict[HistoryEntry, str] = field(default_factory=dict)
    steered: set[HistoryEntry] = field(default_factory=set)
    keeps_reminders: bool = False

    # -- messages ----------------------------------------------------------------------------

    def append_message(self, value: dict[str, Json], where: str, request: RequestHead) -> None:
        """Appends a message; while calls are pending, it waits for their results."""
        origin = as_dict(value.get("origin"))
        kind = _kind(origin)
        message = noted([_message(value, kind)], value, _KEYS)[0]
        entry = HistoryEntry(
            message, where, request if message.role == "assistant" else None, kind=kind
        )
        owner = origin.get("ownerPromptId") if kind in _REMINDERS else value.get("id")
        self.prompts[entry] = as_str(owner)
        if origin.get("inTurn") is True:
            self.steered.add(entry)
        if self.pending:
            self.deferred.append(entry)
        else:
            self.history.entries.append(entry)

    def loop_event(self, event: dict[str, Json], where: str) -> None:
        """Applies an event of the model's side."""
        match event.get("type"):
            case "step.begin":
                self.settle(where)
                uuid = as_str(event.get("uuid"))
                entry = self.history.append(Message("assistant", (), turn=uuid or None), where)
                self.open = OpenStep(entry, uuid)
            case "content.part" if step := self._step(event):
                step.blank = step.blank and is_blank(event.get("part"))
                if part := answer_part(event.get("part")):
                    self._extend(step, part, as_dict(event.get("part")))
            case "tool.call" if step := self._step(event):
                call_id = as_str(event.get("toolCallId"))
                name = as_str(event.get("name"))
                step.has_calls = True
                self.pending[call_id] = name
                self._extend(step, ToolCall(name, event.get("args"), call_id or None), {})
            case "tool.result" if (call_id := as_str(event.get("toolCallId"))) in self.pending:
                name = self.pending.pop(call_id)
                result = sent_result(call_id, name, as_dict(event.get("result")))
                self.history.append(Message("tool", (result,)), where)
                self._release()
            case "step.end" if self._step(event, "uuid"):
                self._end(event, where)
            case _:
                pass

    def _step(self, event: dict[str, Json], key: str = "stepUuid") -> OpenStep | None:
        """Returns the open step if the event is its own."""
        return self.open if self.open and self.open.uuid == as_str(event.get(key)) else None

    @staticmethod
    def _extend(step: OpenStep, part: Part, logged: dict[str, Json]) -> None:
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
        reasons = (event.get("finishReason"), event.get("providerFinishReason"))
        if code := next((code for reason in reasons if (code := finish_fault(reason))), None):
            self.open.entry.message = replace(message, untrained=code)
        self.settle(where)

    def settle(self, where: str) -> None:
        """Closes the open step: supplies missing results, drops an answer without content."""
        step, self.open = self.open, None
        if step is None:
            return
        for call_id, name in self.pending.items():
            result = sent_result(call_id, name, {"output": INTERRUPTED, "isError": True})
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
        if step is None:
            return
        if step.blank and not step.has_calls:
            self.history.entries.remove(step.entry)
        elif not step.has_calls:
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
            if entry.kind in _REMINDERS and self._belongs(entry, entries[:cut], or_to_none=True)
        ]
        self._reset()
        self.history.rewind(cut)
        if keeps_reminders:
            self.history.entries += left_over

    def _belongs(
        self, entry: HistoryEntry, prompts: Sequence[HistoryEntry], *, or_to_none: bool = False
    ) -> bool:
        """Returns whether a reminder belongs to one of the prompts."""
        owner = self.prompts.get(entry, "")
        if entry.kind not in _REMINDERS or not owner:
            return or_to_none
        return any(_is_prompt(item) and self.prompts.get(item) == owner for item in prompts)

    def clear(self) -> None:
        """Empties the history."""
        self._reset()
        self.history.replace()

    def compact(self, value: dict[str, Json], where: str) -> None:
        """Replaces the history by a summary and the kept messages."""
        entries = self.history.entries
        summary = as_dict(value.get("summary"))
        text = name_or_none(value.get("contextSummary")) or as_str(value.get("summary"))
        parts = contents(summary.get("content")) if summary else (Text(text),)
        entry = HistoryEntry(Message("user", as_harness(parts)), where, kind=_SUMMARY)
        kept = value.get("keptUserMessageCount")
        if not isinstance(kept, int):
            count = value.get("compactedCount", value.get("count"))
            rest = entries[count:] if isinstance(count, int) and count >= 0 else []
            self.has_gap = self.has_gap or not isinstance(count, int)
            self._reset()
            self.history.replace([entry, *rest])
            return
        prompts = list(filter(_is_prompt, entries))
        # Otherwise the agent kept a selection, and cut messages, by its estimate of tokens.
        whole = kept == len(prompts) and "keptHeadUserMessageCount" not in value
        self.has_gap = self.has_gap or not whole
        self._reset()
        self.history.replace([*(prompts if whole else []), entry])

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

    def end_swarm_mode(self) -> None:
        """Removes the reminder of the swarm mode if it is the last message."""
        entries = self.history.entries
        if entries and entries[-1].kind == "swarm_mode":
            self.history.rewind(len(entries) - 1)

    def _reset(self) -> None:
        self.open = None
        self.pending.clear()
        self.deferred.clear()

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
    if kind == "injection" and origin.get("variant") == "swarm_mode":
        return "swarm_mode"
    return "user-slash" if slash and kind in ("skill_activation", "plugin_command") else kind


def _is_prompt(entry: HistoryEntry) -> bool:
    """Returns whether a message counts as one of the user's."""
    return entry.message.role == "user" and entry.kind in ("", "user", "user-slash")


def _message(value: dict[str, Json], kind: str) -> Message:
    role = as_str(value.get("role"))
    if role == "assistant":
        parts = [part for item in as_list(value.get("content")) if (part := answer_part(item))]
        calls = as_dicts(value.get("toolCalls"))
        parts += [
            ToolCall(as_str(call.get("name")), call.get("arguments"), name_or_none(call.get("id")))
            for call in calls
        ]
        return Message(role, tuple(parts), untrained="inserted" if kind else None)
    if role == "tool":
        call_id = as_str(value.get("toolCallId"))
        result = {**value, "output": value.get("content")}
        return Message(role, (sent_result(call_id, "", result),))
    sent = contents(value.get("content"))
    return Message(role[:40], sent if kind in ("", "user") else as_harness(sent))
