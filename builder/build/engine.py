"""Runs the tasks of a build in worker processes of this machine."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from builder.build.results import ChunkResult, ResultSummary
from builder.build.run import failed_result, run_task
from builder.build.task import Job, Task
from builder.parallel.pool import OpenPool, Preload, are_large
from builder.problem import Problem
from builder.readers import readers
from builder.verify import preload as verifying

# -- preloads workers that convert ---------------------------------------------------------------


def preloading(tokenizer: str) -> Preload:
    """Returns the preloading for workers of a build against this tokenizer."""
    return Preload(__name__, "preload", tokenizer)


def preload(tokenizer: str) -> None:
    """Loads what workers need to convert and verify, so that forked workers share it."""
    from builder.secrets.secrets import scanned_secrets  # noqa: PLC0415 - heavy

    readers()
    scanned_secrets(())  # opens the scanner of the extra, which takes half a second
    verifying.preload(tokenizer)


AHEAD = 2
"""Batches queued per worker in addition to the one that it runs."""
_BATCH_BYTES = 1 << 19
BATCH_TASKS = 32
"""Small tasks are submitted together until a batch reaches either limit."""

Done = Callable[[Task, ResultSummary], None]
"""Called after each task, in the order in which tasks finish."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Runs the tasks of a build: the local pool, or Ray.

    `run(tasks, job, open_pool)` yields (index of the task, its result) once for each task, in any
    order; `open_pool` opens worker processes of this machine. Closing the generator stops the
    running tasks. It raises OSError if a result cannot be written, and UsageError if a requirement
    of the engine is not met.
    """

    name: str
    workers: int
    run: Callable[[Sequence[Task], Job, OpenPool], Generator[tuple[int, ChunkResult]]]


def local(workers: int) -> Engine:
    """Returns the engine that uses worker processes of this machine."""
    return Engine("local", workers, partial(run_local, workers))


def run_local(
    workers: int, tasks: Sequence[Task], job: Job, open_pool: OpenPool
) -> Generator[tuple[int, ChunkResult]]:
    """Yields the result of each task with its index, as results arrive.

    Small inputs run in this process. Otherwise the largest batches are submitted first, so that no
    worker starts a long one last. If a worker is killed, perhaps because a task exhausted the
    memory, the unfinished tasks of the submitted batches run one at a time; a task whose worker is
    killed twice becomes the reject `worker_died`.
    """
    if workers <= 1 or len(tasks) <= 1 or not are_large(_paths(tasks)):
        for index, task in enumerate(tasks):
            # The caches that reading fills are freed with the copy.
            copy = replace(task, source=task.source.unread_copy())
            yield index, run_task(copy, index, job)
        return
    batches = deque(task_batches(tasks, _BATCH_BYTES, BATCH_TASKS))
    submitted: dict[Future[list[ChunkResult]], Sequence[int]] = {}
    while batches:
        try:
            with open_pool(workers, preloading(job.tokenizer)) as executor:
                while batches or submitted:
                    while batches and len(submitted) < workers * (1 + AHEAD):
                        batch = batches[0]
                        chosen = [tasks[index] for index in batch]
                        submitted[executor.submit(_run_batch, chosen, batch, job)] = batch
                        batches.popleft()
                    for future in wait(submitted, return_when=FIRST_COMPLETED).done:
                        results = future.result()
                        yield from zip(submitted.pop(future), results, strict=True)
        except BrokenProcessPool:
            unfinished = [index for batch in submitted.values() for index in batch]
            submitted.clear()
            yield from _run_alone(unfinished, tasks, job, open_pool)


def task_batches(tasks: Sequence[Task], batch_bytes: int, batch_tasks: int) -> list[Sequence[int]]:
    """Returns the indices of the tasks in batches, the batch with the most bytes first.

    Small tasks share a batch up to either limit. A chunk of a large file, a store, or an input of
    unknown size ends its batch.
    """
    batches: list[tuple[int, list[int]]] = []
    size, batch = 0, list[int]()
    for index, task in enumerate(tasks):
        batch.append(index)
        size += _size(task, unknown=batch_bytes)
        if size >= batch_bytes or len(batch) >= batch_tasks:
            batches.append((size, batch))
            size, batch = 0, []
    batches.append((size, batch))
    return [indices for _, indices in sorted(batches, key=lambda item: -item[0]) if indices]


def _size(task: Task, *, unknown: int) -> int:
    """Returns the bytes that a task reads.

    The size of a store or of a remote object is `unknown`; that of a chunk is at least `unknown`.
    """
    source = task.source
    if source.chunk is not None:
        return max(source.chunk.bytes, unknown)
    if source.path is None or source.members:
        return unknown
    try:
        return source.path.stat().st_size
    except OSError:
        return 0  # running the task reports the error


def _paths(tasks: Sequence[Task]) -> Iterator[Path | None]:
    for task in tasks:
        for item in task.source.members or (task.source,):
            yield item.path


def _run_batch(tasks: Sequence[Task], indices: Sequence[int], job: Job) -> list[ChunkResult]:
    return [run_task(task, index, job) for task, index in zip(tasks, indices, strict=True)]


def _run_alone(
    indices: Iterable[int], tasks: Sequence[Task], job: Job, open_pool: OpenPool
) -> Iterator[tuple[int, ChunkResult]]:
    """Runs tasks one at a time; a task whose worker is killed becomes a reject."""
    remaining = deque(indices)
    while remaining:
        with (
            contextlib.suppress(BrokenProcessPool),
            open_pool(1, preloading(job.tokenizer)) as executor,
        ):
            while remaining:
                index = remaining[0]
                result = executor.submit(run_task, tasks[index], index, job).result()
                remaining.popleft()
                yield index, result
        if remaining:
            index = remaining.popleft()
            detail = "the worker process was killed twice (out of memory?)"
            problem = Problem("worker_died", "file", detail)
            yield index, failed_result(tasks[index], index, job, problem)
