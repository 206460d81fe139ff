"""mini-swe-agent, run by `mini` against an API of OpenAI's shape."""

from __future__ import annotations

from wire.agents import Agent

_SETUP = """
export OPENAI_BASE_URL=http://127.0.0.1:$PORT/v1 OPENAI_API_BASE=http://127.0.0.1:$PORT/v1
export OPENAI_API_KEY=dummy MSWEA_CONFIGURED=true MSWEA_COST_TRACKING=ignore_errors
export LITELLM_LOCAL_MODEL_COST_MAP=True
mkdir -p $HOME/logs
P="$INSTALL/bin/mini -m openai/gpt-4o -y --exit-immediately -o $HOME/logs/run.traj.json -t"
"""

AGENT = Agent(
    name="mini-swe-agent",
    versions=("2.4.6",),
    packages=lambda version: (f"pip:mini-swe-agent=={version}",),
    setup=_SETUP,
    scenarios={
        "plain": '$P "[[S:submit]] What does app.py do?"',
        "long": '$P "[[S:submitlong]] What does app.py do?"',
    },
    logs=("logs",),
    limits={},
)
