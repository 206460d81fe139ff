"""Passphrases of words with spaces between them."""

from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.conversations.strategies import MANY
from support.sensitive.found import check_lines, found

from builder.secrets import phrases
from builder.secrets.secrets import find_secrets

PHRASE = "motor gravel arena kiwi"


@pytest.mark.parametrize("text", [
    "my 1password account password is {} (yes, with spaces)",
    "I unlocked the volume with the passphrase {} and mounted it at /mnt.",
    "Restic repo: sftp:me@web1.example.org:/backup\npassphrase: {}\nlist the snapshots",
    "Die Passphrase vom Container ist {}, alles klein geschrieben.",
    "Festplatte (LUKS), Kennwort: {}\nBei Neustart eingeben.",
    "Bitwarden master password: {}\nBackup disk: drawer 2",
    "Enter pass phrase: {}",
])  # fmt: skip
def test_passphrases(text):
    assert found(text.format(PHRASE)) == [PHRASE]


@pytest.mark.parametrize("text", [
    "the password is stored encrypted inside vault",
    "Password: must contain eight letters or more",
    "password is case sensitive here, please note",
    "the passphrase protects your private signing key",
    "Enter passphrase (empty for no passphrase):",
    "password: enter your old account secret first",
    "the password reset form shows error text below",
    "Passphrase is required when signing with hardware keys.",
])  # fmt: skip
def test_sentences_about_passwords_are_kept(text):
    assert found(text) == []


PARTS = (
    "passphrase", "Password", "pass phrase", " is ", ": ", " = ", "\t", " ", "\"", "**", "\n", ".",
    PHRASE, "motor", "and", "(", "contraseña",
)  # fmt: skip


@given(parts=st.lists(st.sampled_from(PARTS), max_size=12))
@example(parts=["Password", "\t", " is ", "**", PHRASE, "**"])
@MANY
def test_lines_are_enough(parts):
    check_lines(phrases.find_phrases, phrases.LINES, "".join(parts))


@pytest.mark.slow
@pytest.mark.parametrize("piece", [
    "passphrase is abcd ", "password: abcd abcd abcd abcd ",
])  # fmt: skip
def test_a_hostile_text_takes_linear_time(piece):
    begin = process_time()
    find_secrets(piece * (100_000 // len(piece)))
    assert process_time() - begin < 15
