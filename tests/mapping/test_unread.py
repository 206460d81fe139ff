"""Text under keys that no path of a mapping reads is counted, wherever it is."""

import json

import pytest
import yaml
from support.logs.mapped import written

from builder.config.load import parse_mapping
from builder.readers.mapping.read import mapped_reader
from builder.readers.mapping.suggest import suggest

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
