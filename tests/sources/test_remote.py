"""Logs in stores: the same bytes as from a folder; failures of a store are not faults of data."""

import gzip
import json
import sqlite3

import fsspec
import pytest
from support.logs.chats import row
from support.logs.stores import data_of, names
from support.places import CASES, DATA
from support.runs.builds import build, files, lines

from builder import cli
from builder.problem import UsageError
from builder.readers.discovery import find_sources
from builder.sources import store as remote
from builder.sources.sqlite_file import open_sqlite
from builder.sources.store import StoredObject, is_url


def but_config(made):
    """Returns all files, without the paths of inputs in the manifest."""
    manifest = json.loads(made["manifest.json"])
    return {**made, "manifest.json": {key: manifest[key] for key in ("inputs", "ledger")}}


def members(spec):
    """Returns the member names of each source; a store is named after its folder."""
    return {item.name: [member.name for member in item.members] for item in find_sources(spec)}


def put(store, *paths, data=b"{}"):
    """Writes objects under names that `pipe` would change."""
    for path in paths:
        store.store[path] = fsspec.implementations.memory.MemoryFile(store, path, data)


def test_the_same_bytes_as_from_a_folder(store, tmp_path):
    store.put(str(DATA), "memory://logs/data", recursive=True)
    assert build(tmp_path / "here", "--workers", "1") == 0
    assert build(tmp_path / "there", "--workers", "1", inputs=["memory://logs/data"]) == 0
    here, there = files(tmp_path / "here"), files(tmp_path / "there")
    assert data_of(here) == data_of(there)
    assert but_config(here)["manifest.json"] == but_config(there)["manifest.json"]


def test_workers_read_a_store_themselves(tmp_path, pooled_tasks):
    assert build(tmp_path / "here", "--workers", "1") == 0
    assert "_run_batch" not in pooled_tasks
    assert build(tmp_path / "there", "--workers", "2", inputs=[f"local://{DATA}"]) == 0
    assert pooled_tasks.count("_run_batch") > 5
    assert data_of(files(tmp_path / "here")) == data_of(files(tmp_path / "there"))


def test_a_file_address_is_a_path(tmp_path):
    assert build(tmp_path / "here", "--workers", "1") == 0
    assert build(tmp_path / "there", "--workers", "1", inputs=[f"file://{DATA}"]) == 0
    assert data_of(files(tmp_path / "here")) == data_of(files(tmp_path / "there"))


def test_names_are_those_of_a_folder(store, tmp_path):
    for name in ("a/x.jsonl", "a/.hidden/y.jsonl", "b/z.jsonl", "top.json", "a/[1].jsonl"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    store.put(str(tmp_path / "in"), "memory://in", recursive=True)
    for pattern in ("", "/", "/a", "/**/*.jsonl", "/*/*.jsonl", "/a/[1].jsonl", "/top.json"):
        assert names(f"memory://in{pattern}") == names(f"{tmp_path}/in{pattern}"), pattern
    with pytest.raises(UsageError, match="nothing was found"):
        names("memory://in/absent")
    with pytest.raises(UsageError, match="nothing matches"):
        names("memory://in/*.absent")


def test_a_pattern_does_not_leave_the_store(store, tmp_path):
    put(store, "/in/a/x.jsonl")
    (tmp_path / "secret").write_text("{}")
    for up in ("*/../x", f"*/{'../' * 12}{tmp_path}/secret", "*/../../in"):
        with pytest.raises(UsageError, match="nothing matches"):
            names(f"memory://in/{up}")


@pytest.mark.parametrize("name", ["a//b", "../../etc/x", "a/./b", "a/file/below"])
def test_an_impossible_file_name_is_a_problem(store, name):
    put(store, "/in/a/file", f"/in/{name}")
    assert sorted(map(str, names("memory://in"))) == sorted(
        map(str, [("unreadable", name), "a/file"])
    )


def test_a_name_that_is_too_long_for_a_disk_is_read(store, tmp_path):
    name = "n" * 300
    put(store, f"/in/{name}", data=(DATA / "openai-chat" / "fine-tuning.jsonl").read_bytes())
    assert build(tmp_path / "out", "--workers", "1", inputs=["memory://in"]) == 0
    (shard,) = (tmp_path / "out" / "meta").iterdir()
    assert {row["source"] for row in lines(shard)} == {name}


@pytest.mark.slow
def test_finished_downloads_are_not_repeated(store, tmp_path, monkeypatch):
    store.put(str(DATA), "memory://logs", recursive=True)
    fetched = []
    copy = StoredObject.copy
    monkeypatch.setattr(
        StoredObject, "copy", lambda self, to: (fetched.append(self.url), copy(self, to))
    )
    out = tmp_path / "out"
    assert build(out, "--workers", "1", inputs=["memory://logs"]) == 0
    first = files(out)
    assert len(fetched) > 5
    fetched.clear()
    assert build(out, "--workers", "1", inputs=["memory://logs"]) == 0
    assert fetched == []
    assert files(out) == first
    store.pipe_file("memory://logs/new.json", b'[{"messages": []}]')
    assert build(out, "--workers", "1", inputs=["memory://logs"]) == 0
    assert [url.rpartition("/")[2] for url in fetched] == ["new.json"]


@pytest.mark.slow
def test_a_store_that_fails_stops_the_run_and_the_next_goes_on(
    store, tmp_path, monkeypatch, capsys
):
    for number in range(6):
        store.pipe_file(f"memory://logs/{number}.jsonl", row(f"question {number}").encode())
    out = tmp_path / "out"
    get = type(store).get_file
    calls = []

    def fail(self, path, *rest, **more):
        calls.append(path)
        if len(calls) == 4:
            raise ConnectionError("no route")
        return get(self, path, *rest, **more)

    monkeypatch.setattr(type(store), "get_file", fail)
    options = ("--workers", "1")
    assert build(out, *options, inputs=["memory://logs"]) == 2
    assert "no route; the same command resumes" in capsys.readouterr().err
    assert not (out / "manifest.json").exists()
    assert build(out, *options, inputs=["memory://logs"]) == 0
    assert len(calls) == len(set(calls)) + 1, "three were kept, one was fetched again"
    assert build(tmp_path / "whole", *options, inputs=["memory://logs"]) == 0
    assert files(out) == files(tmp_path / "whole")


def test_a_failing_store_is_not_a_short_file(store, monkeypatch):
    store.pipe_file("memory://logs/a", b"x" * 50_000)
    (source,) = find_sources("memory://logs")
    read = fsspec.implementations.memory.MemoryFile.read
    sizes = []

    def fail(self, size=-1):
        sizes.append(size)
        if len(sizes) > 1:
            raise ConnectionError("no route")
        return read(self, size)

    assert source.first(50_000) == b"x" * 50_000
    monkeypatch.setattr(fsspec.implementations.memory.MemoryFile, "read", fail)
    with pytest.raises(UsageError, match=r"no route\Z"):
        source.first(50_000)


@pytest.mark.parametrize("change", ["changed", "removed"])
def test_an_object_that_differs_from_the_listed_one(store, tmp_path, monkeypatch, change):
    store.put(str(DATA / "openai-chat"), "memory://logs", recursive=True)
    name = "/logs/more.json"
    store.pipe_file(name, b"[]")
    get = type(store).get_file

    def meanwhile(self, path, *rest, **more):
        if path == name:
            self.rm_file(path)
        if path == name and change == "changed":
            self.pipe_file(path, b"[{}, {}]")
        return get(self, path, *rest, **more)

    monkeypatch.setattr(type(store), "get_file", meanwhile)
    out = tmp_path / "out"
    assert build(out, "--workers", "1", inputs=["memory://logs"]) == 0
    (reject,) = [row for row in lines(out / "rejects.jsonl") if row["source"] == "more.json"]
    assert reject["code"] == ("changed" if change == "changed" else "unreadable")


def test_compressed_files_tables_and_databases_with_their_log(store, tmp_path):
    import pyarrow
    import pyarrow.parquet

    folder = tmp_path / "in"
    folder.mkdir()
    row = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), folder / "table.parquet")
    with gzip.open(folder / "rows.jsonl.gz", "wb") as stream:
        stream.write(b'{"messages": []}\n')
    database = sqlite3.connect(folder / "store.db")
    database.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    store.put(str(folder), "memory://in", recursive=True)
    database.close()
    from builder.sources.listing import local_copy

    found = {item.name: item for item in find_sources("memory://in")}
    assert list(found) == ["rows.jsonl.gz", "store.db", "table.parquet"]
    with local_copy(found["store.db"]) as copy, open_sqlite(copy) as connection:
        assert connection.execute("SELECT x FROM t").fetchall() == [(1,)], "from the WAL"
    with local_copy(found["table.parquet"]) as copy:
        assert [record.value for record in copy.records()] == [row]
    assert found["rows.jsonl.gz"].first(5) == b'{"mes'


STORES = ["openai-responses/batch-folder", "bfcl/joined", "kimi-cli/session", "opencode/store"]


@pytest.mark.parametrize("case", STORES)
def test_a_folder_that_is_one_source_is_known_in_a_store(store, case):
    store.put(str(CASES / case), "memory://in", recursive=True)
    here, there = members(str(CASES / case)), members("memory://in")
    assert any(here.values())
    assert there == here


def test_inspect_reads_from_a_store(store, capsys):
    store.put(str(DATA / "openai-chat"), "memory://logs", recursive=True)
    (name, *_) = names("memory://logs")
    assert cli.main(["inspect", f"memory://logs/{name}", "--json"]) == 0
    assert '"openai-chat"' in capsys.readouterr().out
    assert cli.main(["formats", "--explain", f"memory://logs/{name}", "--json"]) == 0
    assert "openai-chat" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("nosuch://bucket/x", "nosuch"),
        ("zip://a::memory://b.zip", "inside other addresses"),
        ("memory://empty", "nothing was found"),
    ],
)
def test_an_address_that_cannot_be_read_is_one_clear_line(store, tmp_path, capsys, spec, text):
    assert build(tmp_path / "out", inputs=[spec]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert "Traceback" not in error


def test_a_package_that_is_missing_is_named(monkeypatch):
    def absent(url):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "url_to_fs", absent)
    with pytest.raises(UsageError, match=r"toolcall-builder\[s3\]"):
        remote.connect("s3://bucket/x")


def test_addresses_are_distinguished_from_paths():
    assert all(map(is_url, ("s3://b", "gs://b/x", "memory://x", "abfs://c@a/x")))
    assert not any(map(is_url, ("hf://a/b", "a/b", "C:/x", "C:\\x", "-", "://x", "a b://c")))
