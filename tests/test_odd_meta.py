"""Every command that reads a built folder takes any values in meta/."""

import hashlib
import json
import shutil

import pytest
from support.pages.viewer import ask, served
from support.places import DATA
from support.runs.builds import build, lines

from builder import cli
from builder.dataset.meta import NAMES, SampleMeta

NAME = "train-00000-of-00001.jsonl"
ODD = (
    None, True, -1, 2**33, 10**400, 0.5, "\ud800", [None], [[0, 2**33]], [{}], {"bogus": 3},
    {"system": 0}, {"system": -1}, {"system": 2**33}, {"system": 2**32 - 1, "user": 2**32 - 1},
)  # fmt: skip
"""Values of each key: of another type, negative, huge, unknown."""


def rewrite(folder, data, meta):
    """Replaces the rows of a built folder; its manifest lists the new files."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for place, values in ((f"data/{NAME}", data), (f"meta/{NAME}", meta)):
        content = "".join(values).encode()
        (folder / place).write_bytes(content)
        (entry,) = (item for item in manifest["files"] if item["path"] == place)
        entry.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A built folder with a line of meta/ for each key and odd value of it."""
    folder = tmp_path_factory.mktemp("odd") / "built"
    assert (
        build(folder, "--workers", "1", inputs=(next((DATA / "openai-chat").glob("*.json*")),)) == 0
    )
    row, good = lines(folder / "data" / NAME)[0], lines(folder / "meta" / NAME)[0]
    data, meta = [], []
    for number, (key, value) in enumerate((key, value) for key in NAMES for value in ODD):
        row["messages"][-1]["content"] = f"Row {number}."
        data.append(json.dumps(row) + "\n")
        digest = hashlib.sha256(data[-1].rstrip("\n").encode()).hexdigest()
        meta.append(json.dumps({**good, "id": digest, key: value}) + "\n")
    rewrite(folder, data, meta)
    shutil.copytree(folder, folder.with_name("built.other"))
    return folder


COMMANDS = {
    "audit": ["audit", "{}"],
    "report": ["report", "{}", "-o", "{}.html"],
    "verify": ["verify", "{}"],
    "diff": ["diff", "{}", "{}"],
    "merge": ["merge", "{}", "{}.other", "-o", "{}.merged", "-c", "{}.yaml"],
    "export": ["export", "{}", "--to", "openai", "-o", "{}.openai"],
    "preference": ["export", "{}", "--to", "preference", "-o", "{}.preference"],
    "tokenized": ["export", "{}", "--to", "tokenized", "-o", "{}.tokenized"],
}
CONFIG = """
select: {where: {tokens: {min: 5}, calls: {max: 1000}}, max_tokens_total: 100000}
split: {test: 0.1}
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_odd_values(odd, name, capsys):
    odd.with_name("built.yaml").write_text(CONFIG)
    assert cli.main([part.format(odd) for part in COMMANDS[name]]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.slow
def test_every_page_of_the_viewer_takes_odd_values(odd, tmp_path, capsys):
    count = len(lines(odd / "data" / NAME))
    with served(odd, json.loads((odd / "manifest.json").read_text()), tmp_path) as server:
        pages = ["", *(f"row?at=0.{number}" for number in range(count))]
        assert {page for page in pages if ask(server, page)[0] != 200} == set()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("parts", [{"bogus": 5}, {"system": 0}, {"system": 4}, {"system": 2**33}])
def test_parts_that_do_not_add_up_are_not_read(parts):
    line = {"tokens": 5, "tokens_by_part": parts}
    meta = SampleMeta.read(line)
    assert meta.tokens_by_part == {}
    assert meta.faults(line) == ["tokens_by_part"]


def test_a_number_beyond_four_bytes_is_not_read():
    line = {"tokens": 2**32, "spans": [[0, 2**32]], "changes": {"redacted": 2**32}}
    meta = SampleMeta.read(line)
    assert (meta.tokens, meta.spans, meta.changes) == (0, (), {})
    assert meta.faults(line) == ["changes", "tokens", "spans"]
