"""Finds secrets that only a command shows: in the result of `vault kv get`, in a file of passwords.

The text alone may be one line of letters and digits. A call that prints a secret, or that reads or
writes a file known to contain secrets, marks the values in its result, or in what it writes. So
does a command after the prompt of a shell in a pasted session.
"""

# ruff: noqa: E501 - patterns
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from builder.secrets.hits import Hit
from builder.secrets.passphrases import is_diceware, is_joined, is_phrase
from builder.secrets.prefilter import LinePrefilter, Lines, necessary
from builder.secrets.secret_rule import CHOSEN
from builder.secrets.values import is_chosen, is_stand_in, looks_random
from builder.secrets.words import DOCUMENTED

MAX_CALL = 8000
"""Code points of a call's argument that are examined as a command."""
MAX_LINES = 200
"""Lines of a result that are examined."""
MAX_LINE = 8000
"""Code points of a line; longer lines are not examined."""

_PRINTS = "|".join((
    r"az [a-z -]{2,60}(?:keys? list|list-keys|key show|secret show|credential (?:show|list|reset))",
    r"az (?:ad sp create-for-rbac|account get-access-token|acr login --expose-token)",
    r"az [a-z -]{2,40}(?:show-connection-string|authkey list|admin-key show|query-key list)",
    r"gcloud (?:[a-z]{2,8} )?secrets versions access|gcloud auth (?:[a-z-]{2,20} )?print-",
    r"gcloud (?:services|alpha services|beta services) api-keys get-key-string",
    r"gsutil hmac create|gcloud storage hmac create",
    r"aws [^\n|;&]{0,80}(?:get-secret-value|get-random-password|create-access-key|get-session-token|assume-role|get-login-password)",
    r"aws [^\n|;&]{0,80}(?:with-decryption|create-service-specific-credential|get-api-key|generate-db-auth-token|kms decrypt)",
    r"aws configure get [\w.-]{0,40}(?:secret|token)",
    r"vault (?:kv get|read|token create|write -f|print token)|(?:consul|bao) kv get|bao read",
    r"op (?:read|item get)|\bpass (?:show |-c |[\w.-]{1,40}/)|gopass show|lpass show|bw get|rbw get",
    r"keepassxc-cli show|secret-tool lookup|security find-(?:generic|internet)-password|dcli (?:p|note)",
    r"(?:kubectl|oc|k3s|microk8s|k) (?:[^\n|;&]{0,60} )?get secrets?\b[^\n|;&]{0,120} (?:-o|--output|--template)|kubectl create token|oc whoami -t",
    r"kubeadm token create|docker swarm join-token|docker-credential-[\w-]{1,30} get|git credential fill",
    r"gh auth token|glab auth token|heroku auth:token|heroku config:get \w{0,40}(?:pass|secret|token|key)|fly(?:ctl)? (?:auth token|tokens create)",
    r"doppler secrets get|infisical secrets get|chamber read|sops (?:-d|--decrypt|exec|decrypt)|berglas access",
    r"ansible-vault (?:view|decrypt)|credstash get|conjur variable get|akeyless get-secret",
    r"(?:terraform|tofu|pulumi) (?:output|state show|config get|stack output)[^\n|;&]{0,60}(?:passw|secret|token|api_?key|_key)",
    r"(?:npm|yarn|pnpm|git|composer|poetry) config (?:get|--get) [\w./:@-]{0,60}(?:token|passw|auth|secret)",
    r"rails secret|rake secret|phx\.gen\.secret|key:generate --show|get_random_secret_key|wg gen(?:key|psk)",
    r"token_(?:hex|urlsafe)\(|openssl rand -(?:base64|hex)|\bpwgen\b|\bmkpasswd\b|\bapg\b|makepasswd",
    r"config get (?:requirepass|masterauth)|snap get [\w.-]{1,40} [\w.-]{0,40}(?:secret|token|passw)",
    r"(?:printenv|echo) [\"']?\$?\{?[A-Z0-9_]{0,40}(?:TOKEN|SECRET|PASSWORD|PASSWD|API_KEY|_KEY)\b",
    r"(?:jq|yq) [^\n|]{0,60}\.[\w.\[\]\"-]{0,80}(?:password|passwd|token|secret|api_?key)\b",
    r"print\((?:[\w.]{1,40}\.)?[\w]{0,30}(?:SECRET_KEY|PASSWORD|API_KEY|TOKEN)\)",
    r"supabase projects api-keys|stripe config --list|turso db tokens create",
    r"tailscale (?:authkeys|keys)|headscale preauthkeys create|mc admin user svcacct add",
    r"initialadminpassword|initial_root_password|argocd admin initial-password",
))  # fmt: skip
"""Commands that print a secret."""
_FILE = (
    r"(?:userlist\.txt|auth-user-pass[\w.-]{0,20}|auth\.(?:txt|conf|pass)|(?:chap|pap|ipsec)[.-]secrets"
    r"|davfs2/secrets|\.?smbcred\w{0,10}|\.?credentials(?:\.txt)?|\.?ht(?:passwd|digest)[\w.-]{0,20}"
    r"|\.pgpass|pgpass\.conf|[._]netrc|\.authinfo|\.git-credentials|\.my\.cnf|sasl_passwd|passwd\.client"
    r"|\.?vault[_-]?pass\w{0,10}(?:\.txt)?|master\.key|initialAdminPassword|initial_root_password"
    r"|\.erlang\.cookie|node-token|rndc\.key|(?:run|etc|docker|mnt|vault)/secrets/[\w./-]{1,80}"
    r"|(?:\.secrets?|secrets?)/[\w-]{1,60}(?:\.txt|\.key|\.pass)?"
    r"|[\w.-]{0,40}(?:(?<!etc/)(?<!pam\.d/)passwd|password|passphrase|secret|token|api[_-]?key|psk|passcode)s?"
    r"(?:\.txt|\.key|\.conf|\.asc|\.lst|\.pass|\.dat)?)"
)
"""The end of the path of a file that contains secrets."""
_READS = (
    r"(?:\bcat|\bhead|\btail|\bless|\bmore|\btype|\bbat|\bnl|\bstrings|\bbase64|get-content|\bgc|\bxxd|<)"
    r"(?:[ \t]-{1,2}[\w=-]{1,20}){0,3}[ \t]{1,2}(?:-n \d{1,4} )?[\"']?"
)
_PATH_OF = r"(?:[~\w.:@${}-]{0,60}[/\\]){0,16}"
_ASKS = re.compile(
    rf"(?:{_PRINTS})|(?P<file>{_READS}{_PATH_OF}{_FILE}(?=[\s\"';|&)<>]|$))",
    re.IGNORECASE,
)
"""A command that prints a secret, or reads a file of secrets: `vault kv get secret/db`."""
_ASKING = necessary(_ASKS.pattern, ignore_case=True)
_MAY_ASK = LinePrefilter(_ASKING)
_PATH = re.compile(rf"(?:{_PATH_OF}){_FILE}", re.IGNORECASE)
"""The path of a file of secrets: `/run/secrets/db_password`."""
_IS_PATH = re.compile(r"[/\\]|^\.\w|\.(?:txt|key|conf|cnf|asc|lst|pass|dat)$")
"""What a path has, and a word has not: `conf/.pgpass`."""
_WRITES = re.compile(
    rf"(?:>{{1,2}}[ \t]?|\btee(?:[ \t]-\w)?[ \t]|(?:Add|Update) File:[ ]|(?<=\n)\+\+\+ b/)[\"']?"
    rf"{_PATH_OF}{_FILE}[\"']?(?=[\s;|&<>)]|$)[^\n]{{0,80}}\n(?P<body>(?:(?!\*\*\* )[^\n]{{0,400}}(?:\n|$)){{1,60}})",
    re.IGNORECASE,
)
r"""A command that writes a file of secrets, and the lines after it: `cat > .pgpass <<E\nx\n`."""
_WRITING = necessary(_WRITES.pattern.partition("(?P<body>")[0], ignore_case=True)
_MAY_WRITE = LinePrefilter(_WRITING)
_PROMPT = (
    r"[ \t]{0,8}(?:\([\w.-]{1,30}\) )?(?:[$%\u276f\u279c]|(?:[\w.-]{1,32}@[\w.-]{1,60}[: ][^\s$#%>]{0,60} ?"
    r"|\[[\w.-]{1,32}@[^\]\n]{1,60}\]|bash-[\d.]{1,6}|~[^\s$#%>]{0,60})[$#%]|PS [^\n>]{1,80}>|[A-Z]:\\[^\n>]{0,80}>"
    r"|\+{1,3}(?= [a-z]))[ ]"
)
r"""What a shell prints before a command: `$ `, `me@host:~# `, `PS C:\> `, and `+ ` of `set -x`."""
_SESSION = re.compile(rf"^(?:{_PROMPT})(?P<command>[^\n]{{2,2000}}\n)", re.MULTILINE)
r"""A prompt and the command after it: `me@host:~$ gh auth token\n`."""
_RESULT = re.compile(rf"(?:(?!{_PROMPT})[^\n]*\S[^\n]*(?:\n|$)){{1,20}}")
r"""The lines after a command, up to an empty one or the next prompt: `k3J9sPq0\n`."""
LINES = LinePrefilter(rf"[$%>#+?] [^\n]*(?:{_ASKING}|{_WRITING})")
_NUMBER = re.compile(r"[ \t]{0,12}(?:\d{1,6}[ \t]?[\t\u2192]|\+(?=\S))?[ \t]{0,40}")
r"""The number of a line in a viewer, or the sign of a diff: `  12\t`."""
_OUTPUT = re.compile(r"(?:^|\n)(?:Output|stdout|STDOUT):[ \t]{0,2}\n?")
r"""What a tool prints before a result: `stdout:\n`."""
_MEMBER = re.compile(
    r"\\{0,3}\"(?:value|values?\[\]|(?:\w{1,30})?(?:key\d?|password|passwd|token|secret|secretstring|plaintext"
    r"|credential)|data|result|output|stdout|content|text|keyvalue|connection_?string|note)\\{0,3}\"[ \t]{0,4}:"
    r"[ \t]{0,4}\\{0,3}\"(?P<v>[^\"\\\s]{6,4000})(?:\\{1,3}n)?\\{0,3}\"",
    re.IGNORECASE,
)
"""A member of a JSON result that holds a secret: `"plaintext": "k3J9sPq0"`."""
_PAIR = re.compile(
    r"[\w .\[\]/-]{0,40}(?:passw|secret|token|key|value|pass|credential|pin|psk)[\w .\]-]{0,20}?"
    r"(?:[ \t]{0,8}[:=]|[ \t]{2,40}|\t)[ \t]{0,40}[\"']?(?P<v>[^\s\"',]{6,4000})[\"',]{0,2}[ \t]{0,8}",
    re.IGNORECASE,
)
"""A name and a value on a line of a result: `Secret key: k3J9sPq0`."""
_FIELD = re.compile(r"[^\s\"'`]{6,400}")
_CHOSEN = re.compile(CHOSEN, re.IGNORECASE)
"""A password as people choose them, anywhere: `Canyon!7river`."""
_NO_VALUE = re.compile(
    r"[a-z]{2,10}://|[a-z]:\\|\d{4}-\d\d-\d\d|\d{1,3}(?:\.\d{1,3}){3}|[\w.-]+@[\w-]+\.[\w.]+$"
    r"|-{2,}|[\w.-]+\.(?:com|org|net|io|dev|local|internal|json|ya?ml|py|js|ts|md|sh|conf|go|rs)(?:[:/]|$)",
    re.IGNORECASE,
)
"""The beginning of an address, a date, a path or a file: `2024-05-01`."""


def find_in_call(texts: Sequence[str], answer: str) -> Iterator[tuple[str, Hit]]:
    """Yields (text, secret in it) if the call shows what a text contains.

    `texts` are those in the arguments of the call, `answer` is its result, "" without one.
    """
    is_file = any(map(_is_secret_file, texts))
    asked = _asked(texts) if answer and not is_file else None
    if answer and (is_file or asked is not None):
        reads = is_file or (asked is not None and asked["file"] is not None)
        yield from ((answer, hit) for hit in _values(answer, 0, len(answer), is_file=reads))
    for text in texts:
        if is_file and "\n" in text:
            yield from ((text, hit) for hit in _values(text, 0, len(text), is_file=True))
        elif "\n" in text and _MAY_WRITE.holds(text):
            for written in _WRITES.finditer(text[: 4 * MAX_CALL]):
                found = _values(text, *written.span("body"), is_file=True)
                yield from ((text, hit) for hit in found)


def find_in_sessions(text: str, lines: Lines) -> Iterator[Hit]:
    """Yields the secrets that commands in a pasted session print or write, in lines of `LINES`."""
    for start, end in lines:
        for session in _SESSION.finditer(text, start, end + 1):
            command = session["command"]
            is_file = "<<" in command and _WRITES.search(command) is not None
            asked = None if is_file else _ASKS.search(command)
            if not is_file and asked is None:
                continue
            result = _RESULT.match(text, session.end())
            if result is not None:
                reads = is_file or (asked is not None and asked["file"] is not None)
                found = _values(text, *result.span(), is_file=reads)
                yield from (hit for hit in found if not _is_message(text[hit.start : hit.end]))


def _is_message(value: str) -> bool:
    """Returns whether it is a plain word: what follows a prompt need not be a result."""
    return value.isalpha() and (value == value.lower() or value.istitle())


def _is_secret_file(text: str) -> bool:
    """Returns whether an argument is the path of a file that contains secrets."""
    return (
        len(text) <= 400
        and _IS_PATH.search(text) is not None
        and _PATH.fullmatch(text.strip()) is not None
    )


def _asked(texts: Sequence[str]) -> re.Match[str] | None:
    """Returns the command that prints a secret in the arguments of a call, None without one."""
    command = " ".join(text for text in texts if len(text) <= MAX_CALL)[:MAX_CALL]
    return _ASKS.search(command) if _MAY_ASK.holds(command) else None


def _values(text: str, start: int, end: int, *, is_file: bool) -> Iterator[Hit]:
    """Yields the values in the lines of [start, end) that are secrets.

    In a line of several fields without a name, only those of a file of secrets count: a command
    also prints ids.
    """
    output = _OUTPUT.search(text, start, min(end, start + 400))
    at = output.end() if output is not None else start
    lines = list(_lines(text, at, end))
    is_alone = sum(begin < stop for begin, stop in lines) == 1
    for begin, stop in lines:
        if begin == stop or text[begin] in "#;":
            continue
        if is_alone and " " not in text[begin:stop] and _is_word(text[begin:stop]):
            yield Hit(begin, stop, "secret", certain=False)
            continue
        for member in _MEMBER.finditer(text, begin, stop):
            if _is_value(member["v"]):
                yield Hit(*member.span("v"), "secret", certain=False)
        pair = _PAIR.fullmatch(text, begin, stop)
        if pair is not None and _is_value(pair["v"]):
            yield Hit(*pair.span("v"), "secret", certain=False)
        elif not is_file and " " in text[begin:stop]:
            continue
        elif text[begin] not in "{[" and '": ' not in text[begin:stop]:
            yield from _fields(text, begin, stop)


def _lines(text: str, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields [start, end) of the lines, without numbers and the space around them."""
    for _ in range(MAX_LINES):
        if at >= end:
            return
        stop = text.find("\n", at, end)
        stop = end if stop < 0 else stop
        number = _NUMBER.match(text, at, stop)
        begin = number.end() if number is not None else at
        last = begin + len(text[begin:stop].rstrip()) if stop - begin <= MAX_LINE else begin
        yield begin, last
        at = stop + 1


def _fields(text: str, begin: int, stop: int) -> Iterator[Hit]:
    """Yields the fields of a line, between spaces, quotes and colons, that are secrets."""
    if stop - begin > 600 or len(text[begin:stop].split()) > 6:
        return  # a sentence
    for field in _FIELD.finditer(text, begin, stop):
        last = field[0].rpartition(":")[2]
        if field[0].count(":") == 4 and _is_value(last):  # a line of .pgpass
            yield Hit(field.end() - len(last), field.end(), "secret", certain=False)
            continue
        if _NO_VALUE.match(field[0]):
            continue
        at, value = field.start(), field[0]
        for sign in ":=,":
            name, found, rest = value.partition(sign)
            if found and rest.strip("="):
                at, value = at + len(name) + 1, rest
        if _is_value(value):
            yield Hit(at, at + len(value), "secret", certain=False)
        elif len(value) < 6 and _is_value(field[0]):
            yield Hit(*field.span(), "secret", certain=False)  # `Maple92=x`


def _is_value(value: str) -> bool:
    """Returns whether the value is generated, or chosen as passwords are."""
    if len(value) < 6 or is_stand_in(value):
        return False
    if value.startswith(("/", "-")) or _NO_VALUE.match(value):
        return value.startswith("/") and looks_random(value)  # base64 may begin like a path
    return (
        looks_random(value)
        or is_chosen(value)
        or is_phrase(value)
        or is_joined(value)
        or is_diceware(value)
        or (len(value) <= 64 and _CHOSEN.fullmatch(value) is not None)
    )


def _is_word(value: str) -> bool:
    """Returns whether a value that is the whole result is a secret: even a word may be one."""
    if _is_value(value):
        return True
    is_word = 8 <= len(value) <= 64 and value.isascii() and value.isalnum() and not value.isdigit()
    return is_word and value.lower() not in DOCUMENTED and not is_stand_in(value)
