"""Checks that several packages share. They return a value or raise an error; they never repair anything."""

import math
from collections.abc import Sequence
from contextlib import suppress
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from surefoot.base.arrays import AnyArray, Floats
from surefoot.errors import InvalidSetting, SurefootError

_Array = TypeVar("_Array", bound=AnyArray)

ROW_SUM_TOLERANCE = 1e-9
VIOLATION_TOLERANCE = 1e-12  # exact values have rounding errors of about this size: a violation is below floor - 1e-12
REWARD_UNITS = 2**20  # rewards are summed as whole multiples of 2^-20, rounded down: sums are exact in any order
LARGEST_ARRAY = 10**9  # numbers: 8 GB. More must be a typo, and is refused before memory is allocated
SMALLEST_DELTA = 1e-200  # shares of a smaller delta would underflow in float64


def where(name: str, index: Sequence[int]) -> str:
    """Return how an entry of an array is named in every message, such as `P[2, 0, 1]`."""
    return f"{name}[{', '.join(str(int(i)) for i in index)}]"


def require_size(what: str, shape: Sequence[int], error: type[SurefootError]) -> None:
    """Refuse an array that would be too large before it is allocated. (Python's integers do not overflow.)"""
    numbers = math.prod(int(size) for size in shape)
    if numbers > LARGEST_ARRAY:
        sizes = " x ".join(str(int(size)) for size in shape)
        raise error(
            f"{what} would be {sizes} = {numbers:.3g} numbers, expected at most {LARGEST_ARRAY:.0e}. Choose smaller "
            "sizes."
        )


def at_least(value: float) -> str:
    """Return a certified lower value in six digits, never rounded up: what is printed is proved as well."""
    return _six_digits(value, ROUND_FLOOR)


def at_most(value: float) -> str:
    """Return an upper value in six digits, never rounded down."""
    return _six_digits(value, ROUND_CEILING)


def _six_digits(value: float, rounding: str) -> str:
    if not math.isfinite(value) or value == 0.0:
        return f"{value:.6g}"
    # An error of about one ulp is tolerated: 2.1999999999999997 is printed as 2.2.
    exact = Decimal(value) + abs(Decimal(value)) * Decimal("1e-12") * (1 if rounding == ROUND_FLOOR else -1)
    return f"{float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 5), rounding=rounding)):.6g}"


def as_array(name: str, values: object, kinds: str, meaning: str, error: type[SurefootError]) -> AnyArray:
    """Return an array whose dtype is of one of these kinds; ragged and masked arrays are refused."""
    if isinstance(values, np.ma.MaskedArray):
        raise error(f"{name} is a masked array, expected {meaning}. Fill or drop the masked entries first.")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as reason:
        raise error(f"{name} is ragged ({reason}). Expected {meaning}.") from None
    if array.dtype.kind not in kinds:
        raise error(f"{name} has dtype {array.dtype}, expected {meaning}.")
    return array


def as_floats(name: str, values: object, error: type[SurefootError]) -> Floats:
    """Return a C-contiguous float64 array; anything but numbers is refused."""
    array = as_array(name, values, "fiub", "a rectangular array of numbers", error)
    return np.asarray(array, dtype=np.float64, order="C")


def require_finite(name: str, array: Floats, error: type[SurefootError]) -> None:
    """Refuse an array with NaN or infinity."""
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        place = where(name, bad[0])
        raise error(f"{place} is {array[tuple(bad[0])]}, expected a finite number. Remove NaN and inf at their source.")


def require_distributions(name: str, array: Floats, meaning: str, error: type[SurefootError]) -> None:
    """Refuse an array unless every row along its last axis is >= 0 and sums to 1 within 1e-9."""
    require_finite(name, array, error)
    bad = np.argwhere(array < 0)
    if bad.size:
        place = where(name, bad[0])
        raise error(f"{place} is {array[tuple(bad[0])]:.6g}, expected a probability >= 0. Rows must be {meaning}.")
    sums = array.sum(axis=-1)
    bad = np.argwhere(np.abs(sums - 1.0) > ROW_SUM_TOLERANCE)
    if len(bad):  # the index of a single row is empty, and so is its size
        found, place = sums[tuple(bad[0])], where(name, bad[0]) if bad.size else name
        raise error(f"{place} sums to {found:.10g}, expected 1 within {ROW_SUM_TOLERANCE:g}. Rows must be {meaning}.")


def require_integer(name: str, value: object, low: int, error: type[SurefootError]) -> int:
    """Return an integer (of any integer type, but no bool) that is at least `low`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise error(f"{name} is {value!r}, expected an integer >= {low}.")
    if value < low:
        raise error(f"{name} is {int(value)}, expected an integer >= {low}.")
    return int(value)


def require_number(name: str, value: object, meaning: str, error: type[SurefootError] = InvalidSetting) -> float:
    """Return a real number as a float; text, bools, arrays, complex numbers and NaN are refused."""
    number = math.nan
    if isinstance(value, int | np.integer | Real) and not isinstance(value, bool | np.bool_):
        with suppress(OverflowError):
            number = float(value)
    if math.isnan(number):
        raise error(f"{name} is {value!r}, expected {meaning}.")
    return number


def require_bool(name: str, value: object) -> bool:
    """Return True or False; other values, such as the text "true", are refused."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidSetting(f"{name} is {value!r}, expected True or False.")
    return bool(value)


def require_delta(delta: object) -> float:
    """Return delta, a number with 0 < delta < 1."""
    meaning = "a number strictly between 0 and 1, such as 0.05: how likely the promise may fail"
    value = require_number("delta", delta, meaning)
    if not SMALLEST_DELTA <= value < 1.0:
        raise InvalidSetting(f"delta is {value:g}, expected {meaning}.")
    return value


def require_floor(floor: object, H: int, name: str = "floor") -> float:
    """Return the floor, a number in 0..H: below, no policy can miss it; above, none can reach it."""
    value = require_number(name, floor, f"a number between 0 and H = {H}")
    if value < 0.0:
        raise InvalidSetting(
            f"{name} is {value:g}, but returns lie in [0, {H}]: no policy can miss it. Choose 0 <= {name} <= {H}."
        )
    if value > H:
        raise InvalidSetting(
            f"{name} is {value:g}, but returns lie in [0, {H}] (H = {H} steps of reward at most 1): "
            f"no policy can reach it. Choose 0 <= {name} <= {H}."
        )
    return value


def either(name: str, value: Any, former_name: str, former_value: Any) -> Any:
    """Return the value of a keyword argument that may be given by its former name, but not by both names."""
    if former_value is None:
        return value
    if value is not None:
        raise InvalidSetting(f"{name} was given, and {former_name}, which is its former name, too. Leave one out.")
    return former_value


class FrozenRecord:
    """Base class of frozen records. Copies made by `copy` or in a worker process are as read-only as the original."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        freeze(self, **state)


def read_only(array: _Array) -> _Array:
    """Return a view that cannot be written to. Kernels are always given such views: for writable inputs they would be
    compiled again."""
    view = array.view()
    view.flags.writeable = False
    return view


def freeze(record: object, **fields: Any) -> None:
    """Set the fields of a frozen record under construction; arrays become read-only."""
    for name, value in fields.items():
        object.__setattr__(record, name, read_only(value) if isinstance(value, np.ndarray) else value)
