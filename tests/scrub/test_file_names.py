"""Names of logs are not taken for tokens because of the words in them."""

import json

import pytest

import builder
from builder.scrub.redact import secrets_in_name
from builder.secrets.secrets import mask_pieces

ROW = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}
DRAWN = "vcp_k3J9sPq0Zx7LmT2vQ8wE4rTyUk3J9sPq"


@pytest.mark.parametrize(
    "name",
    [
        "tests/cassettes/test_vcr_chat_completion_returns_tokens.jsonl",
        "vcr_openai_gpt4o_mini_streams_the_tool_calls-2.jsonl",
        "vca_chat_completion_with_tools_v2.jsonl",
    ],
)
def test_words_are_no_token(name):
    assert secrets_in_name(name) == ()


@pytest.mark.parametrize("name", [f"logs/{DRAWN}.jsonl", f"test_{DRAWN}.jsonl"])
def test_a_token_in_a_name_is_found(name):
    (hit,) = secrets_in_name(name)
    assert DRAWN in name[hit.start : hit.end]


def test_the_name_of_a_log_is_kept_and_a_token_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    words = "test_vcr_chat_completion_returns_tokens"
    (tmp_path / "logs" / f"{words}.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "logs" / f"{words}_at_all.jsonl").write_text('{"x": 1}\n')
    (tmp_path / "logs" / f"{DRAWN}.jsonl").write_text('{"x": 1}\n')
    made = builder.build_dataset("logs", "out")
    (meta,) = (tmp_path / "out" / "meta").glob("*.jsonl")
    assert json.loads(meta.read_text())["source"] == f"{words}.jsonl"
    rejects = (tmp_path / "out" / "rejects.jsonl").read_text()
    assert f"{words}_at_all.jsonl" in rejects
    assert DRAWN not in rejects
    manifest = (tmp_path / "out" / "manifest.json").read_text()
    assert words in manifest
    assert DRAWN not in manifest
    findings = builder.audit_dataset(made).findings
    assert not [item for item in findings if item.code == "vercel_token"]


def test_a_token_in_the_name_of_a_file_is_masked():
    token = "ghp_" + "x7Kq9ZbT2mV4nR8sW1pL5cD3fG6hJ0aE4uY2"
    assert token not in mask_pieces(f"{token}.json")
