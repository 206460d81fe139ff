"""Runs the work on all parts, results in the order of the parts: here, on this machine."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from builder.parts import Part, PartSummary
from builder.pool import holds_more, pool
from builder.problem import Problem
from builder.shard import Task
from builder.work import Job, do, unmade

AHEAD = 64
"""Batches of parts handed out per worker beyond those being worked on: a large part at the front,
whose end all that follow wait for, leaves nobody idle."""
BATCH_BYTES = 1 << 19
BATCH_PARTS = 32
"""Small parts that go to a worker together, bounded by either."""

Done = Callable[[Task, PartSummary], None]
"""What is called after each part."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What runs the job. `run(tasks, job, done)` does all tasks and yields their parts in order.

    It raises OSError if a part cannot be written, UsageError for what its own kind needs.
    """

    name: str
    workers: int
    run: Callable[[Sequence[Task], Job, Done], Iterator[Part]]


def local(workers: int) -> Engine:
    """Processes of this machine."""
    return Engine("local", workers, partial(_run, workers))


def _run(workers: int, tasks: Sequence[Task], job: Job, done: Done) -> Iterator[Part]:
    """Do all tasks; yields their parts in order.

    A worker that is killed by the system costs its part a second try alone, then the reject
    `worker_died`; the run goes on, with one part at a time for each worker. Raises OSError if a
    part cannot be written.
    """
    if workers <= 1 or len(tasks) <= 1 or not holds_more(_paths(tasks)):
        for index, task in enumerate(tasks):
            # What reading it remembers goes with it, not with the list of tasks.
            part = do(replace(task, source=task.source.anew()), index, job)
            done(task, part.summary)
            yield part
        return
    start = yield from _pooled(tasks, 0, BATCH_PARTS, job, workers, done)
    while start < len(tasks):
        start = yield from _pooled(tasks, start, 1, job, workers, done)


def _paths(tasks: Sequence[Task]) -> Iterator[Path | None]:
    """Of all files that are read; None: one that lies on no disk."""
    for task in tasks:
        for item in task.source.members or (task.source,):
            yield item.path


def _batches(tasks: Sequence[Task], start: int, most: int) -> Iterator[range]:
    """The numbers of the tasks from `start` on, in order: those of small files some at a time."""
    size = 0
    for at in range(start, len(tasks)):
        source = tasks[at].source
        whole = source.window is None and not source.members  # a file that is read as it is
        path = source.path if whole else None
        with contextlib.suppress(OSError):  # doing the part says why
            size += path.stat().st_size if path is not None else BATCH_BYTES
        if size >= BATCH_BYTES or at + 1 - start == most:
            yield range(start, at + 1)
            start, size = at + 1, 0
    if start < len(tasks):
        yield range(start, len(tasks))


def _pooled(
    tasks: Sequence[Task], start: int, most: int, job: Job, workers: int, done: Done
) -> Generator[Part, None, int]:
    """Work from `start` on, by batches of so many parts at most.

    Returns where to go on: after the part that broke the pool.
    """
    waiting: deque[Future[list[Part]]] = deque()
    batches = _batches(tasks, start, most)
    at = start
    try:
        with pool(workers, job.tokenizer) as executor:
            while at < len(tasks):
                for batch in islice(batches, workers * (1 + AHEAD) - len(waiting)):
                    these = tasks[batch.start : batch.stop]
                    waiting.append(executor.submit(_do_all, these, batch.start, job))
                for part in waiting.popleft().result():
                    done(tasks[at], part.summary)
                    yield part
                    at += 1
        return at
    except BrokenProcessPool:
        part = _alone(tasks[at], at, job)
        done(tasks[at], part.summary)
        yield part
        return at + 1


def _do_all(tasks: Sequence[Task], first: int, job: Job) -> list[Part]:
    return [do(task, first + at, job) for at, task in enumerate(tasks)]


def _alone(task: Task, index: int, job: Job) -> Part:
    try:
        with pool(1, job.tokenizer) as executor:
            return executor.submit(do, task, index, job).result()
    except BrokenProcessPool:
        detail = "the worker process was killed twice (out of memory?)"
        return unmade(task, index, job, Problem("worker_died", "file", detail))


def interrupt_on_sigterm() -> None:
    """SIGTERM ends the run as Ctrl-C does: what is finished stays, nothing is half-written."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, interrupt)
