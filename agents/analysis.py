"""What a memory remembers: observations that a value depends on, traces, and eigenvalues."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

import zoo
from agents.envs import episode_steps
from agents.networks import ActorCritic, Inputs
from agents.rollout import Actor
from agents.spaces import width
from rtrl.dense import from_real_vector, to_real_vector

_MOST_STEPS = 100_000

Sensitivities = Sequence[Any] | np.ndarray | Array


def value_sensitivity(
    network: ActorCritic, inputs: Inputs, *, step: Int[Array, ""] | int = -1, state: Any = None
) -> Float[Array, " time"]:
    """How much the value at one step depends on each observation: `‖∂V_n / ∂o_i‖₂`.

    The derivative is taken with respect to what the network reads of an observation: the numbers of
    a box (normalized where the agent does so), the one-hot vectors of discrete parts. It goes
    through encoder, memory and critic; previous actions and rewards, where they are inputs, are
    constants. Nothing crosses `begin`: observations of earlier episodes have exactly zero, and so
    have those after the step.

    **Arguments:**

    - `network`: the agent's network.
    - `inputs`: what it saw; every leaf has a leading time axis.
    - `step`: the n of `V_n`, an index into time; may be traced. The last by default.
    - `state`: the memory's state before the first step; that of an episode's beginning by default.

    **Returns:**

    Shape `[time]`, entry i for the observation `o_i`.

    Source: *Recurrent Reinforcement Learning with Memoroids*, Morad et al. (2024), figure 3, with
    the value of a policy in place of `Q`.
    """
    size = width(network.observation_space)
    features = jax.vmap(network.features)(inputs)
    start = network.memory.init_state() if state is None else state

    def value(observations):
        xs = jax.vmap(network.embed)(jnp.concatenate([observations, features[:, size:]], axis=1))
        _, ys = network.memory.scan(start, xs, inputs.begin)
        return network.heads(ys[step])[1]

    return jnp.linalg.norm(jax.grad(value)(features[:, :size]), axis=1)


def episode_sensitivities(
    actor: Actor,
    network: ActorCritic,
    *,
    episodes: int,
    max_steps: int | None = None,
    greedy: bool = True,
    key: Array,
) -> list[np.ndarray]:
    """Play episodes, and see what the value at the end of each depends on.

    **Arguments:**

    - `actor`: the environment.
    - `network`: chooses the actions.
    - `episodes`: number of episodes, all played at once.
    - `max_steps`: where an episode is cut; the environment's own limit by default, which must then
      be at most 100,000.
    - `greedy`: take the most probable action; otherwise sample.
    - `key`: PRNG key.

    **Returns:**

    For each episode `value_sensitivity` of its last step, an array of the episode's length.

    **Raises:**

    `ValueError` when `episodes` or `max_steps` is less than 1, or `max_steps` is missing where
    episodes may be longer than what is played by default.
    """
    limit = episode_steps(actor.env, actor.params) if max_steps is None else max_steps
    for name, count in (("episodes", episodes), ("max_steps", limit)):
        if count < 1:
            raise ValueError(f"`{name}` (={count}) must be at least 1.")
    if max_steps is None and limit > _MOST_STEPS:
        raise ValueError(
            f"`max_steps` (=None) must be given: an episode may have {limit:,} steps, and no more "
            f"than {_MOST_STEPS:,} are played by default."
        )
    sensitivities, lengths = _play(actor, network, key, episodes, limit, greedy)
    return [np.asarray(s)[:n] for s, n in zip(sensitivities, lengths, strict=True)]


@eqx.filter_jit
def _play(actor, network, key, episodes, limit, greedy):
    """Sensitivities `[episodes, limit]` and the episodes' lengths."""
    reset_key, key = jax.random.split(key)

    def step(runner, key):
        runner, step = actor.step(network, runner, key, greedy=greedy)
        return runner, (step.inputs, step.terminated | step.truncated)

    runner = actor.reset(network, episodes, key=reset_key)
    _, (inputs, done) = jax.lax.scan(step, runner, jax.random.split(key, limit))
    length = jnp.where(jnp.any(done, 0), jnp.argmax(done, 0) + 1, limit)
    of_one = lambda inputs, n: value_sensitivity(network, inputs, step=n - 1)  # noqa: E731
    return jax.vmap(of_one, (1, 0))(inputs, length), length


def relative_sensitivity(sensitivities: Sensitivities) -> np.ndarray:
    """The share of each observation in the sensitivity, by age: the mean over episodes.

    **Arguments:**

    - `sensitivities`: an array over time, as `value_sensitivity` returns it, or several of them of
      any lengths. Each is divided by its sum first, so that every episode counts alike; those that
      are zero throughout do not count.

    **Returns:**

    Shape `[longest]`; entry k is the share of the observation of k steps before the value. They add
    up to 1, or are all zero where no value depends on any observation.

    **Raises:**

    `ValueError` where there is none, or one is empty or has not one axis.
    """
    single = isinstance(sensitivities, (np.ndarray, jax.Array)) and sensitivities.ndim == 1
    arrays = [np.asarray(s, float) for s in ([sensitivities] if single else sensitivities)]
    if not arrays or any(a.ndim != 1 or a.size == 0 for a in arrays):
        shapes = [a.shape for a in arrays]
        raise ValueError(f"`sensitivities` (shapes {shapes}) must be arrays over time, at least 1.")
    shares = np.zeros((len(arrays), max(map(len, arrays))))
    for row, array in zip(shares, arrays, strict=True):
        row[: len(array)] = array[::-1] / (array.sum() or 1.0)
    counted = shares.any(axis=1)
    return shares[counted].mean(axis=0) if counted.any() else shares[0]


def cumulative_sensitivity(sensitivities: Sensitivities) -> np.ndarray:
    """The share of the sensitivity that the newest observations carry together.

    **Arguments:**

    - `sensitivities`: see `relative_sensitivity`.

    **Returns:**

    Shape `[longest + 1]`; entry n is the share of the n newest observations. It rises from 0 to 1,
    or stays 0 where no value depends on any observation.

    **Raises:**

    See `relative_sensitivity`.
    """
    return np.concatenate([[0.0], np.cumsum(relative_sensitivity(sensitivities))])


def value_memory_length(sensitivities: Sensitivities, fraction: float = 0.9) -> int:
    """How many of the newest observations carry `fraction` of the sensitivity of the value.

    In the paper the value memory length is the smallest number of newest observations from which
    the value can be computed; of a network with a recurrent memory that is the whole episode, so a
    fraction of the sensitivity stands for it here. To be compared with the *reward memory length*,
    a property of the environment: the smallest n such that the expected reward of a step is a
    function of the n newest observations and the action. It is 1 where an observation tells the
    whole state, and k for RepeatPrevious with its lag of k - 1. A value memory that is much longer
    says that the network heeds what it could ignore, and that credit has to reach as far.

    **Arguments:**

    - `sensitivities`: see `relative_sensitivity`.
    - `fraction`: in (0, 1).

    **Returns:**

    The smallest n whose n newest observations carry at least that fraction; 0 where no value
    depends on any observation.

    **Raises:**

    `ValueError` for a fraction outside (0, 1); and see `relative_sensitivity`.

    Source: *Recurrent Reinforcement Learning with Memoroids*, Morad et al. (2024).
    """
    if not 0 < fraction < 1:
        raise ValueError(f"`fraction` (={fraction}) must be between 0 and 1.")
    curve = cumulative_sensitivity(sensitivities)
    # Shares of equal size add up to the fraction but for rounding.
    return int(np.argmax(curve >= fraction - 1e-9)) if curve[-1] else 0


def trace_durability(
    cells: zoo.AbstractMemory | Sequence[zoo.AbstractMemory], beta: float = 0.01
) -> np.ndarray:
    """How long the traces of Fast and Forgetful Memory last: `log β / -|α|` steps.

    **Arguments:**

    - `cells`: one `zoo.FFM`, or the same at several times of the training.
    - `beta`: the fraction of a trace that is left at its end, in (0, 1).

    **Returns:**

    Shape `[traces]`, or `[traces, contexts]` with `hadamard`; a leading axis over cells where there
    are several. Infinite without decay.

    **Raises:**

    `ValueError` for a `beta` outside (0, 1); `TypeError` for another cell.

    Source: *Reinforcement Learning with Fast and Forgetful Memory*, Morad et al. (2023), figure 6.
    """
    if not 0 < beta < 1:
        raise ValueError(f"`beta` (={beta}) must be between 0 and 1.")
    return _of_each(cells, lambda cell: cell.trace_durability(beta))


def context_period(cells: zoo.AbstractMemory | Sequence[zoo.AbstractMemory]) -> np.ndarray:
    """The periods of the contexts of Fast and Forgetful Memory: `2π / ω` steps.

    **Arguments:**

    - `cells`: one `zoo.FFM`, or the same at several times of the training.

    **Returns:**

    Shape `[contexts]`, or `[traces, contexts]` with `hadamard`; a leading axis over cells where
    there are several. Infinite without context. Negative where a context has come to turn the
    other way.

    **Raises:**

    `TypeError` for another cell.

    Source: *Reinforcement Learning with Fast and Forgetful Memory*, Morad et al. (2023), figure 6.
    """
    return _of_each(cells, lambda cell: cell.context_period())


def _of_each(cells, function):
    single = isinstance(cells, zoo.AbstractMemory)
    found = []
    for cell in [cells] if single else cells:
        if not isinstance(cell, zoo.FFM):
            raise TypeError(
                f"`cells` (a {type(cell).__name__}) must be a zoo.FFM: others have no traces."
            )
        found.append(np.asarray(function(cell)))
    return found[0] if single else np.stack(found)


def eigenvalues(
    memories: zoo.AbstractMemory | Sequence[zoo.AbstractMemory],
    *,
    state: Any = None,
    x: Float[Array, " inputs"] | None = None,
) -> np.ndarray:
    """The eigenvalues of a recurrence: what a step multiplies a small change of the state by.

    Their modulus says how long a change lasts, their angle how it turns, in radians per step.
    Linear cells whose entries do not act on each other have them as coefficients: the `a` of
    `h' = a ⊙ h + b`, one per entry of the state in the order of the units; of a complex entry the
    same recurrence over real numbers has the conjugate as well. For every other memory they are
    those of the Jacobian of one step in the real numbers of the state, in no particular order.

    **Arguments:**

    - `memories`: one memory, or the same at several times of the training.
    - `state`: where the Jacobian is taken; the state of an episode's beginning by default.
    - `x`: the input there, shape `[inputs]`; zeros by default.

    **Returns:**

    Complex, shape `[n]`; a leading axis over memories where there are several.

    Source: *Real-Time Recurrent Learning using Trace Units in Reinforcement Learning*, Elelimy et
    al. (2024), appendix A.3.
    """
    if isinstance(memories, zoo.AbstractMemory):
        return _eigenvalues(memories, state, x)
    return np.stack([_eigenvalues(memory, state, x) for memory in memories])


def _eigenvalues(memory, state, x):
    state = memory.init_state() if state is None else state
    x = jnp.zeros(memory.inputs) if x is None else x
    if isinstance(memory, (zoo.AbstractTimeInvariantCell, zoo.AbstractLinearCell)):
        return _complex(memory.coefficients(x)[0])
    if isinstance(memory, zoo.AbstractTwoAxisCell):
        a, b = memory.coefficients(memory.recurrence_parameters(), x[None])
        return _complex(jnp.broadcast_to(a if a.ndim < b.ndim else a[0], b.shape[1:]))

    def step(numbers):
        return to_real_vector(memory.step(from_real_vector(numbers, state), x)[0])

    return _complex(np.linalg.eigvals(np.asarray(jax.jacobian(step)(to_real_vector(state)))))


def _complex(values):
    return np.asarray(values).ravel() + 0j
