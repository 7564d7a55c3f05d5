"""Recurrent advantage actor-critic: unroll after unroll, corrected by V-trace."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PyTree

import zoo
from agents.acting import ActorState, ByPolicy, Policy, episode_statistics
from agents.acting.values import Recorded
from agents.agent import AbstractAgent, AgentState, Metrics, Report
from agents.envs import needs_previous_action
from agents.learning.credit import AbstractGradient, along, unrolled
from agents.learning.gradients import RTRL, Gradient, check_encoder_credit, check_no_refresh
from agents.learning.returns import next_values, vtrace
from agents.learning.schedules import falling_rate
from agents.learning.targets import copied
from agents.mapped import mapped, side_by_side
from agents.networks import Inputs, Recurrent, Separate, actor_critic
from agents.networks.spaces import check_vectors
from agents.settings import check_kind
from zoo.annotations import Count, NonNegative, Positive, Share, Size
from zoo.parts.checks import check_key


class Learner(eqx.Module):
    """What R2AC learns; `behind` are the networks of the actors to come, the oldest first."""

    network: Recurrent | Separate
    optimizer: PyTree
    behind: tuple[Recurrent | Separate, ...]


class Actors(eqx.Module):
    """What R2AC carries for each environment: acting, and the gradient's carry at that point."""

    acting: ActorState
    carry: PyTree


class Unroll(eqx.Module):
    """What the loss needs of an unroll: leading axes `[time, env]`; of `following`, `[env]`."""

    inputs: Inputs
    action: Array
    log_prob: Float[Array, "time env"]
    reward: Float[Array, "time env"]
    terminated: Bool[Array, "time env"]
    truncated: Bool[Array, "time env"]
    last: Float[Array, "time env"]
    following: Inputs


@dataclass(frozen=True, kw_only=True)
class R2AC(AbstractAgent):
    """Recurrent advantage actor-critic: one update after every unroll.

    The memory's last state, and its sensitivity, start the next unroll, so that RTRL's gradient
    reaches as far back as the episode does, however short unrolls are.

    ```python
    r2ac = agents.R2AC(env="RepeatPreviousEasy", memory=zoo.spec("elstm", hidden=64))
    state, report = jax.jit(r2ac.iterate)(r2ac.init(key=jax.random.key(0)))
    ```

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.

    Source: Irie, Gopalakrishnan and Schmidhuber (2024), *Exploring the Promise and Limits of
    Real-Time Recurrent Learning*; V-trace and losses: Espeholt et al. (2018), *IMPALA: Scalable
    Distributed Deep-RL with Importance Weighted Actor-Learner Architectures*.
    """

    memory: zoo.Spec
    """Recipe of the memory, `zoo.spec(...)`."""
    gradient: Gradient = field(default_factory=lambda: RTRL(segment=None))
    """How far credit reaches back: `agents.RTRL(...)`, `agents.TBPTT(...)` or `agents.BPTT()`. By
    default RTRL with the unroll for a segment."""
    num_envs: Count = 32
    """Environments side by side, for each seed."""
    unroll_length: Count = 10
    """Steps in each environment between updates, M: of returns, and of backpropagation."""
    lag: Size = 0
    """Updates by which the actors are behind the learner."""
    learning_rate: Positive = 6e-4
    """Of RMSProp. The loss is a sum over time and environments: so is the gradient."""
    anneal_steps: Count | None = None
    """Environment steps over which the learning rate falls linearly to zero, if it does."""
    discount: Share = 0.99
    """γ."""
    max_ratio: Positive = 1.0
    """Where V-trace clips the ratios that weigh an error, ρ."""
    max_trace: Positive = 1.0
    """Where V-trace clips the ratios that carry errors back, c."""
    entropy_coefficient: NonNegative = 0.01
    """Weight of the policy's entropy."""
    value_coefficient: NonNegative = 0.5
    """Weight of the value loss."""
    max_grad_norm: Positive = 40.0
    """Gradients are scaled down to this norm."""
    reward_clip: Positive | None = 1.0
    """Rewards are clipped to ± this, to learn from and as an input; `None` for as they are."""
    encoder_size: Size = 0
    """Width of the layer in front of the memory; 0 for none, so that RTRL's gradient is exact for
    everything."""
    encoder_credit: Literal["segment", "exact"] = "segment"
    """What RTRL follows of that layer: the present segment, or all that it follows of the memory,
    which keeps the layer's weights once for each unit of it, see `zoo.Fronted`."""
    head_size: Size = 0
    """Width of the hidden layer of actor and critic; 0 for none."""
    previous_action: bool | None = None
    """Whether the previous action is an input; by default where the environment asks for it."""
    previous_reward: bool = True
    """Whether the previous reward is an input."""

    def check(self) -> None:
        choice = "a choice, such as agents.RTRL(segment=8)"
        check_kind(AbstractGradient, choice, gradient=self.gradient)
        check_encoder_credit(self.encoder_credit, self.gradient, self.memory, self.encoder_size)
        check_no_refresh(self.gradient)
        check_vectors(self.spaces[1], self.env_name)
        self._segment  # noqa: B018 - segments that do not fit are told now

    @property
    def steps_per_iteration(self) -> int:
        return self.num_envs * self.unroll_length

    @property
    def _segment(self) -> int:
        return self.gradient.segment_length(self.unroll_length, "unroll_length")

    @cached_property
    def optimizer(self) -> optax.GradientTransformation:
        """The optimizer of every gradient step, of optax: a subclass may have another."""
        rate = falling_rate(
            self.learning_rate, self.anneal_steps, steps_per_iteration=self.steps_per_iteration
        )
        return optax.chain(
            optax.clip_by_global_norm(self.max_grad_norm),
            # ε outside of the root, as where the settings come from.
            optax.rmsprop(rate, decay=0.99, eps=0.01, eps_in_sqrt=False),
        )

    def network(self, *, key: Array) -> Recurrent | Separate:
        """Return a fresh network: a subclass may have another."""
        return actor_critic(
            *self.spaces,
            self.memory,
            encoder_size=self.encoder_size,
            encoder_credit=self.encoder_credit,
            head_size=self.head_size,
            previous_action=needs_previous_action(self.environment[0], self.previous_action),
            previous_reward=self.previous_reward,
            key=key,
        )

    def init(self, *, key: Array) -> AgentState:
        check_key(key)
        network_key, env_key, key = jax.random.split(key, 3)
        network = self.network(key=network_key)
        learner = Learner(
            network=network,
            optimizer=self.optimizer.init(eqx.filter(network, eqx.is_inexact_array)),
            behind=tuple(copied(network) for _ in range(self.lag)),
        )
        actors = Actors(
            acting=self.actor.reset(self._behavior(network), self.num_envs, key=env_key),
            carry=side_by_side(self.gradient.begin(network), self.num_envs),
        )
        return AgentState(learner, actors, None, jnp.zeros((), jnp.int32), key)

    def policy(self, learner: Learner) -> Policy:
        return Policy(self._behavior(learner.network), *self.spaces)

    def _behavior(self, network: Recurrent | Separate) -> ByPolicy:
        return ByPolicy(network, reward_clip=self.reward_clip)

    def iterate(self, state: AgentState) -> tuple[AgentState, Report]:
        """Collect one unroll and learn from it.

        **Returns:**

        `(state, report)`; losses and entropy are means over the unroll's steps, `ratio` is the mean
        of ρ before it is clipped and `ratio_deviation` the largest |ρ - 1|.
        """
        learner, actors = state.learner, state.actors
        key, unroll_key = jax.random.split(state.key)
        networks = (*learner.behind, learner.network)
        behavior = self._behavior(networks[0])
        acting, rollout, memories = self.actor.collect(
            Recorded(behavior) if self.lag else behavior,
            actors.acting,
            length=self.unroll_length,
            segment=self._segment,
            key=unroll_key,
        )
        inputs = behavior.seen(rollout.inputs)
        carry, starts = self.gradient.collected(networks[0], actors.carry, inputs, memories)
        last = rollout.last
        if self.lag:
            # Those at the borders inside the unroll are the learner's; its start is the actors'.
            starts = along(self.gradient, learner.network, actors.carry, inputs)[1]
            start = self.gradient.state(actors.carry)
            last = _values_of(learner.network, start, inputs, behavior.seen(last))
        reward = rollout.reward
        if self.reward_clip is not None:
            reward = jnp.clip(reward, -self.reward_clip, self.reward_clip)
        log_prob, _ = rollout.memo
        unroll = Unroll(
            inputs=inputs,
            action=rollout.action,
            log_prob=log_prob,
            reward=reward,
            terminated=rollout.terminated,
            truncated=rollout.truncated,
            last=last,
            following=behavior.seen(acting.inputs()),
        )
        gradient, metrics = eqx.filter_grad(self._loss, has_aux=True)(
            learner.network, unroll, starts
        )
        metrics["gradient_norm"] = optax.tree.norm(gradient)
        updates, optimizer = self.optimizer.update(gradient, learner.optimizer)
        network = eqx.apply_updates(learner.network, updates)
        return (
            AgentState(
                learner=Learner(network, optimizer, networks[1:]),
                actors=Actors(acting, carry),
                replay=None,
                iteration=state.iteration + 1,
                key=key,
            ),
            Report(metrics, {}, episode_statistics(rollout)),
        )

    def _loss(
        self, network: Recurrent | Separate, unroll: Unroll, starts: PyTree
    ) -> tuple[Array, Metrics]:
        state, (policy, value) = unrolled(self.gradient, network, starts, unroll.inputs)
        log_prob = policy.log_prob(unroll.action)
        # Ratios, targets and advantages are constants.
        fixed_value, fixed_log_prob, state = jax.lax.stop_gradient((value, log_prob, state))
        _, (_, following) = mapped(network.step)(state, unroll.following)
        done = unroll.terminated | unroll.truncated
        log_ratio = fixed_log_prob - unroll.log_prob
        ratio = jnp.exp(log_ratio)
        target, advantage = vtrace(
            ratio,
            unroll.reward,
            fixed_value,
            next_values(fixed_value, jax.lax.stop_gradient(following), done, unroll.last),
            unroll.terminated,
            unroll.truncated,
            discount=self.discount,
            max_ratio=self.max_ratio,
            max_trace=self.max_trace,
        )
        policy_term = -jnp.mean(advantage * log_prob)
        value_term = 0.5 * jnp.mean((value - target) ** 2)
        entropy = jnp.mean(policy.entropy())
        loss = (
            policy_term + self.value_coefficient * value_term - self.entropy_coefficient * entropy
        )
        return loss * value.size, {
            "loss": loss,
            "policy_loss": policy_term,
            "value_loss": value_term,
            "entropy": entropy,
            "approximate_kl": jnp.mean(ratio - 1 - log_ratio),
            "ratio": jnp.mean(ratio),
            "ratio_deviation": jnp.max(jnp.abs(ratio - 1)),
        }


def _values_of(network: Any, state: PyTree, inputs: Inputs, last: Inputs) -> Array:
    """The value of each step's last observation, `[time, env]`, after what was seen before it."""

    def step(state: Any, seen: tuple[Inputs, Inputs]) -> tuple[Any, Array]:
        now, last = seen
        state, _ = mapped(network.step)(state, now)
        _, (_, value) = mapped(network.step)(state, last)
        return state, value

    return jax.lax.scan(step, state, (inputs, last))[1]
