"""A proposed mapping, used as it is printed, builds the samples that the log holds."""

import json

import pytest
import yaml
from support.logs.mapped import contents, written
from support.places import ROOT

from builder import Source, UsageError, build_dataset, suggest_mapping
from builder.config import load_mapping
from builder.conversation import ToolCall, ToolResult
from builder.readers.mapping.check import check_mapping
from builder.readers.mapping.read import mapped_reader
from builder.readers.mapping.suggest import suggest
from builder.testing import read_counted

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
TOOL = {"name": "search", "description": "Searches the web.", "parameters": SCHEMA}
FUNCTION = {"type": "function", "function": TOOL}
ARGUMENTS = {"q": "cats"}
JSON = json.dumps(ARGUMENTS)
FOUND, DOGS = "3 cats were found", "2 dogs"
QUESTION = ("user", "Find me cats please")
CALL, RESULT = ("assistant", ("search", "cats")), ("tool", FOUND)
ANSWER = ("assistant", "There are three cats.")
TURNS = [QUESTION, CALL, RESULT, ANSWER]
ASKED, REPLY = QUESTION[1], ANSWER[1]


def chat(role, names, text, *, call, result):
    """Returns four messages: a question, a call, its result and the answer."""
    user, assistant, tool = names
    return [
        {role: user, text: ASKED},
        {role: assistant, text: "", **call},
        {role: tool, **(result if isinstance(result, dict) else {text: result})},
        {role: assistant, text: REPLY},
    ]


OWN = {"call": {"name": "search", "args": ARGUMENTS}}
PAIR = [
    {"id": "x1", "tool": "search", "input": ARGUMENTS, "output": FOUND},
    {"id": "x2", "tool": "search", "input": {"q": "dogs"}, "output": DOGS},
]
TWO_CALLS = [
    QUESTION,
    ("assistant", ("search", "cats"), ("search", "dogs")),
    ("tool", FOUND, DOGS),
    ANSWER,
]
HBO = ("human", "bot", "observation")

SHAPES = {
    "flat messages": (
        [{"id": "1", "mark": 1, "tools": [TOOL], "messages": chat(
            "role", ("user", "assistant", "tool"), "content",
            call={"tool_calls": [{"name": "search", "arguments": ARGUMENTS, "id": "c1"}]},
            result={"tool_call_id": "c1", "content": FOUND})}],
        TURNS,
    ),
    "setup, human, bot, observation": (
        [{"session": "s", "toolbox": [TOOL], "dialog": [
            {"who": "setup", "words": "You are helpful here."},
            *chat("who", HBO, "words", call={"action": {"fn": "search", "params": ARGUMENTS}},
                  result=FOUND)]}],
        [("system", "You are helpful here."), *TURNS],
    ),
    "calls under any names": (
        [{"ev": chat("kind", ("human", "bot", "env"), "satz",
                     call={"zug": {"wort": "search", "gaben": ARGUMENTS}}, result=FOUND)}],
        TURNS,
    ),
    "calls under any names, named by the tools": (
        [{"werkzeuge": [FUNCTION], "ev": chat(
            "kind", ("human", "bot", "env"), "satz",
            call={"zug": {"wort": "search", "gaben": JSON}}, result=FOUND)}],
        TURNS,
    ),
    "a call by its name": (
        [{"tools": [TOOL], "log": chat("role", HBO, "text", call={"do": {"search": ARGUMENTS}},
                                       result=FOUND)}],
        TURNS,
    ),
    "arguments as JSON text, tools in metadata": (
        [{"metadata": {"tools": [FUNCTION], "grade": 0.5}, "turns": chat(
            "speaker", ("customer", "agent", "function"), "utterance",
            call={"function_call": {"name": "search", "arguments": JSON}}, result=FOUND)}],
        TURNS,
    ),
    "results beside the calls": (
        [{"metadata": {"tools": json.dumps([TOOL])}, "steps": [
            {"type": "human", "text": ASKED}, {"type": "ai", "text": "", "calls": PAIR},
            {"type": "ai", "text": REPLY}]}],
        TWO_CALLS,
    ),
    "a result beside the call, without an id": (
        [{"tools": {"search": {"description": "Searches.", "parameters": SCHEMA}}, "steps": [
            {"type": "human", "text": ASKED},
            {"type": "ai", "text": "", "step": {"fn": "search", "args": ARGUMENTS,
                                                "result": FOUND}},
            {"type": "ai", "text": REPLY}]}],
        TURNS,
    ),
    "results in a list of the answer": (
        [{"tools": [TOOL], "log": [
            {"role": "user", "text": ASKED},
            {"role": "ai", "text": "",
             "invocations": [{"ref": "r8", "method": "search", "kwargs": ARGUMENTS},
                             {"ref": "r9", "method": "search", "kwargs": {"q": "dogs"}}],
             "came_back": [{"ref": "r9", "body": DOGS}, {"ref": "r8", "body": FOUND}]},
            {"role": "ai", "text": REPLY}]}],
        [*TWO_CALLS[:2], ("tool", DOGS, FOUND), ANSWER],
    ),
    "a result that is an error": (
        [{"tools": [TOOL], "log": chat(
            "role", ("user", "ai", "tool"), "text",
            call={"calls": [{"id": "r9", "name": "search", "args": ARGUMENTS}]},
            result={"id": "r9", "output": None, "error": "timed out"})}],
        [QUESTION, CALL, ("tool", "timed out"), ANSWER],
    ),
    "prompt, trajectory and reward": (
        [{"prompt": ASKED, "reward": 1.0, "trajectory": [
            {"thought": "I look.", "action": {"name": "search", "arguments": ARGUMENTS},
             "observation": FOUND},
            {"thought": "I know.", "answer": REPLY}]}],
        [QUESTION, ("assistant", "I look.", ("search", "cats")), RESULT,
         ("assistant", "I know.", REPLY)],
    ),
    "prompt and trajectory with roles": (
        [{"prompt": ASKED, "tools": [TOOL], "trajectory": chat(
            "role", ("user", "assistant", "tool"), "content", call=OWN, result=FOUND)[1:]}],
        TURNS,
    ),
    "prompt of messages": (
        [{"prompt": [{"role": "system", "content": "Be good."}, {"role": "user", "content": ASKED}],
          "trajectory": chat("role", ("user", "assistant", "tool"), "content", call=OWN,
                             result=FOUND)[1:]}],
        [("system", "Be good."), *TURNS],
    ),
    "action and its input": (
        [{"task": ASKED, "score": 1, "steps": [
            {"action": "search", "action_input": ARGUMENTS, "observation": FOUND},
            {"final_answer": REPLY}]}],
        TURNS,
    ),
    "one file is one conversation": (chat("role", HBO, "text", call=OWN, result=FOUND), TURNS),
    "records of sessions": (
        [{"ts": at, "session_id": "z", "event": event} for at, event in enumerate(
            chat("role", ("user", "assistant", "tool"), "content",
                 call={"tool": {"name": "search", "args": ARGUMENTS}}, result=FOUND))],
        TURNS,
    ),
    "typed parts": (
        [{"tools": [TOOL], "log": [
            {"from": "human", "parts": ASKED},
            {"from": "bot", "parts": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "search", "input": ARGUMENTS}]},
            {"from": "human", "parts": [
                {"type": "tool_result", "tool_use_id": "t1", "content": FOUND}]},
            {"from": "bot", "parts": [{"type": "text", "text": REPLY}]}]}],
        [QUESTION, ("assistant", "I look.", ("search", "cats")), RESULT, ANSWER],
    ),
    "ids beside the call": (
        [{"log": [
            {"kind": "question", "text": ASKED},
            {"kind": "action", "text": "I look.", "action": {"fn": "search", "params": JSON},
             "uid": "u1"},
            {"kind": "outcome", "text": FOUND, "for": "u1"}, {"kind": "reply", "text": REPLY}]}],
        [QUESTION, ("assistant", "I look.", ("search", "cats")), RESULT, ANSWER],
    ),
    "calls of functions": (
        [{"funcs": [FUNCTION], "conv": chat(
            "who", ("user", "ai", "tool"), "msg",
            call={"tool_calls": [{"id": "a", "type": "function",
                                  "function": {"name": "search", "arguments": JSON}}]},
            result={"call": "a", "msg": FOUND})}],
        TURNS,
    ),
    "roles that are true or false": (
        [{"log": [{"is_user": True, "text": ASKED}, {"is_user": False, "text": REPLY}]}],
        [QUESTION, ANSWER],
    ),
    "a key of the text for each role": (
        [{"log": [{"role": "user", "query": ASKED}, {"role": "ai", "reply": REPLY}]}],
        [QUESTION, ANSWER],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_the_proposal_reads_what_the_log_holds(tmp_path, name):
    rows, expected = SHAPES[name]
    source = written(tmp_path, rows)
    text = suggest(source)
    assert "Not read" not in text
    path = tmp_path / "mapping.yaml"
    path.write_text(text)
    spec = load_mapping(path)
    check_mapping("mapping.yaml", spec, [source])
    events = read_counted(mapped_reader(spec), source)
    assert contents(events) == [expected]
    (conversation,) = events
    assert not conversation.changes
    assert (conversation.tools is not None) == ("TOOL" in text or "tools:" in text)
    results = [part for one in conversation.messages for part in one.parts
               if isinstance(part, ToolResult) and part.call_id is not None]  # fmt: skip
    calls = {part.id for one in conversation.messages for part in one.parts
             if isinstance(part, ToolCall)}  # fmt: skip
    assert {result.call_id for result in results} <= calls


def test_the_proposals_build(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inputs = []
    for number, (rows, _) in enumerate(SHAPES.values()):
        source = written(tmp_path, rows, f"log{number}.jsonl")
        (tmp_path / f"map{number}.yaml").write_text(suggest(source))
        inputs.append({"path": source.name, "mapping": f"map{number}.yaml"})
    built = build_dataset([], "out", config={"inputs": inputs}, workers=1)
    ledger = built.ledger
    assert not ledger.conversations_rejected
    assert ledger.samples + ledger.duplicates == len(SHAPES)  # many hold the same conversation
    assert {*ledger.calls_dropped} == {"duplicate"}


def test_the_examples_proposal_is_the_example(tmp_path):
    source = Source("log", ROOT / "configs" / "mappings" / "agent-steps.jsonl")
    proposed = yaml.safe_load(suggest(source))
    example = yaml.safe_load((ROOT / "configs" / "mappings" / "agent-steps.yaml").read_text())
    # The example reads the system prompt once for the conversation, the proposal as a message.
    assert example["conversation"].pop("system") == "setup.prompt"
    assert example["message"]["roles"].pop("setup") == "skip"
    assert proposed["message"]["roles"].pop("setup") == "system"
    assert proposed["message"].pop("text") == f"{example['message'].pop('text')} || setup.prompt"
    assert proposed == example


def test_what_is_open_is_one_line(tmp_path):
    rows = [{"log": [{"role": "patient", "text": "It hurts."}, {"role": "doctor", "text": "Here?"},
                     {"role": "nurse", "text": "Well done."}]}]  # fmt: skip
    (line,) = [one for one in suggest(written(tmp_path, rows)).splitlines() if "Decide" in one]
    assert line.startswith("# Decide: message.roles: 'patient', 'doctor', 'nurse': which of ")


def test_messages_without_a_role_are_no_fault(tmp_path):
    roles = [{"role": "user", "text": ASKED}, {"role": "ai", "text": REPLY}]
    log = [{"note": "x"}, *roles, {"role": "", "text": "?"}]
    assert "role: role" in suggest(written(tmp_path, [{"id": 1, "log": log}]))


def test_results_without_calls_need_a_decision(tmp_path):
    rows = [{"log": chat("role", HBO, "text", call={"code": "search()"}, result=FOUND)}]
    assert "# Decide: message.calls: " in suggest(written(tmp_path, rows))


def test_other_text_is_named(tmp_path):
    rows, _ = SHAPES["prompt and trajectory with roles"]
    rows = [{**rows[0], "remark": "shown to the model too"}]
    assert "# Not read, name it if the model saw it: remark" in suggest(written(tmp_path, rows))


def test_definitions_are_not_calls(tmp_path):
    rows = [{"prompt": ASKED, "tools": [TOOL], "response": REPLY}]
    proposed = yaml.safe_load(suggest(written(tmp_path, rows)))
    assert proposed["conversation"]["tools"] == "tools"
    assert "calls" not in proposed["message"]


@pytest.fixture
def unread(tmp_path):
    """Returns the changes of a conversation that a mapping without calls reads."""

    def changes(message, **more):
        rows, _ = SHAPES["setup, human, bot, observation"]
        rows = [replace_last(rows[0], message) | more]
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
        ("user", ASKED), ("assistant", "I look."), ("status", text), (after, FOUND))]  # fmt: skip
    rows[1] |= {"call": {"name": "search", "arguments": ARGUMENTS}}
    roles = {"status": "skip", "answer": "assistant"}
    path = tmp_path / "mapping.yaml"
    path.write_text(yaml.safe_dump({
        "conversation": {"id": "id"},
        "message": {"role": "kind", "roles": roles, "text": "text", "calls": "call"}}))  # fmt: skip
    (event,) = read_counted(mapped_reader(load_mapping(path)), written(tmp_path, rows))
    assert dict(event.changes) == expected


def test_the_summary_names_what_a_mapping_leaves_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows, _ = SHAPES["setup, human, bot, observation"]
    written(tmp_path, rows)
    message = {"role": "who", "roles": {"setup": "system"}, "text": "words"}
    mapping = {"conversation": {"messages": "dialog"}, "message": message}
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(mapping))
    config = {"inputs": [{"path": "log.jsonl", "mapping": "m.yaml"}]}
    built = build_dataset([], "out", config=config, workers=1)
    (advice,) = [item for item in built.advice if "mapping" in item.finding]
    assert advice.effect == 1
    assert "unmapped_call (1), unmapped_key:action (1), unmapped_key:toolbox (1)" in advice.finding


def test_keys_without_a_conversation_are_named():
    with pytest.raises(UsageError, match=r"no conversation found in its keys \(x, y\): docs/"):
        suggest_mapping([{"x": 1, "y": "two"}])
