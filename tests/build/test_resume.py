"""Resuming a run gives the same bytes as an undisturbed one after any interruption or change."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from support.logs.chats import row, write_logs
from support.logs.large import large_logs
from support.runs.builds import build, files


@pytest.fixture
def logs(tmp_path):
    return write_logs(tmp_path / "in", rows=2)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Returns (logs, a dataset built from them): a test changes only a copy of the dataset."""
    folder = tmp_path_factory.mktemp("resume")
    logs = write_logs(folder / "in", rows=2)
    assert build(folder / "out", "--workers", "1", inputs=[logs]) == 0
    return logs, folder / "out"


@pytest.fixture
def copied(built, tmp_path, done):
    """Returns (logs, a copy of the dataset built from them); `done` is empty."""
    logs, whole = built
    shutil.copytree(whole, tmp_path / "out", symlinks=True)
    done.clear()
    return logs, tmp_path / "out"


def test_unchanged_inputs_are_taken_from_the_state(logs, tmp_path, done):
    out = tmp_path / "out"
    assert build(out, "--workers", "1", inputs=[logs]) == 0
    assert len(done) == 13
    before = files(out)
    done.clear()
    assert build(out, "--workers", "1", inputs=[logs]) == 0
    assert done == []
    assert files(out) == before
    assert build(out, "--workers", "1", "--fresh", inputs=[logs]) == 0
    assert len(done) == 13
    assert files(out) == before


def test_new_changed_and_removed_inputs_update_the_output(logs, tmp_path, done):
    out = tmp_path / "out"
    assert build(out, "--workers", "1", inputs=[logs]) == 0
    (logs / "00.jsonl").unlink()
    (logs / "05.jsonl").write_text(row("changed"))
    (logs / "new.jsonl").write_text(row("new"))
    done.clear()
    assert build(out, "--workers", "1", inputs=[logs]) == 0
    assert done == ["0/05.jsonl", "0/new.jsonl"]
    parts = len(list((out / ".state" / "results").glob("??/*")))
    assert parts == 13, "the results of the removed and the changed file are removed"
    again = tmp_path / "rebuilt"
    assert build(again, inputs=[logs]) == 0
    assert files(out) == files(again)


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "change",
    [
        "normalize: {unit: turn}",
        "limits: {max_tokens: 30}",
        "inputs: [{path: in, license: MIT}]",
        "inputs: [{path: other}, {path: in}]",
    ],
)
def test_results_of_another_configuration_are_not_used(copied, done, change):
    logs, out = copied
    (logs.parent / "other").mkdir(exist_ok=True)
    config = logs.parent / "c.yaml"
    config.write_text(change)
    named = () if change.startswith("inputs") else [logs]
    assert build(out, "-c", config, "--workers", "1", inputs=named) in (0, 1)
    assert len(done) == 13


def test_results_of_other_code_are_not_used(copied, done, monkeypatch):
    logs, out = copied
    monkeypatch.setattr("builder.build.identity.code_digest", lambda: "other")
    assert build(out, "--workers", "1", inputs=[logs]) == 0
    assert len(done) == 13


def test_a_result_depends_on_the_files_read_beside_its_own(tmp_path, done):
    """A sub-agent's prompt is in the file of its parent: with and without it, as built anew."""
    agent, parent = sub_agent_and_parent(tmp_path / "in")
    out, new = tmp_path / "out", tmp_path / "new"
    assert build(out, "--workers", "1", inputs=[agent]) == 1, "it begins with an answer"
    without = files(out)
    for text in (parent, parent.replace("Count it.", "Count them."), parent):
        (agent.parent / "parent.jsonl").write_text(text)
        assert build(out, "--workers", "1", inputs=[agent]) == 0
        assert build(new, "--workers", "1", "--fresh", inputs=[agent]) == 0
        assert files(out) == files(new) != without
    done.clear()
    assert build(out, "--workers", "1", inputs=[agent]) == 0
    assert done == []
    (agent.parent / "parent.jsonl").unlink()
    assert build(out, "--workers", "1", inputs=[agent]) == 1, "the result is not used"


def sub_agent_and_parent(folder):
    """Returns the file of a sub-agent that begins with its answer, and the text of its parent."""
    folder.mkdir()
    common = {"version": "2.0.55", "cwd": "/p", "sessionId": "parent"}

    def line(kind, number, parent, content, **more):
        message = {"role": kind, "content": content}
        if kind == "assistant":
            message |= {"id": f"m{number}", "model": "claude-x", "type": "message"}
        at = {
            "uuid": f"u{number}",
            "parentUuid": parent,
            "timestamp": f"2026-01-01T00:00:0{number}Z",
        }
        return json.dumps({"type": kind, "message": message, **at, **common, **more}) + "\n"

    agent = folder / "agent-a1b2c3d4.jsonl"
    aside = {"isSidechain": True, "agentId": "a1b2c3d4"}
    agent.write_text(line("assistant", 1, None, [{"type": "text", "text": "Three."}], **aside))
    call = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "Count it."}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "3"}
    parent = line("user", 1, None, "Count.") + line("assistant", 2, "u1", [call])
    parent += line("user", 3, "u2", [result], toolUseResult={"agentId": "a1b2c3d4"})
    return agent, parent


def test_a_corrupt_result_is_converted_again(copied, done):
    logs, out = copied
    before = files(out)
    damages = (
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[1:],
        lambda data: data[:-50] + b"{" + data[-49:],
        lambda data: data[:-1] + b"1",  # of a version with another format
    )
    for damage, part in zip(
        damages, sorted((out / ".state" / "results").glob("??/*")), strict=False
    ):
        part.write_bytes(damage(part.read_bytes()))
    assert build(out, "--workers", "1", inputs=[logs]) == 0
    assert len(done) == len(damages)
    assert files(out) == before


@pytest.mark.slow
def test_a_run_killed_at_any_moment_resumes_to_the_same_bytes(tmp_path):
    logs = large_logs(tmp_path / "in")
    whole = tmp_path / "whole"
    assert build(whole, "--workers", "1", inputs=[logs]) == 0
    out = tmp_path / "out"
    command = [sys.executable, "-m", "builder", "build", str(logs), "-o", str(out)]
    parts = []
    for least in (0, 3):  # scripts/kill_test.py kills at many more moments
        process = subprocess.Popen(
            [*command, "--workers", "2"],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and not (out / ".state" / "work").is_dir():
            time.sleep(0.01)
        while process.poll() is None and len(parts) < least:
            time.sleep(0.01)
            parts = list((out / ".state" / "results").glob("??/*"))
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it was running"
    assert len(parts) < 12
    assert build(out, "--workers", "1", inputs=[logs]) == 0
    assert files(out) == files(whole)
    shutil.rmtree(out)
