"""Tables whose columns are aligned with spaces."""

from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.conversations.strategies import MANY
from support.sensitive.found import check_lines, found
from support.sensitive.planted import invented

from builder.secrets import tables
from builder.secrets.secrets import find_secrets

TOKEN = invented(40)
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


@pytest.mark.parametrize(
    "header", ["secret  login    host", "  pass  user  host", "a  b  db_password"]
)
def test_a_column_at_an_edge(header):
    row = ["x", "y", "z"]
    at = next(n for n, name in enumerate(header.split()) if "pass" in name or "secret" in name)
    row[at] = "Kasimir*Rocket75"
    assert found(f"{header}\n{'   '.join(row)}\n") == ["Kasimir*Rocket75"]


PARTS = (
    "password", "db_password", "secret", "user", "host", "  ", "    ", " ", "\n", "\r\n",
    "---  ---  ---", "d\u00fc_password", TOKEN,
    "Kasimir*Rocket75", "a", "0", "a  b  c", "api key",
)  # fmt: skip


@given(parts=st.lists(st.sampled_from(PARTS), max_size=16))
@example(
    parts=["password", "  ", "user", "  ", "host", "\n", "Kasimir*Rocket75", "  ", "a", "  ", "a"]
)
@example(
    parts=["user", "  ", "host", "  ", "api key", "\n", "a", "  ", "a", "  ", "Kasimir*Rocket75"]
)
@example(parts=["user", "  ", "host", "  ", "d\u00fc_password", "\n", "a", "  ", "a", "  ", TOKEN])
@MANY
def test_lines_are_enough(parts):
    check_lines(tables.find_in_tables, tables.LINES, "".join(parts))


@pytest.mark.quick(1)
@pytest.mark.parametrize("piece", ["a  secret  \n", "a  b  password\n1  2  3\n"])
def test_a_hostile_text_takes_linear_time(piece):
    begin = process_time()
    find_secrets(piece * (100_000 // len(piece)))
    assert process_time() - begin < 15
