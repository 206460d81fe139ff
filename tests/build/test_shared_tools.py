"""Tool definitions shared by sessions of an agent: one per tool, in any order."""

import json
import random
import shutil

import pytest
from support.places import CASES
from support.runs.builds import build, files, lines

from builder.conversation import Conversation, Message, Text, ToolCall
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions, SharedTools
from builder.normalize.tool_use import MAX_ARGUMENTS, ToolUse

CALLS = [
    [{"path": "a"}, {"path": "b", "limit": 5}],
    [{"path": "c", "limit": 2.5, "lines": [1, 2]}],
    [{"path": "d", "lines": []}, {"path": "e", "limit": None}],
]
"""The arguments of the calls to `Read` in each session."""

READ = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": ["null", "number"]},
        "lines": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["path"],
}


def session(folder, number, calls, version="2.1.100"):
    """Writes a session of Claude Code without tool definitions."""
    rows = []

    def line(kind, content):
        at = len(rows)
        message = {"role": kind, "content": content}
        if kind == "assistant":
            end = "tool_use" if content[0]["type"] == "tool_use" else "end_turn"
            message |= {"id": f"m{number}-{at}", "type": "message", "model": "toy"}
            message |= {"stop_reason": end}
        rows.append(
            {
                "type": kind, "uuid": f"{number}-{at}", "version": version,
                "parentUuid": f"{number}-{at - 1}" if at else None, "sessionId": f"s{number}",
                "timestamp": f"2025-01-01T00:00:{at:02}.000Z", "message": message,
            }
        )  # fmt: skip

    line("user", f"Read things, {number}")
    for at, arguments in enumerate(calls):
        call_id = f"toolu_{number}_{at}"
        call = {"type": "tool_use", "id": call_id, "name": "Read", "input": arguments}
        line("assistant", [call])
        line("user", [{"type": "tool_result", "tool_use_id": call_id, "content": "text"}])
    line("assistant", [{"type": "text", "text": "Done."}])
    (folder / f"s{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number, calls in enumerate(CALLS):
        session(folder, number, calls)
    return folder


def definitions(out):
    """Returns {name: parameters, one for each distinct definition in data/}."""
    found = {}
    for row in lines(out / "data" / "train-00000-of-00001.jsonl"):
        for tool in row["tools"]:
            forms = found.setdefault(tool["function"]["name"], [])
            if tool["function"]["parameters"] not in forms:
                forms.append(tool["function"]["parameters"])
    return found


def test_a_tool_has_one_definition_in_all_samples(logs, tmp_path, capsys):
    out = tmp_path / "out"
    assert build(out, inputs=[logs]) == 0
    assert definitions(out) == {"Read": [READ]}
    about = lines(out / "meta" / "train-00000-of-00001.jsonl")
    assert [item["tools_source"] for item in about] == ["inferred"] * 3
    assert json.loads((out / "manifest.json").read_bytes())["ledger"]["calls"]["kept"] == 5


def test_file_names_and_workers_have_no_effect(logs, tmp_path):
    first, other = tmp_path / "first", tmp_path / "other"
    assert build(first, "--workers", "1", inputs=[logs]) == 0
    assert build(other, "--workers", "2", inputs=[logs]) == 0
    assert files(first) == files(other)
    (logs / "s0.jsonl").rename(logs / "z.jsonl")
    assert build(other, inputs=[logs]) == 0
    assert definitions(other) == {"Read": [READ]}


@pytest.mark.slow
def test_a_new_session_changes_the_definitions_of_the_others(logs, tmp_path):
    out, fresh = tmp_path / "out", tmp_path / "fresh"
    assert build(out, inputs=[logs]) == 0
    session(logs, 9, [{"file": "f"}])
    assert build(out, inputs=[logs]) == 0
    (form,) = definitions(out)["Read"]
    assert (form["required"], "file" in form["properties"]) == ([], True)
    assert build(fresh, inputs=[logs]) == 0
    assert files(out) == files(fresh)
    before = sorted((out / ".state" / "results").glob("??/*"))
    assert build(out, inputs=[logs]) == 0
    assert sorted((out / ".state" / "results").glob("??/*")) == before


def test_logged_definitions_serve_sessions_of_the_same_version(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    requests = CASES / "claude-code" / "requests-rebuilt" / "input"
    shutil.copy(requests / "equal-answers-are-distinguished" / "s.jsonl", folder)
    session(folder, 1, CALLS[0], "2.1.330")
    session(folder, 2, CALLS[1], "1.0.0")
    out = tmp_path / "out"
    assert build(out, inputs=[folder]) == 0
    rows = lines(out / "data" / "train-00000-of-00001.jsonl")
    about = lines(out / "meta" / "train-00000-of-00001.jsonl")
    found = {item["conversation"]: (item, row) for item, row in zip(about, rows, strict=True)}
    shared, row = found["s1"]
    assert (shared["tools_source"], shared["changes"]["tool_shared"]) == ("shared", 1)
    assert "tools" in shared["context"]["missing"]
    assert [tool["function"]["description"] for tool in row["tools"]] == ["Reads."]
    assert found["s2"][0]["tools_source"] == "inferred"


def conversation(*calls, tools=None, version="1"):
    parts = tuple(ToolCall(name, arguments, f"{at}") for at, (name, arguments) in enumerate(calls))
    messages = (Message("user", (Text("hi"),)), Message("assistant", parts))
    return Conversation(id="c", record="r", messages=messages, tools=tools, version=version)


def test_counts_are_the_same_in_any_order():
    tools = [{"name": name, "parameters": {}} for name in "xyz"]
    talks = [
        conversation(("f", {"a": 1, "b": [True]}), ("g", "{}")),
        conversation(("f", {"b": [1], "a": "x"}), ("h", "no object")),
        conversation(tools=(*tools,)),
        conversation(tools=(tools[0], {"name": "y", "description": "Y."})),
        conversation(tools=(tools[0], {"name": "y", "description": "Y."}), version="2"),
    ]
    seen = set()
    for seed in range(10):
        random.Random(seed).shuffle(talks)
        whole = ToolUse()
        for talk in talks:
            part = ToolUse()
            part.take(talk, None)
            whole.add(json.loads(json.dumps(part.counts)))
        lacking = ToolUse()
        assert lacking.take(conversation(("f", {}), ("z", {})), None)
        whole.add(lacking.counts)
        seen.add(repr(whole.shared(ToolUse.wanted(lacking.counts))))
    assert len(seen) == 1
    shared = whole.shared(ToolUse.wanted(lacking.counts))
    assert list(shared.inferred) == ["f", "z"]
    assert shared.inferred["f"]["function"]["parameters"]["required"] == []
    assert shared.common == {"1": ("x", "y")}
    names = [tool["function"]["name"] for tool in shared.listed("1", {"z", "f"})]
    assert names == ["x", "y", "z"]


def test_a_session_with_all_its_definitions_needs_no_other():
    tools = ({"name": "f", "parameters": {}},)
    assert not ToolUse().take(conversation(("f", {}), tools=tools), None)
    assert not ToolUse().take(conversation(("f", {})), tools)
    assert ToolUse().take(conversation(("g", {}), tools=tools), None)


def test_free_form_arguments_are_inferred_for_each_conversation():
    use = ToolUse()
    talk = conversation(("f", {f"key {n}": n for n in range(MAX_ARGUMENTS + 1)}))
    use.take(talk, None)
    assert use.shared(ToolUse.wanted(use.counts)) == SharedTools()
    options = NormalizeOptions(shared_tools=SharedTools())
    assert normalise(talk, options).tools_source == "inferred"
