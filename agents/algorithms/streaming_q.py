"""Action values learned at every step: Q(λ) and Sarsa(λ) with bounded steps."""

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from agents.acting import ActorState, ByValues, Policy, Transition
from agents.acting.values import epsilon_greedy, linear_fall
from agents.agent import AgentState, Metrics
from agents.learning.scaling import Scaling
from agents.learning.traces import accumulate_trace, cut_trace
from agents.mapped import mapped
from agents.networks import Recurrent
from agents.networks.values import check_discrete, value_of
from agents.streaming import AbstractStreaming
from zoo.annotations import Count, Positive, Share
from zoo.parts.checks import check_key


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


@dataclass(frozen=True, kw_only=True)
class StreamingQ(AbstractStreaming):
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

    rule: Literal["q", "sarsa"] = "q"
    """What the next observation is worth: the best action's value, or that of the next one."""
    kappa: Positive = 2.0
    """κ: how far steps stay below overshooting."""
    epsilon: Share = 1.0
    """Share of uniformly drawn actions in the beginning."""
    epsilon_end: Share = 0.01
    """The same after `epsilon_steps`, to which it falls linearly."""
    epsilon_steps: Count = 50_000
    """Environment steps over which it falls."""

    def _check_own(self) -> None:
        check_discrete(self.spaces[1], self.env_name)

    def network(self, *, key: Array) -> Recurrent:
        """Return a fresh network, whose output is a value for each action."""
        return self._new_network(self.spaces[1].n, lambda layers: layers, key=key)

    def init(self, *, key: Array) -> AgentState:
        check_key(key)
        network_key, env_key, key = jax.random.split(key, 3)
        network = self.network(key=network_key)
        parameters = eqx.filter(network, eqx.is_inexact_array)
        scaling = self._new_scaling()
        behavior = ByValues(network, jnp.float32(self.epsilon))
        acting, trace, discounted = self._new_actors(behavior, network, scaling, key=env_key)
        return AgentState(
            learner=Learner(network, self._optimizer(self.kappa).init(parameters), scaling),
            actors=Actors(acting, trace, discounted, jnp.zeros_like(acting.action)),
            replay=None,
            iteration=jnp.zeros((), jnp.int32),
            key=key,
        )

    def policy(self, learner: Learner) -> Policy:
        """Return the greedy policy; with a key, the ε-greedy one of the end of training."""
        statistics = learner.scaling.of_observations
        behavior = ByValues(learner.network, jnp.float32(self.epsilon_end), statistics)
        return Policy(behavior, *self.spaces)

    def _choose(
        self, values: Float[Array, "env actions"], steps: Int[Array, ""], key: Array
    ) -> Int[Array, " env"]:
        """Choose ε-greedily, after so many steps."""
        epsilon = linear_fall(steps, self.epsilon, self.epsilon_end, self.epsilon_steps)
        return epsilon_greedy(values, epsilon, key)

    def _step(
        self, learner: Learner, actors: Actors, steps: Int[Array, ""], key: Array
    ) -> tuple[Learner, Actors, Transition, Metrics]:
        network, acting, gradient = learner.network, actors.acting, self.gradient
        act_key, plan_key, env_key = jax.random.split(key, 3)
        scaling, inputs = learner.scaling.see(acting.inputs())
        values = mapped(network.step)(gradient.online_state(acting.memory), inputs)[1]
        action = self._choose(values, steps, act_key).astype(acting.action.dtype)
        sarsa = self.rule == "sarsa"
        if sarsa:
            # What was bootstrapped from is done, but an episode's first action, which is new.
            action = jnp.where(inputs.begin, action, actors.planned)

        def value_and_carry(network, carry, inputs, action):
            carry, values = gradient.online_step(network, carry, inputs)
            return values[action], carry

        (value, carry), slope = mapped(
            eqx.filter_value_and_grad(value_and_carry, has_aux=True), (None, 0, 0, 0)
        )(network, acting.memory, inputs, action)
        after, transition, following = self.actor.advance(acting, carry, action, env_key)
        scaling, reward, discounted = scaling.reward(
            transition.reward, actors.discounted, inputs.begin, discount=self.discount
        )
        scaling, following = scaling.follow(following)
        next_values = mapped(network.step)(gradient.online_state(carry), following)[1]
        planned = self._choose(next_values, steps, plan_key).astype(action.dtype)
        next_value = value_of(next_values, planned) if sarsa else jnp.max(next_values, axis=-1)
        error = reward + self.discount * jnp.where(transition.terminated, 0, next_value) - value
        trace = actors.trace
        if not sarsa:
            trace = cut_trace(trace, value_of(values, action) < jnp.max(values, axis=-1))
        trace = accumulate_trace(trace, slope, self.discount * self.trace_decay)
        updates, optimizer = self._optimizer(self.kappa).update(trace, error, learner.optimizer)
        return (
            Learner(eqx.apply_updates(network, updates), optimizer, scaling),
            Actors(after, cut_trace(trace, transition.done), discounted, planned),
            transition,
            {"td_error": jnp.mean(jnp.abs(error)), "value": jnp.mean(value)},
        )
