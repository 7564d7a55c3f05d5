"""Jumanji: puzzles, packing and routing; observations that are trees become vectors."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from jaxtyping import Array, Float32

from ..core.spaces import MultiDiscrete
from .package_env import AbstractPort, Outcome, PackageEnvironment, port

NAMES = (
    "BinPack-v2",
    "CVRP-v1",
    "Cleaner-v0",
    "FlatPack-v0",
    "Game2048-v1",
    "GraphColoring-v1",
    "JobShop-v0",
    "Knapsack-v1",
    "MMST-v0",
    "Maze-v0",
    "Minesweeper-v0",
    "MultiCVRP-v0",
    "PacMan-v1",
    "RobotWarehouse-v0",
    "RubiksCube-partly-scrambled-v0",
    "RubiksCube-v0",
    "SlidingTilePuzzle-v0",
    "Snake-v1",
    "Sudoku-v0",
    "Sudoku-very-easy-v0",
    "TSP-v1",
    "Tetris-v0",
)
"""Every environment of jumanji with one reward for all, and without a download."""

_MOST_VALUES = 32  # of an integer that is seen as one-hot
_NEVER = 2**31 - 1
_NO_LIMIT = 10_000  # of games that end by themselves
_ANY = float(np.finfo(np.float32).max)


class JumanjiPort(AbstractPort):
    """An environment of the package jumanji; its tree of observations is seen as one vector.

    In the order of the tree's leaves: an integer that has at most 32 values is one-hot, a greater
    one is divided by its largest value, a flag is 0 or 1, and a real number stays what it is. The
    mask of valid actions is one of the leaves.

    Source: Bonnet et al., "Jumanji: a Diverse Suite of Scalable Reinforcement Learning Environments
    in JAX", ICLR 2024; version 1.1.2.
    """

    package, extra = "jumanji", "jumanji"

    def __init__(self, name: str):
        """**Arguments:**

        - `name`: one of `NAMES`.
        """
        import jumanji  # pyright: ignore[reportMissingImports]

        self.name = name
        self.env = jumanji.make(name)
        self.actions = _actions(self.env.action_spec)
        seen = jax.eval_shape(self.env.reset, jax.random.PRNGKey(0))[1].observation
        self.leaves = [
            _Leaf(_at(self.env.observation_spec, path), leaf)
            for path, leaf in jax.tree_util.tree_flatten_with_path(seen)[0]
        ]
        low = np.concatenate([leaf.bounds[0] for leaf in self.leaves])
        high = np.concatenate([leaf.bounds[1] for leaf in self.leaves])
        self.observations = spaces.Box(low, high, low.shape, jnp.float32)  # pyright: ignore
        self.limit = getattr(self.env, "time_limit", _NO_LIMIT)
        if hasattr(self.env, "time_limit"):
            # Its own limit would end the episode as a loss does.
            self.env.time_limit = _NEVER

    def reset(self, key: Any) -> tuple[Any, Any]:
        inner, first = self.env.reset(key)
        return self._vector(first.observation), inner

    def step(self, key: Any, inner: Any, action: Any, limit: Any) -> Outcome:
        spec = self.env.action_spec
        action = jnp.reshape(action, spec.shape).astype(spec.dtype)
        inner, after = self.env.step(inner, action)
        seen = self._vector(after.observation)
        return Outcome(seen, inner, after.reward, after.last(), dict(after.extras or {}))

    def _vector(self, observation: Any) -> Float32[Array, " width"]:
        leaves = jax.tree.leaves(observation)
        return jnp.concatenate([x(y) for x, y in zip(self.leaves, leaves, strict=True)])


class _Leaf:
    """How one leaf of an observation becomes numbers."""

    def __init__(self, spec: Any, like: Any):
        least: Any = getattr(spec, "minimum", None)
        most: Any = getattr(spec, "maximum", None)
        size = math.prod(like.shape)
        integer = jnp.issubdtype(like.dtype, jnp.integer) and most is not None
        self.least = int(np.min(np.asarray(least))) if integer else 0
        self.values = int(np.max(np.asarray(most))) - self.least + 1 if integer else 0
        self.one_hot = integer and self.values <= _MOST_VALUES
        self.scale = 1.0
        if self.one_hot:
            low, high = np.zeros(size * self.values), np.ones(size * self.values)
        elif integer:
            self.scale = float(max(abs(self.least), abs(self.least + self.values - 1)))
            low, high = np.full(size, self.least / self.scale), np.ones(size)
        elif like.dtype == bool:
            low, high = np.zeros(size), np.ones(size)
        else:
            low, high = np.full(size, -_ANY), np.full(size, _ANY)
        self.integer, self.bounds = integer, (low.astype(np.float32), high.astype(np.float32))

    def __call__(self, x: Any) -> Float32[Array, " numbers"]:
        if self.one_hot:
            hot = jax.nn.one_hot(jnp.asarray(x, jnp.int32) - self.least, self.values)
            return hot.ravel().astype(jnp.float32)
        numbers = jnp.ravel(x).astype(jnp.float32) / self.scale
        # A longer time limit than the package's own lets a count of steps exceed its bound.
        return jnp.clip(numbers, *self.bounds) if self.integer else numbers


def _at(spec: Any, path: Any) -> Any:
    """The part of a specification that a leaf of the observation has."""
    for key in path:
        spec = spec[getattr(key, "name", getattr(key, "key", None))]
    return spec


def _actions(spec: Any) -> Any:
    """gymnax's kind of a specification of actions."""
    if hasattr(spec, "num_values"):
        counts = np.asarray(spec.num_values)
        return (
            MultiDiscrete(counts.ravel().tolist()) if counts.ndim else spaces.Discrete(int(counts))
        )
    low, high = (np.broadcast_to(bound, spec.shape) for bound in (spec.minimum, spec.maximum))
    if jnp.issubdtype(spec.dtype, jnp.integer):
        return MultiDiscrete((high + 1).ravel().tolist())
    return spaces.Box(low, high, spec.shape, jnp.float32)  # pyright: ignore


def jumanji(env_name: str = NAMES[0]) -> PackageEnvironment:
    """Make an environment of jumanji.

    **Arguments:**

    - `env_name`: one of `NAMES`.

    **Raises:**

    `ModuleNotFoundError` with the line that installs jumanji, if it is missing.
    """
    return port(JumanjiPort, env_name)
