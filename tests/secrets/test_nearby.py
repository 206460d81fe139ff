"""Generated values near a word for secrets, and blocks whose values are secrets."""

import pytest
from support.sensitive.rule_examples import expand

from builder.secrets.secrets import find_secrets

FOUND = [
    "here is my API key «{A32}», can you use it?",
    "Access token\n\n«{h40}»",
    "### Token\n```\n«{A40}»\n```",
    'api_key <- "«{n36}»"',
    'var jwtKey = []byte("«{h64}»")',
    "let apiKey = @\"«{A32}»\"",
    "Incorrect API key provided: «{W43}».",
    "conf/app.yml:12:api_key: '«{h40}»'",
    "apiVersion: v1\nkind: Secret\ndata:\n  a: x\n  b: «dHJlZTQy»\nmetadata:\n  name: n\n",
    '{"kind": "Secret", "data": {"tls": "«dHJlZTQyOTEx»"}}',
    "INSERT INTO users (name, password) VALUES ('a', '«river4471»'), ('b', '«Maple!92»');",
    "    17\u2192email,password\n    18\u2192a@example.org,«river4471»\n",
    "API_KEY_PROD=«{h40}»",
]  # fmt: skip
CLEAN = [
    "token id: 5b0a1c52-7f0f-4d7a-9f4f-2d1f6f0b6c11",
    "the cache key: setup-uv-1-x86_64-unknown-linux-gnu-0.7.13-f6c65b29c82e49",
    "fix token refresh in commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "pass the sha256 digest e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "secret = load_secret_from_vault_v2(secret_name_2024)",
    "api_key: YOUR_API_KEY_HERE_1234",
    "token = os.environ['SERVICE_TOKEN_V2_2024']",
    "the bearer of primary_key_index_2024_01",
    "AAAA2FA9bQpasswd7xT4keyQ8mZr5secretV1nBtoken9Lk3",
    "kind: ConfigMap\ndata:\n  mode: fast\n",
    "INSERT INTO users (name, city) VALUES ('a', 'Paris2024');",
]


@pytest.mark.parametrize("template", FOUND)
def test_found(template):
    text, secrets = expand(template)
    hits = find_secrets(text)
    assert secrets
    for secret in secrets:
        start = text.index(secret)
        assert any(hit.start <= start and start + len(secret) <= hit.end for hit in hits), text


@pytest.mark.parametrize("text", CLEAN)
def test_clean(text):
    assert find_secrets(text) == ()
