"""Reads the two forms of an answer of Open WebUI. Source: docs/formats/open-webui.md, "Answers".

The older form is text with `<details type="…">` blocks, the newer one a list of items.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from builder.conversation import (
    Content,
    Data,
    Json,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import JsonFault, loads
from builder.readers.toolkit.chat_messages import content
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str, name_of, name_or_none

SERVER_TOOL = "server_tool"
"""Type of a part that stands for code that Open WebUI ran: its turn is no target."""

_BLOCK = re.compile(
    r"""<details\b[^>]*\btype=["'](?:tool_calls|reasoning|code_interpreter)["'][^>]*>"""
)
_END = "</details>"
_ATTRIBUTE = re.compile(r"""([\w-]+)=(?:"([^"]*)"|'([^']*)')""")
_SUMMARY = re.compile(r"\s*<summary>.*?</summary>\n?", re.DOTALL)


def pieces_of_text(text: str) -> Iterator[Part]:
    """Yields the parts of an answer with `<details>` blocks: text, thoughts, calls, results."""
    at = 0
    while (begin := _BLOCK.search(text, at)) is not None:
        yield from _text(text[at : begin.start()])
        end = text.find(_END, begin.end())
        if end < 0:
            yield Unparsed(text[begin.start() :], "truncated")
            return
        at = end + len(_END)
        attributes = {
            match[1]: html.unescape(match[2] if match[2] is not None else match[3])
            for match in _ATTRIBUTE.finditer(begin[0])
        }
        body = text[begin.end() : end]
        yield from _block(attributes, body, text[begin.start() : at])
    yield from _text(text[at:])


def _text(text: str) -> Iterator[Part]:
    if text.strip():
        yield Text(text.strip("\n"))


def _block(attributes: dict[str, str], body: str, whole: str) -> Iterator[Part]:
    """Yields the parts of a block."""
    kind = attributes.get("type")
    inner = _SUMMARY.sub("", body, count=1)
    if kind == "reasoning":
        lines = html.unescape(inner).strip().split("\n")
        thought = "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines)
        if thought.strip():
            yield Reasoning(thought)
        return
    if kind == "code_interpreter":
        yield Unparsed(whole, SERVER_TOOL)
        return
    name = attributes.get("name")
    if not name or "arguments" not in attributes:  # written by a program between, not Open WebUI
        yield Unparsed(whole, "bad_call")
        return
    call_id = attributes.get("id") or None
    yield ToolCall(name, _arguments(attributes["arguments"]), call_id)
    result = attributes.get("result") or html.unescape(inner).strip()
    if attributes.get("done") == "true" and result:
        yield ToolResult(tuple(_result(result)), call_id, name)


def _arguments(text: str) -> Json:
    """Returns the arguments: an object, or JSON text, often itself in a JSON string."""
    try:
        value = loads(text)
    except JsonFault:
        return text
    return value if isinstance(value, str | dict) else text


def _result(text: str) -> Iterator[Content]:
    try:
        value = loads(text)
    except JsonFault:
        value = text
    yield Text(value) if isinstance(value, str) else Data(value)


def pieces_of_items(items: Json) -> Iterator[Part]:
    """Yields the parts of an answer that is a list of items."""
    for item in as_dicts(items):
        match item.get("type"):
            case "message":
                for part in as_dicts(item.get("content")):
                    text = as_str(part.get("text"))
                    yield from _text(text)
                    if not text and "text" not in part:
                        yield unknown_part(as_str(part.get("type")))
            case "reasoning":
                texts = [
                    as_str(part.get("text"))
                    for part in as_dicts(item.get("content")) or as_dicts(item.get("summary"))
                ]
                if "".join(texts).strip():
                    yield Reasoning("\n".join(texts))
            case "function_call":
                if (name := name_or_none(item.get("name"))) is None:
                    yield Unparsed(as_str(item.get("arguments")), "bad_call")
                else:
                    yield ToolCall(name, item.get("arguments"), name_of(item, "call_id", "id"))
            case "function_call_output":
                yield ToolResult(content(item.get("output")), name_of(item, "call_id"))
            case "open_webui:code_interpreter":
                yield Unparsed(as_str(item.get("code")), SERVER_TOOL)
            case kind:
                yield unknown_part(kind if isinstance(kind, str) else "item")


def media_of_files(files: Json) -> list[tuple[str, str]]:
    """Returns (kind, name) of the files that a message names."""
    media = []
    for item in as_dicts(files):
        kind = as_str(item.get("type"))
        name = name_of(item, "name") or name_of(as_dict(item.get("file")), "filename") or ""
        media.append(("image" if kind == "image" else "file", name))
    return media
