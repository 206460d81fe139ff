"""Ready configurations for trainers, with lengths from the dataset, and the warnings that apply.

Source: trainers.md (versions read in November 2026). What was run and what was read only is said in
docs/export.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

DEFAULT_LENGTHS = {"trl": 1024, "llama-factory": 2048, "verl": 1024}
"""Tokens after which a trainer cuts (or refuses) a sample unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of the samples: the longest, and how many are longer than a trainer's default."""

    samples: int
    longest: int
    beyond: dict[str, int]

    @property
    def setting(self) -> int:
        """The longest, rounded up to a multiple of 64."""
        return max(-(-self.longest // 64) * 64, 64)


def _trl(variant: str, lengths: Lengths) -> dict[str, str]:
    masked = "" if variant in ("tokenized", "openai") else _TRL_LOSS.get(variant, _TRL_MASK)
    return {
        "trl.yaml": f"""# trl sft --config configs/trl.yaml --model_name_or_path Qwen/Qwen3-8B
dataset_name: .            # this folder (or its Hub id)
dataset_train_split: train
max_length: {lengths.setting}        # TRL's default of 1024 would cut {lengths.beyond["trl"]} of {lengths.samples} samples
{masked}"""
    }


_TRL_MASK = """# TRL trains every token by default, tool results and definitions too. assistant_only_loss trains
# the assistant turns, with another template (an empty think block before every turn).
assistant_only_loss: true
"""
_TRL_LOSS = dict.fromkeys(
    ("prompt-completion", "prompt-completion-text"),
    "completion_only_loss: true  # the default for these columns\n",
)


def _axolotl(variant: str, lengths: Lengths) -> dict[str, str]:
    rows = "  - path: data/train-*.jsonl\n    ds_type: json\n    type: chat_template\n"
    if variant == "tokenized":
        rows = "  - path: data/train-*.parquet\n    ds_type: parquet\n    type:\n"
    return {
        "axolotl.yaml": f"""# axolotl train configs/axolotl.yaml
base_model: Qwen/Qwen3-8B
chat_template: tokenizer_default
datasets:
{rows}sequence_len: {lengths.setting}
excess_length_strategy: raise  # a sample that is cut loses its last turns
"""
    }


def _llama_factory(variant: str, lengths: Lengths) -> dict[str, str]:
    columns = '"messages": "messages", "tools": "tools"'
    tags = (
        '"role_tag": "role", "content_tag": "content", "user_tag": "user",'
        ' "assistant_tag": "assistant", "system_tag": "system"'
    )
    if variant == "sharegpt":
        columns = '"messages": "conversations", "system": "system", "tools": "tools"'
        tags = (
            '"role_tag": "from", "content_tag": "value", "user_tag": "human",'
            ' "assistant_tag": "gpt", "function_tag": "function_call",'
            ' "observation_tag": "observation"'
        )
    return {
        "../dataset_info.json": f"""{{
 "tool_calls": {{
  "file_name": "data",
  "formatting": "sharegpt",
  "columns": {{{columns}}},
  "tags": {{{tags}}}
 }}
}}
""",
        "llama_factory.yaml": f"""# llamafactory-cli train configs/llama_factory.yaml
# Samples whose turns do not alternate (a query right after tool results) are dropped by
# LLaMA-Factory with a warning. A sample with tools and no system turn gets two more newlines there.
model_name_or_path: Qwen/Qwen3-8B
stage: sft
do_train: true
dataset_dir: .
dataset: tool_calls
template: qwen3
enable_thinking: false     # true would train the empty think block before every turn
cutoff_len: {lengths.setting}          # the default of 2048 would cut {lengths.beyond["llama-factory"]} of {lengths.samples} samples
""",
    }


def _ms_swift(_: str, lengths: Lengths) -> dict[str, str]:
    return {
        "ms_swift.sh": f"""# ms-swift writes an empty think block before every turn; ignore_empty_think keeps it untrained.
swift sft --model Qwen/Qwen3-8B --dataset data/train-*.jsonl \\
  --max_length {lengths.setting} --truncation_strategy raise --loss_scale ignore_empty_think
"""
    }


def _unsloth(_: str, lengths: Lengths) -> dict[str, str]:
    return {
        "unsloth.py": f'''"""Unsloth: the rows are read by their `messages` column; run from this folder."""
from datasets import load_dataset
from unsloth import FastLanguageModel
from unsloth.chat_templates import train_on_responses_only
from trl import SFTConfig, SFTTrainer

model, tokenizer = FastLanguageModel.from_pretrained("Qwen/Qwen3-8B", max_seq_length={lengths.setting})
# Unsloth's own model repositories may carry a changed template: take the official one.
rows = load_dataset(".", split="train")
trainer = SFTTrainer(model, train_dataset=rows, args=SFTConfig(max_length={lengths.setting}))
# A literal marker inside a tool result would be trained: this dataset holds none (check `tokens`).
trainer = train_on_responses_only(
    trainer, instruction_part="<|im_start|>user\\n", response_part="<|im_start|>assistant\\n"
)
trainer.train()
'''
    }


def _openrlhf(_: str, lengths: Lengths) -> dict[str, str]:
    return {
        "openrlhf.sh": f"""# OpenRLHF ignores a tools column, so the definitions stand in the system turn. With the hybrid
# Qwen3 template its --multiturn mask runs past the turns (issue 1080): use one sample for each
# turn (normalize.unit: turn) and no --multiturn.
openrlhf.cli.train_sft --pretrain Qwen/Qwen3-8B --dataset . --input_key messages \\
  --apply_chat_template --max_len {lengths.setting}
"""
    }


def _verl(_: str, lengths: Lengths) -> dict[str, str]:
    return {
        "verl.sh": f"""# verl renders message by message. With the hybrid Qwen3 template the pieces differ from the
# whole (assertion): train an Instruct-2507 model, or set data.ignore_input_ids_mismatch=True.
torchrun -m verl.trainer.fsdp_sft_trainer data.train_files=data/train-00000-of-00001.parquet \\
  data.multiturn.enable=true data.multiturn.messages_key=messages \\
  data.max_length={lengths.setting} data.truncation=error  # the default of 1024: {lengths.beyond["verl"]} of {lengths.samples} longer
"""
    }


def _nemo(variant: str, lengths: Lengths) -> dict[str, str]:
    tools = "" if variant == "tools-in-system" else "  tools_key: tools\n"
    return {
        "nemo_rl.yaml": f"""# NeMo-RL: without use_preserving_dataset nulls are added to heterogeneous definitions. Its
# incremental masks need a template that renders prefixes alike: Instruct-2507, not hybrid Qwen3.
data:
  dataset_name: openai_format
  train_data_path: data/train-00000-of-00001.jsonl
  chat_key: messages
{tools}  use_preserving_dataset: true
  max_input_seq_length: {lengths.setting}
"""
    }


_TRAINERS: dict[str, Callable[[str, Lengths], dict[str, str]]] = {
    "trl": _trl,
    "axolotl": _axolotl,
    "llama-factory": _llama_factory,
    "ms-swift": _ms_swift,
    "unsloth": _unsloth,
    "openrlhf": _openrlhf,
    "verl": _verl,
    "nemo-rl": _nemo,
}


def configurations(variant: str, trainers: tuple[str, ...], lengths: Lengths) -> dict[str, str]:
    """{path relative to configs/: text} for the trainers that read the variant."""
    made: dict[str, str] = {}
    for name in trainers:
        made.update(_TRAINERS[name](variant, lengths))
    return made
