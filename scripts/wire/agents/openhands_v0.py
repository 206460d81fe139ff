"""OpenHands V0, run headless on the CLI runtime; its logs are the trajectory files."""

from __future__ import annotations

from wire.agents import Agent

_SETUP = """
export RUNTIME=cli LLM_MODEL=openai/mock-model LLM_BASE_URL=http://127.0.0.1:$PORT/v1
export LLM_API_KEY=dummy LLM_NUM_RETRIES=1 LITELLM_LOCAL_MODEL_COST_MAP=True
export WORKSPACE_BASE=$WORKDIR FILE_STORE_PATH=$HOME/store ENABLE_BROWSER=false
export AGENT_ENABLE_BROWSING=false SANDBOX_VOLUMES=$WORKDIR:/workspace:rw
export LLM_NATIVE_TOOL_CALLING=true
mkdir -p $HOME/logs; cd $HOME
run() {
  SAVE_TRAJECTORY_PATH=$HOME/logs/$1.json $INSTALL/bin/python -m openhands.core.main \\
    --no-auto-continue -i 20 -n session -t "$2"
}
"""

_MICROAGENT = """
mkdir -p $WORKDIR/.openhands/microagents
echo 'This repository holds one script.' > $WORKDIR/.openhands/microagents/repo.md
printf -- '---\\nname: files\\ntriggers:\\n- hold\\n---\\n\\nFiles end in a newline.\\n' \\
  > $WORKDIR/.openhands/microagents/files.md
"""

_SCENARIOS = {
    "plain": "run one '[[S:ended]] What does app.py do?'",
    "parallel": "run one '[[S:ended2]] What do the files hold?'",
    "microagents": _MICROAGENT + "run one '[[S:ended]] What does app.py hold?'",
    "text-calls": "export LLM_NATIVE_TOOL_CALLING=false; run one '[[S:textcalls2]] What is it?'",
    "condensed": 'printf \'[condenser]\\ntype = "llm"\\nllm_config = "llm"\\nmax_size = 10\\n'
    "keep_first = 1\\n' > config.toml; run one '[[S:ended2]] What do the files hold?'",
}

AGENT = Agent(
    name="openhands-v0",
    versions=("0.59.0",),
    python="3.12",
    packages=lambda version: (f"pip:openhands-ai=={version}",),
    setup=_SETUP,
    scenarios=_SCENARIOS,
    logs=("logs",),
    limits=dict.fromkeys(_SCENARIOS, 300),
)
