"""Policy iteration over observations with exact values: what learning could do at best."""

from collections import deque
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from agents.acting import Policy
from agents.acting.contract import check_contract
from agents.acting.tables import ByPreference, Tables, table_index, table_shape
from agents.agent import AbstractAgent, AgentState, Report
from zoo.annotations import Share, StepSize
from zoo.parts.checks import check_key

MOST_STATES = 2_000
"""The largest game that is enumerated, in states."""
_KEYS = 8


class Game(NamedTuple):
    """A deterministic game, enumerated: the first state is where every episode begins.

    - `row`: the observation of each state, as a row of a table.
    - `reward`: of every action in every state.
    - `following`: the state after it; the number of states where the episode ends.
    """

    row: np.ndarray
    reward: np.ndarray
    following: np.ndarray


def enumerate_game(env: Any, params: Any) -> Game:
    """Find all states of a deterministic game.

    **Arguments:**

    - `env`, `params`: an environment with discrete spaces.

    **Raises:**

    `ValueError` where a reset or a step is random, or there are more than 2,000 states;
    `ValueError` or `TypeError` where they do not return what they have to.
    """
    check_contract(env, params)
    actions = env.action_space(params).n
    space = env.observation_space(params)
    keys = jax.random.split(jax.random.key(0), _KEYS)

    def begin(key):
        observation, state = env.reset(key, params)
        return table_index(space, observation), state

    def step(state, action, key):
        _, following, reward, terminated, truncated, info = env.step(key, state, action, params)
        final = table_index(space, info["final_observation"])
        return final, following, reward, terminated | truncated

    every = jax.vmap(jax.vmap(step, (None, 0, None)), (None, None, 0))
    every = jax.jit(every)
    rows, states = jax.device_get(jax.jit(jax.vmap(begin))(keys))
    start = jax.tree.map(lambda x: x[0], states)
    _check_same(env, (rows, states), "reset")
    known, waiting = {_name(start): 0}, deque([start])
    found_rows, rewards, followings = [int(rows[0])], [], []
    while waiting:
        rows, states, reward, done = jax.device_get(
            every(waiting.popleft(), np.arange(actions), keys)
        )
        # Where an episode ends the next one begins: its state says nothing of this step.
        left = jax.tree.map(partial(_zero_where, done), states)
        _check_same(env, (rows, left, reward, done), "step")
        following = []
        for action in range(actions):
            if done[0, action]:
                following.append(-1)
                continue
            state = jax.tree.map(lambda x, a=action: x[0, a], states)
            name = _name(state)
            if name not in known:
                known[name] = len(known)
                found_rows.append(int(rows[0, action]))
                waiting.append(state)
            following.append(known[name])
        rewards.append(reward[0])
        followings.append(following)
        if len(known) > MOST_STATES:
            raise ValueError(f"`env` ({env.name}) has more than {MOST_STATES:,} states.")
    following = np.array(followings)
    return Game(
        np.array(found_rows),
        np.array(rewards, np.float32),
        np.where(following < 0, len(known), following),
    )


@jax.custom_batching.sequential_vmap
def _solve(matrix: Float[Array, "n n"], right: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solve a linear system; of several seeds one after the other.

    On a CPU, jaxlib shares a batch of factorizations among the threads of a pool and waits for them
    on a thread of the same pool: two batches at once, on two threads, wait for ever.
    """
    return jnp.linalg.solve(matrix, right)


def _zero_where(flag: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.where(flag.reshape(flag.shape + (1,) * (x.ndim - flag.ndim)), 0, x)


def _name(state: Any) -> bytes:
    return b"|".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state))


def _check_same(env: Any, drawn: Any, what: str) -> None:
    if any(np.any(leaf != leaf[:1]) for leaf in map(np.asarray, jax.tree.leaves(drawn))):
        raise ValueError(f"`env` ({env.name}) must be deterministic: its {what} is random.")


@dataclass(frozen=True, kw_only=True)
class IdealPolicyIteration(AbstractAgent):
    r"""Policy iteration over observations, with the exact values of the present policy.

    In every iteration \( q_\pi(o, a) = \sum_s P_\pi(s \mid o) \, q_\pi(s, a) \) is computed from
    the game itself, with the share \( P_\pi(s \mid o) \) of the visits to o that state s has, and

    \[ \pi(\cdot \mid o) \leftarrow (1 - \varepsilon) \, \pi(\cdot \mid o)
       + \varepsilon \, \mathbf 1[\mathrm{argmax}_a q_\pi(o, a)] \]

    for every observation, from the uniform policy on. Of actions that are equally good the last is
    taken, which for an external memory is the one with the larger write. Nothing is sampled: where
    this ends is where methods that improve a policy step by step can end at best.

    It needs a deterministic game of at most 2,000 states with discrete spaces, such as `recall`.
    One iteration counts as one environment step.

    **Raises:**

    - `TypeError`: if the spaces are not discrete.
    - `ValueError`: if the game is random or too large, or a number breaks its rule.

    Source: Toro Icarte et al., "The Act of Remembering: a Study in Partially Observable
    Reinforcement Learning", 2020, section 5.2; Jaakkola, Singh and Jordan, "Reinforcement Learning
    Algorithm for Partially Observable Markov Decision Problems", 1995.
    """

    step_size: StepSize = 0.01
    """ε, how far the policy moves towards the greedy one."""
    discount: Share = 1.0
    """γ."""

    def check(self) -> None:
        table_shape(self.environment)
        self.game  # noqa: B018 - a random or too large one is told now

    @cached_property
    def game(self) -> Game:
        """The environment, enumerated."""
        return enumerate_game(*self.environment)

    @property
    def steps_per_iteration(self) -> int:
        return 1

    def init(self, *, key: Array) -> AgentState:
        check_key(key)
        shape = table_shape(self.environment)
        policy = jnp.full(shape, 1 / shape[1], jnp.float32)
        return AgentState(policy, None, None, jnp.zeros((), jnp.int32), key)

    def policy(self, learner: Float[Array, "observations actions"]) -> Policy:
        tables = Tables(jnp.log(learner), jnp.zeros(learner.shape[0], learner.dtype))
        return Policy(ByPreference(tables, self.spaces[0]), *self.spaces)

    def values(
        self, policy: Float[Array, "observations actions"]
    ) -> tuple[
        Float[Array, "observations actions"], Float[Array, " states"], Float[Array, " states"]
    ]:
        """Compute what a policy is worth, exactly.

        **Returns:**

        `(q, v, visits)`: the values of actions at observations, zeros at those that are never made;
        the values of the game's states; and how often an episode visits each of them.
        """
        row, reward, following = (jnp.asarray(x) for x in self.game)
        count, actions = reward.shape
        chance, state = policy[row], jnp.arange(count)
        # What goes on to the end, the state after the last, is left out.
        moves = jnp.zeros((count, count), policy.dtype)
        moves = moves.at[state[:, None], following].add(chance, mode="drop")
        identity = jnp.eye(count, dtype=policy.dtype)
        v = _solve(identity - self.discount * moves, jnp.sum(chance * reward, 1))
        visits = _solve(identity - moves.T, identity[0])
        q = reward + self.discount * v.at[following].get(mode="fill", fill_value=0)
        shape = (policy.shape[0], actions)
        summed = jnp.zeros(shape, policy.dtype).at[row].add(visits[:, None] * q)
        weight = jnp.zeros(shape[0], policy.dtype).at[row].add(visits)
        return summed / jnp.where(weight > 0, weight, 1)[:, None], v, visits

    def iterate(self, state: AgentState) -> tuple[AgentState, Report]:
        """Move the policy towards the greedy one.

        **Returns:**

        `(state, report)`; the return is the exact one of the policy before the move.
        """
        q, v, visits = self.values(state.learner)
        # Equal values differ by rounding, which is that of an observation's own ones.
        best = q >= q.max(1, keepdims=True) - 1e-5 * (1 + jnp.abs(q).max(1, keepdims=True))
        last = best.shape[1] - 1 - jnp.argmax(best[:, ::-1], axis=1)
        greedy = jax.nn.one_hot(last, best.shape[1], dtype=q.dtype)
        policy = (1 - self.step_size) * state.learner + self.step_size * greedy
        returned = v[0]
        if self.discount < 1:  # returns are reported undiscounted
            row, reward, _ = self.game
            returned = visits @ jnp.sum(state.learner[row] * reward, 1)
        episodes = {"return": returned, "length": visits.sum(), "episodes": jnp.ones((), q.dtype)}
        metrics = {"policy_change": jnp.abs(policy - state.learner).sum(1).max()}
        return (
            AgentState(policy, None, None, state.iteration + 1, state.key),
            Report(metrics, {}, episodes),
        )
