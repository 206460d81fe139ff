"""Unsloth (2026.10): TRL's trainer with masks found by the markers of turns."""

from __future__ import annotations

from builder.trainers.record import MODEL, ExportFiles, Facts, Trainer
from builder.trainers.trl import TRL


def _configure(export: ExportFiles, facts: Facts) -> dict[str, str]:
    last = "    last_response_only=True,\n" if facts.targets == "last" else ""
    return {
        "unsloth.py": f'''"""Unsloth: the rows are read by their `messages` column; run from this folder."""
from datasets import load_dataset
from unsloth import FastLanguageModel
from unsloth.chat_templates import train_on_responses_only
from trl import SFTConfig, SFTTrainer

model, tokenizer = FastLanguageModel.from_pretrained("{MODEL}", max_seq_length={facts.length})
# Unsloth's own model repositories may carry a changed template: take the official one.
rows = load_dataset({export.quoted_folder}, split="{export.train_split}")
# Longer samples are cut; {TRL.beyond_default(facts)}.
trainer = SFTTrainer(model, train_dataset=rows, args=SFTConfig(max_length={facts.length}))
# A literal marker inside a tool result would be trained: this dataset holds none (check `tokens`).
trainer = train_on_responses_only(
    trainer,
    instruction_part="<|im_start|>user\\n",
    response_part="<|im_start|>assistant\\n",
{last})
trainer.train()
'''
    }


def _difference(variant: str, facts: Facts) -> str:
    block = "the empty think block of the last turn and " if facts.hybrid else ""
    return f"{block}the newline after each turn are trained too (by its source, not run)"


UNSLOTH = Trainer(
    name="unsloth",
    title="unsloth",
    variants={"messages": "last", "messages-str": "last", "tools-in-system": "last"},
    configure=_configure,
    difference=_difference,
)
