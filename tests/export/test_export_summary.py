"""What an export prints: how to train on it, what differs, what was left out and what keeps it."""

import json

import pytest
from support.runs.builds import build

from builder import cli
from builder.trainers.table import LONG, TRAINERS

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]


def row(*messages):
    return json.dumps({"messages": [*messages], "tools": []}) + "\n"


def exported(dataset, out, capsys, to):
    assert cli.main(["export", str(dataset), "--to", to, "-o", str(out)]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(row(*TALK), encoding="utf-8")
    return path


def test_the_next_command_of_each_trainer_is_printed(rows, tmp_path, capsys):
    out = tmp_path / "my rows"
    printed = exported(rows, out, capsys, "tokenized")
    assert f"TRL: cd '{out}' && trl sft --config configs/trl.yaml" in printed
    assert f"axolotl: cd '{out}' && axolotl train configs/axolotl.yaml" in printed
    assert f"Unsloth: cd '{out}' && python configs/unsloth.py" in printed
    assert "not exact" not in printed


@pytest.mark.parametrize("trainer", TRAINERS.values(), ids=list(TRAINERS))
def test_each_command_runs_a_file_that_the_export_has(trainer, rows, tmp_path):
    out = tmp_path / "out"
    assert cli.main(["export", str(rows), "--to", trainer.name, "-o", str(out), "--quiet"]) == 0
    named = [word for word in trainer.command.split() if word.startswith("configs/")]
    assert len(named) == bool(trainer.command)
    assert all((out / name).is_file() for name in named)


def test_a_trainer_that_renders_another_text_is_named_with_the_exact_variant(
    rows, tmp_path, capsys
):
    printed = exported(rows, tmp_path / "out", capsys, "messages")
    difference = printed[printed.index("TRL:") : printed.index("axolotl:")]
    assert "not exact: another text is trained" in difference
    assert "Exact: --to tokenized" in difference


def test_a_trainer_stands_for_the_best_variant_that_it_reads(rows, tmp_path, capsys):
    assert "as tokenized in" in exported(rows, tmp_path / "trl", capsys, "trl")
    assert cli.main(["export", str(rows), "--to", "tlr", "-o", str(tmp_path / "x")]) == 2
    assert "no such variant or trainer, did you mean 'trl'?" in capsys.readouterr().err


def test_a_line_that_is_left_out_is_named_with_its_fault(tmp_path, capsys):
    path = tmp_path / "broken.jsonl"
    robot = row(TALK[0], {"role": "robot", "content": "x"})
    path.write_text(row(*TALK) + robot + "no JSON\n", encoding="utf-8")
    printed = exported(path, tmp_path / "out", capsys, "openai")
    assert "1 sample left out (order)" in printed
    assert "the first is broken.jsonl:2: unknown role 'robot'" in printed
    assert "the first is broken.jsonl:3: bad_json: Expecting value" in printed
    assert "To keep them: build it with builder build" in printed


def test_a_sample_too_long_for_most_machines_is_warned_of(rows, tmp_path, capsys):
    assert "--max-tokens" not in exported(rows, tmp_path / "short", capsys, "tokenized")
    rows.write_text(row({"role": "user", "content": "a b " * LONG}, TALK[1]), encoding="utf-8")
    printed = exported(rows, tmp_path / "long", capsys, "tokenized")
    said = "1 of 1 sample is longer than Qwen/Qwen3-8B reads (40,960 tokens, 32,768 advised"
    remedy = f"--max-tokens {LONG}"
    assert said in " ".join(printed.split())
    assert remedy in " ".join(printed.split())
    assert "1 of 1 row is longer than TRL's default length (1,024)" in printed
    assert "--max-tokens divides them" in printed
    command = ["export", str(rows), "--to", "trl", "-o", str(tmp_path / "asked")]
    assert cli.main([*command, "--max-tokens", "200000"]) == 0
    assert "--max-tokens divides" not in " ".join(capsys.readouterr().out.split())
    head = (tmp_path / "long" / "configs" / "trl.yaml").read_text(encoding="utf-8").splitlines()
    assert said in head[1]
    assert head[2] == f"# builder export {remedy} makes windows of them"
    rows.write_text(row({"role": "user", "content": "a b " * (LONG // 2)}, TALK[1]))
    printed = exported(rows, tmp_path / "between", capsys, "tokenized")
    assert "few machines have the memory" in printed
    assert remedy in " ".join(printed.split())


def test_the_trainer_that_is_asked_for_has_no_configuration_and_this_is_said(tmp_path, capsys):
    talk = [*TALK, {"role": "user", "content": "And?"}, {"role": "assistant", "content": "Bye."}]
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"messages": talk}) + "\n", encoding="utf-8")
    options = ("--set", "normalize.unit=turn")
    assert build(tmp_path / "built", *options, inputs=(log,)) == 0
    command = ["export", str(tmp_path / "built"), "--to", "openrlhf", "-o", str(tmp_path / "out")]
    capsys.readouterr()
    cli.main(command)
    printed = capsys.readouterr()
    configured = (tmp_path / "out" / "configs" / "openrlhf.sh").exists()
    said = "--to openrlhf: no configuration for OpenRLHF was written: " in printed.err
    assert said != configured
    assert printed.out.count("no configuration for OpenRLHF") == 0


def test_samples_that_a_trainer_drops_are_named(tmp_path, capsys):
    """LLaMA-Factory drops rows whose turns do not alternate: a question right after results."""
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    turns = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": call},
        {"role": "user", "content": "<tool_response>\nr\n</tool_response>"},
        {"role": "user", "content": "b"},
        TALK[1],
    ]
    path = tmp_path / "rows.jsonl"
    odd = json.dumps({"messages": turns, "tools": [tool]}) + "\n"
    path.write_text(row(*TALK) + odd, encoding="utf-8")
    why = "1 of 2 samples, whose turns do not alternate"
    printed = exported(path, tmp_path / "out", capsys, "llama-factory")
    assert f"drops {why}" in printed
    assert "--to trl or --to axolotl trains them" in printed
    assert f"LLaMA-Factory drops {why}" in (tmp_path / "out" / "README.md").read_text()
    configuration = (tmp_path / "out" / "configs" / "llama_factory.yaml").read_text()
    assert configuration.startswith(f"# Not exact: drops {why}")
    assert "newlines before the definitions in 1 of 2 samples" in configuration
    again = ["export", str(path), "--to", "llama-factory", "-o", str(tmp_path / "b"), "--json"]
    assert cli.main(again) == 0
    dropped = json.loads(capsys.readouterr().out)["dropped_by_trainer"]
    assert dropped["LLaMA-Factory"].startswith(why)
    assert "drops" not in exported(path, tmp_path / "c", capsys, "tokenized")


def test_an_export_is_checked_against_the_model_that_it_was_built_for(tmp_path, capsys):
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"messages": TALK}) + "\n", encoding="utf-8")
    name = "Qwen3-4B-Instruct-2507"
    assert build(tmp_path / "built", "--for", name, inputs=(log,)) == 0
    exported(tmp_path / "built", tmp_path / "out", capsys, "openai")
    assert cli.main(["verify", str(tmp_path / "out")]) == 0
    assert "template Qwen3 Instruct-2507" in capsys.readouterr().out
