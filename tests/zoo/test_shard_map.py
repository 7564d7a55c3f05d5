"""Scans and cells inside `jax.shard_map`, on four devices of the tests' CPU.

Parameters are the same on all devices and a batch is split over them. Values and gradients must be
those of one device, on which the batch is under `vmap`. The loss is the sum over the batch, so that
gradients of parameters are sums over the devices.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rtrl
import scan
from tests.cases import CELLS, for_each
from tests.zoo import forms

TIME, DEVICES = 4, 4

pytestmark = pytest.mark.slow
BEGIN = jax.device_put(np.arange(TIME) == 2)


def check(name, one, shared, split):
    """Compare `one(shared, member of the batch) -> (loss, outputs)` on all devices with one."""

    def loss(shared, split):
        values, out = jax.vmap(one, (None, 0))(shared, split)
        return jnp.sum(values), jax.tree.map(lambda x: x + 0, out)  # flags as numbers

    differentiated = jax.value_and_grad(loss, has_aux=True)

    def local(shared, split):
        (value, out), gradient = differentiated(shared, split)
        return jax.lax.psum(value, "batch"), out, gradient

    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:DEVICES]), ("batch",))
    same, parted = jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec("batch")
    on_all = jax.shard_map(
        local, mesh=mesh, in_specs=(same, parted), out_specs=(same, parted, same)
    )
    got = jax.jit(on_all)(shared, split)
    (value, out), gradient = jax.jit(differentiated)(shared, split)
    forms.assert_close(got, (value, out, gradient), where=name)


def weighted(tree):
    """A loss of everything, with what is constant to derivatives."""
    leaves = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.inexact)]
    return sum(jnp.sum(jnp.sin((x * x.conj()).real)) for x in leaves)


def test_every_function_of_scan():
    rng = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape))  # noqa: E731
    b = draw(DEVICES, TIME, 3)

    def with_loss(run):
        return lambda shared, split: (lambda h: (weighted(h), h))(run(shared, split))

    for method in ("sequential", "associative", "auto"):
        for shape in ((3,), (TIME, 3)):
            solve = lambda a, b, m=method: scan.linear(a, b, None, BEGIN, method=m)  # noqa: E731
            check(f"scan.linear {method} {shape}", with_loss(solve), draw(*shape), b)
    varying = lambda h0, a: scan.linear(a, jnp.ones((TIME, 3)), h0, reverse=True)  # noqa: E731
    check("scan.linear, split coefficients", with_loss(varying), draw(3), b)

    def update(p, h, x):
        return jnp.tanh(p["a"] * h + p["w"] * x)

    parameters = {"a": draw(3), "w": draw(3)}
    for name, solve in (("nonlinear", scan.nonlinear), ("newton", scan.newton)):
        for coupling in ("units", "dense"):
            run = lambda p, xs, solve=solve, coupling=coupling: solve(  # noqa: E731
                update, p, jnp.zeros(3), xs, BEGIN, initial=jnp.ones(3), coupling=coupling
            )
            check(f"scan.{name} {coupling}", with_loss(run), parameters, b)
        # The update's own program casts what it closes over.
        run = lambda p, xs, solve=solve: solve(  # noqa: E731
            lambda _, h, x: update(p, h, jax.nn.softplus(x)), (), jnp.zeros(3), xs
        )
        check(f"scan.{name}, closed over", with_loss(run), parameters, b)
    split = lambda p, xs: scan.sequential(  # noqa: E731
        lambda h, x: update(p, h, x), jnp.zeros(3), xs, BEGIN, initial=jnp.ones(3)
    )
    check("scan.sequential", with_loss(split), parameters, b)
    # Only the function that the loop calls knows of what is split.
    closed = lambda p, scale: scan.sequential(  # noqa: E731
        lambda h, x: update(p, h, x * scale[0]), jnp.zeros(3), jnp.ones((TIME, 3))
    )
    check("scan.sequential, closed over", with_loss(closed), parameters, b)
    for width in (1, 2):
        a, drive = draw(TIME, 3, width, width), draw(DEVICES, TIME, 3, width)
        solve = lambda a, b: scan.blocks(a, b, jnp.zeros(b.shape[1:]), BEGIN)  # noqa: E731
        check(f"scan.blocks {width}", with_loss(solve), a, drive)
    prefixes = lambda first, b: scan.associative(  # noqa: E731
        lambda x, y: x + y + x * y, 0.1 * b, BEGIN, initial=first
    )
    check("scan.associative", with_loss(prefixes), draw(3), b)


@for_each(case for case in CELLS if case.name in ("rtu", "gru", "ffm"))
def test_the_forms_of_a_memory(case):
    """One for each structure of a sensitivity; `test_lowering.py` traces those of all others."""
    memory, (_, sensitivity), _, _ = forms.problem(case, 0, TIME)
    parameters, rest = eqx.partition(memory, eqx.is_inexact_array_like)
    members = [forms.problem(case, seed, TIME)[1:3] for seed in range(DEVICES)]
    split = jax.tree.map(lambda *x: np.stack(x), *((c[0], xs) for c, xs in members))

    def one(parameters, member):
        memory, (state, xs) = eqx.combine(parameters, rest), member
        carry = state, sensitivity
        out = {
            "scan": memory.scan(state, xs, BEGIN),
            "scan from the start": memory.scan(memory.init_state(), xs, BEGIN)[1],
            "step": memory.step(state, xs[0], jnp.array(False)),
            "rtrl_step": memory.rtrl_step(carry, xs[0], jnp.array(False)),
            "rtrl_scan": memory.rtrl_scan(carry, xs, BEGIN),
        }
        return weighted(out), out

    check(case.name, one, parameters, split)


def test_accumulate():
    """`rtrl.accumulate` of a cell whose parameters are the same on all devices."""
    (case,) = (case for case in CELLS if case.name == "rtu")
    memory, (_, sensitivity), _, _ = forms.problem(case, 0, TIME)
    xs = jnp.asarray(np.random.default_rng(0).normal(size=(DEVICES, TIME, forms.INPUTS)))
    parameters, rest = eqx.partition(memory, eqx.is_inexact_array_like)

    def one(parameters, xs):
        memory = eqx.combine(parameters, rest)
        carry = memory.init_state(), sensitivity
        loss = lambda y: jnp.sum(y**2)  # noqa: E731
        value, gradient, _ = rtrl.accumulate(loss, memory, carry, xs, BEGIN, segment=2)
        return value, gradient

    def local(parameters, xs):
        value, gradient = one(parameters, xs[0])
        return jax.lax.psum(value, "batch"), gradient

    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:DEVICES]), ("batch",))
    same, parted = jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec("batch")
    on_all = jax.shard_map(local, mesh=mesh, in_specs=(same, parted), out_specs=(same, same))
    got = jax.jit(on_all)(parameters, xs)
    each = jax.jit(jax.vmap(one, (None, 0)))(parameters, xs)
    forms.assert_close(got, jax.tree.map(lambda x: x.sum(0), each))
