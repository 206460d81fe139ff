"""The inverse of rendering, and the structure that a flat sample means."""

from __future__ import annotations

import re
from dataclasses import dataclass

from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads
from builder.qwen3.constants import EMPTY_THINK, TOOLS_BEGIN, TOOLS_END
from builder.qwen3.render import is_response, split_thought
from builder.sample import Call, Dialogue, Sample, Turn

CALL_PATTERN = re.compile(r"<tool_call>\s*(\{[\s\S]*?\})\s*</tool_call>")
"""The pattern of the specification ("Parse tool calls with"), letter for letter."""

_HEAD = re.compile(r'\{"name": "([^"\\\x00-\x1f]*)", "arguments": ')


class ParseFault(ValueError):
    """Text that is not what rendering gives: `code` and the `offset` (code points) of the fault."""

    def __init__(self, code: str, detail: str, offset: int = 0) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.offset = offset


def parse(text: str) -> Sample:
    """The sample of which `text` is the rendering. Raises ParseFault.

    The think block that the template adds to a last turn without thoughts is taken off again;
    a think block with a thought stays in the content, where the flat form has it.
    """
    messages: list[tuple[str, str]] = []
    tools: tuple[Json, ...] = ()
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
            system, tools = _split_tools(content)
            if system is not None:
                messages.append((role, system))
            continue
        if role == "assistant":
            content = content.removeprefix(EMPTY_THINK)
        messages.append((role, content))
    return Sample(tuple(messages), tools)


def _split_tools(content: str) -> tuple[str | None, tuple[Json, ...]]:
    """(system text or None, definitions) of the content of a first system turn."""
    begin = content.find(TOOLS_BEGIN)
    if begin < 0 or not content.endswith(TOOLS_END):
        return content, ()
    listing = content[begin + len(TOOLS_BEGIN) : -len(TOOLS_END)]
    try:
        tools = tuple(loads(line) for line in listing.split("\n")[1:])
    except JsonFault as fault:
        raise ParseFault(
            "inverse", f"a tool definition is no JSON: {fault.detail}", begin
        ) from None
    if begin == 0:
        return None, tools
    if not content.startswith("\n\n", begin - 2):
        raise ParseFault("inverse", "no blank line before the tools block", begin)
    return content[: begin - 2], tools


@dataclass(frozen=True, slots=True)
class Answer:
    """An assistant content taken apart: thought, text, calls."""

    thought: str
    text: str
    calls: tuple[Call, ...]


def split_answer(content: str) -> Answer:
    """Thought, text and calls of a flat assistant content. Raises ParseFault (`calls`).

    Exact: joined again by `flatten` the parts give the content back, or it is a fault. Markup
    that the specification's pattern does not find, or that is no call, is a fault too.
    """
    thought, body = split_thought(content)
    if not thought:
        body = content.removeprefix(EMPTY_THINK)  # no thought, and lost: the inverse says so
    matches = list(CALL_PATTERN.finditer(body))
    text = body[: matches[0].start()].removesuffix("\n") if matches else body
    if matches and text and body[: matches[0].start()] != text + "\n":
        raise ParseFault("calls", "no newline between the text and the first <tool_call>")
    if "<tool_call>" in text or "</tool_call>" in text:
        raise ParseFault("calls", "<tool_call> markup that holds no call", text.find("tool_call>"))
    calls: list[Call] = []
    end = matches[0].start() if matches else len(body)
    for match in matches:
        if body[end : match.start()] != ("\n" if calls else ""):
            raise ParseFault("calls", "calls are not joined by one newline", end)
        calls.append(read_call(match))
        end = match.end()
    if body[end:]:
        raise ParseFault("calls", "text after the last </tool_call>", end)
    if thought and content != f"<think>\n{thought}\n</think>\n\n{body}":
        raise ParseFault("lossy", "the think block is not in the template's form")
    return Answer(thought, text, tuple(calls))


def read_call(match: re.Match[str]) -> Call:
    """The call in a match of CALL_PATTERN. Raises ParseFault (`calls`)."""
    inner = match[1]
    if match[0] != f"<tool_call>\n{inner}\n</tool_call>":
        raise ParseFault(
            "calls", "no newline after <tool_call> or before </tool_call>", match.start()
        )
    try:
        value = loads(inner)
    except JsonFault as fault:
        raise ParseFault("calls", f"the call is no JSON: {fault.detail}", match.start(1)) from None
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        raise ParseFault("calls", "a call holds name and arguments, nothing else", match.start(1))
    name, arguments = value["name"], value["arguments"]
    head = _HEAD.match(inner)
    if head is None or not isinstance(name, str) or head[1] != name:
        detail = 'a call begins with {"name": "…", "arguments": and a name without escapes'
        raise ParseFault("calls", detail, match.start(1))
    if not isinstance(arguments, dict):
        raise ParseFault("calls", "the arguments are no JSON object", match.start(1) + head.end())
    return Call(name, arguments, inner[head.end() : -1])


def is_canonical(call: Call) -> bool:
    """Is the text of the arguments what `tojson` writes, but for escaped control tokens?"""
    plain = dumps(call.arguments)
    return call.text == plain or ("\\u003c" in call.text and _unescaped(call.text) == plain)


_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*)\\u003c")


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: match[1] + "<", text)


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
    """The structured form that a flat sample means. Raises ParseFault."""
    turns: list[Turn] = []
    for role, content in sample.messages:
        if role == "assistant":
            answer = split_answer(content)
            turns.append(Turn(role, answer.text, answer.thought, answer.calls))
            continue
        responses = split_responses(content) if role == "user" else None
        turns.append(
            Turn("tool", responses=responses) if responses is not None else Turn(role, content)
        )
    return Dialogue(tuple(turns), sample.tools)
