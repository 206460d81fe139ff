r"""Rules for secrets in sentences, and for commands that print or pass one without naming it.

As in `builder.secrets.context_rules`: the value is the group `v`, case is ignored, and each pattern
starts with one of the literals of its prefilter unless `lead` says otherwise.
"""

# ruff: noqa: E501 - a table: one rule on a line
from __future__ import annotations

from builder.secrets.secret_rule import (
    CHOSEN,
    DRAWN,
    LINE,
    NO_NAME,
    SecretRule,
    context_rule,
)
from builder.secrets.words import (
    FOREIGN_KEYS,
    FOREIGN_PASSWORDS,
    OTHER_KEYS,
    PROSE_PASSWORDS,
    alternatives,
    literals,
)

_OPEN = r"[ \t]{0,2}(?:\\{0,7}[\"'`*(\[]){0,3}"
"""Quotation marks and emphasis before a value."""
_RANDOM = r"(?P<v>[A-Za-z0-9+/_.~=-]{16,200})"
_USER = r"[`'\"]?[\w.@-]{2,60}[`'\"*]{0,3}"
_NAME = rf"(?:{PROSE_PASSWORDS})"
_NO_ADJECTIVE = (
    r"(?!\w{0,24}(?:ed|en|ing|ly|able|ible|ful|ive|ent|ant|ous|less|ary|ory|ic|al|thing|where|text|one|er|or|est"
    r"|wise|times|tion|ment|ness|ity|ship|ism|word|phrase|known|like)\b)"
)
"""No word follows that says something about a password."""
_NO_WORDS = r"(?![a-z0-9]{1,30}(?:_[a-z0-9]{1,30}){0,7}_[a-z]{1,30}(?!\w))"
"""No snake_case name follows that ends in a word."""
_NO_NOUN = (
    r"(?![ _-](?:polic|rule|strength|hash|type(?!s?[ \t][`'\"])|format|length|manager|store|field|input|prompt|reset"
    r"|generat|hint|history|expir|check|valid|encod|encrypt|auth|rotat|min|max|column|screen|page))"
)
"""No noun follows that makes a password the attribute of another thing."""
_FOREIGN_WORD = rf"(?:{FOREIGN_PASSWORDS})[a-z]{{0,4}}(?![A-Za-z_])"
_FOREIGN_LITERALS = "|".join((*literals("foreign"), *literals("foreign_whole"), "haslo"))
_OTHER_LITERALS = alternatives("other_password")
FOREIGN = _FOREIGN_WORD + (
    r"(?:[^\n\d.;?!/<>{}]|(?<=[ \t])(?:\d{1,3}(?:\.\d{1,3}){3}|[\w-]{1,40}(?:\.[\w-]{1,40}){1,5})(?=[ \t:])|(?<=\w)\.(?=[a-z])){0,40}?(?<=[\s:=\"'`*(\uff1a\uff08\u300c\u662f\u4e3a\u70ba\u306f\uc740\ub294])"
)
"""A password in another language, and the text up to the value."""
_NO_HOST = r"(?![\w-]{1,40}(?:\.[\w-]{1,40}){0,4}\.[a-z]{2,12}[:\s])"
_IS = (
    r"(?:[^\n.;?!/<>{}]|(?<=[ \t@])[\w-]{1,40}(?:\.[\w-]{1,40}){1,5}(?=[ \t:])){0,40}?(?:[:=\uff1a]|\u662f|\u4e3a|\u70ba|\u6210|\u306f|\uc740|\ub294"
    r"|[ \t](?:is|ist|lautet|hei\u00dft|es|est|\u00e9|\u00e8|e|jest|to|je|er|\u00e4r|on|este|-|\u2014))"
    rf":?{_OPEN}(?<=[ \t:=\"'`*(\[\uff1a\u662f\u4e3a\u70ba\u6210\u306f\uc740\ub294])"
)
"""The text between a password's name and its value, with a verb or a sign at its end."""
_PARTS = r"(?P<v>(?-i:(?=\S{0,60}[A-Z])(?=\S{0,60}[a-z])(?=\S{0,60}\d)[A-Za-z0-9]{2,30}(?:[!#$%^*+=@:][A-Za-z0-9]{1,30}){2,6}))(?=[\s\"',;`)]|\\|[.!?](?:\s|$)|$)"
"""A password of parts with signs between them: `Harbour:Sun:6`."""

_MIXED = (
    r"(?P<v>(?=[^\s\"'\\]{0,99}\d)(?=[^\s\"'\\]{0,99}[a-z])(?!-)[^\s\"'`\\$<>|;&()\[\]@]{5,100})"
)
"""A value with letters and digits."""

_NOUNS = "old |previous |current |default |passw|pw|token|secret|key"
_INSTEAD = "|".join(
    f" instead of {article} {noun}"
    for article in ("the", "my", "our", "that", "this")
    for noun in _NOUNS.split("|")
)
_THAT_IS = "|".join((
    "that is |that's |that was |this is |it is |it's |which is |which was ",
    " is the | is my | is our | is your | was the | was my | was our ",
))  # fmt: skip
_NEAR_KEYS = (
    "api key", "api_key", "api token", "access token", "auth token", "secret key", "access key",
    "bot token", "signing key", "signing secret", "client secret", "webhook secret",
)  # fmt: skip
_NAMED = (
    r"(?:passw(?:or)?d|pwd|pw|passphrase|passcode|(?<!next_)(?<!page_)(?<!csrf_)token|secret"
    r"|(?:api|access|secret|signing|encryption|master|license|private|account|service)[ _-]?key)"
)
_SHORT_WORDS = (
    "able|also|been|both|just|keep|kept|left|like|made|more|most|must|need|only|read|same|seen|sent"
    "|some|such|that|them|then|they|this|used|user|very|what|when|will|with|your"
)
"""Words of four letters in sentences about passwords."""
_TO_LOG_IN = " to log in| to log on| to login| to sign in| to signin| to authenticate"

_PHRASE = r"(?-i:(?:[A-Z][a-z]{2,9}[-_.]){2,6}[A-Z][a-z]{2,9})\d{0,4}"
"""A passphrase of capitalised words with signs between them."""
_SIGNED = (
    r"(?-i:(?=[!-~]{0,60}[A-Z])(?=[!-~]{0,60}[a-z]))(?=[!-~]{0,60}\d)"
    r"(?:(?=(?:[^\s!#$%^*&+=~?@-]{0,40}[!#$%^*&+=~?@-]){2})|(?=(?:[^\s\d]{0,40}\d){3}[^\s]{0,40})(?=[A-Za-z0-9]{2,40}[!#$%^*&+=~?@][A-Za-z0-9]))"
    r"[A-Za-z0-9!#$%^*&+=~?@_-]{8,64}"
)
"""A password with letters in both cases, digits and signs."""
_LOWER_PHRASE = (
    r"(?![a-z._-]{0,80}(?:pass|login|form|label|text|title|holder|error|user|auth|field|input))"
    r"(?-i:(?:[a-z]{3,9}[-_.]){3,6}[a-z]{3,9})\d{0,4}"
)
"""A password of four to seven words in lower case, none of which names a part of a form."""
_PROSE = r"[^\n;{}()=<>]"


# fmt: off
PROSE_RULES = (
    # Sentences
    context_rule(rf"\b(?!pass[ \t]{{1,2}}(?:to|of)\b){_NAME}(?:[ \t]{{1,2}}(?:-{{1,2}}|->|is now|is still|is|was|to|of)){_OPEN}(?<=[ \t\"'`*(\[]){CHOSEN}", "passw|passphrase|passcode|pass |pwd|pw ", "Password - «Canyonriver-80»", "the pwd is `«velvetviolet32»`", misses=("kwargs to pass to ``h2o.save-2model``", "password to base64 encode", "PASS: test_login_02", "password is required")),
    context_rule(rf"(?<![a-z-]){_NAME}\b{_NO_NOUN}[^\n.]{{0,40}}?(?<=[a-z])[ \t]to{_OPEN}(?<=[ \t\"'`*(\[]){CHOSEN}", "passw|passphrase|pwd", "The password was changed from old to «Canyonfalcon@18».", "I reset the admin password to «velvetviolet32»", misses=("from librust-rpassword-5-dev to librust-rpassword-6-dev", "add the password to user2's list", "I set the password policy to zxcvbn-score-3", "changed the password hashing to argon2-v13")),
    context_rule(rf"(?:(?<=with )|(?<=and )|(?<=using )|(?<=use )|(?<=, )|(?<=the )|(?<=my )|(?<=dem )|(?<=das )|(?<= e )|(?<= et )|(?<=und )|(?<= y )|(?<=\()){_NAME}[ \t]{{1,2}}{_OPEN}{_NO_WORDS}(?!(?<=pass )[a-z]{{1,30}}_[a-z]{{1,30}}\d\d?(?!\w)){CHOSEN}", "password |passwd |passphrase |pass |pwd |pw ", "ssh me@192.0.2.7 with password «velvetviolet32»", "ssh into a.example.org as me (password «Rocket-Bramble-8269»)", "user root, pass «copper_7712»", misses=("and pass file0_dirname in the call", "with password authentication", "use the pass through2", "and pass arg_1, arg_2", "larger than 2 GiB, pass force_zip64 to use the ZIP64 format")),
    context_rule(rf"(?:credentials?|creds|log ?in(?:to)?|sign ?in(?:to)?)\b[^\n/]{{0,30}}?[ \t]{_OPEN}{_USER}(?::|[ \t]/[ \t]){_OPEN}{CHOSEN}(?!:\d)", "credentials|creds are|creds: |creds for |login: |login is|login with|log in |sign in |log into|sign into", "credentials are admin:«velvetviolet32»", "just log into the admin with jo@example.org / «Canyon!7river» and check", "creds for the vpn -> me:«Canyon-river-114»", "login: admin / «Canyon!7river»", misses=("login at localhost:8080", "credentials for host:port", "Credentials (com.acme.auth:acme-auth-library-credentials:1.3.0")),
    context_rule(rf"{_RANDOM}[`'\"]?[ \t](?:is|was)[ \t](?:not[ \t])?(?:an?[ \t])?(?:in)?valid[ \t](?:[\w-]{{1,20}}[ \t]){{0,2}}(?:key|token|secret|password|credential)", " is not a valid| is not valid| is an invalid| is invalid| was not a valid", "KeyError: '«{W40}»' is not a valid token", lead=(16, 202), generated=True, misses=("some_variable_name_here is not a valid token",)),
    context_rule(r"app(?:lication)?[ _-]?pass(?:word|wd)?\b(?:[^\n]{0,24}?|[^\n:]{0,80}:[ \t]{1,2})(?P<v>(?-i:[a-z]{4}(?: [a-z]{4}){3}|(?=[A-Za-z ]{0,28}\d)[A-Za-z0-9]{4}(?: [A-Za-z0-9]{4}){5}))(?![ \t]?[A-Za-z0-9])", "app password|app_pass|application password|application_pass|app-pass|application-pass|apppass", "Gmail app password: «{l4} {l4} {l4} {l4}»", 'WP_APP_PASSWORD="«3kQz {A4} {A4} {A4} {A4} {A4}»"', misses=("the app password must have four long words here",)),
    context_rule(rf"app(?:lication)?[ _-]?pass(?:word|wd)?[ \t](?:for[ \t][^\n]{{1,60}}?[ \t])?(?:is|was)[ \t]{{1,2}}(?P<v>(?!(?:[a-z]{{4}} ){{0,3}}(?:{_SHORT_WORDS})\b)(?-i:[a-z]{{4}}(?: [a-z]{{4}}){{3}}))(?=[ \t](?:for|on|of|in|at|and|to|from)\b)", "app password|app_pass|application password|apppass", "the gmail app password is «xrea nseo zaru yhdq» for me@example.org", misses=("the app password is only used when sent to us",)),
    context_rule(r"\.login[ \t]{0,2}\([^()\n]{0,100},[ \t]{0,4}\\{0,7}[\"'](?P<v>(?-i:[a-z]{4}(?: [a-z]{4}){3}))\\{0,7}[\"']", ".login(|.login (", "smtp.login('me@example.org', '«{l4} {l4} {l4} {l4}»')"),
    context_rule(rf"{_RANDOM}[`'\"]?[ \t]as[ \t](?:(?:the|your|my|an?|our)[ \t])?(?:[\w-]{{1,20}}[ \t])?(?:api[ -]key|token|secret|key|bearer)\b", " as the api| as my api| as your api| as an api| as api key| as the token| as my token| as your token| as the secret| as the access| as the bearer| as bearer| as the key", "use «{h40}» as the API key", lead=(16, 202), generated=True, misses=("use some_variable_name as the key",)),
    context_rule(rf"\b{_NAME}\b(?:[ \t][\w-]{{1,20}}){{0,1}}[ \t](?:of|for|on|to|in|at|von|f.r)[ \t](?:[\w.@'-]{{1,40}}[ \t]){{1,5}}?(?:is now|is|was|=|->|:)[ \t]{{0,2}}{_OPEN}{CHOSEN}", "passw|passphrase|passcode|pwd|pw for|pw of|pw on|pw to", "the passphrase of the gpg key is «tunnel_oregano_yellow97»", "the password for user bob is «velvetviolet32»"),
    context_rule(rf"\b{_NAME}\b[ \t]{{0,2}}\((?:(?:currently|now|today|still|was|is|old|new):?[ \t]{{1,2}}[\"'`*]{{0,3}}|[\"'`*]{{1,3}}){CHOSEN}[\"'`*]{{0,3}}\)", "passw|passphrase|passcode|pwd", "I found the database password (`«WindowBramble61!7»`) in the file", "reset the password (now «C0pper@river41»)", misses=("the password (see rfc2617-4.1)", "password (minimum8chars1)")),
    context_rule(rf"(?<=[ \t,;/|])(?:(?-i:[Pp]ass)|passw(?:or)?d|passphrase|pwd|pw)[ \t]{{0,2}}(?:[:=]|-[ \t])[ \t]{{0,2}}{_OPEN}{NO_NAME}{CHOSEN}", "pass:|pass =|pass=|pass -|password:|password =|passwd:|passphrase:|pwd:|pwd =", "user: me@example.org / pass: «Canyon1997!fiddle»", "VPN user jo.k, pass: «Canyon098!x», until Friday", near=("user", "login", "account", "vpn", "ssh", "host", "mail"), misses=("- user flags: Pass -gdwarf-3 to as", "user flow test, pass: test_login_02", "login test: PASS: 12_of_12")),
    context_rule(rf"(?:credentials?|creds|log ?in|logins?|zugangsdaten|identifiants|credenciales)\b[^\n/]{{0,40}}?[ \t:]{_USER}[ \t](?:and|with|und|et|y|e)[ \t]{_OPEN}{NO_NAME}{CHOSEN}", "credential|creds|login|log in|zugangsdaten|identifiants|credenciales", "The database credentials are shop and «C4nyon!dapper4845» (user and password)", near=("passw", "pwd", " pw", "passe", "contrase"), misses=("login with user1 and password1", "the login page and step2_of3 of the password")),
    context_rule(r"\bpassphrase(?:[ \t](?:of|for)[ \t][^\n.:,]{1,40}?)?(?:[ \t](?:is|was)|:)[ \t]{0,2}\\{0,7}[\"'`*]{1,3}(?P<v>[a-z]{3,12}(?:[ _-][a-z]{3,12}){2,9}[ _-]?\d{0,4})\\{0,7}[\"'`*]{1,3}", "passphrase", 'the passphrase is "«{l7} {l6} {l5} {l6}»"', 'the passphrase of the luks volume is "«{l7} {l6} {l5} {l6} 89»" (with the spaces)'),
    context_rule(r"\bpassphrase(?:[ \t](?:of|for)[ \t][^\n.:,]{1,40}?)?[ \t](?:is|was)[ \t](?P<v>[a-z]{3,12}(?:[_-][a-z]{3,12}){2,9}\d{0,4})(?=[\s.,;!]|$)", "passphrase", "the passphrase of the backup is «{l7}-{l6}-{l6}-{l6}» and"),
    context_rule(r"\b(?:new|root|admin|wi-?fi|my|our|current|login|guest|vpn|db|database|server|ssh|sudo|default)(?: \w{2,10})? password is:? (?P<v>" + _NO_ADJECTIVE + r"(?-i:[a-z]{10,64}))(?=[ \t](?:and[ \t](?:the|its|my)|use it|please|pls|btw|for now|so|when|if)\b|[.,;!]|\s{0,2}$|\r?\n|[ \t]\()", " password is", "the new admin password is: «thistlebarley»", "ok, the new password is «sparrowribbon» and the ssid is lab", "my sudo password is «vqclnoounpzqc» use it when apt asks", lead=(2, 8), misses=("the new password is insufficient, try", "the root password is hardcoded.", "my password is everything")),
    context_rule(rf"{FOREIGN}{_NO_HOST}{CHOSEN}", _FOREIGN_LITERALS, "Zugangsdaten: Benutzer wartung, Passwort «Otter!maple043». Bitte", "das Passwort lautet «pelican-barley-53», bitte", "le mot de passe est «RIBBONanchor2023!x» pour", "contraseña del servidor: «Juniper2010!cactus» y usuario", misses=("a senha precisa de 8 caracteres", "das Passwort muss in sha256_hash stehen", "mot de passe oublié: page_2_de_3x/y")),
    context_rule(rf"{_FOREIGN_WORD}{_IS}(?P<v>{_SIGNED}(?<!\*))(?=\*{{0,3}}[,.;]?(?:[\s\uff0c\u3002]|\\|$))", _FOREIGN_LITERALS, "la contraseña de jo@example.org es «V5^NZRqOzVJ^He0», ¿por qué", misses=("la contraseña es a=1&b=2",)),
    context_rule(rf"{_FOREIGN_WORD}{_IS}{DRAWN}", _FOREIGN_LITERALS, "La contraseña de la base de datos es «xLpOwJZ7mNxMC»", "Das Passwort für die Datenbank lautet «eMloIxFE4keDRMtKPAIh»", "usuario: root contraseña: «FsRQsz0bqoFj»", "a senha do banco é «kWqXzVbTnJpLd»", drawn=True, misses=("la contraseña es obligatoria", "das Passwort ist abgelaufen", "a senha é longa2", "das Passwort lautet: BenutzerKennwort2")),
    context_rule(rf"(?<![\w-])(?:api|access|secret|license)[ _-]?(?:key|token)[^\n.;?!{{}}()=<>]{{0,40}}?(?:[ \t](?:is|was|to|now)|:|->):?{_OPEN}(?<=[ \t\"'`*(\[])(?=\S{{12}}){DRAWN}", "api key|api-key|api_key|apikey|api token|access key|access token|secret key|secret token|license key", "here is my api key: «mosaicTDCJTmix» - put it in", drawn=True, misses=("the api key is ApiKeyHeaderAuthentication", "api_key: OptionalApiKeyHeader")),
    context_rule(r"(?<=[ \t\"'])password=(?P<v>[^\s\"'`\\$<>(){}\[\],;|&]{6,100})(?=[ \t]{1,3}\w{2,20}=|\\{0,7}[\"']|[ \t]{0,8}(?:\r|\n|\\|$))", "password=", "host=db1 dbname=fin user=app password=«sunflowers» sslmode=require", "conn = 'password=«GlacierPGJHcHam» host=db1 dbname=fin'", near=("dbname=", "sslmode=", "hostaddr=", "host="), misses=("connect(host=h, password=passwd, dbname=d)", "f(host=self.host, password=self.password)")),
    context_rule(rf"(?<![A-Za-z])(?:{FOREIGN_KEYS})[a-z]{{0,3}}(?![A-Za-z_=])[^\n:;{{}}=<>]{{0,60}}?:[ \t]{{0,2}}[\"'`*]{{0,3}}{_RANDOM}(?=[\s\"'`*,.]|\\|$)", FOREIGN_KEYS, "Hier is de sleutel voor Twilio (prod): «{h32}»\n", generated=True, misses=("la clave del objeto: nombre_de_la_variable_x",)),
    context_rule(rf"{_FOREIGN_WORD}[ \t]?[:\uff1a]{_OPEN}(?P<v>(?-i:(?=\S{{0,60}}[A-Z])(?=\S{{0,60}}[a-z]))(?=\S{{0,60}}\d)[A-Za-z0-9]{{10,64}}|{_PHRASE})(?=[\s,.;!\"'`\uff0c\u3002]|\\|$)", _FOREIGN_LITERALS, "Usuario: me\nClave: «uoJ8EnEpacjg»", "senha: «Second-Chat-Jazz»", misses=("Passwort: siehe Abschnitt4",)),
    context_rule(r"temporary password is generated for \S{1,80}:?[ \t](?P<v>[^\s\"'\\]{6,64})", "temporary password is generated for", "[Note] A temporary password is generated for root@localhost: «sunflowers»"),
    *(context_rule(rf"(?<=[\s|])password[ \t]{{0,24}}\|[ \t]{{1,24}}{value}(?=[ \t|]{{0,24}}(?:{LINE}|$))", "password", f" Username | admin\n Password | {example}\n", near=("user", "login", "account"), drawn=value is DRAWN, misses=(" Username | admin\n Password | PasswordHash\n", "user | password | PasswordHash\n")) for value, example in ((CHOSEN, "«velvet!violet32»"), (DRAWN, "«kWqXzVbTnJpLd»"))),
    *(context_rule(rf"pre-?shared[ -]key\b[^\n;{{}}()=<>|]{{0,40}}?[ \t:]{_OPEN}{value}", "pre-shared key|preshared key|pre-shared-key|preshared-key", f"with pre-shared key {hit}\n", drawn=value is DRAWN, misses=("the pre-shared key is a PreSharedKeyOption",)) for value, hit in ((CHOSEN, "«velvet!violet32»"), (DRAWN, "«iiqNiLGuOuSibe»"))),
    context_rule(r"\b(?:2fa|totp|otp|mfa|authenticator)[ _-]{0,2}(?:seed|secret|key|code)\b[^\n;{}()=<>]{0,60}?(?::|[ \t]is)[ \t]{0,2}[\"'`*]{0,3}(?P<v>(?=[a-z]{0,63}[2-7])(?-i:[A-Z2-7]{16,64}|[a-z2-7]{16,64}))(?![A-Za-z0-9])", "2fa|totp|otp |otp_|otp-|mfa|authenticator", "2FA seed for the ci account: «{U32}», generate", misses=("the otp key is: abcdefghijklmnop",)),
    context_rule(r"cookie[ \t]{1,2}[\"'`]?[\w.-]{0,40}(?:session|sess|sid|auth|token)[\w.-]{0,20}=(?P<v>[\w.~%+/-]{16,4000})", "cookie ", "send the cookie auth_session=«{W48}» along", generated=True),
    context_rule(r"(?:licen[cs]e|product|activation|serial)[ _-](?:key|number|code)\b[^\n;{}()=<>]{0,60}?[ \t:\"'`](?P<v>(?=[a-z-]{0,40}\d)(?-i:[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){3,6}))(?![\w-])", "license key|licence key|product key|activation key|activation code|serial number|license_key|license-key|serial key", "our licence key for the scanner is «{U5}-{U5}-{U5}-2{U4}-{U5}» , activate", misses=("the license key is XXXX-XXXX-XXXX-XXXX",)),
    context_rule(r"\b(?:key|token|secret|password)\b[^\n;{}()=<>]{0,80}?[ \t](?:ours|mine|yours|hers|theirs|it)[ \t]is[ \t][\"'`]?(?P<v>[A-Za-z0-9_.-]{20,100})(?<![.])(?=[\s\"'`,.;)]|$)", " ours is | mine is | yours is | theirs is | it is ", "The sandbox wants a key in the header, ours is «{h32}» and it", lead=(3, 88), generated=True, misses=("the key exists and it is some-long-word-list",)),
    context_rule(rf"\b(?:secret|token|key|password|passphrase)\b[,:]?[ \t](?:(?:is|was|to|now)[ \t])?\\{{0,7}}`(?=[^`\s]{{20}}){DRAWN}", "secret, `|token, `|key, `|password, `|secret `|token `|key `|secret: `|token: `|key: `|secret is `|token is `|key is `|secret to `|token to `|key to `", "I generated a new JWT secret, `«s{L12}-{L12}-{L16}»`, and", drawn=True, misses=("the key `TransportLayerSecurityOptions` is",)),
    context_rule(rf"{_NAME}\b[^\n?]{{0,80}}\?{LINE}(?:\[?\d[\d:. apm-]{{3,24}}\]?[ \t])?(?:<?@?[\w.-]{{2,30}}>?:?[ \t]{{1,2}})?{CHOSEN}(?=[ \t]{{0,8}}(?:{LINE}|$))", "passw|passphrase|passcode|pwd|pw ", "[14:02] jonas: whats the root pw on the mac?\n[14:03] marta: «zebra.maple.ginger-53»", misses=("forgot the password?\nsee step2_of33 for more",)),
    context_rule(r"\b(?:u|user\w{0,10}|login|name)[ \t]{0,2}={2,3}[ \t]{0,2}\\{0,7}[\"'][\w.@-]{1,60}\\{0,7}[\"'][ \t]{0,2}(?:&&|and)[ \t]{0,2}(?:p|pass\w{0,8}|pwd?)[ \t]{0,2}={2,3}[ \t]{0,2}\\{0,7}[\"'](?P<v>[^\"'\\\n]{5,100})\\{0,7}[\"']", "u ==|u==|user ==|user==|username ==|username==|login ==|name ==", "{ |u, p| u == 'admin' && p == '«ZEB-stg#4735hn»' }", misses=("if name == 'a' and p == 'b':",)),
    context_rule(r"pass(?:word|wd)?\w{0,10}\\{0,7}[\"']?[ \t]{0,2}(?:[:=]|=>)[ \t]{0,2}(?:await[ \t])?[\w.:$]{0,60}(?:hash|hash::make|hashsync|make_password|hashpw|generatehash|hashpassword|hash_password|password_hash|generate_password_hash)\([ \t]{0,2}b?\\{0,7}[\"'](?P<v>(?!sha|md5|bcrypt|argon|pbkdf)(?=[^\"'\n]{0,60}[\d!#$%^*])[^\"'\\\n]{5,100})\\{0,7}[\"']", "password:|password =|password=|password'|password\"|password_hash|passwordhash|passwd|pass:|pass =", "data: { email: 'me@example.org', password: await hash('«ORB-Mobile!5121wa»', 10) }", misses=("password: hash('sha256')",)),
    context_rule(r"(?:hash::make|make_password|hashpw|generate_password_hash|password_hash)\([ \t]{0,2}b?\\{0,7}[\"'](?P<v>[A-Za-z]{8,64})\\{0,7}[\"']", "hash::make(|make_password(|hashpw(|generate_password_hash(|password_hash(", "'password' => Hash::make('«kxRaKHUJpYjrIgTG»'),", drawn=True, misses=("make_password('newPassword')",)),
    context_rule(r"(?:session|sess|sid|auth|token)\\{0,7}\",(?:\s|\\{1,4}n){0,20}\\{0,7}\"value\\{0,7}\"[ \t]{0,2}:[ \t]{0,2}\\{0,7}\"(?P<v>[\w.~%+/=-]{16,4000})", "session\"|session\\|sess\"|sess\\|sid\"|sid\\|auth\"|auth\\|token\"|token\\", '{"name":"auth_session","value":"«{W60}»","domain":".example.org"}', generated=True),
    context_rule(r"\"username\\{0,7}\"[ \t]{0,2}:[ \t]{0,2}\\{0,7}\"[\w.@-]{1,60}\\{0,7}\",(?:\s|\\{1,4}n){0,20}\\{0,7}\"key\\{0,7}\"[ \t]{0,2}:[ \t]{0,2}\\{0,7}\"(?P<v>[0-9a-f]{32})\\{0,7}\"", "\"username", '{"username":"me","key":"«{h32}»"}'),
    context_rule(r"shell input text[ \t]{1,2}\\{0,7}[\"']?(?P<v>(?=[^\s\"']{0,60}\d)(?=[^\s\"']{0,60}[a-z])[^\s\"'\\$;|&]{6,100})", "shell input text", 'adb shell input text "«salmon_CoralC0Juf10»"'),
    context_rule(r"ably[^\n]{0,60}?(?P<v>[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{6}:[A-Za-z0-9_-]{20,60})", "ably", "new Ably.Realtime({ key: '«{A6}.{A6}:{W43}»' })"),
    *(context_rule(rf"{value}[`'\"]?[ \t]instead of (?:the|my|our|that|this)(?: old| previous| current| default)? (?:password|pw|token|secret|key|api key|passphrase)\b", _INSTEAD, f"it should be {hit} instead of the old password", lead=(8, 100), drawn=value is DRAWN, generated=value is _RANDOM, misses=("use step2_of33 instead of the password", "use PasswordHelper instead of the password")) for value, hit in ((f"{NO_NAME}{CHOSEN}", "«Sailor@Canyon2018»"), (DRAWN, "«kWqXzVbTnJpLd»"), (_RANDOM, "«{h32}»"))),
    *(context_rule(rf"(?<![\w.@/-]){value}[`'\"]?,?[ \t]\(?(?:that is|that's|that was|this is|it is|it's|which is|which was|is|was) (?:the|my|our|your)(?: [\w./-]{{1,20}}){{0,2}} [\w-]{{0,30}}{_NAMED}\b{_NO_NOUN}", _THAT_IS, f"try {hit}, that is the root {noun}", f"`{hit}` (that's the {noun})", lead=(8, 100), drawn=value is DRAWN, generated=value is _RANDOM, near=_NEAR_KEYS if value is _RANDOM else ("password", "passphrase", "passcode", " pw"), misses=("use step2_of33, that is the new password field", "see PasswordHelper, which is our password manager", "v2.14.0-beta3 is the token", "user_id_2 is the primary key")) for value, hit, noun in ((f"{NO_NAME}{CHOSEN}", "«Sailor@Canyon2018»", "password"), (DRAWN, "«kWqXzVbTnJpLd»", "password"), (_RANDOM, "«{A32}»", "api key"))),
    context_rule(rf"\b(?:the|my|your|our|new|root|admin|temp)[ ](?:pass|pw|pwd):[ \t]{{1,2}}{_OPEN}{NO_NAME}{CHOSEN}", "pass: |pw: |pwd: ", "here's the pass: «velvetviolet32»", lead=(3, 8), misses=("on the pass: step2_of_33", "the pass: 2 of 3")),
    context_rule(rf"{_FOREIGN_WORD}[ \t]{{1,2}}(?:[\"'`*(]{{1,3}})?{DRAWN}", _FOREIGN_LITERALS, "usuario jo contraseña «FsRQsz0bqoFj», host", "parola «uxDfzITgxmIHVXXC», kullanici", drawn=True, misses=("contraseña PasswordFieldComponent2", "mot de passe Utilisateur")),
    context_rule(rf"(?:{_FOREIGN_WORD}|{_NAME}){_PROSE}{{0,60}}\([^()\n]{{1,60}}\)[ \t]{{0,2}}[:\uff1a][ \t]{{1,2}}(?:[\"'`*]{{1,3}})?{CHOSEN}", _FOREIGN_LITERALS + "|password|passwd|passphrase|passcode", "mot de passe du serveur (root@10.1.2.3) : «{p}»", "password for the switch (10.1.2.3): «{p}»", misses=("password (required): see docs/setup2.md",)),
    context_rule(rf"(?:api[ _-]?(?:key|token|secret)|access (?:key|token)|auth token|bot token|deploy token)[^\n?;{{}}()=<>]{{0,80}}\?{LINE}[^\n;{{}}()=<>?]{{0,80}}[:,][ \t]{{1,2}}(?:[\"'`*]{{1,3}})?{_RANDOM}(?:[\"'`*.]{{1,3}})?(?=\s|\\|$)", "api key|api_key|apikey|api-key|api token|api_token|api secret|access key|access token|auth token|bot token|deploy token", "[10:32] ann: anyone got the Datadog API key?\n[10:32] Bo Li: sure: «{h32}»\n[10:33] ann: thx", generated=True, misses=("which API token?\nuser: see commit 0a1b2c3d4e5f and check", "an API key?\nBo: that is the_name_of_the_function_here")),
    context_rule(r"\b(?:set-?up|authenticator|totp) (?:key|code|secret)[ \t]{0,2}(?::|is)[ \t]{1,2}[\"'`*]{0,3}(?P<v>(?-i:[A-Z2-7]{16,64}))(?![\w-])", "setup key|set-up key|authenticator key|totp key|setup code|setup secret|totp secret", "can't scan the QR. Setup key: «BRZKSYXJUTXKMD4V» (time based)"),
    context_rule(rf"(?:2fa|mfa|totp|two-factor|authenticator)[ -]{_PROSE}{{0,40}}(?:key|seed|secret|code){_PROSE}{{0,60}}?(?:[:\uff1a]|[ \t]is)[ \t]{{1,2}}(?:[\"'`*]{{1,3}})?(?P<v>(?=[a-z ]{{0,40}}[2-7])(?:[a-z2-7]{{4}} ){{3,15}}[a-z2-7]{{4}})(?![\w-])", "2fa|mfa|totp|two-factor|authenticator", 'The 2FA setup key it shows me is "«yqfp ptfk utvi 67q7 64mc 7uug h3ng yyfl»" - how', misses=("the 2FA code is used with your bank", "2FA key: with many long word2",)),
    context_rule(rf"(?:2fa|mfa|totp|two-factor|authenticator)[ -]{_PROSE}{{0,40}}(?:key|seed|secret|code){_PROSE}{{0,60}}?(?:[:\uff1a]|[ \t]is)[ \t]{{1,2}}(?:[\"'`*]{{1,3}})?(?P<v>(?-i:(?=[A-Z]{{0,40}}[2-7])[A-Z2-7]{{16,64}}))(?![\w-])", "2fa|mfa|totp|two-factor|authenticator", "the portal asks for 2FA. The authenticator setup key is «NSFCHADT5F5DIZOU», generate the code"),
    context_rule(rf"[ ](?:key|code|secret)[ ]{_PROSE}{{0,40}}?authenticator{_PROSE}{{0,20}}?(?:[:\uff1a]|[ \t]is)[ \t]{{1,2}}(?:[\"'`*]{{1,3}})?(?P<v>(?-i:[A-Z2-7]{{16,64}}))(?![\w-])", "authenticator", "cannot scan? enter this key in your authenticator app: «E5CEEGNK3PU3SDYOL5D2DNY3OIDJUTV3»", lead=(5, 48), generated=True, misses=("the code for the authenticator is: AUTHENTICATORSETTINGSPAGE",)),
    context_rule(r"(?:password|passcode|passphrase|passwort|kennwort)(?: (?:for|of|to) [\w' .-]{1,30}?)?(?: is| ist|:)[ ]{1,2}[\"'`*]{0,2}(?P<v>(?!0?123456789)\d{8,20})(?![\w.:/-]{0,3}[\w:/-])", "password|passcode|passphrase|passwort|kennwort", "the office wifi is 'Ines-5G' and the password for it is «9029865188043188» , set up", misses=("the password is 20240918-2233 old", "the password is 12345678901")),
    context_rule(r"(?:api|access|secret|licen[cs]e) key(?: for [\w' .-]{1,40}?)?(?: is|:)[ ]{1,2}[\"'`*]{0,2}(?P<v>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![\w-])", "api key|access key|secret key|license key|licence key", "api key for the parcel api is «{u}», docs at"),
    context_rule(r"\b(?:root|admin|administrator|ubuntu|postgres|sa|deploy)[ ]/[ ][`*]{0,2}(?P<v>(?=[^\s\"'\\]{0,60}\d)[^\s\"'\\<>|;(){},/`]{8,60})(?=[\s`*]|\\|$)", "root / |admin / |administrator / |ubuntu / |postgres / |sa / |deploy / ", "anyone has the root pw?\nmarek: root / «rocket-anchor-velvet-59»\n", near=("pw", "pass", "login", "cred")),
    context_rule(r"(?:wlan|wifi|wi-fi|ssid)[^\n]{0,60}?(?:schl[^\x00-\x7f]{1,2}ssel|key|clave|clef|chiave)(?:: ?| is | ist | )[\"'`*]{0,2}(?!802\.11)(?P<v>(?=[^\s\"'\\]{0,60}\d)(?=[^\s\"'\\]{0,60}[a-z])[^\s\"'\\<>|;(){}=,/`]{8,63})(?=[\s`*,]|\\|$)", "wlan|wifi|wi-fi|ssid", "WLAN im B\u00fcro hei\u00dft beacon-net, Schl\u00fcssel «54ddl3walnut.85»", misses=("wifi_key_name wlan0mon2",)),
    context_rule(rf"(?:2fa|mfa|totp|two-factor|authenticator)[ -]{_PROSE}{{0,40}}(?:key|seed|secret|code){_PROSE}{{0,60}}?(?:[:\uff1a]|[ \t]is)[ \t]{{1,2}}(?:[\"'`*]{{1,3}})?(?P<v>(?-i:[A-Z2-7]{{16,64}}))(?![\w-])", "2fa|mfa|totp|two-factor|authenticator", "2FA setup key for the admin account: «{U32}» - please", misses=("2FA key for the account: AUTHENTICATORSETTINGSPAGE",), generated=True),
    context_rule(rf"(?:key|token|secret)[^\n]{{0,80}}?use this (?:one|key|token) instead[:.]?(?:{LINE}){{1,3}}{_RANDOM}(?={LINE}|$)", "use this one instead|use this key instead|use this token instead", "The old Twilio key got revoked (DATA-4996). Use this one instead\n\n«{h32}»\n\nand tell me", lead=(4, 86), generated=True),
    context_rule(rf"(?:here(?:'s|[ \t]is)|use)[ \t](?:the|this|your|my)[ \t](?:new[ \t])?(?:api[ _-]?)?(?:key|token|secret|one)(?![\w-]){_PROSE}{{0,60}}?:[ \t]{{1,2}}(?:[\"'`*]{{1,3}})?{_RANDOM}(?:[\"'`*.]{{1,3}})?(?=\s|\\|$)", "here is the|here is this|here is your|here is my|here's the|here's your|here's my|use this|use the new|use my", "use this one, the old one expired: «{h32}»", "Here is the key you asked for: «{h32}»\nPlease wire it in.", generated=True, misses=("use this one: org.example.SomeClassNameHere", "Here is the key: configuration.settings.name")),
    context_rule(rf"{_FOREIGN_WORD}{_IS}{_PARTS}", _FOREIGN_LITERALS, "heslo k databázi je «Lednacek:Tun:6»", misses=("heslo je v souboru: app:Config:6x/y", "la clave es user:name:6")),
    context_rule(rf"password\b(?:[ \t][^\s\d.,:;]{{1,20}}){{0,4}}[ \t](?:\u00e8|\u00e9|ist|est|es|lautet|\u00e4r|er|jest|este|je|on):?{_OPEN}(?<=[ \t\"'`*(\[]){CHOSEN}", "password ", "la password del database ist «Canyon!river41» ok", misses=("password er step2_of_33/x",)),
    context_rule(rf"password\b(?:[ \t][^\s\d.,:;]{{1,20}}){{0,4}}[ \t](?:\u00e8|\u00e9|ist|est|es|lautet|\u00e4r|er|jest|este|je|on):?{_OPEN}(?<=[ \t\"'`*(\[]){DRAWN}", "password ", "la password del server è «V5yjKSKyF-1U»", drawn=True, misses=("la password del server è obbligatoria", "la password est changePasswordFormAction2")),
    context_rule(rf"\b(?:use|using|with|as|are)[ \t]{{1,2}}{_OPEN}{_USER}[ \t]?/[ \t]?{_OPEN}{NO_NAME}{CHOSEN}[`'\"*)]{{0,3}},?[ \t]to (?:log[ \t]?[io]n(?:to)?|sign[ \t]?in(?:to)?|authenticate)\b", _TO_LOG_IN, "use orders / «fLjQGaPPLtBKl8!v» to log in at https://cache.example.com", "you can use etl / «walnut-Kestrel-lantern14» to sign in", lead=(14, 140), misses=("use GET / step2_of_33 to log in", "use oauth / oidc-connect to log in at https://h")),
    context_rule(rf"\b(?:use|using|with|as|are)[ \t]{{1,2}}{_OPEN}{_USER}[ \t]?/[ \t]?{_OPEN}{DRAWN}[`'\"*)]{{0,3}},?[ \t]to (?:log[ \t]?[io]n(?:to)?|sign[ \t]?in(?:to)?|authenticate)\b", _TO_LOG_IN, "use orders / «qlopDvZG5qXHQ» to log in", lead=(14, 140), drawn=True, misses=("use session / loginWithToken to log in",)),
    context_rule(rf"(?:use|using|with)[ \t]{_OPEN}{_USER}:{CHOSEN}{_OPEN}[ \t]to[ \t](?:log|sign)", " to log in| to login| to sign in", "use admin:«p3bbl3w1nt3r_7684» to log in to the dashboard", lead=(10, 150), misses=("use web:8080 to log in", "use image:v1.2.3 to log in")),
    context_rule(rf"(?:credentials?|creds|log ?in(?:to)?|sign ?in(?:to)?)\b[^\n/]{{0,30}}?[ \t]{_OPEN}{_USER}[ \t]/[ \t]{_OPEN}{DRAWN}", "credentials|creds are|creds: |creds for |login: |login is|login with|log in |sign in |log into|sign into", "log in with etl / «qlopDvZG5qXHQ»", "sign into ci as etl / «qlopDvZG5qXHQ»", "login: admin / «kWqXzVbTnJpLd»", drawn=True, misses=("login: username / passwordHash", "log in with GitHub / BitBucket")),
    context_rule(rf"(?:log|sign)(?:ged|ed|ging|ing)?[ -]?in(?:[ \t]to[ \t]\S{{1,60}})?[ \t]as[ \t]{_OPEN}{_USER}[ \t](?:with|using|and|/)[ \t]{{1,2}}(?:(?:the[ \t])?{_NAME}[ \t]{{1,2}})?{_OPEN}{NO_NAME}(?=\S{{0,60}}(?-i:[A-Z!#$%^*@]))(?!(?:RS|ES|HS|EC|PS|SHA|TLS|SSH|ED)\d){CHOSEN}", "log in |login as |sign in |logged in |signed in |logging in |signing in |log-in as |sign-in as ", "sign in as orders with «fLjQGaPPLtBKl8!v» at https://cache.example.com", "I logged in as etl using «NX6KCyTRF06VUZ»", misses=("log in as deploy with ed25519-key-2", "sign in as user1 with step2_of_33")),
    context_rule(rf"(?:credentials?|creds|logins?)(?:[ \t](?:are|is))?:?[ \t]{_USER}/{NO_NAME}(?P<v>(?=[^\s]{{0,60}}[!#$%^*~@])(?=[^\s]{{0,60}}\d)[^\s\"'`,;()<>/]{{8,64}})", "credentials|creds|logins", "Here are the creds: admin/«Canyon!river41»", misses=("credentials in config/app2024",)),
    context_rule(rf"password:?{LINE}{CHOSEN}(?={LINE}|$)", "password\n|password:\n|password\r|password\\n", "Username\nme\nPassword\n«velvet!violet32»\n", near=("user", "login", "mail"), misses=("username\nand password\nstep2_of3/x",)),
    context_rule(rf"password:[ \t]{{1,4}}(?P<v>{_NO_ADJECTIVE}(?-i:[a-z]{{9,24}}))(?={LINE}|$)", "password:", "Username: me\nPassword: «thistlebarley»\n", near=("username:", "user:", "login:", "e-mail:", "email:"), misses=("username: string\npassword: encrypted\n",)),
    context_rule(rf"(?<![\w-])(?-i:PASS)={{1}}\\{{0,7}}[\"']?{CHOSEN}", "pass=", "read -s PASS; PASS=«velvet!violet32»\n", misses=("PASS=12 FAIL=3",)),
    context_rule(rf"\b(?:user(?:name)?|login)[ \t:=]{{1,3}}{_USER}[ \t]?[/,;][ \t]{_NAME}[ \t:=]{{1,3}}{_OPEN}{NO_NAME}{CHOSEN}", "/ pass|/ pw|, pw|; pw", "user ops / pass «c4nyon@riv3r» should work", "login: me, pw: «Canyon098!x»", lead=(6, 76), misses=("user model / pass step2_of3",)),
    context_rule(rf"\b(?:wi-?fi|wlan|ssid)\b[^\n]{{1,60}}?(?:[,;/]|[ ]{{2}})[ \t]{{0,2}}(?:key|pass|code)[ \t:=]{{1,3}}{_OPEN}{NO_NAME}{CHOSEN}", "wifi|wi-fi|wlan|ssid", "wifi at the office: Otter5G, key «Canyon098!x»", "SSID: Otter5G  key: «Canyon098!x»", misses=("the wifi card / pass through2",)),
    context_rule(rf"\bwpa[23]?[ -](?:{_NAME}|key|psk)[ \t:=]{{1,3}}{_OPEN}{NO_NAME}{CHOSEN}", "wpa", "SSID Lab, WPA2 key «velvetviolet32»", misses=("WPA2 key step2_of_33",)),
    context_rule(rf"wi-?fi (?:{_NAME}|key)[ \t:=]{{1,3}}{_OPEN}(?!802){NO_NAME}{CHOSEN}", "wifi p|wifi k|wi-fi p|wi-fi k", "the wifi password «velvetviolet32» still works", misses=("the wifi password step2_of_33", "wifi key 802.11ax")),
    context_rule(rf"(?:log|sign)(?:ged|ed|ging|ing)?[ -]?in with {_OPEN}{_USER} and (?:(?:the )?{_NAME} )?{_OPEN}{NO_NAME}{CHOSEN}", "log in with |login with |sign in with |logged in with |signed in with |logging in with |signing in with |log-in with |sign-in with ", "Log in with etl and «velvetviolet32»", misses=("sign in with SAML2 and oauth2-proxy2", "log in with etl and step2_of_33")),
    context_rule(r"ftp> user \S{1,60} (?P<v>(?=[^\s]{0,60}\d)[^\s\"'\\]{6,100})", "ftp> user", "ftp> user me «velvetviolet32»"),
    context_rule(rf"(?<=[\w.-][ \t])(?:pw|pwd|pass)[ \t:]{{1,2}}{_OPEN}{NO_NAME}{CHOSEN}", "pw |pw: |pwd |pass |pwd: |pass: ", "ssh root@192.0.2.8 pw «Thund3rcobra37»", near=("ssh ", "sftp ", "rdp ", "vnc "), misses=("ssh host; pass step2_of_33",)),
    context_rule(rf"(?:credentials?|creds|logins?)[ \t]are[ \t]{{1,2}}{_USER}/{NO_NAME}{CHOSEN}", "credentials are|creds are|logins are", "the creds are jan/«Thund3rcobra11» for the vpn", misses=("credentials are docs/auth_2024_notes",)),
    context_rule(rf"\b{_NAME}\b(?:[ \t](?:of|for|on|to|in|at)[ \t](?:[\w.@'-]{{1,40}}[ \t]){{1,5}}?|[ \t])(?:is now|is|was)[ \t]`(?P<v>(?=[^\s`]{{0,60}}\d)(?=[^\s`]{{0,60}}[!#$%^*~@=+?])[A-Za-z0-9][^\s`&]{{7,63}})`", "passw|passphrase|passcode|pwd", "The database password in the compose file is `«Tu81f4YAGx=3Sg»`, which", misses=("the password in the query is `user=1&password=2`",)),
    context_rule(r"new value:[ \t]{1,4}(?P<v>(?=[^\s]{0,60}\d)[^\s\"'`\\<>]{8,64})(?=\s|\\|$)", "new value:", "Password for the [elastic] user successfully reset.\nNew value: «uj=ApF2hXjZqYxqKH4+H»\n", near=("password",), misses=("field changed, new value: 12345678",)),
    context_rule(r"secret: \\{0,7}[\"'](?P<v>(?=[^\"'\\\n]{0,40}\d)[a-z0-9]{2,12}(?: [a-z0-9]{2,12}){2,7})\\{0,7}[\"']", "secret: '|secret: \"|secret: \\", "session({ secret: '«canyon river 91»' })", near=("session", "cookie", "jwt"), misses=("jwt secret: 'rotated'",)),
    SecretRule("secret", r"(?<![_-])PIN[ \t]{1,2}(?:(?:for|of)[ \t](?:[\w'-]{1,20}[ \t]){1,4}?)?(?:is|was|enter|type|use)[ \t]{1,2}[\"'`*]{0,3}(?P<v>\d{4,12})(?![\w.:/-]{0,9}[\w%])", ("PIN ",), hits=("If it asks for a PIN enter «482913» (the PIN for the HSM)", "the PIN is «4821».", "The PIN of the smart card is «902117»"), misses=("pin is 4821", "PIN is 4821.5 mm", "PIN is 12", "the PIN has 4821 pulses", "GPIO_PIN is 4821", "PIN is 2024-05-01")),
    # Code
    context_rule(r"pass(?:wor)?d?\[\d{0,3}\][ \t]{0,2}=[ \t]{0,2}\\{0,7}\"(?P<v>[^\"\\\n]{5,100})\\{0,7}\"", "pass[|password[", 'char pass[] = "«{p}»";'),
    context_rule(rf"(?:env\.fetch|getenv|env::var|get_env|getenvironmentvariable)\(\\{{0,7}}[\"']\w{{0,40}}pass(?:word|wd|phrase)?\\{{0,7}}[\"']\){{1,2}}[^\n\"']{{1,40}}\\{{0,7}}[\"']{CHOSEN}", "env.fetch(|getenv(|env::var(|get_env(|getenvironmentvariable(", 'ENV.fetch("DB_PASSWORD") {{ "«velvet!violet32»" }}'.replace("{{", "{").replace("}}", "}")),
    context_rule(r"(?:client|bot|github|gitlab|stripe|login|authenticate)(?:['\"]\))?\([ \t]{0,4}(?:[\w.]{1,40},[ \t]{0,4})?\\{0,7}[\"'](?![0-9a-f]{8}-|pk_(?:live|test)_|[\w.-]{1,40}/[a-z][\w.]{0,30}-)(?P<v>[A-Za-z0-9+/_=-]{20,200})\\{0,7}[\"']\)", "client(|bot(|github(|gitlab(|stripe|login(|authenticate(", "bot = TeleBot('«{A40}»')", "require('stripe')('«{A40}»')", "mail.login(user, '«{A40}»')", generated=True, misses=("client('some-service-with-a-long-name')", 'InferenceClient("meta-llama/Meta-Llama-3-8B-Instruct")')),
    # Commands
    context_rule(rf"put-parameter[ \t](?=[^\n]{{0,300}}securestring)[^\n|;&]{{0,200}}?--value[ \t=]{{1,2}}\\{{0,7}}[\"']?(?!file:){_MIXED}", "put-parameter", "aws ssm put-parameter --name x --value «{A32}» --type SecureString"),
    context_rule(r"(?:enable (?:secret|password)|username (?!and )\S{1,40} (?:privilege \d{1,2} )?(?:secret|password))(?: \d)?[ \t]{1,2}(?P<v>(?=[^\s\"']{0,60}\d)[^\s\"'\\$<>]{6,100})", "enable secret|enable password|username ", "enable secret «{p}»", "username admin privilege 15 secret «{p}»", misses=("your username and password below:`}),(0,B.jsx)(sb,{x:1",)),
    context_rule(rf"(?:echo|printf)[ \t]{{1,4}}(?:-\w{{1,3}}[ \t]{{1,4}})?\\{{0,7}}[\"']?{_RANDOM}(?:\\{{1,4}}n)?\\{{0,7}}[\"']?[ \t]{{0,4}}(?:>{{1,2}}[ \t]{{0,4}}[^\s|;&]{{0,120}}?(?:key|secret|token|passw|credential|\.pem|netrc|pgpass)|\|[^\n|;]{{0,80}}?\b(?:login|auth|passwd|secrets?|token|tee[ \t][^\s]{{0,120}}?(?:key|secret|token|passw|credential))\b)", "echo|printf", "echo «{h32}» > config/master.key", "echo «{n52}» | az devops login", "echo '«{A40}»' | sudo tee /run/secrets/token", generated=True, misses=("echo some_long_variable_name > key.txt",)),
    context_rule(r"(?:echo|printf)[ \t]{1,4}(?:-\w{1,3}[ \t]{1,4}|\\{0,7}[\"']?%s\\{0,7}[\"']?[ \t]{1,4})?(?P<q>\\{0,7}[\"'])(?P<v>(?=[^\"'\n\\]{0,99}[\d!#$%^*~@])[^\"'\n\\]{6,200})(?P=q)[ \t]{0,4}\|[^\n|;#]{0,80}?\b(?:secrets?|vault|passwd|keyring|kubeseal|password-store)\b", "echo|printf", "echo -n '«htz-@&t1Cd-&!1_p»' | gcloud secrets versions add db-pass --data-file=-", misses=("echo '$DB_PASS_2' | vault kv put x", "echo 'no digits here' | gcloud secrets create")),
    context_rule(r"(?:echo|printf)[ \t]{1,4}(?:-\w{1,3}[ \t]{1,4}|\\{0,7}[\"']?%s\\{0,7}[\"']?[ \t]{1,4})?(?P<q>\\{0,7}[\"'])(?P<v>[^\"'\n\\$]{6,200})(?P=q)[ \t]{0,4}\|[ \t]{0,4}(?:sudo[ \t]{1,2})?(?:cryptsetup|restic|borg|gpg|vncpasswd|kinit|smbpasswd)\b", "echo|printf", "echo -n '«regen nebel wolke»' | cryptsetup luksOpen /dev/sdb1 x -d -"),
    context_rule(r"(?:echo|printf)[ \t]{1,4}(?:-\w{1,3}[ \t]{1,4})?\\{0,7}[\"']?(?P<v>[A-Za-z0-9+/]{8,4000}={0,2})\\{0,7}[\"']?[ \t]{0,4}\|[ \t]{0,4}base64[ \t]{1,2}(?:-d|-D|--decode)", "echo|printf", "echo '«U3VubnlSaXZlcjEy»' | base64 -d   # db password", near=("passw", "secret", "credential", "token"), decoded=r"[!-~]{8,200}", misses=("echo 'aGVsbG8=' | base64 -d # no secret",)),
    context_rule(rf"(?:passwd|login|unlock|kinit|stdin|secret|token|auth|cryptsetup|\bsu[ \t])[^\n|;&<]{{0,40}}<<<[ \t]{{0,4}}\\{{0,7}}[\"']?{_MIXED}", "<<<", "passwd --stdin me <<< «{p}»", "vncpasswd -f <<< '«{A16}»'", "su - etl -c 'x' <<< '«velvetviolet32»'", lead=(3, 48)),
    context_rule(rf"(?:impacket-\w{{2,20}}|secretsdump|psexec|wmiexec|smbexec|getuserspns)[^\n|;&]{{0,100}}/[\w.-]{{1,60}}:{_MIXED}@(?:\d{{1,3}}(?:\.\d{{1,3}}){{3}}|[\w-]{{1,60}}\.[\w.-]{{1,60}})", "impacket|secretsdump|psexec|wmiexec|smbexec|getuserspns", "impacket-psexec corp/me:«{A16}»@192.0.2.7"),
    context_rule(rf"(?:-upw|-opw|--user-password|--owner-password)[ \t=]{{1,2}}\\{{0,7}}[\"']?{_MIXED}", "-upw|-opw|--user-password|--owner-password", "pdftotext -upw «{p}» a.pdf"),
    context_rule(rf"bw (?:login[ \t]{{1,4}}\S{{1,80}}|unlock)[ \t]{{1,4}}\\{{0,7}}[\"']?{_MIXED}", "bw login|bw unlock", "bw login me@example.org «{p}»"),
    context_rule(r"(?:sp_addlogin|sp_password|sp_addlinkedsrvlogin)[ \t(]{1,4}(?:[^\n']{0,20}'[^'\n]{0,60}',[ \t]{0,4}){1,4}\\{0,7}'(?P<v>[^'\\\n]{4,100})'", "sp_addlogin|sp_password|sp_addlinkedsrvlogin", "EXEC sp_addlogin 'me', '«{p}»'"),
    context_rule(rf"(?:btoa|b64encode|encode64|base64_encode|base64encode)\(\s{{0,4}}b?\\{{0,7}}[\"'`][\w.@-]{{1,60}}:{_MIXED}", "btoa(|b64encode(|encode64(|base64_encode(|base64encode(", "'Basic ' + btoa('me:«{A24}»')"),
    context_rule(rf"(?:hmac(?:sha)?(?:256|384|512)|signwith|verifywith|hmacshakeyfor|setsigningkey|secretkeyspec|urlsafe(?:timed)?serializer|timedserializer|fernet|cookieparser|cookiesession|aesgcm)[ \t]{{0,2}}\([^\"'`\n)]{{0,60}}b?\\{{0,7}}[\"'`]{_RANDOM}\\{{0,7}}[\"'`]", "hmac|signwith|verifywith|setsigningkey|secretkeyspec|urlsafe|timedserializer|fernet|cookieparser|cookiesession|aesgcm", 'Algorithm.HMAC256("«{A24}»")', 'jwt.signWith(SignatureAlgorithm.HS256, "«{A24}»")', generated=True, misses=('signWith(privateKey, "some-algorithm-name")',)),
    context_rule(r"-u[ \t][\w.@-]{1,60}[ \t]{1,4}(?:[^\n|;&]{0,60}[ \t])?-p(?P<v>(?!\d{1,5}:)(?=[^\s\"'/]{0,60}\d)(?=[^\s\"'/]{0,60}[a-z])[^\s\"'`\\$<>|;&()/=:.-]{8,64})(?=\s|\\|$)", "-u ", "mongo -u me -p«velvetviolet32» db", misses=("docker run -u app -p8080:80 img", "cmd -u me -proot/a1")),
    context_rule(r"add-(?:generic|internet)-password[ \t][^\n|;&]{0,200}?[ \t]-w[ \t]{1,2}\\{0,7}[\"']?(?P<v>[^\s\"'\\$-][^\s\"'\\$]{3,200})", "add-generic-password|add-internet-password", "security add-generic-password -a me -s svc -w «{p}»"),
    context_rule(r"(?:get secrets?[ \t][^\n]{0,200}?jsonpath|secrets? versions access|get-secret-value|vault kv get[^\n]{0,100}-field|op read|pass show|secret get)[^\n]{0,200}?(?<!\\)(?:\r?\n|\\{1,2}n)(?:[ ]{0,6}\d{1,6}[\t\u2192])?(?P<v>(?=[^\s]{0,60}[\d=])[^\s\"'\\{}<>()$]{8,400})(?=[ \t]{0,8}(?:\r?\n|\\{1,2}[rn]|$))", "get secret|secret versions access|secrets versions access|get-secret-value|vault kv get|op read|pass show|secret get", "$ kubectl get secret db -o jsonpath='{.data.password}' | base64 -d\n«{p}»\n", misses=("kubectl get secret db -o jsonpath='{.data}'\nError from server\n", "$ vault kv get secret/db\n2024-05-01T12:00:00Z created this version\n",)),
    context_rule(r"(?:pgp_sym_encrypt|pgp_sym_decrypt|aes_encrypt|aes_decrypt|encryptbypassphrase|decryptbypassphrase)[ \t]{0,2}\([^()\n]{0,100}?(?:,[ \t]{0,4})?\\{0,7}'(?P<v>(?![\w-]{1,40}=\S)[^'\\\n]{4,200})\\{0,7}'[ \t]{0,4}\)", "pgp_sym_encrypt|pgp_sym_decrypt|aes_encrypt|aes_decrypt|encryptbypassphrase|decryptbypassphrase", "SELECT pgp_sym_encrypt(x, '«{p}»')", misses=("pgp_sym_decrypt(c, k, 'ignore-cipher-failure=1')",)),
)
OTHER_SCRIPT_RULES = (
    context_rule(rf"{FOREIGN}(?<=[\"'`\u300c(])(?P<v>(?=[^\s\u300d]{{0,40}}\d)(?=[^\s\u300d]{{0,40}}[a-z])[!-~]{{6,64}}?)[\"'`\u300d)]", alternatives("cjk_password"), "パスワードは「«Canyon=41=river»」です", misses=("パスワードは「password_hash」列にある",)),
    context_rule(rf"{FOREIGN}{_NO_HOST}{CHOSEN}", _OTHER_LITERALS, "пароль: «quokka-ribbon-00» логин", "服务器密码是 «sparrow-oregano-97» 用户名 root", misses=("密码至少8位 2024年", "пароль должен быть 8 символов")),
    context_rule(rf"(?:{OTHER_KEYS})[^\n:\uff1a;{{}}=<>]{{0,60}}?(?:[:\uff1a][ \t]{{0,2}}|[ \t\u662f\u306f\u30fb])[\"'`*\u300c]{{0,3}}{_RANDOM}(?=[\s\"'`*,.\u300d\uff0c\u3002\u3067\u3092]|\\|$)", OTHER_KEYS, "Вот ключ Okta для прода: «00{W40}»\n", "这是 AWS 的正式环境密钥:«{B40}»\n", "Voici la clé AWS de production : «{B40}»\n", generated=True, misses=("la clé primaire : identifiant_de_la_table_x", "ключ словаря: some_variable_name_here")),
    context_rule(rf"{_FOREIGN_WORD}{_IS}(?P<v>{_SIGNED}(?<!\*))(?=\*{{0,3}}[,.;]?(?:[\s\uff0c\u3002]|\\|$))", _OTHER_LITERALS, "비밀번호는 «9#*q+!8_=*&-LvCS!k*E» 입니다", "密码是 «TigreLuna=4313» ,帮我", misses=("密码: a=1&b=2",)),
    context_rule(rf"{_FOREIGN_WORD}{_IS}{DRAWN}", _OTHER_LITERALS, "Пароль от базы: «V44NAdaM3pfIpjE9»", "数据库密码是 «qFSeNZfaVN2SgK»", drawn=True, misses=("密码是 userNameField2", "Пароль: обязательное поле")),
    context_rule(rf"{_FOREIGN_WORD}(?:[ \t]?[:\uff1a]{_OPEN}|[ \t])(?P<v>(?-i:(?=\S{{0,60}}[A-Z])(?=\S{{0,60}}[a-z]))(?=\S{{0,60}}\d)[A-Za-z0-9]{{10,64}}|{_PHRASE}|{_LOWER_PHRASE})(?=[\s,.;!\"'`\uff0c\u3002]|\\|$)", _OTHER_LITERALS, "아이디: me\n비밀번호: «uoJ8EnEpacjg»\n", "密码:«Leaf-Purpose-Chapter-Route»,帮我看看", "パスワード: «broom.urban.heavy.plug» です", "логин me, пароль «sNl3IcEkgOgk» — зайди", misses=("密码: userName2",)),
)
"""Rules whose literals are not ASCII: RE2 cannot select them."""
# fmt: on
