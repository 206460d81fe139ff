"""Definitions: what an agent sends is kept without a provider, and supplied to its logs."""

import asyncio
import html
import json
import os
import sys
from pathlib import Path

import pytest
from aiohttp import ClientSession
from support.places import DATA, ROOT
from support.runs.commands import run

import builder
from builder import cli
from builder.capture.agents import adapt, agent_in
from builder.capture.commands import definitions_command
from builder.capture.job import serve
from builder.capture.pairs import agent_of
from builder.capture.scripted import MODEL, TEXT, handler
from builder.conversation import Conversation
from builder.normalize.draft import Draft
from builder.normalize.options import AgentDefinitions, NormalizeOptions
from builder.normalize.tools import for_log, tools
from builder.normalize.turns import system
from builder.readers import read_events, readers
from builder.sources.source import Source

LS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
REQUESTS = {
    "/v1/messages": {
        "model": "m", "max_tokens": 9, "system": "Be brief.",
        "tools": [{"name": "ls", "description": "Lists.", "input_schema": LS}],
        "messages": [{"role": "user", "content": "hi"}],
    },
    "/v1/chat/completions": {
        "model": "m", "messages": [{"role": "user", "content": "hi"}],
    },
    "/v1/responses": {"model": "m", "input": [{"role": "user", "content": "hi"}]},
    "/v1beta/models/m:generateContent": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}  # fmt: skip


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("path", REQUESTS)
def test_scripted_answers_are_read_by_the_readers_of_captures(tmp_path, path, streams):
    request = REQUESTS[path] | ({"stream": True} if streams and "models" not in path else {})
    if streams:
        path = path.replace(":generate", ":streamGenerate")
    taken = []

    async def main():
        server = await serve(handler(lambda *one: taken.append(one)))
        async with (
            ClientSession() as session,
            session.post(f"http://127.0.0.1:{server.port}{path}", json=request) as reply,
        ):
            text = await reply.text()
        await server.close()
        return text

    body = asyncio.run(main())
    ((name, sent, _),) = taken
    assert sent == request
    log = tmp_path / "log.jsonl"
    pair = {"request": {"url": path, "body": request}, "response": {"status": 200, "body": body}}
    log.write_text(json.dumps(pair) + "\n")
    (found,) = read_events(readers()[name], Source(log.name, log))
    assert [part.text for part in found.messages[-1].parts] == [TEXT]
    assert found.model == MODEL


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"enum": ["x", "y"]}, "x"),
        ({"type": "array"}, []),
        ({"type": "integer", "minimum": 1, "maximum": 100}, 1),
        ({"type": "INTEGER", "minimum": -3}, 1),
        ({"type": "integer", "minimum": 4}, 4),
        ({"type": "integer", "maximum": -2}, -2),
        ({"type": "array", "minItems": "2", "items": {"type": "integer", "minimum": 3}}, [3, 3]),
        ({"type": "string", "minLength": 3}, "xxx"),
        ({"type": "string", "minLength": 10**9}, 100 * "x"),
        ({"anyOf": [{"type": "integer", "minimum": 7}, {"type": "null"}]}, 7),
    ],
)
def test_an_answer_in_json_obeys_the_schema_that_is_demanded(schema, value):
    schema = {"type": "object", "properties": {"a": schema}}
    text = asked_for(schema)
    assert json.loads(text) == {"a": value}


def asked_for(schema):
    """Returns the text of the answer to a request that demands JSON of a schema."""
    request = REQUESTS["/v1beta/models/m:generateContent"] | {
        "generationConfig": {"responseJsonSchema": schema}
    }

    async def main():
        server = await serve(handler(lambda *_: None))
        url = f"http://127.0.0.1:{server.port}/v1beta/models/m:generateContent"
        async with ClientSession() as session, session.post(url, json=request) as reply:
            value = await reply.json()
        await server.close()
        return value

    return asyncio.run(main())["candidates"][0]["content"]["parts"][0]["text"]


AGENT = """
import json, os, sys, urllib.request
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
assert os.environ["ANTHROPIC_API_KEY"] and not os.listdir(os.path.expanduser("~/.gemini/.."))[1:]
for body in json.loads(sys.argv[1]):
    request = urllib.request.Request(url, json.dumps(body).encode(),
                                     {"User-Agent": "claude-cli/2.1.200 (external, cli)"})
    print(urllib.request.urlopen(request).status)
"""


def test_the_file_keeps_what_the_agent_sends(tmp_path):
    main = REQUESTS["/v1/messages"]
    side = main | {"tools": [], "system": "Make a title."}
    command = [sys.executable, "-c", AGENT, json.dumps([side, main])]
    out = tmp_path / "defs" / "claude.json"
    ran = run("capture", "--definitions", "-o", out, "--", *command)
    assert ran.returncode == 0, ran.stderr
    assert "claude-code 2.1.200, 1 tool and 9 characters" in ran.stdout
    assert json.loads(out.read_text()) == {
        "agent": "claude-code", "version": "2.1.200", "headless": True, "folder": str(Path.cwd()),
        "system": "Be brief.", "tools": main["tools"],
    }  # fmt: skip


def test_a_command_that_sends_nothing_is_a_mistake(tmp_path):
    ran = run("capture", "--definitions", "-o", tmp_path / "x", "--", sys.executable, "-c", "pass")
    assert ran.returncode == 2
    assert "sent no request" in ran.stderr


@pytest.mark.parametrize(
    ("user_agent", "found"),
    [
        ("claude-cli/2.1.330 (external, cli)", ("claude-code", "2.1.330")),
        ("codex_exec/0.171.0 (Debian 12; x86_64)", ("codex", "0.171.0")),
        ("GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64)", ("gemini-cli", "0.61.0")),
        ("QwenCode/0.24.4 (linux; x64)", ("qwen-code", "0.24.4")),
        ("opencode/1.18.33 ai-sdk/x", ("opencode", "1.18.33")),
        ("OpenAI/Python 1.99.0", None),
        ("api/2.0", None),
    ],
)
def test_the_user_agent_names_the_agent(user_agent, found):
    assert agent_of(user_agent) == found


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (["/usr/bin/claude", "-p", "hi"], ("claude-code", 0)),
        (["npx", "-y", "@openai/codex@0.1", "exec"], ("codex", 2)),
        (["node", "/x/node_modules/@google/gemini-cli/bundle/gemini.js"], ("gemini-cli", 1)),
        (["python", "-m", "program"], None),
    ],
)
def test_the_agent_of_a_command_is_known(command, found):
    assert agent_in(command) == found


def test_agents_that_ignore_the_environment_get_options(tmp_path):
    environment = {
        "OPENAI_BASE_URL": "http://o/v1", "ANTHROPIC_BASE_URL": "http://a",
        "GOOGLE_GEMINI_BASE_URL": "http://g", "OPENROUTER_BASE_URL": "http://r",
        "GROQ_BASE_URL": "http://q", "CEREBRAS_BASE_URL": "http://c",
    }  # fmt: skip
    codex = adapt(["codex", "exec", "hi"], environment, tmp_path)
    assert codex == ["codex", "-c", 'openai_base_url="http://o/v1"', "exec", "hi"]
    pi = adapt(["pi", "-p", "hi"], environment, tmp_path)
    assert pi[1] == "-e"
    assert "http://a" in (tmp_path / "addresses.ts").read_text()
    own = {"provider": {"openai": {"options": {"baseURL": "http://mine"}}}}
    environment["OPENCODE_CONFIG_CONTENT"] = json.dumps(own)
    assert adapt(["opencode", "run"], environment, tmp_path) == ["opencode", "run"]
    providers = json.loads(environment["OPENCODE_CONFIG_CONTENT"])["provider"]
    assert providers["openai"]["options"]["baseURL"] == "http://mine"
    assert providers["anthropic"]["options"]["baseURL"] == "http://a/v1"


@pytest.mark.parametrize(
    ("version", "chosen"),
    [
        ("2.1.0", "2.1.0"), ("2.1.5", "2.1.0"), ("2.10.1", "2.9.3"), ("1.0", "2.1.0"),
        ("3.0", "2.9.3"), (None, "2.9.3"),
    ],
)  # fmt: skip
def test_the_nearest_version_is_supplied(version, chosen):
    known = [
        AgentDefinitions("claude-code", name, f"prompt {name}", ({"name": name},))
        for name in ("2.9.3", "2.1.0")
    ]
    options = NormalizeOptions(captured=(*known, AgentDefinitions("codex", "2.10.1", "no", ())))
    log = Conversation(id="a", record="line 1", messages=(), version=version)
    found = for_log(options, "claude-code", log)
    assert found.supplied_system == f"prompt {chosen}"
    assert found.supplied_tools == ({"name": chosen},)
    assert found.supplied_source == "captured"
    assert for_log(options, "pi", log) == options


@pytest.mark.parametrize(
    ("headless", "prompt"), [(True, "SDK in /srv"), (False, "CLI in /srv"), (None, "CLI in /srv")]
)
def test_a_session_gets_the_prompt_of_its_mode_with_its_folder(headless, prompt):
    known = [
        AgentDefinitions(
            "claude-code", "2", f"{name} in /tmp/x", ({"name": "/tmp/x"},), mode, "/tmp/x"
        )
        for name, mode in (("CLI", False), ("SDK", True))
    ]
    log = Conversation(
        id="a", record="line 1", messages=(), version="2", headless=headless, folder="/srv"
    )
    found = for_log(NormalizeOptions(captured=tuple(known)), "claude-code", log)
    assert found.supplied_system == prompt
    assert found.supplied_tools == ({"name": "/srv"},)


_MESSAGES = """{"id": "1", "timestamp": "t", "type": "user", "content": [{"text": "hi"}]}
{"id": "2", "timestamp": "t", "type": "gemini", "content": "ho", "model": "m"}
"""
_GEMINI = '{"sessionId": "s", "projectHash": "h"}\n' + _MESSAGES
_CONTEXT = "<session_context>\\nToday\\n- **Workspace Directories:**\\n  - /srv/My App\\n"
_CODEX = """{"type": "session_meta", "payload": {"id": "s", "cwd": "/srv/My App"}}
{"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": "ho"}}
"""
_CAPTURED = "/tmp/builder-definitions-a_b1/work"
_PROMPT = (
    f"In {_CAPTURED}, see ~/.gemini/tmp/work/memory/M.md, ~/.gemini/tmp/work-2/M.md and "
    "~/.qwen/projects/-tmp-builder-definitions-a-b1-work/memory."
)


@pytest.mark.parametrize(
    ("agent", "root", "log", "folder"),
    [
        ("gemini-cli", "/srv/My App", _GEMINI, "/srv/My App"),
        ("gemini-cli", None, _GEMINI.replace("hi", _CONTEXT), "/srv/My App"),
        ("gemini-cli", None, _GEMINI, None),
        ("codex", None, _CODEX, "/srv/My App"),
    ],
)
def test_the_random_folder_of_a_capture_is_in_no_prompt(tmp_path, agent, root, log, folder):
    """Neither whole nor in the names that agents make of it, also if the log has no folder."""
    path = tmp_path / "my-app" / "chats" / "session-1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(log)
    if root:
        (path.parent.parent / ".project_root").write_text(root)
    events = read_events(readers()[agent], Source(path.name, path))
    (session,) = (event for event in events if isinstance(event, Conversation))
    assert session.folder == folder
    known = AgentDefinitions(agent, "1", _PROMPT, ({"name": "ls"},), folder=_CAPTURED)
    found = for_log(NormalizeOptions(captured=(known,)), agent, session)
    moved = (
        ("/srv/My App", "my-app", "-srv-My-App") if folder else ("/tmp/work", "work", "-tmp-work")
    )
    assert found.supplied_system == (
        f"In {moved[0]}, see ~/.gemini/tmp/{moved[1]}/memory/M.md, ~/.gemini/tmp/work-2/M.md and "
        f"~/.qwen/projects/{moved[2]}/memory."
    )


@pytest.mark.parametrize(
    ("listed", "captured_system", "count"),
    [(None, "I am 2.", 1), (None, None, 1), ((), "I am 2.", 1), ((), None, 0)],
)
def test_another_version_counts_where_its_definitions_are_used(listed, captured_system, count):
    """A system prompt that the user gave is of no version."""
    other = AgentDefinitions("claude-code", "2", captured_system, ({"name": "ls"},))
    options = NormalizeOptions(captured=(other,), supplied_system="Mine.")
    options = for_log(
        options, "claude-code", Conversation(id="a", record="line 1", messages=(), version="1")
    )
    draft = system(Draft((), system=(), tools=listed), options)
    assert tools(draft, options).changes.get("other_version", 0) == count


CHAT = {
    "messages": [
        {"role": "user", "content": "List it."},
        {"role": "assistant", "tool_calls": [
            {"id": "call_1", "type": "function",
             "function": {"name": "ls", "arguments": '{"path": "."}'}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a"},
        {"role": "assistant", "content": "There is a."},
    ]
}  # fmt: skip


def rows(folder):
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def test_a_build_uses_the_definitions_of_the_agent_and_marks_them(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps(CHAT) + "\n")
    for agent in ("openai-chat", "codex"):
        tools = [{"name": "ls", "description": agent, "input_schema": LS}, {"name": "cat"}]
        value = {"agent": agent, "version": "1", "system": f"I am {agent}.", "tools": tools}
        (tmp_path / f"{agent}.json").write_text(json.dumps(value))
    files = [tmp_path / f"{agent}.json" for agent in ("codex", "openai-chat")]
    arguments = [word for file in files for word in ("--tools", file, "--system", file)]
    ran = run("build", log, "-o", tmp_path / "out", *arguments)
    assert ran.returncode == 0, ran.stderr
    assert "inferred" not in ran.stdout
    (sample,) = rows(tmp_path / "out" / "data")
    assert sample["messages"][0]["content"].startswith("I am openai-chat.")
    assert [tool["function"]["name"] for tool in sample["tools"]] == ["ls", "cat"]
    (meta,) = rows(tmp_path / "out" / "meta")
    assert meta["tools_source"] == "captured"
    assert meta["context"]["level"] == "partial"


@pytest.mark.parametrize(
    ("agent", "model", "command"),
    [
        ("claude-code", "claude-fable-5[1m]", "claude --model 'claude-fable-5[1m]' -p hi"),
        ("codex", "gpt-5-codex", "codex exec --skip-git-repo-check -m gpt-5-codex hi"),
        ("gemini-cli", "gemini-2.5-pro", "gemini -y -m gemini-2.5-pro -p hi"),
        ("qwen-code", "qwen/qwen3:30b", "qwen -y -m qwen/qwen3:30b -p hi"),
        ("opencode", "claude-fable-5", "opencode run hi"),
        ("pi", "claude-fable-5", "pi -p hi"),
        ("codex", None, "codex exec --skip-git-repo-check hi"),
        ("codex", "m; rm -rf x", "codex exec --skip-git-repo-check hi"),
        ("codex", "--yolo", "codex exec --skip-git-repo-check hi"),
        ("claude-code", "<synthetic>", "claude -p hi"),
        ("codex", "`x`", "codex exec --skip-git-repo-check hi"),
        ("codex", "m\nx", "codex exec --skip-git-repo-check hi"),
    ],
)
def test_agents_without_tools_in_their_logs_have_a_command(agent, model, command):
    assert agent in readers()
    assert definitions_command(agent, model) == (
        f"builder capture --definitions -o {agent}-definitions.json -- {command}"
    )


def test_other_formats_have_no_command():
    assert definitions_command("openai-chat", "m") is None


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_summary_inspect_and_report_name_the_command_where_tools_are_missing(tmp_path, agent):
    log = next((DATA / agent).glob("*.jsonl"))
    command = f"builder capture --definitions --logs {log} -o definitions"

    supplied = tmp_path / "definitions.json"
    names = ("Read", "Glob", "Grep", "Bash", "shell", "apply_patch")
    tools = [{"name": name, "input_schema": LS} for name in names]
    for options, named in (((), True), (("--tools", supplied), False)):
        out = tmp_path / f"out-{named}"
        built = run("build", log, "-o", out, *options)
        assert built.returncode == 0, built.stderr
        assert (f"\n       {command}\n" in built.stdout) is named
        report = html.unescape((out / "report.html").read_text())
        published = command.replace(str(log), log.name)  # no path of this machine
        assert (f'<pre class="command">{published}</pre>' in report) is named
        assert ("capture --definitions" in report) is named
        version = rows(out / "meta")[0].get("agent_version", "1")
        sent = {"agent": agent, "version": version, "system": "", "tools": tools}
        supplied.write_text(json.dumps(sent))
    shown = run("inspect", log)
    assert f"this captures the real ones: {command}\n" in shown.stdout


def test_nothing_is_captured_for_a_log_with_its_tools(tmp_path):
    logged = ROOT / "tests" / "readers" / "pi" / "prompt-logged" / "input" / "session.jsonl"
    log = tmp_path / "session.jsonl"
    log.write_text("".join(logged.read_text().splitlines(keepends=True)[:6]))
    built = run("build", log, "-o", tmp_path / "out")
    assert built.returncode == 0, built.stderr
    shown = run("inspect", log, "--full")
    assert "# Tools" in shown.stdout
    report = (tmp_path / "out" / "report.html").read_text()
    for text in (built.stdout, shown.stdout, report):
        assert "--definitions" not in text


FAKE = """#!{python}
import json, os, sys, urllib.request
version = os.environ["FAKE_VERSION"]
if sys.argv[1] == "--version":
    print(version + " (Claude Code)")
    sys.exit()
if os.path.basename(sys.argv[0]) == "npx":
    version = sys.argv[2].rpartition("@")[2]
    if version == "9.0.3":
        sys.exit("npm error 404 no such version")
name = "SDK" if "-p" in sys.argv else "CLI" if sys.stdin.isatty() else "none"
body = {{"model": "m", "max_tokens": 9, "system": f"{{name}} {{version}} in {{os.getcwd()}}",
        "tools": [{{"name": "ls", "input_schema": {{"type": "object"}}}}],
        "messages": [{{"role": "user", "content": "hi"}}]}}
urllib.request.urlopen(urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(),
    {{"User-Agent": f"claude-cli/{{version}} (external, cli)"}}))
"""


def test_the_versions_that_wrote_logs_are_captured_and_each_session_gets_its_own(
    tmp_path, monkeypatch
):
    for name in ("claude", "npx"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(FAKE.format(python=sys.executable))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("FAKE_VERSION", "9.0.1")
    sessions = [("9.0.1", "cli"), ("9.0.2", None), ("9.0.2", "sdk-cli"), ("9.0.3", "cli")]
    for number, (version, entry) in enumerate(sessions):
        common = {"sessionId": f"s{number}", "version": version, "cwd": "/srv/shop"}
        common |= {"entrypoint": entry} if entry else {}
        answer = {"role": "assistant", "id": "m", "content": "Hello.", "stop_reason": "end_turn"}
        lines = [
            {"type": "user", "uuid": "1", "message": {"role": "user", "content": f"Hi {number}?"}},
            {"type": "assistant", "uuid": "2", "parentUuid": "1", "message": answer},
        ]
        log = tmp_path / "logs" / f"s{number}.jsonl"
        log.parent.mkdir(exist_ok=True)
        log.write_text("".join(json.dumps(line | common) + "\n" for line in lines))
    out = tmp_path / "definitions"
    ran = run("capture", "--definitions", "--logs", tmp_path / "logs", "-o", out)
    assert ran.returncode == 0, ran.stderr
    assert "3 versions in 4 sessions; capturing the 3 that wrote 100% of the turns" in ran.stdout
    assert "not had: npx: npm error 404 no such version" in ran.stdout
    assert "2 versions, 75% of the turns" in ran.stdout
    names = ["claude-code-9.0.1.json", "claude-code-9.0.2-p.json", "claude-code-9.0.2.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    ran = run("build", tmp_path / "logs", "--definitions", out, "-o", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    prompts = sorted(row["messages"][0]["content"] for row in rows(tmp_path / "out" / "data"))
    kinds = [prompt.partition(" in ")[0] for prompt in prompts]
    assert kinds == ["CLI 9.0.1", "CLI 9.0.2", "CLI 9.0.2", "SDK 9.0.2"]
    assert all(" in /srv/shop" in prompt for prompt in prompts)
    (out / names[0]).write_text("{}")
    ran = run("capture", "--definitions", "--logs", tmp_path / "logs", "-o", out)
    assert "exists, and no capture made it" in ran.stdout
    assert (out / names[0]).read_text() == "{}"


def test_a_file_that_no_capture_made_is_kept(tmp_path, capsys):
    own = tmp_path / "opencode.json"
    own.write_text('{"model": "anthropic/claude"}')
    command = ["capture", "--definitions", "-o", str(own), "--", "true"]
    assert cli.main(command) == 2
    assert "exists, and no capture made it" in capsys.readouterr().err
    assert own.read_text() == '{"model": "anthropic/claude"}'


def test_the_folder_of_the_capture_is_not_in_the_prompt(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    agent = (
        "import json, os, urllib.request as u; home = os.environ['HOME'];"
        "body = {'model': 'm', 'max_tokens': 9, 'messages': [{'role': 'user', 'content': 'hi'}],"
        " 'system': f'Temporary files: {home}/.agent/tmp'};"
        "u.urlopen(u.Request(os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages',"
        " json.dumps(body).encode(), {'content-type': 'application/json'}))"
    )
    sent = builder.capture_definitions([sys.executable, "-c", agent])
    assert sent.system == f"Temporary files: {tmp_path}/.agent/tmp"
