"""Steps per second of every environment, against the Python package that it is true to.

`python -m benchmarks.envs`. A jitted `lax.scan` over vmapped steps with random actions, resets
included. The Python package steps one environment; ratios are to it. For brax they are to its own
wrappers with as many environments.

python -m benchmarks.envs --names RepeatPreviousEasy brax/ant --envs 1 4096 --markdown
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import tyro
from gymnax.environments.environment import Environment

from agents import envs
from agents.envs.registry import OWN
from benchmarks._command import command
from benchmarks._measure import QUICK, Budget, Measurement, Output, Row, compete, heading, ratio
from benchmarks._packages import brax_program, package_of, steps_per_second


def distinct() -> tuple[str, ...]:
    """Names of this library's environments without those that run the program of another name.

    **Returns:** the names. "RepeatPrevious" is "RepeatPreviousEasy", and what brax's environments
    show of their state makes no difference. Of packages whose environments compile for minutes none
    is among them.
    """
    return tuple(
        name
        for name in OWN
        if f"{name}Easy" not in OWN
        and not name.endswith(("-P", "-V", "-pomdp"))
        and ("/" not in name or name.startswith("brax/"))
    )


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.envs` measures."""

    names: tuple[str, ...] = distinct()
    """Names of environments; gymnax's are not among the default ones."""
    envs: tuple[int, ...] = (1, 64, 4096)
    """Numbers of environments side by side."""
    seconds: float = 0.3
    """Measured time per program."""
    python_seconds: float = 0.5
    """Measured time of a Python package per environment."""
    quick: bool = False
    """Small and short, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


_QUICK = {"names": ("RepeatPreviousEasy", "recall"), "envs": (1, 4), "python_seconds": 0.0}


def steps_for(num_envs: int) -> int:
    """Steps of each environment in a run: fewer where there are many, and at least 16."""
    return max(16, 1024 // math.isqrt(num_envs))


def spread(env: Environment, params: Any, num_envs: int) -> Any:
    """States from all over an episode, so that as many resets fall into a run as in the long run.

    **Arguments:**

    - `env`, `params`: an environment.
    - `num_envs`: how many states.

    **Returns:** the states. They are of one environment at as many times.
    """
    actions = env.action_space(params)
    steps = min(envs.episode_steps(env, params), 1024)

    def step(state, key):
        key_action, key_step = jax.random.split(key)
        state = env.step(key_step, state, actions.sample(key_action), params)[1]
        return state, state

    def run(key):
        key_reset, key_steps, key_times = jax.random.split(key, 3)
        _, first = env.reset(key_reset, params)
        _, states = jax.lax.scan(step, first, jax.random.split(key_steps, steps))
        times = jax.random.randint(key_times, (num_envs,), 0, steps)
        return jax.tree.map(lambda x: x[times], states)

    return jax.jit(run)(jax.random.key(0))


def program(
    env: Environment, params: Any, num_envs: int, steps: int, states: Any
) -> tuple[Callable, tuple]:
    """A loop of vmapped steps with keys split on the way and actions drawn beforehand.

    **Arguments:**

    - `env`, `params`: an environment.
    - `num_envs`: environments side by side.
    - `steps`: steps of each.
    - `states`: at least so many states to start from.

    **Returns:** a function and its arguments for `compete`. Its results are the last states and the
    sum of everything that the agent would see.
    """
    sample = env.action_space(params).sample
    keys = jax.random.split(jax.random.key(1), (steps, num_envs))
    actions = jax.jit(jax.vmap(jax.vmap(sample)))(keys)
    states = jax.tree.map(lambda x: x[:num_envs], states)

    def run(key, states, actions):
        def step(carry, x):
            states, total = carry
            key, actions = x
            observation, states, reward, terminated, truncated, _ = jax.vmap(
                env.step, (0, 0, 0, None)
            )(jax.random.split(key, num_envs), states, actions, params)
            seen = jax.tree.leaves(observation), reward, terminated, truncated
            total = jax.tree.map(lambda t, x: t + x.astype(jnp.float32), total, seen)
            return (states, total), None

        shape = jax.eval_shape(env.observation_space(params).sample, key)
        zeros = lambda x: jnp.zeros((num_envs, *x.shape), jnp.float32)  # noqa: E731
        total = list(map(zeros, jax.tree.leaves(shape))), *[jnp.zeros(num_envs, jnp.float32)] * 3
        xs = jax.random.split(key, steps), actions
        return jax.lax.scan(step, (states, total), xs)[0]

    return run, (jax.random.key(2), states, actions)


def row_for(name: str, options: Options, budget: Budget) -> Row:
    """The row of one environment; rates in steps of an environment per second."""
    env, params = envs.make(name)
    states = spread(env, params, max(options.envs))
    candidates: dict[str, tuple[Callable, tuple]] = {}
    for n in options.envs:
        candidates[f"ours {n}"] = program(env, params, n, steps_for(n), states)
        if isinstance(env, envs.BraxEnvironment):
            candidates[f"brax {n}"] = brax_program(env, n, steps_for(n))
    results = compete(candidates, budget=budget)

    def rate(label: str, n: int) -> float:
        measurement: Measurement = results[f"{label} {n}"]
        return n * steps_for(n) / measurement.run_seconds

    row: Row = {"environment": name, "package": "", "package's steps/s": float("nan")}
    found = package_of(name)
    if found is not None:
        row["package"], make = found
        row["package's steps/s"] = steps_per_second(make, options.python_seconds)
    for n in options.envs:
        row[f"steps/s, {n}"] = rate("ours", n)
    if isinstance(env, envs.BraxEnvironment):
        row["package"] = "brax"
        row["package's steps/s"] = rate("brax", max(options.envs))
        row |= {f"× {n}": ratio(row[f"steps/s, {n}"], rate("brax", n)) for n in options.envs}
    elif found is not None:
        row |= {
            f"× {n}": ratio(row[f"steps/s, {n}"], row["package's steps/s"]) for n in options.envs
        }
    row["compile s"] = results[f"ours {max(options.envs)}"].compile_seconds
    return row


def run(options: Options) -> dict[str, list[Row]]:
    """Measure and print.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:** the rows of the table `envs`.
    """
    budget = Budget(seconds=options.seconds, least=3, compilations=1)
    if options.quick:
        budget, options = QUICK, replace(options, **_QUICK)
    rows = [row_for(name, options, budget) for name in options.names]
    sizes = ", ".join(map(str, options.envs))
    title = f"Steps per second of {sizes} environments, random actions, resets included"
    options.output.table(heading(title, budget=budget), rows)
    options.output.save({"envs": rows})
    return {"envs": rows}


if __name__ == "__main__":
    command(run, Options, __doc__)
