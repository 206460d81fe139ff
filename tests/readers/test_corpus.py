"""Real logs, if available next to the project: recognised, accounted for, proven, repeatable.

The number of calls is counted independently, in support/counts.
"""

import json
import shutil

import pytest
from support.counts import calls, captures, traces

from builder import cli
from builder.parallel import pool

pytestmark = pytest.mark.slow

FOLDERS = {
    "anthropic-messages": captures.anthropic_calls,
    "antigravity": calls.antigravity_calls,
    "atif": calls.atif_calls,
    "bedrock-converse": traces.converse_calls,
    "bfcl": traces.bfcl_calls,
    "claude-code/entire": calls.entire_calls,
    "claude-code/misc": None,
    "claude-code/real_projects": calls.claude_calls,
    "claude-code/simonw": None,
    "claude-code/tail-claude": None,
    "cline": calls.cline_calls,
    "codex": calls.codex_calls,
    "droid": calls.droid_calls,
    "gemini": traces.gemini_calls,
    "gemini-cli": calls.gemini_cli_calls,
    "grok-cli": None,
    "hermes-newer": None,
    "inspect-ai": calls.inspect_calls,
    "kimi-cli": calls.kimi_calls,
    "kiro": calls.kiro_calls,
    "langchain": traces.langchain_calls,
    "langfuse": traces.langfuse_calls,
    "langgraph": traces.langchain_calls,
    "mini-swe-agent": calls.mini_swe_calls,
    "http-captures": None,
    "openai-chat": None,
    "openai-responses": captures.responses_calls,
    "opencode": calls.opencode_calls,
    "omp": None,
    "openclaw-newer": None,
    "openhands-v0": calls.openhands_calls,
    "openhands-v1-sdk": calls.openhands_sdk_calls,
    "openinference": calls.span_calls,
    "otel-genai": calls.span_calls,
    "pi": calls.pi_calls,
    "qwen-code": calls.qwen_code_calls,
    "qwen-code-0.21": None,
    "sharegpt": calls.sharegpt_calls,
    "smolagents": calls.smolagents_calls,
    "swe-agent": calls.swe_agent_calls,
    "swe-smith": calls.swe_smith_calls,
    "tau-bench": calls.tau_bench_calls,
    "tau2-bench": calls.tau2_bench_calls,
    "toolbench": calls.toolbench_calls,
    "vercel-ai-sdk": calls.span_calls,
    "xlam": calls.xlam_calls,
}

ONE_CALL = {
    "bedrock-converse": 1,  # a capture repeats a request, its answer and its result under other ids
    "gemini": 2,  # two pairs of captures begin with the same request, answer and result
}
"""Excess of a folder's raw count of calls: one call under two ids or in two files."""

NOTHING = {
    "bfcl": "evaluation data",
    "tau2-bench": "speech to speech: no text of turns",
}
"""Folders with nothing to train on, and the reason: such a build exits with 1."""


KEPT = {
    "claude-code/entire": 1,
    "claude-code/real_projects": 1,
    "codex": 0.98,  # one file starts after the user's message
    "gemini-cli": 1,
    "mini-swe-agent": 1,
    "opencode": 1,
    "openhands-v1-sdk": 0.8,
    "pi": 0.95,  # a prompt is missing from the long session
    "qwen-code": 1,
    "swe-agent": 1,
    "swe-smith": 1,
}
"""The share of the calls that must be kept."""

CAPTURED = {
    "anthropic-messages": 0,
    "bedrock-converse": 0,
    # two without user text, a search by the provider, a redacted password, an undefined tool
    "gemini": 5,
    "openai-chat": 0,
    "openai-responses": 2,  # one after a search by the provider, one right after an inserted turn
}
"""How many calls in recorded responses are not trained, and why."""

WARM_UPS = {"claude-code/real_projects": calls.claude_warm_ups}
"""Conversations that only warm up a cache; none of them is trained."""

LARGE = "claude-code/entire"
"""Half of the corpus by size, in a format that other folders have as well."""
LARGE_FILE = 1_000_000
"""Larger files of the large folder are left out: most of its bytes, of the same kinds."""
SMALL_FILE, FEW_FILES = 20_000, 25
"""Limits for building all formats together: the first files of each folder, without larger ones."""


def copy_smaller(folder, out, limit, most=None):
    """Copies the first `most` files of at most `limit` bytes, or the smallest; returns `out`."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    smallest = min(path.stat().st_size for path in files)
    small = [path for path in files if path.stat().st_size <= max(limit, smallest)]
    for path in small[:most]:
        copy = out / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return out


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_real_logs(shared, tmp_path, capsys, name):
    folder = shared / "corpus" / name
    if name == LARGE:
        folder = copy_smaller(folder, tmp_path / "in", LARGE_FILE)
    command = ["build", str(folder), "-o", str(tmp_path / "out"), "--json", "--workers", "1"]
    assert cli.main(command) == (1 if name in NOTHING else 0)
    ledger = json.loads(capsys.readouterr().out)
    assert "internal" not in ledger["records"]["rejected"]
    assert "ambiguous" not in ledger["records"]["rejected"]
    assert "internal" not in ledger["conversations"]["rejected"]
    count = FOLDERS[name]
    if count is not None:
        assert ledger["calls"]["logged"] == len(count(folder)) - ONE_CALL.get(name, 0)
    assert ledger["calls"]["kept"] >= KEPT.get(name, 0) * ledger["calls"]["logged"]
    if name in CAPTURED:
        captured = captures.captured_calls(folder)
        trained = captures.trained_calls(tmp_path / "out")
        assert len(captured) > 10
        assert len(captured - trained) == CAPTURED[name]
    if name in WARM_UPS:
        rejected = ledger["conversations"]["rejected"]["warmup"]
        assert rejected == WARM_UPS[name](folder) > 0


def test_folders_of_all_formats_together(shared, tmp_path, submitted, monkeypatch):
    """Every sample is proven, no file has two readers, and the number of workers has no effect."""
    monkeypatch.setattr(pool, "LITTLE_BYTES", 0)  # two workers, for however few copies
    corpus, copies = shared / "corpus", tmp_path / "in"
    folders = [
        str(copy_smaller(corpus / name, copies / name, SMALL_FILE, FEW_FILES))
        for name in FOLDERS
        if name != LARGE
    ]
    manifests = []
    for workers in ("1", "2"):
        out = tmp_path / workers
        assert cli.main(["build", *folders, "-o", str(out), "-q", "--workers", workers]) == 0
        manifest = json.loads((out / "manifest.json").read_bytes())
        del manifest["run"]
        manifests.append(manifest)
        assert bool(submitted) is (workers == "2")
    assert manifests[0] == manifests[1]
    assert "ambiguous" not in manifests[0]["ledger"]["records"]["rejected"]
    assert cli.main(["verify", str(tmp_path / "2"), "--quiet"]) == 0
