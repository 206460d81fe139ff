"""Recognises values that their own form shows to be no secret, whatever the text around them says.

Versions of packages (a module may be named `secrets`), public keys, recipients of encryption, keys
for web pages that a payment provider calls publishable, names of entries in a cache, of files
and of builds, ids of resources, and labels.
"""

from __future__ import annotations

import re

_VERSION = (
    r"[~^v]{0,2}\d{1,5}(?:\.\d{1,8}){2}"
    r"(?:[-.+][\w.-]{0,40}?\d{14}-[0-9a-f]{12}"
    r"|[-+~.][\w.-]{0,20}?(?:alpha|beta|canary|dev|git|nightly|next|pre|preview|rc|snapshot)[\w.+~-]{0,80})"
    r"(?:\+incompatible)?(?:/go\.mod)?"
)
"""A version of Go without a tag (`v0.0.0-20250104172304-0fb2b95fc620`), or one before a release."""
_RECIPIENT = r"age1[02-9ac-hj-np-z]{58,120}|age1(?:yubikey|tpm|se|pq|tag)1[02-9ac-hj-np-z]{50,3000}"
"""A public key of age, also of its plugins."""
_PUBLIC_KEY = (
    r"AAAA(?:B3NzaC1yc2E|C3NzaC1lZDI1NTE5|E2VjZHNhLXNoYTI|GnNrLXNzaC1lZDI1NTE5|InNrLWVjZHNhLXNoYTI)"
    r"[A-Za-z0-9+/]{20,4000}={0,2}"
    r"|npub1[02-9ac-hj-np-z]{58}"
)
"""A public key of SSH, or of Nostr."""
_PUBLISHABLE = r"pk_(?:live|test)_[A-Za-z0-9]{20,120}|sb_publishable_[\w-]{20,60}"
_CACHE_ENTRY = (
    r"[a-z]{2,20}(?:[_-][a-z]{2,20}){0,3}"
    r"(?::(?:[a-z]{2,20}(?:[_-][a-z]{2,20}){0,3}|\d{1,9}|\{\w{1,20}\})){2,6}"
)
"""Words and numbers with colons, such as `token:media:user:41297:lock` without its first word."""
_LABEL = "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
"""Text in a script of East Asia, as in the label of a field: passwords are in ASCII there, too."""
_RESOURCE = (
    "(?:i|vol|snap|ami|subnet|sg|vpc|eni|rtb|igw|nat|eipalloc|acl|lt|fs|vpce|tgw)-[0-9a-f]{8,17}"
    r"|[\w-]{1,40}\.[0-9a-f]{8,32}\.(?:m?js|css|map)(?::\d{1,7}){0,2}"
    r"|build-\d{1,12}-[0-9a-f]{7,40}"
)
"""The id of a resource of AWS, the name of a file of a web page, and that of a build."""
_OPEN = re.compile(
    "|".join((_RESOURCE, _VERSION, _RECIPIENT, _PUBLIC_KEY, _PUBLISHABLE, _CACHE_ENTRY, _LABEL))
)
"""Any of the forms above: `vpc-0a1b2c3d`."""


def is_open(value: str) -> bool:
    """Returns whether the value is one of these."""
    return _OPEN.fullmatch(value) is not None
