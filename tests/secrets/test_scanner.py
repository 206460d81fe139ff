"""The scanner of the extra `secrets`: what only it finds is replaced, and reported by audits."""

import json

import pytest
from support.runs.builds import build
from support.sensitive.planted import every_byte, row

from builder import cli
from builder.secrets.secrets import find_secrets

pytest.importorskip("kingfisher_sdk", reason="the extra `secrets` is not installed")

SECRET = "a1b2c3d4e5" + "f6g7h8i9j0"
ONLY_SCANNED = f"looker client_id = '{SECRET}'"


def test_the_rules_do_not_know_the_secret():
    assert find_secrets(ONLY_SCANNED) == ()


NO_SECRETS = (
    "password = passwordFromFlag",
    "self.password = index_url_user_password",
    "def login(self, password: Union[str, None], user: str) -> None: ...",
    "  password = random_password.app.result\n",
    '{"login.title": "Sign in", "login.password": "Choose a strong password"}',
    "auth token expired traceparent=00-d1e3498d8ca470331db8085a0d70ac31-49f0e6dbe776fd29-01",
    "vault: if s.ConfigurationItemMD5Hash != nil { continue }",
    "between '-----BEGIN RSA PRIV" + "ATE KEY-----' and '-----END RSA PRIV" + "ATE KEY-----',"
    " without the line with '-----BEGIN RSA PRIV" + "ATE KEY-----'",
)


@pytest.mark.parametrize("mode", ["redact", "off"])
def test_builds_and_audits(tmp_path, mode, capsys):
    log = tmp_path / "log.jsonl"
    log.write_text(row(f"\0 {ONLY_SCANNED}") + row("nothing"))
    config = tmp_path / "config.yaml"
    config.write_text(f"audit: {{secrets: {mode!r}}}\n")
    out = tmp_path / "out"
    assert build(out, "--config", config, inputs=[log]) == 0
    written = every_byte(out / "data") + every_byte(out / "meta")
    assert (SECRET.encode() in written) == (mode == "off")
    capsys.readouterr()
    cli.main(["audit", str(out), "--json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert ("scanned_secret" in {item["code"] for item in found}) == (mode == "off")
