"""Reads each exported configuration with its trainer's own parser and loads the rows with it.

They run in the environment BUILDER_LOADERS, which is created without a GPU's packages if it is
missing; scripts/conformance.sh names it.
"""

import os
import re
import sys
import sysconfig
from pathlib import Path

import pytest
from support.places import ROOT
from support.runs.builds import build

from builder import cli

sys.path.insert(0, str(ROOT / "scripts"))

import loaders

from builder.qwen3.tokenizer import load

VENV = os.environ.get("BUILDER_LOADERS", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not VENV, reason="BUILDER_LOADERS names no environment of the trainers"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Builds the project's own logs and returns (dataset, the tokenizer's folder)."""
    folder = tmp_path_factory.mktemp("loaders")
    assert build(folder / "built", inputs=[ROOT / "data"]) == 0
    return folder / "built", loaders.tokenizer_folder(folder / "tokenizer")


@pytest.fixture
def probe(built, tmp_path):
    """Exports a variant; returns a function that loads it with a trainer's code."""
    dataset, tokenizer = built

    def run(trainer, variant, change=None):
        export = tmp_path / variant
        command = ["export", str(dataset), "--to", variant, "-o", str(export), "--quiet"]
        assert cli.main(command) == 0
        if change is not None:
            name, old, new = change
            path = export / "configs" / name
            text = path.read_text()
            assert old in text
            path.write_text(text.replace(old, new, 1))
        out = tmp_path / "rows.jsonl"
        python = loaders.environment(Path(VENV), sysconfig.get_path("purelib"))
        return loaders.run_probe(python, trainer, export, tokenizer, out), out

    return run


@pytest.mark.parametrize(("trainer", "variant"), loaders.PAIRS)
def test_its_own_parser_knows_every_key_and_its_loader_gives_every_row(
    built, probe, trainer, variant
):
    done, out = probe(trainer, variant)
    assert done.returncode == 0, done.stderr[-2000:]
    counts = loaders.compare(loaders.proven(str(built[0]), "train"), out, load("qwen3"))
    assert counts["out"] == counts["in"] > 0
    assert not counts["text: not of any sample"]
    assert not counts["trained: other"]


WRONG = {
    "axolotl": ("messages", ("axolotl.yaml", "lora_r:", "lora_rr:")),
    "llama-factory": ("messages-str", ("llama_factory.yaml", "lora_rank:", "lora_rankk:")),
    "ms-swift": ("messages-str", ("ms_swift.sh", "--lora_rank", "--lora_rankk")),
    "openrlhf": ("tools-in-system", ("openrlhf.sh", "--ds.lora.rank", "--ds.lora.rankk")),
    "verl": ("verl", ("verl.sh", "model.lora_rank", "model.lora_rankk")),
}


@pytest.mark.parametrize("trainer", WRONG)
def test_a_key_that_the_trainer_does_not_know_is_refused(probe, trainer):
    variant, change = WRONG[trainer]
    done, _ = probe(trainer, variant, change)
    assert done.returncode
    assert re.search(rb"rankk|lora_rr", done.stderr)
