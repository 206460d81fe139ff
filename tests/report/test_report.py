"""The report: complete, self-contained, bounded, deterministic; hostile text is inert."""

import base64
import hashlib
import json
import pickle
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages.reports import HOSTILE, Page, audit, dataset, manifest, plain, report_page
from support.runs.builds import build, lines

from builder import cli
from builder.audit.result import Audit, AuditTable, Histogram, Pick
from builder.audit.tables import doubling
from builder.finding import AuditFinding, FindingExample, GateAction
from builder.report import html
from builder.report.charts import histogram_figure, table_html
from builder.report.report import MAX_BYTES, sample_body


def check_closed(data):
    """Checks for one file, with every element closed, nothing to execute or fetch."""
    page = Page(data)
    assert page.open == []
    assert max(page.ids.values()) == 1
    allowed = {"src", "style", "srcdoc", "action", "formaction", "background", "data", "poster"}
    for tag, attributes in page.elements:
        assert tag not in (
            "img",
            "iframe",
            "object",
            "embed",
            "link",
            "base",
            "video",
            "audio",
            "a0",
        )
        assert not allowed & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
        if tag == "a":
            assert attributes["href"].startswith("#")
            assert page.ids[attributes["href"][1:]] == 1
    kinds = Counter(tag for tag, _ in page.elements)
    assert kinds["script"] == kinds["style"] == kinds["h1"] == 1
    return page


def test_build_writes_a_report_that_its_manifest_lists(built):
    data = (built / "report.html").read_bytes()
    listed = {item["path"]: item for item in manifest(built)["files"]}
    assert listed["report.html"]["sha256"] == hashlib.sha256(data).hexdigest()
    page = check_closed(data)
    for section in ("overview", "findings", "charts", "samples", "rejects", "made"):
        assert page.ids[section] == 1
    samples = [item for tag, item in page.elements if item.get("class") == "sample"]
    assert samples


def test_the_policy_allows_the_page_s_own_style_and_script_by_hash_alone(built):
    text = (built / "report.html").read_text(encoding="utf-8")
    policies = [
        attributes["content"]
        for tag, attributes in Page(text.encode()).elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none';")
    assert "unsafe" not in policies[0]
    for kind in ("style", "script"):
        content = re.search(f"<{kind}>(.*?)</{kind}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policies[0]


def test_every_loss_is_named(built):
    ledger = manifest(built)["ledger"]
    page = check_closed((built / "report.html").read_bytes())
    texts = [text.strip() for text in page.texts]
    for part in ("records", "conversations", "calls"):
        for codes in ledger[part].values():
            for code in codes if isinstance(codes, dict) else ():
                assert code in texts
    assert f"{ledger['records']['read']:,}" in texts


def test_every_drawing_has_a_title_and_its_numbers_in_a_table(built, verifier):
    data = report_page(str(built), manifest(built), audit(), verifier.target)
    check_closed(data)
    text = data.decode()
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawings) > 2
    drawings = [drawing for drawing in drawings if "aria-hidden" not in drawing[:60]]
    assert all("<title" in drawing and 'role="img"' in drawing for drawing in drawings)
    assert all("<desc" in drawing for drawing in drawings if 'class="chart"' in drawing[:60])
    for key in ("chart-lengths", "table-mix", "table-plain"):
        figure = re.search(rf'<section class="figure" id="{key}">.*?</section>', text, re.DOTALL)
        assert figure is not None
        assert "<table" in figure[0]
    assert "target 2" in text


def test_what_has_one_value_is_a_line_and_not_a_chart(built, verifier):
    text = report_page(str(built), manifest(built), audit(), verifier.target).decode()
    assert 'id="table-only"' not in text
    single = text[text.index('id="single"') :]
    assert "<dt>Kinds</dt><dd>one kind: samples 4</dd>" in single


def test_findings_show_their_gates_and_link_to_the_samples_on_the_page(built, verifier):
    text = report_page(str(built), manifest(built), audit(), verifier.target).decode()
    assert '<span class="gate change">changed</span>' in text
    assert '<a href="#sample-0">data/train-00000-of-00001.jsonl:1</a>' in text
    assert "AKIA&lt;b&gt;" in text
    assert text.count("near-duplicate pair 1</span>") == 2


def test_without_an_audit_the_page_states_that_none_was_run(built, verifier):
    text = report_page(str(built), manifest(built), None, verifier.target).decode()
    assert "No audit was run for this page" in text


def test_the_page_does_not_depend_on_who_renders_the_samples(built, verifier):
    rendered = []

    def render(samples):
        for picked in samples:
            rendered.append(picked.number)
            yield sample_body(pickle.loads(pickle.dumps(picked)), verifier.target)

    known = report_page(str(built), manifest(built), None, verifier.target)
    assert report_page(str(built), manifest(built), None, None, render=render) == known
    assert rendered


def test_the_trained_text_is_marked_exactly(built, verifier):
    """The text in `mark` is exactly that of the spans in meta/."""
    text = report_page(str(built), manifest(built), None, verifier.target).decode()
    metas = lines(built / "meta/train-00000-of-00001.jsonl")
    rows = lines(built / "data/train-00000-of-00001.jsonl")
    chunks = re.split(r'<details class="sample" id="sample-(\d+)"', text)[1:]
    assert len(chunks) >= 4
    seen = 0
    for number, chunk in zip(map(int, chunks[::2]), chunks[1::2], strict=True):
        messages, tools = rows[number]["messages"], rows[number]["tools"]
        rendering = verifier.target.render(messages, tools)
        expected = [rendering[start:end] for start, end in metas[number]["spans"]]
        pre = re.search(r'<pre class="rendered".*?</pre>', chunk, re.DOTALL)[0]
        marked = [plain(found) for found in re.findall(r"<mark>(.*?)</mark>", pre, re.DOTALL)]
        if max(map(len, expected)) < 6000:
            assert marked == expected
            seen += 1
    assert seen


def test_token_ids_are_those_of_the_tokenizer(built, verifier):
    text = report_page(str(built), manifest(built), None, verifier.target).decode()
    chunk = re.split(r'<details class="sample" id="sample-0"', text)[1]
    tokens = re.search(r'<div class="tokens">(.*?)</div>', chunk, re.DOTALL)[1]
    visible = [int(found) for found in re.findall(r"<small>(\d+)</small>", tokens)]
    line = lines(built / "data/train-00000-of-00001.jsonl")[0]
    rendering = verifier.target.render(line["messages"], line["tools"])
    ids = verifier.target.encode(rendering).ids
    assert visible == (ids if len(ids) <= 400 else ids[:200] + ids[-200:])


def test_hostile_text_is_text(tmp_path, verifier):
    tool = {"type": "function", "function": {"name": HOSTILE[0], "description": HOSTILE[1],
                                             "parameters": {HOSTILE[2]: HOSTILE[3]}}}  # fmt: skip
    name = dataset(tmp_path / "hostile.jsonl", HOSTILE, [tool])
    mean = {"config": {"name": HOSTILE[0]},
            "tokenizer": {"name": HOSTILE[3], "files": {"<b>": "x"}},
            "ledger": {"records": {"read": 5, "used": -1, "ignored": {HOSTILE[1]: 5}},
                       "samples": 8},
            "inputs": ["x"], "versions": {HOSTILE[2]: HOSTILE[2]}}  # fmt: skip
    found = Audit(
        8,
        (AuditFinding(HOSTILE[0], HOSTILE[1], HOSTILE[2], 1, 1, GateAction.drop,
                 tuple(FindingExample(item, item, item, item, item) for item in HOSTILE)),),
        (AuditTable(HOSTILE[2], HOSTILE[4], (HOSTILE[0], HOSTILE[1]),
               ((HOSTILE[3], 2), (HOSTILE[5], 1)), HOSTILE[0], HOSTILE[1], ((HOSTILE[3], 1.0),)),),
        (Histogram(HOSTILE[3], HOSTILE[0], HOSTILE[2], (0, 1, 2), (1, 2), HOSTILE[0]),),
        (Pick(HOSTILE[0], 3), Pick("no such row", 999)),
    )  # fmt: skip
    data = report_page(name, mean, found, verifier.target)
    page = check_closed(data)
    message = "".join(page.texts)
    for text in HOSTILE[:4]:
        assert text in message
    unseen = [char for char in data.decode() if not char.isprintable() and char != "\n"]
    assert set(unseen) <= {"\t"}
    assert r"\u202e" in message
    assert r"\x1b[31mred" in message


@pytest.mark.slow
def test_the_page_is_small_for_any_dataset(tmp_path, verifier):
    """Long lines, many turns, many tools, and characters that grow when they are escaped."""
    contents = ["x" * 3_000_000, "<" * 200_000, "\x1b" * 200_000, "\u202e" * 200_000]
    contents += [f"{number} " + "&\x1b<" * 1_500 for number in range(60)]
    name = dataset(tmp_path / "large.jsonl", contents)
    turns = [{"role": role, "content": "\x1b" * 50} for role in ("user", "assistant")] * 3000
    tools = [{"type": "function", "function": {"name": f"t{at}"}} for at in range(500)]
    with (tmp_path / "large.jsonl").open("a") as stream:
        stream.write(json.dumps({"messages": turns, "tools": tools}) + "\n")
    picks = tuple(Pick("large", row) for row in range(65))
    wide = tuple(AuditTable(f"k{at}", "T" * 500, ("\x1b" * 99, "n"), (("\x1b" * 999, 1),) * 100,
                            "", "n")
                 for at in range(300))  # fmt: skip
    findings = tuple(
        AuditFinding(
            "a", f"code_{at}", "\x1b" * 999, 1, 1, examples=(FindingExample("\x1b" * 999),) * 50
        )
        for at in range(500)
    )
    found = Audit(65, findings, wide, (), picks)
    data = report_page(name, {}, found, verifier.target)
    assert MAX_BYTES // 2 < len(data) < MAX_BYTES
    check_closed(data)
    assert "characters left out" in data.decode()
    assert "charts left out" in data.decode()
    assert "findings left out" in data.decode()


@pytest.mark.parametrize(
    "row",
    [b"", b"null", b"[]", b"{}", b'{"messages": 5}', b'{"messages": [{"role": 1}]}',
     b'{"messages": []}', b'{"messages": [{"role": "\\ud800", "content": "\\ud800"}]}',
     b'{"messages": [{"role": "user", "content": "a"}], "tools": [5, "x", {"function": 3}]}',
     b'{"messages": ' + b"[" * 5000],
)  # fmt: skip
def test_rows_that_are_not_samples_are_shown_as_they_are(tmp_path, verifier, row):
    (tmp_path / "odd.jsonl").write_bytes(row + b"\n" + row + b"\n")
    check_closed(report_page(str(tmp_path / "odd.jsonl"), {}, None, verifier.target))


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "value", [None, 5, "x", [], {"records": 5}, {"records": {"read": "x", "rejected": [1]}}]
)
def test_a_manifest_of_any_shape(built, verifier, value):
    keys = ("inputs", "config", "versions", "tokenizer", "ledger")
    for key in keys:
        check_closed(
            report_page(str(built), {**manifest(built), key: value}, None, verifier.target)
        )


def test_the_same_bytes_each_time(built, verifier):
    reported = manifest(built)
    first = report_page(str(built), reported, audit(), verifier.target)
    del reported["run"], reported["files"]
    assert report_page(str(built), reported, audit(), verifier.target) == first


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_text_is_inert_and_visible(value):
    visible = html.text(value)
    page = Page(visible.encode())
    assert {tag for tag, _ in page.elements} <= {"b"}
    message = "".join(page.texts)
    assert all(char.isprintable() or char in "\n\t" for char in message)
    if all(char.isprintable() or char in "\n\t" for char in value):
        assert message == value


@given(st.lists(st.integers(0, 100_000), min_size=1))
def test_a_doubling_histogram_counts_every_value_in_its_bin(values):
    drawn = doubling("k", "t", "u", values)
    assert sum(drawn.counts) == len(values)
    assert list(drawn.edges) == sorted(set(drawn.edges))
    for low, high, count in zip(drawn.edges[:-1], drawn.edges[1:], drawn.counts, strict=True):
        last = high == drawn.edges[-1]
        assert count == sum(low <= value < high or (last and value == high) for value in values)


def test_a_chart_with_many_bins_loses_no_value():
    drawn = Histogram("k", "t", "u", tuple(range(1001)), tuple([1] * 1000))
    text = histogram_figure(drawn)
    assert "1,000 samples from 0 to 1,000" in text
    assert (
        sum(
            map(
                int,
                re.findall(r"<tr><th scope=\"row\">[^<]*</th><td class=\"num\">(\d+)</td>", text),
            )
        )
        == 1000
    )


def test_a_long_table_states_how_many_rows_are_left_out():
    table = AuditTable("k", "t", ("n", "c"), tuple((f"row {at}", at) for at in range(75)), "", "c")
    assert "and 15 more, not on this page" in table_html(table)


def test_a_run_without_samples_still_has_its_report(tmp_path):
    rejected = {"messages": [{"role": "user", "content": "a"}]}
    rejected["messages"].append({"role": "assistant", "content": "<|im_end|>"})
    (tmp_path / "in.jsonl").write_text(json.dumps(rejected) + "\n")
    assert build(tmp_path / "out", inputs=(tmp_path / "in.jsonl",)) == 1
    page = check_closed((tmp_path / "out" / "report.html").read_bytes())
    assert any("control_tokens" in text for text in page.texts)


def test_the_command_gives_the_bytes_of_the_build(built, tmp_path, capsys):
    out = tmp_path / "r.html"
    assert cli.main(["report", str(built), "-o", str(out), "--json"]) == 0
    message = json.loads(capsys.readouterr().out)
    assert out.read_bytes() == (built / "report.html").read_bytes()
    assert message == {"report": str(out), "bytes": out.stat().st_size}
    assert cli.main(["report", str(tmp_path / "none"), "-o", str(out)]) == 2
    assert cli.main(["report", str(built), "-o", str(tmp_path)]) == 2


def test_a_dataset_without_a_name_has_that_of_its_file_as_title(tmp_path):
    path = tmp_path / "mine.jsonl"
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    path.write_text(json.dumps({"messages": talk, "tools": []}) + "\n", encoding="utf-8")
    assert cli.main(["report", str(path), "-o", str(tmp_path / "r.html"), "--quiet"]) == 0
    assert '<h1 dir="auto">mine.jsonl</h1>' in (tmp_path / "r.html").read_text(encoding="utf-8")
