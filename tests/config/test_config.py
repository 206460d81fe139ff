"""The configuration: each key is declared once, and everything else is derived from it."""

import re
from dataclasses import fields
from typing import get_args, get_type_hints

import pytest
import yaml
from support.places import ROOT

from builder.config import Config, InputSection, load_config
from builder.normalize.options import NormalizeOptions
from builder.options import Preset, keys_of

DEFAULT = ROOT / "configs" / "default.yaml"


def documented():
    """Returns {key: its line in configs/default.yaml with the comment}, including inputs[]."""
    found, section = {}, ""
    for line in DEFAULT.read_text().splitlines():
        text = line.replace("#  - ", "    ").replace("#    ", "    ")
        match = re.match(r"( *)([a-z_]+):", text)
        if match and not match[1]:
            section = match[2]
            found[section] = line
        elif match:
            found[f"{section}.{match[2]}"] = line
        elif found and line.lstrip().startswith("#"):
            found[next(reversed(found))] += line  # the comment continues
    return found


def test_the_default_file_contains_the_defaults():
    assert load_config(DEFAULT).resolved() == Config().resolved()
    written = yaml.safe_load(DEFAULT.read_text())
    assert Config().resolved() == {**written, "inputs": []}


def test_the_default_file_documents_every_key_and_every_choice():
    lines = documented()
    hints = get_type_hints(Config)
    for section in fields(Config):
        kind = InputSection if section.name == "inputs" else hints[section.name]
        if not hasattr(kind, "__dataclass_fields__"):
            continue
        for name, item in keys_of(kind).items():
            line = lines[f"{section.name}.{name}"]
            assert "#" in line or section.name == "split", f"{section.name}.{name} is not explained"
            for choice in choices(kind, item):
                assert choice in line, f"{section.name}.{name}: {choice} is not explained"


def choices(kind, item):
    """Returns the choices of a Literal field, or of a tuple of them."""
    for owner in (kind, *(hint for hint in get_type_hints(kind).values())):
        hint = getattr(owner, "__dataclass_fields__", {}).get(item.name)
        if hint is item:
            inner = get_type_hints(owner)[item.name]
            flat = [get_args(part) or (part,) for part in get_args(inner)] or [()]
            return [name for part in flat for name in part if isinstance(name, str)]
    raise AssertionError(item.name)


def test_values_reach_the_options_of_the_rooms(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(
        "verify: {mode: thinking, tokenizer: t}\nmix: {chain: 0.5, parallel: null}\n"
        "audit: {secrets: off, near_duplicates: drop, contamination: [a]}\n"
        "normalize: {unit: turn}\nsplit: {test: 1, seed: 0}\n"
    )
    config = load_config(path)
    assert config.verify.options.mode == "thinking"
    assert config.verify.tokenizer.located == tmp_path / "t"
    assert config.audit.scrub.secrets == "off"
    assert config.audit_options.near_duplicates == "drop"
    assert config.audit_options.mix == {"chain": 0.5}
    assert config.audit_options.sets == ("a",)
    assert config.normalize == NormalizeOptions(unit="turn")
    assert config.split.test == 1.0
    assert config.resolved()["audit"]["contamination"] == ["a"]


@pytest.mark.parametrize("text", ["", "normalize:\n", "normalize: {}\nmix:\n"])
def test_an_empty_section_is_all_defaults(tmp_path, text):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    assert load_config(path) == Config()


@pytest.mark.parametrize("name", get_args(Preset))
def test_a_preset_is_valid_and_a_configuration_overrides_its_keys(tmp_path, name):
    preset = load_config(None, name)
    assert preset != load_config(None)
    path = tmp_path / "mine.yaml"
    path.write_text("limits: {max_tokens: 77}\n", encoding="utf-8")
    mine = load_config(path, name)
    assert mine.limits.max_tokens == 77
    assert mine.normalize == preset.normalize
    assert mine.limits.too_long == preset.limits.too_long
