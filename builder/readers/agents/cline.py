"""Reads Cline (SDK, CLI, extension), Roo Code and Kilo Code. Source: docs/formats/cline.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Content,
    Context,
    Conversation,
    Data,
    Event,
    Ignored,
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
from builder.jsonio import dumps_compact, packed
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.anthropic import read_part
from builder.readers.toolkit.chat_messages import as_harness
from builder.readers.toolkit.comparison import CallKeys, mark_repeats
from builder.readers.toolkit.history import supply_results
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    json_in_text,
    name_or_none,
)
from builder.readers.toolkit.places import Segments, span
from builder.readers.toolkit.rows import missing_records, objects
from builder.sources.source import Source

# -- texts: tools written as tags, and the user's words among the program's -----------------------

_OPEN = re.compile(
    r"""<(
    access_mcp_resource|act_mode_respond|apply_diff|apply_patch|ask_followup_question
    |attempt_completion|browser_action|codebase_search|condense|delete_file|edit_file
    |execute_command|fetch_instructions|generate_image|insert_content|list_code_definition_names
    |list_files|load_mcp_documentation|new_rule|new_task|plan_mode_respond|plan_mode_response
    |read_file|replace_in_file|report_bug|run_slash_command|search_and_replace|search_files
    |switch_mode|update_todo_list|use_mcp_tool|web_fetch|web_search|write_to_file
    )>""",
    re.VERBOSE,
)
"""The tools of the tag dialect (Cline, Roo, Kilo)."""
_PARAMETER = re.compile(r"\s*<(\w+)>")
_FILE_TEXT = frozenset({"content", "diff", "code_edit", "arguments", "input"})
"""Parameters whose values may contain anything, closing tags included."""
_THINKING = re.compile(r"<thinking>(.*?)</thinking>", re.DOTALL)
_WRAPPED = re.compile(
    r"<(?P<tag>task|feedback|answer|user_message|user_input)(?: [^<>]*)?>(?P<words>.*?)</(?P=tag)>"
    r"|(?P<program><(?P<block>environment_details|SYSTEM_NOTICE|explicit_instructions|file_content"
    r"|folder_content|url_content|custom_instructions)(?: [^<>]*)?>.*?</(?P=block)>)",
    re.DOTALL,
)
_PROGRAM = re.compile(
    r"\s*(?:\[(?:TASK RESUMPTION|ERROR|Sliding window truncation)|# (?:task_progress|TODO LIST))\b"
)
_INTERRUPTED = re.compile(r"\s*\[Response interrupted by [^\[\]]*\]\s*\Z")
_RESULT = re.compile(r"\[(?P<name>\w+)(?:[^\n]*?)\] Result:[ \t]*\n?")
"""The head of a tool's result in the tag dialect: `[read_file for 'x'] Result:`."""


_NOT_EXECUTED = re.compile(
    r"(?:Skipping tool|Tool) \[(?P<name>\w+)[^\]]*\] "
    r"(?:was (?:interrupted and )?not executed|due to user rejecting)[^\n]*"
)
"""The text that the program sends as the result of a call that it did not run."""


def _assistant_parts(text: str) -> list[Part]:
    """Splits an assistant's text into text, `<thinking>` and tools, in order.

    A tool whose tag is never closed is Unparsed with the code `bad_call`.
    """
    parts: list[Part] = []
    at = 0
    while match := _OPEN.search(text, at):
        parts += _words(text[at : match.start()])
        name = match[1]
        close = f"</{name}>"
        arguments, at = _arguments(text, match.end(), name)
        end = text.find(close, at)
        if end < 0:
            parts.append(Unparsed(text[match.start() :], "bad_call"))
            return parts
        parts.append(ToolCall(name, arguments))
        at = end + len(close)
    return parts + _words(text[at:])


def _words(text: str) -> list[Part]:
    pieces = map(str.strip, _THINKING.split(text))  # text and thoughts alternate
    return [
        Reasoning(piece) if number % 2 else Text(piece)
        for number, piece in enumerate(pieces)
        if piece
    ]


def _arguments(text: str, at: int, name: str) -> tuple[dict[str, Json], int]:
    """Returns the parameters from `at` on, and the end of the last one."""
    arguments: dict[str, Json] = {}
    while match := _PARAMETER.match(text, at):
        key = match[1]
        close = f"</{key}>"
        if key in _FILE_TEXT:
            # The last closing tag before the first end of the tool, at which the program stops.
            limit = text.find(f"</{name}>", match.end())
            end = text.rfind(close, match.end(), limit if limit >= 0 else len(text))
        else:
            end = text.find(close, match.end())
        if end < 0:
            break
        value = text[match.end() : end]
        is_file = key in _FILE_TEXT
        arguments[key] = value.removeprefix("\n").removesuffix("\n") if is_file else value.strip()
        at = end + len(close)
    return arguments, at


def _user_parts(text: str, changes: Counter[str]) -> Iterator[Text]:
    """Separates the user's text from the program's; one without any tags is the user's."""
    matches = list(_WRAPPED.finditer(text))
    own = _PROGRAM.match(text) is not None or any(match["tag"] for match in matches)
    at = 0
    for match in matches:
        yield from _around(text[at : match.start()], own)
        if match["tag"]:
            changes["wrapper_removed"] += 1
            if words := match["words"].strip():
                yield Text(words)
        else:
            yield Text(match[0], harness=True)
        at = match.end()
    yield from _around(text[at:], own)


def _around(text: str, own: bool) -> Iterator[Text]:
    if text.strip():
        yield Text(text.strip() if own else text, harness=own)


# -- results as Cline's SDK sends them: its log has more than its requests -------------------------

_LIMIT = 8_000
_FILE_LIMIT = 50_000
"""The longest text in a result, and in a file that the user added, in UTF-16 units."""
_MARK = "\n\n...[truncated {} chars]...\n\n"
_OUTDATED = 65_536
"""The bytes of outdated reads of files from which on the program replaces them in its requests."""
_RANGE = re.compile(r"(.*):(\d+)-(EOF|\d+)", re.DOTALL)
_IMAGE = frozenset({"type", "data", "mediaType"})


def shortened(text: str, limit: int = _LIMIT) -> str:
    """Returns a text of a result as it is sent: a long one loses its middle."""
    units = text.encode("utf-16-le", "surrogatepass")
    length = len(units) // 2
    if length <= limit:
        return text
    kept = (limit - len(_MARK.format(length - limit))) // 2
    mark = _MARK.format(length - 2 * kept)
    kept = (limit - len(mark)) // 2
    head, tail = units[: 2 * kept], units[-2 * kept :]
    return mark.join(part.decode("utf-16-le", "surrogatepass") for part in (head, tail))


def _sent_value(value: Json, media: list[Media]) -> Json:
    """Returns a result as it is sent; its images go to `media`, texts beside them lose a block."""
    if isinstance(value, str):
        return shortened(value)
    if isinstance(value, dict):
        return {key: _sent_value(one, media) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    images = [one for one in as_dicts(value) if one.keys() == _IMAGE and one["type"] == "image"]
    media += (Media("image", as_str(one["mediaType"])) for one in images)
    sent: list[Json] = []
    for one in value:
        if images and isinstance(one, dict) and one.keys() == {"type", "text"}:
            sent.append(shortened(as_str(one["text"])))
        elif one not in images:
            sent.append(_sent_value(one, media))
    return sent


def _no_result(call: ToolCall) -> ToolResult:
    text = f"Tool execution was interrupted before a result was produced. Tool: {call.name}."
    return ToolResult((Text(text),), call.id, call.name, is_error=True, is_interrupted=True)


@dataclass(slots=True)
class FileReads:
    """The files that were read: the program may take out what a later result has again.

    reads   (id of the call, path, path with its lines, bytes) of each file in a result
    latest  {path with its lines: id of the last call that read it}
    whole   {path: id of the last call that read all of it}
    """

    reads: list[tuple[str, str, str, int]] = field(default_factory=list)
    latest: dict[str, str] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)

    def take(self, call_id: str, name: str, content: Json) -> None:
        """Adds the files in a result."""
        if name not in ("read", "read_files"):
            return
        for entry in as_dicts(content):
            query = as_str(entry.get("query"))
            part = _RANGE.fullmatch(query)
            path = part[1] if part else query
            self.reads.append((call_id, path, query, len(packed(_sent_value(entry, [])))))
            self.latest[query] = call_id
            if part is None:
                self.whole[path] = call_id

    def are_replaced(self) -> bool:
        """Returns whether the next request has a mark in place of outdated content."""
        outdated = (
            size
            for call_id, path, query, size in self.reads
            if self.whole.get(path, call_id) != call_id or self.latest[query] != call_id
        )
        return sum(outdated) >= _OUTDATED


# -- messages, with Anthropic's blocks or tools as tags --------------------------------------------

_SPOKEN = {
    "attempt_completion": ("result", "completion_as_text"),
    "ask_followup_question": ("question", "question_as_text"),
    "plan_mode_respond": ("response", "plan_as_text"),
    "plan_mode_response": ("response", "plan_as_text"),
}
"""Tools of layout B that talk to the user: the parameter with the text, the code counted."""
_FAILED = (
    "The tool execution failed with the following error:",
    "The user denied this operation",
    "<error>",
    "Task was interrupted before this tool call could be completed.",
)
"""The possible beginnings of a failed call's result."""


def _texts(content: Json) -> Iterator[str]:
    return (as_str(one, "text") for one in _blocks(content) if one.get("type") == "text")


@dataclass(slots=True)
class _ClineReading:
    """Reads the messages of a conversation.

    tags      layout B, in which tools may be tags
    thoughts  logged before their answer
    spoken    ids of calls that became text for the user
    answered  ids of calls that have a result
    missing   what the log lacks of the next request; empty: nothing special is known
    reads     files in results that the program may take out again
    """

    keys: CallKeys
    tags: bool
    messages: list[Message] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)
    model: str | None = None
    thoughts: list[Part] = field(default_factory=list)
    spoken: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    reads: FileReads = field(default_factory=FileReads)

    def take(self, item: dict[str, Json], place: str, turn: str | None) -> None:
        """Adds a message; `place` identifies calls without an id, which are written as tags."""
        words = tuple(map(Text, _texts(item.get("content"))))
        if item.get("type") == "reasoning" and "role" not in item:
            self.thoughts += _reasoning(item.get("text"))
        elif item.get("isTruncationMarker") is True or item.get("isSummary") is True:
            # The next request begins with a summary: it is context, whatever role is logged.
            self.changes["summary_as_context"] += item.get("isTruncationMarker") is not True
            self._append("user", as_harness(words), turn)
        elif item.get("role") == "assistant":
            self._assistant(item, place, turn)
        elif item.get("role") == "user":
            self._user(item, turn)
        else:
            self._append(as_str(item.get("role")), words, turn)

    def _append(
        self,
        role: str,
        parts: tuple[Part, ...],
        turn: str | None,
        model: str | None = None,
        untrained: str | None = None,
    ) -> None:
        if parts:
            context = None
            if role == "assistant" and self.missing:
                self.missing |= {"history"} if self.reads.are_replaced() else set()
                context = Context.lacking(self.missing) if "history" in self.missing else None
            self.messages.append(Message(role, parts, turn, untrained, context, model))

    def _assistant(self, item: dict[str, Json], place: str, turn: str | None) -> None:
        parts, self.thoughts = [*self.thoughts, *_reasoning(item.get("reasoning_content"))], []
        blocks = _blocks(item.get("content"))
        native = any(block.get("type") == "tool_use" for block in blocks)
        for block in blocks:
            match block.get("type"):
                case "text" if self.tags and not native:
                    parts += _assistant_parts(as_str(block.get("text")))
                case _:
                    parts += [part] if (part := read_part(block)) is not None else []
        for at, part in enumerate(parts):
            if isinstance(part, ToolCall):
                parts[at] = self._call(part, f"{place}.{at}")
        self.answered -= {part.id for part in parts if isinstance(part, ToolCall) and part.id}
        info = as_dict(item.get("modelInfo"))
        model = name_or_none(info.get("id") or info.get("modelId"))
        self.model = model or self.model
        untrained = self._interruption(parts) or cut_code(item)
        self._append("assistant", tuple(parts), turn, model, untrained)

    def _interruption(self, parts: list[Part]) -> str | None:
        """Returns the code of an answer that ends with the program's note of an interruption.

        After a call, an answer is whole: the note is removed.
        """
        has_call = any(isinstance(part, ToolCall) for part in parts)
        for at, part in enumerate(parts):
            own = _INTERRUPTED.sub("", part.text) if isinstance(part, Text) else ""
            if not isinstance(part, Text) or own == part.text:
                continue
            if not has_call:
                return "aborted"
            parts[at : at + 1] = [Text(own)] if own else []
            self.changes["interruption_note"] += 1
            break
        return None

    def _call(self, call: ToolCall, place: str) -> ToolCall | Text:
        """Returns the call with its key, or its text for the user."""
        spoken = _SPOKEN.get(call.name) if self.tags else None
        words = as_dict(call.arguments).get(spoken[0]) if spoken else None
        if spoken is None or not isinstance(words, str):
            return replace(call, key=self.keys.of(call.id or place))
        self.changes[spoken[1]] += 1
        if call.id:
            self.spoken.add(call.id)
        return Text(words)

    def _user(self, item: dict[str, Json], turn: str | None) -> None:
        results: list[ToolResult] = []
        user: list[Part] = []
        head: str | None = None  # name in the head of the current result, in the tag dialect
        for block in _blocks(item.get("content")):
            match block.get("type"):
                case "text":
                    head = self._user_text(as_str(block.get("text")), head, results, user)
                case "tool_result":
                    self._native_result(block, results, user)
                case "file":
                    path, text = as_str(block.get("path")), as_str(block.get("content"))
                    text = text if self.tags else shortened(text, _FILE_LIMIT)
                    sent = f'<file_content path="{path}">\n{text}\n</file_content>'
                    user.append(Text(sent, harness=True))
                case _ if head is not None and head not in _SPOKEN:
                    _extend_last(results, tuple(self._other(block)))
                case _:
                    user += self._other(block)
        self._append("tool", tuple(results), None)
        self._append("user", tuple(user), turn)

    def _user_text(
        self, text: str, head: str | None, results: list[ToolResult], user: list[Part]
    ) -> str | None:
        """Adds a text of the user, the program or a result; returns the current result's head."""
        if not self.tags:
            user += _user_parts(text, self.changes)
            return None
        at = text.find("<environment_details>")
        body, context = (text, "") if at < 0 else (text[:at].rstrip(), text[at:])
        if match := _NOT_EXECUTED.fullmatch(body):
            results.append(ToolResult((Text(body),), name=match["name"], is_interrupted=True))
            return None
        if _PROGRAM.match(body):
            user += _user_parts(text, self.changes)
            return head
        if match := _RESULT.match(body):
            head, body = match["name"], body[match.end() :]
            if head not in _SPOKEN:
                results.append(ToolResult((), name=head))
        if head is None:
            user += _user_parts(body, self.changes)
        elif head in _SPOKEN:
            user += _reply(body, self.changes)
        elif body.strip():
            _extend_last(results, (Text(body),), failed=_states_failure(body))
        if context:
            user.append(Text(context, harness=True))
        return head

    def _native_result(
        self, block: dict[str, Json], results: list[ToolResult], user: list[Part]
    ) -> None:
        call_id = name_or_none(block.get("tool_use_id"))
        if call_id is not None and call_id in self.answered:
            self.changes["duplicate_result"] += 1
            return
        content, failed = self._result_content(block.get("content"))
        if call_id is not None:
            self.answered.add(call_id)
        if call_id in self.spoken:
            for part in content:
                user += _reply(part.text, self.changes) if isinstance(part, Text) else [part]
            return
        failed = failed or block.get("is_error") is True
        name = name_or_none(block.get("name"))
        if not self.tags and not failed:
            self.reads.take(call_id or "", name or "", block.get("content"))
        results.append(ToolResult(content, call_id=call_id, name=name, is_error=failed))

    def _result_content(self, content: Json) -> tuple[tuple[Content, ...], bool]:
        sent = str if self.tags else shortened
        if isinstance(content, str):
            return (Text(sent(content)),), _states_failure(content)
        if not isinstance(content, list):
            return ((Data(content, compact=True),), False) if content is not None else ((), False)
        as_json = bool(content) or not self.tags  # the SDK sends an empty list as JSON, too
        if as_json and not any("type" in as_dict(item) for item in content):
            media: list[Media] = []
            value = content if self.tags else _sent_value(content, media)
            self.missing |= {"history"} if media else set()  # where images are depends on the API
            return (Text(dumps_compact(value)), *media), any(map(_not_successful, content))
        parts: list[Content] = []
        for block in map(as_dict, content):
            is_text = block.get("type") == "text"
            parts += [Text(sent(as_str(block.get("text"))))] if is_text else self._other(block)
        words = (part.text for part in parts if isinstance(part, Text))
        return tuple(parts), any(map(_states_failure, words))

    def _other(self, block: dict[str, Json]) -> list[Media | Unparsed]:
        kind = as_str(block.get("type"))
        if kind in ("image", "document"):
            mime = as_str(block, "source", "media_type")
            return [Media("image" if kind == "image" else "file", mime)]
        return [unknown_part(kind or "nothing")]


def _reasoning(value: Json) -> list[Part]:
    return [Reasoning(value)] if isinstance(value, str) and value else []


def _blocks(content: Json) -> list[dict[str, Json]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return as_dicts(content)


def _extend_last(
    results: list[ToolResult], content: tuple[Content, ...], *, failed: bool = False
) -> None:
    last = results[-1]
    is_error = last.is_error or failed
    results[-1] = replace(last, content=(*last.content, *content), is_error=is_error)


def _reply(text: str, changes: Counter[str]) -> list[Part]:
    """Returns the user's reply to the model's text; text without a tag is the program's."""
    parts = list(_user_parts(text, changes))
    return [*as_harness(parts)] if len(parts) == 1 and parts[0].text == text else [*parts]


def _states_failure(text: str) -> bool:
    return text.lstrip().startswith(_FAILED) or _not_successful(json_in_text(text))


def _not_successful(value: Json) -> bool:
    item = as_dict(value)
    return item.get("success") is False or bool(item.get("error"))


# -- files -----------------------------------------------------------------------------------------

_ROO_FIELDS = frozenset(
    {"isSummary", "condenseId", "condenseParent", "truncationId", "truncationParent"}
)

_Rows = list[tuple[str, dict[str, Json]]]
"""Messages with their places."""


def _recognise(source: Source) -> str | None:
    """Claims a session, a manifest, a log of the interface, or the history of a task."""
    if source.peek.kind != "json" or not source.peek.records:
        return None
    if source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return _list_kind(list(source.peek.objects))
    document = as_dict(source.peek.records[0])
    if isinstance(document.get("messages"), list) and {"sessionId", "agent"} <= document.keys():
        return "a session's messages (sessionId, agent, messages)"
    if {"session_id", "workspace_root", "enable_tools"} <= document.keys():
        return "a session's manifest (session_id, workspace_root, enable_tools)"
    return None


def _list_kind(items: list[dict[str, Json]]) -> str | None:
    if items and all(item.get("type") in ("ask", "say") and "ts" in item for item in items):
        return "a log of the user interface (ts, type say or ask)"
    kinds = [item.get("role") or item.get("type") for item in items]
    if not items or not {*map(as_str, kinds)} <= {"user", "assistant", "reasoning"}:
        return None
    if any(_ROO_FIELDS & item.keys() for item in items):
        return "a task's history with condensed or truncated messages"
    for item in items:
        for text in _texts(item.get("content")):
            if text.lstrip().startswith("<task>") or "<environment_details>" in text:
                return "a task's history (<task>, <environment_details>)"
    return None


def _read(source: Source) -> Iterator[Event]:
    document = source.document()
    if isinstance(document, Problem):
        source.count_records()
        yield document
    elif isinstance(document, list):
        if all(as_dict(item).get("type") in ("ask", "say") for item in document):
            yield Ignored("ui_message", sum(1 for _ in source.counted(document)))
        else:
            yield from _task(source, document)
    elif isinstance(as_dict(document).get("messages"), list):
        yield from _session(source, as_dict(document))
    else:
        source.count_records()
        yield Ignored("manifest")


def _session(source: Source, document: dict[str, Json]) -> Iterator[Event]:
    items, lost = yield from _objects(source, as_list(document["messages"]))
    if not items:
        return
    session = as_str(document.get("sessionId")) or source.name
    # A fork copies the messages with their ids to another session.
    reading = _ClineReading(CallKeys(name_or_none(items[0][1].get("id")) or session), tags=False)
    system = name_or_none(document.get("system_prompt"))
    # The logged prompt lacks the rules of the project, which requests contain.
    missing = frozenset({"tools", "system_template" if system else "system"})
    reading.missing |= missing
    if system:
        reading.messages.append(Message("system", (Text(system),)))
    for where, item in items:
        reading.take(item, where, name_or_none(item.get("id")))
    reading.messages, reading.changes["result_supplied"] = supply_results(
        reading.messages, _no_result
    )
    if any(as_str(one, "metadata", "kind").startswith("compaction") for _, one in items):
        detail = "a history rewritten to be shorter: calls were taken out of answers"
        lost += (Problem("compacted", "session", detail, records=0),)
    place = span(items[0][0], items[-1][0])
    version = name_or_none(as_dict(document.get("origin")).get("version"))
    event = _conversation(reading, session, place, len(items), lost)
    if isinstance(event, Conversation):
        event = replace(event, context=Context.lacking(missing), version=version)
    yield event


def _objects(
    source: Source, values: list[Json]
) -> Generator[Problem, None, tuple[_Rows, tuple[Problem, ...]]]:
    """Returns the messages, and the problem of a conversation that lacks one."""
    found = list(objects(source.counted(values)))
    lost = [item for item in found if isinstance(item, Problem)]
    yield from lost
    return [item for item in found if not isinstance(item, Problem)], missing_records(lost)


def _conversation(
    reading: _ClineReading, name: str, record: str, records: int, problems: tuple[Problem, ...]
) -> Event:
    if not reading.messages:
        return Ignored("no_turns", records)
    return Conversation(
        id=name,
        record=record,
        messages=tuple(reading.messages),
        model=reading.model,
        records=records,
        problems=problems,
        changes=dict(sorted((+reading.changes).items())),
    )


def _task(source: Source, document: list[Json]) -> Iterator[Event]:
    rows, lost = yield from _objects(source, document)
    scope = str(next((row["ts"] for _, row in rows if "ts" in row), source.name))
    seen: set[str] = set()
    targets: set[str] = set()
    segments = Segments("task")
    for segment in _segments(rows):
        reading = _ClineReading(CallKeys(scope), tags=True)
        for where, row in segment:
            reading.take(row, where, where)
        fresh = [where for where, _ in segment if where not in seen]
        seen.update(fresh)
        place = span(segment[0][0], segment[-1][0])
        reading.messages = mark_repeats(reading.messages, targets)
        event = _conversation(reading, segments.next_name(), place, len(fresh), lost)
        if event.records or isinstance(event, Conversation):
            yield event


def _segments(rows: _Rows) -> Iterator[_Rows]:
    """Yields the context before each summary or truncation that hid messages, then the last one."""
    visible: _Rows = []
    for where, row in rows:
        for own, parent in (("condenseId", "condenseParent"), ("truncationId", "truncationParent")):
            name = name_or_none(row.get(own))
            hidden = [old for old in visible if name and old[1].get(parent) == name]
            if hidden and (row.get("isSummary") is True or row.get("isTruncationMarker") is True):
                yield list(visible)
                visible = [old for old in visible if old not in hidden]
        visible.append((where, row))
    if visible:
        yield visible


READER = declared("cline", recognise=_recognise, read=_read)
