"""How an agent chooses actions: the one thing that acting asks of it."""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from agents.mapped import mapped
from agents.networks import Inputs
from agents.networks.spaces import by_content
from agents.networks.steppers import RecurrentStepper, SeparateStepper


class Decision(eqx.Module):
    """What a behavior answers: an action, and what the algorithm wants kept beside it.

    **Attributes:**

    - `action`: elements of the action space.
    - `memo`: any pytree, such as log-probability and value; `None` for nothing.
    """

    action: Array
    memo: Any = None


class AbstractBehavior(eqx.Module):
    """Chooses actions for all environments at once; every argument has a leading axis over them."""

    @property
    def has_best(self) -> bool:
        """Whether there is a best action to take. Where there is none, evaluations draw actions."""
        return True

    @property
    def value_network(self) -> Any:
        """The network that has the value of what is seen, or of every action; `None` for none."""
        return None

    @abstractmethod
    def init_state(self) -> Any:
        """Return the memory's state at the beginning of an episode, for one environment."""

    @abstractmethod
    def __call__(self, state: Any, inputs: Inputs, key: Array | None) -> tuple[Any, Decision]:
        """Choose actions.

        **Arguments:**

        - `state`: the memory's states.
        - `inputs`: what is seen; observations as the environment gives them.
        - `key`: PRNG key to draw all actions with; without one, the best action is taken.

        **Returns:**

        `(state, decision)`.
        """

    def seen(self, inputs: Inputs) -> Inputs:
        """Return what the network sees of its inputs, for any leading axes: all, as they are."""
        return inputs

    def at_end(self, state: Any, inputs: Inputs) -> Any:
        """Return what the algorithm makes of an episode's final observation.

        Called for all environments, with the memory's states from before the reset, where one of
        any seed was truncated and not terminated; of the others it is not read. Where none was,
        zeros are kept in its place. Nothing by default.
        """
        return None

    def prepared(self) -> tuple["AbstractBehavior", Callable[[Any], Any], Callable[[Any], Any]]:
        """Return one that acts alike while its parameters stay, and may carry more than states.

        **Returns:**

        `(behavior, cache, state)`: `cache` makes what it carries of what this one carries, and
        `state` makes that of it again. Itself by default, and where it is prepared already.
        """
        same = lambda states: states  # noqa: E731
        return self, same, same


class AbstractNetworkBehavior(AbstractBehavior):
    """Acts by a network, on the caches of its memory where there are any.

    **Attributes:**

    - `network`: has `init_state`, `step` and `stepper`; see `agents.networks.Recurrent`.
    """

    network: eqx.AbstractVar[Any]

    def init_state(self) -> Any:
        return self.network.init_state()

    def prepared(self) -> tuple["AbstractBehavior", Callable[[Any], Any], Callable[[Any], Any]]:
        if isinstance(self.network, RecurrentStepper | SeparateStepper):
            return super().prepared()
        stepper = self.network.stepper()
        behavior = dataclasses.replace(self, network=stepper)

        def of_all(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
            # What has no leaves, as the state of a memoryless network, has no axis to map over.
            return lambda tree: (mapped(convert) if jax.tree.leaves(tree) else convert)(tree)

        return behavior, of_all(stepper.cache), of_all(stepper.state)


class ByChance(AbstractBehavior):
    """Draws actions uniformly, and keeps the final observations of episodes.

    Without a key, where the best action is asked for, it takes action 0: one is like another.
    """

    action_space: Any = eqx.field(static=True, converter=by_content)

    @property
    def has_best(self) -> bool:
        return False

    def init_state(self) -> tuple[()]:
        return ()

    def __call__(
        self, state: tuple[()], inputs: Inputs, key: Array | None
    ) -> tuple[tuple[()], Decision]:
        if key is None:
            return state, Decision(jnp.zeros_like(inputs.action))
        keys = jax.random.split(key, inputs.begin.shape[0])
        return state, Decision(mapped(self.action_space.sample)(keys))

    def at_end(self, state: tuple[()], inputs: Inputs) -> Any:
        return inputs.observation


class ByPolicy(AbstractNetworkBehavior):
    """Draws actions from a network's policy, and keeps their log-probability and the value.

    **Attributes:**

    - `network`: its output is `(policy, value)`; see `agents.networks.ActorCritic`.
    - `statistics`: of observations, which are normalized by them; `None` for none.
    - `reward_clip`: the network sees previous rewards clipped to ± this; `None` for as they are.
    """

    network: Any
    statistics: Any = None
    reward_clip: float | None = eqx.field(static=True, default=None)

    @property
    def value_network(self) -> Any:
        return self.network

    def __call__(self, state: Any, inputs: Inputs, key: Array | None) -> tuple[Any, Decision]:
        state, (policy, value) = mapped(self.network.step)(state, self.seen(inputs))
        action = policy.mode() if key is None else policy.sample(key)
        # As it is kept: its probability must be that of the action in the rollout.
        action = action.astype(inputs.action.dtype)
        return state, Decision(action, (policy.log_prob(action), value))

    def at_end(self, state: Any, inputs: Inputs) -> Array:
        _, (_, value) = mapped(self.network.step)(state, self.seen(inputs))
        return value

    def seen(self, inputs: Inputs) -> Inputs:
        """Return what the network sees, for any leading axes: observations normalized, rewards
        clipped."""
        if self.reward_clip is not None:
            reward = jnp.clip(inputs.reward, -self.reward_clip, self.reward_clip)
            inputs = eqx.tree_at(lambda i: i.reward, inputs, reward)
        return normalized(self.statistics, inputs)


def normalized(statistics: Any, inputs: Inputs, limit: float | None = None) -> Inputs:
    """Return inputs with observations normalized, if there are statistics, for any leading axes.

    **Arguments:**

    - `statistics`: `RunningStatistics` of observations, or `None`.
    - `limit`: where they are clipped, if not where those clip by themselves.
    """
    if statistics is None:
        return inputs
    normalize = statistics.normalize
    if limit is not None:
        normalize = partial(normalize, limit=limit)
    for _ in range(inputs.begin.ndim):
        normalize = mapped(normalize)
    return eqx.tree_at(lambda i: i.observation, inputs, normalize(inputs.observation))
