"""Runs the work on all parts, results in the order of the parts: here, on this machine."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from queue import SimpleQueue

from builder.build.convert import Task
from builder.build.results import ChunkResult, ResultSummary
from builder.build.task import Job, failed_result, run_task
from builder.parallel.pool import holds_more, pool
from builder.problem import Problem
from builder.verify.preload import preloading

AHEAD = 64
"""Batches of parts handed out per worker beyond those being worked on: a large part, whose end all
that follow wait for, leaves nobody idle."""
BATCH_BYTES = 1 << 19
BATCH_PARTS = 32
"""Small parts that go to a worker together, bounded by either."""

Done = Callable[[Task, ResultSummary], None]
"""What is called after each part."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What runs the job. `run(tasks, job, done)` does all tasks and yields their parts in order.

    It raises OSError if a part cannot be written, UsageError for what its own kind needs.
    """

    name: str
    workers: int
    run: Callable[[Sequence[Task], Job, Done], Iterator[ChunkResult]]


def local(workers: int) -> Engine:
    """Processes of this machine."""
    return Engine("local", workers, partial(_run, workers))


def _run(workers: int, tasks: Sequence[Task], job: Job, done: Done) -> Iterator[ChunkResult]:
    """Do all tasks; yields their parts in order.

    A worker that is killed by the system costs its part a second try alone, then the reject
    `worker_died`; the run goes on, with one part at a time for each worker. Raises OSError if a
    part cannot be written.
    """
    if workers <= 1 or len(tasks) <= 1 or not holds_more(_paths(tasks)):
        for index, task in enumerate(tasks):
            # What reading it remembers goes with it, not with the list of tasks.
            part = run_task(replace(task, source=task.source.unread_copy()), index, job)
            done(task, part.summary)
            yield part
        return
    progress = _Progress(tasks, done)
    yield from _pooled(tasks, BATCH_PARTS, job, workers, progress)
    while progress.at < len(tasks):
        yield from _pooled(tasks, 1, job, workers, progress)


def _paths(tasks: Sequence[Task]) -> Iterator[Path | None]:
    """Of all files that are read; None: one that lies on no disk."""
    for task in tasks:
        for item in task.source.members or (task.source,):
            yield item.path


def _batches(tasks: Sequence[Task], start: int, most: int) -> Iterator[tuple[int, range]]:
    """(bytes, numbers) of the tasks from `start` on, in order: of small files some at a time."""
    size = 0
    for at in range(start, len(tasks)):
        source = tasks[at].source
        if source.window is not None:
            size += max(source.window.bytes, BATCH_BYTES)
        elif source.path is None or source.members:
            size += BATCH_BYTES
        else:
            with contextlib.suppress(OSError):  # doing the part says why
                size += source.path.stat().st_size
        if size >= BATCH_BYTES or at + 1 - start == most:
            yield size, range(start, at + 1)
            start, size = at + 1, 0
    if start < len(tasks):
        yield size, range(start, len(tasks))


class _Progress:
    """Tells of each part once, when it is there; `at` is the one whose turn it is."""

    def __init__(self, tasks: Sequence[Task], done: Done) -> None:
        self.at = 0
        self._tasks = tasks
        self._done = done
        self._early: set[int] = set()

    def here(self, at: int, part: ChunkResult) -> None:
        """A part is there, perhaps before its turn, perhaps once more."""
        if at >= self.at and at not in self._early:
            self._early.add(at)
            self._done(self._tasks[at], part.summary)

    def turn(self, part: ChunkResult) -> ChunkResult:
        """It is the part's turn."""
        self.here(self.at, part)
        self._early.remove(self.at)
        self.at += 1
        return part


def _pooled(
    tasks: Sequence[Task], most: int, job: Job, workers: int, progress: _Progress
) -> Iterator[ChunkResult]:
    """Work from `progress.at` on, by batches of so many parts at most.

    Of those handed out together the largest is begun first, so that nobody is left alone with it
    at the end; after a worker's death (`most` 1) all in order, so that the part to blame soon has
    its turn. Ends after the part whose turn it was when the pool broke.
    """
    batches = _batches(tasks, progress.at, most)
    room = workers * (1 + AHEAD)
    waiting: deque[Future[list[ChunkResult]]] = deque()
    first: dict[Future[list[ChunkResult]], int] = {}
    finished: SimpleQueue[Future[list[ChunkResult]]] = SimpleQueue()
    try:
        with pool(workers, preloading(job.tokenizer)) as executor:
            while progress.at < len(tasks):
                if len(waiting) <= room // 2:
                    more = list(islice(batches, room - len(waiting)))
                    begun: dict[int, Future[list[ChunkResult]]] = {}
                    for _, batch in sorted(more, key=_large_first) if most > 1 else more:
                        these = tasks[batch.start : batch.stop]
                        future = executor.submit(_do_all, these, batch.start, job)
                        first[future] = batch.start
                        begun[batch.start] = future
                        future.add_done_callback(finished.put)
                    waiting.extend(begun[batch.start] for _, batch in more)
                while not (waiting[0].done() and finished.empty()):
                    early = finished.get()
                    start = first.pop(early)
                    if early.exception() is None:  # what it raised, it raises when it has its turn
                        for at, part in enumerate(early.result(), start):
                            progress.here(at, part)
                yield from map(progress.turn, waiting.popleft().result())
    except BrokenProcessPool:
        at = progress.at
        yield progress.turn(_alone(tasks[at], at, job))


def _large_first(batch: tuple[int, range]) -> int:
    return -batch[0]


def _do_all(tasks: Sequence[Task], first: int, job: Job) -> list[ChunkResult]:
    return [run_task(task, first + at, job) for at, task in enumerate(tasks)]


def _alone(task: Task, index: int, job: Job) -> ChunkResult:
    try:
        with pool(1, preloading(job.tokenizer)) as executor:
            return executor.submit(run_task, task, index, job).result()
    except BrokenProcessPool:
        detail = "the worker process was killed twice (out of memory?)"
        return failed_result(task, index, job, Problem("worker_died", "file", detail))


def interrupt_on_sigterm() -> None:
    """SIGTERM ends the run as Ctrl-C does: what is finished stays, nothing is half-written."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, interrupt)
