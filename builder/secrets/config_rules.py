r"""Rules for secrets in the files of services and systems, in wire protocols, and in listings.

As in `builder.secrets.context_rules`: the value is the group `v`, case is ignored, and each pattern
starts with one of the literals of its prefilter unless `lead` says otherwise. The syntax is that of
the manual of each program.
"""

# ruff: noqa: E501 - a table: one rule on a line
from __future__ import annotations

from builder.secrets.between import TAB
from builder.secrets.secret_rule import (
    CHOSEN,
    LINE,
    MIXED,
    NO_NAME,
    QUOTE,
    WORD,
    context_rule,
)

_RANDOM = r"(?P<v>[A-Za-z0-9+/_.~=-]{16,400})"
_END = r"(?=\s|\\|[\"']|$)"
_FIELD = r"[^\s\"':;,]{1,100}"
_LINES = rf"(?:{LINE}){{1,2}}"


# fmt: off
CONFIG_RULES = (
    context_rule(r"\\{0,7}\"[\w.-]{1,60}\\{0,7}\"[ \t]{1,4}\\{0,7}\"(?P<v>(?!md5[0-9a-f]{32}|SCRAM)[^\"\\\n]{6,200})\\{0,7}\"(?=[ \t]{0,4}(?:\r?\n|\\{1,4}n|$))", '"', 'userlist.txt (pgbouncer)\n"app" "«{p}»"\nauth_type = plain', near=("pgbouncer", "userlist"), misses=('pgbouncer "a" "md50123456789abcdef0123456789abcdef"',)),
    # Servers
    context_rule(rf"(?:sqlconnectinfo|sqlnamedconnectinfo[ \t]{{1,4}}[\w.-]{{1,40}}[ \t]{{1,4}}\w{{1,20}})[ \t]{{1,4}}[^\s\"']{{1,100}}[ \t]{{1,4}}[\w.-]{{1,60}}[ \t]{{1,4}}{QUOTE}{WORD}", "sqlconnectinfo|sqlnamedconnectinfo", "SQLConnectInfo shop@192.0.2.7 proftpd «{p}»\n", "SQLNamedConnectInfo a mysql shop@db proftpd «{p}»\n"),
    context_rule(rf"login=[\w.@\\-]{{1,60}}:{WORD}", "login=", "cache_peer h parent 8080 0 default login=me:«{p}»\n", near=("cache_peer",), misses=("cache_peer h parent 8080 0 login=PASS",)),
    context_rule(rf"(?:initial_management|agent_recovery|agent_master|agent|default|master|replication|config_file_service_registration|dns){QUOTE}[ \t]{{0,4}}[=:][ \t]{{0,4}}{QUOTE}(?P<v>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})", "initial_management|agent_recovery|agent_master|agent|default|master|replication|config_file_service_registration|dns", 'acl {\n  tokens {\n    agent = "«{u}»"\n  }\n}', '"acl": {"tokens": {"initial_management": "«{u}»"}}', near=("tokens {", "tokens = {", 'tokens": {', 'tokens\\": {'), misses=('session {\n  agent = "0b0ec8d4-6a4a-4a0e-8a0e-6a4a4a0e8a0e"\n}',)),
    # HTTP
    context_rule(r"basic[ \t]{1,4}(?P<v>[A-Za-z0-9+/]{8,400}={0,2})(?![A-Za-z0-9+/=])", "basic ", 'proxy_set_header Authorization "Basic «bWU6cml2ZXI0NDcx»";', "-> Basic «bWU6cml2ZXI0NDcx»", decoded=r"[ -9;-~]{1,80}:[ -~]{3,200}", misses=("Basic authentication with basic functionality1",)),
    context_rule(rf"authorization{QUOTE}\]?[ \t]{{0,4}}[:=, \t][ \t]{{0,4}}{QUOTE}[a-z][\w-]{{1,30}}[ \t]{{1,4}}(?P<v>[\w.~+/-]{{16,4000}}={{0,2}})(?![\w=,])", "authorization", "Authorization: KakaoAK «{h32}»", 'proxy_set_header Authorization "Acme «{A40}»";', generated=True, misses=("Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/s3/aws4_request",)),
    context_rule(rf"form-data; name=\\{{0,7}}\"[\w.\[\]-]{{0,40}}(?:password|passwd|passphrase|pass|pwd|token|secret|api_?key)[\]\d]{{0,3}}\\{{0,7}}\"[^\n\\]{{0,80}}{LINE}{_LINES}(?P<v>[^\s\"'\\<>]{{4,400}}){_END}", "form-data; name=", 'Content-Disposition: form-data; name="password"\r\n\r\n«{p}»\r\n--x--'),
    context_rule(r"(?<=[?&;\"' ])(?:pass|passwd|pwd|pw|senha|mdp|clave|passwort|userpass|user_pass|pass1|j_password)=(?P<v>(?!\w{1,40}[,)]|/)[^\s\"'&<>\\$`;(]{4,200})(?=[\"'&\s\\]|$)", "pass=|passwd=|pwd=|senha=|mdp=|clave=|passwort=|pass1=|j_password=", "log=me&pwd=«{p}»&wp-submit=1", "curl -d 'user=me&pass=«{p}»' https://h/login", near=("&", "--data", "-d ", "cifs", "user="), generated=False, misses=("connect(host, user=username, passwd=passwd) & go", "connect(host, user=username, pwd=password, graph=g)", "if pass=1 and pass=2", "cmd -d user=x pass=$PASS")),
    context_rule(r"<(?:[\w-]{1,30}:)?[\w.-]{0,30}(?:password|(?<=<)pass|passwd|passphrase|secret|apikey|api-key|keymaterial)[ \t][^<>\n]{1,200}>(?P<v>[^<>\s\"'${\\]{4,400})</", "<", '<wsse:Password Type="http://docs#PasswordText">«{p}»</wsse:Password>', near=("password ", "passwd ", "passphrase ", "secret ", "apikey ", "api-key "), misses=('<label class="password form">Password1</label>', '<Password type="x">${pw1}</Password>')),
    context_rule(r"<keymaterial>(?P<v>[^<>\s\\]{8,64})</", "<keymaterial>", "<keyMaterial>«{p}»</keyMaterial>"),
    context_rule(rf"<productkey>(?:{_LINES})?(?:<key>)?(?P<v>[a-z0-9]{{5}}(?:-[a-z0-9]{{5}}){{4}})</", "<productkey>", "<ProductKey>\n  <Key>«{U5}-{U5}-{U5}-{U5}-{U5}»</Key>", misses=("<ProductKey>XXXXX-XXXXX-XXXXX-XXXXX-XXXXX</ProductKey>",)),
    context_rule(r"key content[ \t]{1,20}: (?P<v>[^\s\\\"]{8,64})", "key content", "    Key Content            : «{p}»"),
    context_rule(rf"\d\)[ ]\\{{0,7}}\"(?:requirepass|masterauth|[\w:.-]{{0,40}}(?:password|passwd|secret|token|api_?key))\\{{0,7}}\"{LINE}\d{{1,4}}\)[ ]\\{{0,7}}\"(?P<v>[^\s\"\\]{{6,400}})\\{{0,7}}\"", ") \"|) \\\\", '1) "requirepass"\n2) "«{p}»"', '3) "db_password"\n4) "«{p}»"', lead=(1, 1), misses=('1) "port"\n2) "6379-and-more"', '1) "password"\n2) ""')),
    context_rule(rf"<(?:administrator|user_?|root|admin|auto|logon)?password>(?:{_LINES})?<value>(?P<v>[^<>\s\\]{{4,200}})</", "password>", "<AdministratorPassword>\n  <Value>«{p}»</Value>", "<AutoLogon><Password><Value>«{p}»</Value>", lead=(1, 14)),
    context_rule(rf"<name>[\w.-]{{0,80}}(?:password|passwd|passphrase|secret[._-]?key|secret|token|api[._-]?key)</name>{LINE}<value>{MIXED}</", "<name>", "<name>fs.s3a.secret.key</name>\n  <value>«{B40}»</value>"),
    context_rule(rf"{TAB}(?:true|false){TAB}[^\t\n\\]{{1,200}}{TAB}(?:true|false){TAB}\d{{1,12}}{TAB}[^\t\n\\]{{1,100}}{TAB}(?P<v>[^\s\"'\\]{{12,4000}})", "\ttrue\t|\tfalse\t|\\ttrue\\|\\tfalse\\", ".h.example\tTRUE\t/\tTRUE\t1790000000\tauth_session\t«{h64}»\n", generated=True),
    context_rule(rf"type = (?:b2|s3|swift|azureblob|storj|mega|webdav|ftp|sftp|smb){LINE}(?:[\w ]{{1,40}}= [^\n\\]{{0,200}}{LINE}){{0,8}}(?:key|pass|secret_access_key|access_grant) = (?P<v>[^\s\"'\\]{{6,400}}){_END}", "type = b2|type = s3|type = swift|type = azureblob|type = storj|type = mega|type = webdav|type = ftp|type = sftp|type = smb", "[b]\ntype = b2\naccount = 0012ab\nkey = «{A31}»\n", generated=True, misses=("type = s3\nkey = id\n",)),
    context_rule(rf"(?<!\w)[\w.]{{0,60}}(?:password|passwd|pass|pwd|secret|token|key){LINE}[^\n\[]{{1,100}}\[type=\w{{1,40}}, input_value=\\{{0,7}}[\"'](?P<v>[^\"'\\\n]{{5,400}})\\{{0,7}}[\"'],", "input_value=", "1 validation error for Settings\nsmtp_pass\n  Extra inputs are not permitted [type=extra_forbidden, input_value='«{p}»', input_type=str]", lead=(10, 220), misses=("1 validation error for Settings\ncache_key_name\n  Input should be a number [type=int_parsing, input_value='velvetviolet32', input_type=str]",)),
    context_rule(r"(?:(?<![^\s])|(?<=\\n))(?-i:[A-Z][A-Z0-9_]{1,40}(?:KEY|SECRET|TOKEN))=(?P<v>(?=[^\s\"'`\\$]{0,99}[(){}\[\]&;|<>,])[^\s\"'`\\$]{16,200})(?=\s|\\{1,4}[rn]|$)", "key=|secret=|token=", "LANG=C\nSECRET_KEY=«fBfF*5SCzFYO1(D%!=d6wavl2Hj==Rt%imnk»\nSHELL=/bin/sh", lead=(2, 41), generated=True, drawn=True, misses=("X_TOKEN=f(getTokenFromRequest(request),1)\n", "PAGE_KEY=item.name&PAGE_TOKEN=someLongIdentifier2\n")),
    # Wire protocols
    context_rule(r"(?<=[\"'])(?-i:PASS)[ ](?P<v>[^\s\"'\\]{4,100})\\{1,4}r\\{1,4}n\\{0,7}[\"']", "pass ", 'write(5, "PASS «Winter1984_ig»\\r\\n", 20) = 20\nread(5, "230 ok\\r\\n", 4096) = 8', near=("user ", "331 ", "230 ", "+ok")),
    context_rule(r"(?<=: )(?-i:PASS)[ ](?P<v>[^\s\"'\\]{4,100})(?=\r?\n|\\{1,4}r)", "pass ", "S: 331 Password required\r\nC: PASS «Orange_nimbus.8»\r\nS: 230 Login successful", near=("331 ", "230 ", "+ok"), misses=("CI: PASS all_tests\n",)),
    context_rule(r"(?:(?<=[\s\"'>])|(?<=\n\+)|(?<=\\n)|(?<=\\n\+)|(?<=\\r)|(?<=\\t))(?-i:PASS)[ \t](?::)?" + NO_NAME + r"(?P<v>(?=[^\s\"'\\]{0,60}[\d!#$%^*~@-]|(?-i:[A-Z]{0,20}[a-z]{1,20}[A-Z]))[^\s\"'\\/]{4,100})(?=\s|\\[rn]|[\"']|$)", "pass ", "220 ftp\r\nUSER me\r\nPASS «{p}»\r\n", 'strace ftp\nwrite(3, "PASS «{p}»\\r\\n", 20)', "ftp -n h\nquote PASS «{p}»\n", near=("\nuser ", '"user ', "ftp", "pop3", " pop ", "331 ", "nick ", "irc", "+ok"), misses=("PASS test_one\nFAIL test_two\nuser x", "PASS: 12 user tests")),
    context_rule(rf"\b(?-i:LOGIN)[ \t]{QUOTE}[\w.@+-]{{2,80}}{QUOTE}[ \t](?![a-z]{{1,40}}\s){QUOTE}(?P<v>[^\s\"'\\{{(]{{5,100}}){QUOTE}(?=\s|\\|$)", "login ", 'a1 LOGIN me@example.org "«{p}»"\r\na1 OK Logged in', near=("imap", " ok ", "logged in", "authenticat", "capability"), misses=("imap: LOGIN is disabled before STARTTLS", "CREATE LOGIN me WITH PASSWORD",)),
    context_rule(rf"334 UGFzc3dvcmQ6[^\n]{{0,20}}{LINE}(?:[-~<>CSc: ]{{0,8}}[ \t])?(?P<v>(?=[a-z]{{0,200}}(?-i:[A-Z0-9]))[A-Za-z0-9+/]{{4,200}}={{0,2}})(?=\s|\\|$)", "334 ugfzc3dvcmq6", "<- 334 UGFzc3dvcmQ6\n -> «{A20}==»\n", misses=("expects 334 UGFzc3dvcmQ6\n    return callback(x)",)),
    context_rule(r"(?:auth(?:enticate)?[ \t]{1,2}plain|mechanism=\\{0,7}[\"']plain\\{0,7}[\"']>)[ \t]{0,2}(?P<v>[A-Za-z0-9+/]{8,400}={0,2})(?=\s|\\|[\"'<]|$)", "auth plain|authenticate plain|mechanism=", "AUTH PLAIN «AG1lAHJpdmVyNDQ3MQ==»\r\n", decoded="[^\0]{0,80}\0[^\0]{1,80}\0[^\0]{3,200}"),
    context_rule(rf"authinfo pass[ \t]{WORD}", "authinfo pass", "AUTHINFO PASS «{p}»\r\n"),
    context_rule(rf"\b(?:nickserv|ns|msg nickserv|q@cserve\.quakenet\.org)[ \t:]{{1,3}}(?:identify|auth)[ \t]{{1,2}}(?:{_FIELD}[ \t]{{1,2}})?{WORD}", "nickserv identify|nickserv :identify|ns identify", "/msg NickServ IDENTIFY me «{p}»\n"),
    context_rule(rf"[/\s]oper[ \t]{_FIELD}[ \t]{MIXED}{_END}", " oper |/oper |\noper ", "/oper me «{p}»\n", near=("irc", "nick", "/oper"), misses=("the oper team had 12h of irc",)),
    context_rule(rf"(?-i:AUTH)(?:[ \t]{{1,2}}default)?[ \t]{{1,2}}{QUOTE}{CHOSEN}", "auth ", "redis-cli -h cache AUTH «velvetviolet32»\n", "127.0.0.1:6379> AUTH «river4471»\n", near=("redis", "6379", "+ok"), misses=("use AUTH option2x with redis",)),
    context_rule(r"auth\\{0,4}r?\\{0,4}n?\r?\n?\$\d{1,3}(?:\\{1,4}r|\r)?(?:\\{1,4}n|\n)(?P<v>[^\s\"'\\]{4,200})", "auth\\r|auth\r|auth\\n|auth\n|auth\\\\r", "*2\\r\\n$4\\r\\nAUTH\\r\\n$9\\r\\n«{p}»\\r\\n", near=("$4",)),
    context_rule(rf"acl setuser[ \t]{_FIELD}[^\n]{{0,60}}?[ \t]>(?P<v>[^\s\"'\\]{{4,200}})", "acl setuser", "ACL SETUSER me on >«{p}» ~* +@all"),
    context_rule(r"(?<=[ \t])on[ \t](?:[^\s>]{1,20}[ \t]){0,4}>(?P<v>[^\s\"'\\]{4,200})", "on >|on ~|on reset >|on resetpass", "user default on >«{p}» ~* &* +@all", near=("user ", "setuser")),
    context_rule(rf"auth-pass[ \t]{{1,4}}(?:{_FIELD}[ \t]{{1,4}})?{QUOTE}{WORD}", "auth-pass", "sentinel auth-pass mymaster «{p}»", misses=("auth-pass <master> <password>",)),
    # Services
    context_rule(rf"(?:stats auth|\ballow)[ \t]{{1,4}}{QUOTE}[\w.@-]{{1,60}}:(?P<v>(?=[^\s\"'\\]{{0,60}}\d)[^\s\"'\\:/,;()]{{4,100}}){_END}", "stats auth|allow ", "  stats auth admin:«{p}»\n", "set httpd port 2812\n  allow admin:«feather3798»\n", near=("stats", "httpd", "monit", "bind ", "port 2812"), misses=("allow access:level2 to the port", "allow 192.168.1.1:8080")),
    context_rule(rf"insecure-password[ \t]{{1,4}}{WORD}", "insecure-password", "user me insecure-password «{p}»"),
    context_rule(r"\$user\d{1,3}\$=(?P<v>[^\s/\"'\\][^\s\"'\\]{5,100})", "$user", "$USER5$=«{p}»\n", generated=False, misses=("$USER1$=/usr/lib/nagios/plugins",)),
    context_rule(rf"(?:static-auth-secret|lt-cred-mech[^\n]{{0,10}}\nuser)=(?:{_FIELD}:)?{WORD}", "static-auth-secret|lt-cred-mech", "static-auth-secret=«{A32}»"),
    context_rule(r"register[ \t]{0,4}=>[ \t]{0,4}[\w.+-]{1,60}:(?P<v>[^\s\"'@:\\]{4,100})@", "register =>|register=>", "register => 1001:«{p}»@sip.example.org"),
    context_rule(rf"\bsecret[ \t]{{1,8}}{QUOTE}(?P<v>[A-Za-z0-9+/]{{16,200}}={{0,2}}){QUOTE};", "secret", 'key "rndc" {{ algorithm hmac-sha256; secret "«{B43}=»"; };', generated=True),
    context_rule(rf"(?<![a-z])(?:secret|psk|authtoken|auth_key)(?:_?\d{{1,2}})?[ \t]{{0,4}}[=:][ \t]{{0,4}}{QUOTE}(?P<v>(?=[^\s\"'\\]{{0,60}}[!#$%^*~@])(?=[^\s\"'\\]{{0,60}}\d)(?=[^\s\"'\\]{{0,60}}[a-z])[^\s\"'\\<>|;&(){{}}\[\]`,$]{{8,64}})(?=[\"'\s\\]|$)", "secret|psk|authtoken|auth_key", "secret = «Maple!92river»\n", 'psk: "«copper#7712»"', misses=("secret = os.environ@2", "secret: !vault x1y2z3a4", "secret=$SECRET_12")),
    context_rule(rf"(?<=:)[ \t]{{0,2}}psk[ \t]{{1,4}}(?=\\{{0,7}}[\"']|[^\s]{{0,60}}\d){QUOTE}(?P<v>[^\s\"'\\]{{6,200}})", "psk", '192.0.2.1 %any : PSK "«{p}»"', lead=(0, 2), misses=("psk: a pre-shared key", "GNUTLS_KX_PSK: PSK key-exchange algorithm")),
    context_rule(r"(?<=:)[ \t]{0,2}(?:xauth|eap|ntlm)[ \t]{1,4}\\{0,7}\"(?P<v>[^\s\"\\]{4,200})", "xauth|eap \"|eap \\|ntlm", 'me : XAUTH "«{p}»"', lead=(0, 2)),
    context_rule(rf"\b(?-i:pass(?:word)?)[ \t]{{1,4}}{QUOTE}(?P<v>[^\s\"'\\=:(){{}}<>$,;]{{5,100}}){QUOTE}(?={LINE}|$)", "pass |password ", "account work\nhost smtp.example.org\nuser me\npassword «sunflower»\n", "poll pop.example.org proto pop3 user me pass «sunflower»\n", near=("\nuser ", "\naccount ", "\nlogin ", "poll "), misses=("password field:\nuser x", "poll the queue, pass $PW")),
    context_rule(rf"\bset[ \t](?:imap|smtp|pop)_pass(?:word)?[ \t]{{0,2}}=[ \t]{{0,2}}{QUOTE}{WORD}", "set imap_pass|set smtp_pass|set pop_pass", 'set imap_pass = "«{p}»"'),
    context_rule(r"[\w.@+-]{1,80}:\{(?:plain|cleartext)\}(?P<v>[^\s:\"'\\]{4,200})", "{plain}|{cleartext}", "me@example.org:{PLAIN}«{p}»:1000:1000", lead=(2, 81)),
    context_rule(r"\{(?:ssha\d{0,3}|sha|smd5|crypt|pbkdf2[\w-]{0,10}|argon2\w{0,2}|blf-crypt|ssha-?512)\}(?P<v>[^\s\"'\\<>]{20,200})", "{ssha|{sha}|{smd5}|{crypt}|{pbkdf2|{argon2|{blf-crypt}", "userPassword: {SSHA}«{B40}»", generated=True),
    # Unattended installs and accounts
    context_rule(rf"rootpw[ \t]{{1,4}}(?:--(?!iscrypted)[\w-]{{1,20}}[ \t]{{1,4}}){{1,3}}{QUOTE}{WORD}", "rootpw", "rootpw --plaintext «{p}»\n"),
    context_rule(r"\S{0,80}passw\S{0,40}[ \t]{1,4}(?:password|string)[ \t]{1,4}(?P<v>[^\s\"'\\<>|;&]{4,200})(?=\s|\\|[\"']|$)", "passw", "d-i passwd/root-password password «{p}»\n", "mysql-server mysql-server/root_password password «{p}»\n", near=("d-i ", "debconf", "/root_password", "/root-password", "/user-password", "/app-pass", "/admin-pass"), misses=("passwd/user-password password \nd-i x",)),
    context_rule(r"wireless_w(?:pa|ep)[ \t]{1,4}string[ \t]{1,4}(?P<v>[^\s\\\"]{8,64})", "wireless_w", "d-i netcfg/wireless_wpa string «{p}»"),
    context_rule(rf"chpasswd:(?:{LINE}[a-z]{{4,8}}:[ \t]{{0,2}}[\w|>-]{{1,8}}){{1,3}}(?P<v>(?:{LINE}(?:- )?[\w.-]{{1,32}}:(?!random|R\b)[^\s\"'\\]{{4,100}}){{1,20}})", "chpasswd:", "chpasswd:\n  list: |«\n    me:river4471\n    root:Maple!92»\n  expire: false\n"),
    context_rule(rf"chpasswd[^\n]{{0,40}}<<-?[ \t]{{0,2}}[\"'\\]{{0,3}}\w{{2,12}}[\"']?(?P<v>(?:{LINE}[\w.-]{{1,32}}:[^\s\"'\\]{{4,100}}){{1,20}})", "chpasswd", "chpasswd <<EOF«\nroot:river4471»\nEOF"),
    context_rule(rf"chpasswd[^\n]{{0,40}}<<<[ \t]{{0,2}}{QUOTE}[\w.-]{{1,60}}:{WORD}", "chpasswd", "chpasswd <<< 'root:«{p}»'"),
    context_rule(rf"password[ \t]{{1,12}}(?:/t[ \t])?reg_\w{{2,10}}[ \t]{{1,12}}(?:/d[ \t]{{1,4}})?{QUOTE}{WORD}", "password", "    DefaultPassword    REG_SZ    «{p}»", "reg add HKLM\\x /v DefaultPassword /t REG_SZ /d «{p}» /f"),
    # Network equipment
    context_rule(rf"snmp-server community[ \t]{{1,4}}(?:\d[ \t])?{MIXED}{_END}", "snmp-server community", "snmp-server community «{A17}» RW"),
    context_rule(rf"\b(?:rocommunity6?|rwcommunity6?|com2sec(?:[ \t]\S{{1,40}}){{2}}|trapcommunity)[ \t]{{1,8}}{MIXED}{_END}", "rocommunity|rwcommunity|com2sec|trapcommunity", "rocommunity «{A17}» 192.0.2.0/24", "com2sec local 127.0.0.1 «{A17}»"),
    context_rule(rf"\bsnmp(?:walk|get|set|bulkwalk|bulkget|table)\b[^\n|;&]{{0,80}}?[ \t]-c[ \t]{{0,2}}{QUOTE}{MIXED}{_END}", "snmpwalk|snmpget|snmpset|snmpbulk|snmptable", "snmpwalk -v2c -c «{A17}» 192.0.2.1"),
    context_rule(rf"(?:isakmp key|pre-shared-key(?:[ \t](?:local|remote|ascii-text|hexadecimal|address \S{{1,40}} key))?|(?:tacacs|radius)(?:[- ]server)?[^\n]{{0,40}} key|neighbor \S{{1,40}} password|ppp (?:chap|pap[^\n]{{0,40}}) password|wpa-psk(?: ascii)?|plain-text-password-value|key-string|super password(?:[^\n]{{0,20}}(?:cipher|simple))|password (?:cipher|simple)|encrypted-password|plaintext-password|pre-shared-secret|authentication-key|md5 \d{{1,3}} key|message-digest-key \d{{1,3}} md5|set (?:psksecret|passwd|password)(?=[ \t]{{1,4}}enc ))[ \t]{{1,4}}(?:[0-9][ \t]{{1,2}}|enc[ \t]{{1,2}})?{QUOTE}(?P<v>(?=[^\s\"'\\]{{0,99}}\d)[^\s\"'\\<>|;]{{5,200}}){_END}", "isakmp key|pre-shared-key|tacacs|radius-server|radius server|neighbor |ppp chap|ppp pap|wpa-psk|plain-text-password-value|key-string|super password|password cipher|password simple|encrypted-password|plaintext-password|pre-shared-secret|authentication-key|md5 |message-digest-key|set psksecret|set passwd|set password", "crypto isakmp key «{A16}» address 192.0.2.1", "tacacs-server key 7 «{A16}»", " neighbor 192.0.2.1 password «{p}»", "    set psksecret ENC «{A40}»", 'pre-shared-key ascii-text "«{p}»"', misses=("the radius of a key 12px", "set password policy2 off")),
    context_rule(rf"set (?:psksecret|passwd|password|auth-pwd)[ \t]{{1,4}}{QUOTE}(?P<v>(?=[^\s\"'\\]{{0,99}}\d)[^\s\"'\\<>|;]{{8,200}}){_END}", "set psksecret|set passwd|set password|set auth-pwd", "        set psksecret «{l7}-{l6}-4384»", misses=("set password policy2 off",)),
    context_rule(rf"createuser \S{{1,40}}[ \t](?:md5|sha\S{{0,4}})[ \t]{{1,4}}{QUOTE}[^\s\"'\\<>|;]{{8,100}}{QUOTE}[ \t]{{1,4}}(?:aes|des|3des)\S{{0,4}}[ \t]{{1,4}}{QUOTE}(?P<v>[^\s\"'\\<>|;]{{8,100}}){_END}", "createuser ", "createUser me SHA canyonriver AES «velvetviolet»"),
    context_rule(rf"(?:createuser \S{{1,40}}[ \t](?:md5|sha\S{{0,4}})|auth (?:md5|sha\S{{0,4}})|priv (?:des|3des|aes)(?: \d{{3}})?)[ \t]{{1,4}}{QUOTE}(?P<v>(?=[^\s\"'\\]{{0,60}}(?-i:[A-Z\d]))[^\s\"'\\<>|;]{{8,100}}){_END}", "createuser |auth md5|auth sha|priv des|priv 3des|priv aes", 'createUser me SHA "«{p}x1»" AES', "snmp-server user me grp v3 auth sha «{A16}» priv aes 128 «{A18}»", near=("snmp", "createuser")),
    context_rule(rf"pre-shared-key={QUOTE}(?!\$){WORD}", "pre-shared-key=", "set default wpa2-pre-shared-key=«{p}»"),
    context_rule(r"at\+cwjap\w{0,6}=\\{0,7}\"[^\"\n]{0,60}\",\\{0,7}\"(?P<v>[^\"\\\n]{4,64})", "at+cwjap", 'AT+CWJAP="home","«{p}»"'),
    # SQL
    context_rule(r"set password(?: for [^\n=;]{1,100})?[ \t]{0,2}(?:=|to)[ \t]{0,2}(?:password[ \t]{0,2}\()?\\{0,7}[\"'](?P<v>[^\s\"'\\][^\"'\\\n]{3,200})\\{0,7}[\"']", "set password", "SET PASSWORD FOR 'a'@'%' = '«{p}»';", "SET PASSWORD = PASSWORD('«{p}»');", misses=("'SET password = ' . ($password == '' ? 'x' : 'y')",)),
    context_rule(rf"identified[ \t]{{1,4}}by[ \t]{{1,4}}(?!values|external|global|password){MIXED}", "identified", "CREATE USER app IDENTIFIED BY «Maple92River»;", near=("create user", "alter user", "grant ", "create role", "alter role", "connect to "), misses=("params IDENTIFIED BY id-PBES2}, ...",)),
    context_rule(r"(?<![.\w])password[ \t]{0,2}\(\\{0,7}'(?P<v>[^'\\\n]{4,100})\\{0,7}'\)", "password(|password (", "UPDATE user SET authentication_string=PASSWORD('«{p}»')", near=("set ", "update ", "insert ", "grant ", "identified"), misses=("set form.password('Confirm password')",)),
    context_rule(rf"connect to \w{{1,40}} user \w{{1,40}} using {QUOTE}{WORD}", "connect to ", "db2 connect to shop user me using «{p}»"),
    context_rule(r"dbi:[^\n]{1,200}?,[ \t]{0,4}\\{0,7}(?:[\"'][^\"'\n]{0,60}[\"']|\$\w{1,40}),[ \t]{0,4}\\{0,7}[\"'](?P<v>[^\"'\\\n]{4,100})\\{0,7}[\"']", "dbi:", "DBI->connect('dbi:mysql:shop', 'app', '«{p}»')", 'DBI.connect("dbi:Pg:shop", $user, "«{p}»")', misses=("connect('dbi:mysql:shop', $user, $password2)",)),
    # Infrastructure and packages
    context_rule(rf"(?:password|passwd|secret|token|api_?key)\\{{0,7}}\"[ \t]{{0,2}}:[ \t]{{0,2}}\{{(?:\s|\\{{1,4}}n){{0,20}}(?:\\{{0,7}}\"(?:type|sensitive)\\{{0,7}}\"[ \t]{{0,2}}:[ \t]{{0,2}}[\w\"\\]{{1,20}},(?:\s|\\{{1,4}}n){{0,20}}){{0,2}}\\{{0,7}}\"value\\{{0,7}}\"[ \t]{{0,2}}:[ \t]{{0,2}}\\{{0,7}}\"{MIXED}\\{{0,7}}\"", 'password":|passwd":|secret":|token":|api_key":|apikey":|password\\":|secret\\":|token\\":', '"db_password": {"sensitive": true, "type": "string", "value": "«{p}»"}', misses=('"token": {"value": "string"}',)),
    context_rule(rf"name=\\{{0,7}}\"[\w.]{{0,40}}(?:password|passwd|secret|apikey)\\{{0,7}}\"[^<>\n]{{0,80}}>(?:{LINE})?<value>{MIXED}</", "name=", '<setting name="Password" serializeAs="String"><value>«{p}»</value>', near=("<value>",)),
    context_rule(r"random_password\\{0,7}\"[^\0]{0,800}?\bresult\\{0,7}\"[ \t]{0,4}:[ \t]{0,4}\\{0,7}\"(?P<v>[^\"\\\n]{6,200})", "random_password", '"type": "random_password", "instances": [{"attributes": {"length": 20, "result": "«{p}»"}}]'),
    context_rule(rf"kv (?:put|patch)[ \t][^\n|;&]{{1,120}}?[ \t][\w.-]{{1,40}}={QUOTE}{CHOSEN}", "kv put|kv patch", "vault kv put secret/app db=«velvet!violet32»", misses=("vault kv put secret/app ttl=30m max=200",)),
    context_rule(rf"basic[_-]?auth{QUOTE}[ \t]{{0,2}}[:=][ \t]{{0,2}}{QUOTE}[\w.@-]{{1,60}}:{CHOSEN}", "basicauth|basic_auth|basic-auth", "basicAuth: me:«velvet!violet32»"),
    context_rule(r"\"?random_password\"?[^{}]{0,100}\{[^{}]{0,600}?\bresult\\{0,7}\"?[ \t]{0,8}[=:][ \t]{0,4}\\{0,7}\"(?P<v>[^\"\\\n]{6,200})", "random_password", 'resource "random_password" "db" {\n    length = 40\n    result = "«{A40}»"\n}'),
    context_rule(r"/t/(?P<v>[a-z]{2}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?=/|\s|$)", "/t/", "https://conda.anaconda.org/t/«tk-{u}»/acme"),
    context_rule(r"(?:github-oauth|gitlab-token|gitlab-oauth|bitbucket-oauth|forgejo-token|bearer)\\{0,7}\"[ \t]{0,2}:[ \t]{0,2}\{(?:\s|\\{1,4}n){0,20}\\{0,7}\"[\w.-]{1,80}\\{0,7}\"[ \t]{0,2}:[ \t]{0,2}\\{0,7}\"(?P<v>[^\"\\\s]{16,200})", "github-oauth|gitlab-token|gitlab-oauth|bitbucket-oauth|forgejo-token|bearer", '{{"github-oauth": {{"github.com": "«{h40}»"}}}}'.replace("{{", "{").replace("}}", "}")),
    context_rule(rf"(?<=[\"'])(?:\w{{0,30}}[:_])?(?:key|primarykey|secondarykey)[12]?\\{{0,7}}[\"'][ \t]{{0,2}}:[ \t]{{0,2}}\\{{0,7}}[\"']{_RANDOM}\\{{0,7}}[\"']", "key", '{"Jwt": {"Issuer": "acme", "Key": "«{A44}»"}}', 'az cognitiveservices account keys list\n{"key1": "«{h32}»"}', near=("jwt", "azureopenai", "cognitive", "issuer", "secondarykey", '"key2"', "accesskey"), generated=True, lead=(0, 31), misses=('{"issuer": "x", "key": "some-cache-key-of-words"}',)),
    context_rule(r"mollie[^\n]{0,100}?(?P<v>(?:test|access)_[A-Za-z0-9]{30})(?![\w-])", "mollie", "mollie.setApiKey('«test_{A30}»')", generated=True, misses=("mollie test_updates_of_the_whole_dashboards",)),
    context_rule(rf"\b\w{{0,30}}(?:_session|_sk|_skey|skey)[ \t]{{0,2}}=[ \t]{{0,2}}{QUOTE}(?P<v>(?=[^\s\"']{{0,200}}\d)[A-Za-z0-9+/]{{32,200}}={{0,2}})(?=[\"'\s;\\]|$)", "_session=|_session =|skey=|skey =|_sk=|_sk =", 'export BW_SESSION="«{B86}==»"', "skey = «{A40}»", lead=(0, 31), generated=True),
    context_rule(r"\{(?:default_|db_|admin_)?(?:password|passwd|pass|secret),[ \t]{0,2}(?:<<)?\\{0,7}\"(?P<v>(?=[^\"\n]{0,99}[\d!#$%^*-])[^\"\\\n]{5,200})\\{0,7}\"", "{password,|{passwd,|{pass,|{secret,|{default_pass|{db_pass|{admin_pass", '{default_pass, <<"«{p}»">>}', '{password, "«{p}»"}.', misses=('{password, "string"}', '{secret, "name"}')),
    context_rule(r"<pass(?:word)?[ \t][^<>\n]{1,60}>(?P<v>[^\s<>]{6,200})</pass", "<pass ", '<Pass encoding="base64">«TWFuZ28xOTkxLQ==»</Pass>'),
)
# fmt: on
