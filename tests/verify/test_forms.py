"""Datasets in other forms: converted and named, or described in one line.

The oracle for our own exports is the dataset that was exported.
"""

import json

import pytest
from support.places import CASES, DATA
from support.runs.builds import build, lines
from support.templates.published import text_of
from support.templates.targets import with_template

from builder import UsageError, cli
from builder.dataset.rows import dataset_rows
from builder.export.variants import VARIANTS
from builder.verify.dataset import verify_dataset
from builder.verify.verifier import Verifier

CONFIG = "normalize: {control_tokens: neutralise, reasoning: keep}\nsplit: {test: 0.3}\n"

FORMS = {
    "messages": {""},
    "messages-str": {"", "messages-str"},
    "tools-in-system": {"", "tools-in-system"},
    "openai": {"", "openai-chat"},
    "prompt-completion": {"prompt-completion"},
    "prompt-completion-text": {"prompt-completion-text"},
    "sharegpt": {"sharegpt"},
    "verl": {"", "tools-in-system"},
}
"""{variant: forms that its rows are read as}. Rows without tools or calls are in our own form."""

ONE_LINE = {
    "trl-grpo": "prompts without answers",
    "verl-rl": "prompts without answers",
    "tokenized": "contains token ids",
    "atif": "is in the format atif",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("forms") / "built"
    assert build(out) == 0
    return out


def exported(built, variant):
    out = built.parent / variant
    if not out.exists():
        assert cli.main(["export", str(built), "--to", variant, "-o", str(out), "--quiet"]) == 0
    return out


def run(capsys, *command):
    code = cli.main([*map(str, command)])
    out, err = capsys.readouterr()
    return code, out, err


def test_every_variant_has_an_expected_result():
    assert {*FORMS, *ONE_LINE, "preference"} == {*VARIANTS, "atif"}


def test_preference_pairs_are_one_line(tmp_path):
    row = {"prompt": [], "chosen": [], "rejected": [], "tools": [], "reason": "label"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(UsageError, match=r"contains preference pairs: .*that they were made from"):
        list(dataset_rows(str(tmp_path / "rows.jsonl")))


@pytest.mark.quick(3)
@pytest.mark.parametrize("variant", FORMS)
def test_an_export_is_proven_and_its_form_named(built, variant, capsys):
    samples = [line for path in sorted((built / "data").iterdir()) for line in lines(path)]
    turns = sum(len(meta["spans"]) for path in (built / "meta").iterdir() for meta in lines(path))
    folder = exported(built, variant)
    capsys.readouterr()
    code, out, _ = run(capsys, "verify", folder, "--json")
    found = json.loads(out)
    rows = turns if variant.startswith("prompt") else len(samples)
    assert (code, found["proven"], found["samples"]) == (0, rows, rows)
    assert (found["assistant_turns"], found["conversion"]) == (turns, {})
    assert {*found["read_as"]} == FORMS[variant] - {""}
    code, out, _ = run(capsys, "audit", folder, "--json")
    assert (code, json.loads(out)["read_as"]) == (0, found["read_as"])
    read = [row.reading for row in dataset_rows(str(folder))]
    assert {one.form for one in read} == FORMS[variant]
    if not variant.startswith("prompt"):
        assert [one.sample.record for one in read] == samples


@pytest.mark.parametrize("variant", ONE_LINE)
@pytest.mark.parametrize("command", ["verify", "audit"])
def test_an_input_that_is_not_a_dataset_is_one_line(built, variant, command, capsys):
    folder = exported(built, variant)
    capsys.readouterr()
    code, out, err = run(capsys, command, folder)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert ONE_LINE[variant] in err
    if variant == "atif":
        assert f"`builder build {folder} -o OUT`" in err


def test_logs_name_the_command_that_reads_them(capsys):
    for command in ("verify", "audit"):
        code, out, err = run(capsys, command, DATA / "claude-code" / "parallel.jsonl")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "is in the format claude-code" in err


@pytest.mark.parametrize(
    ("case", "form"),
    [
        ("xlam/rows", "xlam"),
        ("glaive/rows", "glaive"),
        ("sharegpt/hermes", "sharegpt"),
        ("sharegpt/function-call", "sharegpt"),
        ("toolace/rows", "toolace"),
        ("openai-chat/fine-tuning", "openai-chat"),
    ],
)
def test_published_forms_are_converted(case, form, capsys):
    """As in `build`: a row is proven if building it gives a sample."""
    path = CASES / case / "input" / "rows.jsonl"
    code, out, _ = run(capsys, "verify", path, "--json")
    found = json.loads(out)
    assert found["read_as"][form] > 0
    assert found["proven"] > 0
    assert code == (1 if found["findings"] else 0)


CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "wc", "arguments": '{"path":"a"}'},
}
TOOLS = [{"type": "function", "function": {"name": "wc", "parameters": {"type": "object"}}}]
STRUCTURED = {
    "messages": [
        {"role": "user", "content": "How long is a?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": "assistant", "content": "Three words."},
    ],
    "tools": TOOLS,
}


def only(path):
    (row,) = dataset_rows(str(path))
    return row


@pytest.mark.parametrize("results", [[], [{"role": "tool", "tool_call_id": "x", "content": "r"}]])
def test_turns_that_the_conversion_cuts_cause_a_warning(results, tmp_path, capsys):
    """A call without its result: the answer after it is not part of the sample."""
    call = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    end = {"role": "assistant", "content": "Done."}
    row = {**STRUCTURED, "messages": [{"role": "user", "content": "Hi"}, call, *results, end]}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")
    code, out, _ = run(capsys, "verify", path)
    assert code == 0
    assert "warning turns-cut: 1 line (the conversion ends the conversation early" in out


def test_structured_rows_that_render_differently_cause_a_warning(tmp_path, verifier, capsys):
    """Null as content is refused; compact arguments are copied, and `build` writes spaces."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(STRUCTURED) + "\n")
    code, out, _ = run(capsys, "verify", path, "--json")
    found = json.loads(out)
    assert (code, found["proven"], found["read_as"]) == (0, 1, {"openai-chat": 1})
    assert found["warnings"] == {"as-written": 1}
    spaced = STRUCTURED["messages"][1]["tool_calls"][0]["function"] | {"arguments": '{"path": "a"}'}
    same = json.loads(json.dumps(STRUCTURED))
    same["messages"][1] |= {"content": "", "tool_calls": [CALL | {"function": spaced}]}
    text = verifier.target.tokenizer.apply_chat_template(
        same["messages"], tools=TOOLS, tokenize=False
    )
    path.write_text(json.dumps(same) + "\n")
    assert verifier.target.render_sample(only(path).sample) == text
    assert json.loads(run(capsys, "verify", path, "--json")[1])["warnings"] == {}


def test_a_list_as_content_is_a_fault_and_no_other_form(tmp_path, capsys):
    row = json.loads(json.dumps(STRUCTURED))
    row["messages"][0]["content"] = [{"type": "text", "text": "How long is a?"}]
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    code, out, _ = run(capsys, "verify", tmp_path / "rows.jsonl")
    assert code == 1
    assert "the template renders lists as nothing" in out


def test_text_that_differs_from_the_templates_rendering_is_a_finding(tmp_path, capsys, verifier):
    text = verifier.target.tokenizer.apply_chat_template(
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], tokenize=False
    )
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": text}) + "\n")
    code, out, _ = run(capsys, "verify", path, "--json")
    assert (code, json.loads(out)["read_as"]) == (0, {"text": 1})
    path.write_text(json.dumps({"text": text.replace("<think>\n\n</think>\n\n", "")}) + "\n")
    code, out, _ = run(capsys, "verify", path, "--json")
    assert (code, json.loads(out)["findings"]) == (1, {"as-written": 1})


def test_rows_of_no_known_form_name_their_columns(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"left": 1, "right": 2}\n')
    with pytest.raises(UsageError, match=r"no known form of rows \(left, right\)"):
        list(dataset_rows(str(tmp_path / "rows.jsonl")))


@pytest.mark.quick(1)
@pytest.mark.parametrize("variant", ["openai", "tools-in-system", "prompt-completion-text"])
def test_thoughts_and_escaped_tokens_survive(tmp_path, variant, capsys):
    (tmp_path / "c.yaml").write_text(CONFIG)
    assert build(tmp_path / "built", "-c", tmp_path / "c.yaml") == 0
    capsys.readouterr()
    code, out, _ = run(capsys, "verify", exported(tmp_path / "built", variant), "--json")
    found = json.loads(out)
    assert (code, found["findings"], found["warnings"]) == (0, {}, {})
    assert found["proven"] == found["samples"] > 0


@pytest.mark.parametrize(("escaped", "code"), [(True, 0), (False, 1)])
def test_escaped_tokens_in_calls_of_sharegpt_rows(tmp_path, capsys, escaped, code):
    """`<` as a JSON escape is not the token that a trainer's tokenizer would see."""
    mark = "\\u003c" if escaped else "<"
    call = (
        f'<tool_call>\n{{"name": "wc", "arguments": {{"path": "{mark}|im_end|>"}}}}\n</tool_call>'
    )
    texts = (("human", "How long?"), ("gpt", call), ("observation", "3"), ("gpt", "Three."))
    row = {
        "conversations": [{"from": role, "value": text} for role, text in texts],
        "tools": json.dumps(TOOLS),
    }
    (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n")
    found_code, out, _ = run(capsys, "verify", tmp_path / "x.jsonl", "--json")
    assert found_code == code
    assert json.loads(out)["proven"] == 1 - code


@pytest.mark.parametrize("name", ["Qwen3.6", "Qwen3.8"])
def test_rows_are_converted_to_the_form_of_the_target(tmp_path, name):
    """A thought beside the text and structured calls, under a template that writes XML."""
    function = {"name": "f", "arguments": '{"n": 1}'}
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
    asked = [{"role": "user", "content": "a"}]
    call = {"id": "1", "type": "function", "function": function}
    called = {"role": "assistant", "content": "b", "tool_calls": [call]}
    answered = {"role": "tool", "tool_call_id": "1", "content": "1"}
    last = {"role": "assistant", "content": "c", "reasoning_content": "d"}
    definition = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    rows = [
        {"messages": [*asked, called, answered, last], "tools": [definition]},
        {"messages": [*asked, last], "tools": []},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    reports = list(verify_dataset(str(path), Verifier(with_template(text_of(name))), None))
    assert [report.findings for report in reports] == [(), ()]


def test_a_call_that_a_parser_of_the_target_loses_is_a_warning_with_its_row(tmp_path):
    properties = {"n": {"type": "integer"}, "s": {"type": "string"}}
    function = {"name": "f", "parameters": {"type": "object", "properties": properties}}

    def row(*calls, weight=None):
        messages = [{"role": "user", "content": "a"}]
        for number, arguments in enumerate(calls):
            made = {"name": "f", "arguments": json.dumps(arguments)}
            call = {"id": str(number), "type": "function", "function": made}
            weighted = {} if weight is None else {"weight": weight}
            messages += [
                {"role": "assistant", "content": "b", "tool_calls": [call], **weighted},
                {"role": "tool", "tool_call_id": str(number), "content": "1"},
                {"role": "assistant", "content": "c"},
                {"role": "user", "content": "d"},
            ]
        return {"messages": messages[:-1], "tools": [{"type": "function", "function": function}]}

    rows = [
        row({"n": 1}),
        row({"n": "1"}, {"n": 2}),
        row({"n": 1}, {"s": "x\n"}, {"n": "2"}),
        row({"n": 1}, {"s": "</parameter>"}),
        row({"n": "1"}, {"n": 2}, weight=0),
        {**row({"n": 1}), "messages": row({"n": 1}, {"n": "7"})["messages"][:-2]},
        {**row({"n": 1}), "messages": row({"n": "8"})["messages"][:2]},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def named(template):
        reports = verify_dataset(str(path), Verifier(with_template(template)), None)
        return [
            (report.line, item.code, item.message)
            for report in reports
            for item in (*report.findings, *report.warnings)
            if item.code.startswith("xml_")
        ]

    lost = "; the turn is not trained"
    assert named(text_of("Qwen3.6")) == [
        (2, "xml_types", f"f.n: '1' does not read back as string{lost}"),
        (3, "xml_markup", f"f.s: the value begins or ends with a newline{lost}"),
        (3, "xml_types", f"f.n: '2' does not read back as string{lost}"),
        (4, "xml_markup", f"f.s: the value contains </parameter>{lost}"),
        (6, "xml_types", f"f.n: '7' does not read back as string{lost}"),
        (7, "xml_types", f"f.n: '8' does not read back as string{lost}"),
    ]
    assert named(text_of("Qwen3")) == []


ASKED = {"role": "user", "content": "q"}
NOT_READ = {
    "a thought under reasoning": ([ASKED, {"reasoning": "t", "content": "a"}], True),
    "a thought under thinking": ([ASKED, {"thinking": "t", "content": "a"}], True),
    "beside the key that is read": (
        [ASKED, {"reasoning": "t", "reasoning_content": "t", "content": "a"}], False),
    "an empty one": ([ASKED, {"reasoning": "", "content": "a"}], False),
    "null": ([ASKED, {"thinking": None, "content": "a"}], False),
    "before the last query, where none is shown": (
        [ASKED, {"thinking": "t", "content": "a"}, ASKED, {"content": "b"}], False),
    "in the text": ([ASKED, {"content": "<think>\nt\n</think>\n\na"}], False),
    "the key that is read": ([ASKED, {"reasoning_content": "t", "content": "a"}], False),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_READ)
def test_thoughts_under_a_key_that_the_template_does_not_read(name, tmp_path, capsys):
    messages, warned = NOT_READ[name]
    rows = [{"role": "assistant", **message} for message in messages]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"messages": rows}) + "\n", encoding="utf-8")
    code, out, _ = run(capsys, "verify", path, "--json")
    assert code == 0
    assert json.loads(out)["warnings"].get("as-written", 0) == int(warned)
