"""Finds national personal data: identity numbers and phone numbers without a country code.

Candidates follow a word that names them ("PESEL: …", "Tel. …"), since logs are full of numbers.
python-stdnum validates identity numbers (check digits, dates), phonenumbers phone numbers. Both are
imported at the first candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

from builder.secrets.hits import Hit
from builder.secrets.prefilter import necessary

IDENTITY_NUMBERS = (
    # (module of stdnum, words before it, form)
    ("br.cpf", "cpf", r"\d{3}[.]?\d{3}[.]?\d{3}-?\d{2}"),
    ("cn.ric", "id card|identity card|resident id|id number|sfz", r"\d{17}[\dXx]"),
    ("de.idnr", "steuer-id|steuer-idnr|identifikationsnummer", r"\d{2} ?\d{3} ?\d{3} ?\d{3}"),
    ("dk.cpr", "cpr", r"\d{6}-?\d{4}"),
    ("es.dni", "dni|nif", r"\d{8}-?[A-Za-z]"),
    ("es.nie", "nie", r"[XYZxyz]-?\d{7}-?[A-Za-z]"),
    ("fi.hetu", "hetu|henkil.tunnus|personal identity code", r"\d{6}[-+A]\d{3}[0-9A-Za-z]"),
    ("fr.nir", "nir|insee|num.ro de s.curit. sociale", r"[12](?: ?\d{2}){3}(?: ?\d{3}){2} ?\d{2}"),
    ("gb.nhs", "nhs", r"\d{3}[ -]?\d{3}[ -]?\d{4}"),
    ("in_.aadhaar", "aadhaar|aadhar", r"\d{4}[ -]?\d{4}[ -]?\d{4}"),
    ("it.codicefiscale", r"codice fiscale|cod\. fisc\.", r"[A-Za-z]{6}\w{9}[A-Za-z]"),
    ("kr.rrn", "rrn|resident registration", r"\d{6}-?\d{7}"),
    ("nl.bsn", "bsn|burgerservicenummer", r"\d{9}"),
    ("no.fodselsnummer", "f.dselsnummer|fnr", r"\d{6} ?\d{5}"),
    ("pl.pesel", "pesel", r"\d{11}"),
    ("se.personnummer", "personnummer", r"(?:\d{2})?\d{6}[-+]?\d{4}"),
    ("tr.tckimlik", "tckn|tc kimlik|kimlik", r"\d{11}"),
    ("us.ssn", "ssn|social security", r"\d{3}-?\d{2}-?\d{4}"),
)  # fmt: skip
PHONE_REGIONS = ("DE", "FR", "GB", "IT", "ES", "NL", "PL", "SE", "CH", "AT", "US", "BR", "IN", "JP")
"""Regions whose national phone numbers are recognised, by their ISO 3166 codes."""

_GAP = r"[^\n0-9A-Za-z+]{0,4}(?:(?:n[or]|num[a-z]{1,5}|is|code)\b[^\n0-9A-Za-z+]{0,4}){0,2}"
"""The text between the word and the number."""
_IDENTITY = tuple(
    (module, re.compile(rf"\b(?:{words}){_GAP}(?P<id>{form})(?![\w-])", re.IGNORECASE | re.ASCII))
    for module, words, form in IDENTITY_NUMBERS
)
_WORDS = "|".join(words for _, words, _ in IDENTITY_NUMBERS)
_IDENTITY_WORD = re.compile(rf"\b(?={_WORDS})", re.IGNORECASE | re.ASCII)
IDENTITY_CONDITION = r"(?:\A|[^0-9A-Za-z_])" + necessary(
    rf"(?:(?:{_WORDS}){_GAP}[XYZ]?-?\d[ \d]|codice fiscale|cod\. fisc\.)", ignore_case=True
)

_PHONE_WORDS = (
    "tel|phone|mobile|mob|cell|fax|handy|telefon|telefono|telefone|whatsapp|movil|celular|portable"
)
_PHONE = re.compile(
    rf"\b(?:{_PHONE_WORDS})[a-z]{{0,10}}{_GAP}(?P<number>\(?\d[\d /().-]{{6,17}}\d)(?![\w-])",
    re.IGNORECASE | re.ASCII,
)
PHONE_CONDITION = r"(?:\A|[^0-9A-Za-z_])" + necessary(_PHONE.pattern, ignore_case=True)

_DATE = re.compile(r"(?:19|20)\d\d[-/.]\d\d[-/.]\d\d")


def find_identity_numbers(text: str, start: int, end: int) -> Iterator[Hit]:
    """Yields identity numbers after their names if their check digits are valid."""
    for word in _IDENTITY_WORD.finditer(text, start, end):
        for module, pattern in _IDENTITY:
            match = pattern.match(text, word.start(), end)
            if match and import_module(f"stdnum.{module}").is_valid(match["id"]):
                yield Hit(*match.span("id"), "national_id")


def find_national_phones(text: str, start: int, end: int) -> Iterator[Hit]:
    """Yields numbers after a word for phones that are valid in one of `PHONE_REGIONS`."""
    for match in _PHONE.finditer(text, start, end):
        number = match["number"]
        digits = sum(map(str.isdigit, number))
        if 8 <= digits <= 13 and not _DATE.match(number) and _is_phone(number):
            yield Hit(*match.span("number"), "phone")


def _is_phone(number: str) -> bool:
    import phonenumbers  # noqa: PLC0415 - 0.3 s, only at the first candidate

    for region in PHONE_REGIONS:
        try:
            parsed = phonenumbers.parse(number, region)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(parsed):
            return True
    return False
