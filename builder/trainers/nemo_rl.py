"""NeMo-RL: options according to its documentation."""

from __future__ import annotations

from builder.trainers.record import ExportFiles, Facts, Trainer


def _configure(export: ExportFiles, facts: Facts) -> dict[str, str]:
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


def _difference(variant: str, facts: Facts) -> str:
    if facts.hybrid:
        return "its masks do not fit a template that renders prefixes differently (not run)"
    return "its mask was taken from its documentation, not run"


NEMO_RL = Trainer(
    name="nemo-rl",
    title="NeMo-RL",
    variants={"messages": "every", "tools-in-system": "every", "openai": "every"},
    configure=_configure,
    difference=_difference,
)
