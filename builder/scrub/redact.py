"""Replaces secrets and personal data in a dialogue, or rejects the dialogue.

A placeholder ends in twelve digits of a digest, keyed with the beginnings of the logs: the same
inputs give the same bytes on any machine, and calls and results still match. A secret that its
surroundings reveal in one place is replaced throughout the conversation.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from urllib.parse import quote

from builder.conversation import Json
from builder.jsonio import dumps
from builder.problem import Problem
from builder.sample import Call, Dialogue
from builder.scrub.options import ScrubOptions
from builder.scrub.people import UserFinder, known_users, named_person
from builder.scrub.personal import find_personal, personal_in, pseudonym
from builder.secrets.grade import is_wordlike
from builder.secrets.hits import Hit, apart, outside_escapes
from builder.secrets.secrets import (
    MARK,
    find_secrets,
    mask_pieces,
    named_secret,
    scanned_secrets,
    secrets_in,
)
from builder.sources.listing import beginnings
from builder.sources.source import Source
from builder.text import escape_tokens, token_pattern

# -- all texts of a dialogue that are written ------------------------------------------------------


def dialogue_strings(dialogue: Dialogue) -> Iterator[tuple[str, str]]:
    """Yields (name of the member or "", text) for all texts of a dialogue that are written."""
    for turn in dialogue.turns:
        if turn.content:
            yield "", turn.content
        if turn.reasoning:
            yield "", turn.reasoning
        for call in turn.calls:
            yield "", call.name
            yield from value_strings(call.arguments)
        for response in turn.responses:
            yield "", response
    for tool in dialogue.tools:
        yield from value_strings(tool)


def value_strings(value: Json, name: str = "") -> list[tuple[str, str]]:
    """Returns (name of the member or "", text) of the strings and keys of a JSON value."""
    strings: list[tuple[str, str]] = []
    _collect(value, name, strings)
    return strings


def _collect(value: Json, name: str, strings: list[tuple[str, str]]) -> None:
    if isinstance(value, str):
        strings.append((name, value))
    elif isinstance(value, list):
        for before, item in pairwise((None, *value)):
            _collect(item, _name_in_list(before, name), strings)
    elif isinstance(value, dict):
        for key, item in value.items():
            strings.append(("", key))
            _collect(item, _name_of(key, value, name), strings)


_TYPED = ("text", "value", "input", "input_text", "content", "keys", "query", "string")
_FIELDS = (
    "element", "selector", "ref", "field", "label", "locator", "placeholder", "target", "name",
    "id", "css", "xpath", "description", "role",
)  # fmt: skip
"""Members of a browser tool's arguments: what is typed, and where."""
_FOR_PASSWORDS = re.compile(
    r"passw(?:or[dt]|d)|passphrase|passcode|kennwort|contrase.a|mot de passe|senha"
    r"|wachtwoord|\bpin\b",
    re.IGNORECASE,
)
_SCHEMA_VALUES = ("default", "const", "example", "examples", "enum")
_OF_COOKIES = ("domain", "httpOnly", "sameSite", "path", "url", "expires", "expirationDate")
"""Members of an object that is a cookie."""
_IS_SESSION = re.compile(r"sess|sid|auth|token|jwt|login|remember|ticket|cred", re.IGNORECASE)
_SESSION = "session_token"
"""The name of the value of a cookie that logs someone in."""
_OPTION = re.compile(r"--?[A-Za-z][\w.-]{2,60}")


def _name_of(key: str, owner: dict[str, Json], outer: str) -> str:
    """Returns the name that describes a member; `outer` is the name of its object.

    In {"name": "API_KEY", "value": …} the `value` takes the name from `name`, what a browser types
    into a field described as one for passwords is named `password`, and in a schema the possible
    values of a property take the property's name. Cookies that log someone in have one name.
    """
    if outer.lower().endswith(("cookie", "cookies")) and _IS_SESSION.search(key):
        return _SESSION
    if key in _TYPED:
        for naming in _FIELDS:
            if isinstance(given := owner.get(naming), str) and _FOR_PASSWORDS.search(given[:400]):
                return "password"
    if key in ("value", "Value"):
        for naming in ("name", "key", "Name", "Key"):
            if isinstance(given := owner.get(naming), str):
                is_cookie = not owner.keys().isdisjoint(_OF_COOKIES) and _IS_SESSION.search(given)
                return _SESSION if is_cookie else given
    return outer if key in _SCHEMA_VALUES and outer else key


def _name_in_list(before: Json, outer: str) -> str:
    """Returns the name that describes an item of a list: the option before it, or the list's."""
    return before if isinstance(before, str) and _OPTION.fullmatch(before) else outer


Change = Callable[[str, str], str]
"""(text, name of the member or "") → text."""


def map_dialogue(dialogue: Dialogue, change: Change, tokens: re.Pattern[str]) -> Dialogue:
    """Returns the dialogue with all texts changed. Raises KeyError as `map_value` does."""
    return Dialogue(
        tuple(
            replace(
                turn,
                content=change(turn.content, ""),
                reasoning=change(turn.reasoning, ""),
                calls=tuple(_map_call(call, change, tokens) for call in turn.calls),
                responses=tuple(change(text, "") for text in turn.responses),
            )
            for turn in dialogue.turns
        ),
        tuple(map_value(tool, change) for tool in dialogue.tools),
    )


def _map_call(call: Call, change: Change, tokens: re.Pattern[str]) -> Call:
    arguments = map_value(call.arguments, change)
    assert isinstance(arguments, dict), "a mapped object is an object"
    if arguments == call.arguments:
        return replace(call, name=change(call.name, ""))
    text, _ = escape_tokens(dumps(arguments), tokens)
    return Call(change(call.name, ""), arguments, text)


def map_value(value: Json, change: Change, name: str = "") -> Json:
    """Returns the value with `change` applied to its strings and keys.

    Raises KeyError if two keys of one object become equal.
    """
    if isinstance(value, str):
        return change(value, name)
    if isinstance(value, list):
        return [
            map_value(item, change, _name_in_list(before, name))
            for before, item in pairwise((None, *value))
        ]
    if isinstance(value, dict):
        mapped = {
            change(key, ""): map_value(item, change, _name_of(key, value, name))
            for key, item in value.items()
        }
        if len(mapped) != len(value):
            raise KeyError("two keys become equal")
        return mapped
    return value


# -- what is found in them, and its replacement ----------------------------------------------------

KEY_BYTES = 1 << 14
"""Bytes at the start of each file that go into the key."""

MIN_KNOWN = 6
"""Minimum characters of a secret; a shorter one is replaced only where it is marked."""


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A dialogue with replacements and {code: count} of them, or why it is rejected.

    without_secrets  whether its texts were searched for secrets, and there was none
    """

    dialogue: Dialogue
    changes: dict[str, int] = field(default_factory=dict)
    problem: Problem | None = None
    without_secrets: bool = False


def derive_key(sources: Iterable[Source]) -> bytes:
    """Returns 32 bytes: a digest of the beginnings of all files, in order."""
    digest = hashlib.blake2b(digest_size=32, person=b"builder-redact")
    files = (item for source in sources for item in source.members or (source,))
    for head in beginnings(files, KEY_BYTES):
        digest.update(len(head).to_bytes(8, "big") + head)
    return digest.digest()


class Scrubber:
    """Finds and replaces what must not be written. `used`: a replacement depended on the key."""

    def __init__(self, options: ScrubOptions, key: bytes, added_tokens: tuple[str, ...]) -> None:
        self.options = options
        self.key = key
        self.used = False
        self._pattern = token_pattern(added_tokens)

    def dialogue(self, dialogue: Dialogue) -> Scrubbed:
        """Returns the dialogue without secrets and personal data, or the reason to reject it."""
        try:
            return self._scrubbed(dialogue)
        except KeyError:  # two keys of an object contain the same secret in two spellings
            detail = "two keys of an object would become equal"
            return Scrubbed(dialogue, problem=Problem("secret", "conversation", detail, records=0))

    def _scrubbed(self, dialogue: Dialogue) -> Scrubbed:
        changes: dict[str, int] = {}
        without_secrets = False
        if self.options.secrets in ("redact", "reject"):
            known, hits_of = _known(dialogue)
            without_secrets = not known
            if made_up := _made_up(dialogue, known):
                known = {secret: kind for secret, kind in known.items() if secret not in made_up}
                hits_of = {
                    text: tuple(hit for hit in hits if text[hit.start : hit.end] not in made_up)
                    for text, hits in hits_of.items()
                }
            if known and self.options.secrets == "reject":
                return _rejected(dialogue, "secret", known)
            if known:
                finder = _Finder(known, hits_of)
                dialogue, places = self._changed(dialogue, finder.hits, self.placeholder)
                changes["secret_redacted"] = places
        if self.options.personal_data in ("pseudonymise", "reject"):
            data_of = _personal(dialogue)
            if data_of and self.options.personal_data == "reject":
                found = [(text, hit) for (_, text), hits in data_of.items() for hit in hits]
                kinds = {text[hit.start : hit.end]: hit.kind for text, hit in found}
                return _rejected(dialogue, "personal_data", kinds)
            if data_of:
                dialogue, places = self._changed(
                    dialogue, lambda text, name: data_of.get((name, text), ()), self.pseudonym
                )
                changes["pseudonymised"] = places
                without_secrets = False  # in the texts as they are now
        return Scrubbed(dialogue, changes, without_secrets=without_secrets)

    def text(self, text: str) -> str:
        """Returns a text for meta, rejects or the manifest without secrets and personal data."""
        return self._without(text, find_secrets)

    def file_name(self, name: str) -> str:
        """Returns the name of a log without secrets and personal data."""
        return self._without(name, secrets_in_name)

    def _without(self, text: str, find: Callable[[str], Sequence[Hit]]) -> str:
        if self.options.secrets != "off":
            text = _replaced(text, find(text), self.placeholder)
        if self.options.personal_data == "pseudonymise":
            text = _replaced(text, find_personal(text), self.pseudonym)
        return text

    def problem(self, problem: Problem) -> Problem:
        """Returns a problem without them; its detail may be truncated inside a logged secret."""
        detail = self.text(problem.detail)
        if self.options.secrets != "off":
            detail = mask_pieces(detail)
        return replace(problem, where=self.text(problem.where), detail=detail)

    def placeholder(self, secret: str, hit: Hit) -> str:
        """Returns the placeholder of a secret.

        The kind is included only if the secret itself shows it, because the same secret may be
        found by its name in one place and by a header in another. It ends in a digit, which
        composes with nothing in NFC.
        """
        kind = hit.kind if hit.certain else "secret"
        same = _KEY_TEXT.sub("", secret) if kind == "private_key" else secret
        return f"{MARK}{kind.upper()}_{self._digits(same)}"

    def pseudonym(self, datum: str, hit: Hit) -> str:
        """Returns the pseudonym of a datum; spellings with and without spaces share one."""
        same = datum.lower() if hit.kind == "mail" else datum
        if hit.kind in ("phone", "iban", "card", "national_id"):
            same = _SPACES.sub("", datum)
        return pseudonym(hit.kind, datum, self._digits(same))

    def _digits(self, text: str) -> str:
        """Returns twelve digits that depend on the text and the key."""
        self.used = True
        digest = hashlib.blake2b(text.encode("utf-8", "replace"), key=self.key, digest_size=8)
        return f"{int.from_bytes(digest.digest(), 'big') % 10**12:012d}"

    def _changed(
        self, dialogue: Dialogue, find: Callable[[str, str], Sequence[Hit]], stand_in: StandIn
    ) -> tuple[Dialogue, int]:
        """Returns the dialogue with a replacement for each hit, and the number of hits."""
        places = 0

        def change(text: str, name: str) -> str:
            nonlocal places
            hits = find(text, name)
            places += len(hits)
            return _replaced(text, hits, stand_in)

        return map_dialogue(dialogue, change, self._pattern), places


_BETWEEN = re.compile(r"[^A-Za-z0-9]+")
_WORD = re.compile(r"[A-Za-z]+(?=[0-9]{0,4}\Z)")
_SHORT = 6
"""Maximum length of a part that need be no word: a token drawn at random has longer ones."""


def secrets_in_name(name: str) -> tuple[Hit, ...]:
    """Returns the secrets in the path of a file; what consists of words is none."""
    return tuple(hit for hit in find_secrets(name) if not _is_of_words(name[hit.start : hit.end]))


def _is_of_words(text: str) -> bool:
    parts = [part for part in _BETWEEN.split(text) if part]
    return len(parts) > 2 and all(
        len(part) <= _SHORT or ((word := _WORD.match(part)) is not None and is_wordlike(word[0]))
        for part in parts
    )


StandIn = Callable[[str, Hit], str]

_SPACES = re.compile(r"[ ().-]+")


def _rejected(dialogue: Dialogue, code: str, kind_of: Mapping[str, str]) -> Scrubbed:
    kinds = ", ".join(sorted(set(kind_of.values())))
    problem = Problem(code, "conversation", f"{len(kind_of)} found: {kinds}", records=0)
    return Scrubbed(dialogue, problem=problem)


def _replaced(text: str, hits: Sequence[Hit], stand_in: StandIn) -> str:
    if not hits:
        return text
    pieces: list[str] = []
    end = 0
    for hit in hits:
        pieces += (text[end : hit.start], stand_in(text[hit.start : hit.end], hit))
        end = hit.end
    return "".join(pieces) + text[end:]


def _personal(dialogue: Dialogue) -> dict[tuple[str, str], tuple[Hit, ...]]:
    """Returns {(name, text): hits} for the texts of a dialogue with personal data.

    A name of a user that a path shows, or of a person that a key shows, is found in all of them.
    The keys of definitions say nothing about their examples.
    """
    named = list(dialogue_strings(dialogue))
    texts = [text for _, text in named]
    found = personal_in(texts)
    keyed = {
        (name, text): (hit,)
        for name, text in dialogue_strings(replace(dialogue, tools=()))
        if (hit := named_person(name, text))
    }
    persons = {text for (_, text), (hit,) in keyed.items() if hit.kind == _PERSON}
    for text, hits in zip(texts, found, strict=True):
        persons.update(text[hit.start : hit.end] for hit in hits if hit.kind == _PERSON)
    persons = {name for name in persons if name[:1].isupper()}
    users = known_users(texts, found)
    if users or persons:
        reserved = {text for tool in dialogue.tools for _, text in value_strings(tool)}
        ordered = sorted(persons, key=lambda name: (-len(name), name))
        finders = (UserFinder(users, reserved), UserFinder(ordered, reserved, _PERSON))
        found = [
            apart([*(hit for finder in finders for hit in finder.hits(text)), *hits])
            for text, hits in zip(texts, found, strict=True)
        ]
    return {place: hits for place, hits in zip(named, found, strict=True) if hits} | keyed


_PERSON = "person_name"


_KEY_TEXT = re.compile(r"\\+[nr]|[^A-Za-z0-9+/=]")
"""Matches the differences between spellings of one private key: line ends, escaped or not."""


def _known(dialogue: Dialogue) -> tuple[dict[str, str], dict[str, tuple[Hit, ...]]]:
    """Returns {secret: kind} of the secrets in the dialogue, in order, and {text: hits}."""
    known: dict[str, str] = {}
    hits_of: dict[str, tuple[Hit, ...]] = {}
    named = list(dialogue_strings(dialogue))
    texts = [text for _, text in named]
    for (name, text), hits in zip(named, secrets_in(texts), strict=True):
        if name and named_secret(name, text):
            known.setdefault(text, "secret")
        if hits:
            hits_of[text] = hits
        for hit in hits:
            secret = text[hit.start : hit.end]
            if hit.certain or secret not in known:
                known[secret] = hit.kind if hit.certain else "secret"
    for secret in scanned_secrets(texts):
        known.setdefault(secret, "secret")
    return known, hits_of


_GENERATOR = re.compile(
    r"(?:generat|random|suggest|creat|make)\w*?(?:password|passphrase|passwd|pwd|passcode)"
    r"|(?:password|passphrase|passwd|pwd|passcode)\w*?generat",
    re.IGNORECASE,
)
"""Names of tools that generate passwords."""


def _made_up(dialogue: Dialogue, known: Mapping[str, str]) -> set[str]:
    """Returns the secrets that a password generator returned, and that did not occur earlier.

    They are the content of the answer, as in examples of such tools. Tokens that their form assigns
    to an issuer are excluded.
    """
    made_up: set[str] = set()
    if not any(_GENERATOR.search(call.name) for turn in dialogue.turns for call in turn.calls):
        return made_up
    before = ""
    for turn, following in pairwise((*dialogue.turns, None)):
        assert turn is not None, "only the last of all is None"
        before += turn.content + turn.reasoning + "".join(turn.responses)
        for call, answer in zip(turn.calls, following.responses if following else (), strict=False):
            before += call.text
            if _GENERATOR.search(call.name):
                made_up |= {
                    secret
                    for secret, kind in known.items()
                    if kind == "secret" and secret in answer and secret not in before
                }
    return made_up


class _Finder:
    """Finds secrets by the rules and, if they are long enough, by their known values."""

    def __init__(self, known: dict[str, str], hits_of: dict[str, tuple[Hit, ...]]) -> None:
        self.known = known
        self._found = hits_of
        self._begins: dict[str, list[tuple[str, str]]] = {}
        for secret, kind in known.items():
            if len(secret) >= (16 if secret.isalpha() else MIN_KNOWN):  # never just a word
                for spelling in sorted({secret, dumps(secret)[1:-1], quote(secret, safe="")}):
                    self._begins.setdefault(spelling[:MIN_KNOWN], []).append((spelling, kind))
        for listed in self._begins.values():
            listed.sort(key=lambda item: -len(item[0]))

    def hits(self, text: str, name: str) -> tuple[Hit, ...]:
        """Returns the secrets in the value of a member, or in a text without a name ("")."""
        if name and text in self.known and named_secret(name, text):
            return (Hit(0, len(text), self.known[text], certain=False),)
        again = outside_escapes(text, self._again(text))
        return apart([*self._found.get(text, ()), *again])

    def _again(self, text: str) -> Iterator[Hit]:
        if not any(begin in text for begin in self._begins):
            return
        start = 0
        last = len(text) - MIN_KNOWN
        while start <= last:
            for spelling, kind in self._begins.get(text[start : start + MIN_KNOWN], ()):
                if text.startswith(spelling, start) and _stands_alone(
                    text, start, start + len(spelling)
                ):
                    yield Hit(start, start + len(spelling), kind, certain=kind != "secret")
                    start += len(spelling) - 1
                    break
            start += 1


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Returns whether a short secret is not part of a longer word; long ones always count."""
    if end - start >= 16:
        return True
    before, after = text[start - 1 : start], text[end : end + 1]
    is_escape = before in ("n", "r", "t") and text[start - 2 : start - 1] == "\\"
    return not ((before.isalnum() and not is_escape) or after.isalnum())
