"""Prefilters of the rules: fast, and with the same hits as the plain rules for every text."""

import importlib.util
import re
import sys
from functools import partial
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.conversations.strategies import MANY
from support.sensitive.personal import NOT_PERSONAL, PERSONAL
from support.sensitive.planted import NO_SECRETS, SECRETS
from support.sensitive.regexes import samples
from support.sensitive.rule_examples import expand

from builder.scrub import personal
from builder.secrets import answers, assignments, rules, secrets
from builder.secrets import prefilter as gates
from builder.secrets.hits import SHORT
from builder.secrets.names import KEYWORDS
from builder.secrets.prefilter import (
    LinePrefilter,
    Prefilter,
    ascii_lower,
    necessary,
    occurrences,
    projected,
)
from builder.secrets.words import KEY_OWNERS


def copy_of(module):
    """Returns a second, independent module of the same file."""
    spec = importlib.util.spec_from_file_location(f"plain_{module.__name__}", module.__file__)
    copy = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = copy  # a dataclass looks its module up
    spec.loader.exec_module(copy)
    return copy


DRAWN = []
"""For each rule of personal data, in order: its pattern without conditions on preceding text."""


def alone(search):
    """Returns a function that searches one text, without the cache."""
    return lambda text: search.__wrapped__([text])[0]


def plain_rule(listed, *patterns, end=""):
    """Returns the rule in its plain form: the condition on preceding text comes first."""
    DRAWN.append(re.compile("|".join(patterns)))
    pattern = f"{rules.behind_none_of(listed)}(?:{'|'.join(patterns)}){end}"
    return rules.Rule(re.compile(pattern), "")


def recorded(pattern):
    DRAWN.append(re.compile(pattern))
    return rules.Rule(DRAWN[-1], "")


def plain_personal():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "after_none_of", plain_rule)
        patch.setattr(rules, "anywhere", recorded)
        copy = copy_of(personal)
    finders = [finder for _, finder in copy._RULES]
    copy._MAY_HIT, copy._LINES = lambda line: finders, lambda text: [(0, len(text))]
    for asked_before in ("_MAIL_AT", "_DOTTED", "_GROUPED", "_PROMPT_AT", "_INNER_TOP"):
        setattr(copy, asked_before, re.compile(""))
    copy._HOME_OF_POSIX = copy._HOME.pattern
    return alone(copy.personal_in)


def plain_secrets():
    """Finds secrets without prefilters: every rule and every line is examined."""
    named, copy = copy_of(assignments), copy_of(secrets)
    keywords = sorted(CUES, key=len, reverse=True)
    named._KEYWORD = re.compile("|".join(map(re.escape, keywords)))
    copy._FINDERS = ((None, named.find_named), *copy._FINDERS[1:])
    copy._RULES_IN = SimpleNamespace(rules=lambda literals: secrets.RULES)
    literals = {it.lower(): None for rule in secrets.RULES for it in rule.prefilter}
    copy._marked = lambda texts: [
        secrets._Marks(
            {it: [*occurrences(it, lower)] for it in literals if it in lower},
            {number: [(0, len(text))] for number in range(len(copy._FINDERS))},
            other_scripts=True,
        )
        for text, lower in zip(texts, map(ascii_lower, texts), strict=True)
    ]
    return alone(copy.secrets_in)


CUES = sorted(KEYWORDS)
SECRET_RULES = secrets.RULES
find_secrets, find_personal = alone(secrets.secrets_in), alone(personal.personal_in)
PLAIN = {find_secrets: plain_secrets(), find_personal: plain_personal()}

DISGUISES = [
    {},
    str.maketrans("ski", "\u017f\u212a\u0131"),
    str.maketrans("i", "\u0130"),
    str.maketrans("skia", "SKIA"),
    str.maketrans(" ", "\u00a0"),
    str.maketrans(" ", "\x1c"),
    str.maketrans("0123456789", "".join(map(chr, range(0x660, 0x66A)))),
]
"""Characters that Python's `re` also takes for a letter, a space or a digit."""
BEFORE = ["", " ", "\n", "a", "_", "\\n", "\\\\t", "%2F", "1m", "\u0663m", '"', "/", "\u00e9"]

_BEHIND = re.compile(r"\(\?<[=!][^()]*\)")
RULES = [rule for rule in vars(personal).values() if isinstance(rule, rules.Rule)]


def found_by(rule, text):
    return [*rule.find(text, rule.places(text))]


def is_selected(rule, text):
    return any(found is rule for found in secrets._RULES_IN.rules(secrets._RULES_IN(text)))


def holds(condition, text):
    return gates.re2.search(condition.encode(), projected(text), gates._options()) is not None


ASKED = [
    *((partial(found_by, rule), partial(is_selected, rule)) for rule in SECRET_RULES),
    *((rule.pattern.search, partial(holds, rule.condition)) for rule in RULES),
]
BODIES = [
    re.compile(_BEHIND.sub("", pattern), flags)
    for pattern, flags in (
        *((it.pattern, 0 if it.token else re.IGNORECASE) for it in SECRET_RULES),
        *((it.pattern, it.flags) for it in DRAWN),
    )
]
"""Each pattern without its conditions on preceding text."""
assert len(BODIES) == len(ASKED)
any_match = st.tuples(
    st.sampled_from([*BODIES, assignments.NAMED, answers._ASKS, answers._WRITES]).flatmap(
        lambda it: st.from_regex(it, fullmatch=True)
    ),
    st.sampled_from([{}, {}, *DISGUISES]),
).map(lambda drawn: drawn[0].translate(drawn[1]))
cut = st.tuples(any_match, st.integers(0, 40), st.integers(0, 3)).map(
    lambda drawn: drawn[0][drawn[2] : len(drawn[0]) - drawn[1] or None]
)
NAMES = ["", "-", "--", "api_", "API_", "MAPS_", "TLS_\n", "api\n", "-\n", "client-"]
SIGNS = ["=", ": ", " ", '": "', '\\": \\"', " is ", "='", " = ", ">", "', '"]
VALUES = ["x1y2z3w4v5u6t7", "Maple42!", "a\u0663b2c3d4e5f6g7", '"aB3$dE5fG7h9', "foo"]
CASED = [case for cue in CUES for case in (cue, cue.upper(), cue.replace("k", "\u212a"))]
names = st.tuples(*map(st.sampled_from, (NAMES, CASED, SIGNS, VALUES))).map("".join)
glue = st.sampled_from([
    *BEFORE, "", "", "\x1b[31m", "'", "=", ":", ".", "//", "@", "-", "+", "9", "\u4e2d",
    "\ud800", "\u017f", "\u0130", "\u2028", "?", "&", ";", "host", "server_", "EXAMPLE",
    "REDACTED_", "\n$ ", "\n\u276f ", "\nme@h:~# ", "<<EOF\n", "\nx7Kq2mPz9Lw4\n",
])  # fmt: skip
hostile = st.lists(
    st.one_of(any_match, cut, names, names, glue, glue, st.text(max_size=6)), max_size=7
).map("".join)


def each_engine():
    """Yields once with RE2 enabled and once without it."""
    for engine in (gates.re2, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gates, "re2", engine)
            yield engine


def check(text, *finders, engines=each_engine):
    for find in finders or PLAIN:
        expected = PLAIN[find](text)
        for engine in engines():
            assert find(text) == expected, (find, engine)


@MANY
@given(hostile)
@example("-\npassword Maple42!\n")
@example("api\nkey: x1y2z3w4v5u6t7")
@example("host\nname: tower7")
@example("\n".join(f"{'pw=' * 30}Maple42!" for _ in range(3)))
def test_the_hits_are_those_of_the_plain_rules(text):
    check(text)


@pytest.mark.parametrize("text", [
    *(text for text, _ in PERSONAL.values()), *NOT_PERSONAL, *NO_SECRETS,
    "from 9.100.200.7 and 3abc:12::7", "ADA9@my-mail.org", "ada@t7:~$ ls", "mac: bobs-iMac",
    "machine\u00a0db\u00a0login\u00a0me\u00a0password\x1cMaple42!x",
    "".join(f"{word}_key: x1y2z3w4v5u6t7\n" for word in KEY_OWNERS.split("|")),
])  # fmt: skip
def test_texts_of_the_rules(text):
    check(text)
    for line in text.split("\n"):
        check(line)


STEP = 37
"""One in this many combinations is tried for each name; coprime to the numbers of parts."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    for number, rest in enumerate(product(CASED, SIGNS, VALUES[:-1])):
        if number % STEP == NAMES.index(name) % STEP:
            check(name + "".join(rest), find_secrets)


TOGETHER = (
    (secrets.secrets_in.__wrapped__, find_secrets),
    (personal.personal_in.__wrapped__, find_personal),
)


def check_together(texts):
    for find_in, find in TOGETHER:
        alone_in = {text: PLAIN[find](text) for text in texts}
        expected = [alone_in[text] for text in texts]
        for _ in each_engine():
            assert find_in(texts) == expected


@pytest.mark.slow
@given(st.lists(hostile, min_size=1, max_size=4))
def test_the_hits_in_several_texts_are_those_in_each(texts):
    check_together(texts)


@pytest.mark.slow
@pytest.mark.parametrize("text", [text for text, _ in [*PERSONAL.values(), *SECRETS.values()]])
def test_secrets_are_found_in_a_list_of_texts_as_they_are_alone(text):
    between = ("string", "_", "9", "%2", "\u00e9", "", "\\")
    check_together([part for around in between for part in (around, text, around)])


@pytest.mark.skipif(gates.re2 is None, reason="without RE2 every text may hold something")
def test_texts_without_candidates_are_not_searched_one_by_one(monkeypatch):
    quiet = ["type", "string", "Reads a file. Give its name.", "src/app.py", "x" * SHORT]
    *unmarked, marked = secrets._marked([*quiet, "token: x1y2z3"])
    assert unmarked == [secrets._Marks()] * len(quiet)
    assert marked.lines
    searched = []
    monkeypatch.setattr(personal, "_MAY_HIT", lambda line: searched.append(line) or ())
    personal.personal_in([*quiet, "1\nme@somewhere.org\n2"])
    assert searched == ["me@somewhere.org"]


WRITTEN = [
    "put-parameter --type securestring --value x1y2z3w4",
    "password x1y2z3w4",
    "password\nvelvet!violet32",
    "password: thistlebarley",
]
"""Matches that are never drawn, since the pattern has a condition on the text that follows."""
EXAMPLES = [expand(template)[0] for rule in secrets.RULES for template in rule.hits]


def in_examples(number):
    """Returns matches in the examples of the rules, for a pattern of which none was drawn."""
    return [match[0] for text in EXAMPLES for match in BODIES[number].finditer(text)]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(ASKED)))
def test_each_rule(number):
    hits, may_hit = ASKED[number]
    texts = [*(text for text, _ in samples(BODIES[number].pattern, 3)), *WRITTEN]
    matches = [text for text in texts if BODIES[number].fullmatch(text)] or in_examples(number)
    assert matches
    find = find_secrets if number < len(SECRET_RULES) else find_personal
    for at, drawn in enumerate(matches):
        for text in (
            *(before + drawn for before in BEFORE),
            *(f";{drawn.translate(disguise)} " for disguise in DISGUISES),
            f";{drawn.upper()} ",
        ):
            if hits(text):
                assert may_hit(text)
        # Without RE2, which rules are asked does not depend on the text: one will do.
        check(f";{drawn} ", find, engines=each_engine if at == 0 else lambda: [gates.re2])


def test_conditions_exclude_text_that_only_resembles_a_hit():
    """They exclude text next to a hit, as otherwise they would be useless."""
    assert not holds(necessary(r"sk-[a-z]{3,8}\d{2}", ignore_case=True), "sk-aa11")
    assert holds(necessary(r"sk-[a-z]{3,8}\d{2}", ignore_case=True), "S\u212a-aa\u017f1\u0663")
    assert not holds(necessary(r"a[^\s\"]{3}\bb"), "aéé b")
    assert not secrets._RULES_IN("the token of a task is oriented: see the tests of it")
    assert not personal._MAY_HIT("2024-01-31 12:30:45 a@b /homes/x v1.2.3 DE89 1234")
    assert not [*assignments.LINES("the key of the token: none\npassword: str = field()")]


LINES = LinePrefilter(r"(?:a+b|\nc)")


@given(st.lists(st.sampled_from(["a", "b", "c", "\n", "\n", "é", "\ud800", "\r"])).map("".join))
def test_lines_are_those_in_which_a_condition_begins(text):
    expected, at = [], 0
    for line in text.split("\n"):
        if re.search("a+b", line) or (at > 0 and line.startswith("c")):
            expected.append((at, at + len(line)))
        at += len(line) + 1
    assert list(LINES(text)) == expected


@given(st.lists(st.sampled_from("abcdz"), min_size=99, max_size=400).map("".join))
def test_an_automaton_beyond_its_memory_gives_the_same_hits(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gates, "MAX_MEMORY", 4096)
        gate = Prefilter([("a[a-d]{12}z", "one"), ("zz", "two")])
        expected = [
            name
            for name in ("one", "two")
            if re.search({"one": "a[a-d]{12}z", "two": "zz"}[name], text)
        ]
        assert gate(text) == expected
        assert [bool([*LinePrefilter("a[a-d]{12}z")(text)])] == ["one" in expected]


def test_if_re2_fails_every_rule_may_hit():
    gate = Prefilter([("x", "one"), ("y", "two")])
    assert gate("y") == ["two"]
    gate._set = type("Full", (), {"Match": staticmethod(lambda data: None)})
    assert gate("y") == ("one", "two")


def test_without_re2_every_rule_may_hit(monkeypatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    without = copy_of(gates)
    assert without.re2 is None
    assert without.Prefilter([("x", "one"), ("y", "two")])("y") == ("one", "two")
    assert list(without.LinePrefilter("x")("a\nb")) == [(0, 3)]
    check_literals(without)


def test_literals_are_found_where_their_start_allows():
    check_literals(gates)


def check_literals(module):
    literals = module.LiteralPrefilter([
        (("Ab", "b"), None, "one"),
        (("c", "twice"), "[x-z]", "two"),
        (("twice",), None, "three"),
    ])  # fmt: skip
    assert literals("ABa bc yc yC") == {"ab": [0], "b": [1, 4], "c": [8]}
    assert literals("c\u00e9 TWICE") == {"c": [0], "twice": [3]}
    assert literals.rules(["c", "b"]) == ["one", "two"]


@pytest.mark.parametrize("pattern", ["ab{2}", "[ab]c", r"\d", "(?:a|b)", "a+", r"\$x", "é"])
def test_a_pattern_by_its_first_letter(pattern):
    if pattern in ("(?:a|b)", "a+", r"\d"):
        with pytest.raises(AssertionError):
            rules.by_first([pattern])
        return
    both = re.compile(rules.by_first(["zz", pattern, "acid"]))
    for text in ("abb", "ac", "bc", "$x", "é", "zz", "acid", "b", "x"):
        expected = re.match(f"zz|{pattern}|acid", text)
        found = both.match(text)
        assert (found and found[0]) == (expected and expected[0])
