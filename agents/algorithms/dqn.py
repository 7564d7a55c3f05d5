"""Deep Q-learning with a memory, from whole episodes end to end or from segments."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

import zoo
from agents.acting import ByValues, Policy
from agents.acting.values import linear_fall
from agents.agent import Metrics
from agents.learning.losses import masked_mean
from agents.learning.tape import Sample
from agents.learning.targets import bootstrapped, copied, next_action_value, polyak
from agents.networks import Recurrent, q_network
from agents.networks.values import check_discrete, value_of
from agents.off_policy import AbstractOffPolicy
from zoo.annotations import Count, Share


class Learner(eqx.Module):
    """What DQN learns: φ, the `target`, follows θ, the `network`."""

    network: Recurrent
    target: Recurrent
    optimizer: PyTree


@dataclass(frozen=True, kw_only=True)
class DQN(AbstractOffPolicy):
    r"""Deep Q-learning of a network with a memory, from replay.

    ```python
    dqn = agents.DQN(env="RepeatFirstEasy", memory=zoo.spec("lru", hidden=64))
    state, report = jax.jit(dqn.iterate)(dqn.init(key=jax.random.key(0)))
    ```

    Both networks read T + 1 observations in one pass, so that the value after a step comes from the
    state that this step left: \( y_t = r_t + \gamma (1 - d_t) Q_\phi(o_{t+1}, \mathrm{argmax}_a
    Q_\theta(o_{t+1}, a)) \), where \( d \) says that the episode was terminated. The loss is the
    mean of Huber's over the steps drawn, whichever way they were drawn.

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.

    Source: Mnih et al. (2015), *Human-Level Control through Deep Reinforcement Learning*; on a
    tape: Morad et al. (2024), *Recurrent Reinforcement Learning with Memoroids*; from stored states
    and with burn-in: Kapturowski et al. (2019), *Recurrent Experience Replay in Distributed
    Reinforcement Learning*.
    """

    double: bool = True
    """Whether the online network chooses the action that the target network values."""
    dueling: bool = True
    """Whether values are a state's value and the actions' advantages."""
    epsilon: Share = 0.2
    """Share of random actions when learning starts."""
    epsilon_end: Share = 0.01
    """The same at the end of its linear fall."""
    epsilon_steps: Count = 200_000
    """Environment steps over which it falls."""

    @classmethod
    def presets(cls) -> Mapping[str, Mapping[str, Any]]:
        """Name settings of papers.

        `memoroids` has those that Morad et al. share between tasks, with RepeatFirst's own. There
        an episode is followed by an update; here 51 steps are, which is RepeatFirstEasy's episode,
        and 5,000 random episodes and as many in which ε falls are so many steps.
        """
        memoroids = {
            "memory": zoo.spec("ffm", hidden=256, traces=64, contexts=4),
            "num_envs": 1,
            "rollout_length": 51,
            "updates": 1,
            "replay_steps": 1_000_000,
            "warm_up": 255_000,
            "batch_steps": 1000,
            "sampling": "tape",
            "learning_rate": 1e-4,
            "rate_warm_up": 200,
            "max_grad_norm": 0.01,
            "discount": 0.99,
            "target_kept": 0.995,
            "epsilon": 0.2,
            "epsilon_end": 0.01,
            "epsilon_steps": 255_000,
            "encoder_size": 256,
            "head_size": 256,
            "head_layers": 2,
            "layer_norm": True,
            "previous_action": True,
            "double": True,
            "dueling": True,
        }
        return {"memoroids": memoroids}

    def _check_own(self) -> None:
        check_discrete(self.spaces[1], self.env_name)

    def network(self, *, key: Array) -> Recurrent:
        """Return a fresh network."""
        return q_network(
            *self.spaces,
            self.memory,
            encoder_size=self.encoder_size,
            head_size=self.head_size,
            head_layers=self.head_layers,
            layer_norm=self.layer_norm,
            dueling=self.dueling,
            previous_action=self._reads_action,
            previous_reward=self.previous_reward,
            key=key,
        )

    def policy(self, learner: Learner) -> Policy:
        behavior = ByValues(learner.network, jnp.float32(self.epsilon_end))
        return Policy(behavior, *self.spaces)

    def _new_learner(self, *, key: Array) -> Learner:
        network = self.network(key=key)
        return Learner(network, copied(network), self._fresh(network))

    def _exploring(self, learner: Learner, steps: Array) -> ByValues:
        return ByValues(learner.network, self.share(steps))

    def share(self, steps: Int[Array, ""]) -> Float[Array, ""]:
        """Return ε after so many environment steps: 1 before learning, then it falls."""
        learning = steps - self.warm_up
        share = linear_fall(learning, self.epsilon, self.epsilon_end, self.epsilon_steps)
        return jnp.where(learning < 0, jnp.float32(1), share)

    def _learned(self, learner: Learner, sample: Sample, key: Array) -> tuple[Learner, Metrics]:
        target = self._along(learner.target, sample)
        network, optimizer, metrics = self._descend(
            lambda network: self._loss(network, target, sample), learner.network, learner.optimizer
        )
        follows = polyak(learner.target, network, kept=self.target_kept)
        return Learner(network, follows, optimizer), metrics

    def _loss(
        self, network: Recurrent, target: Float[Array, "rows sequence actions"], sample: Sample
    ) -> tuple[Array, Metrics]:
        """The loss on a sample, given the target network's values along it."""
        rows, values = self._rows(sample), self._along(network, sample)
        following = next_action_value(values[1:], target[1:], double=self.double)
        wanted = bootstrapped(rows.reward, rows.terminated, following, discount=self.discount)
        taken = value_of(values[:-1], rows.action)
        error = taken - jax.lax.stop_gradient(wanted)
        loss = masked_mean(optax.huber_loss(error), sample.mask)
        return loss, {"loss": loss, "value": masked_mean(taken, sample.mask)}
