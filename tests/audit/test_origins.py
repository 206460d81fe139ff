"""Tables of origins: a sample of several models stands in the row of each, as the table says."""

import json

import pytest
from support.runs.builds import build

from builder.audit.options import AuditOptions
from builder.audit.origins import SEVERAL
from builder.audit.run import audit


def _log(models):
    """Returns a row whose answers name these models."""
    turns = []
    for at, model in enumerate(models):
        turns += [
            {"role": "user", "content": f"Question {at}?"},
            {"role": "assistant", "content": f"Answer {at}.", "model": model},
        ]
    return json.dumps({"messages": turns}) + "\n"


@pytest.mark.parametrize(("models", "note"), [(["a", "a"], ""), (["a", "b"], SEVERAL)])
def test_a_sample_of_several_models(tmp_path, models, note):
    log = tmp_path / "log.jsonl"
    log.write_text(_log(models))
    assert build(tmp_path / "out", inputs=[log]) == 0
    found = audit(str(tmp_path / "out"), AuditOptions())
    (table,) = (table for table in found.tables if table.key == "models")
    assert table.note == note
    assert [row[0] for row in table.rows] == sorted(set(models))
