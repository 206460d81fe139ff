"""National phone and identity numbers, from the documentation of the libraries."""

import pytest

from builder.scrub.people import TABLES
from builder.scrub.personal import PHONE_REGIONS, find_personal, pseudonym

IDENTITIES = {
    "br.cpf": "CPF: 390.533.447-05",
    "cn.ric": "ID card 360426199101010071",
    "de.idnr": "Steuer-ID: 36 574 261 809",
    "dk.cpr": "CPR-nr. 211062-5629",
    "es.dni": "DNI 54362315K",
    "es.nie": "NIE: X-2482300W",
    "fi.hetu": "hetu: 131052-308T",
    "fr.nir": "NIR: 2 95 10 99 126 111 93",
    "gb.nhs": "NHS number: 943-476-5870",
    "in_.aadhaar": "Aadhaar no. 2341 2341 2346",
    "it.codicefiscale": "codice fiscale: RCCMNL83S18D969H",
    "kr.rrn": "RRN 971013-9019902",
    "nl.bsn": "BSN: 111222333",
    "no.fodselsnummer": "fnr: 151086 95088",
    "pl.pesel": "PESEL 44051401359",
    "se.personnummer": "personnummer: 880320-0016",
    "tr.tckimlik": "TCKN: 17291716060",
    "us.ssn": "SSN: 536-90-4399",
}
PHONES = {
    "DE": "Tel.: 030 12345678",
    "FR": "tel: 01 23 45 67 89",
    "GB": "Phone: 020 7946 0958",
    "IT": "telefono: 02 12345678",
    "ES": "movil: 612 34 56 78",
    "NL": "telefoon: 020 123 4567",
    "PL": "telefon: 512 345 678",
    "SE": "Mobile: 070-123 45 67",
    "CH": "Tel. 044 668 18 00",
    "AT": "Handy: 0664 1234567",
    "US": "phone: 2015550123",
    "BR": "celular: (11) 96123-4567",
    "IN": "mobile no. 081234 56789",
    "JP": "tel 090-1234-5678",
}
NEITHER = (
    "PESEL 44051401358",
    "CPF: 390.533.447-06",
    "SSN: 000-12-3456",
    "ssn = None, bsn: 123456789",
    "the order 44051401359 and 360426199101010071",
    "cell 12 of 34; phone_id=1234567890123456789; mobile: 2024-01-31",
    "nie 2024-11-05 12:30:45",
    "id number: 12345",
)


def found(text):
    return [(hit.kind, text[hit.start : hit.end]) for hit in find_personal(text)]


def test_every_form_has_a_case():
    assert set(IDENTITIES) == set(TABLES["identity"])
    assert set(PHONES) == set(PHONE_REGIONS)


@pytest.mark.parametrize("module", IDENTITIES)
def test_identity_numbers(module):
    text = IDENTITIES[module]
    ((kind, number),) = found(f"his {text}, he said")
    assert kind == "national_id"
    assert text.endswith(number)
    assert found(text.replace(number, pseudonym(kind, number, "123456789012"))) == []


@pytest.mark.parametrize("region", PHONES)
def test_national_phones(region):
    text = PHONES[region]
    ((kind, number),) = found(f"{text}\n")
    assert kind == "phone"
    assert text.endswith(number)
    assert found(text.replace(number, pseudonym(kind, number, "123456789012"))) == []


@pytest.mark.parametrize("text", NEITHER)
def test_numbers_that_are_neither(text):
    assert found(text) == []
