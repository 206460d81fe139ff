"""Defines a variant: its rows, and the text that a trainer renders from each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from builder.conversation import Json
from builder.export.preference import PreferencePair
from builder.qwen3.tokenizer import Target
from builder.sample import Dialogue, Sample
from builder.trainers import TRAINERS
from builder.trainers.masks import as_messages
from builder.trainers.record import Targets, Trainer

Row = dict[str, Any]

Feature = dict[str, Json]

STRING: Feature = {"dtype": "string"}
_MESSAGE: list[Json] = [
    {"name": "role", "dtype": "string"},
    {"name": "content", "dtype": "string"},
]
_BESIDE: list[Json] = [{"name": "reasoning_content", "dtype": "string"}]
_WEIGHT: list[Json] = [{"name": "weight", "dtype": "int64"}, {"name": "loss", "dtype": "bool"}]
MESSAGES: Feature = {"name": "messages", "list": _MESSAGE}
TOOLS: Feature = {"name": "tools", "list": "json"}


@dataclass(frozen=True, slots=True)
class ExportItem:
    """A proven sample, its dialogue, and its rendering with the trained spans.

    targets  for each assistant turn, in order, whether it is trained
    prompt   the generation prompt of the inference mode that the spans are for
    pairs    its preference pairs, if the variant consists of pairs
    """

    sample: Sample
    dialogue: Dialogue
    text: str
    spans: tuple[tuple[int, int], ...]
    targets: tuple[bool, ...]
    prompt: str
    pairs: tuple[PreferencePair, ...] = ()

    def messages(self, sample: Sample) -> list[Row]:
        """Returns the messages of `sample`, another form of the item's sample, with weights."""
        messages = as_messages(sample)
        self.weigh(messages)
        return messages

    def weigh(self, messages: list[Row]) -> None:
        """Sets `weight` and `loss` of the assistant messages if any of them is untrained."""
        if all(self.targets):
            return
        answers = [message for message in messages if message["role"] == "assistant"]
        for message, trained in zip(answers, self.targets, strict=True):
            message["weight"] = int(trained)
            message["loss"] = trained


@dataclass(frozen=True, slots=True)
class Variant:
    """A form in which datasets are exported.

    summary   one line for `builder export --help` and the card
    kind      jsonl or parquet
    features  the features that the card declares, so that loaders infer none
    rows      yields the rows of a sample, each with the text that it must render to
    text      returns the text that a trainer renders from a loaded row
    of_pairs  whether a row is a preference pair and not a sample or one of its turns
    """

    name: str
    summary: str
    kind: str
    features: tuple[Feature, ...]
    rows: Callable[[ExportItem, Target], Iterator[tuple[Row, str]]]
    text: Callable[[Row, Target], str]
    of_pairs: bool = False

    @property
    def trainers(self) -> tuple[Trainer, ...]:
        """The trainers that read it."""
        return tuple(item for item in TRAINERS.values() if self.name in item.variants)

    def able_trainers(self, targets: Targets, target: Target) -> list[Trainer]:
        """Returns the trainers that can train just these turns of the target's text from it."""
        able = (item for item in self.trainers if item.can_train(self.name, targets))
        return [item for item in able if item.unfit(self.name, target) is None]

    def declared(self, *, weighted: bool, beside: bool) -> list[Json]:
        """Returns the features.

        `weighted`: assistant messages carry `weight` and `loss`; `beside`: `reasoning_content`.
        """
        extra = [*(_BESIDE if beside else []), *(_WEIGHT if weighted else [])]
        return [self._extended(item, extra, beside=beside) for item in self.features]

    def _extended(self, item: Feature, extra: list[Json], *, beside: bool) -> Json:
        if item.get("list") is not _MESSAGE:
            return item
        added = extra if item is MESSAGES else _BESIDE if beside else []
        return {**item, "list": [*_MESSAGE, *added]}
