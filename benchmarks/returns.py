"""Discounted returns and advantages of episodes of many lengths: one reverse scan against loops.

`python -m benchmarks.returns`. A tape of episodes end to end is done in one scan. The baseline is
a host loop over the episodes, each by a jitted `jax.lax.scan` of its own, padded to the longest so
that it is compiled once: what batches of episodes in a list lead to. The same loop compiled as a
whole, `jax.lax.map` over padded episodes, stands beside it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from agents.learning.returns import discounted_return, gae
from benchmarks._command import command
from benchmarks._measure import Output, Row

DISCOUNT, LAMBDA = 0.99, 0.95


@dataclass(frozen=True)
class Options:
    """Sizes and output."""

    episodes: tuple[int, ...] = (10, 100, 1000, 10_000)
    """Numbers of episodes."""
    longest: tuple[int, ...] = (10, 100, 1000)
    """Episodes have 1 to so many steps."""
    most_steps: int = 5_000_000
    """Larger ones, padding included, are left out."""
    repeats: int = 5
    """Measurements; the least time counts."""
    quick: bool = False
    """A short form with tiny sizes, for tests."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


def run(options: Options) -> list[Row]:
    """Measure and print.

    **Returns:**

    One row for each size and function.
    """
    sizes = [(n, t) for n in options.episodes for t in options.longest]
    sizes = [(3, 4)] if options.quick else [s for s in sizes if s[0] * s[1] <= options.most_steps]
    rows = [row for size in sizes for row in measured(*size, options.repeats)]
    title = "Discounted returns and advantages over whole episodes, milliseconds"
    options.output.table(title, rows)
    options.output.save({"returns": rows})
    return rows


def measured(episodes: int, longest: int, repeats: int) -> list[Row]:
    """The rows of one size."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, longest + 1, episodes)
    steps = int(lengths.sum())
    reward, value = (rng.normal(size=steps).astype(np.float32) for _ in range(2))
    done = np.zeros(steps, bool)
    done[np.cumsum(lengths) - 1] = True
    starts = np.cumsum(lengths) - lengths
    tape = [jnp.asarray(x) for x in (reward, value, done)]
    padded: list[Any] = []
    for x in (reward, value):
        rows = np.zeros((episodes, longest), np.float32)
        for row, start, length in zip(rows, starts, lengths, strict=True):
            row[:length] = x[start : start + length]
        padded.append(jnp.asarray(rows))
    singles = [list(x) for x in padded]
    found = []
    for name, whole, alone in (
        ("discounted returns", returns_of_tape, returns_of_episode),
        ("advantages", advantages_of_tape, advantages_of_episode),
    ):
        on_tape, one = jax.jit(whole), jax.jit(alone)
        mapped = jax.jit(compiled_loop(alone))
        expected = np.asarray(on_tape(*tape))
        loop = lambda one=one: [one(r, v) for r, v in zip(*singles, strict=True)]  # noqa: E731
        for got in (np.stack(loop()), np.asarray(mapped(*padded))):
            together = np.concatenate([x[:n] for x, n in zip(got, lengths, strict=True)])
            np.testing.assert_allclose(together, expected, rtol=1e-3, atol=1e-3)
        times = [
            least(f, repeats)
            for f in (lambda: on_tape(*tape), loop, lambda: mapped(*padded))  # noqa: B023
        ]
        found.append(
            {
                "what": name,
                "episodes": episodes,
                "longest": longest,
                "steps": steps,
                "one scan ms": 1e3 * times[0],
                "loop over jitted episodes ms": 1e3 * times[1],
                "compiled loop over episodes ms": 1e3 * times[2],
                "× faster than the loop": times[1] / times[0],
                "× faster than the compiled loop": times[2] / times[0],
            }
        )
    return found


def compiled_loop(alone: Callable[..., Any]) -> Callable[..., Any]:
    """One episode after the other, in one program."""
    return lambda rewards, values: jax.lax.map(lambda x: alone(*x), (rewards, values))


def returns_of_tape(reward: Any, value: Any, done: Any) -> Any:
    """All episodes by one scan."""
    return discounted_return(reward, done, jnp.float32(0), discount=DISCOUNT)


def advantages_of_tape(reward: Any, value: Any, done: Any) -> Any:
    """All episodes by one scan; each ends terminated."""
    following = jnp.concatenate([value[1:], value[:1]])
    never = jnp.zeros_like(done)
    return gae(reward, value, following, done, never, discount=DISCOUNT, gae_lambda=LAMBDA)


def returns_of_episode(reward: Any, value: Any) -> Any:
    """One padded episode, step by step from its end; rewards behind it are zero."""

    def step(following, reward):
        now = reward + DISCOUNT * following
        return now, now

    return jax.lax.scan(step, jnp.float32(0), reward, reverse=True)[1]


def advantages_of_episode(reward: Any, value: Any) -> Any:
    """One padded episode; rewards and values behind it are zero."""

    def step(carry, now):
        (advantage, following), (reward, value) = carry, now
        error = reward + DISCOUNT * following - value
        advantage = error + DISCOUNT * LAMBDA * advantage
        return (advantage, value), advantage

    start = (jnp.float32(0), jnp.float32(0))
    return jax.lax.scan(step, start, (reward, value), reverse=True)[1]


def least(function: Callable[[], Any], repeats: int) -> float:
    """The least of some times, in seconds."""
    jax.block_until_ready(function())
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(function())
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    command(run, Options, __doc__)
