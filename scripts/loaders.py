"""Compares exports as loaded by trainers' own code with the proven texts and trained tokens.

    python scripts/loaders.py DATASET [--venv FOLDER] [--site SITE-PACKAGES] [--trainer NAME]

DATASET is a folder made by `build`. The trainers are installed into a private environment without
most of their dependencies: no GPU is needed, and no model is loaded. `--site` names the
site-packages of an environment with torch, transformers, datasets and trl, so that they are not
installed again. Trainers that cannot be installed or run are options; the exit code is 1 if none
ran.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from builder.cli.command import Output
from builder.cli.export import export as export_rows
from builder.dataset.rows import dataset_rows
from builder.problem import UsageError
from builder.qwen3.tokenizer import Target, load
from builder.sample import Sample
from builder.verify.verifier import Verifier

PAIRS = (
    ("axolotl", "messages"),
    ("axolotl", "messages-str"),
    ("axolotl", "tools-in-system"),
    ("axolotl", "tokenized"),
    ("llama-factory", "messages-str"),
    ("llama-factory", "sharegpt"),
    ("ms-swift", "messages-str"),
    ("ms-swift", "tools-in-system"),
    ("openrlhf", "tools-in-system"),
    ("verl", "verl"),
)
BASE = ("torch", "transformers", "datasets", "trl", "accelerate")
PACKAGES = (
    "llamafactory==0.9.5 ms_swift==4.6.0 axolotl==0.19.0 openrlhf==0.11.2 verl==0.9.1"
    " peft pillow colorama omegaconf antlr4-python3-runtime==4.9.3 fire termcolor sentencepiece"
    " tiktoken einops addict modelscope modelscope_hub cryptography cffi pycparser aiohttp"
    " aiosignal frozenlist multidict propcache yarl attrs aiohappyeyeballs posthog backoff av"
    " distro numba llvmlite pylatexenc ray msgpack hydra-core tensordict pyvers orjson protobuf"
    " grpcio torchdata codetiming cloudpickle json_repair"
)
STUBS = ("torchaudio",)
"""Imported by the loading code but never used by it; wheels for the newest torch lag behind."""

EMPTY_THINK = "<think>\n\n</think>\n\n"


@dataclass(frozen=True, slots=True)
class Proven:
    """A sample's text and the texts to train."""

    text: str
    trained: list[str]

    @property
    def key(self) -> str:
        """The text without think blocks and blank lines, which trainers change."""
        return "".join(self.text.replace(EMPTY_THINK, "").split())


def environment(folder: Path, site: str | None) -> Path:
    """Returns the interpreter of the private environment, which is created if missing."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        place = next((folder / "lib").glob("python*/site-packages"))
        if site is not None:
            (place / "shared.pth").write_text(f"{site}\n")
        else:
            subprocess.run([python, "-m", "pip", "install", "-q", *BASE], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "--no-deps", *PACKAGES.split()]
        subprocess.run(install, check=True)
        for name in STUBS:
            (place / name).mkdir(exist_ok=True)
            (place / name / "__init__.py").write_text('__version__ = "0"\n')
    return python


def tokenizer_folder(folder: Path) -> Path:
    """Writes the embedded tokenizer as a model folder with its template and a tiny config."""
    target = load("qwen3")
    target.tokenizer.save_pretrained(folder)
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def proven(dataset: str, split: str) -> list[Proven]:
    """Returns the expected text and spans of each proven sample of the split."""
    verifier = Verifier(load("qwen3"))
    found = []
    for row in dataset_rows(dataset):
        sample = row.sample
        if row.split != split or not isinstance(sample, Sample):
            continue
        verdict = verifier.check(sample, targets=row.targets(sample))
        if not verdict.findings:
            trained = [verdict.text[start:end] for start, end in verdict.spans]
            found.append(Proven(verdict.text, trained))
    return found


def compare(wanted: Sequence[Proven], out: Path, target: Target) -> Counter[str]:
    """Returns counts over the rows that a trainer produced."""
    counts: Counter[str] = Counter({"in": len(wanted)})
    left: dict[str, list[Proven]] = {}
    for item in wanted:
        left.setdefault(item.key, []).append(item)
    with out.open() as stream:
        for line in stream:
            row = json.loads(line)
            counts["out"] += 1
            text = target.decode(row["ids"])
            pieces = _pieces(row["ids"], row["trained"], target)
            known = left.get(Proven(text, []).key)
            if not known:
                counts["text: not of any sample"] += 1
                continue
            item = next((one for one in known if one.text.strip() == text.strip()), known[0])
            known.remove(item)
            _count(item, text, pieces, counts)
    return counts


def _pieces(ids: list[int], trained: list[bool], target: Target) -> list[str]:
    pairs = groupby(zip(ids, trained, strict=True), key=lambda pair: pair[1])
    return [target.decode([number for number, _ in run]) for is_trained, run in pairs if is_trained]


def _count(item: Proven, text: str, pieces: list[str], counts: Counter[str]) -> None:
    if text == item.text:
        counts["text: equal"] += 1
    elif text.rstrip("\n") == item.text.rstrip("\n"):
        counts["text: equal except for the final newline"] += 1
    else:
        found, expected_blocks = text.count(EMPTY_THINK), item.text.count(EMPTY_THINK)
        counts["text: empty think block before additional turns"] += found > expected_blocks
        counts["text: no empty think block before the last turn"] += found < expected_blocks
        same = text.replace(EMPTY_THINK, "").rstrip() == item.text.replace(EMPTY_THINK, "").rstrip()
        counts["text: different blank lines"] += not same
    bare = [piece.removesuffix("\n") for piece in pieces]
    plain = [piece.removeprefix(EMPTY_THINK) for piece in bare]
    expected = [piece.removeprefix(EMPTY_THINK) for piece in item.trained]
    if bare == item.trained:
        counts["trained: equal"] += 1
    elif plain == expected:
        counts["trained: equal except for empty think blocks"] += 1
    elif plain == expected[-1:]:
        counts["trained: the last turn alone"] += 1
        counts["trained: its empty think block too"] += bare != plain
    else:
        counts["trained: other"] += 1
    counts["trained: the newline after a turn too"] += pieces != bare


def run_probe(
    python: Path, trainer: str, export: Path, tokenizer: Path, out: Path
) -> subprocess.CompletedProcess[bytes]:
    """Loads an export with a trainer's own code, in the private environment, and writes `out`."""
    probe = Path(__file__).with_name("loaders_probe.py")
    command = list(map(str, (python, probe, trainer, export, tokenizer, out)))
    settings = {
        "DISABLE_VERSION_CHECK": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(out.parent / "cache"),
    }
    return subprocess.run(command, env={**os.environ, **settings}, capture_output=True, check=False)


def main() -> int:
    """Prints a line for each pair of trainer and variant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--venv", type=Path)
    parser.add_argument("--site")
    parser.add_argument("--trainer", action="append")
    options = parser.parse_args()
    target = load("qwen3")
    ran = 0
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        python = environment(options.venv or here / "venv", options.site)
        wanted = proven(options.dataset, "train")
        tokenizer = tokenizer_folder(here / "tokenizer")
        for trainer, variant in PAIRS:
            if options.trainer and trainer not in options.trainer:
                continue
            export = here / variant
            try:
                if not export.exists():
                    export_rows(
                        options.dataset, to=variant, out=export, tokenizer="qwen3",
                        chat_template=None, fresh=False, output=Output(quiet=True),
                    )  # fmt: skip
            except UsageError as error:
                print(f"{trainer} {variant}: not exported: {error}")
                continue
            out = here / f"{trainer}-{variant}.jsonl"
            done = run_probe(python, trainer, export, tokenizer, out)
            if done.returncode:
                reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
                print(f"{trainer} {variant}: not run: {reason[:200]}")
                continue
            counts = compare(wanted, out, target)
            ran += 1
            content = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
            print(f"{trainer} {variant}: {content}", flush=True)
    return 0 if ran else 1


if __name__ == "__main__":
    sys.exit(main())
