"""What values look like by themselves."""

import pytest

from builder.secrets.grade import Grade, grade


@pytest.mark.parametrize(("value", "expected"), [
    ("k3j9s2pq0zx7", Grade.GENERATED),
    ("u3X(eAj}TZ@9", Grade.DRAWN),
    ("quartzKfWpXbTz", Grade.DRAWN),
    ("Canyon!7river", Grade.CHOSEN),
    ("marble-thunder-badger-walnut", Grade.PHRASE),
    ("CobaltGardenPirate", Grade.PHRASE),
    ("password", Grade.WORD),
    ("short7!", Grade.WORD),
    ("utils-7.py", Grade.CODE),
    ("https://h.example.org", Grade.STAND_IN),
    ("${PASSWORD}", Grade.STAND_IN),
])  # fmt: skip
def test_grades(value, expected):
    assert grade(value) is expected


def test_the_grades_of_secrets():
    secrets = [it for it in Grade if it.is_secret]
    assert secrets == [Grade.GENERATED, Grade.DRAWN, Grade.CHOSEN, Grade.PHRASE]
