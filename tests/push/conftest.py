"""Fixtures of the push tests: a stand-in for the Hub on loopback, and a client of it."""

import shutil

import pytest
from support.hub.built import PATHS, build
from support.hub.client import Client
from support.hub.scenarios import environment
from support.hub.server import Hub
from support.hub.state import WRITER


@pytest.fixture(scope="module", params=PATHS)
def server(request, tmp_path_factory):
    """Returns a Hub, and a process that pushes to it.

    Pages and parts are small, so that there are several.
    """
    with Hub(lfs_from=1000, page=3, part=3000) as hub:
        hub.env = environment(request.param, hub.url, str(tmp_path_factory.mktemp("home")))
        client = Client(hub.env)
        hub.path, hub.run, hub.set = request.param, client.run, client.set
        yield hub
        client.close()


@pytest.fixture
def hub(server):
    server.faults.clear()
    server.requests.clear()
    server.received.clear()
    server.repos.clear()
    server.spoiled.clear()
    server.commits_made = 0
    return server


@pytest.fixture
def push(hub):
    def run(out, *options, token=WRITER):
        return hub.run("push", out, "team/d", "--json", *options, token=token)

    return run


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("built"), map(str, range(30)))


@pytest.fixture
def out(built, tmp_path):
    """Returns a dataset whose data the Hub, or the client's cache, may know from another test."""
    return shutil.copytree(built, tmp_path / "out")


@pytest.fixture
def new(tmp_path, request):
    """Returns a dataset whose data neither the Hub nor the client has seen."""
    return build(tmp_path, [f"{request.node.name} {number}" for number in range(30)], "new")
