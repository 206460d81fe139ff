"""Lists the files of a built folder in their published form, each compared with the manifest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from builder.jsonio import JsonFault, loads
from builder.output.folder import STATE
from builder.output.manifest import MANIFEST, FileEntry, Manifest
from builder.problem import UsageError

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


@dataclass(frozen=True, slots=True)
class Overruled:
    """A gate that the user has overruled."""

    code: str
    message: str


def read_manifest(folder: Path) -> Manifest:
    """Returns the manifest of a built folder. Raises UsageError if there is none."""
    path = folder / MANIFEST
    if not path.is_file():
        raise UsageError(
            f"dataset {str(folder)!r}: not a folder made by build (it has no {MANIFEST}); push"
            " accepts only those, so that exactly the verified files are pushed"
        )
    try:
        manifest = loads(path.read_bytes())
    except (OSError, JsonFault) as error:
        detail = error.detail if isinstance(error, JsonFault) else error.strerror
        raise UsageError(f"{path}: cannot be read: {detail}") from None
    if not isinstance(manifest, dict):
        raise UsageError(f"{path}: is not a JSON object")
    return Manifest.read(manifest)


def listed_files(folder: Path, manifest: Manifest) -> tuple[list[PushFile], list[str]]:
    """Returns (files in the manifest, in its order; how the folder differs from the manifest)."""
    files: dict[str, PushFile] = {}
    faults: list[str] = []
    for entry in manifest.files:
        path = entry.path
        if not _is_below(folder, path) or path == MANIFEST:
            faults.append(f"{path[:80]!r}: not the path of a file in the folder")
            continue
        try:
            item = _read(folder / path, path)
        except OSError as error:
            faults.append(f"{path}: {error.strerror or error}")
            continue
        if item.size != entry.bytes or item.sha256 != entry.sha256:
            faults.append(f"{path}: differs from the manifest")
        files[path] = item
    if not files:
        faults.append(f"{MANIFEST}: lists no files")
    faults += [
        f"{path}: not listed in the manifest"
        for path in _present(folder)
        if path not in files and path != MANIFEST
    ]
    return list(files.values()), faults


def _is_below(folder: Path, path: str) -> bool:
    """Returns whether it is a plain relative path inside the folder: a manifest may be hostile."""
    parts = path.split("/")
    if "\\" in path or any(part in ("", ".", "..", ".git", STATE) for part in parts):
        return False
    try:
        return (folder / path).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return False


def _present(folder: Path) -> list[str]:
    """Returns every file below the folder, except the state that `build` keeps for resuming."""
    paths = []
    for place, folders, names in os.walk(folder):
        here = Path(place)
        if here == folder and STATE in folders:
            folders.remove(STATE)
        paths += [(here / name).relative_to(folder).as_posix() for name in names]
    return sorted(paths)


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
    files: Sequence[PushFile], manifest: Manifest, overruled: Sequence[Overruled], repo: str
) -> list[PushFile]:
    """Returns the files to push to the repository `repo`, and the manifest without `run`.

    The card names the repository and records overruled gates; the manifest lists that card.
    Absolute paths in the configuration would reveal this machine and its user, so only their last
    part is published.
    """
    published = [_card(file, overruled, repo) if file.path == CARD else file for file in files]
    listed = (FileEntry(path=file.path, bytes=file.size, sha256=file.sha256) for file in published)
    content = replace(manifest.without_folders(), files=tuple(listed), run=None).content
    return [*published, _made(MANIFEST, content)]


def _card(file: PushFile, overruled: Sequence[Overruled], repo: str) -> PushFile:
    assert isinstance(file.content, Path)
    text = file.content.read_bytes().replace(_UNNAMED.encode(), repo.encode())
    if overruled:
        lines = [f"- `{item.code}`: {item.message}" for item in overruled]
        section = "\n## Overruled when it was published\n\n" + "\n".join(lines) + "\n"
        text += section.encode()
    return _made(file.path, text)
