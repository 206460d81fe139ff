"""Runs of public benchmarks are labelled, and can be selected by their outcome."""

import html
import json

import pytest
from support.runs.builds import build, lines

from builder import cli
from builder.output.manifest import Manifest
from builder.push import gates
from builder.readers.runs.swe_agent import _benchmark_of_image

REWARDS = [1.0, 0.0, 1.0, 0.5, 1.0]


def run_of(number, reward):
    """Returns a run of tau-bench in the form that its harness writes."""
    call = {"name": "get_user", "arguments": json.dumps({"id": number})}
    return {
        "task_id": number,
        "reward": reward,
        "info": {},
        "trial": 0,
        "traj": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": f"Who is user {number}?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "c", "name": "get_user", "content": "Ada"},
            {"role": "assistant", "content": f"User {number} is Ada."},
        ],
    }


@pytest.fixture
def runs(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "gpt.json").write_text(
        json.dumps([run_of(number, reward) for number, reward in enumerate(REWARDS)])
    )
    return folder


def metas(out):
    return [line for path in sorted(out.glob("meta/*.jsonl")) for line in lines(path)]


def test_summary_audit_card_and_report_name_the_benchmark(runs, tmp_path, capsys):
    out = tmp_path / "out"
    assert cli.main(["build", str(runs), "-o", str(out), "--workers", "1"]) == 0
    assert "runs of public benchmarks: tau-bench (5)" in capsys.readouterr().out.lower()
    found = json.loads((out / "manifest.json").read_bytes())["audit"]["findings"]
    (finding,) = [item for item in found if item["code"] == "evaluation_run"]
    assert (finding["count"], finding["samples"], finding["gate"]) == (5, 5, "report")
    card = html.unescape((out / "README.md").read_text())
    assert "5 samples are runs of public benchmarks: tau-bench (5)" in card
    report = (out / "report.html").read_text()
    assert "evaluation_run" in report
    assert "tau-bench (5)" in report
    assert cli.main(["audit", str(out), "--fail-on", "evaluation_run", "--quiet"]) == 1


def test_a_public_push_asks_about_benchmarks_and_a_private_one_does_not(runs, tmp_path, verifier):
    out = tmp_path / "out"
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps({"inputs": [{"path": str(runs), "license": "mit"}]}))
    assert build(out, "-c", config, "--workers", "1", inputs=()) == 0
    manifest = Manifest.load(out, str(out))
    target = verifier.target
    assert list(gates.refusals(out, manifest, [], target, public=False)) == []
    (shut,) = gates.refusals(out, manifest, [], target, public=True)
    assert shut.code == "evaluation_run"
    assert "tau-bench (5)" in shut.message
    left, opened = gates.overrule([shut], ["evaluation_run"])
    assert left == []
    assert [*opened] == ["evaluation_run"]


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ({"outcome.reward": {"min": 1}}, [1.0, 1.0, 1.0]),
        ({"outcome.reward": {"min": 0, "max": 0}}, [0.0]),
        ({"outcome.reward": {"in": [0.5]}}, [0.5]),
        ({"outcome.benchmark": {"in": [None]}}, []),
    ],
)
def test_select_by_outcome_gives_exactly_those_runs(runs, tmp_path, where, kept):
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps({"inputs": [{"path": str(runs)}], "select": {"where": where}}))
    out = tmp_path / "out"
    assert build(out, "-c", config, "--workers", "1", inputs=()) == (0 if kept else 1)
    assert [line["outcome"]["reward"] for line in metas(out)] == kept


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("swebench/sweb.eval.x86_64.django_1776_django-1:latest", "SWE-bench"),
        ("docker.io/swebench/sweb.eval.x86_64.a_1776_b-1:latest", "SWE-bench"),
        ("sweb.eval.arm64.a__b-1", "SWE-bench"),
        ("another/sweb.eval.x86_64.a_1776_b-1", None),
        ("jyangballin/swesmith.x86_64.a", None),
        ("python:3.11", None),
        (None, None),
        (["swebench/sweb.eval."], None),
    ],
)
def test_images_of_swe_bench(image, name):
    assert _benchmark_of_image(image) == name
