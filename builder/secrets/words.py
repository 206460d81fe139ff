"""The vocabulary of the search for secrets, in all languages: the sets of words in `words.txt`.

A set of names is of words as they are written in code. Of the others, `alternatives` and the
constants below make patterns for texts.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_SPACE = re.compile(r"(?<!\\)_")
_LITERAL = re.compile("[A-Za-z ]{3,}")


@cache
def _sets() -> dict[str, tuple[str, ...]]:
    """Returns {name of a set: its words, in the order of the file}."""
    found: dict[str, list[str]] = {}
    text = (files("builder.secrets") / "words.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            words, _, sets = line.rpartition(" : ")
            for name in sets.split():
                found.setdefault(name, []).extend(words.split())
    return {name: tuple(words) for name, words in found.items()}


def words(name: str) -> tuple[str, ...]:
    """Returns the words of a set. Raises KeyError for an unknown set."""
    return _sets()[name]


def alternatives(name: str) -> str:
    """Returns a pattern that matches any word of a set in a text; `(?:…)` must enclose it."""
    return _SPACE.sub(" ", "|".join(words(name)))


def literals(name: str) -> tuple[str, ...]:
    """Returns the ASCII letters and spaces that words of a set begin with, three or more."""
    begins = map(_LITERAL.match, alternatives(name).split("|"))
    return tuple(begin[0] for begin in begins if begin is not None)


# Ends of names in code and configuration
PASSWORDS = words("password_name")
"""Keywords whose value need not look generated: `db_password`."""
TOKENS = words("token_name")
"""Keywords whose value must look generated: `auth_token`."""
WHOLE_NAMES = words("whole_name")
"""Keywords that other words may end with: they begin a part of a name."""
PASSWORD_OWNERS = "|".join(words("password_owner"))
"""Before `pass` and `pw` they make the name of a password: `remotepass`, `rootpw`."""
KEY_OWNERS = "|".join(words("key_owner"))
"""Before `key` they make the name of a secret: `api_key`."""

# Texts: what a finder looks for, in the order in which they are tried
SENTENCE_PASSWORDS = alternatives("sentence")
"""Before a password in a sentence."""
LOGINS = alternatives("login")
"""Before the name of a user and a password in a sentence."""
SENTENCE_KEYS = alternatives("key")
"""Before a token or a key in backticks, in a sentence."""
PROSE_PASSWORDS = alternatives("prose")
"""English words for passwords, in patterns for sentences."""
PHRASE_PASSWORDS = alternatives("phrase")
"""Before a passphrase with spaces."""
FOREIGN_PASSWORDS = rf"{alternatives('foreign')}|\b(?:{alternatives('foreign_whole')})"
"""Words for passwords in other languages."""
FOREIGN_KEYS = alternatives("foreign_key")
"""Words for keys in other languages."""
FOREIGN_API_KEYS = (
    rf"api[ -](?:{alternatives('key_after_api')})"
    rf"|(?:{alternatives('key_before_api')})(?: de la| de l'| de| da| della| d')? ?api"
)
"""API keys in other languages."""
OTHER_KEYS = alternatives("other_key")
"""Words for keys and tokens that are not in ASCII."""
COMPOUNDS = alternatives("compound")
"""Words that languages write together with others: `Einmalpasswort`."""
AROUND = alternatives("around") + rf"|(?:{alternatives('around_key')})[ _-]?keys?"
"""Words for secrets, for what they open, and for logging in, around a value beyond doubt."""
NEARBY = (
    rf"api[ _-]?keys?|{alternatives('nearby')}|(?:{alternatives('nearby_key')})[ _-]?key"
    rf"|{FOREIGN_API_KEYS}"
)
"""Words for secrets after which a generated value is one."""
FIELDS = alternatives("field")
"""Labels of fields for passwords, in forms."""

# Users and machines, in sentences about logging in
TAKES = alternatives("takes")
"""Verbs of what a machine does with a login: "takes admin / …"."""
MACHINES = alternatives("machine")
"""Devices that people log in to."""
REACHED = alternatives("reached")
"""Other things that people log in to, and how they reach them."""
ACCOUNTS = alternatives("account")
"""Users that many machines have: straight after one `/ …` counts."""
MORE_ACCOUNTS = alternatives("more_account")
"""Users that count after the word for a machine."""

# What is no secret
NO_PASSWORD_AFTER = alternatives("after_password")
"""Between the name of a password and a value, they say that it is another one."""
NO_KEY_AFTER = alternatives("after_key")
"""Between a word for secrets and a generated value, they say that it is another one."""
NO_VALUE_AFTER = alternatives("after_value")
"""Shortly before a value beyond doubt, they say that it is another one."""
OPEN_TOKENS = alternatives("open_token")
"""Before `token`: those of pagination and of language models."""
OPEN_KEYS = alternatives("open_key")
"""Before `key` and other words, in texts."""
OPEN_VARIABLES = alternatives("open_variable").upper()
"""Before `KEY`, in the names of variables."""
DOCUMENTED = frozenset(words("documented"))
"""Placeholders for passwords in documentation."""
NO_PASSWORDS = DOCUMENTED.union(words("no_password"), PASSWORDS)
"""Algorithms, types, states and labels that follow `password` but are not passwords."""
OF_PROGRAMS = frozenset(words("program"))
"""Words of names, labels and messages in programs."""
OF_RESOURCES = frozenset(words("resource"))
"""Other words in the names of resources, algorithms and systems."""
LABEL_PARTS = words("label")
"""Parts of names and of labels, in other languages, too."""
SMALL_WORDS = frozenset(words("small"))
"""Words of sentences, labels and parts of forms, which no passphrase consists of."""
STATEMENTS = frozenset(words("statement"))
"""Words of sentences that say something about passwords."""
JOINS = frozenset(words("join"))
"""Words that continue the sentence after a passphrase."""
