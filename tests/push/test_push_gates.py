"""Gates of a push: findings of the audit, and files that differ from the build."""

import json

import pytest
from support.hub.built import build, edit_manifest, finding

from builder import cli
from builder.output.manifest import Manifest
from builder.push import gates, job
from builder.push.gates import listed_files


@pytest.fixture
def out(tmp_path):
    return build(tmp_path, ["a", "b"])


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("audit", "codes"),
    [
        ({"audit": None}, ["unaudited"]),
        ({"audit": "passed"}, ["unaudited"]),
        ({"audit": {"findings": []}}, []),
        (finding("personal_data"), ["personal_data"]),
        (finding("secrets", gate="change"), []),
        (finding("secrets", gate=7, count=None), ["secrets"]),
        ({"audit": {"findings": [None, [], {}]}}, []),
        (finding("duplicates"), []),
    ],
)
def test_findings_of_the_audit_close_the_gate(out, verifier, audit, codes):
    edit_manifest(out, **audit)
    manifest = Manifest.load(out, str(out))
    shut = gates.refusals(out, manifest, [], verifier.target, public=True)
    assert [item.code for item in shut] == codes


def extra(out):
    (out / "notes.txt").write_text("x")


def changed(out):
    with next(out.glob("data/*")).open("ab") as stream:
        stream.write(b"{}\n")


def missing(out):
    (out / "rejects.jsonl").unlink()


def outside(out):
    files = json.loads((out / "manifest.json").read_bytes())["files"]
    edit_manifest(out, files=[*files, {"path": "../x", "bytes": 1, "sha256": "0"}])


def linked(out):
    other = out.parent / "elsewhere"
    (out / "rejects.jsonl").replace(other)
    (out / "rejects.jsonl").symlink_to(other)


def unproven(out):
    """Returns a bad sample with a matching manifest and meta/."""
    (path,) = out.glob("data/*")
    path.write_bytes(path.read_bytes().replace(b'"assistant"', b'"user"'))
    files, _ = listed_files(out, Manifest.load(out, str(out)))
    edit_manifest(out, files=[{"path": f.path, "bytes": f.size, "sha256": f.sha256} for f in files])


def for_another_template(out):
    tokenizer = json.loads((out / "manifest.json").read_bytes())["tokenizer"]
    edit_manifest(out, tokenizer={**tokenizer, "template_sha256": "0" * 64})


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (extra, "manifest"),
        (changed, "manifest"),
        (missing, "manifest"),
        (outside, "manifest"),
        (linked, "manifest"),
        (unproven, "verify"),
        (for_another_template, "verify"),
    ],
)
def test_incomplete_or_unproven_datasets_are_not_pushed(out, verifier, harm, code):
    harm(out)
    manifest = Manifest.load(out, str(out))
    _, faults = listed_files(out, manifest)
    shut = list(gates.refusals(out, manifest, faults, verifier.target, public=False))
    assert code in [item.code for item in shut]
    left, _ = gates.overrule(shut, ["unaudited", "manifest", "verify"])
    assert code in [item.code for item in left], "it cannot be overruled"


@pytest.fixture
def no_login(monkeypatch, tmp_path):
    """Removes the token, and the network: any request fails the test."""
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    monkeypatch.setattr(job, "_api", lambda: pytest.fail("looks at the Hub"))


def test_a_dry_run_without_a_login_lists_gates_and_files(out, no_login, capsys):
    edit_manifest(out, audit=None)
    assert cli.main(["push", str(out), "o/n", "--dry-run", "--allow", "unaudited"]) == 0
    listed = capsys.readouterr().out
    assert "o/n, main (not looked at, no token for the Hub" in listed
    assert "gates      passed: manifest, verify, " in listed
    assert "gates      not checked: other-content, stale" in listed
    assert "overruled  unaudited" in listed
    for path in ("README.md", "manifest.json", "data/train-00000-of-00001.jsonl"):
        assert f"  file       {path}  " in listed
    assert "dry run: nothing was changed" in listed
