"""Logs of one's own: through a mapping they give the samples that their reader gives."""

import json
from dataclasses import replace

import pytest
import yaml
from support.logs.mapped import contents, written
from support.places import ROOT

from builder import Source, build_dataset
from builder.config import load_mapping
from builder.config.load import parse_mapping
from builder.conversation import Conversation, ToolCall
from builder.problem import Problem, UsageError
from builder.readers.mapping.read import check_mapping, mapped_reader
from builder.testing import read_counted

EXAMPLES = ROOT / "configs" / "mappings"


def spec_of(folder, mapping):
    path = folder / "mapping.yaml"
    path.write_text(mapping if isinstance(mapping, str) else yaml.safe_dump(mapping))
    return load_mapping(path)


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


def parts_of(events):
    """Returns messages and tools; calls without the key that identifies them in a whole log."""

    def without_key(part):
        return replace(part, key=None) if isinstance(part, ToolCall) else part

    return [
        ([(one.role, *map(without_key, one.parts)) for one in event.messages], event.tools)
        for event in events
        if isinstance(event, Conversation)
    ]


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
    events = read(spec_of(tmp_path, mapping), written(tmp_path, rows))
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
    (conversation,) = read(spec_of(tmp_path, mapping), written(tmp_path, [row]))
    assert conversation.messages[-1].parts[-1].code == "truncated"


def test_a_call_without_a_name_is_not_invented(tmp_path):
    mapping = {"conversation": {"messages": "m"}, "message": {"role": "r", "calls": "c"}}
    row = {"m": [{"r": "assistant", "c": [{"name": "f", "arguments": "{}"}, {"arguments": "{}"}]}]}
    (conversation,) = read(spec_of(tmp_path, mapping), written(tmp_path, [row]))
    call, bad = conversation.messages[0].parts
    assert call == ToolCall("f", "{}")
    assert bad.code == "bad_call"


def test_a_path_that_finds_nothing_names_the_nearest_one(tmp_path):
    mapping = {"conversation": {"messages": "m"}, "message": {"role": "role", "text": "contend"}}
    source = written(tmp_path, [{"m": [{"role": "user", "content": "hi"}]}])
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


def test_hostile_values_stop_nothing(tmp_path):
    mapping = {
        "conversation": {"messages": "json(m)", "outcome": {"score": "sum(x)"}},
        "message": {"role": "r", "text": "t", "calls": "c", "call": {"name": "length(@)"}},
    }
    spec = spec_of(tmp_path, mapping)
    for value in (None, 1, "{", "[1]", [None], [{"r": 1, "t": {}, "c": 3}], {"r": []}):
        read(spec, written(tmp_path, [{"m": value, "x": value}]))


TOOL = {"name": "search", "description": "Searches the web."}
TALK = {"session": "s", "toolbox": [TOOL], "dialog": [
    {"who": "setup", "words": "You are helpful here."},
    {"who": "human", "words": "Find me cats please"},
    {"who": "bot", "words": "", "action": {"fn": "search", "params": {"q": "cats"}}},
    {"who": "observation", "words": "3 cats were found"},
    {"who": "bot", "words": "There are three cats."}]}  # fmt: skip


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


@pytest.fixture
def unread(tmp_path):
    """Returns the changes of a conversation that a mapping without calls reads."""

    def changes(message, **more):
        rows = [replace_last(TALK, message) | more]
        path = tmp_path / "mapping.yaml"
        path.write_text(yaml.safe_dump({
            "conversation": {"messages": "dialog", "id": "session", "tools": "toolbox"},
            "message": {"role": "who", "roles": {"setup": "system", "note": "skip"},
                        "text": "words"}}))  # fmt: skip
        (event,) = read_counted(mapped_reader(load_mapping(path)), written(tmp_path, rows))
        return dict(event.changes)

    return changes


def replace_last(row, message):
    return {**row, "dialog": [*row["dialog"][:-1], {**row["dialog"][-1], **message}]}


CALLS = {"unmapped_key:action": 1, "unmapped_call": 1}


@pytest.mark.parametrize(
    ("message", "more", "expected"),
    [
        ({}, {}, CALLS),
        ({"comment": "shown to the user"}, {}, CALLS | {"unmapped_key:comment": 1}),
        ({"extra": {"inner": ["some text of a kind"]}}, {}, CALLS | {"unmapped_key:extra": 1}),
        ({"label": "short", "at": "2026-01-01T10:00:00Z"}, {}, CALLS),
        ({}, {"summary": "they spoke of cats"}, CALLS | {"unmapped_key:summary": 1}),
        ({"who": "note", "comment": "for us alone"}, {}, CALLS | {"mapped_skip": 1}),
    ],
)
def test_what_a_mapping_leaves_out_is_counted(unread, message, more, expected):
    assert unread(message, **more) == expected


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("the light is on now", "answer", {"mapped_skip": 1, "unmapped_skip": 1}),
        ("the light is on now", "tool", {"mapped_skip": 1}),
        ("4711", "answer", {"mapped_skip": 1}),
    ],
)
def test_text_that_is_skipped_after_a_call_is_counted(tmp_path, text, after, expected):
    rows = [{"id": 1, "kind": kind, "text": words} for kind, words in (
        ("user", "Find me cats please"), ("assistant", "I look."),
        ("status", text), (after, "3 cats were found"))]  # fmt: skip
    rows[1] |= {"call": {"name": "search", "arguments": {"q": "cats"}}}
    roles = {"status": "skip", "answer": "assistant"}
    path = tmp_path / "mapping.yaml"
    path.write_text(yaml.safe_dump({
        "conversation": {"id": "id"},
        "message": {"role": "kind", "roles": roles, "text": "text", "calls": "call"}}))  # fmt: skip
    (event,) = read_counted(mapped_reader(load_mapping(path)), written(tmp_path, rows))
    assert dict(event.changes) == expected


def test_the_summary_names_what_a_mapping_leaves_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, [TALK])
    message = {"role": "who", "roles": {"setup": "system"}, "text": "words"}
    mapping = {"conversation": {"messages": "dialog"}, "message": message}
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(mapping))
    config = {"inputs": [{"path": "log.jsonl", "mapping": "m.yaml"}]}
    built = build_dataset([], "out", config=config, workers=1)
    (advice,) = [item for item in built.advice if "mapping" in item.finding]
    assert advice.effect == 1
    assert "unmapped_call (1), unmapped_key:action (1), unmapped_key:toolbox (1)" in advice.finding


LOST = "Hallo, wie geht es"


@pytest.mark.parametrize(
    ("row", "conversation", "message", "expected"),
    [
        (
            {"input": {"ask": "Translate it", "text": LOST}, "output": "Hello"},
            {"messages": "[{role: 'user', text: input.ask}, {role: 'assistant', text: output}]"},
            {"text": "text"},
            {"input.text"},
        ),
        (
            {"m": [{"role": "user", "body": {"text": "Hi", "m": LOST}, "role_note": "x"}]},
            {"messages": "m"},
            {"text": "body.text"},
            {"body.m"},
        ),
        (
            {"m": [{"role": "user", "body": {"text": "Hi"}}, {"role": "user", "body": LOST}]},
            {"messages": "m"},
            {"text": "body.text"},
            {"body"},
        ),
        (
            {"m": [{"role": "assistant", "calls": [{"name": "f", "role": LOST}]}]},
            {"messages": "m"},
            {"calls": "calls"},
            {"calls.role"},
        ),
        (
            {"m": [{"role": "tool", "results": [{"out": {"a": "It is 4"}, "name": LOST}]}]},
            {"messages": "m"},
            {"results": "results", "result": {"text": "out"}},
            {"results.name"},
        ),
        (
            {"a": {"b": {"log": [{"who": "user", "said": "Hi", "b": LOST}]}}},
            {"messages": "a.b.log[].{role: who, text: said}"},
            {"text": "text"},
            {"a.b.log.b"},
        ),
        (
            {"steps": {"one": {"m": [{"role": "user", "text": "Hi"}], "text": LOST}}},
            {"messages": "values(steps)[].m[]"},
            {"text": "text"},
            {"steps.text"},
        ),
        (
            {"payload": json.dumps({"m": [{"role": "user", "text": "Hi"}], "text": LOST})},
            {"messages": "json(payload).m"},
            {"text": "text"},
            {"payload.text"},
        ),
        (
            {"m": [{"role": "user", "text": "Hi"}], "q": {"a": LOST}},
            {"messages": "m", "model": "q.name"},
            {"text": "not_null(text, @)"},
            {"q.a"},
        ),
    ],
)
def test_text_beside_a_key_that_is_read_is_counted(tmp_path, row, conversation, message, expected):
    mapping = {"conversation": conversation, "message": {"role": "role", **message}}
    spec = parse_mapping(yaml.safe_dump(mapping), "m.yaml")
    (event,) = mapped_reader(spec).read(written(tmp_path, [row]))
    found = {code.partition(":")[2] for code in event.changes if code.startswith("unmapped_key:")}
    assert found == expected


MARKED = [
    ({"text": "Roses are", "interrupted": True}, "aborted"),
    ({"text": "Roses are", "status": "aborted"}, "aborted"),
    ({"text": "Roses are red.", "trainable": False}, "zero_weight"),
    ({"text": "Roses are red.", "interrupted": False, "train": True}, None),
]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ("delta delta answer", ["The Mur."]),
        ("answer delta delta", ["The Mur."]),
        ("delta delta other", ["The Mur.", "Another one."]),
        ("delta delta", ["The Mur."]),
        ("one answer", ["The Mur."]),
        ("answer answer", ["The Mur.", "The Mur."]),
    ],
)
def test_fragments_and_their_whole_are_one_text(tmp_path, kinds, expected):
    texts = {
        "answer": ["The Mur."] * 2,
        "one": ["The Mur. "],
        "delta": ["The ", "Mur."],
        "other": ["Another one."],
    }
    given = {kind: iter(values) for kind, values in texts.items()}
    rows = [{"id": 1, "kind": "user", "text": "Name a river"}]
    rows += [{"id": 1, "kind": kind, "text": next(given[kind])} for kind in kinds.split()]
    roles = {"delta": "fragment", "one": "fragment", "answer": "assistant", "other": "assistant"}
    mapping = {
        "conversation": {"id": "id"},
        "message": {"role": "kind", "roles": roles, "text": "text"},
    }
    (conversation,) = read(spec_of(tmp_path, mapping), written(tmp_path, rows))
    assert [one.parts[0].text for one in conversation.messages[1:]] == expected
    is_repeated = "answer" in kinds and kinds != "answer answer"
    assert conversation.changes.get("mapped_skip", 0) == is_repeated
