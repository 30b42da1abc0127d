"""Checks that several packages share. They return a value or raise an error; they never repair
anything.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import AnyArray, Bools, Floats
from surefoot.base.text import shortened
from surefoot.errors import InvalidModel, InvalidSetting, SurefootError

_Array = TypeVar("_Array", bound=AnyArray)

ROW_SUM_TOLERANCE = 1e-9
# so near to 1 are the sums of rows that were distributions before float32 or float16 rounded them
NEARLY = 1e-3
ROUNDED = " These nearly are: were they rounded? Compute in float64, or divide each row by its sum."
# exact values have rounding errors of about this size: a violation is below floor - 1e-12
VIOLATION_TOLERANCE = 1e-12
# rewards are summed as whole multiples of 2^-20, rounded down: sums are exact in any order
REWARD_UNITS = 2**20
# States up to which backups are searched for: their runs keep every bit
# (tests/agreement/test_same_bits.py).
FEW = 18
MOST_DENSE = 2**28  # numbers of an array that somebody gives: two gigabytes, and it is copied
# numbers: 8 GB. More must be a typo, and is refused before memory is allocated
LARGEST_ARRAY = 10**9
LONGEST = 10**6  # steps in an episode; more must be a typo
LONGEST_UNIT, LONGEST_TOLD = 40, 200
# of what people give: neither sums nor quotients of these overflow
LARGEST_NUMBER, SMALLEST_RANGE = 1e100, 1e-100
LARGEST_INTEGER = 2**128  # any seed that numpy draws is below it
SMALLEST_DELTA = 1e-200  # shares of a smaller delta would underflow in float64


def where(name: str, index: Sequence[int]) -> str:
    """Return how an entry of an array is named in every message, such as `P[2, 0, 1]`."""
    return f"{name}[{', '.join(str(int(i)) for i in index)}]"


def require_size(what: str, shape: Sequence[int], error: type[SurefootError]) -> None:
    """Refuse an array that would be too large before it is allocated. (Python's integers do not
    overflow.)
    """
    numbers = math.prod(int(size) for size in shape)
    if numbers > LARGEST_ARRAY:
        sizes = " x ".join(str(int(size)) for size in shape)
        raise error(
            f"{what} would be {sizes} = {float(numbers):.3g} numbers, expected at most "
            f"{LARGEST_ARRAY:.0e}. Choose smaller sizes."
        )


def at_least(value: float) -> str:
    """Return a certified lower value in six digits, never rounded up: what is printed is proved
    as well.
    """
    return _six_digits(value, ROUND_FLOOR)


def at_most(value: float) -> str:
    """Return an upper value in six digits, never rounded down."""
    return _six_digits(value, ROUND_CEILING)


def _six_digits(value: float, rounding: str) -> str:
    if not math.isfinite(value) or value == 0.0:
        return f"{value:.6g}"
    # An error of about one ulp is tolerated: 2.1999999999999997 is printed as 2.2.
    exact = Decimal(value) + abs(Decimal(value)) * Decimal("1e-12") * (
        1 if rounding == ROUND_FLOOR else -1
    )
    return (
        f"{float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 5), rounding=rounding)):.6g}"
    )


def as_array(
    name: str, values: object, kinds: str, meaning: str, error: type[SurefootError]
) -> AnyArray:
    """Return an array whose dtype is of one of these kinds; ragged and masked arrays are
    refused.
    """
    if hasattr(values, "tocsr"):
        raise error(f"{name} is a sparse matrix, expected {meaning}: give {name}.toarray().")
    if isinstance(values, np.ndarray) and values.size > MOST_DENSE:  # before it is copied
        sizes = " x ".join(map(str, values.shape))
        raise error(
            f"{name} is a dense array of {sizes} = {values.size:.3g} numbers, expected at most "
            f"{MOST_DENSE:,}. Where it has a number for every next state, give a sparse matrix of "
            "scipy, (S*A, S) with row s*A + a."
        )
    if isinstance(values, np.ma.MaskedArray):
        raise error(
            f"{name} is a masked array, expected {meaning}. Fill or drop the masked entries first."
        )
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
        raise error(
            f"{place} is {array[tuple(bad[0])]}, expected a finite number. Remove NaN and inf at "
            "their source."
        )


def require_distributions(
    name: str,
    array: Floats,
    meaning: str,
    error: type[SurefootError],
    tolerance: float = ROW_SUM_TOLERANCE,
    hint: str = ROUNDED,
) -> None:
    """Refuse an array unless every row along its last axis is >= 0 and sums to 1 within 1e-9, or
    within `tolerance`.

    The `hint` is for rows that nearly do.
    """
    # Two quick passes for what is right, as nearly always; NaN and infinity do not get past them.
    if array.size and array.min() >= 0.0 and np.abs(array.sum(axis=-1) - 1.0).max() <= tolerance:
        return
    require_finite(name, array, error)
    bad = np.argwhere(array < 0)
    if bad.size:
        place = where(name, bad[0])
        raise error(
            f"{place} is {array[tuple(bad[0])]:.6g}, expected a probability >= 0. Rows must be "
            f"{meaning}."
        )
    sums = array.sum(axis=-1)
    bad = np.argwhere(np.abs(sums - 1.0) > tolerance)
    if len(bad):  # the index of a single row is empty, and so is its size
        found, place = sums[tuple(bad[0])], where(name, bad[0]) if bad.size else name
        nearly = hint if np.abs(sums - 1.0).max() <= NEARLY else ""
        raise error(
            f"{place} sums to {found:.10g}, expected 1 within {tolerance:g}. Rows must be "
            f"{meaning}.{nearly}"
        )


def told(value: object) -> str:
    """Return what somebody gave, as a message says it: in one line, and not of any length."""
    if isinstance(value, int | np.integer) and abs(int(value)) >= LARGEST_INTEGER:
        return f"a number of {int(value).bit_length()} bits"
    shown = str(int(value)) if isinstance(value, np.integer) else repr(value)
    return shortened(" ".join(shown.split()), LONGEST_TOLD)


def require_integer(name: str, value: object, low: int, error: type[SurefootError]) -> int:
    """Return an integer (of any integer type, but no bool) that is at least `low`."""
    whole = (
        int(value)
        if isinstance(value, int | np.integer) and not isinstance(value, bool)
        else low - 1
    )
    if not low <= whole < LARGEST_INTEGER:
        raise error(f"{name} is {told(value)}, expected an integer >= {low}.")
    return whole


def require_number(
    name: str, value: object, meaning: str, error: type[SurefootError] = InvalidSetting
) -> float:
    """Return a real number that somebody chose. What is finite and so large that its sums would
    not be is refused.
    """
    number = as_number(name, value, meaning, error)
    if LARGEST_NUMBER < abs(number) < math.inf:
        raise error(
            f"{name} is {number:g}, expected a number from {-LARGEST_NUMBER:g} to "
            f"{LARGEST_NUMBER:g}. Is it an amount? Count it in larger units."
        )
    return number


def as_number(name: str, value: object, meaning: str, error: type[SurefootError]) -> float:
    """Return a real number of any size, such as one that was observed; text, bools, arrays and
    NaN are refused.
    """
    number = math.nan
    if isinstance(value, int | np.integer | Real) and not isinstance(value, bool | np.bool_):
        with suppress(OverflowError):
            number = float(value)
    if math.isnan(number):
        raise error(f"{name} is {told(value)}, expected {meaning}.")
    return number


def require_range(
    what: str, low: float, high: float, meaning: str, error: type[SurefootError]
) -> None:
    """Refuse two numbers unless low < high, both are finite, and they differ by what others can
    be divided by.
    """
    if not -math.inf < low < high < math.inf:
        raise error(f"{what} {low:g} to {high:g}, expected {meaning}.")
    if high - low < SMALLEST_RANGE:
        raise error(
            f"{what} {low:g} to {high:g}, expected a width of at least {SMALLEST_RANGE:g}: use "
            "smaller units."
        )


def require_mapping(name: str, value: object, meaning: str) -> None:
    """Refuse what is neither a dictionary nor None."""
    if value is not None and not isinstance(value, Mapping):
        raise InvalidSetting(f"{name} is {told(value)}, expected {meaning}.")


def require_unit(name: str, value: object, error: type[SurefootError]) -> str:
    """Return the word that stands behind every number, such as "EUR"; empty: there is none."""
    if not (isinstance(value, str) and value.isprintable() and len(value) <= LONGEST_UNIT):
        meaning = f'a word such as "EUR", of at most {LONGEST_UNIT} characters that can be printed'
        raise error(f"{name} is {told(value)}, expected {meaning}.")
    return value


def require_bool(name: str, value: object) -> bool:
    """Return True or False; other values, such as the text "true", are refused."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidSetting(f"{name} is {told(value)}, expected True or False.")
    return bool(value)


def require_delta(
    value: object,
    name: str = "delta",
    meaning: str = "such as 0.05: how likely the promise may fail",
) -> float:
    """Return delta, or another probability of an error, a number with 0 < delta < 1."""
    expected = f"a number strictly between 0 and 1, {meaning}"
    delta = require_number(name, value, expected)
    if not SMALLEST_DELTA <= delta < 1.0:
        raise InvalidSetting(f"{name} is {delta:g}, expected {expected}.")
    return delta


def require_rewards(name: str, rewards: Floats, ndim: int) -> None:
    """Refuse rewards that are not finite or not in [0, 1]; the index is that of the array as
    given (ndim axes).
    """
    bad = np.argwhere(~np.isfinite(rewards))
    if bad.size:
        require_finite(name, rewards if rewards.ndim == ndim else rewards[0], InvalidModel)
    bad = np.argwhere((rewards < 0.0) | (rewards > 1.0))
    if bad.size:
        raise InvalidModel(
            f"{where(name, bad[0][-ndim:])} is {rewards[tuple(bad[0])]:.10g}, expected a reward in "
            "[0, 1]. For other rewards declare their range, units=sf.Units(low, high): floors and "
            "values are then in your units, too."
        )


def mask_of(
    name: str, given: ArrayLike | bool | None, shape: tuple[int, ...], H: int
) -> Bools | None:
    """Return a mask (1 or H, ...), or None."""
    if given is None or given is False:
        return None
    if given is True:
        return np.ones((1, *shape), dtype=np.bool_)
    mask = as_array(name, given, "b", f"True or False for each of {shape}", InvalidModel)
    if mask.shape not in (shape, (H, *shape)):
        raise InvalidModel(
            f"{name} has shape {mask.shape}, expected {shape}, or {(H, *shape)} step by step."
        )
    return np.asarray(mask[None] if mask.ndim == len(shape) else mask, dtype=np.bool_)


def start_of(start: ArrayLike | str | None, s1: object, S: int) -> Floats | None:
    """Return the probabilities of the first state; None where they are unknown."""
    first = require_integer("s1", s1, 0, InvalidModel)
    if start is not None and first != 0:
        raise InvalidModel(f"s1 is {first}, but start was given, too. Leave one of them out.")
    if start is None:
        if first >= S:
            raise InvalidModel(f"s1 is {first}, expected a state in 0..{S - 1}.")
        weights = np.zeros(S)  # a row of np.eye(S) would take S times the memory
        weights[first] = 1.0
        return weights
    if isinstance(start, str):
        if start != "unknown":
            raise InvalidModel(
                f'start is {start!r}, expected probabilities of the {S} states, or "unknown".'
            )
        return None
    weights = as_floats("start", start, InvalidModel)
    if weights.shape != (S,):
        raise InvalidModel(
            f"start has shape {weights.shape}, expected probabilities of the {S} states."
        )
    require_distributions("start", weights, "a distribution over first states", InvalidModel)
    return weights.copy()


def per_step(name: str, array: Floats, axes: tuple[str, ...], H: int | None) -> tuple[Floats, int]:
    """Return the array with a leading axis of H steps, or of 1 when it is the same at every
    step; and H.
    """
    shape = f"({', '.join(axes)})"
    if 0 in array.shape:
        raise InvalidModel(
            f"{name} has shape {array.shape}: at least one step, one state and one action are "
            "needed."
        )
    if H is not None:
        H = require_integer("H", H, 1, InvalidModel)
        if H > LONGEST:
            raise InvalidModel(f"H is {H}, expected at most {LONGEST} steps.")
    if array.ndim == len(axes):
        if H is None:
            raise InvalidModel(
                f"{name} has shape {array.shape}. An array {shape} holds for all steps: give their "
                "number with H=..."
            )
        return array[None], H
    if array.ndim == len(axes) + 1:
        if H is not None and array.shape[0] != H:
            raise InvalidModel(
                f"H is {H}, but {name} has {array.shape[0]} steps (shape {array.shape}). Leave H "
                "out, or make them agree."
            )
        return array, array.shape[0]
    raise InvalidModel(
        f"{name} has shape {array.shape}, expected (H, {shape[1:]}, or {shape} together with H=..."
    )


class FrozenRecord:
    """Base class of frozen records. Copies made by `copy` or in a worker process are as
    read-only as the original.
    """

    def __post_init__(self) -> None:
        freeze(self, **vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        freeze(self, **state)


def read_only(array: _Array) -> _Array:
    """Return a view that cannot be written to. Kernels are always given such views: for writable
    inputs they would be compiled again.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def freeze(record: object, **fields: Any) -> None:
    """Set the fields of a frozen record under construction; arrays become read-only."""
    for name, value in fields.items():
        object.__setattr__(
            record, name, read_only(value) if isinstance(value, np.ndarray) else value
        )
