"""Mortar Mayhem: a sequence of commands is shown, and then to be walked on a small grid."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from zoo.annotations import Count, checked

from ..core.base import BaseEnvironment
from ..core.hidden import Hides
from ..core.lookup import at
from ..core.one_end import OneEnd

STAY, UP, RIGHT, DOWN, LEFT = range(5)
COMMANDS = 5

_ROWS = np.array([0, -1, 0, 1, 0], np.int32)
_COLUMNS = np.array([0, 0, 1, 0, -1], np.int32)


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of Mortar Mayhem; batched states have leading axes.

    `time`: steps taken. `row`, `column`: where the agent is. `commands`: all of them, shape
    `(length,)`. All are int32. `failed`: whether one was not followed, Boolean.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    row: Any
    column: Any
    commands: Any
    failed: Any


class MortarMayhem(OneEnd[Any, EnvParams], Hides, BaseEnvironment):
    r"""See a command at each of `length` steps, then follow them in order, one at each step.

    The agent stands in the middle of a grid of `size` times `size` cells. A command is to stay, or
    to go up, right, down or left, 0 to 4, and so is an action. A command is uniform over those that
    do not leave the grid from where the commands before it lead. For the first `length` steps the
    observation is a command, and an action does nothing; from then on it is 5 plus the agent's
    cell, `row * size + column`. An action that leads to another cell than the command ends the
    episode, with 0; each other one gives \( 1 / L \), and the last ends it. An action against the
    border stays.

    The best return is 1, in \( 2 L \) steps. Without memory, and for anything that knows the time
    and the cell but not the commands, the best is to walk straight to a border, along it into a
    corner, and to stay there: with \( k = (\mathrm{size} - 1) / 2 \) the i-th command is met with
    probability \( p_i = 1/5 \) for \( i \le k \), \( 1/4 \) for \( k < i \le 2 k \) and \( 1/3 \)
    after that, which are the highest of all that can be reached by then, and the return is
    \( \frac{1}{L} \sum_{i=1}^{L} \prod_{j \le i} p_j \).

    Source: the idea is that of Pleines et al., "Memory Gym: Partially Observable Challenges to
    Memory-Based Agents", ICLR 2023, where the agent sees pixels, has several steps for a command,
    and gets 0.1 for each.
    """

    best_return = 1.0

    @checked
    def __init__(self, length: Count = 5, size: Annotated[int, Ge(3)] = 5):
        """**Arguments:**

        - `length`: how many commands there are, L; at least 1.
        - `size`: cells on a side of the grid; odd and at least 3.

        **Raises:**

        `TypeError` or `ValueError` for other values.
        """
        self.length = length
        self.size = size
        if self.size % 2 == 0:
            raise ValueError(f"`size` (={size}) must be odd, so that there is a middle.")
        super().__init__(
            observations=spaces.Discrete(COMMANDS + self.size**2),
            actions=spaces.Discrete(COMMANDS),
            limit=2 * self.length,
        )

    @property
    def memoryless_return(self) -> float:
        """The best expected return of what does not depend on the commands."""
        half = self.size // 2
        step = np.arange(1, self.length + 1)
        chance = np.where(step <= half, 1 / 5, np.where(step <= 2 * half, 1 / 4, 1 / 3))
        return float(np.cumprod(chance).sum() / self.length)

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether a command was not followed, or all were."""
        return state.failed | (state.time >= 2 * self.length)

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Draw the commands."""
        middle = jnp.int32(self.size // 2)

        def draw(cell, key):
            inside = jax.vmap(self._is_inside, (None, 0))(cell, jnp.arange(COMMANDS))
            # Gumbel's maximum: uniform over those that stay inside.
            noise = jax.random.uniform(key, (COMMANDS,), jnp.float32)
            command = jnp.argmax(jnp.where(inside, noise, -1)).astype(jnp.int32)
            return self._moved(cell, command), command

        keys = jax.random.split(key, self.length)
        _, commands = jax.lax.scan(draw, (middle, middle), keys)
        state = EnvState(
            time=jnp.int32(0),
            row=middle,
            column=middle,
            commands=commands,
            failed=jnp.bool_(False),
        )
        return self._observe(state), state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Watch, or follow a command."""
        follows = state.time >= self.length
        cell = state.row, state.column
        went = self._moved(cell, jnp.asarray(action, jnp.int32))
        told = self._moved(cell, at(state.time - self.length, state.commands))
        right = (went[0] == told[0]) & (went[1] == told[1])
        row, column = (jnp.where(follows, new, old) for new, old in zip(went, cell, strict=True))
        after = EnvState(
            time=state.time + 1,
            row=row,
            column=column,
            commands=state.commands,
            failed=follows & ~right,
        )
        reward = jnp.where(follows & right, jnp.float32(1 / self.length), jnp.float32(0))
        return self._observe(after), after, reward, self.is_terminated(after, params), {}

    def _is_inside(self, cell: Any, command: Int[Array, ""]) -> Bool[Array, ""]:
        row = cell[0] + jnp.asarray(_ROWS)[command]
        column = cell[1] + jnp.asarray(_COLUMNS)[command]
        return (row >= 0) & (row < self.size) & (column >= 0) & (column < self.size)

    def _moved(self, cell: Any, command: Int[Array, ""]) -> tuple[Any, Any]:
        inside = self._is_inside(cell, command)
        row = jnp.where(inside, cell[0] + jnp.asarray(_ROWS)[command], cell[0])
        return row, jnp.where(inside, cell[1] + jnp.asarray(_COLUMNS)[command], cell[1])

    def _observe(self, state: EnvState) -> Int32[Array, ""]:
        cell = COMMANDS + state.row * self.size + state.column
        return jnp.where(state.time < self.length, at(state.time, state.commands), cell)

    @property
    def hidden_space(self) -> spaces.Discrete:
        """A command."""
        return spaces.Discrete(COMMANDS)

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell the command to follow; 0 while they are seen."""
        return at(state.time - self.length, state.commands)
