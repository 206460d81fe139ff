"""Makes the tasks of a configuration: one per input file, or per chunk of a large one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from builder.build.chunks import cut
from builder.build.supplied import supplied_system, supplied_tools
from builder.build.task import Task
from builder.config.load import load_mapping
from builder.config.sections import Config, InputSection
from builder.normalize.options import NormalizeOptions
from builder.paths import UserPath
from builder.problem import Problem, UsageError, nearest
from builder.qwen3.tokenizer import Target
from builder.readers import readers
from builder.readers.discovery import find_sources
from builder.readers.mapping.read import check_mapping
from builder.readers.mapping.spec import refuse_questions
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
    for number, item in enumerate(config.inputs):
        folder = item.path.located.absolute()
        within = out is not None and folder in out.absolute().parents and folder.is_dir()
        if item.path.written and within:
            raise UsageError(
                f"output {str(out)!r}: is inside the input {item.path.written!r}, which the next"
                " build would read: name a folder outside it"
            )
        if item.format != "auto" and item.format not in readers():
            known = nearest(item.format, readers())
            raise UsageError(f"format {item.format!r}: no such reader{known}")
        options = _options(config, item, target)
        mapping = item.mapping
        name = f"inputs[{number}].mapping"
        if isinstance(mapping, UserPath):
            name, located = mapping.written, mapping.located
            mapping = load_mapping(located)
            refuse_questions(name, located.read_text("utf-8"))
        listed = list(find_sources(item.path.written, base=item.path.base, without=out))
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
                config.limits,
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
    """Returns the options of `normalize` for a target."""
    return replace(config.normalize, added_tokens=target.added_tokens, style=target.style)
