"""Unsloth (2026.10.9): takes labels as they are, or finds the turns by their markers."""

from __future__ import annotations

from builder.trainers.record import (
    ACCUMULATION,
    LEARNING_RATE,
    LORA_ALPHA,
    LORA_RANK,
    ExportFiles,
    Facts,
    Trainer,
)
from builder.trainers.trl import TRL


def _configure(export: ExportFiles, facts: Facts) -> dict[str, str]:
    rows = f'load_dataset({export.quoted_folder}, split="{export.train_split}")'
    args = (
        f'SFTConfig(max_length={UNSLOTH.length(facts, export.variant)}, output_dir="output", num_train_epochs=1,'
        f" learning_rate={LEARNING_RATE}, per_device_train_batch_size=1,"
        f" gradient_accumulation_steps={ACCUMULATION})"
    )
    start = f"""from unsloth import FastLanguageModel
from trl import SFTConfig, SFTTrainer

model, tokenizer = FastLanguageModel.from_pretrained("{facts.model}", max_seq_length={UNSLOTH.length(facts, export.variant)})
model = FastLanguageModel.get_peft_model(
    model, r={LORA_RANK}, lora_alpha={LORA_ALPHA}, use_gradient_checkpointing="unsloth"
)
"""
    if export.variant == "tokenized":
        text = f'''"""Unsloth: the rows have labels, which are taken as they are; run from this folder."""
from datasets import load_dataset
{start}rows = {rows}
trainer = SFTTrainer(model, train_dataset=rows, args={args})
trainer.train()
'''
        return {"unsloth.py": text}
    last = "    last_response_only=True,\n" if facts.targets == "last" else ""
    text = f'''"""Unsloth: the rows are read by their `messages` column; run from this folder."""
from datasets import load_dataset
from unsloth.chat_templates import train_on_responses_only
{start}# Unsloth's own model repositories may carry a changed template: take the official one.
rows = {rows}
# Longer samples are cut; {TRL.beyond_default(facts)}.
trainer = SFTTrainer(model, train_dataset=rows, args={args})
# A literal marker inside a tool result would be trained: this dataset has none (check `tokens`).
trainer = train_on_responses_only(
    trainer,
    instruction_part="<|im_start|>user\\n",
    response_part="<|im_start|>assistant\\n",
{last})
trainer.train()
'''
    return {"unsloth.py": text}


def _difference(variant: str, facts: Facts) -> str:
    if variant == "tokenized":
        return ""
    if facts.hybrid:
        return "the empty think block of the last turn is trained too"
    return (
        "all of a turn is trained, including what its generation prompt ends with, such as <think>"
    )


UNSLOTH = Trainer(
    name="unsloth",
    title="unsloth",
    needs_chatml=True,
    variants={
        "tokenized": "some",
        "messages": "last",
        "messages-str": "last",
        "tools-in-system": "last",
    },
    configure=_configure,
    difference=_difference,
    command="python configs/unsloth.py",
)
