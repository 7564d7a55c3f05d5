"""Cells that only the tests have: kinds of recurrence that the zoo has no member of."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

import zoo
from zoo.parts import to_complex


@jax.custom_vjp
def spike(v):
    """A step function with a derivative that is made up, for reverse mode only."""
    return (v > 0).astype(v.dtype)


spike.defvjp(lambda v: (spike(v), v), lambda v, g: (g / (1 + 10 * jnp.abs(v)) ** 2,))


class ComplexGates(zoo.AbstractLinearCell):
    """A complex state with real parameters; the decay and the phase depend on the input."""

    decay: Float[Array, "hidden inputs"]
    phase: Float[Array, "hidden inputs"]
    real: Float[Array, "hidden inputs"]
    imaginary: Float[Array, "hidden inputs"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        self.decay, self.phase, self.real, self.imaginary = jax.random.normal(
            key, (4, hidden, inputs)
        )
        self.inputs, self.hidden = inputs, hidden

    @property
    def outputs(self):
        return 2 * self.hidden

    def coefficients(self, x):
        r, phase = jax.nn.sigmoid(self.decay @ x), 3 * jnp.tanh(self.phase @ x)
        drive = to_complex(self.real @ x, jnp.tanh(self.imaginary @ x))
        return to_complex(r * jnp.cos(phase), r * jnp.sin(phase)), drive

    def readout(self, state, x):
        return jnp.concatenate([state.real, jnp.sin(state.imag)])


class TwoAxes(zoo.AbstractTimeInvariantCell):
    """A complex state of traces × contexts; a parameter belongs to one of the two axes."""

    alpha: Float[Array, " hidden"]
    omega: Float[Array, " two"]
    w: Float[Array, "hidden inputs"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        self.alpha = jnp.linspace(0.1, 1.0, hidden)
        self.omega = jnp.array([0.3, 1.2])
        self.w = jax.random.normal(key, (hidden, inputs))
        self.inputs, self.hidden = inputs, hidden

    @property
    def outputs(self):
        return 4 * self.hidden

    def matrices(self):
        r, omega = jnp.exp(-jnp.abs(self.alpha))[:, None], self.omega[None]
        a = to_complex(r * jnp.cos(omega), r * jnp.sin(omega))
        return a, jnp.broadcast_to(self.w[:, None], (self.hidden, 2, self.inputs))

    def readout(self, state, x):
        return jnp.concatenate([state.real.ravel(), state.imag.ravel()])


class ComplexParameter(zoo.AbstractTimeInvariantCell):
    """A complex state whose input matrix is stored as one complex array."""

    decay: Complex[Array, " hidden"]
    matrix: Complex[Array, "hidden inputs"]
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        real, imaginary = jax.random.normal(key, (2, hidden, inputs))
        self.matrix = to_complex(real, imaginary)
        self.decay = 0.5 * self.matrix[:, 0] / jnp.abs(self.matrix[:, 0])
        self.inputs, self.hidden = inputs, hidden

    def matrices(self):
        return self.decay, self.matrix

    def readout(self, state, x):
        return state.real


class Network(eqx.Module):
    """An encoder in front of a memory and a head behind it."""

    encoder: eqx.nn.Linear
    memory: zoo.AbstractMemory
    head: eqx.nn.Linear

    def __init__(self, memory, observation, *, key):
        encoder_key, head_key = jax.random.split(key)
        self.encoder = eqx.nn.Linear(observation, memory.inputs, key=encoder_key)
        self.memory = memory
        self.head = eqx.nn.Linear(memory.outputs, 2, key=head_key)

    def init_state(self):
        return self.memory.init_state()

    def before(self, x):
        return jnp.tanh(self.encoder(x))

    def rtrl_scan(self, carry, xs, begin=None):
        carry, ys = self.memory.rtrl_scan(carry, jax.vmap(self.before)(xs), begin)
        return carry, jax.vmap(self.head)(ys)


class Affine(zoo.AbstractMonoidCell):
    """Products of affine maps `h ↦ A h + b`, both of them functions of the input."""

    turn: jax.Array
    drive: jax.Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)

    def __init__(self, inputs, hidden, *, key):
        turn_key, drive_key = jax.random.split(key)
        self.turn = 0.3 * jax.random.normal(turn_key, (hidden, hidden, inputs))
        self.drive = jax.random.normal(drive_key, (hidden, inputs))
        self.inputs, self.hidden = inputs, hidden

    def init_state(self):
        dtype = self.turn.dtype
        return jnp.eye(self.hidden, dtype=dtype), jnp.zeros(self.hidden, dtype)

    def lift(self, x):
        return jnp.tanh(self.turn @ x) / (2 * self.hidden), self.drive @ x

    def combine(self, earlier, later):
        (a, b), (later_a, later_b) = earlier, later
        return later_a @ a, later_a @ b + later_b

    def readout(self, state, x):
        a, b = state
        return b + jnp.sum(a, 1)
