"""Signals: SIGTERM ends a run in time during any computation; killed helpers are survived."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.places import ROOT
from support.runs.processes import double, helpers

from builder.parallel.host import PRELOAD
from builder.parallel.pool import imap

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for its processes"),
]

SECONDS = 2.0
SLACK = 4.0
"""Extra seconds for a busy machine: far less than the endless calls take."""

STUCK = "sum(range(10**15))  # one call that holds the interpreter for days"
START = "import os, sys, time; from builder.parallel.host import interrupt_on_sigterm\n"


def run(code, **options):
    process = subprocess.Popen(
        [sys.executable, "-c", START + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        **options,
    )
    line = process.stdout.readline()
    assert line.startswith(("ready", "printed")), process.communicate()
    return process, line.split()[1:]


def end(process, number=signal.SIGTERM):
    """Sends the signal; returns the seconds until the end, and what was written to stderr."""
    time.sleep(0.3)
    begun = time.monotonic()
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    return time.monotonic() - begun, error


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pids):
    limit = time.monotonic() + 10
    while any(map(is_running, pids)) and time.monotonic() < limit:
        time.sleep(0.05)
    return not any(map(is_running, pids))


def test_python_code_is_interrupted_immediately_and_cleans_up():
    process, _ = run(
        "interrupt_on_sigterm()\n"
        "try:\n    print('ready', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    sys.exit(7)"
    )
    seconds, error = end(process)
    assert (process.returncode, error) == (7, "")
    assert seconds < SECONDS + SLACK


@pytest.mark.parametrize(
    ("number", "text"), [(signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupted")]
)
def test_a_call_that_holds_the_interpreter_is_killed(number, text):
    process, _ = run(f"interrupt_on_sigterm(); print('ready', flush=True); {STUCK}")
    seconds, error = end(process, number)
    assert process.returncode == -signal.SIGKILL
    assert error == f"builder: {text}; finished work is kept, the same command resumes\n"
    assert seconds < SECONDS + SLACK


each_server = pytest.mark.parametrize(
    "own",
    [
        pytest.param("", id="started anew"),
        pytest.param("import builder.parallel.host as host; host.own_process()\n", id="a fork"),
    ],
)


@each_server
def test_workers_that_are_stuck_end_with_the_driver(own):
    process, pids = run(
        own + "from builder.parallel.pool import worker_pool\n"
        "interrupt_on_sigterm()\n"
        "with worker_pool(2, None) as pool:\n"
        "    pids = {pool.submit(os.getpid).result() for _ in range(20)}\n"
        "    stuck = [pool.submit(eval, " + repr(STUCK) + ") for _ in range(2)]\n"
        "    print('ready', *pids, flush=True)\n"
        "    stuck[0].result()"
    )
    seconds, error = end(process)
    assert "KeyboardInterrupt" in error, "left to the command line to report"
    assert seconds < SECONDS + SLACK
    assert pids
    assert wait_until_gone(map(int, pids))


@each_server
def test_stuck_workers_of_a_killed_driver_end_too(own):
    process, pids = run(
        own + "from builder.parallel.pool import worker_pool\n"
        "with worker_pool(2, None) as pool:\n"
        "    pids = {pool.submit(os.getpid).result() for _ in range(20)}\n"
        "    stuck = [pool.submit(eval, " + repr(STUCK) + ") for _ in range(2)]\n"
        "    print('ready', *pids, flush=True)\n"
        "    stuck[0].result()"
    )
    process.kill()
    process.communicate(timeout=60)
    assert wait_until_gone(list(map(int, pids)))


def test_the_workers_of_a_command_share_what_it_has_imported():
    process, shared = run(
        "import builder.parallel.host as host; host.own_process()\n"
        "from builder.parallel.pool import worker_pool\n"
        "sys.only_here = True\n"
        'look = \'hasattr(__import__("sys"), "only_here")\'\n'
        "print('printed once')\n"
        "with worker_pool(2, None) as pool:\n"
        "    found = {pool.submit(eval, look).result() for _ in range(20)}\n"
        "print(*found)"
    )
    out, error = process.communicate(timeout=60)
    assert (shared, out, error) == (["once"], "True\n", "")


def test_a_fork_server_whose_driver_is_gone_loads_nothing():
    instructions = {"load": None, "dies": True, "driver": os.getppid()}
    done = subprocess.run(
        [sys.executable, "-c", "import builder.parallel.server; print('loaded')"],
        env={**os.environ, PRELOAD: json.dumps(instructions)},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


STARTED = """
import multiprocessing
from _multiprocessing import sem_unlink
from builder.parallel.pool import prepare

class Unreadable:
    def __reduce__(self):
        return int, ("x",)

prepare(None)
context = multiprocessing.get_context("forkserver")
lock = context.Lock()
worker = context.Process(target=print, args=({argument},))
sem_unlink(lock._semlock.name)
worker.start()
worker.join()
print("ready", worker.exitcode, flush=True)
os._exit(0)  # Python would look for the semaphore
"""


@pytest.mark.parametrize(("argument", "shown"), [("lock", ""), ("Unreadable()", "ValueError")])
def test_a_worker_that_starts_while_its_driver_ends_prints_nothing(argument, shown):
    """An interrupted driver has removed its semaphores; other faults are shown."""
    process, (code,) = run(STARTED.replace("{argument}", argument))
    _, error = process.communicate(timeout=60)
    lines = [line for line in error.splitlines() if "resource_tracker" not in line]
    assert (code, lines[-1].partition(":")[0] if lines else "") == ("1", shown)


def test_work_continues_after_the_fork_server_is_killed():
    found = imap(double, range(400), 2, None)
    first = [next(found) for _ in range(20)]
    (server,) = helpers("forkserver")
    os.kill(server, signal.SIGKILL)
    assert first + list(found) == [2 * number for number in range(400)]
    assert list(imap(double, range(20), 2, None)) == [2 * number for number in range(20)]


def test_a_missing_fork_server_is_an_error_of_one_line():
    """In a separate process: reaping the server behind Python's back cannot be undone."""
    reaped = (
        "from support.runs.processes import double, helpers\n"
        "from builder.parallel.pool import WorkersNotStarted, worker_pool\n"
        "with worker_pool(2, None) as pool:\n"
        "    (server,) = helpers('forkserver')\n"
        "    os.kill(server, 9)\n"
        "    os.waitpid(server, 0)\n"
        "    try:\n        pool.submit(double, 1).result()\n"
        "    except WorkersNotStarted as error:\n        print('ready', error, flush=True)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process, message = run(reaped, env=environment)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (0, "", "")
    assert "worker processes cannot be started" in " ".join(message)


def test_python_does_not_warn_that_the_watchdog_is_still_running():
    code = START + "import signal\ninterrupt_on_sigterm()\nsignal.signal(15, signal.SIG_DFL)"
    command = [sys.executable, "-W", "always", "-c", code]
    assert subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stderr == b""
