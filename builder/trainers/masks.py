"""Which text a trainer's default would train, by its rules.

Ours are the spans of `builder.qwen3.parity`: what the model is to say, to the end of `<|im_end|>`.
The rules are those of trainers.md and of the sources of the versions named there; TRL's are run for
real in the conformance tests. A trainer may render another text than the tokenizer's template, and
may cut or refuse what is longer than its default. docs/masks.md has the rules in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from builder.conversation import Json
from builder.qwen3.constants import EMPTY_THINK
from builder.qwen3.parity import ASSISTANT, Spans
from builder.qwen3.render import render_sample, split_thought, tools_block
from builder.qwen3.style import Thoughts
from builder.qwen3.tokenizer import Target
from builder.sample import Sample

Ranges = list[tuple[int, int]]
"""[first, last) of token positions."""


@dataclass(frozen=True, slots=True)
class Mask:
    """What a trainer makes of a sample: its text, and [start, end) of what carries loss."""

    text: str
    spans: Spans


@dataclass(frozen=True, slots=True)
class MaskRefusal:
    """Why a trainer does not train the sample at all."""

    reason: str


Rule = Callable[[Sample, str, Target], Mask | MaskRefusal]
"""(sample, its proven rendering, target) to what the trainer makes of it."""

Cut = Callable[[int, Ranges, int], Ranges]
"""(tokens of the text, those inside spans, the limit) to the tokens that stay."""


def keep_start(length: int, trained: Ranges, limit: int) -> Ranges:
    """The first `limit` tokens."""
    return [(0, min(length, limit))]


def keep_pairs(length: int, trained: Ranges, limit: int) -> Ranges:
    """LLaMA-Factory's way: a share of each prompt and its answer until nothing is left.

    The end of a prompt goes before an answer does, if the answer is shorter than half of what is
    left, and the answer's end if the prompt is; else both in proportion.
    """
    kept: Ranges = []
    before = 0
    for first, last in trained:
        if limit <= 0:
            break
        prompt, answer = first - before, last - first
        room = limit
        if answer * 2 >= limit:
            fits = prompt * 2 < limit
            room = limit - prompt if fits else int(limit * (answer / (prompt + answer)))
        answer = min(room, answer)
        prompt = min(max(limit - answer, 0), prompt)
        kept += [(before, before + prompt), (first, first + answer)]
        limit -= prompt + answer
        before = last
    return kept


@dataclass(frozen=True, slots=True)
class Trainer:
    """A trainer's default.

    limit   the tokens that it takes; None: no default
    cut     what it keeps of a longer sample; None: it refuses it
    across  a token that lies across the border of what is trained is trained as well
    """

    about: str
    rule: Rule
    limit: int | None = None
    cut: Cut | None = keep_start
    across: bool = False


# -- what is trained: the rules ------------------------------------------------------------------


def _everything(sample: Sample, text: str, target: Target) -> Mask:
    return Mask(text, ((0, len(text)),))


def _axolotl(sample: Sample, text: str, target: Target) -> Mask:
    """What changes in the rendering with the turn's content, and its `<|im_end|>`."""
    rendering = render_sample(sample, target.style)
    if target.style.thoughts is not Thoughts.hybrid:
        return Mask(text, rendering.answers)
    last = len(rendering.answers) - 1
    spans = []
    for number, (start, end) in enumerate(rendering.answers):
        begin = start
        if text.startswith(EMPTY_THINK, start):
            begin = start + len(EMPTY_THINK)
        elif number == last:
            begin = start + len("<think>\n")  # the block is there for any content
        spans.append((begin, end))
    return Mask(text, tuple(spans))


_OPENRLHF_LIMIT = 2048


def _openrlhf(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """The last turn; definitions are not read. A prompt that leaves no room is left out."""
    messages = _messages(sample)
    prompt = target.render(messages[:-1], None, add_generation_prompt=True)
    if len(target.offsets(prompt)) >= _OPENRLHF_LIMIT - 2:
        return MaskRefusal(f"a prompt of {_OPENRLHF_LIMIT - 2} tokens or more")
    whole = prompt + target.render(messages, None)[len(prompt) :].rstrip("\n")
    return Mask(whole, ((len(prompt), len(whole)),))


def _openrlhf_multiturn(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Each turn where it stands in the rendering of what goes before, laid over the whole."""
    found = _openrlhf(sample, text, target)
    if isinstance(found, MaskRefusal):
        return found
    messages = _messages(sample)
    offsets = target.offsets(found.text)
    spans = []
    for at, message in enumerate(messages):
        if message["role"] != "assistant" or not at:
            continue
        before = target.render(messages[:at], None, add_generation_prompt=True)
        answer = target.render(messages[: at + 1], None)[len(before) :]
        first = min(len(target.offsets(before)), _OPENRLHF_LIMIT)
        end = first + min(len(target.offsets(answer)), _OPENRLHF_LIMIT)
        if first < len(offsets):
            spans.append((offsets[first][0], offsets[min(end, len(offsets)) - 1][1]))
    return Mask(found.text, _merged(spans))


def _verl(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Each message rendered alone; the pieces must make the whole.

    As many tokens as a generation prompt has go untrained at the beginning of an answer, whatever
    they are.
    """
    whole = ""
    spans = []
    default = target.style.default_system
    lead = f"<|im_start|>system\n{default}<|im_end|>\n" if default is not None else ""
    prompt = len(target.offsets(target.generation_prompts["thinking"]))
    for at, message in enumerate(_messages(sample)):
        piece = target.render([message], sample.tools if at == 0 else None)
        if at and message["role"] != "system":
            piece = piece.removeprefix(lead)
        if message["role"] == "assistant":
            offsets = target.offsets(piece)
            if prompt < len(offsets):
                spans.append((len(whole) + offsets[prompt][0], len(whole) + len(piece)))
        whole += piece
    if whole != text:
        return MaskRefusal("its pieces differ from the whole rendering (AssertionError)")
    return Mask(whole, tuple(spans))


_TRL_TRAINS = (
    "Qwen3 original (2025-04)",  # as the revised text, which it knows: both render alike
    "Qwen3 revised",
    "Qwen3 Instruct-2507",
    "Qwen3-VL Instruct",
    "Qwen2.5",
)


def _trl_assistant_only(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """TRL's training template: a think block in every turn; trained to the newline after it."""
    if target.template_name not in _TRL_TRAINS:
        return MaskRefusal("it has no training template for this target (ValueError)")
    if target.style.thoughts is not Thoughts.hybrid:
        answers = render_sample(sample, target.style).answers
        before = 1 if target.template_name == "Qwen2.5" else 0  # its newline after the header too
        return Mask(text, tuple((start - before, end + 1) for start, end in answers))

    def answer(content: str) -> str:
        thought, body = split_thought(content)
        stripped = body.lstrip("\n")
        return f"<think>\n{thought.strip(chr(10))}\n</think>\n\n{stripped}"

    return _written(sample, target.style.default_system, "", answer)


def _llama_factory(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Template `qwen3` with its default enable_thinking: an empty block in every turn, trained.

    For a target without thoughts `qwen3_nothink` (`qwen`): the text as it is.
    """
    roles = [role for role, _ in sample.messages if role != "system"]
    if roles != ["user", "assistant"] * (len(roles) // 2):
        return MaskRefusal("turns that do not alternate (dropped with a warning)")
    hybrid = target.style.thoughts is Thoughts.hybrid

    def answer(content: str) -> str:
        known = "<think>" in content or "</think>" in content
        return EMPTY_THINK + content if hybrid and not known else content

    return _written(sample, target.style.default_system, "\n\n", answer)


def _ms_swift(sample: Sample, text: str, target: Target) -> Mask:
    """An empty block in every turn, trained; consecutive messages of a role are joined.

    No block for a target without thoughts, and for one that always thinks.
    """
    joined: list[tuple[str, str]] = []
    for role, content in sample.messages:
        if joined and joined[-1][0] == role:
            joined[-1] = (role, joined[-1][1] + content)
        else:
            joined.append((role, content))
    optional = target.generation_prompts["thinking"] == ASSISTANT
    hybrid = target.style.thoughts is Thoughts.hybrid and optional

    def answer(content: str) -> str:
        return EMPTY_THINK + content if hybrid and not content.startswith("<think>") else content

    whole = Sample(tuple(joined), sample.tools)
    return _written(whole, target.style.default_system, "\n\n", answer)


TRAINERS: dict[str, Trainer] = {
    "trl": Trainer("every token", _everything, 1024),
    "trl-assistant-only": Trainer(
        "assistant_only_loss=True: assistant turns of its training template"
        " (it knows the revised Qwen3 text and refuses the original)",
        _trl_assistant_only,
        1024,
        across=True,
    ),
    "axolotl": Trainer("assistant contents and their <|im_end|>", _axolotl, across=True),
    "llama-factory": Trainer(
        "template qwen3 (qwen3_nothink for targets without thoughts): assistant turns",
        _llama_factory,
        2048,
        keep_pairs,
    ),
    "ms-swift": Trainer(
        "template qwen3 (qwen3_nothinking for targets without thoughts): assistant turns", _ms_swift
    ),
    "openrlhf": Trainer("the last turn; the tools column is ignored", _openrlhf, _OPENRLHF_LIMIT),
    "openrlhf-multiturn": Trainer(
        "--multiturn: turns measured in the renderings of their beginnings; tools ignored",
        _openrlhf_multiturn,
        _OPENRLHF_LIMIT,
    ),
    "verl": Trainer("assistant messages, each rendered alone", _verl, 1024, cut=None),
}
"""Lengths are the defaults of trainers.md section 5 (OpenRLHF: data.max_len)."""


def _has_system(sample: Sample) -> bool:
    return bool(sample.messages) and sample.messages[0][0] == "system"


def _messages(sample: Sample) -> list[dict[str, Json]]:
    return [{"role": role, "content": content} for role, content in sample.messages]


def _written(sample: Sample, default: str | None, gap: str, answer: Callable[[str], str]) -> Mask:
    """The turns one after the other, `answer` making what follows the header of an assistant's.

    `default` is the system text of a sample that has none; without one, `gap` stands before the
    tools block. Answers are trained to the newline after their end.
    """
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    length = 0

    def write(text: str) -> None:
        nonlocal length
        pieces.append(text)
        length += len(text)

    block = tools_block(sample.definitions).text if sample.tools else ""
    messages = list(sample.messages)
    system = messages.pop(0)[1] if _has_system(sample) else default
    if system is not None or block:
        lead = gap if system is None else system + "\n\n" if block else system
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
