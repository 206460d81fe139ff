"""Calls that a newcomer to the API makes: values of other libraries, options, empty results."""

import json

import pytest
from support.places import DATA, ROOT

import builder
from builder import cli

ROW = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}
QUESTION = {"messages": ROW["messages"][:1]}
LOG = ROOT / "configs" / "mappings" / "agent-steps.jsonl"


def tables():
    import datasets
    import pandas
    import pyarrow

    rows = datasets.Dataset.from_list([ROW])
    yield rows
    yield rows.to_iterable_dataset()
    yield datasets.DatasetDict({"train": rows})
    yield pandas.DataFrame([ROW])
    yield rows.to_pandas()  # lists are arrays of NumPy
    yield pyarrow.Table.from_pylist([ROW])
    yield (row for row in [ROW])


def test_rows_of_other_libraries_are_rows(tmp_path):
    expected = builder.build_dataset([ROW], tmp_path / "out").digest
    for number, rows in enumerate(tables()):
        assert builder.build_dataset(rows, tmp_path / f"out{number}").digest == expected
    for rows in tables():
        assert builder.verify_dataset(rows).proven == 1


def test_a_build_takes_the_options_of_the_command(tmp_path):
    (tmp_path / "system.txt").write_text("Be brief.")
    built = builder.build_dataset(
        [ROW],
        tmp_path / "out",
        tokenizer="qwen3",
        format="openai-chat",
        system=[tmp_path / "system.txt"],
        workers=None,
    )
    (row,), (meta,) = built.samples, built.meta
    assert len(built.samples) == len(built.meta) == 1
    assert built.samples[-1] == row
    assert row["messages"][0] == {"role": "system", "content": "Be brief."}
    assert meta["format"] == "openai-chat"
    with pytest.raises(builder.UsageError, match=r"tools .no\.json."):
        builder.build_dataset([ROW], tmp_path / "o", tools="no.json")
    with pytest.raises(builder.UsageError, match=r"chat template .no\.jinja.: no such file"):
        builder.build_dataset([ROW], tmp_path / "o", chat_template="no.jinja")
    with pytest.raises(builder.UsageError, match=r"^model 'no': no model with a known"):
        builder.build_dataset([ROW], tmp_path / "o", model="no")
    with pytest.raises(builder.UsageError, match="No such file or directory"):
        builder.report_dataset(built, tmp_path / "none" / "x.html")


CALL = {
    "messages": [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "get", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "sunny"},
        {"role": "assistant", "content": "Sunny."},
    ]
}
TOOL = {
    "type": "function",
    "function": {"name": "get", "description": "Weather", "parameters": {"type": "object"}},
}


def test_tools_and_the_system_prompt_are_files_or_values(tmp_path):
    """The result does not depend on which; paths of temporary files are in no output."""
    from builder.capture.definitions import SentDefinitions

    prompt = "{Be brief.}\n"
    sent = SentDefinitions("mine", "1", prompt, (TOOL,))
    (tmp_path / "tools.json").write_text(json.dumps([TOOL]))
    (tmp_path / "sent.json").write_bytes(sent.to_json())
    system = {"role": "system", "content": prompt}
    given = [
        ([TOOL], system),
        ((item for item in [TOOL]), [system]),
        (TOOL, sent),
        ({"model": "m", "tools": [TOOL]}, json.loads(sent.to_json())),
        (sent, sent),
        (str(tmp_path / "tools.json"), str(tmp_path / "sent.json")),
        ([tmp_path / "tools.json"], tmp_path / "sent.json"),
    ]
    for number, (tools, prompted) in enumerate(given):
        out = tmp_path / f"out{number}"
        built = builder.build_dataset([CALL], out, tools=tools, system=prompted)
        (row,) = built.samples
        assert row["tools"] == [TOOL]
        assert row["messages"][0] == {"role": "system", "content": prompt}
        inputs = json.loads((out / "manifest.json").read_text())["config"]["inputs"]
        assert "builder-rows" not in json.dumps(inputs)
    with pytest.raises(builder.UsageError, match=r"^tools 'tools-1.json': a second file for all"):
        builder.build_dataset([CALL], tmp_path / "o", tools=[tmp_path / "tools.json", TOOL])
    assert builder.build_dataset([CALL], tmp_path / "n", tools=None, system=None).samples


def test_messages_are_rows_where_a_mapping_or_a_format_reads_them(tmp_path):
    messages = ROW["messages"]
    mapping = builder.suggest_mapping(messages)
    assert builder.inspect_log(messages, mapping=mapping).conversation.samples == 1
    (question,) = (line for line in mapping.text.splitlines() if line.startswith("# Decide"))
    answered = mapping._replace(text=mapping.text.replace(question, ""))
    assert builder.build_dataset(messages, tmp_path / "out", mapping=answered).ledger.samples == 1
    assert builder.recognise(messages) == {}


def test_results_are_shown_in_one_line(tmp_path):
    built = builder.build_dataset(DATA / "claude-code", tmp_path / "out")
    log = DATA / "claude-code" / "parallel.jsonl"
    source = next(builder.find_sources(log))
    conversation = next(e for e in builder.read(source) if isinstance(e, builder.Conversation))
    normalised = builder.normalise(conversation)
    sample = builder.flatten(normalised)
    inspected = builder.inspect_log(log)
    results = [
        *(built, built.ledger, built.audit, *built.audit.findings),
        *(source, conversation, normalised, normalised.dialogue, sample),
        builder.verify_sample(sample, normalised),
        *(inspected, inspected.conversation, builder.suggest_mapping(LOG)),
        *(builder.Config(), builder.NormalizeOptions(), builder.available_formats()["codex"]),
        builder.diff_datasets(built, [ROW]),
        builder.push_dataset(built, "you/name", options={"dry_run": True}),
        builder.verify_dataset(built),
    ]
    for result in results:
        shown = repr(result)
        assert "\n" not in shown
        assert len(shown) < 420, shown
        assert shown.startswith(f"{type(result).__name__}(")
    assert repr(builder.NormalizeOptions(unit="turn")) == "NormalizeOptions(unit='turn')"
    assert repr(builder.Config(name="x", inputs=[])) == "Config(name='x')"


def test_the_home_folder_is_written_as_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    built = builder.build_dataset([ROW], "~/out")
    assert built.folder == str(tmp_path / "out")
    (tmp_path / "c.yaml").write_text("name: mine")
    builder.merge_datasets(["~/out"], "~/merged", config="~/c.yaml")
    assert "name: mine" in (tmp_path / "merged" / "README.md").read_text()
    assert builder.report_dataset("~/out", "~/report.html") == tmp_path / "report.html"
    assert builder.export_dataset("~/out", "openai", "~/export").rows == 1
    assert (tmp_path / "export").is_dir()


def test_a_file_that_is_no_log_does_not_end_the_reading_of_a_folder(tmp_path):
    (tmp_path / "README.md").write_text("Our logs.")
    (tmp_path / "b.jsonl").write_text(json.dumps(ROW) + "\n")
    problem, conversation = builder.read(tmp_path)
    assert (problem.code, problem.where) == ("unrecognised", "README.md")
    assert len(conversation.messages) == 2
    with pytest.raises(builder.UsageError, match=r"'README.md': no reader recognises it; name a f"):
        list(builder.read(tmp_path / "README.md"))
    with pytest.raises(builder.UsageError, match="row 0: is not JSON"):
        builder.read([{"messages": {1, 2}}])
    endless = {}
    endless["self"] = endless
    with pytest.raises(builder.UsageError, match="row 0: is nested too deep, or contains itself"):
        builder.read([endless])


def test_a_mistake_names_the_argument_and_on_the_command_line_the_option(tmp_path, capsys):
    builder.build_dataset([ROW], tmp_path / "built")
    builder.export_dataset(tmp_path / "built", "openai", tmp_path / "exported")
    with pytest.raises(builder.UsageError, match=r"; fresh=True replaces this export$"):
        builder.export_dataset(tmp_path / "built", "openai", tmp_path / "exported")
    with pytest.raises(builder.UsageError, match=r"replace its content with fresh=True$"):
        builder.build_dataset(DATA / "codex", tmp_path / "built")
    (tmp_path / "x.jsonl").write_text(json.dumps(ROW) + "\n")
    config = {"normalize": {"system": "replace"}}
    with pytest.raises(builder.UsageError, match=r"system='FILE'$"):
        builder.build_dataset(tmp_path / "x.jsonl", tmp_path / "o", config=config)
    arguments = ["build", tmp_path / "x.jsonl", "-o", tmp_path / "o"]
    arguments += ["--set", "normalize.system=replace"]
    assert cli.main([str(one) for one in arguments]) == 2
    assert capsys.readouterr().err.endswith("or --system FILE\n")


def test_a_mapping_is_a_file_a_dict_or_the_proposal(tmp_path):
    proposed = builder.suggest_mapping(LOG)
    (tmp_path / "m.yaml").write_text(proposed.text)
    import yaml

    keys = yaml.safe_load(proposed.text)
    changed = proposed._replace(text=f"{proposed.text}# checked\n")
    for number, mapping in enumerate((proposed, changed, tmp_path / "m.yaml", keys)):
        assert builder.inspect_log(LOG, mapping=mapping).conversation.samples == 1
        assert builder.build_dataset(LOG, tmp_path / f"a{number}", mapping=mapping).ledger.samples
    config = {"inputs": [{"path": LOG, "mapping": keys}]}
    built = builder.build_dataset([], tmp_path / "c", config=config)
    assert built.ledger.samples == 1
    manifest = json.loads((tmp_path / "c" / "manifest.json").read_text())
    assert manifest["config"]["inputs"][0]["mapping"]["message"]["role"] == "kind"
    config = {"inputs": [{"path": str(LOG), "mapping": {"message": {"text": "a[", "role": "r"}}}]}
    with pytest.raises(
        builder.UsageError, match=r"inputs\[0\].mapping.message.text: 'a\[' is not a JMES"
    ):
        builder.build_dataset([], tmp_path / "d", config=config)


def test_sections_are_values_or_dicts(tmp_path):
    turn = builder.NormalizeOptions(unit="turn")
    for number, config in enumerate(
        (
            builder.Config(inputs=str(DATA / "codex"), normalize={"unit": "turn"}),
            builder.Config(inputs=(DATA / "codex",), normalize=turn),
            {"inputs": [str(DATA / "codex")], "normalize": turn},
            {"inputs": ({"path": DATA / "codex"},), "normalize": {"unit": "turn"}},
        )
    ):
        built = builder.build_dataset([], tmp_path / str(number), config=config)
        assert {meta["unit"] for meta in built.meta} == {"turn"}
    config = builder.Config(split={"validation": 0.8, "test": 0.8})
    with pytest.raises(builder.UsageError, match="config: split: validation and test add up"):
        builder.build_dataset([ROW], tmp_path / "o", config=config)


def test_an_empty_result_says_why(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    assert builder.build_dataset(tmp_path / "empty.jsonl", tmp_path / "a").reasons == [
        f"{tmp_path / 'empty.jsonl'}: is empty"
    ]
    (reason,) = builder.build_dataset([QUESTION], tmp_path / "b").reasons
    assert "no_response" in reason
    where = {"select": {"where": {"model": {"in": ["none"]}}}}
    reasons = builder.build_dataset([ROW], tmp_path / "c", config=where).reasons
    assert "select.where.model: met by 0 of 1 sample" in reasons
    assert builder.build_dataset([ROW], tmp_path / "d").reasons == []


def test_a_dialogue_is_flattened_for_its_tokenizer():
    (conversation,) = [e for e in builder.read([ROW]) if isinstance(e, builder.Conversation)]
    normalised = builder.normalise(conversation)
    assert builder.flatten(normalised) == builder.flatten(normalised.dialogue, tokenizer="qwen3")
    system = builder.Message("system", (builder.Text("Hi"),))
    conversation = builder.Conversation(id="x", record="file", messages=(system,))
    with pytest.raises(builder.UsageError, match="dialogue: was rejected: no_user"):
        builder.flatten(builder.normalise(conversation))
    with pytest.raises(builder.UsageError, match=r"tokenizer ../no.: no such folder"):
        builder.flatten(normalised, tokenizer="./no")


def test_a_list_that_was_passed_in_parts_is_named(tmp_path):
    with pytest.raises(builder.UsageError, match=r"command: must be a list of words, such as .'cl"):
        builder.capture_definitions("claude -p hi")
    with pytest.raises(builder.UsageError, match=r"too many positional .*`datasets` is one list"):
        builder.merge_datasets(tmp_path, tmp_path, tmp_path / "out")
    (why,) = builder.build_dataset([{"x": 1}], tmp_path / "out").reasons
    assert "in Python, `suggest_mapping`" in why


def test_rows_of_which_the_context_is_not_known_may_be_refused(tmp_path):
    built = builder.build_dataset(DATA / "codex", tmp_path / "out")
    strict = {"require": ["complete"]}
    assert builder.verify_dataset(built, options=strict).codes == {"context": 1}
    assert builder.verify_dataset([ROW], options=strict).codes == {"context": 1}
    assert builder.verify_dataset([ROW]).codes == {}
