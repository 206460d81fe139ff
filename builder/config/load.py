"""Reads a configuration file strictly, and reports all faults at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import yaml

from builder.config.sections import MERGED, Config, Keys
from builder.conversation import Json
from builder.normalize.options import LengthOptions
from builder.options import REFUSED, FieldReader, Preset, as_document, keys_of, places_of_keys
from builder.paths import expand_home
from builder.problem import UsageError, nearest
from builder.qwen3.models import model_named
from builder.readers.mapping.spec import MappingSpec
from builder.scrub.options import ScrubOptions


def load_config(
    path: str | Path | None = None,
    preset: Preset | None = None,
    settings: Sequence[str] = (),
    *,
    keys: Keys = MappingProxyType({}),
    for_merge: bool = False,
) -> Config:
    """Reads a YAML file, in which paths are relative to its folder. None: the defaults.

    The keys of the file override those of the preset, `settings`, each KEY=VALUE, those of the
    file, and `keys`, such as {"verify.model": "Qwen3-8B"}, the settings. `for_merge` refuses the
    keys that a merge does not use. Raises UsageError with a line for each unknown or duplicate key,
    wrong type or value, and contradiction.
    """
    own: object = None
    for setting in settings:
        own = over(own, _set(setting))
    own = with_keys(own, keys)
    if path is None:
        name = "--set" if own else f"--preset {preset}"
        return read_over(preset, own, Path(), name, for_merge=for_merge)
    if not isinstance(path, str | PathLike):
        raise UsageError(f"config: must be a path, found {type(path).__name__}")
    path = expand_home(fspath(path))
    document = _without_empty_sections(_document(path))
    document = document if own is None else over(document, own)
    return read_over(preset, document, path.parent, str(path), for_merge=for_merge)


def _set(setting: str) -> object:
    """Returns the document with one key of `--set`, whose value is YAML. Raises UsageError."""
    key, separator, value = setting.partition("=")
    name = f"--set {setting!r}"
    if not (key and separator):
        raise UsageError(f"{name}: must be KEY=VALUE, such as normalize.unit=turn")
    return _nested(key, _parsed(value.encode(), name))


def _nested(key: str, value: object) -> object:
    for part in reversed(key.strip().split(".")):
        value = {part: value}
    return value


def with_keys(document: object, keys: Keys) -> object:
    """Returns a decoded document (None: none) with these keys."""
    for key, value in keys.items():
        if value not in (None, False):
            document = over(document, _nested(key, value))
    return document


def read_over(
    preset: Preset | None, document: object, base: Path, name: str, *, for_merge: bool = False
) -> Config:
    """Returns the configuration of a decoded document (None: none) over a preset.

    Raises UsageError as `_read_config` does, if there is no such preset, and, with `for_merge`, if
    a key is not one that a merge uses.
    """
    if for_merge:
        refuse_unmerged([*_unmerged(document)], name)
    below = _document(_preset_file(preset)) if preset is not None else None
    whole = below if document is None else over(below, document)
    if whole is None:
        return Config()
    section = whole.get("verify") if isinstance(whole, dict) else None
    model = section.get("model") if isinstance(section, dict) else None
    if isinstance(model, str) and model:
        whole = over(model_named(model).options, whole)
    return _read_config(whole, base, name)


def _preset_file(preset: Preset) -> Path:
    """Returns the file of a preset: in the package, or in a clone next to it.

    Raises UsageError if there is no such preset.
    """
    if preset not in get_args(Preset):
        raise UsageError(f"preset {preset!r}: no such preset{nearest(preset, get_args(Preset))}")
    here = Path(__file__).parent
    folders = (here / "presets", here.parent.parent / "configs" / "presets")
    paths = (folder / f"{preset}.yaml" for folder in folders)
    return next(path for path in paths if path.is_file())


def presets_in(resolved: Mapping[str, Json]) -> list[str]:
    """Returns the names of the presets all of whose options a resolved configuration has."""
    return [name for name in get_args(Preset) if _has(resolved, _document(_preset_file(name)))]


def _has(resolved: object, chosen: object) -> bool:
    if isinstance(resolved, Mapping) and isinstance(chosen, Mapping):
        return all(_has(resolved.get(key), value) for key, value in chosen.items())
    return resolved == chosen


def refuse_unmerged(keys: Sequence[str], name: str) -> None:
    """Raises UsageError if there are keys that a merge does not use."""
    if keys:
        own = f"limits.max_tokens and audit (not {' and '.join(keys_of(ScrubOptions))})"
        used = f"{', '.join(sorted(MERGED - {'audit', 'limits'}))}, {own}"
        raise UsageError(f"{name}: {', '.join(keys)}: not used by a merge, which uses {used}")


def _unmerged(document: object) -> Iterator[str]:
    """Yields the keys of a configuration in a document that a merge does not use."""
    for section, value in document.items() if isinstance(document, dict) else ():
        keys = [*value] if isinstance(value, dict) else []
        if section in keys_of(Config) and section not in MERGED:
            yield from (f"{section}.{key}" for key in keys) if keys else (section,)
        elif section in ("audit", "limits"):
            others = {*keys_of(ScrubOptions), *keys_of(LengthOptions)} - {"max_tokens"}
            yield from (f"{section}.{key}" for key in keys if key in others)


def over(base: object, document: object) -> object:
    """Returns the keys of `document` over those of `base`; a key that is null overrides too."""
    if not isinstance(base, dict) or not isinstance(document, dict):
        return document
    return {**base, **{key: over(base.get(key), value) for key, value in document.items()}}


def _without_empty_sections(document: object) -> object:
    """Returns it without sections that are null: in a file, all their keys may be comments."""
    if not isinstance(document, dict):
        return {} if document is None else document
    sections = {path.partition(".")[0] for path in places_of_keys(Config).values()}
    return {
        key: value for key, value in document.items() if value is not None or key not in sections
    }


def _read_config(document: object, base: Path, name: str) -> Config:
    """Returns the configuration of a decoded document; its paths are relative to `base`.

    Raises UsageError with a line for each fault, which begins with `name`.
    """
    reader = FieldReader(base, places_of_keys(Config))
    config = reader.section(Config, document, "")
    faults = reader.faults
    if config is not REFUSED:
        assert isinstance(config, Config)
        faults += [
            text
            for text in config.contradictions()
            if not any(fault.startswith(f"{text.partition(':')[0]}.") for fault in faults)
        ]
        if not faults:
            return config
    raise UsageError("\n".join(f"{name}: {fault}" for fault in faults))


def load_mapping(path: Path) -> MappingSpec:
    """Reads a mapping file (docs/mapping.md). Raises UsageError with a line for each fault."""
    return read_mapping(_document(path), path.parent, str(path))


def parse_mapping(text: str, name: str) -> MappingSpec:
    """Reads the YAML of a mapping file. Raises UsageError as `load_mapping` does."""
    return read_mapping(_parsed(text, name), Path(), name)


def read_mapping(document: object, base: Path, name: str) -> MappingSpec:
    """Returns the mapping of a decoded document. Raises UsageError as `load_mapping` does."""
    reader = FieldReader(base)
    spec = reader.section(MappingSpec, as_document(document), "")
    faults = reader.faults
    if spec is not REFUSED:
        assert isinstance(spec, MappingSpec)
        # A key with a typing error is missing too, which is no second fault.
        faults = [*faults, *(spec.faults_of_values() if faults else spec.faults())]
        if not faults:
            return spec
    raise UsageError("\n".join(f"{name}: {fault}" for fault in faults))


def _document(path: Path) -> object:
    try:
        return _parsed(path.read_bytes(), str(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


def _parsed(text: str | bytes, name: str) -> object:
    """Returns the value of YAML. Raises UsageError with a line that begins with `name`."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a subclass of SafeLoader
    except _DuplicateKey as fault:
        raise UsageError(f"{name}: {fault}") from fault
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(f"{name}: not YAML: {error.problem}{place}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{name}: not YAML: {str(error).splitlines()[0]}") from error


def read_resolved(document: dict[str, Json], base: Path) -> Config:
    """Reads a configuration from a manifest (`Config.resolved`), without its inputs.

    Raises UsageError if it is not valid.
    """
    reader = FieldReader(base)
    config = reader.section(Config, {**document, "inputs": []}, "config")
    if config is REFUSED:
        raise UsageError("\n".join(f"{base / 'manifest.json'}: {fault}" for fault in reader.faults))
    assert isinstance(config, Config)
    return config


class _DuplicateKey(Exception):
    """Raised for a duplicate key, of which YAML would silently use the last value."""


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise _DuplicateKey(f"{key.value}: the key occurs twice (line {line})")
                seen.add(key.value)
        return super().construct_mapping(node, deep)
