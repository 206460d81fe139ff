"""Invented secrets, texts that contain them or only look similar, and rows of logs with them."""

import json
import random
import string

from builder.qwen3.calls import ADDED_TOKENS
from builder.scrub.options import ScrubOptions
from builder.scrub.redact import Scrubber

ALNUM = string.ascii_letters + string.digits


def invented(length, alphabet=ALNUM, seed=1):
    """Returns an invented value: assembled here, so that no scanner finds it in this file."""
    return "".join(random.Random(f"{seed}/{length}").choices(alphabet, k=length))


GITHUB = "ghp" + "_" + invented(36)
AWS = "AK" + "IA" + invented(16, string.ascii_uppercase + "234567")
AWS_SECRET = invented(40, ALNUM + "+/", seed=5)
PEM_LINES = [invented(64, ALNUM + "+/", seed=n) for n in range(5)]
PEM = "\n".join(
    ["-----BEGIN RSA PRIV" + "ATE KEY-----", *PEM_LINES, "-----END RSA PRIV" + "ATE KEY-----"]
)
BEARER = invented(40)
PASSWORD = "p4ss" + invented(8) + "!"

SECRETS = {
    "a form": (f"use {GITHUB}.", GITHUB),
    "a form after an equals sign": (f"T={AWS}&x", AWS),
    "the secret next to an access key": (f"{AWS},{AWS_SECRET}", f"{AWS_SECRET}"),
    "a form after an escape": (f'{{"out": "key:\\n{GITHUB}\\nend"}}', GITHUB),
    "a form in a URL": (f"q=token%3D{GITHUB}%26a", GITHUB),
    "a form in colour": (f"\x1b[32m{GITHUB}\x1b[0m", GITHUB),
    "bearer": (f"authorization: bearer {BEARER}", BEARER),
    "basic": (f'"Authorization": "Basic {BEARER}"', BEARER),
    "escaped JSON": (rf"{{\"Authorization\": \"Token {BEARER}\"}}", BEARER),
    "netrc": (f"machine example.org\n  login me\n  password {PASSWORD}\n", PASSWORD),
    "url": (f"postgres://app:{PASSWORD}@db:5432/x", PASSWORD),
    "url without a user": (f"redis://:{PASSWORD}@cache:6379", PASSWORD),
    "ado": (f"Server=db;User Id=sa;Password={PASSWORD};Encrypt=true", PASSWORD),
    "curl": (f"curl -s -u admin:{PASSWORD} https://h/", PASSWORD),
    "mysql": (f"mysql -h db -uroot -p{PASSWORD} shop", PASSWORD),
    "option": (f"deploy --api-key {BEARER} now", BEARER),
    "env file": (f"export DB_PASSWORD={PASSWORD}\n", PASSWORD),
    "json": (f'{{"password": "{PASSWORD}"}}', PASSWORD),
    "yaml": (f"client_secret: {BEARER}\n", BEARER),
    "code": (f"api_key = '{BEARER}'", BEARER),
    "element": (f"<password>{PASSWORD}</password>", PASSWORD),
    "query of a url": (f"https://h/?a=1&access_token={BEARER}", BEARER),
    "private key": (f"x\n{PEM}\ny", PEM),
    "private key on one line": (PEM.replace("\n", "\\n"), PEM.replace("\n", "\\n")),
    "private key cut off": (PEM[:200], PEM[:200]),
}

NO_SECRETS = (
    "the API token: see the password manager",
    "max_tokens=4096, total_tokens: 12345678901234",
    'password = os.environ["DB_PASSWORD_2"]',
    "api_key=${API_KEY_1} token=$TOKEN_2 secret={{ vault.secret_3 }}",
    'token = get_token("svc1"), secret: self.secret2',
    '{"password": {"type": "string", "minLength": 8}}',
    'password: "********" token: "<your-token-1>" api_key: "your_api_key_123"',
    "sha256: " + invented(64, "0123456789abcdef"),
    "commit " + invented(40, "0123456789abcdef"),
    "integrity sha512-" + invented(86, ALNUM + "+/") + "==",
    '"next_page_token": "CAUQ' + invented(20) + '"',
    "-----BEGIN PUBLIC KEY-----\n" + PEM_LINES[0] + "\n-----END PUBLIC KEY-----",
    "grep -r 'BEGIN RSA PRIV" + "ATE KEY' .",
    "https://user@example.org:8080/path git@github.com:me/repo.git",
    "REDACTED_GITHUB_TOKEN_123456789012 api_key=REDACTED_SECRET_123456789012",
    "task-" + invented(36) + " risk-" + invented(20, string.ascii_lowercase),
    "the secret: keep it simple 100%",
    "PASS: test_login_2 (0.01s)\nPASS  tests/test_b_2.py",
    "postgres://user:password@localhost/x mysql://root:root@db",
    "send a bearer token-based-authentication header, Authorization: AWS4-HMAC-SHA256",
    f"password: ENC[AES256_GCM,data:{invented(24)},iv:/{invented(43)}=,tag:{invented(22)}==]",
    '{"name": "DB_PASSWORD", "value": "@Microsoft.KeyVault(SecretUri=https://kv/secrets/Db2/)"}',
    "DB_PASSWORD=changethis",
    "secret=shared-config-2\nsecret=kv2\n",
    "token = tokens_2[0]; auth=HTTPBasicAuth('me', pw2); const token = jwt2.sign(x)",
)


KEY = b"k" * 32


def scrubber(mode="redact", key=KEY):
    return Scrubber(ScrubOptions(mode), key, ADDED_TOKENS)


def row(text, **more):
    message = [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]
    return json.dumps({"messages": message, "tools": [], **more}) + "\n"


def every_byte(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
