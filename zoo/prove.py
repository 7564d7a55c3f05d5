"""`zoo.prove`: every promise of a memory, checked on the memory at hand."""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array
from rich.console import Console

from scan.calls import misfit
from zoo.memory import AbstractMemory, named
from zoo.parts.checks import check_key, check_sizes, shown
from zoo.proofs import dtypes, equalities, promises
from zoo.proofs.forms import jit, perturbed, states_forms_itself
from zoo.proofs.forms import problem as draw_problem
from zoo.proofs.report import Check, ProofError, Report
from zoo.proofs.resets import resets


def prove(
    memory: AbstractMemory | Callable[..., AbstractMemory],
    *,
    inputs: int | None = None,
    hidden: int | None = None,
    key: Array | None = None,
    draws: int = 1,
    show: bool = True,
    check: bool = True,
) -> Report:
    """Check every promise of a memory, and every form of it against a plain loop.

    The memory's parameters are moved at random, in float64, so that nothing holds because of a
    special value.

    ```python
    import zoo

    zoo.prove(zoo.RTU)
    ```

    **Arguments:**

    - `memory`: a memory; or a class or function `(inputs, hidden, *, key)` that makes one, which is
      then made with more units than inputs, so that a weight stored the wrong way round has the
      wrong shape.
    - `inputs`, `hidden`: sizes of the memory that is made; 3 and 4 by default.
    - `key`: of the memory that is made; `jax.random.key(0)` by default.
    - `draws`: how many times parameters, states, inputs, resets and losses are drawn. Further ones
      take little time, as the programs are compiled.
    - `show`: print the table.
    - `check`: raise where a check fails.

    **Returns:**

    A `zoo.Report`, with the number for each check.

    **Raises:**

    `zoo.ProofError`, a `ValueError`, that names the parameter, the number and the rule; another
    `ValueError` where a memory is given that has its sizes already; `TypeError` for what is no
    memory and makes none.
    """
    check_sizes(draws=draws)
    if key is not None:
        check_key(key)
    made = {"inputs": inputs, "hidden": hidden, "key": key}
    if isinstance(memory, AbstractMemory):
        for name, value in made.items():
            if value is not None:
                raise ValueError(
                    f"`{name}` (={shown(value)}) must be left out: `memory` is made already."
                )
    with jax.enable_x64(True):
        if not isinstance(memory, AbstractMemory):
            memory = _made(
                memory,
                3 if inputs is None else inputs,
                4 if hidden is None else hidden,
                jax.random.key(0) if key is None else key,
            )
        report = Report(named(memory), tuple(_checks(memory, draws)))
    if show:
        Console().print(report.table())
    if check and not report.passed:
        raise ProofError(report)
    return report


def _made(make: Any, inputs: int, hidden: int, key: Array) -> AbstractMemory:
    memory = make
    if callable(make):
        if found := misfit(make, inputs, hidden, key=key):
            raise TypeError(
                f"`memory` (={shown(make)}) must take `(inputs, hidden, *, key)`, its arguments "
                f"are {found}."
            )
        # One program for all parameters takes a sixth of the time of one for each operation.
        try:
            memory = jit(make)(inputs, hidden, key=key)
        except TypeError:  # among them those of JAX, for one that looks at its numbers
            memory = make(inputs, hidden, key=key)
    if not isinstance(memory, AbstractMemory):
        raise TypeError(
            f"`memory` (={shown(make)}) must be a memory, or a class or function "
            "`(inputs, hidden, *, key)` that makes one, such as zoo.RTU."
        )
    return memory


def _checks(memory: AbstractMemory, draws: int) -> list[Check]:
    out: list[Check] = []

    def run(invariant: str, function: Callable[..., list[Check]], *arguments: Any) -> None:
        # One that cannot be run is a finding, and the others are still of use.
        try:
            out.extend(function(*arguments))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
            out.append(Check(invariant, "could not be run", None, rule=said))

    wide = dtypes.cast(memory, jnp.float64)
    run("shapes", promises.shapes, wide)
    if out:
        return out
    run("constants", promises.constants, wide)
    run("structure", promises.structure, wide)
    with jax.enable_x64(False):
        run("dtypes", dtypes.carried, memory)
        run("dtypes", dtypes.in_half_precision, memory)
    run("dtypes", dtypes.clocks, wide)
    equal: dict[tuple[str, str], Check] = {}
    before = len(out)
    for seed in range(draws):
        run("forms", _equalities, wide, seed)
    for check in out[before:]:
        where = (check.invariant, check.what)
        equal[where] = check.worse(equal.get(where))
    return [*out[:before], *equal.values()]


def _equalities(memory: AbstractMemory, seed: int) -> list[Check]:
    moved = perturbed(memory, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the size of a dense sensitivity
        problem = draw_problem(moved, seed)
    return [
        *equalities.values(problem),
        *(equalities.without_flags(problem) if states_forms_itself(memory) else ()),
        *equalities.bptt(problem),
        *equalities.forward_mode(problem),
        *equalities.constant_carries(problem),
        *resets(problem),
        *equalities.unbiased(problem, seed),
        *equalities.moved_on(problem, seed),
    ]
