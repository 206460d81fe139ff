"""Every code that can appear in a report is explained: meaning, example, remedy."""

import ast
import functools
import importlib
import inspect
import json
import pkgutil
import re

import pytest
from support.places import CASES

import builder
from builder.codes import (
    NOTHING_TO_TRAIN,
    code_texts,
    code_words,
    explain,
    is_loss,
    meaning,
    meaning_of_change,
)
from builder.report.html import macro

FOREIGN = {
    *("zero_weight", "inserted", "prefilled", "edited", "stripped", "warmup", "second_answer"),
    *("error", "denied", "interrupted", "repeated", "bad_call", "truncated", "truncated_answer"),
    *("no_thought", "undefined_tool", "media", "lost_record", "xml_types", "xml_markup"),
}
"""Codes of foreign turns that may stay as context under `untrained_turns: weight`."""

FAULTS = {"Problem", "JsonFault", "CheckFinding"}


def values(node, names):
    """Yields the texts that an expression may have; `names` are those of its module."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(id=name) if isinstance(names.get(name), str):
            yield names[name]
        case ast.IfExp(body=one, orelse=other):
            yield from values(one, names)
            yield from values(other, names)
        case ast.BoolOp(values=several):
            for one in several:
                yield from values(one, names)


def codes_of_faults(tree, names):
    """Yields the codes of the faults that a module makes, as far as they are not computed."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=kind), args=[code, *_]) if kind in FAULTS:
                yield from values(code, names)


def used_codes():
    """Yields the codes of the faults of all modules; constants are those of the imported module."""
    for item in pkgutil.walk_packages(builder.__path__, "builder."):
        if not item.name.endswith("__main__"):
            module = importlib.import_module(item.name)
            source = inspect.getsource(module)
            if any(f"{kind}(" in source for kind in FAULTS):
                yield from codes_of_faults(ast.parse(source), vars(module))


def golden_codes():
    """Returns the codes of the problems in the golden cases of all readers."""
    for path in sorted(CASES.rglob("expected.json")):
        for items in json.loads(path.read_bytes()).values():
            problems = (item for item in items if isinstance(item, dict))
            for item in problems:
                if item.get("is") == "Problem":
                    yield item["code"]
                messages = item.get("messages") or ()
                yield from (code for part in messages if (code := part.get("untrained")))


def test_every_code_of_the_source_is_explained():
    found = set(used_codes())
    assert len(found) > 80
    assert found - set(code_texts()) == set()


COUNTERS = {"changes", "counts", "ignored"}
COUNTING = ("builder.build", "builder.normalize", "builder.readers", "builder.scrub")
CODE = re.compile(r"(?<=\")([\w-]+)(?=[\":])|\b(\w+)(?==)")
OF_TURNS = {"aborted_turn", "system_joined", "unanswered_turn", "user_joined"}
"""Codes that the source puts together from two words."""


def counted_codes(tree):
    """Yields the codes of changes and of ignored records that a module counts."""
    for node in ast.walk(tree):
        match node:
            case ast.AugAssign(target=ast.Subscript(value=counter, slice=code)):
                name = counter.attr if isinstance(counter, ast.Attribute) else counter
                if (name.id if isinstance(name, ast.Name) else name) in COUNTERS:
                    yield from values(code, {})
            case ast.Call(func=ast.Name(id="Ignored"), args=[code, *_]):
                yield from values(code, {})
            case ast.Call(func=ast.Attribute(attr="counting"), keywords=given):
                yield from (one.arg for one in given if one.arg)
            case ast.Call(func=ast.Attribute(attr="having"), args=[_, ast.Dict(keys=keys)]):
                yield from (code for key in filter(None, keys) for code in values(key, {}))
            case ast.keyword(arg="changes", value=given):
                for item in ast.walk(given):
                    keys = item.keys if isinstance(item, ast.Dict) else ()
                    yield from (code for key in filter(None, keys) for code in values(key, {}))


@functools.cache
def sources():
    """Returns the sources of the modules that count changes and records."""
    found = {item.name for item in pkgutil.walk_packages(builder.__path__, "builder.")}
    chosen = [name for name in found if name.startswith(COUNTING)] + ["builder.text"]
    return [inspect.getsource(importlib.import_module(name)) for name in chosen]


def test_every_change_and_every_kind_of_ignored_record_has_words():
    found = {code for text in sources() for code in counted_codes(ast.parse(text))}
    assert len(found) > 130
    assert [code for code in sorted(found) if not (meaning_of_change(code) and meaning(code))] == []
    assert meaning_of_change("untrained:repeat").startswith("turns that are context: ")
    assert meaning("unknown:mood") == meaning("unknown")
    assert meaning("file-history-snapshot") == ""


def test_every_change_of_the_golden_cases_has_words():
    cases = (json.loads(path.read_bytes()) for path in sorted(CASES.rglob("expected.json")))
    items = [item for case in cases for listed in case.values() for item in listed]
    changed = (item.get("changes") for item in items if isinstance(item, dict))
    found = {code for changes in changed if isinstance(changes, dict) for code in changes}
    assert len(found) > 30
    assert [code for code in sorted(found) if not meaning_of_change(code)] == []


def test_words_are_of_codes_that_exist():
    used = {name for text in sources() for found in CODE.findall(text) for name in found}
    for code, words in code_words().items():
        assert words == words.strip() != ""
        assert not words.endswith(".")
        assert code in used | OF_TURNS | {"unknown"}, code


def test_codes_are_found_in_constants_and_conditions():
    source = 'Problem(A if x else "b", 1); CheckFinding(x or "c"); JsonFault("d"); Problem(f"{x}")'
    assert sorted(codes_of_faults(ast.parse(source), {"A": "a"})) == ["a", "b", "c", "d"]


def test_every_code_of_a_turn_that_is_context_only_is_explained():
    assert FOREIGN - set(code_texts()) == set()


def test_every_code_of_the_golden_cases_is_explained():
    found = set(golden_codes())
    assert len(found) > 15
    assert found - set(code_texts()) == set()


@pytest.mark.parametrize("code", sorted(code_texts()))
def test_an_explanation_is_complete(code):
    found = code_texts()[code]
    for words in (found.meaning, found.example, found.remedy):
        assert words
        assert words == words.strip()
        assert not words.endswith(".")
        assert words.count("`") % 2 == 0
    if found.option:
        # The same remedy on every page and in the summary.
        assert found.option.split(":")[0] in found.remedy


def test_every_code_of_what_is_no_loss_is_explained():
    assert set(NOTHING_TO_TRAIN) <= set(code_texts())
    assert is_loss("unanswered")
    assert not is_loss("warmup")
    assert not is_loss("select_model")


def test_conditions_are_explained_and_kinds_of_records_are_not():
    assert "select.where" in explain("select_outcome_reward").meaning
    assert explain("file-history-snapshot") is None
    assert not macro("report", "explained", known=explain("file-history-snapshot")).strip()
    shown = macro("report", "explained", known=explain("control_tokens"))
    assert "<code>&lt;|im_end|&gt;</code>" in shown
