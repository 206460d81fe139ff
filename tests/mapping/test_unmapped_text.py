"""Text under keys that no path of a mapping reads is counted, wherever it is."""

import json

import pytest
import yaml
from support.logs.mapped import written

from builder.config.load import parse_mapping
from builder.readers.mapping.calls import perhaps_roles
from builder.readers.mapping.read import mapped_reader
from builder.readers.mapping.suggest import examined_keys, suggest

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


def test_a_proposal_names_text_beside_a_key_that_it_reads(tmp_path):
    rows = [
        {"input": {"instruction": "Translate", "text": f"Hallo {at}"}, "output": f"Hello {at}"}
        for at in range(3)
    ]
    assert "# Not read, name it if the model saw it: input.text\n" in suggest(
        written(tmp_path, rows)
    )


def test_the_name_of_a_call_is_not_asked_for_as_a_role(tmp_path):
    def steps(thought, name, arguments, found, answer):
        first = {"thought": thought, "action": name, "action_input": arguments}
        last = {"thought": "done", "action": "finish", "action_input": {"answer": answer}}
        return [{**first, "observation": found}, {**last, "observation": ""}]

    rows = [
        {
            "task": "Find capital of France",
            "trajectory": steps(
                "search it", "search", {"q": "capital"}, "Paris is the capital", "Paris"
            ),
            "success": True,
        },
        {
            "task": "2+2",
            "trajectory": steps("calc", "calc", {"e": "2+2"}, "4", "4"),
            "success": True,
        },
    ]
    text = suggest(written(tmp_path, rows))
    assert "name: action\n" in text
    assert "message.role:" not in text


def test_the_question_for_the_role_says_what_follows():
    messages = [{"level": level, "action": level} for level in ("low", "high", "low")]
    (asked,) = perhaps_roles(messages, ("action",))
    assert asked.startswith("message.role: does 'level' ('low', 'high') say who speaks? If so,")
    assert asked.endswith("if not, all are the assistant's")


def test_json_text_without_a_conversation_is_named_as_a_mapping_reads_it(tmp_path):
    source = written(tmp_path, [{"ts": at, "payload": json.dumps({"x": at})} for at in range(3)])
    assert examined_keys(source) == ["ts", "json(payload)"]
