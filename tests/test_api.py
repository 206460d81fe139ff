"""What callers of the API may pass, and what its functions return."""

import json
import shutil

import pytest
from support.places import DATA
from support.runs.commands import run
from support.templates.targets import TEMPLATE, small_tokenizer_folder

import builder
from builder import cli
from builder.given import ROWS

ROW = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("api") / "out"
    builder.build_dataset(str(DATA / "codex"), str(out))
    return out


def test_an_export_is_replaced_when_asked_and_nothing_else_is(built, tmp_path):
    out = tmp_path / "out"
    for options, code in (((), 0), ((), 2), (("--fresh",), 0)):
        assert run("export", built, "--to", "openai", "-o", out, *options).returncode == code
    assert builder.export_dataset(built, "openai", out, fresh=True).rows > 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    done = run("export", built, "--to", "openai", "-o", tmp_path / "mine", "--fresh")
    assert done.returncode == 2
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_an_export_takes_tokenizer_and_mode_of_the_manifest(built, tmp_path):
    manifest = json.loads((built / "manifest.json").read_text())
    manifest["tokenizer"]["name"] = "./none"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(builder.UsageError, match=r"^tokenizer './none'.*names another"):
        builder.export_dataset(tmp_path, "openai", tmp_path / "no")


def test_a_push_asks_for_the_tokenizer_as_other_commands_do(built, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(built, out)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["tokenizer"]["name"] = "./none"
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(builder.UsageError, match="folder; the dataset was verified against it"):
        builder.push_dataset(out, "you/name", options={"dry_run": True})
    report = builder.push_dataset(out, "you/name", options={"dry_run": True, "tokenizer": "qwen3"})
    assert report.gates["verify"] == "open"


def test_a_dataset_is_verified_against_its_own_tokenizer(built, tmp_path, capsys):
    folder = shutil.copytree(built, tmp_path / "built")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tokenizer"]["name"] = "./none"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(builder.UsageError, match=r"^tokenizer './none': no such folder"):
        builder.verify_dataset(folder)
    assert cli.main(["verify", str(folder)]) == 2
    printed = capsys.readouterr()
    assert "'./none': no such folder; the dataset was verified against it" in printed.err
    assert builder.verify_dataset(folder, tokenizer="qwen3").proven > 0


def test_a_manifest_does_not_choose_what_is_downloaded(built, tmp_path, monkeypatch):
    """Unless the files that it names are those of the embedded tokenizer, which then stands in."""

    def downloads(*_, local_files_only=False, **__):
        assert local_files_only, "a download that nobody asked for"
        raise FileNotFoundError

    monkeypatch.setattr("huggingface_hub.snapshot_download", downloads)
    folder = shutil.copytree(built, tmp_path / "built")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tokenizer"]["name"] = manifest["config"]["verify"]["tokenizer"] = "someone/else"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert builder.verify_dataset(folder).proven > 0
    manifest["tokenizer"]["files"]["tokenizer.json"] = "0" * 64
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for command in (
        lambda: builder.verify_dataset(folder),
        lambda: builder.export_dataset(folder, "openai", tmp_path / "exported"),
        lambda: builder.report_dataset(folder, tmp_path / "report.html"),
        lambda: builder.merge_datasets([folder], tmp_path / "merged"),
    ):
        with pytest.raises(builder.UsageError, match="not on this machine") as refused:
            command()
        assert "--tokenizer someone/else" in str(refused.value)


def test_commands_take_the_tokenizer_of_the_manifest_and_say_so(built, tmp_path, capsys):
    other = small_tokenizer_folder(tmp_path / "other", chat_template="{# another #}" + TEMPLATE)
    folder = tmp_path / "built"
    assert cli.main(["build", str(DATA), "-o", str(folder), "-q", "--tokenizer", other]) == 0
    line = f"tokenizer: {other}, which the dataset's manifest names\n"
    for command in (["verify"], ["report", "-o", f"{tmp_path}/r.html"], ["export", "--to", "trl"]):
        more = ["-o", str(tmp_path / "exported")] if command[0] == "export" else []
        capsys.readouterr()
        assert cli.main([command[0], str(folder), *command[1:], *more]) == 0
        assert capsys.readouterr().out.startswith(line), command
    for dataset, named in ((folder, "qwen3"), (built, other)):
        capsys.readouterr()
        cli.main(["verify", str(dataset), "--tokenizer", named])
        assert "builder: the dataset was verified against " in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["thinking", "non-thinking"])
def test_prompts_of_an_export_end_as_in_the_mode_of_the_manifest(built, mode, tmp_path):
    folder = shutil.copytree(built, tmp_path / "built")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["config"]["verify"]["mode"] = mode
    (folder / "manifest.json").write_text(json.dumps(manifest))
    builder.export_dataset(folder, "prompt-completion-text", tmp_path / "out")
    lines = next((tmp_path / "out").rglob("*.jsonl")).read_text().splitlines()
    ends = {json.loads(line)["prompt"].rpartition("<|im_start|>")[2] for line in lines}
    assert ends == {"assistant\n" + "<think>\n\n</think>\n\n" * (mode == "non-thinking")}


def test_rows_and_records_in_memory_are_accepted(tmp_path):
    assert builder.verify_dataset([ROW, ROW]).samples == 2
    made = builder.build_dataset([ROW], tmp_path / "out", config={"normalize": {"unit": "turn"}})
    assert made.ledger.samples == 1
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["inputs"][0]["path"] == ROWS
    (found,) = [e for e in builder.read([ROW]) if isinstance(e, builder.Conversation)]
    path = tmp_path / "ok.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    for given in (path, str(path)):
        events = [e for e in builder.read(given) if isinstance(e, builder.Conversation)]
        assert [e.messages for e in events] == [found.messages]
        out = tmp_path / f"again-{type(given).__name__}"
        assert builder.build_dataset(given, out).ledger.samples == 1


def test_what_reads_a_log_reads_rows():
    rows = [{"chat": [{"who": "user", "text": "Hi"}, {"who": "ai", "text": "Hello!"}]}]
    assert "messages: chat" in builder.suggest_mapping(rows).text
    assert builder.inspect_log([ROW]).conversation.samples == 1
    assert len(builder.recognise([ROW])) == 1
    assert len([*builder.recognise_all([ROW])]) == 1


def test_a_result_of_a_build_is_a_dataset(tmp_path):
    made = builder.build_dataset([ROW], tmp_path / "out", preset="agentic", workers=1)
    (row,) = made.samples
    assert row["messages"] == ROW["messages"]
    assert [*made.samples] == [row]
    assert builder.verify_dataset(made).ok
    assert repr(made).startswith(f"BuildResult(folder={str(tmp_path / 'out')!r}, samples=1, tok")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["config"]["normalize"]["untrained_turns"] == "weight"
    config = {"normalize": {"unit": "query"}}
    builder.build_dataset([ROW], tmp_path / "o", preset="agentic", config=config)
    manifest = json.loads((tmp_path / "o" / "manifest.json").read_text())
    chosen = manifest["config"]["normalize"]
    assert (chosen["unit"], chosen["untrained_turns"]) == ("query", "weight")


def test_without_a_dataset_there_are_no_samples(tmp_path):
    made = builder.build_dataset([{"messages": []}], tmp_path / "out")
    assert [*made.samples] == []


def test_an_empty_dataset_is_not_verified(tmp_path):
    assert not builder.verify_dataset([]).ok
    assert builder.verify_dataset([ROW]).ok
    wrong = {"messages": [{"role": "moderator", "content": "Hi"}]}
    assert not builder.verify_dataset([ROW, wrong]).ok


def test_a_view_is_served_while_its_block_runs(built):
    import urllib.error
    import urllib.request

    with builder.view_dataset(built) as view:
        assert b"<html" in urllib.request.urlopen(view.url).read()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(view.url, timeout=5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: builder.NormalizeOptions(unit="turns"), "did you mean 'turn'"),
        (
            lambda: builder.VerifyOptions(require=["all"]),
            "one of schema, match, complete",
        ),
        (lambda: builder.PushOptions(dry_run="yes"), "true or false"),
        (lambda: builder.verify_dataset([ROW], options={"requir": []}), "did you mean 'require'"),
        (lambda: builder.verify_dataset([ROW], options=3), "a dict of its keys"),
        (lambda: builder.verify_dataset({"messages": []}), "a path or a list of rows"),
        (lambda: builder.build_dataset([ROW], "o", config={"nam": "x"}), "did you mean 'name'"),
        (lambda: builder.build_dataset(b"x", "o"), "a path, a list of paths"),
        (lambda: builder.build_dataset("/", "o", config=7), "a Config, a path or a dict"),
        (lambda: builder.diff_datasets([ROW], "no/such"), "no such file or folder"),
        (lambda: builder.verify_dataset("no/such"), "hf://no/such"),
        (lambda: builder.merge_datasets("out", "o"), "a list of folders"),
        (lambda: builder.merge_datasets(["no/such"], "o"), "'no/such': no such folder"),
        (lambda: builder.load_config("no.yaml"), "no.yaml: No such file"),
        (lambda: builder.load_config(preset="stf"), "did you mean 'sft'"),
        (lambda: builder.recognise("no/such"), "no such file or folder"),
        (lambda: builder.recognise(DATA), "several sources"),
        (lambda: builder.normalise(None, {"unit": "turn"}), "must be a Conversation"),
        (lambda: builder.verify_sample(ROW), "rows are for `verify_dataset`"),
        (lambda: builder.build_dataset([ROW], "o", workers="x"), "workers: must be a whole number"),
        (lambda: builder.build_dataset([ROW], "o", workers=1.5), "workers: must be a whole number"),
        (lambda: builder.build_dataset([ROW], "o", workers=0), "number of at least 1, found 0"),
        (lambda: builder.build_dataset([ROW], ""), "out: must be a path, found an empty text"),
        (lambda: builder.build_dataset((r for r in ()), "o"), r"inputs: has no rows \(generator\)"),
        (
            lambda: builder.build_dataset([ROW], "o", mapping="a:\n b"),
            "mapping: is YAML, not a",
        ),
        (
            lambda: builder.build_dataset([ROW], "o", config="a:\n b"),
            "config: is YAML, not a",
        ),
        (lambda: builder.build_dataset([ROW], "o", workers="2"), "of at least 1, found '2'"),
        (lambda: builder.build_dataset(ROW["messages"], "o"), "messages of one conversation: pass"),
        (lambda: builder.verify_dataset(ROW["messages"]), "messages of one conversation: pass"),
        (lambda: builder.build_dataset([ROW["messages"]], "o"), r"conversations: \[\{'messages'"),
        (lambda: builder.build_dataset([ROW], "o", unit="turn"), "config={'normalize': {'unit'"),
        (lambda: builder.push_dataset("o", "a/b", dry_run=True), "options={'dry_run'"),
        (lambda: builder.build_dataset([ROW], "o", tools=[print]), "tools: must be files, a list"),
        (lambda: builder.build_dataset([ROW], "o", tools=[{"a": 1}]), "^tools: is no tool defini"),
        (lambda: builder.build_dataset([ROW], "o", tools={"tools": []}), "^tools: defines no tool"),
        (lambda: builder.build_dataset([ROW], "o", system="Be brief."), "no such file; system mus"),
        (lambda: builder.build_dataset([ROW], "o", system="Be brief. " * 99), "Be…?.* no such fi"),
        (lambda: builder.build_dataset([ROW], "o", system={"role": "system"}), "system: must be a"),
        (lambda: builder.build_dataset([ROW], "o", system=3), "system: must be a file.*found int"),
        (lambda: builder.AuditOptions(contamination=3), "contamination: must be text"),
        (lambda: builder.AuditOptions(contamination=[3]), "contamination.0.: must be text"),
        (lambda: builder.PushOptions(allow="secrets"), "PushOptions.allow: must be a list, found"),
        (lambda: builder.serve_capture(99999), "port: must be a whole number from 0 to 65535"),
        (lambda: builder.inspect_log([{"a": 1}]), "^rows.jsonl: no reader recognises it"),
        (lambda: builder.build_dataset([ROW], "o", worker=2), "did you mean 'workers'"),
        (lambda: builder.build_dataset([ROW]), "missing a required argument: 'out'"),
        (lambda: builder.build_dataset([ROW], "o", preset=DATA), "preset: must be a name"),
        (lambda: builder.build_dataset([ROW, "x"], "o"), "found list of dict, str"),
        (lambda: builder.build_dataset(ROW, "o"), "one row: put it into a list"),
        (lambda: builder.build_dataset([ROW], "o", mapping=3), "mapping: must be a path, a dict"),
        (lambda: builder.build_dataset([ROW], "o", mapping={"mesage": 1}), "mapping: mesage: unk"),
        (lambda: builder.NormalizeOptions(units="turn"), "'units': no such key, did you mean 'uni"),
        (lambda: builder.PushOptions(dry="yes"), "PushOptions: 'dry': no such key"),
        (lambda: builder.Config(nam="x"), "Config: 'nam': no such key, did you mean 'name'"),
        (lambda: builder.Config(normalize={"units": "x"}), "Config.normalize.units: unknown key"),
        (lambda: builder.Config(name=3), "Config.name: must be text"),
        (lambda: builder.verify_dataset([ROW], masks="trl2"), "^masks 'trl2': .* mean 'trl'"),
        (lambda: builder.export_dataset([ROW], "opena", "o"), "^to 'opena': .* mean 'openai'"),
        (lambda: builder.inspect_log([ROW], index=9), "^index 9: there is 1 conversation"),
        (lambda: builder.flatten("x"), "must be a Dialogue .`normalise` makes one., found str"),
        (lambda: builder.flatten(None), "must be a Dialogue"),
        (lambda: builder.build_dataset([ROW], None), "out: must be a path"),
        (lambda: builder.build_dataset([ROW], "o", fresh="yes"), "fresh: must be true or false"),
        (lambda: builder.build_dataset([ROW], "o", engine="spark"), "must be one of local, ray"),
        (lambda: builder.build_dataset([ROW], "o", on_progress=3), "on_progress: must be a func"),
        (lambda: builder.build_dataset([ROW], "o", preset="stf"), "did you mean 'sft'"),
        (
            lambda: builder.build_dataset([ROW], "o", config=builder.Config(), preset="sft"),
            "preset",
        ),
        (lambda: builder.read(ROW), "source: must be a path or a list of rows"),
        (lambda: builder.read([ROW], format=3), "format: must be text"),
        (lambda: builder.inspect_log(None), "path: must be a path or a list of rows"),
        (lambda: builder.inspect_log([ROW], index="x"), "index: must be a whole number"),
        (lambda: builder.verify_dataset([ROW], tokenizer=3), "tokenizer: must be qwen3, a fold"),
        (lambda: builder.AuditOptions(near_duplicates=[ROW] * 99), "off, found a list$"),
        (lambda: builder.verify_dataset([ROW], unit="row"), "unit: must be one of"),
        (lambda: builder.verify_dataset([ROW], masks=3), "masks: must be a list of texts"),
        (lambda: builder.audit_dataset([ROW], workers="x"), "workers: must be a whole number"),
        (lambda: builder.export_dataset([ROW], None, "o"), "to: must be text"),
        (lambda: builder.report_dataset([ROW], None), "out: must be a path"),
        (lambda: builder.merge_datasets([], "o"), "must name the folders"),
        (lambda: builder.push_dataset("o", 3), "repo_id: must be text"),
        (lambda: builder.push_dataset("o", "a b/c"), "must be OWNER/NAME"),
        (lambda: builder.find_sources(None), "path: must be a path"),
        (lambda: builder.capture_logs([]), "command: is empty"),
        (lambda: builder.load_config(3), "config: must be a path"),
        (lambda: builder.collect_logs("o", "no/such"), "no/such"),
        (lambda: builder.capture_definitions(["no-such-agent"]), "'no-such-agent': no such"),
        (lambda: builder.capture_logs(["no-such-agent"]), "'no-such-agent': no such"),
    ],
)
def test_a_mistake_is_reported_where_it_is_made(call, message):
    with pytest.raises(builder.UsageError, match=message):
        call()


def test_paths_and_dicts_are_accepted_wherever_logs_are_read(tmp_path):
    log = DATA / "claude-code" / "parallel.jsonl"
    assert list(builder.recognise(str(log))) == ["claude-code"]
    read = [event for event in builder.read(log) if isinstance(event, builder.Conversation)]
    assert builder.normalise(read[0], {"reasoning": "keep"}).dialogue is not None
    assert builder.normalise(read[0]).dialogue is not None
    (tmp_path / "c.yaml").write_text("name: mine")
    config = builder.load_config(str(tmp_path / "c.yaml"), "agentic")
    assert (config.name, config.normalize.untrained_turns) == ("mine", "weight")
    assert builder.collect_logs(str(tmp_path / "kept"), log.parent).new > 0
    assert builder.collect_logs(tmp_path / "kept", [str(log.parent)]).new == 0


def test_the_version_is_that_of_the_distribution():
    assert builder.__version__[0].isdigit()


@pytest.mark.parametrize(
    ("inputs", "error"),
    [
        (["logs"], None),
        (["logs/x.jsonl"], None),
        (["other"], "inputs[0].tools: would apply to none of the inputs on the command line"),
        ([], None),
    ],
)
def test_options_of_an_input_are_kept_by_its_path_or_refused(inputs, error, tmp_path):
    for name in ("logs", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.jsonl").write_text(json.dumps(ROW) + "\n")
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    (tmp_path / "tools.json").write_text(json.dumps([tool]))
    section = {"path": "logs", "tools": "tools.json", "license": "MIT"}
    (tmp_path / "c.yaml").write_text(json.dumps({"inputs": [section]}))
    command = ["build", *inputs, "-o", "out", "-c", "c.yaml", "--workers", 1]
    done = run(*command, cwd=tmp_path)
    if error:
        assert done.returncode == 2
        assert error in done.stderr
        return
    assert done.returncode == 0, done.stderr
    (meta,) = (tmp_path / "out" / "meta").glob("*.jsonl")
    assert json.loads(meta.read_text())["license"] == "MIT"
    (tmp_path / "tools.json").unlink()
    done = run(*command, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "tools.json" in done.stderr
