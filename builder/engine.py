"""Runs the work on all parts, results in the order of the parts: here, on this machine."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from builder.parts import Part, PartSummary
from builder.pool import holds_more, pool
from builder.problem import Problem
from builder.shard import Task
from builder.work import Job, do, unmade

AHEAD = 4
"""Parts handed out per worker beyond those being worked on."""

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
    `worker_died`; the run goes on. Raises OSError if a part cannot be written.
    """
    if workers <= 1 or len(tasks) <= 1 or not holds_more(_paths(tasks)):
        for index, task in enumerate(tasks):
            # What reading it remembers goes with it, not with the list of tasks.
            part = do(replace(task, source=task.source.anew()), index, job)
            done(task, part.summary)
            yield part
        return
    start = 0
    while start < len(tasks):
        start = yield from _pooled(tasks, start, job, workers, done)


def _paths(tasks: Sequence[Task]) -> Iterator[Path | None]:
    """Of all files that are read; None: one that lies on no disk."""
    for task in tasks:
        for item in task.source.members or (task.source,):
            yield item.path


def _pooled(
    tasks: Sequence[Task], start: int, job: Job, workers: int, done: Done
) -> Generator[Part, None, int]:
    """Work from `start` on; returns where to go on (after the part that broke the pool)."""
    waiting: deque[Future[Part]] = deque()
    submitted = start
    at = start
    try:
        with pool(workers, job.tokenizer) as executor:
            while at < len(tasks):
                while submitted < len(tasks) and len(waiting) < workers + workers * AHEAD:
                    waiting.append(executor.submit(do, tasks[submitted], submitted, job))
                    submitted += 1
                part = waiting.popleft().result()
                done(tasks[at], part.summary)
                yield part
                at += 1
        return at
    except BrokenProcessPool:
        part = _alone(tasks[at], at, job)
        done(tasks[at], part.summary)
        yield part
        return at + 1


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
