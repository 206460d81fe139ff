"""Datasets of any form: files, compressed or not, Parquet, folders made by `build` and others."""

import gzip
import hashlib
import json
import shutil

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.places import ROOT
from support.runs.builds import build, lines

from builder.jsonio import JsonFault, dumps, loads
from builder.parallel import pool
from builder.problem import UsageError
from builder.sources.stream import zstd
from builder.verify.dataset import verify_dataset
from builder.verify.summary import Summary

TOOLS = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}},
    },
    {"type": "function", "function": {"name": "g", "parameters": {"enum": [1, "x", None]}}},
]
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def row(number):
    contents = [f"hi {number}", CALL, "<tool_response>\n1\n</tool_response>", "Zoë"]
    roles = ["user", "assistant"] * 2
    messages = [{"role": r, "content": c} for r, c in zip(roles, contents, strict=True)]
    return {"messages": messages, "tools": TOOLS}


ROWS = [row(number) for number in range(3)]
LINES = [dumps(row).encode() for row in ROWS]
DATA = b"".join(line + b"\n" for line in LINES)


def test_workers_report_as_one_process_does(tmp_path, verifier, monkeypatch, pooled):
    monkeypatch.setattr(pool, "BATCH_ROWS", 2)
    lines = [b"no json" if at % 7 == 0 else LINES[at % len(LINES)] for at in range(40)]
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join(lines))
    one = list(verify_dataset(str(tmp_path), verifier, None))
    assert [report.line for report in one] == list(range(1, 41))
    assert sum(bool(report.findings) for report in one) >= 6
    assert list(verify_dataset(str(tmp_path), verifier, None, 3)) == one
    assert "_reports" in pooled


def verify(path, verifier, unit=None):
    """Returns (summary, {(file, line): codes} of the bad lines)."""
    summary = Summary()
    wrong = {}
    for report in verify_dataset(str(path), verifier, unit):
        summary.add(report)
        if report.findings:
            wrong[report.file, report.line] = {finding.code for finding in report.findings}
    return summary, wrong


def parquet(tools_type, change=lambda tools: tools):
    def write(path):
        messages = datasets.List(
            {"role": datasets.Value("string"), "content": datasets.Value("string")}
        )
        features = datasets.Features({"messages": messages, "tools": tools_type})
        rows = [{**item, "tools": change(item["tools"])} for item in ROWS]
        datasets.disable_progress_bars()
        datasets.Dataset.from_list(rows, features=features).to_parquet(path)

    return write


FORMS = {
    "a.jsonl": lambda path: path.write_bytes(DATA),
    "a.jsonl.gz": lambda path: path.write_bytes(gzip.compress(DATA)),
    "a.jsonl.zst": lambda path: path.write_bytes(zstd.compress(DATA)),
    "json-lists.parquet": parquet(datasets.List(datasets.Json())),
    "json.parquet": parquet(datasets.Json()),
    "text.parquet": parquet(datasets.Value("string"), json.dumps),
    "parquet-without-suffix": parquet(datasets.Json()),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_read(tmp_path, verifier, name):
    FORMS[name](tmp_path / name)
    summary, wrong = verify(tmp_path / name, verifier)
    assert wrong == {}
    assert (summary.samples, summary.proven) == (3, 3)


def test_a_folder_of_data_files_is_read_whole(tmp_path, verifier):
    for name in ("a.jsonl", "a.jsonl.gz", "json.parquet"):
        FORMS[name](tmp_path / name)
    (tmp_path / "notes.txt").write_text("no data")
    summary, wrong = verify(tmp_path, verifier)
    assert wrong == {}
    assert summary.proven == 9


BROKEN = {
    "truncated.jsonl.gz": gzip.compress(DATA)[:-12],
    "truncated.parquet": b"PAR1 and nothing else",
    "empty.parquet": b"",
}


@pytest.mark.parametrize("name", BROKEN)
def test_unreadable_rows_are_a_finding(tmp_path, verifier, name):
    (tmp_path / name).write_bytes(BROKEN[name])
    assert "format" in verify(tmp_path / name, verifier)[0].codes


BAD_LINES = {
    "not JSON": b"{",
    "invalid UTF-8": LINES[0].replace(b"hi", b"\xff"),
    "NaN": LINES[0].replace(b'"enum": [1', b'"enum": [NaN'),
    "deep nesting": b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "lone surrogate": LINES[0].replace(b"hi", b"\\ud800"),
    "a huge integer": LINES[0].replace(b'"enum": [1', b'"enum": [' + b"7" * 5000),
    "null": b"null",
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named_and_the_others_are_verified(tmp_path, verifier, name):
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINES[0] + b"\n\n" + BAD_LINES[name] + b"\r\n" + LINES[1])
    summary, wrong = verify(path, verifier)
    assert wrong == {("a.jsonl", 3): {"format"}}
    assert (summary.samples, summary.proven) == (3, 2)


@pytest.mark.parametrize("name", ["nowhere.jsonl", "no/where.jsonl.gz", "no/where/at/all"])
def test_a_missing_dataset_is_one_line(tmp_path, verifier, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no such file or folder"):
        verify(name, verifier)


# -- folders made by `build` -------------------------------------------------------------------

NAME = "train-00000-of-00001.jsonl"


def make(folder, verifier, lines=LINES, unit="conversation", **manifest):
    """Writes a folder like one of `build`, as far as verifying needs it."""
    for part in ("data", "meta"):
        (folder / part).mkdir(parents=True)
    (folder / "data" / NAME).write_bytes(b"".join(line + b"\n" for line in lines))
    about = [
        {"id": hashlib.sha256(line).hexdigest(), "unit": unit, "render_sha256": sha256(line, unit)}
        for line in lines
    ]
    (folder / "meta" / NAME).write_text("".join(json.dumps(item) + "\n" for item in about))
    sealed(folder, verifier, **manifest)
    return folder


RENDERED = {}


def sha256(line, unit):
    from builder.dataset.forms import read_sample
    from builder.verify.verifier import verifier_for

    if (line, unit) not in RENDERED:
        verdict = verifier_for("qwen3").check(read_sample(loads(line)))
        RENDERED[line, unit] = verdict.render_sha256
    return RENDERED[line, unit]


def sealed(folder, verifier, **more):
    files = [
        {
            "path": path.relative_to(folder).as_posix(),
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in sorted(folder.rglob("*.jsonl"))
    ]
    tokenizer = {"template_sha256": verifier.target.template_sha256}
    manifest = {"files": files, "tokenizer": tokenizer, **more}
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.fixture
def built(tmp_path, verifier):
    return make(tmp_path / "out", verifier)


def test_a_built_folder_is_proven(built, verifier):
    summary, wrong = verify(built, verifier)
    assert (summary.proven, wrong) == (3, {})


def edit(path, change):
    path.write_bytes(change(path.read_bytes()))


def other_rendering(folder, verifier):
    path = folder / "meta" / NAME
    edit(path, lambda data: data.replace(b'"render_sha256": "', b'"render_sha256": "0', 1))
    sealed(folder, verifier)


CHANGES = {
    "a line's words": (
        lambda out, _: edit(out / "data" / NAME, lambda data: data.replace(b"hi 1", b"ho 1")),
        {(f"data/{NAME}", 0), (f"data/{NAME}", 2)},
    ),
    "a line's spaces": (
        lambda out, _: edit(out / "data" / NAME, lambda data: data.replace(b", ", b",", 1)),
        {(f"data/{NAME}", 0), (f"data/{NAME}", 1)},
    ),
    "a blank line added": (
        lambda out, _: edit(out / "data" / NAME, lambda data: data + b"\n"),
        {(f"data/{NAME}", 0)},
    ),
    "lines swapped": (
        lambda out, _: edit(out / "data" / NAME, lambda _: b"\n".join([*LINES[::-1], b""])),
        {(f"data/{NAME}", 0), (f"data/{NAME}", 1), (f"data/{NAME}", 3)},
    ),
    "a line that is not UTF-8": (
        lambda out, _: edit(out / "data" / NAME, lambda data: data.replace(b"hi 1", b"hi \xff")),
        {(f"data/{NAME}", 0), (f"data/{NAME}", 2)},
    ),
    "a line repeated": (
        lambda out, _: edit(out / "data" / NAME, lambda data: data + LINES[2] + b"\n"),
        {(f"data/{NAME}", 0), (f"data/{NAME}", 4)},
    ),
    "the last line cut": (
        lambda out, _: edit(out / "data" / NAME, lambda data: b"\n".join(LINES[:2]) + b"\n"),
        {(f"data/{NAME}", 0), (f"data/{NAME}", 3)},
    ),
    "another rendering in meta": (other_rendering, {(f"data/{NAME}", 1)}),
    "no meta": (
        lambda out, _: (out / "meta" / NAME).unlink(),
        {(f"meta/{NAME}", 0), *((f"data/{NAME}", line) for line in (1, 2, 3))},
    ),
    "no data": (
        lambda out, _: (out / "data" / NAME).unlink(),
        {(f"data/{NAME}", 0), (f"meta/{NAME}", 0)},
    ),
    "a file added": (
        lambda out, _: (out / "data" / "more.jsonl").write_bytes(b""),
        {("data/more.jsonl", 0)},
    ),
    "meta without data": (
        lambda out, _: (out / "meta" / "more.jsonl").write_bytes(b"{}\n"),
        {("meta/more.jsonl", 0)},
    ),
    "no manifest": (
        lambda out, _: (out / "manifest.json").unlink(),
        {("manifest.json", 0), (f"data/{NAME}", 0), (f"meta/{NAME}", 0)},
    ),
    "a manifest that is too deep": (
        lambda out, _: (out / "manifest.json").write_text("[" * 100_000),
        {("manifest.json", 0), (f"data/{NAME}", 0), (f"meta/{NAME}", 0)},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_in_a_folder_is_detected_and_its_place_named(built, verifier, name):
    change, places = CHANGES[name]
    change(built, verifier)
    _, wrong = verify(built, verifier)
    assert set(wrong) == places
    assert "changed" in set.union(*wrong.values()) <= {"changed", "repeated", "format"}


def test_a_manifest_cannot_name_files_outside_the_folder(tmp_path, verifier):
    (tmp_path / "secret").write_text("x")
    names = ["../secret", str(tmp_path / "secret"), "a\x00b", "data"]
    files = [{"path": name, "sha256": hashlib.sha256(b"x").hexdigest()} for name in names]
    built = make(tmp_path / "out", verifier, files=files)
    _, wrong = verify(built, verifier)
    assert {(name, 0) for name in names} <= set(wrong)


def test_the_recorded_rendering_is_not_required_of_another_template(built, verifier):
    edit(built / "meta" / NAME, lambda data: data.replace(b'"render_sha256": "', b'"x": "'))
    sealed(built, verifier, tokenizer={"template_sha256": "0" * 64})
    assert verify(built, verifier)[1] == {}


@given(st.data())
def test_corruption_is_detected_or_harmless(verifier, tmp_path_factory, data):
    """Any change of a data file is detected; a change of a line's content at its line."""
    root = tmp_path_factory.mktemp("damage", numbered=True)
    folder = make(root / "out", verifier)
    at = data.draw(st.integers(0, len(DATA) - 1))
    cut = data.draw(st.integers(0, 3))
    more = data.draw(st.one_of(st.binary(max_size=3), st.sampled_from([b"\n", b"<", b"\\u0061"])))
    changed = DATA[:at] + more + DATA[at + cut :]
    (folder / "data" / NAME).write_bytes(changed)
    _, wrong = verify(folder, verifier)
    shutil.rmtree(root)
    assert bool(wrong) == (changed != DATA)
    if changed.count(b"\n") == len(LINES):
        for number, (was, now) in enumerate(zip(LINES, changed.split(b"\n"), strict=False), 1):
            assert content_of(was) == content_of(now) or (f"data/{NAME}", number) in wrong


def content_of(line):
    try:
        return dumps(loads(line))
    except JsonFault as fault:
        return fault.code


STATED = {
    "tokens": lambda meta: meta["tokens"] + 1,
    "chars": lambda meta: meta["chars"] - 1,
    "calls": lambda meta: meta["calls"] + 1,
    "parity": lambda meta: {**meta["parity"], "thinking": 99},
    "spans": lambda meta: [[0, 1], *meta["spans"][1:]],
    "assistant_turns": lambda meta: meta["assistant_turns"] + 1,
    "unit": lambda _: "epoch",
    "context": lambda _: {"level": "partial", "missing": []},
}


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", STATED)
def test_every_number_that_meta_states_is_recomputed(tmp_path, verifier, name):
    """Even if the manifest was adjusted to the edit."""
    assert build(tmp_path / "out", inputs=(ROOT / "data" / "openai-chat",)) == 0
    (path,) = (tmp_path / "out" / "meta").iterdir()
    rows = lines(path)
    edited = {**rows[0], name: STATED[name](rows[0])}
    path.write_text("".join(json.dumps(row) + "\n" for row in [edited, *rows[1:]]))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    for item in manifest["files"]:
        if item["path"].startswith("meta/"):
            item["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    reports = list(verify_dataset(str(tmp_path / "out"), verifier, None))
    (bad,) = [item for item in reports if item.findings]
    assert bad.line == 1
    assert {finding.code for finding in bad.findings} == {"changed"}
    assert name.rstrip("s") in bad.findings[0].message


def test_a_repeated_row_of_a_foreign_dataset_is_a_warning(tmp_path, verifier):
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join([LINES[0], LINES[1], LINES[0]]))
    reports = list(verify_dataset(str(tmp_path / "rows.jsonl"), verifier, None))
    assert [[item.code for item in report.warnings] for report in reports] == [[], [], ["repeated"]]
    assert reports[2].warnings[0].message == "the same row as rows.jsonl:1"


@pytest.mark.parametrize("tools", [json.dumps(TOOLS), [json.dumps(tool) for tool in TOOLS]])
def test_tools_as_json_text_in_a_jsonl_file_are_converted_and_the_refusal_is_a_warning(
    tmp_path, verifier, tools
):
    """Hugging Face is the oracle: the loader keeps the text, and the template raises."""
    record = {**row(0), "tools": tools}
    (tmp_path / "rows.jsonl").write_text(json.dumps(record) + "\n")
    loaded = datasets.load_dataset(
        "json", data_files=str(tmp_path / "rows.jsonl"), cache_dir=str(tmp_path / "cache")
    )["train"][0]
    with pytest.raises(ValueError, match="Tools should either be"):
        verifier.target.tokenizer.apply_chat_template(
            loaded["messages"], tools=loaded["tools"], tokenize=False
        )
    (report,) = verify_dataset(str(tmp_path / "rows.jsonl"), verifier, None)
    assert (report.findings, report.form) == ((), "messages-str")
    assert [finding.code for finding in report.warnings] == ["as-written"]
