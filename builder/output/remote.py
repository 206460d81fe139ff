"""Writes an output folder to an object store through fsspec.

The dataset is completed in a local folder, under its lock, and then uploaded: the old manifest is
removed first, then the files are written, the new manifest last. If a folder in a store has no
manifest, a run is writing it or left it unfinished; the same command resumes it.

`.state` in the store contains the marker that the folder is ours and, if several machines work, the
finished results. Stores have no locks: two runs must not write to one address.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from builder.distribution import DISTRIBUTION
from builder.output.folder import STATE
from builder.output.manifest import MANIFEST, Manifest
from builder.paths import expand_home
from builder.problem import UsageError
from builder.sources.store import connect, faults

MARK = "made-by-builder"


@dataclass(frozen=True, slots=True)
class RemoteOutput:
    """The folder at `url`; `shares`: workers on other machines store their results there too."""

    url: str
    shares: bool = False

    @property
    def local_folder(self) -> Path:
        """Returns the local folder in which the dataset is made.

        Raises UsageError if there is no home folder.
        """
        cache = expand_home(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
        if cache.parts[:1] == ("~",):
            raise UsageError(f"output {self.url!r}: no home folder for a cache: set XDG_CACHE_HOME")
        name = hashlib.sha256(self.url.rstrip("/").encode()).hexdigest()[:16]
        return cache / DISTRIBUTION / name

    @property
    def store(self) -> str | None:
        """Returns the address at which workers store their results."""
        return self._at(STATE) if self.shares else None

    def check(self) -> None:
        """Raises UsageError if the folder cannot be written or was not made by this program."""
        with faults(self.url, "written"):
            system, path = connect(self.url)
            system.invalidate_cache()
            ours = any(system.exists(self._path(name)) for name in (MANIFEST, f"{STATE}/{MARK}"))
            if not ours and system.exists(path) and system.ls(path):
                raise UsageError(
                    f"output {self.url!r}: the folder is not empty and was not made by build"
                )
            with tempfile.NamedTemporaryFile() as empty:
                system.put_file(empty.name, self._path(f"{STATE}/{MARK}"))

    def upload(self, folder: Path) -> None:
        """Uploads the finished dataset, then removes the local copy. Raises UsageError."""
        files = [item.path for item in Manifest.of(folder).files]
        old = self._listed()
        with faults(self.url, "written"):
            system, _ = connect(self.url)
            if system.exists(self._path(MANIFEST)):
                system.rm_file(self._path(MANIFEST))
            for name in (*files, MANIFEST):
                if name == MANIFEST:
                    self._remove(old - set(files))
                system.put_file(str(folder / name), self._path(name))
        for item in folder.iterdir():
            if item.name != STATE:
                shutil.rmtree(item) if item.is_dir() else item.unlink()

    def _at(self, name: str) -> str:
        return f"{self.url.rstrip('/')}/{name}"

    def _path(self, name: str) -> str:
        return connect(self._at(name))[1]

    def _listed(self) -> set[str]:
        """Returns the paths in the store's manifest that are below the folder."""
        with faults(self.url, "read"):
            system, _ = connect(self.url)
            path = self._path(MANIFEST)
            manifest = system.cat_file(path) if system.exists(path) else b""
        return {item.path for item in Manifest.decode(manifest).files if _is_below(item.path)}

    def _remove(self, names: set[str]) -> None:
        system, _ = connect(self.url)
        for name in sorted(names):
            if system.exists(self._path(name)):
                system.rm_file(self._path(name))


def _is_below(name: str) -> bool:
    parts = name.split("/")
    return parts[0] != STATE and not any(part in ("", ".", "..") for part in parts)
