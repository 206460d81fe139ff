"""One thing has one count, wherever it is shown."""

import json

from hypothesis import given
from hypothesis import strategies as st

import builder
from builder.audit.counts import Counts, count_dataset
from builder.conversation import Context
from builder.dataset.meta import SampleMeta

QUESTION = "Please read /home/alice/notes.txt"
ANSWER = {"role": "assistant", "content": "It says: buy milk and bread."}
TOLD = {"role": "user", "content": QUESTION}
TURNS = [TOLD, {**ANSWER, "reasoning_content": "I read the file first."}] * 3


def built(folder, **normalize):
    rows = [{"messages": TURNS}]
    out = folder / "out"
    return builder.build_dataset(rows, out, config={"name": "one", "normalize": normalize})


def counts_of(audit, code):
    return [(item.count, item.samples) for item in audit.findings if item.code == code]


def test_the_samples_of_a_conversation_count_its_thoughts_once(tmp_path):
    whole = count_dataset(built(tmp_path / "whole").folder)
    by_turn = count_dataset(built(tmp_path / "turns", unit="turn").folder)
    assert (whole.samples, by_turn.samples) == (1, 3)
    assert whole.changes["reasoning_dropped"] == by_turn.changes["reasoning_dropped"] == 3


def test_other_conversations_are_counted(tmp_path):
    """The metadata of two conversations, the second of which has two samples."""
    made = built(tmp_path, unit="turn")
    (path,) = (tmp_path / "out" / "meta").glob("*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["conversation"] = "another"
    lines[2]["changes"]["reasoning_dropped"] = 5
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert count_dataset(made.folder).changes["reasoning_dropped"] == 3 + 5


def test_a_file_of_a_folder_has_the_counts_of_the_folder(tmp_path):
    made = built(tmp_path)
    (path,) = (tmp_path / "out" / "meta").glob("*.jsonl")
    meta = json.loads(path.read_text())
    path.write_text(json.dumps({**meta, "conversation": "see /home/alice/logs"}) + "\n")
    (data,) = (tmp_path / "out" / "data").glob("*.jsonl")
    folder, file = builder.audit_dataset(made.folder), builder.audit_dataset(data)
    assert counts_of(folder, "user_name") == counts_of(file, "user_name") == [(3, 1)]
    (message,) = [item.message for item in folder.findings if item.code == "user_name"]
    assert message.endswith(", and 1 more in meta/")


def test_what_only_meta_holds_is_found(tmp_path):
    made = builder.build_dataset([{"messages": [{"role": "user", "content": "Hi"}, ANSWER]}],
                                 tmp_path / "out")  # fmt: skip
    (path,) = (tmp_path / "out" / "meta").glob("*.jsonl")
    meta = json.loads(path.read_text())
    path.write_text(json.dumps({**meta, "conversation": "see /home/alice/logs"}) + "\n")
    (found,) = [item for item in builder.audit_dataset(made).findings if item.code == "user_name"]
    assert found.message.endswith(", in meta/")


metas = st.builds(
    SampleMeta,
    source=st.just("log"),
    conversation=st.sampled_from(["", "a", "b"]),
    format=st.sampled_from(["codex", "pi", None]),
    changes=st.dictionaries(st.sampled_from(["x", "other_version"]), st.integers(1, 5)),
    tokens=st.integers(0, 90_000),
    assistant_turns=st.integers(0, 3),
    schema_violations=st.integers(0, 2),
    context=st.sampled_from([None, Context("partial", ("system", "history"))]),
)


@given(st.lists(metas, max_size=8), st.lists(st.integers(0, 8), max_size=3))
def test_counts_of_parts_add_up(samples, cuts):
    def counted(part):
        counts = Counts()
        for meta in part:
            counts.add(meta, "train", meta.tokens)
        return counts

    whole = counted([])
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), 8], strict=True):
        whole.merge(counted(samples[begin:end]))
    assert whole == counted(samples)
