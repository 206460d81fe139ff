"""Lists the files to push, and checks the gates that they must pass before anything is sent."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from builder.audit.notes import EVALUATION_RUN, benchmark_of, named
from builder.codes import AUDIT_OPTIONS, SECRETS_LEFT
from builder.dataset.meta import SampleMeta
from builder.dataset.rows import json_objects
from builder.output.folder import STATE, changed_files
from builder.output.manifest import MANIFEST, FileEntry, Manifest
from builder.parallel.pool import default_workers
from builder.paths import file_inside
from builder.qwen3.tokenizer import Target
from builder.text import counted
from builder.verify.dataset import verify_dataset
from builder.verify.summary import Summary
from builder.verify.verifier import Verifier

# -- lists the files of a built folder in their published form -------------------------------------

CARD = "README.md"
_UNNAMED = "OWNER/NAME"
"""The repository in the card of a dataset that is not published."""


@dataclass(frozen=True, slots=True)
class PushFile:
    """A file to be pushed: its path and identity on the Hub, and its content.

    git_oid  its sha1 as a git blob, which identifies files that the Hub stores inside a commit
    """

    path: str
    size: int
    sha256: str
    git_oid: str
    content: Path | bytes


def listed_files(folder: Path, manifest: Manifest) -> tuple[list[PushFile], list[str]]:
    """Returns (files in the manifest, in its order; how the folder differs from the manifest)."""
    faults = [f"{path[:80]}: {how}" for path, how in changed_files(folder, manifest, ".").items()]
    hostile = ("", ".", "..", ".git", STATE, MANIFEST)
    faults += [
        f"{item.path[:80]!r}: not the path of a file to publish"
        for item in manifest.files
        if "\\" in item.path or any(part in hostile for part in item.path.split("/"))
    ]
    if not manifest.files:
        faults.append(f"{MANIFEST}: lists no files")
    paths = [item.path for item in manifest.files if file_inside(folder, item.path) is not None]
    return [_read(folder / path, path) for path in paths], faults


def _read(path: Path, name: str) -> PushFile:
    size = path.stat().st_size
    sha256 = hashlib.sha256()
    git = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            sha256.update(piece)
            git.update(piece)
    return PushFile(name, size, sha256.hexdigest(), git.hexdigest(), path)


def _made(name: str, content: bytes) -> PushFile:
    git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    sha256 = hashlib.sha256(content).hexdigest()
    return PushFile(name, len(content), sha256, git.hexdigest(), content)


def as_published(
    files: Sequence[PushFile], manifest: Manifest, overruled: Mapping[str, str], repo: str
) -> list[PushFile]:
    """Returns the files to push to the repository `repo`, and the manifest without `run`.

    The card names the repository and records overruled gates ({code: message}); the manifest lists
    that card.
    Absolute paths in the configuration would reveal this machine and its user, so only their last
    part is published.
    """
    published = [_card(file, overruled, repo) if file.path == CARD else file for file in files]
    listed = (FileEntry(path=file.path, bytes=file.size, sha256=file.sha256) for file in published)
    content = replace(manifest.without_folders(), files=tuple(listed), run=None).content
    return [*published, _made(MANIFEST, content)]


def _card(file: PushFile, overruled: Mapping[str, str], repo: str) -> PushFile:
    assert isinstance(file.content, Path)
    text = file.content.read_bytes().replace(_UNNAMED.encode(), repo.encode())
    if overruled:
        lines = [f"- `{code}`: {message}" for code, message in overruled.items()]
        section = "\n## Overruled when it was published\n\n" + "\n".join(lines) + "\n"
        text += section.encode()
    return _made(file.path, text)


SHOWN = 5
"""Faults of one kind that a message lists; the rest are counted."""

NOT_AUDITED = "unaudited"
UNKNOWN_LICENSE = "unknown-license"
BLOCKING = ("secrets", "personal_data")
"""Audits whose findings block a push."""


@dataclass(frozen=True, slots=True)
class GateRefusal:
    """A closed gate. `by_name`: `--allow CODE` opens it; integrity gates cannot be opened."""

    code: str
    message: str
    by_name: bool = True


def refusals(
    folder: Path, manifest: Manifest, changed: Sequence[str], target: Target, *, public: bool
) -> Iterator[GateRefusal]:
    """Yields every closed gate. `changed`: how the folder differs from its manifest.

    A folder that differs is not examined further.
    """
    if changed:
        yield GateRefusal("manifest", _some(changed), by_name=False)
        return
    yield from _unproven(folder, manifest, target)
    if manifest.audit is None:
        yield GateRefusal(
            NOT_AUDITED, "nothing was scanned for secrets or personal data; build it again"
        )
    for audit in BLOCKING:
        findings = manifest.audit.findings if manifest.audit is not None else ()
        left = [item for item in findings if item.audit == audit and item.is_left]
        if left:
            by_design = all(manifest.leaves_by_design(audit, item.code) for item in left)
            codes = [" ".join(item.code.split())[:80] for item in left]  # a manifest may be hostile
            open_findings = [
                f"{code} {counted(item.count, 'time')} in {counted(item.samples, 'sample')}"
                for code, item in zip(codes, left, strict=True)
            ]
            remedy = f"build with {AUDIT_OPTIONS[audit]}"
            if by_design:
                remedy = SECRETS_LEFT.replace("`", "").removesuffix(".") + ", or allow them"
            yield GateRefusal(audit, f"{_some(open_findings)}; {remedy}")
    if not public:
        return
    runs = Counter(name for meta in _metas(folder) if (name := benchmark_of(meta)))
    if runs:
        yield GateRefusal(
            EVALUATION_RUN,
            f"{counted(runs.total(), 'sample')} from runs of public benchmarks, and the dataset"
            f" would be public: {named(runs)};"
            f" {AUDIT_OPTIONS[EVALUATION_RUN]} leaves them out",
        )
    unknown = _without_license(folder)
    if unknown:
        yield GateRefusal(
            UNKNOWN_LICENSE,
            f"the licence of {counted(unknown, 'sample')} is not known, and the dataset would be"
            " public (set inputs[].license)",
        )


def overrule(
    closed: Sequence[GateRefusal], allowed: Sequence[str]
) -> tuple[list[GateRefusal], dict[str, str]]:
    """Returns (gates that stay closed, {gate that `--allow` opened: why it was closed})."""
    opened = {item.code: item.message for item in closed if item.by_name and item.code in allowed}
    return [item for item in closed if item.code not in opened], opened


def _unproven(folder: Path, manifest: Manifest, target: Target) -> Iterator[GateRefusal]:
    if manifest.tokenizer.template_sha256 != target.template_sha256:
        yield GateRefusal(
            "verify",
            f"it was verified against another chat template than that of {target.name}",
            by_name=False,
        )
        return
    summary = Summary()
    bad = []
    for report in verify_dataset(str(folder), Verifier(target), None, default_workers()):
        summary.add(report)
        bad += [f"{report.file}:{report.line} {item.code}" for item in report.findings[:1]]
    if summary.codes or not summary.samples:
        proven = f"{summary.proven} of {summary.samples} samples are verified"
        yield GateRefusal("verify", f"{proven}; {_some(bad)}", by_name=False)


def _metas(folder: Path) -> Iterator[SampleMeta]:
    return map(SampleMeta.read, json_objects(sorted(folder.glob("meta/*.jsonl"))))


def _without_license(folder: Path) -> int:
    """Returns the number of samples without a licence in meta/; all if the card names none."""
    count = samples = 0
    for meta in _metas(folder):
        samples += 1
        count += (meta.license or "").strip().lower() in ("", "unknown")
    front = None
    with suppress(OSError, UnicodeDecodeError, IndexError, yaml.YAMLError):
        front = yaml.safe_load((folder / CARD).read_text(encoding="utf-8").split("---\n")[1])
    named = front.get("license") if isinstance(front, dict) else None
    return count or (samples if named in (None, "unknown") else 0)


def _some(faults: Sequence[str]) -> str:
    more = len(faults) - SHOWN
    return "; ".join(faults[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
