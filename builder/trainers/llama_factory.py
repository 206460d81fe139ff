"""LLaMA-Factory (0.9.5)."""

from __future__ import annotations

from builder.qwen3.calls import EMPTY_THINK
from builder.qwen3.templates import Thoughts
from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.text import counted
from builder.trainers.masks import Mask, MaskRefusal, MaskRule, keep_pairs, render_turns
from builder.trainers.record import (
    ACCUMULATION,
    LEARNING_RATE,
    LORA_ALPHA,
    LORA_RANK,
    ExportFiles,
    Facts,
    Trainer,
)


def _configure(export: ExportFiles, facts: Facts) -> dict[str, str]:
    columns = '"messages": "messages", "tools": "tools"'
    tags = (
        '"role_tag": "role", "content_tag": "content", "user_tag": "user",'
        ' "assistant_tag": "assistant", "system_tag": "system"'
    )
    if export.variant == "sharegpt":
        columns = '"messages": "conversations", "system": "system", "tools": "tools"'
        tags = (
            '"role_tag": "from", "content_tag": "value", "user_tag": "human",'
            ' "assistant_tag": "gpt", "function_tag": "function_call",'
            ' "observation_tag": "observation"'
        )
    files = {"tool_calls": export.train}
    evaluated = ""
    if export.evaluation is not None:
        files["tool_calls_eval"] = export.evaluation
        evaluated = "eval_dataset: tool_calls_eval\n"
    entries = ",\n".join(
        f""" "{name}": {{
  "file_name": "{path}",
  "formatting": "sharegpt",
  "columns": {{{columns}}},
  "tags": {{{tags}}}
 }}"""
        for name, path in files.items()
    )
    history = "mask_history: true         # only the last turn is trained\n"
    return {
        "../dataset_info.json": f"{{\n{entries}\n}}\n",
        "llama_factory.yaml": f"""# llamafactory-cli train configs/llama_factory.yaml
# Samples whose turns do not alternate, with a query right after tool results, are dropped with a
# warning: {facts.following} of {facts.samples}. A sample with tools and no system turn gets two more newlines before
# the definitions: {facts.bare} of {facts.samples}.
model_name_or_path: {facts.model}
stage: sft
do_train: true
dataset_dir: .
dataset: tool_calls
{evaluated}template: qwen3
enable_thinking: false     # removes thoughts; true would train an empty think block in every turn
{history if facts.targets == "last" else ""}cutoff_len: {LLAMA_FACTORY.length(facts, export.variant)}          # longer samples are cut; {LLAMA_FACTORY.beyond_default(facts)}
output_dir: output
finetuning_type: lora      # with gradient checkpointing, the default
lora_rank: {LORA_RANK}
lora_alpha: {LORA_ALPHA}
lora_target: all
learning_rate: {LEARNING_RATE}
num_train_epochs: 1.0
per_device_train_batch_size: 1
gradient_accumulation_steps: {ACCUMULATION}
""",
    }


def _drops(facts: Facts) -> str:
    if not facts.following:
        return ""
    count = f"{facts.following:,} of {counted(facts.samples, 'sample')}"
    return f"{count}, whose turns do not alternate: a query stands right after tool results"


def _difference(variant: str, facts: Facts) -> str:
    differences = ["the newline after each turn is trained too"]
    if facts.hybrid and facts.targets == "every":
        differences.append("the text has an empty think block in every turn, untrained")
    if facts.bare:
        differences.append(
            f"{facts.bare} of {facts.samples} samples get newlines before the definitions"
        )
    if facts.thinking:
        differences.append(f"thoughts are removed ({facts.thinking} of {facts.samples} samples)")
    return "; ".join(differences)


def _mask(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
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


_LENGTH = 2048

LLAMA_FACTORY = Trainer(
    name="llama-factory",
    title="LLaMA-Factory",
    own_text=True,
    variants={"messages-str": "last", "sharegpt": "last"},
    configure=_configure,
    difference=_difference,
    drops=_drops,
    command="llamafactory-cli train configs/llama_factory.yaml",
    default_length=_LENGTH,
    wider=frozenset({"messages-str", "sharegpt"}),
    masks={
        "llama-factory": MaskRule(
            "template qwen3 (qwen3_nothink for samples without thoughts): assistant turns",
            _mask,
            _LENGTH,
            keep_pairs,
        )
    },
)
