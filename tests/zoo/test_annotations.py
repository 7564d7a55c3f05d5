"""Values against annotations: what fits, what it becomes, and what errors say."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Lt

from zoo.annotations import (
    Count,
    NonNegative,
    Positive,
    Seed,
    Share,
    Size,
    StepSize,
    checked,
    fit_fields,
    fitted,
)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (np.int64(3), int, 3),
        (np.float32(0.5), float, 0.5),
        (2, float, 2.0),
        (2, int | float, 2),
        (np.bool_(True), bool, True),
        (np.str_("a"), str, "a"),
        (None, int | None, None),
        ("never", Literal["never", "epoch"], "never"),
        (3, Annotated[int, "of something"], 3),
        (np.int8(1), Count, 1),
        (2**31 - 1, Count | None, 2**31 - 1),
        (None, Count | None, None),
        ("all", Count | Literal["all"], "all"),
        (0, Size, 0),
        (2**32 - 1, Seed, 2**32 - 1),
        (1, Share, 1.0),
        (0.0, NonNegative, 0.0),
        (1e-30, Positive, 1e-30),
        (1.0, StepSize, 1.0),
        ([1, np.int32(2)], tuple[float, ...], (1.0, 2.0)),
        ((1, "a"), tuple[int, str], (1, "a")),
        ([[1], [2]], Sequence[tuple[int, ...]], ((1,), (2,))),
        ("runs", str | Path, "runs"),
        (Path("runs"), str | Path, Path("runs")),
        (len, Callable[[Any], int], len),
        (object, Any, object),
    ],
)
def test_what_fits_comes_back_in_pythons_own_types(value, kind, expected):
    found = fitted("x", value, kind)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "kind", "error", "rule"),
    [
        (True, int, TypeError, "a whole number."),
        (1.0, int, TypeError, "a whole number."),
        (np.float64(1), int, TypeError, "a whole number."),
        (2**63, int, ValueError, "a whole number of at most 64 bits."),
        (True, float, TypeError, "a number."),
        ("1", float, TypeError, "a number."),
        (float("nan"), float, ValueError, "a number, finite and of at most 3.4e38."),
        (np.float32("-inf"), float | None, ValueError, "a number or None, finite and of at most"),
        (1e39, float, ValueError, "a number, finite and of at most 3.4e38."),
        (10**39, float, ValueError, "a number, finite and of at most 3.4e38."),
        (1, bool, TypeError, "True or False."),
        ("no", bool | None, TypeError, "True or False or None."),
        ("often", Literal["never", "epoch"], ValueError, "one of never, epoch."),
        (True, Literal[1, 2], TypeError, "one of 1, 2."),
        (np.zeros(2), Literal["a"], TypeError, "one of a."),
        (3, str | Path, TypeError, "a string or a path."),
        ([1, "2"], tuple[int, ...], ValueError, "a list, each of it a whole number."),
        ([1], tuple[int, int], ValueError, "a list of 2 (a whole number, a whole number)."),
        ("12", tuple[int, int], TypeError, "a list of 2 (a whole number, a whole number)."),
        (3, dict[str, Any], TypeError, "a dictionary."),
        (3, Path | None, TypeError, "a path or None."),
        (0, Count, ValueError, "a whole number of at least 1."),
        (0, Count | None, ValueError, "a whole number of at least 1, or None."),
        (0, Count | Literal["all"], ValueError, "a whole number of at least 1."),
        (2**31, Count, ValueError, "at most 2147483647."),
        (1.0, Count, TypeError, "a whole number."),
        (-1, Size, ValueError, "a whole number of at least 0."),
        (2**32, Seed, ValueError, "a whole number from 0 to 4294967295."),
        (0, Positive, ValueError, "above 0."),
        (-0.1, NonNegative | None, ValueError, "at least 0, or None."),
        (1.1, Share, ValueError, "in [0, 1]."),
        (0.0, StepSize, ValueError, "above 0 and at most 1."),
        (float("nan"), Share, ValueError, "a number, finite and of at most 3.4e38."),
        (3, Annotated[int, Lt(3)], ValueError, "below 3."),
    ],
)
def test_what_does_not_fit_is_named_with_its_rule(value, kind, error, rule):
    with pytest.raises(error) as refused:
        fitted("size", value, kind, of="rtu")
    assert type(refused.value) is error
    assert str(refused.value).startswith("`size` (=") and f" of 'rtu' must be {rule}" in str(
        refused.value
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros((50, 50)), "(=array([[0., 0., 0., ..., 0., 0., 0.], "),
        pytest.param(10**5000, "(=int of 16610 bits)", id="huge"),
        ("a\nb\x1b[2J", r"(='a\nb\x1b[2J')"),
        ("é\u202e" * 100, "…)"),
    ],
)
def test_an_error_is_one_short_printable_line(value, words):
    with pytest.raises((TypeError, ValueError)) as refused:
        fitted("size", value, bool)
    message = str(refused.value)
    assert words in message and message.isprintable() and len(message) < 120


@dataclass(frozen=True)
class Settings:
    size: int = 3
    rate: float = 1
    free: Any = 5

    def __post_init__(self):
        fit_fields(self, but=["free"])


def test_fields_and_arguments_are_checked_and_made_plain():
    made = Settings(size=np.int8(4))  # pyright: ignore[reportArgumentType]
    assert (
        type(made.size) is int
        and type(made.rate) is float
        and type(Settings(free=np.int64(5)).free) is np.int64
    )
    with pytest.raises(TypeError, match=r"^`size` \(='4'\) must be a whole number\.$"):
        Settings(size="4")  # pyright: ignore[reportArgumentType]

    @checked
    def area(width: int, *more: Any, height: "int | None" = None, **others: Any):
        return type(width), more, height, others

    assert area(np.int64(1), "x", a="y") == (int, ("x",), None, {"a": "y"})  # pyright: ignore
    with pytest.raises(TypeError, match=r"^`height` \(=1\.5\) must be a whole number or None"):
        area(1, height=1.5)  # pyright: ignore[reportArgumentType]
