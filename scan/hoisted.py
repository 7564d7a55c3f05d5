"""Steps of a loop without what they would compute of parameters alone, every time anew."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

import jax
from jax.extend.core import Jaxpr
from jaxtyping import Array, PyTree

from scan._checks import check_arrays, check_steps
from scan._varying import vary_together
from scan.programs import (
    called_by,
    function_of,
    inputs_of,
    known_values,
    one_of,
    parted,
    variables_of,
)

_HOISTING: ContextVar[bool] = ContextVar("hoisting", default=False)

# A product of inputs made for all steps may be so many times as large as the state: networks have
# fewer gates than that, and one that expands would fill the memory.
_GATES = 8

Update = Callable[[Any, Any, Any], Any]
Step = Callable[[Any, Any], Any]


def is_hoisted() -> bool:
    """Tell whether the step that is being traced computes of parameters alone only once.

    An arrangement of a matrix that makes its product faster is then worth its price; in a step by
    itself it is not.
    """
    return _HOISTING.get()


def hoisted(update: Update, parameters: PyTree, state: PyTree, xs: PyTree) -> Step:
    """A step that has computed already what it computes of parameters alone.

    ```python
    step = scan.hoisted(update, parameters, state, xs)
    final, states = scan.sequential(step, state, xs)
    ```

    XLA leaves the transpose of a matrix in a loop and makes it a part of the product, which then
    reads the matrix across its rows at every step. With a batch of 16 and a matrix of 1,024 × 256
    a CPU took 137 ms for 1,024 such products, and 110 with the transpose written out before.

    **Arguments:**

    - `update`: one step, `(parameters, state, x) -> state`.
    - `parameters`: pytree of arrays.
    - `state`: the state carried in.
    - `xs`: inputs, every leaf with a leading time axis.

    **Returns:**

    `(state, x) -> state`, for states and inputs of these shapes.

    **Raises:**

    `ValueError` where there are no steps, `TypeError` for a parameter that is no array.
    """
    traced = _trace(update, parameters, state, xs)
    once, every = parted(traced.program.eqns, traced.of_state + traced.of_x)
    return _step_of(traced, every, traced.of_x, _values(traced, once, every))


def ahead(
    update: Update, parameters: PyTree, state: PyTree, xs: PyTree
) -> tuple[Step, list[Array]]:
    """A step that is `hoisted`, with products of inputs and matrices made before the loop.

    ```python
    step, drives = scan.ahead(update, parameters, state, xs)
    final, states = scan.sequential(step, state, drives, unroll=16)
    ```

    A product for all steps fills a chip that a product for one leaves idle, and steps that are
    elementwise without it can be compiled several into one. On a CPU it does not pay: what is read
    again at every step has left the cache. A product of more than eight times the state's
    size stays in the loop, and one that needs an array larger than that and the inputs, or a
    branch on an input: for all steps at once every branch is computed.

    **Arguments:**

    - `update`: one step, `(parameters, state, x) -> state`.
    - `parameters`: pytree of arrays.
    - `state`: the state carried in.
    - `xs`: inputs, every leaf with a leading time axis.

    **Returns:**

    `(step, drives)`: `(state, drive) -> state`, and what it takes in place of the inputs: arrays
    with a leading time axis, of products and of those inputs that are used otherwise.

    **Raises:**

    `ValueError` where there are no steps, `TypeError` for a parameter that is no array.
    """
    traced = _trace(update, parameters, state, xs)
    program = traced.program
    once, moving = parted(program.eqns, traced.of_state + traced.of_x)
    of_inputs, _ = parted(moving, traced.of_state)
    products = _up_to_products(of_inputs, traced.of_state, traced.of_x)
    every = [e for e in moving if not any(e is made for made in products)]
    ready = {*traced.of_x, *(v for e in products for v in e.outvars)}
    # A loop without any inputs would have no number of steps.
    drives = [v for v in inputs_of(every, program.outvars) if v in ready] or traced.of_x[:1]

    values = _values(traced, once, moving)
    known = [v for v in inputs_of(products) if v in values]
    make = function_of(program, [*known, *traced.of_x], products, drives)
    driven = jax.vmap(lambda *x: make(*(values[v] for v in known), *x))(*traced.xs)
    return _step_of(traced, every, drives, values), driven


@contextlib.contextmanager
def hoisting() -> Iterator[None]:
    """While this lasts, steps that are traced are told that they are `hoisted`."""
    token = _HOISTING.set(True)
    try:
        yield
    finally:
        _HOISTING.reset(token)


class _Traced(NamedTuple):
    """A step's program, with what its variables stand for."""

    program: Jaxpr
    out: Any
    parameters: list
    """Arrays, those that the step closes over among them."""
    xs: list
    of_parameters: list
    of_state: list
    of_x: list


def _trace(update, parameters, state, xs) -> _Traced:
    check_steps("xs", xs)
    check_arrays("parameters", parameters)
    # Not the parameters: a program that casts what it is given takes nothing that is cast already.
    _, state, xs = vary_together(parameters, state, xs)
    with hoisting():
        traced, out = jax.make_jaxpr(update, return_shape=True)(parameters, state, one_of(xs))
    program, counts = traced.jaxpr, [len(jax.tree.leaves(x)) for x in (parameters, state)]
    ends = counts[0], sum(counts)
    return _Traced(
        program=program,
        out=jax.tree.structure(out),
        parameters=[*traced.consts, *jax.tree.leaves(parameters)],
        xs=jax.tree.leaves(xs),
        of_parameters=[*program.constvars, *program.invars[: ends[0]]],
        of_state=program.invars[ends[0] : ends[1]],
        of_x=program.invars[ends[1] :],
    )


def _values(traced: _Traced, once: list, every: list) -> dict:
    return known_values(traced.program, traced.of_parameters, traced.parameters, once, every)


def _step_of(traced: _Traced, equations: list, of_x: list, values: dict) -> Step:
    outputs = traced.program.outvars
    known = [v for v in inputs_of(equations, outputs) if v in values]
    fixed = [values[v] for v in known]
    run = function_of(traced.program, [*known, *traced.of_state, *of_x], equations, outputs)

    def step(state, x):
        # What the program was traced with varies over the devices that any of it varies over.
        _, state, x = vary_together(traced.parameters, state, x)
        return traced.out.unflatten(run(*fixed, *jax.tree.leaves((state, x))))

    return step


def _up_to_products(equations: list, of_state: list, of_x: list) -> list:
    """The products of matrices among some equations that are not too large, and those that they
    need, unless one of these is larger than that and than the inputs, or branches on an input."""
    largest = _GATES * _size(of_state, symbolic=0)
    most = max(largest, _size(of_x, symbolic=0))
    moving = {*of_x, *(v for equation in equations for v in equation.outvars)}
    excluded, products = set(), set()
    for equation in equations:
        size, needs = _size(equation.outvars, symbolic=math.inf), inputs_of([equation])
        if size > most or not excluded.isdisjoint(needs) or _branches(equation, moving):
            excluded |= set(equation.outvars)
        elif size <= largest and _is_product(equation):
            products |= set(equation.outvars)
    needed, found = set(), []
    for equation in reversed(equations):
        if not (needed | products).isdisjoint(equation.outvars):
            needed |= set(inputs_of([equation]))
            found.append(equation)
    return found[::-1]


def _size(variables: Iterable, symbolic: float | int) -> float | int:
    """How many numbers they have, or what is given for a size that is not known yet."""
    size = sum(v.aval.size for v in variables)
    return size if isinstance(size, int) else symbolic


def _branches(equation, moving: set) -> bool:
    """Whether it is a choice or a loop whose number is one of some variables."""
    if equation.primitive.name == "while":
        return True
    if equation.primitive.name == "cond":
        return not moving.isdisjoint(variables_of(equation.invars[:1]))
    inner = [(e, program) for program in called_by(equation) for e in program.eqns]
    return any(_branches(e, _unfixed(program)) for e, program in inner)


def _unfixed(program: Jaxpr) -> set:
    """What a program is given or makes, but for the number of a platform."""
    made = [e.outvars for e in program.eqns if e.primitive.name != "platform_index"]
    return {*program.invars, *(v for outputs in made for v in outputs)}


def _is_product(equation) -> bool:
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        return bool(contracted)
    return any(_is_product(inner) for program in called_by(equation) for inner in program.eqns)
