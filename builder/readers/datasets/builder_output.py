"""Reads an output folder of this program: samples with their records in meta/ (docs/output.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import LEVELS, Context, Conversation, Event, Json
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.openai_chat import is_row, read_row
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none
from builder.sources.listing import Listing
from builder.sources.source import Source

_SUFFIXES = (".jsonl", ".jsonl.zst", ".parquet")
_SOURCES = frozenset({"logged", "supplied", "captured", "shared", "inferred", "mixed"})


def _is_store(folder: Listing) -> bool:
    return folder.is_file("manifest.json") and all(map(folder.is_dir, ("data", "meta")))


def _holds(name: str) -> bool:
    return name.startswith(("data/", "meta/")) and name.endswith(_SUFFIXES)


def _recognise(source: Source) -> str | None:
    if source.peek.kind != "folder":
        return None
    data = _data(source)
    if data and any(is_row(row) for member in data[:1] for row in member.peek.records):
        return "data/ with samples, meta/ next to it"
    return None


def _read(source: Source) -> Iterator[Event]:
    """Yields one conversation for each sample; skips missing or corrupt records of meta/."""
    meta = {member.name.partition("/")[2]: member for member in source.members}
    for member in _data(source):
        name = f"{member.name.partition('/')[2].partition('.')[0]}.jsonl"
        records = _meta_records(meta.get(name) or meta.get(f"{name}.zst"))
        for item in member.json_lines():
            record = next(records, {})
            if isinstance(item, Problem):
                yield replace(item, where=f"{member.name} {item.where}")
                continue
            where = f"{member.name} {item.where}"
            if not isinstance(item.value, dict) or not is_row(item.value):
                yield Problem("not_a_sample", where, "no row of messages and tools")
                continue
            for event in read_row(where, item.value):
                yield _completed(event, record) if isinstance(event, Conversation) else event


def _data(source: Source) -> list[Source]:
    data = [member for member in source.members if member.name.startswith("data/")]
    lines = [member for member in data if not member.name.endswith(".parquet")]
    return lines or data


def _meta_records(meta: Source | None) -> Iterator[dict[str, Json]]:
    if meta is None:
        return
    for item in meta.json_lines():
        meta.count_records(-1)
        yield {} if isinstance(item, Problem) else as_dict(item.value)


def _completed(conversation: Conversation, record: dict[str, Json]) -> Conversation:
    changes = as_dict(record.get("changes"))
    outcome = as_dict(record.get("outcome"))
    stated = as_str(record.get("tools_source"))
    return replace(
        conversation,
        id=as_str(record.get("conversation")) or conversation.id,
        model=name_or_none(record.get("model")) or conversation.model,
        models=tuple(name_or_none(name) for name in as_list(record.get("models"))),
        license=name_or_none(record.get("license")),
        tools_source=stated if stated in _SOURCES else None,
        context=_context(as_dict(record.get("context"))) or conversation.context,
        outcome=outcome or None,
        changes={
            **{code: n for code, n in changes.items() if isinstance(n, int)},
            **conversation.changes,
        },
    )


def _context(logged: dict[str, Json]) -> Context | None:
    level, missing = as_str(logged.get("level")), logged.get("missing")
    if level not in LEVELS or not isinstance(missing, list):
        return None
    return Context(level, tuple(sorted({code for code in missing if isinstance(code, str)})))


READER = declared(
    "builder-output", recognise=_recognise, read=_read, is_store=_is_store, holds=_holds
)
