"""Pictures in few bytes, and named for screen readers."""

import html
import re


def labelled(svg: str, label: str) -> str:
    """Return the picture, smaller, with a label that a screen reader reads."""
    role = "" if ' role="img"' in svg[: svg.index(">")] else ' role="img"'
    return compact(svg).replace("<svg", f'<svg{role} aria-label="{html.escape(label)}"', 1)


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
