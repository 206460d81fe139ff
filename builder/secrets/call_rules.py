r"""Rules for secrets in arguments of calls, also in stack traces, and of commands that are lists.

As in `builder.secrets.context_rules`: the value is the group `v`, case is ignored, and each pattern
starts with one of the literals of its prefilter unless `lead` says otherwise. The order of the
arguments is that of the manual of each function. PHP prints at most 15 characters of an argument,
and three dots.
"""

# ruff: noqa: E501 - a table: one rule on a line
from __future__ import annotations

from builder.secrets.layout import WRAP
from builder.secrets.secret_rule import LINE, SecretRule, context_rule

_STRING = r"\\{0,7}[\"'][^\"'\\\n]{0,200}\\{0,7}[\"']"
"""A string of code, escaped or not."""
_OTHER = (
    r"(?:resource(?: id)? ?[#(][\w #]{1,20}\)?|object\([^()\n]{1,80}\)|\$?[\w.>:-]{1,60}(?:\(\))?)"
)
"""An argument that is no string: a variable, or what a trace prints instead."""
_OPEN = rf"[ \t]{{0,4}}\({WRAP}"
_USER = rf"{_STRING},{WRAP}"
_LAST = rf"(?:(?:{_STRING}|{_OTHER}),{WRAP})?{_USER}"
"""The arguments before the password: a name of a user, and perhaps one before it."""
_V = r"(?:Some\()?\\{0,7}[\"'](?P<v>[^\"'\\\n]{3,200}?)(?:\.{3})?\\{0,7}[\"']"
_LIKELY = r"\\{0,7}[\"'](?P<v>(?=[^\"'\\\n]{0,99}[\d!#$%^*~])(?!/)[^\"'\\\n]{5,200}?)(?:\.{3})?\\{0,7}[\"']"
"""A value with a digit or a sign that is no path."""
_LIKELY_KEY = r"\\{0,7}[\"'](?P<v>(?=[^\"'\\\n]{0,99}(?:[\d!#$%^*~]|-[a-z]{3,20}-))(?!/)[^\"'\\\n]{5,200}?)\\{0,7}[\"']"
"""A value with a digit, a sign or words joined by hyphens that is no path."""
_CONSTRUCTED = r"(?:(?:->|::)(?:__construct|connect|real_connect))?"
_NEXT = rf"(?:\\{{0,7}}[\"'],{WRAP}\\{{0,7}}[\"']|\\{{0,7}}[\"']?{LINE}-[ \t]{{1,4}}(?:\\{{0,7}}[\"'])?)"
"""The text between two items of a list of arguments, in code or in YAML."""


def _listed(commands: str, options: str, *hits: str, misses: tuple[str, ...] = ()) -> SecretRule:
    """Returns a rule for the item after an option of a command (one of `commands`, by `|`)."""
    pattern = rf"(?:{commands})(?:{_NEXT}[^\"'\n\\]{{1,100}}){{0,12}}?{_NEXT}(?-i:{options}){_NEXT}(?P<v>(?!-)[^\s\"'\\$]{{4,200}})"
    return context_rule(pattern, commands, *hits, misses=misses)


# fmt: off
CALL_RULES = (
    # A user and a password, and perhaps an address before them
    context_rule(rf"(?:networkcredential|passwordauthentication|wifi\.begin|basic_auth|basicauth\w{{0,12}}|auth_basic|usernamepasswordcredentials?|username_pw_set|credentials\.basic|pscredential|\.auth|graphdatabase\.driver){_OPEN}{_LAST}{_V}", "networkcredential|passwordauthentication|wifi.begin|basic_auth|basicauth|auth_basic|usernamepasswordcredential|username_pw_set|credentials.basic|pscredential|.auth(", 'client.username_pw_set("dev", "«{p}»")', 'Credentials.basic("me", "«{p}»")', 'new NetworkCredential("me@example.org", "«{p}»")', 'WiFi.begin("home", "«{p}»");', 'GraphDatabase.driver("bolt://h", basic_auth("app", "«{p}»"))'),
    context_rule(rf"(?:directoryentry|mysqli?_p?connect|mysqli|(?:(?<![a-z])|(?<=\\[nrt]))pdo(?:connection|driver)?|createpdoconnection|getconnection|sequelize|ldap_bind(?:_ext)?|ftp_login|ssh2_auth_password|imap_open|odbc_p?connect|ibase_p?connect|fbird_p?connect|db2_p?connect){_CONSTRUCTED}{_OPEN}(?:{_STRING}|{_OTHER}),{WRAP}(?:{_STRING}|\$?[\w.>-]{{1,60}}),{WRAP}{_V}", "directoryentry|mysql_connect|mysql_pconnect|mysqli_connect|mysqli_pconnect|mysqli|pdo|createpdoconnection|getconnection|sequelize(|ldap_bind|ftp_login|ssh2_auth_password|imap_open|odbc_connect|odbc_pconnect|ibase_connect|ibase_pconnect|fbird_connect|fbird_pconnect|db2_connect|db2_pconnect", "mysqli_connect('localhost', 'root', '«{p}»', 'shop')", "new PDO('mysql:host=h;dbname=d', 'root', '«{p}»')", "new PDO($this->dsn, 'root', '«{p}»')", 'getConnection(\n            "jdbc:h2:mem", "app", "«{p}»")', 'DriverManager.getConnection(url, "app", "«{p}»")', "new Sequelize('shop', 'app', '«{p}»', { host: 'db' })", "#0 /srv/a.php(9): PDO->__construct('mysql:host=192....', 'app', '«t2eOg+r?Pm7Sh=m!P2s*»')\n#1 {main}", "#0 /srv/a.php(9): mysqli->__construct('h', 'app', '«{p}»', 'shop')", "PDOConnection->__construct('mysql:host=h', 'app', '«t2eOg+r?Pm7Sh=m»...', Array)", "ldap_bind(Resource id #5, 'cn=admin,dc=x', '«{p}»')", r"ldap_bind(Object(LDAP\Connection), 'cn=admin,dc=x', '«{p}»')", "ldap_bind($ds, $dn, '«{p}»')", "#2 /srv/a.php(9): ftp_login(Resource id #3, 'me', '«{p}»')", "ssh2_auth_password($c, 'me', '«{p}»')", "imap_open('{imap.example.org:993/imap/ssl}INBOX', 'me@example.org', '«{p}»')", misses=('new PDO("sqlite::memory:", null, null)', 'getConnection("a", user, pw2)', "#0 a.php(9): PDO->__construct('sqlite:/srv/a.db', NULL, NULL)", "PDO->__construct('mysql:host=h', 'app', Object(SensitiveParameterValue))", "new PDO('mysql:host=h', 'app', $password)", "ldap_bind($ds, $dn, $pw2)", "ldap_bind(Object(LDAP\\Connection), 'cn=admin', NULL)")),
    context_rule(rf"(?:mysqli_real_connect|smbclient_state_init){_OPEN}{_OTHER},{WRAP}{_USER}{_USER}{_V}", "mysqli_real_connect|smbclient_state_init", "mysqli_real_connect($m, 'h', 'app', '«{p}»', 'shop')", "mysqli_real_connect(Object(mysqli), 'h', 'app', '«{p}»', 'shop')"),
    context_rule(rf"(?:oci_p?connect|oci_new_connect|wpdb(?:->__construct)?|setsaslauthdata|(?:->|\.)change_user){_OPEN}{_USER}{_V}", "oci_connect|oci_pconnect|oci_new_connect|wpdb|setsaslauthdata|->change_user|.change_user", "oci_connect('app', '«{p}»', '//h/ORCL')", "wpdb->__construct('wp', '«{p}»', 'wp', 'h')", "$m->change_user('app', '«{p}»', 'shop')"),
    context_rule(rf"plainauth{_OPEN}{_USER}{_USER}{_V}", "plainauth", 'smtp.PlainAuth("", "me@example.org", "«{p}»", "smtp.example.org")'),
    context_rule(rf"(?:(?:simple_)?bind\w{{0,12}}){_OPEN}\\{{0,7}}[\"'](?:(?:cn|uid|ou|dc|o|samaccountname)=|[\w.-]{{1,40}}\\{{1,4}})[^\"'\n]{{1,200}}[\"'],{WRAP}{_V}", "simple_bind|bind(|bind_s(|bindasync(", 'conn.simple_bind_s("cn=admin,dc=x", "«{p}»")', "client.bind('uid=me,ou=people', '«{p}»', cb)", misses=('socket.bind("host", "port12")', "ldap.bind('cn=admin', password2)")),
    context_rule(rf"(?:connect|connection|ssl_?connection)(?:->__construct)?{_OPEN}(?:{_STRING}|{_OTHER}),{WRAP}\d{{2,5}},{WRAP}{_USER}{_LIKELY}", "connect(|connection(|connection->__construct(", 'ssh.connect(host, 22, "root", "«{p}»")', "AMQPStreamConnection->__construct('h', 5672, 'app', '«{p}»', '/')", misses=('connect(h, 443, "GET", "/v1/items")', 'connect("h", 22, "root", "keyfile")')),
    context_rule(r"(?:password_verify|checkpw|verify_password|verifypassword|bcrypt\.compare(?:sync)?)\(b?\\{0,7}[\"'](?P<v>(?=[^\"'\s]{0,60}\d)[^\"'\s\\]{6,64})\\{0,7}[\"'],", "password_verify(|checkpw(|verify_password(|verifypassword(|bcrypt.compare", "password_verify('«{p}»', '$2y$10$...')", "bcrypt.compare('«{p}»', hash)", misses=("password_verify('password', $hash)",)),
    context_rule(rf"sign{_OPEN}(?:\{{[^{{}}\n]{{0,300}}\}}|\w{{1,40}}),{WRAP}{_LIKELY_KEY}", "sign(", "jwt.sign({sub: 'me', role: 'admin'}, '«{p}»', {expiresIn: '30d'})", "jwt.sign({ sub: 'me' }, '«ribbon-saddle-lemon-glacier»')", near=("jwt", "jsonwebtoken", "jose"), misses=("jwt.sign({a: 1}, process.env.KEY1)", "jwt.sign(payload, 'secret')")),
    # Formats
    context_rule(rf"://(?:%s:%s|\{{\}}:\{{\}})@[^\"'\n]{{0,200}}\\{{0,7}}[\"'](?:{WRAP},|[ ]?%[ ]?\(|\.format\(|(?=[ \t])){WRAP}(?:{_STRING}|[^\s,\"'()]{{1,60}})(?:,|[ \t]){WRAP}{_V}", "://%s:%s@|://{}:{}@", 'fmt.Sprintf("postgres://%s:%s@%s/shop", user, "«{p}»", host)', "'amqp://{}:{}@h'.format('app', '«{p}»')", r"printf 'https://%s:%s@h\n' me '«{A40}»' > ~/.git-credentials", misses=('fmt.Sprintf("postgres://%s:%s@%s/shop", user, password, "localhost1")',)),
    context_rule(r":%s(?:\\{1,8}n)?\\{0,7}[\"'](?:[ \t]{1,4}(?:\\{0,7}[\"'])?[^\s\"'\\]{1,100}(?:\\{0,7}[\"'])?){0,4}?[ \t]{1,4}(?:\\{0,7}[\"'])?(?P<v>[^\s\"'\\$|;&<>]{4,200})(?:\\{0,7}[\"'])?[ \t]{0,4}(?:>|\|)", ":%s'|:%s\"|:%s\\", r"printf 'h:5432:shop:app:%s\n' '«{p}»' >> ~/.pgpass", r"printf '%s:%s:%s:%s:%s\n' h 5432 shop app «{p}» | tee ~/.pgpass", near=("pgpass",)),
    # Commands as lists
    _listed("redis-cli|valkey-cli", "-a", "['redis-cli', '-a', '«{p}»', 'ping']", r'[\"redis-cli\", \"-h\", \"h\", \"-a\", \"«{p}»\"]', "- redis-cli\n- -a\n- «{p}»\n- ping\n", misses=("['redis-cli', '-a', '$PASS']",)),
    _listed("sshpass", "-p", '"sshpass", "-p", "«{p}»", "ssh", "h"'),
    _listed("mongosh|mongodump|mongorestore|mongoexport|mongoimport|cqlsh|twine|docker|podman", "-p", '["mongosh", "-u", "me", "-p", "«{p}»"]', '["docker", "login", "-u", "me", "-p", "«{p}»"]', misses=('["docker", "run", "-p", "80:80"]', '["docker", "run", "-p", "8080:8080", "x"]')),
    _listed("sqlcmd|mosquitto_pub|mosquitto_sub|unzip", "-P", '["sqlcmd", "-U", "sa", "-P", "«{p}»"]'),
    _listed("ldapsearch|ldapadd|ldapmodify|ldapwhoami", "-w", '["ldapsearch", "-x", "-w", "«{p}»"]'),
    context_rule(rf"curl(?:{_NEXT}[^\"'\n\\]{{1,100}}){{0,12}}?{_NEXT}(?:-u|--user){_NEXT}[\w.@-]{{1,60}}:(?P<v>[^\s\"'\\$]{{3,200}})", "curl", '["curl", "-s", "-u", "me:«{p}»", "https://h"]', misses=('["curl", "-u", "me:$PASS"]',)),
)
# fmt: on
