"""The forms of a memory with values and gradients, the plain loop they are compared with, draws.

`zoo.prove` does the like in one batch, for any memory; here hypothesis draws what happens when.
`reference` is autodiff through the plain loop of `zoo.proofs`, which uses nothing else of the
library. Its `cuts` are traced: where true, no gradient flows back from that step into the state.
Every function is compiled once per memory and length; seeds and reset patterns are data.
"""

import functools

import equinox as eqx
import hypothesis.strategies as st
import jax
import numpy as np

from tests.zoo.examples import Network
from zoo.proofs import difference, of_state, plain_loop, plain_step, total

TIME, INPUTS, HIDDEN = 12, 3, 4
LENGTHS = (1, 4)


@plain_step.register
def _(memory: Network, state, x):
    state, y = plain_step(memory.memory, state, memory.before(x))
    return state, memory.head(y)


@eqx.filter_jit
def reference(memory, state, xs, begin, weights, cuts, on_state=0.0):
    """`(states, ys)` and the gradient of the loss in `(memory, state, xs)`."""

    def loss(arguments):
        memory, state, xs = arguments
        states, ys = plain_loop(memory, state, xs, begin, cuts, across="nothing")
        end = jax.tree.map(lambda h: h[-1], states)
        return total(ys, weights) + on_state * of_state(end), (states, ys)

    (_, out), gradient = eqx.filter_value_and_grad(loss, has_aux=True)((memory, state, xs))
    return out, gradient


@eqx.filter_jit
def segment(memory, carry, xs, begin, weights):
    """One segment: `(carry, ys)` and gradient in `(memory, xs)` of `rtrl_scan`; then `scan`."""

    def loss(arguments):
        memory, xs = arguments
        out, ys = memory.rtrl_scan(carry, xs, begin)
        return total(ys, weights), (out, ys)

    (_, out), gradient = eqx.filter_value_and_grad(loss, has_aux=True)((memory, xs))
    return out, gradient, memory.scan(carry[0], xs, begin)


def segments(memory, carry, xs, begin, weights, lengths):
    """Segments one after another: as `segment`, gradients summed, and the ends on the way.

    **Returns:** `([(end, carry, state of scan)], ys, ys of scan, gradient)`.
    """
    gradient, collected, ends, start = None, [], [], 0
    for length in lengths:
        part = slice(start, start + length)
        start += length
        (carry, ys), (d_memory, d_xs), (state, scanned) = segment(
            memory, carry, xs[part], begin[part], weights[part]
        )
        gradient = d_memory if gradient is None else jax.tree.map(np.add, gradient, d_memory)
        collected.append((ys, scanned, d_xs))
        ends.append((start, carry, state))
    ys, scanned, d_xs = (np.concatenate(parts) for parts in zip(*collected, strict=True))
    return ends, ys, scanned, (gradient, d_xs)


def no_cuts(time=TIME):
    return np.zeros(time, bool)


def cuts_at(lengths):
    """True at the first step of every segment."""
    cuts = np.zeros(sum(lengths), bool)
    cuts[np.cumsum([0, *lengths[:-1]])] = True
    return cuts


# Draws


@functools.cache
def built(case, inputs=INPUTS, hidden=HIDDEN):
    """The memory of a row and its zero sensitivity."""

    @eqx.filter_jit  # one program instead of dozens
    def build(key):
        memory = case.build(inputs, hidden, key=key)
        return memory, memory.rtrl_init()

    return build(jax.random.key(1))


def normal(rng, like):
    value = rng.normal(size=like.shape)
    if np.iscomplexobj(like):
        value = value + 1j * rng.normal(size=like.shape)
    return value.astype(like.dtype)


def problem(case, seed, time=TIME, inputs=INPUTS, hidden=HIDDEN):
    """`(memory, carry, xs, weights)`: random parameters, state, inputs and weights of the loss."""
    rng = np.random.default_rng(seed)
    memory, sensitivity = built(case, inputs, hidden)
    arrays, rest = eqx.partition(memory, eqx.is_inexact_array)
    arrays = jax.tree.map(lambda p: p + 0.3 * normal(rng, p), arrays)
    memory = eqx.combine(arrays, rest)
    state = case.reachable(jax.tree.map(lambda h: normal(rng, h), memory.init_state()))
    xs = rng.normal(size=(time, inputs))
    weights = rng.normal(size=(time, memory.outputs))
    return memory, (state, sensitivity), xs, weights


seeds = st.integers(0, 10_000)


def compositions(total=TIME, lengths=LENGTHS):
    """Ways to cut `total` steps into segments of the compiled lengths."""

    @st.composite
    def draw_lengths(draw):
        rest, out = total, []
        while rest:
            out.append(draw(st.sampled_from([n for n in lengths if n <= rest])))
            rest -= out[-1]
        return out

    return draw_lengths()


def borders(time=TIME):
    """Reset patterns: none, some, all."""
    return st.one_of(
        st.just([False] * time),
        st.lists(st.booleans(), min_size=time, max_size=time),
        st.lists(st.sampled_from([False, False, False, True]), min_size=time, max_size=time),
    ).map(lambda flags: np.array(flags, bool))


# Comparisons


def assert_close(got, expected, relative=1e-9, where=""):
    """Leaf by leaf: the largest difference against the largest expected value of that leaf."""
    number, path = difference(got, expected)
    assert number <= relative, f"{where}{path}: {number:.1e}"


def split(gradient, names):
    """Two dictionaries `{path: leaf}`: leaves whose path holds one of the names, and the others."""
    named, others = {}, {}
    for key, leaf in jax.tree_util.tree_leaves_with_path(gradient):
        path = jax.tree_util.keystr(key)
        (named if any(name in path for name in names) else others)[path] = leaf
    return named, others


def assert_gradient(got, exact, truncated, present, relative=1e-9):
    """Parameters named in `present` against `truncated`, all others against `exact`."""
    for part, expected in ((0, truncated), (1, exact)):
        assert_close(split(got, present)[part], split(expected, present)[part], relative)
