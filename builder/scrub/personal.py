r"""Finds personal data in decoded text: by form, by check digits, and names in paths.

Mail addresses (and the name in `Name <mail>`), phone numbers, IP addresses, IBANs and card numbers
(with their check digits), the names of users in home folders (also encoded, `-Users-name-project`)
and in `ls -l`, and of machines. Other names of people in running text are not searched for.
Unassigned addresses (loopback, private networks, `git@`, `.invalid`) and names that every image has
(`ubuntu`, `runner`) are not personal data.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence

from builder.scrub.hosts import HOST_RULES, NO_HOST, contains
from builder.scrub.names import name_before
from builder.scrub.national import (
    IDENTITY_CONDITION,
    PHONE_CONDITION,
    find_identity_numbers,
    find_national_phones,
)
from builder.secrets.hits import Hit, Joined, apart, remembering
from builder.secrets.prefilter import LinePrefilter, Prefilter
from builder.secrets.rules import after_none_of, anywhere

KINDS = ("mail", "phone", "ip", "iban", "card", "user_name", "host_name", "national_id")


_MAIL = after_none_of(
    r"\w.+%\\-",
    r"[A-Za-z0-9_][\w.+%-]{0,63}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61})\.){1,8}(?P<top>[A-Za-z]{2,24})",
    end=r"(?![\w@-]|\.\w)",
)
_NO_MAIL = re.compile(
    r"(?:git|hg|svn|noreply|no-reply|do-not-reply|donotreply|root)@|.*@noreply\.", re.IGNORECASE
)
_IN_URL = re.compile(r"://[^\s/]{0,99}:$")
_NO_TOP = frozenset((
    "invalid", "localhost", "local", "png", "jpg", "jpeg", "gif", "svg", "webp", "js", "ts", "mjs",
    "css", "py", "json", "md", "html", "service", "timer", "target", "mount", "socket", "yml",
))  # fmt: skip
"""Suffixes after an @ in names of files and units."""

_PHONE = after_none_of(
    r"\w+./=)\]-",
    r"\+[1-9](?:[ .()-]{0,2}\d){7,14}",
    r"0(?<!\d 0)0[1-9]\d(?:[ .-]\d{2,5}){2,5}",
    r"1[ .-](?:\([2-9]\d{2}\) ?|[2-9]\d{2}[ .-])[2-9]\d{2}[.-]\d{4}",
    r"\([2-9]\d{2}\) ?[2-9]\d{2}[.-]\d{4}",
    r"[2-9]\d{2}[ .-][2-9]\d{2}[.-]\d{4}",
    end=r"(?![\w/]|[.-]\d)",
)
_NO_PHONE = re.compile(r"(?:0\d{3} )+0\d{3}|\d{4}\.\d{4}\.\d{4}|(?:\d{1,3}\.){3}\d+ .*")
"""Numbers of characters, the address of a network card, addresses and their masks."""

_IPV4 = after_none_of(r"\w.", r"\d\d{0,2}\.(?:\d{1,3}\.){2}\d{1,3}", end=r"(?!\w|\.\d)")
_IPV6 = after_none_of(r"\w:.", r"[23][0-9A-Fa-f]{3}(?::[0-9A-Fa-f]{0,4}){2,7}", end=r"(?![\w:])")
_RESOLVERS = frozenset(("1.1.1.1", "1.0.0.1", "8.8.8.8", "8.8.4.4", "9.9.9.9", "1.2.3.4"))

_IBAN = after_none_of(
    "A-Za-z0-9",
    r"[A-Z][A-Z]\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?",
    end="(?![A-Za-z0-9])",
)
_IBAN_LENGTHS = {
    code: length
    for length, codes in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL", 19: "MK SI", 20: "AT BA EE KZ LT LU XK",
        21: "CH HR LI LV", 22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG", 25: "PT ST", 26: "IS TR",
        27: "FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB PL", 29: "BR EG PS QA UA",
        30: "JO KW MU", 31: "MT SC", 32: "LC",
    }.items()
    for code in codes.split()
}  # fmt: skip
"""Length by country (the register of ISO 13616)."""

_CARD = after_none_of(
    r"\w.+/-",
    r"[2-6]\d{3}(?:[ -]?\d{4}){2}[ -]?\d{1,7}",
    r"3[47]\d{2}[ -]?\d{6}[ -]?\d{5}",
    end=r"(?![\w-]|\.\d)",
)
_CARD_FORM = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7]|65)\d{14}|(?:6011|64[4-9]\d)\d{12}|3[47]\d{13}"
    r"|(?:62|35)\d{14,17}|(?:30[0-5]|36\d|38\d)\d{11}"
)
"""The beginnings of numbers and their lengths, by issuer."""
_IN_TABLE = re.compile(r"\d{7,}[uULl]{0,3}[)\]},;\s]{1,24}\Z")
_TABLE_GOES_ON = re.compile(r"[uULl]{0,3}[)\]},;\s]{1,24}-?[(\[{]?\d{7,}")
"""Other long numbers beside one: a table of constants."""

_HOME = anywhere(
    r"(?:(?:/|%2[Ff])(?:home|Users)(?:/|%2[Ff])|\b[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/))"
    r"(?P<name>[A-Za-z0-9_][\w.-]{1,31})"
)
_HOME_OF_POSIX = re.compile(
    r"[/%](?:(?<=/)|(?<=%)2[Ff])(?:home|Users)(?:/|%2[Ff])(?P<name>[A-Za-z0-9_][\w.-]{1,31})"
)
"""A home folder in a text without Windows paths, whose drives may be any letter."""
_ENCODED = anywhere(
    r"-(?<![A-Za-z0-9]-)(?:home|Users)-(?P<name>[A-Za-z0-9_][A-Za-z0-9_.]{1,31})(?=-|\b)"
)
_PROMPT = after_none_of(
    r"\w.@/\\-",
    r"[a-z_][\w.-]{0,31}@(?P<host>[A-Za-z0-9][\w.-]{1,62})",
    end=r"(?=:[~/]| ?[~%$#] )",
)
_LISTED = anywhere(
    r"[-dlbcps][r-][w-][xsS-][r-][w-][xsS-][r-][w-][xtT-][.+@]?[ \t]+\d+[ \t]+"
    r"(?P<name>[A-Za-z_][\w.-]{1,31})[ \t]+(?P<group>[\w.-]{0,32})"
)
"""The owner of a file in `ls -l`, and its group if it has the same name."""
_EVERYBODY = frozenset((
    "admin", "administrator", "agent", "airflow", "all", "alpine", "app", "appuser", "appveyor",
    "azureuser", "bin", "build", "builder", "buildkite", "centos", "ci", "circleci", "claude",
    "coder", "codespace", "codex", "containeruser", "daemon", "debian", "default", "deploy",
    "dev", "developer", "devuser", "docker", "ec2-user", "example", "fedora", "git", "gitpod",
    "guest", "jenkins", "jovyan", "kali", "linuxbrew", "me", "mysql", "name", "nobody", "node",
    "nonroot", "oem", "openhands", "pi", "postgres", "public", "root", "runner", "runneradmin",
    "sandbox", "service", "shared", "swe-agent", "test", "tester", "testuser", "travis",
    "ubuntu", "user", "username", "users", "vagrant", "vscode", "worker", "www-data", "you",
    "your", "your-name", "your-username", "your_username", "yourname", "youruser",
    "yourusername", "nginx", "redis", "grafana",
))  # fmt: skip
"""Names of home folders that occur in images and in documentation."""


def find_personal(text: str) -> tuple[Hit, ...]:
    """Returns the personal data in a decoded text, in order, none overlapping."""
    return personal_in([text])[0]


@remembering
def personal_in(texts: Sequence[str]) -> list[tuple[Hit, ...]]:
    """Returns the personal data in each of some texts: those of `find_personal`.

    No rule goes beyond a line, so only lines with a condition are searched.
    """
    joined = Joined(texts)
    hits_of: list[list[Hit]] = [[] for _ in texts]
    for number, start, end in joined.ranges(_LINES(joined.text)):
        text = texts[number]
        for finder in _MAY_HIT(text[start:end]):
            hits_of[number] += finder(text, start, end)
    return [apart(hits) for hits in hits_of]


_MAIL_AT = re.compile(r"@[A-Za-z0-9](?<=[\w.+%-]@.)[A-Za-z0-9-]{0,62}\.")
"""Every mail address contains this; it starts with one character, which `re` finds fast."""


def _mails(text: str, start: int, end: int) -> Iterator[Hit]:
    if not _MAIL_AT.search(text, start, end):
        return
    for match in _MAIL.pattern.finditer(text, start, end):
        if _IN_URL.search(text, max(0, match.start() - 100), match.start()):
            continue  # the password of a URL
        if match["top"].lower() not in _NO_TOP and not _NO_MAIL.match(match[0]):
            yield Hit(match.start(), match.end(), "mail")
            name = name_before(text, start, match.start())
            if name is not None and _is_users(text[slice(*name)]):
                yield Hit(*name, "user_name")


def _phones(text: str, start: int, end: int) -> Iterator[Hit]:
    for match in _PHONE.pattern.finditer(text, start, end):
        digits = sum(map(str.isdigit, match[0]))
        is_added = match[0][1:].isdigit() and text[match.start() - 1 : match.start()] in ("", "\n")
        if is_added and match[0][0] == "+":
            continue  # a line of a diff
        if 8 <= digits <= 15 and not _NO_PHONE.fullmatch(match[0]):
            yield Hit(match.start(), match.end(), "phone")


_DIGITS = re.compile(r"\d{3}[ .)-]|\d{6}|\+\d")
"""Required in an IBAN: one made of letters only does not count."""


def _ibans(text: str, start: int, end: int) -> Iterator[Hit]:
    for match in _IBAN.pattern.finditer(text, start, end):
        if is_iban(match[0]) and _DIGITS.search(match[0]):
            yield Hit(match.start(), match.end(), "iban")


def _cards(text: str, start: int, end: int) -> Iterator[Hit]:
    for match in _CARD.pattern.finditer(text, start, end):
        is_constant = (
            match[0].isdigit() and _IN_TABLE.search(text, max(0, match.start() - 60), match.start())
        ) or _TABLE_GOES_ON.match(text, match.end())
        if is_card(match[0]) and not is_constant:
            yield Hit(match.start(), match.end(), "card")


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
    if not _CARD_FORM.fullmatch(plain) or len(set(plain)) < 2:
        return False
    digits = [int(char) for char in plain]
    doubled = [n * 2 - 9 * (n > 4) for n in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_DOTTED = re.compile(r"\.(?<=\d\.)\d{1,3}\.\d")


def _addresses(text: str, start: int, end: int) -> Iterator[Hit]:
    if not _DOTTED.search(text, start, end):
        return
    for match in _IPV4.pattern.finditer(text, start, end):
        before = text[max(0, match.start() - 9) : match.start()].lower()
        version = before.endswith(("v", "version ", "version: ", "ver ")) or (
            before.endswith("/") and not before.endswith("//")
        )
        if not version and match[0] not in _RESOLVERS and _is_somebodys(match[0]):
            yield Hit(match.start(), match.end(), "ip")


_GROUPED = re.compile(r":(?<=[23][0-9A-Fa-f]{3}:)")


def _long_addresses(text: str, start: int, end: int) -> Iterator[Hit]:
    if not _GROUPED.search(text, start, end):
        return
    for match in _IPV6.pattern.finditer(text, start, end):
        if _is_somebodys(match[0]):
            yield Hit(match.start(), match.end(), "ip")


_DOCUMENTED = tuple(
    map(
        ipaddress.ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
    )
)
"""Networks for documentation (RFC 5737, RFC 3849): in a log they replace real ones."""


def _is_somebodys(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return address.is_global or any(address in network for network in _DOCUMENTED)


def _users(text: str, start: int, end: int) -> Iterator[Hit]:
    if contains(text, start, end, ("Users", "home")):
        is_windows = contains(text, start, end, (":\\", ":/Users"))
        yield from _named_users(
            (_HOME.pattern if is_windows else _HOME_OF_POSIX).finditer(text, start, end)
        )


def _encoded_users(text: str, start: int, end: int) -> Iterator[Hit]:
    yield from _named_users(_ENCODED.pattern.finditer(text, start, end))


def _named_users(places: Iterable[re.Match[str]]) -> Iterator[Hit]:
    for place in places:
        name = place["name"].rstrip(".")
        if _is_users(name):
            yield Hit(place.start("name"), place.start("name") + len(name), "user_name")


def _owners(text: str, start: int, end: int) -> Iterator[Hit]:
    for match in _LISTED.pattern.finditer(text, start, end):
        if _is_users(match["name"]):
            yield Hit(*match.span("name"), "user_name")
            if match["group"] == match["name"]:
                yield Hit(*match.span("group"), "user_name")


_STAND_IN = re.compile(r"user\d{12}")


def _is_users(name: str) -> bool:
    return name.lower() not in _EVERYBODY and not _STAND_IN.fullmatch(name) and not name.isdigit()


_PROMPT_AT = re.compile(r"@[A-Za-z0-9][\w.-]{1,62}(?=:[~/]| ?[~%$#] )")


def _prompts(text: str, start: int, end: int) -> Iterator[Hit]:
    if not _PROMPT_AT.search(text, start, end):
        return
    for match in _PROMPT.pattern.finditer(text, start, end):
        name, _, host = match[0].partition("@")
        if _is_users(name) and name not in ("git", "hg"):
            yield Hit(match.start(), match.start() + len(name), "user_name")
        if not NO_HOST.fullmatch(host) and name != "git":
            yield Hit(*match.span("host"), "host_name")


_RULES = (
    (IDENTITY_CONDITION, find_identity_numbers),
    (PHONE_CONDITION, find_national_phones),
    (_MAIL.condition, _mails),
    (_PHONE.condition, _phones),
    (_IBAN.condition, _ibans),
    (_CARD.condition, _cards),
    (_IPV4.condition, _addresses),
    (_IPV6.condition, _long_addresses),
    (_HOME.condition, _users),
    (_ENCODED.condition, _encoded_users),
    (_PROMPT.condition, _prompts),
    (_LISTED.condition, _owners),
    *HOST_RULES,
)
_MAY_HIT = Prefilter(_RULES)
_LINES = LinePrefilter("|".join(condition for condition, _ in _RULES))


def pseudonym(kind: str, digits: str) -> str:
    """Returns the pseudonym of a datum of a kind; `digits` are twelve of its keyed digest.

    It has the same form as the datum, from an unassigned range if there is one, and is
    never itself found as personal data.
    """
    number = int(digits)
    return {
        "mail": f"person{digits}@redacted.invalid",
        "phone": f"+0{digits}",
        "ip": f"240.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        "iban": f"XX00{digits}",
        "card": f"0000{digits}",
        "user_name": f"user{digits}",
        "host_name": f"host-{digits}",
        "national_id": f"id{digits[:6]}x{digits[6:]}",
    }[kind]
