"""Forms of keys and tokens, as their issuers publish them (November 2026): (kind, pattern).

A pattern is matched where no letter or digit stands before or after it. Every repetition has a
bound, so that the time for a text is linear in its length. A pattern begins with a letter of its
own, or with one of a few (`builder.scrub.rules.has_first`), or holds one of `_MIDDLES`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from builder.scrub.prefilter import Prefilter, necessary
from builder.scrub.rules import ESCAPE, behind_none_of, by_first, has_first

FORMS = (
    ("aws_access_key", r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}"),
    ("github_token", r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    ("github_token", r"github_pat_[A-Za-z0-9_]{22,255}"),
    ("gitlab_token", r"gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas)-[\w.-]{20,300}"),
    ("gitlab_token", r"GR1348941[\w-]{20,50}"),
    ("slack_token", r"xox[abceoprs](?:\.xox[a-z])?-[A-Za-z0-9-]{10,250}"),
    ("slack_token", r"xapp-\d-[A-Za-z0-9-]{20,250}"),
    ("slack_webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{24,200}"),
    ("stripe_key", r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,200}"),
    ("stripe_key", r"whsec_[A-Za-z0-9+/=]{24,100}"),
    ("anthropic_key", r"sk-ant-[a-z]{3,8}\d{2}-[\w-]{20,200}"),
    ("openrouter_key", r"sk-or-v1-[0-9a-f]{32,64}"),
    ("openai_key", r"sk-(?:proj|svcacct|admin|None)-[\w-]{20,250}"),
    ("api_key", r"sk-(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z])[A-Za-z0-9]{20,100}"),
    ("google_key", r"AIza[\w-]{35}"),
    ("google_oauth", r"GOCSPX-[\w-]{20,40}"),
    ("google_oauth", r"ya29\.[\w-]{20,1000}"),
    ("google_oauth", r"1//0[\w-]{30,200}"),
    ("huggingface_token", r"hf_[A-Za-z0-9]{30,60}"),
    ("huggingface_token", r"api_org_[A-Za-z0-9]{30,60}"),
    ("npm_token", r"npm_[A-Za-z0-9]{36}"),
    ("pypi_token", r"pypi-[\w-]{50,1000}"),
    ("sendgrid_key", r"SG\.[\w-]{16,32}\.[\w-]{32,64}"),
    ("twilio_key", r"SK[0-9a-f]{32}"),
    ("mailgun_key", r"key-[0-9a-f]{32}"),
    ("mailchimp_key", r"[0-9a-f]{32}-us\d{1,2}"),
    ("brevo_key", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("digitalocean_token", r"do[opr]_v1_[0-9a-f]{64}"),
    ("shopify_token", r"shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{32}"),
    ("square_token", r"sq0[a-z]{3}-[\w-]{22,43}"),
    ("square_token", r"EAAA[\w-]{60}"),
    ("facebook_token", r"EAA[A-Za-z0-9]{90,300}"),
    ("telegram_token", r"\d{8,10}:AA[\w-]{33}"),
    ("discord_token", r"[MNO][A-Za-z\d_-]{23,27}\.[\w-]{6}\.[\w-]{27,40}"),
    ("discord_webhook", r"discord(?:app)?\.com/api/webhooks/\d{16,20}/[\w-]{50,80}"),
    ("jwt", r"eyJ(?<![-_]eyJ)[\w-]{8,4000}\.eyJ[\w-]{8,8000}\.[\w-]{8,2000}"),
    ("databricks_token", r"dapi[0-9a-f]{32}(?:-\d)?"),
    ("vault_token", r"hv[sbr]\.[\w-]{24,300}"),
    ("vault_token", r"s\.[A-Za-z0-9]{24}"),
    ("terraform_token", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,70}"),
    ("doppler_token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    ("linear_key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    ("notion_token", r"ntn_[A-Za-z0-9]{40,60}"),
    ("notion_token", r"secret_[A-Za-z0-9]{43}"),
    ("atlassian_token", r"AT[AC]TT3[\w=-]{60,250}"),
    ("atlassian_token", r"ATBB[\w=-]{24,40}"),
    ("airtable_token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("planetscale_token", r"pscale_(?:tkn|pw|oauth)_[\w.-]{32,64}"),
    ("postman_key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("grafana_token", r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    ("grafana_token", r"glc_[A-Za-z0-9+/]{32,400}={0,2}"),
    ("newrelic_key", r"NR(?:AK|II|JS|RA)-[A-Za-z0-9-]{19,40}"),
    ("sentry_token", r"sntry[su]_[A-Za-z0-9+/=_-]{40,400}"),
    ("groq_key", r"gsk_[A-Za-z0-9]{40,60}"),
    ("replicate_token", r"r8_[A-Za-z0-9]{37}"),
    ("perplexity_key", r"pplx-[A-Za-z0-9]{40,60}"),
    ("xai_key", r"xai-[A-Za-z0-9]{60,100}"),
    ("nvidia_key", r"nvapi-[\w-]{50,100}"),
    ("tavily_key", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,60}"),
    ("azure_secret", r"[A-Za-z0-9_~.]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}"),
    ("azure_storage_key", r"(?<![+/=-])[A-Za-z0-9+/]{86}=="),
    ("alibaba_key", r"LTAI[A-Za-z0-9]{12,24}"),
    ("age_key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("docker_token", r"dckr_[op]at_[\w-]{24,60}"),
    ("dynatrace_token", r"dt0[a-z]\d\d\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    ("rubygems_key", r"rubygems_[0-9a-f]{48}"),
    ("pulumi_token", r"pul-[0-9a-f]{40}"),
    ("heroku_key", r"HRKU-[\w-]{36,64}"),
    ("figma_token", r"figd_[\w-]{36,60}"),
    ("supabase_key", r"sbp_[0-9a-f]{40}"),
    ("supabase_key", r"sb_secret_[\w-]{20,60}"),
    ("circleci_token", r"CCI(?:PAT|PRJ)_[\w]{20,100}"),
    ("buildkite_token", r"bk(?:ua|aa|et)_[0-9a-f]{40}"),
    ("tailscale_key", r"tskey-[a-z]{3,12}-[A-Za-z0-9]{6,30}-[A-Za-z0-9]{16,60}"),
    ("dropbox_token", r"sl\.(?:u\.)?[\w-]{80,1500}"),
    ("mapbox_token", r"sk\.eyJ[\w-]{20,300}\.[\w-]{20,40}"),
    ("artifactory_key", r"AKCp[A-Za-z0-9]{69}"),
    ("launchdarkly_key", r"sdk-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("launchdarkly_key", r"api-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("launchdarkly_key", r"mob-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("cloudflare_key", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    ("fly_token", r"fm[12][ar]?_[A-Za-z0-9+/]{60,1500}={0,2}"),
    ("fly_token", r"fo1_[\w-]{43}"),
    ("adafruit_key", r"aio_[A-Za-z0-9]{28}"),
    ("vercel_token", r"vc[pkiar]_[A-Za-z0-9]{24,60}"),
    ("netlify_token", r"nf[pcoub]_[A-Za-z0-9]{36}"),
    ("easypost_key", r"EZ[AT]K[A-Za-z0-9]{54}"),
    ("flutterwave_key", r"FLWSECK(?:_TEST)?-[0-9a-zA-Z]{12,40}-X"),
    ("contentful_token", r"CFPAT-[\w-]{43}"),
    ("prefect_key", r"pn[ub]_[A-Za-z0-9]{36}"),
    ("readme_key", r"rdme_[a-z0-9]{70}"),
    ("typeform_token", r"tfp_[\w.=-]{40,60}"),
    ("shippo_token", r"shippo_(?:live|test)_[0-9a-f]{40}"),
    ("asana_token", r"[012]/\d{10,20}:[0-9a-f]{32}"),
    ("hubspot_token", r"pat-(?:na|eu)\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    (
        "plaid_token",
        r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    ),
    ("intercom_token", r"dG9rO[A-Za-z0-9+/]{40,60}={0,2}"),
    ("elevenlabs_key", r"sk_[0-9a-f]{40,64}"),
    ("firebase_key", r"AAAA[\w-]{7}:[\w-]{140}"),
    ("twitter_token", r"AA{19}[A-Za-z0-9%]{50,100}"),
    ("password_hash", r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}"),
    (
        "password_hash",
        r"\$(?:[156y]|apr1|gy)\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,22}\$[./A-Za-z0-9]{22,86}",
    ),
    (
        "password_hash",
        r"\$argon2id?\$v=\d{1,3}\$[mtp=,\d]{5,40}\$[A-Za-z0-9+/]{8,64}\$[A-Za-z0-9+/]{16,128}",
    ),
    ("wallet_key", r"[xyz]prv[1-9A-HJ-NP-Za-km-z]{100,112}"),
)

_ALNUM = "A-Za-z0-9"
_STORAGE_KEY = r"[A-Za-z0-9+/]{86}=="
_MIDDLES = (
    (r"[0-9a-f]-us\d", r"-us\d(?<=[0-9a-f]{32}-us\d)"),
    (r"\d:AA", r":AA(?<=\d{8}:AA)"),
    (r"\.atlasv1\.", r"\.atlasv1\."),
    (r"[78]Q~", r"Q~(?<=[78]Q~)"),
    (
        r"[A-Za-z0-9+/]==",
        f"==(?<={_STORAGE_KEY}){behind_none_of(_ALNUM + '+/=-', _STORAGE_KEY)}",
    ),
)
"""What each form holds that may begin with any letter or digit: for RE2, and for Python."""

_BEGIN, _END = behind_none_of(_ALNUM), f"(?![{_ALNUM}])"
_FORM = re.compile(f"{_BEGIN}(?:{'|'.join(pattern for _, pattern in FORMS)}){_END}")
_LED = [pattern for _, pattern in FORMS if has_first(pattern)]
_ASKED, _ANY_LED = necessary("|".join(_LED)), by_first(_LED)
_SIGNS = Prefilter((
    (rf"(?:\A|[^{_ALNUM}]){_ASKED}", re.compile(f"[^{_ALNUM}](?:{_ANY_LED})")),
    (
        necessary(ESCAPE) + _ASKED,
        re.compile(rf"[\\%m](?:(?<=\\)[nrt]|(?<=%)[0-9A-Fa-f]{{2}}|(?<=\dm))(?:{_ANY_LED})"),
    ),
    (
        necessary("|".join(asked for asked, _ in _MIDDLES)),
        re.compile("|".join(sign for _, sign in _MIDDLES)),
    ),
))  # fmt: skip
"""One is found in every text that holds a form and begins with a newline; quicker to look for."""


def may_hold_forms(text: str) -> bool:
    """May there be a form in the text, or in one of its lines?"""
    return bool(_SIGNS(text))


def found_forms(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """The forms in a text, in order and none overlapping, and the kind of each."""
    signs = _SIGNS(text)
    if not signs:
        return
    after = f"\n{text}"
    if not any(sign.search(after) for sign in signs):
        return
    for match in _FORM.finditer(text):
        yield match, next(kind for kind, form in _kinds() if form.match(text, match.start()))


@cache
def _kinds() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Each form alone, which tells the kind: with groups for it, `_FORM` is ten times slower."""
    return tuple((kind, re.compile(f"{_BEGIN}(?:{pattern}){_END}")) for kind, pattern in FORMS)
