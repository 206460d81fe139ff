"""`builder view`: any row of any dataset without reading it whole, on this machine only."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from urllib.parse import quote, urlsplit

import pytest
from support.pages.reports import HOSTILE, Page, dataset, manifest
from support.pages.viewer import served, viewer_of
from support.places import DATA
from support.runs.builds import build, lines

from builder.dataset.store import Address
from builder.view.viewer import PAGE_ROWS


def ask(server, path, *, host=None, method="GET"):
    """Returns (status, headers, body) of a request for a path below the token."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    begin = urlsplit(server.url).path
    headers = {"Host": host} if host is not None else {}
    connection.request(method, path if path.startswith("/") else begin + path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Returns a folder like one of `build`, with two files of 300 and 10 rows and their meta/."""
    folder = tmp_path_factory.mktemp("many") / "ds"
    (folder / "data").mkdir(parents=True)
    (folder / "meta").mkdir()
    number = 0
    for file, count in enumerate((300, 10)):
        name = f"train-{file:05d}-of-00002.jsonl"
        data, meta = [], []
        for _ in range(count):
            tools = [{"type": "function", "function": {"name": f"tool_{number % 7}"}}]
            call = f'<tool_call>\n{{"name": "tool_{number % 7}", "arguments": {{}}}}\n</tool_call>'
            messages = [
                {"role": "user", "content": f"question {number}"},
                {"role": "assistant", "content": f"answer {number} Ärger\n{call}"},
            ]
            data.append(json.dumps({"messages": messages, "tools": tools}, ensure_ascii=False))
            reported = {"id": f"{number:064x}", "source": f"log-{number // 100}.jsonl"}
            reported |= {"tokens": number * 10, "calls": 1, "format": "ab"[number % 2]}
            meta.append(json.dumps({**reported, "changes": {"cut": 1} if number == 305 else {}}))
            number += 1
        (folder / "data" / name).write_text("\n".join(data) + "\n", encoding="utf-8")
        (folder / "meta" / name).write_text("\n".join(meta) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def large(many, tmp_path_factory):
    with served(str(many), {}, tmp_path_factory.mktemp("scratch")) as running:
        yield running


def rows_on(body):
    return re.findall(r'class="asked" dir="auto" href="row\?[^"]*?at=([\d.]+)"', body.decode())


# -- who may ask --------------------------------------------------------------------------------


def test_nothing_is_served_without_the_token(server):
    wrong = server.token[:-1] + ("A" if server.token[-1] != "A" else "B")
    for path in ("/", "/report.html", f"/{wrong}/", f"/{wrong}/row?at=0.0", "//", "/%00", "/é/"):
        status, _, body = ask(server, quote(path, safe="/?=%"))
        assert (status, body) == (404, b"Not found.\n"), path
    assert ask(server, "")[0] == 200
    assert len(server.token) >= 32


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{}", "127.0.0.1", "", "[::1]:{}"])
def test_a_foreign_host_name_gets_nothing(server, host):
    status, _, body = ask(server, "", host=host.format(server.server_port))
    assert (status, body) == (404, b"Not found.\n")
    assert ask(server, "", host=f"localhost:{server.server_port}")[0] == 200


def test_every_response_forbids_what_it_does_not_need(server):
    for path in ("", "row?at=0.0", "raw?at=0.0", "overview", "row?at=9.9", "rejects"):
        _, headers, _ = ask(server, path)
        assert headers["Content-Security-Policy"].startswith("default-src 'none';")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"


def test_only_get_and_head_are_allowed(server):
    assert ask(server, "", method="PUT")[0] == 501
    assert ask(server, "", method="HEAD")[::2] == (200, b"")


# -- pages --------------------------------------------------------------------------------------


def test_every_row_can_be_reached_by_paging(large):
    found, path = [], ""
    while True:
        status, _, body = ask(large, path)
        assert status == 200
        found += rows_on(body)
        assert len(rows_on(body)) <= PAGE_ROWS
        link = re.search(r'href="(\?page=\d+)" rel="next">Next page<', body.decode())
        if link is None:
            break
        path = link[1]
    assert found == [f"0.{row}" for row in range(300)] + [f"1.{row}" for row in range(10)]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"text": "question 17"}, ["0.17", *(f"0.{row}" for row in range(170, 180))]),
        ({"text": "ärger", "source": "log-3"}, [f"1.{row}" for row in range(10)]),
        ({"source": "log-3"}, [f"1.{row}" for row in range(10)]),
        ({"code": "cut"}, ["1.5"]),
        ({"code": "nothing"}, []),
        ({"text": "question 30", "tool": "tool_2"}, ["0.30", "1.3"]),
        ({"tool": "no_such"}, []),
        ({"tool": "tool_3", "source": "log-3.jsonl"}, ["1.4"]),
        ({"format": "b", "code": "cut"}, ["1.5"]),
        ({"format": "a", "code": "cut"}, []),
        ({"sort": "-length", "source": "log-3"}, [f"1.{row}" for row in range(9, -1, -1)]),
        (
            {"sort": "length", "text": "ANSWER 29", "length": "2,048 to 4,096"},
            [f"0.{row}" for row in range(290, 300)],
        ),
        ({"context": "proven"}, []),
        ({"review": "accepted"}, []),
        ({"sort": "no such", "text": "question 305"}, ["1.5"]),
    ],
)
def test_search(large, asked, expected):
    query = "&".join(f"{key}={quote(value)}" for key, value in asked.items())
    assert rows_on(ask(large, f"?{query}")[2]) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("0", "0.0"),
        ("#299", "0.299"),
        ("300", "1.0"),
        ("309", "1.9"),
        ("data/train-00001-of-00002.jsonl:3", "1.2"),
        ("train-00000-of-00002.jsonl:300", "0.299"),
        (f"{303:064x}", "1.3"),
    ],
)
def test_go_to(large, wanted, expected):
    status, headers, _ = ask(large, f"go?to={quote(wanted)}")
    assert (status, headers.get("Location")) == (303, f"row?at={expected}")


@pytest.mark.parametrize("wanted", ["310", "x", "", "-1", "9" * 400, "a.jsonl:1", "ffffff" * 9])
def test_go_to_a_missing_row(large, wanted):
    status, _, body = ask(large, f"go?to={quote(wanted)}")
    assert status == 404
    assert b"There is no such sample" in body


def test_a_sample_is_shown_as_in_the_report_and_raw(server, built):
    row = lines(built / "data/train-00000-of-00001.jsonl")[1]
    body = ask(server, "row?at=0.1&side=text")[2].decode()
    assert "these are the bytes that the build verified" in body
    assert "<mark>" in body
    status, headers, raw = ask(server, "raw?at=0.1")
    assert (status, headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert json.loads(raw) == row


def test_overview_and_rejects(tmp_path):
    rejected = {"messages": [{"role": "user", "content": "<script>"}]}
    rejected["messages"].append({"role": "assistant", "content": "<|im_end|>"})
    (tmp_path / "in.jsonl").write_text(json.dumps(rejected) + "\n", encoding="utf-8")
    build(tmp_path / "out", inputs=(tmp_path / "in.jsonl",))
    (tmp_path / "out" / "data").mkdir(exist_ok=True)
    (tmp_path / "out" / "data" / "train-00000-of-00001.jsonl").write_bytes(b"")
    reported = manifest(tmp_path / "out")
    with served(str(tmp_path / "out"), reported, tmp_path) as running:
        assert 'href="rejects?code=control_tokens"' in ask(running, "rejects")[2].decode()
        assert "in.jsonl" in ask(running, "rejects?code=control_tokens")[2].decode()
        assert "0 of 1 rejects" in ask(running, "rejects?code=no_such")[2].decode()
        assert "1 conversation rejected" in ask(running, "overview")[2].decode()
        assert b"0 of 0 samples" in ask(running, "")[2]
        assert ask(running, "row?at=0.0")[0] == 404


@pytest.mark.parametrize(
    "path",
    ["?at=x", "?at=-1.-1", "?at=99999999.0", "?at=0.99999999999", "row?at=7.7", "raw?at=0.x",
     "rejects?from=99999999999999", "?text=%ff%00&tool=%22", "../../etc/passwd", "row", "none",
     "?" + "a=1&" * 500, "?at=0.0?at=1", "//[", "/[::1", "raw?at=0.0.0", "row?at=-1.0"],
)  # fmt: skip
def test_any_address_gets_a_response(large, capsys, path):
    status, _, _ = ask(large, path)
    assert status in (200, 303, 400, 404)
    assert capsys.readouterr().err == ""


def test_hostile_rows_are_text(tmp_path):
    name = dataset(tmp_path / "hostile.jsonl", HOSTILE)
    with (tmp_path / "hostile.jsonl").open("ab") as stream:
        stream.write(b"\n\n\xff\xfe no JSON <script>\n" + b'"' + b"x" * 5_000_000 + b'"\n')
    with served(name, {"config": {"name": HOSTILE[0]}}, tmp_path) as running:
        for path in ("", *(f"row?at=0.{row}" for row in range(len(HOSTILE) + 2))):
            status, _, body = ask(running, path)
            assert status == 200
            assert len(body) < 7_000_000
            page = Page(body)
            assert page.open == []
            assert not {"img", "a0"} & {tag for tag, _ in page.elements}
            assert sum(tag == "script" for tag, _ in page.elements) == 2
            for _, attributes in page.elements:
                assert not [key for key in attributes if key.startswith("on") or key == "style"]


# -- raw records --------------------------------------------------------------------------------


def test_the_raw_records_of_a_sample_are_on_its_page(tmp_path, server):
    out = tmp_path / "out"
    assert build(out, inputs=(DATA / "codex",)) == 0
    viewer = viewer_of(out, {}, tmp_path, DATA / "codex")
    page = viewer.sample(Address(0, 0), {"side": "records"}).decode()
    viewer.close()
    assert "session_meta" in page
    assert 'href="#record-' in page  # a turn links to the record with its text
    assert "Raw records" not in ask(server, "row?at=0.0")[2].decode()


# -- rows by number -----------------------------------------------------------------------------


# -- the command --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_ctrl_c_ends_it_cleanly(built, tmp_path, name):
    command = [sys.executable, "-m", "builder", "view", str(built), "--no-open", "--json"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        url = json.loads(process.stdout.readline())["url"]
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        connection.request("GET", parts.path)
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(getattr(signal, name))
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_a_used_port_and_a_missing_dataset_are_one_line(server, built, capsys):
    from builder import cli

    assert cli.main(["view", str(built), "--no-open", "--port", str(server.server_port)]) == 2
    assert "--port" in capsys.readouterr().err
    assert cli.main(["view", "no/such/folder", "--no-open"]) == 2
    assert cli.main(["view", str(built), "--logs", "no/such", "--no-open"]) == 2


def test_next_leads_to_the_next_search_result(large):
    """Every seventh row calls tool_3: the links follow the search, and lead back to it."""
    listed = ask(large, "?tool=tool_3")[2].decode()
    first = re.search(r'href="(row\?tool=tool_3&amp;at=0\.3)"', listed)
    assert first is not None
    page = ask(large, first[1].replace("&amp;", "&"))[2].decode()
    assert re.search(r'href="row\?tool=tool_3&amp;at=0\.10" rel="next"', page)
    assert "#3 (1 of 44 found)" in page
    assert "#3 (4 of 310)" in ask(large, "row?at=0.3")[2].decode()
    assert 'href="?tool=tool_3"' in page
    assert 'rel="next"' not in ask(large, "row?tool=tool_3&at=1.4")[2].decode()
    assert "not in the result" in ask(large, "row?tool=tool_3&at=0.4")[2].decode()
    assert 'rel="next"' in ask(large, "row?at=0.3")[2].decode()
    turned = ask(large, "row?sort=-length&at=1.9")[2].decode()
    assert re.search(r'href="row\?sort=-length&amp;at=1\.8" rel="next"', turned)
