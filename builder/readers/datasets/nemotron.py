"""Reads Nemotron's rows for tool calling: Post-Training-Dataset-v1 (tool_calling), Agentic-v1.

Source: docs/formats/nemotron.md. The messages are OpenAI's. Definitions are in
the column `tools`, or in the JSON text of the column `metadata`. Only one of the datasets has ids
in results.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from builder.conversation import Conversation, Json
from builder.jsonio import JsonFault
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.datasets.chat_rows import read_chat
from builder.readers.toolkit import literals
from builder.readers.toolkit.narrow import as_dict, as_list, json_in_text, name_of
from builder.readers.toolkit.rows import read_each, row_name, splits
from builder.sources.source import Source

_PURPOSES = frozenset({"used_in", "category", "reasoning"})


def recognise(source: Source) -> str | None:
    """Claims rows with a uuid, a license, messages and a purpose."""
    for row in source.peek.objects:
        if {"uuid", "license", "messages"} <= row.keys() and not _PURPOSES.isdisjoint(row):
            return "rows of uuid, license and messages"
    return None


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    problems: tuple[Problem, ...] = ()
    tools: Json = None
    try:
        tools = _tools(row, changes)
    except JsonFault as fault:
        problems = (Problem("bad_tools", where, fault.detail, records=0),)
    name = row_name(where, row.get("uuid"), names)
    conversation = read_chat(name, where, as_list(row.get("messages")), tools)
    if isinstance(conversation, Problem):
        return conversation
    return replace(
        conversation,
        model=_model(row),
        problems=(*problems, *conversation.problems),
        changes=changes + Counter(conversation.changes),
    )


def _model(row: dict[str, Json]) -> str | None:
    """Returns the model that wrote a row's answers: in a column, or in the metadata."""
    metadata = as_dict(json_in_text(row.get("metadata")))
    return name_of(row, "generator", "model") or name_of(metadata, "generation_model", "generator")


def _tools(row: dict[str, Json], changes: Counter[str]) -> Json:
    """Returns a row's definitions, preferably from the column `tools`. Raises JsonFault."""
    own = literals.column(row.get("tools"), changes)
    if own:
        return own
    metadata = as_dict(literals.column(row.get("metadata"), changes))
    return literals.column(metadata.get("tools"), changes) if "tools" in metadata else own


READER = Reader(
    name="nemotron",
    summary="Nemotron rows: uuid, license, messages, and tools in a column or in the metadata",
    evidence=("parsers",),
    recognise=recognise,
    read=read_each(
        _row,
        {
            "used_in",
            "reasoning",
            "capability_target",
            "domain",
            "version",
            "generator",
            "system_prompt",
        },
    ),
    splits=splits,
)
