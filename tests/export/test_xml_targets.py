"""Exports of targets with XML calls: loaded rows render to the verified bytes, or one line refuses.

Arguments have keys that differ between rows, which a loader must not fill up with nulls.
"""

import hashlib
import json

import datasets
import pytest
from support.runs.builds import build, lines
from support.templates.published import text_of
from support.templates.targets import small_tokenizer_folder

from builder import cli
from builder.export.variants import VARIANTS
from builder.qwen3.tokenizer import load

PROPERTIES = {
    "path": {"type": "string"},
    "lines": {"type": "integer"},
    "all": {"type": "boolean"},
    "where": {"type": "object"},
    "names": {"type": "array"},
}
TOOL = {
    "type": "function",
    "function": {"name": "wc", "parameters": {"type": "object", "properties": PROPERTIES}},
}
ARGUMENTS = (
    {"path": "a.txt"},
    {"lines": 3, "all": True},
    {"where": {"deep": {"x": None}}, "names": ["a", 1]},
    {"where": {"other": "2024-01-02"}, "names": [], "path": "12"},
)


def conversation(arguments):
    function = {"name": "wc", "arguments": json.dumps(arguments)}
    called = {"id": "c", "type": "function", "function": function}
    messages = [
        {"role": "user", "content": "How long?"},
        {"role": "assistant", "content": "I count.", "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c", "content": "12"},
        {"role": "assistant", "reasoning_content": "Hm.", "content": "Twelve."},
    ]
    return json.dumps({"messages": messages, "tools": [TOOL]}) + "\n"


@pytest.fixture(scope="module", params=["Qwen3.5", "Qwen3.8", "Qwen3-Coder"])
def built(request, tmp_path_factory):
    """Returns the folder of the tokenizer and the dataset that was built for it."""
    folder = tmp_path_factory.mktemp("xml")
    template = text_of(request.param)
    tokenizer = small_tokenizer_folder(folder / "tokenizer", chat_template=template)
    (folder / "in.jsonl").write_text("".join(map(conversation, ARGUMENTS)))
    config = {
        "inputs": [{"path": "in.jsonl"}],
        "normalize": {"reasoning": "keep"},
        "verify": {"tokenizer": tokenizer},
    }
    (folder / "c.yaml").write_text(json.dumps(config))
    assert build(folder / "out", "-c", folder / "c.yaml", inputs=()) == 0
    return tokenizer, folder / "out"


def export(built, to, out):
    tokenizer, folder = built
    command = ["export", str(folder), "--to", to, "-o", str(out), "--tokenizer", tokenizer]
    return cli.main(command)


@pytest.mark.parametrize("to", [name for name, item in VARIANTS.items() if not item.of_pairs])
def test_a_variant_gives_the_verified_bytes_or_is_refused_in_one_line(built, to, tmp_path, capsys):
    tokenizer, folder = built
    out = tmp_path / "out"
    command = ["export", str(folder), "--to", to, "-o", str(out), "--tokenizer", tokenizer]
    code = cli.main(command)
    err = capsys.readouterr().err
    target = load(tokenizer)
    # verl renders each message alone, which a template that needs a query refuses.
    is_refused = to == "sharegpt" or (to == "verl" and target.style.needs_query)
    assert code == (2 if is_refused else 0), err
    if is_refused:
        assert len(err.splitlines()) == 1
        assert not out.exists()
    if to not in ("messages", "openai"):
        return
    rows = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "cache"))["train"]
    digests = [
        hashlib.sha256(target.render(row["messages"], row["tools"] or None).encode()).hexdigest()
        for row in rows
    ]
    (meta,) = (folder / "meta").iterdir()
    assert digests == [row["render_sha256"] for row in lines(meta)]
    assert len(digests) == len(ARGUMENTS)
