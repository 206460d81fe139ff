"""Describes the trainers in one table: the exports that they read, their lengths, how they differ.

Their configurations are the templates in configs/, their masks are in `builder.trainers.masks`.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from jinja2 import Environment, PackageLoader, StrictUndefined

from builder.qwen3.models import POSITIONS, positions_of
from builder.qwen3.templates import CHATML
from builder.qwen3.tokenizer import Target
from builder.text import counted

MODEL = "Qwen/Qwen3-8B"

RENDERED = ("tokenized", "prompt-completion-text")
"""Variants whose rows contain the text or its tokens, so that a trainer renders nothing."""

LONG = 32_768
"""Tokens beyond which a sample exceeds the context that Qwen3 models were trained with."""

_ADVISED = {"Qwen/Qwen3-8B": 32_768}
"""Tokens for which a model's card says that it was trained, if fewer than its own limit."""

ACCUMULATION = 16
"""Batches of one sample that make a step."""

_SETTINGS = {"rank": 16, "alpha": 32, "rate": "2.0e-4", "accumulation": ACCUMULATION}
"""Usual values for LoRA, by their names in the templates of configurations."""

Targets = Literal["every", "last", "some"]
"""Which assistant turns of a dataset's samples are trained: all, only the last of each, or some."""


_RESPONSE = 2048
"""Tokens that a model may answer with at least if the user set no limit."""


@dataclass(frozen=True, slots=True)
class PromptSizes:
    """The sizes of the rows of an export of prompts.

    prompts    tokens of each row's prompt
    answers    tokens of each row's logged answer; 0: it has none
    max_tokens limit that the user set for a prompt with its answer, or None
    """

    prompts: Sequence[int] = ()
    answers: Sequence[int] = ()
    max_tokens: int | None = None

    @property
    def response(self) -> int:
        """Returns a length for the answers: that of the longest.

        Of a limit it is what the longest prompt leaves, or else at most half.
        """
        longest = _rounded(max(self.answers, default=0))
        if self.max_tokens is None:
            return max(longest, _RESPONSE)
        left = self.max_tokens - max(self.prompts, default=0)
        return max(left, min(longest, self.max_tokens // 2))

    @property
    def prompt(self) -> int:
        """Returns a length for the prompts: that of the longest, or what the limit leaves."""
        if self.max_tokens is not None:
            return self.max_tokens - self.response
        return _rounded(max(self.prompts, default=0))

    @property
    def beyond(self) -> str:
        """Describes how many rows the two lengths do not fit; "": they fit all."""
        prompts = sum(size > self.prompt for size in self.prompts)
        answers = sum(size > self.response for size in self.answers)
        if not prompts and not answers:
            return ""
        return (
            f"Of {counted(len(self.prompts), 'row')}, {prompts:,} with a longer prompt are filtered"
            f" and {answers:,} have a logged answer longer than the model may write"
        )


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
    sizes      those of the rows of an export of prompts
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
    sizes: PromptSizes = PromptSizes()

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
            f" ({limit:,} tokens{best}): `builder export --max-tokens {advised}` makes windows of"
            " them"
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
    """Returns {limit of a model, or LONG: samples that are longer} for samples of so many tokens."""
    limits = sorted({*POSITIONS.values(), LONG})
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
    def shell_folder(self) -> str:
        """Returns the same for a shell."""
        return shlex.quote(f"../{self.folder}")

    @property
    def train_split(self) -> str:
        """Returns the split of the training file."""
        return _split_of(self.train)

    @property
    def evaluation_split(self) -> str:
        """Returns the split of the file to evaluate on."""
        return _split_of(self.evaluation or "")


def training_split(splits: Sequence[str]) -> str:
    """Returns the split to train on: `train`, or the first if there is none of that name."""
    return "train" if "train" in splits or not splits else splits[0]


def _split_of(path: str) -> str:
    return path.rpartition("/")[2].partition("-")[0]


_Difference = Callable[[str, Facts], Iterator[str]]
"""Yields how the trained tokens of (variant, facts) differ from `meta.spans`."""


@dataclass(frozen=True, slots=True)
class Trainer:
    """The facts about a trainer.

    name            in options and reports
    title           the name as its authors write it
    variants        the exports it reads, the best first: {variant: which turns it can train}.
                    `every`: always all assistant turns; `last`: all, or only the last one; `some`:
                    any of them
    files           the templates of its configuration, relative to configs/
    difference      yields how its trained tokens differ from `meta.spans`
    command         trains with its configuration, in the export's folder; "": the configuration is
                    a part of the user's own
    of_variant      {variant: (command, files)} of those with others
    prompts         the export of prompts for reinforcement learning that it reads, or ""
    default_length  tokens after which it cuts or refuses a sample by default; None: no limit
    wider           variants of which it may write a longer text than the template (`wider`)
    own_text        whether it renders by rules of its own and not with the tokenizer's template
    needs_chatml    whether its configuration finds turns by ChatML's markers
    alternates      whether it drops samples whose turns do not alternate
    loss_templates  names of the XML templates whose assistant turns it can find in a rendering;
                    None: those of every template
    """

    name: str
    title: str
    variants: Mapping[str, Targets]
    files: tuple[str, ...]
    difference: _Difference
    command: str = ""
    of_variant: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    prompts: str = ""
    default_length: int | None = None
    wider: frozenset[str] = frozenset()
    own_text: bool = False
    needs_chatml: bool = False
    alternates: bool = False
    loss_templates: frozenset[str] | None = None

    def reads(self, variant: str) -> bool:
        """Returns whether it reads the variant."""
        return variant in self.variants or variant == self.prompts

    def run(self, variant: str) -> tuple[str, tuple[str, ...]]:
        """Returns the command that trains on the variant, and the templates of its files."""
        return self.of_variant.get(variant, (self.command, self.files))

    def drops(self, facts: Facts) -> str:
        """Returns which samples it leaves out of the training, and why, or ""."""
        if not self.alternates or not facts.following:
            return ""
        return f"{facts.following:,} of {counted(facts.samples, 'sample')}, whose turns do not alternate"

    def can_train(self, variant: str, targets: Targets) -> bool:
        """Returns whether it can train just these targets when it reads the variant."""
        if variant == self.prompts:
            return True
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
        is_masked = variant not in ("prompt-completion", "preference", self.prompts)
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


def _trl(variant: str, facts: Facts) -> Iterator[str]:
    block = "the empty think block" if facts.hybrid else ""
    if variant == "preference":
        yield (
            "the loss compares two answers to one prompt; it counts the tokens of the last turn of"
            f" each: {block + ', ' if block else ''}the answer and the newline after it"
        )
    elif variant == "prompt-completion-text":
        yield (
            "the text of each span is trained, but each row is a turn of its own, with the context"
            " that a server renders for it"
        )
    elif variant == "prompt-completion":
        also = f"{block} and " if block else ""
        yield f"{also}the newline after each turn are trained too; each row is a turn of its own"
    elif variant != "tokenized" and facts.hybrid:
        yield (
            "another text is trained: TRL's training template writes a think block into every turn"
            " and trains it, with the newline after the turn"
        )
    elif variant != "tokenized":
        yield _NEWLINE


_NEWLINE = "the newline after each turn is trained too"
_LAST_BLOCK = "the empty think block of the last turn is trained too"
_BLOCKS = "the text has an empty think block in every turn, untrained"


def _axolotl(variant: str, facts: Facts) -> Iterator[str]:
    if variant == "messages":
        yield "nulls inside of tool definitions are lost (messages-str keeps them)"
    if variant != "tokenized" and facts.hybrid and facts.thinking:
        yield (
            "`<think>` and its newline are not trained where a last turn begins with a thought"
            f" ({facts.thinking} of {facts.samples} samples have thoughts)"
        )


def _llama_factory(variant: str, facts: Facts) -> Iterator[str]:
    yield _NEWLINE
    if facts.hybrid and facts.targets == "every":
        yield _BLOCKS
    if facts.bare:
        yield f"newlines before the definitions in {facts.bare} of {facts.samples} samples"
    if facts.thinking:
        yield f"thoughts are removed ({facts.thinking} of {facts.samples} samples)"


def _ms_swift(variant: str, facts: Facts) -> Iterator[str]:
    if facts.hybrid:
        yield _BLOCKS
    yield _NEWLINE


def _unsloth(variant: str, facts: Facts) -> Iterator[str]:
    if variant != "tokenized" and facts.hybrid:
        yield _LAST_BLOCK
    elif variant != "tokenized":
        yield (
            "all of a turn is trained, including what its generation prompt ends with, such as"
            " <think>"
        )


def _openrlhf(variant: str, facts: Facts) -> Iterator[str]:
    if facts.targets == "every":
        yield "only the last turn of each sample is trained (use normalize.unit: turn)"
    if facts.hybrid:
        yield _LAST_BLOCK


def _verl(variant: str, facts: Facts) -> Iterator[str]:
    if facts.hybrid:
        yield "the last turn has no empty think block"
    yield _NEWLINE


def _nemo(variant: str, facts: Facts) -> Iterator[str]:
    if facts.hybrid:
        yield "samples of several turns are refused: the template renders prefixes differently"
    yield "the header and the newline of each turn are trained too (its source was read, not run)"


TRAINERS: dict[str, Trainer] = {
    item.name: item
    for item in (
        Trainer(
            "trl",
            "TRL",
            {
                "tokenized": "some",
                "prompt-completion-text": "some",
                "prompt-completion": "some",
                "messages": "every",
                "messages-str": "every",
                "tools-in-system": "every",
                "openai": "every",
                "preference": "some",
            },
            ("trl.yaml",),
            _trl,
            "trl sft --config configs/trl.yaml",
            of_variant={
                "preference": ("trl dpo --config configs/trl.yaml", ("trl.yaml",)),
                "trl-grpo": ("python configs/trl_grpo.py", ("trl_grpo.py",)),
            },
            prompts="trl-grpo",
            default_length=1024,
            wider=frozenset({"messages", "messages-str", "tools-in-system", "openai"}),
            loss_templates=frozenset({"Qwen3.5", "Qwen3.5 without thoughts", "Qwen3.6", "Qwen3.8"}),
        ),
        Trainer(
            "axolotl",
            "axolotl",
            {
                "messages-str": "some",
                "tokenized": "some",
                "messages": "some",
                "tools-in-system": "some",
            },
            ("axolotl.yaml",),
            _axolotl,
            "axolotl train configs/axolotl.yaml",
        ),
        Trainer(
            "llama-factory",
            "LLaMA-Factory",
            {"messages-str": "last", "sharegpt": "last"},
            ("../dataset_info.json", "llama_factory.yaml"),
            _llama_factory,
            "llamafactory-cli train configs/llama_factory.yaml",
            default_length=2048,
            wider=frozenset({"messages-str", "sharegpt"}),
            own_text=True,
            alternates=True,
        ),
        Trainer(
            "ms-swift",
            "ms-swift",
            {"messages-str": "some", "tools-in-system": "some"},
            ("ms_swift.sh",),
            _ms_swift,
            "sh configs/ms_swift.sh",
            wider=frozenset({"messages-str", "tools-in-system"}),
            own_text=True,
        ),
        Trainer(
            "unsloth",
            "Unsloth",
            {
                "tokenized": "some",
                "messages": "last",
                "messages-str": "last",
                "tools-in-system": "last",
            },
            ("unsloth.py",),
            _unsloth,
            "python configs/unsloth.py",
            needs_chatml=True,
        ),
        Trainer(
            "openrlhf",
            "OpenRLHF",
            {"tools-in-system": "last"},
            ("openrlhf.sh",),
            _openrlhf,
            "sh configs/openrlhf.sh",
            default_length=2048,
        ),
        Trainer(
            "verl",
            "verl",
            {"verl": "every"},
            ("verl.sh",),
            _verl,
            "sh configs/verl.sh",
            of_variant={"verl-rl": ("sh configs/verl_grpo.sh", ("verl_grpo.sh", "verl_reward.py"))},
            prompts="verl-rl",
            default_length=1024,
            wider=frozenset({"verl"}),
        ),
        Trainer(
            "nemo",
            "NeMo",
            {"messages": "last", "tools-in-system": "last", "openai": "every"},
            ("nemo_automodel.yaml", "nemo_rl.yaml"),
            _nemo,
            "automodel configs/nemo_automodel.yaml",
        ),
    )
}

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
    if variant == trainer.prompts:
        return "no logged answer is trained: the model writes its own, and a reward judges them"
    if facts.missing:
        return (
            "lengths are estimates and no tokens were compared: the tokenizer at hand does not fit"
        )
    if variant not in RENDERED and not facts.measured:
        return "which tokens it trains with this template was not measured"
    return "; ".join(trainer.difference(variant, facts))


def exact_variant(trainer: Trainer, facts: Facts) -> str | None:
    """Returns a variant from which the trainer trains exactly `meta.spans`, or None."""
    able = (name for name in trainer.variants if trainer.can_train(name, facts.targets))
    return next((name for name in able if not difference_of(trainer, name, facts)), None)


_TEMPLATES = Environment(  # noqa: S701 - writes no HTML
    loader=PackageLoader("builder.trainers", "configs"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


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
    beyond = facts.beyond_model.replace("`", "").replace("): ", "):\n# ")
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
        if dropped := trainer.drops(facts):
            difference = f"drops {dropped}; {difference}"
        exactness = f"Not exact: {difference}." if difference else _EXACT
        head = f"# {exactness}\n" + (f"# {beyond}\n" if beyond else "")
        for path in trainer.run(variant)[1]:
            text = _TEMPLATES.get_template(f"{path.removeprefix('../')}.jinja").render(
                export=export,
                facts=facts,
                length=trainer.length(facts, variant),
                default=trainer.beyond_default(facts),
                trl_default=TRAINERS["trl"].beyond_default(facts),
                **_SETTINGS,
            )
            if text.strip():
                texts[path] = text if path.endswith(".json") else f"{head}{text}"
    return texts
