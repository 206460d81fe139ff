"""Recognises and rejects the logs of agents that are known only from third-party descriptions.

Source: docs/formats/vscode-copilot.md (exports of VS Code's chat debug view). Guessing at a format
could produce samples that no model ever saw, so each record is a Problem `unverified_format`.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event, Json
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.toolkit.narrow import as_dicts, as_list
from builder.sources.source import Source

_CODE = "unverified_format"


def recognise(source: Source) -> str | None:
    """Returns which of the agents wrote the source, or None."""
    for item in source.peek.objects:
        if _is_replay(item):
            return "an export of VS Code's chat debug view (prompts with logs)"
    return None


def _is_replay(item: dict[str, Json]) -> bool:
    prompts = as_dicts(item.get("prompts"))
    return any(isinstance(prompt.get("logs"), list) for prompt in prompts)


def read(source: Source) -> Iterator[Event]:
    """Yields a Problem for each prompt or row of a conversation."""
    document = source.document() if source.peek.kind == "json" else None
    if isinstance(document, dict):
        for record in source.counted(as_list(document.get("prompts"))):
            yield Problem(_CODE, record.where, "a prompt of VS Code's debug view")
        return
    detail = "a format known only from third-party descriptions"
    for item in source.records():
        yield item if isinstance(item, Problem) else Problem(_CODE, item.where, detail)


READER = Reader(
    name="unverified",
    summary=("exports of VS Code's chat debug view: recognised, but rejected (unverified_format)"),
    evidence=("inferred",),
    recognise=recognise,
    read=read,
)
