"""Networks as they act while their parameters stay: on caches in place of states."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
from jaxtyping import Array

import zoo
from agents.networks.inputs import Inputs, beginning


class RecurrentStepper(eqx.Module):
    """Steps of a `Recurrent` network whose memory keeps a cache; see `zoo.AbstractStepper`.

    **Attributes:**

    - `features`, `head`: those of the network.
    - `memory`: the stepper of its memory.
    """

    features: Callable[[Inputs], Array]
    memory: zoo.AbstractStepper
    head: Callable[[Array], Any]

    def init_state(self) -> Any:
        """Return the cache at the beginning of an episode."""
        return self.memory.init_cache()

    def cache(self, state: Any) -> Any:
        """Return the cache of a state."""
        return self.memory.cache(state)

    def step(self, cache: Any, inputs: Inputs, begin: Any = False) -> tuple[Any, Any]:
        """Take one step: `(cache, output)`, the output of the head."""
        inputs = beginning(inputs, begin)
        cache, y = self.memory.step(cache, self.features(inputs), inputs.begin)
        return cache, self.head(y)

    def state(self, cache: Any) -> Any:
        """Return the state in a cache."""
        return self.memory.state(cache)


class SeparateStepper(eqx.Module):
    """Steps of a `Separate` network: caches and outputs are pairs.

    **Attributes:**

    - `actor`, `critic`: the steppers of both.
    """

    actor: RecurrentStepper
    critic: RecurrentStepper

    def init_state(self) -> Any:
        """Return the caches at the beginning of an episode."""
        return self.actor.init_state(), self.critic.init_state()

    def cache(self, state: Any) -> Any:
        """Return the caches of both states."""
        return self.actor.cache(state[0]), self.critic.cache(state[1])

    def step(self, cache: Any, inputs: Inputs, begin: Any = False) -> tuple[Any, Any]:
        """Take one step: `(cache, output)`, each a pair."""
        one, policy = self.actor.step(cache[0], inputs, begin)
        other, value = self.critic.step(cache[1], inputs, begin)
        return (one, other), (policy, value)

    def state(self, cache: Any) -> Any:
        """Return the states in both caches."""
        return self.actor.state(cache[0]), self.critic.state(cache[1])
