r"""Rules for secrets in dumps: hashes of passwords, what crackers print, exports, printed codes.

As in `builder.secrets.context_rules`: the value is the group `v`, case is ignored, and each pattern
starts with one of the literals of its prefilter unless `lead` says otherwise. The forms of hashes
are those of hashcat's list of examples.
"""

# ruff: noqa: E501 - a table: one rule on a line
from __future__ import annotations

from builder.secrets.layout import NUMBER
from builder.secrets.secret_rule import (
    CHOSEN,
    DRAWN,
    LINE,
    NO_NAME,
    QUOTE,
    WORD,
    SecretRule,
    context_rule,
)

_HEX32 = r"[0-9a-f]{32}"
_ENDS = rf"(?=[ \t]{{0,8}}(?:{LINE}|$))"
_MAIL = r"(?<![\w.+/=-])[\w.+-]{2,64}@[\w-]{1,60}(?:\.[\w-]{2,20}){1,4}"
_GAP = rf"(?:\s|\\{{1,4}}[nrt]|{NUMBER}|(?<=\n)[+-]){{1,24}}"
"""Space and line ends, also escaped, with line numbers or the signs of a diff."""
_TAB = r"[ \t]|\\{1,4}t"
_CODE = r"(?=[0-9a-z -]{0,20}\d)(?:[0-9a-z]{4,8}(?:[ -][0-9a-z]{4,8}){1,3}|[0-9a-z]{8,16})"
_ONE_CODE = (
    r"(?=[0-9a-z-]{0,20}\d[0-9a-z-]{0,20}\d)(?:[0-9a-z]{4,8}(?:-[0-9a-z]{4,8}){1,3}|[0-9a-z]{8,16})"
)
_MIXED_CODE = (
    r"(?=[0-9-]{0,20}[a-z])(?=[a-z-]{0,20}\d[a-z-]{0,20}\d)(?=[0-9a-z-]{0,24}(?:[a-z]\d|\d[a-z]))"
    r"(?:[0-9a-z]{4}(?:-[0-9a-z]{4}){1,4}|[0-9a-z]{5}(?:-[0-9a-z]{5}){1,4}"
    r"|[0-9a-z]{6}(?:-[0-9a-z]{6}){1,3})"
)
"""Groups of one length, with two digits or more, and one next to a letter."""
_PROSE = r"[^\n;{}()=<>:]"
_ACCOUNT = "|".join(f"{quote}ac{digit}" for quote in "'\"" for digit in "0123456789abcdef")
_PRINTS = r"get-login-password|auth print-access-token|auth print-identity-token|gh auth token|oc whoami -t|kubectl create token|vault print token|pass show|gopass show|pass ls|lpass show|admin initial-password|initial-password|get-admin-password|print-password"


def _hash(pattern: str, prefilter: str, *hits: str, misses: tuple[str, ...] = ()) -> SecretRule:
    """Returns a rule for a hash of a password; `prefilter` is as that of `context_rule`."""
    return SecretRule(
        "password_hash", pattern, tuple(prefilter.split("|")), hits=hits, misses=misses
    )


# fmt: off
DUMP_RULES = (
    # Hashes of passwords
    _hash(r"\$(?:y|gy|7)\$[./A-Za-z0-9]{1,20}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}", "$y$|$gy$|$7$", "me:«$y$j9T${A22}${A43}»:20889:0:99999:7:::"),
    _hash(r"SCRAM-SHA-(?:1|256|512)\$\d{3,7}:[A-Za-z0-9+/=]{8,60}\$[A-Za-z0-9+/=]{20,100}:[A-Za-z0-9+/=]{20,100}", "SCRAM-SHA-", "app | «SCRAM-SHA-256$4096:{B22}==${B43}=:{B43}=»"),
    SecretRule("password_hash", r"\*[0-9A-F]{40}", ("*",), near=("mysql", "mariadb", "authentication_string", "identified", "| % "), hits=("| % | app | «*5A6B0C7D8E9F6B0C7D8E9F5A6B0C7D8E9F6B0C7D» |",), misses=("mysql *ABCDEF",)),
    _hash(r"\$[PH]\$[A-Za-z0-9./]{31}", "$P$|$H$", "'me','«$P$B{A30}»'"),
    _hash(r"\$S\$[A-Za-z0-9./]{52}", "$S$", "'me','«$S$D{A51}»'"),
    _hash(r"\$krb5(?:tgs|asrep|pa|tgt)\$[^\s\"'\\]{60,8000}", "$krb5", "«$krb5tgs$23$*svc$CORP$corp/x*${h32}${h90}»", "«$krb5asrep$23$me@CORP:{h32}${h90}»"),
    _hash(r"\$(?:DCC2|mskrb5|dcc|ml|pbkdf2-sha\d{1,3}|pbkdf2-hmac-\w{2,8}|bitlocker|keepass|zip2|rar5|RAR3|7z|office|pdf|fvde|luks|ansible|bitcoin|ethereum|electrum|sshng|dmg|oldoffice|pkzip2?|truecrypt|axcrypt|telegram|mozilla)\$[^\s\"'\\<>]{24,8000}", "$DCC2$|$ml$|$pbkdf2-|$bitlocker$|$keepass$|$zip2$|$rar5$|$RAR3$|$7z$|$office$|$pdf$|$luks$|$ansible$|$bitcoin$|$ethereum$|$electrum$|$sshng$|$oldoffice$|$pkzip$|$pkzip2$|$truecrypt$|$axcrypt$", "«$DCC2$10240#me#{h32}»"),
    _hash(r"\$(?:8|9)\$[./A-Za-z0-9]{14}\$[./A-Za-z0-9]{43}", "$8$|$9$", "secret 9 «$9${A14}${A43}»"),
    context_rule(r"(?<![\w.-])[\w.-]{1,60}::[\w.-]{1,60}:[0-9a-f]{16}:(?P<v>[0-9a-f]{32}:[0-9a-f]{40,4000})", "::", "[SMB] NTLMv2-SSP Hash     : me::CORP:0123456789abcdef:«{h32}:0101000000000000{h80}»", lead=(1, 60), near=("ntlm", "responder", "hashcat", "smb]"), misses=("smb] std::a::b:0123",)),
    context_rule(rf"(?:-H|-hashes|--hash|/rc4:|/ntlm:|/aes256:)[ \t]{{0,2}}{QUOTE}:?(?P<v>{_HEX32}(?::{_HEX32})?)(?![0-9a-f])", "-h |-hashes|--hash|/rc4:|/ntlm:", "nxc smb h -u Administrator -H «{h32}» --local-auth", "psexec.py -hashes «{h32}:{h32}» me@h", near=("nxc", "netexec", "crackmapexec", "impacket", "psexec", "evil-winrm", "wmiexec", "smbexec", "secretsdump", "mimikatz", "rubeus", "pth-", "xfreerdp"), misses=("curl -H x",)),
    context_rule(rf"\bntlm[ \t]{{0,12}}[:=][ \t]{{0,12}}(?P<v>{_HEX32})(?![0-9a-f])", "ntlm", "      * NTLM     : «{h32}»"),
    # What crackers and scanners print
    context_rule(rf"(?:^|(?<=\n)|(?<=\\n)|(?<=\t)|(?<=\u2192)|(?<=\n[+-])){CHOSEN}[ ]{{4,40}}\([\w.@-]{{2,40}}\){_ENDS}", "    (", "«ginger_Garnet_meadow_56»         (jtanaka)\n1g 0:00:04:12 DONE", lead=(8, 100), near=("g 0:", "cracked", "john"), misses=("  john see step2_of33         (linux)\n",)),
    context_rule(rf"(?<![\w:/=-])[0-9a-f]{{32}}(?:[0-9a-f]{{8}}|[0-9a-f]{{32}})?:{NO_NAME}(?:{CHOSEN}){_ENDS}", ":", "hashcat -m 1000 --show a.pot\n8846f7eaee8fb117ad06bdd830b7586c:«canyon.river42!»\n", lead=(32, 64), near=("hashcat", ".pot", "cracked"), misses=("0123456789abcdef0123456789abcdef:12", "/x/0123456789abcdef0123456789abcdef:v1.2-rc3\n")),
    context_rule(rf"(?<![\w:/=-])[0-9a-f]{{32}}(?:[0-9a-f]{{8}}|[0-9a-f]{{32}})?:{DRAWN}{_ENDS}", ":", "hashcat -m 1000 --show a.pot\n8846f7eaee8fb117ad06bdd830b7586c:«kWqXzVbTnJpLd»\n", lead=(32, 64), near=("hashcat", ".pot", "cracked"), drawn=True),
    context_rule(r"\[\+\][ \t][\w.-]{0,60}\\{1,4}[\w.-]{1,60}:(?P<v>[^\s\"'\\]{4,100})", "[+]", "SMB  10.0.0.9  445  DC01  [+] corp.local\\bob:«{p}» (Pwn3d!)"),
    *(context_rule(rf"{_MAIL}[:;|]{NO_NAME}{value}{_ENDS}", ".com:|.net:|.org:|.io:|.de:|.fr:|.uk:|.eu:|.ru:|.jp:", f"me@example.org:{hit}\n", lead=(4, 140), drawn=value is DRAWN, misses=("git@github.com:org/repo2-x.git\n", "me@example.org: see step2_of33\n")) for value, hit in ((CHOSEN, "«0773r@l3mon!»"), (DRAWN, "«kWqXzVbTnJpLd»"))),
    # Exports of password managers, printed keys and codes
    context_rule(rf"<key>(?:password|passwd|passphrase|otp|pin|secret|hmacotp-secret)</key>(?:{LINE})?<value[^<>\n]{{0,60}}>(?P<v>[^<>\s][^<>\n]{{3,400}})</value>", "<key>", '<String><Key>Password</Key><Value ProtectInMemory="True">«{p}»</Value></String>'),
    context_rule(r"wifi:(?:[^\n;]{0,60};){0,4}?p:\\{0,7}\"?(?P<v>(?:\\.|[^\s;\"\\]){4,64})\\{0,7}\"?;", "wifi:", "WIFI:T:WPA;S:guest;P:«thfx338rl6m»;;"),
    context_rule(rf"(?:{_PRINTS})[ \t]?[^\n|;&]{{0,120}}{LINE}(?P<v>(?![\u251c\u2514]|error|no |usage|\w{{1,40}}=(?:true|false|none)\b)[^\s\"'\\]{{6,4000}}){_ENDS}", _PRINTS, "$ pass show infra/db\n«ShadowMagnetGarnet!»\nlogin: me", "$ argocd admin initial-password -n argocd\n«{A16}»\n\n This password", misses=("$ pass show infra\nPassword Store\n", "pass show x\nError: not in the password store\n")),
    context_rule(rf"(?:recovery|backup|scratch|emergency|one-time) codes?\b[^\n]{{0,120}}?(?:(?:{LINE}){{1,2}}```\w{{0,9}})?(?P<v>(?:(?:{LINE}){{1,2}}(?:[-*\u2022] |\d{{1,2}}[.)] )?{_CODE}(?=[ \t]{{0,4}}(?:[\r\n\\]|$))){{2,20}}|(?:{LINE}){{1,2}}(?:[-*\u2022] |\d{{1,2}}[.)] )?(?=[0-9a-z-]{{0,12}}\d)[0-9a-z]{{4,6}}-[0-9a-z]{{4,6}}(?=[ \t]{{0,4}}(?:[\r\n\\]|$))(?:(?:{LINE}){{1,2}}(?:[-*\u2022] |\d{{1,2}}[.)] )?[0-9a-z]{{4,6}}-[0-9a-z]{{4,6}}(?=[ \t]{{0,4}}(?:[\r\n\\]|$))){{0,19}})", "recovery code|backup code|scratch code|emergency code|one-time code", "# GitHub recovery codes for me«\n73675-57c97\n1a2b3-4c5d6»\n", "BACKUP CODES (google account me)«\n1. 3380 1867\n2. 4411 0923»\n", "Save your backup codes:\n\n```«\nd8aff848d1\n4d272e12e0»\n```", misses=("the recovery code paths:\n- case 1\n- case 2\n",)),
    context_rule(rf"(?:recovery|backup|scratch) code\\{{0,7}}[\"'][^\n]{{0,20}}?\(\\{{0,7}}[\"'](?P<v>{_ONE_CODE})\\{{0,7}}[\"']", "recovery code|backup code|scratch code", 'page.get_by_label("Recovery code").fill("«9pmx9-ep9x3w»")'),
    context_rule(rf"(?:recovery|backup|scratch|rescue|emergency)[ _-]codes?\b(?:[^\n]{{0,80}}\n){{0,2}}[^\n]{{0,100}}?(?:(?<![\w-])|(?<=\\n))(?P<v>{_MIXED_CODE}(?:[\s,]{{1,4}}{_MIXED_CODE}){{0,19}})(?![\w-])", "recovery code|recovery_code|recovery-code|backup code|backup_code|backup-code|scratch code|scratch_code|rescue code|emergency code", "page.click('text=Use a recovery code');\npage.fill('input[name=recovery_code]', '«tf7679-w66jq3»');", "I have one 2FA backup code left, «9yh36d-xzwx6d» , account x", "Save these backup codes:\n  «lgky-naix-qgv7-zl85»\nEach once.", misses=("recovery code in build-12345 of ipv4-host",)),
    context_rule(rf"(?:recovery|backup|scratch) codes?:{LINE}[ \t]{{0,8}}(?P<v>[a-z]{{4}}(?:-[a-z]{{4}}){{2,3}})(?=[ \t]{{0,4}}(?:[\r\n\\]|$))", "recovery code|backup code|scratch code", "Save these backup codes:\n  «syyy-fskl-djhu»\nEach once."),
    context_rule(rf"(?:recovery|backup|scratch|emergency|rescue) codes?\b(?:{_PROSE}|\([^()\n]{{0,60}}\)){{0,80}}?(?::|[ \t](?:is|are|was))[ \t]{{1,2}}[\"'`*]{{0,3}}(?P<v>{_ONE_CODE}(?:,?[ \t]{_ONE_CODE}){{0,15}}|\d{{4}}(?:[ -]\d{{4}}){{1,3}})(?![\w-])", "recovery code|backup code|scratch code|emergency code|rescue code", "Keep this recovery code (usable once): «6jn3-ph65-ow0e-z32d»", "this backup code for the admin account ann@acme.io: «6233 6586 9963» , log in", "the last unused 2FA recovery code for the admin account: «AV4Q4-C9G9A» . log in", "backup codes: «4d272e12e0, d8aff848d1»", misses=("the recovery code is in section4", "backup code: see function-name", "recovery code: abcdefgh")),
    context_rule(r"(?<![\w+/=])(?P<v>LS0tLS1CRUdJTi(?:BQUklWQVRFIEtFWS|BSU0EgUFJJVkFURSBLRVkt|BFQyBQUklWQVRFIEtFWS|BPUEVOU1NIIFBSSVZBVEUgS0VZ|BEU0EgUFJJVkFURSBLRVkt|BFTkNSWVBURUQgUFJJVkFURSBLRVkt|BQR1AgUFJJVkFURSBLRVkgQkxPQ0st)[A-Za-z0-9+/]{40,20000}={0,2})", "ls0tls1crudjti", "tls.key: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt{B120}»"),
    context_rule(r"(?P<v>hqlhbGdvcml0aG2m[A-Za-z0-9+/]{60,4000}={0,2})", "hqlhbgdvcml0ag2m", "[repository]\nversion = 1\nkey = «hqlhbGdvcml0aG2mc2hhMjU2{B120}»"),
    context_rule(r"(?:priv(?:ate)?[ _-]?key|wif)\b(?:[^\n]{0,40}?|[ \t]\w{8,90}\r?\n)(?P<v>(?-i:(?:5[HJK][1-9A-HJ-NP-Za-km-z]{49}|[KL][1-9A-HJ-NP-Za-km-z]{51})))(?![A-Za-z0-9])", "privkey|priv_key|private key|private_key|private-key|privatekey|wif", 'bitcoin-cli importprivkey "«LVxDWARuGiRSrXJRFgnTkf8m6ssoxvTNeWMxwXVJr4DvxL25T8Rp»"'),
    # Commands
    context_rule(rf"openssl passwd(?:[ \t]{{1,2}}-\w{{1,6}}){{0,4}}(?:[ \t]{{1,2}}-salt[ \t][^\s`]{{1,40}})?[ \t]{{1,2}}{QUOTE}(?P<v>[^\s\"'`$|;&<>()-][^\s\"'`|;&<>()]{{3,100}})", "openssl passwd", "useradd -p $(openssl passwd -6 '«Herbst_2022!mar»') me"),
    context_rule(rf"(?:kubectl|oc)[ \t][^\n|;&]{{0,60}}set env[ \t][^\n|;&]{{1,200}}?[ \t][A-Z0-9_]{{0,40}}(?:sign|key|secret|token|auth|passw)[A-Z0-9_]{{0,12}}={QUOTE}(?P<v>(?=[^\s\"']{{0,60}}\d)[^\s\"'$\\]{{12,200}})", "kubectl|oc set", "kubectl set env deploy/a STRIPE_WEBHOOK_SIGNING=«ce9qa9j9emjq0i2d» LOG=info", generated=True),
    context_rule(rf"(?:echo|printf)[ \t]{{1,4}}(?:-\w{{1,3}}[ \t]{{1,4}})?{QUOTE}(?P<v>[^\s\"'`\\$<>|;&]{{8,200}})(?:\\{{1,4}}n)?{QUOTE}[ \t]{{0,4}}>{{1,2}}[ \t]{{0,4}}[^\s|;&]{{0,120}}?(?:[._-]pass\b|vault_?pass|_pw\b|\.pw\b|passfile|pass\.txt)", "echo|printf", "echo '«{A24}»' > ~/.vault_pass && ansible-playbook a.yml"),
    context_rule(rf"(?:sudo -i|sudo su -?|sudo -s|\bsu -|\bsu root){LINE}(?P<v>(?-i:(?=\S{{0,40}}[A-Z])(?=\S{{0,40}}[a-z]))(?=\S{{0,40}}\d)(?=\S{{0,40}}[!@#$%^*_-])[^\s\"'\\/:;|&<>()]{{8,64}})(?=[ \t]{{1,4}}#|[ \t]{{0,8}}(?:{LINE}|$))", "sudo -i|sudo su|sudo -s|su -|su root", "sudo -i\n«Summ3r-2024$qot» # oops\nclear", misses=("sudo -i\napt-get update2-now x\n",)),
    # Files of services
    context_rule(rf"client[ \t][\w./-]{{1,60}}[ \t]?\{{{_GAP}(?:\w{{2,20}}[ \t]{{0,4}}=[ \t]{{0,4}}\S{{1,60}}{_GAP}){{0,4}}secret[ \t]{{0,4}}=[ \t]{{0,4}}{QUOTE}(?P<v>[^\s\"'\\]{{4,100}})", "client ", "client a {\n\tipaddr = 192.0.2.7\n\tsecret = «pepp3rWillow220»\n}"),
    context_rule(rf"(?:tacacs|radius) server \S{{1,60}}{LINE}(?:[^\n\\]{{1,80}}{LINE}){{0,4}}key (?:\d )?{WORD}", "tacacs server|radius server", "tacacs server A\n address ipv4 192.0.2.7\n key «{A14}»"),
    context_rule(rf"client[ \t]{{1,8}}server[ \t]{{1,8}}secret[^\n\\]{{0,60}}{LINE}(?:#[^\n]{{0,100}}{LINE})?\\{{0,7}}\"?[^\s\"#]{{1,60}}?(?:{_TAB}){{1,8}}\S{{1,60}}?(?:{_TAB}){{1,8}}\\{{0,7}}\"?(?P<v>[^\s\"\\]{{4,100}})", "client server secret|client\tserver\tsecret|client  |client\t", "# client server secret IP\nme\tpptpd\t«{A12}»\t*"),
    context_rule(r"option[ \t]{1,4}key[ \t]{1,4}\\{0,7}['\"](?P<v>[^'\"\n\\]{8,63})\\{0,7}['\"]", "option key|option\tkey", "config wifi-iface 'a'\n\toption key '«{A18}»'", near=("wifi-iface", "encryption", "ssid")),
    context_rule(rf"<auth-user-pass>{LINE}[^\s<>]{{1,80}}?{LINE}(?P<v>[^\s<>\"\\]{{4,100}})", "<auth-user-pass>", "<auth-user-pass>\nme\n«Willow5775ribbon?»\n</auth-user-pass>"),
    context_rule(r"password 51:b:(?P<v>[0-9a-f]{40,4000})", "password 51:b:", "password 51:b:«01000000D08C9DDF{h90}»"),
    context_rule(r"\[[ \n]{0,4}(?P<v>\d{1,3}(?:,[ \n]{0,8}\d{1,3}){63})[ \n]{0,4}\]", "[", "$ cat ~/.config/solana/id.json\n[«" + ",".join(map(str, range(100, 164))) + "»]", near=("solana", "keypair", "secretkey", "secret_key"), misses=("keypair [1,2,3]",)),
    context_rule(r"ed25519-v3:(?P<v>[A-Za-z0-9+/]{86}==)", "ed25519-v3:", "ADD_ONION ED25519-V3:«{B86}==» Port=80"),
    context_rule(r"sonar\.(?:login|token|password)[ \t]{0,2}=[ \t]{0,2}(?P<v>[\w-]{20,64})", "sonar.login|sonar.token|sonar.password", "sonar.login=«{h40}»"),
    context_rule(rf"snyk config set[ \t]{{1,2}}{QUOTE}api={QUOTE}(?P<v>[0-9a-f-]{{36}})", "snyk config set", "snyk config set api=«{u}»"),
    context_rule(rf"(?:validation|decryption)key[ \t]{{0,2}}=[ \t]{{0,2}}{QUOTE}(?P<v>[0-9a-f]{{32,256}})", "validationkey|decryptionkey", '<machineKey validationKey="«{h90}»" validation="SHA1" />'),
    SecretRule("secret", r"\.eJ[\w-]{20,4000}\.[\w-]{6}\.[\w-]{20,60}", (".eJ",), hits=("cookies={'session': '«.eJ{W60}.{W5}x.{W26}x»'}",)),
    context_rule(rf"following password to proceed[^\n\\]{{0,40}}(?:{LINE}){{1,3}}(?P<v>[^\s\"'\\]{{8,100}})", "following password to proceed", "Please use the following password to proceed to installation:\n\n«{h32}»\n"),
    context_rule(r"\"p(?:wd|w|ass)?\\{0,7}\"[ \t]?:[ \t]?\\{0,7}\"(?P<v>[^\"\\\n]{6,100})\\{0,7}\"", "\"p\"|\"p\\|\"pw\"|\"pw\\|\"pwd\"|\"pwd\\|\"pass\"|\"pass\\", '{"query":"mutation L($p:String!){login(password:$p){jwt}}","variables":{"p":"«orbitPicklePlum#»"}}', near=("password:$p", "password: $p")),
    context_rule(r"['\"]AC[0-9a-f]{32}\\{0,7}['\"],[ \t\n]{0,20}\\{0,7}['\"](?P<v>[0-9a-f]{32})\\{0,7}['\"]", _ACCOUNT, "require('twilio')('AC{h32}', '«{h32}»')"),
    context_rule(r"(?P<v>grub\.pbkdf2\.sha\d{1,3}\.\d{1,7}\.[0-9a-f]{16,256}\.[0-9a-f]{64,256})", "grub.pbkdf2.", "password_pbkdf2 me «grub.pbkdf2.sha512.10000.{h64}.{h90}»"),
    context_rule(r"credentials\((?:[ \t\n]{0,8}\\{0,7}[\"'][^\"'\n]{1,100}\\{0,7}[\"'],){3}[ \t\n]{0,8}\\{0,7}[\"'](?P<v>[^\"'\\\n]{4,200})\\{0,7}[\"']", "credentials(", 'credentials += Credentials("Nexus", "nexus.example.net", "ops", "«B1sh0p!806»")'),
    context_rule(rf"encryption:[ \t]{{0,4}}{LINE}key:[ \t]{{1,4}}{QUOTE}(?P<v>[A-Za-z0-9+/]{{43}}=)(?![A-Za-z0-9+/=])", "encryption:", 'api:\n  encryption:\n    key: "«{B43}=»"\n'),
    context_rule(r"encrypt\\{0,7}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,7}[\"']?(?P<v>[A-Za-z0-9+/]{22}==|[A-Za-z0-9+/]{43}=)(?![A-Za-z0-9+/=])", "encrypt", '"encrypt": "«{B43}=»",'),
    context_rule(r"\buser_[\w.-]{1,40}[ \t]{0,2}=[ \t]{0,2}\\{0,7}[\"'](?P<v>[^\"'\\\n\s]{6,100})\\{0,7}[\"']", "user_", 'KafkaServer: ScramLoginModule required user_me="«{p}»";', near=("kafka", "loginmodule", "jaas")),
    context_rule(r"\[(?P<v>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})@41058", "@41058", "[«{u}»@41058 tag=a]", lead=(37, 37)),
    SecretRule("secret", r"S[UAON][A-Z2-7]{56}", ("SU", "SA", "SO", "SN"), near=("nkey", "nats", "seed"), hits=("-----BEGIN USER NKEY SEED-----\n«SU{U56}»",)),
    context_rule(r"certificate-key[ \t=]{1,2}(?P<v>[0-9a-f]{64})", "certificate-key", "kubeadm init phase upload-certs --certificate-key «{h64}»"),
    context_rule(rf"(?:^|(?<=\n)|(?<=\t)|(?<=\u2192)|(?<=\n[+-])){DRAWN}[ ]{{4,40}}\([\w.@-]{{2,40}}\){_ENDS}", "    (", "«aOp5oVuNbojMWzzI»         (jtanaka)\n1g 0:00:04:12 DONE", lead=(8, 100), near=("g 0:", "cracked", "john"), drawn=True),
    SecretRule("secret", r"AQ[A-Za-z0-9+/]{36}==", ("AQ",), near=("ceph", "client.", "keyring", "caps "), hits=("[client.me]\n\tkey = «AQ{B36}==»\n",)),
    context_rule(rf"mosquitto_passwd[^\n|;&]{{0,60}}?[ \t]-\w{{0,3}}b\w{{0,3}}[ \t]\S{{1,200}}[ \t]\S{{1,60}}[ \t]{QUOTE}(?P<v>[^\s\"'\\$|;&]{{4,100}})", "mosquitto_passwd", "mosquitto_passwd -b /etc/mosquitto/passwd me «{A20}»"),
    SecretRule("secret", r"base64:[A-Za-z0-9+/]{43}=(?!=)", ("base64:",), hits=("'key' => '«base64:{B43}=»',",)),
    context_rule(r"twilio\([ \t]{0,2}[\w.]{1,40},[ \t]{0,2}\\{0,7}['\"](?P<v>[0-9a-f]{32})", "twilio(", "const client = twilio(accountSid, '«{h32}»');"),
    context_rule(rf"(?:terraform|tofu|pulumi)[ \t](?:output|config get|stack output)[ \t][^\n|;&]{{0,60}}?(?:passw|secret|token|api_?key|_key)[^\n|;&]{{0,40}}{LINE}\"?(?P<v>[^\s\"'\\]{{6,400}})\"?{_ENDS}", "terraform output|tofu output|pulumi config get|pulumi stack output", "$ terraform output -raw db_password\n«Eo*onlgE2cC*wFZy9=»\n"),
    context_rule(rf"(?:primary_key|deterministic_key|key_derivation_salt)[ \t]{{0,2}}[:=][ \t]{{0,4}}{QUOTE}(?P<v>[A-Za-z0-9+/=_-]{{24,100}})", "primary_key|deterministic_key|key_derivation_salt", "active_record_encryption:\n  primary_key: «{A32}»\n", near=("active_record",), generated=True),
    context_rule(r"goog-signature=(?P<v>[0-9a-f]{64,1024})", "goog-signature=", "https://storage.googleapis.com/a?X-Goog-Signature=«{h90}{h90}{h90}{h90}{h90}»"),
    context_rule(r"\.connect\([ \t]{0,4}(?:\\{0,7}[\"'][^\"'\n]{1,80}\\{0,7}[\"'],[ \t]{0,4})(?:\d{1,5},[ \t]{0,4})?\\{0,7}[\"'][\w.@-]{1,60}\\{0,7}[\"'],[ \t]{0,4}\\{0,7}[\"'](?P<v>(?=[^\"'\n]{0,60}\d)[^\s\"'\\]{6,100})\\{0,7}[\"']", ".connect(", "ssh.connect('192.0.2.7', 22, 'me', '«garnet.zephyr982»')", misses=("a.connect('x', 'y', 'z')", "o.connect('value-changed', 'a', 'cb_2')")),
    context_rule(r"==>[ ][^\n<]{0,100}(?:master|secret|token|passw|credential|\.key|\.pass|\.netrc|\.pgpass)[^\n<]{0,40}[ ]<==(?:\n|\\{1,4}n)(?P<v>[^\s\\]{16,200})(?=\s|\\|$)", "==> ", "$ head config/master.key config/a.yml\n==> config/master.key <==\n«{h32}»\n\n==> config/a.yml <==\na: 1", generated=True, misses=("==> a/tokens.py <==\nimport",)),
)
# fmt: on
