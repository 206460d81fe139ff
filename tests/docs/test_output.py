"""The keys of the written files are in one place each, and docs/output.md lists them."""

import ast
import importlib.util
import json
from functools import cache

import pytest
from support.places import ROOT

from builder.dataset.meta import SampleMeta
from builder.dataset.rejects import Reject
from builder.keys import keys_of, write_keys
from builder.output.manifest import Manifest, PairsEntry, TokenizerEntry

BELOW = {"readers", "secrets", "scrub", "normalize", "sources", "qwen3", "capture"}
"""Rooms that read logs, whose keys may have the same names."""

OWN = {
    "audit/calls.py": "counts by name", "audit/run.py": "codes by audit",
    "audit/tables.py": "counts by field", "audit/failures.py": "a word in a text",
    "report/advice.py": "counts by field", "build/results.py": "the counts of a result",
    "cli/verify.py": "its own result",
    "output/manifest.py": "the manifest itself", "dataset/review.py": "the keys of a review",
    "push/gates.py": "the card's front matter",
    "view/review_file.py": "numbers of the viewer",
    "view/viewer.py": "numbers of the viewer",
}  # fmt: skip
"""Files that use a word that is also a key, and for what."""


def used_keys(tree):
    """Yields (line, key) of each text that indexes something."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="get" | "pop" | "setdefault"),
                args=[ast.Constant(value=str(key)), *_],
            ):
                yield node.lineno, key
            case ast.Subscript(value=ast.Name(id="Literal")):
                continue  # a type
            case ast.Subscript(slice=ast.Constant(value=str(key))):
                yield node.lineno, key
            case ast.Compare(left=ast.Constant(value=str(key)), ops=[ast.In() | ast.NotIn()]):
                yield node.lineno, key
            case ast.MatchMapping(keys=keys):
                for key in keys:
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield node.lineno, key.value


@cache
def uses():
    """Returns {place: key} of each text that indexes something."""
    found = {}
    for path in sorted((ROOT / "builder").rglob("*.py")):
        place = path.relative_to(ROOT / "builder").as_posix()
        if place.partition("/")[0] in BELOW or place in OWN:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found |= {f"{place}:{line}: {key}": key for line, key in used_keys(tree)}
    return found


def test_the_rule_finds_every_way_to_use_a_key():
    source = 'a.get("x"); a["y"]; "z" in a; a.pop("v", 1); b = {"w": 1}'
    source += "\nmatch a:\n case {'u': 1}: pass"
    assert sorted(key for _, key in used_keys(ast.parse(source))) == ["u", "v", "x", "y", "z"]


@pytest.mark.parametrize("kind", [SampleMeta, Reject, Manifest, TokenizerEntry, PairsEntry])
def test_no_key_of_a_written_file_is_used_as_a_text(kind):
    names = {item.name for item in keys_of(kind)} - {
        "name",
        "model",
        "missing",
    }  # also of functions, options, contexts
    assert not [use for use, key in uses().items() if key in names]


def test_the_pages_are_up_to_date():
    where = ROOT / "scripts" / "docs.py"
    spec = importlib.util.spec_from_file_location("docs", where)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert list(script.outdated()) == []


@pytest.mark.parametrize("value", [None, [], {}, {"id": 5, "tokens": -1, "calls": True}])
def test_a_line_of_any_value_has_the_defaults(value):
    assert SampleMeta.read(value) == SampleMeta()


def test_a_line_is_written_as_it_was_read():
    line = write_keys(SampleMeta())
    line |= {"id": "a", "model": None, "context": {"level": "partial", "missing": ["tools"]}}
    line |= {"spans": [[1, 2]], "changes": {"b": 1}, "outcome": {"reward": 0.5}}
    line["preferences"] = [
        {"reason": "retry", "turn": 0, "chosen": None, "rejected": "c", "record": "d"}
    ]
    meta = SampleMeta.read(line)
    assert meta.faults(line) == []
    assert meta == SampleMeta.read({**line, "other": 1})
    assert SampleMeta.read({**line, "tokens": "6"}).faults({**line, "tokens": "6"}) == ["tokens"]


@pytest.mark.parametrize("value", [None, [], {"files": 1, "ledger": [], "tokenizer": {"name": 5}}])
def test_a_manifest_of_any_value_has_the_defaults(value):
    assert Manifest.read(value) == Manifest()
    assert Manifest.read(value).is_empty


def test_a_manifest_keeps_the_keys_of_other_versions():
    stated = {**write_keys(Manifest()), "other": [1]}
    assert json.loads(Manifest.read(stated).content) == stated
