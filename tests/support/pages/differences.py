"""The blocks of docs/parity.md: the tests compare them with actual results."""

import re

from support.places import ROOT

PAGE = ROOT / "docs" / "parity.md"


def blocks(kind):
    """Returns {(who, case): text} of the blocks named `<!-- KIND: WHO: CASE -->`."""
    page = PAGE.read_text(encoding="utf-8")
    found = re.findall(rf"<!-- {kind}: (.+?): (.+?) -->\n```text\n(.*?)```\n", page, re.DOTALL)
    return {(who, case): text for who, case, text in found}


def is_shown(text, block):
    """Returns whether the block is the text and a newline, or its beginning and an ellipsis."""
    if block.endswith("…\n"):
        return text.startswith(block.removesuffix("…\n"))
    return block in (text, f"{text}\n")
