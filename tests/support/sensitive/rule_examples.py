"""Expands the examples of the secret rules: invented values that are in no file."""

import random
import re
import uuid

ALPHABETS = {
    "A": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "B": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/",
    "L": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "U": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "W": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-",
    "d": "123456789",
    "h": "0123456789abcdef",
    "l": "abcdefghijklmnopqrstuvwxyz",
    "t": "abcdefghijklmnopqrstuvwxyz234567",
    "n": "abcdefghijklmnopqrstuvwxyz0123456789",
}
"""The alphabets of the fields: letters and digits, base64, letters, upper case, URL-safe, …"""

_FIELD = re.compile(r"\{(?:([ABLUWdhlnt])(\d+)|(u)|(p))\}")


def expand(template, seed=0):
    """Returns (text, the secrets that must be found in it): `«` and `»` enclose each of them."""
    drawn = random.Random(f"{seed}/{template}")

    def value(field):
        if field[3]:
            return str(uuid.UUID(int=drawn.getrandbits(128), version=4))
        if field[4]:
            words = ("river", "Falcon", "copper", "Maple", "quartz", "Winter")
            return f"{drawn.choice(words)}{drawn.randint(10, 9999)}{drawn.choice('!#%^*')}"
        alphabet, length = ALPHABETS[field[1]], int(field[2])
        while True:
            made = "".join(drawn.choices(alphabet, k=length))
            needs_digit = field[1] in "ABUWhn" and length >= 10
            if not needs_digit or any(map(str.isdigit, made)):
                return made

    marked = _FIELD.sub(value, template)
    secrets = re.findall("«(.*?)»", marked, re.DOTALL)
    return marked.replace("«", "").replace("»", ""), secrets
