"""Options that are chosen among a few."""

from typing import Any

import rtrl

SENSITIVITIES: dict[str, rtrl.AbstractSensitivity] = {
    "exact": rtrl.Exact(),
    "snap1": rtrl.SnAp1(),
    "rflo": rtrl.RFLO(),
    "eprop": rtrl.EProp(),
    "snap0": rtrl.SnAp0(),
    "uoro": rtrl.UORO(),
}
"""The choices by the names that they have in recipes and on the command line."""


def why_not(name: Any) -> str:
    """Why there is no choice of a name that one may look for; empty for others."""
    if name != "snap2":
        return ""
    return " (SnAp-2 would be exact: in two steps every unit of a dense cell reaches every other)"


def check_sensitivity(value: Any, choices: tuple[type, ...]) -> None:
    """Check the argument `sensitivity` of a cell.

    **Arguments:**

    - `value`: what was given.
    - `choices`: the types that the cell takes.

    **Raises:**

    `TypeError` for what is no choice at all, such as its name; `ValueError` for a choice that the
    cell does not take.
    """
    if isinstance(value, choices):
        return
    known = ", ".join(f"rtrl.{kind.__name__}()" for kind in choices)
    if isinstance(value, rtrl.AbstractSensitivity):
        raise ValueError(f"`sensitivity` (={value!r}) must be one of {known}.")
    raise TypeError(
        f"`sensitivity` (={value!r}) must be one of {known}: only `zoo.get` and `zoo.spec` take "
        "names."
    )


def sensitivity_of(name: str) -> rtrl.AbstractSensitivity:
    """The choice of that name; `ValueError` with those there are."""
    if name not in SENSITIVITIES:
        raise ValueError(f"`sensitivity` (={name!r}) must be one of {', '.join(SENSITIVITIES)}.")
    return SENSITIVITIES[name]


def name_of(sensitivity: rtrl.AbstractSensitivity) -> str:
    """The name of a choice; `ValueError` for one that has none, such as `rtrl.UORO(seed=1)`."""
    for name, choice in SENSITIVITIES.items():
        if choice == sensitivity:
            return name
    raise ValueError(
        f"`sensitivity` (={sensitivity!r}) must be one of {', '.join(SENSITIVITIES)} in a recipe: "
        "give others to the cell's class."
    )
