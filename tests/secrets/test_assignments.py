"""Names and their values: forms in which a name marks a secret, and in which it does not."""

import pytest
from support.sensitive.rule_examples import expand

from builder.secrets.passphrases import is_salted
from builder.secrets.secrets import find_secrets
from builder.secrets.values import has_random_case


@pytest.mark.parametrize(
    "template",
    [
        'MAIL_PASSWORD="«canyon river 88 oak»"',
        'ssid="office"\n  psk="«Canyon Creek 2024»"\n',
        "WEBHOOK_SECRET=«Velvet-Canyon-90»\n",
        "- **Password**: `«velvet_Canyon_66»`",
        "- **Password:** `«velvet_Canyon_66»`",
        "**API key**: «{A32}»",
        "redis://:«{A24}»@cache:6379",
        "enable_password: «canyon»\n",
        "REDIS_PASSWORD=«noodlewillow»\n",
        "JWT_SECRET=«MyBicycleCamel472»\n",
        'PostgreSQLContainer().withPassword("«canyon7»")',
        '"db_password": «canyon7»\nhost: h\n',
        "password=«Canyon.Bay.2»",
        "password: «hazel.Trout-90»\n",
        "ENCRYPTION_KEY                 «ZFLbzMnfHAleQXKopLanL1tiZUzAAp+gBnCTqAU83RU=»\nOS   NT",
        'psk="«84739201»"\n',
        "mqtt:\n  user: frigate\n  password: «Spring_2020.thu»\ncameras:\n",
        "+admin_user: root\n+admin_pass: «Verano2021.az»\n",
        "const JWT_SECRET = '«pepper-maple-copper-jwt-hehc6iw5»';",
        """-p '{"stringData":{"SMTP_PASS":"«anchor_velvet_ebDb»"}}'""",
        "\u2551 JWT_SECRET    \u2502 «VelvetComet2626» \u2551",
        "\u2502 DB_PASSWORD \u2502 «sunflower77» \u2502 yes \u2502",
        "| JWT_SECRET | «VelvetComet2626» |",
        r'{"a": "\u2502 JWT_SECRET \u2502 «VelvetComet2626» \u2502"}',
        "<password>«Canyon2024.cedar53»</password>",
        '"passwords": ["«Canyon2024cedar»", "«Velvet77comet»"]',
        "API_KEYS = [\n    '«{h32}»',\n    '«{h32}»',\n]",
        'tokens: ["«{A32}»", "nothing", "«{A32}»"]',
    ],
)
def test_values_of_names(template):
    text, secrets = expand(template)
    assert [text[hit.start : hit.end] for hit in find_secrets(text)] == secrets


@pytest.mark.parametrize(
    "text",
    [
        'label="Password 8"',
        "ADMIN_PASSWORD=SecureRandom.hex(32)\n",
        'the password "1234567890"',
        'password: "1234567890"',
        'password: "2024-09-18"',
        "settings\n  DB_PASSWORD            required\n",
        "          ('http', 'user/name', 'password', 'localhost:22')),",
        '{name:"PASS",value:"passed",priority:1}',
        "'pass': 'bandpass',",
        'HEADERS = ("authorization", "x-amz-content-sha256", "x-amz-date")',
        "CSE_KMS_REQUIRED_KEYS = ['KMSKeyId']",
        "  x86_cpu_PAT\t\t\t= x86_cpu_index_1_edx + 16,",
        "#define VIDEO_FORCE_KEY_FRAME\t\t(V4L2_CID_CODEC_BASE+229)",
        "PRBool PK11_RWSessionHasLock(PK11SlotInfo *slot, CK_SESSION_HANDLE session);",
        'METHOD can be "trust", "reject", "md5", "password", "scram-sha-256",',
        "[ 'USERPWD', 'HTTP200ALIASES', 'KEYPASSWD', 'KRB4LEVEL' ]",
        "d_grpasswd='define'\nd_pwpasswd='undef'\n",
        '"ClientToken": "4752b573-40a6-4eac-a8a4-a72058761219"',
        'password: "user_dbName"',
        "apt\tbase-passwd\t3.6.1\napt\tbinutils\t2.40-2\napt\tlibfoo\t1.07.1-3+b1\n",
        "Credentials (com.acme.auth:acme-auth-library-credentials:1.3.0 - https://acme.example)",
        "return " + "A" * 72,
        'key = "AAAAAAAAAAPA/' + "A" * 60 + 'gP8fbzw"',
        '"CmkType": "CUSTOMER_MANAGED_KMS_KEY", "KmsKeyId": "arn:aws:kms:eu-west-1:1:key/2"',
        '[[ "$PWD" == "$PYENV_ROOT/versions/"* ]]',
        "class Keys(Ed25519PrivateKey | Ed448PrivateKey | X25519PrivateKey | X448PrivateKey): ...",
        "_FLOW_KEY = 'google_oauth2_flow_{0}'",
        'complete "username= message= passphrase= password= scmVersion= "',
        ";*passwd:*all*authentication*tokens*updated*successfully*",
        '"nextForwardToken": "f/31961209122447488583055879464742346735121166569214640130"',
        "aws dynamodb scan --starting-token abCDeFGhiJKlmnOPqrSTuvwxYZ1aBCdEFghijK7LM51nOp",
        "def open(path, username, password, iid: _win32typing.PyIID, reserved: int): ...",
        "class User:\n  kind = m.StringField(4)\n  password = _messages.StringField(5)",
        "apt\tpasswd\t1:4.13+dfsg1-1+deb12u1\n",
        " * the preshared key authentication in station mode. In %NL80211_CMD_CONNECT\n",
        "a client request token to make the call to ``transact-write-items`` idempotent",
        "a page token that can be sent to `ListKafkaSources` to list more",
        "is a synthetic delegated credential for use with S4U2Proxy by a service",
        "TLS_SECRET=wildcard-cert-2024\n",
        '<v-field v-model="form.newPassword" :rules="passwordStrengthRules" />',
        "redis://:[PASSWORD]@cache:6379 postgres://u:[your password]@h/x",
        'if self.update_password == "always" or x["type"] === "password"===e.type:',
        "f(passphrase=pkcs12_passphrase, password=self.password.data, pwd=cfg[0])",
        '{"type5_pw": type5_pw, "BAD_PASSPHRASE": GpgBadPassphrase}',
        "r.placeholder=e.placeHolder,r.password=!!e.password,r.token=t.tokens.length-1",
        'createElement("label",{htmlFor:"auth_password"},"Password:"),d?i.createElement("code",null)',
        "case`password`:return!1}if(t){",
        "(OID_EXTENSION, 'Modify Password', 'RFC3062')",
        'import_key(k, passphrase="secret", protection="PBKDF2WithHMAC-SHA1AndAES128-CBC")',
        'hot_face:"unicode/1f975.png?v8",hot_pepper:"unicode/1f336.png?v8"',
        'api_auth = "/v1/auth/{mount_point}/config/identity".format(mount_point=m)',
        'dependencies = [("app_auth", "0006_group_enforced_2fa")]',
        "username:`kasutajanimi`,password:`salas\u00f5na`",
        'hash_scheme("password", "apr_md5_crypt")',
        "url = 'xxx+xxx://xxx:xxx@xxx:xxx/xxx'",
        "tokens.some(token2=>token2.scope===selected.scope)",
        "password: options.password ?? creds?.password ?? '',",
        "exports.LONG_PASSWORD = 0x00000001",
        "password: '={{$credentials.password}}', auth: `oauth2:${opts.token}`",
        'fields = ("usable_password", "password1", "password2")',
        'run("useradd", "--disabled-password", "--group", name)',
        "writeString('mysql_native_password', 'latin1')",
        "The options --user and --password respectively set them; add -p, --password description",
        "session required pam_unix.so use_authtok nullok",
        "amqp://USER_NAME:USER_KEY@host redis://[[username]:[password]]@localhost:6379/0",
        "Token=::1a:2b:3c:4d pkcs11:token=Root%20CA%20Certificates;serial=1",
        "credential AKID/19700101/es, X-Amz-Credential=a_b_c%2F20220513%2Fus",
        (
            'k.push("-----BEGIN PGP PRIVATE KEY BLOCK-----\\n"),k.push(wrap(encode(value,10,"a")));'
            'k.push("-----END PGP PRIVATE KEY BLOCK-----\\n")'
        ),
        "dgst,\nnseq,\npasswd,\npkcs12,\npkcs7,\n",
        "cpe:2.3:a:*:*:*:*:*:*:*:*:*:version2",
        "import the new signing key 19882D92DDA4C400C22C0D56CC2AF4472167BE03 first",
        "char **password = argv[2]; password **= 2",
        '{"token": "berlin2024"}, secret = "my-secret-1234", API_SECRET=test-key-123',
        "API_KEY=sk-ant-api03-...\n",
        "login via jo@example.org / node18 works",
        "<password>::::::",
        "<password>.:.:.:</password>",
    ],
)
def test_code_and_placeholders(text):
    assert find_secrets(text) == ()


def test_words_with_a_random_end():
    assert is_salted("pepper-maple-jwt-hehc6iw5")
    resources = ("acme-shop-db-credentials-8h2mgk5c6t", "acme-shop-hehc6iw5", "a-b-c-hehc6iw5")
    assert not any(map(is_salted, (*resources, "web-app-prod-release2", "one-two-three-four")))


def test_letters_in_random_case():
    assert has_random_case("anchor_velvet_ebDb")
    names = ("user_dbName", "some_value_userId", "a_ID", "name_McDonald", "x_Title", "plain_words")
    assert not any(map(has_random_case, names))
