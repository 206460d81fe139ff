"""Public helpers for authors of readers. docs/readers.md lists them and shows an example.

`function_text`, `literals` and `tags` are modules: they parse values and calls in message text.
"""

from builder.readers.toolkit import function_text, literals, tags
from builder.readers.toolkit.call_keys import (
    CallKeys,
    looks_random,
    with_request_keys,
    with_session_keys,
)
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
from builder.readers.toolkit.comparison import calls, digests, is_same_turn, thoughts, words
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.json_text import json_in_text
from builder.readers.toolkit.known_keys import KnownKeys
from builder.readers.toolkit.links import Links, upwards
from builder.readers.toolkit.marks import cut_code, finish_fault, is_history, is_removed, is_trained
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.outcomes import logged_outcome
from builder.readers.toolkit.places import ignored, span, unique_name
from builder.readers.toolkit.rows import (
    Collector,
    collected,
    read_each,
    read_rows,
    row_name,
    splits,
)
from builder.readers.toolkit.segments import Segments
from builder.readers.toolkit.unknown_records import carries_content, unknown_message

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
