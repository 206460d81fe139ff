"""The configuration: YAML, read strictly, every fault named.

The dataclasses below are the schema: their fields are the keys, their types what is accepted,
their defaults the defaults. An unknown key, a wrong type, a bad choice, a key written twice or a
missing file ends in one UsageError that lists all faults, one a line: file, key, nearest valid
name.
"""

from __future__ import annotations

import difflib
import os
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import yaml

from builder.audit.options import AuditOptions
from builder.conversation import Json
from builder.normalize.options import NormalizeOptions
from builder.paths import expand_home
from builder.problem import UsageError
from builder.scrub.options import ScrubOptions
from builder.select.splits import SplitOptions
from builder.sources.store import is_url
from builder.verify.options import VerifyOptions


@dataclass(frozen=True, slots=True)
class UserPath:
    """A path as the user wrote it, and the folder that it is relative to (None: the current)."""

    written: str
    base: Path | None = None

    @property
    def located(self) -> Path:
        """The path to open."""
        return (self.base or Path()) / expand_home(self.written)

    @property
    def shown(self) -> str:
        """For files that leave this machine: as written, the home folder as `~`."""
        home = str(expand_home("~"))
        if home != "/" and self.written.startswith(home + os.sep):
            return "~" + self.written[len(home) :].replace(os.sep, "/")
        return self.written


@dataclass(frozen=True, slots=True)
class InputConfig:
    """`inputs[]`: where logs are, and what they do not say themselves."""

    path: UserPath
    format: str = "auto"
    tools: UserPath | None = None
    system: UserPath | None = None
    license: str | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class NormalizeConfig:
    """`normalize`: see builder.normalize."""

    unit: Literal["conversation", "query", "turn"] = "conversation"
    system: Literal["keep", "drop", "replace"] = "keep"
    reasoning: Literal["drop", "keep"] = "drop"
    unanswered_calls: Literal["trim", "reject"] = "trim"
    parallel_calls: Literal["keep", "split", "reject"] = "keep"
    control_tokens: Literal["reject", "neutralise"] = "reject"
    missing_tools: Literal["infer", "reject"] = "infer"
    media: Literal["placeholder", "reject"] = "placeholder"
    allow_eval: bool = False

    @property
    def options(self) -> NormalizeOptions:
        """What the normaliser is told."""
        return NormalizeOptions(**{item.name: getattr(self, item.name) for item in fields(self)})


@dataclass(frozen=True, slots=True)
class VerifyConfig:
    """`verify`: `tokenizer` is qwen3 (embedded), a folder, or a Hub id, perhaps with @revision."""

    tokenizer: UserPath = field(default_factory=lambda: UserPath("qwen3"))
    schema: Literal["report", "reject"] = "report"
    parity: Literal["report", "require"] = "report"
    mode: Literal["non-thinking", "thinking"] = "non-thinking"

    @property
    def options(self) -> VerifyOptions:
        """What the verifier is told."""
        return VerifyOptions(self.schema, self.parity, self.mode)

    @property
    def target(self) -> str:
        """What `Target.load` takes: the folder if there is one of that name, else the name."""
        located = self.tokenizer.located
        known = self.tokenizer.written == "qwen3" or not located.is_dir()
        return self.tokenizer.written if known else str(located)


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """`audit`: what is done about what an audit finds; see builder.audit."""

    secrets: Literal["redact", "reject", "report", "off"] = "redact"
    personal_data: Literal["pseudonymise", "reject", "report", "off"] = "report"
    near_duplicates: Literal["drop", "report", "off"] = "report"
    contamination: tuple[UserPath, ...] = ()

    @property
    def scrub(self) -> ScrubOptions:
        """What is done before a sample is verified."""
        return ScrubOptions(self.secrets, self.personal_data)

    @property
    def sets(self) -> tuple[str, ...]:
        """The evaluation sets: a path where there is one, else a name on the Hub."""
        return tuple(
            str(item.located) if item.located.exists() else item.written
            for item in self.contamination
        )


@dataclass(frozen=True, slots=True)
class MixConfig:
    """`mix`: target shares of the samples by behaviour (`builder.audit.pattern`); see there."""

    direct_answer: float | None = None
    single_call: float | None = None
    chain: float | None = None
    parallel: float | None = None
    clarification: float | None = None
    error_recovery: float | None = None

    @property
    def shares(self) -> dict[str, float]:
        """Those that were given."""
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: share for name, share in given.items() if share is not None}


@dataclass(frozen=True, slots=True)
class LimitsConfig:
    """`limits`: a longer record (a line, a document, in MB of 2^20 bytes) or sample is rejected."""

    max_tokens: int | None = None
    max_record_mb: int = 256


@dataclass(frozen=True, slots=True)
class SplitConfig:
    """`split`: shares of the sessions that go to validation and test; see builder.select.splits."""

    validation: float = 0.0
    test: float = 0.0
    by: Literal["conversation"] = "conversation"
    seed: int = 0

    @property
    def options(self) -> SplitOptions:
        """What the splitting is told."""
        return SplitOptions(self.validation, self.test, self.seed)


@dataclass(frozen=True, slots=True)
class OutputConfig:
    """`output`: the kinds of files in data/, each closed once its samples hold `shard_mb`.

    `compress` is of the JSONL in data/ (Parquet is compressed in itself; meta/ is paged as it is).
    """

    formats: tuple[Literal["jsonl", "parquet"], ...] = ("jsonl",)
    shard_mb: int = 256
    compress: Literal["none", "zstd"] = "none"

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The ends of the names of the files in data/, one for each of `formats`."""
        packed = "jsonl.zst" if self.compress == "zstd" else "jsonl"
        return tuple(packed if kind == "jsonl" else kind for kind in self.formats)


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration, with every default filled in."""

    name: str = "dataset"
    inputs: tuple[InputConfig, ...] = ()
    normalize: NormalizeConfig = field(default_factory=NormalizeConfig)
    verify: VerifyConfig = field(default_factory=VerifyConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    split: SplitConfig = field(default_factory=SplitConfig)
    mix: MixConfig = field(default_factory=MixConfig)
    output: OutputConfig = field(default_factory=OutputConfig)

    @property
    def paths(self) -> list[Path | None]:
        """The inputs that lie on a disk; None: one that does not."""
        return [None if is_url(item.path.written) else item.path.located for item in self.inputs]

    @property
    def audit_options(self) -> AuditOptions:
        """What an audit of the dataset is told."""
        return AuditOptions(
            contamination=self.audit.sets,
            mix=self.mix.shares,
            near=self.audit.near_duplicates != "off",
            tokenizer=self.verify.target,
        )

    def with_tokenizer(self, tokenizer: UserPath) -> Config:
        """The same with another tokenizer to verify against."""
        return replace(self, verify=replace(self.verify, tokenizer=tokenizer))

    def with_evaluation(self) -> Config:
        """The same with the data of benchmarks allowed."""
        return replace(self, normalize=replace(self.normalize, allow_eval=True))

    def resolved(self) -> dict[str, Json]:
        """Every key with its value, for the manifest; paths as the user wrote them."""
        return cast("dict[str, Json]", _plain(self))


def load_config(path: Path) -> Config:
    """Read a YAML file; paths in it are relative to its folder. Raises UsageError."""
    try:
        document = yaml.load(path.read_bytes(), _Loader)  # noqa: S506 - a subclass of SafeLoader
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except _DuplicateKey as fault:
        raise UsageError(f"{path}: {fault}") from fault
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark
        place = f" at line {at.line + 1}, column {at.column + 1}" if at else ""
        raise UsageError(f"{path}: not YAML: {error.problem}{place}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not YAML: {str(error).splitlines()[0]}") from error
    faults: list[str] = []
    config = _Reading(path.parent, faults).section(Config, document, "")
    if isinstance(config, Config):
        faults += _contradictions(config)
    if faults or not isinstance(config, Config):
        raise UsageError("\n".join(f"{path}: {fault}" for fault in faults))
    return config


def _contradictions(config: Config) -> Iterator[str]:
    """Values of which each is possible and which together, or where they stand, are not."""
    if not config.output.formats:
        yield "output.formats: names no format; there are jsonl, parquet"
    if config.split.validation + config.split.test > 1:
        yield "split: validation and test together are more than 1"
    if sum(config.mix.shares.values()) > 1 + 1e-9:
        yield "mix: the shares are more than 1 together"
    for number, item in enumerate(config.inputs):
        if not 0 <= item.weight <= 1:
            yield f"inputs[{number}].weight: {item.weight} is not between 0 and 1"


def override(
    config: Config,
    *,
    inputs: Sequence[str] = (),
    format: str | None = None,  # noqa: A002 - the option's name
    tools: str | None = None,
    system: str | None = None,
) -> Config:
    """The configuration with what the command line says: inputs replace inputs, the rest keys."""
    chosen = config.inputs
    if inputs:
        chosen = tuple(InputConfig(UserPath(path)) for path in inputs)
    if format is not None:
        chosen = tuple(replace(item, format=format) for item in chosen)
    if tools is not None:
        chosen = tuple(replace(item, tools=UserPath(tools)) for item in chosen)
    if system is not None:
        chosen = tuple(replace(item, system=UserPath(system)) for item in chosen)
    return replace(config, inputs=chosen)


def nearest(name: str, valid: Iterable[str]) -> str:
    """The end of a message about an unknown name: `, did you mean X?` or the names there are."""
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1)
    return f", did you mean {close[0]!r}?" if close else f"; there are: {', '.join(names)}"


class _DuplicateKey(Exception):
    """A key that is written twice: YAML lets the last win, which hides a mistake."""


class _Loader(yaml.SafeLoader):
    """The safe loader, refusing duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise _DuplicateKey(f"{key.value}: the key is written twice (line {line})")
                seen.add(key.value)
        return super().construct_mapping(node, deep)


MAX_WHOLE = (1 << 31) - 1
"""The largest number of tokens or of MB: so many bytes are still a number to the system."""

_FAULT = object()
"""In place of a value that was refused; the fault is already noted."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Checks a YAML value against the dataclasses; faults are collected, not raised."""

    base: Path
    faults: list[str]

    def section(self, kind: type, value: object, key: str) -> object:
        """A value for a dataclass: a mapping of its fields. An empty section is all defaults."""
        if value is None:
            value = {}
        if not isinstance(value, dict):
            return self.refuse(key, "a mapping of keys", value)
        hints = get_type_hints(kind)
        known = {item.name: item for item in fields(kind)}
        found: dict[str, object] = {}
        for name, item in value.items():
            path = f"{key}.{name}" if key else str(name)
            if name not in known:
                self.faults.append(f"{path}: unknown key{nearest(str(name), known)}")
                continue
            found[name] = self.value(hints[name], item, path)
        for name, item in known.items():
            needed = item.default is MISSING and item.default_factory is MISSING
            if needed and name not in found:
                self.faults.append(f"{key}.{name}: is missing")
                return _FAULT
        if _FAULT in found.values():
            return _FAULT
        return kind(**found)

    def value(self, kind: object, value: object, key: str) -> object:
        """A value for a field of type `kind`."""
        origin, choices = get_origin(kind), get_args(kind)
        if origin is Literal:
            if value is False and "off" in choices:
                value = "off"  # YAML 1.1 reads the word so
            if isinstance(value, str) and value in choices:
                return value
            hint = nearest(value, choices) if isinstance(value, str) else ""
            return self.refuse(key, f"one of {', '.join(choices)}", value, hint)
        if origin in (Union, types.UnionType):
            return None if value is None else self.value(choices[0], value, key)
        if origin is tuple:
            return self.items(choices[0], value, key)
        if isinstance(kind, type) and is_dataclass(kind) and kind is not UserPath:
            return self.section(kind, value, key)
        if kind in (int, float):
            return self.number(kind, value, key)
        if not isinstance(value, str) or not value:
            return self.refuse(key, "text", value)
        if kind is UserPath and "\0" in value:
            return self.refuse(key, "a path, which holds no NUL", value)
        return UserPath(value, self.base) if kind is UserPath else value

    def number(self, kind: object, value: object, key: str) -> object:
        """A whole number from 0 for a seed, 1 to MAX_WHOLE elsewhere; a share from 0 to 1."""
        # bool is an int to Python, never to a reader of the file
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if kind is float:
            good = is_number and 0 <= cast("float", value) <= 1
            return (
                float(cast("float", value)) if good else self.refuse(key, "a share, 0 to 1", value)
            )
        is_whole = is_number and isinstance(value, int)
        if key.endswith("seed"):
            good = is_whole and cast("int", value) >= 0
            return value if good else self.refuse(key, "a whole number from 0", value)
        good = is_whole and 1 <= cast("int", value) <= MAX_WHOLE
        return value if good else self.refuse(key, f"a whole number, 1 to {MAX_WHOLE}", value)

    def items(self, kind: object, value: object, key: str) -> object:
        if value is None:
            return ()
        if not isinstance(value, list):
            return self.refuse(key, "a list", value)
        found = [self.value(kind, item, f"{key}[{index}]") for index, item in enumerate(value)]
        if _FAULT in found:
            return _FAULT
        if get_origin(kind) is Literal and len(set(found)) < len(found):
            self.faults.append(f"{key}: a name is written twice: {', '.join(value)}")
            return _FAULT
        return tuple(found)

    def refuse(self, key: str, expected: str, value: object, hint: str = "") -> object:
        shown = repr(value) if isinstance(value, (str, int, float, bool)) else _kind(value)
        self.faults.append(f"{key or 'the file'}: must be {expected}, found {shown[:80]}{hint}")
        return _FAULT


def _kind(value: object) -> str:
    names = {dict: "a mapping", list: "a list", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)


def _plain(value: object) -> Json:
    if isinstance(value, UserPath):
        return value.shown
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return cast("Json", value)
