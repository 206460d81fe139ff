"""Defines a trainer: the exports that it reads, its loss mask, its configuration."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from builder.qwen3.models import POSITIONS, positions_of
from builder.qwen3.templates import CHATML
from builder.qwen3.tokenizer import Target
from builder.text import counted
from builder.trainers.masks import MaskRule

MODEL = "Qwen/Qwen3-8B"

RENDERED = ("tokenized", "prompt-completion-text")
"""Variants whose rows contain the text or its tokens, so that a trainer renders nothing."""

LONG = 32_768
"""Tokens beyond which a sample exceeds the context that Qwen3 models were trained with."""

_ADVISED = {"Qwen/Qwen3-8B": 32_768}
"""Tokens for which a model's card says that it was trained, if fewer than its own limit."""

LORA_RANK = 16
LORA_ALPHA = 32
ACCUMULATION = 16
"""Batches of one sample that make a step."""
LEARNING_RATE = "2.0e-4"
"""A usual rate for LoRA."""

Targets = Literal["every", "last", "some"]
"""Which assistant turns of a dataset's samples are trained: all, only the last of each, or some."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a dataset that configurations depend on.

    longest    tokens of the longest sample
    widest     tokens of the longest sample as `wider` counts them
    beyond     {trainer: samples longer than its default length}
    bare       samples with tools and without a system turn
    following  samples with a query right after tool results
    thinking   samples with a thought
    targets    which assistant turns are trained
    hybrid     whether the template writes empty think blocks (Qwen3, not Instruct-2507)
    model      the repository of a model with the target's template
    measured   whether the trainers' masks were measured with this kind of template
    train      samples of the split to train on
    over       {limit of a model: samples that are longer}
    missing    `Target.missing`: counts of tokens are estimates
    """

    samples: int = 0
    longest: int = 0
    widest: int = 0
    beyond: Mapping[str, int] = field(default_factory=dict)
    bare: int = 0
    following: int = 0
    thinking: int = 0
    targets: Targets = "every"
    hybrid: bool = True
    model: str = MODEL
    measured: bool = True
    train: int = ACCUMULATION
    over: Mapping[int, int] = field(default_factory=dict)
    missing: str = ""

    @property
    def beyond_model(self) -> str:
        """Describes how many samples are longer than the model reads, with a remedy; or ""."""
        limit = positions_of(self.model) or 0
        over = self.over.get(limit, 0)
        if not over:
            return ""
        advised = _ADVISED.get(self.model, limit)
        best = f", {advised:,} advised, more with YaRN" if advised < limit else ""
        verb = "is" if over == 1 else "are"
        return (
            f"{over:,} of {counted(self.samples, 'sample')} {verb} longer than {self.model} reads"
            f" ({limit:,} tokens{best}): build with"
            f" `--set 'limits={{max_tokens: {advised}, too_long: split}}'`"
        )

    @property
    def length(self) -> int:
        """Returns a length for trainers that render like the template: a multiple of 64."""
        return _rounded(self.longest)

    @property
    def wide_length(self) -> int:
        """Returns a length for trainers that write an empty think block before every turn."""
        return _rounded(self.widest)

    @property
    def batch(self) -> int:
        """Returns the samples of a step for trainers that make no step of an incomplete batch.

        It is a power of two, which one, two or more GPUs share.
        """
        return 1 << max(min(ACCUMULATION, self.train).bit_length() - 1, 0)

    @property
    def remainder(self) -> str:
        """Describes the samples that an incomplete batch leaves without a step."""
        return f"{self.train % self.batch} of {self.train} samples at the end of an epoch"


def wider(tokens: int, turns: int) -> int:
    """Returns an upper bound on a sample's tokens in trainers that write more than the template.

    It adds four tokens per assistant turn for an empty think block, and two for newlines before the
    definitions of a sample without a system turn.
    """
    return tokens + 4 * turns + 2


def over_limits(tokens: Iterable[int]) -> Counter[int]:
    """Returns {limit of a model: samples that are longer} for samples of so many tokens."""
    limits = sorted({*POSITIONS.values()})
    return Counter(limit for count in tokens for limit in limits if count > limit)


def _rounded(tokens: int) -> int:
    return max(-(-tokens // 64) * 64, 64)


@dataclass(frozen=True, slots=True)
class ExportFiles:
    """An export, seen from its own folder, in which configurations are run.

    folder      the folder's name
    train       the file to train on
    evaluation  the file to evaluate on, or None
    """

    variant: str
    folder: str
    train: str
    evaluation: str | None

    @property
    def quoted_folder(self) -> str:
        """Returns the folder as `../NAME`, since the cache of `datasets` has no name for "."."""
        return json.dumps(f"../{self.folder}")

    @property
    def train_split(self) -> str:
        """Returns the split of the training file."""
        return split_of(self.train)


def training_split(splits: Sequence[str]) -> str:
    """Returns the split to train on: `train`, or the first if there is none of that name."""
    return "train" if "train" in splits or not splits else splits[0]


def split_of(path: str) -> str:
    """Returns the split that an export's file contains."""
    return path.rpartition("/")[2].partition("-")[0]


_Configure = Callable[[ExportFiles, Facts], Mapping[str, str]]
"""Returns {path relative to configs/: text}."""

_Difference = Callable[[str, Facts], str]
"""Maps (variant, facts) to how the trained tokens differ from `meta.spans`, or ""."""


@dataclass(frozen=True, slots=True)
class Trainer:
    """The facts about a trainer.

    name            in options and reports
    title           the name as its authors write it
    variants        the exports it reads, the best first: {variant: which turns it can train}.
                    `every`: always all assistant turns; `last`: all, or only the last one; `some`:
                    any of them
    configure       returns its configuration files
    difference      returns how its trained tokens differ from `meta.spans`
    command         trains with its configuration, in the export's folder; "": the configuration is
                    a part of the user's own. `pairs_command` is that for preference pairs
    drops           returns which samples it leaves out of the training, and why, or ""
    default_length  tokens after which it cuts or refuses a sample by default; None: no limit
    masks           {name for `verify --masks`: the mask of a setting}
    wider           variants of which it may write a longer text than the template (`wider`)
    own_text        whether it renders by rules of its own and not with the tokenizer's template
    needs_chatml    whether its configuration finds turns by ChatML's markers
    loss_templates  names of the XML templates whose assistant turns it can find in a rendering;
                    None: those of every template
    """

    name: str
    title: str
    variants: Mapping[str, Targets]
    configure: _Configure
    difference: _Difference
    command: str = ""
    pairs_command: str = ""
    drops: Callable[[Facts], str] = lambda _: ""
    default_length: int | None = None
    masks: Mapping[str, MaskRule] = field(default_factory=dict)
    wider: frozenset[str] = frozenset()
    own_text: bool = False
    needs_chatml: bool = False
    loss_templates: frozenset[str] | None = None

    def can_train(self, variant: str, targets: Targets) -> bool:
        """Returns whether it can train just these targets when it reads the variant."""
        ability = self.variants.get(variant)
        return ability is not None and (targets == "every" or ability in (targets, "some"))

    def unfit(self, variant: str, target: Target) -> str | None:
        """Returns why it would not train the target's text from the variant, or None."""
        if variant == "tokenized" and target.missing:
            return "its rows hold ids of tokens"
        if variant in RENDERED:
            return None
        if target.options:
            names = ", ".join(target.options)
            return f"{self.title} renders the rows without the template's options ({names})"
        if not target.style.is_specified and self.own_text:
            return f"{self.title} writes calls by rules of its own, not as {target.template_name}"
        is_masked = variant not in ("prompt-completion", "preference")
        if self.needs_chatml and target.style.markers != CHATML:
            return f"{self.title} finds turns by the markers of ChatML"
        is_known = self.loss_templates is None or target.template_name in self.loss_templates
        if not target.style.is_specified and is_masked and not is_known:
            return f"{self.title} has no training template for {target.template_name}"
        if target.style.needs_query and variant == "verl":
            return f"{self.title} renders message by message, which the template refuses"
        return None

    def length(self, facts: Facts, variant: str | None = None) -> int:
        """Returns the length that fits every sample; `variant`: the export, by default the best."""
        name = variant or next(iter(self.variants))
        return facts.wide_length if name in self.wider else facts.length

    def best_variant(self, target: Target) -> str:
        """Returns the best export for this trainer whose text it does not change, or the best."""
        fitting = (name for name in self.variants if self.unfit(name, target) is None)
        return next(fitting, next(iter(self.variants)))

    def variant_for(self, targets: Targets, target: Target) -> str | None:
        """Returns the best export for this trainer that can express the targets."""
        able = (name for name in self.variants if self.can_train(name, targets))
        return next((name for name in able if self.unfit(name, target) is None), None)

    def beyond_default(self, facts: Facts) -> str:
        """Describes how many samples exceed its default length."""
        beyond = facts.beyond.get(self.name, 0)
        return f"the default is {self.default_length}: {beyond} of {facts.samples} are longer"
