"""Eligibility traces, and updates of parameters from a trace and an error, at every step.

Traces and errors may have leading axes over environments, as many as an error has; updates are
averages over them.
"""

from collections.abc import Callable
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import optax
from annotated_types import Interval
from jaxtyping import Array, Bool, Float, Int, PyTree

from scan.associative import match_rank
from zoo.annotations import Positive, checked

_SMALL = 1e-8  # keeps a parameter that has had no gradient yet from being divided by zero


def accumulate_trace(trace: PyTree, gradient: PyTree, decay: float | Array) -> PyTree:
    """Return `decay * trace + gradient`: an accumulating eligibility trace; decay is γ λ."""
    return jax.tree.map(lambda z, g: decay * z + g, trace, gradient)


def cut_trace(trace: PyTree, where: Bool[Array, "*env"]) -> PyTree:
    """Return the trace, zero `where` an episode has ended."""
    return jax.tree.map(lambda z: jnp.where(match_rank(where, z), 0, z), trace)


class TraceOptimizer(NamedTuple):
    """What optax's gradient transformations are, of a trace and an error in place of a gradient.

    **Attributes:**

    - `init`: `parameters -> state`.
    - `update`: `(trace, error, state, params=None) -> (updates, state)`; the parameters are read by
      those optimizers alone that need them, as where weights decay.
    """

    init: Callable[[PyTree], PyTree]
    update: Callable[..., tuple[PyTree, PyTree]]


class ObGDState(NamedTuple):
    """What ObGD keeps where it is adaptive: the mean of (δ z)², and how many it is of."""

    second_moment: PyTree
    count: Int[Array, ""]


@checked
def obgd(
    learning_rate: Positive = 1.0,
    kappa: Positive = 2.0,
    *,
    adaptive: bool = False,
    moment_decay: Annotated[float, Interval(ge=0, lt=1)] = 0.999,
) -> TraceOptimizer:
    r"""Make overshooting-bounded gradient descent.

    A step along δ z changes the error at hand by about \( \alpha \|z\|_1 |\delta| \) where features
    are bounded. The step size is cut where κ times that exceeds 1:

    $$ M = \alpha \kappa \max(|\delta|, 1) \|z\|_1, \qquad
       w \leftarrow w + \frac{\alpha}{\max(M, 1)} \delta z, $$

    with the norm over all parameters. The adaptive variant divides z by \( \sqrt{\hat v} \) first,
    in the norm too, where \( \hat v \) is the running mean of \( (\delta z)^2 \) without its bias
    towards zero. With several environments each has a step size of its own, and the steps are
    averaged.

    ```python
    optimizer = obgd(kappa=2.0)
    updates, state = optimizer.update(trace, error, state)
    parameters = optax.apply_updates(parameters, updates)
    ```

    **Arguments:**

    - `learning_rate`: α.
    - `kappa`: κ, how far below the bound to stay.
    - `adaptive`: whether z is divided by \( \sqrt{\hat v} \).
    - `moment_decay`: how slowly \( \hat v \) changes, a number in [0, 1).

    **Raises:**

    `TypeError` or `ValueError` naming the argument, its value and the rule.

    Source: Elsayed, Vasan and Mahmood (2024), *Streaming Deep Reinforcement Learning Finally
    Works*.
    """

    def init(parameters: PyTree) -> ObGDState | optax.EmptyState:
        if not adaptive:
            return optax.EmptyState()
        return ObGDState(jax.tree.map(jnp.zeros_like, parameters), jnp.zeros((), jnp.int32))

    def update(
        trace: PyTree, error: Float[Array, "*env"], state: PyTree, params: PyTree = None
    ) -> tuple[PyTree, PyTree]:
        if adaptive:
            state, trace = _scaled(trace, state, error, moment_decay)
        norm = sum(jnp.sum(jnp.abs(z), range(error.ndim, z.ndim)) for z in jax.tree.leaves(trace))
        bound = learning_rate * kappa * jnp.maximum(jnp.abs(error), 1) * norm
        return _mean_step(learning_rate / jnp.maximum(bound, 1) * error, trace), state

    return TraceOptimizer(init, update)


def _scaled(
    trace: PyTree, state: ObGDState, error: Float[Array, "*env"], decay: float
) -> tuple[ObGDState, PyTree]:
    """The traces divided by the root of the mean square of what they bring about."""

    def moment(v, z):
        square = jnp.mean((match_rank(error, z) * z) ** 2, range(error.ndim))
        return decay * v + (1 - decay) * square

    # 2³¹ steps are a day and a half.
    count = jnp.asarray(optax.safe_increment(state.count))
    second = jax.tree.map(moment, state.second_moment, trace)
    missing = 1 - decay ** count.astype(error.dtype)

    def divided(z, v):
        return z / jnp.expand_dims(jnp.sqrt(v / missing) + _SMALL, range(error.ndim))

    scaled = jax.tree.map(divided, trace, second)
    return ObGDState(second, count), scaled


def along_traces(optimizer: optax.GradientTransformation) -> TraceOptimizer:
    """Make an ordinary optimizer take traces and errors: its gradient is -δ z.

    With the trace of a value this is semi-gradient TD(λ). An optimizer that reads parameters, such
    as `optax.adamw`, gets those that `update` is given as `params`, built like the trace.
    """

    def update(
        trace: PyTree, error: Float[Array, "*env"], state: PyTree, params: PyTree = None
    ) -> tuple[PyTree, PyTree]:
        return optimizer.update(_mean_step(-error, trace), state, params)

    return TraceOptimizer(optimizer.init, update)


def _mean_step(factor: Float[Array, "*env"], trace: PyTree) -> PyTree:
    """The mean over environments of `factor * trace`."""
    return jax.tree.map(lambda z: jnp.mean(match_rank(factor, z) * z, range(factor.ndim)), trace)
