"""Defines manifest.json: every key once, with its type and meaning.

A manifest is not trusted, because it may come from anywhere. docs/output.md has the tables.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from builder.conversation import Json
from builder.finding import AuditFinding
from builder.jsonio import JsonFault, loads
from builder.keys import (
    COUNT,
    COUNTS,
    OBJECT,
    TEXT,
    Kind,
    each,
    key,
    keys_of,
    one,
    read_keys,
    write_keys,
)
from builder.ledger import Ledger
from builder.problem import UsageError
from builder.text import without_folders

# -- defines the options of the files in data/ -----------------------------------------------------

DEFAULT_NAME = "dataset"
"""The name of a dataset that the user did not name."""


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Options of `output:` (configs/default.yaml describes each key)."""

    formats: tuple[Literal["jsonl", "parquet"], ...] = ("jsonl",)


MANIFEST = "manifest.json"

VERIFIED = "verified.json"
"""In an export: the keys of the manifest that say what its rows were verified against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file of the folder."""

    path: str = key(TEXT, "relative path")
    bytes: int = key(COUNT, "size")
    sha256: str = key(TEXT, "digest of the content")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """The write-ahead log of a database."""

    bytes: int = key(COUNT, "size")
    sha256: str = key(TEXT, "digest of the content")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEntry(FileEntry):
    """A file that was read."""

    log: LogEntry | None = key(
        Kind(
            "object: `bytes`, `sha256`",
            lambda value: read_keys(LogEntry, value) if isinstance(value, dict) else None,
        ),
        "write-ahead log of the database",
        optional=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedEntry:
    """A folder that was merged."""

    name: str = key(TEXT, "name of the folder")
    sha256: str = key(TEXT, "digest of its manifest")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerEntry:
    """The tokenizer against which the samples were proven."""

    name: str = key(TEXT, "`verify.tokenizer`")
    files: Mapping[str, Json] = key(OBJECT, "sha256 of each of its files")
    template_sha256: str = key(TEXT, "digest of its chat template")
    template_name: str = key(TEXT, "name of a known template")
    template_options: Mapping[str, Json] = key(OBJECT, "`verify.template`: variables passed to it")
    model: str = key(TEXT, "`verify.model`: the model to train", optional=True)
    missing: str = key(
        TEXT,
        "why all counts of tokens are estimates: the model's tokenizer is missing",
        optional=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsEntry:
    """The counts of preference pairs."""

    pairs: int = key(COUNT, "pairs in `meta/`")
    left_out: Mapping[str, int] = key(COUNTS, "uncertain pairs (docs/preference.md)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEntry:
    """The counts of how well the contexts of trained turns are known."""

    levels: Mapping[str, int] = key(COUNTS, "trained turns by the level of their context")
    missing: Mapping[str, int] = key(COUNTS, "trained turns by what their context lacks")


def _number(value: Json) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else 0  # type: ignore[return-value]  # narrowed by `is_number`


_NUMBER = Kind("number", _number)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """The results of the audits."""

    findings: tuple[AuditFinding, ...] = key(each(AuditFinding), "the findings")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """The run that wrote the folder: the only part that differs between equal builds."""

    started: str = key(TEXT, "time, in UTC")
    seconds: float = key(_NUMBER, "duration")
    host: str = key(TEXT, "name of the machine")
    python: str = key(TEXT, "version of Python")
    workers: int = key(COUNT, "worker processes")
    engine: str = key(TEXT, "what ran the tasks: local, ray or merge")


def _audit(value: Json) -> AuditEntry | None:
    findings = value.get("findings") if isinstance(value, dict) else None
    if not isinstance(findings, list):
        return None
    return AuditEntry(
        findings=tuple(read_keys(AuditFinding, item) for item in findings if isinstance(item, dict))
    )


_LEDGER = Kind(
    "object",
    lambda value: Ledger.from_json(value) if isinstance(value, dict) else None,
    lambda ledger: None if ledger is None else ledger.to_json(),
)
_AUDIT = Kind("object: `findings`", _audit)
_RUN = Kind("object", lambda value: read_keys(RunEntry, value) if isinstance(value, dict) else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of a folder made by `build` or `merge`; `Manifest()` for any other dataset.

    others  keys of other versions of this program
    """

    inputs: tuple[InputEntry, ...] = key(each(InputEntry), "every file that was read")
    merged: tuple[MergedEntry, ...] = key(each(MergedEntry), "the merged folders", optional=True)
    config: Mapping[str, Json] = key(OBJECT, "the configuration with all defaults")
    versions: Mapping[str, Json] = key(OBJECT, "versions of the packages that affect the bytes")
    tokenizer: TokenizerEntry = key(one(TokenizerEntry), "what the samples were verified against")
    ledger: Ledger | None = key(
        _LEDGER, "what became of every record, conversation, sample and call"
    )
    preferences: PairsEntry = key(one(PairsEntry), "counts of preference pairs")
    context: ContextEntry = key(
        one(ContextEntry), "how well the contexts of trained turns are known", optional=True
    )
    review: Mapping[str, Json] = key(OBJECT, "counts of the decisions applied", optional=True)
    audit: AuditEntry | None = key(_AUDIT, "findings of the audits", optional=True)
    files: tuple[FileEntry, ...] = key(each(FileEntry), "the files of the folder")
    run: RunEntry | None = key(_RUN, "all that differs between equal builds", optional=True)
    others: Mapping[str, Json] = field(default_factory=dict)

    @classmethod
    def read(cls, value: Json | Mapping[str, Json]) -> Manifest:
        """Returns the manifest as far as it can be read: other values have their defaults."""
        manifest = read_keys(cls, value)
        if not isinstance(value, Mapping):
            return manifest
        names = {item.name for item in keys_of(cls)}
        return replace(manifest, others={name: value[name] for name in value if name not in names})

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """Returns the manifest in a file's content; an empty one if it is not JSON."""
        try:
            return cls.read(loads(data))
        except JsonFault:
            return cls()

    @classmethod
    def of(cls, folder: Path) -> Manifest:
        """Returns the manifest of a folder, or what its export names; an empty one for others."""
        for name in (MANIFEST, VERIFIED):
            with contextlib.suppress(OSError):
                return cls.decode((folder / name).read_bytes())
        return cls()

    @classmethod
    def load(cls, folder: Path, dataset: str) -> Manifest:
        """Returns the manifest of a folder made by `build`. Raises UsageError if it has none."""
        try:
            value = loads((folder / MANIFEST).read_bytes())
        except OSError as error:
            why = f"{MANIFEST} cannot be read: {error.strerror}"
            if not (folder / MANIFEST).is_file():
                why = "is not a folder made by build" if folder.exists() else "no such folder"
            raise UsageError(f"dataset {dataset!r}: {why}") from None
        except JsonFault as fault:
            raise UsageError(f"dataset {dataset!r}: {MANIFEST} is not JSON: {fault}") from None
        return cls.read(value)

    @property
    def is_empty(self) -> bool:
        """Returns whether there is none: the dataset was not made by `build` or `merge`."""
        return replace(self, tokenizer=TokenizerEntry(), config={}) == Manifest()

    @property
    def name(self) -> str:
        """Returns the name that the user gave the dataset, or ""."""
        name = TEXT.read(self.config.get("name"))
        return "" if name == DEFAULT_NAME else name

    @property
    def mode(self) -> str:
        """Returns the inference mode for which spans and parity were measured, or ""."""
        return TEXT.read(self._option("verify", "mode"))

    @property
    def chat_template(self) -> str | None:
        """Returns the file or sha256 of the template that replaced the tokenizer's, or None."""
        return TEXT.read(self._option("verify", "chat_template")) or None

    @property
    def unit(self) -> str:
        """Returns the training unit, or ""."""
        return TEXT.read(self._option("normalize", "unit"))

    @property
    def reasoning(self) -> str:
        """Returns what was to become of thoughts, or ""."""
        return TEXT.read(self._option("normalize", "reasoning"))

    @property
    def max_tokens(self) -> int:
        """Returns the maximum length of a sample in tokens; 0: none was set."""
        return COUNT.read(self._option("limits", "max_tokens"))

    @property
    def options(self) -> dict[str, Json]:
        """Returns the configuration without its inputs, which may name folders of the machine."""
        return {name: value for name, value in self.config.items() if name != "inputs"}

    @property
    def input_paths(self) -> list[str]:
        """Returns the paths of the configured inputs."""
        listed = self.config.get("inputs")
        inputs = map(OBJECT.read, listed) if isinstance(listed, list) else ()
        paths = (item.get("path") for item in inputs)
        return [path for path in paths if isinstance(path, str)]

    def leaves_by_design(self, audit: str, code: str) -> bool:
        """Returns whether a finding can only be the results of password generators.

        A build that redacts or rejects secrets leaves these in place (docs/audit.md). They never
        have the form of a token.
        """
        return (
            audit == "secrets"
            and code in ("secret", "scanned_secret")
            and self._option("audit", "secrets") in ("redact", "reject")
        )

    def _option(self, section: str, name: str) -> Json:
        return OBJECT.read(self.config.get(section)).get(name)

    @property
    def has_given_tools(self) -> bool:
        """Whether the user gave definitions of tools for an input."""
        inputs = self.config.get("inputs")
        given = inputs if isinstance(inputs, list) else []
        return any(isinstance(item, dict) and bool(item.get("tools")) for item in given)

    def without_folders(self) -> Manifest:
        """Returns it without the folders in paths, which would reveal a machine and a user."""
        tokenizer = read_keys(TokenizerEntry, without_folders(write_keys(self.tokenizer)))
        return replace(
            self, config=OBJECT.read(without_folders(dict(self.config))), tokenizer=tokenizer
        )

    @property
    def content(self) -> bytes:
        """Returns the content of the file."""
        text = json.dumps({**write_keys(self), **self.others}, ensure_ascii=False, indent=1)
        return f"{text}\n".encode("utf-8", "replace")
