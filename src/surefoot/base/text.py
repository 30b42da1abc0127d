"""Numbers and texts in as few characters as say what they are."""


def number_text(x: float) -> str:
    """Return a number in as few digits as tell it from its neighbours: 0.1, but
    0.30000000000000004.
    """
    short = f"{x:g}"
    return short if float(short) == x else repr(float(x))


def how_many(n: int, noun: str) -> str:
    """Write `1 row` or `2 rows`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
