"""Fast and Forgetful Memory."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

import rtrl
from zoo.kinds import AbstractTwoAxisCell
from zoo.parts import Linear, check_norm_width, check_sizes, layer_norm, to_complex
from zoo.registry import register

# As published: the largest double. It sets the fast end of the decays.
_LARGEST = 1.79e308


class FFM(AbstractTwoAxisCell):
    r"""Fast and Forgetful Memory: traces that decay, in contexts that rotate.

    The state S is a complex matrix of m traces and c contexts, LN a layer norm without parameters:

        x̃ = ℓ1(x) ⊙ σ(ℓ2(x))
        S' = exp(-|α|) exp(-iω)ᵀ ⊙ S + x̃ 1ᵀ
        z = ℓ3([Re S', Im S'])
        y = LN(z) ⊙ σ(ℓ4(x)) + ℓ5(x) ⊙ (1 - σ(ℓ4(x)))

    The decay is one step per step: no time index is kept, no exponent is ever positive, and nothing
    overflows at any length. |α| starts linearly spaced from `ln(1.79e308) / t_e - 0.01` to
    `-ln(β) / t_e`, and the periods 2π/ω from 1 to `t_e` steps. A period of 1 is no rotation at all
    in discrete time; it is kept because it is published so.

    Ablations of the paper: `input_gate=False` (NI), `output_gate=False` (NO), `context=False` (NC,
    no rotation), `learn_context=False` (FC), `decay=False` (ND), `learn_decay=False` (FD), and
    `hadamard=True` (HP: α and ω are free m × c matrices).

    Source: *Reinforcement Learning with Fast and Forgetful Memory*, Morad et al. (2023).
    """

    alpha: Float[Array, "..."]
    omega: Float[Array, "..."]
    input: Linear
    input_gate: Linear | None
    mix: Linear
    output_gate: Linear | None
    skip: Linear | None
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    decay: bool = eqx.field(static=True)
    context: bool = eqx.field(static=True)
    learn_decay: bool = eqx.field(static=True)
    learn_context: bool = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        traces: int = 32,
        contexts: int = 4,
        t_e: float = 1024.0,
        beta: float = 0.01,
        durations: tuple[float | int, float | int] | None = None,
        periods: tuple[float | int, float | int] | None = None,
        input_gate: bool = True,
        output_gate: bool = True,
        decay: bool = True,
        context: bool = True,
        learn_decay: bool = True,
        learn_context: bool = True,
        hadamard: bool = False,
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: width of `y`, at least 2.
        - `traces`, `contexts`: m and c; the state has 2 m c real numbers.
        - `t_e`: the longest time to remember, in steps.
        - `beta`: how much of a trace is left at the end of its duration.
        - `durations`: what is known of the task: after the first and the second number of steps the
          fastest and the slowest trace shall have fallen to β. Replaces the published decays.
        - `periods`: shortest and longest initial period of a context, in steps. Replaces 1 and t_e.
        - `input_gate`, `output_gate`, `decay`, `context`, `learn_decay`, `learn_context`,
          `hadamard`: the ablations above.
        """
        check_sizes(inputs=inputs, hidden=hidden, traces=traces, contexts=contexts)
        check_norm_width(hidden=hidden)
        if not 0 < beta < 1:
            raise ValueError(f"`beta` (={beta}) must be between 0 and 1.")
        if not t_e > 0:
            raise ValueError(f"`t_e` (={t_e}) must be positive.")
        for name, ends, switch, is_on in (
            ("durations", durations, "decay", decay),
            ("periods", periods, "context", context),
        ):
            if ends is not None and not 0 < ends[0] <= ends[1]:
                raise ValueError(f"`{name}` (={ends}) must be two positive numbers, in order.")
            if ends is not None and not is_on:
                raise ValueError(f"`{name}` (={ends}) must be None with `{switch}=False`.")
        fast, slow = math.log(_LARGEST) / t_e - 0.01, -math.log(beta) / t_e
        if durations is not None:
            fast, slow = (-math.log(beta) / d for d in durations)
        keys = jax.random.split(key, 5)
        alpha = jnp.linspace(fast, slow, traces)
        omega = 2 * jnp.pi / jnp.linspace(*((1.0, t_e) if periods is None else periods), contexts)
        if hadamard:
            alpha = jnp.tile(alpha[:, None], (1, contexts))
            omega = jnp.tile(omega[None], (traces, 1))
        self.alpha, self.omega = alpha, omega
        self.input = Linear(inputs, traces, key=keys[0])
        self.input_gate = Linear(inputs, traces, key=keys[1]) if input_gate else None
        self.mix = Linear(2 * traces * contexts, hidden, key=keys[2])
        self.output_gate = Linear(inputs, hidden, key=keys[3]) if output_gate else None
        self.skip = Linear(inputs, hidden, key=keys[4]) if output_gate else None
        self.inputs, self.hidden = inputs, hidden
        self.decay, self.context = decay, context
        self.learn_decay, self.learn_context = learn_decay, learn_context

    @property
    def traces(self) -> int:
        """m."""
        return self.alpha.shape[0]

    @property
    def contexts(self) -> int:
        """c."""
        return self.omega.shape[-1]

    def trace_durability(self, beta: float = 0.01) -> Float[Array, "..."]:
        """Steps after which a fraction β of each trace is left: `log β / -|α|`; infinite without
        decay.

        **Arguments:**

        - `beta`: the fraction.

        **Returns:**

        Shape `[traces]`, or `[traces, contexts]` with `hadamard`.
        """
        alpha = jnp.abs(self.alpha) if self.decay else jnp.zeros_like(self.alpha)
        return -math.log(beta) / alpha

    def context_period(self) -> Float[Array, "..."]:
        """Steps in which each context turns once: `2π / ω`; infinite without context.

        **Returns:**

        Shape `[contexts]`, or `[traces, contexts]` with `hadamard`.
        """
        return 2 * jnp.pi / (self.omega if self.context else jnp.zeros_like(self.omega))

    def recurrence_parameters(self) -> rtrl.Axes:
        """The decay of every entry; ℓ1 and ℓ2 of every trace."""
        alpha = self.alpha if self.learn_decay else jax.lax.stop_gradient(self.alpha)
        omega = self.omega if self.learn_context else jax.lax.stop_gradient(self.omega)
        r = jnp.exp(-jnp.abs(alpha)) if self.decay else jnp.ones_like(alpha)
        omega = omega if self.context else jnp.zeros_like(omega)
        if alpha.ndim == 1:
            r, omega = r[:, None], omega[None]
        gamma = to_complex(r * jnp.cos(omega), -r * jnp.sin(omega))
        return rtrl.Axes(both=gamma, rows=(self.input, self.input_gate))

    def coefficients(self, parameters: rtrl.Axes, xs: Array) -> tuple[Array, Array]:
        """`(γ, x̃ 1ᵀ)`."""
        linear, gate = parameters.rows
        drive = jax.vmap(linear)(xs)
        if gate is not None:
            drive = drive * jax.nn.sigmoid(jax.vmap(gate)(xs))
        shape = (*drive.shape, self.contexts)
        return parameters.both, jnp.broadcast_to(drive[:, :, None], shape)

    def readout(
        self, state: Complex[Array, "traces contexts"], x: Float[Array, " inputs"]
    ) -> Float[Array, " hidden"]:
        """`LN(z) ⊙ σ(ℓ4(x)) + ℓ5(x) ⊙ (1 - σ(ℓ4(x)))`."""
        z = layer_norm(self.mix(jnp.concatenate([state.real.ravel(), state.imag.ravel()])))
        if self.output_gate is None or self.skip is None:
            return z
        gate = jax.nn.sigmoid(self.output_gate(x))
        return z * gate + self.skip(x) * (1 - gate)


register("ffm", FFM)
