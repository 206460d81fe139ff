"""Tests of the marks beside an answer: cut, out of the loss, removed."""

import json

import pytest

from builder.conversation import Conversation
from builder.readers import readers
from builder.readers.toolkit.marks import finish_fault, is_removed, trains
from builder.sources.source import Source

OUT = [
    ("weight", 0), ("loss_weight", 0.0), ("loss", False), ("loss", 0), ("train", False),
    ("trainable", False), ("is_trained", False), ("should_train", 0), ("loss_mask", 0),
    ("step_loss_mask", 0), ("trainOnTurn", False), ("mask", True), ("masked", 1),
    ("mask_loss", True), ("exclude_from_training", True), ("ignore_loss", 1), ("no_train", True),
]  # fmt: skip
IN = [
    ("weight", 0.5), ("loss", True), ("step_loss_mask", 1), ("mask", False), ("skip_training", 0),
]  # fmt: skip
NEITHER = [
    ("loss", 0.0), ("train_loss", 0.25), ("loss_mask", [0, 1]), ("mask", 0), ("training_step", 0),
    ("weight_version", 0), ("attention_mask", 1), ("train", "no"), ("char_mask", "0011"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        *((*one, False) for one in OUT),
        *((*one, True) for one in IN),
        *((*o, None) for o in NEITHER),
    ],
)
def test_part_in_the_loss(key, value, expected):
    assert trains(key, value) is expected


def test_finish_reasons():
    assert finish_fault("FinishReason.SAFETY") == "content_filter"
    assert finish_fault("eos", unknown="truncated") == "truncated"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("redacted-by-litellm", True), ("REDACTED_BY_LITELM", True), (" __REDACTED__", True),
        ("[REDACTED]", True), ("<redacted>", True),
        ("[Scrubbed due to 'password']", True), ("It prints __REDACTED__ then.", False),
    ],
)  # fmt: skip
def test_removed(text, expected):
    assert is_removed(text) is expected


_CUT = {"interrupted": True, "finish_reason": "length"}
_SAID = {"role": "assistant", "content": "Half of", **_CUT}
AGENTS = {
    "cursor": [{"role": "assistant", "message": {"content": "Half of"}, **_CUT}],
    "droid": [
        {"type": "session_start", "id": "s", "cwd": "/"},
        {"type": "message", "id": "m", "message": _SAID},
    ],
    "goose": [{**_SAID, "created": 1, "content": [{"type": "text", "text": "Half of"}]}],
    "grok-cli": [{"type": "assistant", "content": "Half of", **_CUT}],
    "hf-session-traces": [
        {"type": "session", "harness": "h", "id": "s"},
        {"type": "message", "message": _SAID},
    ],
    "kimi-cli": [{"role": "_checkpoint", "id": 0}, _SAID],
    "mistral-vibe": [{**_SAID, "injected": False, "message_id": "m"}],
}


@pytest.mark.parametrize("name", AGENTS)
def test_answers_that_a_log_of_an_agent_marks_as_cut_are_not_trained(name):
    data = "".join(json.dumps(record) + "\n" for record in AGENTS[name]).encode()
    events = readers()[name].read(Source("log.jsonl", data=data))
    (answer,) = [m for e in events if isinstance(e, Conversation) for m in e.messages]
    assert answer.untrained == "aborted"
