"""Runs the tasks of a build on Ray: on this machine or on an existing cluster.

Ray carries only the tasks and the returned counts; results go to the state folder, or to a store.
Each task checks that its node sees the folder and the inputs and runs the same versions, so that a
misconfigured node never looks like a fault of the data.
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import socket
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from builder.build.engine import Engine
from builder.build.identity import job_identity
from builder.build.results import ChunkResult, fetch_result, put_result
from builder.build.run import failed_result, run_task
from builder.build.task import Job, Task
from builder.credentials import reason
from builder.distribution import install_line
from builder.parallel.host import collect_seldom, environment, interrupt_on_sigterm, own_process
from builder.parallel.pool import OpenPool
from builder.problem import OptionError, Problem, UsageError
from builder.qwen3.reference import absolute
from builder.verify.options import VerifyOptions
from builder.verify.verifier import verifier_for

_TRIES = 3
"""Attempts for a task whose worker dies or is killed for its memory use."""
_NODE_TRIES = 12
"""Attempts for a task whose node is lost. The task is rarely the cause, since nodes are preempted;
but one that takes its nodes down must not be retried forever.
"""
_AHEAD = 4
"""Tasks queued in Ray per core in addition to the running ones."""
_ANSWER_SECONDS = 10
_CANCELS = 5
"""How often a task of a failed run is cancelled until it has ended."""
_CANCEL_SECONDS = 3
_MARK = "run"
"""The file in the work folder with the random name of the run."""


@dataclass(frozen=True, slots=True)
class _Unseen:
    """The result of a task on a node that does not see `path`, an input of the task."""

    node: str
    path: Path


@contextlib.contextmanager
def on_ray(workers: int | None) -> Iterator[Engine]:
    """Connects to Ray and yields the engine; its `workers` are those at the start.

    If the program is already connected, its connection is used and kept. Otherwise that is the
    cluster at RAY_ADDRESS, or a Ray of its own, which stops at the end. `workers` is the number of
    tasks that may run at once; None: the number of cores. Raises UsageError if Ray is not
    installed, or no cluster is at the address.
    """
    ray = _import()
    if ray.is_initialized():
        yield _engine(ray, workers, is_given=True)
        return
    address = os.environ.get("RAY_ADDRESS") or "local"
    ours = address == "local"
    started = {"num_cpus": workers, "include_dashboard": False} if ours else {}
    try:
        host, colon, port = address.rpartition("://")[2].rpartition(":")
        if colon and port.isdigit():
            with socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SECONDS):
                pass  # Ray itself would try for many minutes
    except OSError as error:
        raise UsageError(f"RAY_ADDRESS {address!r}: no cluster there: {error}") from None
    try:
        with environment(RAY_USAGE_STATS_ENABLED=os.environ.get("RAY_USAGE_STATS_ENABLED", "0")):
            # by default Ray sends usage statistics to its authors
            ray.init(address, log_to_driver=False, logging_level="ERROR", **started)
    except (RuntimeError, ValueError, OSError) as error:
        hint = "a cluster with token authentication needs RAY_AUTH_MODE=token here, too"
        raise UsageError(f"RAY_ADDRESS {address!r}: {reason(error)}; {hint}") from None
    interrupt_on_sigterm(is_watched=False)  # Ray has replaced our handler with its own
    try:
        yield _engine(ray, workers, is_given=not ours)
    finally:
        ray.shutdown()


def _engine(ray: Any, limit: int | None, *, is_given: bool) -> Engine:
    """Returns the engine for the connection; `limit` bounds the tasks that run at once."""
    # More tasks are submitted than run at once, so that no worker waits for the driver and a
    # cluster that can grow sees the demand; a limit on a given cluster is kept by submitting less.
    ahead = 1 if limit and is_given else 1 + _AHEAD

    def workers() -> int:
        return limit or max(int(ray.cluster_resources().get("CPU", 1)), 1)

    def run(
        tasks: Sequence[Task], job: Job, _open_pool: OpenPool
    ) -> Generator[tuple[int, ChunkResult]]:
        return _Work(tasks, job, ray).finish(lambda: workers() * ahead)

    return Engine("ray", workers(), run)


def _import() -> Any:
    try:
        import ray  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise OptionError("engine", f" ray: Ray is not installed: {install_line('ray')}") from None
    return ray


class _Work:
    """Runs the tasks on Ray and counts the attempts of each."""

    def __init__(self, tasks: Sequence[Task], job: Job, ray: Any) -> None:
        self.tasks = tasks
        self.job = job
        self.ray = ray
        self.mark = secrets.token_hex(8)
        (job.work / _MARK).write_text(self.mark)
        self._deaths: Counter[tuple[int, bool]] = Counter()
        self._indices: dict[Any, int] = {}
        # Ray's own retries are unlimited when memory runs out, so we retry instead.
        self._run_remote = self.ray.remote(_run_remote).options(max_retries=0, num_cpus=1)
        self._job = self.ray.put(_absolute(job))

    def finish(self, room: Callable[[], int]) -> Generator[tuple[int, ChunkResult]]:
        """Yields (index, result) of all tasks as they finish; submits up to `room()` at a time.

        A task whose worker or node dies is attempted _TRIES or _NODE_TRIES times, and then becomes
        the reject `worker_died`. If closed early, cancels the tasks that are still running. Raises
        OSError if a result cannot be written, and UsageError if a node does not see the files or
        runs other versions.
        """
        waiting = iter(range(len(self.tasks)))
        try:
            while True:
                for index in islice(waiting, max(room() - len(self._indices), 0)):
                    self._submit(index)
                if not self._indices:
                    return
                finished, _ = self.ray.wait(list(self._indices), num_returns=1)
                index = self._indices.pop(finished[0])
                result = self._result(index, finished[0])
                if result is not None:
                    yield index, result
        finally:
            self._cancel(list(self._indices))

    def _cancel(self, references: list[Any]) -> None:
        """Ends the tasks, since the connection may outlive this run.

        Queued ones first: the worker of a cancelled one would start them. The cancellation of a
        task that is on its way to a worker can be lost, so it is repeated.
        """
        for _ in range(_CANCELS):
            if not references:
                return
            for reference in reversed(references):
                self.ray.cancel(reference, force=True)
            _, references = self.ray.wait(
                references, num_returns=len(references), timeout=_CANCEL_SECONDS, fetch_local=False
            )

    def _submit(self, index: int, *, look: bool = True) -> None:
        task = self.tasks[index]
        for item in (task.source, *task.source.members):
            item.path = item.path and item.path.absolute()  # nodes work in other folders
        reference = self._run_remote.remote(task, index, self._job, self.mark, look)
        self._indices[reference] = index

    def _result(self, index: int, reference: Any) -> ChunkResult | None:
        """Returns the result; None if the task was submitted again."""
        errors = self.ray.exceptions
        try:
            result: ChunkResult | _Unseen = self.ray.get(reference)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, UsageError | OSError):
                raise cause from None
            if "failed to import" in str(cause):
                detail = "a node does not have this program: install the same everywhere"
                raise OptionError("engine", f" ray: {detail}") from None
            raise
        except (errors.WorkerCrashedError, errors.OutOfMemoryError) as error:
            return self._retried(index, node=False, error=error)
        except (errors.NodeDiedError, errors.ObjectLostError) as error:
            return self._retried(index, node=True, error=error)
        except errors.RayError as error:
            raise OptionError("engine", f" ray: {reason(error)}") from None
        if isinstance(result, _Unseen):
            if result.path.exists():
                raise OptionError(
                    "engine",
                    f" ray: node {result.node} does not see the input {str(result.path)!r}:"
                    " all nodes need the same file system, or inputs in a store",
                )
            self._submit(index, look=False)  # the input is gone, which running the task reports
            return None
        done = replace(result, path=self.job.work.parent / result.path)
        if self.job.store is None:
            return done
        url = f"{self.job.store}/{result.path.as_posix()}"
        return fetch_result(done, url, self.job.work / "fetched")

    def _retried(self, index: int, *, node: bool, error: Exception) -> ChunkResult | None:
        """Submits a task again and returns None; after too many attempts returns its reject."""
        self._deaths[index, node] += 1
        tries = self._deaths[index, node]
        if tries < (_NODE_TRIES if node else _TRIES):
            self._submit(index)
            return None
        memory = isinstance(error, self.ray.exceptions.OutOfMemoryError)
        what = "node died" if node else "worker was killed"
        why = ", out of memory" if memory else " (out of memory?)"
        problem = Problem("worker_died", "file", f"the {what} {tries} times{why}")
        return failed_result(self.tasks[index], index, self.job, problem)


def _run_remote(task: Task, index: int, job: Job, mark: str, look: bool) -> ChunkResult | _Unseen:
    """Runs a task on a node; the path of its result is relative to the state folder.

    Raises OSError and UsageError like `run_task`, and UsageError if the node does not match the
    driver.
    """
    node = platform.node()
    if _identity(job.tokenizer, job.verify) != job.identity:
        raise OptionError(
            "engine",
            f" ray: node {node} has other versions of this program, its libraries or the"
            " tokenizer than the driver: install the same everywhere",
        )
    if job.store is None and not _sees(job, mark):
        raise OptionError(
            "engine",
            f" ray: node {node} does not see the output folder: all nodes need the same"
            " file system, or an output by its address in a store",
        )
    if look and (missing := _missing(task)) is not None:
        return _Unseen(node, missing)
    # A lost attempt may still be writing, so each attempt has its own folder.
    own = f"{node}-{os.getpid()}"
    if job.store is None:
        state = job.work.parent
        done = run_task(task, index, replace(job, work=job.work / own))
        return replace(done, path=done.path.relative_to(state))
    with tempfile.TemporaryDirectory(prefix="builder-result-") as scratch:
        state = Path(scratch)
        done = run_task(
            task, index, replace(job, results=state / "results", work=state / "work" / own)
        )
        below = done.path.relative_to(state)
        if done.path.is_file():  # otherwise an earlier run has uploaded it
            put_result(done.path, f"{job.store}/{below.as_posix()}")
        return replace(done, path=below)


def _missing(task: Task) -> Path | None:
    paths = (item.path for item in task.source.members or (task.source,))
    return next((path for path in paths if path is not None and not path.exists()), None)


def _sees(job: Job, mark: str) -> bool:
    try:
        return (job.work / _MARK).read_text() == mark
    except OSError:
        return False


@cache
def _identity(tokenizer: str, verify: VerifyOptions) -> str:
    """Returns the identity of this process; the first call also prepares the process for work."""
    own_process()
    collect_seldom()
    target = verifier_for(tokenizer, verify).target
    return job_identity(target.files, target.template_key)


def _absolute(job: Job) -> Job:
    """Returns the job for nodes: with absolute paths, and without saved events."""
    tokenizer = absolute(job.tokenizer)
    return replace(
        job,
        tokenizer=tokenizer,
        results=job.results.absolute(),
        work=job.work.absolute(),
        spools=None,
    )
