"""Work distributed among processes: results in order, as from a single one."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from support.places import ROOT

from builder import cli
from builder.parallel import pool
from builder.parallel.pool import SharedPool, are_large, imap, in_background
from builder.problem import UsageError
from builder.verify.preload import preloading

each_preload = pytest.mark.parametrize(
    "preload",
    [pytest.param(preloading("qwen3"), id="qwen3", marks=pytest.mark.slow), None],
    ids=["qwen3", "none"],
)


def describe(number):
    time.sleep(0.001 * (number % 3))
    return number, os.getpid()


def refuse(number):
    if number == 40:
        raise UsageError("forty")
    return number


def die_elsewhere(driver, number):
    if os.getpid() != driver:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be forked there")
@pytest.mark.parametrize("arguments", [["script.py"], ["-m", "script"]])
def test_workers_do_not_run_the_script_again(arguments, tmp_path):
    (tmp_path / "script.py").write_text(
        "from builder.parallel.pool import imap\n"
        "print('once', flush=True)\n"
        "print(sum(imap(abs, range(40), 2, None)))\n"
    )
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "once\n780\n", "")


@each_preload
def test_results_come_in_order_from_several_processes(preload):
    found = list(imap(describe, range(400), 3, preload))
    assert [number for number, _ in found] == list(range(400))
    processes = {pid for _, pid in found}
    assert os.getpid() not in processes
    assert len(processes) > 1


@pytest.mark.parametrize(("count", "workers"), [(0, 4), (3, 4), (50, 1)])
def test_little_work_stays_in_this_process(count, workers):
    assert list(imap(describe, range(count), workers, preloading("qwen3"))) == [
        (number, os.getpid()) for number in range(count)
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_exceptions_of_the_work_are_raised(workers):
    with pytest.raises(UsageError, match="forty"):
        list(imap(refuse, range(80), workers, None))


@each_preload
def test_work_of_a_killed_process_is_repeated(preload):
    work = partial(die_elsewhere, os.getpid())
    assert list(imap(work, range(4000), 3, preload)) == list(range(4000))


@each_preload
def test_items_are_read_only_as_needed(preload):
    taken = []

    def items():
        for number in range(10_000):
            taken.append(number)
            yield number

    found = imap(describe, items(), 2, preload)
    for number in range(100):
        assert next(found)[0] == number
    found.close()
    assert len(taken) < 1000


def where(number):
    return number, os.getpid()


def processes(shared, workers=2):
    return {pid for _, pid in imap(describe, range(100), workers, None, open_pool=shared)}


def test_steps_of_a_job_share_workers():
    with SharedPool() as shared:
        first = processes(shared)
        assert len(first | processes(shared)) <= 2
        assert os.getpid() not in first
        assert first.isdisjoint(processes(shared, workers=3)), "three workers are new ones"
    assert not multiprocessing.active_children()


def test_a_killed_worker_does_not_affect_the_next_step():
    with SharedPool() as shared:
        first = processes(shared)
        os.kill(min(first), signal.SIGKILL)
        deadline = time.monotonic() + 60
        while multiprocessing.active_children() and time.monotonic() < deadline:
            time.sleep(0.01)  # the executor ends the others
        second = processes(shared)
    assert second
    assert second.isdisjoint({*first, os.getpid()})


def test_an_exception_ends_shared_workers():
    with SharedPool() as shared:
        first = processes(shared)
        with pytest.raises(UsageError, match="forty"):
            list(imap(refuse, range(80), 2, None, open_pool=shared))
        assert not multiprocessing.active_children()
        assert first.isdisjoint(processes(shared))


def test_background_work_runs_in_one_other_process():
    with in_background(None, is_worthwhile=True) as start:
        results = [start(partial(where, number)) for number in range(3)]
        found = [result() for result in results]
        with pytest.raises(UsageError, match="forty"):
            start(partial(refuse, 40))()
    assert [number for number, _ in found] == [0, 1, 2]
    assert len({pid for _, pid in found} - {os.getpid()}) == 1


def test_small_work_runs_when_its_result_is_requested():
    done = []
    with in_background(None, is_worthwhile=False) as start:
        result = start(lambda: done.append(1))
        assert done == []
        result()
    assert done == [1]


def test_work_of_a_killed_background_process_runs_here():
    with in_background(None, is_worthwhile=True) as start:
        killed = start(partial(die_elsewhere, os.getpid(), 1))
        behind = start(partial(where, 2))
        assert killed() == 1
        assert behind() == (2, os.getpid())
        assert start(partial(where, 3))() == (3, os.getpid())


def test_little_work_is_measured_in_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "LITTLE_BYTES", 100)
    (tmp_path / "a").write_bytes(b"x" * 60)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "b").write_bytes(b"x" * 39)
    assert not are_large([tmp_path])
    assert not are_large([tmp_path / "a", tmp_path / "below"])
    (tmp_path / "below" / "c").write_bytes(b"x")
    assert are_large([tmp_path])
    assert are_large([tmp_path / "a", tmp_path / "below"])
    assert are_large([None]), "an input that is not on a disk may have any size"
    for name in ("absent", "n" * 300, "a\0b"):
        assert not are_large([tmp_path / name])


def test_a_name_that_is_too_long_is_the_users_mistake(tmp_path, capsys):
    command = ["build", "n" * 300, "-o", str(tmp_path / "out"), "--workers", "2"]
    assert cli.main(command) == 2
    assert "nnn" in capsys.readouterr().err
