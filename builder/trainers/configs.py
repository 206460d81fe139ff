"""Ready configurations for trainers, with lengths from the dataset, and the warnings that apply.

Source: trainers.md, and the trainers' own sources for the names of options (versions and what was
run: docs/export.md).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

DEFAULT_LENGTHS = {"trl": 1024, "llama-factory": 2048, "openrlhf": 2048, "verl": 1024}
"""Tokens after which a trainer cuts (or refuses) a sample unless it is told otherwise."""

MODEL = "Qwen/Qwen3-8B"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the configurations are made of.

    longest    tokens of the longest sample
    widest     of the longest as `wider` counts them
    beyond     samples that are longer than a trainer's default length
    bare       samples with tools and no system turn
    following  samples with a query right after tool results
    """

    samples: int
    longest: int
    widest: int
    beyond: Mapping[str, int]
    bare: int = 0
    following: int = 0

    @property
    def setting(self) -> int:
        """A length for trainers that render as the template does: a multiple of 64."""
        return _rounded(self.longest)

    @property
    def wide(self) -> int:
        """A length for trainers that write an empty think block before every turn."""
        return _rounded(self.widest)

    def cut(self, trainer: str) -> str:
        """How many samples the trainer's default length would cut or refuse."""
        default = DEFAULT_LENGTHS[trainer]
        return (
            f"the default is {default}: {self.beyond.get(trainer, 0)} of {self.samples} are longer"
        )


def wider(tokens: int, turns: int) -> int:
    """At most so many tokens has a sample for trainers that write more than the template.

    They are four for an empty think block before each assistant turn, and newlines before the
    definitions where there is no system turn.
    """
    return tokens + 4 * turns + 2


def _rounded(tokens: int) -> int:
    return max(-(-tokens // 64) * 64, 64)


@dataclass(frozen=True, slots=True)
class Export:
    """The variant, the name of its folder, its files for training and (None: none) evaluation."""

    variant: str
    folder: str
    train: str
    evaluation: str | None

    @property
    def named(self) -> str:
        """The folder for `datasets`, seen from inside, quoted: "." has no name to it."""
        return json.dumps(f"../{self.folder}")


def _trl(export: Export, facts: Facts) -> dict[str, str]:
    masked = "" if export.variant == "tokenized" else _TRL_LOSS.get(export.variant, _TRL_MASK)
    length = facts.wide if masked == _TRL_MASK else facts.setting
    return {
        "trl.yaml": f"""# trl sft --config configs/trl.yaml
model_name_or_path: {MODEL}
dataset_name: {export.named}  # this folder, as datasets cannot load "." (or its Hub id)
dataset_train_split: {_split(export.train)}
max_length: {length}        # longer samples are cut; {facts.cut("trl")}
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


def _axolotl(export: Export, facts: Facts) -> dict[str, str]:
    kind = "" if export.variant == "tokenized" else " chat_template"
    evaluated = ""
    if export.evaluation is not None:
        evaluated = f"""test_datasets:
  - path: {export.named}
    split: {_split(export.evaluation)}
    type:{kind}
"""
    stripped = ""
    if export.variant == "messages":
        stripped = (
            "# Nulls inside of tool definitions are lost; the export messages-str keeps them.\n"
        )
    return {
        "axolotl.yaml": f"""# axolotl train configs/axolotl.yaml
{stripped}base_model: {MODEL}
chat_template: tokenizer_default
datasets:
  - path: {export.named}  # this folder, as datasets cannot load "." (or its Hub id)
    split: {_split(export.train)}
    type:{kind}
{evaluated}sequence_len: {facts.setting}
excess_length_strategy: raise  # by default a longer sample is dropped
"""
    }


def _llama_factory(export: Export, facts: Facts) -> dict[str, str]:
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
    return {
        "../dataset_info.json": f"{{\n{entries}\n}}\n",
        "llama_factory.yaml": f"""# llamafactory-cli train configs/llama_factory.yaml
# Samples whose turns do not alternate are dropped with a warning: {facts.following} of {facts.samples}, which have a
# query right after tool results. A sample with tools and no system turn gets two more newlines
# before the definitions: {facts.bare} of {facts.samples}.
model_name_or_path: {MODEL}
stage: sft
do_train: true
dataset_dir: .
dataset: tool_calls
{evaluated}template: qwen3
enable_thinking: false     # true would train the empty think block before every turn
cutoff_len: {facts.wide}          # longer samples are cut; {facts.cut("llama-factory")}
""",
    }


def _ms_swift(export: Export, facts: Facts) -> dict[str, str]:
    evaluated = f" --val_dataset {export.evaluation}" if export.evaluation is not None else ""
    return {
        "ms_swift.sh": f"""# ms-swift writes an empty think block before every turn; ignore_empty_think keeps it untrained.
# A longer sample is deleted without --strict true. Samples with tools and no system turn get two
# more newlines before the definitions: {facts.bare} of {facts.samples}. A query right after tool results is joined to
# them without a border: {facts.following} of {facts.samples}.
swift sft --model {MODEL} --dataset {export.train}{evaluated} \\
  --max_length {facts.wide} --strict true --loss_scale ignore_empty_think
"""
    }


def _unsloth(export: Export, facts: Facts) -> dict[str, str]:
    return {
        "unsloth.py": f'''"""Unsloth: the rows are read by their `messages` column; run from this folder."""
from datasets import load_dataset
from unsloth import FastLanguageModel
from unsloth.chat_templates import train_on_responses_only
from trl import SFTConfig, SFTTrainer

model, tokenizer = FastLanguageModel.from_pretrained("{MODEL}", max_seq_length={facts.setting})
# Unsloth's own model repositories may carry a changed template: take the official one.
rows = load_dataset({export.named}, split="{_split(export.train)}")
# Longer samples are cut; {facts.cut("trl")}.
trainer = SFTTrainer(model, train_dataset=rows, args=SFTConfig(max_length={facts.setting}))
# A literal marker inside a tool result would be trained: this dataset holds none (check `tokens`).
trainer = train_on_responses_only(
    trainer, instruction_part="<|im_start|>user\\n", response_part="<|im_start|>assistant\\n"
)
trainer.train()
'''
    }


def _openrlhf(export: Export, facts: Facts) -> dict[str, str]:
    return {
        "openrlhf.sh": f"""# OpenRLHF ignores a tools column, so the definitions stand in the system turn. With the hybrid
# Qwen3 template its --data.multiturn mask runs past the turns (issue 1080): use one sample for each
# turn (normalize.unit: turn) and train the last turn, as here.
python -m openrlhf.cli.train_sft --model.model_name_or_path {MODEL} \\
  --data.dataset {shlex.quote(f"../{export.folder}")} --data.dataset_split {_split(export.train)} \\
  --data.input_key messages --data.apply_chat_template --data.max_len {facts.setting}
# Longer samples are cut; {facts.cut("openrlhf")}.
"""
    }


def _verl(export: Export, facts: Facts) -> dict[str, str]:
    evaluated = export.evaluation if export.evaluation is not None else "null"
    return {
        "verl.sh": f"""# verl renders message by message. With the hybrid Qwen3 template the pieces differ from the
# whole (assertion): train an Instruct-2507 model, or set data.ignore_input_ids_mismatch=True.
torchrun -m verl.trainer.sft_trainer model.path={MODEL} \\
  data.train_files={export.train} data.val_files={evaluated} \\
  data.messages_key=messages data.max_length={facts.wide} data.truncation=error
# A longer sample is an error; {facts.cut("verl")}.
"""
    }


def _nemo(export: Export, facts: Facts) -> dict[str, str]:
    tools = "" if export.variant == "tools-in-system" else "    tool_key: tools\n"
    evaluated = ""
    if export.evaluation is not None:
        evaluated = f"""  validation:
    dataset_name: openai_format
    data_path: {export.evaluation}
    chat_key: messages
{tools}    use_preserving_dataset: true
"""
    return {
        "nemo_rl.yaml": f"""# NeMo-RL: without use_preserving_dataset nulls are added to heterogeneous definitions. Its
# incremental masks need a template that renders prefixes alike: Instruct-2507, not hybrid Qwen3.
data:
  max_input_seq_length: {facts.setting}
  train:
    dataset_name: openai_format
    data_path: {export.train}
    chat_key: messages
{tools}    use_preserving_dataset: true
{evaluated}"""
    }


_TRAINERS: dict[str, Callable[[Export, Facts], dict[str, str]]] = {
    "trl": _trl,
    "axolotl": _axolotl,
    "llama-factory": _llama_factory,
    "ms-swift": _ms_swift,
    "unsloth": _unsloth,
    "openrlhf": _openrlhf,
    "verl": _verl,
    "nemo-rl": _nemo,
}


def _split(path: str) -> str:
    """The split that a file is of."""
    return path.rpartition("/")[2].partition("-")[0]


def data_file(split: str, kind: str) -> str:
    """The path of an export's file."""
    return f"data/{split}-00000-of-00001.{kind}"


def configurations(
    variant: str,
    kind: str,
    trainers: Sequence[str],
    facts: Facts,
    splits: Sequence[str],
    folder: str,
) -> dict[str, str]:
    """{path relative to configs/: text} for trainers that read the variant, of files of `kind` in `folder`."""
    train = "train" if "train" in splits else splits[0]
    evaluated = [split for split in ("validation", "test") if split in splits and split != train]
    export = Export(
        variant,
        folder,
        data_file(train, kind),
        data_file(evaluated[0], kind) if evaluated else None,
    )
    made: dict[str, str] = {}
    for name in trainers:
        made.update(_TRAINERS[name](export, facts))
    return made
