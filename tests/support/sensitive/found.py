"""Asks for the secrets in a text, as the tests compare them."""

from builder.secrets.secrets import find_secrets


def found(text):
    """Returns the secrets in a text, in order."""
    return [text[hit.start : hit.end] for hit in find_secrets(text)]


def check_lines(find, prefilter, text):
    """Checks that the prefilter of a search excludes no line in which that finds something.

    Otherwise the hits would depend on whether RE2 is installed.
    """
    assert set(find(text, prefilter(text))) == set(find(text, [(0, len(text))])), text
