"""OpenRLHF (0.11.2)."""

from __future__ import annotations

import shlex

from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.trainers.masks import Mask, MaskRefusal, MaskRule, as_messages, merged
from builder.trainers.record import (
    LEARNING_RATE,
    LORA_ALPHA,
    LORA_RANK,
    ExportFiles,
    Facts,
    Trainer,
    split_of,
)


def _configure(export: ExportFiles, facts: Facts) -> dict[str, str]:
    place = shlex.quote(f"../{export.folder}")
    evaluated = ""
    if export.evaluation is not None:
        evaluated = f" \\\n  --eval.dataset {place} --eval.split {split_of(export.evaluation)}"
    return {
        "openrlhf.sh": f"""# OpenRLHF ignores a tools column, so the definitions are in the system turn. With the hybrid
# Qwen3 template its --data.multiturn mask runs past the turns (issue 1080): use one sample for each
# turn (normalize.unit: turn) and train the last turn, as here. An incomplete batch makes no
# step: {facts.remainder}.
deepspeed --module openrlhf.cli.train_sft --model.model_name_or_path {facts.model} \\
  --data.dataset {place} --data.dataset_split {export.train_split} \\
  --data.input_key messages --data.apply_chat_template --data.max_len {OPENRLHF.length(facts, export.variant)}{evaluated} \\
  --ds.lora.rank {LORA_RANK} --ds.lora.alpha {LORA_ALPHA} --model.gradient_checkpointing_enable \\
  --train.micro_batch_size 1 --train.batch_size {facts.batch} --train.max_epochs 1 \\
  --adam.lr {LEARNING_RATE} --ckpt.output_dir output
# Longer samples are cut; {OPENRLHF.beyond_default(facts)}.
"""
    }


def _difference(variant: str, facts: Facts) -> str:
    differences = []
    if facts.targets == "every":
        differences.append(
            "only the last turn of each sample is trained (use normalize.unit: turn)"
        )
    if facts.hybrid:
        differences.append("the empty think block of the last turn is trained too")
    return "; ".join(differences)


_LENGTH = 2048


def _last_turn(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Covers the last turn, without definitions; refuses a prompt that leaves no room for it."""
    messages = as_messages(sample)
    prompt = target.render(messages[:-1], None, add_generation_prompt=True)
    if len(target.offsets(prompt)) >= _LENGTH - 2:
        return MaskRefusal(f"a prompt of {_LENGTH - 2} tokens or more")
    whole = prompt + target.render(messages, None)[len(prompt) :].rstrip("\n")
    return Mask(whole, ((len(prompt), len(whole)),))


def _multiturn(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Covers each turn, measured in the rendering of the messages up to it.

    These positions are applied to the rendering of the whole sample, where they may not fit.
    """
    last = _last_turn(sample, text, target)
    if isinstance(last, MaskRefusal):
        return last
    messages = as_messages(sample)
    offsets = target.offsets(last.text)
    spans = []
    for at, message in enumerate(messages):
        if message["role"] != "assistant" or not at:
            continue
        before = target.render(messages[:at], None, add_generation_prompt=True)
        answer = target.render(messages[: at + 1], None)[len(before) :]
        first = min(len(target.offsets(before)), _LENGTH)
        end = first + min(len(target.offsets(answer)), _LENGTH)
        if first < len(offsets):
            spans.append((offsets[first][0], offsets[min(end, len(offsets)) - 1][1]))
    return Mask(last.text, merged(spans))


OPENRLHF = Trainer(
    name="openrlhf",
    title="OpenRLHF",
    variants={"tools-in-system": "last"},
    configure=_configure,
    difference=_difference,
    command="sh configs/openrlhf.sh",
    default_length=_LENGTH,
    masks={
        "openrlhf": MaskRule("the last turn; the tools column is ignored", _last_turn, _LENGTH),
        "openrlhf-multiturn": MaskRule(
            "--multiturn: turns measured in the renderings of their beginnings; tools ignored",
            _multiturn,
            _LENGTH,
        ),
    },
)
