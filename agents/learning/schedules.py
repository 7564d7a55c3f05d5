"""Learning rates that change while training goes on."""

import jax.numpy as jnp
import optax
from jax.typing import ArrayLike

from zoo.parts.checks import MOST


def falling_rate(
    rate: float, steps: int | None, *, steps_per_iteration: int, updates: int = 1
) -> optax.ScalarOrSchedule:
    """Return a learning rate that falls linearly to zero over environment steps.

    **Arguments:**

    - `rate`: where it starts.
    - `steps`: over how many it falls; `None` for a constant rate.
    - `steps_per_iteration`: environment steps of an iteration.
    - `updates`: the optimizer's in each iteration.

    **Raises:**

    `ValueError` for a fall over more updates than an optimizer counts; it names the agents'
    setting, `anneal_steps`.
    """
    if steps is None:
        return rate
    total = iterations_of(steps, steps_per_iteration) * updates
    if total > MOST:
        raise ValueError(
            f"`anneal_steps` (={steps}) must be at most {MOST} updates of the optimizer, not "
            f"{total}."
        )
    return linear(rate, 0.0, total)


def linear(start: float, end: float, steps: int) -> optax.Schedule:
    """Return what goes linearly from one number to another over so many steps, and stays there."""
    moving = optax.linear_schedule(start, end, steps)

    def schedule(count: ArrayLike) -> ArrayLike:
        # Its last one is the end but for rounding: a rate below zero, say, would climb from there.
        return jnp.clip(moving(count), min(start, end), max(start, end))

    return schedule


def iterations_of(steps: int, steps_per_iteration: int) -> int:
    """Count the iterations that so many environment steps take, as training does: rounded up."""
    return -(-steps // steps_per_iteration)
