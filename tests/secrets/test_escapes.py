"""Redaction in strings of JSON: the text parses as often as before. Tables and blocks in them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sensitive.planted import scrubber
from support.sensitive.rule_examples import expand

from builder.secrets.secrets import RULES, find_secrets

EXAMPLES = [template for rule in RULES for template in rule.hits]
TABLES = [
    "| Environment | User | Password |\n|---|---|---|\n| staging | admin | «{p}» |",
    " id | username | password\n----+----------+----------\n  1 | appuser | «{A16}»\n(1 row)",
    "user,password\nadmin,«{p}»",
    "user\tpassword\nadmin\t«{p}»",
]


def dumped(text, times, tail):
    text += tail
    for _ in range(times):
        text = json.dumps({"content": text, "mode": "fast"})
    return text


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(EXAMPLES),
    st.integers(0, 3),
    st.integers(1, 3),
    st.sampled_from(["", "\n\n# end", "\r\n", "\t1", '"', "\\", "\nnext: 1"]),
)
def test_redaction_keeps_json_readable(template, seed, times, tail):
    text = scrubber().text(dumped(expand(template, seed)[0], times, tail))
    for _ in range(times):
        text = json.loads(text)["content"]


def in_diff(text):
    return "@@ -1,4 +1,5 @@\n # head\n" + "\n".join(f"+{line}" for line in text.split("\n"))


def numbered(text):
    return "\n".join(f"{n:6}\t{line}" for n, line in enumerate(text.split("\n"), 4))


PLACES = [
    str, in_diff, numbered,
    *(lambda text, times=times: dumped(text, times, "\n\n# end") for times in (1, 2, 3)),
    lambda text: dumped(text, 2, ""),
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("template", TABLES)
def test_tables(template, place):
    for seed in range(3):
        text, (secret,) = expand(template, seed)
        text = place(text)
        assert [text[hit.start : hit.end] for hit in find_secrets(text)] == [secret]


MANIFEST = (
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db-credentials\n  namespace: shop\n"
    "type: Opaque\nstringData:\n  username: svc_deploy\n  host: db.example.org\n  pw: «{p}»"
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("after", ["", "\nmode: faster"])
def test_only_the_data_of_a_manifest(place, after):
    text, (secret,) = expand(MANIFEST)
    text = f"{place(text)}{after}"
    assert [text[hit.start : hit.end] for hit in find_secrets(text)] == [secret]


def test_the_context_of_a_diff_is_not_a_part_of_a_manifest():
    text, (secret,) = expand(MANIFEST)
    text = f"{in_diff(text)}\n mode: fast"
    assert [text[hit.start : hit.end] for hit in find_secrets(text)] == [secret]
