"""Fixtures of the build tests."""

import pytest

from builder.build import run as work


@pytest.fixture
def done(monkeypatch):
    """Returns the names of the sources that were converted rather than taken from the state."""
    worked = []
    process = work.process_source
    monkeypatch.setattr(
        work,
        "process_source",
        lambda task, *rest: worked.append(task.origin) or process(task, *rest),
    )
    return worked
