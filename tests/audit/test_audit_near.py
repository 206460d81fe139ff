"""Near duplicates: the estimate, the clusters, and what `drop` leaves out of a build."""

import json
import random
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.conversations.words import words
from support.runs.builds import build_with_one_and_two_workers, lines
from support.sensitive.planted import row

from builder import cli
from builder.audit import duplicates
from builder.audit.duplicates import (
    SIMILAR,
    compared_text,
    near_repeats,
    shingles,
    signature,
    word_numbers,
)


def jaccard(one, two):
    first, second = ({*shingles(word_numbers(text), 3).tolist()} for text in (one, two))
    return len(first & second) / len(first | second)


def changed(text, count, seed=0):
    listed = text.split()
    draw = random.Random(seed)
    for at in draw.sample(range(len(listed)), count):
        listed[at] = "".join(draw.choices(string.ascii_lowercase, k=7))
    return " ".join(listed)


def test_words_and_runs():
    assert len(word_numbers("Ab ab_1, ab! 你好 é")) == 6
    one, two = word_numbers("Ab ab_1, ab!"), word_numbers("ab AB_1 ab")
    assert one.tolist() == two.tolist()
    assert len(shingles(one, 3)) == len(shingles(one, 8)) == 1
    assert len(shingles(word_numbers(""), 3)) == 0
    assert shingles(word_numbers("a b c d"), 3)[1] == shingles(word_numbers("b c d"), 3)[0]


WORD_OR_LETTER = re.compile(r"[a-z0-9_]+|.", re.DOTALL)


@given(st.lists(st.text(alphabet="aB9_ .-\nßİé你Ⅷ²٣\ud800😀", max_size=12), max_size=6))
def test_each_word_has_its_number(texts):
    numbers: dict[str, int] = {}
    for text in texts:
        found = WORD_OR_LETTER.findall(text.lower())
        found = [one for one in found if one.isalpha() or re.match("[a-z0-9_]", one)]
        given_to = word_numbers(text).tolist()
        assert len(found) == len(given_to)
        for word, number in zip(found, given_to, strict=True):
            assert numbers.setdefault(word, number) == number
    assert len(set(numbers.values())) == len(numbers)


def test_long_texts_are_read_in_blocks_that_split_no_word(monkeypatch):
    text = "".join(f"word{number} é-{number} " for number in range(300))
    whole = word_numbers(text).tolist()
    for size in (9, 20, 64):
        monkeypatch.setattr(duplicates, "BLOCK", size)
        assert word_numbers(text).tolist() == whole


def test_the_estimate_is_close_to_the_similarity():
    text = words(1, 400)
    for count in (0, 5, 20, 60, 200):
        other = changed(text, count)
        one, two = (signature(shingles(word_numbers(item), 3)) for item in (text, other))
        assert abs((one == two).mean() - jaccard(text, other)) < 0.15


@pytest.mark.parametrize("size", [30, 100, 1000])
def test_similar_pairs_are_found_and_others_are_not(size):
    texts = [words(seed, size) for seed in range(100)]
    twins = [changed(text, max(size // 100, 1), seed) for seed, text in enumerate(texts[:50])]
    found = near_repeats([*texts, *twins])
    # three standard errors above: no estimate should be below
    wanted = {100 + at: at for at in range(50) if jaccard(texts[at], twins[at]) > SIMILAR + 0.1}
    assert wanted or size < 100
    assert wanted.items() <= found.items()
    assert all(at == kept + 100 for at, kept in found.items())


def test_the_longest_text_of_a_cluster_is_kept_or_the_first_of_equals():
    text = words(3, 100)
    longer = f"{text} and more"
    assert near_repeats(["other " * 9, text, longer, longer, text]) == {1: 2, 3: 2, 4: 2}


def test_the_parts_of_a_session_are_no_duplicates_of_each_other():
    text = words(3, 100)
    longer = f"{text} and more"
    assert near_repeats([text, longer, text, longer], "aaab") == {3: 1}
    assert near_repeats([longer, text, text], "abc") == {1: 0, 2: 0}


def test_context_that_is_not_trained_is_not_compared():
    shared = [("user", words(4, 200)), ("assistant", "a"), ("user", words(5, 80))]
    one, other = [*shared, ("assistant", words(6, 80))], [*shared, ("assistant", words(7, 80))]
    trained = [False, False, False, True]
    begin = f"{words(5, 80)}\n"
    assert compared_text(one, "conversation", trained) == begin + words(6, 80)
    assert near_repeats(compared_text(row, "conversation", trained) for row in (one, other)) == {}
    assert compared_text(one, "conversation").startswith(words(4, 200))


@pytest.mark.slow
def test_windows_and_turns_of_a_session_are_kept(tmp_path):
    def call(name):
        return [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}]

    chat = [{"role": "user", "content": words(1, 300)}]
    for name in ("first", "second"):
        chat.append({"role": "assistant", "content": "", "tool_calls": call(name)})
        chat.append({"role": "tool", "tool_call_id": name, "content": name})
    chat.append({"role": "assistant", "content": "Done."})
    log = tmp_path / "in.jsonl"
    log.write_text(json.dumps({"messages": chat}) + "\n")
    config = tmp_path / "c.yaml"
    config.write_text("normalize: {unit: turn}\naudit: {near_duplicates: drop}\n")
    assert cli.main(["build", str(log), "-c", str(config), "-o", str(tmp_path / "out")]) == 0
    assert len(lines(tmp_path / "out" / "data" / "train-00000-of-00001.jsonl")) == 3


def test_short_texts_are_left_alone():
    assert near_repeats(["yes of course", "yes of course"]) == {}
    assert near_repeats([]) == {}


def test_drop_leaves_out_all_but_one_and_reports_it(tmp_path, capsys, pooled_tasks):
    folder = tmp_path / "in"
    folder.mkdir()
    text = words(1, 100)
    (folder / "a.jsonl").write_text(row(text) + row(words(2, 100)))
    (folder / "b.jsonl").write_text(row(f"{text} more words") + row("hello") + row("hello"))
    config = tmp_path / "c.yaml"
    config.write_text("audit: {near_duplicates: drop}\n")
    out = build_with_one_and_two_workers(tmp_path, "-c", config, inputs=[folder])
    assert pooled_tasks.count("_run_batch") == 2
    data = lines(out / "data" / "train-00000-of-00001.jsonl")
    assert [line["messages"][0]["content"][:30] for line in data] == [
        words(2, 100)[:30],
        text[:30],
        "hello",
    ]
    reject, duplicate = lines(out / "rejects.jsonl")
    assert duplicate["code"] == "duplicate"
    meta = lines(out / "meta" / "train-00000-of-00001.jsonl")
    assert (reject["source"], reject["code"]) == ("a.jsonl", "near_duplicate")
    assert meta[1]["id"] in reject["message"]
    ledger = json.loads((out / "manifest.json").read_bytes())["ledger"]
    assert ledger["conversations"]["rejected"] == {"near_duplicate": 1}
    assert ledger["conversations"]["duplicates"] == 1
    capsys.readouterr()
    assert cli.main(["audit", str(out), "--fail-on", "duplicates"]) == 0
    assert (
        cli.main(["build", str(folder), "-c", str(config), "-o", str(tmp_path / "o3"), "-v"]) == 0
    )
    assert "audit.near_duplicates=report" in capsys.readouterr().out
