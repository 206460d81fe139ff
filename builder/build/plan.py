"""Makes the tasks of a configuration: one per input file, or per chunk of a large one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from builder.build.chunks import cut
from builder.build.convert import Task
from builder.build.supplied import supplied_system, supplied_tools
from builder.config import Config, InputSection, load_mapping
from builder.normalize.options import NormalizeOptions
from builder.paths import UserPath
from builder.problem import Problem, UsageError, nearest
from builder.qwen3.tokenizer import Target
from builder.readers import readers
from builder.readers.discovery import find_sources
from builder.readers.mapping.check import check_mapping
from builder.sources.source import Source


def plan(
    config: Config, target: Target, out: Path | None = None
) -> tuple[list[Task], list[Problem]]:
    """Returns the tasks, and a problem for each unreadable input; skips `out`.

    Raises UsageError.
    """
    tasks: list[Task] = []
    unreadable: list[Problem] = []
    if not config.inputs:
        raise UsageError("no inputs: name files or folders, or a configuration with inputs")
    limit, lengths = config.limits.max_record_mb << 20, config.limits.lengths
    for number, item in enumerate(config.inputs):
        if item.format != "auto" and item.format not in readers():
            known = nearest(item.format, readers())
            raise UsageError(f"format {item.format!r}: no such reader{known}")
        options = _options(config, item, target)
        mapping = item.mapping
        name = f"inputs[{number}].mapping"
        if isinstance(mapping, UserPath):
            name, mapping = mapping.written, load_mapping(mapping.located)
        listed = list(
            find_sources(
                item.path.written, base=item.path.base, max_record_bytes=limit, without=out
            )
        )
        if mapping is not None:
            sources = [source for source in listed if isinstance(source, Source)]
            check_mapping(name, mapping, sources)
        for source in listed:
            if isinstance(source, Problem):
                unreadable.append(source)
                continue
            origin = f"{number}/{source.name}"
            task = Task(
                source,
                options,
                origin,
                item.format,
                mapping,
                item.license,
                lengths,
                item.weight,
            )
            tasks.extend(cut(task))
    return tasks, unreadable


def _options(config: Config, item: InputSection, target: Target) -> NormalizeOptions:
    """Returns the options for one input. Raises UsageError."""
    if config.normalize.system == "replace" and not item.system:
        text = "normalize.system: replace needs inputs[].system or {system}"
        raise UsageError(text, system="FILE")
    tools, with_tools = supplied_tools(item.tools)
    system, with_system = supplied_system(item.system)
    return replace(
        normalize_options(config, target),
        supplied_tools=tools,
        supplied_system=system,
        captured=(*with_tools, *with_system),
    )


def normalize_options(config: Config, target: Target) -> NormalizeOptions:
    """Returns the options of `normalize` and `train` for a target."""
    return replace(
        config.normalize,
        train=config.train,
        added_tokens=target.added_tokens,
        style=target.style,
    )
