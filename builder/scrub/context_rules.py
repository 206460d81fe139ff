r"""Rules for values that their surroundings mark as secret: headers, URLs, commands.

The value is the group `v`; case is ignored, and each pattern starts with one of the literals of its
prefilter, which are in lower case. Placeholders (`$PASSWORD`, `<token>`, …) and the words of
documentation are not secrets.
"""

# ruff: noqa: E501 - a table: one rule on a line
from __future__ import annotations

from builder.scrub.secret_rule import LINE, context_rule

_Q = r"(?:\\{0,7}[\"'])?"
"""A quotation mark, escaped or not, or none."""
_WORD = r"(?P<v>[^\s\"'`\\$<>|;&]{4,200})"
"""A value on a command line."""
_MIXED = (
    r"(?P<v>(?=[^\s\"'\\]{0,99}\d)(?=[^\s\"'\\]{0,99}[a-z])(?!-)[^\s\"'`\\$<>|;&()\[\]]{5,100})"
)
"""A value that no word is: with letters and digits."""
_NO_CODE = r"(?![^\s\"']{0,99}(?:[{}]|,[\w$]{1,40}[:=]|!\d,))"
"""No minified code or style sheet follows."""
_STRING = r"\\{0,7}[\"'][^\"'\\\n]{0,200}\\{0,7}[\"']"
"""A string of code, escaped or not."""
_ARGUMENTS = rf"[ \t]{{0,4}}\((?:\s|\\{{1,4}}n){{0,24}}(?:(?:{_STRING}|\$?[\w.>-]{{1,60}}),(?:\s|\\{{1,4}}n){{0,20}})?{_STRING},(?:\s|\\{{1,4}}n){{0,20}}\\{{0,7}}[\"']"
"""The arguments of a call up to the one after a name of a user."""
_BARE = r"[^\s\"'`<>\\;,&|(){}\[\]]"
_REST = r"\b[^\n|;&]{0,200}?[ \t]"
"""The text between a command and its option, on one line and in one command."""
_SQL = ("create user", "alter user", "grant ", "create role", "alter role", "connect to ")
_GAP = r"(?:\s|\\{1,4}[nrt]|\d{1,6}[\t\u2192]|(?<=\n)[+-]|(?<=\\n)[+-]){1,24}"
"""Space and line ends, also escaped or with the numbers that a viewer puts before lines."""
_STDIN_READERS = r"secrets? (?:set|put|create|add|versions add|bulk)|env add|kinit|cryptsetup|vncpasswd|smbpasswd"
"""Commands that read a secret from standard input."""
_TABS = r"(?:\t|\\{1,4}t)"
_SEP = rf"{_Q}\]?[ \t]{{0,4}}[:=][ \t]{{0,20}}{_Q}"


# fmt: off
CONTEXT_RULES = (
    # Headers and cookies
    context_rule(r"bearer[ \t]{1,4}(?P<v>[\w.~+/=:-]{16,4000})", "bearer", "authorization: bearer «{A40}»", '"Authorization": "Bearer «{L32}»"', generated=True, misses=("Bearer token-based-authentication", "bearer authenticationMiddleware", "Bearer {token}")),
    context_rule(rf"authorization{_SEP}(?:basic|token|apikey|digest|negotiate|key|ssws|bot|oauth|jwt|splunk|geniekey|pat|private-token|api[_-]?key|api[_-]?token)[ \t]{{1,4}}(?!realm=|username=)(?P<v>[\w.~+/=:-]{{8,4000}})", "authorization", '"Authorization": "Basic «{A40}»"', "Authorization: Token «{A40}»", r"{\"Authorization\": \"Token «{A40}»\"}"),
    context_rule(rf"authorization{_SEP}(?P<v>[\w.~+/=-]{{16,4000}})(?![\w.~+/=(-])", "authorization", "Authorization: «{A40}»", generated=True, misses=("authorization: AWS4-HMAC-SHA256", "authorization = base64.b64encode2(x)")),
    context_rule(r"cookie(?:\\{0,7}[\"'])?[ \t]{0,4}[:=][^\n\"']{0,400}?(?:session|sess|sid|auth|token|jwt)[\w.-]{0,20}=(?P<v>[\w.~%+/-]{16,4000})", "cookie", "Cookie: theme=dark; sessionid=«{A40}»; a=b", "Set-Cookie: connect.sid=«s%3A{A32}»; Path=/"),
    context_rule(r"(?:phpsessid|jsessionid|_gitlab_session|asp\.net_sessionid|connect\.sid|remember_token|laravel_session)=(?P<v>[\w.~%+/-]{16,400})", "phpsessid=|jsessionid=|_gitlab_session=|asp.net_sessionid=|connect.sid=|remember_token=|laravel_session=", "PHPSESSID=«{n26}»"),
    context_rule(r"(?:-b|--cookie)[ \t=]{1,2}\\{0,7}[\"']?[^\n\"']{0,400}?(?:session|sess|sid|auth|token|jwt)[\w.-]{0,20}=(?P<v>[\w.~%+/-]{16,4000})", "-b |--cookie", "curl -b 'session=«{W64}»' https://h"),
    context_rule(r"(?:li_at|sapisid|__secure-\dpsid)=(?P<v>[\w.~%+/-]{20,4000})", "li_at=|sapisid=|__secure-1psid=|__secure-3psid=", "Cookie: li_at=«{W150}»; lang=en", generated=True),
    # URLs
    context_rule(r"(?<!github)://[^\s\"'<>/@:]{0,200}:(?P<v>[^\s\"'<>/@\\]{3,200}(?:@[^\s\"'<>/@:\\]{1,60}(?=@))?)@[\w\[.-]", "://", "postgres://app:«{p}»@db:5432/x", "redis://:«{p}»@cache:6379", "https://x-access-token:«{A40}»@github.com/o/r.git", misses=("postgres://user:password@localhost/x mysql://root:root@db", "https://user@example.org:8080/path", "github://org:repo@sha/path")),
    context_rule(r"://(?P<v>[0-9a-f]{32})(?::[0-9a-f]{32})?@[\w\[.-]", "://", "https://«{h32}»@o1.ingest.sentry.io/42"),
    context_rule(r"(?<=://)(?P<v>[\w.-]{20,300}):x-oauth-basic@", ":x-oauth-basic@", "git clone https://«{h40}»:x-oauth-basic@git.example.org/a/b.git", lead=(20, 300)),
    context_rule(r"://(?P<v>[\w.-]{20,300}):?@[\w\[.-]", "://", "https://«{A40}»@github.com/o/r.git", generated=True),
    context_rule(r"/bot(?P<v>\d{8,10}:[\w-]{30,50})", "/bot", "https://api.telegram.org/bot«{d10}:AA{W33}»/getMe"),
    context_rule(r"[?&]key=(?P<v>[\w.~%+/=-]{20,400})", "?key=|&key=", "https://h/v1?key=«{A39}»"),
    context_rule(r"[?&]secret=(?P<v>[a-z2-7]{16,64})", "?secret=|&secret=", "otpauth://totp/a:b?secret=«{U32}»&issuer=a"),
    context_rule(r"(?:[ \t\"']code=|\\{0,7}\"code\\{0,7}\"[ \t]{0,4}:[ \t]{0,4}\\{0,7}\")(?P<v>[\w.~%+/=-]{16,400})", " code=|\"code=|'code=|\"code|\\\"code", "curl -d grant_type=authorization_code -d code=«{A32}» https://h/token", '{"grant_type": "authorization_code", "code": "«{A32}»"}', near=("authorization_code",), generated=True, misses=("grant_type=authorization_code -d code=code_from_callback",)),
    context_rule(r"[?&](?:appid|apikey|app_key|code|jwt|auth|ticket|sid|pat|hapikey)=(?P<v>[\w.~%+/=-]{20,400})", "?jwt=|&jwt=|?auth=|&auth=|?ticket=|&ticket=|?sid=|&sid=|?pat=|&pat=|?hapikey=|&hapikey=|?appid=|&appid=|?apikey=|&apikey=|?app_key=|&app_key=|?code=|&code=", "https://api.openweathermap.org/x?q=a&appid=«{h32}»", generated=True),
    context_rule(r"(?<=[?&])sig=(?P<v>[\w.~%+/=-]{16,400})", "sig=", "https://a.blob.core.windows.net/c?sp=r&sig=«{A44}»"),
    context_rule(r"(?<=[?&-])signature=(?P<v>[\w.~%+/=-]{16,400})", "signature=", "https://s3/x?X-Amz-Signature=«{h64}»"),
    context_rule(r"security-token=(?P<v>[\w.~%+/=-]{16,4000})", "security-token=", "https://s3/x?X-Amz-Security-Token=«{A90}»"),
    # Connection strings and files of credentials
    context_rule(r"(?<=;)(?:password|pwd)=\{(?P<v>(?=[^\s\"'{}()\[\]]{0,60}\d)(?=[^\s\"'{}()\[\]]{0,60}[!#$%&*@^+~?;-])[^\s\"'{}()\[\]]{6,100})\}", "password={|pwd={", "Driver={ODBC};Server=db;Uid=sa;Pwd={«{p}»};Encrypt=yes", misses=('f"Server=db;PWD={settings.db_password1};"',)),
    context_rule(rf"securestring{_TABS}(?:/[\w./-]{{1,200}}{_TABS})?(?P<v>[^\s\"'`\\]{{6,4000}})", "securestring\t|securestring\\t", "PARAMETER\tSecureString\t/shop/db\t«{p}»", "/shop/db\tSecureString\t«{p}»\t3"),
    context_rule(rf"(?<=[;?&])(?:password|pwd)=(?P<v>{_BARE}{{4,400}})", "password=|pwd=", "Server=db;User Id=sa;Password=«{p}»;Encrypt=true"),
    context_rule(rf"(?<=shared)accesskey=(?P<v>{_BARE}{{20,400}})", "accesskey=", "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«{B43}=»"),
    context_rule(rf"accountkey=(?P<v>{_BARE}{{20,400}})", "accountkey=", "AccountName=x;AccountKey=«{B86}==»;"),
    context_rule(rf"(?<=;)secret=(?P<v>{_BARE}{{20,400}})", "secret=", "Endpoint=https://x.azconfig.io;Id=ab-l0;Secret=«{B43}=»"),
    context_rule(rf"machine{_GAP}\S{{1,255}}{_GAP}login{_GAP}\S{{1,255}}{_GAP}password{_GAP}(?P<v>[^\s\"'\\]{{3,200}})", "machine", "machine example.org\n  login me\n  password «{p}»\n"),
    context_rule(r":5432:[^\s:\\]{1,63}:[^\s:\\]{1,63}:(?P<v>(?:[^\s:\"'\\]|\\{1,8}:){4,200})", ":5432:", "db.example.org:5432:shop:app:«{p}»\n", "db:5432:shop:app:«river\\\\:{p}»\n"),
    context_rule(r"(?:aws_secret_access_key|aws_session_token|secret_access_key|secretaccesskey|sessiontoken)[ \t]{1,12}(?P<v>[\w+/=]{30,2000})", "aws_secret_access_key|aws_session_token|secret_access_key|secretaccesskey|sessiontoken", "AWS_SECRET_ACCESS_KEY\t«{B40}»", "aws configure set aws_secret_access_key «{B40}»", generated=True),
    context_rule(r"(?<=client-)key-data: (?P<v>[A-Za-z0-9+/=]{40,8000})", "key-data", "    client-key-data: «{B120}»"),
    context_rule(r"\"auth\\{0,7}\":[ \t]{0,4}\\{0,7}\"(?P<v>[A-Za-z0-9+/]{8,4000}={0,2})", '"auth', '{"auths": {"ghcr.io": {"auth": "«bWU6cml2ZXJjYW55b24=»"}}}', decoded=r"[ -9;-~]{1,80}:[ -~]{3,200}"),
    context_rule(r"\"auth\\{0,7}\":[ \t]{0,4}\\{0,7}\"(?P<v>[A-Za-z0-9+/]{12,4000}={0,2})", '"auth', '{"auths": {"ghcr.io": {"auth": "«{B40}»"}}}', generated=True),
    context_rule(r"(?-i:requirepass|masterauth)[ \t]{1,4}" + _WORD, "requirepass|masterauth", "requirepass «{p}»", misses=("type MasterAuth struct {", "See the masterAuth property of this")),
    context_rule(r"(?:mnemonic|(?:seed|recovery|wallet|backup)[_-]?(?:phrase|words|seed))(?:\\{0,7}[\"'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\{0,7}[\"'])?(?P<v>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})", "mnemonic|seed_phrase|seedphrase|seed-phrase|recovery_phrase|recoveryphrase|recovery-phrase|wallet_seed|wallet_phrase|backup_phrase|seed_words", 'mnemonic = "«{l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5}»"', "SEED_PHRASE=«{l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5}»\n"),
    context_rule(r"(?:seed|recovery|mnemonic)[ \t](?:phrase|words)[ \t](?P<v>(?!(?:[a-z]{3,8} ){0,11}(?:the|and|for|from|into|your|are|was|its|our)\b)(?:[a-z]{3,8} ){11}[a-z]{3,8})", "seed phrase|recovery phrase|mnemonic phrase|seed words|recovery words", "from the seed phrase «{l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5}» and", misses=("enter the seed phrase twice before you press the large button below this and then wait",)),
    context_rule(r"(?:seed|recovery|secret recovery|mnemonic|wallet)[ \t](?:phrase|words)\b[^\n\"']{0,60}?(?:[ \t](?:is|are)|:)(?:[ \t:>]|\r?\n|\\{1,4}[nr]|```){0,12}\\{0,7}[\"'`]?(?P<v>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})", "seed phrase|recovery phrase|mnemonic phrase|wallet phrase|seed words|recovery words", "the seed phrase is: «{l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5}»"),
    context_rule(r"<add key=\\?\"(?:cleartext)?password\\?\" value=\\?\"(?P<v>[^\"\\\n]{4,200})", "<add key=", '<add key="ClearTextPassword" value="«{p}»" />'),
    context_rule(r"\"kty\\{0,7}\"[^{}]{0,4000}?\"d\\{0,7}\":[ \t]{0,4}\\{0,7}\"(?P<v>[\w-]{20,800})", '"kty', '{"kty": "EC", "crv": "P-256", "d": "«{W43}»"}'),
    context_rule(r"<d>(?P<v>[A-Za-z0-9+/]{40,800}={0,2})</d>", "<d>", "<RSAKeyValue><D>«{B86}==»</D></RSAKeyValue>"),
    context_rule(rf"private-lines: \d{{1,3}}{LINE}(?P<v>[A-Za-z0-9+/]{{8,64}}={{0,2}}(?:{LINE}(?!private-mac)[A-Za-z0-9+/]{{8,64}}={{0,2}}){{0,80}})", "private-lines:", "Private-Lines: 2\n«{B64}\n{B40}»\nPrivate-MAC: 1", "     7\tPrivate-Lines: 2\n     8\t«{B64}\n     9\t{B40}»\n    10\tPrivate-MAC: 1", r"Private-Lines: 2\r\n«{B64}\r\n{B40}»\r\nPrivate-MAC: 1"),
    context_rule(rf"login(?:\s|\\{{1,4}}n){{1,8}}[^\s\"']{{1,100}}(?:\s|\\{{1,4}}n){{1,8}}password(?:\s|\\{{1,4}}n){{1,8}}{_MIXED}", "login |login\n|login\t|login\\n", "default login anonymous password «{p}»\n"),
    context_rule(r"(?:(?<!:\*):(?:3306|5432|5433|6432|\*):|(?<!:\*):\*:\*:)[^\s:]{1,63}(?::[^\s:]{1,63})?:(?P<v>(?![\w-]{1,40}/\*)[^\s:\"'\\]{4,200})(?=\s|$|\\)", ":3306:|:5432:|:5433:|:6432:|:*:*:", "*:*:*:postgres:«{p}»\n", "db.example.org:5433:shop:app:«{p}»\n", misses=("cpe:2.3:a:*:*:*:*:*:*:*:*:*:version2", "arn:aws:elasticfilesystem:*:*:file-system/*\n", "- '127.0.0.1:5432:5432'\n",)),
    context_rule(r"(?:jdbc:oracle:(?:thin|oci8?):|sqlplus(?:[ \t]-\w{1,8}){0,3}[ \t])[ \t]{0,2}[\"']?[\w.$#-]{1,60}/(?P<v>[^\s\"'@/\\]{3,100})@", "jdbc:oracle:|sqlplus", "jdbc:oracle:thin:app/«{p}»@//db:1521/ORCL", "sqlplus -s app/«{p}»@db @run.sql"),
    context_rule(r"(?<=[\w.-]):(?P<v>[^\s\"'@/:\\]{3,100})@(?:tcp|unix|udp)\(", "@tcp(|@unix(|@udp(", 'sql.Open("mysql", "app:«{p}»@tcp(127.0.0.1:3306)/shop")', lead=(4, 101)),
    context_rule(r"(?<![a-z] )bindpw[ \t]{1,8}" + _WORD, "bindpw", "bindpw «{p}»\n", misses=("change to bindpw requirements",)),
    context_rule(r":(?:_authtoken|_password|_auth)[ \t]{1,2}" + _WORD, ":_authtoken|:_password|:_auth", "npm config set //registry.npmjs.org/:_authToken «{A36}»"),
    context_rule(r"pass(?:word|wd)?\\{0,7}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,7}[\"']?(?P<v>[a-z]{4} [a-z]{4} [a-z]{4} [a-z]{4})(?=\\{0,7}[\"']|[ \t]{0,4}(?:$|\n|\r|\\n|#))", "password=|password:|password =|password :|password\"|password'|password\\|passwd|pass=|pass:|pass =|pass\"", "SMTP_PASSWORD=«{l4} {l4} {l4} {l4}»\n"),
    context_rule(r"(?:(?:secure_)?auth|logged_in|nonce)_(?:key|salt)\\{0,7}[\"'],[ \t]{0,24}\\{0,7}'(?P<v>[^'\n\\]{20,120})'", "auth_key|auth_salt|logged_in_key|logged_in_salt|nonce_key|nonce_salt", "define('LOGGED_IN_SALT',  '«{W64}»');"),
    context_rule(rf"openvpn static key v1-----(?P<v>(?:(?:{LINE}){{1,2}}[0-9a-f]{{32}}){{4,16}})", "openvpn static key", "-----BEGIN OpenVPN Static key V1-----«\n{h32}\n{h32}\n{h32}\n{h32}»\n-----END"),
    context_rule(r"recovery phrase(?: is)?:?(?:\s|\\{1,4}n){1,4}[\"']?(?P<v>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})", "recovery phrase", "Recovery phrase:\n«{l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5}»"),
    context_rule(r"(?:wallet|privatekeytoaccount|from_key|privkey|accounts)[ \t]{0,2}[(:=][ \t]{0,2}\[?[ \t]{0,2}\\{0,7}[\"'](?:0x)?(?P<v>[0-9a-f]{64})\b", "wallet(|wallet:|wallet=|wallet =|privatekeytoaccount|from_key|privkey|accounts:|accounts=|accounts =", 'new ethers.Wallet("0x«{h64}»", provider)', 'accounts: ["0x«{h64}»"]'),
    context_rule(r":\d{3,5}:(?P<v>[0-9a-f]{32}:[0-9a-f]{32}):::", ":::", "Administrator:500:«{h32}:{h32}»:::", lead=(70, 72)),
    context_rule(r"(?:pbkdf2_sha256|pbkdf2_sha1|scrypt)\$\d{1,8}\$[\w./+=]{4,64}\$(?P<v>[A-Za-z0-9+/=]{24,120})", "pbkdf2_sha256$|pbkdf2_sha1$|scrypt$", "pbkdf2_sha256$600000${A22}$«{B43}=»"),
    context_rule(rf"(?:x-honeycomb-team|app_?certificate|(?:routing|integration|service)_?key){_SEP}(?P<v>[\w-]{{20,64}})", "x-honeycomb-team|app_certificate|appcertificate|routing_key|integration_key|service_key|routingkey|integrationkey|servicekey", "X-Honeycomb-Team: «{A22}»", "AGORA_APP_CERTIFICATE=«{h32}»", 'integration_key = "«{h32}»"', generated=True),
    context_rule(rf"secret_?id{_SEP}(?P<v>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})", "secret_id|secretid", "vault write auth/approle/login role_id=a secret_id=«{u}»"),
    context_rule(rf"root_token_id{_SEP}{_WORD}", "root_token_id", "VAULT_DEV_ROOT_TOKEN_ID=«{A26}»"),
    context_rule(rf"unseal(?: key \d{{1,2}}:|[ \t]{{1,4}}(?!key\b))[ \t]{{0,4}}{_Q}(?P<v>[A-Za-z0-9+/]{{40,90}}={{0,2}})", "unseal", "Unseal Key 1: «{B44}»", "vault operator unseal «{B44}»", generated=True),
    context_rule(r"(?:infura\.io/v3|(?<=\.)alchemy\.com/v2|open-apis/bot/v2/hook|loggly\.com/inputs|/with/key|quiknode\.pro|rpc\.ankr\.com/\w{1,20})/(?P<v>[\w-]{20,80})", "infura.io/v3|alchemy.com/v2|open-apis/bot/v2/hook|loggly.com/inputs|/with/key|quiknode.pro|rpc.ankr.com", "https://mainnet.infura.io/v3/«{h32}»", "https://maker.ifttt.com/trigger/x/with/key/«{W43}»", generated=True),
    context_rule(r"(?:access key|token|api key|secret)[ \w]{0,12}\[[^\]\n]{0,40}\]:[ \t]{0,4}(?P<v>[\w+/=.-]{16,400})", "access key|token [|token id [|api key [|secret [", "AWS Secret Access Key [None]: «{B40}»", generated=True),
    context_rule(rf"password for the \[?\w{{1,30}}\]? user[^\n:]{{0,120}}:(?:{LINE}|[ \t]){{1,4}}(?P<v>[^\s\"'\\]{{8,64}})", "password for the ", "Password for the [elastic] user (reset with `bin/x`):\n  «{A20}»", "     7\tPassword for the elastic user (reset with `bin/x`):\n     8\t  «{A20}»\n"),
    context_rule(r"password (?:elastic|kibana\w{0,12}|logstash\w{0,12}|beats\w{0,12}|apm\w{0,12}) = (?P<v>[^\s\"'\\]{8,64})", "password ", "PASSWORD elastic = «{A20}»"),
    context_rule(r"\]:(?:25|465|587|2525)[ \t]{1,8}[^\s:]{1,100}:(?P<v>[^\s\"'\\]{4,200})", "]:25|]:465|]:587|]:2525", "[smtp.example.org]:587 me@example.org:«{p}»"),
    context_rule(rf"(?:(?<![a-z])(?:rootpw|rootdnpw)[ \t]{{1,8}}(?=\S{{1,60}}(?:\r|\n|\\|$))|(?:authtok|rootpw|rootdnpw)[ \t]{{0,4}}[:=][ \t]{{0,4}}){_Q}{_WORD}", "authtok|rootpw|rootdnpw", "ldap_default_authtok = «{p}»", "olcRootPW: «{p}»", misses=("pam_sm_chauthtok that fails", "olcRootPW only. (Closes")),
    context_rule(r"password\\{0,7}\"[ \t]{0,4}>(?!\w{0,20}password<)(?P<v>[^<>\s\"'{$\\]{4,200})(?<!:)</(?!a>)", "password", '<property name="hibernate.connection.password">«{p}»</property>', misses=('<a title="Master Password">next</a>', '<a href="#PMA_PASSWORD">PMA_PASSWORD</a>',)),
    context_rule(r"password[ \t]{0,20}=[ \t]{1,4}\\{0,7}\"[^\"\n]{0,100}\"[ \t]->[ \t]\\{0,7}\"(?P<v>[^\"\\\n]{4,200})", "password", '~ db_password = "old" -> "«{p}»"'),
    context_rule(rf"master\.key(?:{LINE}){{1,2}}(?P<v>[0-9a-f]{{32}})\b", "master.key", "$ cat config/master.key\n«{h32}»"),
    context_rule(r"(?:recovery|backup|scratch) codes?(?: is| are)?:?(?P<v>(?:(?:\s|\\{1,4}n){1,6}(?:[-*] )?(?=[0-9a-z-]{0,12}\d)[0-9a-z]{4,8}-[0-9a-z]{4,8}){1,20})", "recovery code|backup code|scratch code", "backup codes:«\n35a06-68ea8\n1f4b2-77c0d»"),
    context_rule(r"\$ansible_vault;1\.\d;aes256(?:;[\w.-]{1,60})?(?P<v>(?:(?:\s|\\{1,4}[nr]){1,24}(?:\d{1,6}\t[ ]{0,12})?[0-9a-f]{4,90}){1,400})", "$ansible_vault;", "$ANSIBLE_VAULT;1.1;AES256«\n{h80}\n{h80}»\n"),
    # SQL and code
    context_rule(r"identified[ \t]{1,4}(?:with[ \t]{1,4}\w{1,40}[ \t]{1,4})?by[ \t]{1,4}(?:password[ \t]{1,4})?\\{0,7}[\"'](?P<v>[^\"'\\\n]{4,200})\\{0,7}[\"']", "identified", "CREATE USER 'a'@'%' IDENTIFIED BY '«{p}»';", near=_SQL, misses=('the commits identified by "squash" commands',)),
    context_rule(r"password[ \t]{1,4}\\{0,7}'(?P<v>[^\"'\\\s]{4,200})'", "password", "ALTER USER app WITH PASSWORD '«{p}»';", misses=("the password 'is required' here",)),
    context_rule(r"convertto-securestring[ \t]{1,4}(?:-string[ \t]{1,4})?\\{0,7}[\"'](?P<v>[^\"'\\\n]{4,200})", "convertto-securestring", 'ConvertTo-SecureString "«{p}»" -AsPlainText -Force'),
    context_rule(r"(?:httpbasicauth|httpdigestauth|basicauth)\([ \t]{0,4}\\{0,7}[\"'][^\"'\\\n]{1,100}\\{0,7}[\"'],[ \t]{0,4}\\{0,7}[\"'](?P<v>[^\"'\\\n]{4,200})", "httpbasicauth|httpdigestauth|basicauth", "auth=HTTPBasicAuth('me', '«{p}»')", misses=("auth=HTTPBasicAuth('me', pw2)",)),
    context_rule(r"auth[ \t]{0,2}=[ \t]{0,2}\([ \t]{0,4}\\{0,7}[\"'][^\"'\\\n]{1,100}\\{0,7}[\"'],[ \t]{0,4}\\{0,7}[\"'](?P<v>[^\"'\\\n]{4,200})", "auth=(|auth = (|auth =(|auth= (", "requests.get(url, auth=('me', '«{p}»'))"),
    context_rule(rf"(?:networkcredential|passwordauthentication|directoryentry|mysqli?_(?:p?connect|real_connect)|mysqli|pdo|getconnection|wifi\.begin|basic_auth|basicauth|auth_basic|usernamepasswordcredentials?|username_pw_set|credentials\.basic|pscredential|\.auth|graphdatabase\.driver){_ARGUMENTS}(?P<v>[^\"'\\\n]{{3,200}})", "networkcredential|passwordauthentication|directoryentry|mysql_connect|mysql_pconnect|mysqli_connect|mysqli_real_connect|mysqli|pdo|getconnection|wifi.begin|basic_auth|basicauth|auth_basic|usernamepasswordcredential|username_pw_set|credentials.basic|pscredential|.auth(", 'client.username_pw_set("dev", "«{p}»")', 'Credentials.basic("me", "«{p}»")', 'new NetworkCredential("me@example.org", "«{p}»")', "mysqli_connect('localhost', 'root', '«{p}»', 'shop')", "new PDO('mysql:host=h;dbname=d', 'root', '«{p}»')", "new PDO($this->dsn, 'root', '«{p}»')", 'getConnection(\n            "jdbc:h2:mem", "app", "«{p}»")', 'DriverManager.getConnection(url, "app", "«{p}»")', 'WiFi.begin("home", "«{p}»");', misses=('new PDO("sqlite::memory:", null, null)', 'getConnection("a", user, pw2)')),
    context_rule(rf"networkcredential[ \t]{{0,4}}\([ \t]{{0,4}}(?:{_STRING}|[\w.]{{1,60}}),[ \t]{{0,4}}\\{{0,7}}[\"'](?P<v>[^\"'\\\n]{{3,200}})\\{{0,7}}[\"'],", "networkcredential", 'new NetworkCredential("svc", "«{p}»", "CORP");'),
    context_rule(r"(?:token|secret|password|passwd|api_?key|credentials?)\([^()\n]{0,60}\)[^\n\"'=;]{0,40}[:{][ \t]{0,4}(?:#[^\n]{0,80})?(?:\n|\\{1,4}n)[ \t\d\u2192]{0,24}return[ \t(]{1,3}\\{0,7}[\"'`](?P<v>[A-Za-z0-9+/_.=-]{12,200})\\{0,7}[\"'`]", "token(|secret(|password(|passwd(|apikey(|api_key(|credential(|credentials(", 'def live_token():\n    return "«{A40}»"\n', 'function getApiKey() {{\n  return "«{A32}»";'.replace("{{", "{"), generated=True, misses=('def token():\n    return "the_name_of_a_token"\n',)),
    context_rule(rf"\.login{_ARGUMENTS}(?P<v>(?=[^\"'\\\n]{{0,99}}[\d!#$%^*~]|[a-z]{{16}}\\{{0,7}}[\"'])(?!/)[^\"'\\\s]{{5,100}})", ".login(|.login (", "smtp.login('me@example.org', '«{l16}»')", "ftp.login('me', '«{p}»')", misses=("this.login('username', 'email')", "api.login('a', '/v2/auth')")),
    context_rule(rf"(?:jwt\.sign|jwt\.verify|jwt\.encode|jwt\.decode|createhmac|hmac\.new)[ \t]{{0,4}}\([^\"'\n]{{0,60}}(?:{_STRING},[ \t]{{0,4}})?\\{{0,7}}[\"'](?P<v>(?=[^\"'\\\s]{{0,99}}\d)[^\"'\\\s]{{12,200}})", "jwt.sign|jwt.verify|jwt.encode|jwt.decode|createhmac|hmac.new", "jwt.sign(payload, '«{A32}»')", "crypto.createHmac('sha256', '«{A32}»')"),
    context_rule(r"api_key\\{0,7}[\"'],[ \t]{0,4}\\{0,7}[\"'](?:\\{1,7}[\"'])?(?P<v>[^\"'\\\s]{12,200})", "api_key", 'buildConfigField "String", "API_KEY", "\\"«{A32}»\\""', generated=True),
    context_rule(r"<string name=\\{0,7}\"[\w.]{0,40}(?:api_key|apikey|secret|token|app_key|password)\\{0,7}\">(?P<v>[^<\s\\]{12,200})<", "<string name=", '<string name="google_api_key">«{A32}»</string>', generated=True),
    context_rule(rf"(?:client|algoliasearch|set_access_token){_ARGUMENTS}(?P<v>[\w+/=.-]{{20,200}})\\{{0,7}}[\"']", "client(|client (|algoliasearch(|set_access_token(", "client = Client('AC{h32}', '«{h32}»')", "algoliasearch('APPID', '«{h32}»')", generated=True),
    context_rule(r"(?:cohere|openai|anthropic|groq|mistral\w{0,6}|together|replicate|resend|exa|tavily\w{0,6}|firecrawl\w{0,4})(?:\.(?:async)?\w{0,12}client\w{0,4})?[ \t]{0,2}\([ \t]{0,4}\\{0,7}[\"'](?P<v>[\w.-]{20,200})\\{0,7}[\"']", "cohere|openai|anthropic|groq|mistral|together(|replicate(|resend(|exa(|tavily|firecrawl", "co = cohere.Client('«{A40}»')", generated=True),
    context_rule(rf"create_(?:super)?user{_ARGUMENTS}(?![^\"'\n]{{1,60}}@[\w.-]{{1,60}}\.){_MIXED}", "create_user|create_superuser", "User.objects.create_user('me', 'me@example.org', '«{p}»')"),
    # Commands
    context_rule(rf"(?:printenv|echo|print)[ \t]{{1,4}}[\"']?\$?\{{?(?-i:[A-Z0-9_]{{0,40}}(?:TOKEN|SECRET|KEY|PASSWORD|PASSWD|PASS|PWD))\}}?[\"']?(?:\\{{1,4}}r|\r)?(?:\\{{1,4}}n|\n)(?:[ ]{{0,6}}\d{{1,6}}\t|[+-])?{_MIXED}(?=[\s\"'\\\x1b]|$)", "printenv|echo|print ", "$ printenv DB_PASSWORD\n«{p}»\n", "$ echo $API_KEY\n«{A32}»\n", misses=("echo $KEY\ndone\n",)),
    context_rule(rf"rabbitmqctl[ \t][^\n|;&]{{0,60}}?(?:add_user|change_password|authenticate_user)[ \t]{{1,4}}\S{{1,60}}[ \t]{{1,4}}{_Q}{_WORD}", "rabbitmqctl", "rabbitmqctl add_user me «{p}»"),
    context_rule(rf"[ \t](?-i:-[AX])[ \t]{{1,2}}{_Q}(?!-){_WORD}", " -a | -x ", "snmpwalk -v3 -u me -A «{p}» -X «{p}» h", near=("snmpwalk", "snmpget", "snmpset", "snmpbulk")),
    context_rule(rf"(?:echo|printf)[ \t]{{1,4}}(?:-\w{{1,3}}[ \t]{{1,4}})?{_Q}(?P<v>[^\s\"'`\\$<>|;&]{{4,100}}\\{{1,8}}n[^\s\"'`\\$<>|;&]{{4,100}})(?:\\{{1,8}}n)?{_Q}[ \t]{{0,4}}\|[ \t]{{0,4}}(?:sudo[ \t]{{1,4}})?(?:passwd|smbpasswd|su)\b", "echo|printf", "echo -e '«{A12}\\n{A12}»' | passwd me", near=("passwd", "su ")),
    context_rule(rf"(?:echo|printf)[ \t]{{1,4}}(?:-\w{{1,3}}[ \t]{{1,4}})?{_Q}(?P<v>[^\s\"'`\\$<>|;&]{{6,200}})(?:\\{{1,4}}n)?{_Q}[ \t]{{0,4}}\|[ \t]{{0,4}}[^\n|;]{{0,60}}?(?:{_STDIN_READERS})", "echo|printf", "echo '«{A20}»' | gh secret set DB_PASSWORD", "printf «{A20}» | vercel env add KEY production", near=("secret", "env add", "kinit", "cryptsetup", "passwd"), misses=("echo $TOKEN | gh secret set TOKEN",)),
    context_rule(rf"(?:{_STDIN_READERS})[^\n|;&]{{0,100}}<<<[ \t]{{0,4}}{_Q}{_WORD}", "secret |secrets |env add|kinit|cryptsetup|vncpasswd|smbpasswd", "wrangler secret put API_TOKEN <<< «{A20}»", "kinit me <<< '«{p}»'"),
    context_rule(rf"(?:setenv|set[ \t]{{1,2}}-\w{{1,3}})[ \t]{{1,4}}\w{{0,40}}(?:token|secret|key|password|passwd|pwd|pass)[ \t]{{1,4}}{_Q}{_MIXED}", "setenv|set -", "setenv DB_PASSWORD «{p}»", "set -gx API_TOKEN «{A32}»"),
    context_rule(rf"env[ \t]{{1,4}}(?-i:[A-Z0-9_]{{0,40}}_(?:TOKEN|SECRET|KEY|PASSWORD|PASSWD|PWD|PASS))[ \t]{{1,4}}{_Q}{_MIXED}", "env ", "ENV REDIS_PASSWORD «{p}»"),
    context_rule(rf"(?:--secret-string|--secret-value|--password-value)[ \t=]{{1,2}}{_Q}(?!file:|[-{{]){_WORD}", "--secret-string|--secret-value|--password-value", "aws secretsmanager create-secret --name db --secret-string «{p}»"),
    context_rule(rf"(?:poetry|composer|bundle|git|npm|yarn|pip)[ \t]{{1,2}}config[ \t](?:(?:set|-g|--[\w-]{{1,20}})[ \t]{{1,2}}){{0,3}}(?:[\w.-]{{0,80}}\.(?:password|token|pass|secret|api-?key)|(?:github-oauth|gitlab-token|bearer|pypi-token)\.[\w.-]{{1,60}})[ \t]{{1,4}}{_Q}{_MIXED}", "poetry config|composer config|bundle config|git config|npm config|yarn config|pip config", "git config --global user.password «{p}»", "poetry config pypi-token.pypi «{A40}»"),
    context_rule(rf"composer[ \t]{{1,2}}config[ \t](?:--[\w-]{{1,20}}[ \t]{{1,2}}){{0,3}}http-basic\.[\w.-]{{1,60}}[ \t]{{1,4}}\S{{1,100}}[ \t]{{1,4}}{_Q}{_WORD}", "composer config", "composer config http-basic.repo.example.org me «{p}»"),
    context_rule(rf"bundle[ \t]{{1,2}}config[ \t](?:(?:set|--[\w-]{{1,20}})[ \t]{{1,2}}){{0,3}}\S{{1,100}}[ \t]{{1,4}}{_Q}[\w.@-]{{1,60}}:{_MIXED}", "bundle config", "bundle config set gems.example.org me:«{p}»"),
    context_rule(rf"vercel{_REST}(?:-t|--token)[ \t=]{{1,2}}{_Q}{_WORD}", "vercel", "vercel deploy --prod -t «{A24}»", generated=True),
    context_rule(rf"codecov[^\n]{{0,100}}[ \t]-t[ \t]{{1,2}}{_Q}{_WORD}", "codecov", "bash <(curl -s https://codecov.io/bash) -t «{u}»", generated=True),
    context_rule(r"oathtool[ \t][^\n|;&]{0,60}?[ \t](?P<v>[a-z2-7]{16,64})\b", "oathtool", "oathtool --totp -b «{U32}»", generated=True),
    context_rule(rf"curl{_REST}(?:-u|--user)[ \t=]{{0,2}}{_Q}(?P<v>[\w.-]{{12,200}}):x?(?=[\s\"'\\]|$)", "curl", "curl -u «{A20}»:X https://h/api", generated=True),
    context_rule(rf"curl{_REST}(?:-u|--user|--proxy-user)[ \t=]{{0,2}}{_Q}[^\s:\"'$]{{0,100}}:{_Q}(?P<v>(?:[^\s\"'$\\]|\$(?![A-Za-z_{{(])){{3,200}})", "curl", "curl -s -u admin:«{p}» https://h/", "curl --user 'a:«{p}»' https://h", "curl -u a:'«{p}»' https://h"),
    context_rule(rf"(?:--user|--auth|--creds|--src-creds|--dest-creds|--basic-auth|--userpass)[ \t=]{{1,2}}{_Q}[\w.@\\-]{{1,100}}:{_MIXED}", "--user|--auth|--creds|--src-creds|--dest-creds|--basic-auth|--userpass", "skopeo copy --src-creds me:«{p}» docker://a docker://b", "etcdctl --user root:«{p}» get x", misses=("docker run --user 1000:1000 img",)),
    context_rule(rf"https?(?:ie)?[ \t][^\n|;&]{{0,100}}?(?:-a|--auth)[ \t]{_Q}[\w.@-]{{1,100}}:{_MIXED}", "http -|https -|httpie ", "http -a me:«{p}» GET h/x"),
    context_rule(rf"lftp\b[^\n]{{0,300}}?[ \t]-u[ \t]{{0,2}}{_Q}[\w.@-]{{1,100}},(?P<v>[^\s\"'$\\]{{3,100}})", "lftp", "lftp -u me,«{p}» ftp.example.org"),
    context_rule(rf"(?:(?<=[ \t])-u|--user(?:name)?)[ \t=]{{1,2}}[^\s\"']{{1,100}}[ \t][^\n|;&]{{0,60}}?(?<=[ \t])(?:-p|-pw)[ \t]{{1,2}}{_Q}(?![^\s]{{0,99}}/|\d{{1,5}}:){_MIXED}", "-u |--user", "twine upload -u me -p «{p}» dist/*", "cqlsh -u cassandra -p «{p}» host", misses=("docker run -u app -p 8080:80 img", "docker run -u 1000 -p 127.0.0.1:80:80 x")),
    context_rule(rf"mosquitto_(?:pub|sub|rr|passwd){_REST}(?-i:-P)[ \t]{_Q}{_WORD}", "mosquitto_", "mosquitto_pub -u me -P «{p}» -t x"),
    context_rule(rf"ssh-keygen{_REST}(?-i:-[NP])[ \t]{_Q}(?P<v>[^\s\"'$\\-][^\s\"'$\\]{{4,99}})", "ssh-keygen", "ssh-keygen -t ed25519 -N '«{p}»' -f k", misses=("ssh-keygen -t rsa -N '' -f k",)),
    context_rule(rf"user(?:add|mod){_REST}(?:-p|--password)[ \t]{_Q}(?P<v>[^\s\"'$\\-][^\s\"'$\\]{{4,199}})", "useradd|usermod", "useradd -m -p «{p}» me", misses=("useradd -p $(openssl passwd) me",)),
    context_rule(rf"send(?:[ \t]--)?[ \t]{{1,4}}\\{{0,7}}\"{_MIXED}\\{{1,4}}[rn]", "send \"|send -- \"|send \\", 'expect "password:"\nsend "«{p}»\\r"'),
    context_rule(rf"vault login[ \t]{{1,4}}(?:-[\w-]{{1,20}}[ \t]{{1,4}}){{0,4}}(?:token=)?{_Q}{_WORD}", "vault login", "vault login «{A26}»", generated=True),
    context_rule(rf"(?:wandb login|shodan init|ngrok (?:config )?(?:add-)?auth-?token|doctl auth init -t|cargo login|snyk auth|cloudflared (?:service install|tunnel run --token)|codecov -t|sentry-cli login --auth-token|npm token revoke|pulumi login|supabase login --token|rclone obscure|with-token <<<|password-stdin <<<)[ \t]{{1,4}}(?:-[\w-]{{1,20}}[ \t]{{1,4}}(?:[\w.-]{{1,20}}[ \t]{{1,4}})??){{0,4}}{_Q}{_WORD}", "wandb login|shodan init|ngrok |doctl auth init|cargo login|snyk auth|cloudflared |codecov -t|sentry-cli login|supabase login|rclone obscure|with-token <<<|password-stdin <<<", "wandb login «{h40}»", "shodan init «{A32}»", "ngrok config add-authtoken «{A27}_{A21}»", "cargo login «{A32}»", "gh auth login --with-token <<< «{A40}»", generated=True),
    context_rule(rf"nuget push{_REST}(?:-k|-apikey|--api-key)[ \t]{{1,2}}{_Q}{_WORD}", "nuget push", "dotnet nuget push a.nupkg -k «{n46}»", generated=True),
    context_rule(rf"secret set[ \t][^\n|;&]{{1,100}}?[ \t](?:-b[ \t=]{{0,2}}|--(?:body|value)[ \t=]{{1,2}}){_Q}{_WORD}", "secret set", "gh secret set TOKEN --body «{A40}»"),
    context_rule(rf"securestring{_REST}--value[ \t=]{{1,2}}{_Q}(?!file:){_WORD}", "securestring", "aws ssm put-parameter --name /db/p --type SecureString --value «{p}»"),
    context_rule(rf"auth[ \t]{{1,2}}(?:default[ \t])?{_Q}(?P<v>[^\s\"'`\\$<>|;&]{{12,200}})(?=\\{{0,2}}[\"']|\s{{0,2}}$|\r?\n|\\r)", "auth ", "redis> AUTH «{A20}»\r\n", near=("redis", "+ok"), generated=True),
    context_rule(rf"rclone config (?:create|update)[ \t][^\n|;&]{{1,200}}?[ \t]pass[ \t=]{_Q}{_WORD}", "rclone config", "rclone config create r sftp pass «{W30}»"),
    context_rule(rf"mc (?:alias|config host) (?:set|add)[ \t]{{1,4}}\S{{1,60}}[ \t]{{1,4}}\S{{1,200}}[ \t]{{1,4}}{_Q}(?P<v>[^\s\"'$\\]{{3,100}}[ \t]{{1,4}}[^\s\"'$\\]{{8,100}})", "mc alias set|mc config host add", "mc alias set m https://m.example.org «{A20} {B40}»"),
    context_rule(rf"setx[ \t]{{1,4}}\w{{0,40}}(?:token|secret|key|password|passwd|pwd)[ \t]{{1,4}}{_Q}{_WORD}", "setx", "setx API_TOKEN «{A32}»"),
    context_rule(rf"poetry config http-basic\.[\w-]{{1,60}}[ \t]{{1,4}}\S{{1,100}}[ \t]{{1,4}}{_Q}{_WORD}", "poetry config http-basic", "poetry config http-basic.priv me «{p}»"),
    context_rule(rf"(?:nmcli|iwctl)[ \t][^\n|;&]{{1,200}}?(?:password|passphrase|psk)[ \t=]{{1,2}}{_Q}{_WORD}", "nmcli|iwctl", "nmcli dev wifi connect home password «{p}»"),
    # Prose
    context_rule(rf"(?:password|passwd|passphrase)(?: is| was)?[ \t:]{{1,8}}{_Q}(?!\d{{1,2}}:\d){_NO_CODE}{_MIXED}(?<![.,:;!?])(?=[\s\"'.,:;!?`\\]|$)", "password|passwd|passphrase", "login with user admin and password «{A16}»", "password «{A16}»\nhost smtp.example.org", generated=True, misses=("f({privateKey:e,userIDs:t=[],passphrase:r,keyTime2:i=0,format:s=", ".show-password #pass1{display:none}#pass1-text", "{email:!0,month:!0,password:!0,range:!0,search:!0,tel1:!0}")),
    context_rule(rf"(?:password|passwd|passphrase)(?: is| was)?[ \t:]{{1,8}}{_Q}(?P<v>(?=[^\s\"'\\]{{0,60}}\d)(?-i:(?=[^\s\"'\\]{{0,60}}[A-Z])(?=[^\s\"'\\]{{0,60}}[a-z]))(?=[^\s\"'\\]{{0,60}}[!#$%^*~])[\w!#$%^*~@+?-]{{8,64}})(?<!\?)(?=[\s\"'.,:;?`\\]|$)", "password|passwd|passphrase", "the root password is «DragonBattery98$»"),
    context_rule(r"pass(?:word|phrase) for [^\n:]{1,80}:[ \t]{1,2}(?P<v>[^\s\"'\\]{12,64})(?<![.,:;])(?=[.,:;\s\\]|$)", "password for|passphrase for", "[sudo] password for me: «{A16}»", generated=True),
    context_rule(rf"(?:password|passwort|passphrase) for [^\n]{{1,60}}?[ \t](?:is|was|ist):?[ \t]{{1,2}}{_Q}{_MIXED}", "password for|passwort for|passphrase for", "the password for user 'bob' is '«{p}»'"),
    context_rule(rf"{_MIXED}[`'\"]? (?:as|for)(?: (?:the|your|my|a|its|admin|root))? (?:password|passphrase|passcode)\b", " as the | for the | as your | for your | as my | for my | as a | as its | as admin | as root | as password| as passphrase", "use «{p}» as the password", lead=(5, 102), near=("password", "passphrase", "passcode"), misses=("use step2 as the name of the password policy",)),
    context_rule(rf"(?:log ?in|sign in|credentials|logins?|connect|access)\b[^\n/]{{0,30}}?[ \t]{_Q}[\w.@-]{{2,60}}{_Q}[ \t]/[ \t]{_Q}{_MIXED}", "login with|login as|log in with|log in as|sign in with|credentials|logins|connect with|connect as|access with", "login with admin / «{p}»"),
    context_rule(rf"(?:mysql|mariadb)(?:dump|admin|import)?{_REST}(?-i:-p){_Q}(?P<v>[^\s\"'$\\-][^\s\"'$\\]{{3,99}})", "mysql|mariadb", "mysql -h db -uroot -p«{p}» shop", "mysqldump -ume -p«walnut-Walnut-granite24» shop > shop.sql", misses=("mysql -h db -P3306 -u root -p", "mysql -p$PASS shop")),
    context_rule(rf"(?:docker|podman|helm registry|oras|buildah|skopeo|az|oc|cf) login{_REST}(?:-p|--password)[ \t=]?{_Q}(?P<v>[^\s\"'$\\-][^\s\"'$\\]{{3,4000}})", "docker login|podman login|helm registry login|oras login|buildah login|skopeo login|az login|oc login|cf login", "docker login -u bot -p «{p}» reg.example.org", "az login -u me -p «{p}»", "podman login -u a -p «{p}» quay.io"),
    context_rule(rf"redis-cli{_REST}(?:-a|--pass)[ \t]{_Q}{_WORD}", "redis-cli", "redis-cli -h cache -a «{p}» ping"),
    context_rule(rf"mongo(?:sh|dump|restore|export|import)?{_REST}-p[ \t]{_Q}(?P<v>[^\s\"'$\\-]{{4,99}})", "mongo", "mongosh -u root -p «{p}» admin"),
    context_rule(rf"(?:sqlcmd|bcp|isql|osql){_REST}(?-i:-P)[ \t]?{_Q}(?P<v>[^\s\"'$\\-][^\s\"'$\\]{{3,99}})", "sqlcmd|bcp|isql|osql", "sqlcmd -S db -U sa -P «{p}» -Q x"),
    context_rule(rf"sshpass[ \t]{{1,4}}-p[ \t]{{0,4}}{_Q}(?P<v>[^\s\"'$\\]{{4,100}})", "sshpass", "sshpass -p '«{p}»' ssh me@h"),
    context_rule(rf"(?:pgpassword|mysql_pwd|rediscli_auth|sshpass|restic_password|borg_passphrase|gpg_passphrase|vault_pass|ansible_password)={_Q}(?![^\s\"'$\\]{{0,200}}[(\[)])(?P<v>[^\s\"'$\\]{{4,200}})", "pgpassword=|mysql_pwd=|rediscli_auth=|sshpass=|restic_password=|borg_passphrase=|gpg_passphrase=|vault_pass=|ansible_password=", "PGPASSWORD=«sunflower» psql", misses=("dict(ask_vault_pass=context.CLIARGS['ask'])", "update(ansible_password=connection.password)")),
    context_rule(r"(?:(?<=-passin )|(?<=-passout )|(?<=-pass )|(?<=-passin ['\"])|(?<=-passout ['\"])|(?<=-pass ['\"]))pass:(?P<v>[^\s\"'$\\]{4,200})", "pass:", "openssl rsa -in k.pem -passin pass:«{p}» -out k2.pem", "openssl enc -aes-256-cbc -pass pass:«{p}»"),
    context_rule(rf"openssl{_REST}-(?:k|pass|passin|passout)[ \t]{_Q}(?!(?:pass|env|file|fd|stdin)\b){_WORD}", "openssl", "openssl enc -d -aes-256-cbc -k «{p}» -in a", misses=("openssl enc -pass file:key.txt",)),
    context_rule(rf"(?:unzip|zip){_REST}(?-i:-P|--password)[ \t=]?{_Q}(?P<v>[^\s\"'$\\/.-][^\s\"'$\\/]{{3,99}})(?![\w./])", "unzip|zip", "unzip -P «{p}» a.zip", misses=("unzip -p archive.zip file", "gzip -k file", "unzip -p archive2.zip")),
    context_rule(r"(?:7z|7za|7zz|rar|unrar|unar)[ \t](?:[^\n|;&]{0,200}?[ \t])??-(?:p|hp)(?P<v>[^\s\"'$\\-][^\s\"'$\\]{3,99})", "7z |7za |7zz |rar |unrar |unar ", "7z x a.7z -p«{p}»"),
    context_rule(rf"(?:echo|printf)[ \t]{{1,4}}(?:-\w{{1,3}}[ \t]{{1,4}})?{_Q}(?P<v>[^\s\"'`\\$<>|;&][^\s\"'`\\<>|;&]{{2,200}})(?:\\{{1,4}}n)?{_Q}[ \t]{{0,4}}\|[ \t]{{0,4}}(?:sudo[ \t][^\n|;]{{0,60}}?-\w{{0,4}}(?-i:S)\b|su[ \t]|[^\n|;]{{0,200}}?(?:--password-stdin|--stdin|--with-token|--passphrase-fd|--pass-stdin))", "echo|printf", "echo «{p}» | sudo -S apt update", "echo '«sunflower»' | sudo -S ls", "echo «{A40}» | docker login --password-stdin", near=("sudo", "| su ", "|su ", "--password-stdin", "--stdin", "--with-token", "--passphrase-fd", "--pass-stdin"), misses=("echo hello | sudo tee /etc/x", "echo $PASS | sudo -S ls")),
    context_rule(rf"(?:echo|printf)[ \t]{{1,4}}(?:-\w{{1,3}}[ \t]{{1,4}})?{_Q}[\w.-]{{1,60}}:(?P<v>[^\s\"'`\\$<>|;&][^\s\"'`\\<>|;&]{{2,200}})(?:\\{{1,4}}n)?{_Q}[ \t]{{0,4}}\|[ \t]{{0,4}}(?:sudo[ \t]{{1,4}})?chpasswd", "echo|printf", 'echo "root:«{p}»" | chpasswd', near=("chpasswd",)),
    context_rule(rf"sudo[ \t][^\n|;]{{0,60}}?-\w{{0,4}}(?-i:S)\b[^\n|;<]{{0,200}}<<<[ \t]{{0,4}}{_Q}{_WORD}", "sudo", "sudo -S apt update <<< '«{p}»'", "sudo -S <<< «sunflower» ls"),
    context_rule(rf"<<<[ \t]{{0,4}}{_Q}{_WORD}{_Q}[ \t]{{1,4}}sudo[ \t][^\n|;]{{0,60}}?-(?-i:S)\b", "<<<", "<<< «{p}» sudo -S ls"),
    context_rule(rf"net(?:\.exe)? use[ \t][^\n|&]{{0,200}}?\\\\[^\s]{{1,200}}[ \t]{{1,4}}{_Q}(?P<v>[^\s\"'$/\\][^\s\"'\\]{{2,99}}){_Q}[ \t]{{1,4}}/u", "net use|net.exe use", r"net use Z: \\srv\share «{p}» /user:corp\me"),
    context_rule(rf"net(?:\.exe)? use[ \t][^\n|&]{{0,300}}?/user:[^\s]{{1,100}}[ \t]{{1,4}}{_Q}(?P<v>[^\s\"'$/\\][^\s\"'$\\]{{2,99}})", "net use|net.exe use", r"net use \\srv\share /user:corp\me «{p}»"),
    context_rule(rf"(?<![a-z])net(?:\.exe)? user[ \t]{{1,4}}[\w.-]{{1,40}}[ \t]{{1,4}}{_Q}(?P<v>[^\s\"'$/\\][^\s\"'$\\]{{2,99}})", "net user|net.exe user", "net user bob «{p}» /add", misses=("the Internet User Datagram Protocol (UDP)",)),
    context_rule(rf"(?:--from-literal|--set(?:-string)?|--build-arg|--env|config:set|secrets set)[= \t]{{1,3}}{_Q}[\w.-]{{0,60}}(?:password|passwd|passphrase|pwd)={_Q}{_WORD}", "--from-literal|--set|--build-arg|--env|config:set|secrets set", "kubectl create secret generic x --from-literal=password=«sunflower»", "helm install --set auth.password=«sunflower» x"),
    context_rule(rf"(?:cmdkey|xfreerdp|wfreerdp|rdesktop|winexe|runas)\b[^\n]{{0,200}}?[ \t]/p(?:ass)?:{_Q}(?P<v>[^\s\"'$\\]{{3,99}})", "cmdkey|rdesktop|winexe|runas|xfreerdp|wfreerdp", "xfreerdp /u:me /p:«{p}» /v:h", "cmdkey /add:h /user:me /pass:«{p}»"),
    context_rule(rf"(?:smbclient|rpcclient|winexe|smbmap|net rpc|wmic){_REST}(?:-u|--user)[ \t=]{{0,2}}{_Q}[^\s%\"']{{1,100}}%(?P<v>[^\s\"'$\\]{{3,99}})", "smbclient|rpcclient|winexe|smbmap|net rpc|wmic", "smbclient //srv/share -U 'me%«{p}»'"),
    context_rule(rf"(?:ldapsearch|ldapadd|ldapmodify|ldapdelete|ldapwhoami|ldappasswd){_REST}(?-i:-w)[ \t]{{0,2}}{_Q}(?P<v>[^\s\"'$\\-][^\s\"'$\\]{{2,99}})", "ldap", "ldapsearch -x -D cn=admin -w «{p}» -b dc=x"),
    context_rule(rf"(?:keytool|jarsigner|apksigner){_REST}(?:-storepass|-keypass|-srcstorepass|-deststorepass|--ks-pass[ \t]pass:)[ \t]?{_Q}{_WORD}", "keytool|jarsigner|apksigner", "keytool -genkey -storepass «{p}» -alias a"),
    context_rule(rf"htpasswd{_REST}-\w{{0,4}}b\w{{0,4}}[ \t]{{1,4}}(?:[^\s]{{1,200}}[ \t]{{1,4}}){{1,2}}{_Q}{_WORD}(?=[ \t]{{0,4}}(?:\r|\n|\\|$|[|;&>\"']))", "htpasswd", "htpasswd -bc .htpasswd me «{p}»\n"),
    context_rule(rf"wpa_passphrase[ \t]{{1,4}}{_Q}[^\s\"']{{1,40}}{_Q}[ \t]{{1,4}}{_Q}{_WORD}", "wpa_passphrase", "wpa_passphrase home «{p}»"),
    context_rule(rf"(?:--passphrase|--ask-vault-password|--vault-password|--rcon-password|--http-password|--ftp-password|--proxy-password|--secret-access-key|--client-secret|--sas-token|--account-key|--rpc-secret|--shared-secret|--jwt-secret)[ \t=]{{1,2}}{_Q}(?!-|(?:with|and|or|is|to|for|in|as|must|can|option|flag|argument|parameter)\b){_WORD}", "--passphrase|--vault-password|--rcon-password|--http-password|--ftp-password|--proxy-password|--secret-access-key|--client-secret|--sas-token|--account-key|--rpc-secret|--shared-secret|--jwt-secret", "gpg --batch --passphrase «{p}» -d a.gpg", "wget --http-password=«sunflower» https://h/x", misses=("gpg --passphrase --batch", "gpg --passphrase $PASS")),
    context_rule(rf"(?:crackmapexec|netexec|nxc|evil-winrm|hydra|ncrack|medusa|secretsdump\.py|psexec\.py|snmpwalk|ipmitool|impacket-\w{{2,20}})\b[^\n|;]{{0,200}}?[ \t]-p[ \t]{_Q}(?P<v>[^\s\"'$\\/-][^\s\"'$\\]{{3,99}})", "crackmapexec|netexec|nxc|evil-winrm|hydra|ncrack|medusa|secretsdump.py|psexec.py|ipmitool|impacket-", "evil-winrm -i h -u me -p «{p}»"),
    context_rule(r"\b(?:totp|hotp)\((?:secret ?= ?|key ?= ?)?\\{0,7}[\"'](?P<v>[a-z2-7]{16,64})\\{0,7}[\"']", "totp(|hotp(", "pyotp.TOTP('«{U32}»').now()", generated=True),
    context_rule(rf"ansible_(?:ssh_|become_|sudo_|su_|winrm_|httpapi_)?pass(?:word)?[ \t]?=[ \t]?{_Q}(?![^\s\"'$\\]{{0,200}}[(\[)]){_WORD}", "ansible_ssh_pass|ansible_become_pass|ansible_sudo_pass|ansible_su_pass|ansible_winrm_pass|ansible_httpapi_pass|ansible_pass", "h1 ansible_user=me ansible_ssh_pass=«{p}»", misses=("ansible_ssh_pass={{ vault_pass }}",)),
    context_rule(r"(?<=;)(?:password|pwd)=(?P<v>(?![\w$]{0,40}[({\[])[^;\"'\s\\$]{6,100})(?=;|\\{0,7}[\"'])", "password=|pwd=", 'Server=db;User ID=me;PWD=«UE<*pY?1g,wDZiN6[tLHF»;Encrypt=True;"', generated=False, misses=("a;password=${PASSWORD};b",)),
)
# fmt: on
