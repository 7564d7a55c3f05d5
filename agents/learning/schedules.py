"""Learning rates that change while training goes on."""

import optax


def falling_rate(
    rate: float, steps: int | None, *, steps_per_iteration: int, updates: int = 1
) -> optax.ScalarOrSchedule:
    """Return a learning rate that falls linearly to zero over environment steps.

    **Arguments:**

    - `rate`: where it starts.
    - `steps`: over how many it falls; `None` for a constant rate.
    - `steps_per_iteration`: environment steps of an iteration.
    - `updates`: the optimizer's in each iteration.
    """
    if steps is None:
        return rate
    return optax.linear_schedule(rate, 0.0, iterations_of(steps, steps_per_iteration) * updates)


def iterations_of(steps: int, steps_per_iteration: int) -> int:
    """Count the iterations that so many environment steps take, as training does: rounded up."""
    return -(-steps // steps_per_iteration)
