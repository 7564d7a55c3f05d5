"""Other packages' environments by their ports: the same game in five ways, and what is refused."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import envs
from agents.envs.bridges import entries
from agents.envs.bridges.package_env import is_installed
from tests.envs import fake_packages
from tests.envs.fake_packages import END, OWN_LIMIT, PORTS

LIMIT, STEPS, ENVS = 6, 24, 8


def place_of(name, observation):
    """The place that an observation of the game shows."""
    if name == "fake/craftax":
        return round(observation[0] * 16)
    if name == "fake/jumanji":
        return int(observation[: END + 2].argmax())
    if name == "fake/navix":
        return int(observation[0, 0, :11].argmax())
    if name == "fake/xminigrid":
        return int(observation[1, 1, :13].argmax())
    return round(float(observation[0]))


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("name", PORTS)
def test_the_game_is_played_by_its_rules(name):
    """By hand: rewards, ends and the limit are the game's, with all that each package adds gone."""
    env, params = envs.make(name, max_steps_in_episode=LIMIT)
    discrete = hasattr(env.action_space(params), "n")
    ups = jax.random.randint(jax.random.key(1), (STEPS, ENVS), 0, 2, jnp.int32)
    actions = ups if discrete else (2.0 * ups - 1)[..., None].astype(jnp.float32)

    def run(key, actions):
        first, state = env.reset(key, params)

        def step(state, inputs):
            out = env.step(*inputs[:1], state, inputs[1], params)
            return out[1], (out[0], *out[2:5], out[5]["final_observation"])

        keys = jax.random.split(key, STEPS)
        return first, jax.lax.scan(step, state, (keys, actions))[1]

    run = jax.jit(jax.vmap(run, (0, 1)))
    first, record = jax.device_get(run(jax.random.split(jax.random.key(0), ENVS), actions))
    ends = set()
    for i in range(ENVS):
        place, time = place_of(name, first[i]), 0
        assert 0 <= place <= 2
        for t in range(STEPS):
            seen, reward, terminated, truncated, final = (x[i, t] for x in record)
            place, time = place + 1 + int(ups[t, i]), time + 1
            assert place_of(name, final) == place
            expected = place * (time / LIMIT if name == "fake/xminigrid" else 1)
            assert abs(float(reward) - expected) < 1e-5
            over = place >= END
            assert (bool(terminated), bool(truncated)) == (over, time >= LIMIT and not over)
            ends |= {(bool(terminated), bool(truncated))}
            if terminated or truncated:
                place, time = place_of(name, seen), 0
                assert 0 <= place <= 2
            else:
                np.testing.assert_array_equal(seen, final)
    assert ends == {(False, False), (True, False), (False, True)}


def test_the_limit_by_default_is_that_of_the_package():
    for name in PORTS:
        env, params = envs.make(name)
        assert envs.episode_steps(env, params) == OWN_LIMIT


def test_a_package_is_listed_where_it_is_installed():
    listed = {name.partition("/")[0] for name in envs.names()}
    for kind, _, _ in entries._PORTS:
        assert (kind.extra in listed) == is_installed(kind.package)
    with fake_packages.installed():
        names = envs.names()
        assert {"craftax/Craftax-Symbolic-v1", "xminigrid/MiniGrid-MemoryS8"} <= set(names)
        assert len(names) == len(set(names))
        env, _ = envs.make("xminigrid/MiniGrid-MemoryS8", view_size=5)
        assert env.name == "xminigrid/MiniGrid-MemoryS8"
        assert env.observation_space(None).shape == (5, 5, 25)
        with pytest.raises(ValueError, match=r"`view_size` \(=4\) must be odd and at least 3"):
            envs.make("xminigrid/MiniGrid-MemoryS8", view_size=4)
        with pytest.raises(ValueError, match=r"`observe` \(='half'\) must be one of: view, all"):
            envs.make("navix/Navix-Empty-5x5-v0", observe="half")
        with pytest.raises(
            ValueError, match=r"Unknown option `env_name` .*: initial_states, max_steps_in_ep"
        ):
            envs.make("craftax/Craftax-Symbolic-v1", env_name="Craftax-Pixels-v1")


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("craftax/Craftax-Symbolic-v1", "craftax"),
        ("jumanji/Snake-v1", "jumanji"),
        ("navix/Navix-Empty-5x5-v0", "navix"),
        ("playground/CheetahRun", "playground"),
        ("xminigrid/MiniGrid-Empty-5x5", "xminigrid"),
    ],
)
def test_a_missing_package_is_told_with_its_extra(name, extra, monkeypatch):
    monkeypatch.setattr("agents.envs.bridges.package_env.is_installed", lambda package: False)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'trace-zoo\[{extra}\]'"):
        envs.make(name)
    with pytest.raises(ValueError, match="is the name of another environment already"):
        envs.register(name, envs.TMaze)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("jumanji/Sokoban-v0", "it downloads its levels"),
        ("jumanji/Connector-v3", "a reward for each of several agents"),
        ("playground/Go1JoystickFlatTerrain", "downloads its robot"),
        ("xminigrid/XLand-MiniGrid-R1-9x9", "no goal without rules, which are downloaded"),
    ],
)
def test_what_is_not_bridged_is_told_with_the_reason(name, reason):
    with pytest.raises(ValueError, match=f"is not available: .*{reason}"):
        envs.make(name)


@pytest.mark.slow
def test_a_tree_of_observations_becomes_a_vector():
    env, params = envs.make("fake/jumanji")
    observation, state = env.reset(jax.random.key(0), params)
    place = int(state.inner.place)
    expected = [*np.eye(END + 2)[place], 0, 1, 0]
    np.testing.assert_array_equal(observation, np.asarray(expected, np.float32))
    at = state.replace(inner=state.inner.replace(time=jnp.int32(9)))
    seen = env.step_env(jax.random.key(0), at, 0, params)[0]
    assert float(seen[END + 2]) == 10 / 40  # a count has too many values to be one-hot
    at = state.replace(inner=state.inner.replace(time=jnp.int32(99)))
    assert float(env.step_env(jax.random.key(0), at, 0, params)[0][END + 2]) == 1


def test_pictures_of_things_are_not_kept_in_every_state():
    env, params = envs.make("fake/navix")
    state = env.reset(jax.random.key(0), params)[1]
    assert sum(leaf.size for leaf in jax.tree.leaves(state)) < 64


def test_what_a_package_tells_stays_in_info():
    env, params = envs.make("fake/craftax")
    _, state = env.reset(jax.random.key(0), params)
    *_, info = env.step(jax.random.key(1), state, 1, params)
    assert info["place"].dtype == jnp.float32
    assert int(info["place"]) == int(state.inner.place) + 2


@pytest.mark.slow
def test_importing_and_listing_imports_none_of_them():
    code = """
import sys
from agents import envs
envs.names()
found = {"craftax", "jumanji", "navix", "mujoco_playground", "xminigrid", "brax"} & set(sys.modules)
assert not found, found
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
