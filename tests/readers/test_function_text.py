"""Calls written as `<function=…>` text are read back unchanged."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from builder.conversation import Text, ToolCall, Unparsed
from builder.readers.toolkit.function_text import assistant_parts, take_definitions

NAMES = st.text("abcdefghij_", min_size=1, max_size=8)
# The protocol has no escapes: a value cannot contain its terminator.
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="<>"), max_size=40)
WRAPPED = frozenset({"old_str", "new_str", "file_text"})


def written(name, arguments):
    """Returns a call as SWE-smith's converter writes it."""
    lines = [f"<function={name}>"]
    for key, value in arguments.items():
        text = f"\n{value}\n" if key in WRAPPED else value
        lines.append(f"<parameter={key}>{text}</parameter>")
    return "\n".join([*lines, "</function>"])


@given(
    words=VALUES.filter(lambda text: text.strip() and not text.endswith("\n")),
    calls=st.lists(
        st.tuples(NAMES, st.dictionaries(NAMES | st.sampled_from(sorted(WRAPPED)), VALUES)),
        min_size=1,
        max_size=3,
    ),
)
def test_calls_are_read_back(words, calls):
    text = words + "\n\n" + "\n".join(written(*call) for call in calls)
    parts = assistant_parts(text, {}, WRAPPED, Counter())
    assert parts == (Text(words), *(ToolCall(name, arguments) for name, arguments in calls))


@given(st.text(st.sampled_from("<>/=\n afunctioprmet"), max_size=60))
def test_any_text_is_read(text):
    parts = assistant_parts(f"<function=x>{text}", {}, None, Counter())
    assert all(isinstance(part, Text | ToolCall | Unparsed) for part in parts)
    assert take_definitions(text, Counter()) == (text, None)


def test_text_without_a_call_is_left_alone():
    for text in ("", "\n\nwords\n", "see `<function=bash>` there"):
        parts = assistant_parts(text, {}, None, Counter())
        assert parts == ((Text(text),) if text else ())
