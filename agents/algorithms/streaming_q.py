"""Action values learned at every step: Q(λ) and Sarsa(λ) with bounded steps."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

import zoo
from agents.acting import (
    AbstractBehavior,
    ActorState,
    ByValues,
    Decision,
    Policy,
    Transition,
    episode_statistics,
)
from agents.acting.actor import side_by_side
from agents.acting.behavior import normalized
from agents.acting.values import linear_fall
from agents.agent import AbstractAgent, AgentState, Metrics, Report
from agents.envs import needs_previous_action
from agents.learning.gradients import RTRL, AbstractOnlineGradient, OnlineGradient
from agents.learning.scaling import Scaling
from agents.learning.traces import TraceOptimizer, accumulate_trace, cut_trace, obgd
from agents.networks import Inputs, Recurrent, sparse_recurrent
from agents.networks.values import check_discrete, value_of
from agents.settings import check_kind, check_numbers
from zoo.parts.checks import check_counts


class Learner(eqx.Module):
    """What StreamingQ learns: the network, what ObGD keeps, and the scales."""

    network: Recurrent
    optimizer: PyTree
    scaling: Scaling


class Actors(eqx.Module):
    """What StreamingQ carries for each environment: besides acting, whose memory is the gradient's
    carry, the eligibility trace, the running discounted return, and the action that Sarsa has
    bootstrapped from and will take next."""

    acting: ActorState
    trace: PyTree
    discounted: Float[Array, " env"]
    planned: Int[Array, " env"]


class ByScaledValues(AbstractBehavior):
    """Takes actions by their values; `statistics` are of observations, or `None`."""

    values: ByValues
    statistics: Any

    def init_state(self) -> Any:
        return self.values.init_state()

    def __call__(self, state: Any, inputs: Inputs, key: Array | None) -> tuple[Any, Decision]:
        return self.values(state, normalized(self.statistics, inputs), key)


@dataclass(frozen=True, kw_only=True)
class StreamingQ(AbstractAgent):
    r"""Action values that learn from every step as it comes, in constant memory.

    At each step,

    $$ \delta = r + \gamma q(o', a') - q(o, a), \qquad
       z \leftarrow \gamma \lambda z + \nabla q(o, a), $$

    and the network moves along δ z by overshooting-bounded gradient descent. For Sarsa(λ) a' is the
    action that is taken next; for Q(λ) it is the best one, and z is cut off before an action that
    is not the best, as Watkins does. Actions are ε-greedy. Network, scaling, and what happens at an
    episode's end are those of `agents.StreamingAC`; so is what several environments share.

    ```python
    q = agents.StreamingQ(env="t_maze", memory=zoo.spec("rtu", hidden=16))
    state, report = jax.jit(q.iterate)(q.init(key=jax.random.key(0)))
    ```

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.

    Source: Elsayed, Vasan and Mahmood (2024), *Streaming Deep Reinforcement Learning Finally
    Works*; Watkins (1989), *Learning from Delayed Rewards*.
    """

    memory: zoo.Spec
    """Recipe of the memory, `zoo.spec(...)`."""
    gradient: OnlineGradient = field(default_factory=RTRL)
    """How far credit reaches back from each step: `agents.RTRL()` or `agents.TBPTT(...)`."""
    rule: Literal["q", "sarsa"] = "q"
    """What the next observation is worth: the best action's value, or that of the next one."""
    num_envs: int = 1
    """Environments side by side, for each seed; they share the network."""
    rollout_length: int = 1000
    """Steps of an iteration, after which it is reported; learning happens at every step."""
    discount: float = 0.99
    """γ."""
    trace_decay: float = 0.8
    """λ, how long a gradient stays eligible."""
    learning_rate: float = 1.0
    """α of ObGD."""
    kappa: float = 2.0
    """κ: how far its steps stay below overshooting."""
    adaptive: bool = False
    """Whether ObGD divides traces by the root of their running mean square."""
    epsilon: float = 1.0
    """Share of uniformly drawn actions in the beginning."""
    epsilon_end: float = 0.01
    """The same after `epsilon_steps`, to which it falls linearly."""
    epsilon_steps: int = 50_000
    """Environment steps over which it falls."""
    encoder_size: int = 0
    """Width of the layer in front of the memory; 0 for none. RTRL's gradient ends there."""
    head_size: int = 128
    """Width of the hidden layers behind the memory; 0 for none."""
    head_layers: int = 1
    """Number of the hidden layers behind the memory."""
    sparsity: float = 0.9
    """Share of weights outside of the memory that begin with zero."""
    previous_action: bool | None = None
    """Whether the previous action is an input; by default where the environment asks for it."""
    previous_reward: bool = False
    """Whether the previous reward is an input."""
    normalize_observation: bool = True
    """Whether observations are normalized by running statistics, where they are a Box."""
    normalize_reward: bool = True
    """Whether rewards are scaled by running statistics of the return."""

    def check(self) -> None:
        choice = "agents.RTRL() or agents.TBPTT(...), which have an online form"
        check_kind(AbstractOnlineGradient, choice, gradient=self.gradient)
        given = lambda *names: {name: getattr(self, name) for name in names}  # noqa: E731
        check_counts(1, **given("num_envs", "rollout_length", "epsilon_steps"))
        check_counts(0, **given("encoder_size", "head_size", "head_layers"))
        shares = given("discount", "trace_decay", "sparsity", "epsilon", "epsilon_end")
        check_numbers("in [0, 1]", lambda x: 0 <= x <= 1, **shares)
        check_numbers("above 0", lambda x: x > 0, **given("learning_rate", "kappa"))
        check_discrete(self.spaces[1], self.env_name)

    @property
    def steps_per_iteration(self) -> int:
        return self.num_envs * self.rollout_length

    @property
    def _optimizer(self) -> TraceOptimizer:
        return obgd(self.learning_rate, self.kappa, adaptive=self.adaptive)

    def network(self, *, key: Array) -> Recurrent:
        """Return a fresh network, whose output is a value for each action."""
        return sparse_recurrent(
            *self.spaces,
            self.memory,
            outputs=self.spaces[1].n,
            head=lambda layers: layers,
            encoder_size=self.encoder_size,
            head_size=self.head_size,
            head_layers=self.head_layers,
            sparsity=self.sparsity,
            previous_action=needs_previous_action(self.environment[0], self.previous_action),
            previous_reward=self.previous_reward,
            key=key,
        )

    def init(self, *, key: Array) -> AgentState:
        network_key, env_key, key = jax.random.split(key, 3)
        network = self.network(key=network_key)
        parameters = eqx.filter(network, eqx.is_inexact_array)
        scaling = Scaling.init(
            self.spaces[0], observations=self.normalize_observation, rewards=self.normalize_reward
        )
        behavior = ByValues(network, jnp.float32(self.epsilon))
        acting = self.actor.reset(behavior, self.num_envs, key=env_key)
        first = jax.tree.map(lambda x: x[0], scaling.scaled(acting.inputs()))
        carry = side_by_side(self.gradient.online_begin(network, first), self.num_envs)
        return AgentState(
            learner=Learner(network, self._optimizer.init(parameters), scaling),
            actors=Actors(
                dataclasses.replace(acting, memory=carry),
                jax.tree.map(jnp.zeros_like, side_by_side(parameters, self.num_envs)),
                jnp.zeros(self.num_envs, jnp.float32),
                jnp.zeros_like(acting.action),
            ),
            replay=None,
            iteration=jnp.zeros((), jnp.int32),
            key=key,
        )

    def policy(self, learner: Learner) -> Policy:
        """Return the greedy policy; with a key, the ε-greedy one of the end of training."""
        values = ByValues(learner.network, jnp.float32(self.epsilon_end))
        behavior = ByScaledValues(values, learner.scaling.observation)
        return Policy(behavior, self.spaces[1])

    def iterate(self, state: AgentState) -> tuple[AgentState, Report]:
        """Take `rollout_length` steps, and learn at each."""
        key, steps_key = jax.random.split(state.key)
        keys = jax.random.split(steps_key, self.rollout_length)
        done = state.iteration * self.steps_per_iteration
        numbers = done + self.num_envs * jnp.arange(self.rollout_length, dtype=jnp.int32)

        def step(loop: tuple[Learner, Actors], now: tuple[Array, Array]):
            learner, actors, transition, metrics = self._step(*loop, *now)
            return (learner, actors), (transition, metrics)

        (learner, actors), (rollout, metrics) = jax.lax.scan(
            step, (state.learner, state.actors), (keys, numbers)
        )
        report = Report(jax.tree.map(jnp.mean, metrics), {}, episode_statistics(rollout))
        return AgentState(learner, actors, None, state.iteration + 1, key), report

    def _choose(
        self, values: Float[Array, "env actions"], steps: Int[Array, ""], key: Array
    ) -> Int[Array, " env"]:
        """Choose ε-greedily, after so many steps."""
        share_key, draw_key = jax.random.split(key)
        best = jnp.argmax(values, axis=-1)
        drawn = jax.random.randint(draw_key, best.shape, 0, values.shape[-1], best.dtype)
        epsilon = linear_fall(steps, self.epsilon, self.epsilon_end, self.epsilon_steps)
        explores = jax.random.uniform(share_key, best.shape, jnp.float32) < epsilon
        return jnp.where(explores, drawn, best)

    def _step(
        self, learner: Learner, actors: Actors, key: Array, steps: Int[Array, ""]
    ) -> tuple[Learner, Actors, Transition, Metrics]:
        """Take one step in every environment and learn from it."""
        network, acting, gradient = learner.network, actors.acting, self.gradient
        act_key, plan_key, env_key = jax.random.split(key, 3)
        scaling, inputs = learner.scaling.see(acting.inputs())
        values = jax.vmap(network.step)(gradient.online_state(acting.memory), inputs)[1]
        action = self._choose(values, steps, act_key).astype(acting.action.dtype)
        sarsa = self.rule == "sarsa"
        if sarsa:
            # What was bootstrapped from is done, but an episode's first action, which is new.
            action = jnp.where(inputs.begin, action, actors.planned)

        def value_and_carry(network, carry, inputs, action):
            carry, values = gradient.online_step(network, carry, inputs)
            return values[action], carry

        (value, carry), slope = jax.vmap(
            eqx.filter_value_and_grad(value_and_carry, has_aux=True), (None, 0, 0, 0)
        )(network, acting.memory, inputs, action)
        after, transition, following = self.actor.advance(acting, carry, action, env_key)
        scaling, reward, discounted = scaling.reward(
            transition.reward, actors.discounted, inputs.begin, discount=self.discount
        )
        following = scaling.scaled(following)
        next_values = jax.vmap(network.step)(gradient.online_state(carry), following)[1]
        planned = self._choose(next_values, steps, plan_key).astype(action.dtype)
        next_value = value_of(next_values, planned) if sarsa else jnp.max(next_values, axis=-1)
        error = reward + self.discount * jnp.where(transition.terminated, 0, next_value) - value
        trace = actors.trace
        if not sarsa:
            trace = cut_trace(trace, value_of(values, action) < jnp.max(values, axis=-1))
        trace = accumulate_trace(trace, slope, self.discount * self.trace_decay)
        updates, optimizer = self._optimizer.update(trace, error, learner.optimizer)
        return (
            Learner(eqx.apply_updates(network, updates), optimizer, scaling),
            Actors(after, cut_trace(trace, transition.done), discounted, planned),
            transition,
            {"td_error": jnp.mean(jnp.abs(error)), "value": jnp.mean(value)},
        )
