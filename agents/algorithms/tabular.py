"""Sarsa(λ) and Q(λ) with a table, for environments small enough to have one."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from agents.acting import Policy
from agents.acting.contract import check_contract
from agents.acting.tables import ByTable, choose, table_index, table_shape
from agents.agent import AbstractAgent, AgentState, Report
from zoo.annotations import Count, Share, StepSize
from zoo.parts.checks import check_key


class Acting(eqx.Module):
    """Where acting stands, in the one environment: before `action`, which is chosen already.

    `greedy` says whether it is one of the best; `row` is that of the observation; `expected` is the
    value that the step before bootstrapped from, 0 where an episode begins.
    """

    trace: Float[Array, "observations actions"]
    expected: Float[Array, ""]
    env_state: Any
    row: Int[Array, ""]
    action: Int[Array, ""]
    greedy: Bool[Array, ""]
    episode_return: Float[Array, ""]
    episode_length: Float[Array, ""]


@dataclass(frozen=True, kw_only=True)
class Tabular(AbstractAgent):
    r"""Action values in a table, learned at every step by temporal differences.

    At each step, with the error \( \delta = r + \gamma Q(o', a') - Q(o, a) \) (Sarsa; Q-learning
    has \( \max_a Q(o', a) \) for \( Q(o', a') \)), every entry changes by \( \alpha \delta e \).
    The eligibility \( e \) of the present pair becomes 1 (of the observation's other actions 0),
    and all decay by \( \gamma \lambda \) afterwards. Q-learning also cuts them off where an action
    is not greedy, as Watkins does. Only a termination stops bootstrapping.

    With `traces="true_online"` Sarsa(λ) equals the online λ-return algorithm exactly: the
    eligibility of the present pair becomes \( e + 1 - \alpha e \), and with \( \bar q \), the
    value that the step before bootstrapped from, the change is
    \( \alpha (\delta + Q(o, a) - \bar q) e \), less \( \alpha (Q(o, a) - \bar q) \) at the
    present pair.

    It acts in one environment with `Discrete` or `MultiDiscrete` observations and `Discrete`
    actions, ε-greedily.

    **Raises:**

    - `TypeError`: if the spaces are not discrete.
    - `ValueError`: if a number breaks its rule or the table would be too large.

    Source: Sutton and Barto, "Reinforcement Learning: An Introduction", 2nd edition, chapters 6
    and 12; Watkins, "Learning from Delayed Rewards", 1989; replacing traces: Singh and Sutton,
    "Reinforcement Learning with Replacing Eligibility Traces", 1996; true online: van Seijen and
    Sutton, "True Online TD(λ)", 2014.
    """

    rule: Literal["sarsa", "q_learning"] = "sarsa"
    """What the next observation is worth: the value of the action taken there, or the best."""
    traces: Literal["replacing", "true_online"] = "replacing"
    """What makes a pair eligible; true online traces are those of Sarsa."""
    learning_rate: StepSize = 0.1
    """α."""
    discount: Share = 0.95
    """γ."""
    trace_decay: Share = 0.0
    """λ, how long a pair of observation and action stays eligible."""
    epsilon: Share = 0.1
    """Probability of a uniformly drawn action."""
    initial_value: float = 0.0
    """What every entry of the table begins with."""
    rollout_length: Count = 1000
    """Steps of an iteration, after which it is reported; learning happens at every step."""

    def check(self) -> None:
        if self.traces == "true_online" and self.rule != "sarsa":
            raise ValueError(f"`traces` (='true_online') needs rule 'sarsa', not {self.rule!r}.")
        table_shape(self.environment)

    @property
    def steps_per_iteration(self) -> int:
        return self.rollout_length

    def init(self, *, key: Array) -> AgentState:
        check_key(key)
        reset_key, act_key, key = jax.random.split(key, 3)
        env, params = self.environment
        check_contract(env, params)
        observation, env_state = env.reset(reset_key, params)
        table = jnp.full(table_shape(self.environment), self.initial_value, jnp.float32)
        row = table_index(self.spaces[0], observation)
        action, greedy = choose(table, row, self.epsilon, act_key)
        nothing = jnp.float32(0)
        trace = jnp.zeros_like(table)
        acting = Acting(trace, nothing, env_state, row, action, greedy, nothing, nothing)
        actors = jax.tree.map(lambda x: x[None], acting)
        return AgentState(table, actors, None, jnp.zeros((), jnp.int32), key)

    def policy(self, learner: Float[Array, "observations actions"]) -> Policy:
        """Return the greedy policy; with a key, the ε-greedy one that acts in training."""
        return Policy(ByTable(learner, self.spaces[0], self.epsilon), *self.spaces)

    def iterate(self, state: AgentState) -> tuple[AgentState, Report]:
        """Take `rollout_length` steps, and learn at each."""
        key, steps_key = jax.random.split(state.key)
        acting = jax.tree.map(lambda x: x[0], state.actors)
        keys = jax.random.split(steps_key, self.rollout_length)
        (table, acting), (ended, errors) = jax.lax.scan(self._step, (state.learner, acting), keys)
        returns, lengths, count = ended.sum(axis=0)
        episodes = {"return": returns / count, "length": lengths / count, "episodes": count}
        report = Report({"td_error": jnp.mean(jnp.abs(errors))}, {}, episodes)
        actors = jax.tree.map(lambda x: x[None], acting)
        return AgentState(table, actors, None, state.iteration + 1, key), report

    def _step(
        self, carry: tuple[Array, Acting], key: Array
    ) -> tuple[tuple[Array, Acting], tuple[Array, Array]]:
        """Take one step; of an episode that ends, return, length and a 1 come out."""
        table, now = carry
        env, params = self.environment
        step_key, act_key = jax.random.split(key)
        observation, env_state, reward, terminated, truncated, info = env.step(
            step_key, now.env_state, now.action, params
        )
        reward, done = jnp.asarray(reward, jnp.float32), terminated | truncated
        # Where the episode goes on, the final observation is the observation.
        final = table_index(self.spaces[0], info["final_observation"])
        sarsa = self.rule == "sarsa"
        next_choice = partial(choose, row=final, epsilon=self.epsilon, key=act_key)
        # Sarsa learns from the next action, and chooses it before.
        following = next_choice(table) if sarsa else None
        target = table[final].max() if following is None else table[final, following[0]]
        bootstrap = jnp.where(terminated, 0, target)
        error = reward + self.discount * bootstrap - table[now.row, now.action]
        trace = now.trace if sarsa else jnp.where(now.greedy, now.trace, 0)
        pair = now.row, now.action
        if self.traces == "true_online":
            trace = trace.at[pair].add(1 - self.learning_rate * trace[pair])
            surprise = table[pair] - now.expected
            table = table + self.learning_rate * (error + surprise) * trace
            table = table.at[pair].add(-self.learning_rate * surprise)
        else:
            trace = trace.at[now.row].set(0).at[pair].set(1)
            table = table + self.learning_rate * error * trace
        trace = jnp.where(done, 0, self.discount * self.trace_decay * trace)
        expected = jnp.where(done, 0, bootstrap)
        following = next_choice(table) if following is None else following
        row = table_index(self.spaces[0], observation)
        # The same key: where an episode ends, the other action is only bootstrapped from.
        first = choose(table, row, self.epsilon, act_key)
        chosen = jax.tree.map(lambda new, old: jnp.where(done, new, old), first, following)
        total, length = now.episode_return + reward, now.episode_length + 1
        ended = jnp.stack([jnp.where(done, x, 0) for x in (total, length, jnp.float32(1))])
        total, length = jnp.where(done, 0, total), jnp.where(done, 0, length)
        action, greedy = chosen
        now = Acting(trace, expected, env_state, row, action, greedy, total, length)
        return (table, now), (ended, error)
