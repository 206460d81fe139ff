"""A typed block, in the forms that APIs, agents and MCP give it."""

from __future__ import annotations

import pytest

from builder.conversation import Json, Media, Text, unknown_part
from builder.readers.toolkit import content_block


@pytest.mark.parametrize(
    ("block", "content"),
    [
        ({"type": "text", "text": "a"}, Text("a")),
        ({"type": "text", "text": 7}, unknown_part("text")),
        ({"type": "image", "data": "…", "mimeType": "image/png"}, Media("image", "image/png")),
        ({"type": "image_url", "image_url": {"url": "…"}}, Media("image")),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "a"}}, Text("a")),
        (
            {"type": "resource", "resource": {"blob": "…", "mimeType": "application/pdf"}},
            Media("file", "application/pdf"),
        ),
        ({"type": "resource_link", "uri": "file:///a"}, Media("file")),
        ({"type": "gesture"}, unknown_part("gesture")),
        ("a", unknown_part("string")),
    ],
)
def test_a_block_is_its_text_a_placeholder_or_an_unknown_part(block: Json, content: object) -> None:
    assert content_block(block) == content
