"""Defines constants of the format.

Sources: the chat template and the tokenizer of Qwen/Qwen3-8B, in builder/qwen3/assets.
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
"""The template's text before the tool definitions (one per line) in the system turn."""

TOOLS_END = (
    "\n</tools>\n\n"
    "For each function call, return a json object with function name and arguments"
    " within <tool_call></tool_call> XML tags:\n"
    "<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n'
    "</tool_call>"
)
"""The template's text after the tool definitions, at the end of the system turn."""

EMPTY_THINK = "<think>\n\n</think>\n\n"
"""The empty think block that the template writes before a last assistant turn without thoughts."""
