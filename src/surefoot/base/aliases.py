"""Former names of what users may have written: they still work, and lead to the new name."""

from typing import Any

from surefoot.errors import InvalidSetting


def alias(name: str) -> Any:
    """An attribute that reads and writes the attribute `name`."""
    return property(
        lambda record: getattr(record, name),
        lambda record, value: setattr(record, name, value),
        doc=f"The former name of `{name}`.",
    )


def either(name: str, value: Any, former_name: str, former_value: Any) -> Any:
    """The value of a keyword that may be given by its former name, but not by both."""
    if former_value is None:
        return value
    if value is not None:
        raise InvalidSetting(f"{name} was given, and {former_name}, which is its former name, too. Leave one out.")
    return former_value
