"""What learners at every step with bounded steps share: settings, networks and the loop."""

import abc
import dataclasses
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

import zoo
from agents.acting import AbstractBehavior, ActorState, Transition, episode_statistics
from agents.agent import AbstractAgent, AgentState, Metrics, Report
from agents.envs import needs_previous_action
from agents.learning.gradients import RTRL, OnlineGradient, check_encoder_credit, check_online
from agents.learning.scaling import Scaling
from agents.learning.traces import TraceOptimizer, obgd
from agents.mapped import side_by_side
from agents.networks import Recurrent, sparse_recurrent
from agents.networks.layers import check_normalized
from agents.networks.spaces import normalized_space
from agents.settings import warn_unused
from zoo.annotations import Count, Positive, Share, Size


@dataclass(frozen=True)
class AbstractStreaming(AbstractAgent):
    """A learner from every step as it comes: settings that all of them have, and the loop.

    Networks begin with sparse weights and have layers that are normalized without parameters;
    observations and rewards are scaled by running statistics; steps are bounded (ObGD). A subclass
    says what it carries and what one step of acting and learning is.
    """

    _: KW_ONLY
    memory: zoo.Spec
    """Recipe of the memory, `zoo.spec(...)`; each network has one of its own."""
    gradient: OnlineGradient = field(default_factory=RTRL)
    """How far credit reaches back from each step: `agents.RTRL()` or `agents.TBPTT(...)`."""
    num_envs: Count = 1
    """Environments side by side, for each seed; they share the networks."""
    rollout_length: Count = 1000
    """Steps of an iteration, after which it is reported; learning happens at every step."""
    discount: Share = 0.99
    """γ."""
    trace_decay: Share = 0.8
    """λ, how long a gradient stays eligible."""
    learning_rate: Positive = 1.0
    """α of ObGD."""
    adaptive: bool = False
    """Whether ObGD divides traces by the root of their running mean square."""
    encoder_size: Size = 0
    """Width of the layer in front of each memory; 0 for none."""
    encoder_credit: Literal["segment", "exact"] = "segment"
    """What RTRL follows of that layer: the present step, or all that it follows of the memory,
    which keeps the layer's weights once for each unit of it, see `zoo.Fronted`."""
    head_size: Size = 128
    """Width of the hidden layers behind each memory; 0 for none."""
    head_layers: Size = 1
    """Number of the hidden layers behind each memory."""
    sparsity: Share = 0.9
    """Share of weights outside of the memories that begin with zero."""
    previous_action: bool | None = None
    """Whether the previous action is an input; by default where the environment asks for it."""
    previous_reward: bool = False
    """Whether the previous reward is an input."""
    normalize_observation: bool = True
    """Whether observations are normalized by running statistics, where they are a Box."""
    normalize_reward: bool = True
    """Whether rewards are scaled by running statistics of the return."""

    def check(self) -> None:
        check_online(self.gradient)
        check_encoder_credit(self.encoder_credit, self.gradient, self.memory, self.encoder_size)
        check_normalized(self.encoder_size, self.head_size, self.head_layers)
        if not self.head_size:
            warn_unused(self, "`head_size=0`", "head_layers")
        elif not self.head_layers:
            warn_unused(self, "`head_layers=0`", "head_size")
        self._check_own()

    @abc.abstractmethod
    def _check_own(self) -> None:
        """Check the settings that a subclass adds; see `check`."""

    @abc.abstractmethod
    def _step(
        self, learner: Any, actors: Any, steps: Int[Array, ""], key: Array
    ) -> tuple[Any, Any, Transition, Metrics]:
        """Take one step in every environment and learn from it.

        **Arguments:**

        - `learner`, `actors`: those of an `AgentState`.
        - `steps`: environment steps before this one.

        **Returns:**

        `(learner, actors, transition, metrics)`.
        """

    @property
    def steps_per_iteration(self) -> int:
        return self.num_envs * self.rollout_length

    def iterate(self, state: AgentState) -> tuple[AgentState, Report]:
        """Take `rollout_length` steps, and learn at each."""
        key, steps_key = jax.random.split(state.key)
        keys = jax.random.split(steps_key, self.rollout_length)
        done = self.steps_before(state.iteration)
        numbers = done + self.num_envs * jnp.arange(self.rollout_length, dtype=jnp.int32)

        def step(loop: tuple[Any, Any], now: tuple[Array, Array]):
            learner, actors, transition, metrics = self._step(*loop, *now)
            return (learner, actors), (transition, metrics)

        (learner, actors), (rollout, metrics) = jax.lax.scan(
            step, (state.learner, state.actors), (numbers, keys)
        )
        report = Report(jax.tree.map(jnp.mean, metrics), {}, episode_statistics(rollout))
        return AgentState(learner, actors, None, state.iteration + 1, key), report

    def _new_network(self, outputs: int, head: Callable[[Any], Any], *, key: Array) -> Recurrent:
        """Return a fresh network; `head` makes its last part of the layers behind the memory."""
        observation, action = self.spaces
        return sparse_recurrent(
            normalized_space(observation) if self.normalize_observation else observation,
            action,
            self.memory,
            outputs=outputs,
            head=head,
            encoder_size=self.encoder_size,
            encoder_credit=self.encoder_credit,
            head_size=self.head_size,
            head_layers=self.head_layers,
            sparsity=self.sparsity,
            previous_action=needs_previous_action(self.environment[0], self.previous_action),
            previous_reward=self.previous_reward,
            key=key,
        )

    def _optimizer(self, kappa: float) -> TraceOptimizer:
        return obgd(self.learning_rate, kappa, adaptive=self.adaptive)

    def _new_scaling(self) -> Scaling:
        return Scaling.init(
            self.spaces[0], observations=self.normalize_observation, rewards=self.normalize_reward
        )

    def _new_actors(
        self, behavior: AbstractBehavior, networks: PyTree, scaling: Scaling, *, key: Array
    ) -> tuple[ActorState, PyTree, Float[Array, " env"]]:
        """Begin an episode in every environment.

        **Returns:**

        `(acting, traces, discounted)`: acting, whose memory is the gradient's carry of every
        network, traces of zeros, and the running discounted return; each with a leading axis over
        environments.
        """
        acting = self.actor.reset(behavior, self.num_envs, key=key)
        first = jax.tree.map(lambda x: x[0], scaling.scaled(acting.inputs()))
        carries = jax.tree.map(
            lambda network: self.gradient.online_begin(network, first),
            networks,
            is_leaf=lambda x: isinstance(x, Recurrent),
        )
        parameters = eqx.filter(networks, eqx.is_inexact_array)
        return (
            dataclasses.replace(acting, memory=side_by_side(carries, self.num_envs)),
            jax.tree.map(jnp.zeros_like, side_by_side(parameters, self.num_envs)),
            jnp.zeros(self.num_envs, jnp.float32),
        )
