"""Personal data: found by form and check digits; pseudonyms are not found again."""

import json
import shutil
from dataclasses import asdict
from ipaddress import ip_address
from itertools import pairwise

import pytest
from support.runs.builds import build, lines
from support.sensitive.personal import NOT_PERSONAL, PERSONAL
from support.sensitive.planted import every_byte, row

from builder.qwen3.calls import ADDED_TOKENS
from builder.sample import Call, Dialogue, Turn
from builder.scrub.options import ScrubOptions
from builder.scrub.personal import KINDS, find_personal, is_card, is_iban, pseudonym
from builder.scrub.redact import Scrubber


@pytest.mark.parametrize("case", [case for case, (_, datum) in PERSONAL.items() if datum])
def test_found(case):
    text, datum = PERSONAL[case]
    assert datum in [text[hit.start : hit.end] for hit in find_personal(text)]


@pytest.mark.parametrize("text", NOT_PERSONAL)
def test_clean(text):
    assert [text[hit.start : hit.end] for hit in find_personal(text)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_pseudonym_is_not_personal_data(kind):
    for datum in ("x", "2003:d2:af1e:2c01::1"):
        stand_in = pseudonym(kind, datum, "123456789012")
        places = {"user_name": f"/home/{stand_in}/x", "host_name": f"root@{stand_in}:~/x"}
        keys = {"person_name": "first_name", "birth_date": "dob", "address": "address"}
        keyed = json.dumps({keys.get(kind, kind): stand_in})
        for text in (stand_in, f"see {stand_in}, and {stand_in}", places.get(kind, ""), keyed):
            assert find_personal(text) == ()


def test_an_address_keeps_its_version():
    scrub = Scrubber(ScrubOptions("redact", "pseudonymise"), b"k" * 32, ADDED_TOKENS)
    written = scrub.text("from 2003:d2:af1e:2c01::1 and 88.198.51.23")
    assert [ip_address(word).version for word in written.split()[1::2]] == [6, 4]


MEMBERS = {
    "first_name": "Ann",
    "birthDate": "1980-02-03",
    "address": "12 Oak Street",
    "city": "Bonn",
}
PEOPLE = ["Ann", "1980-02-03", "12 Oak Street"]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_keys_of_json_say_what_is_personal(times):
    text = json.dumps(MEMBERS)
    for _ in range(times - 1):
        text = json.dumps({"result": text})
    assert [text[hit.start : hit.end] for hit in find_personal(text)] == PEOPLE


@pytest.mark.parametrize(
    "members",
    [
        {"first_name": "string", "name": "Ann", "address": "0x7ffd2a"},
        {"address": "ann@h", "dob": "none", "fullName": "null", "phone_number": "+0123456789012"},
        {"address": "https://h.io/a 1", "birthday": "yes"},
    ],
)
def test_other_values_under_these_keys_are_none(members):
    assert find_personal(json.dumps(members)) == ()


def test_arguments_are_read_by_their_keys_and_definitions_are_not():
    scrub = Scrubber(ScrubOptions("redact", "pseudonymise"), b"k" * 32, ADDED_TOKENS)
    schema = {"properties": {"first_name": {"type": "string", "examples": ["Bob"]}}}
    tool = {"type": "function", "function": {"name": "add", "parameters": schema}}
    turns = (Turn("user", "add Ann"), Turn("assistant", calls=(Call.of("add", MEMBERS),)))
    scrubbed = scrub.dialogue(Dialogue(turns, (tool,)))
    call = scrubbed.dialogue.turns[1].calls[0]
    assert list(call.arguments) == list(MEMBERS)
    assert not any(datum in call.text for datum in PEOPLE)
    assert "Ann" not in scrubbed.dialogue.turns[0].content, "the same stand-in as in the call"
    assert scrubbed.dialogue.tools == (tool,)
    assert scrubbed.changes == {"pseudonymised": 4}


def test_check_digits():
    assert is_iban("GB82WEST12345698765432")
    assert not is_iban("GB82WEST12345698765431")
    assert not is_iban("GB82WEST1234569876543")
    assert find_personal("to NO2812345678901 now")
    assert is_iban("NO09ABCDEFGHIJK"), "its check digits are valid"
    assert not find_personal("to NO09ABCDEFGHIJK now, order 123456")
    assert is_card("5555-5555-5555-4444")
    assert not is_card("5555-5555-5555-4445")
    assert not is_card("0000 0000 0000 0000")


def test_hits_in_hostile_text_do_not_overlap():
    for piece in (
        "+1",
        "+1 (2) 3",
        "a@",
        "1.2.3.4.",
        "2001:",
        "DE12 ",
        "4111 ",
        "/home/",
        "-Users-",
        "a@b-",
    ):
        text = piece * (200_000 // len(piece))
        hits = find_personal(text)
        assert all(one.end <= two.start for one, two in pairwise(hits)), piece
        assert not hits or 0 <= hits[0].start < hits[-1].end <= len(text)


def test_the_same_datum_has_the_same_pseudonym():
    scrub = Scrubber(ScrubOptions("redact", "pseudonymise"), b"k" * 32, ADDED_TOKENS)
    call = Call.of("send", {"to": "Ada@Mail.acme.io", "file": "/Users/alovelace/x"})
    turns = (
        Turn("user", "I am ada@mail.acme.io, +49 30 9018200, tower in -Users-alovelace-src"),
        Turn("assistant", calls=(call,)),
        Turn("tool", responses=("sent to ada@mail.acme.io (+49 (30) 9018-200)",)),
        Turn("assistant", "done"),
    )
    scrubbed = scrub.dialogue(Dialogue(turns))
    reported = [scrubbed.dialogue.turns[0].content, scrubbed.dialogue.turns[2].responses[0]]
    mail = scrubbed.dialogue.turns[1].calls[0].arguments["to"]
    name = scrubbed.dialogue.turns[1].calls[0].arguments["file"].split("/")[2]
    assert mail.endswith("@redacted.invalid")
    assert all(mail in text for text in reported)
    assert f"-Users-{name}-src" in reported[0]
    phone = reported[0].split(", ")[1]
    assert phone in reported[1]
    assert scrubbed.changes == {"pseudonymised": 7}
    assert "lovelace" not in repr(asdict(scrubbed.dialogue))


@pytest.mark.parametrize(("mode", "samples"), [("pseudonymise", 2), ("reject", 1)])
def test_modes(tmp_path, mode, samples):
    folder = tmp_path / "in" / "-Users-alovelace-src"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text(row("mail ada@mail.acme.io") + row("nothing"))
    config = tmp_path / "c.yaml"
    config.write_text(f"audit: {{personal_data: {mode}}}\n")
    out = tmp_path / "out"
    assert build(out, "-c", config, inputs=[tmp_path / "in"]) == 0
    assert b"ada@mail" not in every_byte(out)
    meta = lines(out / "meta" / "train-00000-of-00001.jsonl")
    assert len(meta) == samples
    if mode == "pseudonymise":
        shutil.rmtree(out / ".state")  # stays on the machine
        assert b"lovelace" not in every_byte(out)
        (read,) = json.loads((out / "manifest.json").read_bytes())["inputs"]
        assert {read["path"]} == {line["source"] for line in meta}
        assert {"pseudonymised": 1} in [line["changes"] for line in meta]
