r"""Values that are secret because of where they stand: headers, URLs, connection strings, commands.

The value is the group `v`; case is ignored, and each pattern starts with one of the literals of its
prefilter, which are in lower case. Values that stand for others (`$PASSWORD`, `<token>`, …) and the
words of documentation are not secrets.
"""

# ruff: noqa: E501 - a table: one rule on a line
from __future__ import annotations

from builder.scrub.secret_rule import SecretRule

_Q = r"(?:\\{0,3}[\"'])?"
"""A quotation mark, escaped or not, or none."""
_WORD = r"(?P<v>[^\s\"'`\\$<>|;&]{4,200})"
"""A value on a command line."""
_BARE = r"[^\s\"'`<>\\;,&|(){}\[\]]"
_REST = r"\b[^\n|;&]{0,200}?[ \t]"
"""What stands between a command and its option, on one line and in one command."""
_SEP = rf"{_Q}[ \t]{{0,4}}[:=][ \t]{{0,4}}{_Q}"


def _rule(
    pattern: str,
    prefilter: str,
    *hits: str,
    generated: bool = False,
    misses: tuple[str, ...] = (),
) -> SecretRule:
    """Returns a rule; `prefilter` holds its literals with `|` between."""
    return SecretRule(
        "secret",
        pattern,
        tuple(prefilter.split("|")),
        generated=generated,
        token=False,
        hits=hits,
        misses=misses,
    )


# fmt: off
CONTEXT_RULES = (
    # Headers and cookies
    _rule(r"bearer[ \t]{1,4}(?P<v>[\w.~+/=-]{16,4000})", "bearer", "authorization: bearer «{A40}»", '"Authorization": "Bearer «{L32}»"', generated=True, misses=("Bearer token-based-authentication", "bearer authenticationMiddleware", "Bearer {token}")),
    _rule(rf"authorization{_SEP}(?:basic|token|apikey|digest|negotiate|key|ssws|bot|oauth|jwt|splunk|geniekey|pat|private-token)[ \t]{{1,4}}(?!realm=|username=)(?P<v>[\w.~+/=:-]{{8,4000}})", "authorization", '"Authorization": "Basic «{A40}»"', "Authorization: Token «{A40}»", r"{\"Authorization\": \"Token «{A40}»\"}"),
    _rule(rf"authorization{_SEP}(?P<v>[\w.~+/=-]{{16,4000}})", "authorization", "Authorization: «{A40}»", generated=True, misses=("authorization: AWS4-HMAC-SHA256",)),
    _rule(r"cookie(?:\\{0,3}[\"'])?[ \t]{0,4}[:=][^\n\"']{0,400}?(?:session|sess|sid|auth|token|jwt)[\w.-]{0,20}=(?P<v>[\w.~%+/-]{16,4000})", "cookie", "Cookie: theme=dark; sessionid=«{A40}»; a=b", "Set-Cookie: connect.sid=«s%3A{A32}»; Path=/"),
    _rule(r"(?:phpsessid|jsessionid|_gitlab_session|asp\.net_sessionid|connect\.sid|remember_token|laravel_session)=(?P<v>[\w.~%+/-]{16,400})", "phpsessid=|jsessionid=|_gitlab_session=|asp.net_sessionid=|connect.sid=|remember_token=|laravel_session=", "PHPSESSID=«{n26}»"),
    # URLs
    _rule(r"://[^\s\"'<>/@:]{0,200}:(?P<v>[^\s\"'<>/@]{3,200})@[\w\[.-]", "://", "postgres://app:«{p}»@db:5432/x", "redis://:«{p}»@cache:6379", "https://x-access-token:«{A40}»@github.com/o/r.git", misses=("postgres://user:password@localhost/x mysql://root:root@db", "https://user@example.org:8080/path")),
    _rule(r"://(?P<v>[0-9a-f]{32})(?::[0-9a-f]{32})?@[\w\[.-]", "://", "https://«{h32}»@o1.ingest.sentry.io/42"),
    _rule(r"://(?P<v>[\w.-]{30,300})@[\w\[.-]", "://", "https://«{A40}»@github.com/o/r.git", generated=True),
    _rule(r"/bot(?P<v>\d{8,10}:[\w-]{30,50})", "/bot", "https://api.telegram.org/bot«{d10}:AA{W33}»/getMe"),
    _rule(r"[?&]key=(?P<v>[\w.~%+/=-]{20,400})", "?key=|&key=", "https://h/v1?key=«{A39}»"),
    _rule(r"[?&]secret=(?P<v>[a-z2-7]{16,64})", "?secret=|&secret=", "otpauth://totp/a:b?secret=«{U32}»&issuer=a"),
    _rule(r"[?&](?:appid|apikey|app_key|code)=(?P<v>[\w.~%+/=-]{20,400})", "?appid=|&appid=|?apikey=|&apikey=|?app_key=|&app_key=|?code=|&code=", "https://api.openweathermap.org/x?q=a&appid=«{h32}»", generated=True),
    _rule(r"(?<=[?&])sig=(?P<v>[\w.~%+/=-]{16,400})", "sig=", "https://a.blob.core.windows.net/c?sp=r&sig=«{A44}»"),
    _rule(r"(?<=[?&-])signature=(?P<v>[\w.~%+/=-]{16,400})", "signature=", "https://s3/x?X-Amz-Signature=«{h64}»"),
    _rule(r"security-token=(?P<v>[\w.~%+/=-]{16,4000})", "security-token=", "https://s3/x?X-Amz-Security-Token=«{A90}»"),
    # Connection strings and files of credentials
    _rule(rf"(?<=[;?&])(?:password|pwd)=(?P<v>{_BARE}{{4,400}})", "password=|pwd=", "Server=db;User Id=sa;Password=«{p}»;Encrypt=true"),
    _rule(rf"(?<=shared)accesskey=(?P<v>{_BARE}{{20,400}})", "accesskey=", "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«{B43}=»"),
    _rule(rf"accountkey=(?P<v>{_BARE}{{20,400}})", "accountkey=", "AccountName=x;AccountKey=«{B86}==»;"),
    _rule(rf"(?<=;)secret=(?P<v>{_BARE}{{20,400}})", "secret=", "Endpoint=https://x.azconfig.io;Id=ab-l0;Secret=«{B43}=»"),
    _rule(r"machine\s{1,8}\S{1,255}\s{1,8}login\s{1,8}\S{1,255}\s{1,8}password\s{1,8}(?P<v>[^\s\"'\\]{3,200})", "machine", "machine example.org\n  login me\n  password «{p}»\n"),
    _rule(r":5432:[^\s:]{1,63}:[^\s:]{1,63}:(?P<v>[^\s:\"']{4,200})", ":5432:", "db.example.org:5432:shop:app:«{p}»\n"),
    _rule(r"(?:aws_secret_access_key|aws_session_token|secret_access_key|secretaccesskey|sessiontoken)[ \t]{1,12}(?P<v>[\w+/=]{30,2000})", "aws_secret_access_key|aws_session_token|secret_access_key|secretaccesskey|sessiontoken", "AWS_SECRET_ACCESS_KEY\t«{B40}»", "aws configure set aws_secret_access_key «{B40}»", generated=True),
    _rule(r"(?<=client-)key-data: (?P<v>[A-Za-z0-9+/=]{40,8000})", "key-data", "    client-key-data: «{B120}»"),
    _rule(r"\"auth\\{0,3}\":[ \t]{0,4}\\{0,3}\"(?P<v>[A-Za-z0-9+/]{12,4000}={0,2})", '"auth', '{"auths": {"ghcr.io": {"auth": "«{B40}»"}}}', generated=True),
    _rule(r"(?:requirepass|masterauth)[ \t]{1,4}" + _WORD, "requirepass|masterauth", "requirepass «{p}»"),
    _rule(r"mnemonic(?:\\{0,3}[\"'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\{0,3}[\"'])?(?P<v>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})", "mnemonic", 'mnemonic = "«{l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5}»"'),
    _rule(r"seed phrase(?: is)?:? [\"']?(?P<v>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})", "seed phrase", "the seed phrase is: «{l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5} {l5}»"),
    _rule(r"<add key=\\?\"(?:cleartext)?password\\?\" value=\\?\"(?P<v>[^\"\\\n]{4,200})", "<add key=", '<add key="ClearTextPassword" value="«{p}»" />'),
    _rule(r"\"kty\\{0,3}\"[^{}]{0,4000}?\"d\\{0,3}\":[ \t]{0,4}\\{0,3}\"(?P<v>[\w-]{20,800})", '"kty', '{"kty": "EC", "crv": "P-256", "d": "«{W43}»"}'),
    _rule(r"<d>(?P<v>[A-Za-z0-9+/]{40,800}={0,2})</d>", "<d>", "<RSAKeyValue><D>«{B86}==»</D></RSAKeyValue>"),
    _rule(r"private-lines: \d{1,3}(?:\\n|\s){1,4}(?P<v>[A-Za-z0-9+/]{8,64}={0,2}(?:(?:\\r|\\n|\s){1,4}[A-Za-z0-9+/]{8,64}={0,2}){0,80})", "private-lines:", "Private-Lines: 2\n«{B64}\n{B40}»\nPrivate-MAC: 1"),
    # SQL and code
    _rule(r"identified[ \t]{1,4}(?:with[ \t]{1,4}\w{1,40}[ \t]{1,4})?by[ \t]{1,4}(?:password[ \t]{1,4})?\\{0,3}'(?P<v>[^\"'\\\n]{4,200})'", "identified", "CREATE USER 'a'@'%' IDENTIFIED BY '«{p}»';"),
    _rule(r"password[ \t]{1,4}\\{0,3}'(?P<v>[^\"'\\\s]{4,200})'", "password", "ALTER USER app WITH PASSWORD '«{p}»';", misses=("the password 'is required' here",)),
    _rule(r"convertto-securestring[ \t]{1,4}(?:-string[ \t]{1,4})?\\{0,3}[\"'](?P<v>[^\"'\\\n]{4,200})", "convertto-securestring", 'ConvertTo-SecureString "«{p}»" -AsPlainText -Force'),
    _rule(r"(?:httpbasicauth|httpdigestauth|basicauth)\([ \t]{0,4}\\{0,3}[\"'][^\"'\\\n]{1,100}\\{0,3}[\"'],[ \t]{0,4}\\{0,3}[\"'](?P<v>[^\"'\\\n]{4,200})", "httpbasicauth|httpdigestauth|basicauth", "auth=HTTPBasicAuth('me', '«{p}»')", misses=("auth=HTTPBasicAuth('me', pw2)",)),
    _rule(r"auth[ \t]{0,2}=[ \t]{0,2}\([ \t]{0,4}\\{0,3}[\"'][^\"'\\\n]{1,100}\\{0,3}[\"'],[ \t]{0,4}\\{0,3}[\"'](?P<v>[^\"'\\\n]{4,200})", "auth", "requests.get(url, auth=('me', '«{p}»'))"),
    # Commands
    _rule(rf"curl{_REST}(?:-u|--user|--proxy-user)[ \t=]{{0,2}}{_Q}[^\s:\"'$]{{1,100}}:(?P<v>[^\s\"'$\\]{{3,200}})", "curl", "curl -s -u admin:«{p}» https://h/", "curl --user 'a:«{p}»' https://h"),
    _rule(rf"(?:mysql|mariadb)(?:dump|admin|import)?{_REST}(?-i:-p)(?P<v>[^\s\"'$\\-]{{4,100}})", "mysql|mariadb", "mysql -h db -uroot -p«{p}» shop", misses=("mysql -h db -P3306 -u root -p", "mysql -p$PASS shop")),
    _rule(rf"(?:docker|podman|helm registry|oras|buildah|skopeo|az|oc|cf) login{_REST}(?:-p|--password)[ \t=]?{_Q}(?P<v>[^\s\"'$\\-]{{4,200}})", "docker login|podman login|helm registry login|oras login|buildah login|skopeo login|az login|oc login|cf login", "docker login -u bot -p «{p}» reg.example.org", "az login -u me -p «{p}»", "podman login -u a -p «{p}» quay.io"),
    _rule(rf"redis-cli{_REST}(?:-a|--pass)[ \t]{_Q}{_WORD}", "redis-cli", "redis-cli -h cache -a «{p}» ping"),
    _rule(rf"mongo(?:sh|dump|restore|export|import)?{_REST}-p[ \t]{_Q}(?P<v>[^\s\"'$\\-]{{4,99}})", "mongo", "mongosh -u root -p «{p}» admin"),
    _rule(rf"(?:sqlcmd|bcp|isql|osql){_REST}(?-i:-P)[ \t]?{_Q}(?P<v>[^\s\"'$\\-][^\s\"'$\\]{{3,99}})", "sqlcmd|bcp|isql|osql", "sqlcmd -S db -U sa -P «{p}» -Q x"),
    _rule(rf"sshpass[ \t]{{1,4}}-p[ \t]{{0,4}}{_Q}(?P<v>[^\s\"'$\\]{{4,100}})", "sshpass", "sshpass -p '«{p}»' ssh me@h"),
    _rule(rf"(?:pgpassword|mysql_pwd|rediscli_auth|sshpass|restic_password|borg_passphrase|gpg_passphrase|vault_pass|ansible_password)={_Q}(?P<v>[^\s\"'$\\]{{4,200}})", "pgpassword=|mysql_pwd=|rediscli_auth=|sshpass=|restic_password=|borg_passphrase=|gpg_passphrase=|vault_pass=|ansible_password=", "PGPASSWORD=«sunflower» psql"),
    _rule(r"(?:(?<=-passin )|(?<=-passout )|(?<=-pass ))pass:(?P<v>[^\s\"'$\\]{4,200})", "pass:", "openssl rsa -in k.pem -passin pass:«{p}» -out k2.pem", "openssl enc -aes-256-cbc -pass pass:«{p}»"),
    _rule(rf"openssl{_REST}-(?:k|pass|passin|passout)[ \t]{_Q}(?!(?:pass|env|file|fd|stdin)\b){_WORD}", "openssl", "openssl enc -d -aes-256-cbc -k «{p}» -in a", misses=("openssl enc -pass file:key.txt",)),
    _rule(rf"(?:unzip|zip){_REST}(?-i:-P|--password)[ \t=]?{_Q}(?P<v>[^\s\"'$\\/.-][^\s\"'$\\/]{{3,99}})(?![\w./])", "unzip|zip", "unzip -P «{p}» a.zip", misses=("unzip -p archive.zip file", "gzip -k file", "unzip -p archive2.zip")),
    _rule(r"(?:7z|7za|7zz|rar|unrar|unar)[ \t](?:[^\n|;&]{0,200}?[ \t])??-(?:p|hp)(?P<v>[^\s\"'$\\-][^\s\"'$\\]{3,99})", "7z |7za |7zz |rar |unrar |unar ", "7z x a.7z -p«{p}»"),
    _rule(rf"(?:echo|printf)[ \t]{{1,4}}(?:-\w{{1,3}}[ \t]{{1,4}})?{_Q}(?P<v>[^\s\"'`\\$<>|;&]{{3,200}})(?:\\{{1,2}}n)?{_Q}[ \t]{{0,4}}\|[ \t]{{0,4}}(?:sudo[ \t][^\n|;]{{0,60}}?-\w{{0,4}}(?-i:S)\b|su[ \t]|[^\n|;]{{0,200}}?(?:--password-stdin|--with-token|--passphrase-fd|--pass-stdin))", "echo|printf", "echo «{p}» | sudo -S apt update", "echo '«sunflower»' | sudo -S ls", "echo «{A40}» | docker login --password-stdin", misses=("echo hello | sudo tee /etc/x", "echo $PASS | sudo -S ls")),
    _rule(rf"(?:echo|printf)[ \t]{{1,4}}(?:-\w{{1,3}}[ \t]{{1,4}})?{_Q}[\w.-]{{1,60}}:(?P<v>[^\s\"'`\\$<>|;&]{{3,200}})(?:\\{{1,2}}n)?{_Q}[ \t]{{0,4}}\|[ \t]{{0,4}}(?:sudo[ \t]{{1,4}})?chpasswd", "echo|printf", 'echo "root:«{p}»" | chpasswd'),
    _rule(rf"sudo[ \t][^\n|;]{{0,60}}?-\w{{0,4}}(?-i:S)\b[^\n|;<]{{0,200}}<<<[ \t]{{0,4}}{_Q}{_WORD}", "sudo", "sudo -S apt update <<< '«{p}»'", "sudo -S <<< «sunflower» ls"),
    _rule(rf"<<<[ \t]{{0,4}}{_Q}{_WORD}{_Q}[ \t]{{1,4}}sudo[ \t][^\n|;]{{0,60}}?-(?-i:S)\b", "<<<", "<<< «{p}» sudo -S ls"),
    _rule(rf"net(?:\.exe)? use[ \t][^\n|&]{{0,200}}?\\\\[^\s]{{1,200}}[ \t]{{1,4}}{_Q}(?P<v>[^\s\"'$/][^\s\"'$]{{2,99}}){_Q}[ \t]{{1,4}}/u", "net use|net.exe use", r"net use Z: \\srv\share «{p}» /user:corp\me"),
    _rule(rf"net(?:\.exe)? use[ \t][^\n|&]{{0,300}}?/user:[^\s]{{1,100}}[ \t]{{1,4}}{_Q}(?P<v>[^\s\"'$/][^\s\"'$]{{2,99}})", "net use|net.exe use", r"net use \\srv\share /user:corp\me «{p}»"),
    _rule(rf"net(?:\.exe)? user[ \t]{{1,4}}[\w.-]{{1,40}}[ \t]{{1,4}}{_Q}(?P<v>[^\s\"'$/][^\s\"'$\\]{{2,99}})", "net user|net.exe user", "net user bob «{p}» /add"),
    _rule(rf"(?:--from-literal|--set(?:-string)?|--build-arg|--env|config:set|secrets set)[= \t]{{1,3}}{_Q}[\w.-]{{0,60}}(?:password|passwd|passphrase|pwd)={_Q}{_WORD}", "--from-literal|--set|--build-arg|--env|config:set|secrets set", "kubectl create secret generic x --from-literal=password=«sunflower»", "helm install --set auth.password=«sunflower» x"),
    _rule(r"(?:cmdkey|xfreerdp|wfreerdp|rdesktop|winexe|runas)\b[^\n]{0,200}?[ \t]/p(?:ass)?:(?P<v>[^\s\"'$]{3,99})", "cmdkey|freerdp|rdesktop|winexe|runas|xfreerdp|wfreerdp", "xfreerdp /u:me /p:«{p}» /v:h", "cmdkey /add:h /user:me /pass:«{p}»"),
    _rule(rf"(?:smbclient|rpcclient|winexe|smbmap|net rpc|wmic){_REST}(?:-u|--user)[ \t=]{{0,2}}{_Q}[^\s%\"']{{1,100}}%(?P<v>[^\s\"'$\\]{{3,99}})", "smbclient|rpcclient|winexe|smbmap|net rpc|wmic", "smbclient //srv/share -U 'me%«{p}»'"),
    _rule(rf"(?:ldapsearch|ldapadd|ldapmodify|ldapdelete|ldapwhoami|ldappasswd){_REST}(?-i:-w)[ \t]{{0,2}}{_Q}(?P<v>[^\s\"'$\\-][^\s\"'$\\]{{2,99}})", "ldap", "ldapsearch -x -D cn=admin -w «{p}» -b dc=x"),
    _rule(rf"(?:keytool|jarsigner|apksigner){_REST}(?:-storepass|-keypass|-srcstorepass|-deststorepass|--ks-pass[ \t]pass:)[ \t]?{_Q}{_WORD}", "keytool|jarsigner|apksigner", "keytool -genkey -storepass «{p}» -alias a"),
    _rule(rf"htpasswd{_REST}-\w{{0,4}}b\w{{0,4}}[ \t]{{1,4}}(?:[^\s]{{1,200}}[ \t]{{1,4}}){{1,2}}{_Q}{_WORD}(?=[ \t]{{0,4}}(?:\n|$|[|;&>]))", "htpasswd", "htpasswd -bc .htpasswd me «{p}»\n"),
    _rule(rf"wpa_passphrase[ \t]{{1,4}}{_Q}[^\s\"']{{1,40}}{_Q}[ \t]{{1,4}}{_Q}{_WORD}", "wpa_passphrase", "wpa_passphrase home «{p}»"),
    _rule(rf"(?:--passphrase|--ask-vault-password|--vault-password|--rcon-password|--http-password|--ftp-password|--proxy-password|--secret-access-key|--client-secret|--sas-token|--account-key)[ \t=]{{1,2}}{_Q}(?!-){_WORD}", "--passphrase|--vault-password|--rcon-password|--http-password|--ftp-password|--proxy-password|--secret-access-key|--client-secret|--sas-token|--account-key", "gpg --batch --passphrase «{p}» -d a.gpg", "wget --http-password=«sunflower» https://h/x", misses=("gpg --passphrase --batch", "gpg --passphrase $PASS")),
    _rule(rf"(?:crackmapexec|netexec|nxc|evil-winrm|hydra|ncrack|medusa|secretsdump\.py|psexec\.py|snmpwalk|ipmitool|impacket-\w{{2,20}})\b[^\n|;]{{0,200}}?[ \t]-p[ \t]{_Q}(?P<v>[^\s\"'$\\/-][^\s\"'$\\]{{3,99}})", "crackmapexec|netexec|nxc|evil-winrm|hydra|ncrack|medusa|secretsdump.py|psexec.py|ipmitool|impacket-", "evil-winrm -i h -u me -p «{p}»"),
)
# fmt: on
