"""Keys of the configuration on the command line, and advice that can be copied."""

import inspect
import json
import shlex
from pathlib import Path

import pytest
from support.places import DATA
from support.runs.builds import build, lines
from support.templates.targets import NO_THOUGHTS

from builder import cli
from builder.cli.app import COMMANDS
from builder.cli.command import function_of
from builder.cli.help import declared_options
from builder.cli.run import _option
from builder.config import load_config
from builder.normalize.remedies import option_for, with_options
from builder.output.manifest import Manifest
from builder.problem import UsageError
from builder.report.advice import Advice, Remedy, _of_the_parts


def test_settings_override_the_file_and_the_preset(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("normalize: {unit: query, reasoning: keep}\nname: mine\n")
    chosen = load_config(
        path, "sft", ["normalize.unit=turn", "limits={max_tokens: 9, too_long: split}"]
    )
    assert (chosen.normalize.unit, chosen.normalize.reasoning) == ("turn", "keep")
    assert (chosen.name, chosen.limits.max_tokens) == ("mine", 9)
    assert load_config(settings=["normalize.unit=turn"]).normalize.unit == "turn"


def test_a_null_overrides_the_file_and_the_preset(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("limits: {too_long: reject}\nselect: {where: {tokens: {min: 9}}}\n")
    chosen = load_config(path, "sft", ["limits.max_tokens=null", "select.where=null"])
    assert chosen.limits.max_tokens is None
    assert chosen.select == load_config().select
    assert chosen.audit.options.near_duplicates == "drop"
    assert load_config(path, "sft", ["limits=null"]).limits == load_config().limits
    path.write_text("limits:\n  # max_tokens: 9\naudit: {near_duplicates: report}\n")
    kept = load_config(path, "sft")
    assert kept.limits == load_config(None, "sft").limits
    with pytest.raises(UsageError, match=r"too_long: split needs limits.max_tokens"):
        load_config(None, "sft", ["limits.max_tokens=null"])


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ("normalize.unit", "--set 'normalize.unit': must be KEY=VALUE"),
        ("normalize.unit=turns", "--set: normalize.unit: must be one of"),
        ("normalise.unit=turn", "--set: normalise: unknown key, did you mean 'normalize'"),
        ("limits={max_tokens: 1", "--set 'limits={max_tokens: 1': not YAML"),
    ],
)
def test_a_mistake_in_a_setting_is_named(setting, fault):
    with pytest.raises(UsageError) as raised:
        load_config(settings=[setting])
    assert str(raised.value).startswith(fault)


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("fresh", True, "--fresh"),
        ("public", False, "--private"),
        ("as_loaded", False, "--no-as-loaded"),
        ("min_calls", 3, "--min-calls 3"),
    ],
)
def test_an_option_in_a_message_is_written_as_on_the_command_line(name, value, written):
    assert UsageError(f"use {{{name}}}", **{name: value}).written(_option) == f"use {written}"


def test_the_advised_option_works(tmp_path):
    log = DATA / "claude-code" / "control-token.jsonl"
    options = shlex.split(option_for("normalize.control_tokens: neutralise"))
    assert build(tmp_path / "out", inputs=[log]) == 1
    assert build(tmp_path / "kept", *options, inputs=[log]) == 0
    assert len(lines(tmp_path / "kept" / "meta" / "train-00000-of-00001.jsonl")) == 1
    resolved = json.loads((tmp_path / "kept" / "manifest.json").read_text())["config"]
    assert resolved["normalize"]["control_tokens"] == "neutralise"


def test_each_key_in_advice_becomes_an_option():
    text = "`--preset a` (`normalize.reasoning: keep` and `limits: {max_tokens: 9}`, `meta/`)"
    shown = (
        "`--preset a` (`--set normalize.reasoning=keep --set 'limits={max_tokens: 9}'`, `meta/`)"
    )
    assert with_options(text) == shown
    assert option_for("--allow-eval") == "--allow-eval"
    assert option_for("normalize.mask: [denied, error]") == "--set 'normalize.mask=[denied, error]'"


def test_advice_for_a_merged_dataset_names_the_builds():
    advice = Advice(1.0, "x", (Remedy("`normalize.unit: turn`"), Remedy("`select.where: {}`")))
    first, second = _of_the_parts(advice).remedies
    assert first.text == "In the builds that were merged: `normalize.unit: turn`"
    assert second.text == "`select.where: {}`"


@pytest.mark.slow
def test_a_merge_says_where_its_advice_applies(tmp_path, capsys):
    assert build(tmp_path / "a", inputs=[DATA]) == 0
    capsys.readouterr()
    assert cli.main(["merge", str(tmp_path / "a"), "-o", str(tmp_path / "b")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "In the builds that were merged: Capture them, then" in shown
    assert Manifest.of(Path(tmp_path / "b")).merged


def test_thinking_needs_a_template_that_shows_thoughts(tmp_path, capsys):
    template = tmp_path / "template.jinja"
    template.write_text(NO_THOUGHTS, encoding="utf-8")
    options = ("--preset", "sft-thinking", "--chat-template", str(template), "-o", str(tmp_path))
    assert cli.main(["build", str(DATA), *options]) == 2
    assert "shows no thoughts; use --preset sft" in capsys.readouterr().err


def test_every_option_of_the_table_is_a_parameter():
    for name in COMMANDS:
        made = {*inspect.signature(function_of(name)).parameters}
        assert made == {*declared_options(name)}, name
