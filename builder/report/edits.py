"""Shows what a call changes in a file as a diff: old and new text, or a patch."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dicts
from builder.report.html import Html, join, omission, tag, text

_OLD = ("old_string", "old_str", "oldText", "old_text", "oldString", "search")
_NEW = ("new_string", "new_str", "newText", "new_text", "newString", "replace")
_SEVERAL = ("edits", "replacements", "changes")
_PATCHES = ("patch", "patchText", "input", "diff", "patch_text")
_BEGINNINGS = ("*** Begin Patch", "--- ", "diff --git ", "@@ ", "<<<<<<< SEARCH", "------- SEARCH")
_MAX_LINES = 600
"""Lines of a text above which the old text is shown before the new, without a comparison."""
_SHOWN = 400
_STYLES = {"+": "added", "-": "removed", "@": "place"}

Edit = tuple[str, str]


def edits(arguments: Mapping[str, Json]) -> tuple[list[Edit | str], dict[str, Json]]:
    """Returns the edits of a call, each (old, new) or a patch, and the other arguments.

    The arguments with the edits are omitted from the others. Without edits, the list is empty.
    """
    others = dict(arguments)
    replaced: list[Edit | str] = []
    if pair := _pair(others):
        replaced.append(pair)
    for key in _SEVERAL:
        listed = as_dicts(others.get(key))
        pairs = [_pair(item) for item in listed]
        # An edit that says more, such as `replace_all`, is shown as written.
        if pairs and all(pairs) and not any(listed):
            replaced += filter(None, pairs)
            del others[key]
    for key in _PATCHES:
        written = others.get(key)
        if isinstance(written, str) and written.lstrip().startswith(_BEGINNINGS):
            replaced.append(written)
            del others[key]
    return replaced, others


def _pair(values: dict[str, Json]) -> Edit | None:
    """Removes and returns the old and the new text, or returns None."""
    old = next((key for key in _OLD if isinstance(values.get(key), str)), None)
    new = next((key for key in _NEW if isinstance(values.get(key), str)), None)
    if old is None or new is None:
        return None
    before, after = values.pop(old), values.pop(new)
    assert isinstance(before, str), "chosen for this"
    assert isinstance(after, str), "chosen for this"
    return before, after


def edit_html(edit: Edit | str, limit: int) -> Html:
    """Returns a diff in at most about `limit` characters of text."""
    lines = edit.splitlines() if isinstance(edit, str) else list(_compared(*edit))
    shown: list[Html] = []
    size = 0
    for at, line in enumerate(lines):
        size += len(line) + 1
        if at and (size > limit or at >= _SHOWN):
            shown.append(omission(len(lines) - at, "lines"))
            break
        style = _STYLES.get(line[:1])
        cut = line if len(line) <= limit else f"{line[:limit]}…"
        shown.append(tag("span", text(cut + "\n"), class_=style) if style else text(cut + "\n"))
    return tag("pre", join(shown), class_="diff", dir="auto")


def _compared(old: str, new: str) -> Iterator[str]:
    """Yields the lines of both texts, marked as in a unified diff."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _MAX_LINES:
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    for kind, first, last, begin, end in difflib.SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            yield from (f" {line}" for line in before[first:last])
            continue
        yield from (f"-{line}" for line in before[first:last])
        yield from (f"+{line}" for line in after[begin:end])
