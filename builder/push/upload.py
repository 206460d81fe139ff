"""Uploads the files that differ, comparing before every attempt, and reads the dataset back."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.credentials import reason
from builder.dataset.forms import read_sample
from builder.dataset.meta import SampleMeta
from builder.dataset.rows import json_objects, plain_row
from builder.output.manifest import MANIFEST
from builder.parallel.host import quiet_datasets
from builder.push import hub
from builder.push.gates import CARD, PushFile
from builder.push.hub import (
    MAIN,
    HubRepository,
    Place,
    PushFault,
    RemoteFile,
    Retries,
    is_network_fault,
    with_retries,
)
from builder.qwen3.tokenizer import Target
from builder.sample import Sample

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_OURS = ("data/", "meta/")
KEPT = ".gitattributes"
"""The Hub creates this file in every repository: it is never removed."""

COMMIT_FILES = 100
_COMMIT_BYTES = 64 << 20
"""Bytes of small files per commit; they are sent inside the commit."""

_LARGE_BYTES = 10 << 20
"""Size from which the Hub stores every file as a large object, which is uploaded separately."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between a dataset and the Hub; `extra` files are only on the Hub."""

    add: tuple[PushFile, ...]
    update: tuple[PushFile, ...]
    equal: tuple[PushFile, ...]
    extra: tuple[RemoteFile, ...]
    on_hub: dict[str, RemoteFile]

    @property
    def send(self) -> tuple[PushFile, ...]:
        """Returns the files that are missing or differ on the Hub."""
        return self.add + self.update

    @property
    def stale(self) -> list[str]:
        """Returns files of another version that a loader would read together with ours."""
        return [file.path for file in self.extra if file.path.startswith(_OURS)]


@dataclass(slots=True)
class Uploaded:
    """What was uploaded: the last commit, the number of commits, files and bytes."""

    commit: str = ""
    revision: str = MAIN
    created: bool = False
    commits: int = 0
    files: int = 0
    bytes: int = 0


def compare(files: Sequence[PushFile], on_hub: dict[str, RemoteFile]) -> Changes:
    """Compares files with those on the Hub."""
    paths = {file.path for file in files}
    shared = [file for file in files if file.path in on_hub]
    return Changes(
        add=tuple(file for file in files if file.path not in on_hub),
        update=tuple(file for file in shared if not on_hub[file.path].matches(file)),
        equal=tuple(file for file in shared if on_hub[file.path].matches(file)),
        extra=tuple(file for path, file in sorted(on_hub.items()) if path not in paths),
        on_hub=on_hub,
    )


def upload(
    api: HfApi,
    place: Place,
    files: Sequence[PushFile],
    *,
    survey: HubRepository,
    removed: Sequence[str],
    title: str,
    as_pull_request: bool,
    retries: Retries,
) -> Uploaded:
    """Makes the files at `place` equal to ours, and removes `removed`.

    `survey` is the repository for which the user was shown the changes. Raises UsageError or
    PushFault if it fails, or if someone else has changed the same files since.
    """
    done = Uploaded(revision=place.revision)

    def attempt() -> None:
        nonlocal place
        remote = hub.repository_at(api, place)
        done.created |= remote.head is None
        remote = hub.create(api, place, remote)
        changes = compare(files, remote.files)
        to_remove = [path for path in removed if path in remote.files]
        if as_pull_request and place.revision == MAIN and (changes.send or to_remove):
            place = replace(place, revision=hub.pull_request(api, place.repo, title))
            done.revision = place.revision
            remote = hub.repository_at(api, place)
            changes = compare(files, remote.files)
        _check_unchanged(changes, survey)
        assert remote.head is not None
        done.commit = remote.head
        for batch, removals in _batches(changes.send, to_remove):
            message = title if not done.commits else f"{title} (part {done.commits + 1})"
            new = hub.commit(api, place, batch, removals, parent=done.commit, message=message)
            done.commits += new != done.commit  # the client makes no commit if nothing would change
            done.commit = new
            done.files += len(batch)
            done.bytes += sum(file.size for file in batch)
        if changes.send or to_remove:
            _check(api, place, files, done.commit)

    try:
        with_retries(attempt, retries, what=f"push to {place.repo}", counted=True)
    except PushFault:
        remote = with_retries(
            lambda: hub.repository_at(api, place), retries, what=f"look at {place.repo}"
        )
        changes = compare(files, remote.files)
        if changes.send or any(path in remote.files for path in removed) or not remote.head:
            raise
        done.commit = remote.head  # the last attempt worked; only its response was lost
    return done


def _check_unchanged(changes: Changes, survey: HubRepository) -> None:
    """Raises PushFault if a file that someone else has changed would be overwritten."""
    others = [
        file.path
        for file in changes.update
        if changes.on_hub[file.path] != survey.files.get(file.path)
    ]
    others += [path for path in changes.stale if path not in survey.files]
    if others:
        raise PushFault(
            f"changed on the Hub meanwhile, by someone else: {', '.join(others[:5])};"
            " look at it, then push again"
        )


def _batches(
    send: Sequence[PushFile], removed: Sequence[str]
) -> Iterator[tuple[list[PushFile], Sequence[str]]]:
    """Yields (files, removed paths) of each commit: card, manifest and removals come last."""
    ordered = sorted(send, key=lambda file: (file.path == MANIFEST, file.path == CARD))
    batch: list[PushFile] = []
    inside = 0
    for file in ordered:
        size = file.size if file.size < _LARGE_BYTES else 0
        if batch and (len(batch) == COMMIT_FILES or inside + size > _COMMIT_BYTES):
            yield batch, ()
            batch, inside = [], 0
        batch.append(file)
        inside += size
    if batch or removed:
        yield batch, removed


def _check(api: HfApi, place: Place, files: Sequence[PushFile], commit: str) -> None:
    """Raises PushFault if the commit differs from what was to be pushed."""
    differing = compare(files, hub.repository_at(api, replace(place, revision=commit)).files).send
    if differing:
        names = ", ".join(file.path for file in differing[:5])
        raise PushFault(
            f"{len(differing)} of {len(files)} files are not on the Hub as they were sent: {names}"
            " (does a .gitignore of the repository keep them out?)"
        )


# -- reads a pushed dataset back: the files by hash, and the rows through `load_dataset` -----------

_SAMPLED = 200
"""Rows of a split that are rendered again, at even distances."""

LOADED_BYTES = 2 << 30
"""If data/ is larger, only the first _SAMPLED rows of each split are loaded, otherwise all."""


@dataclass(slots=True)
class Arrival:
    """The result of a read-back: what is equal, and every difference.

    files, bytes   equal files of the commit, compared by size and sha256 or git oid
    rows           rows that the loader returned
    is_whole       all rows were loaded and counted, not only the first
    renderings     loaded rows whose rendering has the sha256 that meta/ names
    problems       a message for each difference
    """

    files: int = 0
    bytes: int = 0
    rows: int = 0
    is_whole: bool = True
    renderings: int = 0
    problems: list[str] = field(default_factory=list)


def read_back(
    api: HfApi, place: Place, folder: Path, files: Sequence[PushFile], target: Target
) -> Arrival:
    """Compares the commit `place.revision` with the folder. Passes on the client's exceptions."""
    data = sum(file.size for file in files if file.path.startswith("data/"))
    arrival = Arrival(is_whole=data <= LOADED_BYTES)
    changes = compare(files, hub.repository_at(api, place).files)
    arrival.files = len(changes.equal)
    arrival.bytes = sum(file.size for file in changes.equal)
    arrival.problems += [f"{file.path}: differs on the Hub" for file in changes.send]
    try:
        with quiet_datasets():
            _compare_rows(place, _splits(folder), target, arrival)
    except Exception as error:
        if is_network_fault(error):
            raise
        # any other exception of the loader means that the files are at fault
        arrival.problems.append(f"the loader fails: {reason(error)}")
    return arrival


def _compare_rows(
    place: Place, known: dict[str, list[Path]], target: Target, arrival: Arrival
) -> None:
    """Compares rows with meta/. Streaming makes them come from the Hub and not from a cache."""
    import datasets  # noqa: PLC0415 - two seconds of import

    loaded = datasets.load_dataset(place.repo, revision=place.revision, streaming=True)
    if set(loaded) != set(known):
        arrival.problems.append(
            f"the loader gives the splits {sorted(loaded)}, not {sorted(known)}"
        )
    for split in sorted(set(loaded) & set(known)):
        count = sum(1 for _ in json_objects(known[split])) if arrival.is_whole else _SAMPLED
        limit = None if arrival.is_whole else _SAMPLED
        metas = itertools.islice(json_objects(known[split]), limit)
        rows = itertools.islice(loaded[split], limit)
        for number, (row, meta) in enumerate(itertools.zip_longest(rows, metas)):
            if row is None or meta is None:
                has = "more" if meta is None else "fewer"
                arrival.problems.append(f"{split}: the loader gives {has} rows than meta/ has")
                break
            arrival.rows += 1
            if number % max(1, count // _SAMPLED) == 0:
                problem = _problem(row, SampleMeta.read(meta), target)
                arrival.renderings += problem is None
                arrival.problems += [f"{split} row {number}: {problem}"] if problem else []


def _problem(row: dict[str, Any], meta: SampleMeta, target: Target) -> str | None:
    """Returns how a loaded row differs from the row that was proven, or None."""
    sample = read_sample(plain_row({key: row.get(key) for key in ("messages", "tools")}))
    if not isinstance(sample, Sample):
        return f"as loaded it is not a sample: {sample[0].message}"
    try:
        text = target.render_sample(sample)
    except Exception as error:  # any exception of the template means that the row is at fault
        return f"as loaded it does not render: {error}"[:200]
    if hashlib.sha256(text.encode("utf-8")).hexdigest() != meta.render_sha256:
        return "as loaded it renders to another text than the verified one"
    return None


def _splits(folder: Path) -> dict[str, list[Path]]:
    paths = sorted((folder / "meta").glob("*.jsonl"))
    groups = itertools.groupby(paths, key=lambda path: path.name.partition("-")[0])
    return {name: list(files) for name, files in groups}
