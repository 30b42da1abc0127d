"""What commands share: how they end, and how they speak."""

FINE, BAD_DATA, USAGE, CERTIFICATE_FAILED, INTERRUPTED = 0, 1, 2, 3, 130


def say(text: str) -> None:
    """A paragraph, broken between words where the terminal ends."""
    from rich.console import Console

    Console().print(text, highlight=False, markup=False)
