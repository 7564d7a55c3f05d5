"""Proximal policy optimization with a memory and a choice of gradient."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from gymnax.environments import spaces
from jaxtyping import Array, Float, PyTree

import zoo
from agents.acting import ActorState, ByPolicy, Policy, Transition, episode_statistics
from agents.acting.actor import for_all
from agents.agent import AbstractAgent, AgentState, Metrics, Report
from agents.envs import needs_previous_action
from agents.envs.core.statistics import RunningStatistics
from agents.learning.credit import AbstractGradient, along, outputs
from agents.learning.gradients import RTRL, Gradient, check_encoder_credit
from agents.learning.losses import clipped_surrogate, standardize, value_loss
from agents.learning.minibatches import epochs_of_minibatches, staleness
from agents.learning.returns import gae, next_values, running_return
from agents.learning.segments import to_segments
from agents.networks import Inputs, Recurrent, actor_critic
from agents.settings import check_kind, check_numbers
from zoo.parts.checks import check_counts


class Learner(eqx.Module):
    """What PPO learns: statistics are for normalization, or `None`."""

    network: Recurrent
    optimizer: PyTree
    observation_statistics: RunningStatistics | None
    return_statistics: RunningStatistics | None


class Actors(eqx.Module):
    """What PPO carries for each environment: besides acting, the gradient's carry at the same point
    and the running discounted return, for reward normalization.
    """

    acting: ActorState
    carry: PyTree
    discounted: Float[Array, " env"]


class Sample(eqx.Module):
    """What the loss needs of each step: leading axes `[time, env]` or `[time, segment]`."""

    inputs: Inputs
    action: Array
    log_prob: Float[Array, "..."]
    value: Float[Array, "..."]
    advantage: Float[Array, "..."]
    target: Float[Array, "..."]


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
    num_envs: int = 64
    """Environments side by side, for each seed."""
    rollout_length: int = 128
    """Steps in each environment between updates."""
    epochs: int = 4
    """Passes over a rollout."""
    minibatches: int = 4
    """Parts of a rollout in each pass."""
    learning_rate: float = 1e-3
    """Of Adam."""
    anneal_steps: int | None = None
    """Environment steps over which the learning rate falls linearly to zero, if it does."""
    discount: float = 0.99
    """γ."""
    gae_lambda: float = 0.95
    """λ of generalized advantage estimation."""
    clip: float = 0.2
    """ε of the clipped policy loss."""
    value_clip: float | None = None
    """The same for the value loss, if any."""
    entropy_coefficient: float = 0.01
    """Weight of the policy's entropy."""
    value_coefficient: float = 0.5
    """Weight of the value loss."""
    max_grad_norm: float = 0.5
    """Gradients are scaled down to this norm."""
    encoder_size: int = 64
    """Width of the layer in front of the memory; 0 for none."""
    encoder_credit: Literal["segment", "exact"] = "segment"
    """What RTRL follows of that layer: the present segment, or everything, which keeps the layer's
    weights once for each unit of the memory."""
    head_size: int = 64
    """Width of the hidden layer of actor and critic."""
    previous_action: bool | None = None
    """Whether the previous action is an input; by default where the environment asks for it."""
    previous_reward: bool = False
    """Whether the previous reward is an input."""
    normalize_observation: bool = False
    """Whether observations are normalized by running statistics."""
    normalize_reward: bool = False
    """Whether rewards are scaled by running statistics of the return."""
    staleness_every: int = 0
    """Iterations between measurements of how stale the stored carries are, as the cosine of the
    memory's gradient with them and with fresh ones; 0 for none."""

    def check(self) -> None:
        check_kind(zoo.Spec, "a recipe, such as zoo.spec('rtu')", memory=self.memory)
        choice = "a choice, such as agents.RTRL(segment=8)"
        check_kind(AbstractGradient, choice, gradient=self.gradient)
        given = lambda *names: {name: getattr(self, name) for name in names}  # noqa: E731
        check_counts(1, **given("num_envs", "rollout_length", "epochs", "minibatches", "head_size"))
        check_counts(0, **given("encoder_size", "staleness_every"))
        check_encoder_credit(self.encoder_credit, self.gradient, self.memory)
        check_numbers("in [0, 1]", lambda x: 0 <= x <= 1, **given("discount", "gae_lambda"))
        positive = given("learning_rate", "clip", "max_grad_norm")
        check_numbers("above 0", lambda x: x > 0, **positive)
        optional = given("value_clip", "anneal_steps")
        check_numbers("above 0, or None", lambda x: x is None or x > 0, **optional)
        weights = given("entropy_coefficient", "value_coefficient")
        check_numbers("at least 0", lambda x: x >= 0, **weights)
        segments = self.num_envs * self.rollout_length // self._segment
        if segments % self.minibatches:
            raise ValueError(
                f"`minibatches` (={self.minibatches}) must divide the number of segments "
                f"(={segments} = num_envs * rollout_length / segment length)."
            )
        if self.normalize_observation and not isinstance(self._observation_space, spaces.Box):
            raise ValueError(
                f"`normalize_observation` (=True) needs a Box observation; {self.env_name} has "
                f"{self._observation_space!r}."
            )

    @property
    def steps_per_iteration(self) -> int:
        return self.num_envs * self.rollout_length

    @property
    def _segment(self) -> int:
        return self.gradient.segment_length(self.rollout_length)

    @property
    def _observation_space(self) -> Any:
        env, params = self.environment
        return env.observation_space(params)

    @cached_property
    def _optimizer(self) -> optax.GradientTransformation:
        rate = self.learning_rate
        if self.anneal_steps is not None:
            iterations = max(1, self.anneal_steps // self.steps_per_iteration)
            rate = optax.linear_schedule(rate, 0.0, iterations * self.epochs * self.minibatches)
        return optax.chain(
            optax.clip_by_global_norm(self.max_grad_norm), optax.adam(rate, eps=1e-5)
        )

    def network(self, *, key: Array) -> Recurrent:
        """Return a fresh network."""
        env, params = self.environment
        asked = self.previous_action
        return actor_critic(
            self._observation_space,
            env.action_space(params),
            self.memory,
            encoder_size=self.encoder_size,
            encoder_credit=self.encoder_credit,
            head_size=self.head_size,
            previous_action=needs_previous_action(env) if asked is None else asked,
            previous_reward=self.previous_reward,
            key=key,
        )

    def init(self, *, key: Array) -> AgentState:
        network_key, env_key, key = jax.random.split(key, 3)
        network = self.network(key=network_key)
        copies = lambda x: jnp.broadcast_to(x, (self.num_envs, *x.shape))  # noqa: E731
        shape = self._observation_space.shape
        normalizes, scales = self.normalize_observation, self.normalize_reward
        learner = Learner(
            network=network,
            optimizer=self._optimizer.init(eqx.filter(network, eqx.is_inexact_array)),
            observation_statistics=RunningStatistics.init(shape) if normalizes else None,
            return_statistics=RunningStatistics.init(()) if scales else None,
        )
        actors = Actors(
            acting=self.actor.reset(ByPolicy(network), self.num_envs, key=env_key),
            carry=jax.tree.map(copies, self.gradient.begin(network)),
            discounted=jnp.zeros(self.num_envs),
        )
        return AgentState(learner, actors, None, jnp.zeros((), jnp.int32), key)

    def policy(self, learner: Learner) -> Policy:
        env, params = self.environment
        return Policy(self._behavior(learner), env.action_space(params))

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

        reward, discounted, return_statistics = self._scaled_reward(learner, actors, rollout)
        last_value = behavior.at_end(acting.memory, acting.inputs())
        sample = to_segments(self._sample(rollout, inputs, reward, last_value), self._segment)

        network, optimizer, metrics = epochs_of_minibatches(
            self._loss,
            self._optimizer,
            (learner.network, learner.optimizer),
            sample,
            lambda network, epoch: self.gradient.refreshed(
                network, actors.carry, inputs, starts, epoch
            ),
            epochs=self.epochs,
            minibatches=self.minibatches,
            key=update_key,
        )
        diagnostics = {}
        if self.staleness_every:
            diagnostics["staleness"] = jax.lax.cond(
                for_all(state.iteration % self.staleness_every) == 0,
                lambda: staleness(
                    self._loss,
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

    def _scaled_reward(
        self, learner: Learner, actors: Actors, rollout: Transition
    ) -> tuple[Array, Array, RunningStatistics | None]:
        """Rewards to learn from, the running returns after the rollout, and their statistics."""
        statistics = learner.return_statistics
        if statistics is None:
            return rollout.reward, actors.discounted, None
        # Scaled by what was known before this rollout, so that one rollout has one scale.
        begin = rollout.inputs.begin
        returns = running_return(rollout.reward, begin, actors.discounted, discount=self.discount)
        return statistics.scale(rollout.reward), returns[-1], statistics.update(returns)

    def _sample(
        self, rollout: Transition, inputs: Inputs, reward: Array, last_value: Array
    ) -> Sample:
        log_prob, value = rollout.memo
        advantage = gae(
            reward,
            value,
            next_values(value, last_value, rollout.done, rollout.last),
            rollout.terminated,
            rollout.truncated,
            discount=self.discount,
            gae_lambda=self.gae_lambda,
        )
        return Sample(inputs, rollout.action, log_prob, value, advantage, advantage + value)

    def _loss(self, network: Recurrent, sample: Sample, starts: PyTree) -> tuple[Array, Metrics]:
        policy, value = outputs(self.gradient, network, starts, sample.inputs)
        log_ratio = policy.log_prob(sample.action) - sample.log_prob
        ratio = jnp.exp(log_ratio)
        policy_term = clipped_surrogate(ratio, standardize(sample.advantage), clip=self.clip)
        value_term = value_loss(value, sample.value, sample.target, clip=self.value_clip)
        entropy = jnp.mean(policy.entropy())
        loss = (
            policy_term + self.value_coefficient * value_term - self.entropy_coefficient * entropy
        )
        return loss, {
            "loss": loss,
            "policy_loss": policy_term,
            "value_loss": value_term,
            "entropy": entropy,
            "approximate_kl": jnp.mean(ratio - 1 - log_ratio),
            "clip_fraction": jnp.mean((jnp.abs(ratio - 1) > self.clip).astype(ratio.dtype)),
            "ratio_error": jnp.max(jnp.abs(ratio - 1)),
        }
