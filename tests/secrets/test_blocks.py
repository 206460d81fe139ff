"""The values of statements and manifests, and cookies, that a line shows to be secret."""

from time import process_time

import pytest
from support.sensitive.found import found
from support.sensitive.planted import invented

from builder.secrets.secrets import find_secrets

VALUE = invented(40)
ROWS = f"75\t72576\t{VALUE}\t7200\t2024-03-12 10:47:40\n76\t1\t\\N\t7200\t2024-03-13\n\\."
OTHER_ROWS = ROWS.replace(VALUE, "1ae49aa1511393e0a3107956710eda77ca49d9b3")
HEAD = "COPY public.tokens (id, owner_id, access_token, expires_in, created_at) FROM stdin;"
COOKIES = {
    "requests": 's.cookies.set("sessionid", "{}", domain="h.org")',
    "a call of PHP": 'setcookie("PHPSESSID", "{}");',
    "an item of Rails": 'cookies[:_app_session] = "{}"',
    "a dictionary": 'requests.get(u, cookies={{"JSESSIONID": "{}"}})',
    "a header": "Cookie: theme=dark; connect.sid={}; lang=en",
    "a page": 'document.cookie = "laravel_session={}; path=/"',
    "an object": 'driver.add_cookie({{"name": "sessionid", "value": "{}"}})',
}


@pytest.mark.parametrize("form", [
    f"{HEAD}\n{ROWS}",
    f"{HEAD}\n{ROWS}".replace("\n", "\r\n"),
    f"{HEAD}\n{ROWS}".replace("\n", "\\n").replace("\t", "\\t"),
])  # fmt: skip
def test_values_of_copied_rows(form):
    assert found(form) == [VALUE]


@pytest.mark.parametrize("form", [
    f"{HEAD}\n\\.\n{OTHER_ROWS}",
    f"{HEAD.replace('access_token', 'digest')}\n{OTHER_ROWS}",
    "COPY app (a, token) FROM stdin;\n1\tpending\n\\.",
    f"COPY package.json (a, token)\n{OTHER_ROWS}",
])  # fmt: skip
def test_other_rows_are_kept(form):
    assert found(form) == []


@pytest.mark.parametrize("form", COOKIES.values(), ids=COOKIES)
def test_cookies_of_sessions(form):
    assert found(form.format(VALUE)) == [VALUE]


@pytest.mark.parametrize("form", [
    's.cookies.set("sessionid", session_id)',
    's.cookies.set("theme", "{}")',
    "Cookie: _ga={}; theme=dark",
    'cookies.set("sessionid", "SessionMiddlewareDefault")',
    'cookies={{"sessionid": "example_session_identifier"}}',
])  # fmt: skip
def test_other_cookies_are_kept(form):
    assert found(form.format(VALUE)) == []


@pytest.mark.quick(1)
@pytest.mark.parametrize("columns", ["password", "password, b"])
def test_a_text_full_of_statements_takes_linear_time(columns):
    text = f"COPY t ({columns}) FROM stdin;\n" * 3000
    begun = process_time()
    assert find_secrets(text) == ()
    assert process_time() - begun < 5  # a quarter of a second; all pairs of lines took 10
