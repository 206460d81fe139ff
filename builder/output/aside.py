"""Makes files and folders appear complete or not at all: writes them elsewhere, then renames."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from builder.problem import UsageError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})


@contextlib.contextmanager
def folder_aside(
    out: Path,
    *,
    replaceable: Callable[[Path], bool] = lambda _: False,
    hint: Callable[[Path], str] = lambda _: "",
) -> Iterator[Path]:
    """Yields a scratch folder on the file system of `out`; `put_in_place` moves a result from it.

    It is next to `out` and its name depends only on `out`, so that the next run removes the remains
    of a killed one. It is removed at the end. `replaceable` says whether a folder with content may
    be replaced, `hint` what to do about one that is not empty. Raises UsageError if `out` is
    another folder that is not empty, cannot be written, or is being written by another process.
    """
    scratch = out.absolute().parent / f".{out.name}.partial"
    with _write_faults(out):
        is_free = not (out.exists() or out.is_symlink()) or (
            out.is_dir() and (not any(out.iterdir()) or replaceable(out))
        )
        if not is_free:
            raise UsageError(f"output {str(out)!r}: is not an empty folder{hint(out)}", fresh=True)
        scratch.mkdir(parents=True, exist_ok=True)
        lock = FileLock(scratch / "lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise UsageError(f"output {str(out)!r}: another run is writing to it") from None
        for left in scratch.iterdir():
            if left.name != "lock":
                _remove(left)
    try:
        with _write_faults(out, scratch):
            yield scratch
    finally:
        lock.release()
        shutil.rmtree(scratch, ignore_errors=True)


def put_in_place(finished: Path, out: Path) -> None:
    """Moves a complete folder to its final path; what is there goes to the scratch folder."""
    if out.is_dir() and any(out.iterdir()):
        out.replace(finished.with_name("replaced"))
    elif out.is_dir():
        out.rmdir()
    finished.replace(out)


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file, in a new folder if need be; an earlier one stays until it is complete.

    Raises UsageError if it cannot be written.
    """
    with _write_faults(path):
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # a pipe or a device, such as /dev/stdout
            return
        target = path.resolve()  # for a link, the file it points to is replaced, not the link
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.partial")
        try:
            with partial.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)


@contextlib.contextmanager
def _write_faults(out: Path, scratch: Path | None = None) -> Iterator[None]:
    """Turns errors of the system into usage errors.

    If there is a scratch folder, errors about other paths are passed on, unless they concern the
    space on the disk: they come from reading, or are bugs.
    """
    try:
        yield
    except OSError as error:
        named = str(error.filename or "")
        if scratch and error.errno not in _FULL and not named.startswith((str(scratch), str(out))):
            raise
        raise UsageError(f"output {str(out)!r}: {error.strerror or error}") from error


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
