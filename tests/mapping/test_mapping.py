"""Logs of one's own: through a mapping they give the samples that their reader gives."""

import csv
import json
import sqlite3
from dataclasses import replace

import pyarrow
import pyarrow.parquet
import pytest
import yaml
from support.logs.mapped import written
from support.places import ROOT
from support.runs.commands import run

from builder import Source
from builder.config import load_mapping
from builder.conversation import Conversation, ToolCall
from builder.problem import Problem, UsageError
from builder.readers import readers
from builder.readers.mapping.check import check_mapping
from builder.readers.mapping.read import mapped_reader
from builder.readers.mapping.suggest import suggest
from builder.testing import read_counted

EXAMPLES = ROOT / "configs" / "mappings"


def spec_of(folder, mapping):
    path = folder / "mapping.yaml"
    path.write_text(mapping if isinstance(mapping, str) else yaml.safe_dump(mapping))
    return load_mapping(path)


def lines(folder, *rows, name="log.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Source(path.name, path)


def read(spec, source):
    return read_counted(mapped_reader(spec), source)


def plain(event):
    """Returns the roles and contents of a conversation."""
    return [
        (message.role, *(getattr(part, "text", None) or getattr(part, "name", None)
                         or part.content[0].text for part in message.parts))
        for message in event.messages
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["agent-steps.jsonl", "verl.jsonl", "rft.jsonl", "open-webui.json"]
)
def test_the_examples(name):
    log = EXAMPLES / name
    spec = load_mapping(log.with_suffix(".yaml"))
    source = Source(name, log)
    check_mapping(name, spec, [source])
    (conversation,) = [event for event in read(spec, source) if isinstance(event, Conversation)]
    assert conversation.messages[-1].role == "assistant"
    if name == "agent-steps.jsonl":
        assert plain(conversation) == [
            ("system", "You book rooms."),
            ("user", "Is a room free on Friday?"),
            ("assistant", "I need the list.", "free_rooms"),
            ("tool", "12"),
            ("assistant", "Yes, room 12."),
        ]
        assert conversation.outcome == {"reward": 1.0}
        assert conversation.tools is not None
        assert conversation.model == "acme-2"


SHAPES = {
    "sessions in lines": (
        [{"sid": "a", "turns": [{"speaker": "customer", "utterance": "hi"},
                                {"speaker": "agent", "utterance": "hello"}]}],
        [[("user", "hi"), ("assistant", "hello")]],
    ),
    "messages in lines, out of order": (
        [{"session_id": "a", "seq": 2, "role": "ai", "text": "hello"},
         {"session_id": "b", "seq": 1, "role": "human", "text": "one"},
         {"session_id": "a", "seq": 1, "role": "human", "text": "hi"},
         {"session_id": "b", "seq": 2, "role": "ai", "text": "two"}],
        [[("user", "hi"), ("assistant", "hello")], [("user", "one"), ("assistant", "two")]],
    ),
    "questions and answers": (
        [{"question": "hi", "answer": "hello", "score": 1}],
        [[("user", "hi"), ("assistant", "hello")]],
    ),
    "messages as JSON text": (
        [{"trace_id": "a", "log": json.dumps([{"from": "human", "value": "hi"},
                                              {"from": "bot", "value": "hello"}])}],
        [[("user", "hi"), ("assistant", "hello")]],
    ),
    "nested": (
        [{"id": 1, "d": {"talk": [{"who": "user", "msg": "hi"}, {"who": "ai", "msg": "hello"}]}}],
        [[("user", "hi"), ("assistant", "hello")]],
    ),
    "calls and results": (
        [{"id": 1, "events": [
            {"type": "human", "text": "weather?"},
            {"type": "ai", "text": "", "actions": [{"tool": "w", "args": {}, "call_id": "x"}]},
            {"type": "observation", "call_id": "x", "output": "4 C"},
            {"type": "ai", "text": "It is 4 C."}]}],
        [[("user", "weather?"), ("assistant", "w"), ("tool", "4 C"), ("assistant", "It is 4 C.")]],
    ),
    "calls as records": (
        [{"run_id": "r", "ts": 1, "event": "user_message", "content": "weather?"},
         {"run_id": "r", "ts": 2, "event": "tool_call", "name": "w", "arguments": {"c": 1}},
         {"run_id": "r", "ts": 3, "event": "tool_result", "output": "4 C"},
         {"run_id": "r", "ts": 4, "event": "assistant_message", "content": "It is 4 C."}],
        [[("user", "weather?"), ("assistant", "w"), ("tool", "4 C"), ("assistant", "It is 4 C.")]],
    ),
    "thoughts": (
        [{"id": 1, "log": [{"role": "user", "text": "hi"},
                           {"role": "assistant", "thinking": "greet", "text": "hello"}]}],
        [[("user", "hi"), ("assistant", "greet", "hello")]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_a_proposal_is_right_as_it_stands(tmp_path, name):
    rows, expected = SHAPES[name]
    source = lines(tmp_path, *rows)
    spec = spec_of(tmp_path, suggest(source))
    check_mapping("mapping.yaml", spec, [source])
    assert [plain(event) for event in read(spec, source)] == expected


def test_results_inside_an_answer_follow_it(tmp_path):
    mapping = {
        "conversation": {"messages": "steps"},
        "message": {"role": "r", "text": "t", "calls": "c", "results": "o"},
    }
    row = {
        "steps": [{"r": "user", "t": "hi"}, {"r": "ai", "c": [{"name": "f"}], "o": [{"t": "4"}]}]
    }
    (conversation,) = read(spec_of(tmp_path, mapping), lines(tmp_path, row))
    assert plain(conversation) == [("user", "hi"), ("assistant", "f"), ("tool", "4")]


def test_rows_of_a_parquet_file(tmp_path):
    rows, expected = SHAPES["messages in lines, out of order"]
    path = tmp_path / "log.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    source = Source(path.name, path)
    spec = spec_of(tmp_path, suggest(source))
    assert [plain(event) for event in read(spec, source)] == expected


def test_a_proposal_for_a_table_and_for_a_database(tmp_path):
    with (tmp_path / "log.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["id", "prompt", "response"], ["1", "hi", "hello, you"]])
    with sqlite3.connect(tmp_path / "log.db") as opened:
        opened.execute("CREATE TABLE chat (chat_id TEXT, role TEXT, content TEXT, created_at INT)")
        rows = [("c", "assistant", "hello, you", 2), ("c", "user", "hi", 1)]
        opened.executemany("INSERT INTO chat VALUES (?, ?, ?, ?)", rows)
    for name in ("log.csv", "log.db"):
        source = Source(name, tmp_path / name)
        spec = spec_of(tmp_path, suggest(source))
        (event,) = read(spec, source)
        assert plain(event) == [("user", "hi"), ("assistant", "hello, you")]


def contents(events):
    """Returns messages and tools; calls without the key that identifies them in a whole log."""

    def without_key(part):
        return replace(part, key=None) if isinstance(part, ToolCall) else part

    return [
        ([(one.role, *map(without_key, one.parts)) for one in event.messages], event.tools)
        for event in events
        if isinstance(event, Conversation)
    ]


def test_the_rows_of_a_reader(tmp_path):
    """The reader of OpenAI's rows is the oracle."""
    for log in sorted((ROOT / "data").rglob("*.jsonl")):
        source = Source(log.name, log)
        if not readers()["openai-chat"].recognise(source):
            continue
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        if not all(isinstance(row.get("messages"), list) for row in rows):
            continue
        theirs = list(readers()["openai-chat"].read(source))
        mapping = {
            "conversation": {"messages": "messages", "tools": "tools"},
            "message": {
                "role": "role", "text": "content", "calls": "tool_calls",
                "call": {"name": "function.name", "arguments": "function.arguments", "id": "id"},
                "result": {"id": "tool_call_id"},
            },
        }  # fmt: skip
        ours = read(spec_of(tmp_path, mapping), Source(log.name, log))
        assert contents(ours) == contents(theirs)


def test_faults_are_counted(tmp_path):
    mapping = {
        "conversation": {"id": "s", "order": "n"},
        "message": {"role": "r", "text": "t", "roles": {"ui": "skip"}, "call": {"name": "f"}},
    }
    rows = [
        {"s": "a", "n": 1, "r": "user", "t": "hi"},
        {"s": "a", "n": 2, "r": "assistant", "t": "hello", "note": "a text of some length here"},
        {"s": "a", "n": 3, "r": "ui", "t": "drawn"},
        {"n": 4, "r": "user", "t": "lost"},
        {"s": "b", "r": "user", "t": "no order"},
        "text",
    ]
    events = read(spec_of(tmp_path, mapping), lines(tmp_path, *rows))
    problems = [event.code for event in events if isinstance(event, Problem)]
    assert sorted(problems) == ["no_id", "no_order", "not_object"]
    (conversation,) = [event for event in events if isinstance(event, Conversation)]
    assert conversation.changes == {"unmapped_key:note": 1, "mapped_skip": 1}


def test_an_answer_that_was_cut_off_ends_the_sample(tmp_path):
    mapping = {
        "conversation": {"messages": "m"},
        "message": {"role": "r", "text": "t", "stop": "why"},
    }
    row = {"m": [{"r": "user", "t": "hi"}, {"r": "assistant", "t": "hel", "why": "length"}]}
    (conversation,) = read(spec_of(tmp_path, mapping), lines(tmp_path, row))
    assert conversation.messages[-1].parts[-1].code == "truncated"


def test_a_call_without_a_name_is_not_invented(tmp_path):
    mapping = {"conversation": {"messages": "m"}, "message": {"role": "r", "calls": "c"}}
    row = {"m": [{"r": "assistant", "c": [{"name": "f", "arguments": "{}"}, {"arguments": "{}"}]}]}
    (conversation,) = read(spec_of(tmp_path, mapping), lines(tmp_path, row))
    call, bad = conversation.messages[0].parts
    assert call == ToolCall("f", "{}")
    assert bad.code == "bad_call"


def test_a_path_that_finds_nothing_names_the_nearest_one(tmp_path):
    mapping = {"conversation": {"messages": "m"}, "message": {"role": "role", "text": "contend"}}
    source = lines(tmp_path, {"m": [{"role": "user", "content": "hi"}]})
    with pytest.raises(UsageError) as raised:
        check_mapping("map.yaml", spec_of(tmp_path, mapping), [source])
    assert str(raised.value) == (
        "map.yaml: message.text: 'contend' finds nothing in any of 1 records,"
        " did you mean 'content'?"
    )


@pytest.mark.parametrize(
    ("mapping", "fault"),
    [
        (
            {"message": {"role": "a["}, "conversation": {"id": "x"}},
            "message.role: 'a[' is not a JMESPath",
        ),
        ({"message": {"role": "a"}}, "conversation: needs messages"),
        (
            {"message": {"role": "a"}, "conversation": {"id": "a", "session": "b"}},
            "conversation.session: goes with messages",
        ),
        (
            {"message": {"role": "a"}, "conversation": {"messages": "a", "order": "b"}},
            "conversation.order: orders the records of a conversation: name its session",
        ),
        ({"message": {"rol": "a"}}, "message.rol: unknown key, did you mean 'role'?"),
        ({"message": {"role": "a", "roles": {"x": "usr"}}}, "message.roles.x: must be one of"),
    ],
)
def test_a_wrong_mapping_is_one_line_for_each_fault(tmp_path, mapping, fault):
    with pytest.raises(UsageError, match=r"mapping\.yaml: ") as raised:
        spec_of(tmp_path, mapping)
    assert fault in str(raised.value)


def test_from_unrecognised_to_samples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows, _ = SHAPES["calls and results"]
    (tmp_path / "logs").mkdir()
    lines(tmp_path, *rows, name="logs/own.jsonl")
    refused = run("build", "logs/own.jsonl", "-o", "out", "--workers", "1")
    assert refused.returncode == 1
    advised = "`builder inspect --suggest-mapping` (in Python, `suggest_mapping`) proposes"
    assert advised in refused.stderr
    shown = run("inspect", "logs/own.jsonl", "--suggest-mapping")
    assert shown.returncode == 0, shown.stderr
    assert "It is 4 C." in shown.stdout
    assert "builder build logs/own.jsonl --mapping own.mapping.yaml -o OUT" in shown.stdout
    again = run("inspect", "logs/own.jsonl", "--suggest-mapping")
    assert again.returncode == 2
    built = run("build", "logs/own.jsonl", "--mapping", "own.mapping.yaml", "-o", "out", "--json")
    assert json.loads(built.stdout)["calls"] == {"logged": 1, "kept": 1, "dropped": {}}
    (meta,) = (tmp_path / "out" / "meta").glob("*.jsonl")
    assert json.loads(meta.read_text())["format"] == "mapping"


def test_hostile_values_stop_nothing(tmp_path):
    mapping = {
        "conversation": {"messages": "json(m)", "outcome": {"score": "sum(x)"}},
        "message": {"role": "r", "text": "t", "calls": "c", "call": {"name": "length(@)"}},
    }
    spec = spec_of(tmp_path, mapping)
    for value in (None, 1, "{", "[1]", [None], [{"r": 1, "t": {}, "c": 3}], {"r": []}):
        read(spec, lines(tmp_path, {"m": value, "x": value}))


def test_faults_of_keys_and_of_values_are_shown_together(tmp_path):
    path = tmp_path / "mapping.yaml"
    path.write_text(
        "conversation: {mesages: m}\nmessage: {role: r, roles: {a: usr}, text: 'words[', txet: x}\n"
    )
    with pytest.raises(UsageError) as raised:
        load_mapping(path)
    keys = [line.removeprefix(f"{path}: ").split(":")[0] for line in str(raised.value).split("\n")]
    assert keys == ["message.txet", "conversation.mesages", "message.text", "message.roles.a"]


def test_default_paths_of_calls_are_read(tmp_path):
    call = {"name": "search", "arguments": {"words": "of the cats"}}
    messages = [
        {"role": "user", "text": "Hello there"},
        {"role": "ai", "calls": [call]},
        {"role": "tool", "text": "three of them"},
    ]
    mapping = {"conversation": {"messages": "m", "id": "id"},
               "message": {"role": "role", "text": "text", "calls": "calls"}}  # fmt: skip
    path = tmp_path / "mapping.yaml"
    path.write_text(yaml.safe_dump(mapping))
    (event,) = mapped_reader(load_mapping(path)).read(written(tmp_path, [{"id": 1, "m": messages}]))
    assert not event.changes
