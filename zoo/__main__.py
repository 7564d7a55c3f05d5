"""The command line: `python -m zoo prove rtu`, `python -m zoo prove my_module:MyCell`."""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import zoo


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    **Arguments:**

    - `arguments`: `sys.argv[1:]` by default.

    **Returns:**

    The exit status: 0, or 1 where a proof fails.
    """
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except zoo.ProofError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except (ValueError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m zoo", description=zoo.__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    prove = commands.add_parser("prove", help="check every promise of a memory")
    prove.add_argument("target", help="a name, or module:Class of a cell of your own")
    prove.add_argument("options", nargs="*", metavar="option=value", help="options of the cell")
    prove.add_argument("--inputs", type=int, default=3, help="width of its inputs (default: 3)")
    prove.add_argument("--hidden", type=int, default=4, help="its units (default: 4)")
    prove.set_defaults(run=_prove)
    names = commands.add_parser("names", help="list the names and their options")
    names.set_defaults(run=_names)
    return parser


def _prove(options: argparse.Namespace) -> int:
    chosen = dict(_option(text) for text in options.options)
    make = partial(make_by_name(options.target), **chosen)
    zoo.prove(make, inputs=options.inputs, hidden=options.hidden)
    return 0


def _names(options: argparse.Namespace) -> int:
    for name in zoo.names():
        listed = " ".join(f"{key}={json.dumps(value)}" for key, value in zoo.options(name).items())
        print(f"{name:18}{listed}".rstrip())
    return 0


def _option(text: str) -> tuple[str, Any]:
    """`key=value`, the value as JSON where it is JSON, or else as text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"`option` (={text!r}) must be like heads=2.")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def make_by_name(target: str) -> Callable[..., zoo.AbstractMemory]:
    """What makes a memory: of a registered name, or `module:Class` from anywhere.

    **Arguments:**

    - `target`: `"rtu"`, or `"my_package.my_module:MyCell"`.

    **Returns:**

    A function `(inputs, hidden, *, key, **options)`.

    **Raises:**

    `ValueError` where there is no such name, module or class.
    """
    module_name, colon, attribute = target.partition(":")
    if not colon:
        zoo.options(target)  # or an error that names the nearest

        def make(inputs, hidden, *, key, **options):
            return zoo.get(target, inputs=inputs, hidden=hidden, key=key, **options)

        return make
    sys.path.insert(0, os.getcwd())  # as `python -m` does, and a console script does not
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ValueError(f"`target` (={target!r}): {error}.") from error
    found: Any = getattr(module, attribute, None)
    if not callable(found):
        raise ValueError(
            f"`target` (={target!r}): {module_name} has no class or function {attribute!r}."
        )
    return found  # pyright: ignore[reportReturnType]


if __name__ == "__main__":
    sys.exit(main())
