"""Faults on the way to the Hub: what is retried, how often, and the messages."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from support.hub.built import PATHS, build
from support.hub.faults import LOST, Fault
from support.hub.scenarios import scenarios
from support.hub.server import Hub
from support.hub.state import WRITER
from support.places import ROOT

from builder.credentials import hide
from builder.output.manifest import Manifest
from builder.push import upload
from builder.push.gates import as_published, listed_files
from builder.push.hub import ATTEMPTS, WAITS, Place, Retries, repository_at, with_retries


def outcomes(path):
    command = [sys.executable, str(ROOT / "scripts" / "push_faults.py"), "--json", "--path", path]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    wanted = {item.name: item for item in scenarios() if path in item.paths}
    found = {item["scenario"]: item for item in map(json.loads, printed.splitlines())}
    assert list(found) == list(wanted)
    return [(wanted[name], found[name]) for name in wanted]


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_every_fault_has_its_outcome(path):
    """One test, so that the pushes run once, and not once in each process that runs tests."""
    pushes = outcomes(path)
    waits = {wanted.name: found["waits"] for wanted, found in pushes}
    assert waits["commit: 429"] == [2], "the wait is the one that the Hub asks for"
    assert waits["commit: 500 for ever"] == list(WAITS)
    assert waits["commit: 429, wait 9999 s"] == []
    for wanted, found in pushes:
        assert found["code"] == wanted.code, found
        assert found["commits"] == wanted.commits, found
        assert found["equal"] == (wanted.code == 0), found
        assert found["attempts"] <= ATTEMPTS, found
        assert found["waits"] == found["waits"][: len(WAITS)], found
        if not any(fault.step in ("put", "xorb") for fault in wanted.faults):
            assert found["twice"] == 0, f"a finished object is sent again: {found}"
        assert wanted.token not in found["text"], wanted.name
        assert "Bearer hf" not in found["text"], wanted.name
        assert "signature=" not in found["text"], wanted.name


class Messages(list):
    def retries(self):
        self.slept = []
        return Retries(self.append, self.slept.append)


@pytest.mark.quick(1)
@pytest.mark.parametrize("lost", [None, 0, 1, 2])
def test_many_files_go_in_several_commits_the_manifest_last(tmp_path, monkeypatch, lost):
    from huggingface_hub import HfApi

    monkeypatch.setattr(upload, "COMMIT_FILES", 2)
    out = build(tmp_path, ["a", "b"])
    files, faults = listed_files(out, Manifest.load(out, str(out)))
    assert not faults
    files = as_published(files, Manifest.load(out, str(out)), {}, "team/d")
    reported = Messages()
    with Hub() as hub:
        api, place = HfApi(hub.url, token=WRITER), Place("team/d")
        if lost is not None:
            hub.faults.append(Fault("commit", LOST, skip=lost))
        done = upload.upload(
            api,
            place,
            files,
            survey=repository_at(api, place),
            removed=[],
            title="all",
            as_pull_request=False,
            retries=reported.retries(),
        )
        commits = -(-len(files) // upload.COMMIT_FILES)
        assert commits > 3
        assert hub.commits_made == commits
        assert len(hub.repos["team/d"].history()) == commits + 1
        assert hub.twice() == 0
        trees = [commit.tree for commit in hub.repos["team/d"].commits.values()]
        last = ["README.md", "manifest.json"]
        found = [[path for path in last if path in tree] for tree in trees]
        assert found == [[]] * commits + [last]
        assert done.commit == hub.repos["team/d"].refs["refs/heads/main"]
        assert len(reported.slept) == (lost is not None)


def test_a_bug_is_not_retried():
    def act():
        raise TypeError("ours")

    reported = Messages()
    with pytest.raises(TypeError):
        with_retries(act, reported.retries(), what="push")
    assert not reported


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, WAITS[0]),
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, WAITS[0]),
        ({"RateLimit": '"api";r=0;t=55'}, 55),
        ({"RateLimit": '"api";r=3;t=55'}, WAITS[0]),
    ],
)
def test_waits_are_as_long_as_requested(headers, wait):
    request = SimpleNamespace(method="POST", url=SimpleNamespace(path="/api"))
    response = SimpleNamespace(status_code=429, headers=headers, request=request)
    answers = iter([OSError("too many"), None])

    def act():
        error = next(answers)
        if error is not None:
            error.response = response
            raise error

    reported = Messages()
    with_retries(act, reported.retries(), what="push")
    assert reported.slept == [wait]


def test_access_keys_are_hidden(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "an-odd-token")
    text = (
        "an-odd-token Bearer xyz hf_abcdefghijKLMNOP0 hf_xet https://s.example/o?X-Sig=1&b=2 end?"
    )
    assert hide(text) == "… Bearer … … hf_xet https://s.example/o?… end?"
