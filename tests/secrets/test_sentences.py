"""Passwords in sentences, and sentences that hold none."""

import pytest
from support.sensitive.rule_examples import expand

from builder.secrets.secrets import find_secrets
from builder.secrets.sentences import LINES, find_in_sentences

FOUND = (
    "You can log in as admin with the password «kWqXzVbTnJpLd».",
    "use user svc and pw «CobaltFqWkXbTz»",
    "heads up: the db pw for jo is now «Timber7790violet?», the migration needs it",
    "the password for the staging db is «JuniperKfWpXbTz», please use it",
    'The sudo password on that box is "«kWqXzVbTnJpLd»"',
    "the admin pw on app01.example.net is still «K1t73n-15land633» (yes",
    "when it asks for the vault password type `«DT!62#pC9Xzu»` and",
    "heads up: db pw for dvries is now «oyster-Lemon-velvet-59», the",
    "Das Passwort für svc_backup auf ci01.example.de lautet «Autumn2024!zs», bitte",
    "le mot de passe root de git01.example.fr est «Dr4gon#k177en41», regarde",
    "Staging login for shop: pbauer / «Silver9877violet!» (same",
    "log in with r.lind:«DyxWEojgdyTbUTTcX» on https://h",
    "db pw for me is now «3ptvid3g6psxz», the",
    "la contraseña del usuario me es «r4qazug7irpet» y",
    "Contraseña del servidor: «Gato-Verde41!»",
    "Use qa@example.net / «muffinSummitLemon!» to log into staging",
    "although I typed the password «puffinOtterBanjo!» exactly",
    "creds for nexus: ops : «Ed5kDiEuH=4^%h»",
    "sudo password on that VM is «Puzzle!engine#Planet» btw",
    "Das Passwort lautet «badgerPuffinMeadow#», Benutzer",
    "log in to grafana with admin / «Raven!castle#Velvet» and",
    "argocd admin creds are admin and «Castle_v10l3t#38», sync",
    "log in as admin, password is «drift-rocket-prairie» . check",
    "The webhook secret we agreed on is `«z94Qp%fHTZ0+dKc!»`.",
    "the db pass for jo is still «Timber7790violet?» until Monday",
    "Pass: «Timber7790violet?»",
    "user jo pass «Timber7790violet?» works",
    "Ich habe ein neues Passwort gesetzt: **«dragonVerano646»** (Benutzer `jo`).",
    "no, the password changed yesterday, it's now «anchor87848Q». try again",
    "Zugangsdaten für den Test: jo@example.org / «Garage2013Q», schau bitte",
    "Set `ADMIN_PASSWORD` to `«cxn=A#gh41USWG39i#o0»` in staging",
    "The switch 10.30.67.198 takes admin / «Elena_Violin105» over ssh",
    "The switch 10.30.67.198 takes admin / «Sp@rr0w1977#» over ssh",
    "the NAS accepts `backup` / `«Elena_Violin105»` again",
    "sw-core-1 accepts netops/«Sp@rr0w1977#» via ssh",
    "postgres on db01 accepts app / «Kestrel-Marble88» from the office",
    "Le switch 10.30.67.198 accepte admin / «Elena_Violin105» en ssh",
    "sw01.example.net: admin / «Sp@rr0w1977#»",
    "root / «Elena_Violin105» works on 10.3.4.5",
)
NOT_FOUND = (
    "and pass XMLHttpRequests.send()",
    "with the password PasswordHelper",
    "the password field is PasswordInputHelper",
    "pass the request to XmlHttpClient2.get",
    "the passwords are sent to LoginControllerV2",
    "the password hasher is still Pbkdf2Sha256Hasher",
    "passwords are sent to https://example.net/Login-2a1",
    "password reset, see to App-Config2.json",
    "das Passwort für app2 ist in Config2Module",
    "login for shop: see docs/Login-Guide2.md",
    "log in at host:8080/Path-2x",
    "log in with user:PasswordHelper",
    "the password is checked in User#authenticate",
    "log in with user / Class#method",
    "the login is done and step2_of_33",
    "use GET / RouteHandler to log in",
    "the password is case-insensitive",
    "use python3.11-slim-bookworm as user",
    "the token is `TokenProvider2` and the secret is `Secret-Store`",
    "the account is at 2024-11-05T10:11:12Z",
    "log in with the user and test_login_02",
    "Pass the :class:`~jinja2.runtime.Context` as the first argument",
    "If you write a client, pass :data:`h11.CLIENT`.",
    "pass directly as `query_images` to [`OwlViTProcessor2.__call__`] instead",
    "make this a classmethod and pass kind+how so that",
    "- **test**: pass env vars through to test-benchmark-http2 (Jo)",
    "the sampled token, so there may be up to `logprobs+1` elements",
    "the password is in `jinja2.runtime.Context`",
    "The function takes Foo / Bar_Baz12 and returns it",
    "The server accepts GET / PostRequest and others",
    "the switch takes two / three_of_33 ports",
    "ssh takes user / PasswordHelper objects",
    "10.30.67.198 and root / usr_local2 are paths",
    "the host works with http/Proxy#2 classes",
    "switch (admin / OperatorRole12) {",
    "class AdminView / RootController2 on the server",
    "support / Contact-us2024 on the portal",
)


@pytest.mark.parametrize("template", FOUND)
def test_passwords_are_found(template):
    text, (secret,) = expand(template)
    assert [text[hit.start : hit.end] for hit in find_in_sentences(text, LINES(text))] == [secret]
    assert any(text[hit.start : hit.end] == secret for hit in find_secrets(text))


@pytest.mark.parametrize("text", NOT_FOUND)
def test_other_sentences_stay(text):
    assert not list(find_in_sentences(text, LINES(text)))
