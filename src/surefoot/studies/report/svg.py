"""Figures as SVG text that can stand on a page, with each other, in few bytes."""

import io
import re
from typing import TYPE_CHECKING, Any

from surefoot.errors import InvalidSetting
from surefoot.studies.report.axes import strange_letters_allowed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_svg(figure: "Figure", salt: str = "figure") -> str:
    """The SVG element of a figure, for a page: the same figure and salt give the same bytes.

    Figures with different salts can stand on one page: ids begin with the salt. Letters are drawn as paths, so that the
    picture is the same where our font is not installed and nothing comes to overlap.
    """
    import matplotlib

    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", salt):
        raise InvalidSetting(f"salt is {salt!r}, expected a letter, then letters, digits, _ or -: ids begin with it.")
    written = io.StringIO()
    settings: Any = {"svg.hashsalt": salt, "svg.fonttype": "path", "svg.image_inline": True}
    with matplotlib.rc_context(settings), strange_letters_allowed():
        figure.savefig(written, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = written.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)  # a title may hold what ends a comment in HTML
    text = text.replace(">*{", f">#{salt}-figure_1 *{{")  # a style for this picture, not for the whole page
    text = re.sub(r'\bid="', f'id="{salt}-', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{salt}-", text)
    # A hundredth of a point is less than anybody sees, and half of the bytes.
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"-?\d+\.\d{3,}", _rounded, path[0]), text)
    return text.replace("<svg ", '<svg role="img" style="max-width: 100%; height: auto" ', 1)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def compact(svg: str) -> str:
    """The same picture in half of the bytes: no names that nobody uses, no space that nobody sees, lines as steps.

    Places are rounded to a hundredth of a point. Letters must be paths: in text, space counts.
    """
    used = set(re.findall(r"#([\w.-]+)", svg))  # by a link, by url(), or by a style
    svg = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", svg)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{_shorter(path[1])}"', svg)
    places = r"(?:translate\([^)]*\)| [xy]=\"[^\"]*\")"
    svg = re.sub(places, lambda place: re.sub(r"-?\d+\.\d{3,}", lambda n: _hundredths(_cents(n[0])), place[0]), svg)
    return re.sub(r">\s+<", "><", svg.replace("xlink:href=", "href=")).strip()


def _shorter(path: str) -> str:
    """Lines to places become steps, counted in whole hundredths: no rounding adds up."""
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
    """The page with each letter of its pictures drawn once, at the top: all of them have the same few."""
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
    """Without what a number does not need: -0.50 is -.5."""
    return re.sub(r"^(-?)0(?=\.)", r"\1", f"{cents / 100:.2f}".rstrip("0").rstrip("."))
