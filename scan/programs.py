"""Steps as traced programs: what they depend on, and what of them is the same at every step."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import compress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun
from jaxtyping import PyTree

from scan._checks import check_update

_CALLS = ("jit", "pjit", "checkpoint", "remat", "remat2")


def needed(program: Jaxpr) -> list[bool]:
    """Which inputs of a traced program its results depend on.

    **Arguments:**

    - `program`: a traced program.

    **Returns:**

    A boolean for each of its inputs.
    """
    return _needed(program, program.outvars)


def _needed(program: Jaxpr, results: Sequence[Any]) -> list[bool]:
    used = set(variables_of(results))
    for equation in reversed(program.eqns):
        if used.isdisjoint(equation.outvars) and not equation.effects:
            continue
        inputs = equation.invars
        # A function in a `jit` or a `checkpoint` of its own is one equation with all its arguments,
        # and so is a choice between functions, as that of a platform, whose number comes first.
        if equation.primitive.name in (*_CALLS, "cond"):
            wanted = [v in used for v in equation.outvars]
            called = called_by(equation)
            flags = [_needed(f, list(compress(f.outvars, wanted))) for f in called]
            chosen = [True] * (len(inputs) - len(flags[0]))
            inputs = list(compress(inputs, [*chosen, *map(any, zip(*flags, strict=True))]))
        used |= set(variables_of(inputs))
    return [v in used for v in program.invars]


def as_program(
    update: Callable[..., Any], parameters: PyTree, state: PyTree, xs: PyTree
) -> tuple[Callable[..., Any], list]:
    """A step as a function of all arrays that it depends on, and of no other.

    Rules for derivatives may not close over arrays, because they are called when those are long
    gone; and a traced program shows which parameters the states are functions of, only if it is
    given no others.

    **Arguments:**

    - `update`: one step, `(parameters, state, x) -> state`.
    - `parameters`, `state`, `xs`: what it will be called with; `xs` with a leading time axis.

    **Returns:**

    `(step, parameters)`: `step(parameters, state, x) -> state`, and a list of arrays.

    **Raises:**

    `ValueError` where the update returns no such state.
    """
    leaves, treedef = jax.tree.flatten(parameters)
    traced, out = jax.make_jaxpr(
        lambda leaves, *rest: update(treedef.unflatten(leaves), *rest), return_shape=True
    )(leaves, state, one_of(xs))
    check_update(out, state)
    flags = needed(traced.jaxpr)[: len(leaves)]
    used = [leaf for flag, leaf in zip(flags, leaves, strict=True) if flag]
    unused = [
        None if flag else (jnp.shape(leaf), jnp.result_type(leaf))
        for flag, leaf in zip(flags, leaves, strict=True)
    ]
    step = partial(_step_of_program, traced.jaxpr, jax.tree.structure(out), unused)
    return step, [*traced.consts, *used]


def _step_of_program(program, treedef, unused, parameters, state, x):
    count = len(program.constvars)
    closed_over, used = parameters[:count], iter(parameters[count:])
    whole = [next(used) if shape is None else jnp.zeros(*shape) for shape in unused]
    run = jaxpr_as_fun(ClosedJaxpr(program, closed_over))
    return treedef.unflatten(run(*whole, *jax.tree.leaves((state, x))))


def is_pure(step: Callable[..., Any]) -> bool:
    """Whether a step that `as_program` made does nothing but compute.

    What prints, checks, calls back or sums over an axis of a `jax.vmap` is left where it is.
    """
    program = step.args[0]
    return not program.effects


def has_named_axis(step: Callable[..., Any]) -> bool:
    """Whether a step that `as_program` made acts over an axis that a `jax.vmap` has named.

    A rule for derivatives is called where that axis is gone; those of a `jax.shard_map` are there.
    """
    meshes = jax.sharding.get_abstract_mesh().manual_axes
    # Named effects are those of axes; their class is no public part of JAX.
    names = {getattr(effect, "name", None) for effect in step.args[0].effects}
    return not names <= {None, *meshes}


def is_plain(update: Callable[..., Any], parameters: PyTree, state: PyTree, xs: PyTree) -> bool:
    """Whether a step only computes, and has derivatives of every order of itself.

    Not so where it has effects, calls back to Python, or has a rule for reverse mode of its own.

    **Arguments:**

    - `update`: one step, `(parameters, state, x) -> state`.
    - `parameters`, `state`, `xs`: what it will be called with; `xs` with a leading time axis.
    """
    program = jax.make_jaxpr(update)(parameters, state, one_of(xs)).jaxpr
    return not program.effects and not _hold(program.eqns, ("custom_vjp", "callback"))


def has_reverse_rule(step: Callable[..., Any], state: PyTree) -> bool:
    """Whether a step that `as_program` made has a rule for reverse mode of its own, a `custom_vjp`,
    of anything that depends on the state: JAX takes no tangents through it.

    **Arguments:**

    - `step`: of `as_program`.
    - `state`: what it is called with.
    """
    program, _, parameters = step.args
    inputs = program.invars[len(parameters) :]
    moving = parted(program.eqns, inputs[: len(jax.tree.leaves(state))])[1]
    return _hold(moving, ("custom_vjp",))


def _hold(equations: Iterable[Any], kinds: Sequence[str]) -> bool:
    return any(
        any(kind in equation.primitive.name for kind in kinds)
        or any(_hold(inner.eqns, kinds) for inner in called_by(equation))
        for equation in equations
    )


def one_of(xs: PyTree) -> PyTree:
    """Shapes and dtypes of one step's part of a pytree with a leading time axis."""
    # By its type: a slice would be a part of the caller's program for nothing.
    return jax.eval_shape(lambda xs: jax.tree.map(lambda x: x[0], xs), xs)


def parted(equations: Iterable[Any], variables: Iterable[Any]) -> tuple[list, list]:
    """The equations that depend on none of some variables, and those that do, each in order.

    One with effects belongs to the second.
    """
    late = set(variables)
    once, every = [], []
    for equation in equations:
        moves = equation.effects or not late.isdisjoint(variables_of(equation.invars))
        (every if moves else once).append(equation)
        if moves:
            late |= set(equation.outvars)
    return once, every


def inputs_of(equations: Sequence[Any], outputs: Iterable[Any] = ()) -> list:
    """The variables that some equations, or outputs, take from outside, each once."""
    made = {v for equation in equations for v in equation.outvars}
    used = variables_of([v for equation in equations for v in equation.invars] + list(outputs))
    return [v for v in dict.fromkeys(used) if v not in made]


def function_of(
    program: Jaxpr, inputs: Sequence[Any], equations: Sequence[Any], outputs: Sequence[Any]
) -> Callable[..., list]:
    """Some of a program's equations as a function."""
    part = program.replace(
        constvars=[], invars=list(inputs), eqns=list(equations), outvars=list(outputs)
    )
    return jaxpr_as_fun(ClosedJaxpr(part, []))


def known_values(
    program: Jaxpr, inputs: Sequence[Any], arrays: Sequence[Any], once: Sequence, every: Sequence
) -> dict:
    """What is computed of some inputs alone, by the variables that other equations, or the results,
    know it by.

    **Arguments:**

    - `program`: a traced program.
    - `inputs`, `arrays`: some of its inputs, and what they stand for.
    - `once`, `every`: its equations of those alone, and the others.
    """
    there = {*inputs, *(v for equation in once for v in equation.outvars)}
    wanted = [v for v in inputs_of(every, program.outvars) if v in there]
    found = function_of(program, inputs, once, wanted)(*arrays)
    return dict(zip(wanted, found, strict=True))


def apart(
    function: Callable[..., Any], fixed: PyTree, *moving: PyTree
) -> tuple[Callable[[list], Any], list]:
    """A function's result at every step, without copies of what is the same at all of them.

    **Arguments:**

    - `function`: `(fixed, *moving) -> pytree of arrays`; may not close over arrays.
    - `fixed`: pytree of arrays.
    - `moving`: pytrees of arrays with a leading time axis.

    **Returns:**

    `(join, varying)`: what depends on the step, as arrays with a leading time axis, and
    `join(varying[t])`, which is the result of step t.
    """
    leaves, xs = jax.tree.leaves(fixed), jax.tree.leaves(moving)
    shapes = fixed, *map(one_of, moving)
    traced, out = jax.make_jaxpr(function, return_shape=True)(*shapes)
    # A call is one equation: what it returns of what is fixed would have a copy for every step.
    flat = partial(_without_calls, traced.jaxpr, traced.consts)
    traced = jax.make_jaxpr(flat)(*jax.tree.leaves(shapes))
    program = traced.jaxpr
    of_fixed, late = program.invars[: len(leaves)], program.invars[len(leaves) :]
    once, every = parted(program.eqns, late)
    given = [*program.constvars, *of_fixed]
    values = known_values(program, given, [*traced.consts, *leaves], once, every)

    moved = [v for v in inputs_of([], program.outvars) if v not in values]
    known = [v for v in inputs_of(every) if v in values]
    make = function_of(program, [*known, *late], every, moved)
    varying = jax.vmap(lambda *x: make(*(values[v] for v in known), *x))(*xs)

    def join(one):
        found = values | dict(zip(moved, one, strict=True))
        results = [_value(atom, found) for atom in program.outvars]
        return jax.tree.unflatten(jax.tree.structure(out), results)

    return join, varying


def _without_calls(program: Jaxpr, consts: Sequence[Any], *arguments: Any) -> list:
    """Run a program with the functions that are in a `jit` of their own in place of their calls."""
    values = dict(zip([*program.constvars, *program.invars], [*consts, *arguments], strict=True))
    read = {*inputs_of([], program.outvars), *(v for e in program.eqns for v in inputs_of([e]))}
    for equation in program.eqns:
        if equation.primitive.name in ("jit", "pjit"):
            called, outputs = equation.params["jaxpr"], equation.outvars
            given = [_value(atom, values) for atom in equation.invars]
            found = _without_calls(called.jaxpr, called.consts, *given)
        else:
            inputs, outputs = inputs_of([equation]), [v for v in equation.outvars if v in read]
            run = function_of(program, inputs, [equation], outputs)
            found = run(*(values[v] for v in inputs))
        values.update(zip(outputs, found, strict=True))
    return [_value(atom, values) for atom in program.outvars]


def _value(atom: Any, values: dict) -> Any:
    return atom.val if isinstance(atom, Literal) else values[atom]


def called_by(equation: Any) -> list[Jaxpr]:
    """The programs in an equation: of a function that is called, of a loop's body, of branches."""
    found = []
    for parameter in equation.params.values():
        several = parameter if isinstance(parameter, list | tuple) else [parameter]
        found += [x.jaxpr if isinstance(x, ClosedJaxpr) else x for x in several]
    return [x for x in found if isinstance(x, Jaxpr)]


def size_of(program: Jaxpr) -> int:
    """The number of operations, those of inner programs included."""
    inner = ([size_of(p) for p in called_by(equation)] for equation in program.eqns)
    return sum(sum(sizes) or 1 for sizes in inner)


def variables_of(atoms: Iterable[Any]) -> list:
    """Those of a program's atoms that are no literals."""
    return [v for v in atoms if not isinstance(v, Literal)]


def numbers_in(traced: ClosedJaxpr) -> set[complex]:
    """The floating-point numbers that are written into a traced program.

    Of a `stand_in`, which is traced where it is lowered, those of what is the same elsewhere.
    """
    scalars, programs = [], []

    def add(traced: ClosedJaxpr) -> None:
        scalars.extend(x for x in traced.consts if not isinstance(x, Tracer) and np.ndim(x) == 0)
        programs.append(traced.jaxpr)

    add(traced)
    while programs:
        for equation in programs.pop().eqns:
            scalars += [atom.val for atom in equation.invars if isinstance(atom, Literal)]
            programs += called_by(equation)
            if equation.primitive.name == "stand_in":
                operands = [atom.aval for atom in equation.invars]
                add(jax.make_jaxpr(equation.params["other"])(*operands))
    floats = (complex(x) for x in scalars if jnp.issubdtype(jnp.result_type(x), jnp.inexact))
    return {x for x in floats if x == x}  # a NaN is no member of its own set
