"""Prediction at every step, by temporal differences with eligibility traces."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PyTree

import zoo
from agents.acting import (
    ActorState,
    ByChance,
    ByPrediction,
    Policy,
    Transition,
    episode_statistics,
)
from agents.agent import AbstractAgent, AgentState, Report
from agents.envs import needs_previous_action
from agents.envs.wrappers.base import unwrapped
from agents.learning.gradients import RTRL, OnlineGradient, check_encoder_credit, check_online
from agents.learning.returns import discounted_return
from agents.learning.traces import TraceOptimizer, accumulate_trace, along_traces, cut_trace, obgd
from agents.mapped import side_by_side
from agents.networks import Inputs, Recurrent, ValueHead, sparse_recurrent
from agents.networks.layers import check_normalized
from agents.networks.spaces import check_vectors, is_bounded, is_discrete
from agents.settings import warn_unused
from scan.associative import match_rank
from zoo.annotations import Count, Positive, Share, Size, fitted
from zoo.parts.checks import check_key


class Learner(eqx.Module):
    """What StreamingTD learns."""

    network: Recurrent
    optimizer: PyTree


class Memory(eqx.Module):
    """What prediction carries from step to step in each environment: the gradient's carry before
    the present observation, and the eligibility trace."""

    carry: PyTree
    trace: PyTree


class Actors(eqx.Module):
    """Where acting and prediction stand."""

    acting: ActorState
    memory: Memory


class Stream(eqx.Module):
    """Steps to learn from: leading axes `[time, env]`.

    **Attributes:**

    - `inputs`: what was seen.
    - `following`: what was seen one step later; where an episode ended, its final observation.
    - `reward`: what came with it, the quantity whose discounted sum is predicted.
    - `terminated`, `truncated`: whether the episode ended with it. Only a termination means that
      nothing follows.
    """

    inputs: Inputs
    following: Inputs
    reward: Float[Array, "..."]
    terminated: Bool[Array, "..."]
    truncated: Bool[Array, "..."]


class Prediction(eqx.Module):
    """Of every step: what was predicted, before learning from it; of what followed; and δ."""

    value: Float[Array, "..."]
    next_value: Float[Array, "..."]
    error: Float[Array, "..."]


@dataclass(frozen=True, kw_only=True)
class StreamingTD(AbstractAgent):
    r"""Prediction of discounted rewards, learned at every step in constant memory: TD(λ).

    At each step, with all gradients from `gradient`,

    $$ \delta = r + \gamma v(o') - v(o), \qquad
       z \leftarrow \gamma \lambda z + \nabla v(o), \qquad
       w \leftarrow w + \alpha \delta z, $$

    where Adam or ObGD may take the place of the last step. λ = 0 is semi-gradient TD(0). Both
    values are of the weights before the step. A truncation is no termination: the value of the
    final observation is bootstrapped from, and only then is the trace cut.

    Actions are drawn uniformly: the values are those of the random policy, or of the stream itself
    where actions have no effect, as in `trace_conditioning`. Of several environments, each has a
    memory and a trace of its own, and their updates are averaged.

    ```python
    td = agents.StreamingTD(env="trace_conditioning", memory=zoo.spec("rtu", hidden=20))
    state, report = jax.jit(td.iterate)(td.init(key=jax.random.key(0)))
    ```

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.

    Source: Sutton and Barto (2018), *Reinforcement Learning: An Introduction*, chapter 12; with
    RTRL: Elelimy et al. (2024), *Real-Time Recurrent Learning using Trace Units in Reinforcement
    Learning*.
    """

    memory: zoo.Spec
    """Recipe of the memory, `zoo.spec(...)`."""
    gradient: OnlineGradient = field(default_factory=RTRL)
    """How far credit reaches back from each step: `agents.RTRL()` or `agents.TBPTT(...)`."""
    num_envs: Count = 1
    """Environments side by side, for each seed; they share one network."""
    rollout_length: Count = 1000
    """Steps of an iteration, after which it is reported; learning happens at every step."""
    discount: Share | None = None
    """γ; by default the environment's own, or 0.99 where it has none."""
    trace_decay: Share = 0.9
    """λ, how long a gradient stays eligible; 0 for TD(0)."""
    optimizer: Literal["adam", "obgd"] = "adam"
    """What makes a step of the error and the trace."""
    learning_rate: Positive = 1e-3
    """α; for ObGD rather 1."""
    kappa: Positive = 2.0
    """κ of ObGD: how far its steps stay below overshooting."""
    encoder_size: Size = 0
    """Width of the layer in front of the memory; 0 for none."""
    encoder_credit: Literal["segment", "exact"] = "segment"
    """What RTRL follows of that layer: the present step, or everything, which keeps the layer's
    weights once for each unit of the memory, see `zoo.Fronted`."""
    head_size: Size = 0
    """Width of the hidden layer behind the memory; 0 for a linear prediction."""
    sparsity: Share = 0.0
    """Share of weights outside of the memory that begin with zero."""
    previous_action: bool | None = None
    """Whether the previous action is an input; by default where the environment asks for it."""
    previous_reward: bool = False
    """Whether the previous reward is an input."""

    def check(self) -> None:
        check_online(self.gradient)
        check_encoder_credit(self.encoder_credit, self.gradient, self.memory, self.encoder_size)
        check_normalized(self.encoder_size, self.head_size)
        if self.optimizer == "adam":
            warn_unused(self, "`optimizer='adam'`", "kappa")
        fitted("discount_factor", self.discount_factor, Share, of=self.env_name)
        action_space = self.spaces[1]
        check_vectors(action_space, self.env_name)
        if not (is_discrete(action_space) or is_bounded(action_space)):
            raise ValueError(
                f"`env` (={self.env_name}) must have actions that can be drawn uniformly, not "
                f"{action_space!r} without bounds."
            )

    @property
    def steps_per_iteration(self) -> int:
        return self.num_envs * self.rollout_length

    @property
    def discount_factor(self) -> float:
        """γ: the setting, or else the environment's own."""
        if self.discount is not None:
            return self.discount
        envs = unwrapped(self.environment[0])
        return next((e.discount_factor for e in envs if hasattr(e, "discount_factor")), 0.99)

    @property
    def chance(self) -> ByChance:
        """What acts."""
        return ByChance(self.spaces[1])

    @cached_property
    def _optimizer(self) -> TraceOptimizer:
        if self.optimizer == "obgd":
            return obgd(self.learning_rate, self.kappa)
        return along_traces(optax.adam(self.learning_rate))

    def network(self, *, key: Array) -> Recurrent:
        """Return a fresh network, whose output is the prediction."""
        return sparse_recurrent(
            *self.spaces,
            self.memory,
            outputs=1,
            head=ValueHead,
            encoder_size=self.encoder_size,
            encoder_credit=self.encoder_credit,
            head_size=self.head_size,
            sparsity=self.sparsity,
            previous_action=needs_previous_action(self.environment[0], self.previous_action),
            previous_reward=self.previous_reward,
            key=key,
        )

    def init(self, *, key: Array) -> AgentState:
        check_key(key)
        network_key, env_key, key = jax.random.split(key, 3)
        network = self.network(key=network_key)
        parameters = eqx.filter(network, eqx.is_inexact_array)
        acting = self.actor.reset(self.chance, self.num_envs, key=env_key)
        first = jax.tree.map(lambda x: x[0], acting.inputs())
        memory = Memory(
            self.gradient.online_begin(network, first), jax.tree.map(jnp.zeros_like, parameters)
        )
        return AgentState(
            learner=Learner(network, self._optimizer.init(parameters)),
            actors=Actors(acting, side_by_side(memory, self.num_envs)),
            replay=None,
            iteration=jnp.zeros((), jnp.int32),
            key=key,
        )

    def policy(self, learner: Learner) -> Policy:
        """Return the random policy, whose behavior has the predictions as memo."""
        return Policy(ByPrediction(learner.network, self.chance), *self.spaces)

    def iterate(self, state: AgentState) -> tuple[AgentState, Report]:
        """Take `rollout_length` steps, and learn from each.

        Nothing that is learned changes what is done, so that all steps may be taken first.
        """
        key, act_key = jax.random.split(state.key)
        acting, rollout, _ = self.actor.collect(
            self.chance, state.actors.acting, length=self.rollout_length, key=act_key
        )
        stream = stream_of(rollout, acting)
        learner, memory, prediction = self.learn(state.learner, state.actors.memory, stream)
        metrics = {
            "td_error": jnp.mean(jnp.abs(prediction.error)),
            "return_error": self.return_error(stream, prediction),
        }
        return (
            AgentState(learner, Actors(acting, memory), None, state.iteration + 1, key),
            Report(metrics, {}, episode_statistics(rollout)),
        )

    def learn(
        self, learner: Learner, memory: Memory, stream: Stream
    ) -> tuple[Learner, Memory, Prediction]:
        """Learn from every step of a stream, one after the other.

        **Returns:**

        `(learner, memory, prediction)`: what to go on with, and the predictions, `[time, env]`.
        """

        # One environment without an axis over environments: with it, a step takes half as long
        # again, most of which is the dispatch of small kernels.
        alone = stream.reward.shape[1] == 1
        if alone:
            memory = jax.tree.map(lambda x: x[0], memory)
            stream = jax.tree.map(lambda x: x[:, 0], stream)

        def step(loop, now):
            learner, memory = loop
            learner, memory, prediction = self._step(learner, memory, now)
            return (learner, memory), prediction

        (learner, memory), prediction = jax.lax.scan(step, (learner, memory), stream)
        if alone:
            memory = jax.tree.map(lambda x: x[None], memory)
            prediction = jax.tree.map(lambda x: x[:, None], prediction)
        return learner, memory, prediction

    def _step(
        self, learner: Learner, memory: Memory, now: Stream
    ) -> tuple[Learner, Memory, Prediction]:
        """Learn from one step of one environment, or of several."""
        network, gradient = learner.network, self.gradient
        over_envs: Callable[..., Any] = (
            jax.vmap if now.reward.ndim else lambda function, *_: function
        )

        def value_of(network, carry, inputs):
            carry, value = gradient.online_step(network, carry, inputs)
            return value, carry

        (value, carry), slope = over_envs(
            eqx.filter_value_and_grad(value_of, has_aux=True), (None, 0, 0)
        )(network, memory.carry, now.inputs)
        next_value = over_envs(network.step)(gradient.online_state(carry), now.following)[1]
        decay = self.discount_factor * self.trace_decay
        trace = accumulate_trace(memory.trace, slope, decay)
        bootstrap = jnp.where(now.terminated, 0, next_value)
        error = now.reward + self.discount_factor * bootstrap - value
        updates, optimizer = self._optimizer.update(trace, error, learner.optimizer)
        learner = Learner(eqx.apply_updates(network, updates), optimizer)
        memory = Memory(carry, cut_trace(trace, now.terminated | now.truncated))
        return learner, memory, Prediction(value, next_value, error)

    def return_error(self, stream: Stream, prediction: Prediction) -> Float[Array, ""]:
        """Return the mean squared error against the returns, which are known in hindsight.

        Where the stream ends or is truncated, the prediction stands for what would have followed.
        """
        cut = stream.truncated & ~stream.terminated
        beyond = jnp.where(cut, prediction.next_value, 0)
        target = discounted_return(
            stream.reward + self.discount_factor * beyond,
            stream.terminated | stream.truncated,
            prediction.next_value[-1],
            discount=self.discount_factor,
        )
        return jnp.mean((prediction.value - target) ** 2)


def stream_of(rollout: Transition, acting: ActorState) -> Stream:
    """A rollout of `ByChance`, `[time, env]`, with what followed each step; `acting` is after."""

    def following(next_observation, now, final):
        seen = jnp.concatenate([next_observation[1:], now[None]])
        return jnp.where(match_rank(rollout.done, seen), final, seen)

    observation = jax.tree.map(
        following, rollout.inputs.observation, acting.observation, rollout.last
    )
    nowhere = jnp.zeros_like(rollout.inputs.begin)
    return Stream(
        inputs=rollout.inputs,
        following=Inputs(observation, rollout.action, rollout.reward, nowhere),
        reward=rollout.reward,
        terminated=rollout.terminated,
        truncated=rollout.truncated,
    )
