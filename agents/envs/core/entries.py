"""What a family says of its environments: names, classes and what a name fixes."""

from collections.abc import Callable, Mapping
from typing import Any

from gymnax.environments.environment import Environment

Entries = Mapping[str, tuple[Callable[..., Environment], Mapping[str, Any]]]
"""By name: the class, and those of the constructor's arguments that the name fixes."""


def levels(name: str, kind: Callable[..., Environment], **fixed: Mapping[str, Any]) -> Entries:
    """Name a game with free options, and its levels.

    **Arguments:**

    - `name`: of the game; a level's name is this and the level.
    - `kind`: its class.
    - `fixed`: by level, such as "Easy", the arguments that the level fixes.

    **Returns:**

    The entries.
    """
    return {name: (kind, {}), **{name + level: (kind, f) for level, f in fixed.items()}}
