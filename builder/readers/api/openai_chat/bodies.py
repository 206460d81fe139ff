"""Parses bodies of OpenAI chat completions (docs/formats/openai-chat.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from builder.conversation import (
    Data,
    Json,
    Media,
    Message,
    Part,
    Text,
    ToolResult,
    Unparsed,
)
from builder.jsonio import JsonFault
from builder.problem import Problem
from builder.readers.api.capture.api import Api, ApiAnswer, History
from builder.readers.api.capture.dialect import OPENAI_CHAT
from builder.readers.api.capture.envelope import Exchange
from builder.readers.api.openai_chat.chunks import SEARCHES, whole_response
from builder.readers.api.openai_chat.ollama import choices_of, is_ollama
from builder.readers.toolkit import tags as text_tags
from builder.readers.toolkit.chat_messages import (
    assistant_parts,
    content,
    tool_result,
    with_content,
)
from builder.readers.toolkit.comparison import words
from builder.readers.toolkit.json_text import json_in_text
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_int,
    as_list,
    as_str,
    name_or_none,
)
from builder.readers.toolkit.thoughts import read_thoughts
from builder.readers.toolkit.token_ids import ids_beside
from builder.readers.toolkit.unknown_keys import noted

TOOL_ROLES = frozenset({"tool_call", "tool_response"})
"""Roles of ms-swift: the text of a call, and its result."""


_TOOL_PLACES = {
    "info": ("oai_tools",),
    "metadata": ("tools",),
    "chat_template_kwargs": ("tools", "xml_tools"),
}
"""Other columns of a row and the keys in them that hold its definitions (verifiers, SmolTalk2)."""


def history(body: dict[str, Json]) -> History:
    """Returns the history of a request, or of a row with `messages`."""
    items = list(map(with_content, as_dicts(body.get("messages"))))
    changes: Counter[str] = Counter()
    flat = is_flat(items)
    messages = [
        message for item in items for message in noted(read_message(item, changes, flat=flat), item)
    ]
    problems: tuple[Problem, ...] = ()
    tools = _tools(body)
    if tools is None:
        try:
            messages, tools = _tools_in_text(messages, changes)
        except JsonFault as fault:
            problems = (replace(fault.at("request"), records=0),)
    return History(tuple(messages), tools, name_or_none(body.get("model")), problems, changes)


def _tools(body: dict[str, Json]) -> tuple[Json, ...] | None:
    """Returns a request's definitions: `tools` (perhaps as JSON text) and the older `functions`.

    Rows of verifiers and prime-rl have them in `tool_defs`, and may repeat them in `tools`; others
    have them inside another column (`_TOOL_PLACES`).
    """
    lists = [json_in_text(body.get(key)) for key in ("tools", "functions")]
    if not any(isinstance(value, list) for value in lists):
        places = [body.get("tool_defs")]
        for key, names in _TOOL_PLACES.items():
            inner = as_dict(json_in_text(body.get(key)))
            places += [value for name in names if (value := inner.get(name))]
        definitions = map(json_in_text, places)
        listed = next((value for value in definitions if isinstance(value, list)), None)
        return None if listed is None else tuple(map(json_in_text, listed))
    return tuple(tool for value in lists for tool in as_list(value))


def _tools_in_text(
    messages: list[Message], changes: Counter[str]
) -> tuple[list[Message], tuple[Json, ...] | None]:
    """Removes the definitions from a system text that contains them and the format of calls.

    Returns the messages and the definitions, None without any. Raises JsonFault if the definitions
    cannot be parsed.
    """
    first = messages[0] if messages else Message("user", ())
    text = words(first)
    if first.role != "system":
        return messages, None
    if "<tools>" in text and "<tool_call>" in text:
        own, tools = text_tags.take_tools(text, changes)
    else:
        own, tools = text_tags.take_listed_tools(text, changes)
        if not tools:
            return messages, tools
    system = [replace(first, parts=(Text(own),))] if own else []
    return [*system, *messages[1:]], tools


def is_flat(items: Iterable[dict[str, Json]]) -> bool:
    """Returns whether calls and results are tags in the text, as in this project's own rows."""
    items = list(items)
    if any(_calls(item) or as_str(item.get("role")) in TOOL_ROLES for item in items):
        return False
    marks = {"assistant": "<tool_call>", "user": "<tool_response>"}
    return any(
        marks.get(as_str(item.get("role")), "\0") in as_str(item.get("content")) for item in items
    )


def read_message(item: dict[str, Json], changes: Counter[str], *, flat: bool) -> Iterator[Message]:
    """Yields the messages of a logged message. `flat`: see `is_flat`."""
    role = as_str(item.get("role"))
    text = as_str(item.get("content"))
    if role == "assistant":
        parts = _assistant(item, changes, flat=flat)
        yield Message(role, tuple(parts), tokens=ids_beside(item))
    elif role == "tool_call":
        calls = text_tags.read_calls(text, changes)
        found = [Unparsed(text, "bad_call")] if calls is None else calls
        yield Message("assistant", tuple(found))
    elif role == "tool" and flat and (results := text_tags.responses(text)) is not None:
        yield from (Message("tool", (ToolResult((Text(result),)),)) for result in results)
    elif role in ("tool", "function", "tool_response"):
        yield Message("tool", (_result(item),))
    elif role == "user" and flat and (results := text_tags.responses(text)) is not None:
        yield Message("tool", tuple(ToolResult((Text(result),)) for result in results))
    else:
        images = (Media("image") for _ in as_list(item.get("images")))  # Ollama
        yield Message(role[:40], (*content(_plain_parts(item.get("content"))), *images))


def _assistant(item: dict[str, Json], changes: Counter[str], *, flat: bool) -> Iterator[Part]:
    calls = _calls(item)
    listed = json_in_text(item.get("tool_calls"))
    odd = None if isinstance(listed, list) else listed or None
    named: dict[str, Json] = {
        **item,
        "content": _plain_parts(item.get("content")),
        "tool_calls": calls or odd,
    }
    legacy = item.get("function_call")
    if legacy is not None and any(as_dict(call).get("function") == legacy for call in calls):
        del named["function_call"]  # some servers send both forms of a call
    parts = assistant_parts(named)
    if not flat:
        yield from read_thoughts(_with_glaive_calls(parts, changes), changes)
    for part in parts if flat else ():
        if isinstance(part, Text):
            yield from text_tags.assistant_parts(part.text, changes)
        else:
            yield part
    if as_str(item, "audio", "id"):
        yield Media("audio")


def _with_glaive_calls(parts: Iterable[Part], changes: Counter[str]) -> Iterator[Part]:
    """Yields the parts with the calls that Glaive's data and its copies write into the text."""
    for part in parts:
        if isinstance(part, Text) and text_tags.FUNCTIONCALL in part.text:
            yield from text_tags.functioncall_parts(part.text, changes)
        else:
            yield part


def _plain_parts(value: Json) -> Json:
    """Returns content with refusals as text parts, since they are the model's own words."""
    if not isinstance(value, list):
        return value
    parts: list[Json] = []
    for part in value:
        refusal = as_dict(part).get("refusal")
        is_refusal = as_dict(part).get("type") == "refusal" and isinstance(refusal, str)
        parts.append({"type": "text", "text": refusal} if is_refusal else part)
    return parts


def _calls(item: dict[str, Json]) -> list[Json]:
    """Returns the calls in their full form, without the unused kind.

    Snowflake fills the unused kind, and the unused `function_call`, with empty strings.
    """
    wrapped: list[Json] = []
    for entry in as_list(json_in_text(item.get("tool_calls"))):
        call = dict(as_dict(json_in_text(entry)))
        if not call:
            wrapped.append(entry)
            continue
        if name_or_none(as_dict(call.get("function")).get("name")):
            call.pop("custom", None)
        elif name_or_none(call.get("name")) and "custom" not in call:
            call["function"] = {"name": call["name"], "arguments": call.get("arguments")}
        wrapped.append(call)
    return wrapped


def _result(item: dict[str, Json]) -> ToolResult:
    value = item.get("content")
    result = tool_result({**item, "content": None})
    untyped = any(isinstance(part, dict) and "type" not in part for part in as_list(value))
    parts = (Data(value),) if untyped else content(value)
    return replace(result, content=parts)


# -- answers -------------------------------------------------------------------------------------


def answers(exchange: Exchange) -> Sequence[ApiAnswer]:
    """Returns the choices of a response by index; () for an error or without choices."""
    body = exchange.answer_body(whole_response)
    choices = choices_of(body)
    choices.sort(key=lambda choice: as_int(choice.get("index")))
    sent = as_dicts((exchange.request or {}).get("messages"))
    last = sent[-1] if sent else {}
    prefill = last.get("prefix") is True
    if is_ollama(as_dict((exchange.events or (exchange.response,))[-1])):
        # Its templates leave a last answer open.
        prefill = last.get("role") == "assistant" and not last.get("tool_calls")
    return [
        replace(_answer(choice, sent, body), prefill=prefill)
        for choice in choices
        if isinstance(choice.get("message"), dict)
    ]


def _answer(
    choice: dict[str, Json], sent: list[dict[str, Json]], body: dict[str, Json]
) -> ApiAnswer:
    changes: Counter[str] = Counter()
    item = {**with_content(as_dict(choice.get("message"))), "role": "assistant"}
    (message,) = noted(read_message(item, changes, flat=is_flat([*sent, item])), item)
    message = replace(message, tokens=ids_beside(item, choice, choice.get("meta_info"), body))
    if _searched(item, body):
        message = replace(message, parts=(*message.parts, Unparsed("search", "server_tool")))
    finish, failed = choice.get("finish_reason"), bool(choice.get("error"))
    return ApiAnswer(
        message,
        # Servers use many names for a normal end; without one, the end is missing.
        fault="truncated" if failed or finish is None else finish_fault(finish),
        model=name_or_none(body.get("model")),
        changes=changes,
    )


def _searched(message: dict[str, Json], body: dict[str, Json]) -> bool:
    """Returns whether the provider ran tools for an answer, whose results are not in the log.

    OpenAI's search models and OpenRouter cite pages in `annotations`, Perplexity and xAI in fields
    of the response. Groq's compound models list `executed_tools`.
    """
    annotations = as_dicts(message.get("annotations"))
    cited = any(as_str(one.get("type")).endswith("_citation") for one in annotations)
    return cited or any((message.get("executed_tools"), *map(body.get, SEARCHES)))


def continues(before: Json, after: Json) -> bool:
    """Returns whether a chunk belongs to the same response as the previous one.

    Its id shows it; Ollama's chunks have none, and the last one has `done: true`.
    """
    one, other = as_dict(before), as_dict(after)
    if is_ollama(one) and is_ollama(other):
        return one["done"] is False and one.get("model") == other.get("model")
    if not all("chunk" in as_str(chunk.get("object")) for chunk in (one, other)):
        return False
    return one.get("id") == other.get("id")


CHAT = Api(OPENAI_CHAT, history, answers, continues)
