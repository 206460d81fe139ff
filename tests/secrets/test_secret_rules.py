"""Tables of secret rules: examples of each record, its prefilter, and rules implemented in code."""

import re
from collections import Counter

import pytest
import regex
from support.sensitive.rule_examples import expand

from builder.secrets.secret_rule import context_rule
from builder.secrets.secrets import RULES, find_secrets
from builder.secrets.values import is_wordlike, looks_random

TABLES = [RULES[first : first + 40] for first in range(0, len(RULES), 40)]
each_table = pytest.mark.parametrize("rules", TABLES, ids=lambda rules: f"from-{rules[0].kind}")


def check_each(check, rules):
    """Runs a check on each rule; a failure names the rules and what is wrong with them."""
    wrong = {}
    for number, rule in enumerate(rules):
        try:
            check(rule)
        except AssertionError as error:
            wrong[f"{rule.kind} ({number}): {rule.pattern}"] = str(error)
    assert wrong == {}


def check_examples(rule):
    assert rule.hits, "each rule has an example"
    for template in rule.hits:
        for seed in range(3):
            text, secrets = expand(template, seed)
            assert secrets, f"{template!r} marks no secret"
            found = rule.find(text, rule.places(text))
            assert set(secrets) <= {text[hit.start : hit.end] for hit in found}
            hits = find_secrets(text)
            for secret in secrets:
                start = text.index(secret)
                assert any(h.start <= start and start + len(secret) <= h.end for h in hits)
    for template in rule.misses:
        text, _ = expand(template)
        assert find_secrets(text) == (), text


@each_table
def test_examples(rules):
    check_each(check_examples, rules)


def check_record(rule):
    assert re.fullmatch(r"[a-z][a-z0-9_]+", rule.kind)
    assert rule.prefilter
    assert all(rule.prefilter)
    if not rule.token:
        assert all(literal == literal.lower() for literal in rule.prefilter)
        assert "(?P<v>" in rule.pattern
    assert "*" not in re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "", rule.pattern), "no bound"
    assert "+" not in re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "", rule.pattern), "no bound"
    if rule.near or rule.generated:
        assert rule.near == tuple(word.lower() for word in rule.near)


@each_table
def test_records_are_sound(rules):
    check_each(check_record, rules)


def test_no_rule_occurs_twice():
    counts = Counter((rule.pattern, rule.near) for rule in RULES)
    assert counts.most_common(1)[0][1] == 1


IDENTIFIERS = (
    "func (s *Strategy) run() { return s.decideShadowBranchAction(ctx) } // vault",
    "checkpoints, err := s.getCheckpointsForSession(id)",
    "password = hashedPasswordField2\npasswd = strdup(arg)\npw = pwBuffer",
    "interface User { password: string; token: AccessTokenProvider }",
    "class Login(BaseModel):\n    username: str\n    password: SecretStr\n    token: TokenInfo",
    "const token = await getAccessTokenFromSession(request)",
    "api_key=settings.OPENAI_API_KEY_PRIMARY, secret: process.env.SERVICE_SECRET2",
    "if result in ('pass', 'fail', 'skip'):\n    auth = authenticate_user_session_v2",
    '{"name": "generate_random_password", "arguments": {"length": 12}}',
    "self.update_token = self._continuation_token_provider",
    "Authorization: 'OAuth realm=movies' bearer authenticationMiddlewareFactory",
    "const sessionTokenRefreshIntervalSeconds = sessionTokenRefreshSeconds",
    "from .auth import bearerTokenAuthenticationBackend as bearer",
    "arn:aws:secretsmanager:us-west-2:123456789012:secret:MyTestSecret-1a2b3c",
    "$PROXY_PASSWORD = $CPAN::Config->{proxy_pass}; $pw_passwd = $pwob->passwd",
    '"LockToken": "0bc01e21-03c9-4b98-9433-6229cbf1ef1c"',
    "kbd-task-sk-circle-fade-dot-animation-delay-property .sk-folding-cube-before-animation",
    "docker run -p 8080:80 nginx; mysql -h db -P 3306 -u root -p; unzip -p a.zip b; ssh -p 2222 h",
    "openssl enc -pass file:key.txt -k $KEY; curl -u $USER:$PASS https://h",
    'printf "$DB_PASSWORD" | sha256sum | cut -c1',
    "echo done | sudo tee /etc/motd; net user; net use; sudo -S -v",
)


@pytest.mark.parametrize("text", IDENTIFIERS)
def test_code_keeps_its_identifiers(text):
    assert [text[hit.start : hit.end] for hit in find_secrets(text)] == []


BEHIND_NAMES = (
    "DB_PASSWORD={}", "export SMTP_PASS={}", "password: {}\n", '{{"password": "{}"}}',
    'connect(host="h", password="{}")', "tool --password {} run", "--password={}",
    "spring.datasource.password={}\n", "<password>{}</password>", "PGPASSWORD={} psql",
    "ENV DB_PASSWORD={}", "- MYSQL_ROOT_PASSWORD={}\n", "https://me:{}@h/x", "requirepass {}",
)  # fmt: skip
LETTERS_ONLY = (
    "API_KEY={}", "export API_KEY={}", "Authorization: Bearer {}", "api_key: {}\n",
    '"apiKey": "{}"', 'client(api_key="{}")', "token={}", "--api-key {}", "https://h/?api_key={}&a",
    "X-Api-Key: {}", "DISCORD_TOKEN={}", "AZURE_PAT={}",
)  # fmt: skip


@pytest.mark.parametrize(
    ("place", "value"),
    [
        *((place, "«{L12}»") for place in BEHIND_NAMES),
        *((place, "«{l16}»") for place in BEHIND_NAMES),
        *((place, "«sunflower»") for place in BEHIND_NAMES),
        *((place, "«{L32}»") for place in LETTERS_ONLY),
        ("DISCORD_TOKEN={}", "«MTA{A23}.{A6}.{A38}»"),
        ("export TOKEN={}", "«{A20}.{A12}.{A30}»"),
        ("AWS_SECRET_ACCESS_KEY\t{}", "«{B40}»"),
        ("DB_PASSWORD\t{}", "«{p}»"),
        ("HASURA_GRAPHQL_ADMIN_SECRET={}", "«{A32}»"),
        ("| `GITEA_TOKEN` | {} |", "«{A40}»"),
        (r"API_KEY\t{}\tprod", "«{A40}»"),
        (r"{{\\\"token\\\":\\\"{}\\\"}}", "«{A32}»"),
    ],
)
def test_values_of_letters_behind_names(place, value):
    for seed in range(3):
        text, (secret,) = expand(place.format(value), seed)
        start = text.index(secret)
        hits = find_secrets(text)
        assert any(h.start <= start and start + len(secret) <= h.end for h in hits), text


def test_words_and_random_letters():
    words = (
        "decideShadowBranchAction getCheckpointsForSession authentication_backend CondensedLines"
    )
    assert all(map(is_wordlike, words.split()))
    drawn = [expand("«{L24}»", seed)[1][0] for seed in range(300)]
    assert sum(map(is_wordlike, drawn)) <= 1
    assert sum(map(looks_random, drawn)) >= 299


@pytest.mark.parametrize("prefilter", ["", "|login ", "login |", "login ||sudo"])
def test_an_empty_literal_is_refused(prefilter):
    with pytest.raises(ValueError, match="an empty literal in"):
        context_rule("login (?P<v>x)", prefilter)


_BEFORE = (
    "", " ", ".", "?", ";", "x", "x ", "[x ", "'", "-pass ", "with ", "shared", "client-", "ssh ",
    ": ",
)  # fmt: skip
"""Texts that lookbehinds at the start of a pattern ask for."""


def check_literals(rule):
    pattern = regex.compile(rule.pattern, 0 if rule.token else regex.IGNORECASE)
    for literal in rule.prefilter:
        spelled = (literal, f"{literal}x", *(() if rule.token else (literal.upper(),)))
        assert any(
            pattern.match(before + text, len(before), partial=True)
            for text in spelled
            for before in _BEFORE
        ), literal


@each_table
def test_every_literal_begins_a_match(rules):
    """A literal that cannot is a mistake, such as one with `|`, at which the list is split."""
    check_each(check_literals, [rule for rule in rules if rule.lead == (0, 0)])
