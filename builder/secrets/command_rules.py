r"""Rules for secrets in the options and arguments of commands, by the manual of each program.

As in `builder.secrets.context_rules`: the value is the group `v`, case is ignored, and each pattern
starts with one of the literals of its prefilter unless `lead` says otherwise.
"""

# ruff: noqa: E501 - a table: one rule on a line
from __future__ import annotations

from builder.secrets.secret_rule import (
    DOLLAR,
    ENCLOSED,
    QUOTE,
    REST,
    WORD,
    SecretRule,
    context_rule,
)

_VALUE = r"(?P<v>[^\s\"'`\\$<>|;&/@%~-][^\s\"'`\\$<>|;&]{3,200})"
"""A value on a command line that is neither an option nor a path."""
_MIXED = (
    r"(?P<v>(?=[^\s\"'\\]{0,99}\d)(?=[^\s\"'\\]{0,99}[a-z])(?![-/])"
    rf"(?:{ENCLOSED}|(?:[^\s\"'`\\$<>|;&()\[\]]|{DOLLAR}){{5,200}}))"
)
"""A value with letters and digits."""
_NAMED = r"[\w./:@{}-]{0,100}(?:password|passwd|passphrase|pass|secret|token|api[_-]?key|[_-]key|credentials?)"
"""A path or a name that ends in a word for secrets."""


def _option(commands: str, options: str, *hits: str, misses: tuple[str, ...] = ()) -> SecretRule:
    """Returns a rule for the value after an option of one of some commands (separated by `|`)."""
    pattern = rf"(?:{commands}){REST}(?:{options}){QUOTE}{_VALUE}"
    return context_rule(pattern, commands, *hits, misses=misses)


# fmt: off
COMMAND_RULES = (
    # Windows
    _option("schtasks", r"/r?p[ \t]{1,2}", "schtasks /create /tn a /tr c:\\\\x.cmd /ru corp\\me /rp «{p}»"),
    _option("signtool|azuresigntool|osslsigncode|certutil|pvk2pfx", r"(?:/p|-p|-pass|-pi|-po|-kvs)[ \t]", "signtool sign /f a.pfx /p «{A17}» /t http://h a.exe", "certutil -p «{p}» -importpfx a.pfx"),
    _option("plink|pscp|psftp|winscp|psexec|paexec|mstsc", r"(?:-pw|-p|/p:)[ \t]{0,2}", "plink -ssh me@h -pw «{p}» ls", "psexec \\\\\\\\h -u me -p «{p}» cmd"),
    _option("netdom|djoin|dsadd|dsmod|wmic|redircmp|repadmin", r"(?:/p|/pd|/ps|/pwd|/passwordd|/passwordo|/password|-pwd)[: \t]", "netdom join h /domain:corp /userd:me /passwordd:«{p}»", "dsadd user cn=a -pwd «{p}»"),
    context_rule(rf"/(?:user|admin|service|target|source)?(?:password|passwd|pwd)[do]?:{QUOTE}{_VALUE}", "/", "setup.exe /user:me /password:«{p}»", near=("/password", "/passwd", "/pwd", "password:"), misses=("see /password:",)),
    context_rule(rf"bitsadmin /setcredentials[ \t](?:\S{{1,60}}[ \t]){{4}}{QUOTE}{WORD}", "bitsadmin /setcredentials", "bitsadmin /SetCredentials job SERVER BASIC me «{p}»"),
    # macOS
    _option("security unlock-keychain|security create-keychain|security set-keychain-password|security set-key-partition-list|security import|security export", r"-[pok][ \t]", "security unlock-keychain -p «{p}» build.keychain", "security set-key-partition-list -S apple-tool: -s -k «{p}» a.keychain"),
    _option("altool|notarytool", r"(?:-p|--password)[ \t=]", "xcrun altool --upload-app -f A.ipa -u me@example.org -p «{l4}-{l4}-{l4}-{l4}»", misses=("xcrun altool -p @keychain:AC_PASSWORD",)),
    context_rule(r"(?<![a-z-])(?P<v>(?-i:[a-z]{4}(?:-[a-z]{4}){3}))(?![a-z-])", "-", "apple app-specific: «{l4}-{l4}-{l4}-{l4}»", lead=(4, 4), near=("app-specific", "notarytool", "altool", "appleid", "apple id", "application_specific"), misses=("the altool with some-long-word-list-here",)),
    context_rule(rf"dscl[^\n|;&]{{1,40}}-passwd[ \t]{{1,2}}\S{{1,80}}[ \t]{{1,2}}{QUOTE}{WORD}", "dscl", "dscl . -passwd /Users/me «{p}»"),
    context_rule(rf"-setairportnetwork[ \t]{{1,2}}\w{{2,8}}[ \t]{{1,2}}(?:\"[^\"\n]{{1,40}}\"|'[^'\n]{{1,40}}'|\S{{1,40}})[ \t]{{1,2}}{QUOTE}{WORD}", "-setairportnetwork", "networksetup -setairportnetwork en0 home «{p}»"),
    context_rule(r"(?P<v>[A-Z0-9]{4}(?:-[A-Z0-9]{4}){5})(?![\w-])", "-", "FileVault recovery key = «{U4}-{U4}-{U4}-{U4}-{U4}-{U4}»", lead=(4, 4), near=("recovery key", "filevault", "recoverykey")),
    # Directories, mail and networks
    _option("ldappasswd", r"(?-i:-[saw])[ \t]{0,2}", "ldappasswd -x -D cn=admin -W -s «{A14}» uid=me"),
    _option("kadmin|addprinc|cpw |ktutil|ktpass", r"(?:-pw|-w|/pass|-pass)[ \t]", "kadmin.local -q 'addprinc -pw «{p}» me'"),
    _option("swaks|sendemail|mailsend|smtp-cli", r"(?:-ap|-xp|-pass|--auth-password|--pass)[ \t=]", "swaks --to a@example.org -au me -ap «{p}»"),
    _option("doveadm pw|saslpasswd2|dovecotpw", r"-p[ \t]", "doveadm pw -s SSHA256 -p «{p}»"),
    _option("ipmitool|racadm|ilorest|redfishtool|idracadm", r"(?:-p|--password)[ \t]{1,2}", "ipmitool -I lanplus -H h -U root -P «{p}» power status"),
    context_rule(rf"(?:ipmitool[^\n|;&]{{0,100}}user set password \d{{1,2}}|racadm[^\n|;&]{{0,100}}users\.\d{{1,2}}\.password)[ \t]{{1,2}}{QUOTE}{WORD}", "ipmitool|racadm", "ipmitool user set password 2 «{p}»", "racadm set iDRAC.Users.2.Password «{p}»"),
    context_rule(r"radtest[ \t](?:[^\s|;&]{1,80}[ \t]{1,4}){4}\\{0,7}[\"']?(?P<v>[^\s\"'\\$]{6,100})", "radtest", "radtest me \"$PW\" 192.0.2.7 0 '«{p}»'"),
    _option("mcrcon|rcon-cli|rcon", r"(?-i:-p|--password)[ \t=]", "mcrcon -H 192.0.2.7 -P 25575 -p '«{p}»' list"),
    _option("sipp", r"-ap[ \t]", "sipp -sn uac -au 174 -ap «{p}» 192.0.2.7:5060 -m 1"),
    context_rule(r"printf[ \t]{1,4}\\{0,7}[\"']%s\\{1,8}n%s(?:\\{1,8}n)?\\{0,7}[\"'][ \t]{1,4}\\{0,7}[\"']?[^\s\"'\\]{1,80}\\{0,7}[\"']?[ \t]{1,4}\\{0,7}[\"']?(?P<v>[^\s\"'\\$]{4,100})", "printf", r"printf '%s\n%s\n' 'me' '«{p}»' > /etc/openvpn/auth.txt", near=("auth", "pass", "cred", "login", "secret"), misses=(r"printf '%s\n%s\n' auth $PASS2",)),
    context_rule(rf"samba-tool user (?:create|add)[ \t]{{1,2}}[\w.@-]{{1,60}}[ \t]{{1,2}}{QUOTE}{_VALUE}", "samba-tool user", "samba-tool user create me «{p}» --given-name=A"),
    context_rule(rf"(?:net ads|net rpc|mount\.cifs|samba-tool){REST}-u[ \t]{{0,2}}{QUOTE}[\w.\\@-]{{1,100}}%(?P<v>(?:[^\s\"'$\\]|{DOLLAR}){{3,99}})", "net ads|net rpc|mount.cifs|samba-tool", "net ads join -U me%«{p}»"),
    context_rule(r"set_network \d{1,3} (?:psk|password|wep_key\d|private_key_passwd) (?:\\{0,7}[\"']){0,2}(?P<v>[^\s\"'\\]{4,100})", "set_network", "wpa_cli set_network 0 psk '\"«{p}»\"'"),
    context_rule(rf"iwconfig \w{{2,12}}[^\n|;&]{{0,80}}? (?:key|enc) (?:s:)?{QUOTE}{_MIXED}", "iwconfig", "iwconfig wlan0 essid home key s:«{p}»"),
    context_rule(rf"(?:openvpn|openconnect|vpnc|strongswan|xl2tpd)[^\n|;&]{{0,100}}--(?:passwd|password|auth-user-pass|secret)[ \t=]{{1,2}}{QUOTE}{_MIXED}", "openvpn|openconnect|vpnc", "openconnect --user me --password «{p}» h", misses=("openvpn --auth-user-pass /etc/auth1.txt",)),
    # Databases and queues
    context_rule(r"(?:impdp|expdp|sqlldr|rman|sqlcl|sqlplus|\bsql|\bexp|\bimp|tkprof)[ \t][^\n|;&]{0,80}?(?<=[ \t=\"'])[\w$#]{1,40}/\\{0,7}\"?(?P<v>[^\s\"'@/\\$]{3,100})\\{0,7}\"?@[\w/]", "impdp|expdp|sqlldr|rman |sqlcl|sqlplus|sql |exp |imp ", "impdp system/«{p}»@ORCL dumpfile=a.dmp", "sqlldr userid=app/«{p}»@db control=a.ctl"),
    _option("beeline|tsql|isql-fb|gbak|gsec|arangosh|vsql|nzsql", r"(?:-p|-w|-pw|-pas|-pass|-password|--?[\w.]{0,20}password)[ \t=]", "beeline -u jdbc:hive2://h -n me -p «{p}»", "arangosh --server.password «{p}»"),
    _option("influx ", r"(?:-t|--token)[ \t=]", "influx config create -n a -o me -t «{A40}»", "influx query --token «{A40}» 'buckets()'"),
    context_rule(rf"mysqladmin[^\n|;&]{{0,100}}? password[ \t]{{1,2}}{QUOTE}{WORD}", "mysqladmin", "mysqladmin -u root password '«{p}»'"),
    context_rule(rf"(?:etcdctl|consul|redis-cli|zkcli\S{{0,3}}|kv|vault|chamber|defaults|gsettings|dconf|ssm|snap|pulumi)[^\n|;&]{{0,100}}?[ \t](?:put|set|write|create|add)[ \t]{{1,2}}(?:--?[\w-]{{1,20}}[ \t]){{0,2}}{QUOTE}(?:[\w./-]{{1,60}}[ \t])?{_NAMED}{QUOTE}[ \t]{{1,2}}(?:-string[ \t])?{QUOTE}{_MIXED}", "etcdctl|consul kv|redis-cli|zkcli|kv put|chamber write|defaults write|gsettings set|dconf write|pulumi config", "etcdctl put /shop/db_password «{p}»", "consul kv put shop/db/password «{p}»", "pulumi config set --secret dbPassword «{p}»", "chamber write shop db_password «{p}»", misses=("etcdctl put /shop/db_password $PW1", "redis-cli set token user")),
    context_rule(rf"etcdctl user add[ \t]{{1,2}}{QUOTE}[\w.-]{{1,60}}:{WORD}", "etcdctl user add", "etcdctl user add root:«{p}»"),
    # Archives, documents and disks
    context_rule(rf"\b(?:user_pw|owner_pw|input_pw)[ \t]{{1,2}}(?:\w{{1,8}}=)?{QUOTE}{WORD}", "user_pw|owner_pw|input_pw", "pdftk in.pdf output out.pdf user_pw «{p}»"),
    context_rule(rf"qpdf[^\n|;&]{{0,80}}--encrypt[ \t]{{1,2}}{QUOTE}(?P<v>(?:[^\s\"'$\\]|{DOLLAR}){{4,60}}\\{{0,7}}[\"']?[ \t]{{1,2}}\\{{0,7}}[\"']?(?:[^\s\"'$\\]|{DOLLAR}){{4,60}}){QUOTE}[ \t]{{1,2}}(?:40|128|256)", "qpdf", "qpdf --encrypt «{A12} {A14}» 256 -- a.pdf b.pdf"),
    context_rule(r"(?:7z|7za|7zz|7zr|7-zip|rar|unrar)[ \t][^\n|;&]{0,200}?-(?:p|hp)\\{0,7}[\"'](?P<v>(?<=')[^\s'\\]{4,99}(?=')|[^\s\"'$\\][^\s\"'$\\]{3,99})", "7z |7za |7zz |7zr |rar |unrar ", "7z a -p'«{p}»' a.7z x"),
    _option("veracrypt|truecrypt|steghide|ccrypt|hdiutil|encfs|outguess|mcrypt|aescrypt|rar2john|ecryptfs", r"(?-i:-p|-K|-k|-pass|--password|-passphrase)[ \t=]", "veracrypt --text -p «{p}» a.hc /mnt", "steghide extract -sf a.jpg -p «{p}»"),
    # Clouds and stores
    context_rule(rf"b2 (?:authorize-account|account authorize)[ \t]{{1,2}}\S{{12,40}}[ \t]{{1,2}}{QUOTE}{WORD}", "b2 authorize-account|b2 account authorize", "b2 authorize-account 005{h22} «K005{B27}»"),
    context_rule(rf"mc admin user add[ \t]{{1,2}}\S{{1,60}}[ \t]{{1,2}}\S{{1,60}}[ \t]{{1,2}}{QUOTE}{WORD}", "mc admin user add", "mc admin user add m me «{p}»"),
    context_rule(rf"az[ \t][^\n|;&]{{1,160}}?[ \t]-p[ \t]{{1,2}}{QUOTE}{_MIXED}", "az ", "az sql server create -n a -u me -p «{p}»", near=("az sql", "az login", "az vm", "az postgres", "az mysql", "az ad", "az acr")),
    context_rule(rf"--(?:oauth2-)?bearer(?:-token)?[ \t=]{{1,2}}{QUOTE}{WORD}", "--bearer|--oauth2-bearer", "curl --oauth2-bearer «{A40}» https://h", generated=True),
    context_rule(rf"(?:--cert|-e)[ \t=]{{1,2}}{QUOTE}[\w./~-]{{1,100}}\.(?:pem|p12|pfx|crt):(?P<v>(?:[^\s\"'$\\]|{DOLLAR}){{4,100}})", "--cert|-e ", "curl --cert client.pem:«{p}» https://h", near=("curl",)),
    context_rule(rf"ansible-vault encrypt_string[ \t](?:--[\w-]{{1,30}}[ \t=]\S{{1,60}}[ \t]){{0,3}}{QUOTE}(?!-){WORD}", "ansible-vault encrypt_string", "ansible-vault encrypt_string '«{p}»' --name db"),
    context_rule(rf"(?:--pass(?:word)?-?(?:command|cmd)|-?-extpass|passcommand|passcmd|passwordeval|password_?command|askpass)(?:[ \t]{{0,2}}[=:]|[ \t]|\\{{0,7}}[\"'],)[ \t]{{0,2}}(?:\\{{0,7}}[\"'])?(?:/bin/)?(?:echo|printf)[ \t]{{1,2}}(?:-n[ \t])?{QUOTE}{WORD}", "--password-command|--pass-command|--password-cmd|--passcmd|--pass-cmd|extpass|passcommand|passcmd|passwordeval|passwordcommand|password_command|askpass", "restic -r /b --password-command 'echo «{l7}-{l6}-{l6}»' snapshots", "passwordeval \"echo «{p}»\"", 'execve("/usr/bin/rclone", ["rclone", "--password-command", "echo «{p}»"], 0x7ffd)', lead=(0, 1)),
    context_rule(rf"(?:echo|printf)[ \t]{{1,4}}(?:-\w{{1,3}}[ \t]{{1,4}})?(?:{QUOTE}%s(?:\\{{1,4}}n)?{QUOTE}[ \t])?{QUOTE}(?P<v>(?:[^\s\"'`\\$<>|;&]|{DOLLAR}){{5,200}})(?:\\{{1,4}}n)?{QUOTE}[ \t]{{0,4}}\|[ \t]{{0,4}}[^\n|;]{{0,60}}?(?:pass insert|secret-tool store|keepassxc-cli|ansible-vault|borg |restic |rclone (?:obscure|config)|veracrypt|gocryptfs|encfs|ssh-add|luksopen|luksformat|luksaddkey|bw unlock|op signin|functions:secrets:set|zfs load-key|age -p|htpasswd -\w{{0,3}}i)", "echo|printf", "echo '«{p}»' | pass insert -e db", "printf '%s' «{p}» | zfs load-key pool/a", near=("pass insert", "secret-tool", "keepassxc-cli", "ansible-vault", "borg", "restic", "rclone", "veracrypt", "gocryptfs", "encfs", "ssh-add", "luks", "bw unlock", "op signin", "secrets:set", "zfs load-key", "age -p", "htpasswd")),
    # Web servers
    context_rule(rf"htpasswd(?=[^\n|;&]{{0,40}}[ \t]-\w{{0,4}}b)(?:[ \t]{{1,2}}-\w{{1,6}}(?:[ \t]\d{{1,2}})?){{1,5}}(?:[ \t]{{1,2}}[^\s-]\S{{0,200}}){{1,2}}[ \t]{{1,2}}{QUOTE}{WORD}{QUOTE}(?=[ \t]{{0,4}}(?:\r|\n|\\|$|[|;&>)\"']))", "htpasswd", "htpasswd -b -c /etc/nginx/.htpasswd me «{p}»\n", "htpasswd -nbB me «{p}» > f"),
    # Values from standard input, of users, and of tools for tests
    context_rule(rf"\b(?:op|pass|gopass|keepassxc-cli|lpass|bw|rbw|age|rage|hcloud|ipa|secret-tool|doctl|vault|wrangler|gcloud|wg|doas|passage)[ \t][^\n|;<]{{0,120}}<<<[ \t]{{0,2}}{QUOTE}{WORD}", "op signin|pass |keepassxc-cli|lpass |bw |age |hcloud |ipa |secret-tool|doctl |vault |wrangler |gcloud |wg ", "op signin --raw <<< '«{p}»'", "pass insert -e web/x <<< «{p}»", "hcloud context create x <<< «{A40}»", near=("<<<",), misses=("vault kv put secret/a <<< $VALUE",)),
    context_rule(rf"\b(?:xhs?|ab|siege|hey|wrk|vegeta|newman|grpcurl)[ \t][^\n|;&]{{0,100}}?(?:-a|--auth)[ \t=]{{0,2}}{QUOTE}[\w.@-]{{1,100}}:{_MIXED}", "xh -|xhs -|ab -|siege -|hey -|xh --", "xh -a me:«{p}» h/x", "ab -n 9 -A me:«{p}» https://h/"),
    context_rule(rf"--(?:auth-cred|proxy-cred|authentication|basic-auth|http-auth)[ \t=]{{1,2}}{QUOTE}[\w.@\\-]{{1,100}}:{WORD}", "--auth-cred|--proxy-cred|--authentication|--basic-auth|--http-auth", "sqlmap -u h --auth-type basic --auth-cred 'me:«{p}»'"),
    context_rule(rf"(?:impacket-[\w-]{{2,24}}|(?:psexec|wmiexec|smbexec|atexec|dcomexec|secretsdump|getuserspns|getnpusers|gettgt|lookupsid|rpcdump|mssqlclient)\.py)[ \t][^\n|;&]{{0,120}}?[\w.-]{{1,60}}:{QUOTE}(?P<v>[^\s\"'$\\@]{{3,99}}(?:@[^\s\"'$\\@.]{{1,40}})?){QUOTE}@[\w.-]", "impacket-|psexec.py|wmiexec.py|smbexec.py|atexec.py|secretsdump.py|mssqlclient.py", "impacket-psexec corp/me:'«{p}»'@192.0.2.7", "secretsdump.py corp/me:«{p}»@dc"),
    context_rule(rf"\b(?:sftp|scp|rsync|lftp|curlftpfs|sshfs)[ \t][^\n|;&:]{{0,60}}?[\w.-]{{1,40}}:{QUOTE}(?P<v>(?=[^\s\"'@/]{{0,60}}\d)[^\s\"'$\\@/]{{6,60}}){QUOTE}@[\w.-]", "sftp |scp |rsync |lftp |curlftpfs |sshfs ", "sftp me:«{p}»@h", misses=("scp me@h:/srv/x2@1 .", "rsync host:path2/x h:")),
    context_rule(rf"(?:winrs|winrm|wecutil|klist|cmdkey|net|netsh)\b[^\n|;&]{{0,120}}?[ \t][-/]p(?:ass|w|assword)?:{QUOTE}{_MIXED}", "winrs|winrm|wecutil", "winrs -r:h -u:me -p:«{p}» dir"),
    context_rule(rf"keymaterial={QUOTE}{WORD}", "keymaterial=", "netsh wlan set profileparameter name=x keyMaterial=«{p}»"),
    context_rule(r"<keymaterial>(?P<v>[^\s<>]{8,64})</", "<keymaterial>", "<keyMaterial>«{p}»</keyMaterial>"),
    context_rule(rf"gem push[^\n|;&]{{0,100}}(?:-k|--key)[ \t=]{{1,2}}{QUOTE}{WORD}", "gem push", "gem push --key «{A40}» x.gem", generated=True),
    context_rule(rf"bundle config[ \t](?:(?:set|--[\w-]{{1,20}})[ \t]{{1,2}}){{0,4}}[\w.-]{{2,80}}[ \t]{{1,2}}{QUOTE}{WORD}", "bundle config", "bundle config set --global gems.example.org «{A40}»", generated=True),
    context_rule(rf"kaggle config set[^\n|;&]{{0,40}}-n[ \t]key[ \t]-v[ \t]{QUOTE}{WORD}", "kaggle config set", "kaggle config set -n key -v «{h32}»"),
    context_rule(rf"(?:slack-cli|slackcat|slack|telegram-send|ntfy|pushover|discord\.sh)[ \t][^\n|;&]{{0,60}}?(?:-t|--token)[ \t=]{QUOTE}{WORD}", "slack-cli|slackcat|slack chat|slack -t|telegram-send|ntfy |pushover", "slack-cli -t «{A40}» hi", generated=True),
    context_rule(rf"twilio (?:login|profiles:create)[ \t][^\n|;&]{{0,60}}?ac[0-9a-f]{{32}}[ \t]{QUOTE}(?P<v>[0-9a-f]{{32}})", "twilio login|twilio profiles:create", "twilio login ACcccccccccccccccccccccccccccccccc «{h32}»"),
    context_rule(rf"-(?:dest|src)?(?:store|key)pass[ \t]{{1,2}}{QUOTE}(?!-){_VALUE}", "-storepass|-keypass|-srcstorepass|-deststorepass|-srckeypass|-destkeypass", "keytool -importkeystore -srcstorepass «{p}» -deststorepass «{p}»"),
    context_rule(rf"openssl[ \t][^\n|;&]{{0,100}}?-(?:hmac|macopt key:|passwd|psk)[ \t]{{0,2}}{QUOTE}{WORD}", "openssl", "openssl dgst -sha256 -hmac '«{p}»' a"),
    context_rule(rf"supabase[ \t][^\n|;&]{{0,100}}?[ \t]-p[ \t]{QUOTE}{_MIXED}", "supabase ", "supabase link --project-ref x -p «{p}»"),
    context_rule(rf"chamber write[ \t]\S{{1,80}}[ \t]\S{{1,80}}[ \t]{QUOTE}(?!-){WORD}", "chamber write", "chamber write svc key «{p}»"),
    context_rule(r"config\.(?:sh|cmd)[ \t][^\n|;]{0,200}?--token[ =](?P<v>[A-Z0-9]{29})\b", "config.sh|config.cmd", "./config.sh --url https://github.com/a/b --token «{U29}» --unattended"),
    context_rule(r"accounts:[ ]?\[[^\]\n\"']{0,60}[\"'](?P<v>(?:0x)?[0-9a-f]{64})[\"']", "accounts:", "accounts: [ /* private key */ '«0x{h64}»' ],"),
    context_rule(rf"(?:mysql|mariadb)(?:dump|admin)?[\"'],[^\n\]]{{0,120}}[\"'](?-i:-p){WORD}", "mysql|mariadb", 'subprocess.run(["mysql", "-uroot", "-p«{p}»", "shop"])'),
    context_rule(r"(?:bcrypt|hash::make|password_hash|make_password|generate_password_hash|hashpw|hash_password|hashpassword|hashsync|gensaltandhash|set_password|setpassword|check_password|(?:bcrypt(?:js)?|argon2|hasher|pwd_context|hash)\.(?:hash|make|encode))\((?:b|self, ?)?\\{0,7}[\"'](?!sha\d|md5|argon|bcrypt|pbkdf|scrypt|blowfish)(?P<v>(?=[^\"'\s]{0,60}\d)[^\"'\s\\]{6,64})\\{0,7}[\"']", "bcrypt(|hash::make(|password_hash(|make_password(|hashpw(|hash_password(|hashpassword(|hashsync(|set_password(|setpassword(|check_password(|bcrypt.hash(|bcryptjs.hash(|argon2.hash(|hasher.hash(|hasher.make(|hasher.encode(|pwd_context.hash(|hash.make(", "await bcrypt.hash('«{p}»', 10)", "Hash::make('«{p}»')", "bcrypt('«{p}»')", misses=("{{ p | password_hash('sha512') }}",)),
    context_rule(rf"jwt_tool(?:\.py)?[ \t][^\n|;&]{{0,200}}?[ \t]-p[ \t]{QUOTE}{WORD}", "jwt_tool", "jwt_tool x -S hs256 -p '«{p}»'"),
    context_rule(rf"(?:runas|psexec|su|kinit)[ \t][^\n|;&]{{0,80}}--?(?:password|passwd|pwd|pass)\d?[ \t=]{QUOTE}{WORD}", "runas|psexec", "psexec h --password «{p}»"),
    context_rule(r"(?:echo|printf)[ \t][^\n|;&]{0,60}?[ \t]\\{0,7}[\"'](?P<v>[^\"'\n$\\]{5,80}\\{0,7}[\"'][ \t]\\{0,7}[\"'][^\"'\n$\\]{5,80})\\{0,7}[\"'][ \t]{0,4}\|[ \t]{0,4}(?:sudo[ \t]{1,4})?(?:passwd|smbpasswd|su|cryptsetup|kinit|vncpasswd)\b", "printf|echo", "printf '%s\\n%s\\n' '«{p}' '{p}»' | passwd me", near=("passwd", "cryptsetup", "kinit")),
    context_rule(rf"quote[ \t]{{1,4}}pass[ \t]{{1,4}}{QUOTE}(?P<v>(?:[^\s\"'$\\]|{DOLLAR}){{4,100}})", "quote pass", "quote USER me\nquote PASS «banjo_lantern_434»\n"),
)
# fmt: on
