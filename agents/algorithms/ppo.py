"""Proximal policy optimization with a memory and a choice of gradient."""

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from gymnax.environments import spaces
from jaxtyping import Array, Float, PyTree

import zoo
from agents.acting import ActorState, ByPolicy, Policy, episode_statistics
from agents.agent import AbstractAgent, AgentState, Metrics, Report
from agents.envs import needs_previous_action
from agents.envs.core.statistics import RunningStatistics
from agents.learning.credit import AbstractGradient, along, outputs, unrolled
from agents.learning.gradients import RTRL, Gradient, check_encoder_credit
from agents.learning.minibatches import check_minibatches, epochs_of_minibatches, staleness
from agents.learning.returns import scaled_reward
from agents.learning.schedules import falling_rate, iterations_of, linear
from agents.learning.segments import to_segments
from agents.learning.surrogate import Sample, advantages, surrogate_loss
from agents.mapped import for_all, side_by_side
from agents.networks import Recurrent, Separate, actor_critic
from agents.networks.spaces import check_room, check_vectors, is_bounded, normalized_space
from agents.settings import check_kind, warn_unused
from zoo.annotations import Count, NonNegative, Positive, Share, Size
from zoo.parts.checks import check_key


class Learner(eqx.Module):
    """What PPO learns: statistics are for normalization, or `None`."""

    network: Recurrent | Separate
    optimizer: PyTree
    observation_statistics: RunningStatistics | None
    return_statistics: RunningStatistics | None


class Actors(eqx.Module):
    """What PPO carries for each environment: acting, the gradient's carry at that point, and the
    running discounted return, for reward normalization."""

    acting: ActorState
    carry: PyTree
    discounted: Float[Array, " env"]


@dataclass(frozen=True, kw_only=True)
class PPO(AbstractAgent):
    """Proximal policy optimization of a recurrent actor-critic.

    ```python
    ppo = agents.PPO(
        env="RepeatPreviousEasy",
        memory=zoo.spec("rtu", hidden=96),
        gradient=agents.RTRL(segment=8),
    )
    state, report = jax.jit(ppo.iterate)(ppo.init(key=jax.random.key(0)))
    ```

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.

    Source: Schulman et al. (2017), *Proximal Policy Optimization Algorithms*; with RTRL: Elelimy et
    al. (2024), *Real-Time Recurrent Learning using Trace Units in Reinforcement Learning*.
    """

    memory: zoo.Spec
    """Recipe of the memory, `zoo.spec(...)`."""
    gradient: Gradient = field(default_factory=RTRL)
    """How far credit reaches back: `agents.RTRL(...)`, `agents.TBPTT(...)` or `agents.BPTT()`."""
    num_envs: Count = 64
    """Environments side by side, for each seed."""
    rollout_length: Count = 128
    """Steps in each environment between updates."""
    epochs: Count = 4
    """Passes over a rollout."""
    minibatches: Count = 4
    """Parts of a rollout in each pass."""
    learning_rate: Positive = 1e-3
    """Of Adam."""
    anneal_steps: Count | None = None
    """Environment steps over which the learning rate falls linearly to zero, if it does."""
    final_clip: Positive | None = None
    """What `clip` becomes over the same steps, linearly, if it changes."""
    final_entropy_coefficient: NonNegative | None = None
    """The same of `entropy_coefficient`."""
    discount: Share = 0.99
    """γ."""
    gae_lambda: Share = 0.95
    """λ of generalized advantage estimation."""
    clip: Positive = 0.2
    """ε of the clipped policy loss."""
    value_clip: Positive | None = None
    """The same for the value loss, if any, around the value when the rollout was collected."""
    targets: Literal["stale", "fresh"] = "stale"
    """Whether a rollout keeps its advantages and value targets, or every pass after the first makes
    them anew of the values of then, from the carries of that pass."""
    entropy_coefficient: NonNegative = 0.01
    """Weight of the policy's entropy."""
    value_coefficient: NonNegative = 0.5
    """Weight of the value loss."""
    max_grad_norm: Positive = 0.5
    """Gradients are scaled down to this norm."""
    encoder_size: Size = 64
    """Width of the layer in front of the memory; 0 for none."""
    encoder_credit: Literal["segment", "exact"] = "segment"
    """What RTRL follows of that layer: the present segment, or all that it follows of the memory,
    which keeps the layer's weights once for each unit of it, see `zoo.Fronted`."""
    head_size: Size = 64
    """Width of the hidden layer of actor and critic; 0 for none."""
    activation: Literal["relu", "tanh"] = "relu"
    """Of encoder and hidden layers; convolutions of a picture have a ReLU."""
    separate_memories: bool = False
    """Whether actor and critic have a memory and an encoder each, in place of shared ones."""
    squash_actions: bool = False
    """Whether continuous actions go through a tanh into their box, in place of being clipped."""
    previous_action: bool | None = None
    """Whether the previous action is an input; by default where the environment asks for it."""
    previous_reward: bool = False
    """Whether the previous reward is an input."""
    normalize_observation: bool = False
    """Whether observations are normalized by running statistics, and clipped to ± 10."""
    normalize_reward: bool = False
    """Whether rewards are scaled by running statistics of the return, and clipped to ± 10."""
    staleness_every: Size = 0
    """Iterations between measurements of how stale the stored carries are, as the cosine of the
    memory's gradient with them and with fresh ones; 0 for none."""

    def check(self) -> None:
        choice = "a choice, such as agents.RTRL(segment=8)"
        check_kind(AbstractGradient, choice, gradient=self.gradient)
        check_encoder_credit(self.encoder_credit, self.gradient, self.memory, self.encoder_size)
        for name in ("final_clip", "final_entropy_coefficient"):
            value = getattr(self, name)
            if value is not None and self.anneal_steps is None:
                raise ValueError(f"`{name}` (={value}) must be None without `anneal_steps`.")
        if self.epochs == 1:
            warn_unused(self, "`epochs=1`", "targets")
            warn_unused(self.gradient, "`epochs=1`", "refresh")
        if not (self.encoder_size or self.head_size):
            warn_unused(self, "`encoder_size=0` and `head_size=0`", "activation")
        check_vectors(self.spaces[1], self.env_name)
        segments = self.num_envs * self.rollout_length // self._segment
        check_minibatches(self.minibatches, segments)
        if self.steps_per_iteration < 2 * self.minibatches:
            raise ValueError(
                f"`minibatches` (={self.minibatches}) must leave two steps or more for each, of "
                f"{self.steps_per_iteration} (= num_envs * rollout_length): advantages are "
                "standardized in each."
            )
        if self.normalize_observation and not isinstance(self.spaces[0], spaces.Box):
            raise ValueError(
                f"`normalize_observation` (=True) needs a Box observation; {self.env_name} has "
                f"{self.spaces[0]!r}."
            )
        if self.squash_actions and not is_bounded(self.spaces[1]):
            raise ValueError(
                "`squash_actions` (=True) needs actions in a bounded Box, which those of "
                f"{self.env_name} are not."
            )
        if self.squash_actions:
            check_room(self.spaces[1], self.env_name)
        self._rate()  # a fall over too many updates is told now

    @property
    def steps_per_iteration(self) -> int:
        return self.num_envs * self.rollout_length

    @property
    def _segment(self) -> int:
        return self.gradient.segment_length(self.rollout_length)

    def _falling(self, iteration: Array, start: float, end: float | None) -> Any:
        """A coefficient in an iteration; a plain number where it does not change."""
        if end is None or self.anneal_steps is None:
            return start
        iterations = iterations_of(self.anneal_steps, self.steps_per_iteration)
        return linear(start, end, iterations)(iteration)

    def _rate(self) -> optax.ScalarOrSchedule:
        return falling_rate(
            self.learning_rate,
            self.anneal_steps,
            steps_per_iteration=self.steps_per_iteration,
            updates=self.epochs * self.minibatches,
        )

    @cached_property
    def optimizer(self) -> optax.GradientTransformation:
        """The optimizer of every gradient step, of optax: a subclass may have another."""
        return optax.chain(
            optax.clip_by_global_norm(self.max_grad_norm), optax.adam(self._rate(), eps=1e-5)
        )

    def network(self, *, key: Array) -> Recurrent | Separate:
        """Return a fresh network: a subclass may have another."""
        observation, action = self.spaces
        return actor_critic(
            normalized_space(observation) if self.normalize_observation else observation,
            action,
            self.memory,
            encoder_size=self.encoder_size,
            encoder_credit=self.encoder_credit,
            head_size=self.head_size,
            activation=self.activation,
            separate=self.separate_memories,
            squashed=self.squash_actions,
            previous_action=needs_previous_action(self.environment[0], self.previous_action),
            previous_reward=self.previous_reward,
            key=key,
        )

    def init(self, *, key: Array) -> AgentState:
        check_key(key)
        network_key, env_key, key = jax.random.split(key, 3)
        network = self.network(key=network_key)
        normalizes, scales = self.normalize_observation, self.normalize_reward
        learner = Learner(
            network=network,
            optimizer=self.optimizer.init(eqx.filter(network, eqx.is_inexact_array)),
            observation_statistics=RunningStatistics.init(self.spaces[0].shape)
            if normalizes
            else None,
            return_statistics=RunningStatistics.init(()) if scales else None,
        )
        actors = Actors(
            acting=self.actor.reset(ByPolicy(network), self.num_envs, key=env_key),
            carry=side_by_side(self.gradient.begin(network), self.num_envs),
            discounted=jnp.zeros(self.num_envs),
        )
        return AgentState(learner, actors, None, jnp.zeros((), jnp.int32), key)

    def policy(self, learner: Learner) -> Policy:
        return Policy(self._behavior(learner), *self.spaces)

    def _behavior(self, learner: Learner) -> ByPolicy:
        return ByPolicy(learner.network, learner.observation_statistics)

    def iterate(self, state: AgentState) -> tuple[AgentState, Report]:
        """Collect one rollout and learn from it.

        **Returns:**

        `(state, report)`; `ratio_error` is the largest |ρ - 1| of the very first minibatch.
        """
        learner, actors = state.learner, state.actors
        key, rollout_key, update_key = jax.random.split(state.key, 3)
        behavior = self._behavior(learner)
        acting, rollout, memories = self.actor.collect(
            behavior,
            actors.acting,
            length=self.rollout_length,
            segment=self._segment,
            key=rollout_key,
        )
        inputs = behavior.seen(rollout.inputs)
        carry, starts = self.gradient.collected(learner.network, actors.carry, inputs, memories)
        reward, discounted, return_statistics = scaled_reward(
            learner.return_statistics,
            rollout.reward,
            rollout.inputs.begin,
            actors.discounted,
            discount=self.discount,
        )
        advantages_of = partial(
            advantages, rollout, reward, discount=self.discount, gae_lambda=self.gae_lambda
        )
        log_prob, value = rollout.memo
        last_value = behavior.at_end(acting.memory, acting.inputs())
        advantage = advantages_of(value, last_value)
        steps = Sample(inputs, rollout.action, log_prob, value, advantage, advantage + value)
        sample = to_segments(steps, self._segment)
        loss = partial(self._loss, state.iteration)

        def fresh(network: Any, sample: Sample, starts: PyTree) -> Sample:
            """The sample with targets of present values; the anchors of clipping stay."""
            memory, (_, value) = unrolled(self.gradient, network, starts, inputs)
            # Where states are not refreshed, all values are from those of the rollout.
            memory = memory if self.gradient.refreshes else acting.memory
            last_value = ByPolicy(network, behavior.statistics).at_end(memory, acting.inputs())
            advantage = advantages_of(value, last_value)
            renewed = to_segments((advantage, advantage + value), self._segment)
            return eqx.tree_at(lambda s: (s.advantage, s.target), sample, renewed)

        network, optimizer, metrics = epochs_of_minibatches(
            loss,
            self.optimizer,
            (learner.network, learner.optimizer),
            sample,
            lambda network, epoch: self.gradient.refreshed(
                network, actors.carry, inputs, starts, epoch
            ),
            envs=self.num_envs,
            epochs=self.epochs,
            minibatches=self.minibatches,
            chosen=self.gradient.chosen,
            renewed=fresh if self.targets == "fresh" else None,
            key=update_key,
        )
        diagnostics = {}
        if self.staleness_every:
            diagnostics["staleness"] = jax.lax.cond(
                for_all(state.iteration % self.staleness_every) == 0,
                lambda: staleness(
                    loss,
                    network,
                    sample,
                    starts,
                    along(self.gradient, network, actors.carry, inputs)[1],
                    part=lambda gradient: gradient.memory,
                ),
                lambda: jnp.full((), jnp.nan, sample.value.dtype),
            )
        observation_statistics = learner.observation_statistics
        if observation_statistics is not None:
            # Of what the environment gave: the network's inputs are normalized already.
            observation_statistics = observation_statistics.update(rollout.inputs.observation)
        return (
            AgentState(
                learner=Learner(network, optimizer, observation_statistics, return_statistics),
                actors=Actors(acting, carry, discounted),
                replay=None,
                iteration=state.iteration + 1,
                key=key,
            ),
            Report(metrics, diagnostics, episode_statistics(rollout)),
        )

    def _loss(
        self, iteration: Array, network: Any, sample: Sample, starts: PyTree
    ) -> tuple[Array, Metrics]:
        now = partial(self._falling, iteration)
        policy, value = outputs(self.gradient, network, starts, sample.inputs)
        return surrogate_loss(
            policy,
            value,
            sample,
            clip=now(self.clip, self.final_clip),
            value_clip=self.value_clip,
            value_coefficient=self.value_coefficient,
            entropy_coefficient=now(self.entropy_coefficient, self.final_entropy_coefficient),
        )
