"""Places where an export or a report cannot be written, and the files of a killed export."""

import json
import resource
import signal
import subprocess
import sys

import pytest
from support.runs.commands import run_forked

from builder import cli
from builder.output.folder import folder_aside, put_in_place, write_whole
from builder.problem import UsageError

ROW = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}


@pytest.fixture
def dataset(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    return path


def one_line(capsys, code, *arguments):
    assert cli.main([str(item) for item in arguments]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("builder: output ")
    return printed.err


@pytest.mark.parametrize("to", ["messages", "atif"])
def test_places_that_cannot_be_written_are_one_line(dataset, tmp_path, capsys, to):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    for place in ("file", "file/below", "full", "/proc/none/out", "/proc/out"):
        one_line(capsys, 2, "export", dataset, "--to", to, "-o", tmp_path / place)
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full", "x.jsonl"]


def test_a_report_that_cannot_be_written_is_one_line(dataset, tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    for place in ("folder", "x.jsonl/r.html", "/proc/r.html", "/proc/none/r.html"):
        one_line(capsys, 2, "report", dataset, "-o", tmp_path / place)


def limited(*arguments):
    """Runs the command line with files limited to 2,000 bytes, as on a full disk."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    return run_forked(*arguments, prepare=limit)


@pytest.mark.slow
def test_a_full_disk_keeps_the_earlier_report(dataset, tmp_path):
    out = tmp_path / "r.html"
    out.write_text("the earlier report")
    done = limited("report", dataset, "-o", out)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert out.read_text() == "the earlier report"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "x.jsonl"]


@pytest.mark.slow
def test_a_full_disk_leaves_no_partial_export(dataset, tmp_path):
    big = {"messages": [{"role": "user", "content": "a" * 5000}, ROW["messages"][1]]}
    dataset.write_text(json.dumps(big) + "\n")
    done = limited("export", dataset, "--to", "messages", "-o", tmp_path / "out")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "File too large" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]


def test_the_next_export_removes_the_remains_of_a_killed_one(tmp_path):
    out = tmp_path / "out"
    code = (
        "import sys, time; from pathlib import Path\n"
        "from builder.output.folder import folder_aside\n"
        "with folder_aside(Path(sys.argv[1])) as scratch:\n"
        "    (scratch / 'out').mkdir(); (scratch / 'out' / 'half').write_text('x')\n"
        "    print('ready', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        with pytest.raises(UsageError, match="another run is writing"), folder_aside(out):
            pass
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / ".out.partial" / "out" / "half").exists()
    with folder_aside(out) as scratch:
        assert [path.name for path in scratch.iterdir()] == ["lock"]
        (scratch / "made").mkdir()
        (scratch / "made" / "file").write_text("whole")
        put_in_place(scratch / "made", out)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (out / "file").read_text() == "whole"


def test_a_file_is_replaced_atomically_and_through_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_read_errors_are_not_reported_as_output_errors(tmp_path):
    with pytest.raises(FileNotFoundError), folder_aside(tmp_path / "out"):
        (tmp_path / "input").read_bytes()
    assert not list(tmp_path.iterdir())
