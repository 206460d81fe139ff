r"""Tests the search in JSON that escapes what is not ASCII (`contrase\u00f1a`)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.secrets.hits import Hit
from builder.secrets.secrets import find_secrets
from builder.secrets.unescaped import unescaped

PROSE = (
    ("La contraseña de la base de datos es ", "xLpOwJZ7mNxMC"),
    ("Пароль от базы: ", "V44NAdaM3pfIpjE9"),
    ("数据库密码是 ", "qFSeNZfaVN2SgK"),
    ("😀 a senha do banco é ", "Glacier5855_Qs"),
)


def nested(text, depth):
    for _ in range(depth):
        text = json.dumps({"text": text})
    return text


@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize(("before", "secret"), PROSE)
def test_a_secret_is_found_in_escaped_prose(before, secret, depth):
    text = nested(f"{before}{secret}\nok", depth)
    assert [text[hit.start : hit.end] for hit in find_secrets(text)] == [secret]


@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize(
    "text", ["Le mot de passe est « {} ».", "パスワードは「{}」です", "the pw is „{}“ again"]
)
def test_a_secret_is_found_in_escaped_quotation_marks(text, depth):
    secret = "webete-jupyd0-Dunozy"
    shown = nested(text.format(secret), depth)
    assert [shown[hit.start : hit.end] for hit in find_secrets(shown)] == [secret]


@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize(
    "text", ["la contraseña es obligatoria", "Пароль: обязательное поле", "a senha é longa2"]
)
def test_sentences_about_passwords_stay(text, depth):
    assert not find_secrets(nested(text, depth))


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 3))
def test_escapes_are_read_as_json_reads_them(text, depth):
    written = nested(text, depth)
    read = unescaped(written)
    if read is None:
        assert not any(char > "\xa0" and char.isalpha() for char in text)
        return
    plain = text
    for _ in range(depth):  # only ASCII is escaped then
        plain = json.dumps({"text": plain}, ensure_ascii=False)
    expected = "".join(char for char in plain if char >= "\xa0")
    assert "".join(char for char in read.text if char >= "\xa0") == expected


def test_a_secret_after_an_escape_is_replaced_with_it():
    text = r"Authorization: Bearer \u00e99f8e7d6c5b4a39281706f5e4d3c2b1a0@host"
    (hit,) = find_secrets(text)
    assert text[hit.start : hit.end] == r"\u00e99f8e7d6c5b4a39281706f5e4d3c2b1a0"


@given(st.lists(st.sampled_from(["a", "\\u00f1", "\\\\u044f", "\\ud83d\\ude00", "\\n"])))
def test_positions_are_mapped_back(parts):
    text = "".join(parts)
    read = unescaped(text)
    if read is None:
        return
    ends, at = [], 0
    for part in parts:
        ends += [at + len(part)] if part != "\\n" else [at + 1, at + 2]
        at += len(part)
    hits = [Hit(place, place + 1, "secret") for place in range(len(read.text))]
    assert [hit.end for hit in read.original(hits)] == ends
    whole = read.whole(Hit(place, place + 1, "secret") for place in range(len(text)))
    borders = {0, *ends}
    assert all({hit.start, hit.end} <= borders for hit in whole)


@given(st.text(st.sampled_from('aä\\"n{}')))
def test_a_text_without_escapes_is_not_read_again(text):
    assert unescaped(text) is None
