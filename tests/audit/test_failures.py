"""Which calls failed: the log's flags decide; the wording of results only where it has none."""

import json

import pytest
from support.logs.preference import DENIED, call, claude_lines, result, text
from support.runs.builds import build, lines

from builder.audit.failures import CallPlace, failed_calls, pattern
from builder.audit.options import AuditOptions
from builder.audit.run import audit
from builder.dataset.files import dataset_files
from builder.dataset.rows import file_rows
from builder.report.turns import failures_of
from builder.sample import Call, Dialogue, Turn
from builder.view.index import row_counts

WORDED = "Error: of the words alone"
FLAGGED = "There is no such thing here"


def dialogue(*responses):
    """Returns a dialogue with a call for each response, one after the other."""
    turns = [Turn("user", "x")]
    for response in responses:
        turns += [Turn("assistant", calls=(Call.of("f", {}),)), Turn("tool", responses=(response,))]
    return Dialogue((*turns, Turn("assistant", "done")))


def test_flags_replace_the_wording():
    both = dialogue(WORDED, FLAGGED)
    assert failed_calls(both) == {CallPlace(1, 0): "error"}
    assert failed_calls(both, {"messages[3].calls[0]": "denied", "x": "error"}) == {
        CallPlace(3, 0): "denied"
    }
    assert failed_calls(both, {}) == {}


@pytest.mark.parametrize(
    ("logged", "expected"),
    [
        (None, "error_recovery"),
        ({}, "chain"),
        ({"messages[1].calls[0]": "error"}, "error_recovery"),
        ({"messages[1].calls[0]": "denied"}, "chain"),
        ({"messages[3].calls[0]": "error"}, "chain"),
    ],
)
def test_the_pattern_follows_them(logged, expected):
    assert pattern(dialogue(WORDED, FLAGGED), logged) == expected


def session(first, second, third):
    """Returns a session of three calls with these results."""
    return claude_lines(
        [
            ("u1", None, "user", "Do it"),
            ("a1", "u1", "assistant", call("Read", "t1", path="a")),
            ("u2", "a1", "user", first),
            ("a2", "u2", "assistant", call("Bash", "t2", command="b")),
            ("u3", "a2", "user", second),
            ("a3", "u3", "assistant", call("Bash", "t3", command="c")),
            ("u4", "a3", "user", third),
            ("a4", "u4", "assistant", text("Done.")),
        ]
    )


def counted(folder):
    """Returns what audit, list of the viewer and page of a sample say of the only sample."""
    audited = audit(str(folder), AuditOptions())
    tools = next(table for table in audited.tables if table.key == "tools")
    notes = [item for item in audited.findings if item.code == "error_result"]
    (file,) = dataset_files(str(folder))
    (row,) = file_rows(file)
    return (
        {name: (errors, stopped) for name, _, errors, stopped, *_ in tools.rows},
        notes,
        row_counts(row).errors,
        failures_of(row.sample, row.failed_calls),
    )


def test_all_pages_count_the_flags_of_the_log(tmp_path):
    log = tmp_path / "session.jsonl"
    log.write_text(
        session(
            result("t1", WORDED),
            result("t2", FLAGGED, is_error=True),
            result("t3", DENIED, is_error=True),
        )
    )
    out = tmp_path / "out"
    assert build(out, inputs=[log]) == 0
    (meta,) = lines(out / "meta" / "train-00000-of-00001.jsonl")
    assert meta["failed_calls"] == {
        "messages[3].calls[0]": "error",
        "messages[5].calls[0]": "denied",
    }
    assert meta["failed_turns"] == {"denied": 1, "error": 1}
    assert meta["pattern"] == "error_recovery"
    tools, (note,), listed, shown = counted(out)
    assert tools == {"Bash": (1, 1), "Read": (0, 0)}
    assert (note.count, note.message) == (1, "calls that failed: as the log says (1)")
    assert listed == 1
    assert shown == {4: "error", 6: "denied"}


def test_wording_decides_where_the_log_has_no_flag(tmp_path):
    asked = [{"id": f"t{n}", "type": "function"} for n in range(2)]
    for item in asked:
        item["function"] = {"name": "f", "arguments": "{}"}
    row = {
        "messages": [
            {"role": "user", "content": "Do it"},
            {"role": "assistant", "content": None, "tool_calls": asked},
            {"role": "tool", "tool_call_id": "t0", "content": "fine"},
            {"role": "tool", "tool_call_id": "t1", "content": WORDED},
            {"role": "assistant", "content": "Done."},
        ]
    }
    log = tmp_path / "rows.jsonl"
    log.write_text(json.dumps(row) + "\n" + json.dumps(row).replace("Do it", "Do that") + "\n")
    out = tmp_path / "out"
    assert build(out, inputs=[log]) == 0
    first, _ = lines(out / "meta" / "train-00000-of-00001.jsonl")
    assert "failed_calls" not in first
    audited = audit(str(out), AuditOptions())
    (note,) = (item for item in audited.findings if item.code == "error_result")
    assert note.count == 2
    assert note.message == "calls that failed: by the wording of the result (2)"
