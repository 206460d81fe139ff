"""Proposals for logs as strangers write them (shapes.yaml): events, columns, definitions."""

import csv
import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from support.logs.mapped import contents, written
from support.places import ROOT

from builder import Source, build_dataset
from builder.config.load import parse_mapping
from builder.conversation import ToolResult
from builder.normalize.tools import convert
from builder.readers.mapping.check import check_mapping
from builder.readers.mapping.read import mapped_reader
from builder.readers.mapping.suggest import suggest
from builder.testing import read_counted

SHAPES = {
    shape["name"]: shape
    for shape in yaml.safe_load((Path(__file__).parent / "shapes.yaml").read_text())
}


def logged(folder, shape, stem="log"):
    """Returns the log of a shape."""
    rows, kind = shape["rows"], shape.get("kind")
    if kind is None:
        return written(folder, rows, f"{stem}.jsonl")
    path = folder / f"{stem}.{kind}"
    if kind == "json":
        path.write_text(json.dumps(rows))
    elif kind == "sqlite":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.executescript(";".join(rows))
    elif kind == "csv":
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)
    else:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return Source(path.name, path)


PAGE_LOGS = {
    "### Events": [
        {"trace": 1, "seq": 1, "event": "ask", "text": "Find me cats please"},
        {"trace": 1, "seq": 10, "event": "tool_end", "output": "3 cats", "call_id": "a"},
        {"trace": 1, "seq": 2, "event": "thinking", "text": "I look."},
        {"trace": 1, "seq": 3, "event": "tool_start", "tool": "search", "input": {"q": "cats"},
         "call_id": "a", "status": "ok"},
        {"trace": 1, "seq": 11, "event": "reply", "data": {"text": "There are three."}},
    ],
    "### Rows": [
        {"session_id": "s", "turn": 2, "question": "Thanks a lot", "answer": "You are welcome."},
        {"session_id": "s", "turn": 1, "question": "Find me cats please", "results": ["3 cats"],
         "calls": [{"name": "search", "arguments": {"q": "cats"}}], "answer": "There are three."},
    ],
}  # fmt: skip


@pytest.mark.parametrize("section", PAGE_LOGS)
def test_the_mappings_of_the_page_read_their_logs(tmp_path, section):
    page = (ROOT / "docs" / "mapping.md").read_text()
    block = page[page.index(section) :].partition("```yaml\n")[2].partition("```")[0]
    source = written(tmp_path, PAGE_LOGS[section])
    (conversation,) = contents(read_counted(mapped_reader(parse_mapping(block, "page")), source))
    thought = [("assistant", "I look.")] if section == "### Events" else []
    rest = [("user", "Thanks a lot"), ("assistant", "You are welcome.")]
    assert conversation == [
        ("user", "Find me cats please"),
        *thought,
        ("assistant", ("search", "cats")),
        ("tool", "3 cats"),
        ("assistant", "There are three."),
        *([] if thought else rest),
    ]


def signatures(tools):
    """Returns the definitions as `name(parameter, …)`."""
    functions = [tool["function"] for tool in convert(tools or [], Counter())]
    return [f"{one['name']}({', '.join(one['parameters']['properties'])})" for one in functions]


def as_lists(values):
    return [[[*map(list_of, message)] for message in one] for one in values]


def list_of(part):
    return [*part] if isinstance(part, tuple) else part


@pytest.mark.parametrize("name", SHAPES)
def test_the_proposal_reads_what_a_stranger_logged(tmp_path, name):
    shape = SHAPES[name]
    source = logged(tmp_path, shape)
    text = suggest(source)
    decide = [line.split(": ")[1] for line in text.splitlines() if line.startswith("# Decide")]
    assert decide == shape.get("decide", [])
    unread = [line for line in text.splitlines() if line.startswith("# Not read")]
    assert [line.partition(": ")[2].split(", ") for line in unread] == (
        [shape["unread"]] if "unread" in shape else []
    )
    spec = parse_mapping(text, "proposal")
    check_mapping("proposal", spec, [source])
    events = list(read_counted(mapped_reader(spec), source))
    assert as_lists(contents(events)) == shape["expected"]
    for event in events:
        assert signatures(event.tools) == shape.get("tools", signatures(event.tools))
    parts = [part for event in events for one in event.messages for part in one.parts]
    failed = [part for part in parts if isinstance(part, ToolResult) and part.is_error]
    assert len(failed) == shape.get("errors", 0)


def test_the_proposals_give_samples(tmp_path):
    inputs = []
    for number, shape in enumerate(SHAPES.values()):
        source = logged(tmp_path, shape, f"log{number}")
        inputs.append({"path": tmp_path / source.name, "mapping": yaml.safe_load(suggest(source))})
    built = build_dataset([], tmp_path / "out", config={"inputs": inputs})
    ledger = built.ledger
    rejected = sum(shape.get("rejected", 0) for shape in SHAPES.values())
    assert (
        ledger.conversations_rejected.total() - ledger.conversations_rejected["duplicate"]
        == rejected
    )
    expected = sum(len(shape["expected"]) for shape in SHAPES.values()) - rejected
    assert ledger.samples + ledger.duplicates == expected
