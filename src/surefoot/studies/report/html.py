"""What the page is made of: escaped text, elements, tables, pictures in few bytes, and the style.

Text becomes HTML in `escape` alone. What is `Html` already was written by the modules of the report.
"""

import html
import re
from collections.abc import Sequence
from typing import NamedTuple, NewType

Html = NewType("Html", str)
NUMERIC, WIDE = ' class="n"', ' class="w"'

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --card: #f6f8fa; --link: #0550ae;
  --good: #0f5c2e; --good-card: #e6f4ea; --bad: #a40e26; --bad-card: #ffebe9; --plain: #3d444d; --plain-card: #eaeef2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181d; --ink: #e6edf3; --soft: #9da7b1; --line: #3d444d; --card: #1c2128; --link: #79c0ff;
    --good: #7ee2a0; --good-card: #12301e; --bad: #ff9a92; --bad-card: #3b1512; --plain: #c9d1d9; --plain-card: #262c34;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
  overflow-wrap: break-word;
}
header, main, footer { max-width: 74rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2rem; }
h1 { font-size: clamp(1.5rem, 1.1rem + 1.6vw, 2.2rem); line-height: 1.2; margin: .2rem 0 .6rem; }
h2 {
  font-size: 1.45rem; line-height: 1.25; margin: 3rem 0 .6rem; padding-top: 1rem;
  border-top: 1px solid var(--line);
}
h3 { font-size: 1.08rem; margin: 2rem 0 .5rem; }
p, ul, ol { max-width: 46rem; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, .scroll:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
code, pre { font: .88em/1.5 ui-monospace, "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace; }
code { overflow-wrap: anywhere; }
.kicker, .words { margin: 0; color: var(--soft); font-size: .9rem; }
.words { margin-top: .8rem; max-width: none; }
.question { font-size: 1.1rem; color: var(--soft); margin: 0 0 1.25rem; }
.verdict {
  border: 1px solid var(--line); border-left-width: .5rem; border-radius: .5rem;
  padding: 1.1rem 1.25rem .9rem;
}
.verdict.good { border-left-color: var(--good); }
.verdict.bad { border-left-color: var(--bad); }
.verdict > p { margin: .6rem 0; max-width: 62rem; }
.verdict .scroll { margin: .8rem 0 .2rem; }
.verdict table { min-width: 0; }
.badges { display: flex; flex-wrap: wrap; gap: .5rem; }
.badge {
  display: inline-block; padding: .3rem .8rem; border-radius: .4rem; border: 2px solid currentcolor;
  font-weight: 700; font-size: 1.15rem; letter-spacing: .03em;
}
.badge.certified { color: var(--good); background: var(--good-card); }
.badge.uncertified, .badge.broken { color: var(--bad); background: var(--bad-card); }
.badge.nothing { color: var(--plain); background: var(--plain-card); }
.alarm { color: var(--bad); font-weight: 650; }
.found { font-size: 1.15rem; }
.verdict ul { margin: .6rem 0; padding-left: 1.2rem; max-width: 62rem; }
.verdict li { margin: .3rem 0; }
.caveats { list-style: "⚠ "; }
nav ol { columns: 2 20rem; padding-left: 1.4rem; max-width: none; }
.scroll { overflow-x: auto; margin: .8rem 0 1.2rem; max-width: 100%; }
table {
  border-collapse: collapse; min-width: 100%;
  font-size: .9rem; line-height: 1.4; font-variant-numeric: tabular-nums;
}
caption { text-align: left; color: var(--soft); padding-bottom: .5rem; }
th, td { padding: .45rem .75rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { vertical-align: bottom; border-bottom: 2px solid var(--line); font-weight: 600; }
tbody th { font-weight: 600; }
th[scope=row] { position: sticky; left: 0; background: var(--paper); min-width: 8.5rem; }
th[scope=rowgroup] { background: var(--card); }
th[scope=rowgroup] span { position: sticky; left: .75rem; }
.n { text-align: right; white-space: nowrap; }
small { display: block; color: var(--soft); font-size: .82rem; font-weight: 400; white-space: normal; }
.n small { white-space: nowrap; }
thead .n { white-space: normal; }
td.w { min-width: 11rem; }
td.w:last-child { min-width: 15rem; }
caption span { position: sticky; left: 0; display: inline-block; max-width: min(60rem, 100vw - 4rem); }
.line { white-space: nowrap; }
.holds { color: var(--good); font-weight: 650; white-space: nowrap; }
.fails { color: var(--bad); font-weight: 650; white-space: nowrap; }
.unsure { color: var(--plain); font-weight: 650; white-space: nowrap; }
.tag.bad { color: var(--bad); font-weight: 650; }
figure { margin: 1.5rem 0; }
figure .scroll { background: #fff; border: 1px solid var(--line); border-radius: .4rem; padding: .5rem; margin: 0; }
figure svg { display: block; width: 100%; height: auto; min-width: 38rem; margin: 0 auto; }
.letters { position: absolute; }
figcaption { color: var(--soft); font-size: .92rem; margin-top: .5rem; max-width: 52rem; }
details { border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .9rem; margin: .6rem 0; }
summary { cursor: pointer; font-weight: 600; }
pre { overflow-x: auto; max-width: 100%; padding: .75rem; background: var(--card); border-radius: .4rem; }
footer { color: var(--soft); font-size: .9rem; padding-top: 2rem; padding-bottom: 3rem; }
@media (max-width: 40rem) {
  header, main, footer { padding-left: .9rem; padding-right: .9rem; }
  header { padding-top: 1.2rem; }
  table { font-size: .84rem; }
  th, td { padding: .4rem .45rem; }
  th[scope=row] { min-width: 5.5rem; max-width: 9rem; }
  .verdict { padding: .8rem .8rem .6rem; }
  .verdict th, .verdict td { padding: .35rem .25rem; font-size: .8rem; }
  .verdict th[scope=row] { min-width: 8rem; }
  .stack table, .stack caption, .stack tbody, .stack tr, .stack th, .stack td { display: block; }
  .stack thead { position: absolute; clip-path: inset(50%); }
  .stack th[scope=row] { max-width: none; position: static; }
  .stack tbody th, .stack tbody td { border: 0; padding-bottom: 0; }
  .stack tr { border-bottom: 1px solid var(--line); padding-bottom: .4rem; }
}
@media print {
  :root { color-scheme: light; }
  body { font-size: 10pt; }
  header, main, footer { max-width: none; padding-left: 0; padding-right: 0; }
  .scroll { overflow: visible; }
  table { font-size: 7.5pt; }
  small { font-size: 6.5pt; }
  th, td { padding: .2rem .3rem; }
  td.w, td.w:last-child { min-width: 0; }
  .line, .n small { white-space: normal; }
  th[scope=row] { position: static; min-width: 0; }
  figure, tr, .verdict { break-inside: avoid; }
  figure svg { min-width: 0; }
  h2, h3, caption { break-after: avoid; }
}
"""


def escape(text: object) -> Html:
    """Return the text with every character escaped that HTML would read as markup."""
    return Html(html.escape(str(text)))


def element(tag: str, content: Html | Sequence[Html], kind: str = "") -> Html:
    """Return an element with this content and, if one is named, this class."""
    text = content if isinstance(content, str) else "".join(content)
    name = f' class="{kind}"' if kind else ""
    return Html(f"<{tag}{name}>{text}</{tag}>")


def bullets(lines: Sequence[Html], kind: str = "") -> Html:
    """Return a list of these lines; nothing where there are none."""
    return element("ul", [element("li", line) for line in lines], kind) if lines else Html("")


def section(anchor: str, heading: str, content: str) -> Html:
    """Return a section of the page that links can lead to."""
    return Html(
        f'<section aria-labelledby="{anchor}">\n<h2 id="{anchor}">{escape(heading)}</h2>\n{content}\n</section>'
    )


def link(anchor: str, text: str) -> Html:
    """Return a link to another part of the page."""
    return Html(f'<a href="#{anchor}">{escape(text)}</a>')


def small(text: str) -> Html:
    """Return a line of its own below a number."""
    return element("small", escape(text.replace(" %", "\u00a0%")))


def tag(text: str, bad: bool) -> Html:
    """Return a short note below a name; a bad one is red."""
    return element("small", escape(text), "tag bad" if bad else "tag")


def scrolling(content: Html, name: str, kind: str = "scroll") -> Html:
    """Return a box for what may be wider than a phone: it scrolls by itself, with the keyboard as well."""
    return Html(f'<div class="{kind}" tabindex="0" role="region" aria-label="{escape(name)}">\n{content}\n</div>')


def figure(svg: str, caption: str, number: str) -> Html:
    """Return a picture on a white card; a screen reader reads the beginning of its caption."""
    short = escape(re.split(r"[.:;] ", caption, maxsplit=1)[0].rstrip("."))
    role = "" if ' role="img"' in svg[: svg.index(">")] else ' role="img"'
    named = Html(compact(svg).replace("<svg", f'<svg{role} aria-label="{short}"', 1))
    words = f"<strong>{escape(number)}</strong> {escape(caption)}"
    return Html(f"<figure>\n{scrolling(named, number)}\n<figcaption>{words}</figcaption>\n</figure>")


class Table(NamedTuple):
    """A table with a caption; the first cell of a row names it. Rows may come in groups, each with a heading."""

    caption: str
    headings: Sequence[str]
    numeric: frozenset[int]  # columns of numbers
    groups: Sequence[tuple[str, Sequence[Sequence[Html]]]]  # heading ("": none), rows
    wide: frozenset[int] = frozenset()  # columns of sentences
    stacks: bool = False  # cells below each other where the page is narrow

    def html(self) -> Html:
        """Return the table in a box of its own, which scrolls where the page is narrow."""
        top = "".join(self._cell("th", i, escape(heading), ' scope="col"') for i, heading in enumerate(self.headings))
        bodies = []
        for heading, rows in self.groups:
            if not rows:
                continue
            span = f' colspan="{len(self.headings)}" scope="rowgroup"'
            first = f"<tr><th{span}><span>{escape(heading)}</span></th></tr>\n" if heading else ""
            lines = "\n".join(
                "<tr>"
                + "".join(
                    self._cell("td" if i else "th", i, cell, "" if i else ' scope="row"') for i, cell in enumerate(row)
                )
                + "</tr>"
                for row in rows
            )
            bodies.append(f"<tbody>\n{first}{lines}\n</tbody>")
        table = (
            f"<table>\n<caption><span>{escape(self.caption)}</span></caption>\n<thead><tr>{top}</tr></thead>\n"
            + "\n".join(bodies)
            + "\n</table>"
        )
        return scrolling(Html(table), self.caption, "scroll stack" if self.stacks else "scroll")

    def _cell(self, tag: str, i: int, content: Html, more: str) -> str:
        kind = NUMERIC if i in self.numeric else WIDE if i in self.wide else ""
        return f"<{tag}{more}{kind}>{content}</{tag}>"


def compact(svg: str) -> str:
    """Return the same picture in half of the bytes: without unused ids and invisible space, with lines as steps.

    Positions are rounded to a hundredth of a point. Letters must be paths: in text, space counts.
    """
    used = set(re.findall(r"#([\w.-]+)", svg))  # by a link, by url(), or by a style
    svg = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", svg)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{_shorter(path[1])}"', svg)
    positions = r"(?:translate\([^)]*\)| [xy]=\"[^\"]*\")"
    svg = re.sub(positions, lambda at: re.sub(r"-?\d+\.\d{3,}", lambda n: _hundredths(_cents(n[0])), at[0]), svg)
    return re.sub(r">\s+<", "><", svg.replace("xlink:href=", "href=")).strip()


def _shorter(path: str) -> str:
    """Return a path whose lines are steps, counted in whole hundredths, so that no rounding adds up."""
    if not set(re.findall("[A-Za-z]", path)) <= set("MLz"):
        return re.sub(r"\s*([A-Za-z])\s*", r"\1", path.strip())
    parts, at, begun, tokens = [], (0, 0), (0, 0), iter(path.split())
    for token in tokens:
        if token == "z":
            parts.append("z")
            at = begun
            continue
        to = _cents(next(tokens)), _cents(next(tokens))
        if token == "M":
            parts.append(f"M{_hundredths(to[0])} {_hundredths(to[1])}")
            begun = to
        else:
            parts.append(f"l{_hundredths(to[0] - at[0])} {_hundredths(to[1] - at[1])}")
        at = to
    return "".join(parts).replace(" -", "-")


def with_shared_letters(text: str) -> str:
    """Return the page with each letter of its pictures defined once, at the top: all pictures use the same few."""
    drawn = r'<path id="([^"]+)" (d="[^"]*" transform="scale\(0\.015625\)")/>'  # as matplotlib defines a letter
    letters = {found[1]: found[2] for found in re.finditer(drawn, text)}
    names = {shape: f"L{i}" for i, shape in enumerate(dict.fromkeys(letters.values()))}
    if not names:
        return text
    text = re.sub(drawn, "", text)
    known = {name: names[shape] for name, shape in letters.items()}
    text = re.sub(r'href="#([^"]+)"', lambda found: f'href="#{known.get(found[1], found[1])}"', text)
    while (fewer := re.sub(r"<(g|defs)></\1>", "", text)) != text:
        text = fewer
    shapes = "".join(f'<path id="{name}" {shape}/>' for shape, name in names.items())
    box = f'<svg class="letters" width="0" height="0" aria-hidden="true"><defs>{shapes}</defs></svg>'
    return text.replace("<body>\n", f"<body>\n{box}\n", 1)


def _cents(number: str) -> int:
    return round(100 * float(number))


def _hundredths(cents: int) -> str:
    """Return the number without the digits that it does not need: -0.50 is -.5."""
    return re.sub(r"^(-?)0(?=\.)", r"\1", f"{cents / 100:.2f}".rstrip("0").rstrip("."))
