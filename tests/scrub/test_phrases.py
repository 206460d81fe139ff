"""Passphrases of words with spaces between them, and tables whose columns are aligned."""

from time import process_time

import pytest

from builder.scrub.secrets import find_secrets

PHRASE = "motor gravel arena kiwi"


def found(text):
    return [text[hit.start : hit.end] for hit in find_secrets(text)]


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


TABLES = {
    "sqlite": "host            port  login    secret\n--------------  ----  -------  ------\n{}",
    "pandas": "               host     user            pass  port\n{}",
}
ROWS = {
    "sqlite": "smtp.example.org  587   tbrandt  {}\n\nsecret  is  below\n",
    "pandas": "0  pg07.example.org  sgarcia  {}    22\n1  NaN  root  NaN  22",
}


@pytest.mark.parametrize("value", ["rW1OgUlTYglkYZlRTLCZvm", "Kasimir*Rocket75"])
@pytest.mark.parametrize("table", TABLES)
def test_aligned_columns(table, value):
    assert found(TABLES[table].format(ROWS[table].format(value))) == [value]


@pytest.mark.parametrize("text", [
    "NAME        TYPE     SECRET\nweb         opaque   web-tls\n",
    "field   type     password\nid      bigint   not null\n",
    "KEY      VALUE    AGE\ncolour   3a5f9c1b2d4e   5d\n",
    "the user   the password   the port\n\nrW1OgUlTYglkYZlRTLCZvm  a  b\n",
])  # fmt: skip
def test_other_tables_are_kept(text):
    assert found(text) == []


@pytest.mark.parametrize("piece", [
    "passphrase is abcd ", "password: abcd abcd abcd abcd ", "a  secret  \n",
    "a  b  password\n1  2  3\n",
])  # fmt: skip
def test_a_hostile_text_takes_linear_time(piece):
    begin = process_time()
    find_secrets(piece * (100_000 // len(piece)))
    assert process_time() - begin < 15
