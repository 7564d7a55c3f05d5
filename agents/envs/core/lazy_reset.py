"""Resets that are only made where an episode ends, for environments whose reset is costly."""

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from gymnax.environments.environment import Environment, EnvParams
from jaxtyping import Array, Bool, Float32, PRNGKeyArray


class LazyReset(Environment[Any, EnvParams]):
    """Abstract: an environment whose `step` makes a reset only when an episode ends.

    gymnax's own `step` makes one at every step and selects. This one gives the same results from
    the same keys. Under `vmap` it resets the environments whose episode ends, a few at a time, and
    leaves the others alone, so that its cost grows with the number of episodes and not of steps.

    **Attributes:**

    - `resets_at_once`: how many; where fewer end, so many are made nevertheless.
    """

    resets_at_once: ClassVar[int] = 32

    @functools.partial(jax.jit, static_argnames=("self",))
    def step(
        self,
        key: PRNGKeyArray,
        state: Any,
        action: Any,
        params: EnvParams | None = None,
    ) -> tuple[Any, Any, Float32[Array, ""], Bool[Array, ""], Bool[Array, ""], dict]:
        """Take a step, and reset where the episode ends."""
        params = self.default_params if params is None else params
        key_step, key_reset = jax.random.split(key)
        last, state, reward, terminated, info = self.step_env(key_step, state, action, params)
        truncated = self.is_truncated(state, params)
        observation, state = replaced_where(
            terminated | truncated,
            self.reset_env,
            (key_reset, params),
            (last, state),
            self.resets_at_once,
        )
        info = info | {
            "terminated": terminated,
            "truncated": truncated,
            "final_observation": last,
        }
        return observation, state, reward, terminated, truncated, info


def replaced_where(
    flag: Bool[Array, ""], make: Callable, arguments: Any, old: Any, at_once: int
) -> Any:
    """Compute `make(*arguments)` where a flag is set and there only; give `old` elsewhere.

    Under `vmap`, `make` is called for those whose flag is set, a few at a time. A `cond` would call
    it for all of them.

    **Arguments:**

    - `flag`: a Boolean scalar.
    - `make`: a function of JAX arrays that closes over no traced ones.
    - `arguments`: its arguments.
    - `old`: like what it returns.
    - `at_once`: how many are computed at a time under `vmap`.
    """

    @jax.custom_batching.custom_vmap
    def replace(flag, arguments, old):
        return jax.lax.cond(flag, lambda: make(*arguments), lambda: old)

    @replace.def_vmap
    def replace_some(size, batched, flag, arguments, old):
        flag, arguments, old = (
            jax.tree.map(lambda x, b: x if b else _repeat(x, size), *pair)
            for pair in zip((flag, arguments, old), batched, strict=True)
        )

        def some(carry):
            flag, old = carry
            (where,) = jnp.nonzero(flag, size=min(at_once, size), fill_value=size)
            take = lambda x: x.at[where].get(mode="clip")  # noqa: E731
            new = jax.vmap(make)(*jax.tree.map(take, arguments))
            put = lambda x, y: x.at[where].set(y, mode="drop")  # noqa: E731
            return flag.at[where].set(False, mode="drop"), jax.tree.map(put, old, new)

        _, new = jax.lax.while_loop(lambda carry: jnp.any(carry[0]), some, (flag, old))
        return new, jax.tree.map(lambda _: True, new)

    return replace(flag, arguments, old)


def _repeat(x, size):
    return jnp.broadcast_to(x, (size, *jnp.shape(x)))
