"""Collecting logs: nothing is lost, whatever agents do to files and whenever a run is killed."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.places import DATA, ROOT
from support.runs.builds import contents
from support.runs.commands import run

from builder.collect.job import collect_logs, document_grew, holds_all
from builder.problem import UsageError


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "one.jsonl").write_text('{"line": 1}\n')
    (folder / "two.json").write_text('{"messages": [{"text": "a first message"}]}')
    return folder


def test_copies_are_equal_and_a_second_run_copies_nothing(logs, tmp_path):
    before = contents(logs)
    out = tmp_path / "kept"
    first = collect_logs(out, [str(logs)])
    assert (first.new, first.grown, first.unchanged) == (2, 0, 0)
    assert contents(out) == {f"logs/{name}": data for name, data in before.items()}
    second = collect_logs(out, [str(logs)])
    assert (second.new, second.grown, second.rewritten, second.unchanged) == (0, 0, 0, 2)
    assert contents(logs) == before


def test_the_copies_are_for_their_owner_only(logs, tmp_path):
    out = tmp_path / "a" / "kept"
    for path in logs.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    with sqlite3.connect(logs / "base.db") as base:
        base.execute("CREATE TABLE t (v)")
    base.close()
    collect_logs(out, [str(logs)])
    (logs / "two.json").write_text('{"messages": [{"text": "another message"}]}')
    assert collect_logs(out, [str(logs)]).rewritten == 1
    paths = [out.parent, out, *out.rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in paths if path.is_dir()} == {0o700}
    copies = [path for path in paths if path.is_file() and ".builder-collect" not in path.parts]
    assert len(copies) == 4
    assert {path.stat().st_mode & 0o777 for path in copies} == {0o600}


def test_a_deleted_log_stays(logs, tmp_path):
    collect_logs(tmp_path / "kept", [str(logs)])
    (logs / "two.json").unlink()
    assert collect_logs(tmp_path / "kept", [str(logs)]).unchanged == 1
    assert (tmp_path / "kept" / "logs" / "two.json").exists()


def test_without_its_state_a_run_compares_digests(logs, tmp_path):
    out = tmp_path / "kept"
    collect_logs(out, [str(logs)])
    shutil.rmtree(out / ".builder-collect")
    assert collect_logs(out, [str(logs)]).unchanged == 2


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ('{"a": 1}\n', '{"a": 1}\n{"b": 2}\n', False),
        ('{"a": 1}\n{"b": 2}\n', '{"b": 2}\n', True),
        ('{"a": 1}\n{"b": 2}\n', '{"b": 2}\n{"a": 1}\n{"c": 3}\n', False),
        ('{"m": ["one text here"]}', '{"m": ["one text here", "x"], "n": 1}', False),
        ('{"m": ["one text here"], "at": "2026-01-01"}', '{"m": ["one text here and more"]}', True),
        ('{"m": ["one text"], "at": "10:00"}', '{"m": ["one text more"], "at": "11:00"}', False),
        ('{"m": ["yes", "no"]}', '{"m": ["yes"]}', True),
        ('{"m": ["a text", "b text"]}', '{"m": ["a text", "c text"]}', True),
        ("# aider\n\n#### hi\n", "# aider\n\n#### hi\n> more\n", False),
        ("# aider\n\n#### hi\n", "# aider\n", True),
    ],
)
def test_a_state_that_holds_something_else_is_kept(tmp_path, old, new, kept):
    log, out = tmp_path / "log.json", tmp_path / "kept"
    log.write_text(old)
    collect_logs(out, [str(log)])
    log.write_text(new)
    done = collect_logs(out, [str(log)])
    assert (done.rewritten, done.grown) == ((1, 0) if kept else (0, 1))
    assert (out / "log.json").read_text() == new
    earlier = [path.read_text() for path in (out / "earlier").rglob("log.*.json")]
    assert earlier == ([old] if kept else [])


def database(path, rows, wal=False):
    with sqlite3.connect(path) as opened:
        if wal:
            opened.execute("PRAGMA journal_mode = WAL")
        opened.execute("CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, data TEXT)")
        opened.executemany("INSERT OR REPLACE INTO part VALUES (?, ?)", rows)
    return opened


def parts(path):
    with sqlite3.connect(path) as opened:
        return opened.execute("SELECT id, data FROM part ORDER BY id").fetchall()


def test_a_database_in_use_is_copied_whole_and_the_original_is_not_touched(tmp_path):
    store, out = tmp_path / "store", tmp_path / "kept"
    store.mkdir()
    opened = database(store / "s.db", [("p1", '{"text": "the first part"}')], wal=True)
    before = contents(store)
    assert "s.db-wal" in before, "the row is only in the log"
    done = collect_logs(out, [str(store)])
    assert (done.new, done.problems) == (1, [])
    assert contents(store) == before
    assert parts(out / "store" / "s.db") == [("p1", '{"text": "the first part"}')]
    assert [*contents(out)] == ["store/s.db"]

    database(store / "s.db", [("p1", '{"text": "the first part, longer"}'), ("p2", "{}")])
    assert collect_logs(out, [str(store)]).grown == 1
    with sqlite3.connect(store / "s.db") as again:
        again.execute("DELETE FROM part WHERE id = 'p1'")
    done = collect_logs(out, [str(store)])
    assert done.rewritten == 1
    (earlier,) = (out / "earlier").rglob("*.db")
    assert [name for name, _ in parts(earlier)] == ["p1", "p2"]
    opened.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


@given(JSON, JSON)
def test_what_grew_holds_every_text(newer, older):
    def texts(value):
        if isinstance(value, str):
            return [value] if len(value) > 40 or any(map(str.isspace, value)) else []
        inner = value.values() if isinstance(value, dict) else value
        return (
            [text for item in inner for text in texts(item)]
            if isinstance(inner, list | type({}.values()))
            else []
        )

    assert document_grew(older, older)
    if document_grew(newer, older):
        held = texts(newer)
        assert all(any(text in one for one in held) for text in texts(older))


def test_dry_run_writes_nothing(logs, tmp_path):
    ran = run("collect", logs, "-o", tmp_path / "kept", "--dry-run")
    assert ran.returncode == 0
    assert "new        logs/a/one.jsonl" in ran.stdout
    assert not (tmp_path / "kept").exists()


def test_one_line_a_run(logs, tmp_path):
    ran = run("collect", logs, "-o", tmp_path / "kept")
    assert ran.stdout.splitlines() == [
        f"{tmp_path / 'kept'}: 2 new files, 0 grown, 0 unchanged; 0.0 MB copied"
    ]
    ran = run("collect", logs, "-o", tmp_path / "kept", "--json")
    assert json.loads(ran.stdout)["unchanged"] == 2


def test_a_folder_inside_the_logs_is_refused(logs):
    with pytest.raises(UsageError, match="overlap"):
        collect_logs(logs / "kept", [str(logs)])
    assert not (logs / "kept").exists()


def test_an_unreadable_file_is_reported_and_the_others_are_copied(logs, tmp_path):
    os.mkfifo(logs / "pipe")
    (logs / "link.jsonl").symlink_to(logs / "nowhere")
    done = collect_logs(tmp_path / "kept", [str(logs)])
    assert done.new == 2
    assert [problem.code for problem in done.problems] == ["unreadable"]


def test_a_build_gives_the_samples_of_the_originals(tmp_path):
    collect_logs(tmp_path / "kept", [str(DATA)])
    for name, source in (("ours", tmp_path / "kept"), ("theirs", DATA)):
        assert run("build", source, "-o", tmp_path / name, "--workers", "1").returncode == 0
    ours, theirs = (
        sorted((tmp_path / name / "data" / "train-00000-of-00001.jsonl").read_text().splitlines())
        for name in ("ours", "theirs")
    )
    assert ours == theirs


def test_all_agents_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    folder = tmp_path / "home" / ".claude" / "projects" / "-srv"
    folder.mkdir(parents=True)
    (folder / "s.jsonl").write_text("{}\n")
    collect_logs(tmp_path / "kept")
    assert [*contents(tmp_path / "kept")] == ["claude-code/claude/projects/-srv/s.jsonl"]


@pytest.mark.slow
def test_a_killed_run_leaves_whole_files_and_the_next_one_completes_it(tmp_path):
    logs, out = tmp_path / "logs", tmp_path / "kept"
    logs.mkdir()
    for number in range(400):
        (logs / f"{number:03}.jsonl").write_text(json.dumps({"text": "x" * 20_000}) * 5)
    before = contents(logs)
    for pause in (0.0, 0.05, 0.1):
        command = [sys.executable, "-m", "builder", "collect", str(logs), "-o", str(out)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        while process.poll() is None and not (out / "logs").exists():
            time.sleep(0.01)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for name, data in contents(out).items():
            assert before[Path(name).name] == data
    collect_logs(out, [str(logs)])
    assert contents(out) == {f"logs/{name}": data for name, data in before.items()}


def test_holds_all_of_equal_files(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"\x00" * 10)
    assert holds_all(path, path)
