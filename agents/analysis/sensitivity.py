"""Which past observations a value depends on."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from agents.acting import Actor, Policy
from agents.acting.contract import check_one
from agents.envs import episode_steps
from agents.networks import Inputs, Recurrent
from agents.networks.recurrent import Separate
from agents.networks.spaces import width
from agents.settings import check_kind
from zoo.annotations import Count, Fraction, checked, fitted
from zoo.parts.checks import check_key, shown

_MOST_STEPS = 100_000

Sensitivities = Sequence[Any] | np.ndarray | Array


def value_sensitivity(
    network: Recurrent | Separate,
    inputs: Inputs,
    *,
    step: Int[Array, ""] | int = -1,
    state: Any = None,
) -> Float[Array, " time"]:
    """Return how much the value at one step depends on each observation: `‖∂V_n / ∂o_i‖₂`.

    The derivative is taken with respect to what the network reads of an observation: the numbers of
    a box (normalized where the agent does so), the one-hot vectors of discrete parts. It goes
    through encoder, memory and critic; previous actions and rewards, where they are inputs, are
    constants. Nothing crosses `begin`: observations of earlier episodes have exactly zero, and so
    have later ones.

    **Arguments:**

    - `network`: of an actor and a critic, together or apart, of a value, or of action values, the
      highest of which is then the value.
    - `inputs`: what it saw; every leaf has a leading time axis.
    - `step`: the n of `V_n`, an index into time; may be traced. The last by default.
    - `state`: the state, of the critic's memory, before the first step; an episode's beginning by
      default.

    **Returns:**

    Shape `[time]`, entry i for the observation `o_i`.

    **Raises:**

    `ValueError` for a `step` that the inputs do not have, unless it is traced; `TypeError` for one
    that is no whole number, for another network, and for inputs that are none.

    Source: *Recurrent Reinforcement Learning with Memoroids*, Morad et al. (2024), figure 3.
    """
    of_a_policy = "a network, such as `policy.behavior.network`"
    check_kind((Recurrent, Separate), of_a_policy, network=network)
    check_kind((Inputs,), "agents.networks.Inputs", inputs=inputs)
    check_one("step", step, [np.integer], "a whole number")
    if isinstance(network, Separate):
        network = network.critic
    features = network.features
    size, steps = width(features.observation_space), len(inputs.begin)
    if not isinstance(step, Tracer) and not -steps <= step < steps:
        raise ValueError(f"`step` (={step}) must be in {-steps} … {steps - 1}: there are {steps}.")
    numbers = jax.vmap(features.numbers)(inputs)
    start = network.init_state() if state is None else state

    def value(observations):
        xs = jax.vmap(features.embed)(jnp.concatenate([observations, numbers[:, size:]], axis=1))
        _, ys = network.memory.scan(start, xs, inputs.begin)
        found = network.head(ys[step])
        return jnp.max(found[1] if isinstance(found, tuple) else found)

    return jnp.linalg.norm(jax.grad(value)(numbers[:, :size]), axis=1)


@checked
def episode_sensitivities(
    actor: Actor,
    policy: Policy,
    *,
    episodes: Count,
    max_steps: Count | None = None,
    greedy: bool = True,
    key: Array,
) -> list[np.ndarray]:
    """Play episodes, and see what the value at the end of each depends on.

    **Arguments:**

    - `actor`: the environment.
    - `policy`: chooses the actions, and has the value: in the network that it acts by, as of PPO,
      R2AC, DQN, PQN and StreamingQ, or beside random actions, as of StreamingTD.
    - `episodes`: number of episodes, all played at once.
    - `max_steps`: where an episode is cut; the environment's own limit by default, which must then
      be at most 100,000.
    - `greedy`: take the best action; otherwise draw it.

    **Returns:**

    For each episode `value_sensitivity` of its last step, an array of the episode's length.

    **Raises:**

    `ValueError` when `episodes` or `max_steps` is less than 1, `max_steps` is missing where
    episodes may be longer, or the policy is of other spaces; `TypeError` for a policy that does not
    have the value, and an argument of another kind.
    """
    check_key(key)
    policy.check_spaces(actor.env, actor.params)
    if policy.behavior.value_network is None:
        raise TypeError(
            f"`policy` (of {type(policy.behavior).__name__}) must be one that has the value as "
            "well, as of agents.PPO, R2AC, DQN, PQN, StreamingQ and StreamingTD: a critic beside "
            "the policy is no part of it."
        )
    limit = episode_steps(actor.env, actor.params) if max_steps is None else max_steps
    if max_steps is None and limit > _MOST_STEPS:
        raise ValueError(
            f"`max_steps` (=None) must be given: an episode may have {limit:,} steps, and no more "
            f"than {_MOST_STEPS:,} are played by default."
        )
    sensitivities, lengths = _play(actor, policy.behavior, key, episodes, limit, greedy)
    return [np.asarray(s)[:n] for s, n in zip(sensitivities, lengths, strict=True)]


@eqx.filter_jit
def _play(actor, behavior, key, episodes, limit, greedy):
    """Sensitivities `[episodes, limit]` and the episodes' lengths."""
    reset_key, key = jax.random.split(key)

    def step(state, key):
        state, step = actor.step(behavior, state, key, greedy=greedy)
        return state, (behavior.seen(step.inputs), step.done)

    start = actor.reset(behavior, episodes, key=reset_key)
    _, (inputs, done) = jax.lax.scan(step, start, jax.random.split(key, limit))
    length = jnp.where(jnp.any(done, 0), jnp.argmax(done, 0) + 1, limit)
    network = behavior.value_network
    of_one = lambda inputs, n: value_sensitivity(network, inputs, step=n - 1)  # noqa: E731
    return jax.vmap(of_one, (1, 0))(inputs, length), length


def relative_sensitivity(sensitivities: Sensitivities) -> np.ndarray:
    """Return the share of each observation in the sensitivity, by age: the mean over episodes.

    **Arguments:**

    - `sensitivities`: an array over time, as `value_sensitivity` returns it, or several of them of
      any lengths. Each is divided by its sum first, so that every episode counts alike; those that
      are zero throughout do not count.

    **Returns:**

    Shape `[longest]`; entry k is the share of the observation of k steps before the value.

    **Raises:**

    `ValueError` where there is none, or one is empty, has not one axis, or a number in it that is
    negative or not finite; `TypeError` for what is no array and no list of them, or not of numbers.
    """
    kinds = Sequence, np.ndarray, jax.Array
    check_kind(kinds, "an array over time, or a list of them", sensitivities=sensitivities)
    single = isinstance(sensitivities, (np.ndarray, jax.Array)) and sensitivities.ndim < 2
    given = [sensitivities] if single else sensitivities
    arrays = [as_numbers("sensitivities", s, float) for s in given]
    if not arrays or any(a.ndim != 1 or a.size == 0 for a in arrays):
        shapes = [a.shape for a in arrays]
        raise ValueError(f"`sensitivities` (shapes {shapes}) must be arrays over time, at least 1.")
    numbers = np.concatenate(arrays)
    if wrong := np.count_nonzero(~(np.isfinite(numbers) & (numbers >= 0))):
        raise ValueError(
            f"`sensitivities` must be finite and at least 0, which {wrong} of {numbers.size} "
            "numbers are not."
        )
    shares = np.zeros((len(arrays), max(map(len, arrays))))
    for row, array in zip(shares, arrays, strict=True):
        row[: len(array)] = array[::-1] / (array.sum() or 1.0)
    counted = shares.any(axis=1)
    return shares[counted].mean(axis=0) if counted.any() else shares[0]


def cumulative_sensitivity(sensitivities: Sensitivities) -> np.ndarray:
    """Return the share of the sensitivity that the newest observations carry together.

    Entry n, of `longest + 1`, is the share of the n newest observations: it rises from 0 to 1, or
    stays 0 where no value depends on any observation. See `relative_sensitivity` for argument and
    errors.
    """
    return np.concatenate([[0.0], np.cumsum(relative_sensitivity(sensitivities))])


def value_memory_length(sensitivities: Sensitivities, fraction: float = 0.9) -> int:
    """Return how many of the newest observations carry `fraction` of the sensitivity of the value.

    In the paper the value memory length is the smallest number of newest observations from which
    the value can be computed; of a recurrent network that is the whole episode, so a fraction of
    the sensitivity stands for it. To be compared with the *reward memory length* of the
    environment: the smallest n such that the expected reward of a step is a function of the n
    newest observations and the action; k for RepeatPrevious. A value memory that is much longer
    says that the network heeds what it could ignore, and that credit has to reach as far. It is 0
    where no value depends on any observation.

    **Raises:**

    `ValueError` for a fraction outside (0, 1), `TypeError` for what is no number; and see
    `relative_sensitivity`.

    Source: *Recurrent Reinforcement Learning with Memoroids*, Morad et al. (2024).
    """
    fraction = fitted("fraction", fraction, Fraction)
    curve = cumulative_sensitivity(sensitivities)
    # Shares of equal size add up to the fraction but for rounding.
    return int(np.argmax(curve >= fraction * (1 - 1e-9))) if curve[-1] else 0


def as_numbers(name: str, values: Any, kind: type[float] | type[complex]) -> np.ndarray:
    """Return an array of Python's own numbers; `TypeError` for what is none of the kind."""
    found = np.asarray(values)
    if not np.can_cast(found.dtype, kind, "same_kind"):
        real = "real " if kind is float else ""
        raise TypeError(f"`{name}` (={shown(values)}) must be {real}numbers.")
    return found.astype(kind)
