"""Finds secrets in texts: values that only their owner may know. Imports nothing of the package.

How a text is searched (`secrets.find_secrets`):

1. `quotes` and `unescaped` read other quotation marks, and JSON's escapes of letters.
2. `prefilter` finds, once for many texts, the literals of the rules and the lines in which each
   finder may find something. Most texts have neither.
3. The rules that apply look at what is around a literal. A rule (`secret_rule`) is a pattern with
   examples; their tables are `token_rules` (tokens with a form of their own) and, for values that
   their surroundings mark, `context_rules`, `config_rules`, `command_rules`, `call_rules`,
   `dump_rules`, `form_rules` and `prose_rules`.
4. The finders look at lines. Each has an anchor (what is searched for first), something that may
   connect it with a value, and a least grade of the value; the less the connection says, the more
   the value must look like a secret:

   | finder | anchor | connection | the value |
   |---|---|---|---|
   | `assignments` | a name | a sign: `=`, `: `, `,` (`between`) | `named_values`: a word suffices |
   | `blocks`, `cookies`, `tables` | a manifest, a cookie, a header | its place | as for a name |
   | `answers` | a command that prints a secret | its result | any password, or generated |
   | `connected` | a name | words or a layout: "should be", "→" | a password, or generated |
   | `sentences` | a word for passwords or logins | a verb, or the name of a user | a password |
   | `phrases` | a word for passwords | a verb or a sign | words, none of a sentence |
   | `nearby` | a word for secrets | fewer than nine words | generated beyond doubt |
   | `strong` | a word for secrets | on the line, or two above | nothing else it could be |
   | `pem`, `encoded` | the lines of a key; base64 | | a key; a text with secrets |

5. `escapes` and `open_values` take back what is part of an escape, or is public by its form.

What a value looks like: `grade` judges it by itself (generated, drawn, chosen, a phrase, a word,
code, a stand-in) from its characters (`values`, `letters`) and its words (`passphrases`);
`expressions` tells code. `words` is the vocabulary: the words for passwords, tokens and keys in all
languages, and those of programs, are in `words.txt`.

Each pattern says what it matches, with an example that a test runs.
"""
