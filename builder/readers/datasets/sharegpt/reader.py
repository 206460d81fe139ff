"""Reads ShareGPT rows and their dialects: LLaMA-Factory, its typed parts, Hermes, human/gpt.

Source: docs/formats/sharegpt.md. Rows are published as training samples, so a row that ends
with a call is complete, unless it states that its run was not (`completed`, `partial`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import Conversation, Event, Json, Message, Part, Text
from builder.jsonio import JsonFault
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.api.dialects import ROLES as OPENAI_ROLES
from builder.readers.api.openai_chat import TOOL_ROLES, dispreferred, is_worse
from builder.readers.datasets.chat_rows import published
from builder.readers.datasets.sharegpt.turns import ROLES, is_typed, read_turns, role_of
from builder.readers.datasets.toolace import text as toolace_text
from builder.readers.toolkit import literals, tags
from builder.readers.toolkit.function_text import function_messages, has_function_calls
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, json_in_text, name_of
from builder.readers.toolkit.rows import read_rows, row_name, splits, with_media
from builder.readers.toolkit.unknown_keys import system_text
from builder.sources.source import Source

_COLUMNS = frozenset({
    "system_prompt", "system_message", "function_description",
    "chosen_messages", "rejected_messages",
})  # fmt: skip
_TOOL_COLUMNS = ("tools", "tool_defs", "functions", "function_description")
_TURNS = (
    "conversations", "messages", "chosen_messages", "conversation", "dialogue", "dialog", "turns",
)  # fmt: skip
"""Columns of turns; `chosen_messages` is that of LLaMA-Factory's preferences."""


def recognise(source: Source) -> str | None:
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
    return read_rows(source, _row, _COLUMNS)


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    turns = json_in_text(next((row[key] for key in _TURNS if key in row), None))
    if not isinstance(turns, list):
        yield Problem("unknown_shape", where, "neither conversations nor messages")
        return
    chosen = _conversation(where, row, turns + _answer(row.get("chosen")), names)
    yield dispreferred(chosen, records=1) if is_worse(row) else chosen
    rejected = as_list(row.get("rejected_messages"))
    if answer := _answer(row.get("rejected")):
        rejected = turns + answer
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
    messages, listed_in_text = _messages(turns, changes)
    has_own = bool(messages) and messages[0].role == "system" and not row.get("system")
    if system := system_text(row, changes, has_own=has_own):
        messages.insert(0, Message("system", (Text(system),)))
    messages, embedded = _without_tools(messages, changes, problems, where)
    messages = with_media(messages, row)
    columns = (row.get(key) for key in _TOOL_COLUMNS)
    listed = _tools(next((it for it in columns if it is not None), None), changes, problems, where)
    if embedded is None:
        embedded = _tools(_typed_tools(turns), changes, problems, where)
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


def _messages(
    turns: list[Json], changes: Counter[str]
) -> tuple[list[Message], tuple[Json, ...] | None]:
    """Returns the messages, and the definitions that belong to calls in OpenHands' dialect."""
    items: list[Json] = [
        {"role": role_of(turn), "content": turn.get("value", turn.get("content")), **turn}
        for turn in as_dicts(turns)
    ]
    if len(items) == len(turns) and has_function_calls(items):
        return function_messages(items, changes)
    return read_turns(turns, changes), None


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


def _typed_tools(turns: list[Json]) -> Json:
    """Returns the value of a typed part `tools` (LLaMA-Factory's older form), or None."""
    for turn in turns:
        for part in as_list(turn, "content"):
            if as_dict(part).get("type") == "tools":
                return as_dict(part).get("value")
    return None


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
                    words, found = toolace_text.take_tools(words, changes)
            except JsonFault as fault:
                detail = f"<tools> of the system text: {fault.detail}"
                problems.append(Problem("bad_tools", where, detail, records=0))
                words, found = part.text, None
            parts += [Text(words)] if words else []
            tools = tools if found is None else (*(tools or ()), *found)
        if parts:
            kept.append(replace(message, parts=tuple(parts)))
    return kept, tools


READER = Reader(
    name="sharegpt",
    summary=(
        "ShareGPT rows: conversations of from and value (LLaMA-Factory, Hermes), messages of roles"
        " such as human and ai, or typed parts"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    generic=True,
    read=read,
    splits=splits,
)
