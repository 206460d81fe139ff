"""Lists and copies logs in object stores that fsspec supports (s3, gs, az, memory, …).

If a store cannot be read, the run stops: it would silently remove a part of the dataset.
"""

from __future__ import annotations

import contextlib
import datetime
import glob
import io
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from builder.credentials import reason
from builder.distribution import install_line
from builder.problem import UsageError

_STATES = (
    *("ETag", "etag", "generation", "md5Hash", "content_md5"),
    *("LastModified", "last_modified", "updated", "mtime", "modified", "created"),
)
"""Properties that change with an object, of various stores: digests and versions, then times."""
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*(@[\w./-]+)?")
_BLOCK = 1 << 14
"""Bytes per request if only the beginning is read."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object in a store.

    `state` is (property, value) that changes with the object; None if the store reports none. `log`
    is the write-ahead log of a database.
    """

    url: str
    size: int
    state: tuple[str, str] | None = None
    log: StoredObject | None = None

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Opens its bytes. Raises Gone, UsageError (the store cannot be read)."""
        with faults(self.url):
            system, path = connect(self.url)
            stream = system.open(path, "rb", block_size=_BLOCK)
        with stream:
            yield cast("BinaryIO", io.BufferedReader(_Reading(stream, self.url), _BLOCK))

    def copy(self, target: Path) -> None:
        """Copies it to a file. Raises Changed, Gone, UsageError (the store cannot be read)."""
        with faults(self.url):
            system, path = connect(self.url)
            system.get_file(path, str(target))
            system.invalidate_cache()
            if self.state is not None:
                now = _state(system.info(path), self.state[:1])
                if now is not None and now != self.state:
                    raise Changed(f"{self.url!r} changed while it was read")
        if self.log is not None:
            self.log.copy(target.with_name(target.name + "-wal"))


class _Reading(io.RawIOBase):
    """A stream from a store that raises UsageError for all errors of the store's library."""

    def __init__(self, stream: Any, url: str) -> None:
        self._stream = stream
        self._url = url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._stream.seek(offset, whence))

    def readinto(self, buffer: Any) -> int:
        with faults(self._url):
            data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class StoreFailed(UsageError):
    """The store cannot be read or written: network, permissions, no such bucket."""


class Changed(UsageError):
    """The object has changed since it was listed."""


class Gone(UsageError):
    """The object no longer exists."""


def is_url(spec: str) -> bool:
    """Returns whether it is the address of an object store, rather than of the Hub or a file."""
    protocol, separator, _ = spec.partition("://")
    named = protocol.replace("+", "").replace("-", "").isalnum()
    return bool(separator) and named and len(protocol) > 1 and protocol != "hf"


def local_path(spec: str) -> str:
    """Returns a `file://` address as a path, and anything else unchanged."""
    return spec.removeprefix("file://")


def hub_name(dataset: str) -> str:
    """Returns OWNER/NAME[@REVISION] of a Hub dataset, removing the beginning of an hf:// URL."""
    return dataset.removeprefix("hf://").removeprefix("datasets/")


def is_hub_name(dataset: str) -> bool:
    """Returns whether it may be a Hub dataset: hf://…, or OWNER/NAME[@REVISION]."""
    return dataset.startswith("hf://") or _HUB_NAME.fullmatch(hub_name(dataset)) is not None


def connect(url: str) -> tuple[Any, str]:
    """Returns (file system, path in it).

    Raises UsageError for a missing package or an invalid address.
    """
    import fsspec  # noqa: PLC0415 - only for addresses

    protocol = url.partition("://")[0]
    if "::" in url:
        raise UsageError(f"{url!r}: addresses inside other addresses (`::`) are not supported")
    options = {"auto_mkdir": True} if protocol == "local" else {}
    try:
        return cast("tuple[Any, str]", fsspec.url_to_fs(url, **options))
    except ImportError as error:
        install = install_line("s3") if protocol in ("s3", "s3a") else "pip install it"
        raise UsageError(f"{url!r}: {error}: {install}") from None
    except Exception as error:
        raise UsageError(f"{url!r}: {_reason(error)}") from None


@contextlib.contextmanager
def faults(url: str, done: str = "read") -> Iterator[None]:
    """Converts every exception of the store's library to StoreFailed or Gone."""
    try:
        yield
    except UsageError:
        raise
    except FileNotFoundError:
        if done == "written":
            raise UsageError(f"output {url!r}: no such bucket or folder") from None
        raise Gone(f"{url!r} is no longer there") from None
    except Exception as error:
        raise StoreFailed(f"{url!r} cannot be {done}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {reason(error, 250)}"


def _state(info: dict[str, Any], keys: Sequence[str] = _STATES) -> tuple[str, str] | None:
    key = next((key for key in keys if info.get(key) is not None), None)
    if key is None:
        return None
    value = info[key]  # a time is a datetime or a number of seconds, even in one store
    return key, str(value.timestamp() if isinstance(value, datetime.datetime) else value)


@contextlib.contextmanager
def _addressed(place: Path, address: str) -> Iterator[None]:
    """Has errors name the address of a copy, and not its place."""
    try:
        yield
    except UsageError as error:
        error.args = tuple(str(part).replace(str(place), address) for part in error.args)
        raise


@contextlib.contextmanager
def local_copy(dataset: str) -> Iterator[str]:
    """Yields the path of a temporary copy of a dataset in a store; any other is yielded as it is.

    Raises UsageError, and turns the copy's path in others into the address.
    """
    if not is_url(dataset):
        yield dataset
        return
    if dataset.startswith("file://"):
        yield local_path(dataset)
        return
    _, wanted, objects = list_objects(dataset, "dataset")
    with tempfile.TemporaryDirectory(prefix="builder-") as folder:
        place = Path(folder, dataset.rstrip("/").rpartition("/")[2])
        if wanted:
            objects = {"": objects[wanted]} if wanted in objects else {}
        if not objects:
            raise UsageError(f"dataset {dataset!r}: no such file or folder")
        for name, item in objects.items():
            path = place / name if name else place
            if not name.startswith(".state/") and path.resolve().is_relative_to(place.resolve()):
                path.parent.mkdir(parents=True, exist_ok=True)
                item.copy(path)
        with _addressed(place, dataset):
            yield str(place)


_KNOWN_BY = ("README.md", "manifest.json")
"""Files that show who wrote a folder."""


@contextlib.contextmanager
def local_output(out: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields the path to write an output to; for one in a store, it is uploaded at the end.

    Until then, files in the store stand there with their names, empty but for `_KNOWN_BY`. Those
    that are replaced or removed there are so in the store. Raises UsageError.
    """
    written = os.fspath(out)
    if not is_url(written) or written.startswith("file://"):
        yield Path(local_path(written))
        return
    with tempfile.TemporaryDirectory(prefix="builder-") as folder:
        with faults(written):
            system, root = connect(written)
            system.invalidate_cache()
            root = root.rstrip("/")
            stored = system.find(root) if system.isdir(root) else []
        place = Path(folder, root.rpartition("/")[2])
        for name in stored:
            path = place / name.removeprefix(root).lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            if path.name in _KNOWN_BY:
                with faults(written):
                    system.get_file(name, str(path))
        before = _identities(place)
        with _addressed(place, written):
            yield place
        after = _identities(place)
        with faults(written, "written"):
            for name in before.keys() - after.keys():
                system.rm_file(f"{root}/{name}")
            for name in sorted(name for name in after if after[name] != before.get(name)):
                system.put_file(str(place / name), f"{root}/{name}" if name != "." else root)


def _identities(place: Path) -> dict[str, tuple[int, int]]:
    """Returns {relative path: what changes with its content} of the files at a path."""
    paths = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    stats = {path.relative_to(place).as_posix(): path.stat() for path in paths}
    return {
        name: (stat.st_ino, stat.st_mtime_ns)
        for name, stat in stats.items()
        if not name.startswith(".state/")
    }


def list_objects(spec: str, kind: str = "input") -> tuple[str, str, dict[str, StoredObject]]:
    """Returns (root, wanted, objects): the objects below `root` by their names relative to it.

    `wanted` is the selection of `spec`: a pattern, an object's name, or "" for all objects. `kind`
    is for messages. Raises UsageError if there is no object or no access.
    """
    system, path = connect(spec)
    parts = path.rstrip("/").split("/")
    root, wanted = path, ""
    infos: dict[str, dict[str, Any]] = {}
    plain = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    with contextlib.suppress(Gone), faults(spec):
        system.invalidate_cache()
        if plain < len(parts) and system.exists(path):
            plain = len(parts)  # the name contains pattern characters literally
        root = "/".join(parts[:plain])
        wanted = "/".join(parts[plain:])
        if not wanted and system.isfile(root):
            infos = {root: system.info(root)}
            root, _, wanted = root.rpartition("/")
        else:
            infos = system.find(root, detail=True)
    objects = {
        name.removeprefix(root).removeprefix("/"): StoredObject(
            system.unstrip_protocol(name), info.get("size") or 0, _state(info)
        )
        for name, info in infos.items()
        if info.get("size") or not name.endswith("/")  # an empty one is a placeholder for a folder
    }
    if not objects:
        is_page = spec.startswith(("http://", "https://"))
        hint = ": a page of the web is not read, download the file" if is_page else ""
        raise UsageError(f"{kind} {spec!r}: nothing was found{hint}")
    with_logs = {
        name: replace(item, log=objects.get(f"{name}-wal")) for name, item in objects.items()
    }
    return root, wanted, with_logs
