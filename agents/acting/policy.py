"""A policy: a behavior with what it needs to act in one environment, anywhere."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments.environment import Environment
from jaxtyping import Array

from agents.acting.behavior import AbstractBehavior
from agents.acting.contract import check_observation, check_one, check_own_state
from agents.networks import Inputs
from agents.networks.spaces import by_content, clipped, is_alike
from agents.settings import check_kind
from zoo.parts.checks import check_key


class PolicyState(eqx.Module):
    """What a policy carries from one step to the next.

    **Attributes:**

    - `memory`: the memory's state.
    - `action`: the previous action, before it was clipped to its space.
    """

    memory: Any
    action: Array


class Policy(eqx.Module):
    """An agent's way to act, for use outside of this package's own loops.

    Unbatched: `jax.vmap` it over several environments.

    **Attributes:**

    - `behavior`: chooses the actions.
    - `observation_space`, `action_space`: gymnax spaces of the environment.
    """

    behavior: AbstractBehavior
    observation_space: Any = eqx.field(static=True, converter=by_content)
    action_space: Any = eqx.field(static=True, converter=by_content)

    def init_state(self) -> PolicyState:
        """Return the state before the first observation."""
        space = self.action_space
        return PolicyState(self.behavior.init_state(), jnp.zeros(space.shape, space.dtype))

    def check_spaces(self, env: Environment, params: Any) -> None:
        """Raise `ValueError` for an environment of other spaces than those of this policy.

        Parts, shapes and counts have to be equal; the bounds of a box need not.

        **Arguments:**

        - `env`, `params`: the environment, which may be wrapped, and its parameters.
        """
        # Of discrete ones nothing else would tell: JAX reads a table's last row for one beyond it.
        for what in ("observation_space", "action_space"):
            given, own = getattr(env, what)(params), getattr(self, what)
            if not is_alike(given, own):
                raise ValueError(
                    f"`env` (={env.name}) has another {what} than `policy` acts in: {given!r} "
                    f"instead of {own!r}."
                )

    def prepared(self) -> "Policy":
        """Return a policy that acts alike and faster, as long as it is not changed.

        What it carries holds what a memory can keep from one step to the next, such as the keys and
        values of attention: begin with its own `init_state`.
        """
        behavior, *_ = self.behavior.prepared()
        return Policy(behavior, self.observation_space, self.action_space)

    def act(
        self,
        state: PolicyState,
        observation: Any,
        begin: Any,
        reward: Any = 0.0,
        *,
        key: Array | None = None,
    ) -> tuple[PolicyState, Array]:
        """Choose an action.

        ```python
        policy = agents.load_policy("runs/demo")
        state = policy.init_state()
        state, action = policy.act(state, observation, begin=True)
        ```

        **Arguments:**

        - `state`: as `init_state` or the previous call returned it.
        - `observation`: as the environment gives it, with the shapes of its space.
        - `begin`: whether it is the first of an episode. The memory is then reset first.
        - `reward`: the previous reward; only read by networks that take it as an input.
        - `key`: PRNG key to draw the action with; the best action without one, which a policy that
          only draws, such as that of StreamingTD, does not have: one is like another.

        **Returns:**

        `(state, action)`; the action lies in its space.

        **Raises:**

        `ValueError` for an observation of other shapes or parts than those of its space, of
        fractions where it has whole numbers, or with a number that a discrete part does not have,
        unless it is traced; `TypeError` for a `state` of another kind or another policy, a `begin`
        that is not one boolean, a `reward` that is not one real number, and a `key` that is not
        one.
        """
        check_kind(PolicyState, "a PolicyState, as `init_state` returns it", state=state)
        space = self.action_space
        of_space = jax.ShapeDtypeStruct(space.shape, jax.dtypes.canonicalize_dtype(space.dtype))
        check_own_state("action", state.action, of_space)
        check_observation(self.observation_space, observation)
        check_one("begin", begin, [np.bool_], "one boolean")
        check_one("reward", reward, [np.integer, np.floating], "one real number")
        if key is not None:
            check_key(key)
        inputs = Inputs(observation, state.action, jnp.asarray(reward), jnp.asarray(begin))
        # A behavior is for environments side by side: this is one of them.
        one = lambda tree: jax.tree.map(lambda x: jnp.asarray(x)[None], tree)  # noqa: E731
        try:
            memory, decision = self.behavior(one(state.memory), one(inputs), key)
        except Exception:
            # Looked at where it has failed only: that takes as long as acting.
            check_own_state("memory", state.memory, jax.eval_shape(self.behavior.init_state))
            raise
        # The network goes on with what it has drawn, as in training; the environment gets what it
        # takes.
        action = decision.action[0].astype(state.action.dtype)
        after = PolicyState(jax.tree.map(lambda x: x[0], memory), action)
        return after, clipped(self.action_space, action)
