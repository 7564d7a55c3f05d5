"""An online loop, forward, sensitivity, gradient and SGD at every step: ours and a plain one."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

import zoo


def step_loss(y: jax.Array, target: jax.Array) -> jax.Array:
    """The loss of one step: half the squared error, averaged over a leading batch axis if any."""
    return 0.5 * jnp.sum((y - target) ** 2) / (1 if y.ndim == 1 else len(y))


def library_carry(cell: zoo.AbstractMemory, batch: int, axis: int = 0) -> Any:
    """`(state, sensitivity)` at the beginning of an episode.

    The batch axis is the state's first, and the sensitivity's number `axis`.
    """

    return repeated(cell.init_state(), batch), repeated(cell.rtrl_init(), batch, axis)


def repeated(tree, batch: int, axis: int = 0):
    """The arrays of a pytree, each so many times along a new axis."""
    return jax.tree.map(lambda x: jnp.stack([x] * batch, axis), tree)


def library_step(cell, carry, x, target, *, axis: int = 0):
    """One online step of a batch by `rtrl_step`.

    **Arguments:**

    - `cell`: any cell.
    - `carry`: `(state, sensitivity)`, as `library_carry` returns it.
    - `x`, `target`: shapes `[batch, inputs]`, `[batch, outputs]`.
    - `axis`: the batch axis of the sensitivity. Behind the units, 1, the gradient's sum over the
      batch is a matrix product per unit with nothing to transpose.

    **Returns:**

    `(loss, gradient, carry)`: the mean loss and its gradient.
    """

    def loss(cell):
        axes = (0, axis)
        new_carry, y = jax.vmap(cell.rtrl_step, (axes, 0), (axes, 0))(carry, x)
        return step_loss(y, target), new_carry

    (value, carry), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(cell)
    return value, gradient, carry


def plain_parameters(cell: zoo.RTU) -> dict[str, jax.Array]:
    """The parameters of a linear RTU for `plain_step`."""
    p = cell.parameters
    return {"nu": p.nu, "theta": p.theta, "w1": p.w1, "w2": p.w2}


def plain_carry(parameters: dict[str, jax.Array], batch: int) -> Any:
    """`((h1, h2), traces)` at the beginning of an episode; `traces[name]` is `(e1, e2)`."""
    h = jnp.zeros((batch, *parameters["nu"].shape), parameters["nu"].dtype)
    pair = lambda p: (jnp.zeros((batch, *p.shape), p.dtype),) * 2  # noqa: E731
    return (h, h), {name: pair(p) for name, p in parameters.items()}


def plain_step(parameters, carry, x, target):
    """`library_step` of a linear RTU with relu, as the paper's equations spell it out.

    Eight real traces, `e1` and `e2` for each of ν, ϑ, W1 and W2:
    `e1' = g e1 - φ e2 + s1`, `e2' = g e2 + φ e1 + s2`, one environment at a time under `vmap`.
    """

    def of_one_environment(carry, x, target):
        (h1, h2), traces = carry
        decay, angle = jnp.exp(parameters["nu"]), jnp.exp(parameters["theta"])
        r = jnp.exp(-decay)
        g, phi, gamma = r * jnp.cos(angle), r * jnp.sin(angle), jnp.sqrt(1 - r**2)
        w1x, w2x = parameters["w1"] @ x, parameters["w2"] @ x

        g_nu, phi_nu, gamma_nu = -decay * g, -decay * phi, decay * r**2 / gamma
        g_theta, phi_theta = -angle * phi, angle * g
        gamma_x = gamma[:, None] * x[None, :]
        zero = jnp.zeros_like(gamma_x)
        immediate = {
            "nu": (
                g_nu * h1 - phi_nu * h2 + gamma_nu * w1x,
                g_nu * h2 + phi_nu * h1 + gamma_nu * w2x,
            ),
            "theta": (g_theta * h1 - phi_theta * h2, g_theta * h2 + phi_theta * h1),
            "w1": (gamma_x, zero),
            "w2": (zero, gamma_x),
        }

        def new_trace(trace, immediate):
            (e1, e2), (s1, s2) = trace, immediate
            a, b = (g, phi) if e1.ndim == 1 else (g[:, None], phi[:, None])
            return a * e1 - b * e2 + s1, a * e2 + b * e1 + s2

        traces = {name: new_trace(traces[name], immediate[name]) for name in traces}
        h1, h2 = g * h1 - phi * h2 + gamma * w1x, g * h2 + phi * h1 + gamma * w2x

        def loss(h1, h2):
            return step_loss(jax.nn.relu(jnp.concatenate([h1, h2])), target)

        value, (d1, d2) = jax.value_and_grad(loss, (0, 1))(h1, h2)

        def contract(trace):
            e1, e2 = trace
            return d1 * e1 + d2 * e2 if e1.ndim == 1 else d1[:, None] * e1 + d2[:, None] * e2

        gradient = {name: contract(trace) for name, trace in traces.items()}
        return value, gradient, ((h1, h2), traces)

    value, gradient, carry = jax.vmap(of_one_environment)(carry, x, target)
    return jnp.mean(value), jax.tree.map(lambda g: jnp.mean(g, 0), gradient), carry


def sgd(step, parameters, carry, xs, targets, *, learning_rate: float = 1e-3):
    """The online loop: a gradient and an SGD update at every step.

    **Arguments:**

    - `step`: `(parameters, carry, x, target) -> (loss, gradient, carry)`.
    - `parameters`, `carry`: where to start.
    - `xs`, `targets`: with a leading time axis.
    - `learning_rate`: of the SGD.

    **Returns:**

    `(parameters, carry, losses)`.
    """

    def body(loop, inputs):
        parameters, carry = loop
        value, gradient, carry = step(parameters, carry, *inputs)
        parameters = jax.tree.map(lambda p, g: p - learning_rate * g, parameters, gradient)
        return (parameters, carry), value

    (parameters, carry), losses = jax.lax.scan(body, (parameters, carry), (xs, targets))
    return parameters, carry, losses


def total_gradient(step, parameters, carry, xs, targets):
    """The sum of the loop's gradients with the parameters held fixed: to check one step by another.

    **Arguments:** as for `sgd`.

    **Returns:**

    A pytree like `parameters`.
    """

    def body(loop, inputs):
        total, carry = loop
        _, gradient, carry = step(parameters, carry, *inputs)
        return (jax.tree.map(jnp.add, total, gradient), carry), None

    start = (jax.tree.map(jnp.zeros_like, parameters), carry)
    return jax.lax.scan(body, start, (xs, targets))[0][0]
