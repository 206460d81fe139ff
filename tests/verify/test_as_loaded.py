"""What `datasets.load_dataset` makes of our output, tested with the loader itself."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from support.places import ROOT

from builder import cli
from builder.sample import Sample
from builder.verify import as_loaded as loaded_rows
from builder.verify.as_loaded import as_loaded, loader_fault


def tool(**parameters):
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}


def sample(content="hi", *tools, answer="yes"):
    return Sample((("user", content), ("assistant", answer)), tools)


def write(folder, samples, card):
    (folder / "data").mkdir(parents=True)
    if card:
        (folder / "README.md").write_text(card)
    lines = b"".join(item.line + b"\n" for item in samples)
    (folder / "data" / "train-00000-of-00001.jsonl").write_bytes(lines)
    return folder


@pytest.fixture(scope="module")
def card():
    import yaml

    from builder.card.front import loading

    about = yaml.safe_dump(
        loading({"train": ["data/train-00000-of-00001.jsonl"]}, "", weighted=False)
    )
    return f"---\n{about}---\n"


WORDS = "international "
"""Long words: the loader's chunks are of 10 MB, whose tokens take most of the time."""

NESTED = []
for _ in range(60):
    NESTED = [NESTED]

SAFE = {
    "one date among other text": sample("2024-01-01"),
    "dates in definitions": sample("hi", tool(default="2024-01-01T10:00:00Z", enum=["2024-01-01"])),
    "largest integers": sample("hi", tool(maximum=2**64 - 1, minimum=-(2**63))),
    "short decimals": sample("hi", tool(minimum=0.1, maximum=1.0, multipleOf=0.000001)),
    "large floats": sample("hi", tool(maximum=1e300, minimum=1e16)),
    "strange text": sample("a\u0000b\u2028c\x85\x1cd😀</x>", tool(description="\u2028\x00/é😀")),
    "keys": sample("hi", tool(z=1, a=None, **{"": [], "é": {"2": 1, "1": 2}})),
    "deep": sample("hi", tool(a=NESTED)),
    "JSON as text": sample('{"a": 1}', tool(default='{"a": [1, null]}')),
}
UNSAFE = {
    "only dates": sample("2024-01-01", answer="2024-01-01T10:00:00Z"),
    "many decimals": sample("hi", tool(minimum=3.141592653589793)),
    "a tiny number": sample("hi", tool(minimum=1e-12)),
    "seven tenths": sample("hi", tool(default=0.7)),
    "a decimal in a list": sample("hi", tool(enum=[0.5, 0.95])),
    "minus zero": sample("hi", tool(minimum=-0.0)),
    "2^64": sample("hi", tool(maximum=2**64)),
    "below -2^63": sample("hi", tool(minimum=-(2**63) - 1)),
    "the float's end": sample("hi", tool(maximum=1.7976931348623157e308)),
}


@pytest.mark.parametrize("name", SAFE)
def test_values_documented_to_survive_do(verifier, tmp_path, card, name):
    assert loader_fault(SAFE[name]) is None
    folder = write(tmp_path / "d", [SAFE[name]], card)
    assert list(as_loaded(folder, verifier.target)) == []


@pytest.mark.parametrize("name", UNSAFE)
def test_what_is_rejected_before_writing_would_be_changed(verifier, tmp_path, card, name):
    assert loader_fault(UNSAFE[name]) is not None
    folder = write(tmp_path / "d", [UNSAFE[name]], card)
    (report,) = as_loaded(folder, verifier.target)
    assert report.findings[0].code == "as-loaded"


def test_what_the_loader_changes_without_declared_features_is_explained(verifier, tmp_path):
    rows = [
        sample("hi", tool(properties={"b": {"type": "string"}, "a": {"type": "string"}})),
        sample("ho", tool(properties={"a": {"type": "string"}, "b": {"type": "string"}})),
    ]
    folder = write(tmp_path / "d", rows, "")
    reports = list(as_loaded(folder, verifier.target))
    assert [report.line for report in reports] == [2]
    (finding,) = reports[0].findings
    assert "keys re-ordered" in finding.message
    assert "declare the features" in finding.message
    assert finding.expected != finding.found


def test_a_split_without_rows_that_the_loader_refuses_is_a_finding(verifier, tmp_path):
    folder = write(tmp_path / "d", [sample("hi", tool())], "")
    (folder / "data" / "test-00000-of-00001.jsonl").touch()
    (report,) = as_loaded(folder, verifier.target)
    assert "the loader fails" in report.findings[0].message


@pytest.mark.parametrize("size", [1, 200, 1000, 1 << 20])
def test_the_rows_are_the_same_in_slices_of_any_size(verifier, tmp_path, monkeypatch, size):
    monkeypatch.setattr(loaded_rows, "SLICE_BYTES", size)
    names = ("b", "a") * 7  # the first defines the order of keys for the loader
    rows = [
        sample(str(at), tool(properties={"c": {}, name: {}, "ab".replace(name, ""): {}}))
        for at, name in enumerate(names)
    ]
    folder = write(tmp_path / "d", rows, "")
    reports = list(as_loaded(folder, verifier.target))
    assert [report.line for report in reports] == [2, 4, 6, 8, 10, 12, 14]


@pytest.mark.slow
def test_a_later_chunk_that_does_not_fit_the_first_is_explained(verifier, tmp_path):
    rows = [sample(WORDS * 1000 + str(number)) for number in range(760)]
    rows.append(sample("hi", tool(properties={"a": {"type": "string"}})))
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"".join(item.line + b"\n" for item in rows))
    (report,) = as_loaded(path, verifier.target)
    assert "the loader fails" in report.findings[0].message
    assert cli.main(["verify", str(path), "--as-loaded", "--quiet", "--workers", "1"]) == 1


@pytest.mark.parametrize(
    ("kinds", "size", "shard_mb"),
    [
        pytest.param(["jsonl", "parquet"], 60_000, 1, marks=pytest.mark.slow),
        pytest.param(["jsonl"], 280_000, 64, marks=pytest.mark.slow),
        (["parquet"], 99, 1),
    ],
)
def test_heterogeneous_tools_in_a_later_shard_or_chunk_survive(
    tmp_path, kinds, size, shard_mb, capsys, monkeypatch
):
    """The first rows have no tools, and every later definition has another shape.

    The loader reads a file in chunks of 10 MB.
    """
    rows = []
    for number in range(60):
        shape = {} if number < 50 else {"type": ["string", "null"], "default": None, "z": number}
        parameters = {"properties": {f"p{number % 7}": shape, "a": {"enum": [1, "x"]}}}
        definitions = [] if number < 40 else [tool(**parameters)]
        messages = [
            {"role": "user", "content": f"{number} " + WORDS * (size // len(WORDS))},
            {"role": "assistant", "content": "2024-01-01"},
        ]
        rows.append(json.dumps({"messages": messages, "tools": definitions}))
    (tmp_path / "in.jsonl").write_text("\n".join(rows) + "\n")
    config = {
        "inputs": [{"path": "in.jsonl"}],
        "split": {"validation": 0.2, "test": 0.1, "seed": 3},
        "output": {"formats": kinds},
    }
    monkeypatch.setattr("builder.output.folder.SHARD_BYTES", shard_mb << 20)
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    out = tmp_path / "out"
    here = ["--workers", "1"]  # this process has imported the loader; workers would do so again
    assert cli.main(["build", "-c", str(tmp_path / "c.yaml"), "-o", str(out), "-q", *here]) == 0
    for kind in kinds:
        shards = list((out / "data").glob(f"train-*.{kind}"))
        assert (len(shards) > 1) is (size == 60_000)
        assert (shards[0].stat().st_size > 10 << 20) is (shard_mb == 64)
        assert list((out / "data").glob(f"validation-*.{kind}"))
    capsys.readouterr()
    assert cli.main(["verify", str(out), "--as-loaded", "--json", *here]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["samples"] == reported["proven"] == 60 * len(kinds)

    import datasets

    splits = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    assert sum(len(split) for split in splits.values()) == 60
    assert set(splits) == {"train", "validation", "test"}


LOADS = """
import json, sys, datasets
datasets.disable_progress_bars()
out, cache, version = sys.argv[1:]
assert datasets.__version__ == version
files = out + "/data/*.parquet"
for named in ({"path": out}, {"path": "parquet", "data_files": files}):
    for row in datasets.load_dataset(**named, split="train", cache_dir=cache):
        print(json.dumps(row, ensure_ascii=False))
"""
OLDEST = ("datasets==4.7.0", "dill==0.4.0", "multiprocess==0.70.18", "fsspec==2026.2.0",
          "httpx==0.28.1", "httpcore==1.0.9")  # fmt: skip
"""The oldest supported loader, and what it needs that the newest one does not."""


@pytest.mark.slow
def test_the_oldest_supported_loader_gives_the_samples_too(tmp_path):
    folder = ROOT / ".cache" / OLDEST[0]
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
        pip += ["-q", "--no-compile", "--target", tmp_path / "packages", *OLDEST]
        if subprocess.run(pip, check=False, capture_output=True).returncode:
            pytest.skip("no package registry can be reached")
        shutil.copytree(tmp_path / "packages", folder)
    lines = (json.dumps(item.record) + "\n" for item in SAFE.values())
    (tmp_path / "in.jsonl").write_text("".join(lines))
    config = {"inputs": [{"path": "in.jsonl"}], "output": {"formats": ["jsonl", "parquet"]}}
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    out = tmp_path / "out"
    assert cli.main(["build", "-c", str(tmp_path / "c.yaml"), "-o", str(out), "--quiet"]) == 0
    command = [sys.executable, "-c", LOADS, out, tmp_path / "cache", OLDEST[0].partition("==")[2]]
    older = {**os.environ, "PYTHONPATH": str(folder)}
    printed = subprocess.run(command, check=True, capture_output=True, env=older).stdout
    data = (out / "data" / "train-00000-of-00001.jsonl").read_bytes().splitlines()
    assert len(data) == len(SAFE)
    assert printed.splitlines() == data + data


def test_what_a_loader_would_change_is_rejected_and_counted(tmp_path):
    row = json.dumps(UNSAFE["many decimals"].record)
    good = json.dumps(sample("hi").record)
    (tmp_path / "in.jsonl").write_text(f"{row}\n{good}\n")
    out = tmp_path / "out"
    assert cli.main(["build", str(tmp_path / "in.jsonl"), "-o", str(out), "--quiet"]) == 0
    (reject,) = [json.loads(line) for line in (out / "rejects.jsonl").read_bytes().splitlines()]
    assert reject["code"] == "loader"
    assert "3.1415926536" in reject["message"]
