"""Decodes objects that records hold as JSON text, and writes paths that decode them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from builder.conversation import Json
from builder.jsonio import loads_text
from builder.readers.mapping.calls import part


def decoded_rows(
    rows: Sequence[dict[str, Json]],
) -> tuple[Sequence[dict[str, Json]], list[str]]:
    """Returns the rows with their JSON texts of objects decoded, and the keys of these texts."""
    keys = []
    for key in dict.fromkeys(key for row in rows for key in row):
        values = [value for row in rows if (value := row.get(key)) not in (None, "")]
        if all(isinstance(value, str) and isinstance(loads_text(value), dict) for value in values):
            keys += [key] if values else []
    found = [row | {key: loads_text(row[key]) for key in keys if row.get(key)} for row in rows]
    return found, keys


def with_json(section: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Returns the paths of a section with `json(key)` for each key whose text is decoded."""
    if not keys:
        return section
    names = "|".join(re.escape(part(key)) for key in keys)
    begin = re.compile(rf"(?<![\w.'\"])({names})(?![\w'\":])")
    return {
        key: with_json(value, keys)
        if isinstance(value, dict) and key != "roles"
        else begin.sub(r"json(\1)", value)
        if isinstance(value, str) and key not in ("call", "result")
        else value
        for key, value in section.items()
    }
