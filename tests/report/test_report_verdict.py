"""The first screen of the report: what it counts, and what it suggests to do."""

import re
from collections import Counter

import pytest
from support.pages.reports import plain

from builder.audit.result import Audit, AuditFacts, AuditFinding
from builder.output.manifest import Manifest
from builder.qwen3.templates import TEMPLATES
from builder.report.advice import advice
from builder.report.survey import Survey
from builder.report.verdict import verdict


@pytest.mark.parametrize(
    ("tokens", "share", "expected"),
    [(2_404, 0.202, "20.2 %"), (2_404, 0.202, "about 490 tokens"), (3, 0.5, "about 2 tokens"),
     (2_926_282, 0.229, "about 670,000 tokens"), (10, None, "10")],
)  # fmt: skip
def test_the_first_screen_shows_how_much_of_the_text_is_trained(tokens, share, expected):
    counts = Survey(samples=1, tokens=tokens, has_tokens=True)
    page = plain(verdict(counts, None, Manifest(), Audit(1, facts=AuditFacts(trained=share))))
    assert expected in page
    assert ("of the text is trained" in page) == (share is not None)


@pytest.mark.parametrize(
    ("mode", "code", "expected"),
    [("report", "secret", "audit.secrets: redact"), ("off", "secret", "audit.secrets: redact"),
     ("redact", "github_token", "audit.secrets: redact"),
     ("redact", "secret", "results of password generators"),
     ("reject", "secret", "results of password generators"),
     ("redact", "scanned_secret", "results of password generators")],
)  # fmt: skip
def test_redaction_is_not_suggested_for_secrets_that_it_keeps_by_design(mode, code, expected):
    found = AuditFinding("secrets", code, "values", 3, 1)
    reported = {"config": {"audit": {"secrets": mode}}}
    page = plain(verdict(Survey(samples=4), None, Manifest.read(reported), Audit(4, (found,))))
    assert expected in page
    assert ("audit.secrets: redact" in page) != ("results of password generators" in page)


def test_secrets_come_first_but_not_those_left_by_design():
    found = (AuditFinding("secrets", "secret", "values", 1, 1),
             AuditFinding("personal_data", "mail", "addresses", 2, 2))  # fmt: skip
    for mode, expected in (("report", ["secret", "mail"]), ("redact", ["mail", "secret"])):
        reported = {"config": {"audit": {"secrets": mode}}}
        page = verdict(Survey(samples=4), None, Manifest.read(reported), Audit(4, found))
        assert re.findall(r"<li>(\w+),", page) == expected


@pytest.mark.parametrize(
    ("template", "is_offered"),
    [("Qwen3 revised", True), ("Qwen3.5", False), ("Qwen3-Coder", False)],
)
def test_another_model_is_advised_only_if_it_writes_the_same(template, is_offered):
    sha256 = next(key for key, known in TEMPLATES.items() if known.name == template)
    manifest = Manifest.read({"tokenizer": {"template_sha256": sha256, "template_name": template}})
    surveyed = Survey(samples=1, turns=4, parity=Counter({"non-thinking": 1, "thinking": 4}))
    remedies = [item.remedy for item in advice(surveyed, manifest, None)]
    assert any("normalize.unit: turn" in text for text in remedies)
    assert any("Instruct-2507" in text for text in remedies) is is_offered
