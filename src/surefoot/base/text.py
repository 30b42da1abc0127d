"""Texts as they are shown: of what others wrote (names, labels, paths) no character moves a
cursor or hides others.
"""


def number_text(x: float) -> str:
    """Return a number in as few digits as tell it from its neighbours: 0.1, but
    0.30000000000000004.
    """
    short = f"{x:g}"
    return short if float(short) == x else repr(float(x))


def printable(text: str) -> str:
    r"""Return a text with what cannot be printed written out: ESC as \x1b, a line break as \n, a
    mark as \u202e.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """Return the same of a text of several lines: they stay lines."""
    return "\n".join(map(printable, text.split("\n")))


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
