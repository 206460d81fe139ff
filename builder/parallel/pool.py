"""Processes of this machine that share what is loaded: imports and the tokenizer, once for all."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Protocol, TypeVar

from builder.parallel.garbage import collect_seldom

PRELOAD = "BUILDER_PRELOAD"
"""The environment variable that tells the fork server what to load (`Preload`), as JSON."""

AHEAD = 3
"""Batches handed out for each worker beyond those being worked on."""

BATCH_BYTES = 1 << 19
BATCH_ROWS = 256
"""Rows that go to a worker together, bounded by either."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Preload:
    """What the fork server loads for all workers: it calls `function(argument)` of `module`."""

    module: str
    function: str
    argument: str


class Start(Protocol):
    """Starts work in another process (`in_background`)."""

    def __call__(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Start it; what this gives returns its result when called, or raises what it raised."""


def default_workers() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


LITTLE_BYTES = 1 << 20
"""What is less is worked on by one process: others are not worth their start."""


def is_much(size: int) -> bool:
    """Are so many bytes worth other processes?"""
    return size >= LITTLE_BYTES


def holds_more(paths: Iterable[Path | None]) -> bool:
    """Do these files and folders hold LITTLE_BYTES or more? Looks no further than it must.

    None: what lies on no disk, whose size is not known; it counts as large.
    """
    size = 0
    for path in paths:
        if path is None:
            return True
        for file in _files(path):
            with contextlib.suppress(OSError):
                size += file.stat().st_size
            if is_much(size):
                return True
    return False


def _files(path: Path) -> Iterator[Path]:
    """The file, or those below the folder; what cannot be looked at, reading it says."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: a NUL in the name
        if not stat.S_ISDIR(path.stat().st_mode):
            yield path
        for at, _, names in os.walk(path):
            yield from (Path(at) / name for name in names)


def prepare(preload: Preload | None) -> None:
    """Starts the fork server, which loads what workers share while this process goes on."""
    if sys.platform == "win32":
        return
    from multiprocessing import forkserver  # noqa: PLC0415 - there is none on Windows

    os.environ[PRELOAD] = json.dumps(asdict(preload) if preload else None)
    multiprocessing.get_context("forkserver").set_forkserver_preload(["builder.parallel.preload"])
    forkserver.ensure_running()


def prepare_for(paths: Iterable[Path | None], workers: int, preload: Preload | None) -> None:
    """Does the same if these files and folders are worth worker processes (`holds_more`)."""
    if workers > 1 and holds_more(paths):
        prepare(preload)


@contextlib.contextmanager
def pool(workers: int, preload: Preload | None) -> Iterator[ProcessPoolExecutor]:
    """Worker processes. On an interruption nobody waits for them, and none outlives the run.

    Where the system can fork, they are forked from a server that has done the preloading: N workers
    cost one start and share its memory.
    """
    prepare(preload)
    method = "spawn" if sys.platform == "win32" else "forkserver"
    context = multiprocessing.get_context(method)
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)
    try:
        yield executor
    except BrokenProcessPool:
        executor.shutdown(cancel_futures=True)
        raise
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.terminate()
        executor.shutdown(cancel_futures=True)
        raise
    executor.shutdown()


@contextlib.contextmanager
def in_background(preload: Preload | None, *, is_worth: bool) -> Iterator[Start]:
    """What starts work in one other process, where the preloading is done.

    If that process is not worth its start, or was killed, the work is done here when its result is
    asked for. Of work whose result nobody asks for, nobody hears.
    """
    if not is_worth:
        yield lambda work: work
        return
    with pool(1, preload) as executor:

        def start(work: Callable[[], Result]) -> Callable[[], Result]:
            try:
                future = executor.submit(work)
            except BrokenProcessPool:
                return work

            def result() -> Result:
                try:
                    return future.result()
                except BrokenProcessPool:
                    return work()

            return result

        yield start


def _start_worker() -> None:
    """Ctrl-C reaches all processes of the terminal; only the driver acts on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_seldom()
    threading.Thread(target=_end_with_driver, daemon=True).start()


def _end_with_driver() -> None:
    """A driver that is killed cannot end its workers, nor one that is interrupted those to come."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)


def ordered(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int, preload: Preload | None
) -> Iterator[Result]:
    """`work` of each item, in order, by so many processes.

    This one is among them, unless the work needs what the others have preloaded. Of
    fewer than four items all are worked on here: a pool is not worth its start. What a process was
    killed at is done again here, and so is the rest. Raises what `work` raises.
    """
    left = iter(items)
    first = list(islice(left, 4))
    if workers <= 1 or len(first) < 4:
        yield from map(work, first)
        yield from map(work, left)
        return
    others = workers if preload else workers - 1
    with pool(others, preload) as executor:
        yield from _shared(work, chain(first, left), executor, others, helps=preload is None)


def batches(items: Iterable[Item], size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """The items in order, some of them at a time; `size` is that of one, in bytes."""
    batch: list[Item] = []
    held = 0
    for item in items:
        batch.append(item)
        held += size(item)
        if held >= BATCH_BYTES or len(batch) >= BATCH_ROWS:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _shared(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    executor: ProcessPoolExecutor,
    workers: int,
    *,
    helps: bool,
) -> Iterator[Result]:
    """`helps`: this process works too where the others have enough."""
    waiting: deque[tuple[Item, Future[Result]]] = deque()

    def first() -> Result:
        item, future = waiting.popleft()
        try:
            return future.result()
        except BrokenProcessPool:
            return work(item)

    def pending() -> int:
        return sum(not future.done() for _, future in waiting)

    for item in items:
        while waiting and (
            waiting[0][1].done() or (not helps and pending() >= workers * (1 + AHEAD))
        ):
            yield first()
        if pending() < workers * (1 + AHEAD):
            with contextlib.suppress(BrokenProcessPool):
                waiting.append((item, executor.submit(work, item)))
                continue
        here: Future[Result] = Future()
        here.set_result(work(item))
        waiting.append((item, here))
    while waiting:
        yield first()
