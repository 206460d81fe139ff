"""Results in the state folder of an object store, which workers on other machines share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from builder.build.results import ChunkResult, find_part, read_end
from builder.sources.store import connect, faults


def put_part(part: Path, url: str) -> None:
    """Upload a part. Raises UsageError."""
    with faults(url, "written"):
        system, path = connect(url)
        system.put_file(str(part), path)


def stored_part(url: str, final: Path) -> ChunkResult | None:
    """What is known of a part that is whole there, and not here yet. Raises UsageError."""
    with faults(url, "read"):
        system, path = connect(url)
        system.invalidate_cache()
        try:
            size = system.size(path)
            found = read_end(lambda count: bytes(system.cat_file(path, start=-count)), size)
        except FileNotFoundError:
            return None
    return ChunkResult(final, *found) if found is not None else None


def fetch_part(part: ChunkResult, url: str, scratch: Path) -> ChunkResult:
    """The part with its file here, taken from there unless it is. Raises UsageError."""
    here = find_part(part.path)
    if here is not None and here.summary == part.summary:
        return here
    with faults(url, "read"):
        system, path = connect(url)
        system.invalidate_cache()
        system.get_file(path, str(scratch))
    part.path.parent.mkdir(parents=True, exist_ok=True)
    scratch.replace(part.path)
    return part


def prune_parts(store: str, parts: Iterable[ChunkResult]) -> None:
    """Removes the parts in a state folder that the run did not use. Raises UsageError.

    `store` is the address of the state folder (`RemoteOutput.store`).
    """
    used = {"/".join(part.path.parts[-2:]) for part in parts}
    with faults(store, "written"):
        system, root = connect(f"{store}/parts")
        system.invalidate_cache()
        for path in system.find(root) if system.exists(root) else ():
            if "/".join(path.split("/")[-2:]) not in used:
                system.rm_file(path)
        _, loose = connect(f"{store}/work")
        if system.exists(loose):
            system.rm(loose, recursive=True)
