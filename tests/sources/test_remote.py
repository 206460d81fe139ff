"""Logs in stores: the same bytes as from a folder; a store that fails is no fault of the data."""

import gzip
import json
import shutil
import sqlite3
import subprocess
import sys

import fsspec
import pytest
from builds import build, files, lines
from places import CASES, DATA

from builder import cli
from builder.problem import Problem, UsageError
from builder.readers.discovery import find_sources
from builder.sources import store as remote
from builder.sources.sqlite_file import open_sqlite
from builder.sources.store import StoredObject, is_url


@pytest.fixture
def store():
    """A store in memory, named anew for each test."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    return system


def but_config(made):
    """All files, but of the manifest only what does not say where the inputs are."""
    manifest = json.loads(made["manifest.json"])
    return {**made, "manifest.json": {key: manifest[key] for key in ("inputs", "ledger")}}


def data_of(made):
    return {
        name: data for name, data in made.items() if name.startswith(("data/", "meta/", "rejects"))
    }


def names(spec):
    return [
        (item.code, item.where) if isinstance(item, Problem) else item.name
        for item in find_sources(spec)
    ]


def members(spec):
    """The names of the members of each source; a store's name is that of its folder."""
    return {item.name: [member.name for member in item.members] for item in find_sources(spec)}


def put(store, *paths, data=b"{}"):
    """Objects under names that `pipe` would change."""
    for path in paths:
        store.store[path] = fsspec.implementations.memory.MemoryFile(store, path, data)


def test_the_same_bytes_as_from_a_folder(store, tmp_path):
    store.put(str(DATA), "memory://logs/data", recursive=True)
    assert build(tmp_path / "here", "--workers", "1") == 0
    assert build(tmp_path / "there", "--workers", "1", inputs=["memory://logs/data"]) == 0
    here, there = files(tmp_path / "here"), files(tmp_path / "there")
    assert data_of(here) == data_of(there)
    assert but_config(here)["manifest.json"] == but_config(there)["manifest.json"]


def test_a_store_that_workers_read_by_themselves(tmp_path, pooled):
    assert build(tmp_path / "here", "--workers", "1") == 0
    assert "_run_batch" not in pooled
    assert build(tmp_path / "there", "--workers", "2", inputs=[f"local://{DATA}"]) == 0
    assert pooled.count("_run_batch") > 5
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
    with pytest.raises(UsageError, match="nothing is there"):
        names("memory://in/absent")
    with pytest.raises(UsageError, match="nothing matches"):
        names("memory://in/*.absent")


@pytest.mark.parametrize("name", ["a//b", "../../etc/x", "a/./b", "a/file/below"])
def test_a_name_that_no_file_can_have_is_a_problem(store, name):
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


def test_what_is_finished_is_not_fetched_again(store, tmp_path, monkeypatch):
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


def test_a_store_that_fails_stops_the_run_and_the_next_goes_on(
    store, tmp_path, monkeypatch, capsys
):
    store.put(str(DATA), "memory://logs", recursive=True)
    out = tmp_path / "out"
    get = type(store).get_file
    calls = []

    def fail(self, path, *rest, **more):
        calls.append(path)
        if len(calls) == 4:
            raise ConnectionError("no route")
        return get(self, path, *rest, **more)

    monkeypatch.setattr(type(store), "get_file", fail)
    assert build(out, "--workers", "1", inputs=["memory://logs"]) == 2
    assert "no route; the same command goes on" in capsys.readouterr().err
    assert not (out / "manifest.json").exists()
    assert build(out, "--workers", "1", inputs=["memory://logs"]) == 0
    assert len(calls) == len(set(calls)) + 1, "three were kept, one was fetched again"
    assert build(tmp_path / "whole", "--workers", "1", inputs=["memory://logs"]) == 0
    assert files(out) == files(tmp_path / "whole")


def test_a_store_that_breaks_off_is_no_short_file(store, monkeypatch):
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
    with pytest.raises(UsageError, match="no route"):
        source.first(50_000)


@pytest.mark.parametrize("change", ["changed", "removed"])
def test_an_object_that_is_another_than_was_listed(store, tmp_path, monkeypatch, change):
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
    from builder.sources.copies import local_copy

    found = {item.name: item for item in find_sources("memory://in")}
    assert list(found) == ["rows.jsonl.gz", "store.db", "table.parquet"]
    with local_copy(found["store.db"]) as copy, open_sqlite(copy) as connection:
        assert connection.execute("SELECT x FROM t").fetchall() == [(1,)], "it is in the log"
    with local_copy(found["table.parquet"]) as copy:
        assert [record.value for record in copy.records()] == [row]
    assert found["rows.jsonl.gz"].first(5) == b'{"mes'


STORES = [
    *("anthropic-messages/batch-folder", "openai-responses/batch-folder", "builder-output/folder"),
    *("atif/terminus_handoff", "bfcl/joined", "kimi-cli/session", "opencode/store"),
    *("opencode/store-old", "openhands-v0/store", "openhands-v1/store", "tau2-bench/folder"),
]


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
        ("memory://empty", "nothing is there"),
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
    with pytest.raises(UsageError, match=r"toolcall-dataset-builder\[s3\]"):
        remote.connect("s3://bucket/x")


def test_what_is_an_address():
    assert all(map(is_url, ("s3://b", "gs://b/x", "memory://x", "abfs://c@a/x")))
    assert not any(map(is_url, ("hf://a/b", "a/b", "C:/x", "C:\\x", "-", "://x", "a b://c")))


def test_a_folder_of_the_same_name_as_the_address_is_never_made(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store.put(str(DATA), "memory://logs", recursive=True)
    assert names("memory://logs")
    assert not list(tmp_path.iterdir())
    shutil.rmtree(tmp_path)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder in which datasets for stores are made."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def stored(system, root):
    """All bytes below a folder of a store, as `files` gives those of a folder here."""
    found = {
        path.removeprefix(root).lstrip("/"): system.cat_file(path)
        for path in system.find(root)
        if "/.state/" not in path
    }
    manifest = json.loads(found["manifest.json"])
    del manifest["run"]
    return {**found, "manifest.json": json.dumps(manifest).encode()}


def test_an_output_in_a_store_holds_the_same_bytes(store, cache, tmp_path):
    assert build(tmp_path / "here", "--workers", "1") == 0
    for _ in range(2):
        assert build("memory://out/set", "--workers", "1") == 0
        assert stored(store, "/out/set") == files(tmp_path / "here")
        left = [path for path in cache.rglob("*") if path.is_file() and ".state" not in path.parts]
        assert left == [], "only the state stays on this machine"


def test_the_manifest_goes_first_and_comes_last(store, cache, tmp_path, monkeypatch):
    assert build("memory://out", "--workers", "1") == 0
    steps = []
    put, remove = type(store).put_file, type(store).rm_file
    monkeypatch.setattr(
        type(store), "put_file", lambda self, a, b: (steps.append(("put", b)), put(self, a, b))
    )
    monkeypatch.setattr(
        type(store), "rm_file", lambda self, a: (steps.append(("remove", a)), remove(self, a))
    )
    (tmp_path / "c.yaml").write_text("output: {formats: [parquet]}")
    assert build("memory://out", "--workers", "1", "-c", tmp_path / "c.yaml") == 0
    steps = [step for step in steps if "/.state/" not in step[1]]
    assert steps[0] == ("remove", "/out/manifest.json")
    assert steps[-1] == ("put", "/out/manifest.json")
    assert ("remove", "/out/data/train-00000-of-00001.jsonl") in steps
    assert store.exists("/out/data/train-00000-of-00001.parquet")
    assert not store.exists("/out/data/train-00000-of-00001.jsonl")


def test_an_upload_that_breaks_off_leaves_no_manifest_and_goes_on(
    store, cache, tmp_path, monkeypatch, capsys
):
    put = type(store).put_file

    def fail(self, here, there):
        if there.endswith("rejects.jsonl"):
            raise ConnectionError("no route")
        put(self, here, there)

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "put_file", fail)
        assert build("memory://out", "--workers", "1") == 2
    assert "no route; the same command goes on" in capsys.readouterr().err
    assert not store.exists("/out/manifest.json")
    assert build("memory://out", "--workers", "1") == 0
    assert build(tmp_path / "here", "--workers", "1") == 0
    assert stored(store, "/out") == files(tmp_path / "here")


def test_a_folder_of_a_store_that_is_not_ours_is_left_alone(store, cache, capsys):
    store.pipe_file("memory://out/thesis.txt", b"x")
    assert build("memory://out", "--workers", "1") == 2
    assert "not made by build" in capsys.readouterr().err
    assert store.find("/out") == ["/out/thesis.txt"]


def test_a_manifest_in_a_store_removes_nothing_else(store, cache):
    assert build("memory://out", "--workers", "1") == 0
    names = ["../thesis.txt", "/thesis.txt", ".state/made-by-builder", "kept.txt/../../thesis.txt"]
    store.pipe_file(
        "memory://out/manifest.json", json.dumps({"files": [{"path": n} for n in names]}).encode()
    )
    store.pipe_file("memory://thesis.txt", b"x")
    assert build("memory://out", "--workers", "1") == 0
    assert store.cat_file("/thesis.txt") == b"x"


@pytest.fixture(scope="module")
def bucket():
    """The address of an empty bucket of an S3 server on this machine."""
    pytest.importorskip("s3fs", reason="the extra `s3` is not installed")
    moto = pytest.importorskip("moto.server", reason="moto, the stand-in for S3, is not installed")
    server = moto.ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        fsspec.filesystem("s3").mkdir("logs")
        yield "s3://logs"
    server.stop()


s3 = pytest.mark.filterwarnings("default")  # what those libraries warn of is their own


@s3
def test_s3_gives_the_same_bytes_with_several_workers(bucket, tmp_path):
    fsspec.filesystem("s3").put(str(DATA), f"{bucket}/data", recursive=True)
    assert build(tmp_path / "here", "--workers", "1") == 0
    command = [sys.executable, "-m", "builder", "build", f"{bucket}/data", "--workers", "2"]
    subprocess.run([*command, "-o", tmp_path / "there", "--quiet"], check=True)
    assert data_of(files(tmp_path / "here")) == data_of(files(tmp_path / "there"))
    assert names(f"{bucket}/data/**/*.jsonl") == names(f"{DATA}/**/*.jsonl")


@s3
def test_s3_takes_the_dataset(bucket, cache, tmp_path):
    assert build(tmp_path / "here", "--workers", "1") == 0
    assert build(f"{bucket}/out", "--workers", "1") == 0
    assert stored(fsspec.filesystem("s3"), "logs/out") == files(tmp_path / "here")


@s3
def test_s3_that_cannot_be_written_is_known_before_the_work(bucket, cache, capsys):
    assert build("s3://no-such-bucket/out", "--workers", "1") == 2
    assert "s3://no-such-bucket/out" in capsys.readouterr().err
    assert not fsspec.filesystem("s3").exists("no-such-bucket"), "none is made"


@s3
def test_s3_that_is_not_there_is_one_clear_line(bucket, tmp_path, capsys):
    assert build(tmp_path / "out", inputs=["s3://no-such-bucket/x"]) == 2
    assert "s3://no-such-bucket/x" in capsys.readouterr().err
