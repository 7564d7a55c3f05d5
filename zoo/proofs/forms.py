"""The forms of a memory, and one program that takes values and gradients of any of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from zoo.memory import AbstractMemory
from zoo.proofs.loop import plain_loop, segment_step
from zoo.proofs.losses import of_state, total

TIME = 8
UNEVEN = (3, 5)
_BATCH = 4
# Compiling takes the time.
_OPTIONS = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}

# Called as `form(memory, carry, xs, begin, cuts)`, returns `(end, ys)`.
Form = Callable[[Any, Any, Any, Any, Any], tuple[Any, Any]]


def loop(memory, carry, xs, begin, cuts):
    """Run the plain loop."""
    states, ys = plain_loop(memory, carry[0], xs, begin)
    return (jax.tree.map(lambda h: h[-1], states), ()), ys


def loop_of_rtrl(memory, carry, xs, begin, cuts):
    """Run the plain loop, with what RTRL follows across the cuts and between them."""
    states, ys = plain_loop(memory, carry[0], xs, begin, cuts, within=segment_step)
    return (jax.tree.map(lambda h: h[-1], states), ()), ys


def steps(memory, carry, xs, begin, cuts):
    """Loop over `step`."""
    end, ys = jax.lax.scan(lambda h, inputs: memory.step(h, *inputs), carry[0], (xs, begin))
    return (end, ()), ys


def whole(memory, carry, xs, begin, cuts):
    """Scan everything at once."""
    end, ys = memory.scan(carry[0], xs, begin)
    return (end, ()), ys


def chunks(memory, carry, xs, begin, cuts):
    """Scan in uneven chunks, carrying the state."""
    state, collected = carry[0], []
    for part in _parts(UNEVEN):
        state, ys = memory.scan(state, xs[part], begin[part])
        collected.append(ys)
    return (state, ()), jnp.concatenate(collected)


def rtrl_steps(memory, carry, xs, begin, cuts):
    """Loop over `rtrl_step`."""
    return jax.lax.scan(lambda c, inputs: memory.rtrl_step(c, *inputs), carry, (xs, begin))


def segments_of_one(memory, carry, xs, begin, cuts):
    """Loop over `rtrl_scan` in segments of one step, each recomputed in the backward pass."""

    @jax.checkpoint
    def one(carry, inputs):
        x, begin_t = inputs
        carry, ys = memory.rtrl_scan(carry, x[None], begin_t[None])
        return carry, ys[0]

    return jax.lax.scan(one, carry, (xs, begin))


def uneven_segments(memory, carry, xs, begin, cuts):
    """Take `rtrl_scan` in segments of different lengths."""
    collected = []
    for part in _parts(UNEVEN):
        carry, ys = memory.rtrl_scan(carry, xs[part], begin[part])
        collected.append(ys)
    return carry, jnp.concatenate(collected)


def one_segment(memory, carry, xs, begin, cuts):
    """Take `rtrl_scan` of the whole."""
    return memory.rtrl_scan(carry, xs, begin)


def _parts(lengths):
    ends = np.cumsum([0, *lengths])
    return [slice(*ends[i : i + 2]) for i in range(len(lengths))]


# RTRL's forms and where their segments start.
RTRL_FORMS = {
    "rtrl_step": (rtrl_steps, np.ones(TIME, bool)),
    "rtrl_scan, segments of 1": (segments_of_one, np.ones(TIME, bool)),
    "rtrl_scan, segments of 3 and 5": (uneven_segments, np.isin(np.arange(TIME), (0, 3))),
    "rtrl_scan, one segment": (one_segment, np.arange(TIME) == 0),
}
FORMS = {"step": steps, "scan": whole, "scan in chunks": chunks}


class Outcome(NamedTuple):
    """What a form computes for a batch, and the gradients of a loss of it.

    - `end`, `sensitivity`: at the end; `sensitivity` is `()` for forms without one.
    - `ys`: outputs.
    - `memory`, `state`, `xs`: gradients of the loss in the parameters (summed over the batch), the
      state carried in, and the inputs.
    """

    end: Any
    sensitivity: Any
    ys: Any
    memory: Any
    state: Any
    xs: Any


@dataclass(frozen=True)
class Problem:
    """A memory, and a batch of carries, inputs, resets and weights of a loss.

    - `on_state`: the weight of a loss of the state at the end.
    """

    memory: AbstractMemory
    carry: Any
    xs: Any
    begin: Any
    weights: Any
    on_state: float = 0.0

    def outcome(self, form: Form, cuts: Any = None) -> Outcome:
        """Run a form on every problem of the batch."""
        cuts = np.zeros(TIME, bool) if cuts is None else cuts
        on_state = jnp.asarray(self.on_state)
        return _outcome(
            form, self.memory, self.carry, self.xs, self.begin, self.weights, cuts, on_state
        )


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """`eqx.filter_jit` that compiles fast what runs for a moment."""
    return eqx.filter_jit(function, compiler_options=_OPTIONS)  # pyright: ignore[reportCallIssue]


@jit
def _outcome(form, memory, carry, xs, begin, weights, cuts, on_state):
    def loss(differentiated):
        memory, state, xs = differentiated

        def of_one(carry, xs, begin, weights):
            (end, sensitivity), ys = form(memory, carry, xs, begin, cuts)
            return total(ys, weights) + on_state * of_state(end), (end, sensitivity, ys)

        losses, out = jax.vmap(of_one)((state, carry[1]), xs, begin, weights)
        return jnp.sum(losses), out

    (_, out), gradient = eqx.filter_value_and_grad(loss, has_aux=True)((memory, carry[0], xs))
    return Outcome(*out, *gradient)


def problem(memory: AbstractMemory, sensitivity: Any, seed: int = 0) -> Problem:
    """Draw random inputs, resets and losses for a memory, and states that it can be in.

    Episodes begin nowhere, here and there, rarely, and everywhere.
    """
    rng = np.random.default_rng(seed)
    normal = lambda *shape: jnp.asarray(rng.normal(size=(_BATCH, TIME, *shape)))  # noqa: E731

    def repeat(tree):
        return jax.tree.map(lambda h: jnp.broadcast_to(h, (_BATCH, *jnp.shape(h))), tree)

    begin = np.stack(
        [
            np.zeros(TIME, bool),
            rng.random(TIME) < 0.5,
            rng.random(TIME) < 0.2,
            np.ones(TIME, bool),
        ]
    )
    start = (repeat(memory.init_state()), repeat(sensitivity))
    never = np.zeros((_BATCH, TIME), bool)
    before = Problem(memory, start, normal(memory.inputs), never, normal(memory.outputs))
    reached = before.outcome(loop).end
    return Problem(
        memory, (reached, start[1]), normal(memory.inputs), begin, normal(memory.outputs)
    )


def perturbed(memory: Any, seed: int = 0, scale: float = 0.3) -> Any:
    """Move every parameter at random: at its initial value one may be zero, or all the same."""
    rng = np.random.default_rng(seed)

    def moved(p):
        noise = rng.normal(size=p.shape)
        if jnp.iscomplexobj(p):
            noise = noise + 1j * rng.normal(size=p.shape)
        return p + jnp.asarray(scale * noise, p.dtype)

    arrays, rest = eqx.partition(memory, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(moved, arrays), rest)
