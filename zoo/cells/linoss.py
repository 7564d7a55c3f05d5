"""Linear oscillatory state space layer."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

from zoo.kinds import AbstractTimeInvariantCell
from zoo.parts import check_sizes, to_complex
from zoo.registry import register

_RULES = ("im", "imex")


class LinOSS(AbstractTimeInvariantCell):
    r"""Linear oscillators, driven by the input.

    The system `q'' = -A q + B x` with one frequency √A per unit, in discrete time with step Δ and
    velocity z:

        implicit ("im"):           z' = z + Δ (-A q' + B x)    q' = q + Δ z'
        implicit-explicit ("imex"): z' = z + Δ (-A q + B x)     q' = q + Δ z'
        y = C q' + D ⊙ x

    "im" forgets, "imex" keeps its energy. Each unit's 2 × 2 matrix has a pair of conjugate
    eigenvalues λ, and `s = z + c q` with the left eigenvector (1, c) is one complex linear
    recurrence, `s' = λ s + (1 + c Δ) Δ / (1 + Δ² A) B x` for "im" and without the division for
    "imex"; q = Im s / Im c. Δ is in (0, 1) and A positive, for "imex" below 4/Δ². The skip
    `D ⊙ x` needs outputs as wide as inputs; where they are not, it is left out.

    Source: *Oscillatory State-Space Models*, Rusch & Rus (2024), sections 2 and 3.
    """

    a_log: Float[Array, " hidden"]
    step_logit: Float[Array, " hidden"]
    b: Float[Array, "hidden inputs"]
    c: Float[Array, "outputs hidden"]
    d: Float[Array, " outputs"] | None
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    discretization: str = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        outputs: int | None = None,
        discretization: str = "im",
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: number of oscillators.
        - `outputs`: width of `y`; `hidden` by default.
        - `discretization`: `"im"` or `"imex"`.
        """
        outputs = hidden if outputs is None else outputs
        check_sizes(inputs=inputs, hidden=hidden, outputs=outputs)
        if discretization not in _RULES:
            raise ValueError(
                f"`discretization` (={discretization!r}) must be one of {', '.join(_RULES)}."
            )
        keys = jax.random.split(key, 5)
        self.a_log = jnp.log(jax.random.uniform(keys[0], (hidden,), minval=1e-3, maxval=1.0))
        self.step_logit = jax.random.uniform(keys[1], (hidden,), minval=-1.0, maxval=1.0)
        self.b = jax.random.normal(keys[2], (hidden, inputs)) / math.sqrt(inputs)
        self.c = jax.random.normal(keys[3], (outputs, hidden)) / math.sqrt(hidden)
        self.d = jax.random.normal(keys[4], (outputs,)) if outputs == inputs else None
        self.inputs, self.hidden, self.discretization = inputs, hidden, discretization

    @property
    def outputs(self) -> int:
        """As given; `hidden` by default."""
        return self.c.shape[0]

    def matrices(self) -> tuple[Complex[Array, " hidden"], Complex[Array, "hidden inputs"]]:
        """`λ` and the complex input matrix."""
        eigenvalue, c, drive = self._eigen()
        step, drive, b = (
            x.astype(c.dtype) for x in (jax.nn.sigmoid(self.step_logit), drive, self.b)
        )
        return eigenvalue, ((1 + c * step) * drive)[:, None] * b

    def readout(
        self, state: Complex[Array, " hidden"], x: Float[Array, " inputs"]
    ) -> Float[Array, " outputs"]:
        """`C q' + D ⊙ x`."""
        _, c, _ = self._eigen()
        y = (state.imag / c.imag) @ self.c.T
        return y if self.d is None else y + self.d * x

    def _eigen(self):
        """`(λ, c, drive)`: eigenvalue, left eigenvector (1, c), and the factor of B x in z'."""
        delta, a = jax.nn.sigmoid(self.step_logit), jnp.exp(self.a_log)
        if self.discretization == "im":
            shrink = 1 / (1 + delta**2 * a)
            frequency = jnp.sqrt(a)
            return (
                to_complex(shrink, shrink * delta * frequency),
                to_complex(jnp.zeros_like(a), frequency),
                delta * shrink,
            )
        # Half the angle of a turn: sin(θ/2) = Δ √A / 2, below 1.
        sine = jnp.minimum(delta * jnp.sqrt(a) / 2, 1 - 1e-6)
        cosine = jnp.sqrt(1 - sine**2)
        eigenvalue = to_complex(1 - 2 * sine**2, 2 * sine * cosine)
        return eigenvalue, (eigenvalue - 1) / delta, delta


register("linoss", LinOSS)
