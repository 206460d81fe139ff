"""Passphrases of drawn words after names and in sentences, and names in programs."""

import pytest

from builder.secrets.passphrases import is_camel_phrase, is_diceware, is_run_together
from builder.secrets.secrets import find_secrets

WORDS = "marble-thunder-badger-walnut"


@pytest.mark.parametrize(
    "value",
    [WORDS, WORDS.replace("-", "."), WORDS.replace("-", "_"), f"{WORDS}-canyon-pepper"],
)
def test_drawn_words(value):
    assert is_diceware(value)
    for text in (
        f'const JWT_SECRET: &\'static str = "{value}";',
        f"pass: '{value}',",
        f"SESSION_SECRET={value}\n",
        f'{{"text": "sudo asks for a password, it\'s {value}\\nthen go on"}}',
    ):
        assert [text[hit.start : hit.end] for hit in find_secrets(text)] == [value], text


@pytest.mark.parametrize(
    "value",
    [
        "forms.fields.labels.password",
        "kubernetes-dashboard-certs-volume",
        "my-app-session-store",
        "marble-thunder-badger",
        "marble-thunder_badger-walnut",
        "marble-marble-marble-marble",
        "change-this-before-release",
    ],
)
def test_names_in_programs(value):
    assert not is_diceware(value)
    assert find_secrets(f"secret: '{value}',") == ()


@pytest.mark.parametrize(
    "value", ["CobaltGardenPirate", "cobaltGardenPirate", "SunflowerBroncoPuzzle"]
)
def test_words_in_camel_case(value):
    assert is_camel_phrase(value)
    for text in (f"Login: jo\nPassword: {value}\n", f"my sudo password is {value} use it"):
        assert [text[hit.start : hit.end] for hit in find_secrets(text)] == [value], text


@pytest.mark.parametrize("value", ["Mustangrocketbreeze", "autumnwizardSaffron"])
def test_words_run_together(value):
    assert is_run_together(value)
    text = f'const adminPassword = "{value}";'
    assert [text[hit.start : hit.end] for hit in find_secrets(text)] == [value]


@pytest.mark.parametrize(
    "value",
    [
        "PasswordInputHelper",
        "hashedWalnutBadger",
        "CobaltGarden",
        "Wachtwoordvergeten",
        "Passwortbestaetigung",
        "confirmationInput",
        "Benutzernamenseite",
    ],
)
def test_names_and_labels(value):
    assert not is_camel_phrase(value)
    assert not is_run_together(value)
    assert find_secrets(f'passwordLabel: "{value}"') == ()


def test_constants_that_end_in_key():
    assert find_secrets('WRITERS_KEY = "dagster_pipes_composite_writers"\n') == ()
