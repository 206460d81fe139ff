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
    assert row["messages"][0] == {"role": "system", "content": "Be brief."}
    assert meta["format"] == "openai-chat"
    with pytest.raises(builder.UsageError, match=r"tools .no\.json."):
        builder.build_dataset([ROW], tmp_path / "o", tools="no.json")
    with pytest.raises(builder.UsageError, match=r"chat template .no\.jinja.: no such file"):
        builder.build_dataset([ROW], tmp_path / "o", chat_template="no.jinja")


def test_a_mapping_is_a_file_a_dict_or_the_proposal(tmp_path):
    proposed = builder.suggest_mapping(LOG)
    (tmp_path / "m.yaml").write_text(proposed.text)
    import yaml

    keys = yaml.safe_load(proposed.text)
    for number, mapping in enumerate((proposed, tmp_path / "m.yaml", keys)):
        assert builder.inspect_log(LOG, mapping=mapping).conversation.samples == 1
        assert builder.build_dataset(LOG, tmp_path / f"a{number}", mapping=mapping).ledger.samples
    config = {"inputs": [{"path": LOG, "mapping": keys}]}
    built = builder.build_dataset([], tmp_path / "c", config=config)
    assert built.ledger.samples == 1
    manifest = json.loads((tmp_path / "c" / "manifest.json").read_text())
    assert manifest["config"]["inputs"][0]["mapping"]["message"]["role"] == "kind"
    config = {"inputs": [{"path": str(LOG), "mapping": {"message": {"text": "a[", "role": "r"}}}]}
    with pytest.raises(builder.UsageError, match=r"inputs\[0\].mapping.message.text: not a JMES"):
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", DATA, "--to", "opena", "-o", "o"], "--to 'opena': no such variant"),
        (["inspect", DATA / "claude-code" / "parallel.jsonl", "--index", "9"], "--index 9: there "),
        (["verify", DATA, "--masks", "trl2"], "--masks 'trl2': no such trainer"),
        (["verify", DATA, "--witness", "x"], "--witness 'x': no such witness"),
    ],
)
def test_the_command_line_names_its_options(arguments, message, capsys):
    assert cli.main([str(one) for one in arguments]) == 2
    assert message in capsys.readouterr().err
