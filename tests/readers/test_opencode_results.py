"""opencode: an image of a result follows in a message of its own, which is not rebuilt."""

import json
from pathlib import Path

import pytest

from builder import build_dataset

LOG = Path(__file__).parent / "opencode" / "results" / "input" / "session.json"


def missing(log, folder):
    build_dataset([log], folder)
    (meta,) = (folder / "meta").iterdir()
    return json.loads(meta.read_text(encoding="utf-8"))["context"]["missing"]


@pytest.mark.slow
def test_an_answer_after_an_image_of_a_result_lacks_media(tmp_path):
    assert "media" in missing(LOG, tmp_path / "with")
    document = json.loads(LOG.read_text(encoding="utf-8"))
    del document["messages"][3]["parts"][1]["state"]["attachments"]
    log = tmp_path / "session.json"
    log.write_text(json.dumps(document), encoding="utf-8")
    assert "media" not in missing(log, tmp_path / "without")
