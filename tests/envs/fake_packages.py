"""Small stand-ins for packages that the tests do not install: one game, told in the way of each.

The game: from 0, 1 or 2 go up by 1 or 2 at each step; from 9 on the episode is over. A reward is
the place. Every package has something of its own that gets in the way, such as a time limit.
"""

import contextlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from agents import envs
from agents.envs.bridges import (
    craftax_port,
    jumanji_port,
    navix_port,
    playground_port,
    xminigrid_port,
)

END, OWN_LIMIT = 9, 5


def begin(key):
    return jax.random.randint(key, (), 0, 3)


@struct.dataclass
class Params:
    max_timesteps: Any = OWN_LIMIT
    max_steps: Any = OWN_LIMIT
    view_size: int = 3


@struct.dataclass
class Place:
    place: Any
    time: Any
    key: Any
    small: Any  # of 8 bits, and after a step of 32
    cache: Any = None


def first(key, cache=None):
    return Place(begin(key), jnp.asarray(0), key, jnp.uint8(0), cache)


def moved(state, up, cache=None):
    return Place(state.place + up, state.time + 1, state.key, jnp.int32(1), cache)


class Craftax:
    """Its own time limit ends an episode as death does."""

    num_actions = 2
    default_params = Params()

    def observation_space(self, params):
        return SimpleNamespace(shape=(2,))

    def see(self, state):
        return jnp.stack([state.place / 16, (state.time % 2) * 1.0])

    def reset_env(self, key, params):
        return self.see(first(key)), first(key)

    def step_env(self, key, state, action, params):
        state = moved(state, 1 + action)
        done = (state.place >= END) | (state.time >= params.max_timesteps)
        return self.see(state), state, state.place, done, {"place": state.place * 1.0}


class Seen(NamedTuple):
    place: Any
    count: Any
    flags: Any


class TimeStep(NamedTuple):
    observation: Any
    reward: Any
    ended: Any
    extras: Any

    def last(self):
        return self.ended


def bounded(least, most, shape=(), **more):
    return SimpleNamespace(minimum=least, maximum=most, shape=shape, dtype=jnp.int32, **more)


class Jumanji:
    """Its own time limit ends an episode as a loss does, and its observations are trees."""

    def __init__(self):
        self.time_limit = OWN_LIMIT
        self.action_spec = bounded(0, 1, num_values=2)
        self.observation_spec = {
            "place": bounded(0, END + 1),
            "count": bounded(0, 40),
            "flags": SimpleNamespace(shape=(2,)),
        }

    def see(self, state):
        return Seen(state.place, state.time, jnp.array([True, False]))

    def reset(self, key):
        return first(key), TimeStep(self.see(first(key)), 0, jnp.asarray(False), {})

    def step(self, state, action):
        state = moved(state, 1 + action)
        ended = (state.place >= END) | (state.time >= self.time_limit)
        return state, TimeStep(self.see(state), state.place, ended, {})


@struct.dataclass
class NavixStep:
    t: Any
    observation: Any
    action: Any
    reward: Any
    step_type: Any
    state: Any


class Navix:
    """It resets a step late, and every state has a copy of its pictures."""

    action_space = SimpleNamespace(n=2)
    observation_space = SimpleNamespace(shape=(2, 1, 3))

    def __init__(self, max_steps=OWN_LIMIT):
        self.max_steps = max_steps

    def replace(self, max_steps):
        return Navix(max_steps)

    def see(self, state):
        cell = jnp.stack([state.place, state.time % 6, state.place * 0])
        return jnp.stack([cell, jnp.zeros(3, int)]).astype(jnp.uint8)[:, None]

    def reset(self, key):
        state = first(key, cache=jnp.ones((64, 64)))
        zero = jnp.asarray(0)
        return NavixStep(zero, self.see(state), zero - 1, zero * 1.0, zero, state)

    def step(self, timestep, action):
        raise AssertionError("the step that resets")

    def _step(self, timestep, action):
        assert timestep.state.cache is None
        state = moved(timestep.state, 1 + action)
        kind = jnp.clip((state.time >= self.max_steps) + 2 * (state.place >= END), 0, 2)
        return NavixStep(state.time, self.see(state), action, state.place, kind, state)


@struct.dataclass
class GridStep:
    state: Any
    reward: Any
    discount: Any
    observation: Any


class Grid:
    """The time limit is part of the reward."""

    def num_actions(self, params):
        return 2

    def see(self, state, params):
        cell = jnp.stack([state.place, state.time % 12]).astype(jnp.uint8)
        return jnp.broadcast_to(cell, (params.view_size, params.view_size, 2))

    def reset(self, params, key):
        one = jnp.asarray(1.0)
        return GridStep(first(key), 0.0, one, self.see(first(key), params))

    def step(self, params, timestep, action):
        state = moved(timestep.state, 1 + action)
        reward = state.place * (state.time / params.max_steps)
        discount = jnp.where(state.place >= END, 0.0, 1.0)
        return GridStep(state, reward, discount, self.see(state, params))

    def render(self, params, timestep):
        return jnp.full((32, 32, 3), 20 * timestep.state.place, jnp.uint8)


@struct.dataclass
class Body:
    data: Any
    obs: Any
    reward: Any
    done: Any
    info: Any


class Playground:
    """It has no time limit of its own, and `done` is a number."""

    action_size = 1

    def reset(self, key):
        state = first(key)
        return Body(state, state.place[None] * 1.0, 0.0, jnp.zeros(()), {"key": key})

    def step(self, body, action):
        state = moved(body.data, 1 + (action[0] > 0))
        done = (state.place >= END) * 1.0
        return Body(state, state.place[None] * 1.0, state.place, done, body.info)


def _module(name, **contents):
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    vars(module).update(contents)
    return module


def _craftax_pixels(state, size):
    """Real numbers, some of them beyond white, with a column where the agent is."""
    columns = jnp.arange(END + 3) == state.place
    return jnp.broadcast_to(300.0 * columns[None, :, None], (size, END + 3, 3))


def _modules():
    registry = SimpleNamespace(
        load=lambda name, config_overrides: Playground(),
        get_default_config=lambda name: SimpleNamespace(episode_length=OWN_LIMIT),
    )
    views = SimpleNamespace(symbolic="all", symbolic_first_person="view")
    return {
        "craftax": {},
        "craftax.craftax_env": {
            "make_craftax_env_from_name": lambda name, auto_reset: auto_reset or Craftax()
        },
        "craftax.craftax": {},
        "craftax.craftax.constants": {"BLOCK_PIXEL_SIZE_IMG": 16},
        "craftax.craftax.renderer": {"render_craftax_pixels": _craftax_pixels},
        "jumanji": {"make": lambda name: Jumanji()},
        "mujoco_playground": {"registry": registry},
        "navix": {"make": lambda name, observation_fn: Navix(), "observations": views},
        "xminigrid": {"make": lambda name: (Grid(), Params())},
        "xminigrid.core": {},
        "xminigrid.core.constants": {"NUM_COLORS": 12, "NUM_TILES": 13},
    }


@contextlib.contextmanager
def installed():
    """The packages can be imported, whether or not they really can."""
    names = _modules()
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update({name: _module(name, **contents) for name, contents in names.items()})
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _factory(make, name):
    def factory():
        with installed():
            return make(name)

    return factory


PORTS = {
    "fake/craftax": (craftax_port.craftax, craftax_port.NAMES),
    "fake/jumanji": (jumanji_port.jumanji, jumanji_port.NAMES),
    "fake/navix": (navix_port.navix, navix_port.NAMES),
    "fake/playground": (playground_port.playground, playground_port.NAMES),
    "fake/xminigrid": (xminigrid_port.xminigrid, xminigrid_port.NAMES),
}
"""By the name that each is registered under: what makes it, and the names of the package."""

for _name, (_make, _names) in PORTS.items():
    envs.register(_name, _factory(_make, _names[0]))
