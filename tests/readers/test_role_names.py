"""Messages whose roles have other names than OpenAI's, and records in no known form."""

import json

import pytest

from builder.conversation import ToolCall
from builder.problem import Problem
from builder.readers import read_events, readers, recognise
from builder.sources.source import Source

CALL = {"function": {"name": "f", "arguments": {"x": 1}}}


def read(*rows):
    source = Source("rows.jsonl", data="".join(json.dumps(row) + "\n" for row in rows).encode())
    (name,) = recognise(source)
    return list(read_events(readers()[name], source))


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
        {"role": assistant, "content": "", "tool_calls": [CALL]},
        {"role": result, "content": "r"},
        {"role": assistant, "content": "a"},
    ]
    (found,) = read({column: turns})
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
    (found,) = read({"messages": turns})
    assert [getattr(part, "code", None) for part in found.messages[1].parts] == [None, "bad_call"]


def test_a_conversation_in_another_form_among_rows_is_rejected_not_ignored():
    row = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
    other = {"log": [{"role": "asker", "said": "q"}, {"role": "teller", "said": "a"}]}
    _, problem = read(row, other)
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
