"""Mystery Path: a way that is not seen, and that is found by remembering where one fell."""

import math
from typing import Annotated, Any

import jax
import jax.numpy as jnp
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


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of Mystery Path; batched states have leading axes.

    `time`: steps taken. `column`: columns crossed. `falls`: how often the agent fell. `path`: the
    row that holds in each column, shape `(length,)`. All are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    column: Any
    falls: Any
    path: Any


class MysteryPath(OneEnd[Any, EnvParams], Hides, BaseEnvironment):
    r"""Cross `length` columns of `rows` tiles each, of which one holds, and start again at a fall.

    Which tile holds is drawn for each column when an episode begins, uniformly, and is not seen.
    The action is the row to step to in the next column. If the tile holds, the agent stands there;
    otherwise it falls and is back before the first column. The observation is the number of columns
    crossed. Crossing all gives 1 and ends the episode; so does, with 0, fall number
    \( m + 1 \), where \( m = L (r - 1) \) is the most that a perfect memory needs. Other steps give
    0.

    The best return is 1: whoever remembers the tiles that did not hold never steps on one twice. A
    policy without memory crosses at each of its \( m + 1 \) attempts with a probability that
    depends on the path and is \( q = r^{-L} \) in the mean over paths. Its return is the mean of
    \( 1 - (1 - x)^{m + 1} \) over these probabilities \( x \), a concave function, and so at most
    \( 1 - (1 - q)^{m + 1} \), which uniformly random steps have. That is of a
    policy of the observation: one that also sees its previous action knows after a fall what did
    not hold, and with two columns of three rows crosses with .62 in place of .45.

    Source: the idea is that of Pleines et al., "Memory Gym: Partially Observable Challenges to
    Memory-Based Agents", ICLR 2023, where the path is one of cells on a grid seen in pixels, and
    falls are not counted.
    """

    # That it is at the start again says that it fell, but not from where.
    needs_previous_action = True

    best_return = 1.0

    @checked
    def __init__(self, length: Count = 5, rows: Annotated[int, Ge(2)] = 3):
        """**Arguments:**

        - `length`: how many columns there are, L; at least 1.
        - `rows`: tiles in a column, r; at least 2.

        **Raises:**

        `TypeError` or `ValueError` for other values.
        """
        self.length = length
        self.rows = rows
        self.most_falls = self.length * (self.rows - 1)
        super().__init__(
            observations=spaces.Discrete(self.length + 1),
            actions=spaces.Discrete(self.rows),
            limit=(self.most_falls + 1) * self.length,
        )

    @property
    def memoryless_return(self) -> float:
        """The best expected return of a policy that sees the observation and nothing else."""
        # 1 - (1 - r^-l)^n, without what a subtraction from 1 would lose of long paths.
        missed = math.log1p(-(self.rows**-self.length))
        return -math.expm1((self.most_falls + 1) * missed)

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether the agent is across, or fell too often."""
        return (state.column >= self.length) | (state.falls > self.most_falls)

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Draw the path."""
        path = jax.random.randint(key, (self.length,), 0, self.rows, jnp.int32)
        zero = jnp.int32(0)
        return zero, EnvState(time=zero, column=zero, falls=zero, path=path)

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Step to a row of the next column."""
        holds = action == at(state.column, state.path)
        after = EnvState(
            time=state.time + 1,
            column=jnp.where(holds, state.column + 1, 0),
            falls=jnp.where(holds, state.falls, state.falls + 1),
            path=state.path,
        )
        reward = (after.column >= self.length).astype(jnp.float32)
        return after.column, after, reward, self.is_terminated(after, params), {}

    @property
    def hidden_space(self) -> spaces.Discrete:
        """A row."""
        return spaces.Discrete(self.rows)

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell the row that holds in the next column."""
        return at(state.column, state.path)
