r"""Rules for secrets in sentences, and for commands that print or pass one without naming it.

As in `builder.scrub.context_rules`: the value is the group `v`, case is ignored, and each pattern
starts with one of the literals of its prefilter unless `lead` says otherwise.
"""

# ruff: noqa: E501 - a table: one rule on a line
from __future__ import annotations

from builder.scrub.secret_rule import CHOSEN, context_rule

_OPEN = r"[ \t]{0,2}(?:\\{0,7}[\"'`*(\[]){0,3}"
"""Quotation marks and emphasis before a value."""
_RANDOM = r"(?P<v>[A-Za-z0-9+/_.~=-]{16,200})"
_USER = r"[`'\"]?[\w.@-]{2,60}[`'\"]?"
_NAME = r"(?:password|passwd|passphrase|passcode|pass|pwd|pw)"


_MIXED = (
    r"(?P<v>(?=[^\s\"'\\]{0,99}\d)(?=[^\s\"'\\]{0,99}[a-z])(?!-)[^\s\"'`\\$<>|;&()\[\]@]{5,100})"
)
"""A value with letters and digits."""


# fmt: off
PROSE_RULES = (
    # Sentences
    context_rule(rf"\b{_NAME}(?:[ \t]{{1,2}}(?:-{{1,2}}|->|is now|is still|is|was|to|of)){_OPEN}(?<=[ \t\"'`*(\[]){CHOSEN}", "passw|passphrase|passcode|pass |pass:|pwd|pw ", "Password - «Canyonriver-80»", "the pwd is `«velvetviolet32»`", misses=("password to base64 encode", "PASS: test_login_02", "password is required")),
    context_rule(rf"{_NAME}\b[^\n.]{{0,40}}?(?<=[a-z])[ \t]to{_OPEN}(?<=[ \t\"'`*(\[]){CHOSEN}", "passw|passphrase|pwd", "The password was changed from old to «Canyonfalcon@18».", "I reset the admin password to «velvetviolet32»", misses=("add the password to user2's list",)),
    context_rule(rf"(?:(?<=with )|(?<=and )|(?<=using )|(?<=use )|(?<=, )|(?<=the )|(?<=my )){_NAME}[ \t]{{1,2}}{_OPEN}{CHOSEN}", "password |passwd |passphrase |pass |pwd ", "ssh me@192.0.2.7 with password «velvetviolet32»", "user root, pass «copper_7712»", misses=("with password authentication", "use the pass through2", "and pass arg_1, arg_2")),
    context_rule(rf"(?:credentials?|creds|log ?in|sign ?in)\b[^\n/]{{0,30}}?[ \t]{_OPEN}{_USER}(?::|[ \t]/[ \t]){_OPEN}{CHOSEN}", "credentials|creds are|creds: |login: |login is|login with|log in |sign in ", "credentials are admin:«velvetviolet32»", "login: admin / «Canyon!7river»", misses=("login at localhost:8080", "credentials for host:port")),
    context_rule(rf"{_RANDOM}[`'\"]?[ \t](?:is|was)[ \t](?:not[ \t])?(?:an?[ \t])?(?:in)?valid[ \t](?:[\w-]{{1,20}}[ \t]){{0,2}}(?:key|token|secret|password|credential)", " is not a valid| is not valid| is an invalid| is invalid| was not a valid", "KeyError: '«{W40}»' is not a valid token", lead=(16, 202), generated=True, misses=("some_variable_name_here is not a valid token",)),
    context_rule(r"app(?:lication)?[ _-]?pass(?:word|wd)?\b[^\n]{0,24}?(?P<v>(?-i:[a-z]{4}(?: [a-z]{4}){3}|(?=[A-Za-z ]{0,28}\d)[A-Za-z0-9]{4}(?: [A-Za-z0-9]{4}){5}))(?![ \t]?[A-Za-z0-9])", "app password|app_pass|application password|application_pass|app-pass|application-pass|apppass", "Gmail app password: «{l4} {l4} {l4} {l4}»", 'WP_APP_PASSWORD="«3kQz {A4} {A4} {A4} {A4} {A4}»"', misses=("the app password must have four long words here",)),
    context_rule(r"\.login[ \t]{0,2}\([^()\n]{0,100},[ \t]{0,4}\\{0,7}[\"'](?P<v>(?-i:[a-z]{4}(?: [a-z]{4}){3}))\\{0,7}[\"']", ".login(|.login (", "smtp.login('me@example.org', '«{l4} {l4} {l4} {l4}»')"),
    context_rule(rf"{_RANDOM}[`'\"]?[ \t]as[ \t](?:(?:the|your|my|an?|our)[ \t])?(?:[\w-]{{1,20}}[ \t])?(?:api[ -]key|token|secret|key|bearer)\b", " as the api| as my api| as your api| as an api| as api key| as the token| as my token| as your token| as the secret| as the access| as the bearer| as bearer| as the key", "use «{h40}» as the API key", lead=(16, 202), generated=True, misses=("use some_variable_name as the key",)),
    # Code
    context_rule(r"(?:client|bot|github|gitlab|stripe|login|authenticate)(?:['\"]\))?\([ \t]{0,4}(?:[\w.]{1,40},[ \t]{0,4})?\\{0,7}[\"'](?![0-9a-f]{8}-)(?P<v>[A-Za-z0-9+/_=-]{20,200})\\{0,7}[\"']\)", "client(|bot(|github(|gitlab(|stripe|login(|authenticate(", "bot = TeleBot('«{A40}»')", "require('stripe')('«{A40}»')", "mail.login(user, '«{A40}»')", generated=True, misses=("client('some-service-with-a-long-name')",)),
    # Commands
    context_rule(rf"put-parameter[ \t](?=[^\n]{{0,300}}securestring)[^\n|;&]{{0,200}}?--value[ \t=]{{1,2}}\\{{0,7}}[\"']?(?!file:){_MIXED}", "put-parameter", "aws ssm put-parameter --name x --value «{A32}» --type SecureString"),
    context_rule(r"(?:enable (?:secret|password)|username \S{1,40} (?:privilege \d{1,2} )?(?:secret|password))(?: \d)?[ \t]{1,2}(?P<v>(?=[^\s\"']{0,60}\d)[^\s\"'\\$<>]{6,100})", "enable secret|enable password|username ", "enable secret «{p}»", "username admin privilege 15 secret «{p}»"),
    context_rule(rf"(?:echo|printf)[ \t]{{1,4}}(?:-\w{{1,3}}[ \t]{{1,4}})?\\{{0,7}}[\"']?{_RANDOM}(?:\\{{1,4}}n)?\\{{0,7}}[\"']?[ \t]{{0,4}}(?:>{{1,2}}[ \t]{{0,4}}[^\s|;&]{{0,120}}?(?:key|secret|token|passw|credential|\.pem|netrc|pgpass)|\|[^\n|;]{{0,80}}?\b(?:login|auth|passwd|secrets?|token|tee[ \t][^\s]{{0,120}}?(?:key|secret|token|passw|credential))\b)", "echo|printf", "echo «{h32}» > config/master.key", "echo «{n52}» | az devops login", "echo '«{A40}»' | sudo tee /run/secrets/token", generated=True, misses=("echo some_long_variable_name > key.txt",)),
    context_rule(rf"(?:passwd|login|unlock|kinit|stdin|secret|token|auth|cryptsetup)[^\n|;&<]{{0,40}}<<<[ \t]{{0,4}}\\{{0,7}}[\"']?{_MIXED}", "<<<", "passwd --stdin me <<< «{p}»", "vncpasswd -f <<< '«{A16}»'", lead=(5, 48)),
    context_rule(rf"(?:impacket-\w{{2,20}}|secretsdump|psexec|wmiexec|smbexec|getuserspns)[^\n|;&]{{0,100}}/[\w.-]{{1,60}}:{_MIXED}@(?:\d{{1,3}}(?:\.\d{{1,3}}){{3}}|[\w-]{{1,60}}\.[\w.-]{{1,60}})", "impacket|secretsdump|psexec|wmiexec|smbexec|getuserspns", "impacket-psexec corp/me:«{A16}»@192.0.2.7"),
    context_rule(rf"(?:-upw|-opw|--user-password|--owner-password)[ \t=]{{1,2}}\\{{0,7}}[\"']?{_MIXED}", "-upw|-opw|--user-password|--owner-password", "pdftotext -upw «{p}» a.pdf"),
    context_rule(rf"bw (?:login[ \t]{{1,4}}\S{{1,80}}|unlock)[ \t]{{1,4}}\\{{0,7}}[\"']?{_MIXED}", "bw login|bw unlock", "bw login me@example.org «{p}»"),
    context_rule(r"(?:sp_addlogin|sp_password|sp_addlinkedsrvlogin)[ \t(]{1,4}(?:[^\n']{0,20}'[^'\n]{0,60}',[ \t]{0,4}){1,4}\\{0,7}'(?P<v>[^'\\\n]{4,100})'", "sp_addlogin|sp_password|sp_addlinkedsrvlogin", "EXEC sp_addlogin 'me', '«{p}»'"),
    context_rule(rf"(?:btoa|b64encode|encode64|base64_encode|base64encode)\(\s{{0,4}}b?\\{{0,7}}[\"'`][\w.@-]{{1,60}}:{_MIXED}", "btoa(|b64encode(|encode64(|base64_encode(|base64encode(", "'Basic ' + btoa('me:«{A24}»')"),
    context_rule(rf"(?:hmac(?:sha)?(?:256|384|512)|signwith|verifywith|hmacshakeyfor|setsigningkey|secretkeyspec|urlsafe(?:timed)?serializer|timedserializer|fernet|cookieparser|cookiesession|aesgcm)[ \t]{{0,2}}\([^\"'`\n)]{{0,60}}b?\\{{0,7}}[\"'`]{_RANDOM}\\{{0,7}}[\"'`]", "hmac|signwith|verifywith|setsigningkey|secretkeyspec|urlsafe|timedserializer|fernet|cookieparser|cookiesession|aesgcm", 'Algorithm.HMAC256("«{A24}»")', 'jwt.signWith(SignatureAlgorithm.HS256, "«{A24}»")', generated=True, misses=('signWith(privateKey, "some-algorithm-name")',)),
    context_rule(r"-u[ \t][\w.@-]{1,60}[ \t]{1,4}(?:[^\n|;&]{0,60}[ \t])?-p(?P<v>(?!\d{1,5}:)(?=[^\s\"'/]{0,60}\d)(?=[^\s\"'/]{0,60}[a-z])[^\s\"'`\\$<>|;&()/=:.-]{8,64})(?=\s|\\|$)", "-u ", "mongo -u me -p«velvetviolet32» db", misses=("docker run -u app -p8080:80 img", "cmd -u me -proot/a1")),
    context_rule(r"add-(?:generic|internet)-password[ \t][^\n|;&]{0,200}?[ \t]-w[ \t]{1,2}\\{0,7}[\"']?(?P<v>[^\s\"'\\$-][^\s\"'\\$]{3,200})", "add-generic-password|add-internet-password", "security add-generic-password -a me -s svc -w «{p}»"),
    context_rule(r"(?:get secrets?[ \t][^\n]{0,200}?jsonpath|secrets? versions access|get-secret-value|vault kv get[^\n]{0,100}-field|op read|pass show|secret get)[^\n]{0,200}?(?<!\\)(?:\r?\n|\\{1,2}n)(?:[ ]{0,6}\d{1,6}[\t\u2192])?(?P<v>(?=[^\s]{0,60}[\d=])[^\s\"'\\{}<>()$]{8,400})(?=\s|\\|$)", "get secret|secret versions access|secrets versions access|get-secret-value|vault kv get|op read|pass show|secret get", "$ kubectl get secret db -o jsonpath='{.data.password}' | base64 -d\n«{p}»\n", misses=("kubectl get secret db -o jsonpath='{.data}'\nError from server\n",)),
    context_rule(r"(?:pgp_sym_encrypt|pgp_sym_decrypt|aes_encrypt|aes_decrypt|encryptbypassphrase|decryptbypassphrase)[ \t]{0,2}\([^()\n]{0,100}?(?:,[ \t]{0,4})?\\{0,7}'(?P<v>[^'\\\n]{4,200})\\{0,7}'[ \t]{0,4}\)", "pgp_sym_encrypt|pgp_sym_decrypt|aes_encrypt|aes_decrypt|encryptbypassphrase|decryptbypassphrase", "SELECT pgp_sym_encrypt(x, '«{p}»')"),
)
# fmt: on
