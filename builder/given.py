"""Accepts what callers of the API pass: paths or rows, options or a dict of their values."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

from builder.options import Preset, as_document
from builder.paths import UserPath, expand_home
from builder.problem import UsageError

if TYPE_CHECKING:
    from builder.capture.pairs import SentDefinitions
    from builder.config import Config
    from builder.config.sections import Keys
    from builder.readers.mapping.spec import MappingSpec

Row = Mapping[str, Any]


class Table(Protocol):
    """A table in memory: of Arrow, pandas or polars."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""


DatasetLike = str | os.PathLike[str] | Iterable[Row] | Table
"""A dataset: the path of a file or folder, `hf://OWNER/NAME`, a build, or rows in memory.

Rows are dicts in any iterable, a `datasets.Dataset` or `DatasetDict`, a data frame, or an Arrow
table.
"""

InputsLike = str | Path | Iterable[str | Path | Row] | Table
"""Logs: one path, glob or URL, several of them, or records in memory."""

MappingLike = str | Path | Mapping[str, Any] | tuple[str, str]
"""A mapping: the path of its file, a dict of its keys, or what `suggest_mapping` returns."""

ToolsLike: TypeAlias = (
    "str | Path | Row | SentDefinitions | Iterable[str | Path | Row | SentDefinitions] | None"
)
"""Definitions of tools: files; or a list of them, a request, or what `capture_definitions` returns.

A `str` is the name of a file, here and below.
"""

SystemLike: TypeAlias = ToolsLike
"""A system prompt: files; or its message (`role`, `content`), or as for tools."""

ROWS = "rows.jsonl"
"""The name under which rows in memory are listed."""

Options = TypeVar("Options")


@contextlib.contextmanager
def given_dataset(
    dataset: DatasetLike, name: str = "dataset", *, mapped: bool = False
) -> Iterator[str]:
    """Yields the path or address of a dataset, or of logs; rows are in a temporary file meanwhile.

    Raises UsageError for anything else; `name` is the parameter. `mapped`: rows may be messages.
    """
    if isinstance(dataset, str | os.PathLike):
        from builder.sources.store import local_copy  # noqa: PLC0415 - heavy

        with local_copy(os.fspath(dataset)) as path:
            yield path
        return
    rows = given_rows(dataset, name, mapped=mapped)
    with scratch() as folder:
        yield str(_written(rows, folder))


@contextlib.contextmanager
def given_inputs(inputs: InputsLike, config: Config, *, mapped: bool = False) -> Iterator[Config]:
    """Yields the configuration with these inputs; records are in a temporary file meanwhile.

    `mapped`: a mapping or a format says how they are read. Raises UsageError for anything else.
    """
    from builder.config import override  # noqa: PLC0415 - heavy

    items: list[object] | None
    items = [inputs] if isinstance(inputs, str | os.PathLike) else _listed(inputs)
    if items == [] and not isinstance(inputs, list | tuple):
        raise UsageError(f"inputs: has no rows ({type(inputs).__name__})")
    if items is not None and all(isinstance(item, str | os.PathLike) for item in items):
        yield override(config, inputs=[os.fspath(cast("str | Path", item)) for item in items])
        return
    expected = "a path, a list of paths or a list of records (dicts)"
    mapped = mapped or any(item.mapping is not None for item in config.inputs)
    rows = _rows(inputs, items, "inputs", expected, mapped=mapped)
    with scratch() as folder:
        yield _with_records(config, _written(rows, folder))


def _with_records(config: Config, path: Path) -> Config:
    from builder.config.sections import InputSection  # noqa: PLC0415 - heavy

    first = config.inputs[0] if len(config.inputs) == 1 else InputSection(UserPath(""))
    return replace(config, inputs=(replace(first, path=UserPath(path.name, path.parent)),))


def given_rows(values: object, name: str, *, mapped: bool = False) -> list[Row]:
    """Returns the rows that a caller passed. Raises UsageError if it is no list of them."""
    expected = "a path or a list of rows (dicts)"
    return _rows(values, _listed(values), name, expected, mapped=mapped)


def _rows(
    values: object, items: list[object] | None, name: str, expected: str, *, mapped: bool
) -> list[Row]:
    """Returns the items as rows. Raises UsageError if they are others, or bare messages."""
    if items is None or not all(isinstance(row, Mapping) for row in items):
        raise UsageError(f"{name}: must be {expected}, found {_kind_of(values, items)}")
    rows = cast("list[Row]", items)
    if not mapped and _are_messages(rows):
        whole = "[{'messages': messages}]"
        raise UsageError(f"{name}: is the messages of one conversation: pass {whole}")
    return rows


def _are_messages(rows: Sequence[Row]) -> bool:
    """Returns whether rows are messages of chat, which no reader reads one by one."""
    if not rows or not all(
        isinstance(row.get("role"), str) and not row.keys().isdisjoint(_SAYS) for row in rows
    ):
        return False
    from builder.readers import recognise  # noqa: PLC0415 - heavy
    from builder.sources.source import Source  # noqa: PLC0415 - as above

    return not recognise(Source(ROWS, data=b"".join(lines_of(rows))))


_SAYS = ("content", "tool_calls")
"""The keys of a chat message, of which each has one."""


def _listed(values: Any) -> list[object] | None:
    """Returns the items of an iterable, the rows of a table, those of all splits; None for others.

    A `DatasetDict` has splits. Tables are those of Arrow, pandas and polars.
    """
    if hasattr(values, "to_pylist"):
        return [*values.to_pylist()]
    if type(values).__name__ == "DataFrame":
        if hasattr(values, "to_arrow"):
            return [*values.to_arrow().to_pylist()]
        import pyarrow  # noqa: PLC0415 - only for data frames

        return [*pyarrow.Table.from_pandas(values, preserve_index=False).to_pylist()]
    if isinstance(values, Mapping) and type(values).__name__.endswith("DatasetDict"):
        return [row for split in values.values() for row in split]
    if not isinstance(values, Iterable) or isinstance(values, Mapping | bytes | str):
        return None
    return list(values)


def _kind_of(values: object, items: Sequence[object] | None) -> str:
    """Returns the name of a type that is refused; for a list also those of its items."""
    kind = type(values).__name__
    if isinstance(values, Mapping):
        return f"{kind} (one row: put it into a list)"
    kinds = sorted({type(item).__name__ for item in items or ()})
    hint = " (conversations: [{'messages': one} for one in …])" if kinds == ["list"] else ""
    return f"{kind} of {', '.join(kinds)}{hint}" if kinds else kind


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Yields a temporary folder for values in memory, which mistakes do not name."""
    import tempfile  # noqa: PLC0415 - only for values in memory

    with tempfile.TemporaryDirectory(prefix="builder-rows-") as folder:
        try:
            yield Path(folder)
        except UsageError as error:
            error.args = tuple(str(part).replace(f"{folder}{os.sep}", "") for part in error.args)
            raise


def _written(rows: Sequence[Row], folder: Path) -> Path:
    """Writes rows to a file; returns its path."""
    path = folder / ROWS
    with path.open("wb") as stream:
        stream.writelines(lines_of(rows))
    return path


def lines_of(rows: Sequence[Row]) -> Iterator[bytes]:
    """Yields rows as lines of JSON. Raises UsageError for a value that JSON does not have."""
    from builder.jsonio import dumps  # noqa: PLC0415 - orjson

    for number, row in enumerate(rows):
        try:
            line = dumps(dict(row))
        except (TypeError, ValueError) as error:
            raise UsageError(f"row {number}: is not JSON: {error}") from None
        except RecursionError:
            raise UsageError(f"row {number}: is nested too deep, or contains itself") from None
        yield line.encode("utf-8", "surrogatepass") + b"\n"


def given_tools(tools: ToolsLike, folder: Path) -> list[UserPath]:
    """Returns the paths of files with definitions; values in memory are written to the folder.

    Raises UsageError for anything else, and for a value that defines no tool.
    """
    from builder.build.supplied import definitions  # noqa: PLC0415 - heavy

    expected = "files, a list of definitions (dicts) or a result of capture_definitions"
    files, sent, others = _supplied(tools, "tools", expected)
    if others:  # one value, such as a request, or the definitions
        sent.append(others[0] if isinstance(tools, Mapping) else others)
    for value in sent:
        if not definitions(value, "tools"):
            raise UsageError("tools: defines no tool")
    return files + _kept(sent, folder, "tools")


def given_system(system: SystemLike, folder: Path) -> list[UserPath]:
    """Returns the paths of files with the system prompt; a message is written to the folder.

    Raises UsageError for anything else.
    """
    message = "{'role': 'system', 'content': prompt}"
    expected = f"a file, a message ({message}) or a result of capture_definitions"
    files, sent, others = _supplied(system, "system", expected)
    for one in others:
        if not isinstance(text := one.get("content"), str):
            raise UsageError(f"system: must be {expected}, found a dict without text as content")
        sent.append({"agent": "", "system": text, "tools": []})  # keeps the end of the text
    return files + _kept(sent, folder, "system")


def _supplied(
    given: object, name: str, expected: str
) -> tuple[list[UserPath], list[Any], list[Row]]:
    """Returns (paths, what `capture_definitions` returned, other dicts) of what a caller passed.

    Raises UsageError for anything else, and for one `str` that names no file.
    """
    if isinstance(given, str) and not os.path.isfile(expand_home(given)):  # noqa: PTH113 - never raises
        shown = repr(given[:60]) + "…" * (len(given) > 60)
        raise UsageError(f"{name} {shown}: no such file; {name} must be {expected}")
    is_one = isinstance(given, str | os.PathLike | Mapping) or hasattr(given, "to_json")
    items = [given] if is_one else [] if given is None else _listed(given)
    files: list[UserPath] = []
    sent: list[Any] = []
    others: list[Row] = []
    for item in items if items is not None else [given]:
        if isinstance(item, str | os.PathLike):
            files.append(UserPath(os.fspath(item)))
        elif isinstance(item, Mapping):
            (sent if {"agent", "tools"} <= item.keys() else others).append(item)
        elif hasattr(item, "to_json"):
            sent.append(json.loads(item.to_json()))
        else:
            raise UsageError(f"{name}: must be {expected}, found {_kind_of(given, items)}")
    return files, sent, others


def _kept(values: Sequence[Any], folder: Path, name: str) -> list[UserPath]:
    """Writes values to files in the folder; returns their paths."""
    from builder.jsonio import dumps  # noqa: PLC0415 - orjson

    names = [f"{name}-{number}.json" for number, _ in enumerate(values, 1)]
    for file, value in zip(names, values, strict=True):
        (folder / file).write_bytes(dumps(value).encode("utf-8", "surrogatepass"))
    return [UserPath(file, folder) for file in names]


def given_options(kind: type[Options], options: Options | Mapping[str, Any] | None) -> Options:
    """Returns options of a type from a dict of them (None: the defaults).

    Raises UsageError for an unknown key or value.
    """
    if options is None:
        return kind()
    if isinstance(options, kind):
        return options
    if not isinstance(options, Mapping):
        found = type(options).__name__
        raise UsageError(f"options: must be {kind.__name__} or a dict of its keys, found {found}")
    return kind(**options)


def given_config(
    config: Config | Mapping[str, Any] | str | Path | None,
    preset: Preset | None = None,
    keys: Keys = MappingProxyType({}),
    *,
    for_merge: bool = False,
) -> Config:
    """Returns a configuration from a value, the path of a YAML file, or a dict of its keys.

    Paths in a dict are relative to the current folder; its keys override those of the preset, and
    `keys` override them. `for_merge` refuses those that a merge does not use. Raises UsageError.
    """
    from builder.config import Config, load_config  # noqa: PLC0415 - heavy
    from builder.config.load import read_over, refuse_unmerged, with_keys  # noqa: PLC0415 - as above
    from builder.config.sections import MERGED  # noqa: PLC0415 - as above

    if preset is not None and not isinstance(preset, str):
        raise UsageError(f"preset: must be a name, found {type(preset).__name__}")
    if config is None:
        return load_config(preset=preset, keys=keys, for_merge=for_merge)
    if preset is not None and isinstance(config, Config):
        raise UsageError("preset: goes with a config that is a path or a dict, not with a Config")
    if isinstance(config, Config):
        chosen = config.with_keys(keys)
        if faults := [*chosen.contradictions()]:
            raise UsageError("\n".join(f"config: {fault}" for fault in faults))
        if for_merge:
            changed = (item.name for item in fields(Config) if item.name not in MERGED)
            default = Config()
            names = [one for one in changed if getattr(chosen, one) != getattr(default, one)]
            refuse_unmerged(names, "config")
        return chosen
    if isinstance(config, str | os.PathLike):
        return load_config(_file(config, "config"), preset, keys=keys, for_merge=for_merge)
    if isinstance(config, Mapping):
        document = with_keys(as_document(config), keys)
        return read_over(preset, document, Path(), "config", for_merge=for_merge)
    raise UsageError(f"config: must be a Config, a path or a dict, found {type(config).__name__}")


def _file(path: str | os.PathLike[str], name: str) -> Path:
    written = os.fspath(path)
    if "\n" in written:
        raise UsageError(f"{name}: is YAML, not a path: pass it as a dict, or write it to a file")
    return expand_home(written)


def given_mapping(mapping: object, *, built: bool = False) -> MappingSpec | str:
    """Returns the path of a mapping file as text, or the mapping that a caller passed.

    Raises UsageError for anything else, for a wrong key or path, and for a proposal with open
    questions that is to be `built`.
    """
    from builder.config.load import parse_mapping, read_mapping  # noqa: PLC0415 - heavy
    from builder.readers.mapping.spec import refuse_questions  # noqa: PLC0415

    if isinstance(mapping, str | os.PathLike):
        return str(_file(mapping, "mapping"))
    if isinstance(mapping, Mapping):
        return read_mapping(mapping, Path(), "mapping")
    if isinstance(mapping, tuple) and isinstance(text := getattr(mapping, "text", None), str):
        if built:
            refuse_questions("mapping", text)
        return parse_mapping(text, "mapping")
    found = type(mapping).__name__
    raise UsageError(
        f"mapping: must be a path, a dict or a result of suggest_mapping, found {found}"
    )
