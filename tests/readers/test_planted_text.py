"""Text under a key that no reader knows is never lost silently.

For each reader, a sentence is planted in the inputs of its cases: under a new key of the first
object of each kind that holds text which a conversation contains. A kind is a path of keys. The
sentence must be in an event, or the conversation or a problem must name the key.

planted_known.json names the kinds for which the law does not hold, by reader, each with the reason:
objects in which any name may be a key, and a program's own copies. A new reader must hold the law.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.logs.planted import KEY, SENTENCE, holders, is_found, spoken
from support.places import CASES

from builder.readers import readers
from builder.sources.source import Source
from builder.testing import read_counted

KNOWN = Path(__file__).parent / "planted_known.json"


def json_files(case: Path) -> Iterator[Path]:
    """Yields the input files of a case that are one JSON value or JSON lines."""
    for path in sorted((case / "input").rglob("*")):
        if path.suffix in (".json", ".jsonl", ".traj"):
            yield path


def loaded(path: Path) -> tuple[list[object], bool] | None:
    """Returns (values, whether they are lines) of a file; None if it is not JSON."""
    text = path.read_text(encoding="utf-8")
    try:
        return [json.loads(text)], False
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()], True
    except ValueError:
        return None


def lost(reader, path: Path) -> Iterator[str]:
    """Yields the kinds of objects of a file whose new key is lost."""
    found = loaded(path)
    if found is None:
        return
    values, lines = found

    def read(written: list[object]) -> list:
        data = "\n".join(map(json.dumps, written)) + ("\n" if lines else "")
        return list(read_counted(reader, Source(path.name, data=data.encode())))

    before = read(values)
    used = spoken(before)
    done: set[str] = set()
    for kind, item in holders(values, used):
        if kind in done:
            continue
        done.add(kind)
        item[KEY] = SENTENCE
        if not is_found(read(values), before):
            yield kind
        del item[KEY]


def lost_kinds(name: str) -> list[str]:
    """Returns the kinds for which a reader loses text, in any of its cases."""
    files = (path for case in sorted(CASES.glob(f"{name}/*")) for path in json_files(case))
    return sorted({kind for path in files for kind in lost(readers()[name], path)})


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(readers()))
def test_text_under_an_unknown_key_is_not_lost(name):
    known = json.loads(KNOWN.read_text(encoding="utf-8"))
    assert lost_kinds(name) == sorted(known.get(name, {}))


def test_a_message_with_an_unknown_key_is_found(tmp_path):
    answer = {"role": "assistant", "content": [{"type": "text", "text": "It is red."}]}
    rows = [{"messages": [{"role": "user", "content": "Name a colour."}, answer]}]
    log = tmp_path / "rows.jsonl"
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    assert list(lost(readers()["openai-chat"], log)) == []


def test_a_part_of_opencode_with_an_unknown_key_is_found():
    log = CASES / "opencode/export/input/session.json"
    assert ".messages.parts" not in list(lost(readers()["opencode"], log))
