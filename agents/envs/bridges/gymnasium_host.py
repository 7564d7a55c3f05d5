"""The host's side of gymnasium's environments: sets of them, which are made, seeded and stepped."""

import inspect
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from scan.calls import misfit

from .gymnasium_rules import Ruled

_SETS = 4  # a run has one to train in and one to evaluate in


class _Set:
    """Environments that were reset together, and how often they were stepped since."""

    def __init__(self, envs: Any):
        self.envs = envs
        self.ticket = 0


class Host:
    """Makes gymnasium's environments, holds them and steps them in sets.

    The four sets that were used last are kept; the others are closed.
    """

    def __init__(self, env: str | Callable[[], Any], limit: int | None, options: Mapping[str, Any]):
        """**Arguments:**

        - `env`: an id of gymnasium, or a function that makes an environment.
        - `limit`: steps after which an episode is truncated; the environment's own if `None`.
        - `options`: of the environment's constructor, where `env` is an id.

        **Raises:**

        `ValueError` or `TypeError` for an argument that breaks a rule, such as a function that
        makes something else, or the same environment twice; `ModuleNotFoundError` if Atari's
        emulator is needed and missing.
        """
        if not (isinstance(env, str) or callable(env)):
            raise TypeError(
                f"`env` (={env!r}) must be an id of gymnasium or a function that makes an "
                "environment."
            )
        if not isinstance(env, str) and (found := misfit(env)):
            raise TypeError(
                f"`env` (={env!r}) must be called without arguments, and takes {found}."
            )
        if not isinstance(env, str) and options:
            raise ValueError(
                f"Unknown option `{next(iter(options))}`: a function that makes an environment "
                "takes none but max_steps_in_episode."
            )
        self._env, self._options, self._given_limit = env, dict(options), limit
        example = self._make()
        if not isinstance(env, str):
            another = self._make()
            if another.unwrapped is example.unwrapped:
                raise ValueError(
                    f"`env` (={env!r}) must make another environment at each call: those that are "
                    "stepped side by side, and those that are evaluated in, would be one."
                )
            another.close()
        self.name = env if isinstance(env, str) else type(example.unwrapped).__name__
        self.limit = _least_limit(example)
        self.observation_space = example.observation_space
        self.action_space = example.action_space
        example.close()
        if limit is not None and self.limit is not None and self.limit < limit:
            raise ValueError(
                f"`max_steps_in_episode` (={limit}) must be at most {self.limit}, after which the "
                "environment that the function makes is truncated by itself."
            )
        self._sets: OrderedDict[int, _Set] = OrderedDict()
        self._numbers = itertools.count(1)
        # JAX may make calls that do not depend on each other at the same time.
        self._lock = threading.Lock()

    def reset(self, seeds: np.ndarray) -> tuple[int, np.ndarray]:
        """Begin an episode in each environment of a new set.

        **Arguments:**

        - `seeds`: of the environments, an integer for each.

        **Returns:**

        The set's number, and the observations.
        """
        from gymnasium.vector import AutoresetMode, SyncVectorEnv

        with self._lock:
            if len(self._sets) == _SETS:
                # Not used again: what they keep over a reset, such as running statistics, would go
                # from one training or evaluation into another.
                self._sets.popitem(last=False)[1].envs.close()
            envs = SyncVectorEnv([self._ruled] * len(seeds), autoreset_mode=AutoresetMode.SAME_STEP)
            observation, _ = envs.reset(seed=[int(seed) for seed in seeds])
            number = next(self._numbers)
            self._sets[number] = _Set(envs)
            return number, observation

    def step(
        self, numbers: np.ndarray, places: np.ndarray, tickets: np.ndarray, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Take a step in each environment of a set; where an episode ends, begin the next one.

        **Arguments:**

        - `numbers`: of the set, the same one for each environment.
        - `places`: of the environments in the set: 0, 1, 2 and so on.
        - `tickets`: how often the set was stepped before, the same for each environment.
        - `actions`: for the environments.

        **Returns:**

        Observations, final observations (before a reset), rewards, terminated and truncated.

        **Raises:**

        `RuntimeError` if the set was closed or has gone on, or is not complete.
        """
        with self._lock:
            found = self._find(numbers, places, tickets)
            self._sets.move_to_end(int(numbers[0]))
            found.ticket += 1
            observation, reward, terminated, truncated, info = found.envs.step(actions)
            final = np.array(observation)
            for place in np.flatnonzero(terminated | truncated):
                final[place] = info["final_obs"][place]
            return observation, final, reward, terminated, truncated

    def close(self) -> None:
        """Close all environments."""
        while self._sets:
            self._sets.popitem()[1].envs.close()

    def _find(self, numbers: np.ndarray, places: np.ndarray, tickets: np.ndarray) -> _Set:
        """The set that is meant, if it can be stepped."""
        found = self._sets.get(int(numbers[0]))
        if found is None:
            raise RuntimeError(
                f"the state belongs to environments of {self.name} that are not on this host (any "
                f"more): a checkpoint cannot be resumed, and only the last {_SETS} sets that were "
                "reset or stepped are kept."
            )
        size = found.envs.num_envs
        if (
            len(numbers) != size
            or (numbers != numbers[0]).any()
            or (places != np.arange(size)).any()
        ):
            raise RuntimeError(
                f"all {size} environments of {self.name} that were reset together must be stepped "
                f"together and in the same order, by `jax.vmap`; there were {len(numbers)}."
            )
        if (tickets != found.ticket).any():
            raise RuntimeError(
                f"the state (after step {tickets.max()}) must be the newest one (after step "
                f"{found.ticket}): environments of gymnasium cannot go back."
            )
        return found

    def _ruled(self) -> Any:
        """One environment that is looked at."""
        return Ruled(self._make(), self.name)

    def _make(self) -> Any:
        """One environment."""
        import gymnasium

        if not isinstance(self._env, str):
            env = self._env()
            if not isinstance(env, gymnasium.Env):
                raise TypeError(
                    f"`env` (={self._env!r}) must make a gymnasium.Env, and made {env!r}; several "
                    "environments in one are made here."
                )
            limit = self._given_limit
            return gymnasium.wrappers.TimeLimit(env, limit) if limit else env
        if self._env.startswith("ALE/"):
            _register_atari(self._env)
        try:
            return gymnasium.make(self._env, max_episode_steps=self._given_limit, **self._options)
        except gymnasium.error.Error as error:
            raise ValueError(
                f"`env` (={self._env!r}) must be an id of gymnasium: {error}"
            ) from None
        except TypeError:
            _check_options(self._env, self._options)
            raise
        except ImportError:
            raise
        except Exception as error:  # the constructor's own
            given = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
            raise ValueError(
                f"`env` (={self._env!r}) cannot be made with {given or 'its own options'}: "
                f"{type(error).__name__}: {error}"
            ) from error


def _least_limit(env: Any) -> int | None:
    """After how many steps an environment's wrappers truncate an episode, if they do."""
    from gymnasium import Wrapper
    from gymnasium.wrappers import TimeLimit

    limits = []
    while isinstance(env, Wrapper):
        if isinstance(env, TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    return min(limits, default=None)


def _check_options(name: str, options: Collection[str]) -> None:
    """Raise `ValueError` for an option that the constructor of an id does not know."""
    from gymnasium.envs.registration import load_env_creator, spec

    entry: Any = spec(name.rpartition(":")[2]).entry_point
    creator = load_env_creator(entry) if isinstance(entry, str) else entry
    parameters = inspect.signature(creator).parameters
    known = {"max_steps_in_episode", *parameters}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for option in options:
        if option not in known and not takes_any:
            raise ValueError(
                f"Unknown option `{option}` of gymnasium/{name}; it must be one of: "
                f"{', '.join(sorted(known))}."
            )


def _register_atari(name: str) -> None:
    import gymnasium

    try:
        import ale_py  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ModuleNotFoundError(
            f"{name} needs the package ale-py, under the GPL: pip install 'trace-zoo[atari]'",
            name="ale_py",
        ) from None
    gymnasium.register_envs(ale_py)
