"""Soft actor-critic with separate memories for actor and critics, from replay of sequences."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from agents.agent import Metrics
from agents.learning.losses import masked_mean
from agents.learning.tape import Sample
from agents.learning.targets import bootstrapped, copied, polyak
from agents.networks import Recurrent
from agents.networks.continuous import (
    critics,
    middle_and_half,
    squashed_policy,
    values_along,
)
from agents.off_policy import AbstractActorCritic
from zoo.annotations import Positive


class Learner(eqx.Module):
    """What SAC learns; each of the three parts has an optimizer of its own."""

    actor: Recurrent
    critic: Recurrent
    target: Recurrent
    log_temperature: Float[Array, ""]
    optimizers: tuple[PyTree, PyTree, PyTree]


@dataclass(frozen=True, kw_only=True)
class SAC(AbstractActorCritic):
    r"""Soft actor-critic of networks with memories, for actions in a box.

    ```python
    sac = agents.SAC(env="PositionOnlyPendulumEasy", memory=zoo.spec("gru", hidden=32))
    state, report = jax.jit(sac.iterate)(sac.init(key=jax.random.key(0)))
    ```

    Actor and critics have memories of their own. The critics learn towards \( y_t = r_t + \gamma (1
    - d_t) (\min_i Q_{\phi_i}(h_{t+1}, a') - \alpha \log \pi(a')) \) with \( a' \sim \pi \), the
    actor to maximize \( \min_i Q_i(h_t, a) - \alpha \log \pi(a) \). An action enters the critics
    behind their memory, so that the actor's gradient does not pass through it. The temperature α
    keeps the policy's entropy at `target_entropy`.

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.

    Source: Haarnoja et al. (2018), *Soft Actor-Critic Algorithms and Applications*; with memories:
    Ni et al. (2022), *Recurrent Model-Free RL Can Be a Strong Baseline for Many POMDPs*.
    """

    temperature: Positive = 0.1
    """α at the start."""
    target_entropy: float | None = None
    """Entropy that the policy is kept at, in nats; by default that of -1 for each number of an
    action in a box from -1 to 1."""

    @property
    def _entropy(self) -> Float[Array, ""]:
        if self.target_entropy is not None:
            return jnp.asarray(self.target_entropy, float)
        _, half = middle_and_half(self.spaces[1])
        return jnp.sum(jnp.log(half) - 1)

    def _new_learner(self, *, key: Array) -> Learner:
        actor_key, critic_key = jax.random.split(key)
        actor, critic = (
            self._new_network(squashed_policy, key=actor_key),
            self._new_network(critics, key=critic_key),
        )
        log_temperature = jnp.log(jnp.asarray(self.temperature, float))
        optimizers = self._fresh(actor), self._fresh(critic), self._fresh(log_temperature)
        return Learner(actor, critic, copied(critic), log_temperature, optimizers)

    def _learned(self, learner: Learner, sample: Sample, key: Array) -> tuple[Learner, Metrics]:
        critic_key, actor_key = jax.random.split(key)
        actor_optimizer, critic_optimizer, temperature_optimizer = learner.optimizers
        temperature = jnp.exp(learner.log_temperature)
        wanted = self._target(learner, sample, critic_key)
        critic, critic_optimizer, critic_metrics = self._descend(
            lambda critic: self._critic_loss(critic, wanted, sample),
            learner.critic,
            critic_optimizer,
        )
        actor, actor_optimizer, actor_metrics = self._descend(
            lambda actor: self._actor_loss(actor, critic, temperature, sample, actor_key),
            learner.actor,
            actor_optimizer,
        )
        entropy = actor_metrics["entropy"]

        def temperature_loss(log_temperature: Array) -> tuple[Array, Metrics]:
            return log_temperature * (entropy - self._entropy), {}

        log_temperature, temperature_optimizer, _ = self._descend(
            temperature_loss, learner.log_temperature, temperature_optimizer
        )
        learner = Learner(
            actor,
            critic,
            polyak(learner.target, critic, kept=self.target_kept),
            log_temperature,
            (actor_optimizer, critic_optimizer, temperature_optimizer),
        )
        return learner, critic_metrics | actor_metrics | {"temperature": temperature}

    def _target(
        self, learner: Learner, sample: Sample, key: Array
    ) -> Float[Array, "time sequence"]:
        """What the critics' values are learned towards."""
        rows, following = self._rows(sample), lambda tree: jax.tree.map(lambda x: x[1:], tree)
        policy = following(self._along(learner.actor, sample))
        action, log_prob = policy.sample_and_log_prob(key)
        read = following(self._along(learner.target, sample))
        value = jnp.min(values_along(learner.target.head, read, action), axis=-1)
        soft = value - jnp.exp(learner.log_temperature) * log_prob
        return bootstrapped(rows.reward, rows.terminated, soft, discount=self.discount)

    def _actor_loss(
        self,
        actor: Recurrent,
        critic: Recurrent,
        temperature: Float[Array, ""],
        sample: Sample,
        key: Array,
    ) -> tuple[Array, Metrics]:
        policy: Any = jax.tree.map(lambda x: x[:-1], self._along(actor, sample))
        action, log_prob = policy.sample_and_log_prob(key)
        value = jnp.min(self._values(critic, sample, action), axis=-1)
        loss = masked_mean(temperature * log_prob - value, sample.mask)
        return loss, {"actor_loss": loss, "entropy": -masked_mean(log_prob, sample.mask)}
