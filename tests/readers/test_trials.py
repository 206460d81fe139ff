"""A trial of Harbor is one source; other files in its folder are read as usual."""

import shutil

from support.places import CASES

from builder.readers.discovery import find_sources


def test_files_that_do_not_belong_to_a_trial_are_separate_sources(tmp_path):
    shutil.copytree(CASES / "atif/terminus_handoff/input", tmp_path, dirs_exist_ok=True)
    native = tmp_path / "trial-1/agent/sessions/run.jsonl"
    native.parent.mkdir(parents=True)
    native.write_text("{}\n", encoding="utf-8")
    store, rest = find_sources(str(tmp_path))
    assert [member.name for member in store.members] == [
        "agent/trajectory.json",
        "agent/trajectory.summarization-1-answers.json",
        "agent/trajectory.summarization-1-questions.json",
        "agent/trajectory.summarization-1-summary.json",
        "result.json",
    ]
    assert (store.name, rest.name) == ("trial-1", "trial-1/agent/sessions/run.jsonl")
