"""Rows with columns and keys of any kind: what is read, what is an outcome, what is counted."""

import json

import pytest

from builder import cli
from builder.conversation import Text, ToolCall
from builder.dataset.forms import reader_for
from builder.normalize.reading import derived_context
from builder.problem import Problem
from builder.readers import read_events, readers, recognise
from builder.sources.source import Source

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "r"},
    {"role": "assistant", "content": "a"},
]
TURNS = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
RESPONSE = {
    "id": "r",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": CHAT[-1]}],
}
PAIR = {"request": {"model": "m", "messages": CHAT[:1]}, "response": RESPONSE}
COMPLETION = {"prompt": CHAT[:3], "completion": CHAT[3:], "tools": [TOOL]}


def events(*rows):
    """Returns the events of a file of these rows, by the reader that recognises it."""
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    source = Source("rows.jsonl", data=lines.encode())
    (name,) = recognise(source)
    return list(read_events(readers()[name], source))


def only(row):
    (found,) = events(row)
    return found


@pytest.mark.parametrize("row", [{"messages": CHAT}, {"conversations": TURNS}, PAIR, COMPLETION])
@pytest.mark.parametrize(
    ("beside", "outcome"),
    [
        ({"reward": 0.0}, {"reward": 0.0}),
        ({"score": 1, "success": False}, {"score": 1, "success": False}),
        ({"rewards": {"format": 1.0}}, {"rewards": {"format": 1.0}}),
        ({"info": {"resolved": True}}, {"resolved": True}),
        ({"metrics": {"reward": 0.5}, "reward": None}, {"reward": 0.5}),
        ({"reward_model": {"style": "rule", "ground_truth": "4"}}, None),
    ],
)
def test_scores_beside_a_conversation_are_its_outcome(row, beside, outcome):
    assert only({**row, **beside}).outcome == outcome


@pytest.mark.parametrize("row", [{"messages": CHAT}, {"conversations": TURNS}, COMPLETION])
def test_columns_do_not_hinder_and_unknown_ones_are_named(row):
    known = {"extra_info": {"index": 0}, "reward_model": {"style": "rule"}, "images": [], "id": "x"}
    assert not any("column" in code for code in only({**row, **known}).changes)
    found = only({**row, "rubric": [{"text": "Be kind."}], "hint": "Look at it.", "split": "train"})
    columns = {code: n for code, n in found.changes.items() if "column" in code}
    assert columns == {"unknown_column:rubric": 1, "unknown_column:hint": 1}
    assert not any(code.startswith("unknown_key") for code in found.changes)  # one name, once


def test_unknown_keys_of_messages_with_text_are_named():
    messages = [CHAT[0], {**CHAT[-1], "scratchpad": "I add them.", "agent": "planner", "x": None}]
    assert unknown(only({"messages": messages})) == [("scratchpad",)]
    turns = [TURNS[0], {**TURNS[1], "scratchpad": "I add them."}]
    assert unknown(only({"conversations": turns})) == [("scratchpad",)]


def unknown(conversation):
    return [message.unknown for message in conversation.messages if message.unknown]


THOUGHT = {"thinking": "I look it up."}
BODY = [{"text": "a"}]


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [CHAT[0], {**CHAT[-1], **THOUGHT}]},
        {"system": "s", "messages": [CHAT[0], {**CHAT[-1], **THOUGHT}]},
        {"conversations": [TURNS[0], {**TURNS[1], **THOUGHT}]},
        {
            "contents": [
                {"role": "user", "parts": [{"text": "q"}]},
                {"role": "model", "parts": BODY, **THOUGHT},
            ]
        },
        {
            "messages": [
                {"role": "user", "content": [{"text": "q"}]},
                {"role": "assistant", "content": BODY, **THOUGHT},
            ]
        },
        {
            "messages": [
                {"type": "human", "data": {"content": "q"}},
                {"type": "ai", "data": {"content": "a", "additional_kwargs": THOUGHT}},
            ]
        },
        {
            "messages": [
                {"role": "user", "parts": [{"type": "text", "text": "q"}]},
                {"role": "assistant", "parts": [{"type": "text", "text": "a"}], **THOUGHT},
            ]
        },
    ],
    ids=["openai", "anthropic", "sharegpt", "gemini", "bedrock", "langchain", "vercel"],
)
def test_a_thought_under_a_key_and_a_score_beside_it_are_read_in_every_form(row):
    found = only({**row, "reward": 0.25})
    kinds = [type(part).__name__ for part in found.messages[-1].parts]
    assert (kinds, found.outcome) == (["Reasoning", "Text"], {"reward": 0.25})


NOTE = "words that no reader knows"
SAID = {"role": "assistant", "content": "a", "monologue": NOTE}
BLOCKS = {"role": "assistant", "content": [{"type": "text", "text": "a"}], "monologue": NOTE}
USE = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
LC = {"type": "ai", "data": {"content": "a", "additional_kwargs": {"monologue": NOTE}}}
UI = {"id": "2", "role": "assistant", "parts": [{"type": "text", "text": "a"}], "monologue": NOTE}
ITEM = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "r"}
SPANS = [{"type": "human", "data": {"content": "q"}}, LC]


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    "log",
    [
        {"system": "s", "messages": [CHAT[0], {"role": "assistant", "content": [USE]}, BLOCKS]},
        {
            "contents": [
                {"role": "user", "parts": [{"text": "q"}]},
                {"role": "model", "parts": [{"text": "a"}], "monologue": NOTE},
            ]
        },
        {"input": [CHAT[0], ITEM, RESULT, {**SAID, "type": "message"}]},
        {"uuid": "u", "subset_name": "x", "messages": json.dumps([CHAT[0], SAID])},
        [{"task_id": 1, "reward": 1.0, "traj": [CHAT[0], SAID]}],
        {"prompt": CHAT[:1], "completion": [SAID]},
        SPANS,
        {"id": "c", "messages": [{"id": "1", "role": "user", "parts": UI["parts"]}, UI]},
    ],
    ids=["anthropic", "gemini", "responses", "toucan", "tau", "completion", "langchain", "vercel"],
)
def test_unknown_keys_are_counted_in_every_format_and_named_in_the_summary(log, tmp_path, capsys):
    path, out = tmp_path / "log.json", tmp_path / "out"
    path.write_text(json.dumps(log))
    assert cli.main(["build", str(path), "-o", str(out), "--workers", "1"]) == 0
    assert (
        "unknown text in the log: unknown_key:monologue (1), in 1 sample" in capsys.readouterr().out
    )
    assert '"unknown_key:monologue": 1' in next((out / "meta").glob("*.jsonl")).read_text()
    assert "unread_text" in (out / "report.html").read_text()


def test_definitions_that_are_names_alone_are_missing_from_the_context():
    bare = {"type": "function", "function": {"name": "f"}}
    system = {"role": "system", "content": "s"}
    for tools, missing in (([bare], ("tools",)), ([TOOL], ()), ([TOOL, bare], ("tools",))):
        found = only({"messages": [system, *CHAT], "tools": tools})
        assert derived_context(found, has_system=True).missing == missing


def test_definitions_and_media_are_read_from_their_columns():
    assert only({"messages": CHAT, "tools": None, "tool_defs": [TOOL]}).tools == (TOOL,)
    assert only({"messages": CHAT, "tools": {"f": {"parameters": {}}}}).tools == (
        {"name": "f", "parameters": {}},
    )
    for key, name in (("metadata", "tools"), ("chat_template_kwargs", "xml_tools")):
        assert only({"messages": CHAT, key: {name: [json.dumps(TOOL)]}}).tools == (TOOL,)
    asked = {"role": "user", "content": "What is <image>?"}
    found = only({"messages": [asked, CHAT[-1]], "images": ["a.png"]})
    assert [type(part).__name__ for part in found.messages[0].parts] == ["Text", "Media", "Text"]


def test_the_name_of_a_container_is_no_image():
    asked, answer = CHAT[0], CHAT[-1]
    for image in ("swebench/sweb.eval.x86_64.django:latest", "repo@sha256:0a1b", "python:3.11"):
        assert len(only({"messages": [asked, answer], "image": image}).messages[0].parts) == 1
    for image in ("shots/1.PNG", "https://a.example/b.jpg?w=1", "data:image/png;base64,AA"):
        assert len(only({"messages": [asked, answer], "image": image}).messages[0].parts) == 2


def test_the_roles_of_ms_swift_are_calls_and_results():
    call = {"role": "tool_call", "content": '{"name": "f", "arguments": {"x": 1}}'}
    found = only({"messages": [CHAT[0], call, {"role": "tool_response", "content": "r"}, CHAT[3]]})
    assert [message.role for message in found.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert found.messages[1].parts[0].arguments == {"x": 1}


def test_a_row_with_columns_is_verified_as_what_it_is():
    row = {"messages": CHAT, "tools": [TOOL], "images": [], "extra_info": {"index": 0}}
    source = Source("rows.jsonl", data=2 * (json.dumps(row).encode() + b"\n"))
    assert reader_for(source, "rows.jsonl", "rows.jsonl") == "openai-chat"


def test_only_the_completion_of_a_prompt_is_trained():
    found = only(COMPLETION)
    turns = [one for one in found.messages if one.role == "assistant"]
    assert [turn.untrained for turn in turns] == ["zero_weight", None]
    assert found.recorded


PROMPT, GOOD, BAD = CHAT[:1], [CHAT[-1]], [{"role": "assistant", "content": "worse"}]


def answer(conversation):
    return conversation.messages[-1].parts[0].text


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": PROMPT, "chosen": GOOD, "rejected": BAD},
        {"prompt": PROMPT, "chosen": "a", "rejected": "worse"},
        {"prompt": "q", "chosen": GOOD, "rejected": BAD},
        {"chosen": PROMPT + GOOD, "rejected": PROMPT + BAD},
        {
            "prompt": "q",
            "chosen": PROMPT + GOOD,
            "rejected": PROMPT + BAD,
            "messages": PROMPT + GOOD,
        },
        {"prompt": "q", "chosen": "a", "rejected": "worse"},
    ],
)
def test_of_a_preference_only_the_chosen_answer_is_a_target(row):
    chosen, rejected = events(row)
    assert (len(chosen.messages), answer(chosen), chosen.problems) == (2, "a", ())
    assert (len(rejected.messages), answer(rejected)) == (2, "worse")
    assert [problem.code for problem in rejected.problems] == ["dispreferred"]
    assert (chosen.records, rejected.records) == (1, 0)


@pytest.mark.parametrize("halves", [(PROMPT, BAD), ("q", "worse")])
def test_a_completion_labelled_false_is_no_target(halves):
    row = dict(zip(("prompt", "completion"), halves, strict=True))
    (found,) = events({**row, "label": False})
    assert [problem.code for problem in found.problems] == ["dispreferred"]
    (found,) = events({**row, "label": True})
    assert found.problems == ()


CALLED = json.dumps(CALL)


@pytest.mark.parametrize(
    "row",
    [
        {"messages": json.dumps(CHAT)},
        {"conversation": CHAT},
        {"conversations": json.dumps(CHAT)},
        {"messages": [CHAT[0], {**CHAT[1], "tool_calls": f"[{CALLED}]"}, *CHAT[2:]]},
        {"messages": [CHAT[0], {**CHAT[1], "tool_calls": [CALLED]}, *CHAT[2:]]},
        {"prompt": json.dumps(CHAT[:3]), "completion": json.dumps(CHAT[3:])},
    ],
)
def test_messages_and_calls_that_a_table_holds_as_json_text_are_read(row):
    assert only(row).messages[1:] == only({"messages": CHAT}).messages[1:] or "prompt" in row
    assert [message.role for message in only(row).messages] == [item["role"] for item in CHAT]
    assert only({**row, "info": {"oai_tools": [TOOL]}}).tools == (TOOL,)


@pytest.mark.parametrize("column", [{"is_truncated": True}, {"finish_reason": "length"}])
def test_an_answer_that_its_row_calls_cut_is_no_target(column):
    last = only({"messages": CHAT, **column}).messages[-1]
    assert [part.code for part in last.parts[1:]] == ["truncated"]


LISTED = "You help, with access to the following functions. Use them if required -\n"


def test_definitions_and_calls_in_glaives_words_are_read_in_all_rows():
    system = LISTED + json.dumps(TOOL["function"])
    call = '<functioncall> {"name": "f", "arguments": \'{}\'}'
    chat = [("system", system), ("user", "q"), ("assistant", call), ("function", "r")]
    found = only({"messages": [{"role": role, "content": text} for role, text in chat]})
    assert found.tools == (TOOL["function"],)
    assert [part.name for part in found.messages[2].parts] == ["f"]
    turns = [("system", system), ("human", "q"), ("function-call", call[14:])]
    found = only({"conversations": [{"from": role, "value": text} for role, text in turns]})
    assert found.tools == (TOOL["function"],)


TYPED = [{"role": "user", "content": [{"type": "text", "value": "q"}]}]


def typed(text):
    return [*TYPED, {"role": "assistant", "content": [{"type": "text", "value": text}]}]


def test_preferences_of_typed_parts_are_read():
    chosen, rejected = events({"chosen_messages": typed("a"), "rejected_messages": typed("worse")})
    assert (answer(chosen), chosen.problems) == ("a", ())
    assert (answer(rejected), rejected.problems[0].code) == ("worse", "dispreferred")


@pytest.mark.parametrize("row", [{"messages": CHAT}, {"conversations": TURNS}])
@pytest.mark.parametrize("label", ["label", "kto_tag"])
def test_a_row_labelled_false_is_no_target(row, label):
    assert [problem.code for problem in only({**row, label: False}).problems] == ["dispreferred"]
    assert only({**row, label: True}).problems == ()


def test_copies_of_toolace_in_another_dialect_have_its_definitions():
    system = (
        f"Here is a list of functions in JSON format that you can invoke:\n[{json.dumps(TOOL)}]."
    )
    turns = [*TURNS[:1], {"from": "function_call", "value": '{"name": "f", "arguments": {}}'}]
    found = only({"system": system, "conversations": turns, "tools": "[]"})
    assert found.tools == (TOOL,)
    assert [message.role for message in found.messages] == ["user", "assistant"]


def said(role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


@pytest.mark.parametrize("states", [False, True])
def test_what_others_say_within_a_response_is_not_the_models(states):
    output = [said("assistant", "hit"), said("user", "16"), said("assistant", "stand")]
    if states:  # each state of the conversation
        output = [[said("user", "13"), *output[:1]], [said("user", "13"), *output]]
    request = {"model": "m", "input": [] if states else [said("user", "13")]}
    response = {"id": "resp_1", "object": "response", "model": "m", "output": output}
    found = only({"request": request, "response": response})
    texts = [(item.role, item.parts[0].text) for item in found.messages]
    roles = ["user", "assistant", "user", "assistant"]
    assert texts == list(zip(roles, ["13", "hit", "16", "stand"], strict=True))
    assert all(item.untrained is None for item in found.messages)


def test_the_response_decides_the_api_of_a_request_with_text_alone():
    content = [{"type": "text", "text": "thought\\n</think>\\n\\nanswer"}]
    response = {"type": "message", "role": "assistant", "content": content}
    response |= {"id": "msg_1", "model": "m", "stop_reason": "end_turn", "usage": {}}
    request = {"model": "m", "max_tokens": 9, "messages": CHAT[:1]}
    source = Source("x.json", data=json.dumps({"request": request, "response": response}).encode())
    assert [*recognise(source)] == ["anthropic-messages"]
    assert only({"request": request, "response": response}).messages[-1].parts[0].text


# -- a prompt in one column and its answer in another ---------------------------------------------

ASKED = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
BEFORE = [*ASKED, {"role": "assistant", "content": "old"}, {"role": "user", "content": "more"}]
HALF = {"role": "assistant", "content": "a"}
ROUND = {"input": "r", "output": "b"}


def turns(conversation):
    """Returns the trained texts, and the others of the assistant."""
    answers = [one for one in conversation.messages if one.role == "assistant"]
    return [
        ["".join(p.text for p in one.parts if isinstance(p, Text)) for one in answers if found(one)]
        for found in (lambda one: one.untrained is None, lambda one: one.untrained is not None)
    ]


@pytest.mark.parametrize("answer", ["a", HALF, [HALF]], ids=["text", "message", "messages"])
@pytest.mark.parametrize("column", ["completion", "response", "output"])
@pytest.mark.parametrize("prompt", ["prompt", "messages", "input"])
def test_the_answer_in_another_column_is_trained_and_those_of_the_prompt_are_not(
    prompt, column, answer
):
    found = only({prompt: ASKED, column: answer})
    assert [message.role for message in found.messages] == ["system", "user", "assistant"]
    assert (turns(found), dict(found.changes)) == ([["a"], []], {})
    found = only({prompt: BEFORE, column: answer, "model": "m"})
    assert (turns(found), found.model, found.recorded) == ([["a"], ["old"]], "m", True)


@pytest.mark.parametrize("body", [RESPONSE, json.dumps(RESPONSE)], ids=["object", "text"])
def test_a_response_beside_the_messages_of_its_request_is_a_capture(body):
    found = only({"messages": BEFORE, "response": body})
    assert (turns(found), found.model) == ([["a"], ["old"]], "m")


def test_an_answer_may_itself_be_json():
    found = only({"messages": ASKED, "response": '{"city": "Oslo"}'})
    assert turns(found) == [['{"city": "Oslo"}'], []]


def test_another_answer_beside_a_whole_conversation_is_counted():
    found = only({"messages": [*ASKED, HALF], "response": "another answer"})
    assert (turns(found), dict(found.changes)) == ([["a"], []], {"unknown_column:response": 1})


@pytest.mark.parametrize(
    ("row", "texts"),
    [
        ({"prompt": "q", "response": "a", "system": "s"}, ["s", "q", "a"]),
        ({"prompt": "q", "completion": "a", "system_prompt": "s"}, ["s", "q", "a"]),
        ({"instruction": "i", "context": "c", "response": "a"}, ["i\nc", "a"]),
        ({"text_input": "q", "output": "a"}, ["q", "a"]),
        ({"conversation": [{"human": "q", "assistant": "a"}], "system": "s"}, ["s", "q", "a"]),
        (
            {"conversation": [{"system": "s", "input": "q", "output": "a"}, ROUND]},
            ["s", "q", "a", "r", "b"],
        ),
    ],
)
def test_questions_and_answers_as_texts(row, texts):
    found = only(row)
    assert [part.text for message in found.messages for part in message.parts] == texts
    assert not found.changes


def test_a_call_traced_by_weave_has_its_request_in_inputs():
    found = only(
        {"op_name": "chat", "inputs": {"model": "m", "messages": BEFORE}, "output": RESPONSE}
    )
    assert (turns(found), found.model, found.recorded) == ([["a"], ["old"]], "m", True)


# -- roles of other names, and records in no known form --------------------------------------------

FLAT_CALL = {"function": {"name": "f", "arguments": {"x": 1}}}


@pytest.mark.parametrize(
    ("user", "assistant"),
    [("human", "ai"), ("User", "Chatbot"), ("user", "model"), ("human", "gpt"), ("user", "bot")],
)
@pytest.mark.parametrize("column", ["messages", "conversations", "conversation"])
@pytest.mark.parametrize("result", ["tool", "observation", "environment", "ipython", "function"])
def test_roles_of_other_names_are_read(user, assistant, column, result):
    turns = [
        {"role": "system", "content": "s"},
        {"role": user, "content": "q"},
        {"role": assistant, "content": "", "tool_calls": [FLAT_CALL]},
        {"role": result, "content": "r"},
        {"role": assistant, "content": "a"},
    ]
    (found,) = events({column: turns})
    roles = [message.role for message in found.messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]
    assert found.messages[2].parts == (ToolCall("f", {"x": 1}),)


def test_a_call_that_no_reader_knows_ends_the_sample():
    turns = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "metadata": "f", "content": '{"x": 1}'},
        {"role": "observation", "content": "r"},
        {"role": "assistant", "content": "a"},
    ]
    (found,) = events({"messages": turns})
    assert [getattr(part, "code", None) for part in found.messages[1].parts] == [None, "bad_call"]


def test_a_conversation_in_another_form_among_rows_is_rejected_not_ignored():
    row = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
    other = {"log": [{"role": "asker", "said": "q"}, {"role": "teller", "said": "a"}]}
    _, problem = events(row, other)
    assert isinstance(problem, Problem)
    assert (problem.code, problem.records) == ("unknown_shape", 1)


def test_of_several_lists_in_a_document_the_one_with_messages_is_read():
    turns = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    rows, users = [{"messages": turns}], [{"id": "u", "name": "Ann", "tags": ["x"]}]
    document = {"users": users, "data": {"rows": rows}}
    source = Source("log.json", data=json.dumps(document).encode())
    assert list(recognise(source)) == ["openai-chat"]
    both = Source("log.json", data=json.dumps({"train": rows, "test": rows}).encode())
    assert recognise(both) == {}, "one of them alone would lose the other"
