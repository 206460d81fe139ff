"""Names and their values: forms in which a name marks a secret, and in which it does not."""

import pytest
from secret_examples import expand

from builder.scrub.secrets import find_secrets


@pytest.mark.parametrize(
    "template",
    [
        'MAIL_PASSWORD="«canyon river 88 oak»"',
        'ssid="office"\n  psk="«Canyon Creek 2024»"\n',
        "WEBHOOK_SECRET=«Velvet-Canyon-90»\n",
        "- **Password**: `«velvet_Canyon_66»`",
        "- **Password:** `«velvet_Canyon_66»`",
        "**API key**: «{A32}»",
        "redis://:«{A24}»@cache:6379",
    ],
)
def test_values_of_names(template):
    text, secrets = expand(template)
    assert [text[hit.start : hit.end] for hit in find_secrets(text)] == secrets


@pytest.mark.parametrize(
    "text",
    [
        'label="Password 8"',
        "TLS_SECRET=wildcard-cert-2024\n",
        '<v-field v-model="form.newPassword" :rules="passwordStrengthRules" />',
        "redis://:[PASSWORD]@cache:6379 postgres://u:[your password]@h/x",
        "char **password = argv[2]; password **= 2",
    ],
)
def test_code_and_placeholders(text):
    assert find_secrets(text) == ()
