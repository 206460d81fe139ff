"""Which tokens a trainer's default would train, by its rules, and how they differ from ours.

Ours are the spans of `builder.parity`: what the model is to say, to the end of `<|im_end|>`. The
rules are those of trainers.md and of the sources of the versions named there; TRL's are run for
real in the conformance tests. A trainer may render another text than the tokenizer's template, and
may cut or refuse what is longer than its default.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from builder.conversation import Json
from builder.jsonio import dumps
from builder.parity import ASSISTANT, Spans
from builder.qwen3.constants import EMPTY_THINK
from builder.qwen3.render import is_response, render, split_thought, tools_block
from builder.qwen3.style import Thoughts
from builder.qwen3.tokenizer import Target
from builder.sample import Sample

REGIONS = (
    "system and definitions",
    "queries",
    "tool responses",
    "turn headers",
    "empty think blocks",
    "thoughts",
    "answers",
    "newlines after turns",
)


@dataclass(frozen=True, slots=True)
class Mask:
    """What a trainer makes of a sample: its text, and [start, end) of what carries loss."""

    text: str
    spans: Spans


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a trainer does not train the sample at all."""

    reason: str


Rule = Callable[[Sample, str, Target], Mask | Refusal]
"""(sample, its proven rendering, target) to what the trainer makes of it."""


@dataclass(frozen=True, slots=True)
class Trainer:
    """A trainer's default: tokens up to `limit` (None: no default); `refuses`: not one more."""

    about: str
    rule: Rule
    limit: int | None = None
    refuses: bool = False


# -- what is trained: the rules ------------------------------------------------------------------


def _everything(sample: Sample, text: str, target: Target) -> Mask:
    return Mask(text, ((0, len(text)),))


def _axolotl(sample: Sample, text: str, target: Target) -> Mask:
    """What changes in the rendering with the turn's content, and its `<|im_end|>`."""
    rendering = render(sample.messages, sample.tools, target.style)
    last = len(rendering.answers) - 1
    spans = []
    for number, (start, end) in enumerate(rendering.answers):
        begin = start
        if text.startswith(EMPTY_THINK, start):
            begin = start + len(EMPTY_THINK)
        elif number == last and target.style.thoughts is Thoughts.hybrid:
            begin = start + len("<think>\n")  # the block is there for any content
        spans.append((begin, end))
    return Mask(text, tuple(spans))


def _openrlhf(sample: Sample, text: str, target: Target) -> Mask:
    """The last turn; definitions are not read."""
    messages = _messages(sample)
    prompt = target.render(messages[:-1], None, add_generation_prompt=True)
    whole = prompt + target.render(messages, None)[len(prompt) :].rstrip("\n")
    return Mask(whole, ((len(prompt), len(whole)),))


def _openrlhf_multiturn(sample: Sample, text: str, target: Target) -> Mask:
    """Each turn where it stands in the rendering of what goes before, laid over the whole."""
    messages = _messages(sample)
    prompt = target.render(messages[:-1], None, add_generation_prompt=True)
    whole = prompt + target.render(messages, None)[len(prompt) :].rstrip("\n")
    offsets = target.offsets(whole)
    spans = []
    for at, message in enumerate(messages):
        if message["role"] != "assistant" or not at:
            continue
        before = target.render(messages[:at], None, add_generation_prompt=True)
        answer = target.render(messages[: at + 1], None)[len(before) :]
        first = len(target.offsets(before))
        end = first + len(target.offsets(answer))
        if first < len(offsets):
            spans.append((offsets[first][0], offsets[min(end, len(offsets)) - 1][1]))
    return Mask(whole, _merged(spans))


def _verl(sample: Sample, text: str, target: Target) -> Mask | Refusal:
    """Each message rendered alone; the pieces must make the whole."""
    whole = ""
    spans = []
    default = target.style.default_system
    lead = f"<|im_start|>system\n{default}<|im_end|>\n" if default is not None else ""
    for at, message in enumerate(_messages(sample)):
        piece = target.render([message], sample.tools if at == 0 else None)
        if at and message["role"] != "system":
            piece = piece.removeprefix(lead)
        if message["role"] == "assistant":
            spans.append((len(whole) + len(ASSISTANT), len(whole) + len(piece)))
        whole += piece
    if whole != text:
        return Refusal("its pieces differ from the whole rendering (AssertionError)")
    return Mask(whole, tuple(spans))


def _trl_assistant_only(sample: Sample, text: str, target: Target) -> Mask:
    """TRL's training template: a think block in every turn; trained to the newline after it."""
    if target.style.thoughts is not Thoughts.hybrid:
        answers = render(sample.messages, sample.tools, target.style).answers
        return Mask(text, tuple((start, end + 1) for start, end in answers))

    def answer(content: str) -> str:
        thought, body = split_thought(content)
        stripped = body.lstrip("\n")
        return f"<think>\n{thought.strip(chr(10))}\n</think>\n\n{stripped}"

    return _written(sample, "", answer)


def _llama_factory(sample: Sample, text: str, target: Target) -> Mask | Refusal:
    """Template `qwen3` with its default enable_thinking: an empty block in every turn, trained."""
    roles = [role for role, _ in sample.messages if role != "system"]
    if roles != ["user", "assistant"] * (len(roles) // 2):
        return Refusal("turns that do not alternate (dropped with a warning)")
    lead = "\n\n" if not _has_system(sample) else ""
    return _written(sample, lead, lambda text: text if "<think>" in text else EMPTY_THINK + text)


def _ms_swift(sample: Sample, text: str, target: Target) -> Mask:
    """An empty block in every turn, trained; consecutive messages of a role are joined."""
    joined: list[tuple[str, str]] = []
    for role, content in sample.messages:
        if joined and joined[-1][0] == role:
            joined[-1] = (role, joined[-1][1] + content)
        else:
            joined.append((role, content))
    lead = "\n\n" if not _has_system(sample) else ""

    def answer(content: str) -> str:
        return content if content.startswith("<think>") else EMPTY_THINK + content

    return _written(Sample(tuple(joined), sample.tools), lead, answer)


TRAINERS: dict[str, Trainer] = {
    "trl": Trainer("every token", _everything, 1024),
    "trl-assistant-only": Trainer(
        "assistant_only_loss=True: assistant turns of its training template",
        _trl_assistant_only,
        1024,
    ),
    "axolotl": Trainer("assistant contents and their <|im_end|>", _axolotl),
    "llama-factory": Trainer("template qwen3: assistant turns", _llama_factory, 2048),
    "ms-swift": Trainer("template qwen3: assistant turns", _ms_swift),
    "openrlhf": Trainer("the last turn; the tools column is ignored", _openrlhf, 2048),
    "openrlhf-multiturn": Trainer(
        "--multiturn: turns measured in the renderings of their beginnings; tools ignored",
        _openrlhf_multiturn,
        2048,
    ),
    "verl": Trainer("assistant messages, each rendered alone", _verl, 1024, refuses=True),
}
"""Lengths are the defaults of trainers.md section 5 (OpenRLHF: data.max_len)."""


def _has_system(sample: Sample) -> bool:
    return bool(sample.messages) and sample.messages[0][0] == "system"


def _messages(sample: Sample) -> list[dict[str, Json]]:
    return [{"role": role, "content": content} for role, content in sample.messages]


def _written(sample: Sample, lead: str, answer: Callable[[str], str]) -> Mask:
    """The turns one after the other, `answer` making what follows the header of an assistant's.

    `lead` stands before the tools block where there is no system text. Answers are trained to the
    newline after their end.
    """
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    length = 0

    def write(text: str) -> None:
        nonlocal length
        pieces.append(text)
        length += len(text)

    block = tools_block(tuple(dumps(tool) for tool in sample.tools)).text if sample.tools else ""
    messages = list(sample.messages)
    if _has_system(sample):
        gap = "\n\n" if block else ""
        write(f"<|im_start|>system\n{messages.pop(0)[1]}{gap}{block}<|im_end|>\n")
    elif block:
        write(f"<|im_start|>system\n{lead}{block}<|im_end|>\n")
    for role, content in messages:
        write(f"<|im_start|>{role}\n")
        start = length
        write(answer(content) if role == "assistant" else content)
        write("<|im_end|>\n")
        if role == "assistant":
            spans.append((start, length))
    return Mask("".join(pieces), tuple(spans))


def _merged(spans: Sequence[tuple[int, int]]) -> Spans:
    """Spans in order, those that overlap as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


# -- counting ------------------------------------------------------------------------------------

_TURN = re.compile(r"<\|im_start\|>(system|user|assistant)\n(.*?)(<\|im_end\|>|\Z)(\n?)", re.DOTALL)
_BLOCK = re.compile(r"<think>\n(.*?)</think>\n\n", re.DOTALL)


def regions(text: str) -> Iterator[tuple[int, str]]:
    """(where it begins, name of REGIONS) for each stretch of a rendering, in order."""
    for turn in _TURN.finditer(text):
        role, content = turn[1], turn[2]
        yield turn.start(), "turn headers"
        at = turn.start(2)
        if role == "assistant":
            if block := _BLOCK.match(text, at, turn.end(2)):
                yield at, "thoughts" if block[1].strip("\n") else "empty think blocks"
                at = block.end()
            yield at, "answers"
        elif role == "user":
            yield at, "tool responses" if is_response(content) else "queries"
        else:
            yield at, "system and definitions"
        if turn[4]:
            yield turn.start(4), "newlines after turns"


@dataclass(slots=True)
class Comparison:
    """One trainer over a dataset.

    ours, theirs  tokens trained, by region
    answers_lost  tokens of ours that it does not train although it trains the sample
    same          samples of which it trains exactly our tokens of our text
    other_text    samples that it renders to another text than the proven one
    beyond        samples longer than its default length
    refused       {reason: samples}
    borders       samples in which a border of ours or of its lies inside a token
    """

    trainer: str
    samples: int = 0
    ours: Counter[str] = field(default_factory=Counter)
    theirs: Counter[str] = field(default_factory=Counter)
    answers_lost: int = 0
    same: int = 0
    other_text: int = 0
    beyond: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    borders: int = 0

    def add(self, sample: Sample, text: str, own: _Trained, tokens: _Tokens) -> None:
        """Count a proven sample: its rendering, and our tokens of it."""
        trainer = TRAINERS[self.trainer]
        self.samples += 1
        self.ours.update(own.regions)
        mask = trainer.rule(sample, text, tokens.target)
        if isinstance(mask, Refusal):
            self.refused[mask.reason] += 1
            return
        found = tokens.trained(mask, None if trainer.refuses else trainer.limit)
        self.borders += own.crossed or found.crossed
        same_text = mask.text.removesuffix("\n") == text.removesuffix("\n")
        self.other_text += not same_text
        if trainer.limit is not None and found.length > trainer.limit:
            self.beyond += 1
            if trainer.refuses:
                self.refused[f"longer than {trainer.limit} tokens"] += 1
                return
        self.theirs.update(found.regions)
        self.same += same_text and own.numbers == found.numbers
        if same_text:
            self.answers_lost += len(own.numbers - found.numbers)


def compare(
    sample: Sample,
    text: str,
    spans: Spans,
    target: Target,
    comparisons: Iterable[Comparison],
) -> None:
    """Count a proven sample: its rendering, and the spans that it teaches."""
    tokens = _Tokens(target)
    own = tokens.trained(Mask(text, spans))
    for comparison in comparisons:
        comparison.add(sample, text, own, tokens)


@dataclass(frozen=True, slots=True)
class _Trained:
    """Tokens inside spans: how many the text has, their numbers, and how many of each region.

    `crossed`: a border of the spans lies inside a token.
    """

    length: int
    numbers: frozenset[int]
    regions: Counter[str]
    crossed: bool


class _Tokens:
    """The tokens of the texts that trainers make of one sample, each text tokenised once."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._known: dict[str, tuple[list[tuple[int, int]], list[int], list[str]]] = {}

    def trained(self, mask: Mask, limit: int | None = None) -> _Trained:
        """Those inside the mask's spans, cut after `limit` tokens."""
        offsets, starts, names = self._marked(mask.text)
        numbers: set[int] = set()
        crossed = False
        for start, end in mask.spans:
            first, last = bisect_left(starts, start), bisect_left(starts, end)
            crossed |= any(
                at > 0 and offsets[at - 1][1] > border
                for at, border in ((first, start), (last, end))
            )
            numbers.update(range(first, last if limit is None else min(last, limit)))
        return _Trained(
            len(offsets), frozenset(numbers), Counter(names[at] for at in numbers), crossed
        )

    def _marked(self, text: str) -> tuple[list[tuple[int, int]], list[int], list[str]]:
        """Offsets, their beginnings, and the region of each token."""
        if text not in self._known:
            offsets = self.target.offsets(text)
            marks = list(regions(text))
            names = []
            mark = 0
            for start, _ in offsets:
                while mark + 1 < len(marks) and marks[mark + 1][0] <= start:
                    mark += 1
                names.append(marks[mark][1] if marks else REGIONS[0])
            self._known[text] = (offsets, [start for start, _ in offsets], names)
        return self._known[text]
