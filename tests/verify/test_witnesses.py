"""Other engines as witnesses: each reports planted damage, and agrees where nothing is damaged.

A witness whose package is not installed is skipped; scripts/conformance.sh installs all of them.
"""

import json
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest
from support.templates.published import text_of
from support.templates.targets import with_template

from builder import cli
from builder.api import verify_dataset
from builder.output.manifest import Manifest, WitnessEntry
from builder.problem import UsageError
from builder.qwen3.flatten import flatten
from builder.qwen3.tokenizer import target_for
from builder.sample import Call, Dialogue, Turn
from builder.verify.verifier import Verifier
from builder.verify.witnesses import count
from builder.verify.witnesses.case import NotAskedError, calls_fault, case_of
from builder.verify.witnesses.engines import WITNESSES
from builder.verify.witnesses.replay import SERVERS, drift, replayed

PACKAGES = {
    "llama.cpp": "ggufdoctor",
    "sglang": "llm_router_utils",
    "transformers": "transformers",
    "xgrammar": "xgrammar",
}
TOOL = {
    "type": "function",
    "function": {
        "name": "wc",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
            "required": ["path"],
        },
    },
}
FIRST, SECOND = ("wc", {"path": "notes.txt", "lines": 12}), ("wc", {"path": "12"})
TURNS = (
    Turn("user", "How long?"),
    Turn("assistant", "I count.", "", (Call.of(*FIRST), Call.of(*SECOND))),
    Turn("tool", responses=("12", "13")),
    Turn("assistant", "Twelve."),
)
DAMAGE = {
    "a closing tag is missing": ("</tool_call>", ""),
    "another tool is called": ("wc", "cw"),
    "an argument has another value": ("notes.txt", "note.txt"),
    "a number is written as text": ("12", "twelve"),
    "a key is written differently": ("path", "paths"),
    "the text is different": ("I count.", "I <tool_call> count."),
}
UNSEEN = {
    # Without closing tags it reads the rest of the text as the call.
    ("sglang", "XML"): ["a closing tag is missing"],
    # A grammar states which values are possible, not which one is meant.
    ("xgrammar", "JSON"): ["an argument has another value"],
    # A call begins with both tags here, so one of them is text.
    ("xgrammar", "XML"): ["an argument has another value", "the text is different"],
}
"""Damage that a witness cannot see, because of what it is."""


@pytest.fixture(scope="module", params=["JSON", "XML"])
def target(request):
    return target_for("qwen3") if request.param == "JSON" else with_template(text_of("Qwen3.5"))


@pytest.fixture(scope="module")
def case(target):
    dialogue = Dialogue(TURNS, (TOOL,))
    sample = flatten(dialogue, target.style)
    verdict = Verifier(target).check(sample, dialogue)
    assert not verdict.findings
    return case_of(sample, verdict.text, verdict.spans, target)


@pytest.fixture(params=PACKAGES)
def witness(request, target):
    if find_spec(PACKAGES[request.param]) is None:
        pytest.skip(f"{PACKAGES[request.param]} is not installed")
    return WITNESSES[request.param](target)


def damaged(case, old, new):
    """Returns the case with damaged text, and the meaning that it had."""
    generated = [replace(item, response=item.response.replace(old, new)) for item in case.generated]
    assert generated[0].response != case.generated[0].response
    return replace(case, text=case.text.replace(old, new), generated=tuple(generated))


def test_every_witness_has_a_package():
    assert PACKAGES.keys() == WITNESSES.keys()


def test_the_case_has_what_a_model_writes(case):
    first, last = case.generated
    assert first.prefix + first.response + last.prefix[len(first.prefix + first.response) :] == (
        last.prefix
    )
    assert (first.turn, last.turn) == (TURNS[1], TURNS[3])
    assert first.body.startswith("I count.")
    assert last.body == "Twelve."
    assert first.meant == [FIRST, SECOND]


def test_a_witness_agrees_with_a_proven_sample(witness, case):
    assert witness.version
    assert witness.fault(case) is None


@pytest.mark.quick(12)
@pytest.mark.parametrize("name", DAMAGE)
def test_a_witness_reports_planted_damage(witness, case, name):
    fault = witness.fault(damaged(case, *DAMAGE[name]))
    dialect = case.target.style.dialect.name
    assert (fault is None) == (name in UNSEEN.get((witness.name, dialect), ()))


def test_llama_cpp_is_not_asked_about_a_long_text(witness, case):
    if witness.name == "llama.cpp":
        with pytest.raises(NotAskedError):
            witness.fault(replace(case, text="a" * (1 << 17)))


def test_arguments_that_violate_their_schema_are_not_asked_about(witness, case):
    if witness.name == "xgrammar":
        item = case.generated[0]
        wrong = replace(item.turn, calls=(Call.of("wc", {"path": 5}),))
        with pytest.raises(NotAskedError):
            witness.fault(replace(case, generated=(replace(item, turn=wrong),)))


@pytest.mark.parametrize("arguments", [{}, {"path": "a", "todos": [{"a": "b"}]}])
def test_forms_that_the_grammar_for_xml_refuses(witness, case, arguments):
    if (witness.name, case.target.style.dialect.name) == ("xgrammar", "XML"):
        called = Turn("assistant", "", "", (Call.of("list", arguments),))
        properties = {"path": {"type": "string"}, "todos": {"type": "array"}}
        parameters = {"type": "object", "properties": properties}
        tool = {"type": "function", "function": {"name": "list", "parameters": parameters}}
        dialogue = Dialogue((TURNS[0], called), (tool,))
        sample = flatten(dialogue, case.target.style)
        verdict = Verifier(case.target).check(sample, dialogue)
        assert not verdict.findings
        with pytest.raises(NotAskedError, match="its grammar"):
            witness.fault(case_of(sample, verdict.text, verdict.spans, case.target))


@pytest.mark.parametrize(
    "found",
    [
        [],
        [("cw", {"a": 1})],
        [("wc", {"a": True})],
        [("wc", {"a": 1.5})],
        [("wc", {})],
        [("wc", 1)],
    ],
)
def test_calls_that_are_read_differently(found):
    meant = [("wc", {"a": 1})]
    assert calls_fault(meant, meant) is None
    assert calls_fault(meant, [("wc", {"a": 1.0})]) is None
    assert calls_fault(meant, found) is not None


class Doubting:
    """A witness that disagrees with every second sample."""

    name, version = "llama.cpp", "of a test"

    def __init__(self, _):
        self.asked = 0

    def fault(self, _):
        self.asked += 1
        return "it differs" if self.asked % 2 else None


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    samples = [
        flatten(Dialogue((Turn("user", f"How long, {number}?"), *TURNS[1:]), (TOOL,)))
        for number in range(3)
    ]
    path.write_text("".join(json.dumps(sample.record) + "\n" for sample in samples))
    return path


@pytest.fixture
def doubting(monkeypatch):
    monkeypatch.setitem(count.__dict__, "WITNESSES", {"llama.cpp": Doubting})
    count.witness_for.cache_clear()
    yield
    count.witness_for.cache_clear()


@pytest.mark.usefixtures("doubting")
def test_the_command_prints_a_line_for_each_witness_and_fails_if_one_differs(rows, capsys):
    assert cli.main(["verify", str(rows), "--witness", "llama.cpp", "--workers", "1"]) == 1
    out = capsys.readouterr().out
    assert "witness llama.cpp (of a test): agrees on 1 of 3 samples" in out
    assert "    it differs" in out


@pytest.mark.usefixtures("doubting")
def test_results_as_json(rows, capsys):
    command = ["verify", str(rows), "--witness", "llama.cpp", "--replay", "vllm", "--json"]
    assert cli.main([*command, "--workers", "1"]) == 1
    result = json.loads(capsys.readouterr().out)
    found = result["witnesses"]["llama.cpp"]
    assert (found["agreed"], found["differs"], found["not_asked"]) == (1, 2, {})
    assert result["replay"] == {"vllm": {"turns": 3, "with_text": 3, "drifting": 3}}


def test_a_share_of_the_samples(rows):
    asked = {}
    for share in (0.0, 0.5, 1.0):
        summary = verify_dataset(str(rows), witnesses=["transformers"], witness_share=share)
        asked[share] = count.testimonies(summary.masks, ["transformers"])["transformers"].agreed
    lines = rows.read_bytes().splitlines()
    drawn = sum(count.is_drawn(line, 0.5, 0) for line in lines)
    assert asked == {0.0: 0, 0.5: drawn, 1.0: 3}


def test_a_share_is_a_part_of_a_larger_one_and_depends_on_the_seed():
    drawn = {
        (share, seed): {at for at in range(400) if count.is_drawn(b"%d" % at, share, seed)}
        for share in (0.1, 0.3)
        for seed in (0, 1)
    }
    assert drawn[0.1, 0] < drawn[0.3, 0]
    assert drawn[0.3, 0] != drawn[0.3, 1]
    assert 80 < len(drawn[0.3, 0]) < 160


CONFIG = "verify: {witness: [llama.cpp]}\nsplit: {seed: 7}\n"


@pytest.mark.usefixtures("doubting")
@pytest.mark.parametrize("strict", [False, True])
def test_a_build_asks_witnesses_and_records_it(rows, tmp_path, strict, capsys):
    (tmp_path / "c.yaml").write_text(CONFIG)
    out = tmp_path / "out"
    command = ["build", str(rows), "-o", str(out), "-c", str(tmp_path / "c.yaml"), "--workers", "1"]
    assert cli.main([*command, *(["--strict"] if strict else [])]) == int(strict)
    assert "witness llama.cpp (of a test): agrees on 1 of 3 samples" in capsys.readouterr().out
    (entry,) = Manifest.of(out).witnesses
    assert entry == WitnessEntry(
        name="llama.cpp", version="of a test", share=1.0, seed=7, asked=3, agreed=1, not_asked={}
    )
    card = (out / "README.md").read_text()
    assert "| witness llama.cpp | agrees on 1 of 3 samples" in card
    assert "of a test" in card


@pytest.mark.usefixtures("doubting")
def test_a_merge_asks_no_witnesses(rows, tmp_path):
    (tmp_path / "c.yaml").write_text(CONFIG)
    for name, options in (("a", []), ("b", ["-c", str(tmp_path / "c.yaml")])):
        assert cli.main(["build", str(rows), "-o", str(tmp_path / name), *options]) == 0
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert cli.main(["merge", *folders, "-o", str(tmp_path / "c")]) == 0
    merged = Manifest.of(tmp_path / "c")
    assert merged.ledger.samples == 3
    assert not merged.witnesses
    assert merged.config["verify"]["witness"] == []


def test_a_build_without_a_witness_that_it_names_does_not_begin(rows, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ggufdoctor.engines.llamacpp_engine", None)
    count.witness_for.cache_clear()
    (tmp_path / "c.yaml").write_text(CONFIG)
    command = ["build", str(rows), "-o", str(tmp_path / "out"), "-c", str(tmp_path / "c.yaml")]
    assert cli.main(command) == 2
    assert not (tmp_path / "out").exists()


def test_a_witness_that_is_not_installed_says_how_to_install_it(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgrammar", None)
    count.witness_for.cache_clear()
    with pytest.raises(UsageError, match="pip install xgrammar"):
        verify_dataset(str(rows), witnesses=["xgrammar"])


@pytest.mark.parametrize(("option", "name"), [("--witness", "sgland"), ("--replay", "vlm")])
def test_an_unknown_name(rows, capsys, option, name):
    assert cli.main(["verify", str(rows), option, name]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_masks_and_witnesses_together(rows):
    summary = verify_dataset(str(rows), masks=["trl"], witnesses=["transformers"], replay=["vllm"])
    assert set(summary.masks) == {"trl", "witness:transformers", "replay:vllm"}
    assert count.testimonies(summary.masks, ["transformers"])["transformers"].agreed == 3


def test_turns_that_drift(case):
    """vLLM keeps the newline before a call: it is written twice, unless the template trims."""
    found = {name: drift(name, case) for name in SERVERS}
    trims = case.target.style.trims != "none"
    assert [found[name].turns for name in SERVERS] == [1, 1]
    assert [found[name].drifting for name in SERVERS] == ([0, 0] if trims else [1, 0])


@pytest.mark.skipif(find_spec("llm_router_utils") is None, reason="llm-router-utils is missing")
@pytest.mark.parametrize("text", ["I count.", " I count.\n", ""])
def test_the_rule_for_sglang_is_what_its_parser_does(target, text):
    turn = replace(TURNS[1], content=text)
    sample = flatten(Dialogue((TURNS[0], turn), (TOOL,)), target.style)
    engine = WITNESSES["sglang"](target)
    read = engine.read(sample.messages[1][1], (TOOL,))
    content = read.normal_text.strip() if target.style.trims != "none" else read.normal_text
    assert replayed("sglang", turn, target.style).content == content
