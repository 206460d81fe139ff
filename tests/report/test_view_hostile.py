"""The viewer with any content in meta/: every request gets a response."""

import json

import pytest
from support.pages.viewer import ask, served

ROW = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}

ODD = [
    {"source": "x" * 5000, "record": "line 1"},
    {"source": "a\0b", "record": "file"},
    {"source": "../../etc/passwd", "record": "file"},
    {"source": "log.jsonl", "record": "line " + "9" * 4000},
    {"source": "log.jsonl", "record": "messages[" + "9" * 4000 + "]"},
    {"source": "\ud800", "record": "line 1", "model": "\ud800", "format": "\u202e"},
    {"source": 5, "record": [], "model": {}, "id": None, "tokens": -1},
    {"spans": [[0, 10**400], [5, 1], ["a", None], 7], "tokens": 10**4000},
    {"changes": {"x" * 5000: "y" * 50000}, "parity": [[[[[]]]]]},
    {"render_sha256": "0", "unit": "turn", "assistant_turns": 10**30},
    {"context": {"level": "x" * 3000, "missing": ["y" * 3000] * 3000}},
    {str(number): "z" * 900 for number in range(3000)},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    (folder / "ds" / "data").mkdir(parents=True)
    (folder / "ds" / "meta").mkdir()
    (folder / "logs").mkdir()
    (folder / "logs" / "log.jsonl").write_text("{}\n")
    name = "train-00000-of-00001.jsonl"
    rows = "".join(json.dumps(ROW) + "\n" for _ in ODD)
    (folder / "ds" / "data" / name).write_text(rows)
    meta = "".join(json.dumps(item) + "\n" for item in ODD)
    (folder / "ds" / "meta" / name).write_text(meta)
    with served(folder / "ds", {}, folder, folder / "logs") as running:
        yield running


@pytest.mark.quick(4)
@pytest.mark.parametrize("number", range(len(ODD)))
def test_odd_meta_gets_a_page(server, capsys, number):
    for page in (f"row?at=0.{number}", f"raw?at=0.{number}", f"?at=0.{number}"):
        status, body = ask(server, page)
        assert status == 200, page
        assert body
    assert capsys.readouterr().err == ""
