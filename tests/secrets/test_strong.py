"""Values that can hardly be anything but secrets, anywhere around a word for secrets."""

from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.conversations.strategies import MANY
from support.sensitive.found import check_lines, found
from support.sensitive.planted import invented

from builder.secrets import strong
from builder.secrets.secrets import find_secrets

TOKEN = invented(40)
VALUES = {
    "a token": TOKEN,
    "lower case": "8j2nm3rb7doj1iok9d349qlh2k",
    "two words and a number": "UrbanRaven248",
    "words with signs": "PebbleOnyx51_2694",
    "four words": "canyon-waffle-orchid-ember50",
    "letters replaced": "h4f3n-Aline6245",
    "a sign": "0r4g3@Diego1184",
    "all signs": "t2eOg+r?Pm7Sh=m!P2s*H2^i",
    "groups": "fegfo9-jywkaj-devTyg",
}
AROUND = {
    "before it": "the switch forgot its password again, rack 84 has {} now",
    "behind it": 'login: root with x as in "{}" # the token',
    "a line above": "creds:\nnadia@example.org\n{}\n\nportal: https://example.org",
    "in a dialogue": "[15:35] jo: anyone got the API token?\n[15:36] al: sure: {}\n",
    "a name of code": 'const dbPassword = pick(\n  a,\n  "{}",\n)',
    "a profile": "put this private key into the client profile: {}",
    "a list": '"--requirepass",\n"{}",\n"--appendonly"',
    "names with colons": "basic.auth.credentials=INFO\nbasic.auth.user.info=KEY:{}\n",
}


def alone(text):
    """Returns what is found without the other searches."""
    return [text[hit.start : hit.end] for hit in strong.find_strong(text, strong.LINES(text))]


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_secrets(around, value):
    text = around.format(value)
    if around.startswith("creds") and value in (TOKEN, VALUES["lower case"]):
        text = text.replace(value, f"with {value}")  # alone on a line: a part of a file or an image
    assert value in found(text)


@pytest.mark.parametrize("text", [
    "rack 84 has {} now",
    "password:\na\nb\nc\n{}",
    "the password of\nhttps://example.org/{}",
    "token request_id={}",
    "token sha256:{}",
    "a token\n{}+AAAA",
])  # fmt: skip
def test_tokens_elsewhere_are_kept(text):
    assert alone(text.format(TOKEN)) == []


@pytest.mark.parametrize("value", [
    "PydanticDeprecatedSince211", "S3SigV4Auth", "Terminal256Formatter", "XXH3_kSecret_64b_len",
    "jsonwebtoken@9.0.2", "GH#33469", "secret-sync-2kmnqhsvn8-625sr", "input#marble-password-50",
    "1ae49aa1511393e0a3107956710eda77ca49d9b3", "ef8a96e8798b",
    "v0.0.0-20250104172304-0fb2b95fc620",
    "sha512-s0hURtWMJAH4mcO7ftdUqj4qJmQpIIMaGooinxsj1l2GgOaeQ48TnT4jQG63dYLXFn3fc6+kRHbsj1807qAv3A==",
    "01JCSP1VT5YCRYEW54V9CPRVMS", "test-session-phase-1", "2*ws_h-1", "43*C1*exp(t*root0)",
    "0.18+nmu1", "Root%20CA%20Certificates;serial=1", "c29tZSB1bmtub3duIGRhdGE9.py", "PKCS1v15",
    "2026-01-15-ab310c99-f579-4a12-8b3c-1234567890ab", "MqttV3_1_1",
    "cryptography_has_psk_tlsv13", "KeySpec.ECC_SECG_P256K1",
    "N14x509_object_st4DOLLAR_14E._fields_",
    "level*10", "Ctrl+Enter1",
])  # fmt: skip
@pytest.mark.parametrize("around", [AROUND["before it"], AROUND["a name of code"]])
def test_names_and_digests_are_kept(around, value):
    assert alone(around.format(value)) == []


PARTS = (
    "token", "csrf token", "dbPassword", "SSH", "wpa2", "\n", "\n\n", " ", ": ", '"', "=", "**",
    "x", "id ", *VALUES.values(), "jsonwebtoken@9.0.2", "a" * 2100,
)  # fmt: skip


@given(parts=st.lists(st.sampled_from(PARTS), max_size=12))
@example(parts=["token", "\n", "a" * 2100, "\n", "UrbanRaven248"])
@example(parts=["UrbanRaven248", " ", "SSH"])
@MANY
def test_lines_are_enough(parts):
    check_lines(strong.find_strong, strong.LINES, "".join(parts))


@pytest.mark.quick(1)
@pytest.mark.parametrize("piece", [
    "Aa1!bC2@x csrf token " * 95 + "\n", "Aa1!bC2@x " * 190 + "csrf token\n",
    "token ", "token\n", "Aa1!", "Aa1!bC2@ ", f"{TOKEN} ", "x=", "pass:1a1=", "a-1", "token 1a1\n",
])  # fmt: skip
def test_a_hostile_text_takes_linear_time(piece):
    begin = process_time()
    find_secrets(piece * (100_000 // len(piece)))
    assert process_time() - begin < 15
