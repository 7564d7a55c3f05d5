"""What every agent is: settings with pure functions, a state, and a report."""

import abc
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from gymnax.environments.environment import Environment
from jaxtyping import Array, Bool, Int, PyTree

from agents.acting import Actor, Policy
from agents.envs import resolve
from agents.networks.spaces import check_space
from agents.settings import Settings, check_settings
from zoo.options import Options
from zoo.parts.checks import check_counts, did_you_mean

Metrics = dict[str, Array]


class AgentState(eqx.Module):
    """Everything that training carries from one iteration to the next.

    **Attributes:**

    - `learner`: networks, optimizer, targets, statistics: the same for all environments.
    - `actors`: where acting stands; every leaf has a leading axis over environments.
    - `replay`: what was kept of the past; `None` for nothing.
    - `iteration`: iterations so far.
    - `key`: for all randomness to come.
    """

    learner: PyTree
    actors: PyTree
    replay: PyTree
    iteration: Int[Array, ""]
    key: Array


class Report(eqx.Module):
    """What an iteration tells: scalars by name, no name twice.

    **Attributes:**

    - `metrics`: measured in every iteration that learns; training stops where one is not finite.
    - `diagnostics`: measured now and then; NaN where they were not.
    - `episodes`: of the episodes that ended, see `agents.acting.episode_statistics`.
    - `learned`: whether there was something to learn from, without which metrics are NaN.
    """

    metrics: Metrics
    diagnostics: Metrics
    episodes: Metrics
    learned: Bool[Array, ""] = eqx.field(default=True, converter=jnp.asarray)

    def scalars(self) -> dict[str, Any]:
        """Return all of them."""
        return {**self.metrics, **self.diagnostics, **self.episodes}


@dataclass(frozen=True)
class AbstractAgent(Settings, abc.ABC):
    """A learning algorithm in an environment: settings with pure functions.

    The functions run under `jit`, and under `vmap` over seeds; states are pytrees of arrays. From
    this contract come `agents.train` with checkpoints and resumption, evaluation, `load_policy` and
    the command line, which reads fields, defaults and their docstrings off the dataclass. A
    subclass is a frozen, keyword-only dataclass; `agents.register` gives it a name.
    """

    _: KW_ONLY
    env: str | Environment | tuple[Environment, Any]
    """Name of the environment; in a program also an environment, or a pair with its parameters."""
    env_options: dict[str, Any] = field(default_factory=dict)
    """Options of the environment."""

    def __post_init__(self):
        check_settings(self)
        object.__setattr__(self, "env_options", Options(self.env_options))
        # Wrong names, options and spaces are told now.
        for name, space in zip(("observation", "action"), self.spaces, strict=True):
            check_space(space, f"`env` (={self.env_name}): `{name}_space`")
        self.check()
        check_counts(1, steps_per_iteration=self.steps_per_iteration)

    def check(self) -> None:
        """Raise `ValueError` or `TypeError` naming a setting, its value and the rule it breaks."""

    @classmethod
    def presets(cls) -> Mapping[str, Mapping[str, Any]]:
        """Name sets of settings, such as those of a paper; none by default.

        They are defaults to start from, in `preset` and behind `--preset` on the command line.
        """
        return {}

    @classmethod
    def preset(cls, name: str, **settings: Any) -> "AbstractAgent":
        """Make an agent of named settings.

        ```python
        dqn = agents.DQN.preset("memoroids", env="RepeatFirstEasy", batch_steps=500)
        ```

        **Arguments:**

        - `name`: one of `presets()`.
        - `settings`: what is set besides, or in place of what the name stands for.

        **Raises:**

        `ValueError` for an unknown name; and what the agent raises.
        """
        return cls(**{**cls.named_settings(name), **settings})

    @classmethod
    def named_settings(cls, name: str) -> Mapping[str, Any]:
        """Return the settings that a name stands for.

        **Raises:**

        `ValueError` for a name that is not one of `presets()`.
        """
        known = cls.presets()
        if name not in known:
            listed = ", ".join(known) or "none"
            raise ValueError(
                f"`preset` (={name!r}) is not one of {cls.__name__}, which has: {listed}."
                f"{did_you_mean(name, known)}"
            )
        return known[name]

    @cached_property
    def environment(self) -> tuple[Environment, Any]:
        """The environment and its parameters."""
        return resolve(self.env, self.env_options)

    @property
    def spaces(self) -> tuple[Any, Any]:
        """The spaces of observations and of actions."""
        env, params = self.environment
        # Layers are made after their bounds, which have to be numbers where a program is traced.
        with jax.ensure_compile_time_eval():
            return env.observation_space(params), env.action_space(params)

    @property
    def env_name(self) -> str:
        """What to call the environment: the name given, or an object's own."""
        return self.env if isinstance(self.env, str) else self.environment[0].name

    @property
    def actor(self) -> Actor:
        """The environment to act in."""
        return Actor(*self.environment)

    @property
    @abc.abstractmethod
    def steps_per_iteration(self) -> int:
        """Environment steps of one iteration."""

    def steps_before(self, iteration: Int[Array, ""]) -> Int[Array, ""]:
        """Count the environment steps before an iteration, up to what JAX's integers hold."""
        most = jnp.iinfo(jnp.int32).max // self.steps_per_iteration - 1
        return jnp.minimum(iteration, most) * self.steps_per_iteration

    @abc.abstractmethod
    def init(self, *, key: Array) -> AgentState:
        """Return the state before the first iteration."""

    @abc.abstractmethod
    def iterate(self, state: AgentState) -> tuple[AgentState, Report]:
        """Act and learn for one iteration.

        **Arguments:**

        - `state`: of `init` or `iterate` of an agent with the same settings. Networks, memories and
          environments are those that it holds: settings that make others do nothing to them.

        **Returns:**

        `(state, report)`.
        """

    @abc.abstractmethod
    def policy(self, learner: Any) -> Policy:
        """Return the policy of a learner, the `learner` of an `AgentState`."""
