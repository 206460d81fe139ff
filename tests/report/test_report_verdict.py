"""The first screen of the report: what it counts, and what it suggests to do."""

import re
from collections import Counter
from dataclasses import replace

import pytest
from support.pages.reports import plain

from builder.audit.result import Audit, AuditFacts, AuditFinding
from builder.ledger import Ledger
from builder.output.manifest import Manifest
from builder.qwen3.templates import TEMPLATES
from builder.report.advice import advice
from builder.report.judgement import Judgement, judgements, verdict_on
from builder.report.survey import Survey
from builder.report.verdict import first_screen


@pytest.mark.parametrize(
    ("trained", "share", "expected"),
    [(490, 0.202, "20.2 %"), (490, 0.202, ": 490"), (670_123, 0.229, ": 670,123"), (0, None, "10")],
)  # fmt: skip
def test_the_first_screen_shows_how_much_of_the_text_is_trained(trained, share, expected):
    counts = Survey(samples=1, tokens=10, trained_tokens=trained, has_tokens=True)
    page = plain(first_screen(counts, None, Manifest(), Audit(1, facts=AuditFacts(trained=share))))
    assert expected in page
    assert ("of the tokens are trained" in page) == (share is not None)


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
    page = plain(first_screen(Survey(samples=4), None, Manifest.read(reported), Audit(4, (found,))))
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
        page = first_screen(Survey(samples=4), None, Manifest.read(reported), Audit(4, found))
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
    surveyed = Survey(samples=1, turns=4, parity=Counter({"non-thinking": 1, "thinking": 4}))
    (found,) = advice(surveyed, of_template(template), None)
    remedies = [item.text for item in found.remedies]
    assert any("normalize.unit: turn" in text for text in remedies)
    assert any("Instruct-2507" in text for text in remedies) is is_offered


def test_what_costs_no_tokens_is_advised_before_what_costs_many():
    counts = Counter({"non-thinking": 1, "thinking": 4})
    surveyed = Survey(samples=1, turns=4, parity=counts, tokens=100, turn_tokens=2600)
    (found,) = advice(surveyed, of_template("Qwen3"), None)
    model, mode, unit = found.remedies
    assert "thinking mode, where all match; this changes how the model is run, not" in mode.text
    assert mode.price.startswith("no more tokens, but it answers without thinking")
    assert model.price.startswith("no more tokens")
    assert unit.price == "about 26.0 times the tokens"
    page = plain(first_screen(surveyed, None, of_template("Qwen3"), None))
    assert page.index("Instruct-2507") < page.index("thinking mode") < page.index("26.0 times")
    assert "--set verify.mode=thinking" in page
    surveyed.by_field["reasoning"] = Counter({"kept": 2})
    (found,) = advice(surveyed, of_template("Qwen3"), None)
    assert "thinking mode" in found.remedies[0].text  # the other model would lose the thoughts
    assert "25 % of the trained turns match non-thinking inference" in page


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
    surveyed = Survey(samples=1, turns=4, changes=Counter({"reasoning_dropped": 3}))
    found = [item.text for one in advice(surveyed, of_template(template, **options), None)
             for item in one.remedies]  # fmt: skip
    assert bool(found) == (expected is not None)
    assert expected is None or expected in found[0]


@pytest.mark.parametrize(
    ("thinking", "remedy"), [(286, "train.no_thought: mask"), (40, "--preset sft"), (0, "")],
)  # fmt: skip
def test_turns_without_a_thought_beside_others_are_counted(thinking, remedy):
    surveyed = Survey(samples=50, turns=664)
    audit = Audit(50, facts=AuditFacts(thinking_turns=thinking))
    found = list(advice(surveyed, of_template("Qwen3", reasoning="keep"), audit))
    assert len(found) == bool(thinking)
    if thinking:
        assert found[0].finding.startswith(f"{thinking} of 664 trained turns have a thought;")
        assert remedy in found[0].remedies[0].text


@pytest.mark.parametrize(("dropped", "is_advised"), [(1, False), (43, False), (44, True)])
def test_thoughts_are_advised_only_where_a_tenth_of_the_turns_has_them(dropped, is_advised):
    surveyed = Survey(samples=1, turns=431, changes=Counter({"reasoning_dropped": dropped}))
    assert bool(list(advice(surveyed, of_template("Qwen3"), None))) is is_advised


def test_prices_are_those_of_the_unit_that_was_built():
    """A sample for each question is more than one for each conversation, and less than turns."""
    changes = Counter({"reasoning_dropped": 3})
    surveyed = Survey(samples=1, turns=4, changes=changes, tokens=100)
    audit = Audit(1, facts=AuditFacts(query_tokens=210))
    for unit, expected in (
        ("conversation", "about 2.1 times the tokens, and those of the thoughts"),
        ("query", "the tokens of the thoughts"),
        ("turn", "the tokens of the thoughts"),
    ):
        (found,) = advice(surveyed, of_template("Qwen3", unit=unit), audit)
        assert found.remedies[-1].price == expected
    audit = Audit(1, facts=AuditFacts(query_tokens=210, windowed_tokens=130))
    (found,) = advice(surveyed, of_template("Qwen3"), audit)
    assert found.remedies[0].price == (
        "about 1.3 times the tokens, about 3 trained turns, before near duplicates are left out"
    )


def test_a_sample_for_each_question_is_advised_where_the_template_shows_its_turns_alike():
    parity = Counter({"non-thinking": 1, "thinking": 1})
    surveyed = Survey(samples=1, turns=4, parity=parity, tokens=100, turn_tokens=900)
    audit = Audit(1, facts=AuditFacts(query_tokens=210))
    (found,) = advice(surveyed, of_template("Qwen3.5", unit="conversation"), audit)
    by_query, by_turn = found.remedies
    assert "normalize.unit: query" in by_query.text
    assert by_query.price == "about 2.1 times the tokens"
    assert "normalize.unit: turn" in by_turn.text
    (found,) = advice(surveyed, of_template("Qwen3.5", unit="query"), audit)
    assert [by_turn] == [*found.remedies]


def test_turns_that_xml_cannot_hold_are_named():
    counts = {"untrained:xml_markup": 3, "untrained:denied": 2}
    surveyed = Survey(samples=1, turns=4, changes=Counter(counts))
    (found,) = advice(surveyed, of_template("Qwen3.5"), None)
    assert found.finding.startswith("3 turns not trained")
    assert "xml_markup 3" in found.finding
    (remedy,) = found.remedies
    assert "calls are JSON" in remedy.text
    surveyed.changes["untrained:xml_types"] = 1
    (found,) = advice(surveyed, of_template("Qwen3.5"), None)
    assert "--tools" in found.remedies[0].text


@pytest.mark.parametrize(
    ("completed", "lacking", "grade", "words"),
    [(0, 10, "poor", "100 % of the trained turns lack the system prompt"),
     (0, 5, "fair", "50 % of the trained turns lack the system prompt"),
     (0, 1, "good", "90 % of the trained turns have the system prompt that the model saw"),
     (10, 0, "good", "all trained turns have a complete context, 100 % with what you supplied"),
     (0, 0, "fair", "as complete as these logs allow")],
)  # fmt: skip
def test_the_verdict_on_the_context_counts_what_the_user_can_supply(
    completed, lacking, grade, words
):
    surveyed = Survey(samples=1, turns=10, context=Counter({"partial": 10}), lacking=lacking,
                      missing=Counter({"system": 10}), completed=completed)  # fmt: skip
    *_, found = judgements(surveyed, Manifest())
    assert found.grade == grade
    assert words in found.text


def test_what_can_be_supplied_does_not_hide_what_cannot():
    """One turn more, without a system prompt, does not make a dataset with gaps ready."""
    surveyed = Survey(samples=19, turns=19, context=Counter({"partial": 19}),
                      missing=Counter({"history": 19}))  # fmt: skip
    (_, found) = judgements(surveyed, Manifest())
    assert (found.grade, found.text) == (
        "fair", "context as complete as these logs allow (not logged: history 100 % of the turns)",
    )  # fmt: skip
    surveyed = replace(surveyed, samples=20, turns=20, context=Counter({"partial": 20}),
                       missing=Counter({"history": 19, "system": 1}), lacking=1)  # fmt: skip
    (_, supplied, found) = judgements(surveyed, Manifest())
    assert supplied.grade == "good"
    assert (found.grade, found.text) == ("fair", "not logged: history 95 % of the turns")


def test_definitions_of_another_version_are_no_complete_context():
    surveyed = Survey(samples=2, turns=4, context=Counter({"partial": 4}), completed=0,
                      missing=Counter({"tools": 4}), supplied=Counter({"tools": 4}),
                      changes=Counter({"other_version": 2}))  # fmt: skip
    (_, found) = judgements(surveyed, Manifest())
    assert (found.grade, "2 samples with definitions of another version" in found.text) == (
        "fair", True,
    )  # fmt: skip


def test_the_verdict_looks_at_what_could_have_been_trained():
    ledger = Ledger(found=12, built=8, duplicates=1)
    ledger.conversations_rejected.update({"no_user": 1, "warmup": 1, "select_tokens": 1})
    (used,) = [
        item for item in judgements(Survey(), Manifest(ledger=ledger)) if "lost" in item.text
    ]
    assert used.text.startswith("none of 10 conversations with something to train lost to faults;")
    assert used.text.endswith("; left out on request: select tokens 1")
    assert used.grade == "good"
    ledger.conversations_rejected["unanswered"] = 1
    *_, used = judgements(Survey(), Manifest(ledger=ledger))
    assert (used.share, used.grade) == (1 - 1 / 11, "fair")
    page = plain(first_screen(Survey(samples=8), None, of_template("Qwen3"), None))
    assert "Ready to train: 1 of 1 point is good." in page
    manifest = replace(of_template("Qwen3"), ledger=ledger)
    page = plain(first_screen(Survey(samples=8), None, manifest, None))
    assert "Usable, with gaps: 1 of 2 points is fair." in page
    assert page.index("1 of 11 conversations with something to train lost") < page.index(
        "verified byte for byte"
    )


def test_what_was_left_out_on_request_is_in_the_verdict_and_no_gap():
    ledger = Ledger(found=10, built=5)
    ledger.conversations_rejected.update({"near_duplicate": 3, "no_user": 2})
    ledger.samples_left_out.update({"near_duplicate": 4, "duplicate": 1})
    ledger.recoverable["near_duplicate"] = 3
    *_, used = judgements(Survey(), Manifest(ledger=ledger))
    assert used.grade == "good"
    words = "none of 8 conversations with something to train lost to faults"
    assert used.text == f"{words}; left out on request: near duplicates 4"
    assert not list(advice(Survey(), Manifest(ledger=ledger), None))


@pytest.mark.parametrize("left_out", [0, 60, 97])
def test_a_selection_or_review_changes_no_grade(left_out):
    ledger = Ledger(found=107, built=97 - left_out)
    ledger.conversations_rejected.update({"unanswered": 5, "no_user": 5, "review": left_out})
    *_, judged = judgements(Survey(), Manifest(ledger=ledger))
    assert (judged.share, judged.grade) == (1 - 5 / 102, "good")
    assert judged.text.startswith("5 of 102 conversations with something to train lost to faults")
    assert judged.text.endswith(f"left out on request: review {left_out}") is bool(left_out)


@pytest.mark.parametrize(("recoverable", "grade"), [(0, "fair"), (6, "poor")])
def test_losses_that_no_option_would_keep_leave_a_gap_and_no_more(recoverable, grade):
    ledger = Ledger(found=10, built=4)
    ledger.conversations_rejected["unanswered"] = 6
    ledger.recoverable["unanswered"] = recoverable
    *_, used = judgements(Survey(), Manifest(ledger=ledger))
    assert used.grade == grade


def test_the_reasons_of_a_verdict_are_those_of_its_grade():
    poor, fair, good = (
        Judgement(name, share) for name, share in (("a", 0.1), ("b", 0.6), ("c", 1))
    )
    assert verdict_on([good, fair, poor]) == ("not ready yet", ["a"])
    assert verdict_on([good, fair]) == ("usable, with gaps", ["b"])
    assert verdict_on([good]) == ("ready to train", [])


def test_each_command_of_an_advice_is_on_a_line_of_its_own():
    surveyed = Survey(samples=1, turns=1, context=Counter({"partial": 1}), lacking=1,
                      missing=Counter({"tools": 1}),
                      models={"codex": Counter({"gpt-5": 1})})  # fmt: skip
    page = first_screen(surveyed, None, of_template("Qwen3"), None)
    (command,) = re.findall(r"<pre class=\"command\">([^<]*)</pre>", page)
    assert command.startswith("builder capture --definitions -o codex.json -- codex exec")
    assert command.endswith("-m gpt-5 hi")
