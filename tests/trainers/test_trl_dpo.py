"""Runs TRL's DPO code: how it tokenises an export of preference pairs.

Needs the extra `trl` (TRL and a CPU torch); scripts/conformance.sh runs it on any machine.
"""

from types import SimpleNamespace

import datasets
import pytest
from support.logs.preference import EDIT, EDIT_AGAIN, corrected, rewound
from support.runs.builds import build

from builder import cli

trl = pytest.importorskip("trl", reason="the extra `trl` is not installed")
pytest.importorskip("torch", reason="the extra `trl` is not installed")

pytestmark = pytest.mark.filterwarnings("default")  # warnings of other packages


def test_both_sides_are_the_proven_texts_after_one_prompt(tmp_path, verifier):
    from trl.trainer.dpo_trainer import DPOTrainer

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text(rewound())
    (tmp_path / "in" / "b.jsonl").write_text(corrected(EDIT, EDIT_AGAIN).replace("s1", "s2"))
    built, out = tmp_path / "built", tmp_path / "out"
    assert build(built, "--workers", "1", inputs=[tmp_path / "in"]) == 0
    assert cli.main(["export", str(built), "--to", "preference", "-o", str(out), "-q"]) == 0
    target = verifier.target
    tokenizer = target.tokenizer
    cache = str(tmp_path / "cache")
    rows = datasets.load_dataset(str(out), split="train", cache_dir=cache)
    options = trl.DPOConfig(
        output_dir=str(tmp_path / "none"), max_length=None, bf16=False, report_to="none"
    )
    trainer = SimpleNamespace(_tokenizer=tokenizer)  # all that the preparation of rows uses
    prepared = DPOTrainer._prepare_dataset(trainer, rows, tokenizer, options, "train")
    assert len(prepared) == len(rows) == 2
    for row, found in zip(rows, prepared, strict=True):
        tools = row["tools"] or None
        prompt = target.render(row["prompt"], tools, add_generation_prompt=True)
        assert tokenizer.decode(found["prompt_ids"]) == prompt
        for side in ("chosen", "rejected"):
            text = target.render([*row["prompt"], *row[side]], tools)
            assert found["prompt_ids"] + found[f"{side}_ids"] == list(target.encode(text).ids)
