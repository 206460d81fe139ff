"""Recognises passwords made of words: `marble-thunder-badger-walnut`, `CobaltGardenPirate`.

Names in programs consist of words, too, but theirs name the things of programs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORDS = re.compile(r"([a-z]{4,9}(?:([-_.])[a-z]{4,9})(?:\2[a-z]{4,9}){2,6})[0-9]{0,4}")
_MARKED = re.compile("[A-Z]?[a-z]{3,9}[0-9]{0,4}(?:[-_.][A-Z]?[a-z]{3,9}[0-9]{0,4}){3,6}")
_HAS_DIGIT = re.compile("[0-9]")
_LETTERS = re.compile("[A-Za-z]+")
_HUMPS = re.compile("(?:[a-z]{4,12}|[A-Z][a-z]{3,11})(?:[A-Z][a-z]{3,11}){1,6}")
_HUMP = re.compile("[A-Z]?[a-z]+")
_RUN_TOGETHER = re.compile(
    "[A-Z][a-z]{15,29}|(?=[A-Za-z]{16,40}$)[A-Za-z][a-z]{4,19}[A-Z][a-z]{4,19}"
)
_SIMPLE = re.compile(
    r"(?:[A-Z]?[a-z]{3,12}(?:[A-Z][a-z]{2,11}|[-_.][a-z]{3,12}){1,4}[-_.]?\d{2,6}"
    r"|[A-Z]?[a-z]{4,12}\d{4,6})(?:[!?.-]|[A-Za-z])?"
)
_NUMBERED = re.compile(
    r"[.!]?(?:[A-Z]?[a-z]{3,12}[-_.!]?){2,6}[-_.]?[0-9]{2,8}(?:[-_.!][0-9]{2,8})?[!?*#$%&+@]?"
)
_LABELS = (
    "auth", "code", "data", "file", "form", "hash", "name", "pass", "role", "text", "user",
    "kennwort", "wachtwoord", "contrase", "senha", "salasan", "adgangskod", "loseno",
)  # fmt: skip
"""Parts of names and of labels, in other languages, too."""
_OF_PROGRAMS = frozenset(
    """
    about abstract accept access account action active actual adapter added address admin after
    agent alert algorithm alias align allow allowed alpha always amount analytics android another
    answer apache append apple apply array asset assets async attach attempt audio audit author
    available avatar await azure back backend backup balance banner base basic batch bearer before
    begin beta between binary block board body bool boolean border both bottom branch browser
    bucket buffer build builder bundle button bytes cache calendar call callback cancel canvas
    card case catalog category cert certs chain change changed changeme channel character chat
    check checkbox child choose chunk claim class clean clear click client clients clock clone
    close cloud cluster code codec collect color column command comment commit common company
    compare complete component compose compute config configs configure confirm connect console
    const consumer contact container content context control convert cookie cookies copy core
    correct count country create created creation creds cross currency current cursor custom
    customer dashboard data database dataset date debug decode decrypt default defaults define
    delay delete deleted demo deploy deprecated derived design desktop detail details detect device
    dialog digest digit digits direct directory disable disabled disk display docker docs document
    does domain done double down download draft driver drop dummy dynamic each edit editor effect
    element email emails embed empty enable enabled encode encoded encrypt encrypted endpoint
    engine enter entity entries entry enum environ equal error errors escape event events exact
    example except exchange execute exist exists expect expected expire expired expires expiry
    explicit export express extend extension external extra extract factory fail failed failure
    fake fallback false feature features fetch field fields file filename files fill filter final
    find finish first flag flags float flow focus folder follow font footer force forgot form
    format forms forward found frame framework from front frontend full function gateway gcloud
    general generate generated generic github gitlab give global gmail good google grant graph
    group groups guest guide handle handler handshake hash hashed have head header headers health
    hello help helper here hidden hide hint history home hook host hostname html http https icon
    icons identity ignore image images import improve include incorrect index info init initial
    inline inner input insecure insert install instance instead integer internal into invalid
    invite issuer item items java join json just keep keyring keys keystore kind kube label labels
    lambda language large last launch layer layout ldap leaf least leave left length less letter
    letters level library license light like limit line link links linux list listen live load
    loader loading local locale localhost location lock locked logger login logo logout long
    longer look loop lower lowercase machine mail main make manage manager manual many mark
    markdown mask master match matches maximum media member members memory menu merge message
    messages meta metadata method metric metrics middle migrate minimum missing mixed mobile modal
    mode model models module modules monitor month more most mount move multi multiple must name
    names native need nested network never next node nodes none normal note notes notify null
    number numbers oauth object objects offline offset once online only open openid operator
    option optional options oracle order orders origin other outer output over override owner
    package packages page pages panel param params parent parse parser part partial pass passkey
    passwd password passwords paste patch path paths pattern payload payment pending perform
    period person phase phone phrase pipeline place plain platform play player please plugin
    plugins point policy pool popup port portal position post postgres prefix present preset
    preview previous primary print private process prod product products profile profiles program
    progress project projects promise prompt property protected protocol provide provider proxy
    public publish pull purchase push python query queue quick random range rate ready real reason
    receive record records recover recovery redirect redis reduce reference refresh region
    register registry release reload remember remote remove removed rename render repeat replace
    reply report reports request requests require required requires reset resolve resource
    resources response rest restart restore result results retry return review right role roles
    rollback root rotate route router routes rows rule rules runner runtime safe salt same sample
    save saved scale scan schedule schema scope scopes score screen script scripts scroll search
    second secondary secret secrets section secure security select selected self send sender sent
    sequence serial server servers service services session sessions setting settings setup share
    shared sheet shell short should show side sidebar sign signal signed signin signing signup
    simple since single site size slack slash slot small some something sort source space special
    specific split stack stage staging standard start started state static status step steps stop
    storage store stream strength string strings strip strong struct style styles subject submit
    success suffix summary super supplied support supported switch symbol sync syntax system table
    tables take target task tasks team template templates temporary tenant term terms test testing
    tests text texts than that their them theme then there these they this those thread throw time
    timeout times title titles todo toggle token tokens tool tools tooltip topic total touch trace
    track traffic transfer transform transport tree trigger true trust turn type types under
    unique unit unix unknown unlock until update updated updates upgrade upload upper uppercase
    upstream usage used user userinfo username users using util utils valid validate validator
    value values variable variables vault vendor verify version very video view viewer views
    virtual visible volume wait wallet warn warning watch webhook webhooks website week weight
    welcome were what when where which while widget width will window windows with within without
    word words work worker workflow workspace world would wrap wrapper write writer written wrong
    year your yours zone
    """.split()  # noqa: SIM905 - a thousand quoted words are hard to read
)
"""Words of names, labels and messages in programs."""
_RESOURCES = frozenset(
    """
    aes api app argon ascii bcrypt blake cbc cert chacha covid crc cred creds ctr debian dev dsa env
    fedora gcm hmac iam ipv iso java jwt key latin prod python rfc ripemd rsa scram sha sso stag svc
    tls ubuntu utf web windows
    """.split()  # noqa: SIM905 - as above
)
"""Other words in the names of resources, algorithms and systems."""
_PARTS = (*_LABELS, *sorted(word for word in _OF_PROGRAMS if len(word) > 4))


def is_diceware(value: str) -> bool:
    """Returns whether it is four words or more of which hardly one is a word of programs.

    A number may follow. One in four may be: lists of words for passphrases contain such words, too.
    But between dots the last one names the thing of a program.
    """
    match = _WORDS.fullmatch(value[:100])
    if match is None or len(value) > 100:
        return False
    words = re.split("[-_.]", match[1])
    is_path = "." in value and words[-1] in _OF_PROGRAMS
    is_repeated = len(set(words)) < len(words) - 1
    return not is_repeated and share_of_programs(words) <= 0.25 and not is_path


def is_marked_phrase(value: str) -> bool:
    """Returns whether it is four words or more, some with a number: `bicycle27.Island.bramble.elm`.

    Hardly one of the words is one of programs.
    """
    if len(value) > 100 or _MARKED.fullmatch(value) is None or not _HAS_DIGIT.search(value):
        return False
    return share_of_programs([word.lower() for word in _LETTERS.findall(value)]) <= 0.25


def share_of_programs(words: Sequence[str]) -> float:
    """Returns which part of some words in lower case are words of programs, from 0 to 1."""
    return sum(word in _OF_PROGRAMS for word in words) / len(words)


def is_camel_phrase(value: str, least: int = 3) -> bool:
    """Returns whether it is `least` words or more like `CobaltGardenPirate`, none of programs."""
    if len(value) > 64 or _HUMPS.fullmatch(value) is None:
        return False
    words = [word.lower() for word in _HUMP.findall(value)]
    return len(set(words)) == len(words) >= least and _OF_PROGRAMS.isdisjoint(words)


def is_simple(value: str, least: int = 1) -> bool:
    """Returns whether it is `least` words or more and a number: `plutoWillow291`, `river4471`.

    None of the words is one of programs, except `secret` after two others.
    """
    if len(value) > 64 or _SIMPLE.fullmatch(value) is None:
        return False
    words = [word.lower() for word in _HUMP.findall(value)]
    if len(words) > 2 and words[-1] == "secret":
        words.pop()
    is_foreign_to_programs = _OF_PROGRAMS.isdisjoint(words) and _RESOURCES.isdisjoint(words)
    return len(words) >= least and is_foreign_to_programs


def is_numbered_phrase(value: str) -> bool:
    """Returns whether it is words and a number with signs between them: `PebbleOnyx51_2694`.

    Two words suffice if one is capitalised; in lower case it takes four, and names of programs have
    underscores. None of the words is one of programs.
    """
    is_lower = value == value.lower()
    if len(value) > 64 or _NUMBERED.fullmatch(value) is None:
        return False
    if is_lower and "_" in value:
        return is_diceware(value)
    words = [word.lower() for word in _HUMP.findall(value)]
    is_foreign_to_programs = _OF_PROGRAMS.isdisjoint(words) and _RESOURCES.isdisjoint(words)
    return is_foreign_to_programs and len(words) >= (4 if is_lower else 2)


def is_run_together(value: str) -> bool:
    """Returns whether it is long words written as one or two, like `autumnwizardSaffron`."""
    return len(value) <= 40 and _RUN_TOGETHER.fullmatch(value) is not None and is_foreign(value)


def is_foreign(value: str) -> bool:
    """Returns whether none of the longer words of programs is within the value."""
    lower = value.lower()
    return not any(part in lower for part in _PARTS)
