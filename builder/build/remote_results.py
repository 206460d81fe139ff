"""Keeps results in the state folder of an object store, which workers on other machines share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from builder.build.results import ChunkResult, find_result, read_end
from builder.sources.store import connect, faults


def put_result(result: Path, url: str) -> None:
    """Uploads a result. Raises UsageError."""
    with faults(url, "written"):
        system, path = connect(url)
        system.put_file(str(result), path)


def stored_result(url: str, final: Path) -> ChunkResult | None:
    """Returns the result in the store; None if there is none or it is incomplete.

    Raises UsageError.
    """
    with faults(url, "read"):
        system, path = connect(url)
        system.invalidate_cache()
        try:
            size = system.size(path)
            end = read_end(lambda count: bytes(system.cat_file(path, start=-count)), size)
        except FileNotFoundError:
            return None
    return ChunkResult(final, *end) if end is not None else None


def fetch_result(result: ChunkResult, url: str, scratch: Path) -> ChunkResult:
    """Returns the result with a local file, downloaded if needed. Raises UsageError."""
    local = find_result(result.path)
    if local is not None and local.summary == result.summary:
        return local
    with faults(url, "read"):
        system, path = connect(url)
        system.invalidate_cache()
        system.get_file(path, str(scratch))
    result.path.parent.mkdir(parents=True, exist_ok=True)
    scratch.replace(result.path)
    return result


def prune_results(store: str, results: Iterable[ChunkResult]) -> None:
    """Removes the results that the run did not use, and unfinished work. Raises UsageError.

    `store` is the address of the state folder (`RemoteOutput.store`).
    """
    used = {"/".join(result.path.parts[-2:]) for result in results}
    with faults(store, "written"):
        system, root = connect(f"{store}/results")
        system.invalidate_cache()
        for path in system.find(root) if system.exists(root) else ():
            if "/".join(path.split("/")[-2:]) not in used:
                system.rm_file(path)
        _, work = connect(f"{store}/work")
        if system.exists(work):
            system.rm(work, recursive=True)
