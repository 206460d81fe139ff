"""Reads VS Code's Copilot chat: chat sessions, agent-traces.db, transcripts and replay exports.

Source: docs/formats/vscode-copilot.md.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Content,
    Context,
    Conversation,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    Used,
    unknown_part,
)
from builder.jsonio import json_type, packed
from builder.problem import Problem
from builder.readers import declared
from builder.readers.agents.copilot.cli import EventLog, is_by_vscode, is_event_log
from builder.readers.api.captures import Logs
from builder.readers.api.dialects import OPENAI_CHAT
from builder.readers.api.exchanges import Exchange
from builder.readers.toolkit.chat_messages import media_of
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    model_of,
    name_of,
    name_or_none,
)
from builder.readers.toolkit.places import ignored, unique_name
from builder.readers.toolkit.rows import objects
from builder.readers.traces.span_log import read_spans
from builder.sources.source import Source
from builder.sources.sqlite_file import guarded, open_sqlite, rows, tables

# -- replays the patch log in which VS Code stores an object ---------------------------------------


def _apply(root: Json, entry: dict[str, Json]) -> tuple[Json, bool]:
    """Returns the object after an entry of the log, and whether the entry could be applied.

    The object may be changed in place; values of the entry are copied. Kind 0 replaces the object,
    1 sets the value at a path, 2 cuts the list at a path to `i` items and appends values, 3 deletes
    the value at a path.
    """
    kind, value = entry.get("kind"), entry.get("v")
    if kind == 0:
        return copy.deepcopy(value), True
    path = as_list(entry.get("k"))
    if not path or kind not in (1, 2, 3):
        return root, False
    parent = root
    for step in path[:-1]:
        known, parent = _at(parent, step)
        if not known:
            return root, False
    last = path[-1]
    if kind in (1, 3):
        return root, _put(parent, last, *([copy.deepcopy(value)] if kind == 1 else []))
    known, items = _at(parent, last)
    if not known or items is None:
        items = []
        if not _put(parent, last, items):
            return root, False
    if not isinstance(items, list):
        return root, False
    length = entry.get("i")
    if isinstance(length, int) and length >= 0:
        del items[length:]
    items += copy.deepcopy(as_list(value))
    return root, True


def _at(parent: Json, step: Json) -> tuple[bool, Json]:
    """Returns whether there is a value at a step, and the value."""
    if isinstance(parent, dict) and isinstance(step, str | int):
        return str(step) in parent, parent.get(str(step))
    if isinstance(parent, list) and isinstance(step, int) and 0 <= step < len(parent):
        return True, parent[step]
    return False, None


def _put(parent: Json, step: Json, *new: Json) -> bool:
    """Puts a value at a step, or deletes the one there; returns whether there is such a place."""
    if isinstance(parent, dict) and isinstance(step, str | int):
        for value in new:
            parent[str(step)] = value
        if not new:
            parent.pop(str(step), None)
        return True
    if isinstance(parent, list) and isinstance(step, int) and 0 <= step < len(parent) + len(new):
        parent[step : step + 1] = new
        return True
    return False


# -- converts a chat session of VS Code to conversations -------------------------------------------

_CUT = "[JustRide: value truncated for persistence"
"""The beginning of what VS Code stores in place of a value that is too long."""
_CANCELLED = 2
_MAX_DEPTH = 100


@dataclass(slots=True)
class _ChatSession:
    """The requests of a session, in order. `is_damaged`: entries of its log could not be read."""

    history: SessionHistory
    is_damaged: bool = False
    has_gap: bool = False
    unseen: bool = False
    version: str | None = None
    rounds: dict[str, HistoryEntry] = field(default_factory=dict)
    """The last message of each round, by the round's id."""

    def add(self, request: dict[str, Json], where: str) -> None:
        """Adds a request: the user's message, and the rounds of the model."""
        before = len(self.history.entries)
        agent = as_dict(request.get("agent"))
        self.version = name_or_none(agent.get("extensionVersion")) or self.version
        result = as_dict(request.get("result"))
        metadata = as_dict(result.get("metadata"))
        for message in self._prompt(request, metadata):
            self.history.append(message, where)
        model = name_of(metadata, "resolvedModel") or model_of(request, "modelId")
        head = RequestHead(model=(model or "").removeprefix("copilot/") or None)
        rounds = as_dicts(metadata.get("toolCallRounds"))
        summaries = {
            as_str(item.get("toolCallRoundId")): as_str(item.get("text"))
            for item in [*as_dicts(metadata.get("summaries")), as_dict(metadata.get("summary"))]
        }
        results = as_dict(metadata.get("toolCallResults"))
        own = {as_str(item.get("id")) for item in rounds}
        for name, text in summaries.items():
            if text and name not in own:  # of rounds of earlier requests, made for this one
                self._summarise(name, text, where)
                before = 0
        for item in rounds:
            name = as_str(item.get("id"))
            self._round(item, results, head, where)
            self.rounds[name] = self.history.entries[-1]
            if text := as_str(item.get("summary")) or summaries.get(name, ""):
                self._summarise(name, text, where)
                before = 0
        if not rounds:
            self._shown(request, head, where)
        if request.get("shouldBeRemovedOnSend") or request.get("isHidden") is True:
            self.history.rewind(before)

    def conversations(self, records: int) -> Iterator[Event]:
        return self.history.conversations(records, version=self.version)

    def _prompt(self, request: dict[str, Json], metadata: dict[str, Json]) -> Iterator[Message]:
        if shared := _rendered(metadata.get("renderedGlobalContext"), harness=True):
            yield Message("user", shared)
        if sent := _rendered(metadata.get("renderedUserMessage")):
            yield Message("user", sent)
            return
        self.unseen = True  # the context around the typed text is not in the log
        if text := as_str(request, "message", "text"):
            yield Message("user", (Text(text),))

    def _round(
        self,
        item: dict[str, Json],
        results: dict[str, Json],
        head: RequestHead,
        where: str,
    ) -> None:
        parts = list(_answer_parts(item))
        if not parts:
            return
        name = name_or_none(item.get("id"))
        message = Message("assistant", tuple(parts), name, context=self._context())
        self.history.append(message, where, head)
        for call in as_dicts(item.get("toolCalls")):
            call_id = as_str(call.get("id"))
            if call_id in results:
                content = tuple(_result_parts(results[call_id]))
                cut = any(isinstance(p, Text) and p.text.startswith(_CUT) for p in content)
                self.has_gap = self.has_gap or cut
                part = ToolResult(
                    content, _call_id(call_id) or None, name_or_none(call.get("name"))
                )
                self.history.append(Message("tool", (part,)), where)

    def _summarise(self, name: str, text: str, where: str) -> None:
        """Replaces the messages up to a round's last one by their summary."""
        self.has_gap = True  # how the summary is worded in the request is not logged
        entries = self.history.entries
        at = next((at for at, one in enumerate(entries) if one is self.rounds.get(name)), None)
        if at is None:
            return
        self.history.replace()
        self.history.append(Message("user", (Text(text, harness=True),)), where)
        self.history.entries += entries[at + 1 :]

    def _shown(self, request: dict[str, Json], head: RequestHead, where: str) -> None:
        """Adds the answer as the interface displays it, of a request without its rounds."""
        texts: list[str] = []
        is_lossy = False
        for item in as_dicts(request.get("response")):
            kind = item.get("kind")
            value = item.get("value")
            if kind == "markdownContent":  # of versions before 2025
                kind, value = None, item.get("content")
            if kind is None and isinstance(value, dict):
                value = value.get("value")
            if kind is None and isinstance(value, str):
                texts.append(value)
            elif kind == "inlineReference":
                texts.append(_reference(item))
            elif as_str(kind) not in _SCREEN:
                is_lossy = True
        text = "".join(texts).strip()
        if not text and not is_lossy:
            return
        parts: list[Part] = [Text(text)] if text else []
        if is_lossy:  # calls without their arguments, edits in place of text
            parts.append(Unparsed("", "bad_call"))
        state = as_dict(request.get("modelState")).get("value")
        stopped = request.get("isCanceled") is True or state == _CANCELLED
        failed = bool(as_dict(request.get("result")).get("errorDetails"))
        code = "aborted" if stopped or failed else None
        message = Message("assistant", tuple(parts), untrained=code, context=self._context())
        self.history.append(message, where, head)

    def _context(self) -> Context:
        missing = ["system", "tools"]
        missing += ["history"] if self.has_gap or self.is_damaged else []
        missing += ["reminders"] if self.unseen else []
        return Context.lacking(missing)


_SCREEN = frozenset({
    "confirmation", "elicitation", "extensions", "markdownVuln", "mcpServersStarting", "move",
    "progressMessage", "progressTask", "progressTaskSerialized", "pullRequest", "thinking",
    "treeData", "undoStop", "warning",
})  # fmt: skip
"""Kinds of parts of a displayed answer that stand for none of the model's text."""


def _reference(item: dict[str, Json]) -> str:
    target = as_dict(item.get("inlineReference"))
    name = name_of(item, "name") or name_of(target, "name")
    path = as_str(target.get("path")) or as_str(target, "uri", "path")
    return f"`{name or path.rpartition('/')[2]}`"


def _rendered(value: Json, *, harness: bool = False) -> tuple[Part, ...]:
    """Returns the parts of a message that was logged as sent; cache markers are none."""
    parts: list[Part] = []
    texts: list[str] = []
    for item in as_dicts(value):
        match item.get("type"):
            case 1 if isinstance(item.get("text"), str):
                texts.append(as_str(item["text"]))
            case 0:
                parts.append(media_of("image/"))
            case 4:
                parts.append(media_of(as_str(item, "documentData", "mediaType")))
            case 3:
                pass
            case kind:
                parts.append(unknown_part(str(kind)))
    text = "".join(texts)
    return (Text(text, harness=harness), *parts) if text else tuple(parts)


def _answer_parts(item: dict[str, Json]) -> Iterator[Part]:
    thinking = as_dict(item.get("thinking"))
    thought = thinking.get("text")
    texts = [as_str(one) for one in thought] if isinstance(thought, list) else [as_str(thought)]
    if "".join(texts):
        yield Reasoning("".join(texts))
    text = item.get("response")
    if isinstance(text, str) and text.startswith(_CUT):
        yield Unparsed(text, "truncated_answer")
    elif isinstance(text, str) and text.strip():
        yield Text(text)
    elif isinstance(text, list):
        yield Text("".join(map(as_str, text)))
    for call in as_dicts(item.get("toolCalls")):
        call_id = _call_id(call.get("id")) or None
        yield ToolCall(as_str(call.get("name")), call.get("arguments"), call_id)


def _result_parts(value: Json) -> Iterator[Content]:
    """Yields the parts of a result: text, the text of a tree of the prompt, media."""
    if isinstance(value, str):
        yield Text(value)
        return
    for part in as_list(value, "content"):
        item = as_dict(part)
        inner = item.get("value")
        if isinstance(inner, str):
            yield Text(inner)
        elif isinstance(inner, dict) and "node" in inner:
            yield Text(_tree_text(inner["node"]))
        elif name_of(item, "mimeType") or name_of(as_dict(inner), "mimeType"):
            yield media_of(name_of(item, "mimeType") or as_str(inner, "mimeType"))
        else:
            yield unknown_part(str(item.get("$mid", json_type(part))))


def _tree_text(node: Json) -> str:
    """Returns the text of a tree as the client renders it for the model.

    A text that asks for it, or that is the first of its parent and follows no other text, begins
    a line of its own. The whole is trimmed (vscode-prompt-tsx, materialized.ts, and a trace).
    """
    text = ""
    for piece, on_own_line in _texts(node, is_sibling=False):
        if on_own_line and text and not text.endswith("\n"):
            text += "\n"
        text += piece
    return text.strip()


def _texts(node: Json, *, is_sibling: bool, depth: int = 0) -> Iterator[tuple[str, bool]]:
    """Yields the texts below a node, and whether each begins a line of its own."""
    for at, child in enumerate(as_dicts(node, "children")):
        if child.get("type") == 2:
            asked = child.get("lineBreakBefore") is True
            yield as_str(child.get("text")), asked or (at == 0 and not is_sibling)
            is_sibling = True
        elif depth < _MAX_DEPTH:
            yield from _texts(child, is_sibling=is_sibling, depth=depth + 1)
            is_sibling = False


# -- reads exports of VS Code's chat debug view (`.chatreplay.json`) -------------------------------

_ROLES: dict[Json, str] = {0: "system", 1: "user", 2: "assistant", 3: "tool"}
_MARKS = frozenset({"stateful_marker", "context_management"})
"""Types of opaque parts that hold no content."""
_LOGGED = frozenset({"request", "toolCall", "element"})
_FAILED = 500


def _is_replay(value: dict[str, Json]) -> bool:
    """Returns whether a record is an export of all prompts, or of one."""
    prompts = as_dicts(value.get("prompts")) or [value]
    kinds = [{as_str(log.get("kind")) for log in as_dicts(one.get("logs"))} for one in prompts]
    return any(
        "prompt" in prompt and isinstance(prompt.get("logs"), list) and (not kind or kind & _LOGGED)
        for prompt, kind in zip(prompts, kinds, strict=True)
    )


def _read_replay(
    source: Source, document: dict[str, Json], helpers: tuple[str, ...]
) -> Iterator[Event]:
    """Yields the conversations of an export; requests with a name in `helpers` are left out."""
    prompts = as_dicts(document.get("prompts")) or [document]
    logged = [log for prompt in prompts for log in as_dicts(prompt.get("logs"))]
    defined = any("tools" in as_dict(log.get("metadata")) for log in logged)
    logs = Logs(OPENAI_CHAT, context=Context.lacking(() if defined else {"tools"}, "rendered"))
    for number, prompt in enumerate(prompts):
        entries = as_list(prompt.get("logs"))
        if not entries:
            source.count_records()
            yield Ignored("no_request")
        for at, record in enumerate(source.counted(entries, f"prompts[{number}].logs[{{}}]")):
            entry = next(iter(objects([record], "an entry that is ")))
            if isinstance(entry, Problem):
                yield entry
                continue
            where, log = entry
            if log.get("kind") == "toolCall":
                yield Used()
            elif "requestMessages" not in log and "messages" not in log:
                yield Ignored("no_request")
            elif as_str(log.get("name")).startswith(helpers):
                yield Ignored("helper_request")
            else:
                rest = as_dicts(entries[at + 1 :])
                yield from logs.take(_exchange(where, log, rest))
    yield from logs.rest()


def _exchange(where: str, log: dict[str, Json], rest: Sequence[dict[str, Json]]) -> Exchange:
    """Returns a request and its response; `rest` are the entries after it."""
    metadata, sent = as_dict(log.get("metadata")), _messages(log)
    request: dict[str, Json] = {"model": metadata.get("model"), "messages": [*map(_message, sent)]}
    if "tools" in metadata:
        request["tools"] = metadata.get("tools")
    response = as_dict(log.get("response"))
    kind = as_str(response.get("type"))
    if kind not in ("success", "truncated", ""):
        return Exchange(where, status=_FAILED, request=request, text=kind, api=OPENAI_CHAT)
    content = response.get("message")
    message = _message(
        {"role": 2, "content": content if isinstance(content, list) else [content or ""]}
    )
    if made := _calls(len(sent), rest):
        message["tool_calls"] = made
    choice: Json = {
        "index": 0,
        "message": message,
        "finish_reason": "length" if kind == "truncated" else "tool_calls" if made else "stop",
    }
    body: dict[str, Json] = {"model": metadata.get("model"), "choices": [choice]}
    return Exchange(where, request=request, response=body, api=OPENAI_CHAT)


def _messages(log: dict[str, Json]) -> list[dict[str, Json]]:
    sent = log.get("requestMessages", log.get("messages"))
    return as_dicts(as_dict(sent).get("messages") if isinstance(sent, dict) else sent)


def _calls(length: int, rest: Sequence[dict[str, Json]]) -> list[Json]:
    """Returns the calls of a response to a request of `length` messages.

    They are taken from the next request, which has them in order, else from the entries up to it.
    """
    calls: list[Json] = []
    for log in rest:
        if log.get("kind") == "toolCall":
            calls.append({
                "id": _call_id(log.get("id")),
                "type": "function",
                "function": {"name": log.get("tool"), "arguments": log.get("args")},
            })  # fmt: skip
        elif messages := _messages(log):
            after = messages[length] if length < len(messages) else {}
            repeated = _message(after).get("tool_calls")
            is_answer = calls and _role(after) == "assistant"
            return as_list(repeated) if is_answer and repeated else calls
    return calls


def _role(message: dict[str, Json]) -> str:
    role = message.get("role")
    return _ROLES.get(role, "") if isinstance(role, int) else as_str(role)


def _message(message: dict[str, Json]) -> dict[str, Json]:
    """Returns a message in OpenAI's form, from that of VS Code's prompt renderer."""
    content: list[Json] = []
    found: dict[str, Json] = {"role": _role(message), "content": content}
    parts = message.get("content")
    for part in [parts] if isinstance(parts, str) else as_list(parts):
        block = as_dict(part)
        kind, value = block.get("type"), as_dict(block.get("value"))
        text = part if isinstance(part, str) else block.get("text")
        if isinstance(text, str):
            content += [{"type": "text", "text": text}] if text else []
        elif kind in (0, "image_url"):
            content.append({"type": "image_url", "image_url": block.get("imageUrl")})
        elif value.get("type") == "thinking":
            thought = as_dict(value.get("thinking")).get("text")
            found["reasoning_content"] = "".join(map(as_str, as_list(thought))) or as_str(thought)
        elif kind in (3, "cache_control") or value.get("type") in _MARKS:
            pass
        else:
            content.append({"type": as_str(value.get("type")) or f"part {kind}"})
    if all(as_dict(part).get("type") == "text" for part in content):
        found["content"] = "".join(as_str(part, "text") for part in content)
    if calls := as_dicts(message.get("toolCalls")) or as_dicts(message.get("tool_calls")):
        found["tool_calls"] = [{**call, "id": _call_id(call.get("id"))} for call in calls]
    if call_id := message.get("toolCallId", message.get("tool_call_id")):
        found["tool_call_id"] = _call_id(call_id)
    return found


def _call_id(value: Json) -> str:
    return as_str(value).partition("__vscode-")[0]


NAME = "vscode-copilot"

_HELPERS = ("copilotLanguageModelWrapper", "editingSession/", "progressMessages", "title")
"""Beginnings of names of agents that make titles, messages and edits for the interface."""


def _recognise(source: Source) -> str | None:
    """Claims chat sessions, databases of spans with chat_session_id, and events of VS Code."""
    if source.peek.kind == "sqlite":
        is_traces = {"span_id", "chat_session_id"} <= tables(source).get("spans", frozenset())
        return "agent traces (spans with chat_session_id)" if is_traces else None
    if is_event_log(source) and is_by_vscode(source):
        return "events with vscodeVersion"
    for value in source.peek.objects:
        if _is_chat(value):
            return "a chat session (requests)"
        if _is_replay(value):
            return "an export of the chat debug view (prompts with logs)"
        if value.get("kind") == 0 and _is_chat(as_dict(value.get("v"))):
            return "the patch log of a chat session (kind, v)"
    return None


def _is_chat(value: dict[str, Json]) -> bool:
    own = {"responderUsername", "requesterUsername", "initialLocation", "inputState"}
    requests = value.get("requests")
    if not isinstance(requests, list):
        return False
    if not requests:
        return not value.keys().isdisjoint({*own, "creationDate"})
    first = as_dict(requests[0])
    return "message" in first and ("requestId" in first or not value.keys().isdisjoint(own))


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a session, or of each session of a database."""
    name = source.name.rpartition("/")[2].partition(".")[0] or "session"
    if source.peek.kind == "sqlite":
        yield from guarded(source, _read_traces(source))
    elif is_event_log(source):
        yield from EventLog(NAME, source.name, name, renders=False).read(source.records())
    elif any("kind" in value and "requests" not in value for value in source.peek.objects):
        yield from _read_patches(source, name)
    else:
        yield from _read_document(source, name)


def _session(source: Source, name: str, value: dict[str, Json]) -> _ChatSession:
    session = as_str(value.get("sessionId")) or name
    return _ChatSession(SessionHistory(NAME, session, f"{source.name}/{session}"))


def _read_document(source: Source, name: str) -> Iterator[Event]:
    """Reads an object with the requests, each of which is a record."""
    document = source.document()
    if not isinstance(document, dict):
        yield from (
            item if isinstance(item, Problem) else Problem("not_object", item.where, "no session")
            for item in source.records()
        )
        return
    if _is_replay(document):
        yield from _read_replay(source, document, _HELPERS)
        return
    session = _session(source, name, document)
    records = 0
    requests = source.counted(as_list(document.get("requests")), "requests[{}]")
    for request in objects(requests, "a request that is "):
        if isinstance(request, Problem):
            session.is_damaged = True
            yield request
        else:
            records += 1
            session.add(request[1], request[0])
    yield from session.conversations(records)


def _read_patches(source: Source, name: str) -> Iterator[Event]:
    root: Json = None
    is_damaged = False
    records = 0
    for record in objects(source.json_lines(), "an entry that is "):
        if isinstance(record, Problem):
            is_damaged = is_damaged or record.code != "truncated"
            yield record
            continue
        root, applied = _apply(root, record[1])
        records += applied
        if not applied:
            is_damaged = True
            yield Problem("bad_patch", record[0], "the entry changes nothing in the session")
    value = as_dict(root)
    session = _session(source, name, value)
    session.is_damaged = is_damaged
    for at, request in enumerate(as_list(value.get("requests"))):
        session.add(as_dict(request), f"requests[{at}]")
    yield from session.conversations(records)


_SPANS = """
SELECT span_id, trace_id, parent_span_id, name, start_time_ms, end_time_ms, operation_name,
       agent_name, chat_session_id, conversation_id
FROM spans ORDER BY start_time_ms, end_time_ms, span_id
"""
_ATTRIBUTES = "SELECT key, value FROM span_attributes WHERE span_id = ? ORDER BY key"


def _read_traces(source: Source) -> Iterator[Event]:
    """Reads the requests of the chat among the spans of a database."""
    lines: list[bytes] = []
    counts: Counter[str] = Counter()
    with open_sqlite(source) as connection:
        for span in rows(connection, _SPANS):
            agent, session = as_str(span.get("agent_name")), as_str(span.get("chat_session_id"))
            if span.get("operation_name") != "chat":
                source.count_records()
                counts["no_request"] += 1
            elif not session or agent.startswith(_HELPERS):
                source.count_records()
                counts["helper_request"] += 1
            else:
                span_id = as_str(span.get("span_id"))
                found = rows(connection, _ATTRIBUTES, span_id)
                attributes = {as_str(row.get("key")): row.get("value") for row in found}
                attributes.pop("gen_ai.system_instructions", None)  # repeated in the messages
                attributes["gen_ai.conversation.id"] = session
                lines.append(packed(_as_span(span, attributes)) + b"\n")
    log = Source(source.name, data=b"".join(lines), max_record_bytes=source.max_record_bytes)
    log.watch = source.watch
    source.count_records(len(lines))
    if lines:
        names: Counter[str] = Counter()
        for event in read_spans(log):
            if isinstance(event, Conversation):
                session = unique_name(event.id.partition("/")[0], names)
                place = event.record.replace("line", "request")
                yield replace(event, id=session, record=place)
            else:
                yield event
    yield from ignored(counts)


def _as_span(span: dict[str, Json], attributes: dict[str, Json]) -> dict[str, Json]:
    """Returns a row of the database as an exporter of OpenTelemetry writes it."""
    return {
        "name": span.get("name"),
        "context": {"trace_id": span.get("trace_id"), "span_id": span.get("span_id")},
        "parent_id": span.get("parent_span_id"),
        "start_time": span.get("start_time_ms"),
        "end_time": span.get("end_time_ms"),
        "attributes": attributes,
    }


READER = declared(NAME, recognise=_recognise, read=read)
