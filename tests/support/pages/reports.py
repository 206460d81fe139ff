"""Datasets and pages for the tests of the report."""

import json
from collections import Counter
from html.parser import HTMLParser

from builder.audit.result import Audit, AuditTable, Histogram, Pick
from builder.finding import AuditFinding, FindingExample, GateAction
from builder.output.manifest import Manifest
from builder.report.report import report_html

HOSTILE = [
    "<script>window.owned = 1</script>",
    "<img src=x onerror=owned()><svg/onload=owned()>",
    "</pre></details></main><h1>gone</h1><!-- ",
    "\"><a href='javascript:owned()'>x</a>",
    "\u202eright to left\u202c and \u2066isolated\u2069",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x00 \r\n",
    "]]>&lt;b&gt; &amp; <![CDATA[ <?php ?> %3Cscript%3E",
    "zalgo " + "a" + "\u0300" * 400,
]


class Page(HTMLParser):
    """A page as parsed: elements, attributes, texts, and whether each element is closed."""

    VOID = frozenset({"meta", "input", "br", "hr"})

    def __init__(self, data):
        super().__init__()
        self.elements = []
        self.open = []
        self.texts = []
        self.ids: Counter[str] = Counter()
        self.feed(data.decode("utf-8"))
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.ids.update([dict(attrs)["id"]] if "id" in dict(attrs) else [])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def audit():
    """Returns an audit with one finding of each kind."""
    place = "data/train-00000-of-00001.jsonl:1"
    return Audit(
        samples=3,
        findings=(
            AuditFinding(
                "secrets", "aws_key", "AWS key ids", 2, 1, GateAction.change,
                (FindingExample(place, "a.jsonl", "line 1", "messages[1].content", "AKIA<b>"),),
            ),
            AuditFinding("duplicates", "near", "samples that nearly repeat another", 1, 1),
        ),
        tables=(
            AuditTable(
                "mix", "Behaviour mix", ("pattern", "samples"),
                (("chain", 3), ("direct answer", 1)), "", "samples", (("chain", 2.0),),
            ),
            AuditTable(
                "plain", "Trainers", ("trainer", "limit", "setting"),
                (("TRL", 1024, None), ("verl", 1024, None)),
            ),
            AuditTable("only", "Kinds", ("kind", "samples"), (("one kind", 4),), "", "samples"),
        ),
        histograms=(
            Histogram("lengths", "Tokens", "tokens", (0, 512, 1024, 2048), (3, 0, 1)),
        ),
        picks=(Pick("near-duplicate pair 1", 0), Pick("near-duplicate pair 1", 1)),
    )  # fmt: skip


def manifest(folder):
    return json.loads((folder / "manifest.json").read_bytes())


def dataset(path, contents, tools=()):
    """Writes a foreign dataset: one sample for each content, in every place that takes text."""
    with path.open("w", encoding="utf-8") as stream:
        for content in contents:
            messages = [
                {"role": "system", "content": content},
                {"role": "user", "content": content},
                {"role": "assistant", "content": content},
            ]
            stream.write(json.dumps({"messages": messages, "tools": list(tools)}) + "\n")
    return str(path)


def plain(fragment):
    return "".join(Page(fragment.encode()).texts)


def report_page(name, stated, *rest, **more):
    """Returns the report of a dataset whose manifest has these values."""
    return report_html(name, Manifest.read(stated), *rest, **more)
