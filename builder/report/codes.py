"""What the codes of a report mean, and what mends them, in the words of a user."""

from __future__ import annotations

from types import MappingProxyType

from builder.normalize import NormalizeOptions, remedy

MEANINGS = MappingProxyType(
    {
        # records
        "bad_json": "the line or file is not JSON",
        "truncated": "the file ends in the middle of a record",
        "too_large": "the record is larger than `limits.max_record_mb`",
        "too_deep": "the record is nested too deeply to be read safely",
        "number": "a number that JSON readers change or refuse",
        "unreadable": "the file cannot be opened or decoded",
        "unrecognised": "no reader knows the format of the file",
        "ambiguous": "several readers claim the file; name one with `inputs[].format`",
        "unknown_shape": "a record of a kind that the reader does not know",
        "not_object": "a record that is not a JSON object",
        # conversations
        "no_user": "no user message to answer",
        "no_assistant": "no answer of the model",
        "no_response": "no answer of the model",
        "no_content": "messages without any text or call",
        "no_target": "no turn left that may be trained",
        "no_final_answer": "it ends with a call, and `normalize.end` asks for an answer",
        "unanswered": "a call has no result",
        "orphan_result": "a result answers no call",
        "parallel_calls": "several calls in one turn",
        "duplicate_id": "two calls have the same id, so results cannot be assigned",
        "bad_arguments": "arguments of a call that are not a JSON object",
        "bad_tools": "tool definitions that cannot be read",
        "missing_tools": "no tool definitions in the log",
        "tools_changed": "the definitions changed in the middle",
        "late_system": "a system message after the first turn",
        "control_tokens": "trained text holds a control token such as `<|im_end|>`",
        "media": "images, sound or files, which the template cannot show",
        "server_tool": "the provider ran a tool whose result is not in the log",
        "reasoning": "a thought that the chat template cannot keep",
        "nfc": "text that is not in Unicode's NFC form once rendered",
        "loader": "values that `datasets` is known to change when loading",
        "max_tokens": "longer than `limits.max_tokens`",
        "schema": "arguments that violate their tool's schema",
        "parity": "a trained turn whose context differs from that at inference",
        "context": "what the model saw is known less well than `verify.context` asks",
        "secret": "a secret was found, and `audit.secrets` says reject",
        "personal_data": "personal data were found, and `audit.personal_data` says reject",
        "near_duplicate": "nearly the same text as another sample, which was kept",
        "duplicate": "exactly the same as another sample, which was kept",
        "weight": "not in the share of its input that is taken",
        "mix": "left out so that the behaviours have their target shares",
        "evaluation_data": "the data of a benchmark, which must not be trained on",
        "evaluation_run": "a run of a public benchmark",
        "rewound": "turns that the user took back",
        "aborted": "an answer that was stopped",
        "internal": "a fault of this program: please report it",
    }
)


def meaning(code: str) -> str:
    """Returns what a code means, or "" for one that explains itself."""
    return MEANINGS.get(code, "")


def mending(code: str) -> str:
    """Returns the line of configuration or the option that keeps what was lost, or ""."""
    return remedy(code, NormalizeOptions()) or ""
