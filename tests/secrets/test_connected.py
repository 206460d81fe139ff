"""Names and values that words, a layout or code connect, without the syntax of an assignment."""

import pytest
from support.sensitive.rule_examples import expand

from builder.secrets.secrets import find_secrets

FOUND = [
    # Words
    "DB_PASSWORD should be «Canyon!river41» from now on",
    "changed the api_key from «{A32}» to «{A32}»",
    "I set JWT_SECRET to «{A40}»",
    "the admin_password we use is «Canyon!river41», please do not commit it",
    "db_password -> «Canyon!river41»",
    "SMTP_PASS for staging: «x7Kq2mPz9Lw4»",
    "replace root_password with «Canyon#river41»",
    "what is DB_PASSWORD? it is «Canyon!river41»",
    "[debug] ldap_password [«Canyon!river41»]",
    "Copy this access token now, it will not be shown again:\n«{A40}»\n",
    "Your new password:\n\n    «x7Kq2mPz9Lw4»\n\nKeep it.",
    "`«Canyon!river41»` is the DB_PASSWORD",
    # Commands
    "ENV API_TOKEN «{A32}»",
    "git config app.token «{A32}»",
    "netlify env:set STRIPE_SECRET «{A32}»",
    "redis> SET api_token «{A32}»",
    # Layout
    "PASSWORD          «Canyon!river41»",
    "Key         Value\n---         -----\ndb_password «Canyon!river41»\n",
    "key,value\nadmin_password,«Canyon!river41»\n",
    "Client secret\n«{A40}»\n",
    "db_password:\n  «Canyon!river41»\n",
    "DB_PASSWORD:\n```\n«Canyon!river41»\n```",
    # Code
    "const p = process.env.DB_PASSWORD || '«Canyon!river41»'",
    'pw = os.getenv("DB_PASSWORD") or "«river4471»"',
    "const JWT_SECRET = process.env.JWT_SECRET || '«recipes-sunny-secret-903»';",
    "app.secret_key = '«orange42367»'",
    "session({\n  secret: '«winter-berlin-7268»',",
    "environ({'HOME': '/root', 'API_SECRET': '«plutoWillow291»', 'LANG': 'C.UTF-8'})",
    r'{\"auth_token\": \"«dragon-perro-904»\", \"port\": 5432}',
    '"Env": [\n  "JWT_SECRET=«marbleGarage76»",\n  "SECRET_KEY_BASE=«wolke65484-»"',
    "APP_NAME=shop\nDB_PASSWORD = «Perroxmonkey302»\nDEBUG=0",
    "environment:\n  TZ: Europe/Berlin\n  POSTGRES_PASSWORD: «lxBFaXm.Rwft-L»\n",
    'getConnection(\n   61\u2192    "jdbc:h2:mem", "anna", "«8TglndR2Xa02#8xb!oqD»");',
    'env::var("DB_PASSWORD").unwrap_or("«river4471»".into())',
    'password: str = Field(default="«river4471»")',
    'Dim dbPassword As String = "«river4471»"',
    "expect(cfg.password).toBe('«river4471»')",
    'log.Printf("password=%s", "«river4471»")',
    'std::string password{"«river4471»"};',
    'const dbPassword string = "«Canyon!river41»"',
    'var jwtSecret = []byte("«Canyon!river41»")',
    'public string Password { get; set; } = "«river4471»";',
    'strcpy(cfg.password, "«Canyon!river41»");',
    "DB_PASSWORD = (\n    '«river4471»'\n)",
    "$ENV{DB_PASSWORD} = '«river4471»';",
    '.storepass("«river4471»")',
    # Elements and entities
    '<string name="db_password">«river4471»</string>',
    '<entry key="admin_password">«river4471»</entry>',
    "<name>db.password</name>\n  <value>«river4471»</value>",
    "<password>\n  «river4471»\n</password>",
    "&quot;api_key&quot;:&quot;«{A32}»&quot;",
    r"password\u003d«river4471»",
    "Пароль от сервера 10.40.198.96: «Guitar*Panther917»",
    '{"db_password": {"sensitive": true, "type": "string", "value": "«Sailor&Sailor12»"}}',
    "I reset the admin account, new pass = «Maple_Bamboo_73», works for me",
    "Username: jo@example.org\\nPassword: «tiger-thunder-glacier-harbor»\"}",
    "authentication {\n  auth_type PASS\n  auth_pass «cZ7OrDgS»\n}\n",
    "rcon_password «velvetviolet32»\nport 27015\n",
    "the db password is «qzjtovbsnkuweplmrtgkhvbdsxcwqzpa»",
    "my sudo password is «CricketpurpleTurtle» use it when apt asks",
    'JWT_SECRET=«Bottleautumngarden»\n',
    "API_KEY=«vqclnoovnpzq»\n",
    "API_KEY=«velvetmarbleriverlamp»\n",
    "One-time password for first sign-in: «falcon_walnut_680»\nPlease change it",
    '.basic_auth("jo", Some("«jMy3cnB5Uven»"))',
    "$ openssl rand -base64 24\n«/t7r6eLXMZE7pO/j0qcHT7Bnlg6kDG/Q»\n$ ls",
    # Drawn from all signs
    "new pw = «u3X(eAj}TZ@9»\nok",
    "- Password: «m+;,@Dn7^T.G^RWP!C_itdva»\n",
    "the vpn asks for a password, it's `«T),I^<d_U]8.05»` (account me)",
    "[09:21] A: what's the wifi password for Guest?\n[09:22] B: «vq(P)@5JY7[qw|#N»\n[09:23] A: thx",
    "mount -t cifs -o 'username=me,password=«x)SLL0+l:m@Q»,vers=3.0'",
    "Mot de passe : «aQN)CP#TG@@=_1$T»\nMerci",
    'var c = new SqlConnection("Server=db;User ID=me;PWD=«uS(}G!S1zE»;Encrypt=True;");',
    "page.getByLabel('Password').fill('«k{AUPT<5DQrU)xEZ;a}N»')",
    # Names with dots, signs that may also be an operator
    "alerting.pagerduty.api.key=«{A20}»\n",
    'return DriverManager.getConnection(url, "me", "«Qu4rtz7736??»");',
    # Chosen in other ways
    "STORE_PASSWORD=«27kaffeeFalcon??»",
    'Environment="JWT_SECRET=«bamboo-Falcon298»"',
    "admin_password = «P4ssw0rt_30»\n",
    "[db]\nhost = h\npassword = «panda2009»\n",
    "h1 ansible_user=me ansible_ssh_pass=«juniper.tiger796»",
    "user%5Bpassword%5D=«KDlUtnS6skXiD9»&remember=1",
    "define('AUTH_KEY', '«.8l^J.)V[B.r}9s=_F|3b,@lUC=}AX=bAa.L3I[MkDF»');",
    "SECRET_KEY = '«74q6b7==ob0$y$f557%20y&8-65w70220f_9@a)3(1=pkh4($$»'",
    f"the seed phrase of the wallet is:\n«{' '.join(['{l5}'] * 12)}»\n",
    "OAUTH_CLIENT_SECRET=«walnut.kestrel.132»\n",
    # A sign that may also begin the next field of a form
    "DB_PASSWORD=«1u95&Pk4Ons#»\n",
    "https://h/?password=«river4471»&next=a1b2c3",
]  # fmt: skip
CLEAN = [
    '"AWS::IAM::AccessKey": "bf29289b78d371e3"',
    "the token stream matches ``Qwen3VLProcessor.apply_chat_template``",
    "def custom_auth(self) -> httpx2.Auth | None:",
    "uint64_t* const xcustomSecret = (uint64_t*)customSecret;",
    "single-pass fill. GH#42147",
    '"secret:[A-Za-z0-9]{8,5}"',
    "x-pw-tool-item.toggled{background-color:#8acae480}",
    "pass\n        \"en_US.UTF-8\"",
    "lodash token: lodash@4.17.21",
    'nameFrom:["author"],context:null,unsupported:!1',
    "static constexpr auto secret = kXxh3Secrets + AlgNum;",
    "PASS\nto_snake('Response200') = 'response_200'",
    "token from DINOv2-with-registers as a class",
    "secret: !vault x1y2z3a4",
    "export secret from ./lib/module2Utils",
    "the password\nuses Argon2id2024",
    "password policy requires Length12 or more",
    "password: SecureString?\n",
    "password_pattern = r'^(?=.*[a-z])(?=.*[A-Z])(?=.*\\d)'",
    "if(i.PW in e)return e[i.PW];let u=1",
    "password: x=>(0,r.jsx)(F.f,{}):(0,r.jsx)(B2.f,{})",
    "DB_PASSWORD=projects/shop-9/secrets/api-key/versions/1",
    "def f():\n    password = other2009\n",
    "input_tokens:520+41*n,output_tokens:48+7*n",
    '"ref": "path+file:///home/me/fastokens/fastokens#0.3.5",',
    'tokens = ["a", " ", "19June2000", " ", "b"]',
    'const stripe = Stripe("pk_live_51FlsmJ3iOmOvKW6E4zycTq17F6BKw7yV581a1yK");',
    "set the token budget to 128000 for gpt-4o-mini-2024-07-18",
    "Engine(postgresql+psycopg2://auth:***@db-eu1-12.int.example.net:5432/auth)",
    "encryptedData:\n    password: Ag" + "B3+xLvbdFT/rXg" * 9,
    '"refresh_tokens.delete_all_tokens":"すべてのトークンを削除する"',
    '"login.totp_code_prompt_title":"Tofaktorautentisering"',
    "API_KEY=aaaaaaaaaaaaaaaaaaaaaaaa\n",
    "CLIENT_SECRET=clientsecretofservice\n",
    "psk := cipherSuite.expandLabel(session)",
    "await team.rm('zkat', '@npm:cli', {token: 'myregistrytoken'})",
    "$ pass show x\n/usr/lib/python3/Dist2/x\n$ ls",
    '"@auth/core": "39.37.4-rc.39+build.10",',
]  # fmt: skip


@pytest.mark.parametrize("template", FOUND)
def test_found(template):
    text, secrets = expand(template)
    hits = [text[hit.start : hit.end] for hit in find_secrets(text)]
    assert secrets
    for secret in secrets:
        assert any(secret in hit for hit in hits), text
    assert all(len(hit) <= max(map(len, secrets)) + 1 for hit in hits), hits


@pytest.mark.parametrize("text", CLEAN)
def test_clean(text):
    assert find_secrets(text) == ()
