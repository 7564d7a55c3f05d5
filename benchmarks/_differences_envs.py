"""Where packages of environments depart from what they say: a function for each row."""

import importlib.metadata
import re

import jax
import jax.numpy as jnp
import numpy as np

from agents.envs.bridges.adapter import gymnax_settings
from benchmarks._differences_row import row
from benchmarks._measure import Row

_CHAIN = "environments.bsuite.memory_chain"


def _memory_chain() -> tuple[np.ndarray, float]:
    """The observations of one episode, and the least value that their space has."""
    import gymnax

    env, params = gymnax.make("MemoryChain-bsuite")
    step = jax.jit(env.step)
    # The context is -1 with this key.
    obs, state = env.reset(jax.random.key(0), params)
    seen, done = [obs], False
    while not done:
        _, state, _, terminated, truncated, info = step(jax.random.key(0), state, 0, params)
        seen.append(info["final_observation"])
        done = terminated | truncated
    return np.stack(seen), float(np.min(env.observation_space(params).low))


def chain_context() -> Row:
    """The context is shown in the first step only."""
    seen, _ = _memory_chain()
    what = "observations of an episode that show the context"
    source = "bsuite's docstring; its code shows it as often"
    return row("gymnax", _CHAIN, what, source, int(np.sum(seen[:, 2] != 0)), 1)


def chain_space() -> Row:
    """An observation is in its space."""
    seen, least = _memory_chain()
    what = "the least value of an observation"
    return row("gymnax", _CHAIN, what, "its `observation_space`", float(seen.min()), least)


def undeclared() -> Row:
    """What a package imports, it requires."""
    lines = importlib.metadata.requires("gymnax") or []
    required = {re.split(r"[^\w.-]", line)[0] for line in lines}
    files = importlib.metadata.files("gymnax") or []
    texts = [file.read_text() for file in files if file.suffix == ".py"]
    imports = sum("\nimport six" in text or "\nfrom six" in text for text in texts)
    there = 0 if "six" in required else imports
    what = "modules that import `six`, which is not among what it requires"
    return row("gymnax", "utils.load_mnist", what, "its metadata", there, 0)


def auto_reset() -> Row:
    """Every episode begins in a state of its own."""
    from brax import envs

    with gymnax_settings():
        env = envs.create("inverted_pendulum", episode_length=1, batch_size=1, backend="spring")
        step = jax.jit(env.step)
        state = jax.jit(env.reset)(jax.random.key_data(jax.random.key(0)))
        first = [state.obs]
        for _ in range(5):  # episodes of one step
            state = step(state, jnp.zeros((1, 1)))
            first.append(state.obs)
    what = "different first observations of 6 episodes"
    count = len(np.unique(np.concatenate(first), axis=0))
    where = "envs.wrappers.training.AutoResetWrapper"
    return row("brax", where, what, "the body's own `reset`", count, 6)


def half_cheetah_mask() -> Row:
    """Positions are shown, velocities are not."""
    from brax import envs

    with gymnax_settings():
        env = envs.get_environment("halfcheetah", backend="spring")
        state = jax.jit(env.reset)(jax.random.key_data(jax.random.key(0)))
    velocities = np.isin(state.obs[:9], state.pipeline_state.qd)
    what = "velocities among components 0:9 of halfcheetah, there taken for positions"
    source = "Elelimy et al. (2024), section 6"
    package, where = "RTU paper's code (read)", "halfcheetah-P, on brax's observation"
    return row(package, where, what, source, int(velocities.sum()), 0)


def swimmer() -> Row:
    """A body can take a step."""
    from brax import envs

    with gymnax_settings():
        env = envs.get_environment("swimmer", backend="generalized")
        state = jax.jit(env.reset)(jax.random.key_data(jax.random.key(0)))
        try:
            jax.eval_shape(env.step, state, jnp.zeros(env.action_size))
            said = "a state"
        except TypeError:
            said = "TypeError"
    what = f"what a step gives with JAX {jax.__version__}"
    return row("brax", "envs.swimmer", what, "the list of its environments", said, "a state")


def repeat_previous() -> Row:
    """With k = 4 the suit of four cards ago is asked for."""
    from popgym import envs

    returns = {}
    for lag in (3, 4):
        env = envs.RepeatPreviousEasy()
        obs, _ = env.reset(seed=0)
        seen, total, done = [obs], 0.0, False
        while not done:
            action = seen[-1 - lag] if len(seen) > lag else 0
            obs, reward, terminated, truncated, _ = env.step(action)
            seen.append(obs)
            total += reward
            done = terminated or truncated
        returns[lag] = total
    what = f"k = 4: return for the suit of 4 cards ago (of 3 cards ago: {returns[3]:.2g})"
    source = "its docstring: k = 1 is the previous card"
    return row("popgym", "envs.repeat_previous", what, source, returns[4], 1.0)


def velocity_only() -> Row:
    """Positions are never shown."""
    from popgym import envs

    env = envs.VelocityOnlyCartPoleEasy()
    obs, _ = env.reset(seed=0)
    position, _, angle, _ = env.get_state()
    shown = int(np.sum(obs == np.array([position, angle])))
    what = "positions among the two numbers of an episode's first observation"
    return row("popgym", "envs.velocity_only_cartpole", what, "its docstring", shown, 0)


def labyrinth_length() -> Row:
    """An episode is as long as its option says."""
    from popgym import envs

    env = envs.LabyrinthEscapeEasy()
    env.reset(seed=0)
    steps, done = 0, False
    while not done:
        _, _, terminated, truncated, _ = env.step(0)
        steps, done = steps + 1, terminated or truncated
    what = "steps of an episode with `episode_length=1024` that does not reach the goal"
    return row("popgym", "envs.labyrinth_escape", what, "its option's name", steps, 1024)


ROWS = (
    repeat_previous,
    velocity_only,
    labyrinth_length,
    undeclared,
    chain_context,
    chain_space,
    auto_reset,
    half_cheetah_mask,
    swimmer,
)
