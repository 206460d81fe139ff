"""The trainers of reinforcement-learning libraries: NeMo-RL, OpenRLHF (0.11.2), verl (0.9.1)."""

from __future__ import annotations

import shlex

from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.trainers.masks import Mask, MaskRefusal, MaskRule, merged
from builder.trainers.record import (
    LEARNING_RATE,
    LORA_ALPHA,
    LORA_RANK,
    ExportFiles,
    Facts,
    Trainer,
    split_of,
)

# NeMo-RL: options according to its documentation; its mask was not run.


def _configure_nemo_rl(export: ExportFiles, facts: Facts) -> dict[str, str]:
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
  max_input_seq_length: {NEMO_RL.length(facts, export.variant)}
  train:
    dataset_name: openai_format
    data_path: {export.train}
    chat_key: messages
{tools}    use_preserving_dataset: true
{evaluated}"""
    }


NEMO_RL = Trainer(
    name="nemo-rl",
    title="NeMo-RL",
    variants={"messages": "every", "tools-in-system": "every", "openai": "every"},
    configure=_configure_nemo_rl,
    difference=lambda _, facts: (
        "its masks do not fit a template that renders prefixes differently (not run)"
        if facts.hybrid
        else "its mask was taken from its documentation, not run"
    ),
)


# OpenRLHF


def _configure_openrlhf(export: ExportFiles, facts: Facts) -> dict[str, str]:
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


def _difference_openrlhf(variant: str, facts: Facts) -> str:
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
    prompt = target.render(sample.rows[:-1], None, add_generation_prompt=True)
    if len(target.offsets(prompt)) >= _LENGTH - 2:
        return MaskRefusal(f"a prompt of {_LENGTH - 2} tokens or more")
    whole = prompt + target.render(sample.rows, None)[len(prompt) :].rstrip("\n")
    return Mask(whole, ((len(prompt), len(whole)),))


def _multiturn(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Covers each turn, measured in the rendering of the messages up to it.

    These positions are applied to the rendering of the whole sample, where they may not fit.
    """
    last = _last_turn(sample, text, target)
    if isinstance(last, MaskRefusal):
        return last
    messages = sample.rows
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
    configure=_configure_openrlhf,
    difference=_difference_openrlhf,
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


# verl


def _configure_verl(export: ExportFiles, facts: Facts) -> dict[str, str]:
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


def _message_by_message(sample: Sample, text: str, target: Target) -> Mask | MaskRefusal:
    """Renders each message separately; the pieces must add up to the whole rendering.

    The first tokens of each answer are untrained: as many as a generation prompt has, whichever
    they are.
    """
    whole = ""
    spans = []
    default = target.style.default_system
    lead = f"<|im_start|>system\n{default}<|im_end|>\n" if default is not None else ""
    prompt = len(target.offsets(target.generation_prompts["thinking"]))
    for at, message in enumerate(sample.rows):
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


VERL = Trainer(
    name="verl",
    title="verl",
    variants={"verl": "every"},
    configure=_configure_verl,
    difference=lambda _, facts: (
        ("the last turn has no empty think block; " if facts.hybrid else "")
        + "the newline after each turn is trained too"
    ),
    command="sh configs/verl.sh",
    default_length=1024,
    wider=frozenset({"verl"}),
    masks={
        "verl": MaskRule(
            "assistant messages, each rendered alone", _message_by_message, 1024, cut=None
        )
    },
)
