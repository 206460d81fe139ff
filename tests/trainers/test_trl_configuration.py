"""Runs `trl sft` and `trl dpo` with the configuration of each export, as its first line says.

Two steps on the CPU, on a model of Qwen3's shape with random weights. Needs the extra `trl` (TRL,
PEFT and a CPU torch); scripts/conformance.sh runs it on any machine.
"""

import importlib
import json
import re
from pathlib import Path

import pytest
from support.logs.preference import EDIT, EDIT_AGAIN, corrected, rewound
from support.runs.builds import build
from support.templates.targets import tokenizer_folder

from builder import cli
from builder.trainers.table import TRAINERS

trl = pytest.importorskip("trl", reason="the extra `trl` is not installed")
torch = pytest.importorskip("torch", reason="the extra `trl` is not installed")
pytest.importorskip("peft", reason="the extra `trl` is not installed")

pytestmark = pytest.mark.filterwarnings("default")  # warnings of other packages

TEMPLATE = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"
TINY = {
    "vocab_size": 151936, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
}  # fmt: skip
STEPS = 2


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Returns a folder with a tiny model and its tokenizer."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("model") / "tiny"
    tokenizer_folder(folder, TEMPLATE.read_text(encoding="utf-8"))
    Qwen3ForCausalLM(Qwen3Config(**TINY)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    (folder / "in").mkdir()
    (folder / "in" / "a.jsonl").write_text(rewound())
    (folder / "in" / "b.jsonl").write_text(corrected(EDIT, EDIT_AGAIN).replace("s1", "s2"))
    assert build(folder / "out", "--workers", "1", inputs=[folder / "in"]) == 0
    return folder / "out"


@pytest.mark.parametrize("variant", TRAINERS["trl"].variants)
def test_the_exported_configuration_trains_two_steps(built, model, tmp_path, monkeypatch, variant):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    export = tmp_path / "export"
    assert cli.main(["export", str(built), "--to", variant, "-o", str(export), "-q"]) == 0
    monkeypatch.chdir(export)
    text = (export / "configs" / "trl.yaml").read_text(encoding="utf-8")
    kind, config = re.search(r"^# trl (sft|dpo) --config (\S+)$", text, re.MULTILINE).groups()
    script = importlib.import_module(f"trl.scripts.{kind}")
    here = {
        "model_name_or_path": model, "output_dir": tmp_path / "run", "max_steps": STEPS,
        "use_cpu": True, "bf16": False, "report_to": "none", "disable_tqdm": True,
    }  # fmt: skip
    changed = [text for name, value in here.items() for text in (f"--{name}", str(value))]
    script.main(*script.make_parser().parse_args_and_config(["--config", config, *changed]))
    (state,) = (tmp_path / "run").glob("checkpoint-*/trainer_state.json")
    reported = json.loads(state.read_text())
    assert reported["global_step"] == STEPS
    losses = [line["loss"] for line in reported["log_history"] if "loss" in line]
    assert len(losses) == STEPS
    assert all(loss > 0 for loss in losses)
    adapter = json.loads((tmp_path / "run" / "adapter_config.json").read_text())
    assert (adapter["r"], adapter["lora_alpha"]) == (16, 32)
