"""Claude Code's requests: rebuilt from digests, and the handling of edited logs."""

import copy
import json

import pytest
from support.logs.claude_code import (
    SESSION,
    SessionLog,
    contexts,
    conversations,
    digest,
    plain_session,
    text,
    tool,
    without_requests,
)

from builder.conversation import Context, Conversation, Ignored, ToolCall
from builder.readers import recognise
from builder.readers.agents.claude_code.reader import READER
from builder.readers.agents.gemini_cli import READER as GEMINI
from builder.sources.source import Source


def spoken(conversation):
    """Returns (role, text) of each message."""
    return [
        (message.role, "|".join(getattr(part, "text", "*") for part in message.parts))
        for message in conversation.messages
    ]


def test_a_request_that_agrees_with_its_digests_is_proven():
    (found,) = conversations(plain_session().lines)
    assert contexts(found) == [Context("proven"), Context("proven")]
    reminder = "<system-reminder>\nThe project uses tabs.\n</system-reminder>\n"
    assert spoken(found) == [
        ("system", "You help. Today is 2026-01-01."),
        ("user", f"{reminder}|What is in a.txt?"),
        ("system", "Be brief."),
        ("assistant", "I look.|*"),
        ("tool", "*"),
        ("system", "The file is old."),
        ("assistant", "Two lines."),
    ]
    assert [part.harness for part in found.messages[1].parts] == [True, False]
    assert found.tools == (tool("Read", "Reads."),)


def test_the_lines_alone_give_the_same_messages():
    """As in versions that render attachments, but name no requests."""
    log = plain_session()
    lines = copy.deepcopy(without_requests(log.lines))
    snapshot = {
        "type": "prompt_snapshot",
        "systemPrompt": ["You help.", "Today is 2026-01-01."],
        "cliPrefix": "You are a toy.",
        "systemTurns": True,
        "tools": [{"name": "Read", "schema": tool("Read", "Reads.")}],
    }
    at = {"sessionId": lines[0]["sessionId"], "uuid": "snap", "parentUuid": lines[2]["uuid"]}
    lines.insert(3, {**at, "type": "attachment", "attachment": snapshot})
    lines[4]["parentUuid"] = "snap"
    (found,) = conversations(lines)
    (whole,) = conversations(log.lines)
    assert spoken(found)[1:] == spoken(whole)[1:]
    assert spoken(found)[0] == ("system", "You are a toy.|You help.\n\nToday is 2026-01-01.")
    assert contexts(found) == [Context("rendered"), Context("rendered")]


def edit_reminder(lines):
    blob = next(line for line in lines if line["type"] == "api-request-blob")
    blob["message"]["content"][0]["text"] = "<system-reminder>\nUse spaces.\n</system-reminder>\n"


def edit_prompt(lines):
    blob = next(line for line in lines if line["type"] == "api-request-blob")
    blob["message"]["content"][1]["text"] = "What is in b.txt?"


def shorten_description(lines):
    shape = next(line for line in lines if line["type"] == "api-request-shape")
    shape["shape"]["tools"][0]["description"] = "R"


def edit_system(lines):
    shape = next(line for line in lines if line["type"] == "api-request-shape")
    shape["shape"]["system"][0]["text"] += " Be kind."


def remove_late_message(lines):
    blobs = [line for line in lines if line["type"] == "api-request-blob"]
    lines.remove(blobs[1])


def remove_message_and_its_digest(lines):
    blobs = [line for line in lines if line["type"] == "api-request-blob"]
    lines.remove(blobs[1])
    for line in lines:
        if line["type"] == "api-request" and blobs[1]["hash"] in line["tail"]:
            line["tail"].remove(blobs[1]["hash"])
        elif line["type"] == "api-request":
            line["keep"] -= 1


def edit_parameters(lines):
    for line in lines:
        if line["type"] == "api-request":
            line["params"]["model"] = "model-y"


@pytest.mark.parametrize(
    "edit",
    [
        edit_reminder,
        edit_prompt,
        shorten_description,
        edit_system,
        remove_late_message,
        remove_message_and_its_digest,
        edit_parameters,
    ],
)
def test_an_edit_of_the_first_request_is_found(edit):
    lines = copy.deepcopy(plain_session().lines)
    edit(lines)
    found = [context for one in conversations(lines) for context in contexts(one)]
    assert [context.level for context in found] == ["partial", "partial"]
    assert all("digest" in context.missing for context in found)


def test_an_edit_of_a_result_is_found_in_the_turns_after_it():
    lines = copy.deepcopy(plain_session().lines)
    result = next(line for line in lines if "tool_result" in json.dumps(line.get("message", "")))
    result["message"]["content"][0]["content"] = "one\nthree"
    (found,) = conversations(lines)
    first, second = contexts(found)
    assert first == Context("proven")
    assert second.level == "partial"
    assert "digest" in second.missing


def test_an_edit_of_an_answer_is_found_in_the_turns_after_it():
    lines = copy.deepcopy(plain_session().lines)
    answer = next(line for line in lines if line["type"] == "assistant")
    answer["message"]["content"][0]["text"] = "I think."
    (found,) = conversations(lines)
    assert [context.level for context in contexts(found)] == ["proven", "partial"]


def two_prompts(change):
    """Writes two questions with answers; `change` is applied between them."""
    log = SessionLog()
    log.ask("One?", "1.")
    change(log)
    log.ask("Two?", "2.")
    return conversations(log.lines)


def test_added_tools_start_no_new_conversation():
    def change(log):
        log.shape["tools"].append(tool("Write", "Writes."))

    (found,) = two_prompts(change)
    assert found.changes["tools_added_later"] == 1
    assert [t["name"] for t in found.tools] == ["Read", "Write"]
    assert contexts(found) == [Context("partial", ("tools",)), Context("proven")]


def test_a_changing_date_starts_no_new_conversation():
    def change(log):
        log.shape["system"][0]["text"] = "You help. Today is 2026-01-02."

    (found,) = two_prompts(change)
    assert found.changes["system_date_moved"] == 1
    assert spoken(found)[0] == ("system", "You help. Today is 2026-01-02.")


@pytest.mark.parametrize("change", ["tool", "system", "history"])
def test_other_changes_start_a_new_conversation(change):
    def make(log):
        if change == "tool":
            log.shape["tools"][0] = tool("Read", "Reads all.")
        elif change == "system":
            log.shape["system"][0]["text"] = "You do not help."
        else:
            log.history[0] = None
            del log.history[0]
            log.sent("user", text("One, shortened?"))
            log.history.insert(0, log.history.pop())

    first, second = two_prompts(make)
    assert contexts(first) == contexts(second) == [Context("proven")]
    untrained = [m.untrained for m in second.messages if m.role == "assistant"]
    assert untrained == ["repeat", None]


def test_equal_answers_are_distinguished():
    log = SessionLog()
    for question in ("One?", "Again?", "Again?"):
        log.ask(question, "1.")
    (found,) = conversations(log.lines)
    assert contexts(found) == [Context("proven")] * 3


def test_a_placeholder_instead_of_an_answer_is_not_a_target():
    log = SessionLog()
    log.user("One?")
    log.sent("assistant", text("No response requested."))
    log.ask("Two?", "2.")
    (found,) = conversations(log.lines)
    untrained = [m.untrained for m in found.messages if m.role == "assistant"]
    assert untrained == ["inserted", None]


def test_a_warm_up_ping_is_no_target():
    log = SessionLog()
    log.ask("Warmup", "I am ready.")
    (found,) = conversations(log.lines)
    assert found.messages[-1].untrained == "warmup"


def test_a_sub_agents_prompt_is_found_in_the_parents_call(tmp_path):
    parent = SessionLog()
    call = {"type": "tool_use", "id": "toolu_9", "name": "Task", "input": {"prompt": "Count it."}}
    parent.user("Count.")
    parent.answer(call)
    parent.result(call, "3")
    parent.lines[-1]["toolUseResult"] = {"agentId": "a1b2c3d4"}
    session = parent.lines[0]["sessionId"]
    (tmp_path / f"{session}.jsonl").write_bytes(parent.data())
    answer = copy.deepcopy(next(x for x in parent.lines if x["type"] == "assistant"))
    answer |= {"isSidechain": True, "agentId": "a1b2c3d4", "parentUuid": None, "uuid": "s1"}
    answer["message"]["content"] = [text("Three.")]
    del answer["requestRef"]
    path = tmp_path / "agent-a1b2c3d4.jsonl"
    path.write_text(json.dumps(answer) + "\n")
    (found,) = [e for e in READER.read(Source(path.name, path)) if isinstance(e, Conversation)]
    assert spoken(found) == [("user", "Count it."), ("assistant", "Three.")]
    assert found.changes["parent_prompt"] == 1


@pytest.mark.parametrize(
    "name",
    [
        "p/s/subagents/agent-a1.meta.json",
        "p/s/tool-results/toolu_1.txt",
        "p/s/custom-title.json",
    ],
)
def test_files_next_to_a_session_are_known_by_name(name):
    source = Source(name, data=b'{"agentType": "general"}')
    assert list(recognise(source)) == ["claude-code"]
    assert list(READER.read(source)) == [Ignored("session_file", source.records_read)]


@pytest.mark.parametrize("name", ["tmp/h/.project_root", "tmp/h/tool-outputs/s/run_1.txt"])
def test_files_next_to_sessions_of_gemini_cli_are_known_by_name(name):
    source = Source(name, data=b"/home/me/project\n")
    assert list(recognise(source)) == ["gemini-cli"]
    assert list(GEMINI.read(source)) == [Ignored("session_file", source.records_read)]


def calling(name, logged, sent):
    """Returns a session with a call whose arguments in the log are not those of later requests."""
    log = SessionLog()
    log.user("Do it.")
    call = {"type": "tool_use", "id": "toolu_x", "name": name, "input": logged}
    log.answer(call)
    log.history[-1] = {"role": "assistant", "content": [{**call, "input": sent}]}
    if logged != sent:
        blob = {"type": "api-request-blob", "hash": digest(log.history[-1])}
        log.lines.append({**blob, "message": log.history[-1], "sessionId": SESSION})
    log.result(call, "Done.")
    log.answer(text("Done."))
    return log


def arguments(conversation):
    """Returns the arguments of the calls, and whether each turn is a target."""
    calls = [part.arguments for m in conversation.messages for part in m.parts if is_call(part)]
    return calls, [m.untrained for m in conversation.messages if m.role == "assistant"]


def is_call(part):
    return isinstance(part, ToolCall)


def test_arguments_that_the_program_added_are_removed():
    sent = {"to": "a1", "message": "Go on."}
    logged = {**sent, "recipient": "a1", "content": "Go on."}
    (found,) = conversations(calling("SendMessage", logged, sent).lines)
    assert arguments(found) == ([sent], [None, None])
    assert contexts(found) == [Context("proven")] * 2
    assert found.changes["arguments_added"] == 1


def test_arguments_that_differ_in_later_requests_stay_as_logged():
    log = calling("Read", {"path": "/w/a.txt"}, {"path": "a.txt"})
    first, *_ = conversations(log.lines)
    assert arguments(first) == ([{"path": "/w/a.txt"}], [None])


def test_a_plan_that_the_program_read_from_a_file_is_removed():
    """Versions before 2.1.260 log no path: there the model has written the file."""
    leaving = {"plan": "Change a line.", "planFilePath": "/h/.claude/plans/p.md"}
    (found,) = conversations(calling("ExitPlanMode", leaving, {}).lines)
    assert arguments(found) == ([{}], [None, None])
    assert contexts(found) == [Context("proven")] * 2


@pytest.mark.parametrize(
    ("path", "kept"), [("/h/.claude/plans/p.md", False), ("/w/docs/plans/p.md", True)]
)
def test_a_plan_is_kept_unless_the_model_wrote_it_to_the_plan_file(path, kept):
    log = SessionLog()
    log.user("Plan.")
    for name, given in (
        ("Write", {"file_path": path, "content": "Change a line."}),
        ("ExitPlanMode", {"plan": "Change a line."}),
    ):
        call = {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": given}
        log.answer(call)
        log.result(call, "Done.")
    log.answer(text("Done."))
    lines = [line | {"version": "2.1.42"} for line in without_requests(log.lines)]
    (found,) = conversations(lines)
    assert arguments(found)[0][1] == ({"plan": "Change a line."} if kept else {})
    last = [m for m in found.messages if m.role == "assistant"][-1].context or found.context
    assert ("history" in last.missing) is kept
