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

Row = Mapping[str, Any]
DatasetLike = str | os.PathLike[str] | Sequence[Row]
"""A dataset: the path of a file or folder, `hf://OWNER/NAME`, a build, or rows in memory."""

InputsLike = str | Path | Sequence[str | Path] | Sequence[Row]
"""Logs: one path, glob or URL, several of them, or records in memory."""

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

    if isinstance(inputs, str | os.PathLike):
        inputs = [inputs]
    if isinstance(inputs, Iterable) and not isinstance(inputs, Mapping | bytes):
        items = list(inputs)
        if all(isinstance(item, str | os.PathLike) for item in items):
            yield override(config, inputs=[os.fspath(cast("str | Path", item)) for item in items])
            return
        rows = _rows(items)
        if rows is not None:
            with _written(rows) as path:
                yield _with_records(config, path)
            return
    raise UsageError("inputs: must be a path, a list of paths or a list of records (dicts)")


def _with_records(config: Config, path: Path) -> Config:
    from builder.config.sections import InputSection  # noqa: PLC0415 - heavy
    from builder.paths import UserPath  # noqa: PLC0415 - as above

    first = config.inputs[0] if len(config.inputs) == 1 else InputSection(UserPath(""))
    return replace(config, inputs=(replace(first, path=UserPath(path.name, path.parent)),))


def given_rows(values: object, name: str) -> list[Row]:
    """Returns the rows that a caller passed. Raises UsageError if it is no list of them."""
    rows = _rows(values)
    if rows is None:
        found = type(values).__name__
        raise UsageError(f"{name}: must be a path or a list of rows (dicts), found {found}")
    return rows


def _rows(values: object) -> list[Row] | None:
    """Returns the rows; None if the values are none."""
    if not isinstance(values, Iterable) or isinstance(values, Mapping | bytes | str):
        return None
    rows = list(values)
    return rows if all(isinstance(row, Mapping) for row in rows) else None


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
    config: Config | Mapping[str, Any] | str | Path | None, preset: Preset | None = None
) -> Config:
    """Returns a configuration from a value, the path of a YAML file, or a dict of its keys.

    Paths in a dict are relative to the current folder; its keys override those of the preset.
    Raises UsageError.
    """
    from builder.config import Config, load_config  # noqa: PLC0415 - heavy
    from builder.config.load import read_over  # noqa: PLC0415 - as above

    if preset is not None and config is None:
        return load_config(preset=preset)
    if preset is not None and isinstance(config, Config):
        raise UsageError("preset: goes with a config that is a path or a dict, not with a Config")
    if config is None or isinstance(config, Config):
        return config or Config()
    if isinstance(config, str | os.PathLike):
        return load_config(Path(config), preset)
    if isinstance(config, Mapping):
        return read_over(preset, dict(config), Path(), "config")
    raise UsageError(f"config: must be a Config, a path or a dict, found {type(config).__name__}")
