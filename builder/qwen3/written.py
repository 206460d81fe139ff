"""Tells from a flat sample how its calls and responses are written, where no target is at hand.

Audits and reports read samples without proving them; which template a dataset was made for is not
in the samples, and need not be known to list their calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from builder.qwen3.render import RESPONSE_CLOSE, RESPONSE_OPEN
from builder.qwen3.style import SPECIFIED, Style
from builder.qwen3.xml_calls import XML_JSON
from builder.sample import Sample

_XML = "<tool_call>\n<function="


def written_style(sample: Sample) -> Style:
    """Returns a style in which the sample can be read."""
    return style_of_messages(sample.messages)


def style_of_messages(messages: Iterable[tuple[str, str]]) -> Style:
    """Returns a style in which messages (role, content) can be read."""
    is_xml, between, edges = False, "\n", ("", "")
    for role, content in messages:
        if role == "assistant" and not is_xml and _XML in content:
            is_xml = True
        if role == "assistant" and "</tool_call>\n\n<tool_call>" in content:
            between = "\n\n"
        if role == "user" and (content[:1] == "\n" or content[-1:] == "\n"):
            body = content.strip("\n")
            if body.startswith(RESPONSE_OPEN) and body.endswith(RESPONSE_CLOSE):
                before, _, after = content.partition(body)
                edges = (before[:1], after[:1])
    if not is_xml and between == "\n" and edges == ("", ""):
        return SPECIFIED
    return _style(edges, between, is_xml=is_xml)


@lru_cache(maxsize=32)
def _style(edges: tuple[str, str], between: str, *, is_xml: bool) -> Style:
    if not is_xml:
        return Style(response_edges=edges, between_calls=between)
    return Style(dialect=XML_JSON, before_call="\n\n", between_calls=between, response_edges=edges)
