"""Environments by name or as objects: `make`, `names`, `register`, `resolve`, `describe`."""

import dataclasses
import functools
import inspect
import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import gymnax
import jax
from gymnax.environments.environment import Environment, EnvParams

from zoo.annotations import checked, fitted, signature_of
from zoo.parts.checks import as_array, nearest, same_definition, shown

from . import bridges, diagnostics, remembering
from .bridges.adapter import GymnaxEnvironment, gymnax_settings
from .bridges.frames import frame_options, hide_frames
from .bridges.gymnasium_env import from_gymnasium
from .core.description import OBJECT, description, qualified
from .core.hidden import CHOICES, Hides, fully_observed
from .core.objects import check_object, why_none
from .popgym import boards, cards, control
from .remembering.external_memory import ExternalMemory
from .wrappers import TimeLimit
from .wrappers.base import check_environment, unwrapped

_FAMILIES = (cards, boards, control, diagnostics, remembering, bridges)

OWN = {name: entry for family in _FAMILIES for name, entry in family.ENTRIES.items()}
"""Every environment of this library by name: class, and the arguments that the name fixes."""

Factory = Callable[..., Environment | tuple[Environment, EnvParams]]

_REGISTERED: dict[str, Any] = {}  # what `register` was given

GYMNASIUM = "gymnasium/"  # before the id of an environment of gymnasium

# How names begin that other packages have and `make` has not, and why.
_UNAVAILABLE = {
    "MNISTBandit-bsuite": "it downloads MNIST when it is made",
    **bridges.REFUSED,
}


def names() -> tuple[str, ...]:
    """List the names that `make` knows: this library's environments, registered ones, gymnax's.

    **Returns:**

    The names. Those registered with `gymnax.registration.register` appear too, and those of the
    packages craftax, jumanji, navix, playground and xminigrid where these are installed.
    """
    absent = bridges.absent()
    own = (name for name in OWN if not name.startswith(absent))
    theirs = (name for name in gymnax.registered_envs if name not in _UNAVAILABLE)
    return tuple(dict.fromkeys((*own, *_REGISTERED, *theirs)))


def register(name: Any, factory: Any) -> None:
    """Give an environment of one's own a name, for `make`, the agents and the command line.

    ```python
    agents.envs.register("corridor", Corridor)
    env, params = agents.envs.make("corridor", length=20)
    agents.PPO(env="corridor", env_options={"length": 20})
    ```

    **Arguments:**

    - `name`: letters, digits and `_ - . /`, beginning with a letter or a digit.
    - `factory`: a class of environments, or a function that returns an environment or a pair of
        one and its parameters. Its arguments are the environment's options, and so are the fields
        of the parameters; each is checked to be of the kind of its default.

    **Raises:**

    `TypeError` if `name` is no text or `factory` cannot be called; `ValueError` if the name is not
    such a text, or means another environment already. The same factory may be registered again, and
    one that a notebook's cell defines anew takes the place of the former.
    """
    if not isinstance(name, str):
        raise TypeError(f"`name` (={name!r}) must be text.")
    if not re.fullmatch(r"[A-Za-z0-9][\w./-]*", name, re.ASCII) or name.startswith(GYMNASIUM):
        raise ValueError(
            f"`name` (={name!r}) must be letters, digits and _ - . / with a letter or digit first, "
            f"and must not begin with {GYMNASIUM!r}."
        )
    if not callable(factory):
        raise TypeError(f"`factory` (={factory!r}) must be a class or function to call.")
    if name in _REGISTERED and same_definition(_REGISTERED[name], factory):
        _REGISTERED[name] = factory
        return
    if name in OWN or name in names() or name in _UNAVAILABLE:
        raise ValueError(f"`name` (={name!r}) is the name of another environment already.")
    _REGISTERED[name] = factory


def resolve(
    env: Any, env_options: Mapping[str, Any] | None = None
) -> tuple[Environment, EnvParams]:
    """Find the environment that is meant by a name, an object or a pair.

    **Arguments:**

    - `env`: a name for `make`; or an environment, which then has its default parameters; or a pair
        of an environment and its parameters.
    - `env_options`: of `make`, for a name only.

    **Returns:**

    The environment and its parameters.

    **Raises:**

    What `make` raises; `TypeError` if `env` is nothing of the kind; `ValueError` if there are
    options beside an object, or if `env` is what `describe` says of an object.
    """
    env_options = {} if env_options is None else env_options
    if isinstance(env, str):
        return make(env, **env_options)
    if isinstance(env, Mapping) and OBJECT in env:
        raise ValueError(
            f"the environment was an object ({env[OBJECT]}), which cannot be made from its "
            "description: give it again in a program, as in agents.load_policy(folder, env=…)."
        )
    pair = env if isinstance(env, tuple) and len(env) == 2 else (env, None)
    made, params = pair
    if not isinstance(made, Environment):
        raise TypeError(
            f"`env` (={env!r}) must be the name of an environment, a gymnax environment, or a "
            f"pair of one and its parameters.{why_none(made)}"
        )
    if env_options:
        raise ValueError(
            f"`env_options` (={dict(env_options)!r}) belong to a name; an environment object "
            f"(={qualified(made)}) has its own: leave them out."
        )
    params = made.default_params if params is None else params
    check_object(made, params)
    return made, params


def describe(env: Any) -> str | dict[str, Any]:
    """Describe what an agent was given as environment, in JSON.

    **Arguments:**

    - `env`: what `resolve` takes.

    **Returns:**

    The name; or, for an object or a pair, `{"object": "module.Class", …}`, where wrappers stand
    around what they wrap, with the arguments and parameters by which objects of a class differ, as
    far as JSON can tell them. `resolve` refuses this with a message that asks for the object.
    """
    return env if isinstance(env, str) else description(*resolve(env))


@checked
def make(
    name: str, *, external_memory: str | None = None, **options: Any
) -> tuple[Environment, EnvParams]:
    """Make an environment.

    **Arguments:**

    - `name`: one of `names()`, or "gymnasium/" and an id of the package gymnasium, for which see
        `from_gymnasium`.
    - `external_memory`: a memory that the agent sees and writes by its actions, such as `"B1"`; see
        `ExternalMemory`. None by default.
    - `options`: arguments of the environment's constructor (`decks=2`, `num_bits=3`) and fields of
        its parameters (`memory_length=10`, `max_steps_in_episode=200`). MinAtar's environments also
        have `mask` ("top", "bottom", "left" or "right": the half of a frame that shows zeros) and
        `flicker` (the probability that a whole frame does). Those of this library that can tell
        what they hide have `observability`: with "full" an observation is a pair of what is seen
        and what is hidden, and no memory is needed.

    **Returns:**

    The environment and its parameters. `env.reset(key, params)` returns observation and state;
    `env.step(key, state, action, params)` returns observation, state, reward (float32), terminated,
    truncated and info. `step` resets where an episode ends, and then `info["final_observation"]` is
    the ended episode's last observation.

    **Raises:**

    `ValueError` with the nearest names if the name is unknown, with the environment's options if an
    option is, and if a value breaks a rule; `TypeError` if a value is of the wrong kind. Each names
    the argument, the value and the rule. `ModuleNotFoundError` with the line that installs the
    package that the environment needs, if it is missing.
    """
    env, params = _make(name, options)
    return (env if external_memory is None else ExternalMemory(env, external_memory)), params


def _make(name: str, options: Mapping[str, Any]) -> tuple[Environment, EnvParams]:
    """The environment by itself."""
    if name in OWN or name in _REGISTERED:
        factory, fixed = OWN[name] if name in OWN else (_REGISTERED[name], {})
        made: Any = factory
        more, options = (), dict(options)
        if inspect.isclass(factory) and issubclass(factory, Hides):
            more = ("observability",)
            if _observability(options.pop("observability", CHOICES[0])) == "full":
                made = fully_observed(factory)
        return _build(name, made, signature_of(made), fixed, options, more)
    if name.startswith(GYMNASIUM):
        return from_gymnasium(name.removeprefix(GYMNASIUM), **options)
    if name not in names():
        raise ValueError(_unknown(name))
    frames = frame_options(name)
    theirs = {option: value for option, value in options.items() if option not in frames}
    with gymnax_settings():
        make_theirs = functools.partial(_gymnax_environment, name)
        # gymnax's own function takes any options: those of the class are meant.
        signature = inspect.signature(type(make_theirs()))
        env, params = _build(name, make_theirs, signature, {}, theirs, frames)
    env = GymnaxEnvironment(env, name)
    if not frames:
        return env, params
    chosen = {o: _check(o, options.get(o, default), default) for o, default in frames.items()}
    return hide_frames(env, **chosen), params


def _observability(choice: Any) -> str:
    if choice not in CHOICES:
        raise ValueError(f"`observability` (={choice!r}) must be one of {', '.join(CHOICES)}.")
    return choice


def episode_steps(env: Environment, params: EnvParams) -> int:
    """Find the most steps of an episode: the environment's time limit, or a wrapper's."""
    limits = (one.limit for one in unwrapped(env) if isinstance(one, TimeLimit))
    return min([math.ceil(params.max_steps_in_episode), *limits])


def needs_previous_action(env: Environment, asked: bool | None = None) -> bool:
    """Tell whether an agent has to know its previous action to make sense of the observations.

    True of the environments whose observation is the outcome of an action at a place that it does
    not show. Their class says so by an attribute `needs_previous_action`.

    **Arguments:**

    - `env`: an environment, or a wrapper that holds one as `env`.
    - `asked`: an answer that takes the place of the environment's, if any.
    """
    if asked is not None:
        return asked
    return any(getattr(one, "needs_previous_action", False) for one in unwrapped(env))


def _build(
    name: str,
    factory: Factory,
    signature: inspect.Signature,
    fixed: Mapping[str, Any],
    options: Mapping[str, Any],
    more: Collection[str] = (),
) -> tuple[Environment, EnvParams]:
    """Make an environment and its parameters from options, after checking them.

    `more`: options that are somebody else's to use, for the message about an unknown one.
    """
    arguments = {
        argument.name: (argument.default, argument.annotation)
        for argument in signature.parameters.values()
        if argument.name not in fixed
        and argument.kind in (argument.POSITIONAL_OR_KEYWORD, argument.KEYWORD_ONLY)
    }
    chosen = {o: _check(o, v, *arguments[o]) for o, v in options.items() if o in arguments}
    for option, (default, _) in arguments.items():
        if default is inspect.Parameter.empty and option not in chosen:
            raise ValueError(f"`{option}` must be given: {name} has no default for it.")
    made = factory(**fixed, **chosen)
    if isinstance(made, tuple) and len(made) != 2:
        raise TypeError(
            f"{name} (={shown(made)}) must be made as an environment, or as a pair of one and its "
            "parameters."
        )
    # After the constructor, because some environments' default parameters depend on it.
    env, params = (
        made if isinstance(made, tuple) else (made, check_environment(made).default_params)
    )
    check_object(env, params)
    fields = {f.name: getattr(params, f.name) for f in _fields(params)}
    for option, value in options.items():
        if option not in arguments and option not in fields:
            raise ValueError(
                f"Unknown option `{option}` (={value!r}) of {name}; it must be one of: "
                f"{', '.join(sorted({*fields, *arguments, *more}))}."
            )
    values = {o: _check(o, v, fields[o]) for o, v in options.items() if o not in arguments}
    return env, dataclasses.replace(params, **values) if values else params


def _gymnax_environment(name: str, **options: Any) -> Environment:
    """gymnax's environment by itself."""
    return gymnax.make(name, **options)[0]


def _fields(params: Any) -> tuple[dataclasses.Field, ...]:
    """What options may set: nothing of parameters that are another pytree than a dataclass."""
    return dataclasses.fields(params) if dataclasses.is_dataclass(params) else ()


def _check(option: str, value: Any, default: Any, annotation: Any = None) -> Any:
    """The value, if it is of the default's kind, in the default's own type.

    `annotation`: what counts where no default tells the kind.
    """
    if isinstance(default, jax.Array):
        value = as_array(option, value, default.dtype)
        if value.shape != default.shape:
            raise ValueError(
                f"`{option}` (of shape {value.shape}) must have shape {default.shape}."
            )
        return value
    kind = type(default) if type(default) in (bool, int, float, str, tuple) else annotation
    if kind in (None, inspect.Parameter.empty) or isinstance(kind, str):
        return value
    value = fitted(option, value, kind)
    if isinstance(value, int) and abs(value) >= 2**31:
        raise ValueError(f"`{option}` (={value}) must be a whole number of 32 bits.")
    if option == "max_steps_in_episode" and value < 1:
        raise ValueError(f"`{option}` (={value}) must be at least 1.")
    return value


def _unknown(name: str) -> str:
    """What to answer when there is no such environment."""
    for start, reason in _UNAVAILABLE.items():
        if name.startswith(start):
            return f"`name` (={name!r}) is not available: {reason}."
    near = nearest(name, names(), cutoff=0.5)
    hint = f"the nearest names are {', '.join(near)}. " if near else ""
    return (
        f"`name` (={name!r}) must be the name of an environment: {hint}"
        "`agents.envs.names()` lists all."
    )
