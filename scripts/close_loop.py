"""Closes the loop on the CPU: builds, exports, trains a tiny model, asks it for every trained turn.

    scripts/close_loop.py [--conversations N] [--steps N]

The model has Qwen3's architecture, random weights and a vocabulary of the tokens that occur. It is
trained with the labels of the export `tokenized` and nothing else, for each training unit, and once
without the token that ends a turn. Then each trained turn is generated from the prompt that the
chat template gives for the messages before it, in each mode of inference. Reported are the turns
that come back token for token, those that stopped, and the calls that two parsers read. Exits with
1 if fewer than 95 % come back in the target's own setting: `unit: turn`, in the mode of
`verify.mode`. A small model that memorises shows the direction, not the size, for a trained one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import disable_progress_bars, load_dataset
from transformers import Qwen3Config, Qwen3ForCausalLM, set_seed

from builder import cli
from builder.dataset.rows import dataset_rows
from builder.qwen3.calls import ParseFault
from builder.qwen3.flat import parse, to_dialogue
from builder.qwen3.render import ASSISTANT, MODES
from builder.qwen3.tokenizer import Target, load
from builder.sample import Sample

OWN = "non-thinking"
"""The default of `verify.mode`."""
NEEDED = 0.95
LEARNT = 0.002
IGNORED = -100
BLOCK = "<think>\n\n</think>\n\n"
END = "<|im_end|>"
USER = "<|im_start|>user\na<|im_end|>\n"
BATCH = 8
KINDS = ("call", "text", "last")
"""Turns with a call, other turns, and the last turn of a conversation."""

NAMES = ("Ada", "Bo", "Cem", "Dee", "Eli", "Fay", "Gus", "Hal", "Ida", "Jo", "Kim", "Lea")
WORDS = ("notes", "index", "draft", "plan", "report", "list", "log", "table", "mail", "page")
RESPONSE: dict[str, Any] = {
    "version": 1,
    "start_anchor": ASSISTANT,
    "fields": {
        "content": {"close_pattern": r"\n?(?=<tool_call>)|<\|im_end\|>"},
        "tool_calls": {
            "open_pattern": r"\s*<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
        },
    },
}
"""A response template with which transformers' `parse_response` reads Qwen3's calls."""


def tool(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def conversations(count: int) -> Iterator[dict[str, Any]]:
    """Yields conversations with two queries, a call and an answer to each."""
    for number in range(count):
        path = f"{WORDS[number % len(WORDS)]}-{number}.txt"
        lines, name = str(number * 37 + 11), NAMES[number % len(NAMES)]
        messages: list[dict[str, Any]] = []
        for query, text, called, result, answer in (
            (f"How long is {path}?", "I count.", "wc", lines, f"{path} has {lines} lines."),
            ("Who wrote it?", "", "blame", name, f"{name} wrote {path}."),
        ):
            call = {"id": called, "type": "function", "function": {
                "name": called, "arguments": json.dumps({"path": path})}}  # fmt: skip
            messages += [
                {"role": "user", "content": query},
                {"role": "assistant", "content": text, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": called, "content": result},
                {"role": "assistant", "content": answer},
            ]
        yield {"messages": messages, "tools": [tool("wc"), tool("blame")]}


def run(*arguments: str) -> None:
    if code := cli.main([*arguments, "--quiet"]):
        sys.exit(f"builder {' '.join(arguments)}: exit code {code}")


def made(log: Path, unit: str, folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Builds the log with a training unit; returns the dataset and the rows of its export."""
    config = folder / f"{unit}.yaml"
    config.write_text(f"normalize: {{unit: {unit}}}\naudit: {{near_duplicates: report}}\n")
    dataset, export = folder / unit, folder / f"{unit}-tokenized"
    run("build", str(log), "-c", str(config), "-o", str(dataset), "--workers", "1")
    run("export", str(dataset), "--to", "tokenized", "-o", str(export))
    rows = load_dataset(str(export), split="train", cache_dir=str(folder / "cache"))
    return dataset, list(rows)


@dataclass
class Vocabulary:
    """The tokens that occur, numbered from 0; the model needs no others."""

    ids: list[int]

    def __post_init__(self) -> None:
        self._numbers = {known: number for number, known in enumerate(self.ids)}

    def small(self, ids: Sequence[int]) -> list[int]:
        """Returns the model's numbers of the tokenizer's ids; labels may be IGNORED."""
        return [one if one == IGNORED else self._numbers[one] for one in ids]

    def large(self, numbers: Sequence[int]) -> list[int]:
        """Returns the tokenizer's ids of the model's numbers."""
        return [self.ids[number] for number in numbers]


def trained(
    rows: Sequence[dict[str, Any]], vocabulary: Vocabulary, steps: int, *, without: int | None
) -> tuple[Qwen3ForCausalLM, float, int]:
    """Trains a model with the labels of the rows; returns it, its last loss and the steps taken.

    `without` is a token whose labels are left out.
    """
    set_seed(0)
    config = Qwen3Config(
        vocab_size=len(vocabulary.ids), hidden_size=96, intermediate_size=192,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=24,
        max_position_embeddings=2048, tie_word_embeddings=True,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    batches = []
    for at in range(0, len(rows), BATCH):
        chosen = rows[at : at + BATCH]
        longest = max(len(row["input_ids"]) for row in chosen)
        ids = torch.zeros((len(chosen), longest), dtype=torch.long)
        labels = torch.full_like(ids, IGNORED)
        for line, row in enumerate(chosen):
            wanted = [IGNORED if one == without else one for one in row["labels"]]
            ids[line, : len(wanted)] = torch.tensor(vocabulary.small(row["input_ids"]))
            labels[line, : len(wanted)] = torch.tensor(vocabulary.small(wanted))
        batches.append((ids, labels))
    recent: list[float] = []
    step = 0
    model.train()
    for step in range(1, steps + 1):
        for group in optimiser.param_groups:
            group["lr"] = 3e-3 * min(1.0, step / 20) * (1 - 0.9 * step / steps)
        ids, labels = batches[step % len(batches)]
        loss = model(input_ids=ids, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        recent = [*recent[1 - len(batches) :], loss.item()] if len(batches) > 1 else [loss.item()]
        if len(recent) == len(batches) and max(recent) < LEARNT:
            break
    model.eval()  # type: ignore[no-untyped-call] # torch is not installed where this is checked
    return model, max(recent), step


@dataclass
class Asked:
    """A trained turn, as a server is asked for it: one of KINDS, the prompt of each mode, text."""

    kind: str
    prompts: dict[str, str]
    wanted: str


def questions(dataset: Path, target: Target) -> Iterator[Asked]:
    """Yields the trained turns of a dataset."""
    for row in dataset_rows(str(dataset)):
        sample = row.sample
        assert isinstance(sample, Sample), "it was built"
        answers = [at for at, (role, _) in enumerate(sample.messages) if role == "assistant"]
        targets = sample.targets
        if row.meta.unit == "turn":
            targets = (len(answers) - 1,)
        for ordinal in targets:
            at = answers[ordinal]
            text = sample.messages[at][1]
            prompts = {
                mode: target.render(
                    sample.rows[:at], sample.tools,
                    add_generation_prompt=True, enable_thinking=thinking,
                )
                for mode, thinking in MODES.items()
            }  # fmt: skip
            kind = "last" if at == len(sample.messages) - 1 and row.meta.unit != "turn" else "text"
            yield Asked("call" if "<tool_call>" in text else kind, prompts, text + END)


def generated(model: Qwen3ForCausalLM, ids: list[int], stop: int, limit: int) -> list[int]:
    """Returns the most probable continuation, up to the stop token or `limit` tokens."""
    found: list[int] = []
    cache = None
    given = ids
    with torch.no_grad():
        while len(found) < limit and (not found or found[-1] != stop):
            out = model(input_ids=torch.tensor([given]), cache=cache, use_cache=True)
            cache = out.past_key_values
            given = [int(out.logits[0, -1].argmax())]
            found += given
    return found


def asked(
    model: Qwen3ForCausalLM, vocabulary: Vocabulary, target: Target, turns: Sequence[Asked],
    mode: str,
) -> Counter[str]:  # fmt: skip
    """Asks for each turn in a mode, and counts what came back."""
    counts: Counter[str] = Counter()
    tokenizer = target.tokenizer
    stop = vocabulary.small([target.tokenizer.vocab[END]])[0]
    for turn in turns:
        wanted = target.encode(turn.wanted).ids
        prompt = vocabulary.small(target.encode(turn.prompts[mode]).ids)
        given = generated(model, prompt, stop, len(wanted) + 12)
        text = target.decode(vocabulary.large(given)).removeprefix(BLOCK)
        counts[f"{turn.kind}s"] += 1
        counts[f"{turn.kind}s back"] += target.encode(text).ids == wanted
        counts["stopped"] += given[-1] == stop
        if turn.kind == "call":
            meant = [json.loads(turn.wanted.split("<tool_call>")[1].split("</tool_call>")[0])]
            counts["read by transformers"] += _by_transformers(tokenizer, text) == meant
            counts["read by builder"] += _by_builder(text) == meant
    return counts


def _by_transformers(tokenizer: Any, text: str) -> list[Any]:
    try:
        found = tokenizer.parse_response(text, RESPONSE, prefix=ASSISTANT)
    except ValueError:  # text that is no JSON
        return []
    return list(found.get("tool_calls") or [])


def _by_builder(text: str) -> list[Any]:
    try:
        turn = to_dialogue(parse(f"{USER}{ASSISTANT}{text}\n")).turns[-1]
    except ParseFault:
        return []
    return [{"name": call.name, "arguments": call.arguments} for call in turn.calls]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--conversations", type=int, default=4)
    parser.add_argument("--steps", type=int, default=240)
    options = parser.parse_args()
    disable_progress_bars()
    torch.set_num_threads(1)  # more threads wait for one another in so small a model
    target = load()
    own: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        log = folder / "log.jsonl"
        with log.open("w", encoding="utf-8") as stream:
            stream.writelines(
                json.dumps(row) + "\n" for row in conversations(options.conversations)
            )
        sets = {unit: made(log, unit, folder) for unit in ("conversation", "turn")}
        turns = {unit: list(questions(dataset, target)) for unit, (dataset, _) in sets.items()}
        ids = {one for _, rows in sets.values() for row in rows for one in row["input_ids"]}
        ids |= {
            one for each in turns.values() for turn in each for prompt in turn.prompts.values()
            for one in target.encode(prompt).ids
        }  # fmt: skip
        vocabulary = Vocabulary(sorted(ids))
        stop = target.tokenizer.vocab[END]
        heads = ("calls back", "texts back", "last back", "stopped", "transformers", "builder")
        print(f"{'unit':14}{'labels':9}{'asked in':14}", *(f"{head:12}" for head in heads), "loss")
        for unit, labels in (("conversation", "whole"), ("turn", "whole"), ("turn", "no stop")):
            began = time.monotonic()
            without = stop if labels == "no stop" else None
            rows = sets[unit][1]
            model, loss, steps = trained(rows, vocabulary, options.steps, without=without)
            spent = time.monotonic() - began
            for mode in MODES:
                if labels == "no stop" and mode != OWN:
                    continue
                found = asked(model, vocabulary, target, turns[unit], mode)
                total = sum(found[f"{kind}s"] for kind in KINDS)
                cells = [f"{found[f'{kind}s back']} of {found[f'{kind}s']}" for kind in KINDS]
                cells += [f"{found['stopped']} of {total}"]
                cells += [str(found[f"read by {name}"]) for name in ("transformers", "builder")]
                ended = f"{loss:.4f} ({steps} steps, {spent:.0f} s)"
                print(f"{unit:14}{labels:9}{mode:14}", *(f"{cell:12}" for cell in cells), ended)
                sys.stdout.flush()
                if (unit, labels, mode) == ("turn", "whole", OWN):
                    own = found
    back = sum(own[f"{kind}s back"] for kind in KINDS)
    every = sum(own[f"{kind}s"] for kind in KINDS)
    if back < NEEDED * every:
        sys.exit(f"unit: turn in {OWN} mode: {back} of {every} turns come back, fewer than 95 %")


if __name__ == "__main__":
    main()
