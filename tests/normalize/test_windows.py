"""Samples that are too long: windows keep calls with results and cover every target once."""

import json

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.conversations.strategies import conversations, fit

from builder import cli
from builder.build.prove import prove
from builder.dataset.forms import targets
from builder.normalize.normalise import normalise
from builder.normalize.options import LengthOptions, NormalizeOptions
from builder.normalize.units import UNITS, plan_windows, shorten_responses
from builder.qwen3.flat import parse
from builder.sample import Call, Dialogue, Turn

CALL = Call.of("f", {})


def dialogue_of(kinds, system):
    """Returns a dialogue from letters: c a call and its result, a an answer, q a new query."""
    turns = [Turn("system", "s")] if system else []
    turns.append(Turn("user", "q"))
    for kind in kinds:
        if turns[-1].role == "assistant" and not turns[-1].calls:
            turns.append(Turn("user", "q"))
        if kind == "c":
            turns += [Turn("assistant", calls=(CALL,)), Turn("tool", responses=("r",))]
        else:
            turns.append(Turn("assistant", "a"))
    while turns[-1].role != "assistant":
        turns.pop()
    return turns


@given(
    st.text("ca", min_size=1, max_size=30),
    st.booleans(),
    st.data(),
    st.integers(20, 120),
)
def test_windows_split_no_pair_and_contain_each_target_once(kinds, system, data, limit):
    turns = dialogue_of(kinds, system)
    sizes = [data.draw(st.integers(1, 30)) for _ in turns]
    answers = [at for at, turn in enumerate(turns) if turn.role == "assistant"]
    targets = {at for at in answers if data.draw(st.booleans())} | {answers[-1]}
    windows, no_room = plan_windows(turns, targets, sizes, limit)
    found = [at for window in windows for at in window.targets]
    assert sorted([*found, *no_room]) == sorted(targets)
    assert found == sorted(set(found))
    head = list(range(answers[0]))
    for window in windows:
        places = list(window.places)
        assert sum(sizes[at] for at in places) <= limit
        assert places[: len(head)] == head
        body = places[len(head) :]
        assert body == list(range(body[0], body[-1] + 1))
        assert turns[body[0]].role == "assistant"
        assert body[-1] == window.targets[-1]
        assert set(window.repeated) <= set(places) - set(window.targets)
        assert not set(window.repeated) & set(window.targets)
        new = window.targets[0]
        if body[0] != answers[0]:
            assert body[0] < new, "the turn that its first target follows is there"
            assert window.skipped == answers.index(body[0])


def test_truncation_keeps_the_longest_beginning():
    turns = dialogue_of("cccc", system=False)
    sizes = [10] * len(turns)
    answers = {at for at, turn in enumerate(turns) if turn.role == "assistant"}
    (window,), no_room = plan_windows(turns, answers, sizes, 48, only_first=True)
    assert (window.places, window.targets, no_room) == ((0, 1, 2, 3), (1, 3), [5, 7])


@pytest.mark.parametrize("text", ["word " * 500, "Zoë 東京 " * 300, "\U0001f600" * 400])
def test_a_long_response_is_shortened_in_the_middle_with_a_mark(verifier, text):
    encode = verifier.target.encode
    turns = (
        Turn("user", "q"),
        Turn("assistant", calls=(CALL,)),
        Turn("tool", responses=(text, "r")),
    )
    made, count = shorten_responses(Dialogue(turns), 100, encode)
    short, other = made.turns[-1].responses
    begin, mark, end = short.split("\n")
    assert (count, other) == (1, "r")
    assert text.startswith(begin)
    assert text.endswith(end)
    assert mark == f"[… {len(encode(text)) - 100} tokens left out …]"
    assert 90 <= len(encode(begin)) + len(encode(end)) <= 102


STEPS = 12
LOG = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Count the files of each folder."},
    *(
        message
        for at in range(STEPS)
        for message in (
            {
                "role": "assistant",
                "content": f"Folder {at}.",
                "tool_calls": [
                    {
                        "id": str(at),
                        "type": "function",
                        "function": {"name": "count", "arguments": json.dumps({"folder": at})},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": str(at), "content": f"{at} files " * 8},
        )
    ),
    {"role": "assistant", "content": "Done."},
]
TURNS = STEPS + 1


def build(tmp_path, normalize, limits):
    (tmp_path / "in.jsonl").write_text(json.dumps({"messages": LOG, "tools": []}) + "\n")
    config = {"inputs": [{"path": "in.jsonl"}], "normalize": normalize, "limits": limits}
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    out = tmp_path / "out"
    assert cli.main(["build", "-c", str(tmp_path / "c.yaml"), "-o", str(out), "--quiet"]) == 0
    assert cli.main(["verify", str(out), "--quiet"]) == 0
    ledger = json.loads((out / "manifest.json").read_bytes())["ledger"]
    found = [
        list(map(json.loads, (out / part / "train-00000-of-00001.jsonl").read_bytes().splitlines()))
        for part in ("data", "meta")
    ]
    return *found, ledger


def answers(row):
    return [message for message in row["messages"] if message["role"] == "assistant"]


@pytest.mark.quick(2)
@pytest.mark.parametrize("policy", ["split", "weight"])
@pytest.mark.parametrize("unit", ["conversation", "query", "turn"])
def test_windows_of_a_long_conversation(tmp_path, policy, unit):
    normalize = {"untrained_turns": policy, "unit": unit}
    data, meta, ledger = build(tmp_path, normalize, {"max_tokens": 500, "too_long": "split"})
    assert len(data) > 1
    assert all(row["tokens"] <= 500 for row in meta)
    assert ledger["calls"] == {"logged": STEPS, "kept": STEPS, "dropped": {}}
    assert ledger["conversations"]["rejected"] == {}
    for row in data:
        assert [message["content"] for message in row["messages"][:2]] == [
            message["content"] for message in LOG[:2]
        ]
    trained = []
    for row, about in zip(data, meta, strict=True):
        own = answers(row)
        context = [message for message in own if message.get("weight") == 0]
        assert about.get("untrained_turns", {}) == ({"repeat": len(context)} if context else {})
        if any("weight" in message for message in own):
            assert unit == "conversation"
            own = [message for message in own if message["weight"]]
        elif unit != "conversation":
            own = own[-about["assistant_turns"] :]
        assert len(own) == about["assistant_turns"] == len(about["spans"])
        trained += [message["content"] for message in own]
    assert len(trained) == len(set(trained)) == TURNS, "each turn is trained once"
    assert unit != "conversation" or all("weight" in m for m in answers(data[-1]))


def test_the_beginning_of_a_long_conversation(tmp_path):
    data, meta, ledger = build(tmp_path, {}, {"max_tokens": 500, "too_long": "cut"})
    (row,), (about,) = data, meta
    left = TURNS - len(answers(row))
    assert about["changes"]["turns_cut_to_length"] == left
    kept = about["calls"]
    assert ledger["calls"] == {
        "logged": STEPS, "kept": kept, "dropped": {"max_tokens": STEPS - kept},
    }  # fmt: skip


def test_a_shortened_response_is_counted(tmp_path):
    _, (about,), _ = build(tmp_path, {}, {"tool_response_tokens": 10})
    assert about["changes"]["response_shortened"] == STEPS


@given(
    st.one_of(fit, conversations),
    st.builds(
        NormalizeOptions,
        unit=st.sampled_from(UNITS),
        untrained_turns=st.sampled_from(["split", "weight"]),
        reasoning=st.sampled_from(["drop", "keep"]),
        control_tokens=st.just("neutralise"),
    ),
    st.sampled_from(["split", "cut"]),
    st.floats(0.4, 1),
)
def test_every_window_is_proven_and_no_target_is_lost(
    verifier, conversation, options, too_long, share
):
    normalised = normalise(conversation, options)
    if normalised.dialogue is None:
        return
    proofs = list(prove(normalised, options, LengthOptions(), verifier))
    if any(proof.problem is not None for proof in proofs):
        # Faults that no shorter sample avoids, such as a number that the loader would change.
        return
    limit = int(proofs[-1].verdict.tokens * share) + 1
    lengths = LengthOptions(max_tokens=limit, too_long=too_long)
    trained, left_out, windows = [], 0, 0
    for proof in prove(normalised, options, lengths, verifier):
        if proof.problem is not None:
            assert proof.problem.code == {"split": "turn_too_long"}.get(too_long, "max_tokens")
            left_out += int(proof.problem.detail.split()[0])
            continue
        windows += "history_left_out" in proof.example.changes
        assert proof.verdict.tokens <= limit
        assert parse(proof.verdict.text).messages == proof.sample.messages
        trained += [proof.example.origins[at] for at in proof.example.targets]
        assert targets(proof.sample, options.unit, len(proof.example.targets)) == (
            proof.example.targets
        )
    answers = [turn for turn in normalised.dialogue.turns if turn.role == "assistant"]
    wanted = [at for at, turn in enumerate(answers) if turn.trained]
    event(f"{min(windows, 2)} windows, {'some' if trained else 'none'} fit")
    assert set(trained) <= set(wanted)
    assert len(set(trained)) + left_out == len(wanted)
    assert len(trained) == len(set(trained)), "each target is trained once"
