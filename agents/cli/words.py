"""Words of the command line as values; nothing here takes long to import."""

import argparse
import contextlib
import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
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


def _whole(parse: Callable[[str], int]) -> Any:
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda texts: parse(texts[0]),
        is_instance=lambda x: isinstance(x, int),
        str_from_instance=lambda x: [str(x)],
    )


Count = Annotated[int, _whole(parse_count)]
Seed = Annotated[int, _whole(parse_seed)]


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

    cache: Annotated[Switch, tyro.conf.arg(help_behavior_hint="(default: False)")] = True
    """Neither read nor write the user's folder of compiled programs."""


PICTURES = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".eps", ".ps")
"""What a picture's file may end with."""


def check_picture(path: Path, endings: Sequence[str] = PICTURES, of: str = "") -> None:
    """Check that a picture or film can be written where --out says, before it is made.

    **Raises:**

    `ValueError` for another kind of file, a folder, or what would be in none.
    """
    if path.is_dir():
        raise ValueError(f"--out (={path}) must be a file, and is a folder")
    if not path.parent.is_dir():
        raise ValueError(f"--out (={path}) must be in a folder that exists")
    if path.suffix.lower() not in endings:
        raise ValueError(f"--out (={path}) must end in {', '.join(endings)}{of}")


def early(words: Sequence[str]) -> argparse.Namespace:
    """Read what has to be known before the words can be read as a whole.

    **Returns:**

    `imports`, `algorithm`, `preset`, `progress`, `out`, `steps`, `coordinator`, `process` and
    `processes`, each as typed or its default.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    # A value that is missing is none here, and an error where the words are read as a whole.
    parser.add_argument("--import", action="append", nargs="?", default=[], dest="imports")
    for name, default in (("algorithm", "ppo"), ("progress", "auto")):
        parser.add_argument(f"--{name}", nargs="?", const=default, default=default)
    for name in ("out", "steps"):
        parser.add_argument(f"--{name}", nargs="?")
    for name in ("preset", "coordinator", "process", "processes"):
        parser.add_argument(f"--{name}", nargs="?", type=_unless_none)
    return parser.parse_known_args(list(words))[0]


def _unless_none(word: str) -> str | None:
    return None if word == "None" else word


def in_flags(message: str, command: Any) -> str:
    """Say of settings in an error what they are on the command line.

    **Arguments:**

    - `message`: has settings as `name`.
    - `command`: what was typed, or `None` where it could not be read.
    """
    flags = {} if command is None else _flags(command)
    kinds = {"--memory-options": "memory_options", "--env-options": "env_options"}
    parts = [(o, *text.partition("=")[::2]) for o, n in kinds.items() for text in flags.get(n, ())]
    if _OF_ANOTHER.search(message):
        return message  # of a cell or an environment, which may have a name like a flag's

    def flag(found: re.Match) -> str:
        name, value = found[1], found[2] or ""
        if name not in flags:  # `name` and `length` are those of a cell, an environment, a gradient
            for option, key, typed in parts:
                if key == name and _is_said(value[3:-1], typed):
                    return f"{option} {name}{value}"
            same = (one for one in _NAMED.get(name, ()) if value == f" (={flags.get(one)!r})")
            name = next(same, name)
        unread = command is None and name in _READ_BEFORE
        known = unread or (name in flags and not _is_positional(command, name))
        return f"--{name.replace('_', '-')}{value}" if known else found[0]

    return re.sub(r"`(\w+)`( \(=[^)]*\))?", flag, message)


def _is_said(value: str, typed: str) -> bool:
    """Whether an error's value is what was typed: a text, a word such as `true`, or a number."""
    with contextlib.suppress(ValueError):
        return float(value) == float(typed)
    return value.lower() in (typed.lower(), repr(typed).lower())


_OF_ANOTHER = re.compile(r"^Unknown option `|` \(=.*\) is not an option of ")
# What says which words can be read, and the places of a job, which are taken before.
_READ_BEFORE = ("algorithm", "coordinator", "process", "processes")
_NAMED = {"name": ("memory", "env"), "length": ("segment",)}


def _is_positional(command: Any, name: str) -> bool:
    """Whether an option of a command is told by its place, without a flag."""
    annotation = next((f.type for f in dataclasses.fields(command) if f.name == name), None)
    return tyro.conf.Positional in getattr(annotation, "__metadata__", ())


def _flags(command: Any) -> dict[str, Any]:
    """The options of a command by name, those of its parts too."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(command):
        value = getattr(command, field.name)
        found |= _flags(value) if dataclasses.is_dataclass(value) else {field.name: value}
    return found
