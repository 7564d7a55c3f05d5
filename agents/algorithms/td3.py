"""Twin delayed deterministic policy gradients with separate memories for actor and critics."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from agents.agent import Metrics
from agents.learning.losses import masked_mean
from agents.learning.tape import Sample
from agents.learning.targets import bootstrapped, copied, polyak
from agents.mapped import for_all
from agents.networks import Recurrent
from agents.networks.continuous import (
    critics,
    middle_and_half,
    noisy_policy,
    values_along,
)
from agents.off_policy import AbstractActorCritic
from agents.settings import warn_unused
from zoo.annotations import Count, NonNegative


class Learner(eqx.Module):
    """What TD3 learns, the networks that follow, and how many updates there were."""

    actor: Recurrent
    critic: Recurrent
    targets: tuple[Recurrent, Recurrent]
    optimizers: tuple[PyTree, PyTree]
    updates: Int[Array, ""]


@dataclass(frozen=True, kw_only=True)
class TD3(AbstractActorCritic):
    r"""Twin delayed DDPG of networks with memories, for actions in a box.

    ```python
    td3 = agents.TD3(env="PositionOnlyPendulumEasy", memory=zoo.spec("gru", hidden=32))
    state, report = jax.jit(td3.iterate)(td3.init(key=jax.random.key(0)))
    ```

    Actor and critics have memories of their own. The critics learn towards \( y_t = r_t + \gamma (1
    - d_t) \min_i Q_{\phi_i}(h_{t+1}, a') \), where \( a' \) is the target actor's action with
    clipped noise; the actor to maximize \( Q_1(h_t, \mu(h_t)) \), less often. An action enters the
    critics behind their memory, so that the actor's gradient does not pass through it.

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.

    Source: Fujimoto et al. (2018), *Addressing Function Approximation Error in Actor-Critic
    Methods*; with memories: Ni et al. (2022), *Recurrent Model-Free RL Can Be a Strong Baseline for
    Many POMDPs*.
    """

    noise: NonNegative = 0.1
    """Deviation of the noise while acting, of half the box."""
    target_noise: NonNegative = 0.2
    """The same of the target actor's actions."""
    target_noise_clip: NonNegative = 0.5
    """Where that noise is clipped, of half the box."""
    policy_delay: Count = 2
    """Updates of the critics for each of the actor and of the target networks."""

    def _check_own(self) -> None:
        super()._check_own()
        if not self.target_noise:
            warn_unused(self, "`target_noise=0`", "target_noise_clip")

    def _new_learner(self, *, key: Array) -> Learner:
        actor_key, critic_key = jax.random.split(key)
        actor = self._new_network(partial(noisy_policy, noise=self.noise), key=actor_key)
        critic = self._new_network(critics, key=critic_key)
        optimizers = self._fresh(actor), self._fresh(critic)
        targets = copied((actor, critic))
        return Learner(actor, critic, targets, optimizers, jnp.zeros((), jnp.int32))

    def _learned(self, learner: Learner, sample: Sample, key: Array) -> tuple[Learner, Metrics]:
        actor_optimizer, critic_optimizer = learner.optimizers
        wanted = self._target(learner, sample, key)
        critic, critic_optimizer, metrics = self._descend(
            lambda critic: self._critic_loss(critic, wanted, sample),
            learner.critic,
            critic_optimizer,
        )
        updates = learner.updates + 1
        due = updates % self.policy_delay == 0

        def improve(actor: Recurrent, optimizer: PyTree, targets: Any) -> tuple[Any, ...]:
            actor, optimizer, metrics = self._descend(
                lambda actor: self._actor_loss(actor, critic, sample), actor, optimizer
            )
            follow = partial(polyak, kept=self.target_kept)
            follows = follow(targets[0], actor), follow(targets[1], critic)
            return actor, optimizer, follows, metrics

        def stay(actor: Recurrent, optimizer: PyTree, targets: Any) -> tuple[Any, ...]:
            _, metrics = self._actor_loss(actor, critic, sample)
            return actor, optimizer, targets, metrics

        before = learner.actor, actor_optimizer, learner.targets
        *after, actor_metrics = jax.lax.cond(for_all(due), improve, stay, *before)
        # Seeds side by side share the condition, and one that began to learn later may be behind.
        choose = lambda new, old: jnp.where(due, new, old)  # noqa: E731
        actor, actor_optimizer, targets = jax.tree.map(choose, tuple(after), before)
        optimizers = actor_optimizer, critic_optimizer
        learner = Learner(actor, critic, targets, optimizers, updates)
        return learner, metrics | actor_metrics

    def _target(
        self, learner: Learner, sample: Sample, key: Array
    ) -> Float[Array, "time sequence"]:
        """What the critics' values are learned towards."""
        rows, (actor, critic) = self._rows(sample), learner.targets
        middle, half = middle_and_half(self.spaces[1])
        policy = self._along(actor, sample)
        action = policy.mode()[1:]
        noise = self.target_noise * jax.random.normal(key, action.shape, action.dtype)
        noise = jnp.clip(noise, -self.target_noise_clip, self.target_noise_clip)
        inside = jax.vmap(
            jax.vmap(lambda a, n: jnp.clip(a + half * n, middle - half, middle + half))
        )
        read = self._along(critic, sample)[1:]
        value = jnp.min(values_along(critic.head, read, inside(action, noise)), axis=-1)
        return bootstrapped(rows.reward, rows.terminated, value, discount=self.discount)

    def _actor_loss(
        self, actor: Recurrent, critic: Recurrent, sample: Sample
    ) -> tuple[Array, Metrics]:
        action = self._along(actor, sample).mode()[:-1]
        values = self._values(critic, sample, action)
        loss = -masked_mean(values[..., 0], sample.mask)
        return loss, {"actor_loss": loss}
