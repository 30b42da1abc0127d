"""What was saved, and is read again."""

import surefoot as sf


def reloaded(counts, folder):
    """These counts from their file."""
    counts.save(folder / "counts.npz")
    return sf.Counts.load(folder / "counts.npz")
