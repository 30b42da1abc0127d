"""Former names that users may have in their code: they still work, and lead to the new names."""

from typing import Any


def alias(name: str) -> Any:
    """Return a property that reads and writes the attribute `name`."""
    return property(
        lambda record: getattr(record, name),
        lambda record, value: setattr(record, name, value),
        doc=f"The former name of `{name}`.",
    )
