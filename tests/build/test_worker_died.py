"""A killed worker: its task is retried, then rejected; nothing else is lost.

The task that kills it is a reader of another package, found by its entry point.
"""

import multiprocessing
import os
import signal

import pytest
from support.hub.client import Client
from support.logs.chats import row
from support.logs.large import large_logs
from support.places import ROOT
from support.runs.builds import build, files, lines

from builder.build import publish
from builder.verify import as_loaded

pytestmark = pytest.mark.slow

READER = """
import json, os, signal
from builder.conversation import Conversation, Message, Text
from builder.readers import Reader
def recognise(source):
    return "the mark" if source.head.startswith(b'{"fatal"') else None
def read(source):
    folder = os.environ["FATAL_FOLDER"]
    with open(folder + "/deaths") as deaths, open(folder + "/tries", "a+") as tries:
        tries.write("x")
        tries.flush()
        if tries.tell() <= int(deaths.read()):
            os.kill(os.getpid(), signal.SIGKILL)
    for number, line, _ in source.lines():
        fatal = json.loads(line)["fatal"]
        messages = tuple(Message(one["role"], (Text(one["content"]),)) for one in fatal)
        at = str(number)
        yield Conversation(id=at, record=at, messages=messages, records=1)
summary = "a log that kills the process that reads it"
READER = Reader(name="fatal", summary=summary, recognise=recognise, read=read)
"""
FATAL = "05.log"
ALWAYS = "1000000"
DATA_FILE = "data/train-00000-of-00001.jsonl"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Builds in a separate process; returns the ledger and how often the fatal log was read."""
    folder = tmp_path_factory.mktemp("died")
    info = folder / "site" / "fatal-1.0.dist-info"
    info.mkdir(parents=True)
    (info.parent / "fatal.py").write_text(READER)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fatal\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[builder.readers]\nfatal = fatal:READER\n")
    logs = large_logs(folder / "in")
    (logs / FATAL).write_text((row("one") + row("two", 2)).replace("messages", "fatal"))
    tries, deaths_before = folder / "tries", folder / "deaths"
    client = Client({**os.environ, "FATAL_FOLDER": str(folder)}, ROOT, info.parent)

    def once(out, deaths, workers):
        tries.write_text("")
        deaths_before.write_text(deaths)
        done = client.run("build", logs, "-o", out, "--json", "--workers", workers)
        assert done.code == 0, done.err
        return done.reported, len(tries.read_text())

    yield once
    client.close()


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory):
    """Returns the output if no worker dies."""
    out = tmp_path_factory.mktemp("whole") / "out"
    ledger, tries = run(out, "0", "1")
    assert (tries, ledger["conversations"]["built"]) == (1, 74)
    return out


def meta(out):
    return lines(out / "meta" / "train-00000-of-00001.jsonl")


def test_a_log_that_always_kills_is_a_reject_and_the_others_are_built(run, whole, tmp_path):
    out = tmp_path / "out"
    ledger, tries = run(out, ALWAYS, "2")
    assert tries >= 2
    (reject,) = lines(out / "rejects.jsonl")
    assert (reject["source"], reject["code"]) == (FATAL, "worker_died")
    assert "killed twice" in reject["message"]
    assert ledger["records"]["rejected"] == {"worker_died": 1}
    assert (ledger["records"]["read"], ledger["records"]["used"]) == (73, 72)
    assert ledger["conversations"]["built"] == 72
    kept = [line for line in meta(whole) if line["source"] != FATAL]
    assert meta(out) == kept
    assert len(kept) == 72
    assert run(out, "0", "1")[1] == 1, "the next run tries it again"
    assert files(out) == files(whole)


def test_a_log_that_killed_a_worker_once_gives_the_same_bytes(run, whole, tmp_path):
    out = tmp_path / "out"
    assert run(out, "1", "2")[1] >= 2
    assert files(out) == files(whole)


LOADED = publish._loaded


def loads_in_the_driver(folder, tokenizer):
    if multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return LOADED(folder, tokenizer)


def test_a_loader_that_is_killed_is_run_again_in_the_driver(tmp_path, monkeypatch, pooled):
    assert build(tmp_path / "whole", "--workers", "1") == 0
    monkeypatch.setattr(publish, "_loaded", loads_in_the_driver)
    assert build(tmp_path / "out", "--workers", "2") == 0
    assert "loads_in_the_driver" in pooled
    assert files(tmp_path / "out") == files(tmp_path / "whole")

    (_, lost, *others) = lines(tmp_path / "whole" / DATA_FILE)
    rows_of = as_loaded._rows

    def change_one(*arguments):
        for one in rows_of(*arguments):
            if one["messages"] == lost["messages"]:
                one["messages"][-1]["content"] += "?"
            yield one

    monkeypatch.setattr(as_loaded, "_rows", change_one)
    assert build(tmp_path / "less", "--workers", "2") == 0
    rejects = [line["code"] for line in lines(tmp_path / "less" / "rejects.jsonl")]
    assert rejects.count("loader") == 1
    assert lines(tmp_path / "less" / DATA_FILE)[1:] == others
