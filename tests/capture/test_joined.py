"""A folder with captures and session logs: each answer is trained once, as it was captured."""

import json
from dataclasses import replace

from support.runs.commands import run

from builder.conversation import Conversation, Message, Text, ToolCall, ToolResult
from builder.normalize.joined import JoinedAnswers, SeenAnswers, answers, joined
from builder.problem import Problem
from builder.readers import read_events, readers
from builder.sources.source import Source

CALL = "toolu_01A9bC3dE5fG7hJ9kL2mN4pQ"
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
BASH = {"name": "Bash", "description": "Runs.", "input_schema": SCHEMA}


def blocks(text):
    use = {"type": "tool_use", "id": CALL, "name": "Bash", "input": {"command": "ls"}}
    return [{"type": "text", "text": text}, use]


RESULT = [{"type": "tool_result", "tool_use_id": CALL, "content": "a.txt"}]
TURNS = [
    ("user", "List the files."),
    ("assistant", blocks("I look.")),
    ("user", RESULT),
    ("assistant", [{"type": "text", "text": "There is a.txt."}]),
]


def capture():
    messages = [{"role": role, "content": content} for role, content in TURNS]
    for at in (1, 3):
        request = {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": "You are an agent.",
                   "tools": [BASH], "messages": messages[:at]}  # fmt: skip
        answer = {"id": f"msg_{at}", "type": "message", "role": "assistant",
                  "model": "claude-sonnet-4-5", "content": messages[at]["content"],
                  "stop_reason": "end_turn", "usage": {}}  # fmt: skip
        yield {"request": {"url": "/v1/messages", "body": request},
               "response": {"status": 200, "body": answer}}  # fmt: skip


def session(turns=TURNS, name="s1"):
    parent = None
    for at, (role, content) in enumerate(turns):
        message = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg_{at}", "type": "message", "model": "claude-sonnet-4-5",
                        "stop_reason": "end_turn", "usage": {}}  # fmt: skip
        yield {"type": role, "uuid": f"{name}-{at}", "parentUuid": parent, "sessionId": name,
               "cwd": "/w", "version": "2.1.0", "isSidechain": False, "userType": "external",
               "timestamp": f"2026-01-01T00:00:0{at}.000Z", "message": message}  # fmt: skip
        parent = f"{name}-{at}"


def written(path, lines):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def built(tmp_path):
    ran = run("build", tmp_path / "logs", "-o", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    files = sorted((tmp_path / "out" / "meta").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_what_was_captured_is_not_trained_again_from_the_log(tmp_path):
    written(tmp_path / "logs" / "s1.jsonl", session())
    (alone,) = built(tmp_path)
    assert alone["format"] == "claude-code"
    written(tmp_path / "logs" / "capture-0001.jsonl", capture())
    (sample,) = built(tmp_path)
    assert sample["format"] == "anthropic-messages"
    assert sample["context"]["level"] == "proven"
    rejects = (tmp_path / "out" / "rejects.jsonl").read_text()
    assert json.loads(rejects)["code"] == "captured"
    assert built(tmp_path) == [sample], "also from the results of the earlier run"


def test_a_log_keeps_the_turns_that_no_capture_has(tmp_path):
    earlier = [("user", "Say hello."), ("assistant", [{"type": "text", "text": "Hello."}])]
    written(tmp_path / "logs" / "s1.jsonl", session([*earlier, *TURNS]))
    written(tmp_path / "logs" / "capture-0001.jsonl", capture())
    samples = {sample["format"]: sample for sample in built(tmp_path)}
    assert samples.keys() == {"claude-code", "anthropic-messages"}
    assert samples["claude-code"]["assistant_turns"] == 1
    assert samples["claude-code"]["changes"]["captured_turns"] == 2


def conversation(*messages, **other):
    return Conversation(id="c", record="r", messages=messages, **other)


ASKED = Message("user", (Text("go"),))
CALLED = Message("assistant", (Text("a"), ToolCall("ls", {}, CALL)))
DONE = Message("tool", (ToolResult((Text("x"),), CALL),))
SAID = Message("assistant", (Text("done"),))


def test_an_answer_is_known_by_its_calls_and_by_what_precedes_it():
    one, two = answers([ASKED, CALLED, DONE, SAID])
    assert (one.first, one.last, two.first, two.last) == (1, 1, 3, 3)
    assert len(one.keys) == 2
    other, _ = answers([Message("user", (Text("else"),)), CALLED, DONE, SAID])
    assert len({*one.keys} & {*other.keys}) == 1
    (alone,) = answers([ASKED, SAID])
    assert {*alone.keys}.isdisjoint(two.keys)


def test_captured_answers_have_the_id_of_their_response(tmp_path):
    written(tmp_path / "capture-0001.jsonl", capture())
    source = Source("capture-0001.jsonl", tmp_path / "capture-0001.jsonl")
    *_, found = read_events(readers()["anthropic-messages"], source)
    assert [one.response for one in found.messages if one.role == "assistant"] == ["msg_1", "msg_3"]


def test_the_id_of_the_response_is_used_first():
    one, other = "msg_01A9bC3dE5fG7hJ9kL2mN4pQ", "msg_01Zz8Yy7Xx6Ww5Vv4Uu3Tt2S"
    texts = [ASKED, SAID]
    capture, log, later = SeenAnswers(), SeenAnswers(), SeenAnswers()
    recorded = conversation(ASKED, replace(SAID, response=one), recorded=True)
    capture.take(recorded)
    log.take(conversation(ASKED, replace(SAID, turn=one), outcome={"reward": 1.0}))
    later.take(conversation(ASKED, replace(SAID, turn=other), outcome={"reward": 0.0}))
    found = joined([capture, log, later])
    assert found[0].applied_to(recorded).outcome == {"reward": 1.0}
    (known,) = answers([ASKED, replace(SAID, turn="row 3")])
    assert known.keys == next(answers(texts)).keys, "an id that counts names no response"


def test_ids_that_agents_extend_or_invent_are_no_obstacle():
    """gemini-cli writes `NAME__ID` and invents ids that the API did not give; Pi adds an item."""
    for name in (f"ls__{CALL}", f"{CALL}|fc_1", "ls-1795759845685-0a1b2c3d4e5f"):
        call = Message("assistant", (Text("a"), ToolCall("ls", {}, name)))
        found = answers([ASKED, call, DONE, SAID])
        given = answers([ASKED, CALLED, DONE, SAID])
        for one, other in zip(given, found, strict=True):
            assert {*one.keys} & {*other.keys}


def test_an_edited_prompt_does_not_hide_the_response():
    """A log shows the prompt without what the agent added: only the id is equal."""
    name = "chatcmpl-ee47ba6cd21249fbb7f7e0f8"
    sent = Message("user", (Text("go\n<context>now</context>"),))
    capture, log = SeenAnswers(), SeenAnswers()
    capture.take(conversation(sent, replace(SAID, response=name), recorded=True))
    logged = conversation(ASKED, replace(SAID, response=name))
    log.take(logged)
    assert joined([capture, log])[1].applied_to(logged).problems[0].code == "captured"


def test_outcomes_and_what_was_undone_come_from_the_log():
    capture, log, undone = SeenAnswers(), SeenAnswers(), SeenAnswers()
    recorded = conversation(ASKED, CALLED, DONE, SAID, recorded=True)
    capture.take(recorded)
    log.take(conversation(ASKED, CALLED, DONE, SAID, outcome={"reward": 1.0}))
    found = joined([capture, log])
    assert found[0].applied_to(recorded).outcome == {"reward": 1.0}
    assert found[1].applied_to(conversation(ASKED, CALLED)).problems[0].code == "captured"
    undone.take(conversation(ASKED, CALLED, problems=(Problem("rewound", "", "", 0),)))
    short = conversation(ASKED, CALLED, recorded=True)
    only = SeenAnswers()
    only.take(short)
    assert joined([only, undone])[0].applied_to(short).problems[0].code == "rewound"
    assert joined([log, undone]) == {}
    assert JoinedAnswers().applied_to(recorded) == recorded
