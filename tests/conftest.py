"""Shared fixtures: the verifier with the embedded tokenizer, and profiles of hypothesis."""

import os
import signal
import threading
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from builder.parallel.host import collect_seldom, keep_loaded

settings.register_profile(
    "long",  # for a long run: HYPOTHESIS_PROFILE=long scripts/test.sh
    max_examples=500,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.register_profile("dev", parent=settings.get_profile("long"), max_examples=40)
settings.register_profile("quick", parent=settings.get_profile("long"), max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

collect_seldom()  # as the command line does: commands run in the processes of the tests

if threading.current_thread() is threading.main_thread():
    # A shell that runs the tests in the background makes them ignore Ctrl-C, which tests send.
    signal.signal(signal.SIGINT, signal.default_int_handler)

STARTS_WORKERS = {"pooled", "pooled_tasks"}
"""Fixtures whose tests start worker processes, each with a tokenizer: they are slow tests."""

LONG = {"test_as_loaded", "test_commands", "test_corpus", "test_memory", "test_push",
        "test_push_faults", "test_ray", "test_resume"}  # fmt: skip
"""Modules with tests that take seconds or wait: they run first, and the workers end together."""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in LONG)
    cases = defaultdict(list)
    for item in items:
        if not STARTS_WORKERS.isdisjoint(item.fixturenames):
            item.add_marker("slow")
        elif mark := item.get_closest_marker("quick"):
            cases[item.parent, item.originalname, mark.args[0]].append(item)
    for (*_, count), found in cases.items():
        quick = {number * len(found) // count for number in range(count)}
        for number, item in enumerate(found):
            if number not in quick:
                item.add_marker("slow")


def pytest_collection_finish():
    keep_loaded()  # thousands of tests


SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def verifier():
    from builder.verify.verifier import verifier_for

    return verifier_for("qwen3")


@pytest.fixture(scope="session")
def shared():
    """Returns the folder of real logs and references next to the project; not on every machine."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared next to the project")
    return SHARED


@pytest.fixture
def submitted(monkeypatch):
    """Returns the names of the functions submitted to a process pool."""
    from concurrent.futures import ProcessPoolExecutor

    names = []
    submit = ProcessPoolExecutor.submit

    def note(self, work, *rest):
        names.append(getattr(work, "func", work).__name__)
        return submit(self, work, *rest)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", note)
    return names


@pytest.fixture
def pooled_tasks(monkeypatch, submitted):
    """Submits the tasks of a build to a pool one by one, however small; like `submitted`."""
    from builder.build import engine

    monkeypatch.setattr(engine, "are_large", lambda paths: True)
    monkeypatch.setattr(engine, "BATCH_TASKS", 1)
    return submitted


@pytest.fixture
def pooled(monkeypatch, pooled_tasks):
    """Uses a pool for any amount of work, also when publishing a build; like `submitted`."""
    from builder.parallel import pool

    monkeypatch.setattr(pool, "LITTLE_BYTES", 0)
    return pooled_tasks
