"""`h_t = a_t ⊙ h_{t-1} + b_t`, real or complex, with its own adjoint and a choice of methods."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Bool, Inexact, Num

from scan._checks import check_begin
from scan._linear_map import linear_map
from scan._platform import METHODS, check_method, loop_or_tree
from scan._stand_in import stand_in
from scan._varying import vary_together
from scan.associative import match_rank
from scan.methods import kernel, loop, tree
from scan.precision import promoted
from scan.tangents import with_tangent
from scan.trees import broadcasts


def linear(
    a: Num[Array, "..."],
    b: Num[Array, "..."],
    h0: Num[Array, "..."] | None = None,
    begin: Bool[Array, "..."] | None = None,
    *,
    reverse: bool = False,
    method: str = "auto",
    states: Inexact[Array, "..."] | None = None,
) -> Inexact[Array, "..."]:
    """Solve the elementwise linear recurrence `h_t = a_t ⊙ h_{t-1} + b_t`.

    ```python
    a, b = jnp.array([0.5, 0.9]), jnp.ones((4, 2))
    begin = jnp.array([True, False, True, False])
    h = scan.linear(a, b, begin=begin)  # [[1, 1], [1.5, 1.9], [1, 1], [1.5, 1.9]]
    ```

    The gradient is the adjoint recurrence, itself one linear scan in the other direction: the
    backward pass stores `a` and `h` and nothing else, whatever the method. The tangent, in forward
    mode, is one linear scan in the same direction.

    **Arguments:**

    - `a`: the coefficients. With as many axes as `b` they vary in time and broadcast against `b`;
      with fewer they are constant in time and broadcast against one `b_t`.
    - `b`: the drive, shape `[time, *features]`. Keep batches behind the time axis: arrays that
      are batch-major have to be transposed first.
    - `h0`: the state carried in, broadcasting to `features`; zeros by default.
    - `begin`: where true the state is replaced by zeros before `b_t` is added, so that `a_t` has no
      effect there, if it is finite. Its axes are the leading axes of `b`: `[time]`, or
      `[time, batch]` for a batch with episodes of its own.
    - `reverse`: run from the last step to the first, `h_t = a_t ⊙ h_{t+1} + b_t`; `h0` is then
      the state after the last step.
    - `method`: `"sequential"` (a loop), `"associative"` (a tree of depth log time), `"kernel"` (one
      kernel for NVIDIA GPUs; elsewhere it is interpreted, slowly), or `"auto"`, which chooses when
      the program is lowered: the loop on a CPU, the kernel on an NVIDIA GPU if it takes the dtype,
      the tree elsewhere. The documentation has the measured table.
    - `states`: the solution, where it is known from another call: it is differentiated without
      being computed again.

    **Returns:**

    `h`, shape `[time, *features]`, in the promoted dtype of `a`, `b` and `h0`.

    **Raises:**

    `ValueError` for shapes that do not fit, an empty time axis, an unknown method, or a dtype or
    size that the kernel does not take, `TypeError` for a `begin` that is not boolean.
    """
    check_method(method, (*METHODS, "kernel"))
    a, b = jnp.asarray(a), jnp.asarray(b)
    h0 = None if h0 is None else jnp.asarray(h0)
    if b.ndim == 0 or b.shape[0] == 0:
        raise ValueError(f"`b` (shape {b.shape}) must have a time axis of at least one step.")
    features = b.shape[1:]
    _check_broadcast("a", a.shape, b.shape if a.ndim == b.ndim else features)
    dtype = promoted(a, b) if h0 is None else promoted(a, b, h0)
    if not jnp.issubdtype(dtype, jnp.inexact):
        raise ValueError(f"`b` (dtype {b.dtype}) must be real or complex floating point.")
    if method == "kernel" and dtype.name not in kernel.TYPES:
        allowed = ", ".join(kernel.TYPES)
        raise ValueError(f"`method` (='kernel') takes {allowed}; the dtype of `b` is {dtype.name}.")
    # Zeros like `b`, which are split over devices as it is.
    h0 = jnp.zeros_like(b[0], dtype) if h0 is None else jnp.asarray(h0, dtype)
    _check_broadcast("h0", h0.shape, features)
    h0 = jnp.broadcast_to(h0, features)
    if a.ndim < b.ndim:
        a = a.reshape((1,) * (len(features) - a.ndim) + a.shape)
    elif a.shape[0] != b.shape[0]:
        a = a[0]  # a time axis of one step: constant, and then its cotangent is one sum over time
    if begin is not None:
        begin = check_begin(begin)
        if begin.shape != b.shape[: max(begin.ndim, 1)]:
            raise ValueError(
                f"`begin` (shape {begin.shape}) must have the leading axes of `b` (shape {b.shape})"
            )
        begin = match_rank(begin, b)
    a, b = a.astype(dtype), b.astype(dtype)
    if states is not None and jnp.shape(states) != b.shape:
        raise ValueError(
            f"`states` (shape {jnp.shape(states)}) must have the shape of `b` {b.shape}."
        )
    if (
        states is not None
        and jnp.iscomplexobj(states)
        and not jnp.issubdtype(dtype, jnp.complexfloating)
    ):
        raise ValueError(f"`states` (dtype {jnp.result_type(states)}) must be real, as `b` is.")
    if b.size == 0:  # no channels
        return b
    if b.shape[0] == 1:
        # One step is not a loop: written out, it fuses with what is around it, and autodiff of it
        # is as good as an adjoint.
        h0 = h0[None] if begin is None else jnp.where(begin, 0, h0[None])
        return (a if a.ndim == b.ndim else a[None]) * h0 + b
    if states is None:
        return _linear(*vary_together(a, b, h0, begin), reverse, method)
    known = jax.lax.stop_gradient(jnp.asarray(states, dtype))
    *given, known = vary_together(a, b, h0, begin, known)
    return with_tangent(partial(_tangent_rule, reverse, method), known, *given)


def _check_broadcast(name: str, shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    if not broadcasts(shape, target):
        raise ValueError(f"`{name}` (shape {shape}) must broadcast to {target}, as `b` has it.")


# Where JAX forgets its rule (see `scan.tangents`) the loops themselves are differentiated, which is
# as right; and in `jax.linear_transpose` transposed.
@partial(jax.custom_jvp, nondiff_argnums=(4, 5))
def _linear(a, b, h0, begin, reverse, method):
    return _solve(a, b, h0, begin, reverse, method)


@partial(_linear.defjvp, symbolic_zeros=True)
def _linear_tangent(reverse, method, primals, tangents):
    h = _linear(*primals, reverse, method)
    moving = [[None if isinstance(t, SymbolicZero) else t] for t in tangents[:3]]
    return h, _tangent_rule(reverse, method, h, primals, moving)


def _solve(a, b, h0, begin, reverse, method):
    return _by_method("solve", a, b, h0, begin, reverse=reverse, method=method)


def _by_method(function, *arguments, reverse, method):
    """Call a function that `scan.methods.loop`, `tree` and `kernel` have."""
    in_a_loop, in_a_tree, in_a_kernel = (
        partial(getattr(by, function), reverse=reverse) for by in (loop, tree, kernel)
    )
    if function == "adjoint":
        a, h, h0, _, drive = arguments
        result = (None if h is None else a), drive, h0
    else:
        _, drive, _, _ = arguments
        result = drive
    # Derivatives of these are second ones: the first are those that `scan.linear` states.
    if method == "kernel":
        return stand_in({"default": in_a_kernel}, in_a_tree, *arguments, result=result)
    without_kernel = partial(loop_or_tree, in_a_loop, in_a_tree)
    if method == "auto" and isinstance(drive.shape[0], int):
        branches = {"cpu": in_a_loop, "default": in_a_tree}
        branches |= {"cuda": in_a_kernel} if drive.dtype.name in kernel.TYPES else {}
        fits = {"cuda": kernel.LARGEST}
        return stand_in(branches, without_kernel, *arguments, result=result, largest=fits)
    return without_kernel(*arguments, method=method)


def _tangent_rule(reverse, method, h, arguments, tangents):
    a, _, h0, begin = arguments
    # What is not differentiated costs nothing: no zeros are carried along, and in reverse mode no
    # cotangents of `a` are computed where it is a constant, as a discount is.
    moving = [t for (t,) in tangents[:3]]
    wanted = tuple(t is not None for t in moving)
    forward = partial(_tangent, reverse, method)
    transpose = partial(_cotangents, reverse, method, wanted)
    return linear_map(forward, transpose, h, (a, h0, begin), moving)


def _tangent(reverse, method, h, residuals, tangents):
    """`dh_t = a_t dh_{t-1} + (da_t h_{t-1} + db_t)`: the same recurrence with another drive."""
    (a, h0, begin), (d_a, d_b, d_h0) = residuals, tangents
    if d_a is not None:
        d_a = d_a if d_a.ndim == h.ndim else d_a[None]
        by_a = d_a * tree.state_before(h, h0, begin, reverse=reverse)
        d_b = by_a if d_b is None else d_b + by_a
    d_b = jnp.zeros_like(h) if d_b is None else d_b
    d_h0 = jnp.zeros_like(h0) if d_h0 is None else d_h0
    return _solve(a, d_b, d_h0, begin, reverse, method)


def _cotangents(reverse, method, wanted, h, residuals, cotangent):
    a, h0, begin = residuals
    given = a, h if wanted[0] else None, h0, begin, cotangent
    found = _by_method("adjoint", *given, reverse=reverse, method=method)
    return [c if want else None for c, want in zip(found, wanted, strict=True)]
