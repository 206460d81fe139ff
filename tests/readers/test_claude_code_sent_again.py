"""Claude Code's requests: digests of numbers, and turns that are sent again in another form."""

import pytest
from support.logs.claude_code import SESSION, SessionLog, contexts, conversations, digest, text
from test_claude_code import arguments, calling

from builder.conversation import Context, Reasoning, Text, ToolResult, Unparsed
from builder.readers.agents.claude_code.lines import mark_result
from builder.readers.agents.claude_code.requests import digest_text


@pytest.mark.parametrize(
    ("value", "written"),  # by JSON.stringify(JSON.parse(…)) of Node 20
    [
        (0.1, "0.1"), (123.456, "123.456"), (-0.0, "0"), (3.0, "3"), (10, "10"),
        ("number 1e-07", '"number 1e-07"'),
    ],
)  # fmt: skip
def test_whole_numbers_are_written_as_integers(value, written):
    assert digest_text({"b": [value], "a": None}) == f'{{"a":null,"b":[{written}]}}'


def test_a_turn_whose_thoughts_were_moved_is_the_same_turn():
    log = SessionLog()
    log.user("Do it.")
    thought = {"type": "thinking", "thinking": "First I look.", "signature": "s"}
    call = {"type": "tool_use", "id": "toolu_x", "name": "Read", "input": {"path": "a.txt"}}
    log.answer(text("I look."), thought, call)
    log.history[-1] = {"role": "assistant", "content": [thought, text("I look."), call]}
    blob = {"type": "api-request-blob", "hash": digest(log.history[-1])}
    log.lines.append({**blob, "message": log.history[-1], "sessionId": SESSION})
    log.result(call, "Done.")
    log.answer(text("Done."))
    (found,) = conversations(log.lines)
    answers = [message for message in found.messages if message.role == "assistant"]
    assert [message.untrained for message in answers] == [None, None]
    assert Reasoning("First I look.") in answers[0].parts
    assert contexts(found) == [Context("proven")] * 2


def test_a_plan_of_the_model_is_sent_back_empty_and_its_call_is_trained():
    (found,) = conversations(calling("ExitPlanMode", {"plan": "Change a line."}, {}).lines)
    assert arguments(found) == ([{"plan": "Change a line."}], [None, None])
    assert contexts(found) == [Context("proven"), Context("partial", ("history",))]


def test_tools_come_from_the_requests_shape_where_a_message_is_missing():
    log = calling("Read", {"path": "a.txt"}, {"path": "b.txt"})
    log.lines = [line for line in log.lines if line["type"] != "api-request-blob"]
    log.attachment("A later reminder.")
    first, *_ = conversations(log.lines)
    assert first.tools
    missing = {code for item in contexts(first) for code in item.missing}
    assert not {"tools", "system"} & missing


@pytest.mark.parametrize(
    ("block", "code"),
    [
        ({"type": "tool_use", "id": "toolu_9", "input": {}}, "bad_call"),
        (
            {"type": "tool_use", "id": "t", "name": "Read", "caller": {"type": "code_execution"}},
            "programmatic_call",
        ),
        ({"type": "web_search_tool_result", "content": []}, "server_tool"),
        ({"type": "compaction", "content": "x"}, "compacted"),
        ({"type": "tool_result", "tool_use_id": "t", "content": "x"}, "unknown_part"),
        ({"type": "a_new_block"}, "unknown_part"),
    ],
)
def test_blocks_of_an_answer_have_the_meaning_that_they_have_in_the_api(block, code):
    log = SessionLog()
    log.user("One?")
    log.answer(text("Well."), block)
    (found,) = conversations(log.lines)
    parts = found.messages[-1].parts
    assert [part.code for part in parts if isinstance(part, Unparsed)] == [code]


@pytest.mark.parametrize(
    ("answer", "denied"),
    [
        ("The user doesn't want to proceed with this tool use. The tool use was", True),
        ("Permission to use Bash has been denied.", True),
        ("Permission for this action has been denied. Reason: it deletes", True),
        ("Claude requested permissions to use WebSearch, but you haven't granted it yet.", True),
        ("This command requires approval", True),
        ("This Bash command contains multiple operations. The following part requires", True),
        ("ls in '~' was blocked. For security, Claude Code may only list files in", True),
        ("Exit code 1\nThis command requires approval", False),
        ("bash: permission denied", False),
    ],
)
def test_a_refusal_is_recognised_by_the_words_of_the_program(answer, denied):
    result = mark_result(ToolResult((Text(answer),), "1", None, is_error=True))
    assert (result.is_denied, result.is_error) == (denied, True)
