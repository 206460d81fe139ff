import fsspec
import pytest


@pytest.fixture
def store():
    """Returns a store in memory, emptied for each test."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    return system


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Returns the folder in which datasets for stores are built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"
