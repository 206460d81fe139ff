r"""Finds personal data in decoded text: by form, by check digits, and names in paths.

Mail addresses (and the name in `Name <mail>`), phone numbers, IP addresses, IBANs and card numbers
(with their check digits), the names of users in home folders (also encoded, `-Users-name-project`)
and in `ls -l`, and of machines; in JSON the keys say it (`"first_name": "Ann"`). Addresses for
documentation (`user@example.com`, 192.0.2.0/24) and names that every image has are none.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from builder.scrub.people import KEYED, TABLES, WORDS, name_before, named_person
from builder.secrets.hits import Gate, Hit, Joined, apart, remembering, starts
from builder.secrets.tables import ESCAPES

KINDS = (
    "mail", "phone", "ip", "iban", "card", "user_name", "host_name", "national_id", "person_name",
    "birth_date", "address",
)  # fmt: skip

_ATOM = re.compile(r"(\[(?:\\.|[^]\\])+\]|\\.|[^\\\[(])(?![{*+?])(.*)")


def _compiled(form: dict[str, Any]) -> re.Pattern[str]:
    """Returns the pattern of a form in tables.toml.

    Each of `any` begins with a character or a set: `re` skips to the next of these, and looks back
    only there.
    """
    if "pattern" in form:
        return re.compile(form["pattern"])
    parts = [part.groups() for part in map(_ATOM.fullmatch, form["any"]) if part is not None]
    assert len(parts) == len(form["any"]), "each begins with one character"
    first = "".join(first[1:-1] if len(first) > 2 else first for first, _ in parts)
    rest = "|".join(f"(?<={first}){rest}" if len(parts) > 1 else rest for first, rest in parts)
    escaped = "|".join(f"(?<={escape}.)" for escape in ESCAPES)
    behind = f"(?:(?<![{form['not_after']}].)|{escaped})"
    return re.compile(f"[{first}]{behind}(?:{rest}){form['end']}")


_PATTERNS = {name: _compiled(form) for name, form in TABLES["patterns"].items()}
_IN_URL = re.compile(r"://[^\s/]{0,99}:$")
_DIGITS = re.compile(r"\d{3}[ .)-]|\d{6}|\+\d")
"""Required in an IBAN: one made of letters only does not count."""
_IBAN_LENGTHS = {
    code: int(length) for length, codes in TABLES["iban"].items() for code in codes.split()
}
"""Length by country."""
_IN_TABLE = re.compile(r"\d{7,}[uULl]{0,3}[)\]},;\s]{1,24}\Z")
_TABLE_GOES_ON = re.compile(r"[uULl]{0,3}[)\]},;\s]{1,24}-?[(\[{]?\d{7,}")
"""Other long numbers beside one: a table of constants."""
PHONE_REGIONS = TABLES["phone_regions"].split()
_GAP = r"[^\n0-9A-Za-z+]{0,4}(?:(?:n[or]|num[a-z]{1,5}|is|code)\b[^\n0-9A-Za-z+]{0,4}){0,2}"
"""The text between the word and the number."""
_IDENTITY = tuple(
    (module, re.compile(rf"\b(?:{words}){_GAP}(?P<v>{form})(?![\w-])", re.IGNORECASE | re.ASCII))
    for module, (words, form) in TABLES["identity"].items()
)
_WORDS = "|".join(words for words, _ in TABLES["identity"].values())
_IDENTITY_WORD = re.compile(rf"\b(?={_WORDS})", re.IGNORECASE | re.ASCII)
_NUMBER_WORDS = tuple(
    max(word.replace("\\", "").split("."), key=len).strip() for word in _WORDS.split("|")
)
"""Literals of the words before identity numbers."""
_PHONE_WORDS = TABLES["phone_words"]
_NATIONAL_PHONE = re.compile(
    rf"\b(?:{_PHONE_WORDS})[a-z]{{0,10}}{_GAP}(?P<v>\(?\d[\d /().-]{{6,17}}\d)(?![\w-])",
    re.IGNORECASE | re.ASCII,
)
_DATE = re.compile(r"(?:19|20)\d\d[-/.]\d\d[-/.]\d\d")
_HOST_NAMES = re.compile(r"(?<![A-Za-z])(?:host|computer|node|server)[_ ]?\Z", re.IGNORECASE)
_HOST_SIGN, _HUMP = re.compile("[0-9-]"), re.compile("[a-z][A-Z]")


_Find = Callable[[str, int, int], Iterator[Hit]]
"""(text, start and end of a line in it) → the hits on the line."""


def _data(
    kind: str, *patterns: re.Pattern[str], is_one: Callable[[re.Match[str]], object]
) -> _Find:
    """Returns a search for the matches, or their groups `v`, of which something holds."""

    def find(text: str, start: int, end: int) -> Iterator[Hit]:
        for pattern in patterns:
            for match in pattern.finditer(text, start, end):
                if is_one(match):
                    yield Hit(*match.span("v" if "v" in pattern.groupindex else 0), kind)

    return find


def _mails(text: str, start: int, end: int) -> Iterator[Hit]:
    for match in _PATTERNS["mail"].finditer(text, start, end):
        if _IN_URL.search(text, max(0, match.start() - 100), match.start()):
            continue  # the password of a URL
        is_reserved = match["top"].lower() in WORDS["no_domain"]
        if not is_reserved and not _PATTERNS["no_mail"].match(match[0]):
            yield Hit(match.start(), match.end(), "mail")
            name = name_before(text, start, match.start())
            if name is not None and _is_users(text[slice(*name)]):
                yield Hit(*name, "user_name")


def _is_phone(match: re.Match[str]) -> bool:
    digits = sum(map(str.isdigit, match[0]))
    before = match.string[match.start() - 1 : match.start()]
    if match[0][0] == "+" and match[0][1:].isdigit() and before in ("", "\n"):
        return False  # a line of a diff
    return 8 <= digits <= 15 and not _PATTERNS["no_phone"].fullmatch(match[0])


def _is_national_phone(match: re.Match[str]) -> bool:
    """Returns whether a number after a word for phones is valid in one of `PHONE_REGIONS`."""
    number = match["v"]
    if not 8 <= sum(map(str.isdigit, number)) <= 13 or _DATE.match(number):
        return False
    import phonenumbers  # noqa: PLC0415 - 0.3 s, only at the first candidate

    for region in PHONE_REGIONS:
        with suppress(phonenumbers.NumberParseException):
            if phonenumbers.is_valid_number(phonenumbers.parse(number, region)):
                return True
    return False


def _identity_numbers(text: str, start: int, end: int) -> Iterator[Hit]:
    """Yields identity numbers after their names if their check digits are valid."""
    for word in _IDENTITY_WORD.finditer(text, start, end):
        for module, pattern in _IDENTITY:
            match = pattern.match(text, word.start(), end)
            if match and import_module(f"stdnum.{module}").is_valid(match["v"]):
                yield Hit(*match.span("v"), "national_id")


def is_iban(text: str) -> bool:
    """Returns whether it has its country's length and valid check digits (ISO 7064, mod 97-10)."""
    plain = text.replace(" ", "")
    if len(plain) != _IBAN_LENGTHS.get(plain[:2]):
        return False
    turned = plain[4:] + plain[:4]
    return int("".join(str(int(char, 36)) for char in turned)) % 97 == 1


def is_card(text: str) -> bool:
    """Returns whether it starts like a card number, with a valid check digit (Luhn)."""
    plain = "".join(char for char in text if char.isdigit())
    if not _PATTERNS["card_form"].fullmatch(plain) or len(set(plain)) < 2:
        return False
    digits = [int(char) for char in plain]
    doubled = [n * 2 - 9 * (n > 4) for n in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_no_constant(match: re.Match[str]) -> bool:
    """Returns whether it is a card number, and not one of a table of long numbers."""
    text, start = match.string, match.start()
    is_constant = (
        match[0].isdigit() and _IN_TABLE.search(text, max(0, start - 60), start)
    ) or _TABLE_GOES_ON.match(text, match.end())
    return is_card(match[0]) and not is_constant


def _is_somebodys(match: re.Match[str]) -> bool:
    """Returns whether an address is in use: networks for documentation (RFC 5737, 3849) are not."""
    before = match.string[max(0, match.start() - 9) : match.start()].lower()
    is_version = before.endswith(("v", "version ", "version: ", "ver ")) or (
        before.endswith("/") and not before.endswith("//")
    )
    if ":" not in match[0] and (is_version or match[0] in WORDS["resolver"]):
        return False
    try:
        return ipaddress.ip_address(match[0]).is_global
    except ValueError:
        return False


_STAND_IN = re.compile(r"user\d{12}")


def _is_users(name: str) -> bool:
    is_everybodys = name.lower() in WORDS["user"] or _STAND_IN.fullmatch(name) is not None
    return not is_everybodys and not name.isdigit()


def _owners(text: str, start: int, end: int) -> Iterator[Hit]:
    for match in _PATTERNS["listed"].finditer(text, start, end):
        for group in ("name", "group"):
            if _is_users(match["name"]) and match[group] == match["name"]:
                yield Hit(*match.span(group), "user_name")


def _prompts(text: str, start: int, end: int) -> Iterator[Hit]:
    for match in _PATTERNS["prompt"].finditer(text, start, end):
        name, _, host = match[0].partition("@")
        if _is_users(name) and name not in ("git", "hg"):
            yield Hit(match.start(), match.start() + len(name), "user_name")
        if not _PATTERNS["no_host"].fullmatch(host) and name != "git":
            yield Hit(*match.span("host"), "host_name")


def _is_host(match: re.Match[str]) -> bool:
    """Returns whether a name of a machine is somebody's, and no code: `hostname: opts.host,`."""
    if _PATTERNS["no_host"].fullmatch(match["v"]):
        return False
    if match.re is not _PATTERNS["named_host"]:
        return True
    text, host, begin, end = match.string, match["v"], match.start("v"), match.end("v")
    name = _HOST_NAMES.search(text, max(0, match.start() - 10), match.start())
    if name is None or _PATTERNS["of_object"].fullmatch(host):
        return False
    if text[begin - 1] in "\"'":
        return name[0] != "node" or _HOST_SIGN.search(host) is not None  # nodeName: "textarea"
    is_setting = match[0][:3].isupper() and text[begin - 1] == "="
    ends_line = text[end : end + 1] in ("", "\n", "\r", "\\", " ", '"')
    is_type = text[end : end + 3] == " = " or _HUMP.search(host) is not None
    return is_setting or _HOST_SIGN.search(host) is not None or (ends_line and not is_type)


def _keyed(text: str, start: int, end: int) -> Iterator[Hit]:
    for member in KEYED.finditer(text, start, end):
        if hit := named_person(member["key"], member["v"]):
            yield Hit(*member.span("v"), hit.kind)


_named_hosts = _data(
    "host_name",
    _PATTERNS["uname"],
    _PATTERNS["inner_host"],
    _PATTERNS["named_host"],
    is_one=_is_host,
)
_BY_LITERAL: tuple[tuple[str, _Find], ...] = (
    ("@", _mails),
    ("@", _prompts),
    (
        "/home/|/users/|\\users|%2fhome|%2fusers|-users-|-home-",
        _data(
            "user_name", _PATTERNS["home"], _PATTERNS["encoded"], is_one=lambda m: _is_users(m["v"])
        ),
    ),
    ("-rw|drw|lrw|-r-|dr-|lr-", _owners),
    (
        "desktop-|laptop-|win-|ec2amaz-|ip-|-mac|-im|-thinkpad|-laptop",
        _data("host_name", _PATTERNS["host"], is_one=bool),
    ),
    ("linux |darwin |freebsd |.local|.lan|.corp|.int", _named_hosts),
    ("hostname|host name|host_name|computername|computer_name|computer name", _named_hosts),
    (_PHONE_WORDS, _data("phone", _NATIONAL_PHONE, is_one=_is_national_phone)),
    ('name"|name\\|birth|dob|address|street|phone|mobile|cell', _keyed),
    ("nodename|node_name|node name|servername|server_name|server name", _named_hosts),
)
_BY_NUMBER = (
    _data("phone", _PATTERNS["phone"], is_one=_is_phone),
    _data(
        "iban", _PATTERNS["iban"], is_one=lambda iban: is_iban(iban[0]) and _DIGITS.search(iban[0])
    ),
    _data("card", _PATTERNS["card"], is_one=_is_no_constant),
    _data("ip", _PATTERNS["ipv4"], _PATTERNS["ipv6"], is_one=_is_somebodys),
)
_numbers = starts(TABLES["number"].encode())
"""Finds what every datum of `_BY_NUMBER` contains."""
_BEFORE, _AFTER = 200, 400
"""Code points around a literal or a number that are searched, on its line: no datum is longer."""
_GATE: Gate[_Find] = Gate(
    [(literal, find) for literals, find in _BY_LITERAL for literal in literals.split("|")]
    + [(literal, _identity_numbers) for literal in _NUMBER_WORDS]
)


def find_personal(text: str) -> tuple[Hit, ...]:
    """Returns the personal data in a decoded text, in order, none overlapping."""
    return personal_in([text])[0]


@remembering
def personal_in(texts: Sequence[str]) -> list[tuple[Hit, ...]]:
    """Returns the personal data in each of some texts: those of `find_personal`.

    No rule goes beyond a line, so only lines with a literal or a number are searched.
    """
    joined = Joined(texts)
    data = joined.data
    places: dict[_Find, list[int]] = {}
    for at, _, finds in _GATE(data.lower()):
        for find in finds:
            places.setdefault(find, []).append(at)
    places |= dict.fromkeys(_BY_NUMBER, _numbers(data))
    hits_of: list[list[Hit]] = [[] for _ in texts]
    for find, found in places.items():
        done = -1
        for at in sorted(found):
            if at < done:
                continue
            start = max(data.rfind(b"\n", max(0, at - _BEFORE), at) + 1, at - _BEFORE, 0)
            end = data.find(b"\n", at, at + _AFTER)
            is_whole = end >= 0
            end = end if is_whole else min(len(data), at + _AFTER)
            done = end if is_whole else end - _BEFORE
            number, first = joined.place(start)
            shift = start - first
            for hit in find(texts[number], first, end - shift):
                if is_whole or hit.end + shift + 40 < end or end == len(data):
                    hits_of[number].append(hit)
    return [apart(hits) for hits in hits_of]


def pseudonym(kind: str, datum: str, digits: str) -> str:
    """Returns the pseudonym of a datum of a kind; `digits` are twelve of its keyed digest.

    It has the same form as the datum, from an unassigned range if there is one, and is
    never itself found as personal data.
    """
    number = int(digits)
    if kind == "ip" and ":" in datum:
        return f"2001:db8::{number >> 16 & 65535:x}:{number & 65535:x}"
    return {
        "mail": f"person{digits}@redacted.invalid",
        "phone": f"+0{digits}",
        "ip": f"240.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        "iban": f"XX00{digits}",
        "card": f"0000{digits}",
        "user_name": f"user{digits}",
        "host_name": f"host-{digits}",
        "national_id": f"id{digits[:6]}x{digits[6:]}",
        "person_name": f"Person{digits}",
        "birth_date": f"0{number % 900 + 100}-{number // 1000 % 12 + 1:02}-{number % 28 + 1:02}",
        "address": f"1 Redacted Street {digits}",
    }[kind]
