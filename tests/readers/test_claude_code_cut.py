"""Claude Code: answers that broke off, that a fork cut or a compaction kept, are no targets."""

import copy

import pytest
from session_logs import SessionLog, contexts, conversations, text

from builder.conversation import Context, Unparsed

RESUME = "Your response above was cut off mid-stream. Resume directly from where it stops."
ERROR = "API Error: Server error mid-response. The response above may be incomplete."


def answers(conversation):
    """(text of the first part, why it is no target) of each assistant message."""
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
    log.user("One?")
    log.answer(text("Half an"))
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


@pytest.mark.parametrize("words", ["API Error: 529 Overloaded.", "Your response above was good."])
def test_other_notes_end_no_answer(words):
    log = SessionLog()
    log.user("One?")
    log.answer(text("1."))
    log.note("assistant", words, isApiErrorMessage=True)
    log.user("Two?")
    log.answer(text("2."))
    (found,) = conversations(log.lines)
    assert answers(found) == [("1.", None), ("2.", None)]


def test_a_fork_in_the_middle_of_a_turn_holds_a_turn_without_its_calls():
    log = SessionLog()
    log.user("One?")
    log.answer(text("I look."))
    stopped(log.lines, "tool_use")
    log.user("Two?")
    log.answer(text("2."))
    (found,) = conversations(log.lines)
    assert answers(found) == [("I look.", "stripped"), ("2.", None)]


def test_a_session_resumed_in_the_middle_of_a_turn():
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
    kept, left = conversations(log.lines)
    assert answers(kept) == [("I look.", "stripped"), ("2.", None)]
    assert contexts(kept) == [Context("proven")]
    assert left.problems[0].code == "rewound"
    assert [name for name, _ in answers(left)] == ["I look.", "1."]


def test_a_session_resumed_in_the_middle_of_a_turn_that_logs_no_requests():
    log = SessionLog()
    log.user("One?")
    call = log.call()
    log.answer(text("I look."), call)
    begun = next(line for line in log.lines if line["type"] == "assistant")
    log.result(call, "one")
    log.answer(text("1."))
    log.user("Two?")
    log.lines[-1]["parentUuid"] = begun["uuid"]
    log.answer(text("2."))
    lines = [line for line in log.lines if not line["type"].startswith("api-")]
    kept, _ = conversations([{**line, "requestRef": None} for line in lines])
    assert answers(kept) == [("I look.", "stripped"), ("2.", None)]
    assert [message.role for message in kept.messages] == ["user", "assistant"] * 2


def compacted(log):
    """The session from its compaction on, as a fork of it holds it; the last answer was kept."""
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
    log.user("One?")
    log.answer(text("1."))
    (found,) = conversations(compacted(log).lines)
    assert answers(found) == [("1.", "repeat"), ("2.", None)]
    assert contexts(found) == [Context("proven")]


def test_another_model_may_be_sent_the_history_in_another_form():
    log = SessionLog()
    for number in "12":
        log.user(f"{number}?")
        log.attachment("Mind the style.")
        log.answer(text(f"{number}."))
    log.lines[-1]["message"]["model"] = "model-y"
    lines = [
        {key: value for key, value in line.items() if key != "requestRef"}
        for line in log.lines
        if not line["type"].startswith("api-")
    ]
    snapshot = {"type": "prompt_snapshot", "systemPrompt": ["You help."], "tools": []}
    attached = {"type": "attachment", "attachment": snapshot, "uuid": "snap", "parentUuid": None}
    lines[0]["parentUuid"] = "snap"
    (found,) = conversations([{**attached, "sessionId": lines[0]["sessionId"]}, *lines])
    assert contexts(found) == [Context("rendered"), Context("partial", ("history",))]
