"""Reads what a log says about an answer beside its text: cut off, untrained, removed, token ids.

Each question has one table here, for all readers. A mark that is False, null or 0 marks nothing.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping

from builder.conversation import Json, TokenIds
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str
from builder.readers.toolkit.tables import by_word, words

# -- answers that are not whole ------------------------------------------------------------------

_COMPLETE = frozenset({
    "stop", "end_turn", "stop_sequence", "tool_use", "tool_calls", "complete",
    "tool_call",
})  # fmt: skip
_CODES = by_word("finish_faults")


def finish_fault(reason: Json, unknown: str | None = None) -> str | None:
    """Returns the code of the fault that a finish reason describes, or None for a complete answer.

    Ignores case and the name of an enumeration ("FinishReason.SAFETY"). `unknown` is the code for
    any other reason and for values that are not text: some servers use many names for a normal
    end, others only documented ones.
    """
    name = as_str(reason).lower().replace("-", "_").rpartition(".")[2]
    return None if name in _COMPLETE else _CODES.get(name, unknown)


_CUT = by_word("cut")
_WHOLE = frozenset({"complete", "completed", "finished"})
"""Names of flags that are False for an answer that was cut."""
_STATES = ("status", "state")
_REASONS = ("finish_reason", "finishReason", "stop_reason", "stopReason")
_FLAG_PREFIX = re.compile(r"^(?:is|was|has_been|been|got)_")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

CUT_KEYS = frozenset({
    name for word in (*_CUT, *_WHOLE) for name in (word, f"is_{word}", f"was_{word}")
})  # fmt: skip
"""Keys of flags that `cut_code` reads, in snake case."""


def cut_code(item: Mapping[str, Json]) -> str | None:
    """Returns why an answer is not whole, by the marks beside its text in any log; else None.

    `aborted`: somebody stopped it (`interrupted: true`, `status: "cancelled"`). `truncated`: its
    end is missing (`partial: true`, `complete: false`, `finish_reason: "length"`). Or another code
    of `finish_fault`. Give it the record of one answer or step: a flag of a whole session, or of
    the result of a call, says nothing about an answer. Names count in snake and camel case.
    """
    for key, value in item.items():
        if isinstance(value, bool) or (type(value) is int and value in (0, 1)):
            name = _FLAG_PREFIX.sub("", snake(key))
            if value and name in _CUT:
                return _CUT[name]
            if value is False and name in _WHOLE:
                return "truncated"
    for key in _STATES:
        if code := _CUT.get(as_str(item.get(key)).lower().replace("-", "_")):
            return code
    faults = (finish_fault(item[key]) for key in _REASONS if key in item)
    return next(filter(None, faults), None)


def snake(name: str) -> str:
    """Returns a name in snake case: `isInterrupted` and `is-interrupted` are `is_interrupted`."""
    return _CAMEL.sub("_", name).replace("-", "_").lower()


# -- answers that their author does not train ----------------------------------------------------

_LOSS_WORDS = words("loss", "loss")
_MASK_WORDS = words("loss", "mask")
_NOT_WORDS = words("loss", "negation")
_KNOWN_WORDS = _LOSS_WORDS | _MASK_WORDS | _NOT_WORDS | words("loss", "other")
_WEIGHT_WORDS = words("loss", "weight")
_PIECES = ("train_detail", "training_detail", "content")
"""Keys of pieces of a message that are trained or not: axolotl's, and parts of the content."""


def is_trained(message: Mapping[str, Json]) -> bool:
    """Returns whether the author of a dataset trains a message as a whole, by its keys.

    Not if a key takes it out of the loss (`trains`), nor if a piece of it is marked so.
    """
    pieces = (piece for name in _PIECES if name in message for piece in as_dicts(message[name]))
    return not any(
        trains(key, value) is False for item in (message, *pieces) for key, value in item.items()
    )


def trains(key: str, value: Json) -> bool | None:
    """Returns whether a key of a message says that it is trained; None if it says neither.

    Out of the loss are weight 0 (OpenAI, LLaMA-Factory), `loss` (ms-swift, XTuner), `train`
    (axolotl), `trainable` (Tinker) and `step_loss_mask` (slime) that are False or 0, `masked`
    (torchtune) and `mask` that are True, and names like these (`exclude_from_loss`). A measured
    loss (a float), a counter, a list and a text say nothing, nor does a bare `mask` of 0 or 1,
    which trainers write in either sense.
    """
    if not isinstance(value, bool | int | float):
        return None
    words = snake(key).split("_")
    if "weight" in words:
        return value != 0 if _WEIGHT_WORDS.issuperset(words) else None
    has_loss, has_mask = not _LOSS_WORDS.isdisjoint(words), not _MASK_WORDS.isdisjoint(words)
    if value not in (0, 1) or not (has_loss or has_mask) or not _KNOWN_WORDS.issuperset(words):
        return None
    if (isinstance(value, float) and not has_mask) or (
        not isinstance(value, bool) and (words[-1] == "step" or words == ["mask"])
    ):
        return None
    is_mask = has_mask and not (has_loss and words[-1] == "mask")  # a loss mask is 1 in the loss
    return bool(value) is (is_mask == (not _NOT_WORDS.isdisjoint(words)))


def excludes(key: str, value: Json) -> bool:
    """Returns whether a key of a whole row, alone or with a list of marks, excludes something."""
    marks = value if isinstance(value, list) else [value]
    return any(trains(key, mark) is False for mark in marks)


def is_history(message: Mapping[str, Json]) -> bool:
    """Returns whether a message is marked as repeated from an earlier run (Agno), as context."""
    names = ("from_history", "is_from_history", "is_history", "fromHistory")
    return any(message.get(name) is True for name in names)


# -- texts that the log does not have ------------------------------------------------------------

_PLACEHOLDERS = frozenset({
    "redacted-by-litellm", "REDACTED_BY_LITELM",  # LiteLLM, and its own misspelling
    "__REDACTED__",  # OpenInference
    "<truncated due to size exceeding limit>",  # Langfuse
    "[REDACTED]", "<REDACTED>", "[redacted]", "<redacted>",  # masks of applications
})  # fmt: skip
_LONGEST = 500
"""Characters of a placeholder at most."""
_SCRUBBED = "[Scrubbed due to "
"""The beginning of Logfire's placeholder, which names the pattern that it found."""
_SHORTENED = re.compile(r"\.\.\. \(truncated \d+ chars\)\Z")
"""The suffix of a text that older versions of LiteLLM truncated after 1,000 characters."""


def is_removed(value: Json) -> bool:
    """Returns whether a value is the placeholder of a text that the log's writer took out."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        return False
    text = value.strip()
    return text in _PLACEHOLDERS or text.startswith(_SCRUBBED)


def has_removed(values: Iterable[Json]) -> bool:
    """Returns whether a text at any depth of the values was taken out of the log."""
    return any(map(is_removed, _texts_in(values)))


def has_shortened(values: Iterable[Json]) -> bool:
    """Returns whether the log's writer cut a long text at any depth of the values (LiteLLM)."""
    return any(
        "(litellm_truncated " in text or _SHORTENED.search(text, 1000, 1100)
        for text in _texts_in(values)
    )


def _texts_in(values: Iterable[Json]) -> Iterator[str]:
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            yield value


# -- ids of tokens that a server or a trainer recorded --------------------------------------------

_ANSWERS = ("token_ids", "output_ids", "completion_token_ids")
_PROMPTS = ("prompt_token_ids", "input_ids")
"""Keys of vLLM (`return_token_ids`), SGLang and Harbor: of a choice, a message or a response."""


def recorded_ids(answer: Json, prompt: Json = None) -> TokenIds | None:
    """Returns the ids of an answer and of its prompt; None without ids of the answer.

    A list that has another value than an id counts as not recorded.
    """
    ids = _ids(answer)
    return TokenIds(ids, _ids(prompt)) if ids is not None else None


def ids_beside(*places: Json) -> TokenIds | None:
    """Returns the ids under the keys of any server; the first place that has a key counts."""
    objects = [as_dict(place) for place in places]

    def first(names: tuple[str, ...]) -> Json:
        values = (place[name] for place in objects for name in names if place.get(name))
        return next(values, None)

    return recorded_ids(first(_ANSWERS), first(_PROMPTS))


def _ids(value: Json) -> array[int] | None:
    if not isinstance(value, list) or not value:
        return None
    numbers = [item for item in value if type(item) is int]
    if len(numbers) < len(value):
        return None
    try:
        return array("I", numbers)
    except OverflowError:
        return None
