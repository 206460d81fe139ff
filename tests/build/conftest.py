"""Fixtures of the tests of builds."""

import pytest

from builder.build import task as work


@pytest.fixture
def done(monkeypatch):
    """The names of the sources that were worked on, not taken from the state."""
    worked = []
    process = work.process_source
    monkeypatch.setattr(
        work,
        "process_source",
        lambda task, *rest: worked.append(task.origin) or process(task, *rest),
    )
    return worked
