"""Answers that name their model, and records of unknown types that carry a message."""

import json

import pytest

from builder.conversation import Conversation
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.readers import read_events, readers
from builder.readers.toolkit.unknown_keys import carries_content
from builder.sources.source import Source


def conversation(messages):
    source = Source("rows.jsonl", data=json.dumps({"messages": messages}).encode())
    (found,) = read_events(readers()["openai-chat"], source)
    assert isinstance(found, Conversation)
    return found


@pytest.mark.parametrize("key", ["model", "_model", "model_name", "model_id", "modelId"])
def test_an_answer_has_the_model_that_its_message_names(key):
    answers = [{"role": "assistant", "content": name, key: name} for name in ("a", "b")]
    asked = {"role": "user", "content": "q"}
    found = conversation([asked, answers[0], asked, answers[1]])
    assert [one.model for one in found.messages] == [None, "a", None, "b"]


def test_answers_of_two_models_are_not_one_answer():
    def texts(second):
        messages = [{"role": "user", "content": "q"},
                    {"role": "assistant", "content": "one", "model": "a"},
                    {"role": "assistant", "content": "two", "model": second}]  # fmt: skip
        found = normalise(conversation(messages), NormalizeOptions())
        assert found.dialogue is not None
        return [turn.content for turn in found.dialogue.turns]

    assert texts("a") == ["q", "one\n\ntwo"]
    assert texts("b") == ["q", "one"]


@pytest.mark.parametrize(
    "fields",
    [
        {"entry": {"role": "user", "content": "seen"}},
        {"item": {"text": "seen"}},
        {"items": [{"type": "text", "text": "seen"}]},
        {"data": {"messages": [{"role": "user", "content": "seen"}]}},
        {"payload": {"body": "seen"}},
        {"prompt": "seen"},
    ],
)
def test_a_record_of_an_unknown_type_with_a_message_is_content(fields):
    assert carries_content({"type": "new", **fields})


@pytest.mark.parametrize("fields", [{}, {"items": []}, {"data": {"cwd": "/x"}}, {"event": "start"}])
def test_a_record_of_settings_is_not(fields):
    assert not carries_content({"type": "new", **fields})
