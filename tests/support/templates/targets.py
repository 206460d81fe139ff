"""Targets with other chat templates: the embedded tokenizer, or a small one in a folder."""

import copy
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import builder.qwen3
from builder.qwen3 import tokenizer
from builder.qwen3.tokenizer import load
from builder.qwen3.tokens import TokenTable

ASSETS = Path(builder.qwen3.__file__).parent / "assets"
CONFIG = json.loads((ASSETS / "tokenizer_config.json").read_text(encoding="utf-8"))
ORIGINAL = CONFIG["chat_template"]
"""The text of 2025-04, which tokenizer_config.json has and chat_template.jinja replaces."""
TEMPLATE = (ASSETS / "chat_template.jinja").read_text(encoding="utf-8")
CONFIG["chat_template"] = TEMPLATE

# The template without thoughts, as in the instruct-2507 models.
NO_THOUGHTS = (
    TEMPLATE.replace("'</think>' in content", "false")
    .replace("loop.index0 > ns.last_query_index", "false")
    .replace("enable_thinking is defined and enable_thinking is false", "false")
)


@cache
def automatic():
    """Returns the embedded tokenizer as other programs load it, with AutoTokenizer."""
    return load(str(ASSETS))


def with_template(template):
    """Returns the target of a folder with the embedded tokenizer and this chat template.

    The vocabulary is loaded once for all templates, as that takes most of a second.
    """
    tokenizer = copy.copy(automatic().tokenizer)
    tokenizer.chat_template = template
    opened = dict.fromkeys(("loaded", "renderer"), lambda: tokenizer)
    return replace(automatic(), template=template, **opened)


@pytest.fixture
def one_vocabulary(monkeypatch):
    """Opens the embedded vocabulary once for all targets that a test loads with it."""
    opened, table = automatic(), automatic()._table
    monkeypatch.setattr(tokenizer, "pretrained", lambda *_, **__: copy.copy(opened.tokenizer))
    monkeypatch.setattr(TokenTable, "of", lambda _: table)


def tokenizer_folder(folder, template):
    """Writes a folder with the embedded tokenizer and this chat template, for `load`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").symlink_to(ASSETS / "tokenizer.json")
    config = {**CONFIG, "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def small_tokenizer_folder(folder, **changes):
    """Writes a folder with a tokenizer of single bytes, which loads in milliseconds.

    Its configuration is the embedded one with these changes; keys that are None are left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    definition, added = _small_tokenizer()
    (folder / "tokenizer.json").write_text(definition, encoding="utf-8")
    config = {**CONFIG, "added_tokens_decoder": added, **changes}
    config = {key: value for key, value in config.items() if value is not None}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


@cache
def _small_tokenizer():
    """Returns the text of tokenizer.json, and the added tokens by their ids."""
    definition = json.loads((ASSETS / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = definition["model"]["vocab"]
    letters = sorted((token for token in vocabulary if len(token) == 1), key=vocabulary.get)
    definition["model"] |= {
        "vocab": {token: number for number, token in enumerate(letters)},
        "merges": [],
    }
    added = {}
    for number, token in enumerate(definition["added_tokens"], len(letters)):
        added[str(number)] = CONFIG["added_tokens_decoder"][str(token["id"])]
        token["id"] = number
    return json.dumps(definition), added


def extended_folder(folder, template):
    """Writes a folder like `tokenizer_folder`, with the tokens of the template's turn markers."""
    path = tokenizer_folder(folder, template)
    markers = ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>")
    if markers[0] not in template:
        return path
    from transformers import AutoTokenizer

    extended = AutoTokenizer.from_pretrained(path)
    extended.add_special_tokens({"additional_special_tokens": list(markers)})
    made = Path(f"{path}-extended")
    extended.save_pretrained(made)
    return str(made)
