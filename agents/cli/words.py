"""Words of the command line as values; nothing here takes long to import."""

import ast
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

KeyValues = tyro.conf.UseAppendAction[
    Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE")]
]
Switch = tyro.conf.FlagCreatePairsOff[bool]


def parse_count(text: str) -> int:
    """Read a whole number, also as `1e6` or `1_000_000`.

    **Raises:**

    `ValueError` if it is not a whole number.
    """
    try:
        value = float(text)
        count = int(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a whole number") from None
    if count != value:
        raise ValueError(f"{text!r} is not a whole number")
    return count


def parse_seed(text: str) -> int:
    """Read the root of some randomness.

    **Raises:**

    `ValueError` if it is not a whole number of 32 bits: beyond, seeds give the same numbers.
    """
    with contextlib.suppress(ValueError):
        seed = parse_count(text)
        if 0 <= seed < 2**32:
            return seed
    raise ValueError(f"{text!r} is not a whole number from 0 to {2**32 - 1}")


Count = Annotated[
    int,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda texts: parse_count(texts[0]),
        is_instance=lambda x: isinstance(x, int),
        str_from_instance=lambda x: [str(x)],
    ),
]

Seed = Annotated[
    int,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda texts: parse_seed(texts[0]),
        is_instance=lambda x: isinstance(x, int),
        str_from_instance=lambda x: [str(x)],
    ),
]


@dataclass(frozen=True, kw_only=True)
class Command:
    """What all commands share."""

    imports: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]],
        tyro.conf.arg(name="import", metavar="MODULE"),
    ] = ()
    """A module of yours to import first, which registers cells, environments or agents; may be
    given several times."""


@dataclass(frozen=True, kw_only=True)
class CompilingCommand(Command):
    """What commands share that compile programs."""

    cache: Switch = True
    """Keep compiled programs in the user's cache folder, and take them from there."""


def parse_options(texts: Sequence[str], flag: str) -> dict[str, Any]:
    """Read options given to a flag as `key=value`; values are Python literals, else text.

    **Raises:**

    `ValueError` if one is not `key=value`, or a key is given twice.
    """
    parsed: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise ValueError(f"{flag} (={text!r}) must be written as key=value")
        if key in parsed:
            raise ValueError(f"{flag} gives {key!r} twice")
        parsed[key] = _literal(value)
    return parsed


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
