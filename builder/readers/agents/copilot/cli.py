"""Reads sessions of GitHub Copilot CLI: JSONL events with type, data, id and parentId.

Source: docs/formats/copilot-cli.md.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Context,
    Conversation,
    Event,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.jsonio import dumps_compact, json_type
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import joined
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_int,
    as_str,
    model_of,
    name_of,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import objects
from builder.sources.source import Record, Source

# -- completes the results of failed calls, of which Copilot CLI logs less than it sends -----------

_WORDS = {
    "Path does not exist": "Path {path} does not exist. Please provide a valid path.",
    "Path already exists": (
        "Path {path} already exists as a file. Use `view` to check contents then edit it."
    ),
    "Parent directory does not exist": (
        "Parent directory {folder} does not exist. You need to create it before creating the file."
    ),
    "No match found": (
        "No match found: old_str not found in {path}; no changes made; "
        "you might want to try again with correct old_str"
    ),
}
_UNHANDLED = "Unhandled error: "


def _sent_text(logged: str, call: ToolCall | None, length: object) -> str | None:
    """Returns the text of a failed result as it was sent; None if the log does not tell.

    `length` is that of the text that was sent, in UTF-16 units.
    """
    if length == _units(logged):
        return logged
    if call is None:
        return None
    arguments = as_dict(call.arguments)
    path = as_str(arguments.get("path"))
    texts = [_WORDS.get(logged, "").format(path=path, folder=path.rpartition("/")[0])]
    if logged.startswith(_UNHANDLED):
        error = logged.removeprefix(_UNHANDLED)
        given = {key: value for key, value in arguments.items() if value is not None}
        for shown in (arguments, given):  # a table adds keys that a call does not have
            called = dumps_compact({**shown, "command": call.name})
            texts.append(f"Failed to execute with arguments: {called} due to error: {error}")
    return next((text for text in texts if text and _units(text) == length), None)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


# -- converts what events of Copilot hold to parts of messages -------------------------------------


def split(sent: str, typed: str) -> Iterator[Text]:
    """Yields a message as sent: the user's words, and what the program put around them."""
    before, separator, after = sent.partition(typed) if typed else (sent, "", "")
    apart = (not before or before.endswith("\n\n")) and (not after or after.startswith("\n\n"))
    if not separator or not apart:
        yield Text(sent)
        return
    if before:
        yield Text(before[:-2], harness=True)
    yield Text(typed)
    if after:
        yield Text(after[2:], harness=True)


def _typed_texts(entries: Iterable[HistoryEntry]) -> list[str]:
    """Returns what the user typed in each message of a history."""
    users = (entry.message for entry in entries if entry.message.role == "user")
    own = (
        [part.text for part in message.parts if isinstance(part, Text) and not part.harness]
        for message in users
    )
    return ["".join(texts) for texts in own if texts]


def _summary_text(typed: Iterable[str], summary: str) -> str:
    messages = "\n".join(f"<user_message>\n{text}\n</user_message>" for text in typed)
    return (
        "Some of the conversation history has been summarized to free up context.\n\n"
        "You were originally given instructions from a user over one or more turns. "
        f"Here were the user messages:\n{messages}\n\n"
        f"Here is a summary of the prior context:\n<summary>\n{summary}\n</summary>\n"
    )


def _answer_parts(data: dict[str, Json]) -> Iterator[Part]:
    """Yields the parts of an answer or of a chunk of it: thoughts, text and calls."""
    if thought := as_str(data.get("reasoningText")):
        yield Reasoning(thought)
    content = data.get("content")
    if isinstance(content, str) and content:
        yield Text(content)
    elif content not in (None, ""):
        yield unknown_part(json_type(content))
    for call in as_dicts(data.get("toolRequests")):
        arguments = call.get("arguments")
        if call.get("type") == "custom":
            arguments = {"input": arguments}  # free text becomes the only argument
        call_id = name_or_none(call.get("toolCallId"))
        yield ToolCall(as_str(call.get("name")), arguments, call_id)


# -- reads logs of events that Copilot CLI and the transcripts of VS Code's chat share -------------

_CONVERSATION = frozenset({
    "session.start", "system.message", "user.message", "assistant.message",
    "tool.execution_complete", "skill.invoked", "system.notification", "session.resume",
    "session.compaction_complete", "session.truncation", "session.context_cleared",
    "session.snapshot_rewind", "skill.context_delivered_ref", "assistant.turn_start",
    "assistant.turn_end", "session.error",
})  # fmt: skip
"""Types of events that change the messages of the next request, or tell what the log lacks."""
_INTERRUPTED = "The execution of this tool, or a previous tool was interrupted."
"""What 1.0.102 sends for a call whose result is not in the log of a resumed session."""
_REQUEST = ("model", "apiCallId", "turnId", "interactionId", "originatingMessageId")
"""Keys of an answer that tell of its request."""
_OTHER = (
    "abort", "assistant.", "auto_mode", "capabilities.", "command", "elicitation.", "exit_plan",
    "external_tool.", "hook.", "mcp.", "model.", "pending_messages", "permission.", "sampling.",
    "session.", "skill.", "subagent.", "system.", "tool.", "tool_search.", "user.", "user_input.",
)  # fmt: skip
"""Beginnings of types of events for the screen, and of accounting."""


@dataclass(slots=True)
class _Agent:
    """The messages of the session, or of one sub-agent.

    pending   calls without a result, by id; other messages wait for them
    has_completed  a result was completed, of which a resumed session sends the short text
    skills    the texts of skills that were invoked, by their digest
    is_empty  a turn has begun and has no answer yet
    has_resumed  the session was resumed while calls were pending
    chunks    the parts of the last answer, by number of the chunk
    has_gap   earlier messages are not in the log
    reworded  a failed result was sent in another form, or an answer was sent that is not in the
              log, until the session is resumed
    """

    history: SessionHistory
    system: str | None = None
    answer: HistoryEntry | None = None
    chunks: dict[int, tuple[Part, ...]] = field(default_factory=dict)
    pending: dict[str, ToolCall] = field(default_factory=dict)
    skills: dict[str, HistoryEntry] = field(default_factory=dict)
    is_empty: bool = False
    has_resumed: bool = False
    waiting: list[HistoryEntry] = field(default_factory=list)
    has_completed: bool = False
    has_gap: bool = False
    is_compacted: bool = False
    reworded: bool = False
    unseen: bool = False


@dataclass(slots=True)
class EventLog:
    """The events of the sessions in a file.

    renders   user messages are logged as sent
    requests  answers of the session tell of their requests
    """

    format_name: str
    scope: str
    session: str
    renders: bool = True
    version: str | None = None
    number: int = 0
    is_damaged: bool = False
    numbers: dict[str, int] = field(default_factory=dict)
    agents: dict[str, _Agent] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    records: int = 0
    logged: str = ""
    requests: bool = False
    model: str | None = None

    def read(self, records: Iterable[Record | Problem]) -> Iterator[Event]:
        """Yields a Problem for each damaged record, and the conversations of each session."""
        for record in objects(records, "an event that is "):
            if isinstance(record, Problem):
                self.is_damaged = True
                yield record
                continue
            where, value = record
            kind, data = as_str(value.get("type")), as_dict(value.get("data"))
            event_id = as_str(value.get("id"))
            if event_id and event_id in self.numbers:
                self.counts["repeated_event"] += 1
                continue
            self.number += 1
            self.numbers[event_id] = self.number
            if kind == "session.start":
                logged = as_str(data.get("sessionId"))
                if self.logged and logged != self.logged:
                    yield from self.conversations()
                self.logged = logged
                self.session = logged or self.session
                self.version = name_or_none(data.get("copilotVersion"))
                self.model = model_of(data, "selectedModel")
                self.records += 1
            elif kind in _CONVERSATION and value.get("ephemeral") is not True:
                self.records += 1
                name = as_str(value.get("agentId")) or as_str(data.get("parentToolCallId"))
                agent = self._agent(name)
                above = as_str(value.get("parentId"))
                agent.has_gap = agent.has_gap or (above != "" and above not in self.numbers)
                self._take(agent, kind, data, where)
            elif kind == "tool.user_requested":
                self.counts["user_command"] += 1
                self._agent("").unseen = True
            else:
                if kind == "session.model_change":
                    self.model = model_of(data, "newModel")
                known = kind.startswith(_OTHER) and kind != ""
                self.counts["ui_event" if known else unknown_code(value.get("type"))] += 1
        yield from self.conversations()
        yield from ignored(self.counts)

    def _agent(self, name: str) -> _Agent:
        if name not in self.agents:
            session = f"{self.session}/{name}" if name else self.session
            history = SessionHistory(self.format_name, session, f"{self.scope}/{session}")
            self.agents[name] = _Agent(history)
        return self.agents[name]

    def conversations(self) -> Iterator[Event]:
        """Yields the conversations of the session so far, and begins another one."""
        records, self.records = self.records, 0
        for agent in self.agents.values():
            for entry in agent.waiting:
                agent.history.entries.append(entry)
        conversations = [
            event
            for agent in self.agents.values()
            for event in agent.history.conversations(0, names=self.names, version=self.version)
        ]
        if conversations and isinstance(conversations[0], Conversation):
            yield replace(conversations[0], records=records)
            yield from conversations[1:]
        elif records:
            self.counts["no_messages"] += records
        self.agents.clear()

    def _take(self, agent: _Agent, kind: str, data: dict[str, Json], where: str) -> None:
        history = agent.history
        match kind:
            case "system.message":
                agent.system = name_or_none(data.get("content")) or agent.system
            case "user.message":
                self._append(agent, self._user_message(agent, data), where)
            case "assistant.message":
                self._answer(agent, data, where)
            case "tool.execution_complete":
                self._result(agent, data, where)
            case "skill.invoked" | "system.notification":
                if text := as_str(data.get("content")):
                    message = Message("user", (Text(text, harness=True),))
                    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
                    agent.skills[f"sha256:{digest}"] = self._append(agent, message, where)
            case "skill.context_delivered_ref":
                if entry := agent.skills.get(as_str(data.get("contentId"))):
                    _wrap(entry, as_str(data.get("prefix")), as_str(data.get("suffix")))
            case "assistant.turn_start":
                agent.is_empty = True
            case "assistant.turn_end":  # an answer without an event was sent all the same
                agent.reworded = agent.reworded or agent.is_empty
                agent.is_empty = False
            case "session.error":
                agent.is_empty = False
            case "session.resume":
                self.model = model_of(data, "selectedModel") or self.model
                agent.reworded = agent.has_completed  # the results are read from the log
                agent.has_resumed = bool(agent.pending)
            case "session.truncation":
                agent.has_gap = True
            case "session.compaction_complete" if data.get("success") is not False:
                logged = as_str(data.get("summaryContent"))
                is_known = self.renders and not agent.is_compacted
                typed = _typed_texts(history.entries) if is_known else None
                summary = Text(
                    logged if typed is None else _summary_text(typed, logged), harness=True
                )
                self._forget(agent)
                codes = () if typed is None else ("summary_completed",)
                history.replace([HistoryEntry(Message("user", (summary,)), where, changes=codes)])
                # What a later compaction keeps of the first one is not known.
                agent.has_gap = agent.is_compacted = True
                agent.has_completed = False
            case "session.context_cleared":
                self._forget(agent)
                agent.has_gap = agent.reworded = agent.has_completed = False
                history.replace()
            case "session.snapshot_rewind":
                self._rewind(agent, as_str(data.get("upToEventId")))
            case _:
                pass

    def _append(self, agent: _Agent, message: Message, where: str) -> HistoryEntry:
        entry = HistoryEntry(message, where, kind=str(self.number))
        (agent.waiting if agent.pending else agent.history.entries).append(entry)
        return entry

    @staticmethod
    def _forget(agent: _Agent) -> None:
        agent.answer = None
        agent.pending.clear()
        agent.waiting.clear()

    def _user_message(self, agent: _Agent, data: dict[str, Json]) -> Message:
        typed, sent = as_str(data.get("content")), data.get("transformedContent")
        by_program = data.get("isAutopilotContinuation") is True or bool(data.get("source"))
        if not isinstance(sent, str):
            agent.unseen = agent.unseen or (self.renders and data.get("delivery") != "steering")
            parts: list[Part] = [Text(typed, harness=by_program)] if typed else []
        elif by_program:
            parts = [Text(sent, harness=True)]
        else:
            parts = list(split(sent, typed))
        kinds = [as_str(item.get("mimeType")) for item in as_dicts(data.get("attachments"))]
        parts += [Media("image", kind) for kind in kinds if kind.startswith("image/")]
        return Message("user", tuple(parts))

    def _answer(self, agent: _Agent, data: dict[str, Json], where: str) -> None:
        """Adds an answer, or a chunk of it: events with one request id are one answer."""
        turn = name_of(data, "apiCallId")
        if turn is None and data.get("turnId") is not None and data.get("interactionId"):
            turn = f"{data.get('interactionId')} {data.get('turnId')}"
        turn = turn or name_of(data, "messageId")
        parts = tuple(_answer_parts(data))
        calls = {part.id: part for part in parts if isinstance(part, ToolCall) and part.id}
        agent.is_empty = False
        by_program = self.requests and data.keys().isdisjoint(_REQUEST)
        self.requests = self.requests or "model" in data
        if agent.answer is None or turn is None or agent.answer.message.turn != turn:
            self._abandon(agent, where)
            missing = ["tools"]
            missing += ["system"] if agent.system is None else []
            gap = self.is_damaged or agent.has_gap or agent.reworded
            missing += ["history"] if gap else []
            missing += ["reminders"] if agent.unseen or not self.renders else []
            context = Context.lacking(missing)
            head = RequestHead(agent.system, None, model_of(data, "model") or self.model)
            untrained = "inserted" if by_program else None
            message = Message("assistant", (), turn, context=context, untrained=untrained)
            agent.answer = agent.history.append(message, where, head, kind=str(self.number))
            agent.chunks = {}
        number = as_int(data.get("chunkIndex")) if "chunkIndex" in data else len(agent.chunks)
        agent.chunks[number] = (*agent.chunks.get(number, ()), *parts)
        whole = (part for at in sorted(agent.chunks) for part in agent.chunks[at])
        agent.answer.message = replace(agent.answer.message, parts=joined(whole))
        agent.pending |= calls

    def _abandon(self, agent: _Agent, where: str = "") -> None:
        """Lets what waits for results of an earlier answer follow it.

        In a resumed session the program answers the calls whose results were not logged.
        """
        is_known = agent.has_resumed and self.renders and not self.is_damaged
        for call_id in agent.pending if is_known else ():
            result = ToolResult((Text(_INTERRUPTED),), call_id, is_interrupted=True)
            changes = ("result_supplied",)
            agent.history.append(Message("tool", (result,)), where, None, changes, str(self.number))
        agent.has_resumed = False
        agent.pending.clear()
        agent.history.entries += agent.waiting
        agent.waiting.clear()

    def _result(self, agent: _Agent, data: dict[str, Json], where: str) -> None:
        call_id = as_str(data.get("toolCallId"))
        result, error = as_dict(data.get("result")), as_dict(data.get("error"))
        if data.get("isUserRequested") is True:
            return
        failed = data.get("success") is False
        text = name_of(result, "content", "text_result_for_llm")
        sent = None
        if text is None and failed:
            text = name_or_none(error.get("message"))
            length = as_dict(data, "toolTelemetry", "metrics").get("resultForLlmLength")
            sent = _sent_text(text or "", agent.pending.get(call_id), length)
            agent.reworded = agent.reworded or sent is None
        if text is None and "content" not in result:
            agent.pending.pop(call_id, None)  # the text of the result is not in the log
            if not agent.pending:
                self._abandon(agent)
            return
        contents = [Text(text)] if text else []
        media = [
            Media("image", as_str(item.get("mimeType")))
            for item in as_dicts(result.get("binaryResultsForLlm"))
        ]
        code = as_str(error.get("code"))
        part = ToolResult(
            (*contents, *media),
            call_id or None,
            is_error=failed,
            is_denied=failed and code in ("denied", "rejected"),
        )
        codes: tuple[str, ...] = ()
        if sent is not None and sent != text:
            part = replace(part, content=(Text(sent), *media))
            agent.has_completed, codes = True, ("result_completed",)
        agent.history.append(Message("tool", (part,)), where, None, codes, str(self.number))
        agent.pending.pop(call_id, None)
        if not agent.pending:
            self._abandon(agent)

    def _rewind(self, agent: _Agent, event_id: str) -> None:
        number = self.numbers.get(event_id)
        if number is None:
            agent.has_gap = True
            return
        self._forget(agent)
        kept = [item for item in agent.history.entries if int(item.kind or 0) < number]
        agent.history.rewind(len(kept))


def _wrap(entry: HistoryEntry, before: str, after: str) -> None:
    texts = (part.text for part in entry.message.parts if isinstance(part, Text))
    text = Text(before + "".join(texts) + after, harness=True)
    entry.message = replace(entry.message, parts=(text,))


NAME = "copilot-cli"

_EVENTS = _CONVERSATION | {
    "assistant.turn_start", "assistant.turn_end", "assistant.reasoning", "hook.start",
    "session.model_change", "session.info", "tool.execution_start",
}  # fmt: skip


def _recognise(source: Source) -> str | None:
    """Claims events of a session that VS Code did not write."""
    if is_event_log(source) and not is_by_vscode(source):
        return "events of Copilot CLI (type, data, id)"
    return None


def is_event_log(source: Source) -> bool:
    """Returns whether one of the first records is an event of Copilot."""
    return source.peek.kind in ("jsonl", "json") and any(map(_is_event, source.peek.objects))


def _is_event(value: dict[str, Json]) -> bool:
    has_data = isinstance(value.get("data"), dict) and "timestamp" in value
    return has_data and as_str(value.get("type")) in _EVENTS


def is_by_vscode(source: Source) -> bool:
    """Returns whether VS Code's chat wrote a log of events."""
    starts = [v for v in source.peek.objects if v.get("type") == "session.start"]
    return any("vscodeVersion" in as_dict(value.get("data")) for value in starts)


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of each session of a file, and those of its sub-agents."""
    name = source.name.rpartition("/")[2].removesuffix(".jsonl") or "session"
    yield from EventLog(NAME, source.name, name).read(source.records())


READER = declared(NAME, recognise=_recognise, read=read)
