"""Runs one trainer's own loading code over one export; writes token ids and masks as JSON lines.

Runs inside the trainer's environment (created by scripts/loaders.py), so it imports nothing from
builder. `python loaders_probe.py TRAINER EXPORT TOKENIZER OUT`
"""

# ruff: noqa: PLC0415 - each probe imports its own trainer, missing from the others' environments

from __future__ import annotations

import json
import os
import shlex
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
    """Uses its argument parser, loader, preprocessors and template on our command."""
    from swift.arguments import SftArguments
    from swift.dataset import load_dataset
    from swift.model import get_processor
    from swift.utils import parse_args

    os.chdir(export)
    _, *given = _command(export, "ms_swift.sh", "sft")
    # a folder's name does not give the kind of model, as a repository's does
    here = f"--model {tokenizer} --model_type qwen3 --template qwen3 --output_dir {tokenizer}-out"
    alone = "--bf16 false --report_to none"
    args, unknown = parse_args(SftArguments, [*given, *here.split(), *alone.split()])
    assert not unknown, f"ms-swift does not know {unknown}"
    processor = get_processor(tokenizer, model_type="qwen3", download_model=False)
    template = args.get_template(processor)
    template.set_mode("train")
    rows, _ = load_dataset(args.dataset, **args.get_dataset_kwargs())
    for row in rows:
        encoded = template.encode(dict(row))
        scale = encoded.get("loss_scale") or [1.0] * len(encoded["labels"])
        trained = zip(encoded["labels"], scale, strict=True)
        yield list(encoded["input_ids"]), [label != -100 and part > 0 for label, part in trained]


def openrlhf(export: Path, tokenizer: str) -> Iterator[Row]:
    """Uses the argument parser of its command and its SFTDataset with our arguments.

    The parser is in the command's main block, so the command runs up to its first call, to which
    it gives the parsed arguments; DeepSpeed and the model's classes, which need a GPU, are
    left out.
    """
    import runpy
    import types
    from types import SimpleNamespace

    import datasets
    from openrlhf.datasets.sft_dataset import SFTDataset
    from transformers import AutoTokenizer

    class ParsedError(Exception):
        """Carries the arguments out of the command."""

    def stop(args: SimpleNamespace) -> None:
        raise ParsedError(args)

    utils = Path(sys.modules["openrlhf"].__path__[0]) / "utils"
    stubs: dict[str, dict[str, Any]] = {
        "openrlhf.models": {"Actor": None},
        "openrlhf.trainer": {"__path__": []},
        "openrlhf.trainer.sft_trainer": {"SFTTrainer": None},
        "openrlhf.utils": {"__path__": [str(utils)], "get_strategy": stop, "get_tokenizer": None},
    }
    for name, members in stubs.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        sys.modules[name] = module
    os.chdir(export)
    sys.argv = _command(export, "openrlhf.sh", "openrlhf.cli.train_sft")
    try:
        runpy.run_module("openrlhf.cli.train_sft", run_name="__main__")
    except ParsedError as parsed:
        (args,) = parsed.args
    rows = datasets.load_dataset(args.data.dataset, split=args.data.dataset_split)
    loaded = SFTDataset(
        rows,
        AutoTokenizer.from_pretrained(tokenizer),
        args.data.max_len,
        SimpleNamespace(args=args),
        input_template=args.data.input_template,
        multiturn=args.data.multiturn,
        num_processors=1,
    )
    for at in range(len(loaded)):
        ids, _, mask = (item.flatten().tolist() for item in loaded[at])
        # the mask of a token is at the previous position, which predicts it
        yield ids, [False, *(bool(value) for value in mask[:-1])]


def verl(export: Path, tokenizer: str) -> Iterator[Row]:
    """Uses its configuration with our overrides and its dataset; ignores the mismatch."""
    import types

    # Needed for images only; it requires an older transformers.
    images = types.ModuleType("verl.models.transformers.qwen2_vl")
    vars(images)["get_rope_index"] = None
    sys.modules[images.__name__] = images

    import hydra
    from transformers import AutoTokenizer
    from verl.utils.config import omega_conf_to_dataclass
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    os.chdir(export)
    _, *given = _command(export, "verl.sh", "verl.trainer.sft_trainer")
    here = [f"model.path={tokenizer}", "data.ignore_input_ids_mismatch=True"]
    with hydra.initialize_config_module("verl.trainer.config", version_base=None):
        config = hydra.compose("sft_trainer_engine", [*given, *here])
    for part in (config.model, config.engine, config.optim, config.checkpoint):
        omega_conf_to_dataclass(part)  # its own types and checks
    data = config.data
    assert data.max_token_len_per_gpu >= data.max_length, "the longest sample fits no micro-batch"
    loaded = MultiTurnSFTDataset(
        data.train_files, AutoTokenizer.from_pretrained(tokenizer), config.data
    )
    # it drops the last incomplete batch
    assert data.train_batch_size <= len(loaded), "verl would make no step"
    for at in range(len(loaded)):
        item = loaded[at]
        yield item["input_ids"].tolist(), [bool(value) for value in item["loss_mask"].tolist()]


def _command(export: Path, name: str, program: str) -> list[str]:
    """Returns the program of an exported shell command and its arguments."""
    text = (export / "configs" / name).read_text().replace("\\\n", " ")
    words = shlex.split(text, comments=True)
    return words[words.index(program) :]


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
