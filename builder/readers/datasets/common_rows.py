"""Reads rows in forms that many datasets share: ShareGPT's turns, and columns of texts.

Source: docs/formats/sharegpt.md, docs/formats/prompt-completion.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import (
    Content,
    Conversation,
    Event,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import JsonFault, dumps, json_type
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.dialects import ROLES as OPENAI_ROLES
from builder.readers.api.openai_chat import TOOL_ROLES, dispreferred, is_worse
from builder.readers.datasets.chat_rows import published, read_chat
from builder.readers.datasets.text_rows import results_in_text, take_introduced_tools
from builder.readers.toolkit import chat_messages, literals, tags
from builder.readers.toolkit.chat_messages import content_block, text_or_data
from builder.readers.toolkit.function_text import function_messages, has_function_calls
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, json_in_text, name_of
from builder.readers.toolkit.rows import read_rows, row_name, splits, with_media
from builder.readers.toolkit.thoughts import thought_in_text, thoughts_of_keys
from builder.readers.toolkit.unknown_keys import noted, system_text
from builder.sources.source import Source

# -- texts: prompt and completion, question and answer, preferences, ChatML ------------------------

_COLUMNS = (
    ("prompt", "completion"), ("instruction", "output"), ("query", "response"),
    ("prompt", "response"), ("instruction", "response"), ("text_input", "output"),
)  # fmt: skip
"""Columns of question and answer: TRL's, Alpaca's, ms-swift's, OpenRLHF's, Dolly's, Gemini's."""
_QUESTIONS = ("prompt", "question", "instruction", "query", "input")
_PREFERENCES = (
    ("chosen", "rejected"), ("chosen_response", "rejected_response"),
    ("response_chosen", "response_rejected"), ("preferred", "dispreferred"), ("better", "worse"),
    ("winner", "loser"), ("good", "bad"),
)  # fmt: skip
"""Columns of the better and the worse answer."""
_ANSWERS = ("completion", "response", "output")
_WORSE = ("rejected", "rejected_response")
"""Columns of a worse answer beside one that is not named as the better."""
_ROUNDS = (("human", "assistant"), ("input", "output"))
"""Keys of question and answer in the items of `conversation`: ms-swift's and XTuner's."""
_START, _END = "<|im_start|>", "<|im_end|>"
_MESSAGE = re.compile(r"\s*<\|im_start\|>(\w+)\n(.*?)(<\|im_end\|>|\Z)", re.DOTALL)
_AFTER = re.compile(r"\s*(?:<\|endoftext\|>|</s>)?\s*\Z")
_BEFORE = re.compile(r"\s*(?:<s>|<\|endoftext\|>|<bos>)?\s*")
_TURN = re.compile(r"(?:\A\s*|\n\n)(Human|Assistant): ?")


def _recognise(source: Source) -> str | None:
    for row in source.peek.objects:
        if "messages" in row or "conversations" in row:
            continue
        if (pair := _preference(row)) is not None:
            return f"texts of {' and '.join(pair)}"
        halves = [row.get(key) for key in ("prompt", "completion")]
        if all(isinstance(half, str) and not half.startswith('[{"') for half in halves):
            return "texts of prompt and completion"
        text = row.get("text")
        if isinstance(text, str) and _is_rendered(text):
            return "texts in ChatML"
        if (columns := _texts(row, _COLUMNS[1:])) is not None:
            return f"texts of {' and '.join(columns)}"
        if (columns := _round_columns(row)) is not None:
            return f"rounds of {' and '.join(columns)}"
    return None


def _texts(row: dict[str, Json], pairs: tuple[tuple[str, str], ...]) -> tuple[str, str] | None:
    found = (pair for pair in pairs if all(isinstance(row.get(key), str) for key in pair))
    return next(found, None)


def _preference(row: dict[str, Json]) -> tuple[str, str] | None:
    """Returns the columns of the better and the worse answer to a question, as texts."""
    pair = _texts(row, _PREFERENCES)
    if pair is None:
        chosen = isinstance(row.get("prompt"), str) and isinstance(row.get("chosen"), str)
        pair = ("chosen", "rejected") if chosen else None
    if pair is None or as_str(row, pair[0]).startswith('[{"'):
        return None
    has_question = any(isinstance(row.get(key), str) for key in _QUESTIONS)
    whole = all(len(_TURN.findall(as_str(row, key))) > 1 for key in pair)
    return pair if has_question or whole else None


def _round_columns(row: dict[str, Json]) -> tuple[str, str] | None:
    """Returns the keys of question and answer, if `conversation` is a list of rounds."""
    rounds = as_list(json_in_text(row.get("conversation")))
    for pair in _ROUNDS:
        if rounds and all(isinstance(as_dict(one).get(key), str) for one in rounds for key in pair):
            return pair
    return None


def _is_rendered(text: str) -> bool:
    opening = _BEFORE.match(text)
    return opening is not None and text.startswith(_START, opening.end())


def _events(where: str, row: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    if (pair := _preference(row)) is not None:
        for number, column in enumerate(pair):
            text = row.get(column)
            if isinstance(text, str):
                answered = _answered(where, row, text, names)
                yield dispreferred(answered, records=0) if number else answered
        return
    found = _row(where, row, names)
    yield dispreferred(found, records=1) if is_worse(row) else found
    for column in _WORSE:
        if isinstance(text := row.get(column), str):
            yield dispreferred(_answered(where, row, text, names), records=0)


def _answered(
    where: str, row: dict[str, Json], answer: str, names: Counter[str]
) -> Conversation | Problem:
    """Returns the conversation of a question, or a transcript, and one of the answers to it."""
    marks = [*_TURN.finditer(answer)]
    if len(marks) < 2:
        question = next((key for key in _QUESTIONS if isinstance(row.get(key), str)), "prompt")
        given = "output" if question == "instruction" else "completion"
        plain = {name: value for name, value in row.items() if name not in _ANSWERS}
        asked = question if question == "instruction" else "prompt"
        return _row(where, {**plain, asked: row.get(question), given: answer}, names)
    ends = [*(mark.start() for mark in marks[1:]), len(answer)]
    roles = {"Human": "user", "Assistant": "assistant"}
    messages = [
        _message(roles[mark[1]], answer[mark.end() : end].strip(), is_context=end < len(answer))
        for mark, end in zip(marks, ends, strict=True)
    ]
    name = row_name(where, row.get("id"), names)
    whole = read_chat(name, where, [*_system(row), *messages], row.get("tools"))
    return replace(whole, recorded=True) if isinstance(whole, Conversation) else whole


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    prompt, completion, text = (row.get(key) for key in ("prompt", "completion", "text"))
    name = row_name(where, row.get("id"), names)
    if isinstance(prompt, str) and completion is None:
        completion = row.get("response")
    if "prompt" not in row and (columns := _texts(row, _COLUMNS)) is not None:
        return read_chat(name, where, _question_and_answer(row, columns), row.get("tools"))
    if "prompt" not in row and (columns := _round_columns(row)) is not None:
        return read_chat(name, where, _rounds(row, columns), row.get("tools"))
    if isinstance(prompt, str) and isinstance(completion, str):
        if not _is_rendered(prompt):
            messages = [
                *_system(row), _message("user", prompt), _message("assistant", completion),
            ]  # fmt: skip
            return read_chat(name, where, messages, row.get("tools"))
        closed = completion if _END in completion else f"{completion}{_END}"
        text, context = prompt + closed, prompt.count(_END)
    else:
        context = 0
    if not isinstance(text, str) or not _is_rendered(text):
        return Problem("unknown_shape", where, "neither prompt and completion nor a text in ChatML")
    messages, is_cut = _messages(text, context)
    if not messages:
        return Problem("unknown_shape", where, "text between the messages")
    conversation = read_chat(name, where, messages, row.get("tools"))
    if is_cut and isinstance(conversation, Conversation):
        *before, last = conversation.messages
        last = replace(last, parts=(*last.parts, Unparsed("", "truncated")))
        conversation = replace(conversation, messages=(*before, last))
    if context and isinstance(conversation, Conversation):
        conversation = replace(conversation, recorded=True)
    return conversation


def _question_and_answer(row: dict[str, Json], columns: tuple[str, str]) -> list[Json]:
    question, answer = columns
    messages = _system(row)
    for pair in as_list(json_in_text(row.get("history"))):
        earlier, reply = (*as_list(pair), None, None)[:2]
        messages += [_message("user", as_str(earlier)), _message("assistant", as_str(reply))]
    more = (as_str(row.get(key)) for key in ("input", "context") if question == "instruction")
    asked = "\n".join(filter(None, (as_str(row[question]), *more)))
    return [*messages, _message("user", asked), _message("assistant", as_str(row[answer]))]


def _system(row: dict[str, Json]) -> list[Json]:
    text = system_text(row, Counter(), has_own=False)
    return [_message("system", text)] if text else []


def _rounds(row: dict[str, Json], columns: tuple[str, str]) -> list[Json]:
    messages = _system(row)
    for number, one in enumerate(as_list(json_in_text(row.get("conversation")))):
        texts = [as_str(one, key) for key in ("system", *columns)]
        if number or messages:
            texts[0] = ""
        roles = zip(("system", "user", "assistant"), texts, strict=True)
        messages += [_message(role, text) for role, text in roles if text]
    return messages


def _messages(text: str, context: int) -> tuple[list[Json], bool]:
    """Returns the messages of a rendered text, and whether the last one lacks its end.

    Answers among the first `context` messages have weight 0. Returns no messages if there is text
    between them.
    """
    messages: list[Json] = []
    start = _BEFORE.match(text)
    at = start.end() if start is not None else 0
    closed = True
    while message := _MESSAGE.match(text, at):
        role, body, end = message.groups()
        at = message.end()
        if not end and not body.strip():  # where a prompt ends
            break
        closed = bool(end)
        messages.append(_message(role, body, is_context=len(messages) < context))
    return (messages, not closed) if _AFTER.match(text, at) else ([], False)


def _message(role: str, content: str, *, is_context: bool = False) -> Json:
    weight: dict[str, Json] = {"weight": 0} if is_context and role == "assistant" else {}
    return {"role": role, "content": content, **weight}


# -- turns of from and value, and of roles and parts with other names ------------------------------

ROLES = {
    "human": "user", "user": "user",
    "gpt": "assistant", "assistant": "assistant", "bard": "assistant", "chatgpt": "assistant",
    "gpt-4": "assistant", "model": "assistant",
    "system": "system",
    "function_call": "call", "function-call": "call",
    "observation": "result", "function-response": "result", "function_response": "result",
    "tool": "result", "ipython": "result",
    "tool_call": "call", "tool_response": "result",
    "ai": "assistant", "bot": "assistant", "chatbot": "assistant", "bing": "assistant",
    "environment": "result", "tool_result": "result", "function": "result",
}  # fmt: skip
"""Roles by a turn's `from` (or `role`) in small letters; "call" is a turn with only calls."""

_WRAPPER = frozenset({"name", "content", "tool_call_id"})
"""The keys of the object in which Hermes and others wrap the output of a tool."""


def read_turns(turns: list[Json], changes: Counter[str]) -> list[Message]:
    """Returns the messages of a row's turns; a turn that is not an object is an unknown part.

    `changes` counts those of `assistant_parts`, and `result_unwrapped` for each result
    that was in an object of name and content.
    """
    messages: list[Message] = []
    called: list[str] = []  # names of the calls that the next results answer
    for item in turns:
        if not isinstance(item, dict):
            messages.append(Message("user", (unknown_part(json_type(item)),)))
            continue
        read = list(noted(_turn(item, called, changes), item))
        if read[0].role != "tool":
            if read[0].role != "assistant" or not messages or messages[-1].role != "assistant":
                called.clear()
            called += [part.name for part in read[0].parts if isinstance(part, ToolCall)]
        messages += read
    return messages


def _turn(item: dict[str, Json], called: list[str], changes: Counter[str]) -> list[Message]:
    role = role_of(item)
    value = item["value"] if "value" in item else item.get("content")
    blocks = tags.responses(value) if role == "user" and isinstance(value, str) else None
    if role == "result" or (blocks and called):
        results = _results(value, called, item, changes)
        return [Message("tool", (result,)) for result in results]
    parts = _parts(role, value, changes)
    if role not in ("assistant", "call"):
        return [Message(role, tuple(parts))]
    parts = [*thoughts_of_keys(item), *parts, *chat_messages.tool_calls(item.get("tool_calls"))]
    return [Message("assistant", tuple(parts))]


def role_of(turn: dict[str, Json]) -> str:
    """Returns the role of a turn (`ROLES`); an unknown one as logged."""
    source = as_str(turn.get("from")) or as_str(turn.get("role"))
    return ROLES.get(source.lower(), source[:40] or "none")


def is_typed(content: Json) -> bool:
    """Returns whether a message's content is a list of parts {type, value}."""
    parts = as_dicts(content)
    return bool(parts) and all("type" in part and "value" in part for part in parts)


def _parts(role: str, value: Json, changes: Counter[str]) -> list[Part]:
    if is_typed(value):
        return _typed(as_list(value), changes)
    if role == "call":
        return _calls(value, changes)
    if role == "assistant" and isinstance(value, str) and tags.FUNCTIONCALL in value:
        return tags.functioncall_parts(value, changes)
    if role == "assistant" and isinstance(value, str):
        return tags.assistant_parts(value, changes, thoughts=("think", "scratch_pad"))
    return list(text_or_data(value))


def _typed(parts: list[Json], changes: Counter[str]) -> list[Part]:
    """Reads LLaMA-Factory's parts {type, value}, except `tools`, which is read with the row."""
    read: list[Part] = []
    for item in parts:
        kind, value = as_str(item, "type"), as_dict(item).get("value")
        if kind == "text":
            read += text_or_data(value)
        elif kind == "reasoning" and isinstance(value, str):
            read.append(Reasoning(value))
        elif kind in ("tool_call", "tool_calls"):
            read += _calls(value, changes)
        elif kind != "tools":
            read.append(content_block(item))
    return read


def _calls(value: Json, changes: Counter[str]) -> list[Part]:
    """Returns the calls in a turn of calls: an object or a list, possibly after reasoning."""
    if not isinstance(value, str):
        found = tags.calls_of(value)
        return [*found] if found is not None else [Unparsed(dumps(value), "bad_call")]
    calls = tags.read_calls(value, changes)
    if calls is not None:
        return [*calls]
    if "<tool_call>" in value:
        return tags.assistant_parts(value, changes)
    if (split := thought_in_text(value)) is not None:
        thought, rest = split
        calls = tags.read_calls(rest, changes)
        if calls is not None:
            return [*([Reasoning(thought)] if thought.strip() else []), *calls]
    return [Unparsed(value, "bad_call")]


def _results(
    value: Json, called: list[str], turn: dict[str, Json], changes: Counter[str]
) -> list[ToolResult]:
    """Returns the results in one turn: `<tool_response>` blocks, texts joined by them, or one."""
    call_id, name = name_of(turn, "tool_call_id"), name_of(turn, "name")
    if is_typed(value):
        typed = _typed(as_list(value), changes)
        parts = tuple(part for part in typed if isinstance(part, Content))
        if not all(isinstance(part, Text) for part in parts):
            return [ToolResult(parts, call_id, name)]
        value = "".join(part.text for part in parts if isinstance(part, Text))
    if not isinstance(value, str):
        return [ToolResult(text_or_data(value), call_id, name)]

    def wraps(item: dict[str, Json]) -> bool:
        known = "tool_call_id" in item or item.get("name") in called
        return "content" in item and set(item) <= _WRAPPER and known

    blocks = tags.responses(value) or tags.split_responses(value)
    unwrapped = (results_in_text(block, called, changes, wraps, "content") for block in blocks)
    results = [result for listed in unwrapped for result in listed]
    if len(results) == 1 and (call_id or name):
        return [ToolResult(results[0].content, call_id, name or results[0].name)]
    return results


_TOOL_COLUMNS = ("tools", "tool_defs", "functions", "function_description")
_TURNS = (
    "conversations", "messages", "chosen_messages", "conversation", "dialogue", "dialog", "turns",
)  # fmt: skip
"""Columns of turns; `chosen_messages` is that of LLaMA-Factory's preferences."""


def _recognise_conversations(source: Source) -> str | None:
    """Claims rows with turns of `from` and `value`, of other roles, or of typed parts."""
    for row in source.peek.objects:
        turns = as_dicts(json_in_text(row.get("conversations")))
        if turns and all("value" in turn and as_str(turn.get("from")) in ROLES for turn in turns):
            return "conversations of from and value"
        if any(_has_other_roles(as_list(json_in_text(row.get(key)))) for key in _TURNS):
            return "messages with roles of other names (human, ai, observation, …)"
        messages = as_list(row.get("messages", row.get("chosen_messages")))
        contents = [as_dict(item).get("content") for item in messages]
        lists = [content for content in contents if isinstance(content, list)]
        if lists and all(is_typed(content) for content in lists):
            return "messages of typed parts (type, value)"
    return None


def _has_other_roles(items: list[Json]) -> bool:
    """Returns whether items are messages of role and content, some with other roles than OpenAI's.

    Whoever answers and whoever asks must be known.
    """
    turns = as_dicts(items)
    names = {as_str(turn, "role").lower() for turn in turns}
    if not turns or len(turns) < len(items) or not names <= ROLES.keys():
        return False
    whole = all(isinstance(turn.get("content"), str | None) for turn in turns)
    own = {as_str(turn, "role") for turn in turns} - OPENAI_ROLES - TOOL_ROLES
    return whole and bool(own) and {"user", "assistant"} <= {ROLES[name] for name in names}


def read(source: Source) -> Iterator[Event]:
    """Yields a conversation for each row, and one for each rejected answer of a preference."""
    return read_rows(source, _turns_of_row, "sharegpt")


def _turns_of_row(where: str, row: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    turns = json_in_text(next((row[key] for key in _TURNS if key in row), None))
    if not isinstance(turns, list):
        yield Problem("unknown_shape", where, "neither conversations nor messages")
        return
    chosen = _conversation(where, row, turns + _answer(row.get("chosen")), names)
    yield dispreferred(chosen, records=1) if is_worse(row) else chosen
    worse = _answer(row.get("rejected"))
    rejected = turns + worse if worse else as_list(row.get("rejected_messages"))
    if rejected:
        yield dispreferred(_conversation(where, row, rejected, names), records=0)


def _answer(value: Json) -> list[Json]:
    """Returns the turn in a preference column, which may be its text; [] if there is none."""
    if value is None:
        return []
    return [value if isinstance(value, dict) else {"from": "gpt", "value": value}]


def _conversation(
    where: str, row: dict[str, Json], turns: list[Json], names: Counter[str]
) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    problems: list[Problem] = []
    items: list[Json] = [
        {"role": role_of(turn), "content": turn.get("value", turn.get("content")), **turn}
        for turn in as_dicts(turns)
    ]
    listed_in_text: tuple[Json, ...] | None = None
    if len(items) == len(turns) and has_function_calls(items):
        messages, listed_in_text = function_messages(items, changes)
    else:
        messages = read_turns(turns, changes)
    has_own = bool(messages) and messages[0].role == "system" and not row.get("system")
    if system := system_text(row, changes, has_own=has_own):
        messages.insert(0, Message("system", (Text(system),)))
    messages, embedded = _without_tools(messages, changes, problems, where)
    messages = with_media(messages, row)
    columns = (row.get(key) for key in _TOOL_COLUMNS)
    listed = _tools(next((it for it in columns if it is not None), None), changes, problems, where)
    if embedded is None:
        parts = (as_dict(part) for turn in turns for part in as_list(turn, "content"))
        typed = (part.get("value") for part in parts if part.get("type") == "tools")
        embedded = _tools(next(typed, None), changes, problems, where)
    if not messages:
        detail = f"{len(turns)} turns, none of which can be read"
        return Problem("no_messages", where, detail)
    name = row_name(where, row.get("id"), names)
    embedded = listed_in_text if embedded is None else embedded
    tools = listed or embedded if embedded is not None else listed
    complete = row.get("completed") is not False and row.get("partial") is not True
    conversation = published(name, where, messages, tools, changes, problems, complete=complete)
    model = name_of(row, "model") or name_of(as_dict(row.get("metadata")), "model")
    return replace(conversation, model=model)


def _tools(
    value: Json, changes: Counter[str], problems: list[Problem], where: str
) -> tuple[Json, ...] | None:
    """Returns the definitions in the tools column: a list, one definition, or the text of either.

    "" means no tools. Text that cannot be read is the problem `bad_tools`, since the model had
    tools that are unknown.
    """
    if value is None or value == "":
        return None if value is None else ()
    if isinstance(value, str):
        try:
            tools = literals.values(value, changes)
        except JsonFault as fault:
            problems.append(Problem("bad_tools", where, f"tools: {fault.detail}", records=0))
            return None
        value = tools[0] if len(tools) == 1 else tools
    return None if value is None else tuple(value) if isinstance(value, list) else (value,)


def _without_tools(
    messages: list[Message], changes: Counter[str], problems: list[Problem], where: str
) -> tuple[list[Message], tuple[Json, ...] | None]:
    """Returns the messages without the definitions in system texts, and these or None."""
    kept: list[Message] = []
    tools: tuple[Json, ...] | None = None
    for message in messages:
        if message.role != "system":
            kept.append(message)
            continue
        parts: list[Part] = []
        for part in message.parts:
            if not isinstance(part, Text):
                parts.append(part)
                continue
            try:
                words, found = tags.take_tools(part.text, changes)
                if found is None:
                    words, found = tags.take_listed_tools(words, changes)
                if found is None:
                    words, found = take_introduced_tools(words, changes)
            except JsonFault as fault:
                detail = f"<tools> of the system text: {fault.detail}"
                problems.append(Problem("bad_tools", where, detail, records=0))
                words, found = part.text, None
            parts += [Text(words)] if words else []
            tools = tools if found is None else (*(tools or ()), *found)
        if parts:
            kept.append(replace(message, parts=tuple(parts)))
    return kept, tools


READERS = (
    declared(
        "prompt-completion",
        recognise=_recognise,
        read=lambda source: read_rows(source, _events, "prompt-completion"),
        splits=splits,
    ),
    declared("sharegpt", recognise=_recognise_conversations, read=read, splits=splits),
)
