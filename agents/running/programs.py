"""The compiled programs of a run of several seeds, each program compiled once."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32

from agents.acting import evaluate
from agents.agent import AbstractAgent, Report
from agents.mapped import mapped
from agents.running.devices import Devices, placement
from agents.running.memory import check_size
from agents.running.messages import check_order
from agents.running.processes import several
from agents.running.scalars import INDEX

OverSeeds = Callable[[Callable[..., Any]], Callable[..., Any]]
"""How a function of one seed becomes one of all: `mapped`, or see `AbstractPlacement`."""

EVALUATED = ["evaluation_length", "evaluation_return"]
"""Names of what an evaluation measures."""

# `fold_in(key, i)` is the i-th key of `split(key, n)`: a number that no seed reaches.
_EVALUATION = 2**31


class Programs:
    """The compiled programs of a run of several `seeds`, all of its randomness from one `seed`.

    **Attributes:**

    - `init`: `() -> state`, with a leading axis over seeds.
    - `step`: `state -> (state, report)`; the given state's memory is used again.
    - `finite`: `state -> {path: [seed]}`, whether every array is finite.
    - `state`: shapes of the state.
    - `placement`: where it lies.
    - `metrics`, `checked`: names of all scalars, and of those that must be finite.
    - `compile_seconds`: the time that XLA took.
    """

    def __init__(
        self,
        agent: AbstractAgent,
        *,
        seed: int,
        seeds: int,
        evaluation_episodes: int,
        devices: Devices | None = None,
    ):
        """**Arguments:**

        - `agent`: what is run.
        - `seed`: the root of all randomness.
        - `seeds`: how many are run.
        - `evaluation_episodes`: episodes of each evaluation; 0 for no evaluation.
        - `devices`: see `placement`.

        **Raises:**

        `ValueError` if the run cannot be split over devices, see `placement`, or
        between processes, see `check_order`; also for a report, see `check_report`.
        """
        began = time.perf_counter()
        self.seeds = seeds
        self.steps_per_iteration = agent.steps_per_iteration
        self.placement = place = placement(devices, agent, seeds=seeds)
        # Traced once: an environment's space in the state equals only itself. And lowered from
        # bare shapes, so that a fresh and a resumed run share one program.
        init = init_seeds(agent, seed, seeds, place.over_seeds)
        with place.splitting():
            traced = jax.jit(init, out_shardings=place.state).trace()
            check_size(traced.out_info)
            lowered = traced.lower()
            self.init, self.state = lowered.compile(), shapes(lowered.out_info)
            lowered = jax.jit(
                place.over_seeds(agent.iterate),
                donate_argnums=0,
                in_shardings=(place.state,),
                out_shardings=(place.state, place.per_seed),
            ).lower(self.state)
            report = lowered.out_info[1]
            check_report(report)
            self.step = lowered.compile()
        if several():
            check_order(self.step)
        self.metrics, self.checked = sorted(report.scalars()), frozenset(report.metrics)
        self.finite = jax.jit(_finite_by_leaf, out_shardings=place.per_seed)
        if evaluation_episodes:
            play = _means_of(
                evaluate_seeds(agent, evaluation_episodes, over_seeds=place.over_seeds)
            )
            lowered = jax.jit(
                lambda learner, iteration: play(learner, evaluation_keys(seed, iteration, seeds)),
                in_shardings=(place.learner, None),
                out_shardings=place.per_seed,
            ).lower(self.state.learner, np.uint32(0))
            self.metrics += EVALUATED
            self.checked |= {*EVALUATED}
            self._evaluate = lowered.compile()
        self.compile_seconds = time.perf_counter() - began

    def evaluate(self, state: Any, iteration: int) -> dict[str, Any]:
        """Return mean return and length of fresh episodes, for each seed."""
        return self._evaluate(state.learner, np.uint32(iteration))


def check_report(report: Report) -> None:
    """Raise `ValueError` for what cannot be a column of numbers, one for each seed.

    **Arguments:**

    - `report`: shapes and dtypes, with a leading axis over seeds.
    """
    taken = {*INDEX, *EVALUATED}
    for part in (report.metrics, report.diagnostics, report.episodes):
        for name, x in part.items():
            if name in taken:
                raise ValueError(
                    f"`Report`: `{name}` must have another name: it stands for something else."
                )
            taken.add(name)
            real = any(jnp.issubdtype(x.dtype, kind) for kind in (jnp.integer, jnp.floating))
            if not real or len(x.shape) != 1:
                raise ValueError(
                    f"`Report`: `{name}` (={x.dtype}{list(x.shape[1:])}) must be one real number."
                )


def init_seeds(
    agent: AbstractAgent, seed: int, seeds: int, over_seeds: OverSeeds = mapped
) -> Callable[[], Any]:
    """Return a function that makes the state of all seeds, with a leading axis over them."""

    def init() -> Any:
        keys = jax.random.split(jax.random.key(seed), seeds)
        states = over_seeds(lambda key: agent.init(key=key))(keys)
        return jax.tree.map(_strong, states)

    return init


def evaluate_seeds(
    agent: AbstractAgent,
    episodes: int,
    *,
    greedy: bool = True,
    over_seeds: OverSeeds = mapped,
) -> Callable:
    """Return `(learners, keys) -> {name: [seed, episode]}`, which plays whole episodes."""

    def one(learner: Any, key: Any) -> dict:
        policy = agent.policy(learner)
        return evaluate(agent.actor, policy, episodes=episodes, greedy=greedy, key=key)

    return over_seeds(one)


def _means_of(play: Callable) -> Callable:
    def evaluate(learners: Any, keys: Any) -> dict:
        played = play(learners, keys)
        return {
            "evaluation_return": jnp.mean(played["returns"], axis=1),
            "evaluation_length": jnp.mean(played["lengths"].astype(jnp.float32), axis=1),
        }

    return evaluate


def evaluation_keys(seed: int, iteration: int | UInt32[Array, ""], seeds: int) -> Any:
    """Return a key for each seed to evaluate with, apart from all keys of training.

    Iterations are counted from 1; 0 is free for evaluations after training.
    """
    root = jax.random.fold_in(jax.random.key(seed), _EVALUATION)
    return jax.random.split(jax.random.fold_in(root, iteration), seeds)


def shapes(tree: Any) -> Any:
    """Return a state's shapes and dtypes, without what else a compiled program says of it."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)


def _strong(leaf: Any) -> Any:
    # A weakly typed leaf would compile the step anew after its first call.
    return leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf.astype(leaf.dtype)


def _finite_by_leaf(states: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(states)
    return {
        jax.tree_util.keystr(path): jnp.isfinite(leaf).reshape(leaf.shape[0], -1).all(axis=1)
        for path, leaf in leaves
        if jnp.issubdtype(leaf.dtype, jnp.inexact)
    }
