"""Cells that break a promise, each in one way, and what `zoo.prove` has to say of them."""

import equinox as eqx
import jax
import jax.numpy as jnp

import rtrl
import zoo


class Dense(zoo.AbstractDiagonalCell):
    """Units act on each other, declared diagonal."""

    w: jax.Array
    u: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        w_key, u_key = jax.random.split(key)
        self.w = jax.random.normal(w_key, (hidden, inputs))
        self.u = jax.random.normal(u_key, (hidden, hidden))
        self.inputs, self.hidden = inputs, hidden

    def update(self, state, x):
        return jnp.tanh(self.w @ x + self.u @ state)


class ReadElsewhere(zoo.AbstractOuterProductCell):
    """A matrix memory with another `readout` than its `respond`, which chunks read by."""

    w: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        self.w = jax.random.normal(key, (3, 1, hidden, inputs))
        self.inputs, self.hidden = inputs, hidden

    def recurrence_parameters(self):
        return rtrl.Axes(None, self.w[0], self.w[1])

    def written(self, parameters, xs):
        k = jnp.einsum("hki,ti->thk", parameters.rows, xs)
        v = jnp.einsum("hki,ti->thk", parameters.columns, xs)
        return jnp.full((len(xs), 1, 1), -0.1, xs.dtype), k, v

    def queries(self, xs):
        return jnp.einsum("hki,ti->thk", self.w[2], xs)

    def respond(self, read, x):
        return read.ravel()

    def readout(self, state, x):
        return jnp.tanh((self.queries(x[None])[0][:, None] @ state).ravel())


def _weights(inputs, hidden, key):
    w_key, u_key = jax.random.split(key)
    return jax.random.normal(w_key, (hidden, inputs)), jax.random.normal(u_key, (hidden,))


class Alone(zoo.AbstractDiagonalCell):
    """A unit each for itself: what liars are but for one thing."""

    w: jax.Array
    u: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        self.w, self.u = _weights(inputs, hidden, key)
        self.inputs, self.hidden = inputs, hidden

    def update(self, state, x):
        return jnp.tanh(self.w @ x + self.u * state)


class Normed(Alone):
    """A norm over the units inside the recurrence."""

    def update(self, state, x):
        z = self.w @ x + self.u * state
        return (z - jnp.mean(z)) / jnp.sqrt(jnp.var(z) + 1e-3)


class Transposed(zoo.AbstractDiagonalCell):
    """A weight `[inputs, hidden]`."""

    w: jax.Array
    u: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        w, self.u = _weights(inputs, hidden, key)
        self.w = w.T
        self.inputs, self.hidden = inputs, hidden

    def update(self, state, x):
        return jnp.tanh(x @ self.w + self.u * state)


class Rolled(Alone):
    """The neighbor's factor."""

    def update(self, state, x):
        return jnp.tanh(self.w @ x + jnp.roll(self.u, 1) * state)


class Softened(Alone):
    """Factors that compete."""

    def update(self, state, x):
        return jnp.tanh(self.w @ x + jax.nn.softmax(self.u) * state)


class Mixed(zoo.AbstractLinearCell):
    """A layer in front of the drive whose units all act on all of the state's."""

    first: jax.Array
    second: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        first_key, second_key = jax.random.split(key)
        self.first = jax.random.normal(first_key, (hidden, inputs))
        self.second = jax.random.normal(second_key, (hidden, hidden))
        self.inputs, self.hidden = inputs, hidden

    def coefficients(self, x):
        return jnp.full_like(x, 0.5, shape=self.hidden), self.second @ jnp.tanh(self.first @ x)


class LearnedStart(zoo.AbstractDiagonalCell):
    """An episode begins with a parameter."""

    w: jax.Array
    u: jax.Array
    start: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        self.w, self.u = _weights(inputs, hidden, key)
        self.start = 0.1 * self.u
        self.inputs, self.hidden = inputs, hidden

    def init_state(self):
        return self.start

    def update(self, state, x):
        return jnp.tanh(self.w @ x + self.u * state)


class HiddenStart(LearnedStart):
    """An episode begins with a parameter that has no gradient there."""

    def init_state(self):
        return jax.lax.stop_gradient(self.start)


class LinearFromOnes(zoo.AbstractLinearCell):
    """A linear recurrence that begins with ones."""

    w: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        self.w = jax.random.normal(key, (hidden, inputs))
        self.inputs, self.hidden = inputs, hidden

    def init_state(self):
        return jnp.ones(self.hidden, self.w.dtype)

    def coefficients(self, x):
        return jnp.full_like(x, 0.5, shape=self.hidden), self.w @ x


class Conjugate(Alone):
    """A complex recurrence that takes the conjugate."""

    def init_state(self):
        return jnp.zeros(self.hidden, jnp.result_type(self.w, jnp.complex64))

    def update(self, state, x):
        return self.u * jnp.conj(state) + self.w @ x * (1 + 0.5j)

    def readout(self, state, x):
        return state.real


class Deaf(zoo.AbstractDenseCell):
    """A dense cell that takes its products by itself, not by `recurrent`."""

    w: jax.Array
    u: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)

    def __init__(self, inputs, hidden, sensitivity, *, key):
        w_key, u_key = jax.random.split(key)
        self.w = jax.random.normal(w_key, (hidden, inputs))
        self.u = jax.random.normal(u_key, (hidden, 1, hidden))
        self.inputs, self.hidden, self.sensitivity = inputs, hidden, sensitivity

    def transition(self, state, x, recurrent):
        return jnp.tanh(self.w @ x + rtrl.exact_product(self.u, state)[:, 0])


class Astray(zoo.AbstractUnstructuredCell):
    """With an unbiased sensitivity that follows other derivatives than those of `update`.

    - `past`, `own`: how many halves of those in the state and in the parameters. As arrays, so that
      all share their programs, and whole numbers, which are no parameters.
    """

    w: jax.Array
    u: jax.Array
    past: jax.Array
    own: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True, default=rtrl.UORO())

    def __init__(self, inputs, hidden, past, own, *, key):
        w_key, u_key = jax.random.split(key)
        self.w = jax.random.normal(w_key, (hidden, inputs))
        self.u = jax.random.normal(u_key, (hidden, hidden))
        self.past, self.own = jnp.asarray(past, jnp.int32), jnp.asarray(own, jnp.int32)
        self.inputs, self.hidden = inputs, hidden

    def update(self, state, x):
        return jnp.tanh(self.w @ x + self.u @ state)

    def surrogate_states(self, parameters, state, xs, begin, states):
        def scaled(p, halves):
            if not eqx.is_inexact_array(p):
                return p
            factor = halves.astype(p.dtype) / 2
            return factor * p + (1 - factor) * jax.lax.stop_gradient(p)

        parameters = jax.tree.map(lambda p: scaled(p, self.own), parameters)
        return self.states(parameters, scaled(state, self.past), xs, begin)


class Absorbing(zoo.AbstractMonoidCell):
    """Products that begin with zero, from which no element leads away."""

    w: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        self.w, _ = _weights(inputs, hidden, key)
        self.inputs, self.hidden = inputs, hidden

    def init_state(self):
        return jnp.zeros(self.hidden)

    def lift(self, x):
        return self.w @ x

    def combine(self, a, b):
        return a * b


class Wide(Transposed):
    """Says that it has more outputs than its readout has."""

    @property
    def outputs(self):
        return self.hidden + 1


class Paired(Rolled):
    """Returns its state and an output from `update`."""

    def update(self, state, x):
        state = super().update(state, x)
        return state, state


class Undefined(Rolled):
    """Not a number where a unit is negative."""

    def update(self, state, x):
        return jnp.sqrt(self.w @ x + self.u * state)
