"""ms-swift (4.6.0)."""

from __future__ import annotations

from builder.qwen3.calls import EMPTY_THINK
from builder.qwen3.render import ASSISTANT
from builder.qwen3.templates import Thoughts
from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.trainers.masks import Mask, MaskRule, render_turns
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
    evaluated = f" --val_dataset {export.evaluation}" if export.evaluation is not None else ""
    return {
        "ms_swift.sh": f"""# ms-swift writes an empty think block before every turn; ignore_empty_think keeps it untrained.
# A longer sample is deleted without --strict true. Samples with tools and no system turn get two
# more newlines before the definitions: {facts.bare} of {facts.samples}. A query right after tool results is joined to
# them without a border: {facts.following} of {facts.samples}. Turns with `"loss": false` are context only.
swift sft --model {facts.model} --dataset {export.train}{evaluated} \\
  --max_length {MS_SWIFT.length(facts, export.variant)} --strict true --loss_scale ignore_empty_think \\
  --tuner_type lora --lora_rank {LORA_RANK} --lora_alpha {LORA_ALPHA} \\
  --output_dir output --learning_rate {LEARNING_RATE} --num_train_epochs 1 --gradient_checkpointing true \\
  --per_device_train_batch_size 1 --gradient_accumulation_steps {ACCUMULATION}
"""
    }


def _difference(variant: str, facts: Facts) -> str:
    block = "the text has an empty think block in every turn, untrained; " if facts.hybrid else ""
    return f"{block}the newline after each turn is trained too"


def _mask(sample: Sample, text: str, target: Target) -> Mask:
    """Writes an empty block, which is trained, in every turn; joins consecutive messages of a role.

    Targets without thoughts, and those that always think, get no block.
    """
    joined: list[tuple[str, str]] = []
    for role, content in sample.messages:
        if joined and joined[-1][0] == role:
            joined[-1] = (role, joined[-1][1] + content)
        else:
            joined.append((role, content))
    optional = target.generation_prompts["thinking"] == ASSISTANT
    hybrid = target.style.thoughts is Thoughts.hybrid and optional

    def answer(content: str) -> str:
        return EMPTY_THINK + content if hybrid and not content.startswith("<think>") else content

    return render_turns(
        Sample(tuple(joined), sample.tools), target.style.default_system, "\n\n", answer
    )


MS_SWIFT = Trainer(
    name="ms-swift",
    title="ms-swift",
    own_text=True,
    variants={"messages-str": "some", "tools-in-system": "some"},
    wider=frozenset({"messages-str", "tools-in-system"}),
    configure=_configure,
    difference=_difference,
    command="sh configs/ms_swift.sh",
    masks={
        "ms-swift": MaskRule(
            "template qwen3 (qwen3_nothinking for samples without thoughts): assistant turns", _mask
        )
    },
)
