"""verl (0.9.1)."""

from __future__ import annotations

from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.trainers.masks import Mask, MaskRefusal, MaskRule, as_messages
from builder.trainers.record import (
    LEARNING_RATE,
    LORA_ALPHA,
    LORA_RANK,
    ExportFiles,
    Facts,
    Trainer,
)


def _configure(export: ExportFiles, facts: Facts) -> dict[str, str]:
    evaluated = export.evaluation if export.evaluation is not None else "null"
    return {
        "verl.sh": f"""# verl renders message by message. With the hybrid Qwen3 template the pieces differ from the
# whole (assertion): train an Instruct-2507 model, or set data.ignore_input_ids_mismatch=True.
# verl makes no step of an incomplete batch: {facts.remainder}.
torchrun -m verl.trainer.sft_trainer model.path={facts.model} \\
  data.train_files={export.train} data.val_files={evaluated} \\
  data.messages_key=messages data.max_length={VERL.length(facts, export.variant)} data.truncation=error \\
  data.max_token_len_per_gpu={VERL.length(facts, export.variant)} data.train_batch_size={facts.batch} \\
  model.lora_rank={LORA_RANK} model.lora_alpha={LORA_ALPHA} model.enable_gradient_checkpointing=true \\
  optim.lr={LEARNING_RATE} trainer.total_epochs=1 trainer.default_local_dir=output trainer.logger=console
# A longer sample is an error; {VERL.beyond_default(facts)}.
"""
    }


def _difference(variant: str, facts: Facts) -> str:
    block = "the last turn has no empty think block; " if facts.hybrid else ""
    return f"{block}the newline after each turn is trained too"


def _mask(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Renders each message separately; the pieces must add up to the whole rendering.

    The first tokens of each answer are untrained: as many as a generation prompt has, whichever
    they are.
    """
    whole = ""
    spans = []
    default = target.style.default_system
    lead = f"<|im_start|>system\n{default}<|im_end|>\n" if default is not None else ""
    prompt = len(target.offsets(target.generation_prompts["thinking"]))
    for at, message in enumerate(as_messages(sample)):
        piece = target.render([message], sample.tools if at == 0 else None)
        if at and message["role"] != "system":
            piece = piece.removeprefix(lead)
        if message["role"] == "assistant":
            offsets = target.offsets(piece)
            if prompt < len(offsets):
                spans.append((len(whole) + offsets[prompt][0], len(whole) + len(piece)))
        whole += piece
    if whole != text:
        return MaskRefusal("its pieces differ from the whole rendering (AssertionError)")
    return Mask(whole, tuple(spans))


_LENGTH = 1024

VERL = Trainer(
    name="verl",
    title="verl",
    variants={"verl": "every"},
    configure=_configure,
    difference=_difference,
    command="sh configs/verl.sh",
    default_length=_LENGTH,
    wider=frozenset({"verl"}),
    masks={"verl": MaskRule("assistant messages, each rendered alone", _mask, _LENGTH, cut=None)},
)
