r"""Rules for passwords that a script, a test or a scenario types into a field of a form.

As in `builder.secrets.context_rules`: the value is the group `v`, case is ignored, and each pattern
starts with one of the literals of its prefilter unless `lead` says otherwise.
"""

# ruff: noqa: E501 - a table: one rule on a line
from __future__ import annotations

from builder.secrets.secret_rule import CHOSEN, NO_NAME, context_rule
from builder.secrets.words import FIELDS

_Q = r"\\{0,7}[\"'`]"
"""A quotation mark, escaped or not."""
_FIELD = rf"(?:{FIELDS})[\w-]{{0,20}}"
"""The end of a selector or label; the value must not be one."""
_STEPS = r"(?:\.\w{1,20}(?:\([^()\n]{0,40}\))?){0,2}"
"""Steps between finding a field and typing into it: `.first()`."""
_ANY = r"(?P<v>(?:[^\"'\\\n{}$]|\$(?!\{)|\{(?!\w{1,12}\}|\{)|(?<!\w)\}|\}(?=\w)){5,100})(?:\{\w{1,12}\}){0,2}\\{0,7}[\"'`]"
"""Any text, and keys that are pressed after it: `{enter}`."""
_NUMBERED = (
    r"(?P<v>(?=[^\s\"'`\\]{0,60}\d)(?=[^\s\"'`\\]{0,60}[a-z])[^\s\"'`\\{}$()]{6,100})\\{0,7}[\"'`]"
)
"""A text with a letter and a digit, without spaces."""
_LIKELY = r"(?P<v>(?=[^\"'\n]{0,99}(?:[\d!#$%^*_-]|(?-i:[a-z][A-Z])))[^\"'\\\n]{5,100})\\{0,7}[\"']"
_NEAR = (
    "password", "passwd", "passcode", "passphrase", "pass'", 'pass"', "pass\\", "passwort", "kennwort",
    "passord", "contrase", "mot de passe", "senha", "wachtwoord", "heslo", "haslo", "senord", "salasana",
)  # fmt: skip


# fmt: off
FORM_RULES = (
    context_rule(rf"{_FIELD}(?:{_Q}|[\]) }}/i]){{1,8}}{_STEPS}(?:\.(?:fill|type|send_?keys|set_?value|type_?text|enter_?text|press_?sequentially|clear_and_type)|\.perform\((?:type|replace)text)\([ \t]?{_Q}{_ANY}", ".fill(|.type(|.sendkeys(|.send_keys(|.setvalue(|.set_value(|.typetext(|.type_text(|.entertext(|.enter_text(|.press_sequentially(|.presssequentially(|.clear_and_type(|.perform(typetext(|.perform(replacetext(", "page.getByLabel('Password').fill('«{p}»')", "page.getByRole('textbox', { name: 'Password' }).fill('«{p}»')", "page.getByLabel('Passwort').fill('«velvetviolet32»')", "cy.get('#password').type('«{p}»{enter}')", "element(by.css('input[name=\"password\"]')).sendKeys('«{p}»')", "find_by_name('password').first.fill('«{p}»')", 'onView(withId(R.id.password)).perform(typeText("«{p}»"), closeSoftKeyboard())', 'app.secureTextFields["Password"].typeText("«{p}»")', lead=(5, 110), near=_NEAR, misses=("page.getByText('Forgot password').click(); name.fill('velvetviolet32')",)),
    context_rule(rf"{_FIELD}(?:{_Q}|[\]) }}/i]){{1,8}}{_STEPS}(?:\.val\([ \t]?|\.value[ \t]?=[ \t]?){_Q}{_NUMBERED}", ".val(|.value =|.value=", "$('#password').val('«velvetviolet32»')", "document.querySelector('input[type=password]').value = '«velvetviolet32»'", lead=(5, 110), near=_NEAR, misses=("$('#password').val('')", "$('#password').value = 'Enter a password'", "x.value == 'password1'")),
    context_rule(rf"(?:(?:\.(?:fill|type|send_keys|sendkeys|setvalue|typetext|press_sequentially)|find_element|entertext)\(|fill_in[ (])[^\n]{{0,80}}?pass(?:word|wd)?[^\n]{{0,30}}?(?:, |,|send_keys\(|, with: )[ \t]{{0,2}}\\{{0,7}}[\"']{_LIKELY}", ".fill|.type|.send_keys|.sendkeys|.setvalue|.typetext|.press_sequentially|fill_in|find_element|entertext(", "await page.type('input[type=password]', '«{p}»')", 'fill_in "Password", with: "«{p}»"', "await tester.enterText(find.byKey(Key('password')), '«{p}»');", near=("pass",)),
    context_rule(rf"(?:[\w ]{{1,20}} )?{_FIELD}{_Q}[ \t](?:field[ \t])?(?:with|as)[ \t]{_Q}{_NUMBERED}", "password\" with|password' with|password\\\" with|password\" field with|password\" as|password' as", 'When I fill in "Password" with "«velvetviolet32»"', misses=('I label "Password" with "Enter"',)),
    context_rule(rf"(?:enter|type|fill|put|input|paste|set)(?:s|ed|ing)?(?:[ \t]in)?[ \t]{_Q}{_NUMBERED}[ \t](?:in|into|for|as)[ \t](?:the[ \t])?(?:{_Q})?(?:[\w-]{{1,20}}[ \t]){{0,2}}{_FIELD}", "into the password|into \"password|into 'password|in the password|in \"password|as the password|for the password|into password", 'And I enter "«velvetviolet32»" into the password field', '- fill "«velvetviolet32»" in "Password"', lead=(10, 130)),
    context_rule(rf"input (?:password|text)(?:[ \t]{{2,20}}|\t)[^\s]{{0,40}}pass[^\s]{{0,20}}(?:[ \t]{{2,20}}|\t){CHOSEN}", "input password|input text", "Input Password    id:password    «velvetviolet32»", misses=("Input Text    id:password    ${PASSWORD}",)),
    context_rule(rf"(?:log_?in|sign_?in|sign_?up|authenticate|signinwithemailandpassword|createuserwithemailandpassword)\([^()\n\"']{{0,40}}{_Q}[^\"'\\\n]{{1,80}}{_Q},[ \t]{{0,2}}{_Q}{NO_NAME}{CHOSEN}", "login(|log_in(|signin(|sign_in(|signup(|sign_up(|authenticate(|signinwithemailandpassword(|createuserwithemailandpassword(", 'login("me", "«velvetviolet32»")', "signInWithEmailAndPassword(auth, 'me@example.org', '«velvetviolet32»')", misses=("login('user1', 'step2_of_33')", "login('me', 'oauth2-proxy1')")),
    context_rule(r"(?:element|selector|field|label|locator|placeholder|target)\\{0,7}\"[ ]?:[ ]?\\{0,7}\"[^\"\n]{0,80}" + _FIELD + r"[^\"\n]{0,40}\\{0,7}\",[^{}]{0,160}?\\{0,7}\"(?:text|value|input|content|keys)\\{0,7}\"[ ]?:[ ]?\\{0,7}\"(?P<v>[^\"\n\\]{5,100})\\{0,7}\"", "element|selector|field|label|locator|placeholder|target", '{"element": "Password field", "ref": "e5", "text": "«{p}»", "submit": true}', '{"element": "Passwort-Feld", "ref": "e5", "text": "«{p}»"}', near=_NEAR, misses=('{"element": "Password field", "ref": "e5", "text": "****"}',)),
    context_rule(r"tapOn:[ ]?(?:\\{0,7}[\"'])?[^\"'\\\n]{0,30}pass(?:word|wort|code|phrase)[^\"'\\\n]{0,20}(?:\\{0,7}[\"'])?(?:\n|\\{1,4}n)[ \t]{0,8}(?:\d{1,6}[:\t\u2192 ][ \t]{0,4})?- inputText:[ ]?\\{0,7}[\"'](?P<v>[^\"'\\\n$]{5,100})\\{0,7}[\"']", "tapon:", '- tapOn: "Password"\n- inputText: "«river meadow 4471»"', '3: - tapOn: "Your password"\n4: - inputText: "«velvetviolet32»"', misses=('- tapOn: "Password"\n- inputText: "${PASSWORD}"',)),
    context_rule(r"(?:enter|type|input|put|fill in|fills in|enters|types|inputs|puts)[ ]\\{0,7}[\"'](?P<v>[^\"'\\\n$<{]{5,100})\\{0,7}[\"'][ ](?:in|into|for|as)[ ](?:the[ ]|my[ ])?\\{0,7}[\"']?[\w -]{0,20}pass(?:word|code|phrase)", "enter|type |input |put |fill|puts|inputs|types", 'When I enter "«{p}»" into the "Password" field', "And she types '«river meadow»' in the password field"),
    context_rule(r"Argument\.name\\{0,7}\">(?:[\w.-]{0,20}pass(?:word|wd|code)?|pwd)</stringProp>(?:\s|\\[nrt]){0,40}<stringProp name=\\{0,7}\"Argument\.value\\{0,7}\">(?P<v>[^<>\s$]{4,100})</", "argument.name", '<stringProp name="Argument.name">password</stringProp>\n <stringProp name="Argument.value">«{p}»</stringProp>'),
)
# fmt: on
