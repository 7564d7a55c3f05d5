"""A grid of settings: what all runs share, what differs between them, and what each is called."""

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.running.folder import folder_name

Texts = tuple[str, ...]
_LONGEST_NAME = 250  # bytes: file systems have 255 for that of a file, as NAME.exit
_TABLES = ("settings", "grid")


@dataclass(frozen=True)
class Grid:
    """Settings of many runs, as texts that the command line reads.

    **Attributes:**

    - `settings`: what all runs share, by name. `memory_options.r_min` is the option `r_min` of the
        memory.
    - `axes`: by name, the values of which every run has one; together they have every combination.
    """

    settings: Mapping[str, str]
    axes: Mapping[str, Texts]

    def combinations(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Return each run's name, which is that of its folder, and what it has of the axes.

        **Raises:**

        `ValueError` where there are no axes, two runs would have the same name, or one would have a
        name that is too long for a file's.
        """
        if not self.axes:
            raise ValueError(
                "a sweep needs --grid NAME=VALUE,VALUE, or a file with a [grid] in front"
            )
        seen = set()
        for values in itertools.product(*self.axes.values()):
            point = dict(zip(self.axes, values, strict=True))
            name = ",".join(folder_name(f"{axis}={value}") for axis, value in point.items())
            if name in seen:
                raise ValueError(f"two runs of the grid have the same name: {name}")
            if (size := len(name.encode())) > _LONGEST_NAME:
                raise ValueError(
                    f"the name of a run of the grid (={name[:60]}…, of {size} bytes) must have at "
                    f"most {_LONGEST_NAME}: give it fewer axes, or shorter values"
                )
            seen.add(name)
            yield name, point


class _AsWritten(float):
    """A number whose text is that of the file, so that runs are called as their settings are."""

    text: str

    def __new__(cls, text: str) -> "_AsWritten":
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text


def read_grid(path: Path) -> Grid:
    """Read a grid from a file in TOML with the tables `[settings]` and `[grid]`.

    **Raises:**

    `ValueError` if it cannot be read or is no such file, or gives a setting twice, naming what is
    wrong.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"), parse_float=_AsWritten)
    except OSError as error:
        raise ValueError(f"the file of the grid cannot be read: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path} is no TOML: {error}") from None
    for name, table in tables.items():
        if name not in _TABLES or not isinstance(table, dict):
            raise ValueError(f"{path} has `{name}`; it may have the tables [settings] and [grid]")
    settings: dict[str, str] = {}
    for name, value in _flat(path, "settings", tables).items():
        if not isinstance(value, list) or "." in name:
            settings[name] = _text(value)
        elif name.endswith("_options"):
            settings |= _by_key(path, name, tuple(map(_text, value)))
        else:
            raise ValueError(
                f"{path}: `{name}` (={_text(value)}) in [settings] must be one value: the values "
                "of several runs stand in [grid]"
            )
    axes = {}
    for name, values in _flat(path, "grid", tables).items():
        if not isinstance(values, list) or not values:
            raise ValueError(
                f"{path}: `{name}` (={_text(values)}) in [grid] must be a list of values"
            )
        axes[name] = tuple(map(_text, values))
    return Grid(settings, axes)


def _by_key(path: Path, name: str, texts: Texts) -> dict[str, str]:
    """Read options that a list gives as KEY=VALUE, each by the name that it has in a table."""
    found: dict[str, str] = {}
    for text in texts:
        key, is_given, value = text.partition("=")
        if not (key and is_given):
            raise ValueError(f"{path}: `{name}` (={text}) in [settings] must be written KEY=VALUE")
        if f"{name}.{key}" in found:
            raise ValueError(f"{path}: `{name}` in [settings] gives {key!r} twice")
        found[f"{name}.{key}"] = value
    return found


def read_axes(texts: Sequence[str]) -> dict[str, Texts]:
    """Read the axes of `--grid NAME=VALUE,VALUE`; a comma inside of brackets divides nothing.

    **Raises:**

    `ValueError` if one is not written so, or an axis is given twice.
    """
    axes: dict[str, Texts] = {}
    for text in texts:
        name, _, values = text.partition("=")
        name, parts = _plain(name), _divided(values)
        if not (name and all(parts)):
            raise ValueError(f"--grid (={text!r}) must be written as NAME=VALUE,VALUE")
        if name in axes:
            raise ValueError(f"--grid gives {name!r} twice")
        axes[name] = parts
    return axes


def _divided(values: str) -> Texts:
    """Divide at the commas outside of brackets."""
    parts, depth = [""], 0
    for character in values:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(parts)


def names_in(words: Sequence[str]) -> Iterator[str]:
    """Name the settings that words of the command line give."""
    for word, value in itertools.zip_longest(words, words[1:], fillvalue=""):
        if found := re.match(r"--([a-zA-Z][\w-]*)(?:=(.*))?", word):
            name = _plain(found[1])
            key = (value if found[2] is None else found[2]).partition("=")[0]
            yield f"{name}.{key}" if name.endswith("_options") else name.removeprefix("no_")


def word_of(name: str, text: str, *, switch: bool | None) -> str:
    """Write a setting as a word of the command line.

    **Arguments:**

    - `switch`: the default of an option that takes no value; `None` for any other.

    **Returns:**

    `""` where a switch shall be what it is by default, for which there may be no word.
    """
    option, dot, key = name.partition(".")
    flag = option.replace("_", "-")
    if switch is not None and not dot and (lower := text.lower()) in ("true", "false"):
        asked = lower == "true"
        return "" if asked == switch else f"--{flag}" if asked else f"--no-{flag}"
    # In one word, as a value may begin with a minus.
    return f"--{flag}={key}={text}" if dot else f"--{flag}={text}"


def _flat(path: Path, of: str, tables: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a table, and with a dot those of the tables in it."""
    flat: dict[str, Any] = {}
    for name, value in tables.get(of, {}).items():
        parts = (
            {f".{key}": x for key, x in value.items()} if isinstance(value, dict) else {"": value}
        )
        for key, x in parts.items():
            if (whole := _plain(name) + key) in flat:
                raise ValueError(f"{path} gives `{whole}` in [{of}] twice, with - and with _")
            flat[whole] = x
    return flat


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
