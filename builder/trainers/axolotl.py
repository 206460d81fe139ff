"""axolotl (0.19.0)."""

from __future__ import annotations

from builder.qwen3.calls import EMPTY_THINK
from builder.qwen3.render import render_sample
from builder.qwen3.templates import Thoughts
from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.trainers.masks import Mask, MaskRule
from builder.trainers.record import (
    ACCUMULATION,
    LEARNING_RATE,
    LORA_ALPHA,
    LORA_RANK,
    ExportFiles,
    Facts,
    Trainer,
    split_of,
)


def _configure(export: ExportFiles, facts: Facts) -> dict[str, str]:
    kind = "" if export.variant == "tokenized" else " chat_template"
    weights = ""
    if kind and facts.targets != "every":
        weights = "\n    message_field_training: weight  # 0: the turn is not trained"
    evaluated = ""
    if export.evaluation is not None:
        evaluated = f"""test_datasets:
  - path: {export.quoted_folder}
    split: {split_of(export.evaluation)}
    type:{kind}{weights}
"""
    return {
        "axolotl.yaml": f"""# axolotl train configs/axolotl.yaml
base_model: {facts.model}
chat_template: tokenizer_default
datasets:
  - path: {export.quoted_folder}  # this folder, as datasets cannot load "." (or its Hub id)
    split: {export.train_split}
    type:{kind}{weights}
{evaluated}sequence_len: {AXOLOTL.length(facts, export.variant)}
excess_length_strategy: raise  # by default a longer sample is dropped
output_dir: ./output
adapter: lora
lora_r: {LORA_RANK}
lora_alpha: {LORA_ALPHA}
lora_target_linear: true
learning_rate: {LEARNING_RATE}
optimizer: adamw_torch
lr_scheduler: cosine
num_epochs: 1
micro_batch_size: 1
gradient_accumulation_steps: {ACCUMULATION}
gradient_checkpointing: true
bf16: auto
"""
    }


def _difference(variant: str, facts: Facts) -> str:
    differences = []
    if variant == "messages":
        differences.append("nulls inside of tool definitions are lost (messages-str keeps them)")
    if variant != "tokenized" and facts.hybrid and facts.thinking:
        differences.append(
            "`<think>` and its newline are not trained where a last turn begins with a thought"
            f" ({facts.thinking} of {facts.samples} samples have thoughts)"
        )
    return "; ".join(differences)


def _mask(sample: Sample, text: str, target: Target) -> Mask:
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


AXOLOTL = Trainer(
    name="axolotl",
    title="axolotl",
    variants={
        "messages-str": "some",
        "tokenized": "some",
        "messages": "some",
        "tools-in-system": "some",
    },
    configure=_configure,
    difference=_difference,
    command="axolotl train configs/axolotl.yaml",
    masks={"axolotl": MaskRule("assistant contents and their <|im_end|>", _mask, across=True)},
)
