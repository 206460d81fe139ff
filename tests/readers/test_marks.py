"""Tests of the marks beside an answer: cut, out of the loss, removed."""

import pytest

from builder.readers.toolkit.marks import cut_code, finish_fault, is_removed, trains

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


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ({"interrupted": True}, "aborted"), ({"isAborted": True}, "aborted"),
        ({"status": "cancelled"}, "aborted"), ({"partial": True}, "truncated"),
        ({"complete": False}, "truncated"), ({"finish_reason": "length"}, "truncated"),
        ({"stopReason": "end_turn"}, None), ({"interrupted": False, "complete": True}, None),
        ({"status": "completed"}, None), ({"complete": None}, None),
    ],
)  # fmt: skip
def test_cut(item, code):
    assert cut_code(item) == code


def test_finish_reasons():
    assert finish_fault("FinishReason.SAFETY") == "content_filter"
    assert finish_fault("eos", unknown="truncated") == "truncated"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("redacted-by-litellm", True), ("REDACTED_BY_LITELM", True), (" __REDACTED__", True),
        ("[Scrubbed due to 'password']", True), ("It prints __REDACTED__ then.", False),
    ],
)  # fmt: skip
def test_removed(text, expected):
    assert is_removed(text) is expected
