"""Trace conditioning: predict a stimulus from one that is gone before it comes."""

import functools
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from annotated_types import Interval, Le
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float, Float32, Int, Int32, PRNGKeyArray

import scan
from zoo.annotations import checked

from ..core.base import BaseEnvironment

US_STEPS = 2
CS_STEPS = 4
DISTRACTOR_STEPS = 4
MAX_DISTRACTORS = 10
MAX_INTERVAL = 10**9  # steps; with a third more they are an int32 still


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of trace conditioning; batched states have leading axes.

    `time`: steps taken. `wait`: steps until the next onset, at least 1; `awaits_us`: whether that
    is the US's, otherwise it is the CS's. `us_left`, `cs_left`, `distractors_left`: for how many
    steps, with the present one, each stimulus is still on, 0 if it is off; the last has shape
    `(num_distractors,)`. All are int32 but `awaits_us`, which is Boolean.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    wait: Any
    awaits_us: Any
    us_left: Any
    cs_left: Any
    distractors_left: Any


def _uniform(key: PRNGKeyArray, low: int, high: int) -> Int32[Array, ""]:
    """An integer from `low` to `high`, both included."""
    # The remainder of 32 random bits favors a value by at most (high - low + 1) / 2^32.
    above = jax.random.bits(key, dtype=jnp.uint32) % jnp.uint32(high - low + 1)
    return low + above.astype(jnp.int32)


class TraceConditioning(BaseEnvironment):
    r"""Predict the unconditioned stimulus (US) from the conditioned one (CS) that announces it.

    An observation is US, CS and the distractors, each 0 or 1. The CS lasts 4 steps and the US 2.
    The US begins ISI steps after the beginning of the CS, and the next CS ITI steps after the
    beginning of the US. ISI is uniform over the integers from E - ⌊E/3⌋ to E + ⌊E/3⌋, ITI over
    those from `min_iti` to `max_iti`. Distractor i (from 1) lasts 4 steps and begins with
    probability 1 / (10 i) at every step at which it was off the step before. So between CS and US
    nothing that is seen tells how long the CS is gone. Before the first CS there are ITI steps.

    There is one action, and it does nothing. The reward of a step is the US that is seen after it,
    so the value of an observation under the discount \( \gamma = 1 - 1/E \) (`discount_factor`) is
    the expectation of the target \( G_t = \sum_k \gamma^k \mathrm{US}_{t+1+k} \), and any agent
    that learns values can be used. `trace_conditioning_stream` gives observations with their
    targets. The stream never terminates; the time limit, 200,000 steps by default,
    cuts it off.

    Source: Rafiee et al., "From Eye-blinks to State Construction: Diagnostic Benchmarks for Online
    Representation Learning", 2020, as used by Elelimy et al., "Real-Time Recurrent Learning using
    Trace Units in Reinforcement Learning", NeurIPS 2024.
    """

    @checked
    def __init__(
        self,
        expected_isi: Annotated[int, Interval(ge=2, le=MAX_INTERVAL)] = 10,
        num_distractors: Annotated[int, Interval(ge=0, le=MAX_DISTRACTORS)] = MAX_DISTRACTORS,
        min_iti: Annotated[int, Interval(ge=US_STEPS, le=MAX_INTERVAL)] = 80,
        max_iti: Annotated[int, Le(MAX_INTERVAL)] = 120,
    ):
        """**Arguments:**

        - `expected_isi`: E, the mean of the steps from the beginning of the CS to that of the US;
            from 2 to 10⁹. The usual values are 10, 20 and 30.
        - `num_distractors`: from 0 to 10.
        - `min_iti`: the fewest steps from the beginning of the US to that of the next CS; at least
            2, the length of the US.
        - `max_iti`: the most; at least `min_iti`, and at most 10⁹.
        """
        self.expected_isi = expected_isi
        self.num_distractors = num_distractors
        self.min_iti = min_iti
        self.max_iti = max_iti
        if self.max_iti < self.min_iti:
            raise ValueError(
                f"`max_iti` (={max_iti}) must be at least `min_iti` (={self.min_iti})."
            )
        super().__init__(
            observations=spaces.Box(0.0, 1.0, (2 + self.num_distractors,), jnp.float32),
            actions=spaces.Discrete(1),
            limit=200_000,
        )

    @property
    def isi_bounds(self) -> tuple[int, int]:
        """The least and the most steps from the beginning of the CS to that of the US."""
        third = self.expected_isi // 3
        return self.expected_isi - third, self.expected_isi + third

    @property
    def discount_factor(self) -> float:
        """The discount of the target, γ = 1 - 1 / E."""
        return 1 - 1 / self.expected_isi

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Answer no: the stream is endless."""
        return jnp.bool_(False)

    def reset_env(
        self, key: PRNGKeyArray, params: EnvParams
    ) -> tuple[Float32[Array, " stimuli"], EnvState]:
        """Begin a stream with an interval without CS and US; distractors may be on."""
        key_wait, key_distractors = jax.random.split(key)
        off = jnp.zeros((self.num_distractors,), jnp.int32)
        state = EnvState(
            time=jnp.int32(0),
            wait=_uniform(key_wait, self.min_iti, self.max_iti),
            awaits_us=jnp.bool_(False),
            us_left=jnp.int32(0),
            cs_left=jnp.int32(0),
            distractors_left=self._distract(key_distractors, off),
        )
        return self._observation(state), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Float32[Array, " stimuli"], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Go on by one step."""
        key_isi, key_iti, key_distractors = jax.random.split(key, 3)
        wait = state.wait - 1
        us_begins = (wait == 0) & state.awaits_us
        cs_begins = (wait == 0) & ~state.awaits_us
        wait = jnp.where(us_begins, _uniform(key_iti, self.min_iti, self.max_iti), wait)
        wait = jnp.where(cs_begins, _uniform(key_isi, *self.isi_bounds), wait)
        state = EnvState(
            time=state.time + 1,
            wait=wait,
            awaits_us=(state.awaits_us & ~us_begins) | cs_begins,
            us_left=jnp.where(us_begins, US_STEPS, jnp.maximum(state.us_left - 1, 0)),
            cs_left=jnp.where(cs_begins, CS_STEPS, jnp.maximum(state.cs_left - 1, 0)),
            distractors_left=self._distract(key_distractors, state.distractors_left),
        )
        observation = self._observation(state)
        return observation, state, observation[0], self.is_terminated(state, params), {}

    def _distract(
        self, key: PRNGKeyArray, left: Int32[Array, " distractors"]
    ) -> Int32[Array, " distractors"]:
        """How long the distractors are on, one step later."""
        number = jnp.arange(1, self.num_distractors + 1, dtype=jnp.float32)
        begins = jax.random.uniform(key, left.shape, jnp.float32) < 1 / (10 * number)
        return jnp.where((left == 0) & begins, DISTRACTOR_STEPS, jnp.maximum(left - 1, 0))

    def _observation(self, state: EnvState) -> Float32[Array, " stimuli"]:
        left = jnp.concatenate([jnp.stack([state.us_left, state.cs_left]), state.distractors_left])
        return (left > 0).astype(jnp.float32)


def trace_conditioning_targets(
    us: Float[Array, "time *batch"], discount: float
) -> Float[Array, "time *batch"]:
    r"""Compute the returns \( G_t = \sum_{k \ge 0} \gamma^k \mathrm{US}_{t+1+k} \), in hindsight.

    What comes after the end counts as 0, so the last few multiples of \( 1 / (1 - \gamma) \) steps
    have targets that are too small; `trace_conditioning_stream` avoids that.

    **Arguments:**

    - `us`: the US at every step, the first component of the observations.
    - `discount`: γ, at least 0 and less than 1.

    **Returns:**

    The target of every step.

    **Raises:**

    `ValueError` if `discount` breaks its rule.
    """
    if not 0 <= discount < 1:
        raise ValueError(f"`discount` (={discount}) must be at least 0 and less than 1.")
    following = jnp.concatenate([us[1:], jnp.zeros_like(us[:1])])
    return scan.linear(jnp.asarray(discount, us.dtype), following, reverse=True)


@functools.partial(jax.jit, static_argnames=("env", "steps"))
def trace_conditioning_stream(
    env: TraceConditioning, key: PRNGKeyArray, steps: int
) -> tuple[Float32[Array, "time stimuli"], Float32[Array, " time"]]:
    """Observations of an endless stream from its beginning, with the targets of all of them.

    The stream is continued behind its end until discounting leaves less than 1e-6 of the targets'
    largest error.

    **Arguments:**

    - `env`: the environment, which gives the discount too.
    - `steps`: length of the stream; at least 1.

    **Returns:**

    The observations and the targets G.

    **Raises:**

    `ValueError` if `steps` is less than 1.
    """
    if steps < 1:
        raise ValueError(f"`steps` (={steps}) must be at least 1.")
    key_reset, key_steps = jax.random.split(key)
    beyond = 14 * env.expected_isi  # γ^(14 E) < e^-14 < 1e-6
    params = env.default_params
    first, state = env.reset_env(key_reset, params)

    def step(state: EnvState, number: Int32[Array, ""]):
        key = jax.random.fold_in(key_steps, number)
        observation, state, *_ = env.step_env(key, state, 0, params)
        return state, observation

    _, rest = jax.lax.scan(step, state, jnp.arange(steps + beyond - 1, dtype=jnp.int32))
    observations = jnp.concatenate([first[None], rest])
    targets = trace_conditioning_targets(observations[:, 0], env.discount_factor)
    return observations[:steps], targets[:steps]


def mean_squared_return_error(
    prediction: Float[Array, "time *batch"], target: Float[Array, "time *batch"]
) -> Float[Array, "*batch"]:
    """MSRE: the mean over time of the squared difference of predictions and returns.

    **Arguments:**

    - `prediction`: what was predicted at every step.
    - `target`: the returns, as from `trace_conditioning_stream`.

    **Returns:**

    The mean, one for each element of the batch.
    """
    return jnp.mean((prediction - target) ** 2, axis=0)
