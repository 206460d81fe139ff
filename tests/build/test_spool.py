"""Records of a scan are read back from its spool, completely or not at all."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from support.logs.cases import case_sources
from support.logs.described import describe
from support.places import CASES

from builder.build.run import run_task
from builder.build.spool import Spool
from builder.build.task import Job, Task
from builder.conversation import Conversation, Ignored
from builder.normalize.options import NormalizeOptions, SharedTools
from builder.readers import read_events, readers
from builder.sources.source import Source
from builder.verify.options import VerifyOptions

AGENTS = sorted(name for name, reader in readers().items() if reader.is_agent)


@pytest.mark.quick(6)
@pytest.mark.parametrize("name", AGENTS)
def test_events_are_replayed_as_they_were_read(tmp_path, name):
    reader = readers()[name]
    found = 0
    for case in sorted((CASES / name).glob("*/")):
        for source in case_sources(case, tmp_path / "made" / case.name):
            spool = Spool(tmp_path / "spool" / f"{found}")
            read = list(spool.record(name, source, read_events(reader, source)))
            again = source.unread_copy()
            assert spool.format_name() == name
            assert list(map(describe, spool.replay(again))) == list(map(describe, read))
            assert again.records_read == source.records_read
            found += 1
    assert found, "each agent has a case"


def test_unfinished_or_unpicklable_events_are_not_spooled(tmp_path):
    source = Source("a.jsonl", data=b"{}\n")
    spool = Spool(tmp_path / "spool" / "a")
    events = spool.record("pi", source, iter([Ignored("x"), Ignored("y")]))
    next(events)
    events.close()
    assert spool.format_name() is None
    odd = Conversation(id="1", record="1", messages=(), records=1, tools=(lambda: None,))
    assert list(spool.record("pi", source, iter([odd]))) == [odd]
    assert spool.format_name() is None
    assert list(spool.path.parent.iterdir()) == []
    (tmp_path / "file").touch()
    blocked = Spool(tmp_path / "file" / "a")
    assert len(list(blocked.record("pi", source, iter([Ignored("x")])))) == 1
    assert blocked.format_name() is None
    if (full := Path("/dev/full")).exists():
        link = tmp_path / "spool" / f"b.{os.getpid()}"
        link.symlink_to(full)
        spool = Spool(tmp_path / "spool" / "b")
        assert len(list(spool.record("pi", source, iter([Ignored("x")])))) == 1
        assert spool.format_name() is None


def test_other_users_cannot_read_the_folder(tmp_path):
    source = Source("a.jsonl", data=b"{}\n")
    spool = Spool(tmp_path / "spool" / "a")
    list(spool.record("pi", source, iter([])))
    assert spool.path.parent.stat().st_mode & 0o077 == 0
    spool.discard()
    assert spool.format_name() is None
    spool.discard()


def test_the_second_pass_reads_the_spool_of_the_scan(tmp_path):
    path, other = (_session(tmp_path / name, text) for name, text in (("a", "Hi"), ("b", "Ho")))
    results = tmp_path / "results"
    job = Job("qwen3", VerifyOptions(), "", results, tmp_path / "work", spools=tmp_path / "read")
    options = NormalizeOptions()
    scan = run_task(Task(Source("a.jsonl", path), options, "a"), 0, job)
    assert scan.summary.is_scan
    (kept,) = job.spools.iterdir()
    reader, source = readers()["claude-code"], Source("b.jsonl", other)
    list(Spool(kept).record(reader.name, source, read_events(reader, source)))
    again = replace(options, shared_tools=SharedTools({}, {}, {}))
    result = run_task(Task(Source("a.jsonl", path), again, "a"), 0, job)
    assert [b"Ho" in line for line, _ in result.samples()] == [True]
    assert result.summary.ledger.read == scan.summary.ledger.read
    assert list(job.spools.iterdir()) == []


def _session(folder, text):
    folder.mkdir()
    rows = [
        {"type": "user", "uuid": "1", "parentUuid": None, "message": {"role": "user",
         "content": text}},
        {"type": "assistant", "uuid": "2", "parentUuid": "1", "message": {"role": "assistant",
         "id": "m1", "model": "toy", "content": [{"type": "text", "text": "Yes."}]}},
    ]  # fmt: skip
    common = {"sessionId": folder.name, "version": "2.1.1", "timestamp": "2025-01-01T00:00:00Z"}
    path = folder / "s.jsonl"
    path.write_text("".join(json.dumps(common | row) + "\n" for row in rows))
    return path
