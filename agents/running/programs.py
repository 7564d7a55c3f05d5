"""The compiled programs of a run of several seeds, each program compiled once."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32

from agents.acting import evaluate
from agents.agent import AbstractAgent, AgentState, Report
from agents.mapped import mapped
from agents.running.devices import AbstractPlacement, Devices, placement
from agents.running.memory import check_size
from agents.running.messages import check_order
from agents.running.processes import several
from agents.running.scalars import INDEX
from scan.trees import described
from zoo.parts.checks import shown

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
        between processes, see `check_order`; for a report, see `check_report`. And `ValueError` or
        `TypeError` for what `iterate` returns, see `check_iteration`.
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
            lowered = traced_step(agent, place, self.state).lower()
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


def check_iteration(agent: AbstractAgent, state: Any, answer: Any) -> None:
    """Raise `ValueError` or `TypeError` where `iterate` does not return what it is asked for.

    **Arguments:**

    - `agent`: whose `iterate` it is.
    - `state`: what it was called with; the state that it returns has to be built alike.
    - `answer`: what it returned.
    """
    subject = f"`{type(agent).__name__}.iterate`"
    if not isinstance(answer, tuple) or len(answer) != 2:
        found = f"{len(answer)} values" if isinstance(answer, tuple) else type(answer).__name__
        raise ValueError(f"{subject} returns {found}, and not (state, report).")
    after, report = answer
    for name, part, kind in (("state", after, AgentState), ("report", report, Report)):
        if not isinstance(part, kind):
            raise TypeError(
                f"{subject} returns a {name} of {type(part).__name__}, which must be "
                f"agents.{kind.__name__}."
            )
    for name in ("metrics", "diagnostics", "episodes"):
        part = getattr(report, name)
        if not isinstance(part, Mapping):
            raise TypeError(
                f"`Report`: `{name}` (={shown(part)}) must be a dictionary of numbers by name."
            )
    (old, was), (new, now) = map(jax.tree_util.tree_flatten_with_path, (state, after))
    before, there = ({jax.tree_util.keystr(path): x for path, x in tree} for tree in (old, new))
    for place in before | there:
        if place not in there or place not in before:
            word = "without" if place in before else "with"
            raise ValueError(
                f"{subject} returns a state {word} {place[1:]}, and was called with one that has "
                f"{'it' if place in before else 'none'}."
            )
        if _type(before[place]) != _type(there[place]):
            raise ValueError(
                f"{subject} returns a state whose {place[1:]} is {_type(there[place])}, and was "
                f"called with {_type(before[place])}."
            )
    if was != now:
        raise ValueError(f"{subject} returns a state of {now}, and was called with one of {was}.")


def _type(leaf: Any) -> str:
    return described(leaf) if eqx.is_array_like(leaf) else type(leaf).__name__


def traced_step(
    agent: AbstractAgent, place: AbstractPlacement, state: AgentState
) -> jax.stages.Traced:
    """Trace an iteration of all seeds; within `place.splitting()`.

    **Arguments:**

    - `place`: where the state lies.
    - `state`: its shapes.
    """
    return jax.jit(
        place.over_seeds(_checked_iterate(agent)),
        donate_argnums=0,
        in_shardings=(place.state,),
        out_shardings=(place.state, place.per_seed),
    ).trace(state)


def _checked_iterate(agent: AbstractAgent) -> Callable[[Any], Any]:
    """`iterate` of one seed, checked where it is traced, which it is once."""

    def iterate(state: Any) -> Any:
        answer = agent.iterate(state)
        check_iteration(agent, state, answer)
        return answer

    return iterate


def check_report(report: Report) -> None:
    """Raise `ValueError` for what cannot be a column of numbers, one for each seed, or a flag.

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
    learned = report.learned
    if learned.dtype != bool or len(learned.shape) != 1:
        found = f"{learned.dtype}{list(learned.shape[1:])}"
        raise ValueError(f"`Report`: `learned` (={found}) must be one flag.")


def init_seeds(
    agent: AbstractAgent, seed: int, seeds: int, over_seeds: OverSeeds = mapped
) -> Callable[[], Any]:
    """Return a function that makes the state of all seeds, with a leading axis over them."""

    def init() -> Any:
        keys = jax.random.split(jax.random.key(seed), seeds)
        states = over_seeds(lambda key: _checked_arrays(agent, agent.init(key=key)))(keys)
        return jax.tree.map(_strong, states)

    return init


def _checked_arrays(agent: AbstractAgent, state: Any) -> Any:
    """A state as it is; `TypeError` where a leaf is no array, such as a function in a network."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if not eqx.is_array(leaf):
            raise TypeError(
                f"the state of {type(agent).__name__} has {jax.tree_util.keystr(path)} "
                f"(={shown(leaf)}), which is no array: make it one, or its field static, or wrap a "
                "function in `jax.tree_util.Partial`."
            )
    return state


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
