"""Parses tags in message text: calls, reasoning, tool results and tool definitions.

The tags are those of Hermes, which Qwen3 adopted (docs/formats/sharegpt.md).
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from dataclasses import replace

from builder.conversation import Json, Part, Reasoning, Text, ToolCall, Unparsed
from builder.jsonio import JsonFault, dumps
from builder.readers.toolkit.literals import items, past_space, scan
from builder.readers.toolkit.narrow import as_dict, is_json, name_or_none, one_or_many

MAX_CLOSINGS = 8
"""Maximum number of closing tags to try for one call, whose strings may contain such tags."""

_LINE_INDENT = 80
"""Maximum indentation of a tag that begins a line, in characters."""
_LONGEST_SENTENCE = 1000
"""Maximum distance from a tag pair to the ends of the sentence that names it, in characters."""

FUNCTIONCALL = "<functioncall>"
"""Glaive's tag before a call, which ends its turn."""
_CALL_END = "</tool_call>"
_QUOTED = re.compile(
    r"""\s*\{\s*"name"\s*:\s*"(?P<name>[^"\\]+)"\s*,\s*"arguments"\s*:\s*'(?P<arguments>.*)'\s*\}\s*""",
    re.DOTALL,
)
_VALUE = re.compile(r"\s*(?:[\[{]|<function=)")
_NEWLINES = re.compile(r"\n*")
_RESPONSE, _RESPONSE_END = "<tool_response>", "</tool_response>"
_RESPONSE_JOINT = re.compile(r"\n?</tool_response>\s*<tool_response>\n?")


def call_of(value: Json) -> ToolCall | None:
    """Returns the call that an object describes, or None.

    Shapes: {"name", "arguments"}, Llama's {"name", "parameters"} and OpenAI's
    {"id", "type", "function": {"name", "arguments"}}. Missing arguments are None.
    """
    item = as_dict(value)
    body = as_dict(item["function"]) if "function" in item else item
    name = name_or_none(body.get("name"))
    if name is None:
        return None
    arguments = body["arguments"] if "arguments" in body else body.get("parameters")
    return ToolCall(name, arguments, id=name_or_none(item.get("id")))


def calls_of(value: Json) -> list[ToolCall] | None:
    """Returns the calls that an object, or a list of objects, describes; None if one is no call."""
    listed = one_or_many(value)
    calls = [call for item in listed if (call := call_of(item)) is not None]
    return calls if calls and len(calls) == len(listed) else None


def read_calls(text: str, changes: Counter[str]) -> list[ToolCall] | None:
    """Returns the calls of a text that contains only calls (objects, or a list of them), or None.

    Glaive and its derivatives quote the JSON of the arguments without escaping it, so that the last
    quote ends it; such arguments stay text.
    """
    if (quoted := _QUOTED.fullmatch(text)) and is_json(quoted["arguments"]):
        return [ToolCall(quoted["name"], quoted["arguments"])]
    trial: Counter[str] = Counter()
    try:
        calls = calls_of(items(text, trial))
    except JsonFault:
        return None
    if calls is None:
        return None
    changes.update(trial)
    return [
        # Kept as text, the nulls are known to be the model's, not those of a table.
        replace(call, arguments=dumps(call.arguments))
        if isinstance(call.arguments, dict) and None in call.arguments.values()
        else call
        for call in calls
    ]


def assistant_parts(
    text: str, changes: Counter[str], *, thoughts: tuple[str, ...] = ("think",)
) -> list[Part]:
    """Returns the parts of an assistant's text in order: text, reasoning, calls, invalid calls.

    `thoughts` names the tags that contain reasoning if they begin a line. One newline between text
    and a call belongs to the format, and so do all newlines around reasoning. Tags that the text
    merely mentions stay in it. `changes` counts `python_literal`, and `unclosed_call` for a whole
    call at the end without its closing tag (servers that stop at the tag do not log it).
    """
    opening = re.compile("<(" + "|".join((*thoughts, "tool_call")) + ")>")
    last_end = {tag: text.rfind(f"</{tag}>") for tag in (*thoughts, "tool_call")}
    parts: list[Part] = []
    words_from = at = 0
    while tag := opening.search(text, at):
        is_call = tag[1] == "tool_call"
        closed = tag.end() <= last_end[tag[1]]
        before = text[max(words_from, tag.start() - _LINE_INDENT) : tag.start()].rstrip(" \t")
        begins_line = not before or before.endswith("\n")
        if is_call:
            block = _call(text, tag.end(), begins_line, closed, changes)
        else:
            block = _thought(text, tag, closed) if begins_line else None
        if block is None:  # the text merely mentions the tag
            at = tag.end()
            continue
        words = text[words_from : tag.start()]
        parts += _words(words.removesuffix("\n") if is_call else words.rstrip("\n"))
        parts += block[0]
        newlines = _NEWLINES.match(text, block[1])
        assert newlines is not None
        words_from = at = min(newlines.end(), block[1] + 1) if is_call else newlines.end()
    return [*parts, *_words(text[words_from:])]


def functioncall_parts(text: str, changes: Counter[str], tag: str = FUNCTIONCALL) -> list[Part]:
    """Returns an assistant's text and the calls after Glaive's tags or others, maybe closed."""
    words, found, body = text.partition(tag)
    if not found:
        return _words(text)
    parts = _words(words.rstrip())
    calls = read_calls(body.strip(), changes)
    if calls is not None:
        return [*parts, *calls]
    for piece in body.split(tag):
        inner, _, after = piece.partition(tag.replace("<", "</"))
        calls = read_calls(inner.strip(), changes)
        parts += [Unparsed(inner.strip(), "bad_call")] if calls is None else calls
        parts += _words(after.strip())
    return parts


def _words(text: str) -> list[Part]:
    return [Text(text)] if text.strip() else []


def _thought(text: str, tag: re.Match[str], closed: bool) -> tuple[list[Part], int] | None:
    """Returns the reasoning after a tag, and its end; None if the text merely mentions the tag."""
    if not closed:
        opens_text = past_space(text, 0) == tag.start()
        return ([Unparsed(text[tag.start() :], "truncated")], len(text)) if opens_text else None
    end = text.index(f"</{tag[1]}>", tag.end())
    thought = text[tag.end() : end].strip("\n")
    return [Reasoning(thought)] if thought.strip() else [], end + len(f"</{tag[1]}>")


def _call(
    text: str, start: int, begins_line: bool, closed: bool, changes: Counter[str]
) -> tuple[list[Part], int] | None:
    """Returns the calls after a tag, and their end; None if the text merely mentions the tag."""
    is_value = _VALUE.match(text, start) is not None
    if not is_value and not (begins_line and closed):
        return None
    if not closed:
        calls = read_calls(text[start:], changes)
        if calls is None:
            return [Unparsed(text[start:], "bad_call")], len(text)
        changes["unclosed_call"] += 1
        return list(calls), len(text)
    first = end = text.find(_CALL_END, start)
    for _ in range(MAX_CLOSINGS if is_value else 0):
        calls = read_calls(text[start:end], changes)
        if calls is not None:
            return list(calls), end + len(_CALL_END)
        end = text.find(_CALL_END, end + 1)
        if end < 0:
            break
    return [Unparsed(text[start:first].strip("\n"), "bad_call")], first + len(_CALL_END)


def responses(text: str) -> list[str] | None:
    """Returns the tool results of a message of `<tool_response>` blocks; None for other text.

    One newline on each side of a result belongs to the tags.
    """
    stripped = text.strip()
    if not stripped.startswith(_RESPONSE) or not stripped.endswith(_RESPONSE_END):
        return None
    inner = stripped[len(_RESPONSE) : -len(_RESPONSE_END)]
    return split_responses(inner.removeprefix("\n").removesuffix("\n"))


def split_responses(text: str) -> list[str]:
    """Splits a text at each pair of a closing and an opening tag."""
    return _RESPONSE_JOINT.split(text)


# -- definitions in the system text --------------------------------------------------------------


def _sentences(*patterns: str) -> re.Pattern[str]:
    spaced = (pattern.replace(" ", r"\s+") for pattern in patterns)
    return re.compile("(?:" + "|".join(spaced) + r")\s*", re.IGNORECASE | re.MULTILINE)


_TOOLS = re.compile(r"<tools>(?P<body>[^<]*(?:<(?!/?tools>)[^<]*)*)</tools>\s*")
_EXAMPLE = re.compile(
    r"(?:examples?\s*:\s*)?"
    r"<(?P<tag>tool_call|scratch_pad)>(?P<body>[^<]*(?:<(?!/?(?P=tag)>)[^<]*)*)</(?P=tag)>\s*",
    re.IGNORECASE,
)
_MENTION = re.compile(r"<(tools|tool_call|tool_response|scratch_pad)>\s*</\1>")
_SCHEMA = re.compile(r"pydantic\s+model\s+json\s+schema[^:\n]*:\s*(?=\{)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.:!?](?=\s|$)|(?=\n)|$")
_BOILERPLATE = _sentences(
    r"You are a function calling AI (?:model|agent)(?: with self-recursion)?\.",
    r"You (?:may|can) call one or more functions to assist with the user query\.",
    r"If (?:the )?available tools are not relevant in assisting with (?:the )?user query, "
    r"(?:just )?respond in natural conversational language\.",
    r"Don.t make assumptions about what values to plug into functions?(?: arguments)?\.",
    r"Here are the available tools:",
    r"^# Tools$",
)


def take_tools(text: str, changes: Counter[str]) -> tuple[str, tuple[Json, ...] | None]:
    """Splits a system text into the author's own text and its tool definitions, None without any.

    Also removes the explanation of the call format, since the chat template has its own. `changes`
    counts `tools_preamble`. Raises JsonFault if a `<tools>` block cannot be parsed.
    """
    definitions: list[Json] | None = None
    spans: list[tuple[int, int]] = []
    for block in _TOOLS.finditer(text):
        body = block["body"].strip()
        if body:
            definitions = [*(definitions or []), *items(body, changes)]
            spans.append(block.span())
    text, cut = _without(text, spans)
    text, more = _without(text, _format_spans(text))
    cut += more
    text, more = _without(text, _mention_spans(text))
    if cut := cut + more:
        text = re.sub(_BOILERPLATE, "", text).strip()
        changes["tools_preamble"] += 1
    return text, None if definitions is None else tuple(definitions)


def _format_spans(text: str) -> list[tuple[int, int]]:
    spans = []
    if phrase := _SCHEMA.search(text):
        with contextlib.suppress(JsonFault):
            _, end = scan(text, phrase.end())
            spans.append((_sentence_start(text, phrase.start()), past_space(text, end)))
    for example in _EXAMPLE.finditer(text):
        body = example["body"]
        if body.strip() and read_calls(body, Counter()) is None:
            spans.append(example.span())
    return spans


def _mention_spans(text: str) -> list[tuple[int, int]]:
    spans = []
    for mention in _MENTION.finditer(text):
        limit = min(len(text), mention.end() + _LONGEST_SENTENCE)
        end = _SENTENCE_END.search(text, mention.end(), limit)
        assert end is not None
        spans.append((_sentence_start(text, mention.start()), past_space(text, end.end())))
    return spans


def _sentence_start(text: str, at: int) -> int:
    """Returns where the sentence at `at` begins: after a newline, or a mark and a space."""
    limit = max(0, at - _LONGEST_SENTENCE)
    marks = [text.rfind(mark, limit, at) + 2 for mark in (". ", ": ", "! ", "? ")]
    return max(limit, text.rfind("\n", limit, at) + 1, *(mark for mark in marks if mark > 1))


def _without(text: str, spans: list[tuple[int, int]]) -> tuple[str, int]:
    kept = []
    at = 0
    for start, end in sorted(spans):
        kept.append(text[at : max(at, start)])
        at = max(at, end)
    return "".join([*kept, text[at:]]), len(spans)


_LISTED = re.compile(
    r",? with access to the following functions\. Use them if required -\s*(?=[\[{])", re.IGNORECASE
)
_NO_LISTED = re.compile(r"with no access to (?:external )?functions", re.IGNORECASE)


def _bare_definitions(system: str, changes: Counter[str]) -> tuple[Json, ...] | None:
    """Returns the definitions of a system text that contains nothing else, or None."""
    if system[:1] not in ("{", "["):
        return None
    trial: Counter[str] = Counter()
    try:
        listed = items(system, trial)
    except JsonFault:
        return None
    specs = [as_dict(as_dict(one).get("function", one)) for one in listed]
    if not specs or not all("name" in spec and "parameters" in spec for spec in specs):
        return None
    changes.update(trial)
    return tuple(listed)


_ENDS_LINE = re.compile(r"[}\]][ \t]*$", re.MULTILINE)


def take_listed_tools(system: str, changes: Counter[str]) -> tuple[str, tuple[Json, ...] | None]:
    """Returns a system text without the definitions that Glaive lists in it, and these.

    They are () if it states that there are none, None if it does not mention any. Prose after the
    definitions follows the text before them.

    Raises JsonFault if they cannot be read.
    """
    found = _LISTED.search(system)
    if found is None:
        if (bare := _bare_definitions(system, changes)) is not None:
            return "", bare
        return system, () if _NO_LISTED.search(system) else None
    prose, listed = system[: found.start()].strip(), system[found.end() :]
    trial: Counter[str] = Counter()
    try:
        definitions = items(listed, trial)
    except JsonFault:
        end = max((match.end() for match in _ENDS_LINE.finditer(listed)), default=0)
        if not end or not listed[end:].strip():
            raise
        trial.clear()
        definitions = items(listed[:end], trial)
        prose = "\n\n".join(filter(None, (prose, listed[end:].strip())))
    changes.update(trial)
    changes["tools_preamble"] += 1
    return prose, tuple(definitions)
