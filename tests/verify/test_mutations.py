"""Damage to samples of XML targets is reported, and nothing else is (scripts/mutate.py)."""

import importlib
import sys
from pathlib import Path

import pytest
from support.templates.published import text_of

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Qwen3.5", "Qwen3.8", "Qwen3-Coder"])
def test_damage_to_xml_samples_is_caught(name, tmp_path, monkeypatch, capsys):
    template = tmp_path / "chat_template.jinja"
    template.write_text(text_of(name), encoding="utf-8", newline="")
    monkeypatch.syspath_prepend(str(SCRIPTS))
    before = set(sys.modules)
    mutate = importlib.import_module("mutate")
    xml = importlib.import_module("mutations.xml")
    folders = list(mutate.build_data(tmp_path, str(template)))
    capsys.readouterr()
    code = mutate.run(folders, 3, str(template), complete=False)
    printed = capsys.readouterr().out
    for module in set(sys.modules) - before:
        if module.partition(".")[0] in ("mutate", "mutations"):
            del sys.modules[module]
    assert code == 0, printed
    unused = next(line for line in printed.splitlines() if line.startswith("fits nowhere: "))
    never = set(unused.removeprefix("fits nowhere: ").split(", "))
    assert never.isdisjoint(mutation.name for mutation in (*xml.KINDS, *xml.MEANT))
