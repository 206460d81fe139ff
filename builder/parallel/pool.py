"""Runs worker processes that share what they load: imports and the tokenizer."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from builder.parallel.host import SERVER, collect_seldom, die_with_parent, own_process
from builder.problem import BuilderError

AHEAD = 3
"""Items submitted per worker in addition to the one it is working on."""

BATCH_BYTES = 1 << 19
BATCH_ROWS = 256
"""A batch of rows ends at either limit."""

_FEW, _FEW_WITHOUT_PRELOAD = 4, 16
"""Fewer items are handled in this process. Without preloading, each worker imports what it needs:
for the audits of 13 batches, two workers took 9 % of a build's CPU time."""

LITTLE_BYTES = 4 << 20
"""Less input is handled in this process: workers load the libraries and both tokenizers first.

A build of 2 MB of sessions takes 3.2 s of CPU, and 6.6 s with two workers; one of 7 MB takes 6.1 s
and 7.0 s, which two cores share.
"""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Preload:
    """The preloading for all workers: the fork server calls `function(argument)` of `module`."""

    module: str
    function: str
    argument: str


class WorkersNotStarted(BuilderError):
    """Worker processes cannot be started: the system lacks memory, or killed a helper process."""


class OpenPool(Protocol):
    """Opens an executor with `workers` workers (`worker_pool`)."""

    def __call__(
        self, workers: int, preload: Preload | None, /
    ) -> contextlib.AbstractContextManager[Executor]:
        """Returns a context manager that stops the workers at its end."""


class _Start(Protocol):
    """Starts work in another process (`in_background`)."""

    def __call__(self, work: Callable[[], Result], /) -> Callable[[], Result]:
        """Starts it; the returned function waits and returns its result or raises its exception."""


def default_workers() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_much(size: int) -> bool:
    """Returns whether an input of this many bytes justifies worker processes."""
    return size >= LITTLE_BYTES


def are_large(paths: Iterable[Path | None]) -> bool:
    """Returns whether these files and folders justify worker processes by their size.

    Stops counting once they do. None is an input that is not on disk, which counts as large.
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
    """Yields the file, or all files below the folder; ignores errors, which readers report."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: a NUL in the name
        if not stat.S_ISDIR(path.stat().st_mode):
            yield path
        for folder, _, names in os.walk(path):
            yield from (Path(folder) / name for name in names)


def prepare(preload: Preload | None) -> None:
    """Starts the fork server, which loads what workers share while this process continues.

    One that was killed is started again. Raises WorkersNotStarted.
    """
    if sys.platform == "win32":
        return
    from builder.parallel.server import ensure_running  # noqa: PLC0415 - there is none on Windows

    with _starting():
        ensure_running(asdict(preload) if preload else None)


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Turns errors of starting processes, or of a killed helper process, into WorkersNotStarted."""
    try:
        yield
    except (OSError, EOFError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        detail = f"worker processes cannot be started: {reason} (was a helper process killed?)"
        raise WorkersNotStarted(f"{detail}; the same command resumes") from error


class _Context:
    """A context of `multiprocessing` that knows the processes made with it.

    The caller's program may have children of its own, which are none of ours to kill.
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self._processes: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def Process(self, *args: Any, **options: Any) -> Any:  # noqa: N802 - the name in the library
        """Makes a process, as the context does, and remembers it."""
        process = self._context.Process(*args, **options)
        self._processes.append(process)
        return process

    def kill(self) -> None:
        """Kills the processes; not `terminate`: a worker has nothing to clean up and may hang."""
        for process in self._processes:
            if process.pid is not None:
                process.kill()


class _Workers(ProcessPoolExecutor):
    """A pool that raises WorkersNotStarted if its processes cannot be started."""

    def submit(
        self, fn: Callable[..., Result], /, *args: object, **kwargs: object
    ) -> Future[Result]:
        with _starting():
            return super().submit(fn, *args, **kwargs)


def prepare_for(paths: Iterable[Path | None], workers: int, preload: Preload | None) -> None:
    """Starts the fork server if these files and folders justify workers (`are_large`)."""
    if workers > 1 and are_large(paths):
        prepare(preload)


@contextlib.contextmanager
def worker_pool(workers: int, preload: Preload | None, /) -> Iterator[ProcessPoolExecutor]:
    """Opens a pool of worker processes; after an exception they are killed, not waited for.

    If the system can fork, workers are forked from a server that has done the preloading: N workers
    cost one start and share its memory. Opening the pool or submitting work may raise
    WorkersNotStarted.
    """
    with contextlib.ExitStack() as stack:
        method = "spawn"
        if sys.platform != "win32":
            from builder.parallel.server import fork_server  # noqa: PLC0415 - as above

            method = "forkserver"
            with _starting():
                stack.enter_context(fork_server(asdict(preload) if preload else None))
        context: Any = _Context(multiprocessing.get_context(method))
        with _starting():
            executor = _Workers(workers, mp_context=context, initializer=_start_worker)
        try:
            yield executor
        except BaseException:
            context.kill()
            executor.shutdown(cancel_futures=True)
            raise
        executor.shutdown()


class SharedPool:
    """An `OpenPool` that keeps its workers, and their caches, for the next step of a job.

    A step that needs other workers, or that follows an exception or a killed worker, gets new ones.
    The workers stop when its context ends.
    """

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._kept: tuple[int, Preload | None, ProcessPoolExecutor] | None = None

    def __enter__(self) -> SharedPool:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._kept = None
        self._stack.__exit__(*exception)

    @contextlib.contextmanager
    def __call__(self, workers: int, preload: Preload | None, /) -> Iterator[ProcessPoolExecutor]:
        """Yields the workers of the last step, or new ones; after an exception they are killed.

        Raises WorkersNotStarted.
        """
        try:
            yield self._usable(workers, preload) or self._opened(workers, preload)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def _usable(self, workers: int, preload: Preload | None) -> ProcessPoolExecutor | None:
        """Returns the workers of the last step if they are alive and fit the request."""
        if self._kept is None:
            return None
        number, loaded, executor = self._kept
        if number != workers or preload not in (None, loaded):
            return None
        with contextlib.suppress(BrokenProcessPool):
            executor.submit(int).result()
            return executor
        return None

    def _opened(self, workers: int, preload: Preload | None) -> ProcessPoolExecutor:
        self.__exit__(None, None, None)
        executor = self._stack.enter_context(worker_pool(workers, preload))
        self._kept = workers, preload, executor
        return executor


@contextlib.contextmanager
def in_background(preload: Preload | None, *, is_worthwhile: bool) -> Iterator[_Start]:
    """Opens a second process and yields the function that starts work in it.

    If the work is too small for a process (not `is_worthwhile`) or the process was killed, the work
    is done in this process when its result is requested. Exceptions are raised only then, too.
    """
    if not is_worthwhile:
        yield lambda work: work
        return
    with worker_pool(1, preload) as executor:

        def start(work: Callable[[], Result]) -> Callable[[], Result]:
            try:
                future = executor.submit(work)
            except (BrokenProcessPool, WorkersNotStarted):
                return work

            def result() -> Result:
                try:
                    return future.result()
                except BrokenProcessPool:
                    return work()

            return result

        yield start


def _start_worker() -> None:
    """Prepares a worker.

    Ctrl-C reaches all processes of the terminal; only the driver acts on it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    own_process()
    collect_seldom()
    die_with_parent()
    driver = multiprocessing.parent_process()
    is_orphan = SERVER != [] and os.getppid() != SERVER[0]
    if is_orphan or (driver is not None and not driver.is_alive()):
        os._exit(1)  # one of them ended before `die_with_parent`: no signal will come
    threading.Thread(target=_end_with_driver, daemon=True).start()


def _end_with_driver() -> None:
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)


def imap(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    preload: Preload | None,
    *,
    open_pool: OpenPool = worker_pool,
) -> Iterator[Result]:
    """Yields `work(item)` for each item, in order, computed by worker processes.

    Reads items as they are needed. A few items are handled in this process, since they do not
    justify a pool. If a worker is killed, its item and the remaining ones run in this process.
    Passes on the exceptions of `work`.
    """
    rest = iter(items)
    few = _FEW if preload else _FEW_WITHOUT_PRELOAD
    first = list(islice(rest, few))
    if workers <= 1 or len(first) < few:
        yield from map(work, chain(first, rest))
        return
    waiting: deque[tuple[Item, Future[Result] | None]] = deque()

    def next_result() -> Result:
        item, future = waiting.popleft()
        if future is not None:
            with contextlib.suppress(BrokenProcessPool):
                return future.result()
        return work(item)

    with open_pool(workers, preload) as executor:
        for item in chain(first, rest):
            future = None
            with contextlib.suppress(BrokenProcessPool, WorkersNotStarted):
                future = executor.submit(work, item)
            waiting.append((item, future))
            if len(waiting) > workers * (1 + AHEAD):
                yield next_result()
        while waiting:
            yield next_result()


def batches(items: Iterable[Item], size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yields the items in order, in batches; `size` gives the bytes of an item."""
    batch: list[Item] = []
    batch_bytes = 0
    for item in items:
        batch.append(item)
        batch_bytes += size(item)
        if batch_bytes >= BATCH_BYTES or len(batch) >= BATCH_ROWS:
            yield batch
            batch, batch_bytes = [], 0
    if batch:
        yield batch
