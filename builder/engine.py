"""Runs `process_source` over many sources on this machine, results in the order of the sources."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from builder.problem import Problem
from builder.qwen3.tokenizer import load
from builder.shard import SourceResult, Task, process_source
from builder.verify import Verifier
from builder.verify_options import VerifyOptions

AHEAD = 4
"""Sources handed out per worker beyond those being worked on."""

_verifiers: dict[tuple[str, VerifyOptions], Verifier] = {}
"""One verifier a process: loading the tokenizer takes a second."""


def verifier_for(tokenizer: str, options: VerifyOptions | None = None) -> Verifier:
    """The process's verifier. Raises UsageError if the tokenizer cannot be loaded."""
    options = options or VerifyOptions()
    key = (tokenizer, options)
    if key not in _verifiers:
        _verifiers[key] = Verifier(load(tokenizer), options)
    return _verifiers[key]


def spool_path(folder: Path, index: int) -> Path:
    """Where the samples of the source with this index wait."""
    return folder / f"{index:08d}"


def _work(
    task: Task, index: int, folder: str, tokenizer: str, verify: VerifyOptions
) -> SourceResult:
    with spool_path(Path(folder), index).open("wb") as spool:
        return process_source(task, verifier_for(tokenizer, verify), spool)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches all processes of the terminal; only the driver acts on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run(
    tasks: Sequence[Task],
    folder: Path,
    *,
    tokenizer: str,
    verify: VerifyOptions,
    workers: int,
    done: Callable[[SourceResult], None] = lambda _: None,
) -> Iterator[SourceResult]:
    """Process all tasks; yields their results in order. Spools lie in `folder`.

    A worker that is killed by the system costs its source a second try alone, then the reject
    `worker_died`; the run goes on. Raises OSError if a spool cannot be written.
    """
    if workers <= 1 or len(tasks) <= 1:
        for index, task in enumerate(tasks):
            result = _work(task, index, str(folder), tokenizer, verify)
            done(result)
            yield result
        return
    start = 0
    while start < len(tasks):
        start = yield from _pooled(tasks, start, folder, tokenizer, verify, workers, done)


def _pooled(
    tasks: Sequence[Task],
    start: int,
    folder: Path,
    tokenizer: str,
    verify: VerifyOptions,
    workers: int,
    done: Callable[[SourceResult], None],
) -> Generator[SourceResult, None, int]:
    """Work from `start` on; returns where to go on (after the source that broke the pool)."""
    pool = _pool(workers)
    waiting: deque[Future[SourceResult]] = deque()
    submitted = start
    at = start
    try:
        while at < len(tasks):
            while submitted < len(tasks) and len(waiting) < workers + workers * AHEAD:
                waiting.append(
                    pool.submit(_work, tasks[submitted], submitted, str(folder), tokenizer, verify)
                )
                submitted += 1
            result = waiting.popleft().result()
            done(result)
            yield result
            at += 1
        pool.shutdown()
        return at
    except BrokenProcessPool:
        pool.shutdown(cancel_futures=True)
        result = _alone(tasks[at], at, folder, tokenizer, verify)
        done(result)
        yield result
        return at + 1
    except BaseException:
        # Interrupted: nobody waits for workers, and none outlives the run.
        for worker in multiprocessing.active_children():
            worker.terminate()
        pool.shutdown(cancel_futures=True)
        raise


def _alone(
    task: Task, index: int, folder: Path, tokenizer: str, verify: VerifyOptions
) -> SourceResult:
    with _pool(1) as pool:
        try:
            return pool.submit(_work, task, index, str(folder), tokenizer, verify).result()
        except BrokenProcessPool:
            spool_path(folder, index).write_bytes(b"")
            result = SourceResult(task.source.name, license=task.license)
            detail = "the worker process was killed twice (out of memory?)"
            result.reject(Problem("worker_died", "file", detail))
            result.ledger.read = 1
            result.ledger.rejected["worker_died"] = 1
            return result


def _pool(workers: int) -> ProcessPoolExecutor:
    method = "spawn" if sys.platform == "win32" else "forkserver"
    context = multiprocessing.get_context(method)
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_ignore_interrupts)


def interrupt_on_sigterm() -> None:
    """SIGTERM ends the run as Ctrl-C does: what is unfinished goes, nothing is half-written."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, interrupt)
