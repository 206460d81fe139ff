r"""Defines what stands between lines of a text: line ends, numbers of a viewer, signs of a diff.

All may be escaped, as in JSON: `\n`, `\\n`, and a number before a tab or an arrow (`\t`, `\u2192`).
"""

from __future__ import annotations

NUMBER = r"\d{1,6}(?:[\t\u2192]|\\{1,4}(?:t|u2192))"
"""The number of a line."""
EOL = rf"(?:\r?\n|(?:\\{{1,4}}r)?\\{{1,4}}n)(?:[ \t]{{0,8}}{NUMBER})?"
"""The end of a line, and the number before the next one."""
WRAP = (
    rf"(?:\s|\\{{1,4}}[nrt]|{NUMBER}|(?<=[\nn])[+-](?=[ \t\"'<\\])"
    r"|(?<=\n)[\w./-]{1,80}[:-]\d{1,6}[:-]){0,40}"
)
"""White space, also across lines, with what stands between them."""
