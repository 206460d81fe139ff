"""Fixtures of the tests of worker processes."""

import os
import signal

import pytest
from support.runs.processes import helpers


@pytest.fixture(scope="package", autouse=True)
def bare_fork_server():
    """Ends the fork server afterwards: in the tests of other folders, workers share a tokenizer.

    The server that these tests leave behind has loaded none, so each later worker would load one.
    """
    yield
    for server in helpers("forkserver"):
        os.kill(server, signal.SIGKILL)
