"""Accepts what callers of the API pass: paths or rows, options or a dict of their values."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from builder.options import Preset, is_key
from builder.problem import UsageError, nearest

if TYPE_CHECKING:
    from builder.config import Config
    from builder.readers.mapping.spec import MappingSpec

Row = Mapping[str, Any]
DatasetLike = str | os.PathLike[str] | Iterable[Row]
"""A dataset: the path of a file or folder, `hf://OWNER/NAME`, a build, or rows in memory.

Rows are dicts in any iterable, a `datasets.Dataset` or `DatasetDict`, a data frame, or an Arrow
table.
"""

InputsLike = str | Path | Iterable[str | Path] | Iterable[Row]
"""Logs: one path, glob or URL, several of them, or records in memory."""

MappingLike = str | Path | Mapping[str, Any] | tuple[str, str]
"""A mapping: the path of its file, a dict of its keys, or what `suggest_mapping` returns."""

ROWS = "rows.jsonl"
"""The name under which rows in memory are listed."""

Options = TypeVar("Options")


@contextlib.contextmanager
def given_dataset(dataset: DatasetLike, name: str = "dataset") -> Iterator[str]:
    """Yields the path or address of a dataset, or of logs; rows are in a temporary file meanwhile.

    Raises UsageError for anything else; `name` is the parameter.
    """
    if isinstance(dataset, str | os.PathLike):
        yield os.fspath(dataset)
        return
    rows = given_rows(dataset, name)
    with _written(rows) as path:
        yield str(path)


@contextlib.contextmanager
def given_inputs(inputs: InputsLike, config: Config) -> Iterator[Config]:
    """Yields the configuration with these inputs; records are in a temporary file meanwhile.

    Raises UsageError for anything else.
    """
    from builder.config import override  # noqa: PLC0415 - heavy

    items = [inputs] if isinstance(inputs, str | os.PathLike) else _listed(inputs)
    if items is not None and all(isinstance(item, str | os.PathLike) for item in items):
        yield override(config, inputs=[os.fspath(cast("str | Path", item)) for item in items])
        return
    if items is None or not all(isinstance(row, Mapping) for row in items):
        expected = "a path, a list of paths or a list of records (dicts)"
        raise UsageError(f"inputs: must be {expected}, found {_kind_of(inputs, items)}")
    with _written(cast("list[Row]", items)) as path:
        yield _with_records(config, path)


def _with_records(config: Config, path: Path) -> Config:
    from builder.config.sections import InputSection  # noqa: PLC0415 - heavy
    from builder.paths import UserPath  # noqa: PLC0415 - as above

    first = config.inputs[0] if len(config.inputs) == 1 else InputSection(UserPath(""))
    return replace(config, inputs=(replace(first, path=UserPath(path.name, path.parent)),))


def given_rows(values: object, name: str) -> list[Row]:
    """Returns the rows that a caller passed. Raises UsageError if it is no list of them."""
    rows = _listed(values)
    if rows is None or not all(isinstance(row, Mapping) for row in rows):
        found = _kind_of(values, rows)
        raise UsageError(f"{name}: must be a path or a list of rows (dicts), found {found}")
    return cast("list[Row]", rows)


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
    return f"{kind} of {', '.join(kinds)}" if kinds else kind


@contextlib.contextmanager
def _written(rows: Sequence[Row]) -> Iterator[Path]:
    """Writes rows to a temporary file. Raises UsageError for a value that JSON does not have."""
    import tempfile  # noqa: PLC0415 - only for rows in memory

    from builder.jsonio import dumps  # noqa: PLC0415 - orjson

    with tempfile.TemporaryDirectory(prefix="builder-rows-") as folder:
        path = Path(folder, ROWS)
        with path.open("wb") as stream:
            for number, row in enumerate(rows):
                try:
                    line = dumps(dict(row))
                except (TypeError, ValueError) as error:
                    raise UsageError(f"row {number}: is not JSON: {error}") from None
                stream.write(line.encode("utf-8", "surrogatepass") + b"\n")
        yield path


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
    known = {item.name for item in fields(cast("Any", kind)) if is_key(item)}
    for name in options:
        if name not in known:
            raise UsageError(f"options: {name!r}: no such key{nearest(str(name), known)}")
    values = {
        name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
    }
    return kind(**values)


def given_config(
    config: Config | Mapping[str, Any] | str | Path | None,
    preset: Preset | None = None,
    *,
    for_merge: bool = False,
) -> Config:
    """Returns a configuration from a value, the path of a YAML file, or a dict of its keys.

    Paths in a dict are relative to the current folder; its keys override those of the preset.
    `for_merge` refuses those that a merge does not use. Raises UsageError.
    """
    from builder.config import Config, load_config  # noqa: PLC0415 - heavy
    from builder.config.fields import as_document  # noqa: PLC0415 - as above
    from builder.config.load import read_over, refuse_unmerged  # noqa: PLC0415 - as above
    from builder.config.sections import MERGED  # noqa: PLC0415 - as above

    if preset is not None and not isinstance(preset, str):
        raise UsageError(f"preset: must be a name, found {type(preset).__name__}")
    if preset is not None and config is None:
        return load_config(preset=preset)
    if preset is not None and isinstance(config, Config):
        raise UsageError("preset: goes with a config that is a path or a dict, not with a Config")
    if isinstance(config, Config) and (faults := [*config.contradictions()]):
        raise UsageError("\n".join(f"config: {fault}" for fault in faults))
    if config is None or isinstance(config, Config):
        chosen = config or Config()
        if for_merge:
            changed = (item.name for item in fields(Config) if item.name not in MERGED)
            default = Config()
            names = [one for one in changed if getattr(chosen, one) != getattr(default, one)]
            refuse_unmerged(names, "config")
        return chosen
    if isinstance(config, str | os.PathLike):
        return load_config(Path(config), preset, for_merge=for_merge)
    if isinstance(config, Mapping):
        return read_over(preset, as_document(config), Path(), "config", for_merge=for_merge)
    raise UsageError(f"config: must be a Config, a path or a dict, found {type(config).__name__}")


def given_mapping(mapping: object) -> MappingSpec | str:
    """Returns the path of a mapping file as text, or the mapping that a caller passed.

    Raises UsageError for anything else, and for a wrong key or path.
    """
    from builder.config.load import parse_mapping, read_mapping  # noqa: PLC0415 - heavy

    if isinstance(mapping, str | os.PathLike):
        return os.fspath(mapping)
    if isinstance(mapping, Mapping):
        return read_mapping(mapping, Path(), "mapping")
    if isinstance(mapping, tuple) and isinstance(text := getattr(mapping, "text", None), str):
        return parse_mapping(text, "mapping")
    found = type(mapping).__name__
    raise UsageError(
        f"mapping: must be a path, a dict or a result of suggest_mapping, found {found}"
    )
