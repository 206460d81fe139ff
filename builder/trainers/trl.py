"""TRL's SFTTrainer (1.16.0), and Unsloth (2026.10.9), which runs it."""

from __future__ import annotations

from builder.qwen3.render import render_sample, split_thought
from builder.qwen3.templates import Thoughts
from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.trainers.masks import Mask, MaskRefusal, MaskRule, render_turns
from builder.trainers.record import (
    ACCUMULATION,
    LEARNING_RATE,
    LORA_ALPHA,
    LORA_RANK,
    ExportFiles,
    Facts,
    Trainer,
)

_COMPLETIONS = ("prompt-completion", "prompt-completion-text")
_PAIRS = "preference"


def _configure(export: ExportFiles, facts: Facts) -> dict[str, str]:
    command, rows, loss, rate = "sft", "samples", "", LEARNING_RATE
    if export.variant == _PAIRS:
        command, rows, rate = "dpo", "pairs", "5.0e-6"
    elif export.variant in _COMPLETIONS:
        loss = "completion_only_loss: true  # the default for these columns\n"
    elif export.variant != "tokenized":
        loss = """# By default TRL trains every token, tool results and definitions too. To train the tokens of
# meta.spans in the verified text use the export `tokenized` (builder export --to tokenized).
assistant_only_loss: true
"""
    return {
        "trl.yaml": f"""# trl {command} --config configs/trl.yaml
model_name_or_path: {facts.model}
dataset_name: {export.quoted_folder}  # this folder, as datasets cannot load "." (or its Hub id)
dataset_train_split: {export.train_split}
max_length: {TRL.length(facts, export.variant)}        # longer {rows} are cut; {TRL.beyond_default(facts)}
{loss}output_dir: output
use_peft: true             # LoRA
lora_r: {LORA_RANK}
lora_alpha: {LORA_ALPHA}
lora_target_modules: all-linear
learning_rate: {rate}
num_train_epochs: 1
per_device_train_batch_size: 1
gradient_accumulation_steps: {ACCUMULATION}
gradient_checkpointing: true
logging_steps: 1
"""
    }


def _difference(variant: str, facts: Facts) -> str:
    if variant == _PAIRS:
        block = "the empty think block, " if facts.hybrid else ""
        return (
            "the loss compares two answers to one prompt; it counts the tokens of the last turn of"
            f" each: {block}the answer and the newline after it"
        )
    if variant == "tokenized":
        return ""
    if variant == "prompt-completion-text":
        return (
            "the text of each span is trained, but each row is a turn of its own, with the context"
            " that a server renders for it"
        )
    if variant == "prompt-completion":
        block = "the empty think block and " if facts.hybrid else ""
        return f"{block}the newline after each turn are trained too; each row is a turn of its own"
    if facts.hybrid:
        return (
            "another text is trained: TRL's training template writes a think block into every turn"
            " and trains it, with the newline after the turn"
        )
    return "the newline after each turn is trained too"


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


_LENGTH = 1024

TRL = Trainer(
    name="trl",
    title="TRL",
    loss_templates=frozenset({"Qwen3.5", "Qwen3.5 without thoughts", "Qwen3.6", "Qwen3.8"}),
    variants={
        "tokenized": "some",
        "prompt-completion-text": "some",
        "prompt-completion": "some",
        "messages": "every",
        "messages-str": "every",
        "tools-in-system": "every",
        "openai": "every",
        "preference": "some",
    },
    configure=_configure,
    difference=_difference,
    command="trl sft --config configs/trl.yaml",
    pairs_command="trl dpo --config configs/trl.yaml",
    default_length=_LENGTH,
    wider=frozenset({"messages", "messages-str", "tools-in-system", "openai"}),
    masks={
        "trl": MaskRule("every token", lambda _, text, __: Mask(text, ((0, len(text)),)), _LENGTH),
        "trl-assistant-only": MaskRule(
            "assistant_only_loss=True: assistant turns of its training template"
            " (it knows the revised Qwen3 text and refuses the original)",
            _assistant_only,
            _LENGTH,
            across=True,
        ),
    },
)


# -- unsloth (2026.10.9): takes labels as they are, or finds the turns by their markers ------------


def _configure_unsloth(export: ExportFiles, facts: Facts) -> dict[str, str]:
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


def _difference_unsloth(variant: str, facts: Facts) -> str:
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
    configure=_configure_unsloth,
    difference=_difference_unsloth,
    command="python configs/unsloth.py",
)
