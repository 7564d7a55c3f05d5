"""Parallelized Q-learning with a memory and a choice of gradient, without replay."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

import zoo
from agents.acting import ActorState, ByValues, Policy, episode_statistics
from agents.acting.values import linear_fall
from agents.agent import AbstractAgent, AgentState, Metrics, Report
from agents.envs import needs_previous_action
from agents.learning.credit import AbstractGradient, outputs
from agents.learning.gradients import RTRL, Gradient, check_encoder_credit
from agents.learning.minibatches import check_minibatches, epochs_of_minibatches
from agents.learning.returns import lambda_return, next_values
from agents.learning.schedules import falling_rate
from agents.learning.segments import to_segments
from agents.mapped import side_by_side
from agents.networks import Inputs, Recurrent, q_network
from agents.networks.layers import check_normalized
from agents.networks.values import check_discrete, value_of
from agents.settings import check_kind, warn_unused
from zoo.annotations import Count, Positive, Share, Size
from zoo.parts.checks import check_key


class Learner(eqx.Module):
    """What PQN learns."""

    network: Recurrent
    optimizer: PyTree


class Actors(eqx.Module):
    """What PQN carries for each environment: acting, and the gradient's carry at the same point."""

    acting: ActorState
    carry: PyTree


class Sample(eqx.Module):
    """What the loss needs of each step: leading axes `[time, env]` or `[time, segment]`."""

    inputs: Inputs
    action: Array
    value: Float[Array, "..."]
    target: Float[Array, "..."]


@dataclass(frozen=True, kw_only=True)
class PQN(AbstractAgent):
    r"""Parallelized Q-learning of a network with a memory: on-policy, normalized, without replay.

    ```python
    pqn = agents.PQN(env="RepeatPreviousEasy", memory=zoo.spec("rtu", hidden=96))
    state, report = jax.jit(pqn.iterate)(pqn.init(key=jax.random.key(0)))
    ```

    Many environments are acted in ε-greedily; each rollout is learned from for some epochs and
    forgotten. The targets are λ-returns of the values that acted, \( G_t = r_t + \gamma (1 - d_t)
    ((1 - \lambda) \max_a Q(o_{t+1}, a) + \lambda G_{t+1}) \), and normalized layers stand in for a
    target network.

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.

    Source: Gallici et al. (2024), *Simplifying Deep Temporal Difference Learning*.
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
    """Of rectified Adam."""
    anneal_steps: Count | None = None
    """Environment steps over which the learning rate falls linearly to zero, if it does."""
    discount: Share = 0.99
    """γ."""
    trace_decay: Share = 0.65
    """λ of the returns."""
    epsilon: Share = 1.0
    """Share of random actions at the start."""
    epsilon_end: Share = 0.05
    """The same at the end of its linear fall."""
    epsilon_steps: Count = 200_000
    """Environment steps over which it falls."""
    max_grad_norm: Positive = 10.0
    """Gradients are scaled down to this norm."""
    encoder_size: Size = 64
    """Width of the layer in front of the memory; 0 for none."""
    encoder_credit: Literal["segment", "exact"] = "segment"
    """What RTRL follows of that layer: the present segment, or all that it follows of the memory,
    which keeps the layer's weights once for each unit of it, see `zoo.Fronted`."""
    head_size: Count = 64
    """Width of the hidden layers behind the memory."""
    head_layers: Size = 1
    """Hidden layers behind the memory."""
    layer_norm: bool = True
    """Whether the layers around the memory are normalized, without parameters."""
    dueling: bool = False
    """Whether values are a state's value and the actions' advantages."""
    previous_action: bool | None = None
    """Whether the previous action is an input; by default where the environment asks for it."""
    previous_reward: bool = False
    """Whether the previous reward is an input."""

    def check(self) -> None:
        choice = "a choice, such as agents.RTRL(segment=8)"
        check_kind(AbstractGradient, choice, gradient=self.gradient)
        check_encoder_credit(self.encoder_credit, self.gradient, self.memory, self.encoder_size)
        segments = self.steps_per_iteration // self._segment
        check_minibatches(self.minibatches, segments)
        check_discrete(self.spaces[1], self.env_name)
        if self.epochs == 1:
            warn_unused(self.gradient, "`epochs=1`", "refresh")
        if not self.head_layers:
            warn_unused(self, "`head_layers=0`", "head_size")
        if self.layer_norm:
            check_normalized(self.encoder_size, self.head_size, self.head_layers)
        self._rate()  # a fall over too many updates is told now

    @property
    def steps_per_iteration(self) -> int:
        return self.num_envs * self.rollout_length

    @property
    def _segment(self) -> int:
        return self.gradient.segment_length(self.rollout_length)

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
        return optax.chain(optax.clip_by_global_norm(self.max_grad_norm), optax.radam(self._rate()))

    def network(self, *, key: Array) -> Recurrent:
        """Return a fresh network: a subclass may have another."""
        return q_network(
            *self.spaces,
            self.memory,
            encoder_size=self.encoder_size,
            encoder_credit=self.encoder_credit,
            head_size=self.head_size,
            head_layers=self.head_layers,
            layer_norm=self.layer_norm,
            dueling=self.dueling,
            previous_action=needs_previous_action(self.environment[0], self.previous_action),
            previous_reward=self.previous_reward,
            key=key,
        )

    def init(self, *, key: Array) -> AgentState:
        check_key(key)
        network_key, env_key, key = jax.random.split(key, 3)
        network = self.network(key=network_key)
        optimizer = self.optimizer.init(eqx.filter(network, eqx.is_inexact_array))
        behavior = ByValues(network, jnp.float32(self.epsilon))
        actors = Actors(
            acting=self.actor.reset(behavior, self.num_envs, key=env_key),
            carry=side_by_side(self.gradient.begin(network), self.num_envs),
        )
        return AgentState(Learner(network, optimizer), actors, None, jnp.zeros((), jnp.int32), key)

    def policy(self, learner: Learner) -> Policy:
        behavior = ByValues(learner.network, jnp.float32(self.epsilon_end))
        return Policy(behavior, *self.spaces)

    def share(self, steps: Int[Array, ""]) -> Float[Array, ""]:
        """Return ε after so many environment steps."""
        return linear_fall(steps, self.epsilon, self.epsilon_end, self.epsilon_steps)

    def iterate(self, state: AgentState) -> tuple[AgentState, Report]:
        """Collect one rollout and learn from it.

        **Returns:**

        `(state, report)`; `value_error` is the largest difference between a value while acting and
        the same at the very first minibatch.
        """
        network, actors = state.learner.network, state.actors
        key, rollout_key, update_key = jax.random.split(state.key, 3)
        behavior = ByValues(network, self.share(self.steps_before(state.iteration)))
        acting, rollout, memories = self.actor.collect(
            behavior,
            actors.acting,
            length=self.rollout_length,
            segment=self._segment,
            key=rollout_key,
        )
        carry, starts = self.gradient.collected(network, actors.carry, rollout.inputs, memories)
        value, best = rollout.memo
        last = behavior.at_end(acting.memory, acting.inputs())
        target = lambda_return(
            rollout.reward,
            next_values(best, last, rollout.done, rollout.last),
            rollout.terminated,
            rollout.truncated,
            discount=self.discount,
            trace_decay=self.trace_decay,
        )
        sample = Sample(rollout.inputs, rollout.action, value, target)
        network, optimizer, metrics = epochs_of_minibatches(
            self._loss,
            self.optimizer,
            (network, state.learner.optimizer),
            to_segments(sample, self._segment),
            lambda network, epoch: self.gradient.refreshed(
                network, actors.carry, rollout.inputs, starts, epoch
            ),
            envs=self.num_envs,
            epochs=self.epochs,
            minibatches=self.minibatches,
            chosen=self.gradient.chosen,
            first="value_error",
            key=update_key,
        )
        return (
            AgentState(
                learner=Learner(network, optimizer),
                actors=Actors(acting, carry),
                replay=None,
                iteration=state.iteration + 1,
                key=key,
            ),
            Report(metrics, {}, episode_statistics(rollout)),
        )

    def _loss(self, network: Recurrent, sample: Sample, starts: PyTree) -> tuple[Array, Metrics]:
        value = value_of(outputs(self.gradient, network, starts, sample.inputs), sample.action)
        loss = 0.5 * jnp.mean((value - sample.target) ** 2)
        return loss, {
            "loss": loss,
            "value": jnp.mean(value),
            "value_error": jnp.max(jnp.abs(value - sample.value)),
        }
