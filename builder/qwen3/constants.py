"""Defines constants of the format.

Sources: the specification (tool-calling format, Qwen3) and the files of the Qwen3 tokenizer.
"""

from __future__ import annotations

ADDED_TOKENS: tuple[str, ...] = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
"""The added tokens of the Qwen3 tokenizer (tokenizer_config.json, `added_tokens_decoder`)."""

STRUCTURE_TOKENS: tuple[str, ...] = (
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
"""The added tokens that a target of this format must have."""

TOOLS_BEGIN = (
    "# Tools\n\n"
    "You may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n"
    "<tools>"
)
"""The specification's text before the tool definitions (one per line) in the system turn."""

TOOLS_END = (
    "\n</tools>\n\n"
    "For each function call, return a json object with function name and arguments"
    " within <tool_call></tool_call> XML tags:\n"
    "<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n'
    "</tool_call>"
)
"""The specification's text after the tool definitions, at the end of the system turn."""

EMPTY_THINK = "<think>\n\n</think>\n\n"
"""The empty think block that the template writes before a last assistant turn without thoughts."""

KNOWN_TEMPLATES = {
    "87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5": "Qwen3 original (2025-04)",
    "a55ee1b1660128b7098723e0abcd92caa0788061051c62d51cbe87d9cf1974d8": "Qwen3 revised",
    "64f85b198065d0fba2a81f37e10ed68161ce2c19a754c7100e67e0ca2ee9c326": "Qwen3 Instruct-2507",
    "3802169b2a02b81e6adb7ab4f64f91ff02db753c8c3a64a01c35192d3a61d8d7": "Qwen3 Thinking-2507",
    "3636d0f0bd6bef02654cdffdc447b79cb2cef8ab02cc75267345946291a489e4": "Qwen3-VL Instruct",
    "36e042fe45641f067b1f2381fcc8955d10d956a3ed333ecdf7f7eb0916f68956": "Qwen3-VL Thinking",
    "cd8e9439f0570856fd70470bf8889ebd8b5d1107207f67a5efb46e342330527f": "Qwen2.5",
    "5ed15374ce53e19a7798710736a2c9fe41c79f7385e8421a2080d6575a80ef1b": "QwQ-32B",
    "61433aea8393589935ac6fdc49e937f991c796925e27241bd2b1d1080d9cf9af": "QwQ-32B (early text)",
}
"""Names of chat templates by the sha256 of their text. Sources: the packages trl 1.16,
llama-cpp-python 0.3.36 and xinference 4.1."""
