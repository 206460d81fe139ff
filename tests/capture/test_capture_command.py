"""`builder capture`: the command it runs, its mistakes, and the addresses of providers."""

import asyncio
import sys

import pytest
from aiohttp import web
from support.runs.commands import run
from test_capture import pairs

from builder.capture.agents import routes
from builder.capture.job import body_of, serve
from builder.problem import UsageError

CHILD = """
import os, sys, urllib.request
urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", b"{}", timeout=9).read()
sys.exit(3)
"""


def test_the_command_runs_and_its_exit_code_is_ours(tmp_path, monkeypatch):
    async def main():
        async def handler(request):
            await body_of(request)
            return web.json_response({"choices": []})

        provider = await serve(handler)
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{provider.port}/v1")
        command = ["capture", "-o", tmp_path / "captures", "--", sys.executable, "-c", CHILD]
        ran = await asyncio.to_thread(run, *command)
        await provider.close()
        return ran

    ran = asyncio.run(main())
    assert ran.returncode == 3
    assert "1 exchange" in ran.stderr
    assert ran.stdout == ""
    assert pairs(tmp_path)[0]["request"]["url"].endswith("/v1/chat/completions")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "name a command"),
        (["--definitions", "--", "x"], "-o FILE"),
        (["--upstream", "NAME", "--", "x"], "VARIABLE=URL"),
        (["--upstream", "A=ftp://x", "--", "x"], "http"),
        (["--", "no-such-command-at-all"], "no-such-command-at-all"),
    ],
)
def test_mistakes_are_one_line(tmp_path, arguments, text):
    ran = run("capture", *arguments, cwd=tmp_path)
    assert ran.returncode == 2
    assert text in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_addresses_of_the_environment_are_the_providers():
    found = {one.variable: one for one in routes({"OPENAI_BASE_URL": "https://h.example/a/v2/"})}
    assert found["OPENAI_BASE_URL"].upstream == "https://h.example"
    assert found["OPENAI_BASE_URL"].local(7) == "http://127.0.0.1:7/openai-base-url/a/v2"
    assert found["ANTHROPIC_BASE_URL"].upstream == "https://api.anthropic.com"
    with pytest.raises(UsageError):
        routes({"OPENAI_BASE_URL": "nonsense"})
