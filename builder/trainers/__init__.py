"""Describes each trainer in one record, with its masks, lengths and configurations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from builder.trainers.axolotl import AXOLOTL
from builder.trainers.llama_factory import LLAMA_FACTORY
from builder.trainers.masks import MaskRule
from builder.trainers.ms_swift import MS_SWIFT
from builder.trainers.record import LONG as LONG
from builder.trainers.record import RENDERED, ExportFiles, Facts, Trainer, training_split
from builder.trainers.reinforcement import NEMO_RL, OPENRLHF, VERL
from builder.trainers.trl import TRL, UNSLOTH

TRAINERS: dict[str, Trainer] = {
    item.name: item
    for item in (TRL, AXOLOTL, LLAMA_FACTORY, MS_SWIFT, UNSLOTH, OPENRLHF, VERL, NEMO_RL)
}

MASKS: dict[str, MaskRule] = {
    name: rule for item in TRAINERS.values() for name, rule in item.masks.items()
}
"""The masks that `verify --masks` compares, by name."""

DEFAULT_LENGTHS: dict[str, int] = {
    name: item.default_length for name, item in TRAINERS.items() if item.default_length is not None
}
"""Tokens after which a trainer cuts (or refuses) a sample unless configured otherwise."""


_EXACT = "Exact: trains the tokens of meta.spans in the verified text, and nothing else."
"""The first line of a configuration that needs no warning."""


def data_file(split: str, kind: str) -> str:
    """Returns the path of an export's file."""
    return f"data/{split}-00000-of-00001.{kind}"


def difference_of(trainer: Trainer, variant: str, facts: Facts) -> str:
    """Returns how the trained tokens differ from `meta.spans`; "": they do not."""
    if facts.missing:
        return "lengths are estimates and no tokens were compared: the tokenizer at hand does not fit"
    if variant not in RENDERED and not facts.measured:
        return "which tokens it trains with this template was not measured"
    return trainer.difference(variant, facts)


def exact_variant(trainer: Trainer, facts: Facts) -> str | None:
    """Returns a variant from which the trainer trains exactly `meta.spans`, or None."""
    able = (name for name in trainer.variants if trainer.can_train(name, facts.targets))
    return next((name for name in able if not difference_of(trainer, name, facts)), None)


def configurations(
    variant: str,
    kind: str,
    trainers: Iterable[Trainer],
    facts: Facts,
    splits: Sequence[str],
    folder: str,
) -> dict[str, str]:
    """Returns {path relative to configs/: text} for an export of files of `kind` in `folder`.

    The first line of each configuration states whether it trains exactly `meta.spans`, and if not,
    what differs; the next ones say how many samples are longer than the model reads.
    """
    beyond = facts.beyond_model.replace("`", "").replace(": build", ":\n# build")
    train = training_split(splits)
    evaluated = [split for split in ("validation", "test") if split in splits and split != train]
    export = ExportFiles(
        variant,
        folder,
        data_file(train, kind),
        data_file(evaluated[0], kind) if evaluated else None,
    )
    texts: dict[str, str] = {}
    for trainer in trainers:
        difference = difference_of(trainer, variant, facts)
        exactness = f"Not exact: {difference}." if difference else _EXACT
        for path, text in trainer.configure(export, facts).items():
            head = f"# {exactness}\n" + (f"# {beyond}\n" if beyond else "")
            texts[path] = text if path.endswith(".json") else f"{head}{text}"
    return texts
