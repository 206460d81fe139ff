"""Files beside a log: a name from a log may be anything, and names no file more often than not."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.sources.source import Source


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "none.jsonl", "", "."])
def test_a_name_that_is_no_file_s_has_no_sibling(tmp_path: Path, name: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("{}")
    assert Source("log.jsonl", log).sibling(name) is None


def test_a_folder_that_is_gone_while_it_is_listed_has_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise FileNotFoundError

    log = tmp_path / "log.jsonl"
    log.write_text("{}")
    monkeypatch.setattr(Path, "glob", gone)
    assert Source("log.jsonl", log).related("../*/parent.jsonl") is None
