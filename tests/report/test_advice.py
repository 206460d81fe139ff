"""The four lines on a dataset, and what is advised to better it."""

import re
from collections import Counter

import pytest
from support.pages.reports import plain

from builder.audit.counts import Counts
from builder.audit.result import Audit
from builder.dataset.meta import SampleMeta
from builder.finding import AuditFinding
from builder.ledger import Ledger
from builder.output.manifest import Manifest
from builder.qwen3.templates import TEMPLATES
from builder.report.advice import advice, judgements
from builder.report.report import first_screen


@pytest.mark.parametrize(("trained", "expected"), [(490, "490trained tokens (49 %)"), (0, "")])
def test_the_first_screen_shows_how_much_of_the_text_is_trained(trained, expected):
    counts = Counts(samples=1, tokens=1000, trained_tokens=trained, has_tokens=True)
    page = plain(first_screen(counts, Manifest(), None))
    assert expected in page
    assert ("trained tokens" in page) == bool(trained)


@pytest.mark.parametrize(
    ("mode", "code", "expected"),
    [("report", "secret", "--set audit.secrets=redact"),
     ("off", "secret", "--set audit.secrets=redact"),
     ("redact", "github_token", "--set audit.secrets=redact"),
     ("redact", "secret", "results of password generators"),
     ("reject", "secret", "results of password generators"),
     ("redact", "scanned_secret", "results of password generators")],
)  # fmt: skip
def test_redaction_is_not_suggested_for_secrets_that_it_keeps_by_design(mode, code, expected):
    found = AuditFinding("secrets", code, "values", 3, 1)
    reported = {"config": {"audit": {"secrets": mode}}}
    page = plain(first_screen(Counts(samples=4), Manifest.read(reported), Audit(4, (found,))))
    assert expected in page
    assert ("--set audit.secrets=redact" in page) != ("results of password generators" in page)


def test_secrets_come_first_but_not_those_left_by_design():
    found = (AuditFinding("secrets", "secret", "values", 1, 1),
             AuditFinding("personal_data", "mail", "addresses", 2, 2))  # fmt: skip
    for mode, expected in (
        ("report", ["Values", "Addresses"]),
        ("redact", ["Addresses", "Values"]),
    ):
        reported = {"config": {"audit": {"secrets": mode}}}
        page = first_screen(Counts(samples=4), Manifest.read(reported), Audit(4, found))
        assert re.findall(r"<li><strong>(\w+):", page) == expected


def of_template(name, **config):
    sha256 = next(key for key, known in TEMPLATES.items() if known.name == name)
    tokenizer = {"template_sha256": sha256, "template_name": name}
    return Manifest.read({"tokenizer": tokenizer, "config": {"normalize": config}})


@pytest.mark.parametrize(
    ("template", "is_offered"),
    [("Qwen3", True), ("Qwen3.5", False), ("Qwen3-Coder", False)],
)
def test_another_model_is_advised_only_if_it_writes_the_same(template, is_offered):
    surveyed = Counts(samples=1, turns=4, parity=Counter({"non-thinking": 1, "thinking": 4}))
    (found,) = advice(surveyed, of_template(template), None)
    remedies = [item.text for item in found.remedies]
    assert any("normalize.unit: turn" in text for text in remedies)
    assert any("Instruct-2507" in text for text in remedies) is is_offered


def test_what_costs_no_tokens_is_advised_before_what_costs_many():
    counts = Counter({"non-thinking": 1, "thinking": 4})
    surveyed = Counts(samples=1, turns=4, parity=counts, tokens=100, turn_tokens=2600)
    (found,) = advice(surveyed, of_template("Qwen3"), None)
    model, mode, unit = found.remedies
    assert mode.text.startswith("Use the model in thinking mode, where all match")
    assert mode.price == "the same data; trained without thoughts, it writes none"
    assert model.price.startswith("no more tokens")
    assert unit.price == "about 26.0 times the tokens"
    page = plain(first_screen(surveyed, of_template("Qwen3"), None))
    assert page.index("Instruct-2507") < page.index("thinking mode") < page.index("26.0 times")
    assert "--set verify.mode=thinking" in page
    surveyed.by_field["reasoning"] = Counter({"kept": 2})
    (found,) = advice(surveyed, of_template("Qwen3"), None)
    assert "thinking mode" in found.remedies[0].text  # the other model would lose the thoughts
    assert "1 of 4 trained turns match non-thinking inference" in page


@pytest.mark.parametrize(
    ("template", "options", "expected"),
    [("Qwen3", {}, "--preset sft-thinking"),
     ("Qwen3", {"reasoning": "keep", "unit": "conversation"}, "--preset sft-thinking"),
     ("Qwen3", {"reasoning": "keep", "unit": "query"}, None),
     ("Qwen3", {"unit": "turn"}, "`normalize.reasoning: keep`"),
     ("Qwen3.8", {}, "normalize.reasoning: keep"),
     ("Qwen3.8", {"reasoning": "keep"}, None)],
)  # fmt: skip
def test_thoughts_are_advised_only_where_the_template_would_show_them(template, options, expected):
    surveyed = Counts(samples=1, turns=4, changes=Counter({"reasoning_dropped": 3}))
    found = [item.text for one in advice(surveyed, of_template(template, **options), None)
             for item in one.remedies]  # fmt: skip
    assert bool(found) == (expected is not None)
    assert expected is None or expected in found[0]


@pytest.mark.parametrize(
    ("thinking", "remedy"), [(286, "normalize.mask: "), (40, "--preset sft"), (0, "")],
)  # fmt: skip
def test_turns_without_a_thought_beside_others_are_counted(thinking, remedy):
    counts = Counts(samples=50, turns=664, thinking=thinking)
    found = list(advice(counts, of_template("Qwen3", reasoning="keep"), None))
    assert len(found) == bool(thinking)
    if thinking:
        assert found[0].finding.startswith(f"{thinking} of 664 trained turns have a thought;")
        assert remedy in found[0].remedies[0].text


@pytest.mark.parametrize(("dropped", "is_advised"), [(1, False), (43, False), (44, True)])
def test_thoughts_are_advised_only_where_a_tenth_of_the_turns_has_them(dropped, is_advised):
    surveyed = Counts(samples=1, turns=431, changes=Counter({"reasoning_dropped": dropped}))
    assert bool(list(advice(surveyed, of_template("Qwen3"), None))) is is_advised


def test_prices_are_those_of_the_unit_that_was_built():
    """A sample for each question is more than one for each conversation, and less than turns."""
    changes = Counter({"reasoning_dropped": 3})
    counts = Counts(samples=1, turns=4, changes=changes, tokens=100, query_tokens=210)
    for unit, expected in (
        ("conversation", "about 2.1 times the tokens, and those of the thoughts"),
        ("query", "the tokens of the thoughts"),
        ("turn", "the tokens of the thoughts"),
    ):
        (found,) = advice(counts, of_template("Qwen3", unit=unit), None)
        assert found.remedies[-1].price == expected


def test_a_sample_for_each_question_is_advised_where_the_template_shows_its_turns_alike():
    parity = Counter({"non-thinking": 1, "thinking": 1})
    surveyed = Counts(samples=1, turns=4, parity=parity, tokens=100, turn_tokens=900,
                      query_tokens=210)  # fmt: skip
    (found,) = advice(surveyed, of_template("Qwen3.5", unit="conversation"), None)
    by_turn, by_query = found.remedies
    assert "normalize.unit: query" in by_query.text
    assert by_query.price == "about 2.1 times the tokens"
    assert "where up to 4 match (`normalize.unit: turn`)" in by_turn.text
    (found,) = advice(surveyed, of_template("Qwen3.5", unit="query"), None)
    assert [by_turn] == [*found.remedies]


def test_turns_that_xml_cannot_hold_are_named():
    counts = {"untrained:xml_markup": 3, "untrained:denied": 2}
    surveyed = Counts(samples=1, turns=4, changes=Counter(counts))
    (found,) = advice(surveyed, of_template("Qwen3.5"), None)
    assert found.finding.startswith("3 turns not trained")
    assert "xml_markup 3" in found.finding
    (remedy,) = found.remedies
    assert "calls are JSON" in remedy.text
    surveyed.changes["untrained:xml_types"] = 1
    (found,) = advice(surveyed, of_template("Qwen3.5"), None)
    assert "--tools" in found.remedies[0].text


@pytest.mark.parametrize(
    ("completed", "lacking", "missing", "text"),
    [
        (0, 10, {"system": 10}, "0 of 10 complete; 10 lack the prompt"),
        (0, 4, {"system": 4, "tools": 4, "m": 2},
         "0 of 10 complete; 4 lack the prompt and tools; 6 lack what these logs do not hold (m)"),
        (0, 5, {"system": 3, "tools": 2},
         "0 of 10 complete; 5 lack the prompt or tools; 5 lack what these logs do not hold"),
        (10, 0, {"system": 10}, "10 of 10 complete, 10 with what you supplied"),
    ],
)  # fmt: skip
def test_the_context_in_a_line(completed, lacking, missing, text):
    counts = Counts(samples=1, turns=10, context=Counter({"partial": 10}), lacking=lacking,
                    missing=Counter(missing), completed=completed)  # fmt: skip
    *_, found = judgements(counts, Manifest())
    assert (found.name, found.text) == ("context", text)
    assert found.is_complete is (completed == 10)
    found = list(advice(counts, Manifest(), None))
    assert [item.finding.partition(" lack ")[0] for item in found] == (
        [f"{lacking} of 10 trained turns"] if lacking else []
    )


def test_what_nothing_can_remedy_is_no_finding():
    counts = Counts(samples=2, turns=4, context=Counter({"partial": 4}), gap_samples=2,
                    gaps=Counter(media=2), missing=Counter(media=4))  # fmt: skip
    assert not list(advice(counts, Manifest(), None))
    counts.samples = 4
    (found,) = advice(counts, Manifest(), None)
    assert "select.where" in found.remedies[0].text


def meta_lacking_tools(source, **changes):
    context = {"level": "partial", "missing": ["tools"]}
    return SampleMeta.read({"context": context, "tools_source": source, "assistant_turns": 3,
                            "changes": changes})  # fmt: skip


def test_a_log_with_tools_of_its_own_is_not_advised_to_supply_some():
    """Definitions that are supplied are not used where the log lists some (`tools`)."""
    for source, changes in (("logged", {"tools_added_later": 1}), ("shared", {"tool_shared": 1}),
                            ("none", {"server_tool_dropped": 1})):  # fmt: skip
        counts = Counts()
        counts.add(meta_lacking_tools(source, **changes), "train", 9)
        assert not list(advice(counts, Manifest(), None))
        *_, found = judgements(counts, Manifest())
        end = "3 lack what these logs do not hold (the full list of tools)"
        assert found.text == f"0 of 3 complete; {end}"
    counts = Counts()
    counts.add(meta_lacking_tools("inferred"), "train", 9)
    (found,) = advice(counts, Manifest(), None)
    assert "--tools FILE" in found.remedies[0].text


def test_definitions_of_another_version_are_named():
    counts = Counts(samples=2, turns=4, context=Counter({"partial": 4}),
                    missing=Counter({"tools": 4}), supplied=Counter({"tools": 4}),
                    changes=Counter({"other_version": 2}))  # fmt: skip
    *_, found = judgements(counts, Manifest())
    assert (found.count, "2 samples with tools of another version" in found.text) == (0, True)
    (found,) = advice(counts, Manifest(), None)
    assert found.finding == "2 samples have the prompt or tools of another version."


def used(ledger):
    (found,) = [
        item for item in judgements(Counts(), Manifest(ledger=ledger)) if item.name == "used"
    ]
    return found.count, found.whole, found.text


def test_used_is_of_what_could_have_been_trained():
    ledger = Ledger(found=12, built=8, duplicates=1, calls_logged=6, calls_kept=4)
    ledger.conversations_rejected.update({"no_user": 1, "warmup": 1, "select_tokens": 1})
    ledger.calls_dropped.update({"warmup": 1, "select_tokens": 1})
    words = "8 of 9 conversations, 4 of 5 calls; left out on request: select tokens 1"
    assert used(ledger) == (9, 9, words)
    ledger.conversations_rejected["unanswered"] = 1
    assert used(ledger)[:2] == (9, 10)
    ledger.samples_left_out.update({"near_duplicate": 4, "duplicate": 1})
    assert used(ledger)[2].endswith("left out on request: near duplicates 4, select tokens 1")
    ledger.recoverable["near_duplicate"] = 3
    assert not list(advice(Counts(), Manifest(ledger=ledger), None))


def test_a_line_is_wrong_only_if_the_text_is_not_verified():
    counts = Counts(samples=1, turns=2, parity=Counter({"non-thinking": 1}))
    text, inference = judgements(counts, Manifest())
    assert (text.is_wrong, inference.is_wrong, inference.is_complete) == (True, False, False)
    text, _ = judgements(counts, of_template("Qwen3"))
    assert (text.is_wrong, text.is_complete) == (False, True)


def test_a_command_is_on_a_line_of_its_own_and_names_no_file_that_an_agent_reads():
    for agent, begin in (("codex", "codex exec"), ("opencode", "opencode run")):
        counts = Counts(samples=1, turns=1, context=Counter({"partial": 1}), lacking=1,
                        missing=Counter({"tools": 1}),
                        models={agent: Counter({"gpt-5": 1})})  # fmt: skip
        page = first_screen(counts, of_template("Qwen3"), None)
        (command,) = re.findall(r"<pre class=\"command\">([^<]*)</pre>", page)
        file = f"{agent}-definitions.json"
        assert command.startswith(f"builder capture --definitions -o {file} -- {begin}")
