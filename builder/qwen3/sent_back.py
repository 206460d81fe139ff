"""States how an earlier turn is rendered once a server has parsed it and a client has sent it back.

A server parses the model's text into content and calls, a client sends both back with the next
request, and the template renders them as history. docs/parity.md has measured figures; the tests
compare each rule with the server's own parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from builder.qwen3.style import Style
from builder.sample import Turn


def _before_first_tag(turn: Turn, style: Style) -> str:
    """Returns everything before `<tool_call>`: what separates text and call stays in the text."""
    return turn.content + style.before_call if turn.content else ""


def _of_vllm(turn: Turn, style: Style) -> str:
    return _before_first_tag(turn, style) if style.dialect.plain else turn.content.strip()


def _of_sglang(turn: Turn, style: Style) -> str:
    return turn.content.strip() if style.dialect.plain else _before_first_tag(turn, style)


SERVERS: Mapping[str, Callable[[Turn, Style], str]] = {
    "vllm": _of_vllm,  # its parsers `hermes`, and `qwen3_coder`, which strips the text
    "sglang": _of_sglang,  # its parsers `qwen25`, which strips the text, and `qwen3_coder`
}
"""{server: the content that its parser makes of a turn with calls}."""


def sent_back(server: str, turn: Turn, style: Style) -> Turn:
    """Returns a turn with the text that the template renders once it has been sent back."""
    if not turn.calls:
        return turn
    content = SERVERS[server](turn, style)
    if style.trims != "none":
        content = content.strip()
    return turn if content == turn.content else replace(turn, content=content)
