"""Finds where a request contained something else than the results that the log has.

- A `content-replacement` line has the text that the program sent in place of a large result, from
  the first request with that result on. The result's own line keeps the whole text.
- A `microcompact_boundary` names results (and attachments) that later requests contained shortened
  or cleared. What they contained instead differs by version and is not logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from builder.conversation import Json
from builder.readers.agents.claude_code.lines import SessionLine
from builder.readers.toolkit.narrow import as_dict, as_list, as_str

REPLACEMENTS = "content-replacement"
"""Type of the lines with texts that were sent in place of results."""


def replacement_texts(records: Iterable[Mapping[str, Json]]) -> dict[str, str]:
    """Returns the texts that were sent in place of results, by call id."""
    texts: dict[str, str] = {}
    for record in records:
        for item in map(as_dict, as_list(record.get("replacements"))):
            call_id, text = as_str(item.get("toolUseId")), item.get("replacement")
            if call_id and isinstance(text, str):
                texts[call_id] = text
    return texts


def with_replacements(line: SessionLine, texts: Mapping[str, str]) -> SessionLine:
    """Returns the line with the texts that were sent in place of its results."""
    if not any(call_id in texts for call_id in line.answered):
        return line
    blocks: list[Json] = []
    for block in line.blocks:
        text = texts.get(as_str(block.get("tool_use_id")))
        is_replaced = block.get("type") == "tool_result" and text is not None
        blocks.append({**block, "content": text} if is_replaced else block)
    message = {**as_dict(line.value.get("message")), "content": blocks}
    return replace(line, value={**line.value, "message": message})


def clears_results(line: SessionLine) -> bool:
    """Returns whether requests after the line lack results or attachments that the log has."""
    metadata = as_dict(line.value.get("microcompactMetadata"))
    return line.value.get("subtype") == "microcompact_boundary" and bool(
        metadata.get("compactedToolIds") or metadata.get("clearedAttachmentUUIDs")
    )
