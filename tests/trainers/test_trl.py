"""Runs TRL on a tiny random model: which tokens its trainer computes a loss for.

Needs the extra `trl` (TRL and a CPU torch); scripts/conformance.sh runs it on any machine.
"""

import json
from pathlib import Path

import datasets
import pytest
from support.conversations.masks import CONTINUED, PLAIN, THOUGHTS, TWO_QUERIES
from support.places import DATA
from support.runs.builds import build, lines
from support.templates.targets import ORIGINAL, tokenizer_folder

from builder import cli
from builder.qwen3.tokenizer import load
from builder.sample import Sample
from builder.trainers.mask_counts import MaskTokens
from builder.trainers.masks import MASKS, Mask
from builder.verify.verifier import Verifier

trl = pytest.importorskip("trl", reason="the extra `trl` is not installed")
torch = pytest.importorskip("torch", reason="the extra `trl` is not installed")

pytestmark = pytest.mark.filterwarnings("default")  # warnings of other packages

TEXTS = Path(trl.__file__).parent / "chat_templates"
PUBLISHED = {
    "Qwen3": "qwen3",
    "Qwen3 Instruct-2507": "qwen3_instruct_2507",
    "Qwen3-VL Instruct": "qwen3_vl",
    "Qwen2.5": "qwen2_5",
}
LONG = Sample((("user", "a " * 980), ("assistant", "b " * 60)))
LOST = Sample((("user", "a " * 1100), ("assistant", "b")))
SAMPLES = (PLAIN, THOUGHTS, TWO_QUERIES, CONTINUED, LONG)
NO_LOSS = -100


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Returns {name: target} with the template texts of the installed TRL."""
    return {
        name: load(
            tokenizer_folder(
                tmp_path_factory.mktemp("target"),
                (TEXTS / f"{file}.jinja").read_text(encoding="utf-8"),
            )
        )
        for name, file in PUBLISHED.items()
    }


@pytest.fixture(scope="module")
def model():
    """Returns a model of Qwen3's shape with random weights, small enough for a step in a second."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=151936,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=8,
        )
    )


@pytest.fixture
def train(model, tmp_path):
    """Runs one step of SFTTrainer; returns (ids, positions with a loss) of each row."""

    def run(rows, target, **options):
        from transformers import AutoTokenizer

        folder = Path(target.name)
        tokenizer = AutoTokenizer.from_pretrained(folder) if folder.is_dir() else target.tokenizer
        arguments = trl.SFTConfig(
            output_dir=str(tmp_path / "run"),
            max_steps=1,
            per_device_train_batch_size=2,
            use_cpu=True,
            bf16=False,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            **options,
        )
        trainer = trl.SFTTrainer(
            model, args=arguments, train_dataset=rows, processing_class=tokenizer
        )
        loss = trainer.train().training_loss
        assert loss > 0
        return [
            (row["input_ids"], {at for at, label in enumerate(row["labels"]) if label != NO_LOSS})
            for row in trainer.train_dataset
        ]

    return run


def rows_of(samples):
    return datasets.Dataset.from_list(
        [
            {**sample.record, "tools": json.dumps(list(sample.tools)) if sample.tools else None}
            for sample in samples
        ]
    )


@pytest.mark.parametrize("name", ["trl", "trl-assistant-only"])
@pytest.mark.parametrize("template", PUBLISHED)
def test_trl_trains_the_tokens_that_are_predicted(published, train, template, name):
    target = published[template]
    assert target.template_name == template
    trainer = MASKS[name]
    expected = []
    for sample in SAMPLES:
        mask = trainer.rule(sample, target.render_sample(sample), target)
        assert isinstance(mask, Mask)
        ids = target.encode(mask.text).ids[: trainer.limit]
        expected.append((ids, set(MaskTokens(target).trained(mask, trainer).numbers)))
    assert len(target.encode(target.render_sample(LONG)).ids) > trainer.limit
    found = train(rows_of(SAMPLES), target, assistant_only_loss=name != "trl")
    assert found == expected


def test_trl_refuses_the_original_text_and_takes_the_revised(published, train, tmp_path):
    """Both render the same bytes; TRL knows the revised text only."""
    original = load(tokenizer_folder(tmp_path / "original", ORIGINAL))
    with pytest.raises(ValueError, match="not supported for this template"):
        train(rows_of(SAMPLES), original, assistant_only_loss=True)
    for sample in SAMPLES:
        revised = published["Qwen3"].render_sample(sample)
        assert revised == original.render_sample(sample)


def test_a_token_across_a_border_is_trained(published, train):
    target = published["Qwen3 Instruct-2507"]
    sample = Sample((("user", "a"), ("assistant", "\nb")))
    trainer = MASKS["trl-assistant-only"]
    mask = trainer.rule(sample, target.render_sample(sample), target)
    expected = MaskTokens(target).trained(mask, trainer)
    assert expected.crossed
    ((_, found),) = train(rows_of([sample]), target, assistant_only_loss=True)
    assert found == expected.numbers


def test_a_sample_without_remaining_targets_is_dropped(published, train):
    found = train(rows_of([LOST, PLAIN]), published["Qwen3"], assistant_only_loss=True)
    assert len(found) == 1


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("trl") / "built"
    config = out.parent / "c.yaml"
    config.write_text("normalize: {control_tokens: neutralise, reasoning: keep}")
    assert build(out, "-c", config, inputs=[DATA]) == 0
    return out


@pytest.fixture(scope="module")
def proven(built, verifier):
    """Returns (text, its spans) of each sample of the dataset, in order."""
    found = []
    for line, about in zip(
        (built / "data" / "train-00000-of-00001.jsonl").read_bytes().splitlines(),
        lines(built / "meta" / "train-00000-of-00001.jsonl"),
        strict=True,
    ):
        row = json.loads(line)
        text = verifier.target.render(row["messages"], row["tools"])
        found.append((text, [tuple(span) for span in about["spans"]]))
    return found


def trained(target, ids, positions):
    """Returns the spans of text with a loss."""
    stretches, last = [], -2
    for at in sorted(positions):
        if at != last + 1:
            stretches.append([])
        stretches[-1].append(ids[at])
        last = at
    return [target.decode(stretch) for stretch in stretches]


def exported(built, tmp_path, variant):
    out = tmp_path / variant
    assert cli.main(["export", str(built), "--to", variant, "-o", str(out), "--quiet"]) == 0
    return datasets.load_dataset(str(out), split="train", cache_dir=str(tmp_path / "cache"))


@pytest.mark.parametrize("variant", ["messages", "messages-str", "tools-in-system", "openai"])
def test_conversations_are_trained_in_the_proven_text(
    built, proven, verifier, train, tmp_path, variant
):
    target = verifier.target
    found = train(exported(built, tmp_path, variant), target, max_length=None)
    assert [target.decode(ids) for ids, _ in found] == [text for text, _ in proven]
    assert all(len(positions) == len(ids) for ids, positions in found)


@pytest.mark.parametrize("variant", ["messages", "messages-str", "tools-in-system"])
def test_assistant_turns_are_trained_as_predicted(built, published, train, tmp_path, variant):
    target = published["Qwen3"]
    rows = exported(built, tmp_path, variant)
    expected = []
    for row in rows:
        tools = row.get("tools") or []
        sample = Sample(
            tuple((message["role"], message["content"]) for message in row["messages"]),
            tuple(json.loads(tools) if isinstance(tools, str) else tools),
        )
        trainer = MASKS["trl-assistant-only"]
        mask = trainer.rule(sample, target.render_sample(sample), target)
        ids = target.encode(mask.text).ids
        limitless = MaskTokens(target).trained(mask)
        expected.append((ids, set(limitless.numbers)))
    assert train(rows, target, assistant_only_loss=True, max_length=None) == expected


def learnt(built, train, target, tmp_path, variant):
    """Returns (row, its text, the spans with a loss) of each row of a variant, nothing cut."""
    rows = exported(built, tmp_path, variant)
    found = train(rows, target, max_length=None)
    return [
        (row, target.decode(ids), trained(target, ids, positions))
        for row, (ids, positions) in zip(rows, found, strict=True)
    ]


def test_labels_of_the_tokenized_variant_reach_the_loss(built, proven, verifier, train, tmp_path):
    found = learnt(built, train, verifier.target, tmp_path, "tokenized")
    assert [(text, stretches) for _, text, stretches in found] == [
        (text, [text[start:end] for start, end in spans]) for text, spans in proven
    ]


def test_completions_as_text_are_our_spans(built, verifier, train, tmp_path):
    found = learnt(built, train, verifier.target, tmp_path, "prompt-completion-text")
    assert found
    for row, text, stretches in found:
        assert text == row["prompt"] + row["completion"]
        assert stretches == [row["completion"]]
        assert row["completion"].endswith("<|im_end|>")


def test_completions_as_messages_are_trained_to_the_newline(built, verifier, train, tmp_path):
    """From the end of the thinking prompt: unlike in spans, an empty block is in the completion."""
    target = verifier.target
    found = learnt(built, train, target, tmp_path, "prompt-completion")
    assert found
    for row, text, stretches in found:
        assert text == target.render([*row["prompt"], *row["completion"]], row["tools"])
        _, last = text.rsplit("<|im_start|>assistant\n", 1)
        assert stretches == [last]


def test_the_checks_can_fail(published, train):
    """A prediction for another trainer does not match TRL."""
    target = published["Qwen3"]
    verdict = Verifier(target).check(PLAIN)
    ours = MaskTokens(target).trained(Mask(verdict.text, verdict.spans)).numbers
    ((_, found),) = train(rows_of([PLAIN]), target)
    assert found != ours
