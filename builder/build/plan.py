"""Makes the tasks of a configuration: one per input file, or per chunk of a large one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from itertools import accumulate, groupby
from pathlib import Path

from builder.build.convert import Task, sole_reader
from builder.config.load import load_mapping
from builder.config.sections import Config, InputSection
from builder.conversation import Json
from builder.distribution import DISTRIBUTION
from builder.jsonio import JsonFault, dumps, loads
from builder.normalize.options import AgentDefinitions, NormalizeOptions
from builder.normalize.tools import convert
from builder.paths import UserPath
from builder.problem import Problem, UsageError, nearest
from builder.qwen3.tokenizer import Target
from builder.readers import ENTRY_POINT_GROUP, readers
from builder.readers.discovery import find_sources
from builder.readers.mapping.read import check_mapping
from builder.readers.mapping.spec import refuse_questions
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.readers.toolkit.tool_forms import name_of, parameters_of
from builder.sources.source import Source
from builder.sources.sqlite_file import write_ahead_log
from builder.sources.stream import (
    GZIP_MAGIC,
    ZIP_MAGIC,
    ZSTD_MAGIC,
    Chunk,
    ItemChunk,
    LineChunk,
    WholeFile,
)
from builder.sources.table import ARROW_MAGIC, PARQUET_MAGIC, FileTable

# -- computes the identity of a run: a digest of its code, its dependencies and its tokenizer ------

PACKAGES = (
    DISTRIBUTION,
    "transformers",
    "tokenizers",
    "jinja2",
    "orjson",
    "jmespath",
    "kingfisher-secret-scanner",
    "phonenumberslite",
    "python-stdnum",
    "jsonschema",
    "jsonschema-rs",
    "google-re2",
    "ahocorasick-rs",
    "gigatoken",
    "datasets",
    "pyarrow",
    "pyyaml",
    "numpy",
    "pandas",
    "brotli",
)
"""The distributions whose version a result depends on, where they are installed."""

OTHER_ROOMS = (
    "api",
    "capture",
    "card",
    "cli",
    "config",
    "export",
    "output",
    "push",
    "report",
    "trainers",
    "view",
)
"""The rooms that no result depends on: a change in them keeps finished work.

They come before the tasks or after them. The tests compare them with the imports of the tasks.
"""


def versions() -> dict[str, Json]:
    """Returns the versions that results depend on."""
    return {name: _version(name) for name in PACKAGES}


@cache
def _version(name: str) -> str | None:
    """Returns the version of a distribution, or None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@cache
def code_digest() -> str:
    """Returns a digest of the modules and data that make results, and of others' readers.

    The embedded tokenizer is not in it: the identity has the digests of its files.
    """
    digest = hashlib.sha256()
    folder = Path(__file__).parents[1]
    for path in result_files(folder):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.value):
        digest.update(f"{entry.value} {entry.dist.version if entry.dist else ''}\n".encode())
    return digest.hexdigest()


def result_files(folder: Path) -> list[Path]:
    """Returns the files of the package in `folder` that results depend on, in order."""
    return [
        path
        for path in sorted(folder.rglob("*.*"))
        if path.is_file()
        and path.suffix != ".pyc"
        and path.parent.name != "assets"
        and path.relative_to(folder).parts[0] not in OTHER_ROOMS
    ]


def job_identity(tokenizer_files: dict[str, str], template: str) -> str:
    """Returns a digest of what a result depends on in addition to its input and its options."""
    python = ".".join(map(str, sys.version_info[:2]))  # its Unicode tables, its `re`
    parts: Json = [python, versions(), code_digest(), dict(tokenizer_files), template]
    return hashlib.sha256(dumps(parts).encode()).hexdigest()


# -- cuts large files into chunks of lines or items that are converted independently ---------------

WINDOW_BYTES = 64 << 20
"""Approximate size of a chunk; a file that would yield fewer than two is not cut."""
UNPACKED = 16
"""A table or an archive is assumed to expand to at most this multiple of its size on disk."""


def cut(task: Task) -> Iterator[Task]:
    """Yields the task itself, or a task per chunk of a large file whose format allows it."""
    source = task.source
    windows = _windows(task)
    if len(windows) < 2:
        yield task
        return
    limit = source.max_record_bytes
    for window in windows:
        chunk = Source(source.name, source.path, max_record_bytes=limit, window=window)
        yield replace(task, source=chunk)


def _windows(task: Task) -> Sequence[Chunk]:
    """Returns the chunks of a task's source; fewer than two mean that it is not cut."""
    source, path = task.source, task.source.path
    if path is None or source.members:
        return ()
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
        status = path.stat()  # before the file is read, so that a change is noticed
        if magic.startswith((GZIP_MAGIC, ZSTD_MAGIC)):
            return ()  # reading can only start at the beginning
        is_packed = magic in (PARQUET_MAGIC, ARROW_MAGIC[:4], ZIP_MAGIC)
        if status.st_size * (UNPACKED if is_packed else 1) < 2 * WINDOW_BYTES:
            return ()
        reader = sole_reader(task)
        if source.peek.kind != "jsonl":
            if reader is None or reader.item_sizes is None or write_ahead_log(source) is not None:
                return ()  # a write-ahead log may change while its database does not
            sizes = reader.item_sizes(source)
            return _runs(path, status, sizes, [0] * len(sizes))
        if reader is None or reader.splits is None or not reader.splits(source):
            return ()
        if isinstance(source.table, FileTable):
            groups = source.table.groups()
            return _runs(path, status, [item.bytes for item in groups], [i.rows for i in groups])
        return _lines(path, status)
    except OSError:
        return ()  # reading the whole file reports the error


def _lines(path: Path, status: os.stat_result) -> list[LineChunk]:
    """Returns chunks that end at the first line end after each WINDOW_BYTES.

    Raises OSError if the file cannot be read.
    """
    starts = [(0, 1)]
    offset, line = 0, 1
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
            while (due := starts[-1][0] + WINDOW_BYTES - offset) < len(piece):
                end = piece.find(b"\n", max(due, 0))
                if end < 0:
                    break
                starts.append((offset + end + 1, line + piece.count(b"\n", 0, end + 1)))
            line += piece.count(b"\n")
            offset += len(piece)
    if starts[-1][0] == offset:
        starts.pop()
    whole = WholeFile(offset, digest.hexdigest(), status.st_mtime_ns)
    ends = [start for start, _ in starts[1:]] + [offset]
    return [
        LineChunk(start, end, first, whole)
        for (start, first), end in zip(starts, ends, strict=True)
    ]


def _runs(
    path: Path, status: os.stat_result, sizes: Sequence[int], rows: Sequence[int]
) -> list[ItemChunk]:
    """Returns chunks of consecutive items, of about WINDOW_BYTES each. Raises OSError.

    `sizes` are the unpacked sizes of the items in bytes, `rows` their numbers of rows. Both come
    from the file and may be false, so its size on disk limits the number of chunks.
    """
    before = [0, *accumulate(max(item, 0) for item in sizes)]
    total = before[-1]
    number = min(total, UNPACKED * status.st_size) // WINDOW_BYTES
    if number < 2:
        return []

    def chunk_of(index: int) -> int:
        return min(before[index] * number // total, number - 1)  # the last item may be empty

    starts = [next(items) for _, items in groupby(range(len(sizes)), chunk_of)]
    if len(starts) < 2:
        return []
    firsts = list(accumulate(rows, initial=1))
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
        whole = WholeFile(stream.tell(), digest.hexdigest(), status.st_mtime_ns)
    return [
        ItemChunk(
            start,
            end,
            firsts[start],
            whole.bytes * before[end] // total - whole.bytes * before[start] // total,
            whole,
        )
        for start, end in zip(starts, [*starts[1:], len(sizes)], strict=True)
    ]


# -- reads the files of `inputs[].tools` and `inputs[].system` -------------------------------------


def supplied_tools(
    paths: Sequence[UserPath],
) -> tuple[tuple[Json, ...] | None, tuple[AgentDefinitions, ...]]:
    """Returns the definitions for all logs, and those captured from agents.

    Those of an agent whose logs no reader reads are for all logs. Raises
    UsageError for a file that cannot be read, or for two files for all logs.
    """
    general: tuple[Json, ...] | None = None
    captured: list[AgentDefinitions] = []
    for path in _files(paths, "tools"):
        value = _json(path)
        tools = definitions(value, f"tools {str(path)!r}")
        if (sent := _sent(value)) is not None and sent.agent in readers():
            captured.append(replace(sent, system=None, tools=tools))
            continue
        if not tools:
            raise UsageError(f"tools {str(path)!r}: defines no tool")
        if general is not None:
            raise UsageError(f"tools {str(path)!r}: a second file for all logs; only one can apply")
        general = tools
    return general, tuple(captured)


def supplied_system(
    paths: Sequence[UserPath],
) -> tuple[str | None, tuple[AgentDefinitions, ...]]:
    """Returns the text for all logs, and those captured from agents. Raises UsageError."""
    general: str | None = None
    captured: list[AgentDefinitions] = []
    for path in _files(paths, "system"):
        text = _text(path)
        value = _json_or_none(text)
        sent = _sent(value)
        if sent is not None and sent.system is not None and sent.agent in readers():
            captured.append(replace(sent, tools=None))
            continue
        if sent is not None and sent.system is not None:
            text = sent.system
        elif isinstance(value, dict) and not {"agent", "messages", "tools"}.isdisjoint(value):
            raise UsageError(
                f"system {str(path)!r}: is a request or a list of tools; expected the text of the"
                " system prompt, or a file of `builder capture --definitions`"
            )
        if general is not None:
            raise UsageError(
                f"system {str(path)!r}: a second text for all logs; only one can apply"
            )
        general = text.rstrip("\n") if sent is None else text
    return general, tuple(captured)


def _files(paths: Sequence[UserPath], name: str) -> Iterator[Path]:
    """Yields the files; of a folder, the definitions in it. Raises UsageError if it has none."""
    for path in (item.located for item in paths):
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not files:
            raise UsageError(f"{name} {str(path)!r}: has no definitions (*.json)")
        yield from files


def _sent(value: Json) -> AgentDefinitions | None:
    """Returns the contents of a file of `builder capture --definitions`; None for any other."""
    if not isinstance(value, dict):
        return None
    agent, version, system = (value.get(key) for key in ("agent", "version", "system"))
    tools, headless = value.get("tools"), value.get("headless")
    if not isinstance(agent, str) or not isinstance(tools, list):
        return None
    return AgentDefinitions(
        agent,
        version if isinstance(version, str) else "",
        system if isinstance(system, str) else None,
        tuple(tools),
        headless if isinstance(headless, bool) else None,
        as_str(value.get("folder")),
    )


def definitions(value: Json, name: str) -> tuple[Json, ...]:
    """Returns the definitions of tools in the value of a file or of a caller.

    Raises UsageError, which says `name`, if one is no definition.
    """
    tools = _definitions(value)
    for at, tool in enumerate(tools):
        counts: Counter[str] = Counter()
        convert([tool], counts)
        if counts["bad_tool"]:
            place = f"[{at}] " if len(tools) > 1 else ""
            raise UsageError(
                f"{name}: {place}is no tool definition: expected a list of objects"
                " with a name, a description and parameters, or an object with such a list as"
                " `tools` (a request, or a file of `builder capture --definitions`)"
            )
    return tuple(tools)


def _definitions(value: Json, depth: int = 2) -> Sequence[Json]:
    """Returns the definitions in a list, a request, an answer of MCP, or an object by name.

    Any other value is returned as it is, in a list.
    """
    if isinstance(value, list):
        return value
    if not isinstance(value, dict) or name_of(value) is not None or "function" in value:
        return [value]
    for key in ("tools", "functions"):
        if isinstance(tools := value.get(key), list):
            return tools
    for key in ("request", "body", "params", "config", "toolConfig", "result") if depth else ():
        if isinstance(inner := value.get(key), dict):
            found = _definitions(inner, depth - 1)
            if found != [inner]:
                return found
    if value and all(isinstance(one, dict) and parameters_of(one)[0] for one in value.values()):
        return [{"name": name, **as_dict(one)} for name, one in value.items()]
    return [value]


def _json(path: Path) -> Json:
    """Returns the value of a file; of JSONL, the values of its lines."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable("tools", path, error) from error
    try:
        return loads(data)
    except JsonFault as fault:
        lines = data.splitlines()
        with contextlib.suppress(JsonFault):
            if len(lines) > 1:
                return [loads(line) for line in lines if line.strip()]
        raise UsageError(f"tools {str(path)!r}: is not JSON: {fault.detail}") from fault


def _json_or_none(text: str) -> Json:
    try:
        return loads(text) if text.startswith("{") else None
    except JsonFault:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _unreadable("system", path, error) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"system {str(path)!r}: not UTF-8 at byte {error.start}") from error


def _unreadable(key: str, path: Path, error: OSError) -> UsageError:
    """Returns the error of a file that cannot be read; one that is missing may be captured."""
    text = f"{key} {str(path)!r}: {error.strerror or error}"
    if isinstance(error, FileNotFoundError):
        text += f"; an agent's own: builder capture --definitions -o {shlex.quote(path.name)} --"
        text += " claude -p hi (docs/capture.md)"
    return UsageError(text)


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
