"""Hostile input, through the command itself: counted rejects or one clear line, never a traceback,
and the other inputs are still built."""

import gzip
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.places import TESTS
from support.runs.commands import run, run_forked

from builder.parallel import pool
from builder.sources.source import Source

GOOD = {
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
    "tools": [],
}
LINE = json.dumps(GOOD).encode()


def row(text):
    """Returns a row whose user text is `text` as JSON source, so that escapes stay escapes."""
    return LINE.replace(b'"hi"', b'"' + text + b'"')


def build(tmp_path, *more, run=run):
    out = tmp_path / "out"
    done = run("build", tmp_path / "in", "-o", out, "--json", *more)
    ledger = json.loads(done.stdout) if done.stdout else {}
    rejects = [
        json.loads(line)
        for line in (out / "rejects.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    return done, ledger, rejects


CASES = {
    "truncated line": (LINE + b"\n" + LINE[:-9], "truncated"),
    "invalid UTF-8": (LINE + b"\n" + row(b"\xff\xfe") + b"\n", "bad_utf8"),
    "NUL bytes": (LINE + b"\n\x00\x00\x00\n", "bad_json"),
    "raw NUL in a string": (LINE + b"\n" + row(b"a\x00b") + b"\n", "bad_json"),
    "deep nesting": (
        LINE + b"\n" + LINE[:-1] + b',"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        "too_deep",
    ),
    "bare string": (LINE + b'\n"words"\n', "not_object"),
    "broken first line": (b"{broken\n" + LINE + b"\n", "bad_json"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_records_are_counted_and_the_rest_is_built(tmp_path, name):
    data, code = CASES[name]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "log.jsonl").write_bytes(data)
    done, ledger, rejects = build(tmp_path)
    assert done.returncode == 0, done.stderr
    assert ledger["samples"] == 1
    assert ledger["records"]["rejected"] == {code: 1}
    assert [reject["code"] for reject in rejects] == [code]


TEXTS = {
    "quoted": b"Some logs\n\nA line is:\n" + LINE + b"\nas this shows.\n",
    "Markdown": b"# Logs\n```\n" + LINE + b"\n" + LINE + b"\n" + LINE + b"\n```\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_quotes_a_log_is_none(name):
    assert Source("README.md", data=TEXTS[name]).peek.kind == "text"


HARMLESS = {
    "BOM": b"\xef\xbb\xbf" + LINE + b"\n",
    "CRLF": LINE + b"\r\n",
    "no newline at the end": LINE,
    "blank lines": b"\n\n" + LINE + b"\n \n",
    "lone surrogate": row(b"a\\ud83dz") + b"\n",
    "escaped NUL": row(b"a\\u0000b") + b"\n",
    "duplicate keys": LINE[:-1] + b',"x":1,"x":2}\n',
    "NaN": LINE[:-1] + b',"x":NaN}\n',
    "infinity by overflow": LINE[:-1] + b',"x":1e999}\n',
    "5000 digits": LINE[:-1] + b',"x":' + b"7" * 5000 + b"}\n",
    "400 digits": LINE[:-1] + b',"x":' + b"7" * 400 + b"}\n",
    "decomposed text": row("e\u0301".encode()) + b"\n",
}


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", HARMLESS)
def test_odd_but_readable_records_are_built(tmp_path, name):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "log.jsonl").write_bytes(HARMLESS[name])
    done, ledger, rejects = build(tmp_path)
    assert done.returncode == 0, done.stderr
    assert (ledger["samples"], rejects) == (1, [])
    assert run("verify", tmp_path / "out").returncode == 0


@pytest.mark.parametrize("number", [b"NaN", b"-Infinity", b"1e999", b"7" * 5000])
def test_a_number_that_is_not_json_rejects_only_its_conversation(tmp_path, number):
    tools = b',"tools":[{"type":"function","function":{"name":"f","parameters":{"default":%s}}}]}\n'
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "log.jsonl").write_bytes(LINE + b"\n" + LINE[:-1] + tools % number)
    done, ledger, rejects = build(tmp_path)
    assert done.returncode == 0, done.stderr
    assert ledger["conversations"]["rejected"] == {"number": 1}
    assert (ledger["samples"], [reject["code"] for reject in rejects]) == (1, ["number"])


def test_a_line_beyond_the_limit_is_rejected(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "log.jsonl").write_bytes(row(b"x" * (3 << 20)) + b"\n" + LINE + b"\n")
    monkeypatch.setitem(Source.__init__.__kwdefaults__, "max_record_bytes", 1 << 20)
    done, ledger, rejects = build(tmp_path)
    assert done.returncode == 0, done.stderr
    assert ledger["samples"] == 1
    assert [reject["code"] for reject in rejects] == ["too_large"]


@pytest.mark.slow
def test_files_that_cannot_be_read_do_not_stop_the_others(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.jsonl").write_bytes(LINE + b"\n")
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "binary.bin").write_bytes(bytes(range(256)) * 64)
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(row(b"more") * 400)[:-30])
    (folder / "gone.jsonl").symlink_to(folder / "nothing")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    os.mkfifo(folder / "pipe")
    done, ledger, rejects = build(tmp_path, run=run_forked)
    assert done.returncode == 0, done.stderr
    assert ledger["samples"] >= 1
    codes = {reject["source"]: reject["code"] for reject in rejects}
    assert codes["binary.bin"] == "unrecognised"
    assert codes["cut.jsonl.gz"] in ("truncated", "unrecognised", "bad_json")
    assert codes["gone.jsonl"] == "unreadable"
    assert codes["loop"] == "directory_loop"
    assert codes["pipe"] == "not_a_file"
    assert ledger["records"]["ignored"]["empty_file"] == 1


@pytest.mark.slow
def test_a_truncated_stream_is_a_reject_and_its_whole_lines_are_built(tmp_path):
    (tmp_path / "in").mkdir()
    rows = b"".join(row(str(n).encode()) + b"\n" for n in range(600))
    (tmp_path / "in" / "log.jsonl.gz").write_bytes(gzip.compress(rows)[:-400])
    done, ledger, rejects = build(tmp_path)
    assert done.returncode == 0, done.stderr
    assert ledger["samples"] > 100
    assert [reject["code"] for reject in rejects] == ["truncated"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_is_one_clear_line(tmp_path, monkeypatch):
    """A write fails as on a full disk: exit 2, nothing under a final name."""
    from builder import cli
    from builder.build import results

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "log.jsonl").write_bytes(LINE + b"\n")

    class Full(results.ResultWriter):
        def sample(self, line, meta):
            Path("/dev/full").write_bytes(line + meta)

    monkeypatch.setattr("builder.build.run.ResultWriter", Full)
    code = cli.main(["build", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--workers", "1"])
    assert code == 2
    assert {path.name for path in (tmp_path / "out").iterdir()} == {".state"}


def test_an_output_that_cannot_be_made_is_one_clear_line(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "log.jsonl").write_bytes(LINE + b"\n")
    (tmp_path / "file").write_text("")
    done = run("build", tmp_path / "in", "-o", tmp_path / "file")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    done = run("build", tmp_path / "in", "-o", tmp_path / "file" / "below")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_of_another_program_is_left_alone(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "log.jsonl").write_bytes(LINE + b"\n")
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    assert run("build", tmp_path / "in", "-o", out).returncode == 2
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]


def test_a_long_first_line_does_not_hide_the_others(tmp_path):
    (tmp_path / "in").mkdir()
    long = row(b"first")[:-1] + b',"x":"' + b"x" * (6 << 20) + b'"}'
    (tmp_path / "in" / "log.jsonl").write_bytes(long + b"\n" + LINE + b"\n")
    done, ledger, rejects = build(tmp_path)
    assert done.returncode == 0, done.stderr
    assert (ledger["samples"], rejects) == (2, [])


def test_a_store_is_read_while_another_process_writes_to_it(tmp_path):
    """The rows in the write-ahead log are read as well."""
    folder = tmp_path / "in"
    folder.mkdir()
    text = (TESTS / "fixtures" / "egirl_data.sql").read_text(encoding="utf-8")
    writer = sqlite3.connect(folder / "conversations.db")
    writer.execute("PRAGMA journal_mode=WAL")
    writer.executescript(text)
    writer.execute("BEGIN IMMEDIATE")
    assert (folder / "conversations.db-wal").stat().st_size > 0
    done, ledger, rejects = build(tmp_path)
    writer.rollback()
    assert done.returncode == 0, done.stderr
    assert (ledger["samples"], rejects) == (1, [])
    writer.close()


def test_the_log_of_a_killed_writer_is_read_and_nothing_is_left_next_to_it(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    text = (TESTS / "fixtures" / "egirl_data.sql").read_text(encoding="utf-8")
    writer = sqlite3.connect(tmp_path / "conversations.db")
    writer.execute("PRAGMA journal_mode=WAL")
    writer.executescript(text)
    for name in ("conversations.db", "conversations.db-wal"):
        shutil.copyfile(tmp_path / name, folder / name)
    writer.close()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done, ledger, _ = build(tmp_path)
    assert (done.returncode, ledger["samples"]) == (0, 1)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (item,) = json.loads((tmp_path / "out" / "manifest.json").read_bytes())["inputs"]
    log = before["conversations.db-wal"]
    assert item["log"] == {"bytes": len(log), "sha256": hashlib.sha256(log).hexdigest()}
    assert item["sha256"] == hashlib.sha256(before["conversations.db"]).hexdigest()


@pytest.mark.slow
def test_an_interrupted_run_reports_it_and_leaves_no_partial_file(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(75):
        text = b"".join(row(f"{number} {n}".encode()) + b" " * 32_000 + b"\n" for n in range(2))
        (folder / f"{number}.jsonl").write_bytes(text)
    assert pool.are_large([folder]), "a pool is interrupted"
    out = tmp_path / "out"
    command = [sys.executable, "-m", "builder", "build", str(folder), "-o", str(out)]
    with subprocess.Popen(
        [*command, "--workers", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        work = out / ".state" / "work"
        while process.poll() is None and not (work.is_dir() and any(work.iterdir())):
            time.sleep(0.01)
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == ("builder: interrupted; finished work is kept, the same command resumes\n")
    assert {path.name for path in out.iterdir()} == {".state"}
    assert run(*command[3:], "--workers", "1").returncode == 0, "the command resumes"
