"""OpenHands' SDK with its default tools, run as a library; its logs are the event stores."""

from __future__ import annotations

from wire.agents import DOT, Agent

_SETUP = """
export LITELLM_LOCAL_MODEL_COST_MAP=True OPENHANDS_SUPPRESS_BANNER=1
cat > $HOME/run.py <<'X'
import json, os, sys, threading, uuid
from openhands.sdk import LLM, AgentContext, Conversation, ImageContent, Message, TextContent
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.skills import KeywordTrigger, Skill
from openhands.sdk.security.confirmation_policy import AlwaysConfirm, NeverConfirm
from openhands.tools.preset.default import get_default_agent

options, *tasks = sys.argv[1:]
options = json.loads(options)
llm = LLM(
    model=options.get("model", "openai/mock-model"),
    base_url=f"http://127.0.0.1:{os.environ['PORT']}" + options.get("path", "/v1"),
    api_key="dummy",
    num_retries=1,
    native_tool_calling=options.get("native", True),
)
agent = get_default_agent(llm=llm, cli_mode=True)
changed = {}
if size := options.get("condense"):
    changed["condenser"] = LLMSummarizingCondenser(
        llm=llm.model_copy(update={"usage_id": "condenser"}), max_size=size, keep_first=2
    )
if options.get("skills"):
    changed["agent_context"] = AgentContext(
        system_message_suffix="Answer like a pirate.",
        user_message_suffix="Mind the tests.",
        skills=[
            Skill(name="repo", content="This repository holds one script.", trigger=None),
            Skill(name="files", content="Files end in a newline.",
                  trigger=KeywordTrigger(keywords=["hold"])),
        ],
    )
agent = agent.model_copy(update=changed)
identity = uuid.UUID(int=7)


def start():
    return Conversation(
        agent=agent, workspace=os.environ["WORKDIR"], conversation_id=identity,
        persistence_dir=os.environ["HOME"] + "/logs", visualizer=None,
    )


conversation = start()
for number, task in enumerate(tasks):
    if number and options.get("resume"):
        conversation.close()
        conversation = start()
    if options.get("refuse") == number:
        conversation.set_confirmation_policy(AlwaysConfirm())
    if options.get("image"):
        image = ImageContent(image_urls=["data:image/png;base64," + os.environ["DOT"]])
        conversation.send_message(Message(role="user", content=[TextContent(text=task), image]))
    else:
        conversation.send_message(task)
    if options.get("pause") == number:
        threading.Timer(2, conversation.pause).start()
    if options.get("interrupt") == number:
        threading.Timer(2, conversation.interrupt).start()
    conversation.run()
    if options.get("refuse") == number:
        conversation.reject_pending_actions("Not that one.")
        conversation.set_confirmation_policy(NeverConfirm())
        conversation.run()
    if options.get("compact") == number:
        conversation.condense()
conversation.close()
X
P="$INSTALL/bin/python $HOME/run.py"
"""

_SCENARIOS = {
    "plain": "$P '{}' '[[S:plain]] What does app.py do?'",
    "parallel": "$P '{}' '[[S:parallel]] What do the files hold?'",
    "thinking": "$P '{}' '[[S:think]] What does app.py do?'",
    "skills": "$P '{\"skills\": true}' '[[S:plain]] What does app.py hold?'",
    "resumed": "$P '{\"resume\": true}' '[[S:plain]] And app.py?' '[[S:second]] And data.txt?'",
    "finished": "$P '{}' '[[S:ended]] What does app.py do?' '[[S:second]] And data.txt?'",
    "faulty": "$P '{}' '[[S:faulty]] What does app.py do?'",
    "refused": "$P '{\"refuse\": 0}' '[[S:denied]] Clean up.' '[[S:second]] And data.txt?'",
    "refused-parallel": "$P '{\"refuse\": 0}' '[[S:denied2]] Clean.' '[[S:second]] And now?'",
    "paused": "$P '{\"pause\": 0}' '[[S:sleepshort]] Wait.' '[[S:second]] And data.txt?'",
    "interrupted": "$P '{\"interrupt\": 0}' '[[S:sleep]] Wait.' '[[S:second]] And data.txt?'",
    "condensed": "$P '{\"condense\": 8}' '[[S:full]] Go.' '[[S:second]] And data.txt?'",
    "compacted": "$P '{\"compact\": 0}' '[[S:long]] Go.' '[[S:second]] And data.txt?'",
    "image": '$P \'{"image": true, "model": "anthropic/claude-sonnet-4-5", "path": ""}\''
    " '[[S:plain]] What is this?'",
    "big": "$P '{}' '[[S:big]] Large output.'",
    "text-calls": "$P '{\"native\": false}' '[[S:textcalls]] What does app.py do?'",
    "anthropic": '$P \'{"model": "anthropic/claude-sonnet-4-5", "path": ""}\''
    " '[[S:parallel]] What do the files hold?'",
}

AGENT = Agent(
    name="openhands",
    versions=("1.58.2", "1.58.0"),
    python="3.12",
    packages=lambda version: (f"pip:openhands-sdk=={version}", f"pip:openhands-tools=={version}"),
    setup=f"export DOT={DOT}{_SETUP}",
    scenarios=_SCENARIOS,
    logs=("logs",),
    limits=dict.fromkeys(_SCENARIOS, 300),
)
