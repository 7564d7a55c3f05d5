"""The command line: `python -m zoo prove rtu`, `python -m zoo prove my_module:MyCell`."""

import argparse
import importlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

import zoo
from zoo.annotations import signature_of
from zoo.options import check_option, parse_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    **Arguments:**

    - `arguments`: `sys.argv[1:]` by default.

    **Returns:**

    The exit status: 0; 1 where a proof fails; 2 for arguments that cannot be used.
    """
    options = _parser().parse_args(arguments)
    try:
        status = options.run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, TypeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m zoo", description=zoo.__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    prove = commands.add_parser("prove", help="check every promise of a memory")
    prove.add_argument(
        "target", help="a name, module:Class of a cell of your own, or `all` for every name"
    )
    # With a default, or it would be among what is missing where nothing is given.
    prove.add_argument(
        "options", nargs="*", default=[], metavar="option=value", help="options of the cell"
    )
    prove.add_argument("--inputs", type=int, default=3, help="width of its inputs (default: 3)")
    prove.add_argument("--hidden", type=int, default=4, help="its units (default: 4)")
    prove.add_argument("--table", type=Path, help="where to write the worst numbers, as Markdown")
    prove.set_defaults(run=_prove)
    names = commands.add_parser("names", help="list the names and their options")
    names.set_defaults(run=_names)
    return parser


def _prove(options: argparse.Namespace) -> int:
    rows = [(options.target, options.options)]
    if options.target == "all":
        if options.options:
            given = " ".join(options.options)
            raise ValueError(f"`option` (={given!r}) must be left out with `all`.")
        rows = [(name, []) for name in zoo.names()] + [(n, o.split()) for n, o in _VARIANTS]
    sizes = {"inputs": options.inputs, "hidden": options.hidden}
    makers = {" ".join([name, *chosen]): _maker(name, chosen) for name, chosen in rows}
    alone, failed = len(rows) == 1, []
    if not alone:  # what cannot be made is told before the proofs of others, which take minutes
        for label, make in makers.items():
            _check_sizes(label.partition(" ")[0], make, sizes)
    if options.table:
        options.table.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = [*_HEAD]
    for label, make in makers.items():
        started = time.perf_counter()
        report = zoo.prove(make, **sizes, show=alone, check=False)
        lines.append(_line(label, report, time.perf_counter() - started))
        if not alone:
            print(lines[-1], flush=True)
            # XLA takes maps of memory for every program, and a process has 65,530 of them on Linux.
            jax.clear_caches()
        if options.table:
            options.table.write_text("\n".join(lines) + "\n")
        if not report.passed:
            failed.append(zoo.ProofError(report))
            print(f"{label}: {failed[-1]}", file=sys.stderr)
    return 1 if failed else 0


def _maker(name: str, chosen: Sequence[str]) -> Callable[..., Any]:
    """What makes a memory of these options."""
    settings = parse_options(chosen, "`option`")
    for taken in ("inputs", "hidden", "key"):
        if taken in settings:
            raise ValueError(f"`option` (={taken!r}) must be one of the cell: sizes are flags.")
    make = make_by_name(name)
    signature = signature_of(make)
    arguments = signature.parameters
    known = [
        p.name for p in arguments.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    for option, value in settings.items():
        if option in known:
            settings[option] = check_option(name, value, arguments[option])
        elif all(p.kind != p.VAR_KEYWORD for p in arguments.values()):
            raise ValueError(f"`option` (={option!r}) must be one of {name}'s: {', '.join(known)}.")
    try:
        signature.bind(1, 1, key=None, **settings)
    except TypeError as error:
        raise ValueError(
            f"`target` (={name!r}) must take `(inputs, hidden, *, key, **options)`: {error}."
        ) from None
    return partial(make, **settings)


def _check_sizes(name: str, make: Callable[..., Any], sizes: dict[str, int]) -> None:
    """Raise `ValueError` where no memory of these sizes can be made."""
    try:
        eqx.filter_eval_shape(make, *sizes.values(), key=jax.random.key(0))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: {error}") from None


# Options under which a memory computes something else, not only other numbers.
_VARIANTS = (
    ("ctrnn", "sensitivity=rflo unfolds=2"),
    ("ctrnn", "solver=exponential time_step=input"),
    ("delta_product", "gated=true writes=3"),
    ("deltanet", "sensitivity=uoro"),
    ("elman", "sensitivity=eprop"),
    ("elman", "sensitivity=rflo"),
    ("felstm", "sensitivity=snap1"),
    ("ffm", "hadamard=true"),
    ("gru", "sensitivity=eprop"),
    ("gru", "sensitivity=rflo"),
    ("gru", "sensitivity=snap0"),
    ("gru", "sensitivity=snap1"),
    ("gru", "sensitivity=uoro"),
    ("gtrxl", "depth=2 heads=2 window=3"),
    ("linoss", "discretization=imex"),
    ("lmu", "sensitivity=snap0"),
    ("lstm", "sensitivity=eprop"),
    ("lstm", "sensitivity=snap1"),
    ("ltc", "sensitivity=snap1 time_step=input"),
    ("mgu", "sensitivity=eprop"),
    ("mgu", "sensitivity=snap1"),
    ("retnet", "heads=2"),
    ("rtu", "modulus=sigmoid phase=direct"),
    ("rtu", "nonlinear=true"),
    ("s4d", "init=inv"),
    ("s5", "discretization=bilinear"),
    ("s6", "reads=signal states=4"),
)
_COLUMNS = ("structure", "holomorphy", "forms", "BPTT", "RTRL", "resets")
_HEAD = (
    f"| memory | {' | '.join(_COLUMNS)} | bfloat16 | all hold | seconds |",
    f"|---|{'---:|' * (len(_COLUMNS) + 1)}---|---:|",
)


def _line(label: str, report: zoo.Report, seconds: float) -> str:
    """A row of the table: the worst number of each invariant."""
    worst = {check.invariant: 0.0 for check in report.checks}
    for check in report.checks:
        number = math.inf if check.number is None else check.number
        if check.limit <= 1e-9 or not check.passed:
            worst[check.invariant] = max(worst[check.invariant], number)
    half = [c.number for c in report.checks if c.what.startswith("bfloat16 scan")]
    numbers = [worst.get(column) for column in _COLUMNS] + [half[0] if half else None]
    written = ("" if n is None else "0" if n == 0 else f"{n:.0e}" for n in numbers)
    holds = "yes" if report.passed else "**no**"
    return f"| `{label}` | {' | '.join(written)} | {holds} | {seconds:.0f} |"


def _names(options: argparse.Namespace) -> int:
    width = max(map(len, zoo.names())) + 1
    for name in zoo.names():
        listed = " ".join(f"{key}={json.dumps(value)}" for key, value in zoo.options(name).items())
        print(f"{name:{width}}{listed}".rstrip())
    return 0


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
