"""Defines what a trainer's loss covers: the types, and the rules that several trainers share.

The rules follow the sources of the versions in docs/parity.md; TRL's run in the conformance tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from builder.qwen3.calls import EMPTY_THINK
from builder.qwen3.render import ASSISTANT, Spans, render_sample, split_thought, tools_block
from builder.qwen3.templates import Thoughts
from builder.qwen3.tokenizer import Target
from builder.sample import Sample

Ranges = list[tuple[int, int]]
"""[first, last) of token positions."""


@dataclass(frozen=True, slots=True)
class Mask:
    """A trainer's version of a sample: its text, and [start, end) of the parts with loss."""

    text: str
    spans: Spans


@dataclass(frozen=True, slots=True)
class MaskRefusal:
    """Why a trainer does not train the sample at all."""

    reason: str


_Rule = Callable[[Sample, str, Target], Mask | MaskRefusal]
"""Maps (sample, its proven rendering, target) to the trainer's version of it."""

Cut = Callable[[int, Ranges, int], Ranges]
"""Maps (tokens of the text, those inside spans, the limit) to the tokens that remain."""


def keep_start(length: int, trained: Ranges, limit: int) -> Ranges:
    """Returns the first `limit` tokens."""
    return [(0, min(length, limit))]


def keep_pairs(length: int, trained: Ranges, limit: int) -> Ranges:
    """Cuts like LLaMA-Factory: each prompt and its answer get a share of the remaining length.

    If the answer is shorter than half of the remaining length, the end of the prompt is cut; if the
    prompt is, the end of the answer; otherwise both are cut in proportion.
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
class MaskRule:
    """The mask of one setting of a trainer.

    summary  the setting and what it trains, in one line
    limit    tokens that it accepts; None: no default limit
    cut      returns what it keeps of a longer sample; None: it refuses the sample
    across   whether a token that crosses the border of a trained span is trained as well
    """

    summary: str
    rule: _Rule
    limit: int | None = None
    cut: Cut | None = keep_start
    across: bool = False


def render_turns(
    sample: Sample, default: str | None, gap: str, answer: Callable[[str], str]
) -> Mask:
    """Renders the turns one by one; answers are trained through the newline after them.

    `answer` returns what follows the header of an assistant turn. `default` is the system text of a
    sample that has none; if it is None as well, `gap` precedes the tools block.
    """
    text = ""
    spans: list[tuple[int, int]] = []
    block = tools_block(sample.definitions).text if sample.tools else ""
    messages = list(sample.messages)
    has_system = bool(messages) and messages[0][0] == "system"
    system = messages.pop(0)[1] if has_system else default
    if system is not None or block:
        lead = gap if system is None else system + "\n\n" if block else system
        text = f"<|im_start|>system\n{lead}{block}<|im_end|>\n"
    for role, content in messages:
        text += f"<|im_start|>{role}\n"
        start = len(text)
        text += answer(content) if role == "assistant" else content
        text += "<|im_end|>\n"
        if role == "assistant":
            spans.append((start, len(text)))
    return Mask(text, tuple(spans))


def _merged(spans: Sequence[tuple[int, int]]) -> Spans:
    """Returns the spans in order, with overlapping ones joined."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


_KNOWN_TEMPLATES = (
    "Qwen3 original (2025-04)",  # renders like the revised text, which TRL knows
    "Qwen3",
    "Qwen3 Instruct-2507",
    "Qwen3-VL Instruct",
    "Qwen2.5",
)


def _assistant_only(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Renders like TRL's training template: a think block in every turn, trained to the newline."""
    if target.template_name not in _KNOWN_TEMPLATES:
        return MaskRefusal("it has no training template for this model (ValueError)")
    if target.style.thoughts is not Thoughts.hybrid:
        answers = render_sample(sample, target.style).answers
        before = 1 if target.template_name == "Qwen2.5" else 0  # the newline after the header too
        return Mask(text, tuple((start - before, end + 1) for start, end in answers))

    def answer(content: str) -> str:
        thought, body = split_thought(content)
        stripped = body.lstrip("\n")
        return f"<think>\n{thought.strip(chr(10))}\n</think>\n\n{stripped}"

    return render_turns(sample, target.style.default_system, "", answer)


def _axolotl(sample: Sample, text: str, target: Target) -> Mask:
    """Covers the part of the rendering that depends on the turn's content, and its `<|im_end|>`."""
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
            begin = start + len("<think>\n")  # the template writes it for any content
        spans.append((begin, end))
    return Mask(text, tuple(spans))


def _llama_factory(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Renders like template `qwen3` with enable_thinking at its default: empty blocks are trained.

    Targets without thoughts use `qwen3_nothink` (`qwen`), which leaves the text unchanged.
    """
    roles = [role for role, _ in sample.messages if role != "system"]
    if roles != ["user", "assistant"] * (len(roles) // 2):
        return MaskRefusal("turns that do not alternate (dropped with a warning)")
    hybrid = target.style.thoughts is Thoughts.hybrid

    def answer(content: str) -> str:
        has_tags = "<think>" in content or "</think>" in content
        return EMPTY_THINK + content if hybrid and not has_tags else content

    return render_turns(sample, target.style.default_system, "\n\n", answer)


def _ms_swift(sample: Sample, text: str, target: Target) -> Mask:
    """Writes an empty block, which is trained, in every turn; joins consecutive messages of a role.

    Targets without thoughts, and those that always think, get no block.
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

    return render_turns(
        Sample(tuple(joined), sample.tools), target.style.default_system, "\n\n", answer
    )


_OPENRLHF = 2048


def _last_turn(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Covers the last turn, without definitions; refuses a prompt that leaves no room for it."""
    prompt = target.render(sample.rows[:-1], None, add_generation_prompt=True)
    if len(target.offsets(prompt)) >= _OPENRLHF - 2:
        return MaskRefusal(f"a prompt of {_OPENRLHF - 2} tokens or more")
    whole = prompt + target.render(sample.rows, None)[len(prompt) :].rstrip("\n")
    return Mask(whole, ((len(prompt), len(whole)),))


def _multiturn(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Covers each turn, measured in the rendering of the messages up to it.

    These positions are applied to the rendering of the whole sample, where they may not fit.
    """
    last = _last_turn(sample, text, target)
    if isinstance(last, MaskRefusal):
        return last
    messages = sample.rows
    offsets = target.offsets(last.text)
    spans = []
    for at, message in enumerate(messages):
        if message["role"] != "assistant" or not at:
            continue
        before = target.render(messages[:at], None, add_generation_prompt=True)
        answer = target.render(messages[: at + 1], None)[len(before) :]
        first = min(len(target.offsets(before)), _OPENRLHF)
        end = first + min(len(target.offsets(answer)), _OPENRLHF)
        if first < len(offsets):
            spans.append((offsets[first][0], offsets[min(end, len(offsets)) - 1][1]))
    return Mask(last.text, _merged(spans))


def _message_by_message(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Renders each message separately; the pieces must add up to the whole rendering.

    The first tokens of each answer are untrained: as many as a generation prompt has, whichever
    they are.
    """
    whole = ""
    spans = []
    default = target.style.default_system
    lead = f"<|im_start|>system\n{default}<|im_end|>\n" if default is not None else ""
    prompt = len(target.offsets(target.generation_prompts["thinking"]))
    for at, message in enumerate(sample.rows):
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


MASKS: dict[str, MaskRule] = {
    "trl": MaskRule("every token", lambda _, text, __: Mask(text, ((0, len(text)),)), 1024),
    "trl-assistant-only": MaskRule(
        "assistant_only_loss=True: assistant turns of its training template"
        " (it knows the revised Qwen3 text and refuses the original)",
        _assistant_only,
        1024,
        across=True,
    ),
    "axolotl": MaskRule("assistant contents and their <|im_end|>", _axolotl, across=True),
    "llama-factory": MaskRule(
        "template qwen3 (qwen3_nothink for samples without thoughts): assistant turns",
        _llama_factory,
        2048,
        keep_pairs,
    ),
    "ms-swift": MaskRule(
        "template qwen3 (qwen3_nothinking for samples without thoughts): assistant turns", _ms_swift
    ),
    "openrlhf": MaskRule("the last turn; the tools column is ignored", _last_turn, _OPENRLHF),
    "openrlhf-multiturn": MaskRule(
        "--multiturn: turns measured in the renderings of their beginnings; tools ignored",
        _multiturn,
        _OPENRLHF,
    ),
    "verl": MaskRule(
        "assistant messages, each rendered alone", _message_by_message, 1024, cut=None
    ),
}
"""The masks that `verify --masks` compares, by name."""
