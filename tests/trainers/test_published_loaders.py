"""What trainers' published code trains in exports with context-only turns.

The functions that load rows and mark trained tokens are taken from the trainers' own packages and
run on an export; the oracle is `meta.spans` of the exported dataset.
"""

import hashlib
import json
import sys
import types
import typing

import datasets
import numpy as np
import pytest
from support.runs.builds import build, lines
from support.templates.published import UNSLOTH_ZOO, VERL, functions_of
from support.templates.targets import NO_THOUGHTS, tokenizer_folder

from builder import cli
from builder.qwen3.calls import EMPTY_THINK
from builder.qwen3.tokenizer import target_for

pytestmark = pytest.mark.slow

NO_LOSS = -100

TOOLS = [{"type": "function", "function": {"name": "wc", "parameters": {"type": "object"}}}]


def message(role, content, weight=None):
    message = {"role": role, "content": content}
    return message if weight is None else {**message, "weight": weight}


def called(name, weight):
    function = {"name": "wc", "arguments": json.dumps({"path": name})}
    call = {"id": name, "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call], "weight": weight}


def answered(name, text):
    return {"role": "tool", "tool_call_id": name, "content": text}


EARLIER = [
    message("system", "Be brief."),
    message("user", "How long is a?"),
    called("a", 0),
    answered("a", "12"),
    message("assistant", "Twelve.", 0),
    message("user", "And b? <|im_end|> is no end."),
]
LAST = [[*EARLIER, message("assistant", "Look.", 1)], [*EARLIER, called("b", 1)]]
"""Conversations whose only target is the last turn: an answer, a call."""
SOME = [
    [*EARLIER, called("b", 1), answered("b", "3"), message("assistant", "Three.", 1)],
    [
        message("user", "c"),
        message("assistant", "d", 1),
        message("user", "e"),
        message("assistant", "f", 0),
    ],
]
"""Conversations with targets in the middle."""


@pytest.fixture(scope="module")
def target(request, tmp_path_factory):
    """Returns (name, target): "no thoughts" writes no empty think block, the default does."""
    if getattr(request, "param", "hybrid") == "hybrid":
        return "qwen3", target_for("qwen3")
    folder = tokenizer_folder(tmp_path_factory.mktemp("target") / "tokenizer", NO_THOUGHTS)
    return folder, target_for(folder)


@pytest.fixture(scope="module")
def built(target, tmp_path_factory):
    """Builds the datasets of LAST and of SOME."""
    found = {}
    for name, conversations in (("last", LAST), ("some", SOME)):
        folder = tmp_path_factory.mktemp(name)
        rows = ({"messages": item, "tools": TOOLS} for item in conversations)
        (folder / "input.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        config = folder / "c.yaml"
        config.write_text(
            f"verify: {{tokenizer: {target[0]}}}\nnormalize: {{untrained_turns: weight}}\n"
        )
        out = found[name] = folder / "built"
        assert build(out, "-c", config, inputs=[folder / "input.jsonl"]) == 0
    return found


@pytest.fixture
def export(target, built, tmp_path):
    """Exports a dataset; returns (exit code, its rows, {a rendering's hash: meta})."""

    def run(name, to):
        meta = [row for path in (built[name] / "meta").iterdir() for row in lines(path)]
        assert len(meta) == 2
        out = tmp_path / to
        command = ["export", str(built[name]), "--to", to, "-o", str(out), "--quiet"]
        if code := cli.main([*command, "--tokenizer", target[0]]):
            return code, None, None
        loaded = datasets.load_dataset(str(out), split="train", cache_dir=str(tmp_path / "cache"))
        return 0, loaded, {row["render_sha256"]: row for row in meta}

    return run


def trained(target, ids, marked):
    """Returns the texts of the runs of marked tokens."""
    texts, run = [], []
    for number, is_trained in zip([*ids, None], [*marked, False], strict=True):
        if is_trained:
            run.append(number)
        elif run:
            texts.append(target.decode(run))
            run = []
    return texts


def spans(target, ids, meta):
    """Returns the texts of `meta.spans` of the sample whose rendering the tokens are."""
    text = target.decode(ids)
    row = meta[hashlib.sha256(text.encode()).hexdigest()]
    return [text[start:end] for start, end in row["spans"]]


@pytest.fixture(scope="module")
def unsloth():
    """Runs Unsloth's `sft_prepare_dataset` and `train_on_responses_only`."""
    scope = {
        **{name: getattr(typing, name) for name in ("Callable", "Dict", "List", "Optional")},
        "Union": typing.Union,
        "Dataset": datasets.Dataset,
        "IterableDataset": datasets.IterableDataset,
        "torch": types.SimpleNamespace(Tensor=type("Tensor", (), {}), int64=None),
    }
    names = (
        "_old_longest_common_substring",
        "_longest_common_sublist",
        "_stable_marker_edges",
        "_find_common_token_ids",
        "train_on_responses_only",
        "sft_prepare_dataset",
    )
    found = functions_of(UNSLOTH_ZOO, "unsloth_zoo/dataset_utils.py", names, scope)
    return types.SimpleNamespace(prepare=found[-1], mask=found[-2])


@pytest.fixture
def prepare(unsloth, target, monkeypatch):
    """Loads rows as Unsloth's trainer does, in this process."""
    package = types.ModuleType("unsloth_zoo")
    utils = types.ModuleType("unsloth_zoo.dataset_utils")
    utils.trl_collator_applies_masks = lambda: True
    workers = types.ModuleType("unsloth_zoo.dataset_num_proc")
    workers.get_dataset_num_proc = lambda wanted: None
    for module in (package, utils, workers):
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def run(rows):
        options = types.SimpleNamespace(max_length=4096, dataset_text_field="text")
        tokenizer = target[1].tokenizer
        return unsloth.prepare(
            types.SimpleNamespace(), rows, tokenizer, options, packing=False,
            formatting_func=None, dataset_name="train",
        )  # fmt: skip

    return run


@pytest.mark.parametrize(
    ("target", "to"),
    [
        ("hybrid", "messages"),
        ("hybrid", "messages-str"),
        ("hybrid", "tools-in-system"),
        ("no thoughts", "messages-str"),
    ],
    indirect=["target"],
)
def test_unsloth_trains_the_last_turn_alone(export, prepare, unsloth, target, to):
    code, rows, meta = export("last", to)
    assert code == 0
    mask = unsloth.mask(
        None,
        instruction_part="<|im_start|>user\n",
        response_part="<|im_start|>assistant\n",
        tokenizer=target[1].tokenizer,
        return_function=True,
        last_response_only=True,
    )
    prepared = prepare(rows)
    assert len(prepared) == 2
    for row in prepared:
        (labels,) = mask({"input_ids": [row["input_ids"]]})["labels"]
        found = trained(target[1], row["input_ids"], [label != NO_LOSS for label in labels])
        block = EMPTY_THINK if target[0] == "qwen3" else ""
        assert found == [block + text for text in spans(target[1], row["input_ids"], meta)]


@pytest.mark.parametrize("name", ["last", "some"])
def test_unsloth_keeps_the_labels(export, prepare, target, name):
    code, rows, meta = export(name, "tokenized")
    assert code == 0
    prepared = prepare(rows)
    assert len(prepared) == 2
    for row in prepared:
        found = trained(target[1], row["input_ids"], [label != NO_LOSS for label in row["labels"]])
        assert found == spans(target[1], row["input_ids"], meta)


@pytest.mark.parametrize("name", ["last", "some"])
def test_verl_trains_every_turn_so_samples_with_context_are_not_exported(
    export, target, name, capsys
):
    arrays = types.SimpleNamespace(ones_like=np.ones_like, zeros_like=np.zeros_like, Tensor=None)
    tokenizer = target[1].tokenizer

    def render(processor, messages, tools, **_):
        ids = target[1].encode(target[1].render(messages, tools)).ids
        return {"input_ids": [np.array(ids)], "attention_mask": [np.ones(len(ids), int)]}

    scope = {"Any": typing.Any, "Optional": typing.Optional, "torch": arrays}
    (process,) = functions_of(
        VERL,
        "verl/utils/dataset/multiturn_sft_dataset.py",
        ["MultiTurnSFTDataset._process_single_message"],
        {**scope, "apply_chat_template": render},
    )
    loader = types.SimpleNamespace(
        processor=None,
        tokenizer=tokenizer,
        apply_chat_template_kwargs={},
        system_prompt=[],
        generation_prompt=target[1].encode("<|im_start|>assistant\n").ids,
    )
    code, rows, _ = export(name, "messages")
    assert code == 0
    for row in rows:
        for at, message in enumerate(row["messages"]):
            _, mask, _, _ = process(loader, at, message, row["messages"])
            assert mask.any() == (message["role"] == "assistant")
    capsys.readouterr()
    code, rows, _ = export(name, "verl")
    err = capsys.readouterr().err
    if name == "last":
        assert code == 2
        assert "context and not trained (normalize.untrained_turns)" in err
    else:
        assert (code, len(rows)) == (0, 1)
        assert "1 sample left out: verl cannot train only the right turns" in err
