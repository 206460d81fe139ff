"""smolagents, run as a library against an API of OpenAI's shape; its log is the dumped memory."""

from __future__ import annotations

from wire.agents import Agent

_SETUP = """
export HF_HUB_OFFLINE=1
mkdir -p $HOME/logs
cat > $HOME/run.py <<'X'
import json, os, subprocess, sys
from smolagents import CodeAgent, OpenAIModel, ToolCallingAgent, tool

@tool
def bash(command: str) -> str:
    '''Runs a shell command.

    Args:
        command: the command to run
    '''
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout

kind, options, *tasks = sys.argv[1:]
base = f"http://127.0.0.1:{os.environ['PORT']}/v1"
model = OpenAIModel("mock-model", api_base=base, api_key="dummy")
kinds = {"calls": ToolCallingAgent, "code": CodeAgent}
agent = kinds[kind](tools=[bash], model=model, max_steps=8, **json.loads(options))
for number, task in enumerate(tasks):
    agent.run(task, reset=number == 0)
with open(os.environ["HOME"] + "/logs/memory.json", "w") as file:
    json.dump(agent.memory.get_full_steps(), file)
X
P="$INSTALL/bin/python $HOME/run.py"
"""

AGENT = Agent(
    name="smolagents",
    versions=("1.26.0",),
    packages=lambda version: (f"pip:smolagents[openai]=={version}",),
    setup=_SETUP,
    scenarios={
        "plain": "$P calls '{}' '[[S:finish]] What does app.py do?'",
        "parallel": "$P calls '{}' '[[S:finish2]] What do the files hold?'",
        "failed": "$P calls '{}' '[[S:finishlate]] What does app.py do?'",
        "planned": "$P calls '{\"planning_interval\": 2}' '[[S:finish2]] What do the files hold?'",
        "resumed": "$P calls '{}' '[[S:finish]] And app.py?' '[[S:finishlate]] And now?'",
        "code": "$P code '{}' '[[S:code]] What does app.py do?'",
        "code-resumed": "$P code '{}' '[[S:code]] And app.py?' '[[S:code]] Again.'",
    },
    logs=("logs",),
    limits={},
)
