"""Converts messages of Cline and Roo, with Anthropic's blocks or tools as tags, to parts.

Source: docs/formats/cline.md, "Both layouts"; `text` reads the tags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Content,
    Context,
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
from builder.jsonio import dumps_compact
from builder.readers.agents.cline.sent import FILE_LIMIT, FileReads, sent_value, shortened
from builder.readers.agents.cline.text import (
    NOT_EXECUTED,
    RESULT,
    assistant_parts,
    is_by_program,
    user_parts,
    without_interruption,
)
from builder.readers.toolkit.call_keys import CallKeys
from builder.readers.toolkit.chat_messages import as_harness
from builder.readers.toolkit.json_text import json_in_text
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none

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


def texts(content: Json) -> Iterator[str]:
    """Yields the texts of a message's content."""
    if isinstance(content, str):
        yield content
    for block in as_list(content):
        if as_dict(block).get("type") == "text":
            yield as_str(block, "text")


@dataclass(slots=True)
class ClineReading:
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
        if item.get("type") == "reasoning" and "role" not in item:
            self.thoughts += _reasoning(item.get("text"))
        elif item.get("isTruncationMarker") is True:
            self._append("user", as_harness(_words(item)), turn)
        elif item.get("isSummary") is True:
            # The next request begins with it: it is context, whatever role is logged.
            self.changes["summary_as_context"] += 1
            self._append("user", as_harness(_words(item)), turn)
        elif item.get("role") == "assistant":
            self._assistant(item, place, turn)
        elif item.get("role") == "user":
            self._user(item, turn)
        else:
            self._append(as_str(item.get("role")), _words(item), turn)

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
                    parts += assistant_parts(as_str(block.get("text")))
                case "text":
                    parts += [Text(text)] if (text := as_str(block.get("text"))) else []
                case "thinking":
                    parts += _reasoning(block.get("thinking"))
                case "redacted_thinking":
                    pass
                case "tool_use":
                    call_id = name_or_none(block.get("id"))
                    parts.append(ToolCall(as_str(block.get("name")), block.get("input"), call_id))
                case _:
                    parts += self._other(block)
        for at, part in enumerate(parts):
            if isinstance(part, ToolCall):
                parts[at] = self._call(part, f"{place}.{at}")
        self.answered -= {part.id for part in parts if isinstance(part, ToolCall) and part.id}
        info = as_dict(item.get("modelInfo"))
        model = name_or_none(info.get("id") or info.get("modelId"))
        self.model = model or self.model
        untrained = self._interruption(parts)
        self._append("assistant", tuple(parts), turn, model, untrained)

    def _interruption(self, parts: list[Part]) -> str | None:
        """Returns the code of an answer that ends with the program's note of an interruption.

        After a call, an answer is whole: the note is removed.
        """
        has_call = any(isinstance(part, ToolCall) for part in parts)
        for at, part in enumerate(parts):
            own = without_interruption(part.text) if isinstance(part, Text) else ""
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
                    text = text if self.tags else shortened(text, FILE_LIMIT)
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
            user += user_parts(text, self.changes)
            return None
        at = text.find("<environment_details>")
        body, context = (text, "") if at < 0 else (text[:at].rstrip(), text[at:])
        if match := NOT_EXECUTED.fullmatch(body):
            results.append(ToolResult((Text(body),), name=match["name"], is_interrupted=True))
            return None
        if is_by_program(body):
            user += user_parts(text, self.changes)
            return head
        if match := RESULT.match(body):
            head, body = match["name"], body[match.end() :]
            if head not in _SPOKEN:
                results.append(ToolResult((), name=head))
        if head is None:
            user += user_parts(body, self.changes)
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
        """Returns the content of a result, and whether it states that the call failed."""
        sent = str if self.tags else shortened
        if isinstance(content, str):
            return (Text(sent(content)),), _states_failure(content)
        if not isinstance(content, list):
            return ((Data(content, compact=True),), False) if content is not None else ((), False)
        as_json = bool(content) or not self.tags  # the SDK sends an empty list as JSON, too
        if as_json and not any("type" in as_dict(item) for item in content):
            media: list[Media] = []
            value = content if self.tags else sent_value(content, media)
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


def _words(item: dict[str, Json]) -> tuple[Text, ...]:
    return tuple(map(Text, texts(item.get("content"))))


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
    parts = list(user_parts(text, changes))
    return [*as_harness(parts)] if len(parts) == 1 and parts[0].text == text else [*parts]


def _states_failure(text: str) -> bool:
    return text.lstrip().startswith(_FAILED) or _not_successful(json_in_text(text))


def _not_successful(value: Json) -> bool:
    item = as_dict(value)
    return item.get("success") is False or bool(item.get("error"))
