"""Converts the message records of a Gemini CLI session at one time to messages.

Source: docs/formats/gemini-cli.md, "Messages". Also compares lists of messages, which the program
writes in two forms.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from builder.readers.api.gemini.contents import mark_harness, part_list, read_parts
from builder.readers.toolkit.call_keys import CallKeys
from builder.readers.toolkit.chat_messages import as_harness, results_apart
from builder.readers.toolkit.comparison import common_prefix
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.repeats import without_key
from builder.readers.toolkit.unknown_records import unknown_message

_DENIED = "User did not allow tool call"
"""The program's text in the result of a call that the user refused."""

_SUMMARY = "<state_snapshot>"

_NONE: Mapping[str, str | None] = MappingProxyType({})

Comparable = Sequence[tuple[str, Part]]
"""Roles and parts in order, without thoughts, harness text and incidental fields."""


@dataclass(frozen=True, slots=True)
class View:
    """The messages, their comparable form, the model, and the context level."""

    messages: tuple[Message, ...]
    compared: Comparable
    model: str | None
    context: Context


NOT_RECORDED = ("system", "tools")
"""The codes of `Context.missing` for what no version records."""


def view_of(
    records: Iterable[tuple[str, dict[str, Json]]],
    session: str,
    copied: Mapping[str, str | None] = _NONE,
) -> View:
    """Returns the message records (id, record) of one session at one time as messages.

    `copied`: answers that the program recorded itself, as `copies_of` returns them.
    """
    keys = CallKeys(session)
    messages: list[Message] = []
    answered: set[str] = set()
    model: str | None = None
    doubled_from = sys.maxsize  # index of the first message after which results occur twice
    sent: set[str] = set()  # ids of calls with results in messages of the user
    listed = [*records]
    for at, (key, item) in enumerate(listed):
        follows = listed[at + 1][1].get("type") if at + 1 < len(listed) else None
        role, parts, results = _read_record(item, keys, is_answered=follows == "gemini")
        ids = {result.call_id for result in results if result.call_id}
        if role == "assistant":
            answered -= {part.id for part in parts if isinstance(part, ToolCall) and part.id}
            model = name_or_none(item.get("model")) or model
        else:
            # Results are written twice: with the call and as a message of the user. After a resume,
            # two messages of each request contain them, but a sample can show only one.
            if ids & sent:
                doubled_from = min(doubled_from, len(messages))
            sent |= ids
        new = tuple(result for result in results if result.call_id not in answered)
        answered |= ids
        name = name_or_none(item.get("model")) if role == "assistant" else None
        untrained = "inserted" if copied.get(key, key) is None else None
        turn = copied.get(key) or key
        own = [Message(role, tuple(parts), turn, untrained, model=name)] if parts else []
        tool = [Message("tool", new)] if new else []
        messages += [*own, *tool] if role == "assistant" else [*tool, *own]
    compared = tuple(
        (message.role, _bare(part))
        for message in messages
        for part in message.parts
        if not isinstance(part, Reasoning) and not (isinstance(part, Text) and part.harness)
    )
    opens = bool(messages) and any(map(_is_context, messages[0].parts))
    context = Context.lacking(NOT_RECORDED if opens else ("reminders", *NOT_RECORDED))
    known = tuple(_without_history(messages, doubled_from, context))
    return View(known, compared, model, context)


def _read_record(
    item: dict[str, Json], keys: CallKeys, *, is_answered: bool
) -> tuple[str, list[Part], Sequence[ToolResult]]:
    """Returns the role of a message record, its parts without results, and its results.

    `is_answered`: the record of an answer follows.
    """
    if item.get("type") not in ("user", "gemini"):
        return "user", [*unknown_message(item.get("type")).parts], ()
    content = item.get("content")
    parts = read_parts([] if content is None else part_list(content), keys)
    results, rest = results_apart(parts)
    if item.get("type") == "gemini":
        answer, recorded = _with_calls(item, mark_harness(rest, "assistant"), keys)
        return "assistant", answer, [*results, *recorded]
    marked: Iterable[Part] = mark_harness(rest, "user")
    if not is_answered:  # a command that was sent as text is a prompt, as in headless mode
        marked = _local_commands([*marked])
    return "user", [*map(_marked_summary, marked)], results


def _is_context(part: Part) -> bool:
    return isinstance(part, Text) and part.harness and not part.text.startswith(_SUMMARY)


def _without_history(
    messages: Sequence[Message], start: int, context: Context
) -> Iterator[Message]:
    """Yields the messages; answers from index `start` on also lack `history`."""
    lacking = Context.lacking([*context.missing, "history"])
    for at, message in enumerate(messages):
        lacks = at >= start and message.role == "assistant"
        yield replace(message, context=lacking) if lacks else message


def with_repeats(conversations: Sequence[Conversation]) -> list[Conversation]:
    """Marks answers that are in several conversations as repeats in all but one.

    They stay targets in the first conversation without problems, else in the first one.
    """
    targets: set[str] = set()
    marked: dict[int, Conversation] = {}
    for at in sorted(
        range(len(conversations)), key=lambda at: (bool(conversations[at].problems), at)
    ):
        messages = []
        for message in conversations[at].messages:
            shown = [_bare(part) for part in message.parts if not isinstance(part, Reasoning)]
            answer = repr((message.turn, shown))
            is_repeat = message.role == "assistant" and answer in targets
            is_repeat = is_repeat and message.untrained is None
            messages.append(replace(message, untrained=REPEAT) if is_repeat else message)
            if message.role == "assistant":
                targets.add(answer)
        marked[at] = replace(conversations[at], messages=tuple(messages))
    return [marked[at] for at in range(len(conversations))]


def _with_calls(
    item: dict[str, Json], parts: list[Part], keys: CallKeys
) -> tuple[list[Part], list[ToolResult]]:
    """Returns the model's parts with the record's thoughts and calls, and the recorded results.

    Thoughts and calls in `content` take precedence; missing ones are added.
    """
    if not any(isinstance(part, Reasoning) for part in parts):
        parts = [*_thoughts(item.get("thoughts")), *parts]
    ids = [part.id for part in parts if isinstance(part, ToolCall)]
    bare = [(part.name, part.arguments) for part in parts if isinstance(part, ToolCall)]
    results: list[ToolResult] = []
    for value in as_list(item.get("toolCalls")):
        record = as_dict(value)
        call_id = name_or_none(record.get("id"))
        name = as_str(record.get("name"))
        if call_id in ids and call_id is not None:
            ids.remove(call_id)
        elif None in ids and (name, record.get("args")) in bare:
            ids.remove(None)
        else:
            parts.append(ToolCall(name, record.get("args"), call_id, keys.of(call_id)))
        result = _recorded_result(record, name, call_id, keys)
        if result is not None:
            results.append(result)
    return parts, results


def _recorded_result(
    record: dict[str, Json], name: str, call_id: str | None, keys: CallKeys
) -> ToolResult | None:
    """Returns the result that is recorded with a call, as the model saw it."""
    given = record.get("result")
    if given is None or given == []:
        return None
    parts = read_parts(part_list(given), keys)
    result: ToolResult | None = next((part for part in parts if isinstance(part, ToolResult)), None)
    content = result.content if result else ()
    content += tuple(part for part in parts if isinstance(part, Text))
    is_denied = any(isinstance(part, Text) and _DENIED in part.text for part in content)
    return ToolResult(
        content,
        call_id=call_id,
        name=name or None,
        is_error=bool(result and result.is_error) or record.get("status") == "error",
        is_denied=is_denied,
        is_interrupted=record.get("status") == "cancelled" and not is_denied,
    )


def _thoughts(value: Json) -> list[Part]:
    texts = []
    for item in as_dicts(value):
        subject, description = as_str(item.get("subject")), as_str(item.get("description"))
        texts.append(f"**{subject}** {description}".strip() if subject else description)
    return [Reasoning(text) for text in texts if text]


def _marked_summary(part: Part) -> Part:
    """Marks the summary that a compression puts first as harness text."""
    if isinstance(part, Text) and part.text.startswith(_SUMMARY):
        return replace(part, harness=True)
    return part


def _local_commands(parts: list[Part]) -> Iterable[Part]:
    """Marks commands to the program (`/…`, `?`) that no answer follows."""
    text = "".join(part.text for part in parts if isinstance(part, Text)).strip()
    return as_harness(parts) if text.startswith(("/", "?")) else parts


def copies_of(messages: Mapping[str, dict[str, Json]], ids: Sequence[str]) -> dict[str, str | None]:
    """Returns the answers that the program recorded once more before it replaced the list.

    `ids` are those of the new list. They are copies if the records at the end of the list before
    are exactly these and the model did not give any of them: its answers name the model. Maps the
    id of each copy to that of the answer before, or to None if there is no such answer.
    """
    before = [*messages.items()][: -len(ids)] if ids else []
    copies = [*messages.items()][len(before) :]
    if not before or [key for key, _ in copies] != [*ids]:
        return {}
    if any(item.get("type") == "gemini" and item.get("model") for _, item in copies):
        return {}
    answers = [(_shown(item), key) for key, item in before if item.get("type") == "gemini"]
    found: dict[str, str | None] = {}
    for key, item in copies:
        if item.get("type") != "gemini":
            continue
        shown = _shown(item)
        at = next((at for at, (other, _) in enumerate(answers) if other == shown), None)
        found[key] = None if at is None else answers[at][1]
        answers = answers if at is None else answers[at + 1 :]
    return found


def _shown(item: dict[str, Json]) -> tuple[str, frozenset[str]]:
    """Returns the text and the ids of the calls of an answer, in either form."""
    content = item.get("content")
    parts = [] if content is None else [as_dict(part) for part in part_list(content)]
    text = "".join(as_str(part.get("text")) for part in parts if not part.get("thought"))
    return text, frozenset(call_ids(item))


def call_ids(item: dict[str, Json]) -> set[str]:
    """Returns the ids of the calls in a record."""
    calls = as_list(item.get("toolCalls"))
    content = [] if item.get("content") is None else part_list(item.get("content"))
    calls = calls + [as_dict(part).get("functionCall") for part in content]
    return {as_str(call, "id") for call in calls if call is not None}


def _bare(part: Part) -> Part:
    """Returns the part without the fields that differ between its two written forms."""
    if isinstance(part, ToolResult):
        return replace(part, is_error=False, is_denied=False, is_interrupted=False)
    return without_key(part)


def starts_with(whole: Comparable, start: Comparable) -> bool:
    """Returns whether a history begins with another."""
    return len(start) <= len(whole) and common_prefix(whole, start) == len(start)


def has_answer(compared: Comparable) -> bool:
    """Returns whether a history contains an answer of the model."""
    return any(role == "assistant" for role, _ in compared)
