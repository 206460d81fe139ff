"""OpenAI chat completions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from builder.conversation import (
    Conversation,
    Data,
    Event,
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
from builder.readers.api import anthropic
from builder.readers.api.codec import Api, ApiAnswer, History, row_conversation
from builder.readers.api.dialects import (
    OPENAI_CHAT,
    ROLES,
    choice_of,
    has_function_roles,
    is_cohere,
)
from builder.readers.api.exchanges import Exchange, is_answer
from builder.readers.toolkit import tags as text_tags
from builder.readers.toolkit.chat_messages import (
    assistant_parts,
    content,
    tool_result,
    with_content,
)
from builder.readers.toolkit.comparison import words
from builder.readers.toolkit.function_text import function_messages, has_function_calls
from builder.readers.toolkit.marks import finish_fault, ids_beside, is_history
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_int,
    as_list,
    as_str,
    is_json,
    json_in_text,
    name_or_none,
)
from builder.readers.toolkit.rows import with_media
from builder.readers.toolkit.thoughts import THOUGHT_TEXTS, read_thoughts
from builder.readers.toolkit.tool_forms import by_name
from builder.readers.toolkit.unknown_keys import UNKNOWN_COLUMN, noted, system_text, unknown_names


def _is_ollama(body: dict[str, Json]) -> bool:
    return isinstance(body.get("done"), bool) and "choices" not in body


def _choices_of(body: dict[str, Json]) -> list[dict[str, Json]]:
    """Returns the choices of a response or chunk; the one answer of Ollama or Cohere as a choice.

    Without `done: true` its end is missing. Older servers send no reason, the newest none that
    stands for calls.
    """
    if is_cohere(body):
        return [choice_of(body)]
    if not _is_ollama(body):
        return as_dicts(body.get("choices"))
    finish = (as_str(body.get("done_reason")) or "stop") if body["done"] else None
    return [{"index": 0, "message": as_dict(body.get("message")), "finish_reason": finish}]


_TEXTS = ("content", "refusal", *THOUGHT_TEXTS)
_IDS = ("token_ids", "output_ids")
_LISTS = ("reasoning_details", "annotations", "executed_tools")
_SEARCHES = ("citations", "search_results")
"""Fields of a response that list the pages behind its answers (Perplexity, xAI)."""


def whole_response(chunks: Iterable[Json]) -> dict[str, Json]:
    """Returns the assembled response: `choices` with complete messages, `model`.

    Choices without a finish_reason, and all choices of a stream with an error, get "length", since
    their end is missing.
    """
    choices: dict[int, _Choice] = {}
    model = ""
    searches: dict[str, Json] = {}
    prompt: Json = None
    broken = False
    for item in chunks:
        chunk = as_dict(item)
        broken = broken or bool(chunk.get("error"))
        model = model or as_str(chunk.get("model"))
        prompt = prompt or chunk.get("prompt_token_ids")
        searches |= {key: chunk[key] for key in _SEARCHES if chunk.get(key)}
        for piece in _choices_of(chunk):
            choices.setdefault(as_int(piece.get("index")), _Choice()).add(piece)
    return {
        **searches,
        **({"prompt_token_ids": prompt} if prompt else {}),
        "model": model,
        "choices": [
            {
                "index": at,
                **choices[at].ids,
                "message": choices[at].message(),
                "finish_reason": "length" if broken else choices[at].finish or "length",
            }
            for at in sorted(choices)
        ],
    }


class _Call:
    """A call that is assembled from its pieces."""

    def __init__(self, kind: str) -> None:
        self.kind = kind  # function or custom
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.value: Json = None  # arguments that came as a value instead of text

    @property
    def text(self) -> str:
        """Returns the arguments assembled so far."""
        return "".join(self.pieces)

    def add(self, call_id: str, body: dict[str, Json]) -> None:
        self.id = self.id or call_id
        self.name = self.name or as_str(body.get("name"))
        piece = body.get("input" if self.kind == "custom" else "arguments")
        if isinstance(piece, str):
            self.pieces.append(piece)
        elif piece is not None:
            self.value = piece

    def logged(self) -> Json:
        text = self.text
        arguments = self.value if self.value is not None and not text else text
        field = "input" if self.kind == "custom" else "arguments"
        body: dict[str, Json] = {"name": self.name, field: arguments}
        return {"id": self.id, "type": self.kind, self.kind: body}


class _Choice:
    """A choice that is assembled from its pieces."""

    def __init__(self) -> None:
        self.pieces: dict[str, list[str]] = {name: [] for name in _TEXTS}
        self.lists: dict[str, list[Json]] = {name: [] for name in _LISTS}
        self.calls: list[_Call] = []
        self.at: dict[int, _Call] = {}  # the current call of an index
        self.ids: dict[str, Json] = {}
        self.legacy = _Call("function")
        self.finish = ""

    def add(self, piece: dict[str, Json]) -> None:
        delta = as_dict(piece.get("delta")) or as_dict(piece.get("message"))
        for name in _TEXTS:
            if text := as_str(delta.get(name)):
                self.pieces[name].append(text)
        for part in as_dicts(delta.get("content")):
            self._part(part)
        for name in _LISTS:
            self.lists[name] += as_list(delta.get(name))
        for call in as_dicts(delta.get("tool_calls")):
            self._call(call)
        self.legacy.add("", as_dict(delta.get("function_call")))
        for name in _IDS:
            if ids := as_list(piece.get(name)):
                self.ids[name] = [*as_list(self.ids.get(name)), *ids]
        self.finish = as_str(piece.get("finish_reason")) or self.finish

    def _part(self, part: dict[str, Json]) -> None:
        """Adds a content part (Mistral), a piece of a thought or of the text."""
        self.pieces["content"].append(as_str(part.get("text")))
        thinking = part.get("thinking")
        thought = self.pieces["reasoning_content"]
        thought.append(as_str(thinking))
        thought += [as_str(item.get("text")) for item in as_dicts(thinking)]

    def _call(self, piece: dict[str, Json]) -> None:
        """Adds a piece of a call. Servers omit the index, use one for all, or send id "" later.

        A new id begins a call; without ids, so does a name after complete arguments.
        """
        kind = "custom" if as_str(piece, "custom", "name") else "function"
        call_id, body = as_str(piece.get("id")), as_dict(piece.get(kind))
        index = piece.get("index")
        at = index if isinstance(index, int) else -1
        call = self.at.get(at)
        if call is None or self._begins(call, call_id, body):
            call = _Call(kind)
            self.calls.append(call)
            self.at[at] = call
        call.add(call_id, as_dict(piece.get(call.kind)))

    @staticmethod
    def _begins(call: _Call, call_id: str, body: dict[str, Json]) -> bool:
        if call_id and call.id:
            return call_id != call.id
        is_whole = call.value is not None or is_json(call.text)
        return bool(as_str(body.get("name"))) and is_whole

    def message(self) -> dict[str, Json]:
        texts = {name: "".join(pieces) for name, pieces in self.pieces.items()}
        message: dict[str, Json] = {name: text for name, text in texts.items() if text}
        message |= {name: [*items] for name, items in self.lists.items() if items}
        if self.calls:
            message["tool_calls"] = [call.logged() for call in self.calls]
        if self.legacy.name:
            message["function_call"] = {"name": self.legacy.name, "arguments": self.legacy.text}
        return {"role": "assistant", **message}


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
    flat = _is_flat(items)
    messages = [
        message
        for item in items
        for message in noted(_read_message(item, changes, flat=flat), item)
    ]
    problems: tuple[Problem, ...] = ()
    tools = _tools(body)
    if tools is None:
        try:
            messages, tools = tools_in_text(messages, changes)
        except JsonFault as fault:
            problems = (replace(fault.at("request"), records=0),)
    return History(tuple(messages), tools, name_or_none(body.get("model")), problems, changes)


def _tools(body: dict[str, Json]) -> tuple[Json, ...] | None:
    """Returns a request's definitions: `tools` (perhaps as JSON text) and the older `functions`.

    Rows of verifiers and prime-rl have them in `tool_defs`, and may repeat them in `tools`; others
    have them inside another column (`_TOOL_PLACES`).
    """
    lists = [by_name(json_in_text(body.get(key))) for key in ("tools", "functions")]
    if not any(isinstance(value, list) for value in lists):
        places = [body.get("tool_defs")]
        for key, names in _TOOL_PLACES.items():
            inner = as_dict(json_in_text(body.get(key)))
            places += [value for name in names if (value := inner.get(name))]
        definitions = map(json_in_text, places)
        listed = next((value for value in definitions if isinstance(value, list)), None)
        return None if listed is None else tuple(map(json_in_text, listed))
    return tuple(tool for value in lists for tool in as_list(value))


def tools_in_text(
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


def _is_flat(items: Iterable[dict[str, Json]]) -> bool:
    """Returns whether calls and results are tags in the text, as in this project's own rows."""
    items = list(items)
    if any(_calls(item) or as_str(item.get("role")) in TOOL_ROLES for item in items):
        return False
    marks = {"assistant": "<tool_call>", "user": "<tool_response>"}
    return any(
        marks.get(as_str(item.get("role")), "\0") in as_str(item.get("content")) for item in items
    )


def _read_message(item: dict[str, Json], changes: Counter[str], *, flat: bool) -> Iterator[Message]:
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
        apart: list[Part] = []
        for part in parts:  # Glaive's data and its copies write calls into the text
            if isinstance(part, Text) and text_tags.FUNCTIONCALL in part.text:
                apart += text_tags.functioncall_parts(part.text, changes)
            else:
                apart.append(part)
        yield from read_thoughts(apart, changes)
    for part in parts if flat else ():
        if isinstance(part, Text):
            yield from text_tags.assistant_parts(part.text, changes)
        else:
            yield part
    if as_str(item, "audio", "id"):
        yield Media("audio")


def _plain_parts(value: Json) -> Json:
    """Returns content with refusals as text parts, since they are the model's own words."""
    if not isinstance(value, list):
        return value
    return [
        {"type": "text", "text": as_dict(part)["refusal"]}
        if as_str(part, "type") == "refusal" and isinstance(as_dict(part).get("refusal"), str)
        else part
        for part in value
    ]


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
    listed = as_list(value) if item.get("role") != "function" else []  # Qwen-Agent's {text}
    untyped = any(isinstance(part, dict) and "type" not in part for part in listed)
    parts = (Data(value),) if untyped else content(value)
    return replace(result, content=parts)


# -- answers -------------------------------------------------------------------------------------


def answers(exchange: Exchange) -> Sequence[ApiAnswer]:
    """Returns the choices of a response by index; () for an error or without choices."""
    body = exchange.answer_body(whole_response)
    choices = _choices_of(body)
    choices.sort(key=lambda choice: as_int(choice.get("index")))
    sent = as_dicts((exchange.request or {}).get("messages"))
    last = sent[-1] if sent else {}
    prefill = last.get("prefix") is True
    if _is_ollama(as_dict((exchange.events or (exchange.response,))[-1])):
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
    (message,) = noted(_read_message(item, changes, flat=_is_flat([*sent, item])), item)
    message = replace(message, tokens=ids_beside(item, choice, choice.get("meta_info"), body))
    if searched(item, body):
        message = replace(message, parts=(*message.parts, Unparsed("search", "server_tool")))
    finish, failed = choice.get("finish_reason"), bool(choice.get("error"))
    return ApiAnswer(
        message,
        # Servers use many names for a normal end; without one, the end is missing.
        fault="truncated" if failed or finish is None else finish_fault(finish),
        model=name_or_none(body.get("model")),
        changes=changes,
    )


def searched(message: dict[str, Json], body: dict[str, Json]) -> bool:
    """Returns whether the provider ran tools for an answer, whose results are not in the log.

    OpenAI's search models and OpenRouter cite pages in `annotations`, Perplexity and xAI in fields
    of the response. Groq's compound models list `executed_tools`.
    """
    annotations = as_dicts(message.get("annotations"))
    cited = any(as_str(one.get("type")).endswith("_citation") for one in annotations)
    return cited or any((message.get("executed_tools"), *map(body.get, _SEARCHES)))


def _continues(before: Json, after: Json) -> bool:
    """Returns whether a chunk belongs to the same response as the previous one.

    Its id shows it; Ollama's chunks have none, and the last one has `done: true`.
    """
    one, other = as_dict(before), as_dict(after)
    if _is_ollama(one) and _is_ollama(other):
        return one["done"] is False and one.get("model") == other.get("model")
    if not all("chunk" in as_str(chunk.get("object")) for chunk in (one, other)):
        return False
    return one.get("id") == other.get("id")


CHAT = Api(OPENAI_CHAT, history, answers, _continues)


_KEYS = frozenset({
    "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio",
    "annotations", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks",
    "weight", "id", "timestamp",
})  # fmt: skip
"""Keys of a message, including those added by programs that keep lists of messages."""
_CHATS = ("conversation", "conversations", "trajectory", "traj", "dialogue", "dialog", "turns")
"""Columns that hold the messages where a row has no `messages`."""
_LISTED = ("messages", *_CHATS, "prompt", "completion", "chosen", "rejected")
"""Columns of messages, which may be JSON text."""
_PROMPTS = ("prompt", "messages", "input")
_ANSWERS = ("completion", "response", "output")
"""Columns of a prompt, and of the answer to it."""
_PAIR = ("chosen", "rejected")


def is_chat(value: dict[str, Json]) -> bool:
    """Returns whether an object's `messages` are in the form of OpenAI chat."""
    messages = [as_dict(item) for item in as_list(value.get("messages"))]
    may_lack_type = has_function_roles(messages)
    return bool(messages) and all(
        _is_chat_message(item, may_lack_type=may_lack_type) for item in messages
    )


def _halves(row: dict[str, Json]) -> tuple[list[Json], list[Json]] | None:
    """Returns the messages of a prompt and those of its answer, if a row has them in two columns.

    Either may be a text, but not both. A prompt in `messages` does not end with an answer.
    """
    for key in _PROMPTS:
        prompt = _asked(row[key]) if key in row else None
        if prompt is None or (key == "messages" and as_str(prompt[-1], "role") == "assistant"):
            continue
        for name in _ANSWERS:
            answer = _answer_messages(row.get(name))
            if answer and not (isinstance(row[key], str) and isinstance(row[name], str)):
                return prompt, answer
    return None


def _is_preference(value: dict[str, Json]) -> bool:
    """Returns whether an object has two answers, after the messages of a prompt or with them."""
    prompt = value.get("prompt")
    if prompt is not None and not isinstance(prompt, str) and not _are_messages(prompt):
        return isinstance(prompt, list) and all(_are_messages(value.get(key)) for key in _PAIR)
    if _are_messages(prompt):
        return all(_answer_messages(value.get(key)) for key in _PAIR)
    return all(_are_messages(value.get(key)) for key in _PAIR)


def _asked(value: Json) -> list[Json] | None:
    if isinstance(value, str) and value:
        return [{"role": "user", "content": value}]
    return as_list(value) if _are_messages(value) else None


def _answer_messages(value: Json) -> list[Json]:
    """Returns the messages of an answer: its text, its message, or several; [] for other values.

    A list of one text is that text, as logs of calls with `n` have it. Bodies of responses, and
    their streams, are no answers but captures.
    """
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    if isinstance(value, str):
        is_text = value and not is_answer(value)
        return [{"role": "assistant", "content": value}] if is_text else []
    if isinstance(value, dict):
        value = [value]
    plain = _are_messages(value) and not any("type" in as_dict(item) for item in as_list(value))
    return as_list(value) if plain else []


def _are_messages(value: Json) -> bool:
    return isinstance(value, list) and is_chat({"messages": value})


def _unpacked(row: dict[str, Json]) -> dict[str, Json]:
    """Returns the row with its conversation in `messages`, which tables may hold as JSON text.

    Chat logs (LMSYS, WildChat) have messages of role and content in `conversation`, runs of
    OpenHands (SWE-rebench) in `trajectory`.
    """
    unpacked = {key: json_in_text(row[key]) for key in _LISTED if isinstance(row.get(key), str)}
    if changed := {key: value for key, value in unpacked.items() if isinstance(value, list)}:
        row = {**row, **changed}
    key = next((key for key in _CHATS if key in row), None)
    if "messages" not in row and key is not None:
        items = as_list(row[key])
        if items and all("role" in as_dict(item) and "content" in as_dict(item) for item in items):
            row = {"messages": items, **{name: row[name] for name in row if name != key}}
    return row


def _is_chat_message(message: dict[str, Json], *, may_lack_type: bool = False) -> bool:
    body = message.get("content")
    if as_str(message.get("role")) not in ROLES | TOOL_ROLES or not isinstance(
        body, str | list | None
    ):
        return False
    if isinstance(body, list):
        parts = [as_dict(part) for part in body]
        if any("value" in part for part in parts):
            return False  # LLaMA-Factory's typed parts
        typed = may_lack_type or message["role"] == "tool"
        if not typed and parts and not any("type" in part for part in parts):
            return False  # Bedrock's blocks
    return True


def is_list(values: Sequence[Json]) -> bool:
    """Returns whether values are all messages, at least one with a call or a result."""
    messages = [as_dict(value) for value in values]
    has_functions = has_function_roles(messages)
    if not is_chat({"messages": [*values]}) or any(one.keys() - _KEYS for one in messages):
        return False
    return has_functions or any("tool_calls" in one or one["role"] == "tool" for one in messages)


def is_plain_list(values: Sequence[Json]) -> bool:
    """Returns whether values are the messages of a whole conversation (XTuner)."""
    roles = {as_str(value, "role") for value in values if "content" in as_dict(value)}
    return roles >= {"user", "assistant"} and is_chat({"messages": [*values]})


def is_row(value: Json) -> bool:
    """Returns whether a record is a row, without a model or with an answer at the end."""
    if not isinstance(value, dict):
        return False
    value = _unpacked(value)
    if "preferred_output" in value:
        return is_chat(as_dict(value.get("input")))
    if _halves(value) is not None or _is_preference(value):
        return True
    if is_answer(value.get("response")):
        return False  # a capture
    if not is_chat(value) or anthropic.is_body(value):
        return False
    last = as_dict(as_list(value.get("messages"))[-1])
    return "model" not in value or (last.get("role") == "assistant" and not last.get("prefix"))


def is_worse(row: dict[str, Json]) -> bool:
    """Returns whether a row is labelled as an answer that is not preferred (KTO)."""
    worse = row.get("rejected") is True or row.get("chosen") is False
    return worse or row.get("label") is False or row.get("kto_tag") is False


def read_row(where: str, row: dict[str, Json]) -> Iterator[Event]:
    """Yields the row's conversation; of a preference pair, with the preferred output.

    The other output, and an answer labelled as worse, is rejected (`dispreferred`).
    """
    for output in _outputs(where, _unpacked(row)):
        yield dispreferred(output, records=output.records) if is_worse(row) else output


def _outputs(where: str, row: dict[str, Json]) -> Iterator[Conversation | Problem]:
    if (halves := _halves(row)) is not None:
        before, after = halves
        after = after[_repeated(before, after) :]
        before = [_context(as_dict(item)) for item in before]
        whole = _conversation(where, where, {**row, "messages": before}, after)
        whole = replace(whole, recorded=True) if isinstance(whole, Conversation) else whole
        yield whole
        return
    if _is_preference(row):
        prompt = row.get("prompt")
        prior: list[Json] = as_list(prompt)
        if isinstance(prompt, str):
            prior = [{"role": "user", "content": prompt}]
        chosen, rejected = _answer_messages(row["chosen"]), _answer_messages(row["rejected"])
        if as_dict(chosen[0]).get("role") != "assistant":  # the answers contain their prompt
            prior = prior[: -_repeated(prior, chosen) or -len(prior)]
        prior = [_context(as_dict(item)) for item in prior]
        yield _conversation(where, where, {**row, "messages": prior}, chosen)
        worse = _conversation(f"{where} rejected", where, {**row, "messages": prior}, rejected)
        yield dispreferred(worse, records=0)
        return
    if "preferred_output" not in row:
        whole = _conversation(where, where, row, ())
        unread = unknown_names({key: row[key] for key in _ANSWERS if key in row}, ())
        if isinstance(whole, Conversation) and unread:
            counted = Counter(UNKNOWN_COLUMN + name for name in unread)
            whole = replace(whole, changes=Counter(whole.changes) + counted)
        yield whole
        return
    body = as_dict(row.get("input"))
    yield _conversation(where, where, body, as_list(row.get("preferred_output")))
    other = as_list(row.get("non_preferred_output"))
    if other:
        worse = _conversation(f"{where} not preferred", where, body, other)
        yield dispreferred(worse, records=0)


def _repeated(prompt: list[Json], output: list[Json]) -> int:
    """Returns how many messages at the end of a prompt its output repeats at its beginning.

    Rollouts of some environments (verifiers) log all messages so far as the completion.
    """

    def same(pair: tuple[Json, Json]) -> bool:
        one, other = map(as_dict, pair)
        return all(one.get(key) == other.get(key) for key in ("role", "content"))

    counts = range(min(len(prompt), len(output)), 0, -1)
    return next((n for n in counts if all(map(same, zip(prompt[-n:], output[:n], strict=True)))), 0)


def _context(message: dict[str, Json]) -> Json:
    return {**message, "weight": 0} if message.get("role") == "assistant" else message


def dispreferred(output: Conversation | Problem, *, records: int) -> Conversation | Problem:
    """Returns a conversation as one that its author marks as the worse one."""
    if isinstance(output, Problem):
        return replace(output, records=records)
    detail = "the output that was not preferred"
    problem = Problem("dispreferred", output.record, detail, records=0)
    return replace(output, records=records, problems=(*output.problems, problem))


def _history(body: dict[str, Json]) -> History:
    items = as_list(body.get("messages"))
    if not has_function_calls(items):
        return history(body)
    changes: Counter[str] = Counter()
    messages, defined = function_messages(items, changes)
    own = history({**body, "messages": []})
    return replace(own, messages=tuple(messages), tools=own.tools or defined, changes=changes)


def _conversation(
    name: str, where: str, body: dict[str, Json], output: list[Json] | tuple[()]
) -> Conversation | Problem:
    messages = [*as_list(body.get("messages")), *output]
    changes: Counter[str] = Counter()
    has_own = as_dict(messages[0]).get("role") in ("system", "developer")
    if system := system_text(body, changes, has_own=has_own):
        messages = [{"role": "system", "content": system}, *messages]
    read = _history({**body, "messages": messages})
    read = replace(read, changes=read.changes + changes)
    whole = with_media(read.messages, body)
    cut = "truncated" if body.get("is_truncated") is True else None  # verifiers
    fault = cut or finish_fault(body.get("finish_reason"))
    if fault is not None and whole and whole[-1].role == "assistant":
        whole[-1] = replace(whole[-1], parts=(*whole[-1].parts, Unparsed("", fault)))
    row = row_conversation(name, where, replace(read, messages=tuple(whole)))
    if isinstance(row, Conversation) and any(is_history(as_dict(item)) for item in messages):
        row = replace(row, recorded=True)
    return row
