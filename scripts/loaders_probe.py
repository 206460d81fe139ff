"""Runs one trainer's own loading code over one export; writes token ids and masks as JSON lines.

Runs inside the trainer's environment (created by scripts/loaders.py), so it imports nothing from
builder. `python loaders_probe.py TRAINER EXPORT TOKENIZER OUT`
"""

# ruff: noqa: PLC0415 - each probe imports its own trainer, missing from the others' environments

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Row = tuple[list[int], list[bool]]
"""(token ids, whether each is trained)."""


def llama_factory(export: Path, tokenizer: str) -> Iterator[Row]:
    """Uses its argument parser, converters, template and processor on our configuration."""
    import torch
    import yaml
    from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
    from llamafactory.hparams import get_train_args
    from transformers import AutoTokenizer

    os.chdir(export)
    settings = yaml.safe_load((export / "configs" / "llama_factory.yaml").read_text())
    settings |= {
        "model_name_or_path": tokenizer,
        "output_dir": str(export.parent / "llama-factory-out"),
        "report_to": "none",
        "bf16": False,
        "use_cpu": not torch.cuda.is_available(),
        "preprocessing_num_workers": 1,
        "overwrite_cache": True,
    }
    model_args, data_args, training_args, _, _ = get_train_args(settings)
    loaded = AutoTokenizer.from_pretrained(tokenizer)
    template = get_template_and_fix_tokenizer(loaded, data_args)
    module = get_dataset(template, model_args, data_args, training_args, "sft", loaded)
    yield from _labelled(module["train_dataset"])


def axolotl(export: Path, tokenizer: str) -> Iterator[Row]:
    """Uses its schema, loader and chat_template (or tokenized) strategy on our configuration."""
    import yaml
    from axolotl.utils.data.shared import load_dataset_with_config
    from axolotl.utils.data.wrappers import get_dataset_wrapper
    from axolotl.utils.dict import DictDefault
    from axolotl.utils.schemas.config import AxolotlInputConfig
    from transformers import AutoTokenizer

    os.chdir(export)
    settings = yaml.safe_load((export / "configs" / "axolotl.yaml").read_text())
    AxolotlInputConfig(**settings)  # raises for a wrong value, but ignores unknown keys
    unknown = settings.keys() - AxolotlInputConfig.model_fields.keys()
    assert not unknown, f"axolotl does not know {sorted(unknown)}"
    cfg = DictDefault({**settings, "dataset_num_proc": 1, "train_on_inputs": False})
    named = cfg.datasets[0]
    named.chat_template = named.chat_template or cfg.chat_template
    wrapped, _ = get_dataset_wrapper(
        dataset_config=named,
        tokenizer=AutoTokenizer.from_pretrained(tokenizer),
        cfg=cfg,
        dataset_base_type=named.type,
        dataset=load_dataset_with_config(named, use_auth_token=False),
        dataset_prompt_style=None,
    )
    yield from _labelled(wrapped)


def ms_swift(export: Path, tokenizer: str) -> Iterator[Row]:
    """Uses its loader, preprocessors and the Qwen3 template with the settings of our command."""
    from swift.dataset import load_dataset
    from swift.model import get_processor
    from swift.template import get_template

    os.chdir(export)
    command = (export / "configs" / "ms_swift.sh").read_text().split()
    options = {name: command[at + 1] for at, name in enumerate(command) if name.startswith("--")}
    processor = get_processor(tokenizer, model_type="qwen3", download_model=False)
    template = get_template(
        processor,
        template_type="qwen3",
        max_length=int(options["--max_length"]),
        loss_scale=options["--loss_scale"],
    )
    template.set_mode("train")
    rows, _ = load_dataset(options["--dataset"], num_proc=1, strict=options["--strict"] == "true")
    for row in rows:
        encoded = template.encode(dict(row))
        scale = encoded.get("loss_scale") or [1.0] * len(encoded["labels"])
        trained = zip(encoded["labels"], scale, strict=True)
        yield list(encoded["input_ids"]), [label != -100 and part > 0 for label, part in trained]


def openrlhf(export: Path, tokenizer: str) -> Iterator[Row]:
    """Uses its SFTDataset with the arguments of our command."""
    from types import SimpleNamespace

    import datasets
    from openrlhf.datasets.sft_dataset import SFTDataset
    from transformers import AutoTokenizer

    command = (export / "configs" / "openrlhf.sh").read_text().split()
    options = {name: command[at + 1] for at, name in enumerate(command) if name.startswith("--")}
    data = SimpleNamespace(
        input_key=options["--data.input_key"],
        output_key=None,
        apply_chat_template=True,
        tokenizer_chat_template=None,
    )
    strategy = SimpleNamespace(args=SimpleNamespace(data=data))
    os.chdir(export)
    rows = datasets.load_dataset(options["--data.dataset"], split=options["--data.dataset_split"])
    loaded = SFTDataset(
        rows,
        AutoTokenizer.from_pretrained(tokenizer),
        int(options["--data.max_len"]),
        strategy,
        input_template=None,
        num_processors=1,
    )
    for at in range(len(loaded)):
        ids, _, mask = (item.flatten().tolist() for item in loaded[at])
        # the mask of a token is at the previous position, which predicts it
        yield ids, [False, *(bool(value) for value in mask[:-1])]


def verl(export: Path, tokenizer: str) -> Iterator[Row]:
    """Uses its MultiTurnSFTDataset with the options of our command and ignores the mismatch."""
    import types

    # Needed for images only; it requires an older transformers.
    images = types.ModuleType("verl.models.transformers.qwen2_vl")
    vars(images)["get_rope_index"] = None
    sys.modules[images.__name__] = images

    from omegaconf import OmegaConf
    from transformers import AutoTokenizer
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    command = (export / "configs" / "verl.sh").read_text().split()
    options = dict(item.split("=", 1) for item in command if item.startswith("data."))
    config = OmegaConf.create(
        {
            "max_length": int(options["data.max_length"]),
            "truncation": options["data.truncation"],
            "messages_key": options["data.messages_key"],
            "pad_mode": "no_padding",
            "ignore_input_ids_mismatch": True,
        }
    )
    paths = [str(export / options["data.train_files"])]
    loaded = MultiTurnSFTDataset(paths, AutoTokenizer.from_pretrained(tokenizer), config)
    for at in range(len(loaded)):
        item = loaded[at]
        yield item["input_ids"].tolist(), [bool(value) for value in item["loss_mask"].tolist()]


def _labelled(rows: Iterable[dict[str, Any]]) -> Iterator[Row]:
    for row in rows:
        yield list(row["input_ids"]), [label != -100 for label in row["labels"]]


PROBES = {
    "axolotl": axolotl,
    "llama-factory": llama_factory,
    "ms-swift": ms_swift,
    "openrlhf": openrlhf,
    "verl": verl,
}

if __name__ == "__main__":
    trainer, export, tokenizer, out = sys.argv[1:]
    with Path(out).open("w") as stream:
        for ids, trained in PROBES[trainer](Path(export), tokenizer):
            stream.write(json.dumps({"ids": ids, "trained": trained}) + "\n")
