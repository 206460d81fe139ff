"""Large files are split into chunks: the output is that of the whole file in every format."""

import contextlib
import gzip
import json
import re
import sqlite3
import zipfile
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs.chunked import MAKERS, goose, jsonl, parquet, rows
from support.runs.builds import build, files, lines

from builder.build import chunks
from builder.build import run as work
from builder.build.chunks import cut
from builder.build.task import Task
from builder.normalize.options import NormalizeOptions
from builder.problem import Problem
from builder.readers import readers, recognise
from builder.readers.agents.goose import READER as GOOSE
from builder.sources import source, zip_file
from builder.sources.source import Source
from builder.testing import check_reader

SHARES = "split: {validation: 0.2, test: 0.2}\ninputs: [{path: PATH, weight: 0.7}]\n"


@pytest.fixture
def small(monkeypatch):
    """Makes files of a few KB count as large; returns a function that undoes it."""
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 2000)
    return lambda: monkeypatch.setattr(chunks, "CHUNK_BYTES", 1 << 30)


def tasks(path, format_="auto"):
    return list(cut(Task(Source(path.name, path), NormalizeOptions(), f"0/{path.name}", format_)))


def passes(path):
    """Returns how often each chunk is read: twice for agents, whose sessions share tools."""
    (name,) = recognise(Source(path.name, path))
    return 2 if readers()[name].is_agent else 1


def ledger(out):
    return json.loads((out / "manifest.json").read_bytes())["ledger"]


@pytest.mark.parametrize("kind", MAKERS)
def test_chunks_give_the_bytes_of_the_whole_file(tmp_path, small, kind, pooled_tasks):
    path = MAKERS[kind](tmp_path, 60)
    assert len(tasks(path)) > 4
    (tmp_path / "c.yaml").write_text(SHARES.replace("PATH", str(path)))
    counts = ("1", "2") if kind in ("parquet", "opencode", "inspect-ai") else ("2",)
    for workers in counts:
        out = tmp_path / workers
        assert build(out, "-c", tmp_path / "c.yaml", "--workers", workers, inputs=()) == 0
    assert pooled_tasks.count("_run_batch") == passes(path) * len(tasks(path))
    small()
    assert build(tmp_path / "whole", "-c", tmp_path / "c.yaml", "--workers", "1", inputs=()) == 0
    whole = files(tmp_path / "whole")
    assert ledger(tmp_path / "whole")["conversations"]["built"] > 20
    splits = {name[5:].partition("-")[0] for name in whole if name.startswith("data/")}
    assert splits == {"train", "validation", "test"}
    assert {line["code"] for line in lines(tmp_path / "whole" / "rejects.jsonl")} > {"weight"}
    assert all(files(tmp_path / workers) == whole for workers in counts)


# -- resuming, and files that change -------------------------------------------------------------


@pytest.mark.slow
def test_only_chunks_of_changed_inputs_are_converted_again(tmp_path, small, done, monkeypatch):
    monkeypatch.setattr(source, "HEAD_BYTES", 1000)  # a chunk is longer than the head of its file
    logs = tmp_path / "logs"
    logs.mkdir()
    paths = [make(logs, 40) for make in (goose, parquet, jsonl)]
    counts = {f"0/{path.name}": len(tasks(path)) for path in paths}
    assert min(counts.values()) > 2
    out = tmp_path / "out"

    def made():
        done.clear()
        assert build(out, "--workers", "1", inputs=[logs]) == 0
        return Counter(done)

    assert made() == {f"0/{path.name}": passes(path) * len(tasks(path)) for path in paths}
    assert made() == {}
    gone = sorted((out / ".state" / "results").glob("??/*"))[::4]
    for folder in gone:
        folder.unlink()
    assert sum(made().values()) == len(gone)
    parquet(logs, 45)
    assert made() == {"0/rows.parquet": len(tasks(paths[1]))}
    with paths[2].open("a") as stream:
        stream.write(json.dumps(rows(41)[40]) + "\n")
    count = len(tasks(paths[2]))
    assert count > 2, "it is still split"
    assert made() == {"0/rows.jsonl": 1}, "unchanged lines keep their results"
    text = paths[2].read_text()
    paths[2].write_text(text.replace("unanswered", "Unanswered", 1))
    assert made() == {"0/rows.jsonl": count}, "the first lines determine the reader"
    done.clear()
    assert build(tmp_path / "rebuilt", "--workers", "1", inputs=[logs]) == 0
    assert files(tmp_path / "rebuilt") == files(out)


def test_a_database_is_read_again_after_a_change_in_its_write_ahead_log(tmp_path, done):
    path = goose(tmp_path, 8)
    out = tmp_path / "out"
    with contextlib.closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        for last in ("0008", "0004"):
            before = path.read_bytes()
            writer.execute("DELETE FROM messages WHERE session_id >= ?", (last,))
            writer.execute("DELETE FROM sessions WHERE id >= ?", (last,))
            writer.commit()
            assert path.read_bytes() == before, "the change is only in the log"
            done.clear()
            assert build(out, "--workers", "1", inputs=[path]) == 0
            assert done == [f"0/{path.name}"] * passes(path)
        assert build(tmp_path / "rebuilt", "--workers", "1", inputs=[path]) == 0
    assert files(out) == files(tmp_path / "rebuilt")


@pytest.mark.quick(1)
@pytest.mark.parametrize("make", [jsonl, parquet, goose])
def test_a_file_that_changed_after_it_was_split_is_a_reject(tmp_path, small, monkeypatch, make):
    path = make(tmp_path, 40)
    count = len(tasks(path))
    scans = (passes(path) - 1) * count
    process, seen = work.process_source, []

    def once(task, *rest):
        process(task, *rest)
        if len(seen) == scans:
            path.touch()
        seen.append(task)

    monkeypatch.setattr(work, "process_source", once)
    assert build(tmp_path / "out", "--workers", "1", inputs=[path]) == 0
    assert len(seen) == scans + 1, "the other chunks are not read"
    codes = [line["code"] for line in lines(tmp_path / "out" / "rejects.jsonl")]
    assert codes.count("changed") == count
    assert ledger(tmp_path / "out")["records"]["rejected"]["changed"] == count - 1
    assert build(tmp_path / "out", "--workers", "1", inputs=[path]) == 0
    assert len(seen) == scans + 1 + count
    assert "changed" not in ledger(tmp_path / "out")["records"]["rejected"]


def test_a_write_ahead_log_prevents_splitting_and_may_come_too_late(tmp_path, small):
    path = goose(tmp_path, 40)
    cut_before = tasks(path)
    whole = list(GOOSE.read(Source("s", path)))
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = wal")
    cut_before = [Source("s", path, chunk=task.source.chunk) for task in cut_before]
    writer.execute("DELETE FROM messages WHERE session_id < '0030'")
    writer.execute("DELETE FROM sessions WHERE id < '0030'")
    writer.commit()
    assert [task.source.chunk for task in tasks(path)] == [None]
    assert len(list(GOOSE.read(Source("s", path)))) < len(whole)
    apart = [event for source in cut_before for event in GOOSE.read(source)]
    writer.close()
    assert apart == whole


# -- what is not split ---------------------------------------------------------------------------


def test_files_that_cannot_be_read_from_the_middle_stay_whole(tmp_path, small):
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress(jsonl(tmp_path, 400).read_bytes()))
    stream = tmp_path / "stream.arrow"
    table = pyarrow.parquet.read_table(parquet(tmp_path, 400))
    with pyarrow.OSFile(str(stream), "wb") as out, pyarrow.ipc.new_stream(out, table.schema) as to:
        to.write_table(table, max_chunksize=5)
    history = tmp_path / "history.db"
    with sqlite3.connect(history) as store:
        store.execute("CREATE TABLE message_store (id INTEGER, session_id TEXT, message TEXT)")
        store.execute("INSERT INTO message_store VALUES (1, 's', ?)", ("x" * 50_000,))
    store.close()
    damaged = tmp_path / "damaged.db"
    data = bytearray(goose(tmp_path, 200).read_bytes())
    data[-8192:] = bytes(8192)
    damaged.write_bytes(data)
    known = {packed: "openai-chat", stream: "openai-chat", history: "langchain", damaged: "goose"}
    for path, name in known.items():
        assert list(recognise(Source(path.name, path))) == [name]
        assert path.stat().st_size > 2 * chunks.CHUNK_BYTES
        assert [task.source.chunk for task in tasks(path)] == [None], path


def test_blank_lines_are_not_counted_as_an_empty_file(tmp_path, small):
    path = jsonl(tmp_path, 20)
    with path.open("a") as stream:
        stream.write("\n" * 9000)
    assert len(tasks(path)) > 6
    assert build(tmp_path / "cut", "--workers", "1", inputs=[path]) == 0
    small()
    assert build(tmp_path / "whole", "--workers", "1", inputs=[path]) == 0
    assert files(tmp_path / "cut") == files(tmp_path / "whole")


# -- each chunk reads its own records -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["opencode", "goose", "hermes-agent", "egirl", "langchain"])
def test_a_chunk_queries_only_its_own_sessions(tmp_path, small, monkeypatch, kind):
    path = MAKERS[kind](tmp_path, 40)
    connect, asked = sqlite3.connect, set()

    def traced(*place, **options):
        connection = connect(*place, **options)
        connection.set_trace_callback(
            lambda query: asked.update(re.findall(r"'[a-z_:]*(\d{4})'", query))
        )
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    found = []
    for task in tasks(path):
        asked.clear()
        assert list(readers()[kind].read(task.source))
        found.append(sorted(asked))
    # The last chunk may be the records without a session.
    found = [names for names in found if names]
    assert len(found) > 4
    assert all(one[-1] < other[0] for one, other in pairwise(found))


def test_a_chunk_unpacks_only_its_own_members(tmp_path, small, monkeypatch):
    path = MAKERS["inspect-ai"](tmp_path, 40)
    unpack, unpacked = zip_file._unpack, []
    monkeypatch.setattr(
        zip_file, "_unpack", lambda stream, info, limit: (
            unpacked.append(info.filename) or unpack(stream, info, limit)
        ),
    )  # fmt: skip
    found = tasks(path)
    assert len(found) > 4
    for task in found:
        assert list(readers()["inspect-ai"].read(task.source))
    assert unpacked.count("_journal/start.json") == len(found) + 1
    assert max(Counter(unpacked[1:]).values()) == len(found)
    assert sorted(set(unpacked)) == sorted(
        name for name in zipfile.ZipFile(path).namelist() if name[-1] != "/"
    )
    assert len(unpacked) == len(set(unpacked)) + len(found)


def test_a_chunk_of_a_table_reads_only_its_row_groups(tmp_path, small):
    path = parquet(tmp_path, 60)
    *_, task = tasks(path)
    chunk = task.source.chunk
    about = pyarrow.parquet.read_metadata(path)
    data = bytearray(path.read_bytes())
    for index in range(1, chunk.start):
        for column in range(about.num_columns):
            at = about.row_group(index).column(column)
            start = at.dictionary_page_offset or at.data_page_offset
            data[start : start + at.total_compressed_size] = bytes(at.total_compressed_size)
    path.write_bytes(data)
    records = list(Source("rows", path, chunk=chunk).json_lines())
    assert [record.where for record in records] == [f"row {n}" for n in range(chunk.first, 61)]
    assert not any(isinstance(record, Problem) for record in records)
    whole = list(Source("rows", path).json_lines())
    assert sum(isinstance(record, Problem) for record in whole) == chunk.start - 1
    assert [record for record in whole if not isinstance(record, Problem)][5:] == records
    small_tasks = [Source("rows", path, chunk=task.source.chunk) for task in tasks(path)]
    assert [record for piece in small_tasks for record in piece.json_lines()] == whole


# -- hostile sizes -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return goose(tmp_path_factory.mktemp("store"), 200)


@given(st.lists(st.integers(-5, 3000) | st.integers(0, 1 << 70), max_size=60))
def test_each_item_is_in_one_chunk_for_any_sizes(store, sizes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_BYTES", 2000)
        odd = replace(GOOSE, item_sizes=lambda source: sizes)
        patch.setattr(chunks, "sole_reader", lambda task: odd)
        cut = [task.source.chunk for task in tasks(store, "goose")]
    size = store.stat().st_size
    total = sum(max(item, 0) for item in sizes)
    if cut == [None]:
        assert total < 4000 or max(sizes) > 2000 or len(sizes) < 2
        return
    assert [chunk.start for chunk in cut] == [0, *(chunk.end for chunk in cut[:-1])]
    assert cut[-1].end == len(sizes)
    assert all(chunk.start < chunk.end for chunk in cut)
    assert sum(chunk.bytes for chunk in cut) == size
    assert len(cut) <= chunks.UNPACKED * size // 2000
    if total <= chunks.UNPACKED * size:
        for chunk in cut:
            held = [max(item, 0) for item in sizes[chunk.start : chunk.end]]
            assert sum(held[:-1]) <= 3000, "2000 bytes, plus at most one item"


def test_the_contract_suite_finds_items_that_are_lost(tmp_path):
    source = Source("sessions.db", goose(tmp_path, 10))
    check_reader(GOOSE, source)
    lossy = replace(GOOSE, item_sizes=lambda source: GOOSE.item_sizes(source)[:-1])
    with pytest.raises(AssertionError, match="items differ if read alone"):
        check_reader(lossy, source)
