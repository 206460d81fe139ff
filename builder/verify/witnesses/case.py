"""Prepares a proven sample for witnesses: what was rendered, and what each trained turn means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from builder.conversation import Json
from builder.qwen3.parity import Spans
from builder.qwen3.parse import to_dialogue
from builder.qwen3.tokenizer import Target
from builder.sample import Dialogue, Sample, Turn


@dataclass(frozen=True, slots=True)
class Generated:
    """A trained turn as a model would write it, and what it means.

    prefix    the rendering up to the end of the generation prompt
    response  what follows, without the marker that ends the turn
    turn      what it means
    """

    prefix: str
    response: str
    turn: Turn

    @property
    def body(self) -> str:
        """The response after its thought, as a server's parser of calls gets it."""
        return self.response.rpartition("</think>")[2].lstrip("\n")

    @property
    def meant(self) -> list[tuple[str, dict[str, Json]]]:
        """The calls: (name, arguments)."""
        return [(call.name, call.arguments) for call in self.turn.calls]


@dataclass(frozen=True, slots=True)
class Case:
    """A proven sample: its rendering, its structured form and its trained turns."""

    target: Target
    sample: Sample
    text: str
    dialogue: Dialogue
    generated: tuple[Generated, ...]


class Witness(Protocol):
    """Another engine. `name` is the one that users write, `version` says what was asked."""

    name: str
    version: str

    def fault(self, case: Case) -> str | None:
        """Returns what the engine makes differently, or None. Raises NotAskedError."""


class NotAskedError(ValueError):
    """A sample that the engine cannot be asked about, with the reason."""


def case_of(sample: Sample, text: str, spans: Spans, target: Target) -> Case:
    """Returns the case of a proven sample; `spans` are those of its trained turns."""
    style = target.style
    dialogue = to_dialogue(sample, style)
    answers = [turn for turn in dialogue.turns if turn.role == "assistant"]
    generated = []
    for start, end in spans:
        ordinal = text.count(style.assistant, 0, start) - 1
        response = text[start:end].removesuffix(style.markers.end)
        generated.append(Generated(text[:start], response, answers[ordinal]))
    return Case(target, sample, text, dialogue, tuple(generated))


def is_same(one: Json, two: Json) -> bool:
    """Returns whether two values are equal as JSON: true is not 1, the order of keys is none."""
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(is_same, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(is_same(one[key], two[key]) for key in one)
    return one == two


def calls_fault(meant: Sequence[tuple[str, Json]], read: Sequence[tuple[str, Json]]) -> str | None:
    """Returns how the calls that an engine read differ from those that are meant, or None."""
    if len(meant) != len(read):
        return f"{len(read)} calls read, {len(meant)} meant"
    for (name, arguments), (other, values) in zip(meant, read, strict=True):
        if name != other:
            return f"the call {name[:40]!r} is read as {other[:40]!r}"
        if not is_same(arguments, values):
            return f"{name[:40]}: the arguments are read as {str(values)[:120]}"
    return None
