"""Merges built datasets without their logs, and compares datasets."""

import json
import re
import shlex
import shutil

import pytest
import yaml
from support.logs.preference import rewound
from support.runs.builds import build, files, lines

import builder
from builder import cli
from builder.problem import UsageError


def conversation(name, turns):
    messages = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{name} asks {turn}"})
        messages.append({"role": "assistant", "content": f"{name} answers {turn}"})
    return json.dumps({"messages": messages}) + "\n"


def called(name):
    call = json.dumps({"name": "look", "arguments": {"at": name}})
    messages = [
        {"role": "user", "content": f"look at {name}"},
        {"role": "assistant", "content": f"<tool_call>\n{call}\n</tool_call>"},
        {"role": "user", "content": "<tool_response>\nseen\n</tool_response>"},
        {"role": "assistant", "content": "Done."},
    ]
    return json.dumps({"messages": messages}) + "\n"


LOGS = {
    "a": [conversation("ann", 2), conversation("bob", 1), called("x"), "{broken\n"],
    "b": [conversation("ann", 2), conversation("bob", 3), called("x"), called("y")],
}


@pytest.fixture
def logs(tmp_path):
    for name, rows in LOGS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.jsonl").write_text("".join(rows))
    return tmp_path


def built(logs, name, *inputs, **config):
    out = logs / f"out-{name}"
    (logs / "c.yaml").write_text(json.dumps(config))
    folders = [logs / item for item in inputs or (name,)]
    assert build(out, "-c", logs / "c.yaml", inputs=folders) == 0
    return out


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("normalize.unit=turn", "normalize.unit"),
        ("limits={too_long: cut}", "limits.too_long"),
        ("inputs=[]", "inputs"),
        ("audit.secrets=off", "audit.secrets"),
        ("audit.near_duplicates=drop", None),
        ("name=mine", None),
    ],
)
def test_keys_that_a_merge_does_not_use_are_refused(tmp_path, capsys, setting, named):
    command = ["merge", str(tmp_path / "none"), "-o", str(tmp_path / "out"), "--set", setting]
    assert cli.main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    if named is None:
        assert "no such folder" in line
    else:
        assert f"--set: {named}: not used by a merge, which uses mix, name, output, select" in line
    key, _, value = setting.partition("=")
    document = yaml.safe_load(value)
    for part in reversed(key.split(".")):
        document = {part: document}
    message = f"{named}: not used by a merge" if named else "no such folder"
    with pytest.raises(UsageError, match=re.escape(message)):
        builder.merge_datasets([tmp_path / "none"], tmp_path / "out", config=document)


def merged(logs, *datasets, config=None):
    out = logs / "merged"
    command = ["merge", *map(str, datasets), "-o", str(out), "-q"]
    if config is not None:
        (logs / "m.yaml").write_text(json.dumps(config))
        command += ["-c", str(logs / "m.yaml")]
    return cli.main(command), out


def rows(out):
    return sorted(path.read_bytes() for path in (out / "data").glob("*"))


def ids(out):
    return sorted(line["id"] for path in (out / "meta").glob("*") for line in lines(path))


def ledger(out):
    return json.loads((out / "manifest.json").read_bytes())["ledger"]


@pytest.mark.quick(1)
@pytest.mark.parametrize("unit", ["conversation", "turn"])
def test_the_merge_of_two_datasets_has_the_samples_of_one_build_over_both(logs, unit, capsys):
    options = {"normalize": {"unit": unit}}
    one, other = built(logs, "a", **options), built(logs, "b", **options)
    whole = built(logs, "whole", "a", "b", **options)
    code, out = merged(logs, one, other)
    assert code == 0
    assert ids(out) == ids(whole)
    found = ledger(out)
    assert found["samples"] == ledger(whole)["samples"]
    assert found["calls"]["kept"] == ledger(whole)["calls"]["kept"] == 2
    assert found["records"]["read"] == 8
    assert found["conversations"]["built"] == ledger(whole)["conversations"]["built"] == 4
    capsys.readouterr()
    assert cli.main(["verify", str(out), "-q"]) == 0
    assert cli.main(["diff", str(whole), str(out), "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert (compared["same"], compared["came"], compared["went"]) == (len(ids(out)), 0, 0)


def test_merging_again_gives_the_same_bytes(logs):
    datasets = built(logs, "a"), built(logs, "b")
    _, out = merged(logs, *datasets)
    before = {path: data for path, data in files(out).items() if path != "manifest.json"}
    assert merged(logs, *datasets)[0] == 0
    assert {path: data for path, data in files(out).items() if path != "manifest.json"} == before
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert [item["name"] for item in manifest["merged"]] == ["out-a", "out-b"]


def test_folders_with_spaces_in_their_names(logs, capsys):
    first, second = built(logs, "a").rename(logs / "of a 1"), built(logs, "b").rename(logs / "b 2")
    capsys.readouterr()
    assert cli.main(["merge", str(first), str(second), "-o", str(logs / "out")]) == 0
    assert f"merged {first} (3), {second} (4): 7 samples" in " ".join(
        capsys.readouterr().out.split()
    )
    card = (logs / "out" / "README.md").read_text()
    (command,) = (line for line in card.splitlines() if "builder merge" in line)
    assert shlex.split(command) == ["builder", "merge", "of a 1", "b 2", "-o", "OUT"]


def test_selecting_from_one_dataset_again(logs):
    one = built(logs, "a")
    code, out = merged(logs, one, config={"select": {"where": {"calls": {"min": 1}}}, "name": "n"})
    assert code == 0
    (line,) = lines(out / "meta" / "train-00000-of-00001.jsonl")
    assert line["calls"] == 1
    assert ledger(out)["conversations"]["rejected"] == {"select_calls": 2}
    assert "# n\n" in (out / "README.md").read_text()


def test_preference_pairs_stay_with_their_samples(logs):
    (logs / "b" / "rewound.jsonl").write_text(rewound())
    (logs / "b" / "other.jsonl").write_text(rewound(again="Do that").replace("s1", "s2"))
    code, out = merged(logs, built(logs, "a"), built(logs, "b"))
    assert code == 0
    counts = json.loads((out / "manifest.json").read_bytes())["preferences"]
    assert counts == {"pairs": 1, "left_out": {"other_query": 1}}
    metas = [line for path in sorted(out.glob("meta/*")) for line in lines(path)]
    assert [len(line["preferences"]) for line in metas if "preferences" in line] == [1]


def test_datasets_that_cannot_be_merged_are_refused_in_one_line(logs, capsys):
    one, other = built(logs, "a"), built(logs, "b", normalize={"unit": "turn"})
    changed = logs / "changed"
    shutil.copytree(one, changed)
    (data,) = (changed / "data").glob("*")
    data.write_bytes(data.read_bytes().replace(b"ann", b"eve"))
    (logs / "empty").mkdir()
    for datasets, message in (
        ((one, other), "normalize.unit: 'conversation', 'turn'"),
        ((one, changed), "differs from the manifest"),
        ((one, one), "named twice"),
        ((one, logs / "empty"), "is not a folder made by build"),
        ((one, logs / "a" / "a.jsonl"), "is not a folder made by build"),
    ):
        code, _ = merged(logs, *datasets)
        error = capsys.readouterr().err
        assert (code, message in error, error.count("\n")) == (2, True, 1), error
    assert not (logs / "merged" / "manifest.json").exists()
    assert cli.main(["merge", str(one), "-o", str(one)]) == 2


def test_diff_counts_added_removed_and_changed_samples(logs, capsys):
    one = built(logs, "a")
    rest = [conversation("ann", 3), conversation("bob", 1), called("z")]
    (logs / "a" / "a.jsonl").write_text("".join(rest))
    other = logs / "other"
    assert build(other, inputs=[logs / "a"]) == 0
    capsys.readouterr()
    assert cli.main(["diff", str(one), str(other), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["changed"], found["came"], found["went"]) == (1, 2, 0, 0)
    assert found["tables"]["rejects"] == {"bad_json": [1, 0]}
    assert found["calls"] == [1, 1]
    assert cli.main(["diff", str(one), str(other)]) == 1
    assert "1 sample is the same, 2 changed, 0 added, 0 removed" in capsys.readouterr().out
    assert cli.main(["diff", str(one), str(one), "-q"]) == 0
    assert cli.main(["diff", str(one), str(logs / "nothing")]) == 2


def test_dropped_calls_and_uncertain_pairs_are_summed(logs):
    """The manifest counts them without their conversations; here the first has no call."""
    folders = [built(logs, "a"), built(logs, "b")]
    for folder, dropped, left_out in zip(folders, (3, 2), (5, 0), strict=True):
        manifest = json.loads((folder / "manifest.json").read_text())
        calls = manifest["ledger"]["calls"]
        calls["logged"] += dropped
        calls["dropped"] = {"unanswered": dropped}
        manifest["preferences"] = {"left_out": {"restated": left_out}} if left_out else {}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    code, out = merged(logs, *folders)
    assert code == 0
    manifest = json.loads((out / "manifest.json").read_text())
    calls = manifest["ledger"]["calls"]
    assert calls["dropped"] == {"unanswered": 5}
    assert calls["logged"] == calls["kept"] + 5
    assert manifest["preferences"]["left_out"] == {"restated": 5}
