"""Values that a name marks as secret, and code, lists and tables in which it marks none."""

import json
from pathlib import Path

import pytest
from support.sensitive.planted import BEARER, GITHUB, PEM, PEM_LINES
from support.sensitive.rule_examples import expand

from builder.secrets.grade import is_password, is_random, is_stand_in, is_wordlike
from builder.secrets.secrets import find_secrets

BLOCKS = Path(__file__).with_name("identifiers.txt").read_text(encoding="utf-8").split("\n---\n")


def found(text):
    return [text[hit.start : hit.end] for hit in find_secrets(text)]


@pytest.mark.parametrize("text", BLOCKS)
def test_no_identifier_is_a_secret(text):
    assert found(text) == []


PLACES = (
    "DB_PASSWORD={}", "export SMTP_PASS={}", "password: {}\n", '{{"password": "{}"}}',
    'connect(host="h", password="{}")', "tool --password {} run", "--password={}",
    "spring.datasource.password={}\n", "<password>{}</password>", "PGPASSWORD={} psql",
    "ENV DB_PASSWORD={}", "- MYSQL_ROOT_PASSWORD={}\n", "https://me:{}@h/x", "requirepass {}",
    '{{"name": "DB_PASSWORD", "value": "{}"}}', "- name: DB_PASSWORD\n  value: {}\n",
    'variable "db_password" {{\n  default = "{}"\n}}', "| DB_PASSWORD | {} |",
    r"{{\"password\": \"{}\"}}", r"{{\\\"password\\\":\\\"{}\\\"}}", "12\u2192DB_PASSWORD={}\n",
    "define('DB_PASSWORD', '{}');", "the password is {}.", "the password is '{}'",
    "$env:DB_PASSWORD = '{}'", "DB_PASSWORD\t{}\tprod", "os.getenv('DB_PASSWORD', '{}')",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_passwords_after_names(place):
    for seed in range(3):
        text, (secret,) = expand(place.format("«{p}»"), seed)
        assert any(secret in hit for hit in found(text)), text


TOKEN_PLACES = (
    "API_KEY={}", "export API_KEY={}", "Authorization: Bearer {}", "api_key: {}\n",
    '"apiKey": "{}"', 'client(api_key="{}")', "token={}", "--api-key {}", "https://h/?api_key={}&a",
    "q=token%3D{}%26a",
    "X-Api-Key: {}", "DISCORD_TOKEN={}", "AZURE_PAT={}", 'API_KEYS = ["{}"]', "API key: {}",
    "api_key: >-\n  {}\n", "token: str = '{}'", 'SecretStr secret = SecretStr("{}")',
)  # fmt: skip


@pytest.mark.parametrize("value", ["{A32}", "{h40}", "{L32}", "{W48}"])
@pytest.mark.parametrize("place", TOKEN_PLACES)
def test_tokens_after_names(place, value):
    for seed in range(3):
        text, (secret,) = expand(place.format(f"«{value}»"), seed)
        assert any(secret in hit for hit in found(text)), text


@pytest.mark.parametrize(
    "text",
    [
        "the AWS id AKIAIOSFODNN7EXAMPLE",
        '"integrity": "sha512-' + "aB3/" * 21 + 'aB=="',
        "STS.AssumeRoleWithWebIdentity()",
        f"next_page_token={BEARER}",
        f"csrf_token={BEARER}",
        "sk-circle-fade-dot-animation-delay-property",
        "func (s *Strategy) run() { return s.decideShadowBranchAction(ctx) } // vault",
        "password = hashedPasswordField2\npasswd = strdup(arg)\npw = pwBuffer",
        "interface User { password: string; token: AccessTokenProvider }",
        "class Login(BaseModel):\n    password: SecretStr\n    token: TokenInfo",
        "const token = await getAccessTokenFromSession(request)",
        "api_key=settings.OPENAI_API_KEY_PRIMARY, secret: process.env.SERVICE_SECRET2",
        "arn:aws:secretsmanager:us-west-2:123456789012:secret:MyTestSecret-1a2b3c",
        "$PROXY_PASSWORD = $CPAN::Config->{proxy_pass}; $pw_passwd = $pwob->passwd",
        '"LockToken": "0bc01e21-03c9-4b98-9433-6229cbf1ef1c"',
        "docker run -p 8080:80 nginx; mysql -h db -P 3306 -u root -p; unzip -p a.zip b; ssh -p 22",
        "openssl enc -pass file:key.txt -k $KEY; curl -u $USER:$PASS https://h",
        "echo done | sudo tee /etc/motd; net user; net use; sudo -S -v",
        "the password is required, the token is invalid, the secret is simple",
        '{"login.password": "Passwort", "password": "string"}',
        'identified as "241a70"',
    ],
)
def test_code_and_documentation_stay(text):
    assert found(text) == []


def test_grades():
    words = "decideShadowBranchAction getCheckpointsForSession authentication_backend"
    assert all(map(is_wordlike, words.split()))
    drawn = [expand("«{L24}»", seed)[1][0] for seed in range(300)]
    assert sum(map(is_wordlike, drawn)) <= 1
    assert sum(map(is_random, drawn)) >= 298
    for stand_in in ("${PASSWORD}", "your_key", "<token>", "changeme", "xxxxxxxx", "process.env.X"):
        assert is_stand_in(stand_in), stand_in
    assert is_password("river42!", quoted=False, setting=False)
    assert not is_password("form.password.data", quoted=False, setting=False)


SHOWN = {
    "as it is": PEM,
    "in a diff": "\n".join(f"-{line}" for line in PEM.split("\n")),
    "numbered": "\n".join(f"{n:6}\t{line}" for n, line in enumerate(PEM.split("\n"), 20)),
    "in JSON": json.dumps(PEM),
    "with carriage returns": PEM.replace("\n", "\r\n"),
    "cut off": PEM[:-60],
}


@pytest.mark.parametrize("shown", SHOWN.values(), ids=SHOWN)
def test_private_keys(shown):
    (hit,) = [hit for hit in find_secrets(f"$ cat tls.key\n{shown}") if hit.kind == "private_key"]
    assert all(line in f"$ cat tls.key\n{shown}"[hit.start : hit.end] for line in PEM_LINES[:4])


def test_a_key_that_code_names_is_none():
    begin, end = PEM.split("\n")[0], PEM.split("\n")[-1]
    assert found(f"if line == '{begin}':\n    start()\nif line == '{end}':\n    break\n") == []
    assert found(f"export T={GITHUB}\nInternalServerErrorHandlerFactory\n") == [GITHUB]
