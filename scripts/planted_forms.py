"""Forms of secrets as other scanners and vendors describe them, for scripts/audit_outside.py.

None of them comes from the tables of `builder.secrets`. Tokens follow the rules of gitleaks, the
detectors of trufflehog, GitHub's list of partner patterns and the issuers' documentation; places
follow the examples of noseyparker and kingfisher and the manuals of the tools. Values are drawn
when a template is expanded (`draw`), so this file contains no secret.

`{A36}` draws 36 characters of the alphabet `A` (`ALPHABETS`), `{u}` a UUID, `{p}` a password like
those that people make up, `{g}` one like those of password managers, `{w}` a word. `«` and `»`
enclose the text that must not be written.
"""

# ruff: noqa: E501 - tables: one form per line
from __future__ import annotations

import random
import re
import string
import uuid
from typing import NamedTuple

_LOWER, _UPPER, _DIGIT = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALPHABETS = {
    "A": _LOWER + _UPPER + _DIGIT,
    "B": _LOWER + _UPPER + _DIGIT + "+/",
    "W": _LOWER + _UPPER + _DIGIT + "_-",
    "L": _LOWER + _UPPER,
    "l": _LOWER,
    "U": _UPPER,
    "K": _UPPER + _DIGIT,
    "n": _LOWER + _DIGIT,
    "h": _DIGIT + "abcdef",
    "H": _DIGIT + "ABCDEF",
    "d": _DIGIT,
    "S": _LOWER + _UPPER + _DIGIT + "!#%^*+=_-",
    "b": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "t": _UPPER + "234567",
}
_WORDS = [
    "river", "falcon", "copper", "maple", "quartz", "winter", "harbor", "saddle",
    "pepper", "violet", "meadow", "tunnel", "orange", "basket", "silver", "dragon",
    "monkey", "garden", "rocket", "summer", "thunder", "castle", "pirate", "walnut",
]  # fmt: skip
_FIELD = re.compile(r"\{(?:([AaBWLlUKnhHdSbt])(\d+)|([upgw]))\}")


class Form(NamedTuple):
    """A form of secrets: its name, and templates of texts that contain one."""

    name: str
    texts: tuple[str, ...]


def draw(template: str, pick: random.Random) -> tuple[str, list[str]]:
    """Returns a template's text with values drawn, and the secrets in it."""

    def value(field: re.Match[str]) -> str:
        if field[3] == "u":
            return str(uuid.UUID(int=pick.getrandbits(128), version=4))
        if field[3] == "w":
            return pick.choice(_WORDS)
        if field[3] == "p":
            word = pick.choice(_WORDS)
            return (
                f"{pick.choice((word, word.title()))}{pick.randint(10, 9999)}{pick.choice('!#*?')}"
            )
        alphabet, size = (ALPHABETS["S"], 16) if field[3] else (ALPHABETS[field[1]], int(field[2]))
        while True:
            made = "".join(pick.choices(alphabet, k=size))
            if size < 12 or _DIGIT[0] not in alphabet or any(map(str.isdigit, made)):
                return made

    marked = _FIELD.sub(value, template)
    secrets = re.findall("«(.*?)»", marked, re.DOTALL)
    return marked.replace("«", "").replace("»", ""), secrets


# fmt: off
TOKENS: dict[str, str] = {
    # name: the token's form; only the text marks it
    "aws access key": "AKIA{t16}", "aws sts key": "ASIA{t16}", "github classic": "ghp_{A36}",
    "github fine-grained": "github_pat_{A22}_{A59}", "github oauth": "gho_{A36}", "github server": "ghs_{A36}", "github refresh": "ghr_{A76}",
    "gitlab pat": "glpat-{W20}", "gitlab routable": "glpat-{W27}.01.0w{n7}", "gitlab runner": "glrt-{W20}", "gitlab deploy": "gldt-{W20}", "gitlab trigger": "glptt-{h40}", "gitlab job": "glcbt-{n2}_{W20}", "gitlab feed": "glft-{W20}", "gitlab scim": "glsoat-{W20}",
    "slack bot": "xoxb-{d12}-{d13}-{A24}", "slack user": "xoxp-{d12}-{d12}-{d13}-{h32}", "slack app": "xapp-1-A{K10}-{d13}-{h64}", "slack config": "xoxe.xoxp-1-{A163}", "slack session": "xoxc-{d12}-{d12}-{d12}-{h64}",
    "stripe live": "sk_live_{A24}", "stripe new": "sk_live_51{A97}", "stripe restricted": "rk_live_{A24}", "stripe test": "sk_test_{A24}", "stripe webhook": "whsec_{A32}",
    "openai legacy": "sk-{A20}T3BlbkFJ{A20}", "openai project": "sk-proj-{W74}T3BlbkFJ{W74}", "openai admin": "sk-admin-{W58}T3BlbkFJ{W58}", "openai service": "sk-svcacct-{W58}T3BlbkFJ{W58}",
    "anthropic": "sk-ant-api03-{W93}AA", "anthropic admin": "sk-ant-admin01-{W93}AA", "anthropic oauth": "sk-ant-oat01-{W93}AA", "openrouter": "sk-or-v1-{h64}",
    "deepseek": "sk-{h32}", "moonshot": "sk-{A48}", "litellm": "sk-{W22}", "google api": "AIza{W35}", "google oauth secret": "GOCSPX-{W28}", "google access": "ya29.a0{W160}", "google refresh": "1//0{d1}{W98}",
    "hugging face": "hf_{L34}", "hugging face org": "api_org_{L34}", "groq": "gsk_{A52}", "replicate": "r8_{A37}", "perplexity": "pplx-{A48}", "xai": "xai-{A80}", "nvidia": "nvapi-{W64}", "cerebras": "csk-{n48}", "langsmith": "lsv2_pt_{h32}_{h10}", "langfuse": "sk-lf-{u}", "pinecone": "pcsk_{A5}_{A63}", "tavily": "tvly-{A32}", "firecrawl": "fc-{h32}", "e2b": "e2b_{h40}", "elevenlabs": "sk_{h48}", "jina": "jina_{h32}{W28}", "wandb v1": "wandb_v1_{A77}", "cohere v2": "co_{A38}",
    "npm": "npm_{A36}", "pypi": "pypi-AgEIcHlwaS5vcmcC{W150}", "rubygems": "rubygems_{h48}", "crates.io": "cio{A32}", "nuget": "oy2{n43}", "clojars": "CLOJARS_{n60}", "docker hub": "dckr_pat_{W27}", "docker swarm": "SWMTKN-1-{n50}-{n25}", "jfrog": "AKCp8{A68}", "jfrog reference": "cmVmdGtu{A56}",
    "sendgrid": "SG.{W22}.{W43}", "mailgun": "key-{h32}", "mailgun new": "{h32}-{h8}-{h8}", "mailchimp": "{h32}-us1{d1}", "twilio sid key": "SK{h32}", "telegram": "{d10}:AA{W33}", "discord bot": "MT{A22}.{A6}.{W38}", "discord mfa": "mfa.{W84}", "slack webhook": "https://«hooks.slack.com/services/T{K10}/B{K10}/{A24}»", "discord webhook": "https://«discord.com/api/webhooks/{d18}/{W68}»", "teams webhook": "https://acme.«webhook.office.com/webhookb2/{u}@{u}/IncomingWebhook/{h32}/{u}»",
    "digitalocean": "dop_v1_{h64}", "digitalocean oauth": "doo_v1_{h64}", "heroku v2": "HRKU-AA{W58}", "fly.io": "fo1_{W43}", "fly macaroon": "fm2_{B160}", "netlify": "nfp_{A36}", "vercel": "vcp_{A56}", "supabase": "sbp_{h40}", "supabase secret": "sb_secret_{W31}", "neon": "napi_{n64}", "planetscale": "pscale_tkn_{W43}", "planetscale password": "pscale_pw_{W43}", "render": "rnd_{A28}", "railway": "{u}", "azure client secret": "{A3}8Q~{W34}", "azure devops": "{A76}AZDO{A4}", "azure storage": "{B86}==", "alibaba": "LTAI5t{A18}", "tencent": "AKID{A32}", "yandex": "AQVN{W36}", "yandex iam": "t1.{A40}.{W86}", "ibm": "{W44}", "linode": "{h64}",
    "terraform cloud": "{A14}.atlasv1.{W64}", "vault service": "hvs.{W96}", "vault batch": "hvb.{W140}", "vault legacy": "s.{A24}", "doppler": "dp.pt.{A43}", "pulumi": "pul-{h40}", "circleci": "CCIPAT_{A22}_{h40}", "buildkite": "bkua_{h40}", "databricks": "dapi{h32}", "databricks suffix": "dapi{h32}-2", "postman": "PMAK-{h24}-{h34}", "grafana": "glsa_{A32}_{h8}", "grafana cloud": "glc_{B104}", "new relic": "NRAK-{K27}", "new relic license": "{h36}NRAL", "sentry org": "sntrys_eyJpYXQiO{B100}_{B43}", "sentry user": "sntryu_{h64}", "dynatrace": "dt0c01.{t24}.{t64}", "posthog": "phx_{A43}", "honeycomb": "hcaik_01{n56}", "sonar": "sqp_{h40}", "snyk pat": "snyk_uat.{h8}.{W60}",
    "linear": "lin_api_{A40}", "notion": "ntn_{d11}{A35}", "notion old": "secret_{A43}", "airtable": "pat{A14}.{h64}", "atlassian": "ATATT3xFfGF0{W180}={H8}", "bitbucket app": "ATBB{A32}", "asana": "1/{d16}:{h32}", "clickup": "pk_{d8}_{K32}", "figma": "figd_{W40}", "hubspot": "pat-na1-{u}", "shopify": "shpat_{h32}", "shopify secret": "shpss_{h32}", "square": "EAAA{W60}", "square oauth": "sq0csp-{W43}", "paypal braintree": "access_token$production${n16}${h32}", "plaid": "access-production-{u}", "razorpay": "rzp_live_{A14}", "duffel": "duffel_live_{W43}", "easypost": "EZAK{A54}", "flutterwave": "FLWSECK_TEST-{h32}-X", "dropbox": "sl.{W135}", "contentful": "CFPAT-{W43}", "typeform": "tfp_{W44}_{W14}", "intercom": "dG9rO{A50}=", "facebook": "EAA{A180}", "instagram": "IGQV{A150}", "twitter bearer": "AAAAAAAAAAAAAAAAAAAAA{A30}%3D{A50}", "mapbox": "sk.eyJ1Ijoi{A60}.{W22}", "okta": "00{W40}", "auth0 management": "eyJhbGciOiJSUzI1NiIs{W40}.eyJ{W120}.{W342}", "jwt": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI{W60}.{W43}", "1password service": "ops_eyJ{B260}", "1password secret": "A3-{K6}-{K11}-{K5}-{K5}-{K5}", "age": "AGE-SECRET-KEY-1{U58}", "adobe": "p8e-{n32}", "tailscale": "tskey-auth-k{A11}CNTRL-{A32}", "cloudflare ca": "v1.0-{h24}-{h146}", "readme": "rdme_{n70}", "prefect": "pnu_{A36}", "infracost": "ico-{A32}", "scalingo": "tk-us-{W48}", "bitcoin wif": "K{b51}", "bip32": "xprv9s21ZrQH143K{b96}", "resend": "re_{b8}_{b24}", "brevo": "xkeysib-{h64}-{A16}", "mailersend": "mlsn.{h64}", "onesignal": "os_v2_app_{l103}", "apify": "apify_api_{A36}", "browserbase": "bb_live_{W27}", "exa": "{u}", "clerk": "sk_live_{A42}", "workos": "sk_live_{A40}", "segment": "sgp_{A64}", "launchdarkly": "sdk-{u}", "launchdarkly api": "api-{u}", "statsig": "secret-{A43}", "algolia": "{h32}", "cloudinary": "cloudinary://{d15}:«{W27}»@acme", "sentry dsn": "https://«{h32}»:{h32}@o4504.ingest.sentry.io/450", "ngrok": "2{A26}_{A21}", "cal.com": "cal_live_{h32}", "pagerduty": "u+{W18}", "opsgenie": "{u}", "zapier": "https://«hooks.zapier.com/hooks/catch/{d7}/{n7}»/", "turso": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJhIjoicnci{W80}.{W86}", "upstash": "AX{W54}", "bearer opaque": "{A64}", "confluent secret": "{B64}", "coinbase": "{W64}", "sumologic": "{A64}", "twitch": "{n30}", "fastly": "{W32}", "jumpcloud": "{h40}", "mattermost": "{n26}", "messagebird": "{A25}", "rapidapi": "{h10}msh{h15}p1{h6}jsn{h12}", "kraken": "{B86}==", "virustotal": "{h64}", "gitea": "{h40}", "drone": "{A32}", "travis": "{A22}", "etherscan": "{K34}", "infura": "{h32}", "cisco meraki": "{h40}", "datadog api": "{h32}", "datadog app": "{h40}", "heroku": "{u}", "snyk": "{u}", "codecov": "{u}", "deepgram": "{h40}", "assemblyai": "{h32}", "mistral": "{A32}", "cohere": "{A40}", "ai21": "{A32}", "together": "{h64}", "stability": "sk-{A48}", "wandb": "{h40}", "zendesk": "{A40}", "lob": "live_{h35}", "shodan": "{A32}", "trello": "{h32}", "trello token": "ATTA{h72}",
}
UNMARKED = frozenset(
    re.split(
        r"\|",
        "railway|ibm|linode|okta|exa|algolia|opsgenie|bearer opaque|confluent secret|coinbase|"
        "sumologic|twitch|fastly|jumpcloud|mattermost|messagebird|kraken|virustotal|gitea|drone|"
        "travis|etherscan|infura|cisco meraki|datadog api|datadog app|heroku|snyk|codecov|"
        "deepgram|assemblyai|mistral|cohere|ai21|together|wandb|zendesk|shodan|trello|upstash|"
        "ngrok|pagerduty|lob|azure storage|rapidapi|crates.io|bitcoin wif|litellm|cohere v2|"
        "vault legacy|mailgun new|statsig|discord mfa|snyk pat|honeycomb|airtable|asana|"
        "yandex iam",
    )
)
"""Tokens marked only by a name or a header, or with a prefix that also occurs in code."""

ANYWHERE = (
    "export {NAME}_TOKEN={}\n", "{NAME}_API_KEY={}\nDEBUG=false\n", "{name}:\n  api_key: {}\n  region: eu\n", "  token: '{}'\n",
    '{{"env": {{"{NAME}_API_KEY": "{}"}}}}', '{{\\"apiKey\\": \\"{}\\", \\"region\\": \\"eu\\"}}', '{{\\\\\\"token\\\\\\": \\\\\\"{}\\\\\\"}}',
    "curl -s -H 'Authorization: Bearer {}' https://api.example.org/v1/me", 'curl -X POST https://api.example.org -H "X-Api-Key: {}" -d @body.json',
    'client = Client(api_key="{}")', "const client = new Client({{ apiKey: '{}' }});", 'const apiKey = "{}"\n', 'private static final String API_KEY = "{}";',
    'client := sdk.NewClient(sdk.WithToken("{}"))', '  "{name}_access_token" = "{}"\n', "[{name}]\nsecret_key = {}\n", "https://api.example.org/v1/items?access_token={}&page=2",
    "$env:{NAME}_SECRET = '{}'", "set {NAME}_TOKEN={}\r\n", "docker run -e {NAME}_TOKEN={} -p 80:80 img", "{NAME}_SECRET_KEY\t{}\tproduction\n",
)
"""Places of any token; `NAME` and `name` are replaced by its issuer's."""
BARE = (
    "I found {} in the old config, should we rotate it?", "token is {}", "| production | {} | 2025-03-01 |", "   12\t{}\n   13\t\n", "Using credential {}...\n", "['{}', 'eu-west-1']", "- {}\n",
)
"""Places in which only the text of the token identifies it."""

PLACES = (
    # Databases
    Form("postgres url", ("DATABASE_URL=postgres://app:«{p}»@db.internal:5432/shop", "psql 'postgresql://app:«{g}»@db/shop?sslmode=require'", 'SQLALCHEMY_DATABASE_URI = "postgresql+psycopg2://app:«{p}»@db/shop"')),
    Form("mysql url", ('"url": "mysql://root:«{p}»@10.0.0.4:3306/shop"', "mysql+pymysql://app:«{A12}»@db/shop", 'db, err := sql.Open("mysql", "app:«{p}»@tcp(127.0.0.1:3306)/shop")')),
    Form("mongodb url", ("mongodb+srv://app:«{A16}»@cluster0.ab1cd.mongodb.net/shop", "MONGO_URL='mongodb://root:«{p}»@mongo:27017,mongo2:27017/?authSource=admin'", r'{\"uri\": \"mongodb://app:«{A14}»@m/db\"}')),
    Form("redis url", ("redis://:«{A20}»@cache:6379/0", "REDIS_URL=rediss://default:«{A24}»@eu1-cool.upstash.io:6379", "redis-cli -h cache -a «{p}» PING")),
    Form("amqp url", ("amqps://svc:«{p}»@mq.example.org/prod", "CELERY_BROKER_URL: amqp://svc:«{A12}»@rabbit:5672//")),
    Form("mssql", ("Server=tcp:db.database.windows.net,1433;Initial Catalog=shop;User ID=sa;Password=«{p}»;Encrypt=True;", "Driver={ODBC Driver 17};Server=h;UID=sa;PWD=«{p}»;", "jdbc:sqlserver://h:1433;databaseName=x;user=sa;password=«{p}»;")),
    Form("jdbc", ("jdbc:postgresql://db/shop?user=app&password=«{p}»", "jdbc:oracle:thin:app/«{A12}»@//db:1521/ORCL", "jdbc:mysql://db:3306/shop?user=app&password=«{A12}»&useSSL=false")),
    Form("oracle", ("sqlplus system/«{p}»@orcl", "sqlplus -s app/«{A10}»@//db:1521/XE @run.sql")),
    Form("libpq", ('conn = psycopg2.connect("dbname=shop user=app password=«{p}» host=db")', "host=db port=5432 user=app password=«{A14}» dbname=shop", "PGPASSWORD=«{p}» psql -h db -U app")),
    Form("pgpass", ("db.example.org:5432:shop:app:«{p}»\n", "*:*:*:postgres:«{A12}»\n")),
    Form("my.cnf", ("[client]\nuser=root\npassword=«{p}»\n", '[mysqldump]\nuser = root\npassword = "«{w}{d4}»"\n', "mysql -uroot -p«{p}» -e 'show tables'", "mysqldump --user=root --password=«{A10}» shop")),
    Form("snowflake", ("snowflake://svc:«{p}»@acct/db/schema?warehouse=wh", "SNOWSQL_PWD=«{p}» snowsql -a acct", 'snowflake.connector.connect(user="svc", password="«{p}»", account="a")')),
    Form("clickhouse", ("clickhouse://default:«{A16}»@ch:9000/x", "clickhouse-client --host ch --password «{p}»", "https://default:«{A16}»@ch.example.org:8443/")),
    Form("neo4j", ('GraphDatabase.driver("neo4j+s://x.databases.neo4j.io", auth=("neo4j", "«{A20}»"))', "NEO4J_AUTH=neo4j/«{p}»")),
    Form("elasticsearch", ("https://elastic:«{A20}»@es:9200", "ELASTIC_PASSWORD=«{A20}»", "curl -u elastic:«{p}» https://es:9200/_cat")),
    Form("cassandra", ("cqlsh -u cassandra -p «{p}» host", "PlainTextAuthProvider(username='app', password='«{p}»')")),
    Form("kafka", ('sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="K{K15}" password="«{B64}»";', "sasl.password=«{B64}»")),
    Form("cosmos", ("AccountEndpoint=https://x.documents.azure.com:443/;AccountKey=«{B86}==»;",)),
    Form("azure bus", ("Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«{B43}=»",)),
    Form("azure storage connection", ("DefaultEndpointsProtocol=https;AccountName=x;AccountKey=«{B86}==»;EndpointSuffix=core.windows.net",)),
    Form("sas", ("https://x.blob.core.windows.net/c/f?sv=2022-11-02&st=2024&sr=b&sp=r&sig=«{A42}%3D»",)),
    Form("influx", ('INFLUX_TOKEN="«{W86}==»"', 'InfluxDBClient(url="http://i:8086", token="«{W86}==»", org="o")')),
    # Files of credentials
    Form("npmrc", ("//registry.npmjs.org/:_authToken=«{u}»\n", "//npm.pkg.github.com/:_authToken=«ghp_{A36}»\n", "_auth=«{B40}»\nalways-auth=true\n", "//nexus/:_password=«{A20}»\n", "npm config set //registry.npmjs.org/:_authToken «{A36}»")),
    Form("pypirc", ("[pypi]\nusername = __token__\npassword = «pypi-AgEIcHlwaS5vcmcC{W150}»\n", "[private]\nrepository = https://h\nusername = me\npassword = «{p}»\n", "twine upload -u me -p «{p}» dist/*", "poetry config pypi-token.pypi «pypi-AgEIcHlwaS5vcmcC{W150}»", "poetry config http-basic.priv me «{p}»")),
    Form("netrc", ("machine api.heroku.com login me@example.org password «{u}»\n", "machine github.com\n  login me\n  password «{p}»\n", "default login anonymous password «{p}»\n")),
    Form("docker config", ('{"auths": {"ghcr.io": {"auth": "«{B48}»"}}}', '{"auths":{"https://index.docker.io/v1/":{"username":"me","password":"«{p}»","email":"a@b.c"}}}', r'{\"auths\": {\"quay.io\": {\"auth\": \"«{B44}»\"}}}')),
    Form("git credentials", ("https://me:«ghp_{A36}»@github.com\n", "git clone https://oauth2:«glpat-{W20}»@gitlab.com/o/r.git", "git remote set-url origin https://me:«{p}»@git.example.org/o/r.git", "origin\thttps://x-access-token:«ghs_{A36}»@github.com/o/r (fetch)")),
    Form("aws credentials", ("[default]\naws_access_key_id = AKIA{t16}\naws_secret_access_key = «{B40}»\n", "aws_session_token=«{B300}»\n", '"SecretAccessKey": "«{B40}»", "SessionToken": "«{B220}»"', "aws configure set aws_secret_access_key «{B40}»", "boto3.client('s3', aws_secret_access_key='«{B40}»')", "export AWS_SECRET_ACCESS_KEY=«{B40}»", "Access key ID,Secret access key\nAKIA{t16},«{B40}»\n")),
    Form("gcp service account", (r'{"type": "service_account", "private_key_id": "{h40}", "private_key": "«-----BEGIN PRIVATE KEY-----\n{B64}\n{B64}\n{B64}\n{B20}==\n-----END PRIVATE KEY-----»\n", "client_email": "a@b.iam.gserviceaccount.com"}', r'{\"private_key\": \"«-----BEGIN PRIVATE KEY-----\\n{B64}\\n{B64}\\n{B64}\\n-----END PRIVATE KEY-----»\\n\"}')),
    Form("gcp adc", ('{"client_id": "{d12}-{n32}.apps.googleusercontent.com", "client_secret": "«GOCSPX-{W28}»", "refresh_token": "1//0{W100}", "type": "authorized_user"}', '"refresh_token": "«1//0{W100}»"', '{"access_token": "«ya29.{W180}»", "expires_in": 3599}')),
    Form("kubeconfig", ("    client-key-data: «{B400}»\n", "  user:\n    token: «{A60}»\n", "    username: admin\n    password: «{A32}»\n", "kubectl config set-credentials me --token=«{A64}»", "kubeadm join 10.0.0.1:6443 --token «{n6}.{n16}» --discovery-token-ca-cert-hash sha256:{h64}")),
    Form("kubernetes secret", ("kind: Secret\ndata:\n  password: «{B24}»\n  username: YWRtaW4=\n", "stringData:\n  DB_PASSWORD: «{p}»\n", "kubectl create secret generic x --from-literal=password='«{p}»'", "kubectl create secret docker-registry r --docker-username=me --docker-password=«{p}»")),
    Form("ssh key", ("«-----BEGIN OPENSSH PRIVATE KEY-----\n{B70}\n{B70}\n{B70}\n{B40}==\n-----END OPENSSH PRIVATE KEY-----»\n", "   1\t«-----BEGIN RSA PRIVATE KEY-----\n   2\t{B64}\n   3\t{B64}\n   4\t{B64}\n   5\t-----END RSA PRIVATE KEY-----»\n", "«-----BEGIN EC PRIVATE KEY-----\r\n{B64}\r\n{B64}\r\n-----END EC PRIVATE KEY-----»", r'DEPLOY_KEY="«-----BEGIN OPENSSH PRIVATE KEY-----\n{B70}\n{B70}\n-----END OPENSSH PRIVATE KEY-----»\n"', "«-----BEGIN ENCRYPTED PRIVATE KEY-----\n{B64}\n{B64}\n-----END ENCRYPTED PRIVATE KEY-----»", "«-----BEGIN DSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{H32}\n\n{B64}\n{B64}\n-----END DSA PRIVATE KEY-----»")),
    Form("pgp key", ("«-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{B64}\n{B64}\n{B64}\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----»",)),
    Form("putty key", ("PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: x\nPublic-Lines: 2\n{B64}\n{B20}\nPrivate-Lines: 1\n«{B48}»\nPrivate-MAC: {h64}\n",)),
    Form("wireguard", ("[Interface]\nAddress = 10.0.0.2/32\nPrivateKey = «{B43}=»\nDNS = 1.1.1.1\n", "[Peer]\nPublicKey = {B43}=\nPresharedKey = «{B43}=»\n")),
    Form("openvpn", ("<tls-auth>\n-----BEGIN OpenVPN Static key V1-----\n«{h32}\n{h32}\n{h32}\n{h32}»\n-----END OpenVPN Static key V1-----\n</tls-auth>",)),
    Form("terraform", ('variable "db_password" {\n  default = "«{p}»"\n}', 'db_password = "«{p}»"\n', "terraform apply -var 'db_password=«{p}»'", '  "master_password": "«{g}»",\n', 'provider "aws" {\n  access_key = "AKIA{t16}"\n  secret_key = "«{B40}»"\n}')),
    Form("ansible", ("ansible_ssh_pass: «{p}»\n", 'ansible-playbook site.yml -e "ansible_become_password=«{p}»"', "web1 ansible_user=root ansible_password=«{p}»\n")),
    Form("compose", ("    environment:\n      - POSTGRES_PASSWORD=«{w}{w}»\n      - POSTGRES_USER=app\n", "      MYSQL_ROOT_PASSWORD: «{p}»\n", "      RABBITMQ_DEFAULT_PASS: «{w}{d3}»\n", "MINIO_ROOT_PASSWORD=«{A16}»\n")),
    Form("spring", ("spring.datasource.password=«{p}»\n", "spring:\n  datasource:\n    password: «{w}{d4}»\n", "jwt.secret=«{A48}»\n")),
    Form("django", ("SECRET_KEY = 'django-insecure-«{S50}»'\n", 'SECRET_KEY = "«{S50}»"\n', "    'PASSWORD': '«{p}»',\n", "EMAIL_HOST_PASSWORD = '«{l16}»'\n")),
    Form("flask", ("app.secret_key = '«{A32}»'", "app.config['SECRET_KEY'] = '«{h32}»'", 'app.config["SQLALCHEMY_DATABASE_URI"] = "mysql://u:«{p}»@h/d"')),
    Form("rails", ("  secret_key_base: «{h128}»\n", "RAILS_MASTER_KEY=«{h32}»", "config.secret_token = '«{h60}»'")),
    Form("laravel", ("APP_KEY=base64:«{B43}=»\n", "DB_PASSWORD=«{p}»\n", "MAIL_PASSWORD=«{l16}»\n")),
    Form("wordpress", ("define( 'DB_PASSWORD', '«{p}»' );", "define('AUTH_KEY', '«{S64}»');", "define('SECURE_AUTH_SALT', '«{S64}»');")),
    Form("php", ("$mail->Username = 'a@b.org';\n$mail->Password = '«{p}»';", "$password = \"«{p}»\";", "$conn = mysqli_connect('localhost', 'root', '«{p}»', 'shop');", "new PDO('mysql:host=h;dbname=d', 'root', '«{p}»')")),
    Form("dotnet", ('<add key="SmtpPassword" value="«{p}»" />', 'new NetworkCredential("me@example.org", "«{A16}»")', '"DefaultConnection": "Server=h;Database=d;User Id=u;Password=«{p}»;"', '<add name="Db" connectionString="Server=h; Database=d; User Id=u; password= «{p}»" />')),
    Form("java", ('props.setProperty("password", "«{p}»");', 'DriverManager.getConnection(url, "app", "«{p}»");', '<property name="password" value="«{p}»"/>', 'new PasswordAuthentication("me", "«{p}»")')),
    Form("maven", ("<server>\n  <id>r</id>\n  <username>me</username>\n  <password>«{p}»</password>\n</server>", "<privateKeyPassphrase>«{p}»</privateKeyPassphrase>")),
    Form("gradle", ('credentials {\n    username "me"\n    password "«{p}»"\n}', "signing.password=«{p}»\nsigning.keyId=AB12\n", 'storePassword "«{p}»"\nkeyAlias "k"', "ossrhPassword=«{p}»\n")),
    Form("jenkins", ("<apiToken>{AQAAABAAAAAw«{B64}»}</apiToken>", "curl -u me:«11{h32}» https://ci/job", "JENKINS_TOKEN=«11{h32}»")),
    Form("rclone", ("[remote]\ntype = sftp\nuser = me\npass = «{W30}»\n", "rclone config create r sftp pass «{W30}»")),
    Form("s3cfg", ("access_key = AKIA{t16}\nsecret_key = «{B40}»\n", "s3cmd --access_key=AKIA{t16} --secret_key=«{B40}» ls", "mc alias set m https://m.example.org «{K20}» «{B40}»")),
    Form("wifi", ('network={\n  ssid="home"\n  psk="«{w}{w}»"\n}', "nmcli dev wifi connect home password «{p}»", "wpa_passphrase home «{p}»")),
    Form("smtp", ("smtp.login('me@example.org', '«{l16}»')", "SMTP_PASSWORD=«{l4} {l4} {l4} {l4}»\n", "smtp://me%40example.org:«{A16}»@smtp.example.org:587", "MAILER_DSN=smtp://me:«{p}»@h:25")),
    Form("ftp", ("ftp://me:«{p}»@ftp.example.org/x", "lftp -u me,«{p}» ftp.example.org", "ftp.login('me', '«{p}»')")),
    Form("ldap", ("ldapsearch -x -D 'cn=admin,dc=x' -w «{p}» -b dc=x", "bindpw «{p}»\n", "LDAP_BIND_PASSWORD: «{p}»\n")),
    # HTTP
    Form("basic header", ("Authorization: Basic «{B28}»", "curl -H 'Authorization: Basic «{B32}»' https://h", r'{\"headers\": {\"Authorization\": \"Basic «{B36}»\"}}')),
    Form("bearer header", ('headers = {"Authorization": "Bearer «{A40}»"}', "authorization: bearer «{W48}»\n", "Authorization: Token «{h40}»\n", "Authorization: «{h40}»\n", "Proxy-Authorization: Basic «{B28}»\n")),
    Form("key headers", ("X-API-KEY: «{A32}»\n", "PRIVATE-TOKEN: «{A20}»\n", "X-Vault-Token: «{A26}»\n", "DD-API-KEY: «{h32}»\n", "DD-APPLICATION-KEY: «{h40}»\n", "Ocp-Apim-Subscription-Key: «{h32}»\n", "X-Auth-Token: «{A32}»\n", "X-Auth-Key: «{h37}»\n", "x-rapidapi-key: «{h50}»\n", "apikey: «{A40}»\n", "X-Shopify-Access-Token: «{h32}»\n", "api-key: «{h32}»\n", "X-Figma-Token: «{W40}»\n", "x-goog-api-key: «{W39}»\n", "X-CSRF-Token: «{A40}»\n", "circle-token: «{h40}»\n", "Sec-Key: x\nX-Amz-Security-Token: «{B200}»\n")),
    Form("cookies", ("Cookie: sessionid=«{n32}»; theme=dark", "Set-Cookie: JSESSIONID=«{H32}»; Path=/", "Cookie: __Secure-next-auth.session-token=«{W120}»", "curl -b 'session=«{W64}»' https://h", "document.cookie = 'auth_token=«{A40}»'", "Cookie: li_at=«{W150}»; lang=en", "_gitlab_session=«{h32}»")),
    Form("query", ("https://h/x?api_key=«{A32}»", "https://h/x?token=«{h40}»&a=1", "GET /v1?key=«{W39}» HTTP/1.1", "https://h/cb?code=«{W60}»&state=x", "https://maps.googleapis.com/x?key=«AIza{W35}»", "wss://h/?auth=«{A40}»", "https://h/x?X-Amz-Credential=AKIA&X-Amz-Signature=«{h64}»", "https://storage.googleapis.com/b/o?X-Goog-Signature=«{h256}»", "https://h/x?apikey=«{h32}»&q=1", "https://api.telegram.org/bot«{d10}:AA{W33}»/sendMessage", "https://h/hook?secret=«{A24}»")),
    Form("oauth body", ("grant_type=client_credentials&client_id=a&client_secret=«{A40}»", '{"access_token": "«{A64}»", "token_type": "bearer"}', '{"refresh_token":"«{W80}»"}', "grant_type=password&username=me&password=«{p}»", '"id_token": "«eyJhbGciOiJSUzI1NiJ9.eyJ{W90}.{W86}»"', "curl -d 'client_secret=«{W32}»' https://h/token", 'curl -d \'{"username":"me","password":"«{p}»"}\' https://h/login')),
    Form("url login", ("https://me:«{p}»@example.org/x", "http://admin:«{A12}»@10.0.0.1:8080", "pip install --index-url https://me:«{A20}»@pypi.example.org/simple x", "HTTPS_PROXY=http://me:«{p}»@proxy:3128", "ssh://git:«{p}»@h/x")),
    # Commands
    Form("curl user", ("curl -u admin:«{p}» https://h", 'curl --user "me:«{g}»" https://h', "curl -sSu «sk_live_{A24}»: https://api.stripe.com/v1/charges", "wget --user=me --password=«{p}» https://h", "http -a me:«{p}» GET h/x", "curl --proxy-user me:«{p}» h")),
    Form("docker login", ("docker login -u me -p «{p}» ghcr.io", "echo «{A40}» | docker login -u me --password-stdin", "docker login --username me --password «{p}»", "helm registry login h -u me -p «{p}»", "skopeo copy --src-creds me:«{p}» docker://a docker://b", "crane auth login h -u me -p «{p}»")),
    Form("sudo", ("echo '«{p}»' | sudo -S apt update", "sshpass -p '«{p}»' ssh me@h", "echo \"root:«{p}»\" | chpasswd", "sudo -S <<< «{p}» ls", "echo «{p}» | passwd --stdin me", 'spawn ssh me@h\nexpect "password:"\nsend "«{p}»\\r"', "ssh-keygen -t ed25519 -N '«{p}»' -f k", "useradd -m -p «{A13}» me")),
    Form("archives", ("unzip -P «{p}» a.zip", "7z x a.7z -p«{p}»", "zip -r -P «{A10}» a.zip d", "unrar x -p«{p}» a.rar", "gpg --batch --passphrase «{p}» -d a.gpg", "gpg --batch --passphrase '«{g}»' -c f", "openssl enc -aes-256-cbc -k «{p}» -in a", "openssl pkcs12 -in a.p12 -passin pass:«{p}»", "openssl rsa -in k -passin 'pass:«{p}»'", "openssl enc -K «{h64}» -iv {h32} -in a", "keytool -list -keystore k -storepass «{p}»")),
    Form("logins", ("vault login «{A26}»", "wandb login «{h40}»", "ngrok config add-authtoken «2{A26}_{A21}»", "ngrok authtoken «{A48}»", "doctl auth init -t «{h64}»", "cargo login «cio{A32}»", "cargo login «{A32}»", "glab auth login --token «{A20}»", "huggingface-cli login --token «hf_{L34}»", "sentry-cli --auth-token «{h64}» releases", "nuget push a.nupkg -ApiKey «{n46}»", "dotnet nuget push a.nupkg -k «{n46}»", "dotnet nuget add source h -u me -p «{p}»", "tailscale up --authkey=«{A40}»", "cloudflared service install «eyJhIjoi{A150}»", "az login --service-principal -u x -p «{W40}» --tenant t", "heroku config:set API_SECRET=«{A30}»", "fly secrets set SESSION_SECRET=«{A40}»", "gh secret set TOKEN --body «{A40}»", "gh auth login --with-token <<< «{A40}»", "consul acl -token=«{u}»", "snyk auth «{u}»", "railway login --token «{u}»", "stripe listen --api-key «{A40}»", "netlify deploy --auth «{W43}»", "vercel --token «{A24}»", "firebase deploy --token «1//0{W90}»", "twilio login --auth-token «{h32}»", "aws ssm put-parameter --name /db/password --type SecureString --value «{p}»", "aws rds create-db-instance --master-user-password «{p}»", "gcloud sql users set-password root --password=«{p}»", "az sql server create -u me --admin-password «{p}»", "redis-cli CONFIG SET requirepass «{p}»", "redis:6379> AUTH «{A20}»\r\n", "net user bob «{p}» /add", "vault kv put secret/x password=«{p}»", "etcdctl --user root:«{p}» get x", "mongosh 'h' -u root -p «{p}»", "mosquitto_pub -u me -P «{p}» -t x", "impala-shell -u me --password «{p}»", "nmap --script-args smbpassword=«{p}»", "xfreerdp /u:me /p:«{p}» /v:h")),
    # SQL
    Form("sql", ("CREATE USER 'a'@'%' IDENTIFIED BY '«{p}»';", "ALTER ROLE app WITH PASSWORD '«{p}»';", "CREATE USER app WITH ENCRYPTED PASSWORD '«{A12}»';", "CREATE LOGIN app WITH PASSWORD = '«{p}»';", "SET PASSWORD FOR 'root'@'localhost' = PASSWORD('«{p}»');", "GRANT ALL ON *.* TO 'a'@'h' IDENTIFIED BY '«{w}{d3}»';")),
    # Code
    Form("python", ("password='«{p}»'", 'db = connect(host="h", user="u", passwd="«{p}»")', 'os.environ["API_SECRET"] = "«{A32}»"', "os.getenv('DB_PASSWORD', '«{p}»')", "ssh.connect('h', username='me', password='«{g}»')", "auth=HTTPBasicAuth('me', '«{p}»')", "requests.get(u, auth=('me', '«{p}»'))", "SECRET: str = '«{A40}»'", "API_KEYS = ['«{A32}»', '{A32}']")),
    Form("javascript", ("const password = '«{p}»';", "{ user: 'me', password: `«{p}»` }", "process.env.API_SECRET = '«{A32}»'", "apiKey: process.env.KEY || '«{A32}»',", 'module.exports = { secret: "«{A32}»" }', "jwt.sign(payload, '«{A32}»')", "axios.defaults.headers.common['X-Api-Key'] = '«{A32}»'", "firebase = { apiKey: \"«AIza{W35}»\" }")),
    Form("go", ('os.Setenv("API_TOKEN", "«{A32}»")', 'Password: "«{p}»",', 'const dbPassword = "«{p}»"', 'req.Header.Set("Authorization", "Bearer «{A40}»")', 'req.SetBasicAuth("me", "«{p}»")', 'req.Header.Add("X-Api-Key", "«{A32}»")')),
    Form("ruby", ("ENV['STRIPE_SECRET'] = '«{A32}»'", "password: '«{p}»',", ":password => '«{p}»'", "Stripe.api_key = '«{A32}»'")),
    Form("rust c", ('let api_key = "«{A32}»";', '#define API_KEY "«{A32}»"', 'const char *password = "«{p}»";', '.password("«{p}»")', 'WiFi.begin("home", "«{p}»");', 'static let apiKey = "«{A32}»"', 'buildConfigField "String", "API_KEY", "\\"«{A32}»\\""', '<string name="api_key">«{A32}»</string>')),
    Form("powershell", ("$cred = ConvertTo-SecureString '«{p}»' -AsPlainText -Force", "$env:DB_PASSWORD = '«{p}»'", "setx API_TOKEN «{A32}»", "cmdkey /add:h /user:me /pass:«{p}»", "net use Z: \\\\h\\s /user:me «{p}»")),
    # Data
    Form("json", ('{"user": "me", "password": "«{p}»"}', r'{\"user\": \"me\", \"password\": \"«{p}»\"}', r'"{\\\"password\\\": \\\"«{p}»\\\"}"', '{"name": "API_KEY", "value": "«{A32}»"}', '{"clientSecret": "«{A40}»"}', '{"key": "DB_PASSWORD", "value": "«{w}{w}»"}', '{"credentials": {"username": "me", "pass": "«{p}»"}}', '{"secret": "«{h64}»"}', '"apiKeys": ["«{A32}»"]')),
    Form("yaml", ("password: «{p}»\n", "  passwd: \"«{g}»\"\n", "auth:\n  token: «{h40}»\n", "secret: «{A40}»\n", "api_key: >-\n  «{A40}»\n", "db:\n  pass: «{w}{d4}»\n", "- name: API_TOKEN\n  value: «{A40}»\n", "- name: DB_PASSWORD\n  value: \"«{p}»\"\n", "smtp_auth_password: '«{p}»'\n")),
    Form("ini toml", ("password = «{p}»\n", "api_token = \"«{A40}»\"\n", "db_pass=«{w}{d4}»\n", "[auth]\nsecret=«{A32}»\n", "Password: «{w}{w}»\n", "client.secret = «{A40}»\n")),
    Form("tables", ("host\tuser\tpassword\ndb1\tapp\t«{p}»\n", "| user | password |\n| --- | --- |\n| app | «{p}» |\n", "username,password\nalice,«{p}»\nbob,«{g}»\n", "DB_PASSWORD\t«{A16}»\n", " id | name | api_key\n----+------+--------\n  1 | bob  | «{A40}»\n")),
    Form("xml html", ("<password>«{p}»</password>", '<user name="me" password="«{p}»"/>', '<input type="password" name="pw" value="«{p}»">', "<api_key>«{A32}»</api_key>", "<token>«{h40}»</token>", "<key>password</key>\n<string>«{p}»</string>")),
    Form("prose", ("The password is «{p}».", "password: «{p}», as agreed", "my api key is «{A40}»", "login with admin / «{p}»", "Credentials: admin:«{p}»", "Username: bob Password: «{p}»", "the password for user 'bob' is '«{p}»'", "use «{p}» as the password", "pw: «{p}»", "Passwort: «{p}»", "The default password is \"«{w}{d2}»\"")),
    Form("mnemonic", ('MNEMONIC="«abandon ability river cradle velvet ribbon salmon tower ocean zebra garden copper»"', "seed phrase: «legal winner thank year wave sausage worth useful legal winner thank yellow»", 'const mnemonic = "«letter advice cage absurd amount doctor acoustic avoid letter advice cage above»";', "Recovery phrase:\n«ozone drill grab fiber curtain grace pudding thank cruise elder eight picnic»\n")),
    Form("ethereum", ("PRIVATE_KEY=0x«{h64}»", 'new ethers.Wallet("0x«{h64}»")', "privateKey: '«{h64}»'", 'accounts: ["0x«{h64}»"]', "cast send --private-key 0x«{h64}»")),
    Form("hashes", ("root:«$6${A16}${A86}»:19000:0:99999:7:::", "admin:«$2y$10${A53}»", "admin:«$apr1${A8}${A22}»", '"hash": "«$argon2id$v=19$m=65536,t=3,p=4${A22}${A43}»"', "enable secret 5 «$1${A4}${A22}»", "Administrator:500:«{h32}:{h32}»:::", "pbkdf2_sha256$600000${A22}$«{B43}=»")),
)
# fmt: on
