"""Implements the functions of the API that examine logs before a build."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.api.checked import checked
from builder.given import DatasetLike, MappingLike, given_config, given_dataset, given_mapping

if TYPE_CHECKING:
    from builder.build.inspection import Inspection, SuggestedMapping
    from builder.config import Config
    from builder.problem import Problem
    from builder.readers import Reader


def available_formats() -> Mapping[str, Reader]:
    """Returns the readers by the names of their formats, those of installed packages included."""
    from builder.readers import readers

    return readers()


@checked
def recognise_all(path: DatasetLike) -> Iterator[tuple[str, dict[str, str]] | Problem]:
    """Yields (name, {format: reason}) of each source at a path, or of rows in memory.

    A source that cannot be opened is a Problem. One format recognises a source; several make it
    ambiguous. Raises UsageError if nothing is at the path.
    """
    from builder.readers import recognise
    from builder.readers.discovery import find_sources
    from builder.sources.listing import local_copy
    from builder.sources.source import Source

    with given_dataset(path, "path", mapped=True) as place:
        for source in find_sources(place):
            if isinstance(source, Source):
                with local_copy(source) as copy:
                    yield source.name, dict(recognise(copy))
            else:
                yield source


def installed_logs() -> Iterator[tuple[str, Path]]:
    """Yields (agent, file or folder) of the logs that agents keep on this machine."""
    from builder.readers import installed_logs as installed

    return installed()


@checked
def inspect_log(
    path: DatasetLike,
    *,
    index: int | None = None,
    format: str | None = None,  # noqa: A002 - as the option
    mapping: MappingLike | None = None,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    tokenizer: str | Path | None = None,
    chat_template: str | Path | None = None,
) -> Inspection:
    """Returns the format and the contents of a log, and one conversation as a build converts it.

    The log may be rows in memory. Of a folder, it is the first usable file. `index` is the number
    of the conversation, from 0 (None: the first usable one); `format` names a reader; `mapping`
    (docs/mapping.md) is a file, a dict of its keys, or what `suggest_mapping` returns. `tokenizer`
    None: that of the configuration. Raises UsageError if no reader recognises the log, or if there
    is no such conversation, reader, mapping or tokenizer.

        inspected = inspect_log("logs/session.jsonl", index=2)
    """
    from builder.build.inspection import inspect_log as inspected
    from builder.qwen3.reference import with_template

    chosen = given_config(config)
    name = os.fspath(tokenizer) if tokenizer is not None else chosen.verify.target
    with given_dataset(path, "path", mapped=bool(format or mapping)) as place:
        return inspected(
            place,
            chosen,
            with_template(name, None if chat_template is None else os.fspath(chat_template)),
            index=index,
            format=format,
            mapping=None if mapping is None else given_mapping(mapping),
        )


@checked
def suggest_mapping(
    path: DatasetLike, *, config: Config | Mapping[str, Any] | str | Path | None = None
) -> SuggestedMapping:
    """Proposes a mapping file for a log of an unknown format (docs/mapping.md).

    Raises UsageError if nothing in the log is like a conversation.
    """
    from builder.build.inspection import suggest_mapping as suggested

    with given_dataset(path, "path", mapped=True) as place:
        return suggested(place, given_config(config))
