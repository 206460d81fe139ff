"""What each trainer would train, written by hand: trained text is between ⟦ and ⟧."""

import json

import pytest
from support.conversations.masks import CALL, NONE, PLAIN, SAMPLES, THOUGHTS, TWO_QUERIES
from support.pages.differences import blocks, is_shown
from support.places import ROOT
from support.templates.targets import NO_THOUGHTS, TEMPLATE, with_template

from builder import cli
from builder.qwen3.calls import TOOLS_BEGIN, TOOLS_END
from builder.qwen3.templates import TEMPLATES, Template
from builder.sample import Sample
from builder.trainers.mask_counts import REGIONS, Comparison, compare, regions
from builder.trainers.masks import MASKS, Mask, MaskRefusal, keep_pairs, keep_start
from builder.verify.verifier import Verifier, verifier_for

TOOLS = (
    TOOLS_BEGIN + '\n{"type": "function", "function": {"name": "wc", "parameters": {}}}' + TOOLS_END
)
ASKED = "<|im_start|>user\nHow long?<|im_end|>\n<|im_start|>assistant\n"
ANSWERED = "<|im_start|>user\n<tool_response>\n12\n</tool_response><|im_end|>\n"

BEGINS = "<|im_start|>assistant\n"
NO_SYSTEM = f"<|im_start|>system\n{TOOLS}<|im_end|>\n"
NO_SYSTEM_GAP = f"<|im_start|>system\n\n\n{TOOLS}<|im_end|>\n"
SYSTEM = f"<|im_start|>system\nBe brief.\n\n{TOOLS}<|im_end|>\n"
SYSTEM_ALONE = "<|im_start|>system\nBe brief.<|im_end|>\n"
THOUGHT = "<think>\nI count.\n</think>\n\n"
LAST = "<think>\nSo.\n</think>\n\n"

HYBRID = {
    "trl": {
        "plain": f"⟦{NO_SYSTEM}{ASKED}{CALL}<|im_end|>\n{ANSWERED}"
        f"{BEGINS}{NONE}Twelve.<|im_end|>\n⟧",
    },
    "trl-assistant-only": {
        "plain": f"{NO_SYSTEM}{ASKED}⟦{NONE}{CALL}<|im_end|>\n⟧{ANSWERED}"
        f"{BEGINS}⟦{NONE}Twelve.<|im_end|>\n⟧",
        "thoughts": f"{SYSTEM}{ASKED}⟦{THOUGHT}{CALL}<|im_end|>\n⟧{ANSWERED}"
        f"{BEGINS}⟦{LAST}Twelve.<|im_end|>\n⟧",
    },
    "axolotl": {
        "plain": f"{NO_SYSTEM}{ASKED}⟦{CALL}<|im_end|>⟧\n{ANSWERED}"
        f"{BEGINS}{NONE}⟦Twelve.<|im_end|>⟧\n",
        "thoughts": f"{SYSTEM}{ASKED}⟦{THOUGHT}{CALL}<|im_end|>⟧\n{ANSWERED}"
        f"{BEGINS}<think>\n⟦So.\n</think>\n\nTwelve.<|im_end|>⟧\n",
    },
    "llama-factory": {
        "plain": f"{NO_SYSTEM_GAP}{ASKED}⟦{NONE}{CALL}<|im_end|>\n⟧{ANSWERED}"
        f"{BEGINS}⟦{NONE}Twelve.<|im_end|>\n⟧",
        "thoughts": f"{SYSTEM}{ASKED}⟦{THOUGHT}{CALL}<|im_end|>\n⟧{ANSWERED}"
        f"{BEGINS}⟦{LAST}Twelve.<|im_end|>\n⟧",
        "continued": "turns that do not alternate (dropped with a warning)",
    },
    "ms-swift": {
        "plain": f"{NO_SYSTEM_GAP}{ASKED}⟦{NONE}{CALL}<|im_end|>\n⟧{ANSWERED}"
        f"{BEGINS}⟦{NONE}Twelve.<|im_end|>\n⟧",
        "thoughts": f"{SYSTEM}{ASKED}⟦{THOUGHT}{CALL}<|im_end|>\n⟧{ANSWERED}"
        f"{BEGINS}⟦{LAST}Twelve.<|im_end|>\n⟧",
        "continued": f"{NO_SYSTEM_GAP}{ASKED}⟦{NONE}{CALL}<|im_end|>\n⟧<|im_start|>user\n"
        f"<tool_response>\n12\n</tool_response>How long?<|im_end|>\n"
        f"{BEGINS}⟦{NONE}Twelve.<|im_end|>\n⟧",
    },
    "openrlhf": {
        "plain": f"{ASKED}{CALL}<|im_end|>\n{ANSWERED}{BEGINS}⟦{NONE}Twelve.<|im_end|>⟧",
        "thoughts": f"{SYSTEM_ALONE}{ASKED}{THOUGHT}{CALL}<|im_end|>\n{ANSWERED}"
        f"{BEGINS}⟦{LAST}Twelve.<|im_end|>⟧",
    },
    "openrlhf-multiturn": {
        # The first turn is measured as a last one, with the four tokens of an empty block, so the
        # mask extends four tokens beyond the newline.
        "two queries": "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"
        "⟦b<|im_end|>\n<|im_start|>user\nc⟧<|im_end|>\n<|im_start|>assistant\n"
        f"⟦{NONE}d<|im_end|>⟧",
        "thoughts": f"{SYSTEM_ALONE}{ASKED}⟦{THOUGHT}{CALL}<|im_end|>\n⟧{ANSWERED}"
        f"{BEGINS}⟦{LAST}Twelve.<|im_end|>⟧",
    },
    "verl": {
        "plain": "its pieces differ from the whole rendering (AssertionError)",
        "two queries": "its pieces differ from the whole rendering (AssertionError)",
    },
}
VERBATIM_TRAINED = f"{ASKED}⟦{CALL}<|im_end|>\n⟧{ANSWERED}{BEGINS}⟦Twelve.<|im_end|>\n⟧"
VERBATIM = {
    "trl": {
        "plain": f"⟦{NO_SYSTEM}{ASKED}{CALL}<|im_end|>\n{ANSWERED}{BEGINS}Twelve.<|im_end|>\n⟧"
    },
    "trl-assistant-only": {"plain": NO_SYSTEM + VERBATIM_TRAINED},
    "axolotl": {
        "plain": f"{NO_SYSTEM}{ASKED}⟦{CALL}<|im_end|>⟧\n{ANSWERED}{BEGINS}⟦Twelve.<|im_end|>⟧\n",
        "thoughts": f"{SYSTEM}{ASKED}⟦{THOUGHT}{CALL}<|im_end|>⟧\n{ANSWERED}"
        f"{BEGINS}⟦{LAST}Twelve.<|im_end|>⟧\n",
        "empty block": f"<|im_start|>user\na<|im_end|>\n{BEGINS}⟦{NONE}b<|im_end|>⟧\n",
    },
    "llama-factory": {"plain": NO_SYSTEM_GAP + VERBATIM_TRAINED},
    "ms-swift": {"plain": NO_SYSTEM_GAP + VERBATIM_TRAINED},
    "openrlhf": {
        "plain": f"{ASKED}{CALL}<|im_end|>\n{ANSWERED}{BEGINS}⟦Twelve.<|im_end|>⟧",
    },
    "openrlhf-multiturn": {
        "plain": f"{ASKED}⟦{CALL}<|im_end|>\n⟧{ANSWERED}{BEGINS}⟦Twelve.<|im_end|>⟧",
    },
    "verl": {"plain": NO_SYSTEM + VERBATIM_TRAINED},
}


@pytest.fixture(scope="module")
def instruct():
    """Returns a target without thoughts, known by its published name."""
    target = with_template(NO_THOUGHTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            TEMPLATES, target.template_sha256, Template("Qwen3 Instruct-2507", target.style)
        )
        yield target


def marked(found):
    if isinstance(found, MaskRefusal):
        return found.reason
    text, at = "", 0
    for start, end in found.spans:
        text += found.text[at:start] + "⟦" + found.text[start:end] + "⟧"
        at = end
    return text + found.text[at:]


def rule(name, sample, target):
    return MASKS[name].rule(sample, target.render_sample(sample), target)


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, cases in HYBRID.items() for case in cases]
)
def test_trained_text_of_a_hybrid_target(verifier, name, case):
    assert marked(rule(name, SAMPLES[case], verifier.target)) == HYBRID[name][case]


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, cases in VERBATIM.items() for case in cases]
)
def test_trained_text_of_a_target_without_thoughts(instruct, name, case):
    assert marked(rule(name, SAMPLES[case], instruct)) == VERBATIM[name][case]


def test_every_trainer_has_a_case():
    assert set(HYBRID) == set(VERBATIM) == set(MASKS)


@pytest.mark.parametrize(("name", "case"), blocks("trainer"))
def test_the_page_of_differences(verifier, name, case):
    visible = marked(rule(name, SAMPLES[case.removesuffix(" after the tools")], verifier.target))
    if case.endswith(" after the tools"):
        assert blocks("trainer")[name, case] in visible
    else:
        assert is_shown(visible, blocks("trainer")[name, case])


def test_a_target_that_trl_does_not_know_is_refused():
    target = with_template(TEMPLATE + "{# other #}")
    found = rule("trl-assistant-only", PLAIN, target)
    assert found == MaskRefusal("it has no training template for this model (ValueError)")
    assert isinstance(rule("trl", PLAIN, target), Mask)


def compared(name, sample, target):
    verdict = Verifier(target).check(sample)
    comparison = Comparison(name)
    compare(sample, verdict.text, verdict.spans, target, [comparison])
    return comparison


def tokens(text):
    return len(verifier_for("qwen3").target.encode(text).ids)


def test_tokens_are_counted_by_region(verifier):
    found = compared("trl", THOUGHTS, verifier.target)
    expected = {
        "system and definitions": tokens(f"Be brief.\n\n{TOOLS}<|im_end|>"),
        "queries": tokens("How long?<|im_end|>"),
        "tool responses": tokens("<tool_response>\n12\n</tool_response><|im_end|>"),
        "turn headers": 3 * 5,
        "thoughts": tokens(THOUGHT) + tokens(LAST),
        "answers": tokens(f"{CALL}<|im_end|>") + tokens("Twelve.<|im_end|>"),
        "newlines after turns": 5,
    }
    assert found.theirs == expected
    assert found.ours == {region: expected[region] for region in ("thoughts", "answers")}
    assert (found.samples, found.same, found.other_text, found.answers_lost) == (1, 0, 0, 0)


def test_equal_masks_are_counted_as_exact(verifier):
    assert compared("axolotl", PLAIN, verifier.target).same == 1
    # The newline after <think> is the template's for axolotl and the model's for us.
    found = compared("axolotl", THOUGHTS, verifier.target)
    assert (found.same, found.answers_lost) == (0, tokens("<think>\n"))


def test_truncation_by_each_trainer(verifier):
    long = Sample((("user", "a " * 1500), ("assistant", "b")))
    lost = tokens("b<|im_end|>")
    found = compared("trl", long, verifier.target)
    assert (found.beyond, found.answers_lost, sum(found.theirs.values())) == (1, lost, 1024)
    found = compared(
        "llama-factory", Sample((("user", "a " * 3000), ("assistant", "b"))), verifier.target
    )
    assert found.beyond == 1
    assert found.theirs["answers"] == lost, "its prompt is cut, not its answer"


def test_samples_that_a_trainer_refuses(verifier, instruct):
    long = Sample((("user", "a " * 3000), ("assistant", "b")))
    found = compared("openrlhf", long, verifier.target)
    assert found.refused == {"a prompt of 2046 tokens or more": 1}
    found = compared("verl", long, instruct)
    assert found.refused == {"longer than 1024 tokens": 1}
    assert not found.theirs
    found = compared("trl-assistant-only", long, verifier.target)
    assert found.refused == {"no trained token is left after the cut": 1}


def test_cuts():
    """(tokens, trained, limit) and the expected remainder; LLaMA-Factory's by its own rule."""
    assert keep_start(10, [(4, 6)], 5) == [(0, 5)]
    assert keep_pairs(2100, [(2000, 2100)], 1000) == [(0, 900), (2000, 2100)]
    assert keep_pairs(2100, [(100, 2100)], 1000) == [(0, 100), (100, 1000)]
    assert keep_pairs(2000, [(1000, 2000)], 1000) == [(0, 500), (1000, 1500)]
    assert keep_pairs(300, [(10, 20), (30, 300)], 100) == [(0, 10), (10, 20), (20, 30), (30, 100)]
    assert keep_pairs(300, [(100, 200), (250, 300)], 150) == [(0, 75), (100, 175)]


def test_a_border_inside_a_token(instruct):
    """A text that begins with a newline: this and the header's newline are one token."""
    sample = Sample((("user", "a"), ("assistant", "\nb")))
    verdict = Verifier(instruct).check(sample)
    assert verdict.findings == ()
    assert [warning.code for warning in verdict.warnings] == ["border"]
    assert verdict.warnings[0].offset == len("<|im_start|>user\na<|im_end|>\n" + BEGINS)
    assert compared("axolotl", sample, instruct).borders == 1
    # We exclude the shared token; axolotl and TRL train it.
    assert sum(compared("verl", sample, instruct).theirs.values()) == tokens("b<|im_end|>\n")
    found = compared("axolotl", sample, instruct)
    assert sum(found.theirs.values()) == 1 + tokens("b<|im_end|>")
    assert Verifier(instruct).check(TWO_QUERIES).warnings == ()


def test_regions_cover_a_rendering(verifier):
    text = verifier.target.render_sample(THOUGHTS)
    found = list(regions(text))
    assert found[0][0] == 0
    assert [at for at, _ in found] == sorted({at for at, _ in found})
    assert {name for _, name in found} < set(REGIONS)


def test_the_command_prints_a_table_and_an_object(tmp_path, capsys):
    path = tmp_path / "data.jsonl"
    path.write_bytes(PLAIN.line + b"\n" + THOUGHTS.line + b"\n")
    assert cli.main(["verify", str(path), "--masks", "all"]) == 0
    visible = capsys.readouterr().out
    for name, trainer in MASKS.items():
        assert f"{name}: {trainer.summary}" in visible
    assert cli.main(["verify", str(path), "--masks", "axolotl", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["masks"]["axolotl"]
    assert (found["samples"], found["same"]) == (2, 1)
    assert cli.main(["verify", str(path), "--masks", "axolotle"]) == 2
    assert "did you mean 'axolotl'" in capsys.readouterr().err


def test_the_documentation_lists_every_trainer():
    page = ROOT.joinpath("docs", "parity.md").read_text(encoding="utf-8")
    for name in MASKS:
        assert f"| `{name}` |" in page
