"""The inverse of rendering, and the structure that a flat sample means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads
from builder.qwen3.constants import ADDED_TOKENS, EMPTY_THINK, TOOLS_BEGIN, TOOLS_END
from builder.qwen3.render import CallText, find_calls, is_response
from builder.qwen3.style import SPECIFIED, Style, Thoughts
from builder.sample import Call, Dialogue, Sample, Turn

_HEAD = re.compile(r'\{"name": "([^"\\\x00-\x1f]*)", "arguments": ')


class ParseFault(ValueError):
    """Text that is not what rendering gives: `code` and the `offset` (code points) of the fault."""

    def __init__(self, code: str, detail: str, offset: int = 0) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.offset = offset


def parse(text: str, style: Style = SPECIFIED) -> Sample:
    """The sample of which `text` is the rendering in this style. Raises ParseFault.

    The think block that the template adds to a last turn without thoughts is taken off again;
    a think block with a thought stays in the content, where the flat form has it. A system text
    that is the template's own is none of the sample's.
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
            system, tools = _split_tools(content, style.tools_lead)
            if system is not None and (tools or system != style.default_system):
                messages.append((role, system))
            continue
        if role == "assistant" and style.thoughts is Thoughts.hybrid:
            content = content.removeprefix(EMPTY_THINK)
        messages.append((role, content))
    return Sample.written(tuple(messages), tools)


def _split_tools(content: str, lead: str) -> tuple[str | None, tuple[tuple[Json, str], ...]]:
    """(system text or None, definitions and their texts) of the content of a first system turn.

    A system text may quote the tools block. A definition is one line, so the last beginning counts.
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
    """(a definition, its text), remembered: it stands in many samples. Raises JsonFault."""
    tool = loads(line)
    return tool, dumps(tool)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An assistant content taken apart: thought, text, calls."""

    thought: str
    text: str
    calls: tuple[Call, ...]


def split_answer(content: str) -> ParsedAnswer:
    """Thought, text and calls of a flat assistant content.

    Exact: joined again by `flatten` the parts give the content back, or it is a fault, but for what
    the inverse tells: an empty think block, a newline before a call without text. Markup that the
    specification's pattern does not find, or that is no call, is a fault too.
    Raises ParseFault (`calls`, `tools`, `lossy`); its offset is one of `content`.
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
    """Raises ParseFault if there are tags in text that should hold none; it begins at `at`."""
    found = re.search("</?tool_call>", text)
    if found:
        detail = "<tool_call> markup that holds no call"
        raise ParseFault("calls", detail, at + found.start())


def leading_thought(content: str) -> tuple[str, str]:
    """(thought, rest) of a content that begins with a think block, else ("", content).

    The thought is without newlines at its ends, the rest without newlines before it. A closing tag
    anywhere else is text: what the template makes of that is a fault that the verifier finds.
    """
    begun = content.lstrip("\n")
    if not begun.startswith("<think>") or "</think>" not in begun:
        return "", content
    thought, _, rest = begun.removeprefix("<think>").partition("</think>")
    return thought.strip("\n"), rest.lstrip("\n")


_BREAKS_JSON = re.compile(r'["\\\x00-\x1f\x7f-\x9f]')
UNFIT_NAME = "a name that holds a quote, a backslash or a control character"


def breaks_json(name: str) -> bool:
    """Would the name break the JSON of a call, into which the template inserts it as it is?"""
    return _BREAKS_JSON.search(name) is not None


def read_call(found: CallText, content: str) -> Call:
    """The call that `find_calls` found in `content`. Raises ParseFault (`calls`, `tools`)."""
    inner, at = found.inner, found.inner_at
    if content[found.start : found.end] != f"<tool_call>\n{inner}\n</tool_call>":
        detail = "no newline after <tool_call> or before </tool_call>"
        raise ParseFault("calls", detail, found.start)
    try:
        value = loads(inner)
    except JsonFault as fault:
        raise ParseFault("calls", f"the call is no JSON: {fault.detail}", at) from None
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        raise ParseFault("calls", "a call holds name and arguments, nothing else", at)
    name, arguments = value["name"], value["arguments"]
    if isinstance(name, str) and breaks_json(name):
        raise ParseFault("tools", f"{name[:80]!r}: {UNFIT_NAME}", at)
    head = _HEAD.match(inner)
    if head is None or not isinstance(name, str) or head[1] != name:
        detail = 'a call begins with {"name": "…", "arguments": and a name without escapes'
        raise ParseFault("calls", detail, at)
    if not isinstance(arguments, dict):
        raise ParseFault("calls", "the arguments are no JSON object", at + head.end())
    return Call(name, arguments, inner[head.end() : -1])


def is_canonical(call: Call) -> bool:
    """Is the text of the arguments what `tojson` writes, but for escapes in control tokens?"""
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
"""A control token in JSON text, its marks as they are or escaped, after no odd backslash."""


def _unescaped_tokens(text: str) -> str:
    return _ESCAPED_TOKEN.sub(lambda match: match[1] + str(loads('"' + match[2] + '"')), text)


def split_responses(content: str) -> tuple[str, ...] | None:
    """The texts of a turn of `<tool_response>` blocks; None if it is not made of them alone.

    A block ends at the first newline and closing tag: what holds a further tag is no clean block.
    """
    if not is_response(content):
        return None
    texts = content.split("\n</tool_response>\n<tool_response>\n")
    texts[0] = texts[0].removeprefix("<tool_response>")
    texts[-1] = texts[-1].removesuffix("</tool_response>")
    if not texts[0].startswith("\n") or not texts[-1].endswith("\n"):
        return None
    if len(texts) == 1 and texts[0] == "\n":
        return None
    texts[0] = texts[0][1:]
    texts[-1] = texts[-1][:-1]
    if any("<tool_response>" in text or "</tool_response>" in text for text in texts):
        return None
    return tuple(texts)


def to_dialogue(sample: Sample) -> Dialogue:
    """Read the structured form that a flat sample means. Raises ParseFault."""
    turns: list[Turn] = []
    weights = sample.weights or (None,) * len(sample.messages)
    for (role, content), weight in zip(sample.messages, weights, strict=True):
        if role == "assistant":
            answer = split_answer(content)
            trained = weight != 0
            turns.append(Turn(role, answer.text, answer.thought, answer.calls, trained=trained))
            continue
        responses = split_responses(content) if role == "user" else None
        turns.append(
            Turn("tool", responses=responses) if responses is not None else Turn(role, content)
        )
    return Dialogue(tuple(turns), sample.tools)
