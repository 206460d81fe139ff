"""Claude Code: answers broken off, cut by a fork or kept by a compaction are not targets."""

import copy

import pytest
from support.logs.claude_code import (
    SessionLog,
    contexts,
    conversations,
    text,
    tool,
    without_requests,
)

from builder.conversation import Context, Unparsed

RESUME = "Your response above was cut off mid-stream. Resume directly from where it stops."
ERROR = "API Error: Server error mid-response. The response above may be incomplete."


def answers(conversation):
    """Returns (text of the first part, why it is not a target) of each assistant message."""
    found = []
    for message in conversation.messages:
        if message.role == "assistant":
            unread = [part.code for part in message.parts if isinstance(part, Unparsed)]
            code = message.untrained or next(iter(unread), None)
            found.append((getattr(message.parts[0], "text", "*"), code))
    return found


def stopped(lines, reason):
    for line in lines:
        if line["type"] == "assistant":
            line["message"]["stop_reason"] = reason
    return lines


def test_an_answer_that_broke_off_before_the_model_was_asked_to_resume():
    log = SessionLog()
    log.ask("One?", "Half an")
    log.user(RESUME, isMeta=True)
    log.answer(text("answer."))
    (found,) = conversations(log.lines)
    assert answers(found) == [("Half an", "truncated_answer"), ("answer.", None)]
    assert found.context == Context("proven")


def test_an_answer_that_an_error_ended_after_its_first_call():
    log = SessionLog()
    log.user("One?")
    call = log.call()
    log.answer(text("Two at once."), call)
    log.note("assistant", ERROR, isApiErrorMessage=True)
    log.result(call, "one")
    log.lines[-1]["parentUuid"] = log.lines[-2]["parentUuid"]
    log.answer(text("One."))
    (found,) = conversations(log.lines)
    assert answers(found) == [("Two at once.", "truncated_answer"), ("One.", None)]
    assert found.context == Context("proven")


def test_an_answer_that_an_error_ended_after_its_first_call_had_a_result():
    """With a slow stream, a call runs before the answer breaks off."""
    log = SessionLog()
    log.user("One?")
    call = log.call()
    log.answer(text("Two at once."), call)
    log.result(call, "one")
    log.attachment("A hook says so.")
    log.note("assistant", ERROR, isApiErrorMessage=True)
    log.sent("system", text("A hook says so."))
    log.answer(text("One."))
    (found,) = conversations(log.lines)
    assert answers(found) == [("Two at once.", "truncated_answer"), ("One.", None)]
    assert found.context == Context("proven")


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "model_context_window_exceeded"])
def test_a_stop_reason_other_than_the_end_truncates_the_answer(reason):
    log = SessionLog()
    log.ask("One?", "I cannot")
    stopped(log.lines, reason)
    log.ask("Two?", "2.")
    (found,) = conversations(log.lines)
    assert answers(found) == [("I cannot", "truncated_answer"), ("2.", None)]


def test_an_error_after_a_prompt_does_not_truncate_the_answer_before_it():
    log = SessionLog()
    log.ask("One?", "1.")
    log.user("Two?")
    log.note("assistant", ERROR, isApiErrorMessage=True)
    log.answer(text("2."))
    (found,) = conversations(log.lines)
    assert answers(found) == [("1.", None), ("2.", None)]


def sub_agent(*, version, note=None, going_on=False):
    """Returns the lines of a sub-agent whose lines have no stop reason."""
    log = SessionLog()
    log.ask("Count.", "I count")
    if note:
        log.user(note, isMeta=True)
    elif not going_on:
        log.user("Again.")
    log.answer(text("three."))
    about = {"version": version, "isSidechain": True, "agentId": "a1"}
    return [line | about for line in without_requests(stopped(log.lines, None))]


@pytest.mark.parametrize(
    ("version", "codes"),
    [
        ("2.1.290", [None, None]),
        ("2.1.260", [None, None]),
        ("2.1.310", ["truncated_answer", "truncated_answer"]),
    ],
)
def test_sub_agents_have_stop_reasons_in_later_versions_only(version, codes):
    (found,) = conversations(sub_agent(version=version))
    assert [code for _, code in answers(found)] == codes


@pytest.mark.parametrize(
    "cause", [{"note": RESUME}, {"note": "Output token limit hit. Go on."}, {"going_on": True}]
)
def test_an_answer_of_a_sub_agent_that_was_asked_to_go_on(cause):
    (found,) = conversations(sub_agent(version="2.1.290", **cause))
    assert answers(found) == [("I count", "truncated_answer"), ("three.", None)]


@pytest.mark.parametrize("words", ["API Error: 529 Overloaded.", "Your response above was good."])
def test_other_notes_do_not_end_an_answer(words):
    log = SessionLog()
    log.ask("One?", "1.")
    log.note("assistant", words, isApiErrorMessage=True)
    log.ask("Two?", "2.")
    (found,) = conversations(log.lines)
    assert answers(found) == [("1.", None), ("2.", None)]


def test_a_fork_in_the_middle_of_a_turn_contains_the_turn_without_its_calls():
    log = SessionLog()
    log.ask("One?", "I look.")
    stopped(log.lines, "tool_use")
    log.ask("Two?", "2.")
    (found,) = conversations(log.lines)
    assert answers(found) == [("I look.", "stripped"), ("2.", None)]


def resumed_in_a_turn():
    """Returns a session that was resumed after the text of a turn, without the turn's call."""
    log = SessionLog()
    log.user("One?")
    call = log.call()
    log.answer(text("I look."), call)
    begun = next(line for line in log.lines if line["type"] == "assistant")
    log.result(call, "one")
    log.answer(text("1."))
    log.history = [*log.history[:1], {"role": "assistant", "content": [text("I look.")]}]
    log.user("Two?")
    log.lines[-1]["parentUuid"] = begun["uuid"]
    log.answer(text("2."))
    return log.lines


def test_a_session_resumed_in_the_middle_of_a_turn():
    kept, left = conversations(resumed_in_a_turn())
    assert answers(kept) == [("I look.", "stripped"), ("2.", None)]
    assert contexts(kept) == [Context("proven")]
    assert left.problems[0].code == "rewound"
    assert [name for name, _ in answers(left)] == ["I look.", "1."]


def test_a_session_resumed_in_the_middle_of_a_turn_that_logs_no_requests():
    kept, _ = conversations(without_requests(resumed_in_a_turn()))
    assert answers(kept) == [("I look.", "stripped"), ("2.", None)]
    assert [message.role for message in kept.messages] == ["user", "assistant"] * 2


def compacted(log):
    """Returns the session from its compaction on, as in a fork of it; the last answer was kept."""
    answer = {**copy.deepcopy(log.lines[-1]), "uuid": "kept", "requestRef": "earlier"}
    answer["message"]["id"] = "msg_kept"
    place = {"sessionId": answer["sessionId"], "isSidechain": False}
    segment = {"anchorUuid": "s1", "uuids": [answer["uuid"]]}
    about = {"trigger": "manual", "preservedMessages": segment}
    boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": about}
    later = SessionLog()
    later.lines.append({**place, **boundary, "uuid": "b1", "parentUuid": None})
    summary = "This session is being continued from a previous conversation."
    later.user(summary, isCompactSummary=True)
    later.lines[-1]["uuid"] = "s1"
    later.lines.append({**answer, "parentUuid": "s1"})
    later.history.append(log.history[-1])
    later.user("Two?")
    later.answer(text("2."))
    return later


def test_an_answer_that_a_compaction_kept_is_no_target_after_it():
    log = SessionLog()
    log.ask("One?", "1.")
    (found,) = conversations(compacted(log).lines)
    assert answers(found) == [("1.", "repeat"), ("2.", None)]
    assert contexts(found) == [Context("proven")]


def rendered(log):
    """Returns the lines of a version that renders attachments, but names no requests."""
    snapshot = {
        "type": "prompt_snapshot",
        "systemPrompt": ["You help."],
        "systemTurns": True,
        "tools": [],
    }
    lines = without_requests(log.lines)
    lines[0]["parentUuid"] = "snap"
    attached = {"type": "attachment", "attachment": snapshot, "uuid": "snap", "parentUuid": None}
    return [{**attached, "sessionId": lines[0]["sessionId"]}, *lines]


def test_the_output_of_a_hook_of_a_call_is_placed_after_the_result():
    log = SessionLog()
    log.user("One?")
    call = log.call()
    log.answer(call)
    called = log.lines[-1]["uuid"]
    log.attachment("The hook looked.")
    log.result(call, "one")
    log.lines[-1]["parentUuid"] = called
    log.answer(text("1."))
    (found,) = conversations(rendered(log))
    roles = [message.role for message in found.messages]
    assert roles == ["system", "user", "assistant", "tool", "system", "assistant"]
    assert found.messages[4].parts[0].text == "The hook looked."
    assert contexts(found) == [Context("rendered")] * 2


def test_attachments_of_another_branch_stay_there():
    log = SessionLog()
    log.ask("One?", "1.")
    answer = log.lines[-1]["uuid"]
    log.attachment("Before the question.")
    log.ask("Two?", "2.")
    log.user("Three?")
    log.lines[-1]["parentUuid"] = answer
    log.answer(text("3."))
    kept, _ = conversations(rendered(log))
    assert "Before the question." not in str(kept.messages)


def test_separately_logged_output_of_a_command_is_in_the_request():
    log = SessionLog()
    words = "<local-command-stdout>done</local-command-stdout>"
    place = {"uuid": "c1", "parentUuid": None, "sessionId": "s", "isSidechain": False}
    line = {"type": "system", "subtype": "local_command", "content": words, "version": "2.1.330"}
    log.lines.append({**place, **line})
    log.user("Two?")
    log.lines[-1]["sessionId"] = "s"
    log.answer(text("2."))
    (found,) = conversations(rendered(log))
    assert words in found.messages[1].parts[0].text
    assert [message.role for message in found.messages] == ["system", "user", "assistant"]


def test_a_mentioned_image_that_is_not_rendered_is_missing():
    log = SessionLog()
    log.user("What is in @dot.png?")
    log.attachment("A file.")
    log.lines[-1] |= {"attachment": {"type": "file", "filename": "dot.png"}, "rendered": None}
    log.answer(text("A dot."))
    (found,) = conversations(rendered(log))
    assert contexts(found) == [Context("partial", ("media", "reminders"))]


def test_the_plan_is_not_sent_back():
    log = SessionLog()
    log.user("Plan.")
    log.attachment("Plan mode is active.")
    call = {**log.call("ExitPlanMode"), "input": {"plan": "One line."}}
    log.answer(call)
    log.result(call, "Approved.")
    log.answer(text("Done."))
    (found,) = conversations(rendered(log))
    assert contexts(found) == [Context("rendered"), Context("partial", ("history",))]


def test_another_model_may_be_sent_the_history_in_another_form():
    log = SessionLog()
    for number in "12":
        log.user(f"{number}?")
        log.attachment("Mind the style.")
        log.answer(text(f"{number}."))
    log.lines[-1]["message"]["model"] = "model-y"
    (found,) = conversations(rendered(log))
    assert contexts(found) == [Context("rendered"), Context("partial", ("history",))]


def snapshot(log, *names):
    """Adds a snapshot with tools of these names, as a process writes it after an answer."""
    log.attachment("")
    about = {"type": "prompt_snapshot", "systemPrompt": ["You help."], "systemTurns": True}
    tools = [{"name": name, "schema": tool(name, "")} for name in names]
    log.lines[-1] |= {"attachment": {**about, "tools": tools}, "rendered": None}


def two_processes(*later):
    """Returns a resumed session; `later`: the tools in a snapshot of the second process."""
    log = SessionLog()
    log.user("One?")
    log.attachment("Mind the style.")
    log.answer(text("1."))
    snapshot(log, "Read")
    log.lines.append({"type": "cost-state", "sessionId": log.lines[0]["sessionId"]})
    log.ask("Two?", "2.")
    if later:
        snapshot(log, *later)
    return without_requests(log.lines)


def test_tools_that_a_resumed_session_may_have_lost_are_missing():
    (found,) = conversations(two_processes())
    assert contexts(found) == [Context("rendered"), Context("partial", ("tools",))]


def test_a_snapshot_after_the_first_answer_of_a_process_has_the_tools_of_its_request():
    (found,) = conversations(two_processes("Read", "Write"))
    assert [one["name"] for one in found.tools] == ["Read", "Write"]
    assert contexts(found) == [Context("partial", ("tools",)), Context("rendered")]
    assert found.changes["tools_added_later"] == 1


def test_tools_missing_from_a_later_snapshot_start_a_conversation():
    one, other = conversations(two_processes("Write"))
    assert [tools["name"] for tools in (*one.tools, *other.tools)] == ["Read", "Write"]
    assert answers(other) == [("1.", "repeat"), ("2.", None)]


@pytest.mark.parametrize(("version", "is_cut"), [("2.1.42", False), ("2.1.260", True)])
def test_an_answer_without_a_stop_reason_broke_off(version, is_cut):
    log = SessionLog()
    log.ask("One?", "I look.")
    for line in log.lines:
        line["version"] = version
        line.get("message", {}).pop("stop_reason", None)
    (found,) = conversations(rendered(log))
    faults = [part.code for part in found.messages[-1].parts if isinstance(part, Unparsed)]
    assert faults == ["truncated_answer"] * is_cut


def test_an_answer_before_the_output_limit_error_is_truncated():
    log = SessionLog()
    log.ask("One?", "A long answer that")
    note = "API Error: Claude's response exceeded the 32000 output token maximum. To configure it"
    log.answer(text(note))
    log.lines[-1] |= {"isApiErrorMessage": True}
    log.answer(text("ends here."))
    found = [
        part.code
        for one in conversations(rendered(log))
        for message in one.messages
        for part in message.parts
        if isinstance(part, Unparsed)
    ]
    assert found == ["truncated_answer"]
