"""A study as data: the fields of its file, and the studies that come with the package."""
