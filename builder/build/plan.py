"""Makes the tasks of a configuration: one per input file, or per chunk of a large one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from builder.build.chunks import cut
from builder.build.convert import Task
from builder.config import Config, InputSection, load_mapping
from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.normalize.options import NormalizeOptions
from builder.normalize.tools import convert
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
        mapping = load_mapping(item.mapping.located) if item.mapping is not None else None
        found = list(
            find_sources(
                item.path.written, base=item.path.base, max_record_bytes=limit, without=out
            )
        )
        if mapping is not None and item.mapping is not None:
            sources = [source for source in found if isinstance(source, Source)]
            check_mapping(item.mapping.written, mapping, sources)
        for source in found:
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
    if config.normalize.system == "replace" and item.system is None:
        raise UsageError("normalize.system: replace needs inputs[].system or --system")
    return replace(
        config.normalize,
        train=config.train,
        supplied_tools=_tools(item.tools.located) if item.tools is not None else None,
        supplied_system=_system(item.system.located) if item.system is not None else None,
        added_tokens=target.added_tokens,
        style=target.style,
    )


def _tools(path: Path) -> tuple[Json, ...]:
    """Reads a file of tool definitions. Raises UsageError."""
    try:
        value = loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"tools {str(path)!r}: {error.strerror or error}") from error
    except JsonFault as fault:
        raise UsageError(f"tools {str(path)!r}: {fault.detail}") from fault
    tools = tuple(value) if isinstance(value, list) else (value,)
    if odd := [at for at, tool in enumerate(tools) if not isinstance(tool, dict)]:
        raise UsageError(f"tools {str(path)!r}: [{odd[0]}] is not a definition (an object)")
    counts: Counter[str] = Counter()
    if not convert(tools, counts) and counts["bad_tool"]:
        raise UsageError(f"tools {str(path)!r}: contains no tool definition (docs/formats.md)")
    return tools


def _system(path: Path) -> str:
    """Reads a file with a system text. Raises UsageError."""
    try:
        return path.read_text(encoding="utf-8").rstrip("\n")
    except OSError as error:
        raise UsageError(f"system {str(path)!r}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"system {str(path)!r}: not UTF-8 at byte {error.start}") from error
