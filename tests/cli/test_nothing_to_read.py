"""Inputs without a conversation: one line says what is empty or cannot be read."""

import errno
import json
import zipfile
from pathlib import Path

import pytest
from huggingface_hub import errors

from builder import cli
from builder.qwen3.tokenizer import hub_reason

ROW = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
LINE = json.dumps(ROW) + "\n"


@pytest.fixture
def run(capsys):
    """Returns the exit code, what is on stdout, what is on stderr."""

    def run(*arguments):
        code = cli.main([*arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files that contain nothing, or cannot be read; it is the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, content in (("a.jsonl", ""), ("b.jsonl", " \n\n"), ("c.jsonl", '{"x": 1}\n')):
        Path(name).write_text(content)
    Path("none").mkdir()
    with zipfile.ZipFile("bad.zip", "w") as archive:
        archive.writestr("good.jsonl", LINE)
        archive.writestr("logs/bad.jsonl", LINE)
    data = Path("bad.zip").read_bytes()
    at = data.rindex(b"assistant")
    Path("bad.zip").write_bytes(data[:at] + b"A" + data[at + 1 :])  # the checksum is wrong
    Path("no.zip").write_bytes(b"PK\x03\x04" + bytes(200))
    return tmp_path


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a.jsonl"], "a.jsonl: is empty"),
        (["b.jsonl"], "b.jsonl: is empty"),
        (["a.jsonl", "b.jsonl"], "a.jsonl, b.jsonl: 2 files, all of them empty"),
        (["a.jsonl", "c.jsonl"], "nothing in the inputs is a conversation; 1 file is empty"),
        (["none"], "the inputs contain no file"),
        (["bad.zip"], "(zip: its member 'logs/bad.jsonl' cannot be read: its checksum is wrong)"),
        (["no.zip"], "(zip: its directory cannot be read: File is not a zip file)"),
    ],
)
def test_build_explains_why_nothing_can_be_read(run, folder, names, expected):
    code, out, err = run("build", *names, "-o", "made", "--quiet")
    assert (code, out) == (1, "")
    assert expected in err
    assert err.count("\n") == 1 + err.count("unrecognised")
    assert not (folder / "made").exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jsonl", "a.jsonl: is empty"),
        ("bad.zip", "its member 'logs/bad.jsonl' cannot be read: its checksum is wrong"),
        ("no.zip", "its directory cannot be read"),
    ],
)
def test_inspect_explains_why_a_file_cannot_be_read(run, folder, name, expected):
    code, _, err = run("inspect", name)
    assert (code, err.count("\n")) == (2, 1)
    assert expected in err


def test_a_tokenizer_that_the_hub_does_not_have_is_one_line():
    """The client's own texts have paragraphs, or begin with the name of a class."""
    unreached = errors.LocalEntryNotFoundError("Got: ConnectError\n\nAn error happened while")
    unreached.__cause__ = OSError("[Errno -2] Name or service not known")
    offline = errors.LocalEntryNotFoundError("Cannot find\nan appropriate")
    offline.__cause__ = errors.OfflineModeIsEnabled("Cannot reach it")
    assert [
        hub_reason(error)
        for error in (
            unreached,
            offline,
            errors.HFValidationError("Repo id must use\nalphanumeric chars"),
            OSError(28, "No space left on device"),
        )
    ] == [
        "it cannot be reached: Name or service not known",
        "not looked up, since offline mode is enabled (HF_HUB_OFFLINE)",
        "this is not the form of an id (NAME or OWNER/NAME)",
        "No space left on device",
    ]


@pytest.mark.parametrize("text", ["", "\n\n"])
@pytest.mark.parametrize(
    "command", [("verify",), ("audit",), ("report", "-o", "report.html"), ("audit", "--quiet")]
)
def test_a_dataset_without_samples_is_one_line(command, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").write_text(text)
    name, *options = command
    assert cli.main([name, "empty.jsonl", *options]) == 1
    printed = capsys.readouterr()
    assert printed.err == "builder: the dataset contains no samples\n"
    assert "nothing found" not in printed.out


def test_a_name_in_two_lists_is_offered_once(run):
    _, _, err = run("export", "data", "--to", "nosuch", "-o", "out")
    assert err.count(" verl,") == 1


def test_a_dataset_that_may_not_be_read_is_one_line(run, tmp_path, monkeypatch):
    log = tmp_path / "x.jsonl"
    log.write_text(LINE)

    opened = Path.open

    def refuse(path, *arguments, **options):
        if path != log:
            return opened(path, *arguments, **options)
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    for command in ("verify", "audit"):
        code, out, err = run(command, str(log))
        assert (code, out, err) == (2, "", f"builder: dataset '{log}': Permission denied\n")


def test_explaining_a_folder_without_a_file_says_so(run, tmp_path):
    code, out, _ = run("formats", "--explain", str(tmp_path))
    assert (code, out) == (0, f"{tmp_path}: no file that a reader could recognise\n")
