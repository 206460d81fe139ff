"""The review in the viewer: who may write, what is stored, and its effect on a build."""

import hashlib
import http.client
import json
import re
import threading
from urllib.parse import urlencode, urlsplit

import pytest
from support.pages.reports import manifest
from support.pages.viewer import served, viewer_of
from support.runs.builds import lines

from builder import cli
from builder.dataset.review import Decision, read_review
from builder.view.review_file import ReviewFile, review_path
from builder.view.server import MAX_FORM


def post(server, fields, *, path="review", **headers):
    """Returns (status, headers) of a form posted as by a page of the server."""
    parts = urlsplit(server.url)
    body = fields if isinstance(fields, bytes) else urlencode(fields).encode()
    given = {
        "Origin": f"http://127.0.0.1:{parts.port}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Content-Length": str(len(body)),
    }
    given |= {key.replace("_", "-"): value for key, value in headers.items()}
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.putrequest("POST", parts.path + path, skip_host="Host" in given)
    for key, value in given.items():
        if value is not None:
            connection.putheader(key, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders())


def get(server, path):
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.request("GET", parts.path + path)
    body = connection.getresponse().read().decode()
    connection.close()
    return body


@pytest.fixture
def reviewed(built, tmp_path):
    with served(built, manifest(built), tmp_path) as server:
        yield server, tmp_path / "r.review.jsonl"


def ids(built):
    return [line["id"] for line in lines(built / "meta" / "train-00000-of-00001.jsonl")]


def test_a_decision_is_stored_displayed_filtered_and_withdrawn(built, reviewed):
    server, path = reviewed
    first, second, _ = ids(built)
    form = {"at": "0.1", "decision": "reject", "note": " <b>wrong</b>\r\ntool ", "text": "a"}
    status, headers = post(server, form)
    assert (status, headers["Location"]) == (303, "row?text=a&at=0.2")
    assert post(server, {"at": "0.0", "decision": "accept"})[0] == 303
    expected = {first: Decision("accept"), second: Decision("reject", "<b>wrong</b>\ntool")}
    assert read_review(path).decisions == expected
    assert [line["id"] for line in lines(path)] == sorted([first, second])
    page = get(server, "row?at=0.1")
    assert "&lt;b&gt;wrong&lt;/b&gt;" in page
    assert "<b>wrong" not in page
    assert 'aria-pressed="true" class="reject"' in page
    assert 'class="state rejected"' in get(server, "?review=rejected")
    assert "1 of 3 samples" in get(server, "?review=undecided")
    assert "1 of 3 samples" in get(server, "?review=with+a+note")
    # The note of a withdrawn decision stays; without either, nothing is left.
    assert post(server, {"at": "0.1", "decision": "none"})[0] == 303
    assert read_review(path).decisions[second] == Decision("", "<b>wrong</b>\ntool")
    assert post(server, {"at": "0.1", "decision": "note", "note": ""})[0] == 303
    assert list(read_review(path).decisions) == [first]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": None}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Host": "evil.example"}, 404),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content_Length": str(MAX_FORM + 1)}, 413),
        ({"Content_Length": "0"}, 413),
        ({"Content_Length": "-5"}, 413),
        ({"Content_Length": "x"}, 413),
        ({"Content_Length": None}, 413),
        ({"path": "samples"}, 404),
        ({"path": "../review"}, 404),
    ],
)
def test_only_forms_of_the_viewers_own_pages_are_accepted(reviewed, headers, status):
    server, path = reviewed
    given = dict(headers)
    where = given.pop("path", "review")
    assert post(server, {"at": "0.0", "decision": "accept"}, path=where, **given)[0] == status
    assert not path.exists()


@pytest.mark.parametrize(
    "form",
    [{}, {"at": "0.0"}, {"at": "9.9", "decision": "accept"}, {"at": "x", "decision": "accept"},
     {"at": "0.0", "decision": "maybe"}, b"\xff\xfe%zz=&&&=", b"a=1&" * 5000],
)  # fmt: skip
def test_a_form_without_a_decision_changes_nothing(reviewed, form):
    server, path = reviewed
    assert post(server, form)[0] in (400, 413)
    assert not path.exists()


def test_decisions_of_another_program_are_merged_and_not_lost(built, reviewed):
    server, path = reviewed
    first, second, third = ids(built)
    assert post(server, {"at": "0.0", "decision": "accept"})[0] == 303
    other = ReviewFile(path)
    other.decide({second: Decision("reject", "elsewhere")})
    assert "1 of 3 samples" in get(server, "?review=rejected")
    assert post(server, {"at": "0.2", "decision": "accept"})[0] == 303
    assert set(other.decisions) == {first, second, third}


def test_concurrent_writers_lose_nothing(tmp_path):
    files = [ReviewFile(tmp_path / "r.jsonl") for _ in range(3)]

    def write(number):
        for at in range(10):
            files[number].decide({f"{number}-{at}": Decision("accept")})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_review(tmp_path / "r.jsonl").decisions) == 30


def test_an_invalid_review_is_a_message_and_is_not_overwritten(built, reviewed, capsys):
    server, path = reviewed
    path.write_text("{broken\n")
    assert post(server, {"at": "0.0", "decision": "accept"})[0] == 409
    assert "is not JSON" in get(server, "")
    assert path.read_text() == "{broken\n"
    assert "line 1" in capsys.readouterr().err
    assert cli.main(["view", str(built), "--review", str(path), "--no-open"]) == 2
    assert "line 1: is not JSON" in capsys.readouterr().err


def test_the_review_is_next_to_the_dataset_and_not_part_of_it(built, tmp_path, monkeypatch):
    assert review_path(tmp_path / "out") == tmp_path / "out.review.jsonl"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"messages": []}\n')
    assert review_path(tmp_path / ".").parent == tmp_path.parent
    ReviewFile(review_path(tmp_path / "a.jsonl")).decide({"x": Decision("accept")})
    viewer = viewer_of(tmp_path, {}, tmp_path)
    assert [opened.file.name for opened in viewer.rows.files] == ["a.jsonl"]
    viewer.close()


def test_a_sample_without_meta_is_identified_by_its_own_digest(tmp_path):
    row = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n[1]\n")
    with served(tmp_path / "a.jsonl", {}, tmp_path) as server:
        for at in ("0.0", "0.1"):
            assert post(server, {"at": at, "decision": "reject"})[0] == 303
    own = read_review(tmp_path / "r.review.jsonl").decisions
    as_built = json.dumps({**row, "tools": []})  # the line that a build writes
    assert hashlib.sha256(as_built.encode()).hexdigest() in own
    assert len(own) == 2


def test_all_that_a_search_finds_is_decided_if_its_number_is_typed(built, reviewed):
    server, path = reviewed
    first = ids(built)[0]
    ReviewFile(path).decide({first: Decision("accept", "kept")})
    form = {"all": "1", "decision": "reject", "format": "codex"}
    found = get(server, "?format=codex")
    count = int(re.search(r"<strong>(\d+) of 3 samples", found)[1])
    for wrong in ("", "3", f"{count + 1}"):
        assert post(server, {**form, "count": wrong})[0] == 409
    assert list(read_review(path).decisions) == [first]
    assert post(server, {**form, "count": f" {count} "})[1]["Location"] == "?format=codex"
    decided = read_review(path).decisions
    assert sum(item.decision == "reject" for item in decided.values()) == count
    assert decided[first].note == "kept"
    assert post(server, {**form, "decision": "maybe", "count": str(count)})[0] == 400
