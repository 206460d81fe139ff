"""Leaves out tool definitions that a request defers: the model sees them once they are loaded.

A definition with `defer_loading` is not part of the prompt. The API writes it into the conversation
where a block refers to it: in the result of a search, or in a note of the client.
Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str


def without_deferred(
    tools: Iterable[Json], named: Collection[str]
) -> tuple[tuple[Json, ...], tuple[Json, ...]]:
    """Returns the definitions that the model saw, and the deferred ones that it did not.

    `named` contains the names of tools that were loaded or called.
    """
    offered: list[Json] = []
    deferred: list[Json] = []
    for tool in tools:
        hidden = is_deferred(tool) and as_str(tool, "name") not in named
        (deferred if hidden else offered).append(tool)
    return tuple(offered), tuple(deferred)


def is_deferred(tool: Json) -> bool:
    """Returns whether a definition is not shown to the model before something loads it."""
    return as_dict(tool).get("defer_loading") is True


def loaded_names(content: Json) -> Iterator[str]:
    """Yields the names of the tools that the blocks of a message of Anthropic's API load."""
    for block in as_dicts(content):
        inner = block.get("content")
        references = [block.get("tool"), *as_list(inner), *as_list(inner, "tool_references")]
        for reference in as_dicts(references):
            if reference.get("type") == "tool_reference":
                yield as_str(reference, "tool_name") or as_str(reference, "name")
