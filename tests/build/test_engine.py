"""The choice of the engine if Ray is not installed or not requested."""

import contextlib
import os
import sys
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from support.runs.builds import build

from builder.build import engine
from builder.build.results import ChunkResult, ResultSummary
from builder.build.task import Job, Task
from builder.normalize.options import NormalizeOptions
from builder.sources.source import Source
from builder.verify.options import VerifyOptions


def test_without_ray_the_message_explains_how_to_install_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert build(tmp_path / "out", "--engine", "ray") == 2
    error = capsys.readouterr().err
    assert "pip install 'toolcall-builder[ray]'" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.fixture
def tasks(tmp_path):
    """Returns tasks: files of 1, 1, 1, 9, 1 MB; a store, one in memory, a missing one; 1, 1 MB."""

    def file(name, size):
        path = tmp_path / name
        path.touch()
        os.truncate(path, size << 20)  # a store's folder has a size too, a small one
        return Source(name, path)

    sources = [file(f"{at}", size) for at, size in enumerate((1, 1, 1, 9, 1))]
    sources += [Source("store", tmp_path, members=[file("member", 1)]), Source("memory", data=b"")]
    sources += [Source("gone", tmp_path / "gone"), file("8", 1), file("9", 1)]
    return [Task(source, NormalizeOptions(), source.name) for source in sources]


@pytest.mark.parametrize(
    ("most", "wanted"),
    [
        (32, [[0, 1, 2, 3], [4, 5], [6], [7, 8, 9]]),
        (2, [[4, 5], [2, 3], [6], [0, 1], [7, 8], [9]]),
        (1, [[5], [6], [3], [0], [1], [2], [4], [8], [9], [7]]),
    ],
)
def test_small_tasks_share_a_batch_and_the_largest_batch_comes_first(tasks, most, wanted):
    found = engine.task_batches(tasks, 10 << 20, most)
    assert [list(batch) for batch in found] == wanted


def test_no_tasks_give_no_batches():
    assert engine.task_batches([], 1, 1) == []


class Pool(Executor):
    """An executor without processes; its workers die at the tasks in `fatal`.

    `submitted` has a list of (workers, indices of the tasks) for each submission.
    """

    def __init__(self, fatal):
        self.fatal = fatal
        self.submitted = []

    @contextlib.contextmanager
    def open(self, workers, preload):
        self.workers, self.broken = workers, False
        yield self

    def submit(self, work, task, index, job):
        if self.broken:
            raise BrokenProcessPool
        indices = [index] if isinstance(index, int) else list(index)
        self.submitted.append((self.workers, indices))
        self.broken = bool(self.fatal.intersection(indices))
        future = Future()
        if self.broken:
            future.set_exception(BrokenProcessPool())
        else:
            found = [ChunkResult(Path(f"{at}"), ResultSummary(""), (0, 0, 0)) for at in indices]
            future.set_result(found[0] if isinstance(index, int) else found)
        return future


@pytest.fixture
def job(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return Job("qwen3", VerifyOptions(), "identity", folder / "parts", folder)


def numbers(results):
    return sorted(index for index, _ in results)


def test_each_task_has_one_result_with_its_index(tasks, job):
    pool = Pool(set())
    results = list(engine.run_local(2, tasks, job, pool.open))
    assert numbers(results) == list(range(len(tasks)))
    assert all(result.path.name == str(index) for index, result in results)


def test_a_task_that_kills_its_worker_twice_is_a_reject_and_only_unfinished_ones_run_again(
    tasks, job
):
    pool = Pool({3})
    results = dict(engine.run_local(2, tasks, job, pool.open))
    assert numbers(results.items()) == list(range(len(tasks)))
    assert results[3].summary.ledger.rejected == {"worker_died": 1}
    assert all(not results[at].summary.ledger.rejected for at in results if at != 3)
    alone = [batch for workers, batch in pool.submitted if workers == 1]
    assert [3] in alone
    assert all(len(batch) == 1 for batch in alone)
    done = [at for workers, batch in pool.submitted if workers == 2 for at in batch]
    assert len(done) == len(set(done)), "a task runs again only on its own"


def test_two_fatal_tasks_are_two_rejects(tasks, job):
    pool = Pool({0, 8})
    results = dict(engine.run_local(2, tasks, job, pool.open))
    assert numbers(results.items()) == list(range(len(tasks)))
    rejected = [at for at, result in results.items() if result.summary.ledger.rejected]
    assert sorted(rejected) == [0, 8]
