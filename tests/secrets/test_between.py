"""Names and values with something between them: members, items of a list, lines of a viewer."""

import json
from dataclasses import asdict

import pytest
from support.sensitive.planted import scrubber
from support.sensitive.rule_examples import expand

from builder.sample import Call, Dialogue, Turn
from builder.secrets.secrets import find_secrets, named_secret

FOUND = [
    # Declarations
    'variable "admin_password" {\n  type      = string\n  default   = "«h4f3n-Aline6245»"\n}',
    'variable "db_password" {\n  description = "Password, of the db"\n  default = "«{p}»"\n}',
    'variable "db_password" {\n  validation {\n    condition = true\n  }\n  default = "«{p}»"\n}',
    'variable "db_password" {\n  type = string # text\n\n  # for now\n  default = "«{p}»"\n}',
    'output "admin_password" {\n  value     = "«h4f3n-Aline6245»"\n  sensitive = true\n}',
    'resource "aws_ssm_parameter" "db_password" {\n  type  = "String"\n  value = "«{p}»"\n}',
    "Parameters:\n  DBPassword:\n    Type: String\n    NoEcho: true\n    Default: «{p}»\n",
    '"DBPassword": {"Type": "String", "NoEcho": true, "Default": "«webete-jupyd0-Dunozy»"}',
    '"adminPassword": {"type": "securestring", "metadata": {"a": "b"}, "defaultValue": "«{p}»"}',
    'new CfnParameter(this, "DbPassword", {\n  type: "String",\n  default: "«{p}»",\n})',
    "config:\n  dbPassword:\n    type: string\n    secret: true\n    default: «h4f3n-Aline6245»\n",
    "- name: DB_PASSWORD\n  displayName: x\n  required: true\n  value: «h4f3n-Aline6245»\n",
    # Lists of arguments
    'args: ["--requirepass",\n  "«35tr3ll4*Pablo4733»"]',
    'CMD ["redis-server", "--requirepass", "«webete-jupyd0-Dunozy»"]',
    "args:\n  - --requirepass\n  - «webete-jupyd0-Dunozy»\n  - --port\n",
    '- "--masterauth"\n- "«BasaltVelvet635-»"\n',
    '"--db-password",\n "«BasaltVelvet635-»"',
    '"--client-secret",\n  "«{A40}»"',
    '.arg("--requirepass")\n    .arg("«webete-jupyd0-Dunozy»")',
    "+  - --api-key\n+  - «{A32}»\n",
    # Descriptions of config maps
    "Data\n====\nredis_password:\n----\n«0r4g3@Diego1184»\n\nBinaryData\n",
    "DB_PASSWORD:\n----\n«velvetmarbleriverlamp»\nport:\n----\n6379\n",
    "api-token:\n----\n\n«{A40}»\n",
]  # fmt: skip
CLEAN = [
    'variable "password_length" {\n  type    = number\n  default = 24\n}',
    'variable "db_password" {\n  type = string\n}\nvariable "a" {\n  default = "eu-central-1"\n}',
    'output "db_password" {\n  value     = random_password.db2.result\n  sensitive = true\n}',
    "password:\nuser: me\ndefault: utf8mb4_general2\n",
    "x = token\ny = 3\nz = 4\nvalue = 'Abc12defGh'",
    '"token": {"type": "string", "description": "the kind", "default": "access_token"}',
    '"--password",\n  "--username", "me"',
    '["username",\n "password",\n "hostname2"]',
    "options:\n- --user\n- --password\n- hostname\n",
    "- --password\n- Enter the password2 here\n",
    'p.add("--password")\nparts.append("file_name_2")',
    '"--password",\n   os.environ["DB_PASSWORD2"]',
    "password:\n----\nThe password of user2\n",
    "password:\n----\n\n\n",
    "type MasterAuth struct {\n  Auth string\n}",
]  # fmt: skip


def numbered(text, sign):
    return "".join(f"{number:6d}{sign}{line}\n" for number, line in enumerate(text.split("\n"), 7))


SHOWN = {
    "as it is": str,
    "in JSON": json.dumps,
    "in JSON in JSON": lambda text: json.dumps(json.dumps({"text": text})),
    "numbered": lambda text: numbered(text, "\t"),
    "numbered in JSON": lambda text: json.dumps(numbered(text, "\u2192")),
    "with carriage returns": lambda text: text.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("template", FOUND)
def test_found(template, shown):
    text, (secret,) = expand(template)
    text = SHOWN[shown](text)
    assert [text[hit.start : hit.end] for hit in find_secrets(text)] == [secret]


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("text", CLEAN)
def test_clean(text, shown):
    assert find_secrets(SHOWN[shown](text)) == ()


def test_items_after_an_option_and_cookies_in_arguments():
    """A call has them as values, where no text around them shows what they are."""
    _, secrets = expand("«webete-jupyd0-Dunozy» «{n32}» «{A40}» «{n26}»")
    password, session, token, cookie = secrets
    call = Call.of(
        "run",
        {
            "command": ["redis-server", "--requirepass", password, "--port", "6379"],
            "cookies": {"sessionid": session, "theme": "dark"},
            "headers": {"Cookie": f"theme=dark; auth_session={token}"},
            "state": [{"name": "sid", "value": cookie, "domain": "h.example"}],
        },
    )
    turns = (Turn("user", "go"), Turn("assistant", calls=(call,)))
    scrubbed = scrubber().dialogue(Dialogue(turns)).dialogue
    assert not [secret for secret in secrets if secret in repr(asdict(scrubbed))]
    assert "'--port', '6379'" in repr(asdict(scrubbed))
    assert not named_secret("Cookie", "theme=dark; lang=en")
