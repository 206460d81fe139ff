"""The tables of rules: each is sound, and its example is found in every kind of text."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sensitive.planted import scrubber
from support.sensitive.rule_examples import expand

from builder.sample import Call, Dialogue, Turn
from builder.secrets import hits
from builder.secrets import secrets as engine
from builder.secrets.secrets import find_secrets, secrets_in
from builder.secrets.tables import CONTEXTS, TOKENS

RULES = (*TOKENS, *CONTEXTS)
TABLES = [RULES[first : first + 40] for first in range(0, len(RULES), 40)]
each_table = pytest.mark.parametrize("rules", TABLES, ids=lambda rules: f"from-{rules[0].kind}")


def texts_of(scrubbed):
    (_, prose, called, answered) = scrubbed.dialogue.turns
    return prose.content, called.calls[0].text, answered.responses[0]


@each_table
def test_examples_are_replaced_in_prose_arguments_and_results(rules):
    left = []
    for rule in rules:
        for seed in range(3):
            text, secrets = expand(rule.example, seed)
            assert secrets, f"{rule.example!r} marks no secret"
            turns = (
                Turn("system", "s"),
                Turn("user", text),
                Turn("assistant", calls=(Call.of("run", {"command": text}),)),
                Turn("tool", responses=(json.dumps({"stdout": text}),)),
            )
            for written in texts_of(scrubber().dialogue(Dialogue(turns))):
                left += [(rule.kind, written) for secret in secrets if secret in written]
    assert left == []


@each_table
def test_records_are_sound(rules):
    for rule in rules:
        assert re.fullmatch(r"[a-z][a-z0-9_]+", rule.kind)
        literals = (*rule.start, *rule.near)
        assert all(literals)
        assert literals, rule.pattern
        assert all(map(str.isascii, literals))
        if not rule.token:
            assert literals == tuple(literal.lower() for literal in literals)
            assert "v" in rule.regex.groupindex, rule.pattern
        plain = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "", rule.pattern)
        assert not {"*", "+"}.intersection(plain), f"no bound in {rule.pattern}"


def test_no_rule_occurs_twice_and_the_table_has_the_size_it_should():
    patterns = [(rule.pattern, rule.near) for rule in RULES]
    assert len(set(patterns)) == len(patterns)
    assert 200 <= len(TOKENS) <= 250


TAILS = st.sampled_from(["", "\n\n# end", "\r\n", "\t1", '"', "\\", "\nnext: 1"])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(RULES), st.integers(0, 3), st.integers(1, 3), TAILS)
def test_redaction_keeps_json_readable(rule, seed, times, tail):
    text = expand(rule.example, seed)[0] + tail
    for _ in range(times):
        text = json.dumps({"content": text, "mode": "fast"})
    text = scrubber().text(text)
    for _ in range(times):
        text = json.loads(text)["content"]


def test_the_extra_fast_changes_no_finding(monkeypatch):
    texts = [expand(rule.example)[0] for rule in RULES] + ["password=hunter22\u00e9", "", "none"]
    fast = [find_secrets(text) for text in texts]
    monkeypatch.setattr(hits, "ahocorasick_rs", None)
    assert [secrets_in.__wrapped__([text])[0] for text in texts] == fast
    assert secrets_in.__wrapped__(texts) == fast, "texts searched together do not touch"


@pytest.mark.parametrize("piece", [
    "token=", "://a:", "cookie ", "-----BEGIN PRIV" + "ATE KEY-----", "password is ", "AAAA",
    "azure storage ", "curl -u ", '"name": "api_key", ', "mysql ",
])  # fmt: skip
def test_repeated_literals_take_linear_time(piece):
    assert len(find_secrets(piece * (60_000 // len(piece)))) <= 60_000
    assert engine._LONGEST <= 1000
