"""Memories as part of the environment: the agent reads them and writes them by its actions."""

import re
from typing import Any

import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import Environment, EnvParams
from jaxtyping import Array, Int32, PRNGKeyArray

from ..core.encoding import encode, width
from ..core.spaces import MultiDiscrete
from ..wrappers.base import Step, Wrapper

KINDS = ("K", "B", "O", "OA")
"""Last observations; bits; observations on demand; observations and actions on demand."""

_MOST_ACTIONS = 2**31 - 1  # actions are int32


@struct.dataclass
class EnvState:
    """State of an environment with an external memory; batched states have leading axes.

    `env_state`: the environment's own state. `observation`: its present observation as a vector.
    `memory`: bits `(k,)` or slots `(k, numbers)`, the newest first; int32, and float32 where
    observations are.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    env_state: Any
    observation: Any
    memory: Any

    @property
    def time(self) -> Any:
        """Steps taken in the episode."""
        return self.env_state.time


class ExternalMemory(Wrapper):
    """An environment with a memory that the agent sees, and writes by its actions.

    Four kinds, each with a size k:

    - `K`: the last k observations, kept without the agent's doing;
    - `B`: k bits, all written anew by every action;
    - `O`: the k observations pushed last; every action says whether to push the observation that
        it was chosen on;
    - `OA`: the same with the action beside the observation.

    A memory is empty after a reset: bits are 0, and a slot that nothing was pushed to is told from
    every observation.
    **The action.** With n discrete actions and w ways to write (\\( 2^k \\) for bits, 2 for a
    push, 1 for `K` and wherever k is 0) there are n w actions: `action % n` is the environment's
    action and `action // n` is the write. For bits the write is the number whose binary digit i is
    bit i; for a push 1 is yes. A `MultiDiscrete` action gets the write as one more number. `K` goes
    with any actions and leaves them as they are.

    **The observation.** Over discrete observations it is a `MultiDiscrete` vector: the
    environment's own numbers, then the bits, or slot after slot from the newest. In a slot every
    number is increased by 1, and 0 is empty. Over a `Box` it is a float32 vector: the observation,
    flattened, then the bits, or slot after slot, each a 1, the flattened observation and for `OA`
    the action one-hot, one block for each of its numbers; an empty slot is all zeros.

    The write takes effect together with the step: `info["final_observation"]` has the memory after
    the episode's last write. Everything else is the environment's own.

    Source: Toro Icarte et al., "The Act of Remembering: a Study in Partially Observable
    Reinforcement Learning", 2020; bits: Peshkin et al., "Learning Policies with External Memory",
    ICML 1999.
    """

    def __init__(self, env: Environment, memory: str):
        """**Arguments:**

        - `env`: the environment, which stays available as the attribute `env`.
        - `memory`: the kind and the size k, which may be 0: `"K4"`, `"B1"`, `"O2"`, `"OA1"`.

        **Raises:**

        `TypeError` if `env` is no environment or `memory` no text; `ValueError` if `memory` is not
        a kind and a size, if the environment's spaces do not suit the kind, or if there would be
        too many actions.
        """
        super().__init__(env)
        self.memory = memory
        self.kind, self.k = parse(memory)
        observation, action = self._spaces(env.default_params)
        if not (_is_discrete(observation) or isinstance(observation, spaces.Box)):
            raise ValueError(self._unsuited("Discrete, MultiDiscrete or Box", observation))
        if self.kind != "K" and not _is_discrete(action):
            raise ValueError(self._unsuited("Discrete or MultiDiscrete", action, "actions"))
        self._discrete = _is_discrete(observation)
        # Of several numbers the write is one more, and multiplies none.
        own = action.n if isinstance(action, spaces.Discrete) else 1
        if self._writes * own > _MOST_ACTIONS:
            raise ValueError(
                f"`external_memory` (={memory!r}) must leave fewer than 2^31 actions, "
                f"but it multiplies {own} by 2^{self.k}."
            )

    def _unsuited(self, needed: str, space: Any, what: str = "observations") -> str:
        return (
            f"`external_memory` (={self.memory!r}) needs {what} that are {needed}, "
            f"but those of {self.env.name} are {space!r}."
        )

    @property
    def name(self) -> str:
        """The environment's name and the memory's."""
        return f"{self.env.name}-{self.memory}"

    @property
    def num_actions(self) -> int:
        """Number of actions with the writes; of numbers, where the action is several."""
        if self._writes == 1:
            return self.env.num_actions
        action = self.action_space()
        return action.n if isinstance(action, spaces.Discrete) else len(action.nvec)

    @property
    def _writes(self) -> int:
        """In how many ways an action can write."""
        if self.kind == "B":
            return 2**self.k
        return 2 if self.kind in ("O", "OA") and self.k else 1

    def _spaces(self, params: EnvParams | None) -> tuple[Any, Any]:
        """The environment's own observations and actions."""
        params = self.default_params if params is None else params
        return self.env.observation_space(params), self.env.action_space(params)

    def action_space(self, params: EnvParams | None = None) -> Any:
        """Multiply the environment's actions by the ways to write."""
        _, action = self._spaces(params)
        if self._writes == 1:
            return action
        if isinstance(action, spaces.Discrete):
            return spaces.Discrete(action.n * self._writes)
        return MultiDiscrete((*action.nvec, self._writes))

    def observation_space(self, params: EnvParams | None = None) -> MultiDiscrete | spaces.Box:
        """Join the environment's observations with what the memory can hold."""
        observation, action = self._spaces(params)
        if _is_discrete(observation):
            own = _counts(observation)
            slot = [n + 1 for n in own + (_counts(action) if self.kind == "OA" else ())]
            return MultiDiscrete((*own, *([2] if self.kind == "B" else slot) * self.k))
        low, high = (
            jnp.broadcast_to(jnp.asarray(bound, jnp.float32), observation.shape).ravel()
            for bound in (observation.low, observation.high)
        )
        zero, one = jnp.zeros(1, jnp.float32), jnp.ones(1, jnp.float32)
        if self.kind == "B":
            lows, highs = [zero], [one]
        else:
            acted = jnp.zeros(width(action) if self.kind == "OA" else 0, jnp.float32)
            lows = [zero, jnp.minimum(low, 0), acted]
            highs = [one, jnp.maximum(high, 0), acted + 1]
        low = jnp.concatenate([low, *lows * self.k])
        high = jnp.concatenate([high, *highs * self.k])
        return spaces.Box(low, high, low.shape, jnp.float32)

    def _begin(
        self, key: Any, observation: Any, env_state: Any, last: Any, params: Any
    ) -> tuple[Any, EnvState]:
        observation = self._vector(observation)
        state = EnvState(env_state, observation, self._empty(observation, params))
        return self._join(observation, state.memory), state

    def step(self, key: PRNGKeyArray, state: Any, action: Any, params: Any = None) -> Step:
        """Take a step and write; where the episode ends, begin the next one."""
        own, write = self._split(action, params)
        written = self._write(state, own, write, params)
        observation, env_state, reward, terminated, truncated, info = self._inside(
            key, state.env_state, own, params
        )
        observation = self._vector(observation)
        final = self._vector(info["final_observation"])
        memory = jnp.where(terminated | truncated, jnp.zeros_like(written), written)
        info = {**info, "final_observation": self._join(final, written)}
        state = EnvState(env_state, observation, memory)
        return self._join(observation, memory), state, reward, terminated, truncated, info

    def _split(self, action: Any, params: Any) -> tuple[Any, Int32[Array, ""]]:
        """The environment's action, and the write."""
        if self._writes == 1:
            return action, jnp.int32(0)
        action = jnp.asarray(action, jnp.int32)
        _, space = self._spaces(params)
        if isinstance(space, spaces.Discrete):
            return action % space.n, action // space.n
        return action[:-1], action[-1]

    def _empty(self, observation: Array, params: Any) -> Array:
        """A memory that holds nothing."""
        if self.kind == "B":
            return jnp.zeros((self.k,), jnp.int32)
        _, action = self._spaces(params)
        slot = self._slot(observation, jnp.zeros(action.shape, jnp.int32), params)
        return jnp.zeros((self.k, len(slot)), slot.dtype)

    def _slot(self, observation: Array, action: Any, params: Any) -> Array:
        """What is pushed of an observation and the action that was chosen on it."""
        one = jnp.ones(1, jnp.float32)
        parts = [observation + 1] if self._discrete else [one, observation]
        if self.kind == "OA":
            _, space = self._spaces(params)
            action = jnp.asarray(action, jnp.int32)
            raised = jnp.atleast_1d(action) + 1
            parts.append(raised if self._discrete else encode(space, action))
        return jnp.concatenate(parts)

    def _write(self, state: EnvState, action: Any, write: Int32[Array, ""], params: Any) -> Array:
        """The memory after an action."""
        if self.kind == "B":
            return (write >> jnp.arange(self.k, dtype=jnp.int32)) & 1
        slot = self._slot(state.observation, action, params)
        pushed = jnp.concatenate([slot[None], state.memory])[: self.k]
        return pushed if self.kind == "K" else jnp.where(write == 1, pushed, state.memory)

    def _vector(self, observation: Any) -> Array:
        """The environment's observation as a vector."""
        # By the space and not by its dtype: a `Box` may hold integers.
        return jnp.ravel(observation).astype(jnp.int32 if self._discrete else jnp.float32)

    def _join(self, observation: Array, memory: Array) -> Array:
        """What the agent sees."""
        return jnp.concatenate([observation, memory.ravel().astype(observation.dtype)])


def parse(memory: Any) -> tuple[str, int]:
    """Read the kind and the size that a memory's name says.

    **Arguments:**

    - `memory`: such as `"B1"`.

    **Returns:**

    One of `KINDS`, and k.

    **Raises:**

    `TypeError` if it is not text, `ValueError` if it is not a kind and a size.
    """
    if not isinstance(memory, str):
        raise TypeError(f"`external_memory` (={memory!r}) must be text, such as 'B1'.")
    match = re.fullmatch(r"([A-Z]+)(\d{1,3})", memory)
    if match is None or match[1] not in KINDS:
        raise ValueError(
            f"`external_memory` (={memory!r}) must be {', '.join(KINDS[:-1])} or {KINDS[-1]} "
            "and a size from 0 to 999, such as 'B1'."
        )
    return match[1], int(match[2])


def _is_discrete(space: Any) -> bool:
    return isinstance(space, spaces.Discrete | MultiDiscrete)


def _counts(space: spaces.Discrete | MultiDiscrete) -> tuple[int, ...]:
    """How many values each number of a discrete space has."""
    return (space.n,) if isinstance(space, spaces.Discrete) else tuple(space.nvec)
