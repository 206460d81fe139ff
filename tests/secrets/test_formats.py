"""Arguments of formats, quotation marks of other scripts, and values that are open to all."""

import pytest
from support.sensitive.found import found
from support.sensitive.planted import invented

from builder.secrets.open_values import is_open
from builder.secrets.quotes import straight

VALUE = invented(24)


@pytest.mark.parametrize("form", [
    "printf 'machine h login %s password %s\\n' me {} >> ~/.netrc",
    "printf 'machine h login %s password %s\\n' 'me' '{}' >> ~/.netrc",
    '"user=%s password=%s" % ("me", "{}")',
    '"user {{}} password {{}}".format("me", "{}")',
    '"password {{1}} of {{0}}".format("me", "{}")',
    'fmt.Sprintf("user=%s password=%s", "me", "{}")',
])  # fmt: skip
def test_the_argument_for_the_place_after_a_name(form):
    assert found(form.format(VALUE)) == [VALUE]


@pytest.mark.parametrize("form", [
    "printf 'login %s password %s\\n' \"$USER\" \"$PASSWORD\"",
    '"user=%s password=%s" % (user, password)',
    '"password of {{}} is in {{}}".format("me", "the_settings_file")',
    'fmt.Sprintf("user=%s password=%s", user, os.Getenv("APP_PASSWORD"))',
    'log("%s: the password was %s", "me", "changed")',
])  # fmt: skip
def test_other_arguments_are_kept(form):
    assert found(form) == []


@pytest.mark.parametrize("marks", [
    "\u00ab {} \u00bb", "\u00ab\u00a0{}\u00a0\u00bb", "\u2039{}\u203a", "\u201e{}\u201c",
    "\u201c{}\u201d", "\u300c{}\u300d", "\u2018{}\u2019",
])  # fmt: skip
def test_values_in_marks_of_other_scripts(marks):
    assert found(f"Son mot de passe provisoire est {marks.format(VALUE)}.") == [VALUE]


@pytest.mark.parametrize(
    "text", ["", "a \u00ab b c \u00bb", "\u00abx\u00bb \u2018y\u2019", "\u300c"]
)
def test_straight_marks_keep_the_length(text):
    assert len(straight(text)) == len(text)
    assert straight(straight(text)) == straight(text)


@pytest.mark.parametrize(("value", "is_known"), [
    ("v0.0.0-20250104172304-0fb2b95fc620", True),
    ("1.4.0-rc.2", True),
    ("media-worker:user:13676:meta", True),
    ("pk_live_" + VALUE, True),
    ("sb_publishable_" + VALUE, True),
    ("sk_live_" + VALUE, False),
    ("sb_secret_" + VALUE, False),
    ("me:" + VALUE, False),
    ("a1:b2:c3", False),
    (VALUE, False),
])  # fmt: skip
def test_open_values(value, is_known):
    assert is_open(value) == is_known


@pytest.mark.parametrize("text", [
    "github.com/acme/secrets v0.0.0-20250104172304-0fb2b95fc620",
    "DATABASE_PASSWORD=op://Infra/ingest/api key",
    "redis-cli TTL token:embeddings:user:41297:lock",
    "VITE_STRIPE_PUBLISHABLE_KEY=pk_live_" + invented(90),
    "| name | api_key |\n| worker | \u2022\u2022\u2022\u2022\u2022QCkY |",
])  # fmt: skip
def test_texts_with_open_values_are_kept(text):
    assert found(text) == []
