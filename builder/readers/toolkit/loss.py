"""Reads which messages the author of a dataset has excluded from training."""

from __future__ import annotations

from collections.abc import Mapping

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dicts

_WEIGHTS = ("weight", "loss_weight")
_FLAGS = ("loss", "train", "training")
_PIECES = ("train_detail", "training_detail", "content")
"""Keys of pieces of a message that are trained or not: axolotl's, and parts of the content."""

LOSS_KEYS = frozenset({*_WEIGHTS, *_FLAGS, "masked", "train_detail", "training_detail"})
"""All keys of a message that `is_trained` reads, apart from its content."""


def is_trained(message: Mapping[str, Json]) -> bool:
    """Returns whether a message of a dataset is trained as a whole.

    Not if it has the weight 0 (OpenAI, LLaMA-Factory), is not to have a loss (`loss` of ms-swift
    and XTuner, `train` of axolotl), or is `masked` (torchtune); nor if a piece of it is marked so.
    """
    if not _has_loss(message):
        return False
    return all(
        _has_loss(one) for key in _PIECES if key in message for one in as_dicts(message[key])
    )


def _has_loss(item: Mapping[str, Json]) -> bool:
    if item.get("masked") is True or any(item.get(key) is False for key in _FLAGS):
        return False
    return not any(
        key in item and not isinstance(item[key], bool) and item[key] == 0 for key in _WEIGHTS
    )
