"""Renders the flat form as the specification describes it, without a template engine.

The check `spec` compares its bytes with those of Hugging Face's template, as an independent second
implementation. It also returns what the template cannot: the positions of the trained texts and of
the control tokens that belong to the structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from builder.conversation import Json
from builder.jsonio import dumps
from builder.qwen3.constants import STRUCTURE_TOKENS, TOOLS_BEGIN, TOOLS_END
from builder.qwen3.style import SPECIFIED, Style, Thoughts
from builder.sample import Sample

RESPONSE_OPEN = "<tool_response>"
RESPONSE_CLOSE = "</tool_response>"


@dataclass(frozen=True, slots=True)
class Rendering:
    """A rendered conversation.

    text     the model's input
    answers  for each assistant turn [start, end) in code points: from just after
             `<|im_start|>assistant` and its newline to the end of its `<|im_end|>`
    control  (offset, token) of every control token that the structure puts into the text, in order
    """

    text: str
    answers: tuple[tuple[int, int], ...]
    control: tuple[tuple[int, str], ...]


def render(
    messages: Sequence[tuple[str, str]], tools: Sequence[Json] = (), style: Style = SPECIFIED
) -> Rendering:
    """Renders (role, content) messages of the roles system, user and assistant, with tools."""
    return _render(messages, tuple(map(dumps, tools)), style)


def render_sample(sample: Sample, style: Style = SPECIFIED) -> Rendering:
    """Renders a sample, whose roles are those of `render`."""
    return _render(sample.messages, sample.definitions, style)


def _render(
    messages: Sequence[tuple[str, str]], definitions: tuple[str, ...], style: Style
) -> Rendering:
    writer = _Writer()
    first_system = messages[0][1] if messages and messages[0][0] == "system" else None
    text = style.default_system if first_system is None and not definitions else first_system
    if definitions or text is not None:
        writer.token("<|im_start|>")
        writer.text("system\n")
        if text is not None:
            writer.text(text)
        if definitions:
            writer.text("\n\n" if text is not None else style.tools_lead)
            block = tools_block(definitions)
            writer.marked(block.text, block.control)
        writer.end()
    query = last_query(messages)
    for index, (role, content) in enumerate(messages):
        if role == "system" and index == 0:
            continue
        if role in ("user", "system"):
            writer.token("<|im_start|>")
            writer.text(f"{role}\n")
            writer.marked(content, _response_tags(content) if role == "user" else ())
            writer.end()
        elif role == "assistant":
            thought, body = "", content
            last = index == len(messages) - 1
            if style.thoughts is Thoughts.hybrid:
                thought, body = shown_thought(content, after_query=index > query, last=last)
            elif style.thoughts is Thoughts.dropped or (
                style.thoughts is Thoughts.last and not last
            ):
                body = content.rpartition("</think>")[2].lstrip("\n")
            writer.assistant(thought, body)
    return writer.rendering()


def last_query(messages: Sequence[tuple[str, str]]) -> int:
    """Returns the index of the last user turn that is not a tool response, else the last index."""
    for index in range(len(messages) - 1, -1, -1):
        role, content = messages[index]
        if role == "user" and not is_response(content):
            return index
    return len(messages) - 1


def is_response(content: str) -> bool:
    """Returns whether the template treats this user turn as tool responses."""
    return content.startswith(RESPONSE_OPEN) and content.endswith(RESPONSE_CLOSE)


def is_bare(sample: Sample) -> bool:
    """Returns whether only the template writes a system turn: it has tools but no system text."""
    return bool(sample.tools) and [role for role, _ in sample.messages[:1]] != ["system"]


def is_following(sample: Sample) -> bool:
    """Returns whether a query directly follows tool responses: two user turns in a row."""
    pairs = pairwise(sample.messages)
    return any(one == two == "user" and is_response(text) for (one, text), (two, _) in pairs)


def split_thought(content: str) -> tuple[str, str]:
    """Returns (thought, rest) of assistant text, split as the template splits it.

    The thought ends at the FIRST `</think>` and starts after the last `<think>` before it. The rest
    follows the LAST `</think>`.
    """
    if "</think>" not in content:
        return "", content
    head, _, _ = content.partition("</think>")
    thought = head.rstrip("\n").rpartition("<think>")[2].lstrip("\n")
    return thought, content.rpartition("</think>")[2].lstrip("\n")


def shown_thought(content: str, *, after_query: bool, last: bool) -> tuple[str, str]:
    """Returns (think block, body) of an assistant turn; the block is "" if there is none."""
    thought, body = split_thought(content)
    if after_query and (last or thought):
        thought = thought.strip("\n")
        return f"<think>\n{thought}\n</think>\n\n", body.lstrip("\n")
    return "", body


class _Writer:
    """Collects the pieces of the text and the positions of turns and control tokens."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0
        self.control: list[tuple[int, str]] = []
        self.answers: list[tuple[int, int]] = []

    def text(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)

    def token(self, token: str) -> None:
        self.control.append((self.length, token))
        self.text(token)

    def marked(self, text: str, control: Sequence[tuple[int, str]]) -> None:
        """Appends text that has control tokens of the structure at the given offsets."""
        self.control += [(self.length + offset, token) for offset, token in control]
        self.text(text)

    def end(self) -> None:
        self.token("<|im_end|>")
        self.text("\n")

    def assistant(self, thought: str, body: str) -> None:
        self.token("<|im_start|>")
        self.text("assistant\n")
        start = self.length
        if thought:
            closing = len(thought) - len("</think>\n\n")
            self.marked(thought, ((0, "<think>"), (closing, "</think>")))
        self.marked(body, _call_tags(body))
        self.end()
        self.answers.append((start, self.length - 1))

    def rendering(self) -> Rendering:
        return Rendering("".join(self.pieces), tuple(self.answers), tuple(self.control))


@lru_cache(maxsize=256)
def tools_block(definitions: tuple[str, ...]) -> Rendering:
    """Returns the tools block of the system turn from the JSON texts of the definitions."""
    listing = "".join(f"\n{text}" for text in definitions)
    text = TOOLS_BEGIN + listing + TOOLS_END
    tail = len(TOOLS_BEGIN) + len(listing)
    control = [(tail + offset, token) for offset, token in _tokens_in(TOOLS_END)]
    return Rendering(text, (), tuple(control))


_STRUCTURE = re.compile("|".join(map(re.escape, STRUCTURE_TOKENS)))

_CALL_OPENS = re.compile(r"<tool_call>\s*(?=\{)")
_CALL_CLOSES = re.compile(r"\}\s*</tool_call>")


@dataclass(frozen=True, slots=True)
class CallText:
    """A call in a text: [start, end) includes its tags; `inner`, at `inner_at`, is its JSON."""

    start: int
    end: int
    inner: str
    inner_at: int


def find_calls(text: str, start: int = 0) -> Iterator[CallText]:
    r"""Yields the calls from `start` on, in linear time.

    They are the matches of the specification's pattern ("Parse tool calls with"),
    `<tool_call>\s*(\{[\s\S]*?\})\s*</tool_call>`. The pattern itself would scan to the end of the
    text for every opening tag that is never closed.
    """
    while opens := _CALL_OPENS.search(text, start):
        closes = _CALL_CLOSES.search(text, opens.end() + 1)
        if closes is None:
            return
        inner = text[opens.end() : closes.start() + 1]
        yield CallText(opens.start(), closes.end(), inner, opens.end())
        start = closes.end()


def _tokens_in(text: str) -> list[tuple[int, str]]:
    return [(match.start(), match[0]) for match in _STRUCTURE.finditer(text)]


def _response_tags(content: str) -> list[tuple[int, str]]:
    """Returns (offset, tag) of a turn that consists of `<tool_response>` blocks, else nothing."""
    if not is_response(content):
        return []
    tags: list[tuple[int, str]] = []
    at = 0
    while content.startswith(f"{RESPONSE_OPEN}\n", at):
        closes = content.find(f"\n{RESPONSE_CLOSE}", at + len(RESPONSE_OPEN) + 1) + 1
        if not closes:
            return []
        tags += [(at, RESPONSE_OPEN), (closes, RESPONSE_CLOSE)]
        at = closes + len(RESPONSE_CLOSE)
        if at == len(content):
            return tags
        if content[at] != "\n":
            return []
        at += 1
    return []


def _call_tags(body: str) -> list[tuple[int, str]]:
    """Returns (offset, tag) of the calls in an assistant text."""
    tags: list[tuple[int, str]] = []
    for call in find_calls(body):
        tags += [(call.start, "<tool_call>"), (call.end - len("</tool_call>"), "</tool_call>")]
    return tags
