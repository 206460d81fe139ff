"""The dataset card: its metadata for the Hub, its text, and that text of logs stays text."""

import hashlib
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter

import pytest
import yaml
from huggingface_hub import DatasetCard, DatasetCardData
from support.places import DATA
from support.runs.builds import build, files, lines
from support.templates.targets import small_tokenizer_folder

from builder import cli
from builder.audit.counts import Counts
from builder.audit.result import Audit, AuditTable, Histogram
from builder.card.front import (
    Code,
    code,
    indented,
    languages,
    license_id,
    licenses,
    licensing,
    plain,
    table,
)
from builder.report.charts import picture

HOSTILE = "a`b``|<script>alert(1)</script>[x](javascript:x)\u202e\n# http://evil.example @all"
TOOL = "a`b``|<script>alert(1)</script>[x](javascript:x)"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("card") / "out"
    config = out.parent / "c.yaml"
    job = {
        "name": "My agents",
        "inputs": [{"path": str(DATA), "license": "MIT"}],
        "split": {"test": 0.3},
        "normalize": {"control_tokens": "neutralise"},
    }
    config.write_text(json.dumps(job))
    assert build(out, "-c", config, inputs=()) == 0
    return out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Returns a log whose model, tool and licence contain markup."""
    folder = tmp_path_factory.mktemp("hostile")
    call = {"name": TOOL, "arguments": "{}"}
    row = {
        "model": HOSTILE,
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "ok"},
            {"role": "assistant", "content": "done"},
        ],
    }
    (folder / "in.jsonl").write_text(json.dumps(row) + "\n")
    config = {"name": HOSTILE, "inputs": [{"path": "in.jsonl", "license": HOSTILE}]}
    (folder / "c.yaml").write_text(json.dumps(config))
    assert build(folder / "out", "-c", folder / "c.yaml", inputs=()) == 0
    return folder / "out"


def parts(out):
    """Returns (front matter, text)."""
    _, head, text = (out / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head), text


@pytest.mark.parametrize("name", ["built", "hostile"])
def test_the_hubs_client_reads_the_front_matter_and_writes_it_back_the_same(name, request):
    out = request.getfixturevalue(name)
    front, text = parts(out)
    card = DatasetCard.load(out / "README.md")
    assert isinstance(card.data, DatasetCardData)
    assert card.data.to_dict() == front
    assert card.text.strip() == text.strip()
    again = DatasetCard(str(card))
    assert again.data.to_dict() == front
    known = {"pretty_name", "language", "license", "license_name", "task_categories", "tags"}
    assert set(front) <= known | {"size_categories", "configs", "dataset_info"}
    named = front["license"] if isinstance(front["license"], list) else [front["license"]]
    assert set(named) <= {*licenses().values()}
    assert front["size_categories"] == ["n<1K"]
    (config,) = front["configs"]
    for item in config["data_files"]:
        assert list(out.glob(item["path"]))


def test_the_card_counts_what_was_built(built):
    front, text = parts(built)
    meta = [row for path in sorted((built / "meta").iterdir()) for row in lines(path)]
    ledger = json.loads((built / "manifest.json").read_text())["ledger"]
    assert f"{len(meta)} training samples" in text
    assert f"| samples verified | {len(meta)} of {len(meta)} |" in text
    assert f"| records | {ledger['records']['read']} |" in text
    assert f"| calls | {ledger['calls']['logged']} | {ledger['calls']['kept']} |" in text
    assert front["license"] == "mit"
    assert {item["split"] for item in front["configs"][0]["data_files"]} == {"train", "test"}
    sources = re.findall(r"\| `([\w-]+)` \| `(\S+)` \| `MIT` \| (\d+) \|", text)
    assert sum(int(count) for *_, count in sources) == len(meta)
    assert {name for name, *_ in sources} == {row["format"] for row in meta}


def test_the_card_counts_trained_turns_by_how_well_their_context_is_known(built):
    _, text = parts(built)
    meta = [row for path in sorted((built / "meta").iterdir()) for row in lines(path)]
    section = text.partition("\n## What the model saw\n")[2].partition("\n## ")[0]
    levels = re.findall(r"(?m)^\| (proven|rendered|logged|partial) \| ([\d,]+) \|", section)
    assert {name for name, _ in levels} >= {row["context"]["level"] for row in meta}
    turns = sum(int(count.replace(",", "")) for _, count in levels)
    assert turns == sum(row["assistant_turns"] for row in meta)
    missing = re.findall(r"(?m)^\| `(\w+)` \| ([\d,]+) \| (.*) \|$", section)
    assert {name for name, *_ in missing} == {
        code for row in meta for code in row["context"]["missing"]
    }
    for name, count, meaning in missing:
        assert meaning, f"no meaning of {name}"
        of_samples = sum(
            row["assistant_turns"] for row in meta if name in row["context"]["missing"]
        )
        assert 0 < int(count.replace(",", "")) <= of_samples


def test_changed_options_are_listed_without_local_folders(built, tmp_path):
    _, text = parts(built)
    content = re.search(r"`manifest.json` has all\):\n\n((?:    .*\n)+)", text)
    assert content is not None
    config = yaml.safe_load(content[1])
    assert config["name"] == "My agents"
    assert config["split"] == {"test": 0.3}
    assert config["inputs"] == [{"path": "data", "license": "MIT"}]
    assert str(DATA.parent) not in text
    assert str(built.parent) not in text


def test_a_tokenizer_of_a_local_folder_is_named_by_what_others_have(tmp_path):
    folder = tmp_path / "mine" / "checkpoint-40"
    small_tokenizer_folder(folder)
    log = DATA / "claude-code" / "parallel.jsonl"
    assert build(tmp_path / "out", "--tokenizer", folder, inputs=[log]) == 0
    text = (tmp_path / "out" / "README.md").read_text()
    digest = hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest()
    assert "`checkpoint-40` was a local folder" in text
    assert f"whose `tokenizer.json` has the sha256 `{digest}`" in text
    assert "; its chat template is that of `Qwen/Qwen3-" in text
    assert str(tmp_path) not in text


def test_charts_are_listed_in_the_manifest_and_displayed(built):
    _, text = parts(built)
    listed = {item["path"] for item in json.loads((built / "manifest.json").read_text())["files"]}
    visible = set(re.findall(r"!\[[^\]]+\]\((\S+)\)", text))
    assert {"assets/lengths.svg", "assets/behaviour.svg"} <= visible
    assert visible == {path for path in listed if path.startswith("assets/")}
    for path in visible:
        data = (built / path).read_bytes()
        assert len(data) < 20_000
        assert ET.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"


def test_the_longest_sample_and_an_export_for_each_trainer_are_named(built):
    _, text = parts(built)
    meta = [row for path in sorted((built / "meta").iterdir()) for row in lines(path)]
    longest = max(row["tokens"] for row in meta)
    wide = max(row["tokens"] + 4 * row["assistant_turns"] + 2 for row in meta)
    settings = {str(-(-tokens // 64) * 64) for tokens in (longest, wide)}
    section = text.partition("\n## Train with it\n")[2].partition("\n## ")[0]
    assert settings <= {*re.findall(r"\d+", section)}
    assert "| TRL | `builder export . --to trl -o trl` |" in section


def test_hostile_names_stay_text(hostile):
    front, text = parts(hostile)
    assert front["license"] == "other"
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    outside = re.sub(r"(?m)^    .*$", "", outside)
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
    assert "<" not in outside
    assert "javascript:x" not in outside
    assert "http:" not in outside
    assert text.count("<script>") >= 3  # the model, the tool, the licence: in code spans
    assert "\u202e" not in text
    assert not re.search(r"(?m)^# http", text)


def test_the_same_job_writes_the_same_card(built, tmp_path, pooled):
    config = built.parent / "c.yaml"
    assert build(tmp_path / "out", "-c", config, "--workers", "2", inputs=()) == 0
    assert {"_run_batch", "_loaded"} <= set(pooled)
    one, two = files(built), files(tmp_path / "out")
    for path in [path for path in one if path == "README.md" or path.startswith("assets/")]:
        assert one[path] == two[path]


def test_without_samples_there_is_a_card_without_configurations(tmp_path):
    rejected = '{"role": "user", "content": "a"}, {"role": "assistant", "content": "<|im_end|>"}'
    (tmp_path / "in.jsonl").write_text(f'{{"messages": [{rejected}]}}\n')
    assert build(tmp_path / "out", inputs=(tmp_path / "in.jsonl",)) == 1
    front, text = parts(tmp_path / "out")
    assert "configs" not in front
    assert front["license"] == "unknown"
    assert "Nothing was audited." in text


@pytest.mark.parametrize(
    ("content", "known"),
    [
        ("MIT", "mit"),
        ("MIT License", "mit"),
        (" Apache 2.0 ", "apache-2.0"),
        ("Apache License, Version 2.0", "other"),
        ("Apache-2.0", "apache-2.0"),
        ("GPL-3.0-or-later", "gpl-3.0"),
        ("CC BY-SA 4.0", "cc-by-sa-4.0"),
        ("cc_by_nc_4.0", "cc-by-nc-4.0"),
        ("CC0", "cc0-1.0"),
        ("ODC-By-1.0", "odc-by"),
        ("unknown", "unknown"),
        ("", "unknown"),
        ("proprietary", "other"),
        ("CC-BY", "other"),
    ],
)
def test_a_licence_in_a_usual_spelling_is_the_hubs_identifier(content, known):
    assert license_id(content) == known
    assert license_id(known) == known


def test_several_licences_are_a_list_and_a_foreign_one_is_named():
    assert licensing(["MIT"]) == {"license": "mit"}
    assert licensing(["unknown", "MIT", "mit"]) == {"license": ["mit", "unknown"]}
    assert licensing([]) == {"license": "unknown"}
    acme = {"license": "other", "license_name": "acme-terms-2"}
    assert licensing(["ACME Terms 2"]) == acme
    assert licensing(["ACME Terms 2", "Other terms"]) == {"license": "other"}


def found(samples, **counts):
    return Audit(samples, counts=Counts(languages=Counter(counts)))


def test_a_language_is_named_only_if_the_audit_is_sure():
    short = "Latin script, too short to tell"
    assert languages(None) == []
    assert languages(found(9, English=9)) == []
    assert languages(found(100, English=60, German=30, **{short: 10})) == ["en", "de"]
    assert languages(found(100, English=40, **{short: 60})) == []
    assert languages(found(1000, English=900, German=20)) == ["en"]
    assert languages(found(100, Cyrillic=100)) == []


@pytest.mark.parametrize("text", ["a`b", "``", "`", "", " ", "|", "\n", "a|b\\", HOSTILE])
def test_a_code_span_contains_any_text_on_one_line(text):
    visible = code(text)
    assert "\n" not in visible
    assert "|" not in visible
    ticks = re.match("`+", visible)[0]
    inside = visible[len(ticks) : -len(ticks)]
    assert visible.endswith(ticks)
    assert inside
    assert ticks not in re.findall("`+", inside)


def test_tables_and_blocks_keep_their_shape():
    rows = table(("name", "count"), [(Code("a|b"), 1200), (Code("x\ny"), None)])
    assert rows == ["| name | count |", "|---|---:|", "| `a\u00a6b` | 1,200 |", "| `x y` | - |"]
    assert indented("a\n```\nb") == "    a\n    ```\n    b"
    assert plain("<b>*x*") == "&#60;b&#62;&#42;x&#42;"


def test_charts_without_data_are_omitted_and_hostile_names_stay_text():
    assert picture(Histogram("x", "", "", (0, 1), (0,))) is None
    assert picture(AuditTable("x", "", ("a", "n"), (("a", 1),))) is None
    assert picture(AuditTable("x", "", ("a", "n"), (("a", 0),), bars="n")) is None
    data = picture(AuditTable("x", HOSTILE, ("a", "n"), ((HOSTILE, 3),), bars="n"))
    names = {item.tag.rpartition("}")[2] for item in ET.fromstring(data).iter()}
    assert names == {"svg", "style", "rect", "g", "title", "text"}


def test_the_card_of_a_merge_names_the_merge(tmp_path):
    for name in ("claude-code", "codex"):
        assert build(tmp_path / name, inputs=[DATA / name]) == 0
    command = ["merge", str(tmp_path / "claude-code"), str(tmp_path / "codex"), "-q"]
    assert cli.main([*command, "-o", str(tmp_path / "both")]) == 0
    text = (tmp_path / "both" / "README.md").read_text()
    assert "\n    builder merge claude-code codex -o OUT\n\nAll options have their" in text
    assert text.index("## Load it") < text.index("## How it was made") < text.index("## Limits")
