"""Lists the files of a built folder in their published form, each compared with the manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from builder.output.folder import STATE, changed_files
from builder.output.manifest import MANIFEST, FileEntry, Manifest
from builder.paths import file_inside

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
