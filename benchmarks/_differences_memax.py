"""Where memax departs from the papers that it names, a function for each row of the table."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from benchmarks._differences_row import row
from benchmarks._measure import Row

SIZE = 4


_row = partial(row, "memax")


def _operator(model) -> Any:
    """What `Resettable` is around."""
    return model.algebra.algebra


def _outputs(model, xs, begin=None):
    begin = jnp.zeros(len(xs), bool) if begin is None else begin
    return model(model.initialize_carry(), (xs, begin))[1]


def _set(layer, weight, bias=None):
    """A linear layer with other numbers."""
    layer = eqx.tree_at(lambda layer: layer.weight, layer, weight)
    return layer if bias is None else eqx.tree_at(lambda layer: layer.bias, layer, bias)


def _of_halves(model):
    """Keys and queries read the input's first half, values the second; the output is what is read.

    Gates of the rate are at β = 1, and of the decay, where there is one, at 1.
    """
    first = jnp.eye(SIZE, 2 * SIZE)
    model = eqx.tree_at(
        lambda m: (m.K, m.Q, m.V, m.output),
        model,
        (
            _set(model.K, first),
            _set(model.Q, first),
            _set(model.V, jnp.roll(first, SIZE, axis=1)),
            _set(model.output, first.T, jnp.zeros(2 * SIZE)),
        ),
    )
    if hasattr(model, "w"):  # the rate 2σ(0)
        zero = _set(model.w, jnp.zeros_like(model.w.weight), jnp.zeros_like(model.w.bias))
        model = eqx.tree_at(lambda m: m.w, model, zero)
    if hasattr(model, "alpha"):
        gate = model.alpha
        kept = _set(gate, jnp.zeros_like(gate.weight), jnp.full_like(gate.bias, 40.0))
        model = eqx.tree_at(lambda m: m.alpha, model, kept)
    return model


def _read(model, keys, values):
    return _outputs(_of_halves(model), jnp.concatenate([keys, values], 1))[:, :SIZE]


def _keys_and_values(steps: int):
    keys = jax.random.uniform(jax.random.key(1), (SIZE,), minval=0.5, maxval=1.5)
    return jnp.tile(keys, (steps, 1)), jax.random.normal(jax.random.key(2), (steps, SIZE))


def linear_attention() -> Row:
    """Attention over values that are all the same is that value."""
    from memax.equinox.semigroups import fart

    keys, values = _keys_and_values(20)
    values = jnp.broadcast_to(values[:1], values.shape)
    xs = jnp.concatenate([keys, values], 1)
    model = _of_halves(fart.FART(2 * SIZE, SIZE, jax.random.key(0)))
    read = (_outputs(model, xs) - xs)[-1, :SIZE]  # it adds its input
    factor = jnp.linalg.norm(read) / jnp.linalg.norm(values[0])
    what = "20 equal steps: what is read over the value that was written each time"
    return _row("semigroups.fart.FART", what, "Katharopoulos et al. (2020)", float(factor), 1.0)


def fast_weights() -> Row:
    """After one write, every query reads a multiple of the value."""
    from memax.equinox.semigroups import fwp

    keys, values = _keys_and_values(1)
    read = _read(fwp.FWP(2 * SIZE, SIZE, jax.random.key(0)), keys, values)[0]
    cosine = read @ values[0] / jnp.linalg.norm(read) / jnp.linalg.norm(values[0])
    what = "one write: the cosine of what is read and the value"
    source = "arXiv:2508.08435"
    return _row("semigroups.fwp.FWP", what, source, float(abs(cosine)), 1.0)


def _overwritten(model) -> float:
    keys, values = _keys_and_values(2)
    read = _read(model, keys, values)[1]
    return float(jnp.linalg.norm(read - values[1]) / jnp.linalg.norm(values[1]))


_REWRITE = "a key is written twice, β = 1: error of what is read, over the second value"


def delta_net() -> Row:
    """The delta rule with rate 1 overwrites a key's value."""
    from memax.equinox.semigroups import delta

    error = _overwritten(delta.DeltaNet(2 * SIZE, SIZE, jax.random.key(0)))
    source = "arXiv:2508.08435"
    return _row("semigroups.delta.DeltaNet", _REWRITE, source, error, 0.0)


def gated_delta_net() -> Row:
    """The same behind a decay that is 1."""
    from memax.equinox.semigroups import gdn

    error = _overwritten(gdn.GDN(2 * SIZE, SIZE, jax.random.key(0)))
    source = "arXiv:2412.06464"
    return _row("semigroups.gdn.GDN", _REWRITE, source, error, 0.0)


def _delta_product(writes: int) -> Row:
    from memax.equinox.semigroups import deltap

    model = deltap.DeltaProduct(SIZE, SIZE, writes, jax.random.key(0))
    model = eqx.tree_at(
        lambda m: m.output, model, _set(model.output, jnp.eye(SIZE), jnp.zeros(SIZE))
    )
    xs = jax.random.normal(jax.random.key(1), (20, SIZE))

    def step(state, x):
        keys = jax.nn.silu(model.K(x)).reshape(SIZE, writes)
        keys = keys / jnp.linalg.norm(keys, axis=0)
        values = model.V(x).reshape(SIZE, writes)
        rates = 2 * jax.nn.sigmoid(model.w(x))
        state = state * jax.nn.sigmoid(model.alpha(x))
        for k, v, rate in zip(keys.T, values.T, rates, strict=True):
            state = state + rate * jnp.outer(v - state @ k, k)
        query = jax.nn.silu(model.Q(x))
        return state, state @ query / jnp.linalg.norm(query)

    _, right = jax.lax.scan(step, jnp.zeros((SIZE, SIZE)), xs)
    error = jnp.max(jnp.abs(_outputs(model, xs) - right)) / jnp.max(jnp.abs(right))
    what = f"{writes} write{'s' * (writes > 1)} a step, 20 steps: error over the largest output"
    source = "arXiv:2502.10297"
    return _row("semigroups.deltap.DeltaProduct", what, source, float(error), 0.0)


def delta_product() -> Row:
    """A product of one Householder matrix is that matrix."""
    return _delta_product(1)


def delta_product_of_two() -> Row:
    """Of two, it is a matrix product."""
    return _delta_product(2)


def lstm() -> Row:
    """The output is a gate times a squashed cell: never above 1."""
    from memax.equinox.set_actions import lstm

    model = lstm.LSTM(SIZE, jax.random.key(0))
    model = jax.tree.map(lambda x: jnp.zeros_like(x) if eqx.is_array(x) else x, model)
    gates = lambda m: [getattr(_operator(m), f"W_{name}").bias for name in "fioc"]  # noqa: E731
    model = eqx.tree_at(gates, model, [jnp.full(SIZE, 40.0)] * 4)
    largest = jnp.max(jnp.abs(_outputs(model, jnp.zeros((100, SIZE)))))
    what = "all gates open, 100 steps: the largest output"
    source = "Hochreiter and Schmidhuber (1997)"
    return _row("set_actions.lstm.LSTM", what, source, float(largest), "at most 1")


def ffm_output() -> Row:
    """The output gate comes behind the layer norm."""
    from memax.equinox.semigroups import ffm

    model = ffm.FFM(16, 8, 2, jax.random.key(0))
    gate = model.gate_out.linear
    tenth = _set(gate, jnp.zeros_like(gate.weight), jnp.full(16, jnp.log(1 / 9)))
    model = eqx.tree_at(lambda m: m.gate_out.linear, model, tenth)
    xs = jax.random.normal(jax.random.key(1), (5, 16))
    deviation = jnp.std((_outputs(model, xs) - 0.9 * xs)[-1])
    what = "output gate at 0.1: standard deviation of the memory's part of the output"
    source = "arXiv:2310.04128"
    return _row("semigroups.ffm.FFM", what, source, float(deviation), 0.1)


def ffm_durability() -> Row:
    """The slowest trace is at 1 % after `t_e` steps."""
    from memax.equinox.semigroups import ffm

    decays, _ = _operator(ffm.FFM(SIZE, 32, 4, jax.random.key(0))).params
    steps = float(jnp.log(100.0) / jnp.min(jnp.abs(decays)))
    what = "steps after which the slowest trace is at 1 %, at the start"
    return _row("semigroups.ffm.FFM", what, "arXiv:2310.04128, appendix B", steps, 1024.0)


def residual() -> Row:
    """Behind a layer that gives nothing, what is left is the residual connection."""
    from memax.equinox.models.residual import ResidualModel
    from memax.equinox.semigroups import lru

    model = ResidualModel(
        lambda recurrent_size, key: lru.LRU(recurrent_size, recurrent_size, key=key),
        SIZE,
        SIZE,
        SIZE,
        key=jax.random.key(0),
    )
    linear = model.ff[0][0]
    nothing = _set(linear, 0 * linear.weight, 0 * linear.bias)
    model = eqx.tree_at(lambda m: m.ff[0][0], model, nothing)
    xs = jax.random.normal(jax.random.key(1), (3, SIZE))
    largest = jnp.max(jnp.abs(jax.jacobian(lambda xs: _outputs(model, xs))(xs)))
    what = "the first layer gives 0: the largest derivative of an output in an input"
    return _row("models.residual.ResidualModel", what, "its docstring", float(largest), "above 0")


def reset_of_nan() -> Row:
    """Episodes do not interfere with each other."""
    from memax.equinox.semigroups import lru

    model = lru.LRU(SIZE, SIZE, key=jax.random.key(0))
    xs = jax.random.normal(jax.random.key(1), (10, SIZE)).at[2].set(jnp.nan)
    ys = _outputs(model, xs, jnp.arange(10) == 5)[5:]
    count = int(jnp.sum(jnp.any(jnp.isnan(ys), axis=1)))
    what = "a NaN in the episode before: steps of the next five that are NaN"
    return _row("groups.Resettable", what, "its docstring", count, 0)


def n_max() -> Row:
    """A semigroup's operator is associative, whatever its parameters."""
    from memax.equinox.scans import semigroup_scan, set_action_scan
    from memax.equinox.semigroups import nmax

    algebra = _operator(nmax.NMax(SIZE, jax.random.key(0)))
    algebra = eqx.tree_at(lambda a: a.decay, algebra, jnp.full(SIZE, 0.9))
    xs = jax.random.uniform(jax.random.key(1), (16, SIZE))
    tree, loop = (
        scan(algebra, algebra.initialize_carry(), xs) for scan in (semigroup_scan, set_action_scan)
    )
    error = float(jnp.max(jnp.abs(tree - loop)) / jnp.max(jnp.abs(loop)))
    what = "decay .9: states of its parallel scan against its loop, over the largest"
    return _row("semigroups.nmax.NMax", what, "docstring of groups.Semigroup", error, 0.0)


ROWS = (
    linear_attention,
    fast_weights,
    delta_net,
    gated_delta_net,
    delta_product,
    delta_product_of_two,
    lstm,
    ffm_output,
    ffm_durability,
    residual,
    reset_of_nan,
    n_max,
)
