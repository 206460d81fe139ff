"""`builder view` and `report` of rows in other forms: converted, named, searched; or raw.

The oracle is the text of each row, written down here in the form of `build`.
"""

import json
import re

import pytest
from support.pages.reports import HOSTILE
from support.pages.viewer import viewer_of

from builder import cli
from builder.dataset.files import dataset_files
from builder.dataset.rows import dataset_rows
from builder.dataset.store import Address, Rows
from builder.readers.toolkit.narrow import as_dict
from builder.view.index import Query

FUNCTION = {
    "name": "wc",
    "description": "Counts lines.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}
TOOLS = [{"type": "function", "function": FUNCTION}]
CALL = '<tool_call>\n{"name": "wc", "arguments": {"path": "notes/a.md"}}\n</tool_call>'
RESULT = "<tool_response>\n12\n</tool_response>"
FLAT = [
    {"role": "user", "content": "How long is a?"},
    {"role": "assistant", "content": CALL},
    {"role": "user", "content": RESULT},
    {"role": "assistant", "content": "It has 12 lines."},
]
STRUCTURED = [
    FLAT[0],
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "wc", "arguments": '{"path":"notes\\/a.md"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "12"},
    FLAT[3],
]
DEFINED = "".join(
    (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n",
        "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n",
        json.dumps(TOOLS[0]),
        "\n</tools>\n\nFor each function call, return a json object with function name and",
        " arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n",
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>',
    )
)
TEXT = "".join(
    f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n"
    for turn in ({"role": "system", "content": DEFINED}, *FLAT[:3])
)
ANSWER = "<|im_start|>assistant\nIt has 12 lines.<|im_end|>\n"
SHAREGPT = {
    "conversations": [
        {"from": "human", "value": "How long is a?"},
        {"from": "function_call", "value": '{"name":"wc","arguments":{"path":"notes/a.md"}}'},
        {"from": "observation", "value": "12"},
        {"from": "gpt", "value": "It has 12 lines."},
    ],
    "tools": json.dumps([FUNCTION]),
}

ROWS = {
    "openai-chat": {"messages": STRUCTURED, "tools": TOOLS},
    "sharegpt": SHAREGPT,
    "prompt-completion": {"prompt": FLAT[:3], "completion": FLAT[3:], "tools": TOOLS},
    "prompt-completion-text": {"prompt": TEXT, "completion": ANSWER},
    "text": {"text": TEXT + ANSWER},
    "messages-str": {"messages": FLAT, "tools": json.dumps(TOOLS)},
    "tools-in-system": {"messages": [{"role": "system", "content": DEFINED}, *FLAT]},
}
"""{form: a row of it}; each contains FLAT and TOOLS."""
READERS = {"openai-chat", "sharegpt"}
BAD = {
    "openai-chat": (
        {
            "messages": [
                STRUCTURED[0],
                {
                    **STRUCTURED[1],
                    "tool_calls": [
                        {"id": "c1", "function": {"name": "wc", "arguments": "wc -l"}},
                    ],
                },
                *STRUCTURED[2:],
            ]
        },
        "bad_arguments",
    ),
    "sharegpt": ({"conversations": [{"from": "robot", "value": "x"}]}, "unknown_role"),
    "prompt-completion": ({"prompt": 5, "completion": []}, "format"),
    "text": ({"text": "<|im_start|>robot"}, "format"),
}
"""{form: (a row without a sample, the code of its problem)}."""


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def viewed(tmp_path):
    """Opens the viewer of a file; closes it at the end."""
    opened = []

    def view(path):
        scratch = tmp_path / f"scratch-{len(opened)}"
        scratch.mkdir()
        viewer = viewer_of(path, {}, scratch)
        opened.append(viewer)
        return viewer

    yield view
    for viewer in opened:
        viewer.close()


def page_of(viewer, row):
    return viewer.sample(Address(0, row), {}).decode()


def listed(viewer, **asked):
    return viewer.samples(asked).decode()


def hits(viewer, **asked):
    """Returns (matching samples, all samples) as the list states them."""
    found = re.search(r"<strong>(\d+) of (\d+) samples", listed(viewer, **asked))
    return int(found[1]), int(found[2])


@pytest.mark.parametrize("form", ROWS)
def test_a_row_is_converted_and_its_form_named(tmp_path, viewed, form):
    path = write(tmp_path / "rows.jsonl", [ROWS[form]] * 3)
    row = next(dataset_rows(str(path)))
    assert as_dict(row.converted)["messages"][-4]["content"] == "How long is a?"
    viewer = viewed(path)
    page = page_of(viewer, 1)
    assert f"Converted for display: </strong>a row of the form <code>{form}</code>" in page
    assert (f"the reader <code>{form}</code>" in page) == (form in READERS)
    assert '<p class="name">wc</p>' in page
    assert "1 tool: wc" in page
    assert page.count('class="assistant trained"') == (1 if form.startswith("prompt") else 2)
    assert "It has 12 lines." in page
    # As stored: the file's own row.
    assert json.loads(viewer.raw(Address(0, 1))) == ROWS[form]


@pytest.mark.parametrize("form", ROWS)
def test_the_index_works_on_converted_rows(tmp_path, viewed, form):
    plain = {
        "messages": [{"role": "user", "content": "Zig"}, {"role": "assistant", "content": "Zag"}]
    }
    other = {
        "sharegpt": {
            "conversations": [{"from": "human", "value": "Zig"}, {"from": "gpt", "value": "Zag"}]
        },
        "prompt-completion": {"prompt": plain["messages"][:1], "completion": plain["messages"][1:]},
        "prompt-completion-text": {
            "prompt": "<|im_start|>user\nZig<|im_end|>\n",
            "completion": "<|im_start|>assistant\nZag<|im_end|>\n",
        },
        "text": {"text": "<|im_start|>user\nZig<|im_end|>\n<|im_start|>assistant\nZag<|im_end|>\n"},
    }.get(form, plain)
    viewer = viewed(write(tmp_path / "rows.jsonl", [other, ROWS[form], other]))
    # The template's writing of the call, and the definitions, which most of these forms lack.
    for words in ('"arguments": {"path": "notes/a.md"}', '"function": {"name": "wc"'):
        assert hits(viewer, text=words) == (1, 3), words
    assert hits(viewer, tool="wc") == (1, 3)
    assert hits(viewer, text="Zag") == (2, 3)
    numbers = viewer.index.result(Query()).measured
    assert numbers["length"] == [6, sum(len(turn["content"]) for turn in FLAT), 6]
    assert numbers["calls"] == [0, 1, 0]
    first = listed(viewer, sort="-length").index("How long is a?")
    assert first < listed(viewer, sort="-length").index("#0")


@pytest.mark.parametrize("form", BAD)
def test_a_row_that_does_not_convert_is_raw_with_its_code(tmp_path, viewed, form):
    bad, code = BAD[form]
    viewer = viewed(write(tmp_path / "rows.jsonl", [ROWS[form], bad, ROWS[form]]))
    page = page_of(viewer, 1)
    assert f"Not a sample: </strong><code>{code}</code>" in page
    assert "is shown as stored in the file" in page
    assert "Converted for display" not in page
    assert hits(viewer, problem=code) == (1, 3)
    assert hits(viewer, form=form) == (2, 3)


def test_lines_that_are_not_json_and_hostile_text(tmp_path, viewed):
    path = write(tmp_path / "rows.jsonl", [SHAREGPT, SHAREGPT])
    hostile = {
        "conversations": [{"from": "human", "value": HOSTILE}, {"from": "gpt", "value": HOSTILE}]
    }
    with path.open("ab") as stream:
        stream.write(b'{"conversations": [<script>\n' + json.dumps(hostile).encode() + b"\n\xff\n")
    viewer = viewed(path)
    for row, code in ((2, "bad_json"), (4, "bad_utf8")):
        assert f"Not a sample: </strong><code>{code}</code>" in page_of(viewer, row)
    assert "&lt;script&gt;" in page_of(viewer, 2)
    assert hits(viewer, text='{"conversations": [<script>') == (1, 5)
    assert "<script>alert" not in page_of(viewer, 3) + listed(viewer)


@pytest.mark.parametrize("name", ["rows.json", "rows.arrow", "rows.jsonl.gz", "rows.parquet"])
def test_documents_and_tables(tmp_path, viewed, name):
    import gzip

    import pyarrow.parquet

    rows = [{**SHAREGPT, "id": "first"}, {**SHAREGPT, "id": "second"}, {**SHAREGPT, "id": "third"}]
    path = tmp_path / name
    table = pyarrow.Table.from_pylist(rows)
    if name.endswith(".json"):
        path.write_text(json.dumps(rows, indent=1))
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(write(tmp_path / "x", rows).read_bytes()))
    elif name.endswith(".parquet"):
        pyarrow.parquet.write_table(table, path)
    else:
        with (
            pyarrow.OSFile(str(path), "wb") as sink,
            pyarrow.ipc.new_stream(sink, table.schema) as out,
        ):
            out.write_table(table)
    viewer = viewed(path)
    assert "the reader <code>sharegpt</code>" in page_of(viewer, 1)
    assert hits(viewer, text='"arguments": {"path": "notes/a.md"}') == (3, 3)
    scratch = tmp_path / "other"
    scratch.mkdir()
    got = list(Rows(dataset_files(str(path)), scratch).rows(Address(0, 1)))
    expected = list(dataset_rows(str(path)))[1:]
    assert [(row.number, row.value, row.sample) for row in got] == [
        (row.number, row.value, row.sample) for row in expected
    ]


def test_the_report_names_the_conversion(tmp_path, capsys):
    bad, code = BAD["sharegpt"]
    path = write(tmp_path / "rows.jsonl", [SHAREGPT, bad])
    out = tmp_path / "report.html"
    assert cli.main(["report", str(path), "-o", str(out), "--json"]) == 0
    page = out.read_text(encoding="utf-8")
    assert "a row of the form <code>sharegpt</code>, converted by the reader" in page
    assert '<p class="name">wc</p>' in page
    assert f"Not a sample: </strong><code>{code}</code>" in page
    assert "2 of 2 rows were read as sharegpt" in page
    assert "1 of 2 rows are samples. Not verified." in page
