"""Counts what an export wrote, what it left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from builder.codes import explain, meaning
from builder.conversation import Json
from builder.dataset.rows import CONVERSATION, DatasetRow
from builder.export.variants import ExportItem, PreferencePair
from builder.normalize.remedies import with_options
from builder.qwen3.render import is_bare, is_following
from builder.qwen3.templates import Style, Thoughts
from builder.qwen3.tokenizer import Target
from builder.text import counted
from builder.trainers.table import (
    DEFAULT_LENGTHS,
    Facts,
    PromptSizes,
    Targets,
    Trainer,
    over_limits,
    training_split,
    wider,
)

LOADER = "loader"
"""Code of samples that are not given back as written."""

LONGER = "longer"
"""Code of samples of which nothing fits into the tokens that were asked for."""

TARGETS = "targets"
"""Code of samples whose turns no trainer of the variant could train as they are marked."""

UNIFORM: tuple[Targets, ...] = ("every", "last")
"""Targets that some trainers need all samples to have in common, the simplest first."""


def fits(item: ExportItem, targets: Targets) -> bool:
    """Returns whether these are the targets of a sample; of one turn, they are both."""
    if targets == "every":
        return all(item.targets)
    return item.targets[-1] and not any(item.targets[:-1])


@dataclass(frozen=True, slots=True)
class TrainerRun:
    """How a trainer trains on an export.

    command     run in the export's folder; "": its configuration is a part of the user's own
    difference  how its trained tokens differ from `meta.spans`, or ""
    exact       a variant from which they do not differ, or None
    drops       which samples it leaves out of the training, and why, or ""
    """

    title: str
    command: str
    difference: str
    exact: str | None
    drops: str = ""


@dataclass(slots=True)
class Exported:
    """The outcome of an export.

    variant   its name
    samples   rows of the dataset that were read
    written   samples that were exported
    rows      rows written for them
    equal     rows that gave the verified text when they were loaded again
    left_out  {code: samples not exported}
    windowed         samples longer than was asked for, of which windows were written
    turns_too_long   trained turns that fit into no window
    shortened        samples that end before a turn that the trainers would train
    turns_left_out   the trained turns after those
    changed   {number of a sample, from 0: what the loader changes}, which are left out
    problems  the reasons why nothing was put in place
    longest   tokens of the longest sample
    longest_written        the same, as `builder.trainers.table.wider` counts them
    sizes                  tokens of (the prompt, the logged answer) of each row of prompts
    max_tokens             the limit that was asked for, or None
    longer_than_default    {trainer: samples longer than its default length}
    over                   {limit of a model: samples that are longer}
    beyond_model           how many samples are longer than the model reads, with a remedy, or ""
    shapes                 {bare, following, thinking: samples} (`Facts`)
    with_context_turns     samples with an assistant turn that is not a target
    with_other_targets     samples whose targets are not just the last assistant turn
    policies               {option that made turns context only: samples}
    splits                 {split, in order of appearance: samples}
    pairs_left_out         {code: preference pairs not exported}
    without_configuration  trainers without a configuration, by title, and why
    by_targets             {targets: samples that have only these, whatever the others have}
    targets_advice         why samples were left out with the code `targets`, and what exports them
    first_left_out         {code: place and message of the first sample that was left out with it}
    runs                   how each trainer with a configuration trains on it
    """

    variant: str = ""
    samples: int = 0
    written: int = 0
    rows: int = 0
    equal: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    windowed: int = 0
    turns_too_long: int = 0
    shortened: int = 0
    turns_left_out: int = 0
    changed: Mapping[int, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    longest: int = 0
    longest_written: int = field(default=0, repr=False)
    sizes: list[tuple[int, int]] = field(default_factory=list, repr=False)
    max_tokens: int | None = None
    longer_than_default: Counter[str] = field(default_factory=Counter, repr=False)
    over: Counter[int] = field(default_factory=Counter, repr=False)
    beyond_model: str = field(default="", repr=False)
    shapes: Counter[str] = field(default_factory=Counter, repr=False)
    with_context_turns: int = field(default=0, repr=False)
    with_other_targets: int = field(default=0, repr=False)
    policies: Counter[str] = field(default_factory=Counter, repr=False)
    splits: Counter[str] = field(default_factory=Counter)
    pairs_left_out: Counter[str] = field(default_factory=Counter)
    without_configuration: dict[str, str] = field(default_factory=dict, repr=False)
    by_targets: Counter[Targets] = field(default_factory=Counter, repr=False)
    targets_advice: str = field(default="", repr=False)
    first_left_out: dict[str, str] = field(default_factory=dict, repr=False)
    runs: list[TrainerRun] = field(default_factory=list, repr=False)

    @property
    def targets(self) -> Targets:
        """Returns which assistant turns of the samples are trained."""
        if not self.with_context_turns:
            return "every"
        return "some" if self.with_other_targets else "last"

    @property
    def untrained(self) -> str:
        """Describes the samples with context-only turns, and the options that caused them."""
        samples = (
            "1 sample has"
            if self.with_context_turns == 1
            else f"{self.with_context_turns} samples have"
        )
        return (
            f"{samples} assistant turns that are context and not trained"
            f" ({', '.join(sorted(self.policies))})"
        )

    def length_for(self, trainer: Trainer) -> int:
        """Returns the length that the trainer's configuration sets."""
        facts = Facts(longest=self.longest, widest=self.longest_written)
        return trainer.length(facts, self.variant)

    def leave_out(self, code: str, row: DatasetRow, message: str) -> None:
        """Counts a sample that is left out; the first of its code is shown."""
        self.left_out[code] += 1
        self.first_left_out.setdefault(code, f"{row.file}:{row.number}: {message}")

    def count(self, item: ExportItem, row: DatasetRow, style: Style) -> None:
        """Counts a sample that is exported."""
        sample = item.sample
        self._count_length(item.tokens)
        self.shapes["bare"] += is_bare(sample)
        self.shapes["following"] += is_following(sample, style)
        self.shapes["thinking"] += any(turn.reasoning for turn in item.dialogue.turns)
        self.longest_written = max(self.longest_written, wider(item.tokens, len(item.targets)))
        if not all(item.targets):
            self.with_context_turns += 1
            unit = "normalize.unit" if row.unit != CONVERSATION else "normalize.untrained_turns"
            self.policies["--max-tokens" if self.windowed else unit] += 1
        self.with_other_targets += not fits(item, "last")
        if item.targets[0]:  # it may end before its first turn of context
            self.by_targets["every"] += 1
        self.by_targets["last"] += fits(item, "last")

    def count_pairs(self, pairs: Sequence[PreferencePair]) -> None:
        """Counts exported preference pairs, by their longer sides."""
        for pair in pairs:
            self._count_length(pair.tokens)

    def _count_length(self, tokens: int) -> None:
        self.written += 1
        self.longest = max(self.longest, tokens)
        self.over += over_limits([tokens])
        for name, limit in DEFAULT_LENGTHS.items():
            self.longer_than_default[name] += tokens > limit

    def facts(self, target: Target) -> Facts:
        """Returns the facts that the configurations depend on."""
        return Facts(
            self.written,
            self.longest,
            self.longest_written,
            dict(self.longer_than_default),
            self.shapes["bare"],
            self.shapes["following"],
            self.shapes["thinking"],
            self.targets,
            target.style.thoughts is Thoughts.hybrid,
            target.model,
            target.style.is_specified,
            self.splits[training_split(list(self.splits))],
            self.over,
            target.missing,
            PromptSizes(
                [prompt for prompt, _ in self.sizes],
                [answer for _, answer in self.sizes],
                self.max_tokens,
            ),
        )


def left_out_line(exported: Exported, code: str) -> str:
    """Returns how many samples were left out with a code, why, and what would keep them."""
    text = f"{counted(exported.left_out[code], 'sample')} left out"
    if code == TARGETS:
        parts = [text] if exported.left_out[code] else []
        if exported.shortened:
            turns = counted(exported.turns_left_out, "trained turn")
            samples = counted(exported.shortened, "sample")
            verb = "ends" if exported.shortened == 1 else "end"
            parts.append(f"{samples} {verb} before a turn of context, without {turns} after it")
        return f"{'; '.join(parts)}: {exported.targets_advice}"
    known_as = "longer than --max-tokens" if code == LONGER else meaning(code) or code
    text += f" ({code}): {known_as}"
    if first := exported.first_left_out.get(code):
        text += f"; the first is {first}"
    known = explain(code)
    return f"{text}. To keep them: {with_options(known.remedy)}" if known is not None else text


_PRINTED = (
    "samples", "rows", "equal", "left_out", "windowed", "turns_too_long", "shortened",
    "turns_left_out", "first_left_out", "pairs_left_out",
)  # fmt: skip


def result(exported: Exported) -> dict[str, Json]:
    """Returns the result as `--json` prints it."""
    values = {name: getattr(exported, name) for name in _PRINTED}
    return {
        **{
            name: dict(sorted(it.items())) if isinstance(it, dict) else it
            for name, it in values.items()
        },
        "changed_by_loader": list[Json](exported.changed.values())[:100],
        "problems": list(exported.problems[:100]),
        "longest": exported.longest,
        "dropped_by_trainer": {run.title: run.drops for run in exported.runs if run.drops},
    }
