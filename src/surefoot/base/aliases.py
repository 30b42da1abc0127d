"""Former names that users may have in their code: they still work, and lead to the new names."""

from typing import Any

from surefoot.errors import InvalidSetting


def alias(name: str) -> Any:
    """Return a property that reads and writes the attribute `name`."""
    return property(
        lambda record: getattr(record, name),
        lambda record, value: setattr(record, name, value),
        doc=f"The former name of `{name}`.",
    )


def either(name: str, value: Any, former_name: str, former_value: Any) -> Any:
    """Return the value of a keyword argument that may be given by its former name, but not by both names."""
    if former_value is None:
        return value
    if value is not None:
        raise InvalidSetting(f"{name} was given, and {former_name}, which is its former name, too. Leave one out.")
    return former_value
