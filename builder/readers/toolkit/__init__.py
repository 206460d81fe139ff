"""Public helpers for authors of readers. docs/readers.md lists them and shows an example.

`function_text`, `literals` and `tags` are modules: they parse values and calls in message text.
"""

from builder.readers.toolkit import function_text, literals, tags
from builder.readers.toolkit.chat_messages import (
    as_harness,
    assistant_parts,
    chat_message,
    content,
    content_block,
    has_unknown_parts,
    reasoning,
    tool_calls,
    tool_result,
    unreadable_messages,
)
from builder.readers.toolkit.comparison import (
    CallKeys,
    calls,
    digests,
    is_same_turn,
    looks_random,
    thoughts,
    with_request_keys,
    with_session_keys,
    words,
)
from builder.readers.toolkit.history import (
    HistoryEntry,
    Links,
    RequestHead,
    SessionHistory,
    upwards,
)
from builder.readers.toolkit.marks import cut_code, finish_fault, is_history, is_removed, is_trained
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    json_in_text,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import Segments, ignored, span, unique_name
from builder.readers.toolkit.rows import (
    Collector,
    collected,
    logged_outcome,
    read_each,
    read_rows,
    row_name,
    splits,
)
from builder.readers.toolkit.unknown_keys import KnownKeys, carries_content, unknown_message

__all__ = [
    "CallKeys", "Collector", "HistoryEntry", "KnownKeys", "Links", "RequestHead", "Segments",
    "SessionHistory", "as_dict", "as_dicts", "as_harness", "as_list", "as_str", "assistant_parts",
    "calls", "carries_content", "chat_message", "collected", "content", "content_block", "cut_code",
    "digests", "finish_fault", "function_text", "has_unknown_parts", "ignored", "is_history",
    "is_removed", "is_same_turn", "is_trained", "json_in_text", "literals", "logged_outcome",
    "looks_random", "name_or_none", "read_each", "read_rows", "reasoning", "row_name", "span",
    "splits", "tags", "thoughts", "tool_calls", "tool_result", "unique_name", "unknown_code",
    "unknown_message", "unreadable_messages", "upwards", "with_request_keys", "with_session_keys",
    "words",
]  # fmt: skip
