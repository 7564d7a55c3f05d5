"""Recurrent Trace Units, linear and nonlinear."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

from zoo.kinds import AbstractDiagonalCell, AbstractTimeInvariantCell
from zoo.memory import AbstractMemory
from zoo.parts import activation_function, check_sizes, join, linear_weights, ring, to_complex
from zoo.registry import register

_MODULI = ("exp_exp", "exp", "sigmoid", "direct")
_PHASES = ("exp", "direct")
_CLOSEST = 1 - 1e-6  # to 1, for a modulus that is learned as it is: γ has an infinite slope at 1


class _Parameters(eqx.Module):
    """What both units learn: decay ν, frequency ϑ and input weights."""

    nu: Float[Array, " hidden"]
    theta: Float[Array, " hidden"]
    w1: Float[Array, "hidden inputs"]
    w2: Float[Array, "hidden inputs"]
    modulus: str = eqx.field(static=True)
    phase: str = eqx.field(static=True)

    def __init__(self, inputs, hidden, r_min, r_max, max_phase, modulus, phase, key):
        check_sizes(inputs=inputs, hidden=hidden)
        for name, value, known in (("modulus", modulus, _MODULI), ("phase", phase, _PHASES)):
            if value not in known:
                raise ValueError(f"`{name}` (={value!r}) must be one of {', '.join(known)}.")
        ring_key, key1, key2 = jax.random.split(key, 3)
        nu_log, theta_log = ring(ring_key, hidden, r_min, r_max, max_phase)
        decay = jnp.exp(nu_log)
        self.nu = {
            "exp_exp": nu_log,
            "exp": decay,
            "sigmoid": -decay - jnp.log(-jnp.expm1(-decay)),
            "direct": jnp.exp(-decay),
        }[modulus]
        self.theta = theta_log if phase == "exp" else jnp.exp(theta_log)
        self.w1 = linear_weights(key1, (hidden, inputs), inputs)
        self.w2 = linear_weights(key2, (hidden, inputs), inputs)
        self.modulus, self.phase = modulus, phase

    def rotation(self):
        """`(r cos θ, r sin θ, γ)` with `γ = √(1 - r²)`."""
        theta = jnp.exp(self.theta) if self.phase == "exp" else self.theta
        r, gamma = self._modulus()
        return r * jnp.cos(theta), r * jnp.sin(theta), gamma

    def _modulus(self):
        """`(r, γ)`, without cancellation where r is close to 1."""
        if self.modulus == "sigmoid":
            r = jax.nn.sigmoid(self.nu)
            return r, jnp.sqrt(jax.nn.sigmoid(-self.nu) * (1 + r))
        if self.modulus == "direct":
            r = jnp.clip(self.nu, 0, _CLOSEST)
            return r, jnp.sqrt((1 - r) * (1 + r))
        decay = jnp.exp(self.nu) if self.modulus == "exp_exp" else jnp.abs(self.nu)
        return jnp.exp(-decay), jnp.sqrt(-jnp.expm1(-2 * decay))


class RTU(AbstractTimeInvariantCell):
    r"""Linear Recurrent Trace Unit.

    With `r = exp(-exp(ν))`, `θ = exp(ϑ)`, `g = r cos θ`, `φ = r sin θ`, `γ = √(1 - r²)`:

        h1' = g h1 - φ h2 + γ (W1 x)
        h2' = g h2 + φ h1 + γ (W2 x)
        y   = act([h1; h2])

    which is the complex recurrence `h' = λ h + γ (W1 + i W2) x` with `λ = r e^{iθ}`; the state is
    that complex number. γ is computed from r and differentiated through.

    Other parameterizations that the paper compares: `modulus="exp"`, `r = exp(-|ν|)`; `"sigmoid"`,
    `r = σ(ν)`; `"direct"`, r itself, clipped to [0, 1); `phase="direct"`, `θ = ϑ`.

    Source: *Real-Time Recurrent Learning using Trace Units in Reinforcement Learning*, Elelimy et
    al. (2024).
    """

    parameters: _Parameters
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        activation: str = "relu",
        r_min: float = 0.0,
        r_max: float = 1.0,
        max_phase: float = 6.283185307179586,
        modulus: str = "exp_exp",
        phase: str = "exp",
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of complex units; the output is twice as wide.
        - `activation`: of the output: `"relu"`, `"tanh"`, `"identity"`, `"silu"` or `"gelu"`.
        - `r_min`, `r_max`: the initial `r²` is uniform in [r_min², r_max²].
        - `max_phase`: the initial `θ` is uniform in (0, max_phase), in radians per step.
        - `modulus`: how r is learned: `"exp_exp"`, `"exp"`, `"sigmoid"` or `"direct"`.
        - `phase`: how θ is learned: `"exp"` or `"direct"`.
        """
        activation_function(activation)
        self.parameters = _Parameters(inputs, hidden, r_min, r_max, max_phase, modulus, phase, key)
        self.inputs, self.hidden, self.activation = inputs, hidden, activation

    @property
    def outputs(self) -> int:
        """`2 * hidden`."""
        return 2 * self.hidden

    def matrices(self) -> tuple[Complex[Array, " hidden"], Complex[Array, "hidden inputs"]]:
        """`λ` and `γ (W1 + i W2)`."""
        p = self.parameters
        g, phi, gamma = p.rotation()
        return to_complex(g, phi), to_complex(gamma[:, None] * p.w1, gamma[:, None] * p.w2)

    def readout(self, state: Complex[Array, " hidden"], x: Array) -> Float[Array, " outputs"]:
        """`act([h1; h2])`."""
        return activation_function(self.activation)(join(state.real, state.imag))


class NonlinearRTU(AbstractDiagonalCell):
    r"""Nonlinear Recurrent Trace Unit: the activation is inside the recurrence.

    With `g`, `φ`, `γ` as in `zoo.RTU`:

        h1' = act(g h1 - φ h2 + γ (W1 x))
        h2' = act(g h2 + φ h1 + γ (W2 x))
        y   = [h1; h2]

    Units do not talk to each other: the state Jacobian consists of 2 × 2 blocks.

    Source: *Real-Time Recurrent Learning using Trace Units in Reinforcement Learning*, Elelimy et
    al. (2024).
    """

    parameters: _Parameters
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        activation: str = "tanh",
        r_min: float = 0.0,
        r_max: float = 1.0,
        max_phase: float = 6.283185307179586,
        modulus: str = "exp_exp",
        phase: str = "exp",
        key: Array,
    ):
        """See `zoo.RTU`; `activation` is that of the recurrence."""
        activation_function(activation)
        self.parameters = _Parameters(inputs, hidden, r_min, r_max, max_phase, modulus, phase, key)
        self.inputs, self.hidden, self.activation = inputs, hidden, activation

    @property
    def outputs(self) -> int:
        """`2 * hidden`."""
        return 2 * self.hidden

    def init_state(self) -> tuple[Float[Array, " hidden"], Float[Array, " hidden"]]:
        dtype = self.parameters.w1.dtype
        return jnp.zeros(self.hidden, dtype), jnp.zeros(self.hidden, dtype)

    def update(self, state, x: Float[Array, " inputs"]):
        """`(h1', h2')`."""
        h1, h2 = state
        p = self.parameters
        g, phi, gamma = p.rotation()
        act = activation_function(self.activation)
        return (
            act(g * h1 - phi * h2 + gamma * (x @ p.w1.T)),
            act(g * h2 + phi * h1 + gamma * (x @ p.w2.T)),
        )

    def readout(self, state, x: Array) -> Float[Array, " outputs"]:
        """`[h1; h2]`."""
        return join(*state)


def _rtu(
    inputs: int,
    hidden: int,
    *,
    nonlinear: bool = False,
    activation: str | None = None,
    r_min: float = 0.0,
    r_max: float = 1.0,
    max_phase: float = 6.283185307179586,
    modulus: str = "exp_exp",
    phase: str = "exp",
    key: Array,
) -> AbstractMemory:
    """A linear or nonlinear RTU; see `zoo.RTU` and `zoo.NonlinearRTU`."""
    chosen = {} if activation is None else {"activation": activation}
    kind = NonlinearRTU if nonlinear else RTU
    return kind(
        inputs,
        hidden,
        r_min=r_min,
        r_max=r_max,
        max_phase=max_phase,
        modulus=modulus,
        phase=phase,
        key=key,
        **chosen,
    )


register("rtu", _rtu)
