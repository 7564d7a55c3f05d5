"""n-step actor-critic with tables of preferences and values."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from agents.acting import Policy, episode_statistics
from agents.acting.tables import ByPreference, Tables, table_shape
from agents.agent import AbstractAgent, AgentState, Report
from agents.learning.returns import gae, next_values
from zoo.annotations import Count, Positive, Share
from zoo.parts.checks import check_key


@dataclass(frozen=True, kw_only=True)
class TabularActorCritic(AbstractAgent):
    r"""Policy and value in tables, learned after every n steps.

    The policy \( \pi \) is the softmax of the preferences \( h(o, a) \). After n steps with it,
    each has the return \( G \) of what is left of the n steps or of the episode, and of the value
    \( V \) of where they end. With \( \delta = G - V(o) \), all at once,

    \[ V(o) \leftarrow V(o) + \alpha \delta, \qquad
       h(o, \cdot) \leftarrow h(o, \cdot) + \beta \delta \nabla_h \log \pi(a \mid o). \]

    The policy is uniform at first. Only a termination stops bootstrapping.

    **Raises:**

    - `TypeError`: if the spaces are not discrete.
    - `ValueError`: if a number breaks its rule or a table would be too large.

    Source: Toro Icarte et al., "The Act of Remembering: a Study in Partially Observable
    Reinforcement Learning", 2020, whose rates are the defaults; Sutton and Barto, "Reinforcement
    Learning: An Introduction", 2nd edition, chapter 13.
    """

    unroll_length: Count = 5
    """n."""
    policy_rate: Positive = 0.1
    """β."""
    value_rate: Positive = 0.001
    """α."""
    discount: Share = 0.95
    """γ."""
    updates: Count = 200
    """Updates of an iteration, after which it is reported."""

    def check(self) -> None:
        table_shape(self.environment)

    @property
    def steps_per_iteration(self) -> int:
        return self.unroll_length * self.updates

    def init(self, *, key: Array) -> AgentState:
        check_key(key)
        reset_key, key = jax.random.split(key)
        shape = table_shape(self.environment)
        tables = Tables(jnp.zeros(shape, jnp.float32), jnp.zeros(shape[0], jnp.float32))
        actors = self.actor.reset(self._behavior(tables), 1, key=reset_key)
        return AgentState(tables, actors, None, jnp.zeros((), jnp.int32), key)

    def policy(self, learner: Tables) -> Policy:
        return Policy(self._behavior(learner), *self.spaces)

    def _behavior(self, tables: Tables) -> ByPreference:
        return ByPreference(tables, self.spaces[0])

    def iterate(self, state: AgentState) -> tuple[AgentState, Report]:
        """Learn `updates` times, each from the next n steps."""
        key, steps_key = jax.random.split(state.key)

        def update(carry, key):
            tables, acting = carry
            behavior = self._behavior(tables)
            acting, steps, _ = self.actor.collect(
                behavior, acting, length=self.unroll_length, key=key
            )
            value = tables.value[steps.memo]
            last_value = behavior.at_end(acting.memory, acting.inputs())
            error = gae(
                steps.reward,
                value,
                next_values(value, last_value, steps.done, steps.last),
                steps.terminated,
                steps.truncated,
                discount=self.discount,
                gae_lambda=1.0,
            )
            policy = jax.nn.softmax(tables.preference[steps.memo])
            score = jax.nn.one_hot(steps.action, policy.shape[-1], dtype=policy.dtype) - policy
            tables = Tables(
                tables.preference.at[steps.memo].add(self.policy_rate * error[..., None] * score),
                tables.value.at[steps.memo].add(self.value_rate * error),
            )
            entropy = jnp.mean(-jnp.sum(jax.scipy.special.xlogy(policy, policy), -1))
            return (tables, acting), (steps, jnp.mean(jnp.abs(error)), entropy)

        keys = jax.random.split(steps_key, self.updates)
        carry, (steps, error, entropy) = jax.lax.scan(update, (state.learner, state.actors), keys)
        tables, acting = carry
        rollout = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), steps)
        metrics = {"td_error": jnp.mean(error), "entropy": jnp.mean(entropy)}
        report = Report(metrics, {}, episode_statistics(rollout))
        return AgentState(tables, acting, None, state.iteration + 1, key), report
