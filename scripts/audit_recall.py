"""Prints recall and false positives of the secret rules on a synthetic set.

    python scripts/audit_recall.py [--seed N] [--misses] [--scanner]

Every secret is generated here from a seed and is in none of the project's files. The values follow
the forms that the issuers publish; the surroundings are those of agent logs: environment files,
JSON, escaped JSON, code, commands, headers, tables, prose. The hard negatives look like secrets but
are not: digests, identifiers, placeholders, code that mentions a password.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import string
import time
from collections import Counter
from collections.abc import Callable, Iterator

from builder.secrets.secrets import find_secrets, scanned_secrets

LOWER, UPPER, DIGIT = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = LOWER + UPPER + DIGIT
HEX = DIGIT + "abcdef"
URLSAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"

WORDS = ("abandon", "ability", "zebra", "ocean", "cradle", "velvet", "ribbon", "salmon", "tower")

SURROUNDINGS: tuple[Callable[[str], str], ...] = (
    "export SERVICE_TOKEN={}\n".format,
    '{{"env": {{"SERVICE_API_KEY": "{}"}}}}'.format,
    '{{\\"apiKey\\": \\"{}\\", \\"region\\": \\"eu\\"}}'.format,
    "client = Client(api_key='{}')".format,
    "$ curl -s -H 'Authorization: Bearer {}' https://api.example.org/v1/me".format,
    "I found this in the old config: {} - should we rotate it?".format,
    "| production | {} | 2025-03-01 |".format,
    "   12\u2192SECRET_KEY={}\n   13\u2192DEBUG=0".format,
)
"""Surroundings of tokens that have a recognisable form."""


class Maker:
    """Draws random values from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - no real secrets

    def of(self, alphabet: str, length: int) -> str:
        """Returns `length` characters of an alphabet."""
        return "".join(self.random.choices(alphabet, k=length))

    def mixed(self, alphabet: str, length: int) -> str:
        """Returns text with a lower-case letter and a digit, as issuers' generators produce it."""
        while True:
            text = self.of(alphabet, length)
            if any(map(str.isdigit, text)) and any(map(str.islower, text)):
                return text

    def password(self) -> str:
        """Returns a password as people make them up."""
        words = ("river", "Falcon", "copper", "Maple", "quartz", "Winter")
        word = self.random.choice(words)
        return f"{word}{self.random.randint(10, 9999)}{self.random.choice('!#%^*')}"


FORMS: dict[str, Callable[[Maker], str]] = {
    "aws access key": lambda m: "AK" + "IA" + m.of(UPPER + "234567", 16),
    "aws temporary key": lambda m: "AS" + "IA" + m.of(UPPER + "234567", 16),
    "github personal": lambda m: "gh" + "p_" + m.mixed(ALNUM, 36),
    "github fine-grained": lambda m: "github" + "_pat_" + m.of(ALNUM, 22) + "_" + m.of(ALNUM, 59),
    "github app": lambda m: "gh" + "s_" + m.mixed(ALNUM, 36),
    "gitlab": lambda m: "gl" + "pat-" + m.mixed(URLSAFE[:-2], 20),
    "slack bot": lambda m: "xo" + f"xb-{m.of(DIGIT, 12)}-{m.of(DIGIT, 13)}-{m.mixed(ALNUM, 24)}",
    "slack webhook": lambda m: (
        f"https://{'hooks'}.slack.com/services/T{m.of(UPPER, 8)}/B{m.of(HEX, 9)}/{m.of(ALNUM, 24)}"
    ),
    "stripe": lambda m: "sk_" + "live_" + m.mixed(ALNUM, 24),
    "stripe restricted": lambda m: "rk_" + "live_" + m.mixed(ALNUM, 99),
    "openai": lambda m: "sk-" + m.mixed(ALNUM, 48),
    "openai project": lambda m: "sk-" + "proj-" + m.mixed(URLSAFE, 120) + "A1",
    "anthropic": lambda m: "sk-" + "ant-api03-" + m.mixed(URLSAFE, 93) + "AA",
    "openrouter": lambda m: "sk-" + "or-v1-" + m.of(HEX, 64),
    "google api": lambda m: "AI" + "za" + m.mixed(ALNUM, 35),
    "google oauth": lambda m: "GOC" + "SPX-" + m.mixed(ALNUM, 28),
    "hugging face": lambda m: "hf" + "_" + m.of(LOWER + UPPER, 34),
    "npm": lambda m: "np" + "m_" + m.mixed(ALNUM, 36),
    "pypi": lambda m: "py" + "pi-AgEIcHlwaS5vcmc" + m.mixed(URLSAFE, 150) + "x",
    "sendgrid": lambda m: "S" + f"G.{m.mixed(ALNUM, 22)}.{m.mixed(ALNUM, 43)}",
    "twilio": lambda m: "S" + "K" + m.of(HEX, 32),
    "mailgun": lambda m: "ke" + "y-" + m.of(HEX, 32),
    "mailchimp": lambda m: m.of(HEX, 32) + "-us" + "12",
    "digitalocean": lambda m: "dop" + "_v1_" + m.of(HEX, 64),
    "shopify": lambda m: "shp" + "at_" + m.of(HEX, 32),
    "telegram": lambda m: m.of("123456789", 10) + ":A" + "A" + m.mixed(ALNUM, 33),
    "discord": lambda m: f"MT{m.mixed(ALNUM, 22)}.{m.of(ALNUM, 6)}.{m.mixed(ALNUM, 38)}",
    "databricks": lambda m: "da" + "pi" + m.of(HEX, 32),
    "vault": lambda m: "hv" + "s." + m.mixed(ALNUM, 90),
    "doppler": lambda m: "dp" + ".pt." + m.mixed(ALNUM, 43),
    "linear": lambda m: "lin" + "_api_" + m.mixed(ALNUM, 40),
    "notion": lambda m: "nt" + "n_" + m.mixed(ALNUM, 46),
    "airtable": lambda m: "pa" + f"t{m.mixed(ALNUM, 14)}.{m.of(HEX, 64)}",
    "postman": lambda m: "PM" + f"AK-{m.of(HEX, 24)}-{m.of(HEX, 34)}",
    "grafana": lambda m: "gl" + f"sa_{m.mixed(ALNUM, 32)}_{m.of(HEX, 8)}",
    "groq": lambda m: "gs" + "k_" + m.mixed(ALNUM, 52),
    "replicate": lambda m: "r8" + "_" + m.mixed(ALNUM, 37),
    "azure client": lambda m: m.of(ALNUM, 3) + "8Q" + "~" + m.mixed(ALNUM, 34),
    "docker": lambda m: "dck" + "r_pat_" + m.mixed(ALNUM, 27),
    "age": lambda m: "AGE-SEC" + "RET-KEY-1" + m.of(UPPER + DIGIT, 58),
    "jwt": lambda m: ".".join((_jwt_part(m, "alg"), _jwt_part(m, "sub"), m.mixed(URLSAFE, 43))),
}


def _jwt_part(maker: Maker, name: str) -> str:
    text = json.dumps({name: maker.of(ALNUM, 16), "typ": "JWT"})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _pem(maker: Maker, newline: str) -> str:
    kind = maker.random.choice(("RSA ", "", "EC ", "OPENSSH "))
    body = [maker.mixed(BASE64, 64) for _ in range(6)]
    edges = [f"-----{edge} {kind}PRIV" + "ATE KEY-----" for edge in ("BEGIN", "END")]
    return newline.join((edges[0], *body, edges[1]))


PLACES: dict[str, Callable[[Maker], tuple[str, str]]] = {
    "aws secret key": lambda m: _in(
        m, m.mixed(BASE64, 40), "aws_secret_access_key = {}", '"SecretAccessKey": "{}"'
    ),
    "aws pair without names": lambda m: _in(
        m, m.mixed(BASE64, 40), "AK" + "IA" + m.of(UPPER + "234567", 16) + ",{}"
    ),
    "bearer": lambda m: _in(
        m, m.mixed(URLSAFE, 40), "Authorization: Bearer {}", '"authorization": "bearer {}"'
    ),
    "basic": lambda m: _in(
        m, base64.b64encode(f"svc:{m.password()}".encode()).decode(), "Authorization: Basic {}"
    ),
    "netrc": lambda m: _in(
        m,
        m.password(),
        "machine api.example.org login bot password {}",
        "machine api.example.org\n  login bot\n  password {}\n",
    ),
    "postgres": lambda m: _in(m, m.password(), "DATABASE_URL=postgresql://app:{}@db:5432/shop"),
    "mongo": lambda m: _in(m, m.password(), "mongodb+srv://app:{}@cluster0.abcde.mongodb.net/x"),
    "redis": lambda m: _in(m, m.password(), "redis://:{}@cache:6379/0"),
    "ado": lambda m: _in(m, m.password(), "Server=tcp:db;User ID=sa;Password={};Encrypt=True"),
    "azure storage": lambda m: _in(
        m, m.mixed(BASE64, 86) + "==", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};"
    ),
    "password in JSON": lambda m: _in(
        m, m.password(), '{{"user": "bot", "password": "{}"}}', '{{\\"password\\": \\"{}\\"}}'
    ),
    "password in an environment file": lambda m: _in(
        m, m.password(), "DB_PASSWORD={}\n", "SMTP_PASS='{}'\n", "   4\u2192DB_PASSWORD={}\n"
    ),
    "password in YAML": lambda m: _in(m, m.password(), "db:\n  user: app\n  password: {}\n"),
    "password in XML": lambda m: _in(m, m.password(), "<password>{}</password>"),
    "curl": lambda m: _in(m, m.password(), "curl -u admin:{} https://ci.example.org/job"),
    "mysql": lambda m: _in(m, m.password(), "mysql -h db -u root -p{} shop"),
    "docker login": lambda m: _in(m, m.password(), "docker login -u bot -p {} reg.example.org"),
    "redis-cli": lambda m: _in(m, m.password(), "redis-cli -h cache -a {} ping"),
    "openssl": lambda m: _in(m, m.password(), "openssl rsa -in k.pem -passin pass:{} -out k2.pem"),
    "pair of strings": lambda m: _in(
        m,
        m.password(),
        "define('DB_PASSWORD', '{}');",
        'os.environ.setdefault("DB_PASSWORD", "{}")',
    ),
    "prose": lambda m: _in(m, m.password(), "The password is {}.", "password: {}, as agreed"),
    "wallet": lambda m: _in(
        m,
        " ".join(m.random.choice(WORDS) for _ in range(12)),
        'mnemonic = "{}"',
        '"mnemonic": "{}"',
    ),
    "pgpass": lambda m: _in(m, m.password(), "db.example.org:5432:shop:app:{}\n"),
    "option": lambda m: _in(
        m, m.mixed(ALNUM, 32), "tool deploy --token {} --yes", "tool --api-key={} run"
    ),
    "query of a URL": lambda m: _in(m, m.mixed(ALNUM, 32), "https://h/x?a=1&access_token={}&b=2"),
    "assignment": lambda m: _in(
        m, m.mixed(ALNUM, 32), 'client_secret = "{}"', "const apiKey = '{}';", "token: {}"
    ),
    "hexadecimal key": lambda m: _in(
        m, m.of(HEX, 32) + "7a", 'DATADOG_API_KEY="{}"', "api_key: {}"
    ),
    "identifier as key": lambda m: _in(m, _uuid(m), 'HEROKU_API_KEY="{}"', '"api_key": "{}"'),
    "session cookie": lambda m: _in(m, m.mixed(ALNUM, 40), "Cookie: theme=dark; sessionid={}; a=b"),
    "private key": lambda m: _in(m, _pem(m, "\n"), "{}", "cat key.pem\n{}\n$"),
    "private key on one line": lambda m: _in(m, _pem(m, "\\n"), '{{"private_key": "{}"}}'),
}


def _in(maker: Maker, secret: str, *places: str) -> tuple[str, str]:
    return secret, maker.random.choice(places).format(secret)


def _uuid(maker: Maker) -> str:
    return "-".join(maker.of(HEX, size) for size in (8, 4, 4, 4, 12))


def secrets(maker: Maker, each: int = 6) -> Iterator[tuple[str, str, str]]:
    """Yields (kind, secret, text), `each` times for every kind."""
    for kind, make in FORMS.items():
        places = maker.random.sample(SURROUNDINGS, each)
        for place in places:
            secret = make(maker)
            yield kind, secret, place(secret)
    for kind, place_of in PLACES.items():
        for _ in range(each):
            secret, text = place_of(maker)
            yield kind, secret, text


NEGATIVES: tuple[Callable[[Maker], str], ...] = (
    lambda m: f"commit {m.of(HEX, 40)}\nAuthor: x",
    lambda m: f"sha256:{m.of(HEX, 64)}  dist/app-1.2.3.tar.gz",
    lambda m: f'"integrity": "sha512-{m.mixed(BASE64, 86)}=="',
    lambda m: f'"id": "{_uuid(m)}", "parent": "{_uuid(m)}"',
    lambda m: f'"next_page_token": "{m.mixed(URLSAFE, 40)}"',
    lambda m: f"max_tokens={m.of('123456789', 4)}, total_tokens: {m.of('123456789', 6)}",
    lambda m: f'password = os.environ["SERVICE_{m.of(UPPER, 3)}_PASSWORD"]',
    lambda m: (
        f"api_key=${{API_KEY_{m.of(DIGIT, 2)}}} token: {{{{ secrets.TOKEN_{m.of(DIGIT, 2)} }}}}"
    ),
    lambda m: f'token = get_token("svc-{m.of(DIGIT, 3)}"); secret = self.secret{m.of(DIGIT, 1)}',
    lambda m: '"password": {"type": "string", "minLength": ' + m.of("123456789", 1) + "}",
    lambda m: f'"api_key": "your-api-key-here", "token": "<TOKEN_{m.of(DIGIT, 2)}>"',
    lambda m: f"data:image/png;base64,iVBORw0KGgo{m.mixed(BASE64, 300)}",
    lambda m: f"-----BEGIN PUBLIC KEY-----\n{m.mixed(BASE64, 64)}\n-----END PUBLIC KEY-----",
    lambda m: f"-----BEGIN CERTIFICATE-----\n{m.mixed(BASE64, 64)}\n-----END CERTIFICATE-----",
    lambda m: f"toolu_{m.mixed(ALNUM, 24)} call_{m.mixed(ALNUM, 24)} msg_{m.mixed(ALNUM, 24)}",
    lambda m: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{m.mixed(BASE64, 43)} me@laptop",
    lambda m: (
        f"https://example.org/blob/{m.of(HEX, 40)}/src/token_{m.of(DIGIT, 2)}.py#L{m.of('123', 2)}"
    ),
    lambda m: (
        f"The secret: keep functions small ({m.of('123456789', 2)} lines), password rules apply."
    ),
    lambda m: f'"etag": "W/\\"{m.of(HEX, 32)}\\"", "digest": "md5-{m.of(HEX, 32)}"',
    lambda m: (
        f"task-{m.mixed(LOWER + DIGIT, 24)} risk-{m.mixed(LOWER + DIGIT, 20)} desk_{m.of(HEX, 12)}"
    ),
    lambda m: f"assert response.token == expected.token  # case {m.of(DIGIT, 3)}",
    lambda m: f"PASS: test_login_{m.of(DIGIT, 2)}; grid.set('token', 'column-{m.of(DIGIT, 2)}')",
    lambda m: f"postgres://user:password@localhost:{m.of(DIGIT, 4)}/db, the token is required",
    lambda m: f"primary_key: user_id_{m.of(DIGIT, 3)}, foreign_key='orders.customer_id'",
    lambda m: f"password: {'*' * 8} token: [hidden] secret=xxxxxxxxxxxx{m.of(DIGIT, 1)}",
    lambda m: f"postgres://localhost:5432/db{m.of(DIGIT, 2)} and git@github.com:org/repo.git",
    lambda m: f"REDACTED_GITHUB_TOKEN_{m.of(DIGIT, 12)} api_key=REDACTED_SECRET_{m.of(DIGIT, 12)}",
)


def negatives(maker: Maker, each: int = 6) -> Iterator[str]:
    """Yields texts without a secret."""
    for make in NEGATIVES:
        for _ in range(each):
            yield make(maker)


def covered(secret: str, text: str, *, scanner: bool) -> bool:
    """Returns whether the secret would be removed completely."""
    start = text.index(secret)
    end = start + len(secret)
    hits = find_secrets(text)
    if any(hit.start <= start and end <= hit.end for hit in hits):
        return True
    # Everything but the host.
    inside = "slack.com" in secret and any(hit.end == end for hit in hits)
    return inside or (scanner and any(secret in found for found in scanned_secrets([text])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--misses", action="store_true", help="name the kinds that were missed")
    parser.add_argument("--scanner", action="store_true", help="with the scanner of the extra")
    options = parser.parse_args()
    maker = Maker(options.seed)
    planted = list(secrets(maker))
    clean = list(negatives(maker))
    started = time.perf_counter()
    missed = Counter(
        kind for kind, secret, text in planted if not covered(secret, text, scanner=options.scanner)
    )
    false = [text for text in clean if find_secrets(text)]
    if options.scanner:
        false += [text for text in clean if text not in false and scanned_secrets([text])]
    seconds = time.perf_counter() - started
    kinds = len({kind for kind, _, _ in planted})
    found = len(planted) - missed.total()
    print(f"{len(planted)} secrets of {kinds} kinds: recall {found / len(planted):.3f}")
    print(f"{len(clean)} hard negatives: {len(false)} false positives")
    print(f"{seconds:.2f} s")
    if options.misses:
        for kind, count in sorted(missed.items()):
            print(f"  missed {kind}: {count}")
        for text in false:
            print(f"  false: {text[:100]!r}")


if __name__ == "__main__":
    main()
