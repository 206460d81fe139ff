"""Parses renderings back into samples, and flat samples into structured dialogues."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads
from builder.qwen3.constants import ADDED_TOKENS, EMPTY_THINK, TOOLS_BEGIN, TOOLS_END
from builder.qwen3.render import CallText, find_calls
from builder.qwen3.style import SPECIFIED, Style, Thoughts
from builder.sample import Call, Dialogue, Sample, Turn

_HEAD = re.compile(r'\{"name": "([^"\\\x00-\x1f]*)", "arguments": ')


class ParseFault(ValueError):
    """Text that no rendering contains: the `code` of the fault and its `offset` in code points."""

    def __init__(self, code: str, detail: str, offset: int = 0) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.offset = offset


def parse(text: str, style: Style = SPECIFIED) -> Sample:
    """Returns the sample that renders to `text` in this style. Raises ParseFault.

    The empty think block that the template adds to a last turn without thoughts is removed; other
    think blocks stay in the content. The template's default system text is not part of the sample.
    """
    messages: list[tuple[str, str]] = []
    tools: tuple[tuple[Json, str], ...] = ()
    at = 0
    while at < len(text):
        start = at
        if not text.startswith("<|im_start|>", at):
            raise ParseFault("inverse", "a turn does not begin with <|im_start|>", at)
        line = text.find("\n", at)
        end = text.find("<|im_end|>", at)
        if line < 0 or end < line or not text.startswith("\n", end + len("<|im_end|>")):
            raise ParseFault("inverse", "a turn does not end with <|im_end|> and a newline", at)
        role, content = text[at + len("<|im_start|>") : line], text[line + 1 : end]
        at = end + len("<|im_end|>\n")
        if role not in ("system", "user", "assistant"):
            raise ParseFault("inverse", f"unknown role {role[:40]!r}", start)
        if "<|im_start|>" in content:
            raise ParseFault("inverse", "<|im_start|> inside a turn", start)
        if role == "system" and start == 0:
            system, tools = split_tools(content, style.tools_lead)
            if system is not None and (tools or system != style.default_system):
                messages.append((role, system))
            continue
        if role == "assistant" and style.thoughts is Thoughts.hybrid:
            content = content.removeprefix(EMPTY_THINK)
        messages.append((role, content))
    return Sample.written(tuple(messages), tools)


def split_tools(content: str, lead: str = "") -> tuple[str | None, tuple[tuple[Json, str], ...]]:
    """Splits the first system turn into (system text or None, definitions with their JSON texts).

    The system text may quote a tools block, so the last header counts. A definition is one line.
    """
    if not content.endswith(TOOLS_END):
        return content, ()
    begin = content.rfind(TOOLS_BEGIN + "\n", 0, -len(TOOLS_END))
    bare = content[: max(begin, 0)] == lead
    if begin < 0 or not (bare or content[:begin].endswith("\n\n")):
        return content, ()
    listing = content[begin + len(TOOLS_BEGIN) + 1 : -len(TOOLS_END)]
    try:
        tools = tuple(map(_definition, listing.split("\n")))
    except JsonFault:
        return content, ()
    return None if bare else content[: begin - 2], tools


@lru_cache(maxsize=1024)
def _definition(line: str) -> tuple[Json, str]:
    """Returns (definition, its JSON text). Cached: samples share definitions. Raises JsonFault."""
    tool = loads(line)
    return tool, dumps(tool)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An assistant content split into thought, text and calls."""

    thought: str
    text: str
    calls: tuple[Call, ...]


def split_answer(content: str) -> ParsedAnswer:
    """Splits a flat assistant content into thought, text and calls.

    `flatten` joins the parts into the same content, except for an empty think block and a newline
    before a call without text, which the check `inverse` reports. Call markup that is not a call
    as the specification's pattern finds it is a fault. Raises ParseFault (`calls`, `tools`,
    `lossy`) with an offset into `content`.
    """
    thought, body = leading_thought(content)
    if content not in (body, f"<think>\n{thought}\n</think>\n\n{body}"):
        raise ParseFault("lossy", "the think block is not in the template's form")
    end = len(content) - len(body)
    text = body
    calls: list[Call] = []
    for found in find_calls(content, end):
        between = content[end : found.start]
        if not calls:
            text = between.removesuffix("\n")
            if between and between == text:
                detail = "no newline between the text and the first <tool_call>"
                raise ParseFault("calls", detail, found.start)
            _no_markup(text, end)
        elif between != "\n":
            raise ParseFault("calls", "calls are not joined by one newline", end)
        calls.append(read_call(found, content))
        end = found.end
    if not calls:
        _no_markup(text, end)
    elif end < len(content):
        raise ParseFault("calls", "text after the last </tool_call>", end)
    return ParsedAnswer(thought, text, tuple(calls))


def _no_markup(text: str, at: int) -> None:
    """Raises ParseFault if the text, which starts at offset `at`, contains tags of calls."""
    if found := re.search("</?tool_call>", text):
        raise ParseFault("calls", "<tool_call> markup without a call", at + found.start())


def leading_thought(content: str) -> tuple[str, str]:
    """Returns (thought, rest) of a content that starts with a think block, else ("", content).

    Strips newlines at both ends of the thought and before the rest. A closing tag elsewhere is
    text; the verifier reports how the template treats it.
    """
    begun = content.lstrip("\n")
    if not begun.startswith("<think>") or "</think>" not in begun:
        return "", content
    thought, _, rest = begun.removeprefix("<think>").partition("</think>")
    return thought.strip("\n"), rest.lstrip("\n")


_BREAKS_JSON = re.compile(r'["\\\x00-\x1f\x7f-\x9f]')
UNFIT_NAME = "a name that contains a quote, a backslash or a control character"


def breaks_json(name: str) -> bool:
    """Returns whether a tool's name breaks the JSON of a call: the template does not escape it."""
    return _BREAKS_JSON.search(name) is not None


def read_call(found: CallText, content: str) -> Call:
    """Returns the call at a match of `find_calls`. Raises ParseFault (`calls`, `tools`)."""
    inner, at = found.inner, found.inner_at
    if content[found.start : found.end] != f"<tool_call>\n{inner}\n</tool_call>":
        detail = "no newline after <tool_call> or before </tool_call>"
        raise ParseFault("calls", detail, found.start)
    try:
        value = loads(inner)
    except JsonFault as fault:
        raise ParseFault("calls", f"the call is not JSON: {fault.detail}", at) from None
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        raise ParseFault("calls", "a call has only name and arguments", at)
    name, arguments = value["name"], value["arguments"]
    if isinstance(name, str) and breaks_json(name):
        raise ParseFault("tools", f"{name[:80]!r}: {UNFIT_NAME}", at)
    head = _HEAD.match(inner)
    if head is None or not isinstance(name, str) or head[1] != name:
        detail = 'a call begins with {"name": "…", "arguments": and a name without escapes'
        raise ParseFault("calls", detail, at)
    if not isinstance(arguments, dict):
        raise ParseFault("calls", "the arguments are not a JSON object", at + head.end())
    return Call(name, arguments, inner[head.end() : -1])


def is_canonical(call: Call) -> bool:
    """Returns whether the arguments are written as by `tojson`, except for escaped tokens."""
    return call.text == call.plain or _unescaped_tokens(call.text) == call.plain


_SPELLINGS = {
    "<": r"(?:<|\\u003[cC])",
    ">": r"(?:>|\\u003[eE])",
    "|": r"(?:\||\\u007[cC])",
    "/": r"(?:/|\\/|\\u002[fF])",
}
_ESCAPED_TOKEN = re.compile(
    r"(?<!\\)((?:\\\\)*)("
    + "|".join("".join(_SPELLINGS.get(char, char) for char in token) for token in ADDED_TOKENS)
    + ")"
)
"""Matches a control token in JSON text, plain or with escaped characters."""


def _unescaped_tokens(text: str) -> str:
    return _ESCAPED_TOKEN.sub(lambda match: match[1] + str(loads('"' + match[2] + '"')), text)


def split_responses(content: str) -> tuple[str, ...] | None:
    """Returns the texts of a turn of `<tool_response>` blocks; None if it contains anything else.

    A block ends at the first newline and closing tag. A block that contains a tag is refused.
    """
    begin, end = "<tool_response>\n", "\n</tool_response>"
    is_framed = content.startswith(begin) and content.endswith(end)
    if not is_framed or len(content) < len(begin) + len(end):
        return None
    texts = content[len(begin) : -len(end)].split(f"{end}\n{begin}")
    if any("<tool_response>" in text or "</tool_response>" in text for text in texts):
        return None
    return tuple(texts)


def read_turn(role: str, content: str, weight: int | None) -> Turn:
    """Returns the turn that a message contains. Raises ParseFault."""
    if role == "assistant":
        answer = split_answer(content)
        return Turn(role, answer.text, answer.thought, answer.calls, trained=weight != 0)
    responses = split_responses(content) if role == "user" else None
    return Turn(role, content) if responses is None else Turn("tool", responses=responses)


def to_dialogue(sample: Sample) -> Dialogue:
    """Returns the structured form of a flat sample. Raises ParseFault."""
    weights = sample.weights or (None,) * len(sample.messages)
    pairs = zip(sample.messages, weights, strict=True)
    return Dialogue(tuple(read_turn(*pair, weight) for pair, weight in pairs), sample.tools)
