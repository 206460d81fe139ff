"""Each command does what its function of the API does: the same job through both, compared.

A command without a comparison fails here.
"""

import ast
import asyncio
import html
import json
import re
import sys
import urllib.parse
import urllib.request

import pytest
from aiohttp import web
from support.places import DATA, ROOT
from support.runs.builds import contents, files
from support.runs.commands import run

import builder
from builder.capture.job import body_of, serve
from builder.cli.app import COMMANDS
from builder.export.outcome import result
from builder.push import job

LOG = DATA / "claude-code" / "parallel.jsonl"
CHILD = """
import os, urllib.request
urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", b"{}", timeout=9).read()
"""
UNKNOWN = {"talk": [{"who": "human", "said": "Hi"}, {"who": "bot", "said": "Hello!"}]}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("same") / "out"
    builder.build_dataset(DATA / "codex", out)
    return out


def printed(*arguments, code=0, cwd="."):
    """Returns what a command prints with `--json`."""
    done = run(arguments[0], "--json", *arguments[1:], cwd=cwd)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def same_build(built, folder, _):
    shown = printed("build", DATA / "codex", "-o", folder / "one", "--workers", 1)
    made = builder.build_dataset(DATA / "codex", folder / "other")
    assert files(folder / "one") == files(folder / "other")
    assert shown == {**made.as_json(), "output": str(folder / "one")}
    listed = [(item["name"], item["path"]) for item in printed("build")["stores"]]
    assert [name for name, _ in listed] == [agent for agent, _ in builder.installed_logs()]


def same_verify(built, folder, _):
    bad = folder / "bad.jsonl"
    bad.write_bytes(next(built.glob("data/*.jsonl")).read_bytes() + b'{"messages": 7}\n')
    options = {"require": ["schema", "engine"], "mode": "thinking"}
    command = "--require schema --require engine --mode thinking --masks trl --unit turn"
    shown = printed("verify", bad, *command.split(), code=1)
    reports = []
    summary = builder.verify_dataset(
        bad, options=options, masks=["trl"], unit="turn", on_report=reports.append
    )
    counts = (summary.samples, summary.proven, summary.tokens, summary.turns)
    keys = ("samples", "proven", "tokens", "assistant_turns")
    assert counts == tuple(shown[key] for key in keys)
    assert shown["findings"] == summary.codes == {"format": 1}
    assert shown["warnings"] == summary.warnings
    assert shown["parity"] == {mode: summary.parity[mode] for mode in shown["parity"]}
    assert shown["masks"]["trl"]["samples"] == summary.masks["trl"].samples > 0
    faulty = [(item.file, item.line) for item in reports if item.findings]
    assert [(item["file"], item["line"]) for item in shown["bad"]] == faulty


def same_inspect(built, folder, monkeypatch):
    for options in (["--index", 0], ["--format", "claude-code"]):
        given = {options[0].removeprefix("--"): options[1]}
        assert printed("inspect", LOG, *options) == builder.inspect_log(LOG, **given).to_json()
    assert printed("inspect", DATA) == builder.inspect_log(str(DATA)).to_json()
    log = folder / "talk.jsonl"
    log.write_text(json.dumps(UNKNOWN) + "\n")
    shown = printed("inspect", log, "--suggest-mapping", cwd=folder)
    path = folder / "talk.mapping.yaml"
    suggested = builder.suggest_mapping(log)
    assert path.read_text() == suggested.text
    monkeypatch.chdir(folder)
    assert shown == builder.inspect_log(log, mapping=path.name).to_json()
    assert shown["conversations"] == 1


def same_export(built, folder, _):
    one, other = folder / "one" / "mine", folder / "other" / "mine"  # its name is in configs/
    shown = printed("export", built, "--to", "openai", "-o", one)
    exported = builder.export_dataset(built, "openai", other)
    assert shown == {**result(exported), "variant": "openai"}
    assert contents(one) == contents(other) != {}


def same_push(built, folder, monkeypatch):
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    monkeypatch.setattr(job, "_api", lambda: pytest.fail("looks at the Hub"))
    done = run("push", built, "o/n", "--dry-run", "--json", "--allow", "unknown-license")
    shown = json.loads(done.stdout)
    options = {"dry_run": True, "allow": ["unknown-license"]}
    report = builder.push_dataset(built, "o/n", options=options)
    assert shown["gates"] == report.gates
    assert shown["files"] == [file.path for file in report.files]
    assert [item["code"] for item in shown["refused"]] == [item.code for item in report.refused]
    assert shown["overruled"] == [*report.overruled]
    assert (done.returncode == 0, shown["error"]) == (report.is_done, report.error or None)


def same_report(built, folder, _):
    shown = printed("report", built, "-o", folder / "one.html")
    page = builder.report_dataset(built, folder / "other.html")
    assert page.read_bytes() == (folder / "one.html").read_bytes()
    assert shown == {"report": str(folder / "one.html"), "bytes": page.stat().st_size}


def same_view(built, folder, monkeypatch):
    def pages(url):
        """Returns the first page and that of the first sample, without address and token."""
        first = ""
        while 'href="row' not in first or "indexed so far" in first:  # the index takes a moment
            with urllib.request.urlopen(url) as answer:
                first = answer.read().decode()
        sample = re.search(r'href="(row[^"]*)"', first)[1]
        with urllib.request.urlopen(urllib.parse.urljoin(url, html.unescape(sample))) as answer:
            second = answer.read().decode()
        token = urllib.parse.urlsplit(url).path.strip("/")
        return [text.replace(token, "TOKEN") for text in (first, second)]

    def fetch(url):
        seen.extend(pages(url))
        raise KeyboardInterrupt

    seen = []
    monkeypatch.setattr("webbrowser.open", fetch)
    review = folder / "review.jsonl"
    sample = json.loads(next(built.glob("meta/*.jsonl")).read_text().splitlines()[0])["id"]
    review.write_text(json.dumps({"id": sample, "decision": "reject", "note": "Odd."}) + "\n")
    with pytest.raises(SystemExit, match="130"):  # as after Ctrl-C
        run("view", built, "--review", review)
    with builder.view_dataset(built, review=review) as view:
        assert seen == pages(view.url)


def same_audit(built, folder, _):
    shown = printed("audit", built)
    audited = json.loads(json.dumps(builder.audit_dataset(built).as_json()))
    assert shown == {"dataset": str(built), **audited, "failed": [], "passed": []}


def same_formats(built, folder, _):
    readers = builder.available_formats()
    assert {name: item["summary"] for name, item in printed("formats").items()} == {
        name: reader.summary for name, reader in readers.items()
    }
    assert printed("formats", "--explain", DATA) == dict(builder.recognise_all(DATA))


def same_collect(built, folder, _):
    shown = printed("collect", DATA / "codex", "-o", folder / "one")
    collected = builder.collect_logs(folder / "other", DATA / "codex")
    assert shown == json.loads(json.dumps(collected.counts))
    assert contents(folder / "one") == contents(folder / "other") != {}


def same_capture(built, folder, monkeypatch):
    async def main(job):
        async def handler(request):
            await body_of(request)
            return web.json_response({"choices": []})

        provider = await serve(handler)
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{provider.port}/v1")
        done = await asyncio.to_thread(job)
        await provider.close()
        return done

    def exchange(path):
        (line,) = path.read_text().splitlines()
        row = json.loads(line)
        return row["request"]["body"], row["response"]["body"]

    command = [sys.executable, "-c", CHILD]
    one = asyncio.run(main(lambda: printed("capture", "-o", folder / "one", "--", *command)))
    code, kept = asyncio.run(main(lambda: builder.capture_logs(command, folder / "other")))
    assert (code, kept.written, kept.lost) == (0, one["exchanges"], one["lost"]) == (0, 1, 0)
    (first,), (second,) = ([*(folder / name).glob("*.jsonl")] for name in ("one", "other"))
    assert exchange(first) == exchange(second)


def same_merge(built, folder, _):
    shown = printed("merge", built, "-o", folder / "one", "--workers", 1)
    merged = builder.merge_datasets([built], folder / "other")
    assert files(folder / "one") == files(folder / "other")
    assert shown == {**merged.as_json(), "output": str(folder / "one")}


def same_diff(built, folder, _):
    rows = [{"messages": [{"role": "user", "content": "Hi"}]}]
    other = folder / "other.jsonl"
    other.write_text(json.dumps(rows[0]) + "\n")
    assert printed("diff", built, other, code=1) == builder.diff_datasets(built, rows).to_json()


JOBS = [
    "audit",
    "build",
    "capture",
    "collect",
    "export",
    "push",
    "readers",
    "report",
    "verify",
    "view",
]
"""The rooms whose work a command does through the API."""

PRINTED = {"left_out_line", "preloading", "result"}
"""Functions of these rooms that put results into words, or prepare the process."""


def test_commands_call_the_api_and_no_job_of_a_room():
    called = {
        (path.name, item.name)
        for path in sorted((ROOT / "builder" / "cli").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[1:2]
        for item in node.names
        if node.module.split(".")[1] in JOBS and item.name.islower()
    }
    assert not {(file, name) for file, name in called if name not in PRINTED}
    assert {name for _, name in called} == PRINTED, "others are not needed"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_what_its_function_does(command, built, tmp_path, monkeypatch):
    compare = globals().get(f"same_{command}")
    assert compare is not None, "compare it with its function"
    compare(built, tmp_path, monkeypatch)
