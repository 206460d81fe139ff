"""Defines the variants: the rows, and the text that a trainer renders from each.

`rows` and `text` are written separately on purpose: a row is correct if `text`, which renders a
loaded row as the trainer does, gives the bytes that were proven.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from builder.conversation import Json
from builder.dataset.meta import Preference
from builder.dataset.rows import DatasetRow
from builder.jsonio import dumps, loads
from builder.normalize.units import examples
from builder.output.rows import TEXT, TOOLS, Feature, messages_feature
from builder.qwen3.calls import call_text
from builder.qwen3.flat import flatten
from builder.qwen3.render import tools_block
from builder.qwen3.templates import SPECIFIED, Style
from builder.qwen3.tokenizer import Target
from builder.sample import Call, Dialogue, Sample, Turn
from builder.trainers.table import TRAINERS, Targets, Trainer
from builder.verify.verifier import Verdict, Verifier

# -- exports preference pairs from the `preferences` of meta/, each side proven like a sample ------


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Two answers to the same messages.

    chosen, rejected  samples that differ only in their last message
    texts             the proven renderings of the two
    tokens            of the longer one
    """

    reason: str
    chosen: Sample
    rejected: Sample
    texts: tuple[str, str]
    tokens: int


@dataclass(slots=True)
class PreferencePairs:
    """Proves the pairs of a dataset, each once; `left_out` counts the others by code."""

    verifier: Verifier
    left_out: Counter[str] = field(default_factory=Counter)
    _known: set[bytes] = field(default_factory=set)

    def proven(self, row: DatasetRow, sample: Sample) -> Iterator[PreferencePair]:
        """Yields the proven pairs of a row."""
        for item in row.meta.preferences:
            sides = _sides(item, sample)
            if sides is None:
                self.left_out["bad_preference"] += 1
                continue
            pair = self._prove(*sides, late_system=row.late_system)
            if isinstance(pair, str):
                self.left_out[pair] += 1
            else:
                yield pair

    def _prove(
        self, reason: str, chosen: Sample, rejected: Sample, *, late_system: bool
    ) -> PreferencePair | str:
        """Returns the pair, or the code of the reason to leave it out."""
        if chosen.messages == rejected.messages:
            return "same_answer"
        verdicts = [self._verdict(one, late_system=late_system) for one in (chosen, rejected)]
        for verdict in verdicts:
            if verdict.findings:
                return verdict.findings[0].code
        one, other = (verdict.text for verdict in verdicts)
        header = self.verifier.target.style.assistant
        if _prompt(one, header) != _prompt(other, header):
            return "prefix"
        digest = hashlib.sha256(f"{one}\0{other}".encode()).digest()
        if digest in self._known:
            return "duplicate"
        self._known.add(digest)
        tokens = max(verdict.tokens for verdict in verdicts)
        return PreferencePair(reason, chosen, rejected, (one, other), tokens)

    def _verdict(self, sample: Sample, *, late_system: bool) -> Verdict:
        answers = sum(role == "assistant" for role, _ in sample.messages)
        return self.verifier.check(sample, targets=(answers - 1,), late_system=late_system)


def _sides(item: Preference, sample: Sample) -> tuple[str, Sample, Sample] | None:
    """Returns the reason and both sides of a pair; None if it does not fit this sample."""
    answers = [answer for answer, (role, _) in enumerate(sample.messages) if role == "assistant"]
    if not item.reason or item.turn >= len(answers):
        return None
    answer = answers[item.turn]
    own = sample.messages[answer][1]
    thoughts = (*sample.thoughts[:answer], "") if any(sample.thoughts[:answer]) else ()
    chosen, rejected = (
        Sample(
            (*sample.messages[:answer], ("assistant", own if text is None else text)),
            sample.tools,
            thoughts=thoughts,
        )
        for text in (item.chosen, item.rejected)
    )
    return item.reason, chosen, rejected


def _prompt(text: str, header: str) -> str:
    return text[: text.rindex(header) + len(header)]


IGNORED = -100
"""The label that the loss functions of all trainers ignore."""


class BorderFault(Exception):
    """A span does not begin or end at a token boundary, so its tokens cannot be assigned."""


def labels(
    ids: Sequence[int], offsets: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]
) -> list[int]:
    """Returns the ids inside the spans, IGNORED elsewhere. Offsets and spans are code points.

    Raises BorderFault if a token crosses a border of a span.
    """
    labelled = [IGNORED] * len(ids)
    position = 0
    for start, end in spans:
        while position < len(ids) and offsets[position][1] <= start:
            position += 1
        if position < len(ids) and offsets[position][0] < start:
            raise BorderFault(f"a token crosses the beginning of the span at {start}")
        while position < len(ids) and offsets[position][0] < end:
            if offsets[position][1] > end:
                raise BorderFault(f"a token crosses the end of the span at {end}")
            labelled[position] = ids[position]
            position += 1
    return labelled


# -- defines a variant: its rows, and the text that a trainer renders from each --------------------

Row = dict[str, Any]

_WEIGHTS: tuple[Feature, ...] = (
    {"name": "weight", "dtype": "int64"},
    {"name": "loss", "dtype": "bool"},
)
_MESSAGES = messages_feature()


@dataclass(frozen=True, slots=True)
class ExportItem:
    """A proven sample, its dialogue, and its rendering with the trained spans.

    tokens   of the rendering
    targets  for each assistant turn, in order, whether it is trained
    prompt   the generation prompt of the inference mode that the spans are for
    reward   that of the run, as its log states it
    pairs    its preference pairs, if the variant consists of pairs
    """

    sample: Sample
    dialogue: Dialogue
    text: str
    tokens: int
    spans: tuple[tuple[int, int], ...]
    targets: tuple[bool, ...]
    prompt: str
    reward: float | None = None
    pairs: tuple[PreferencePair, ...] = ()

    def messages(self, sample: Sample) -> list[Row]:
        """Returns the messages of `sample`, another form of the item's sample, with weights."""
        messages = sample.rows
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
    distinct  whether a row that equals an earlier one is left out
    """

    name: str
    summary: str
    kind: str
    features: tuple[Feature, ...]
    rows: Callable[[ExportItem, Target], Iterator[tuple[Row, str]]]
    text: Callable[[Row, Target], str]
    of_pairs: bool = False
    distinct: bool = False

    @property
    def trainers(self) -> tuple[Trainer, ...]:
        """The trainers that read it."""
        return tuple(item for item in TRAINERS.values() if item.reads(self.name))

    def able_trainers(self, targets: Targets, target: Target) -> list[Trainer]:
        """Returns the trainers that can train just these turns of the target's text from it."""
        able = (item for item in self.trainers if item.can_train(self.name, targets))
        return [item for item in able if item.unfit(self.name, target) is None]

    def declared(self, *, weighted: bool, beside: bool) -> list[Feature]:
        """Returns the features.

        `weighted`: `messages` carry `weight` and `loss`; `beside`: `reasoning_content`.
        """
        weights = _WEIGHTS if weighted else ()
        return [
            messages_feature(
                item["name"], beside=beside, weights=weights if item == _MESSAGES else ()
            )
            if item.get("list") == _MESSAGES["list"]
            else item
            for item in self.features
        ]


def _plain(item: ExportItem, _: Target) -> Iterator[tuple[Row, str]]:
    messages = item.messages(item.sample)
    yield {"messages": messages, "tools": list(item.sample.tools)}, item.text


def _rendered(row: Row, target: Target, columns: Sequence[str] = ("messages",)) -> str:
    """Renders the messages of some columns, with tools in a list or as JSON text."""
    tools: Any = row.get("tools") or None
    if isinstance(tools, str):
        tools = loads(tools) or None
    return target.render([message for name in columns for message in row[name]], tools)


def _text_tools(item: ExportItem, _: Target) -> Iterator[tuple[Row, str]]:
    """Writes null if there are no tools: "" breaks TRL and axolotl, "[]" LLaMA-Factory."""
    tools = dumps(list(item.sample.tools)) if item.sample.tools else None
    yield {"messages": item.messages(item.sample), "tools": tools}, item.text


def _in_system(sample: Sample, style: Style = SPECIFIED) -> Sample:
    """Returns the sample with its tools block in the system turn, as the template renders it."""
    if not sample.tools:
        return sample
    block = tools_block(sample.definitions, style.tools).text
    messages, thoughts = sample.messages, sample.thoughts
    if messages[0][0] == "system":
        own = messages[0][1]
        parts = (block, own) if style.tools.first else (own, block)
        text = "\n\n".join(part for part in parts if part or not style.tools.first)
        return Sample((("system", text), *messages[1:]), thoughts=thoughts)
    first = ("system", style.tools_lead + block)
    return Sample((first, *messages), thoughts=("", *thoughts) if thoughts else ())


def _system_tools(item: ExportItem, target: Target) -> Iterator[tuple[Row, str]]:
    yield {"messages": item.messages(_in_system(item.sample, target.style))}, item.text


def call_ids(number: int, turn: Turn) -> list[str]:
    """Returns an id for each call of a turn, made from positions: the flat form has no ids."""
    return [f"call_{number}_{place}" for place in range(len(turn.calls))]


def _structured_messages(dialogue: Dialogue, style: Style = SPECIFIED) -> list[Row]:
    """Returns messages with `tool_calls` and role tool; ids come from `call_ids`.

    Arguments are JSON text, or objects for a template that takes nothing else: the card declares
    the messages as JSON, so that the loader adds no keys to them.
    """
    messages: list[Row] = []
    ids: list[str] = []
    for number, turn in enumerate(dialogue.turns):
        if turn.role == "tool":
            messages += [
                {"role": "tool", "tool_call_id": name, "content": text}
                for name, text in zip(ids, turn.responses, strict=True)
            ]
            continue
        message: Row = {"role": turn.role, "content": turn.content}
        if turn.reasoning:
            message["reasoning_content"] = turn.reasoning
        if turn.calls:
            ids = call_ids(number, turn)
            message["tool_calls"] = [
                {
                    "id": name,
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": call.text if style.dialect.plain else call.arguments,
                    },
                }
                for name, call in zip(ids, turn.calls, strict=True)
            ]
        messages.append(message)
    return messages


def _openai(item: ExportItem, target: Target) -> Iterator[tuple[Row, str]]:
    messages = _structured_messages(item.dialogue, target.style)
    item.weigh(messages)
    yield {"messages": messages, "tools": list(item.sample.tools)}, item.text


def _turns(item: ExportItem, target: Target) -> Iterator[tuple[Sample, str, int]]:
    """Yields (sample that ends with a target, its rendering, start of the text to train)."""
    style = target.style
    every = (replace(turn, trained=True) for turn in item.dialogue.turns)
    dialogue = replace(item.dialogue, turns=tuple(every))
    for piece, trained in zip(examples(dialogue, "turn", style), item.targets, strict=True):
        if not trained:
            continue
        sample = flatten(piece.dialogue, style)
        text = target.render_sample(sample)
        header = text.rindex(style.assistant)
        start = header + len(style.assistant)
        if text.startswith(item.prompt, header):
            start = header + len(item.prompt)
        yield sample, text, start


def _completions(item: ExportItem, target: Target) -> Iterator[tuple[Row, str]]:
    for sample, text, _ in _turns(item, target):
        messages = sample.rows
        row = {"prompt": messages[:-1], "completion": messages[-1:], "tools": list(sample.tools)}
        yield row, text


def _text_completions(item: ExportItem, target: Target) -> Iterator[tuple[Row, str]]:
    """Ends completions with the turn's end, because TRL adds one to a text that ends otherwise."""
    for _, text, start in _turns(item, target):
        yield {"prompt": text[:start], "completion": text[start:].removesuffix("\n")}, text


def _sharegpt(item: ExportItem, _: Target) -> Iterator[tuple[Row, str]]:
    """Yields one row. Turns with calls and no text become `function_call`, other answers `gpt`.

    LLaMA-Factory renders the JSON of a function_call turn with its own spacing: a turn that it
    would not render to the same bytes stays text.
    """
    system = None
    turns: list[Row] = []
    flat = [content for _, content in item.sample.messages]
    for turn, content in zip(item.dialogue.turns, flat, strict=True):
        is_canonical = all(call.text == call.plain for call in turn.calls)
        if turn.role == "system":
            system = content
        elif turn.role == "tool":
            turns.append(
                {"from": "observation", "value": content.removeprefix(_OPEN).removesuffix(_CLOSE)}
            )
        elif turn.role == "user":
            turns.append({"from": "human", "value": content})
        elif turn.calls and not turn.content and not turn.reasoning and is_canonical:
            calls: list[Json] = [{"name": c.name, "arguments": c.arguments} for c in turn.calls]
            value = dumps(calls[0] if len(calls) == 1 else calls)
            turns.append({"from": "function_call", "value": value})
        else:
            turns.append({"from": "gpt", "value": content})
    tools = dumps(list(item.sample.tools)) if item.sample.tools else None
    yield {"conversations": turns, "system": system, "tools": tools}, item.text


_OPEN, _CLOSE = "<tool_response>\n", "\n</tool_response>"


def _sharegpt_text(row: Row, target: Target) -> str:
    """Renders by LLaMA-Factory's rules for `qwen3` with a system turn."""
    messages: list[Row] = []
    if row["system"] is not None:
        messages.append({"role": "system", "content": row["system"]})
    for turn in row["conversations"]:
        value = turn["value"]
        match turn["from"]:
            case "human":
                messages.append({"role": "user", "content": value})
            case "observation":
                messages.append({"role": "user", "content": f"{_OPEN}{value}{_CLOSE}"})
            case "function_call":
                called: Any = loads(value)
                calls = called if isinstance(called, list) else [called]
                texts = [call_text(Call.of(call["name"], call["arguments"])) for call in calls]
                messages.append({"role": "assistant", "content": "\n".join(texts)})
            case _:
                messages.append({"role": "assistant", "content": value})
    return _rendered({"messages": messages, "tools": row["tools"]}, target)


def _token_rows(item: ExportItem, target: Target) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the row of a sample. Raises BorderFault."""
    ids = target.encode(item.text).ids
    row = {
        "input_ids": ids,
        "attention_mask": [1] * len(ids),
        "labels": labels(ids, target.offsets(item.text), item.spans),
        "length": len(ids),
    }
    yield row, item.text


def _preferences(item: ExportItem, _: Target) -> Iterator[tuple[Row, str]]:
    for pair in item.pairs:
        chosen, rejected = pair.chosen.rows, pair.rejected.rows
        row = {
            "prompt": chosen[:-1],
            "chosen": chosen[-1:],
            "rejected": rejected[-1:],
            "tools": list(pair.chosen.tools),
            "reason": pair.reason,
        }
        yield row, "\0".join(pair.texts)


def _preferences_text(row: Row, target: Target) -> str:
    sides = ("chosen", "rejected")
    return "\0".join(_rendered(row, target, ("prompt", side)) for side in sides)


_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect AI's grades (correct, partial, incorrect, none) as its `value_to_float` counts them."""


def reward_of(outcome: Mapping[str, Json] | None) -> float | None:
    """Returns the reward of a run: a number in its log, or whether it succeeded; else None."""
    for name in ("reward", "score", "resolved", "success"):
        value = (outcome or {}).get(name)
        if isinstance(value, dict) and len(value) == 1:
            (value,) = value.values()
        if name == "score" and isinstance(value, str) and value in _GRADES:
            return _GRADES[value]
        if isinstance(value, str | int | float):
            with contextlib.suppress(ValueError, OverflowError):
                if math.isfinite(number := float(value)):
                    return number
    return None


def _prompts(item: ExportItem, target: Target) -> Iterator[tuple[Row, str]]:
    """Yields prompts with definitions in the system turn: trainers render no column of tools.

    A run with a reward gives its first question and the reward. Any other gives the prompt of each
    trained turn and the logged answer as reference.
    """
    inside = _in_system(item.sample, target.style)
    rows, plain = inside.rows, item.sample.rows
    added = len(rows) - len(plain)
    answers = [at for at, message in enumerate(rows) if message["role"] == "assistant"]
    wanted = [at for at, trained in zip(answers, item.targets, strict=True) if trained]
    for at in answers[:1] if item.reward is not None else wanted:
        row = {
            "prompt": rows[:at],
            "answer": None if item.reward is not None else rows[at]["content"],
            "logged_reward": item.reward,
            "tools": dumps(list(item.sample.tools)) if item.sample.tools else None,
        }
        yield row, target.render(plain[: at - added], item.sample.tools)


def reference_answer(row: Row) -> str:
    """Returns the logged answer of a row of prompts; "": it has none, or is no such row."""
    return row.get("answer") or row.get("reward_model", {}).get("ground_truth") or ""


def _prompts_text(row: Row, target: Target) -> str:
    return target.render(row["prompt"], None)


def _verl_prompts(item: ExportItem, target: Target) -> Iterator[tuple[Row, str]]:
    """Yields the same in the columns that verl's RLHFDataset and its reward functions read."""
    for row, text in _prompts(item, target):
        columns: Row = {
            "data_source": "toolcall-builder",
            "prompt": row["prompt"],
            "ability": "tool_calling",
            "reward_model": {"style": "rule", "ground_truth": row["answer"] or ""},
            "extra_info": {"logged_reward": row["logged_reward"], "tools": row["tools"]},
        }
        yield columns, text


_TURN_LIST: Json = [{"name": "from", "dtype": "string"}, {"name": "value", "dtype": "string"}]
_IDS: tuple[Feature, ...] = tuple(
    {"name": name, "list": "int64"} for name in ("input_ids", "attention_mask", "labels")
)

VARIANTS: dict[str, Variant] = {
    item.name: item
    for item in (
        Variant(
            "messages",
            "the specification's form: messages, and tools as a list",
            "jsonl",
            (_MESSAGES, TOOLS),
            _plain,
            _rendered,
        ),
        Variant(
            "messages-str",
            "messages, and tools as one JSON string (survives every version of datasets)",
            "jsonl",
            (_MESSAGES, {"name": "tools", **TEXT}),
            _text_tools,
            _rendered,
        ),
        Variant(
            "tools-in-system",
            "the tools block in the system turn, no tools column (if the column is ignored)",
            "jsonl",
            (_MESSAGES,),
            _system_tools,
            _rendered,
        ),
        Variant(
            "openai",
            "structured tool_calls and role tool",
            "jsonl",
            ({"name": "messages", "list": "json"}, TOOLS),
            _openai,
            _rendered,
        ),
        Variant(
            "prompt-completion",
            "a row for each assistant turn: prompt and completion as messages",
            "jsonl",
            (messages_feature("prompt"), messages_feature("completion"), TOOLS),
            _completions,
            partial(_rendered, columns=("prompt", "completion")),
        ),
        Variant(
            "prompt-completion-text",
            "a row for each assistant turn: prompt and completion as rendered text",
            "jsonl",
            ({"name": "prompt", **TEXT}, {"name": "completion", **TEXT}),
            _text_completions,
            lambda row, _: f"{row['prompt']}{row['completion']}\n",
        ),
        Variant(
            "sharegpt",
            "LLaMA-Factory's function_call and observation turns, with dataset_info.json",
            "jsonl",
            (
                {"name": "conversations", "list": _TURN_LIST},
                {"name": "system", **TEXT},
                {"name": "tools", **TEXT},
            ),
            _sharegpt,
            _sharegpt_text,
        ),
        Variant(
            "tokenized",
            "input_ids, attention_mask, labels from the spans, length",
            "parquet",
            (*_IDS, {"name": "length", "dtype": "int64"}),
            _token_rows,
            lambda row, target: target.decode(list(row["input_ids"])),
        ),
        Variant(
            "preference",
            "a row for each preference pair: prompt, chosen and rejected as messages, for DPO",
            "jsonl",
            (
                messages_feature("prompt"),
                messages_feature("chosen"),
                messages_feature("rejected"),
                TOOLS,
                {"name": "reason", **TEXT},
            ),
            _preferences,
            _preferences_text,
            of_pairs=True,
        ),
        Variant(
            "trl-grpo",
            "a row for each prompt, with the logged answer or the run's reward, for GRPOTrainer",
            "jsonl",
            (
                messages_feature("prompt"),
                {"name": "answer", **TEXT},
                {"name": "logged_reward", "dtype": "float64"},
                {"name": "tools", **TEXT},
            ),
            _prompts,
            _prompts_text,
            distinct=True,
        ),
        Variant(
            "verl-rl",
            "a row for each prompt, with the logged answer or the run's reward, as verl reads it",
            "parquet",
            (
                {"name": "data_source", **TEXT},
                messages_feature("prompt"),
                {"name": "ability", **TEXT},
                {
                    "name": "reward_model",
                    "struct": [{"name": "style", **TEXT}, {"name": "ground_truth", **TEXT}],
                },
                {
                    "name": "extra_info",
                    "struct": [
                        {"name": "logged_reward", "dtype": "float64"},
                        {"name": "tools", **TEXT},
                    ],
                },
            ),
            _verl_prompts,
            _prompts_text,
            distinct=True,
        ),
        Variant(
            "verl",
            "Parquet with nested messages, the tools block in the system turn",
            "parquet",
            (_MESSAGES,),
            _system_tools,
            _rendered,
        ),
    )
}
"""The variants by name, in the order of help and documentation."""
