"""Installs agents into a cache and runs their scenarios, each in its own network namespace.

Everything is written to the folder named by the environment variable WIRE:

    install/AGENT-VERSION/           packages, install scripts off
    AGENT/VERSION/SCENARIO/requests  each request with its answer
    AGENT/VERSION/SCENARIO/logs      the sessions that the agent wrote
    AGENT/VERSION/SCENARIO/captured  what `builder capture` wrote, if the run was proxied
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from wire.agents import Agent

HARNESS = Path(__file__).parent
_PORT = 8099
_PROXY_PORT = 8098
_SECONDS = 90
_RUN = """
ip link set lo up
"$PYTHON" "$HARNESS/mock_server.py" "$PORT" "$REQUESTS" 2> "$RUN/mock.err" & MOCK=$!
for i in 1 2 3 4 5 6 7 8 9 10; do
  sleep 0.2; (exec 3<>/dev/tcp/127.0.0.1/$PORT) 2>/dev/null && break
done
PROXY=
if [ -n "$PROXIED" ]; then
  PYTHONPATH="$CHECKOUT" "$PYTHON" -m builder capture --serve "$PROXIED" -o "$RUN/captured" \\
    --upstream "WIRE=http://127.0.0.1:$PORT" > "$RUN/proxy.out" 2>&1 & PROXY=$!
  until grep -q Ctrl-C "$RUN/proxy.out"; do sleep 0.2; kill -0 $PROXY || exit; done
  export PORT=$PROXIED/wire
fi
timeout -k 5 "$LIMIT" bash -c "$SCRIPT" > "$RUN/out" 2> "$RUN/err" < /dev/null
echo $? > "$RUN/status"
if [ -n "$PROXY" ]; then kill $PROXY; wait $PROXY; fi
kill $MOCK
"""
_FILES = {"app.py": "import sys\n\nprint('hello')\n", "data.txt": "one\ntwo\nthree\n"}


def root() -> Path:
    """Returns the folder for all files of the harness. Raises SystemExit if WIRE is not set."""
    folder = os.environ.get("WIRE")
    if not folder:
        raise SystemExit("set WIRE to a folder outside of the project")
    return Path(folder).resolve()


def install(agent: Agent, version: str) -> Path:
    """Installs one version of an agent unless it exists; returns the folder of its packages."""
    folder = root() / "install" / f"{agent.name}-{version}"
    done = folder / ".installed"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for package in agent.packages(version):
        kind, _, name = package.partition(":")
        if kind == "npm":
            if not (folder / "package.json").exists():  # npm removes packages that are not listed
                (folder / "package.json").write_text('{"private": true}')
            command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", name]
        else:
            if not (folder / "bin").exists():
                python = f"python{agent.python}" if agent.python else sys.executable
                subprocess.run([python, "-m", "venv", str(folder)], check=True)
            command = [str(folder / "bin" / "pip"), "install", "-q", name]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    done.touch()
    return folder


def run(agent: Agent, version: str, scenario: str, *, proxied: bool = False) -> Path:
    """Runs one scenario; returns the folder with `requests` and `logs`.

    `proxied`: the agent's requests pass through `builder capture`, which writes `captured`.
    """
    packages = install(agent, version)
    folder = root() / agent.name / version / scenario
    shutil.rmtree(folder, ignore_errors=True)
    home, work, requests = folder / "home", folder / "work", folder / "requests"
    for path in (home, work / "sub", requests):
        path.mkdir(parents=True)
    for name, text in {**_FILES, "sub/mod.py": "x = 1\n"}.items():
        (work / name).write_text(text)
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.com"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "init"]):
        subprocess.run(["git", *command], cwd=work, check=True)
    environment = {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "WORKDIR": str(work),
        "SUBAGENT": agent.subagent,
        "PORT": str(_PORT),
        "PROXIED": str(_PROXY_PORT) if proxied else "",
        "CHECKOUT": str(HARNESS.parents[1]),
        "REQUESTS": str(requests),
        "RUN": str(folder),
        "HARNESS": str(HARNESS),
        "INSTALL": str(packages),
        "PYTHON": sys.executable,
        "LIMIT": str(agent.limits.get(scenario, _SECONDS)),
        "SCRIPT": agent.setup + agent.scenarios[scenario],
        "PACE": os.environ.get("PACE", ""),
        "NO_COLOR": "1",
        "DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
    }
    subprocess.run(["unshare", "-n", "bash", "-c", _RUN], cwd=work, env=environment, check=True)
    for place in agent.logs:
        if (home / place).exists():
            shutil.copytree(home / place, folder / "logs", dirs_exist_ok=True)
    return folder
