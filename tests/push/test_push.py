"""Pushing: the released client against a stand-in on loopback, on both of its upload paths."""

import json
import os
import signal
import subprocess
import sys

import pytest
from support.hub.built import ALLOWED, build, edit_manifest, finding, listed
from support.hub.faults import Fault
from support.hub.scenarios import LFS
from support.hub.state import WRITER
from support.places import ROOT

from builder import cli
from builder.output.manifest import Manifest
from builder.push.gates import as_published, listed_files

pytestmark = pytest.mark.slow

READS = {"look", "tree", "refs", "resolve", "rebuild", "xorb-bytes", "token"}


# what is pushed


def test_arriving_rows_equal_the_built_ones(hub, push, new, tmp_path):
    ran = push(new, *ALLOWED)
    assert ran.code == 0, ran.err
    reported = ran.reported
    repo = hub.repos["team/d"]
    assert repo.private
    assert reported["created"]
    assert set(repo.tree()) == listed(new) | {".gitattributes"}
    for path in listed(new) - {"manifest.json", "README.md"}:
        assert hub.content(repo.tree()[path]) == (new / path).read_bytes()
    card = hub.content(repo.tree()["README.md"]).decode()
    assert card == (new / "README.md").read_text().replace("OWNER/NAME", "team/d")
    assert 'load_dataset("team/d")' in card
    assert (new / ".state").is_dir()
    manifest = json.loads(hub.content(repo.tree()["manifest.json"]))
    mine = json.loads((new / "manifest.json").read_bytes())
    assert "run" in mine
    del mine["run"]
    assert str(tmp_path) in str(mine), "the folder of the logs"
    assert str(tmp_path) not in str(manifest)
    (before,), (after,) = mine["config"].pop("inputs"), manifest["config"].pop("inputs")
    assert after == {**before, "path": "new.jsonl"}
    assert {**manifest, "files": 0} == {**mine, "files": 0}
    assert reported["read_back"] == {
        "files": len(listed(new)),
        "bytes": sum(entry.size for path, entry in repo.tree().items() if path[0] != "."),
        "rows": 30,
        "is_whole": True,
        "renderings": 30,
        "problems": [],
    }
    assert hub.commits_made == 1
    if hub.path == LFS:
        large = {path for path, entry in repo.tree().items() if entry.size > hub.part}
        assert {"report.html", "README.md"} < large
        assert hub.requests["complete"] == len(large), "these were uploaded in parts"
        assert not hub.xet.files
    else:
        assert hub.requests["put"] == 0
        assert len(hub.xet.hashes) >= 2

    there = tmp_path / "there"
    for path in listed(new):
        (there / path).parent.mkdir(parents=True, exist_ok=True)
        (there / path).write_bytes(hub.content(repo.tree()[path]))
    assert cli.main(["verify", str(there), "--quiet"]) == 0
    manifest = Manifest.load(there, str(there))
    assert listed_files(there, manifest)[1] == [], "the manifest on the Hub is complete"


def test_only_changed_files_are_sent_again(hub, push, tmp_path):
    texts = [f"{hub.path} incremental {number}" for number in range(30)]
    assert push(build(tmp_path, texts), *ALLOWED).code == 0
    hub.requests.clear()
    again = push(tmp_path / "out", *ALLOWED).reported
    assert again["commits"] == 0
    assert set(again["equal"]) == listed(tmp_path / "out")
    assert set(hub.requests) <= READS
    hub.received.clear()
    more = build(tmp_path, [*texts, "one more"], "more")
    reported = push(more, *ALLOWED).reported
    assert {path for path in reported["equal"] if not path.startswith("assets/")} == {
        "rejects.jsonl"
    }
    assert reported["commits"] == 1
    assert "rejects.jsonl" not in hub.received
    assert reported["read_back"]["rows"] == 31


def test_a_dry_run_changes_nothing_and_lists_what_a_push_then_does(hub, push, out, tmp_path):
    first = push(out, "--dry-run", *ALLOWED).reported
    assert set(first["add"]) == listed(out)
    assert not hub.repos
    hub.add_repo("team/d", {"notes.txt": b"kept"})
    hub.change("team/d", {"rejects.jsonl": b""})
    options = (*ALLOWED, "--allow", "other-content")
    would = push(out, "--dry-run", *options).reported
    assert set(hub.requests) <= READS
    assert hub.commits_made == 0
    before = hub.repos["team/d"].tree()
    done = push(out, *options).reported
    after = hub.repos["team/d"].tree()
    assert [would[key] for key in ("add", "update", "equal")] == [
        done[key] for key in ("add", "update", "equal")
    ]
    assert set(would["add"]) == set(after) - set(before)
    assert set(would["update"]) == {
        path for path in before if path in after and before[path] != after[path]
    }
    assert set(would["equal"]) == {"rejects.jsonl"}
    assert set(would["only_there"]) == {"notes.txt", ".gitattributes"}
    assert after["notes.txt"] == before["notes.txt"]


def test_pruning_removes_exactly_the_files_that_it_printed(hub, push, out):
    hub.add_repo("team/d", {"data/train-old.jsonl": b"{}\n", "notes.txt": b"x"})
    refused = push(out, *ALLOWED)
    assert refused.code == 1
    assert "data/train-old.jsonl" in refused.err
    ran = push(out, *ALLOWED, "--prune")
    assert ran.code == 0, ran.err
    assert set(ran.reported["removed"]) == {"data/train-old.jsonl", "notes.txt"}
    assert "data/train-old.jsonl, notes.txt" in ran.err, "printed despite --json"
    assert set(hub.repos["team/d"].tree()) == listed(out) | {".gitattributes"}
    assert hub.commits_made == 1


def test_branches_tags_and_pull_requests(hub, push, out):
    assert push(out, *ALLOWED, "--revision", "dev", "--tag", "v1").code == 0
    assert push(out, *ALLOWED, "--revision", "dev", "--tag", "v1").reported["commits"] == 0
    repo = hub.repos["team/d"]
    assert set(repo.tree("main")) == {".gitattributes"}
    assert repo.refs["refs/tags/v1"] == repo.refs["refs/heads/dev"]
    reported = push(out, *ALLOWED, "--create-pr").reported
    assert reported["revision"] == "refs/pr/1"
    assert set(repo.tree("refs/pr/1")) == listed(out) | {".gitattributes"}
    assert set(repo.tree("main")) == {".gitattributes"}
    assert push(out, *ALLOWED, "--create-pr").reported["commits"] == 0
    assert len(repo.titles) == 1, "the open pull request is reused"
    assert push(out, *ALLOWED).code == 0
    hub.change("team/d", {"notes.txt": b"x"})
    made = hub.commits_made
    moved = push(out, *ALLOWED, "--tag", "v1")
    assert moved.code == 2
    assert "does not move tags" in moved.err
    assert hub.commits_made == made


@pytest.mark.parametrize(
    ("path", "published"),
    [
        ("/home/al/logs/a.jsonl", "a.jsonl"),
        ("~/.claude/projects", "projects"),
        ("C:\\Users\\al\\logs", "logs"),
        ("/", ""),
        ("logs/a.jsonl", "logs/a.jsonl"),
        ("qwen3", "qwen3"),
        ("Qwen/Qwen3-8B@main", "Qwen/Qwen3-8B@main"),
    ],
)
def test_only_the_last_part_of_local_paths_is_published(path, published):
    manifest = {
        "config": {"inputs": [{"path": path, "tools": path, "format": None}], "name": path},
        "tokenizer": {"name": path},
        "files_of_others": {"path": path},
    }
    reported = json.loads(as_published([], Manifest.read(manifest), [], "team/d")[0].content)
    (listed,) = reported["config"]["inputs"]
    assert listed == {"path": published, "tools": published, "format": None}
    assert reported["tokenizer"]["name"] == reported["config"]["name"] == published
    assert reported["files_of_others"] == {"path": path}


@pytest.fixture(params=[1 << 31, 1])
def limit(request, hub):
    """Returns maximum size of datasets whose rows are all read back: any, or none."""
    hub.set("builder.push.upload", "LOADED_BYTES", request.param)
    yield request.param
    hub.set("builder.push.upload", "LOADED_BYTES", 2 << 30)


def test_rows_that_differ_when_read_back_are_reported(hub, push, out, limit):
    assert push(out, *ALLOWED).reported["read_back"]["is_whole"] == (limit > 1)
    path = "data/train-00000-of-00001.jsonl"
    for was, now, rendered, wording in (
        (b'"yes"', b'"no!"', 0, "train row 0: as loaded it renders to another text"),
        (b"29", b"28", 29, "train row 29: as loaded"),
        (b'"yes"', b" null", 0, "row 0: as loaded it is not a sample"),
        (b'{"role":', b"{[role]:", 0, "the loader fails"),
    ):
        hub.spoiled[path] = (was, now)
        ran = push(out, *ALLOWED)
        assert ran.code == 1, was
        assert wording in ran.err
        assert ran.reported["read_back"]["renderings"] == rendered
        assert len(ran.reported["read_back"]["problems"]) in (30 - rendered, 1)


# what cannot be pushed


def test_a_planted_secret_blocks_the_push(hub, push, out):
    edit_manifest(out, **finding("secrets", code="api_key"))
    ran = push(out)
    assert ran.code == 1
    message = "api_key 3 times in 2 samples; build with audit.secrets: redact"
    assert ran.reported["refused"] == [{"code": "secrets", "message": message}]
    assert "--allow secrets" in ran.err
    slip = push(out, "--allow", "secret")
    assert slip.code == 2
    assert "did you mean 'secrets'?" in slip.err
    assert not hub.requests, "the Hub received no request"
    assert push(out, "--allow", "secrets").code == 0
    card = hub.content(hub.repos["team/d"].tree()["README.md"]).decode()
    assert card.endswith(f"## Overruled when it was published\n\n- `secrets`: {message}\n")


def test_a_public_push_needs_a_licence(tmp_path, verifier, hub, push):
    out = build(tmp_path, ["a", "b"], inputs=[{"path": str(tmp_path / "out.jsonl")}])
    ran = push(out, *ALLOWED, "--public")
    assert ran.code == 1
    assert [item["code"] for item in ran.reported["refused"]] == ["unknown-license"]
    assert not hub.repos
    assert push(out, *ALLOWED).code == 0, "a private push needs none"
    assert push(out, *ALLOWED, "--public", "--allow", "unknown-license").code == 2
    hub.repos.clear()
    assert push(out, *ALLOWED, "--public", "--allow", "unknown-license").code == 0
    assert not hub.repos["team/d"].private
    ran = push(out, *ALLOWED)
    assert ran.code == 2
    assert "is public on the Hub" in ran.err, "datasets are private by default"


@pytest.mark.parametrize(
    ("arguments", "wording"),
    [
        (["nowhere", "team/d"], "no such folder"),
        ([".", "team/d"], "not a folder made by build"),
        (["OUT", "d"], "OWNER/NAME"),
        (["OUT", "team/a b"], "team/a b"),
        (["OUT", "team/d", "--create-pr", "--revision", "dev"], "leave out the revision"),
        (["OUT", "team/d", "--create-pr", "--tag", "v1"], "--tag"),
        (["OUT", "team/d", "--revision", "0" * 40], "is a commit"),
        (["OUT", "team/d", "--revision", "refs/pr/7"], "no such ref"),
    ],
)
def test_mistakes_are_reported_in_one_line(hub, out, arguments, wording):
    arguments = [str(out) if item == "OUT" else item for item in arguments]
    ran = hub.run("push", *arguments, *ALLOWED, token=WRITER)
    assert ran.code == 2
    assert wording in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_missing_token_is_one_line(hub, out):
    ran = hub.run("push", out, "team/d", *ALLOWED, token="")
    assert ran.code == 2
    assert "HF_TOKEN" in ran.err


# faults on the way


@pytest.mark.parametrize("step", ["last object", "commit"])
def test_a_killed_run_resumes(hub, push, new, step):
    kill_at = {"commit": "commit", "last object": "put" if hub.path == LFS else "shard"}[step]
    command = [sys.executable, "-m", "builder", "push", str(new), "team/d", *ALLOWED]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**hub.env, "HF_TOKEN": WRITER}, stderr=subprocess.DEVNULL
    )
    skip = 2 if kill_at == "put" else 0  # of five parts
    hub.faults.append(Fault(kill_at, skip=skip, run=process.kill))
    assert process.wait() == -signal.SIGKILL
    first = dict(hub.received)
    hub.faults.clear()
    ran = push(new, *ALLOWED)
    assert ran.code == 0, ran.err
    assert ran.reported["read_back"]["rows"] == 30
    sent = sum(map(sum, first.values()))
    assert hub.twice() <= (0 if step == "commit" else sent)
    assert hub.commits_made == 1
    assert set(hub.repos["team/d"].tree()) == listed(new) | {".gitattributes"}


# a dataset on the Hub as an input


def test_a_dataset_of_the_hub_is_built_verified_and_audited_as_it_was_pushed(hub, push, out):
    assert push(out, *ALLOWED).code == 0
    again = out.parent / "again"
    ran = hub.run("build", "hf://team/d", "-o", again, "--json", "--workers", "2", token=WRITER)
    assert ran.code == 0, ran.err
    for path in sorted((out / "data").iterdir()):
        assert (again / "data" / path.name).read_bytes() == path.read_bytes()
    (read,) = json.loads((again / "manifest.json").read_bytes())["inputs"]
    assert read["path"].startswith("team/d@")
    ran = hub.run("verify", "hf://datasets/team/d", "--as-loaded", "--json", token=WRITER)
    assert (ran.code, ran.reported["proven"], ran.reported["findings"]) == (0, 30, {}), ran.err
    ran = hub.run("audit", "hf://team/d", "--json", token=WRITER)
    assert (ran.code, ran.reported["samples"]) == (0, 30), ran.err


@pytest.mark.parametrize("name", ["hf://team/none", "hf://team/d@none"])
def test_a_dataset_that_the_hub_does_not_have_is_one_line(hub, push, out, name):
    assert push(out, *ALLOWED).code == 0
    for command in (["build", name, "-o", out.parent / "again"], ["verify", name], ["audit", name]):
        ran = hub.run(*command, token=WRITER)
        assert ran.code == 2
        assert ran.err.count("\n") == 1
        assert "Traceback" not in ran.err
    assert not (out.parent / "again").exists()


# another Hub


def test_another_hub(tmp_path):
    """With BUILDER_TEST_REPO=OWNER/NAME and a token: the real one, or another (HF_ENDPOINT)."""
    repo = os.environ.get("BUILDER_TEST_REPO")
    if not repo:
        pytest.skip("BUILDER_TEST_REPO names no repository to push to")
    out = build(tmp_path, [f"{tmp_path.name} {number}" for number in range(30)])
    for command in (
        ["push", str(out), repo, *ALLOWED, "--prune"],
        ["push", str(out), repo, *ALLOWED],
        ["verify", f"hf://{repo}", "--as-loaded"],
    ):
        run = [sys.executable, "-m", "builder", *command]
        ran = subprocess.run(run, check=True, cwd=ROOT, capture_output=True, text=True)
    assert "30 of 30 samples verified" in ran.stdout
