"""Tables are read like the JSONL of their rows: Parquet, Arrow files, datasets on the Hub."""

import json

import datasets
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest
from support.places import DATA

from builder import cli
from builder.problem import Problem
from builder.sources.source import Source
from builder.sources.table import HubTable

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"town": {"type": "string", "default": None}},
        },
    },
}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {}}},
    },
}


def asked(name, arguments, tool, *, text=None):
    call = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "messages": [
            {"role": "user", "content": f"Please {name}."},
            {
                "role": "assistant",
                "content": text,
                "tool_calls": [{"id": "c1", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "done at 2024-01-01"},
            {"role": "assistant", "content": "It is done."},
        ],
        "tools": [tool],
    }


ROWS = [
    asked("weather", {"town": "Bern", "at": "2024-01-01T00:00:00"}, WEATHER, text="I look."),
    asked("add", {"a": 1.5, "b": None}, ADD),
    {
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
        "tools": [],
    },
]


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """Returns data/ of the same rows as JSONL."""
    folder = tmp_path_factory.mktemp("lines")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return built(folder / "rows.jsonl", folder / "out")


def built(source, out, *more):
    assert cli.main(["build", str(source), "-o", str(out), "--quiet", *more]) == 0
    return (out / "data" / "train-00000-of-00001.jsonl").read_bytes()


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def as_text(row):
    return {**row, "tools": json.dumps(row["tools"])}


def as_json(rows):
    """Returns a dataset whose definitions are JSON columns."""
    part = {"role": datasets.Value("string"), "content": datasets.Value("string")}
    function = {"name": datasets.Value("string"), "arguments": datasets.Value("string")}
    call = {"id": datasets.Value("string"), "type": datasets.Value("string"), "function": function}
    message = {
        **part,
        "tool_call_id": datasets.Value("string"),
        "tool_calls": datasets.List(call),
    }
    features = datasets.Features(
        {"messages": datasets.List(message), "tools": datasets.List(datasets.Json())}
    )
    return datasets.Dataset.from_list(rows, features=features)


@pytest.mark.quick(2)
@pytest.mark.parametrize("tools", ["text", "json"])
@pytest.mark.parametrize("kind", ["parquet", "save_to_disk", "arrow"])
def test_rows_of_a_table_are_those_of_the_jsonl(tmp_path, lines, tools, kind):
    table = (
        as_json(ROWS) if tools == "json" else datasets.Dataset.from_list(list(map(as_text, ROWS)))
    )
    if kind == "parquet":
        path = tmp_path / "rows.bin"  # known by its content
        table.to_parquet(tmp_path / "rows.parquet")
        (tmp_path / "rows.parquet").rename(path)
    elif kind == "save_to_disk":
        table.save_to_disk(tmp_path / "saved")
        (path,) = (tmp_path / "saved").glob("*.arrow")
    else:
        path = tmp_path / "rows.arrow"
        with pyarrow.OSFile(str(path), "wb") as stream:
            plain = table.data.table
            with pyarrow.ipc.new_file(stream, plain.schema) as writer:
                writer.write_table(plain)
    assert built(path, tmp_path / "out") == lines
    meta = rows_of(tmp_path / "out" / "meta" / "train-00000-of-00001.jsonl")
    assert [row["record"] for row in meta] == ["row 1", "row 2", "row 3"]


def test_nulls_that_a_column_of_structs_invents_are_left_out(tmp_path):
    rows = [{**row, "tools": row["tools"][:1]} for row in ROWS[:2]]
    rows[0]["tools"] = [json.loads(json.dumps(WEATHER).replace(', "default": null', ""))]
    rows[1]["tools"][0]["function"]["parameters"]["properties"].pop("b")  # a struct without fields
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    datasets.Dataset.from_list(rows).to_parquet(tmp_path / "rows.parquet")
    expected = built(tmp_path / "rows.jsonl", tmp_path / "one")
    assert built(tmp_path / "rows.parquet", tmp_path / "two") == expected


def test_a_corrupt_table_is_one_reject(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    datasets.Dataset.from_list(list(map(as_text, ROWS))).to_parquet(logs / "rows.parquet")
    whole = (logs / "rows.parquet").read_bytes()
    (logs / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (logs / "damaged.parquet").write_bytes(whole[:40] + bytes(40) + whole[80:])
    (logs / "stream.arrow").write_bytes(b"\xff\xff\xff\xff\x10\x00\x00\x00nothing")
    built(logs, tmp_path / "out")
    rejects = rows_of(tmp_path / "out" / "rejects.jsonl")
    assert {row["source"] for row in rejects} >= {"cut.parquet", "stream.arrow"}
    assert {row["code"] for row in rejects} == {"unreadable"}


def lying(path, kind):
    """Returns a table of four row groups, the second of which has an impossible text length."""
    texts = [f"{number:04}" for number in range(8)]
    table = pyarrow.table({"messages": texts})
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=2, compression="none")
        data = bytearray(path.read_bytes())
        at = pyarrow.parquet.read_metadata(path).row_group(1).column(0).dictionary_page_offset
        data[at : at + 8] = b"\xff" * 8
    else:
        with (
            pyarrow.OSFile(str(path), "wb") as stream,
            pyarrow.ipc.new_file(stream, table.schema) as writer,
        ):
            for start in range(0, 8, 2):
                writer.write_batch(pyarrow.record_batch({"messages": texts[start : start + 2]}))
        data = bytearray(path.read_bytes())
        at = data.index(b"00020003")
        offsets = data.rindex((4).to_bytes(4, "little") + (8).to_bytes(4, "little"), 0, at)
        data[offsets : offsets + 4] = (-9).to_bytes(4, "little", signed=True)
    path.write_bytes(data)
    return texts


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_rows_after_a_group_that_cannot_be_read_are_read(tmp_path, kind):
    texts = lying(tmp_path / "rows", kind)
    rows = list(Source("rows", tmp_path / "rows").json_lines())
    assert rows[2].code == "unreadable"
    assert rows[2].where == "after row 2"
    read = [(row.where, row.value["messages"]) for row in rows if not isinstance(row, Problem)]
    assert read == [(f"row {at + 1}", texts[at]) for at in (0, 1, 4, 5, 6, 7)]


@pytest.mark.quick(1)
@pytest.mark.parametrize("formats", ["[jsonl]", "[parquet]", "[jsonl, parquet]"])
def test_an_output_folder_built_again_is_itself(tmp_path, formats):
    source = DATA
    config = tmp_path / "config.yaml"
    config.write_text(
        f"inputs: [{{path: {source}, license: cc0-1.0}}]\n"
        f"normalize: {{reasoning: keep}}\noutput: {{formats: {formats}}}\n"
    )
    assert cli.main(["build", "-c", str(config), "-o", str(tmp_path / "one"), "--quiet"]) == 0
    again = tmp_path / "again.yaml"
    again.write_text("inputs: [{path: one}]\nnormalize: {reasoning: keep}\n")
    assert cli.main(["build", "-c", str(again), "-o", str(tmp_path / "two"), "--quiet"]) == 0
    metas = []
    for name in ("one", "two"):
        (meta,) = (tmp_path / name / "meta").glob("*.jsonl")
        metas.append(rows_of(meta))
    same = ("id", "conversation", "model", "license", "unit", "tools_source", "changes", "calls")
    one, two = ([{key: row[key] for key in same} for row in rows] for rows in metas)
    assert one == two


def test_a_dataset_on_the_hub_is_streamed_at_one_commit(tmp_path, monkeypatch, lines):
    asked_for = []

    def load(repository, *, revision, streaming):
        asked_for.append((repository, revision, streaming))
        return datasets.IterableDatasetDict({"train": as_json(ROWS).to_iterable_dataset()})

    monkeypatch.setattr(datasets, "load_dataset", load)
    source = Source("someone/rows@abc", table=HubTable("someone/rows", "abc"))
    rows = list(source.json_lines())
    assert asked_for == [("someone/rows", "abc", True)]
    assert [record.where for record in rows] == ["row 1", "row 2", "row 3"]
    assert rows[1].value["tools"] == [ADD]
    assert b"".join(source.raw()) == b"someone/rows@abc"
