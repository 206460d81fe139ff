"""Aider: its chat history is not a log of requests, so only its captures can be compared."""

from __future__ import annotations

from wire.agents import Agent

_SETUP = """
export OPENAI_API_BASE=http://127.0.0.1:$PORT/v1 OPENAI_API_KEY=dummy
export LITELLM_LOCAL_MODEL_COST_MAP=True
P="$INSTALL/bin/aider --model openai/mock-model --yes-always --no-check-update"
P="$P --no-show-model-warnings --analytics-disable --no-detect-urls --no-pretty --map-tokens 1024"
"""

AGENT = Agent(
    name="aider",
    versions=("0.86.2",),
    python="3.12",
    packages=lambda version: (f"pip:aider-chat=={version}",),
    setup=_SETUP,
    scenarios={
        "edit": "$P app.py -m '[[S:blocks]] Change hello to goodbye.'",
        "retried": "$P app.py -m '[[S:wrongblocks]] Change hello to goodbye.'",
        "restored": "$P app.py -m '[[S:blocks]] Change hello to goodbye.'; "
        "$P app.py --restore-chat-history -m '[[S:said]] And now?'",
    },
    logs=(),
    limits={"edit": 240, "retried": 240, "restored": 300},
)
