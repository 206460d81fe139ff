"""The choice of the engine, where Ray is not installed or not asked for."""

import contextlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from threading import Event
from time import sleep

import pytest
from builds import build

from builder.build import engine
from builder.build.convert import Task
from builder.build.results import ChunkResult, ResultSummary
from builder.normalize import NormalizeOptions
from builder.sources.source import Source


def test_without_ray_the_line_says_how_to_install_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert build(tmp_path / "out", "--engine", "ray") == 2
    error = capsys.readouterr().err
    assert "pip install 'toolcall-dataset-builder[ray]'" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_address_of_a_cluster_is_for_ray_alone(tmp_path, capsys):
    assert build(tmp_path / "out", "--ray-address", "auto") == 2
    assert "--engine ray" in capsys.readouterr().err


def test_what_is_not_asked_for_is_not_imported(tmp_path):
    code = (
        "import sys; from builder import cli; from builds import build;"
        f"assert build({str(tmp_path / 'out')!r}, '--workers', '1') == 0;"
        "print([name for name in ('ray', 's3fs', 'botocore') if name in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd="tests",
        env={"PYTHONPATH": ".."},
    )
    assert said.stdout == "[]\n"


@pytest.fixture
def tasks(tmp_path):
    """Parts of 1, 1, 1, 9, 1 MB; a store, a part in memory, one that is gone; then of 1, 1."""

    def file(name, size):
        path = tmp_path / name
        path.touch()
        os.truncate(path, size << 20)  # a store's folder has a size too, which is small
        return Source(name, path)

    sources = [file(f"{at}", size) for at, size in enumerate((1, 1, 1, 9, 1))]
    sources += [Source("store", tmp_path, members=[file("member", 1)]), Source("memory", data=b"")]
    sources += [Source("gone", tmp_path / "gone"), file("8", 1), file("9", 1)]
    return [Task(source, NormalizeOptions(), source.name) for source in sources]


@pytest.mark.parametrize(
    ("start", "most", "wanted"),
    [
        (0, 32, [[0, 1, 2, 3], [4, 5], [6], [7, 8, 9]]),
        (0, 2, [[0, 1], [2, 3], [4, 5], [6], [7, 8], [9]]),
        (3, 1, [[3], [4], [5], [6], [7], [8], [9]]),
        (10, 32, []),
    ],
)
def test_small_parts_go_together_and_each_goes_once(monkeypatch, tasks, start, most, wanted):
    monkeypatch.setattr(engine, "BATCH_BYTES", 10 << 20)
    found = engine._batches(tasks, start, most)
    assert [list(batch) for _, batch in found] == wanted


@pytest.fixture
def threads(monkeypatch):
    """Threads in the place of the pool's processes, which begin one after the other.

    Gives the numbers of the parts in the order in which they were begun, and a dictionary of what
    to call before one is done.
    """
    begun, before = [], {}

    def do(tasks, first, job):
        begun.extend(range(first, first + len(tasks)))
        for at in range(first, first + len(tasks)):
            before.get(at, bool)()
        return [
            ChunkResult(Path(f"{first + at}"), ResultSummary(""), (0, 0, 0))
            for at in range(len(tasks))
        ]

    @contextlib.contextmanager
    def pool(workers, tokenizer):
        with ThreadPoolExecutor(workers) as executor:
            yield executor

    monkeypatch.setattr(engine, "pool", pool)
    monkeypatch.setattr(engine, "_do_all", do)
    return begun, before


class Job:
    tokenizer = "qwen3"


@pytest.mark.parametrize("ahead", [0, 1, 2, 64])
def test_the_largest_is_begun_first_and_the_parts_come_in_order(monkeypatch, tasks, threads, ahead):
    monkeypatch.setattr(engine, "AHEAD", ahead)
    told = []
    parts = engine._run(2, tasks, Job(), lambda task, _: told.append(tasks.index(task)))
    assert [int(part.path.name) for part in parts] == list(range(len(tasks)))
    assert sorted(told) == list(range(len(tasks)))
    if ahead == 64:
        assert 3 in threads[0][:2], "of 9 MB; two threads begin at once"


def test_a_part_is_told_of_as_soon_as_it_is_there(tasks, threads):
    told, others = [], Event()

    def tell(task, _):
        told.append(tasks.index(task))
        if len(told) == len(tasks) - 1:
            others.set()

    threads[1][0] = lambda: assert_true(others.wait(60))
    parts = engine._run(2, tasks, Job(), tell)
    assert next(parts).path == Path("0")
    assert sorted(told[:-1]) == list(range(1, len(tasks)))
    assert told[-1] == 0
    assert len(list(parts)) == len(tasks) - 1
    assert len(told) == len(tasks)


def test_what_was_there_when_the_pool_broke_is_told_of_once(monkeypatch, tasks, threads):
    begun, before = threads
    told, others, alone = [], Event(), []

    def tell(task, _):
        told.append(tasks.index(task))
        if len(told) == len(tasks) - 1:
            others.set()

    def dies():
        assert_true(others.wait(60))
        raise BrokenProcessPool

    def retried(task, at, job):
        alone.append(at)
        before.clear()
        return ChunkResult(Path(f"{at}"), ResultSummary(""), (0, 0, 0))

    before[0] = dies
    monkeypatch.setattr(engine, "_alone", retried)
    parts = engine._run(2, tasks, Job(), tell)
    assert [int(part.path.name) for part in parts] == list(range(len(tasks)))
    assert alone == [0]
    assert sorted(told) == list(range(len(tasks)))
    after = begun[-(len(tasks) - 1) :]
    assert after == sorted(after), "in order from then on"


def test_the_part_that_broke_the_pool_is_tried_alone_and_none_before_it(
    monkeypatch, tasks, threads
):
    begun, before = threads
    told, others, alone = [], Event(), []

    def tell(task, _):
        told.append(tasks.index(task))
        if len(told) == len(tasks) - 1:
            others.set()

    def dies():
        assert_true(others.wait(60))
        raise BrokenProcessPool

    def retried(task, at, job):
        alone.append(at)
        before.clear()
        return ChunkResult(Path(f"{at}"), ResultSummary(""), (0, 0, 0))

    before[3] = dies
    monkeypatch.setattr(engine, "_alone", retried)
    taken = []
    for part in engine._run(2, tasks, Job(), tell):
        taken.append(int(part.path.name))
        sleep(0.01)  # the pool breaks while parts that are there wait for their turn
    assert taken == list(range(len(tasks)))
    assert 3 in begun[:2], "the largest; two threads begin at once"
    assert alone == [3]
    assert sorted(told) == list(range(len(tasks)))


def assert_true(value):
    assert value
