"""What environments hide, and that their fully observed twins are the same tasks without it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import agents
import zoo
from agents import envs
from agents.envs.core.hidden import Hides
from agents.envs.registry import OWN

# One name of each class, of one level.
NAMES = sorted(
    {
        kind: name
        for name, (kind, _) in OWN.items()
        if isinstance(kind, type) and issubclass(kind, Hides)
        if name + "Easy" not in OWN and not name.endswith(("Medium", "Hard"))
    }.values()
)
DRAWN = ("ConcentrationEasy", "MultiarmedBanditEasy")  # beforehand, so not by the same numbers
TELLS = {
    # What answers by what is hidden alone, and the best return.
    "RepeatFirstEasy": (lambda seen, hidden: hidden, 1.0),
    "RepeatPreviousEasy": (lambda seen, hidden: hidden, 1.0),
    "CountRecallEasy": (lambda seen, hidden: hidden, 1.0),
    "AutoencodeEasy": (lambda seen, hidden: hidden, 1.0),
    "copy": (lambda seen, hidden: hidden, 1.0),
    "memory_chain": (lambda seen, hidden: hidden, 1.0),
    "mortar_mayhem": (lambda seen, hidden: hidden, 1.0),
    "mystery_path": (lambda seen, hidden: hidden, 1.0),
    "recall": (lambda seen, hidden: (hidden > 0).sum(), 1.0),
    "recall_variation": (lambda seen, hidden: (hidden > 0).sum() == 1, 3.0),
    "three_state_cycle": (lambda seen, hidden: hidden, 1.0),
    "MultiarmedBanditEasy": (lambda seen, hidden: jnp.argmax(hidden), None),
    "BattleshipEasy": (lambda seen, hidden: jnp.stack(jnp.divmod(jnp.argmax(hidden), 8)), 1.0),
    "MineSweeperEasy": (lambda seen, hidden: jnp.stack(jnp.divmod(jnp.argmax(hidden), 4)), 1.0),
}


def played(together, params, act, steps, seed=0):
    """Everything that each environment gives under a policy of observation and key.

    In one loop, so that what twins have in common is compiled once.
    """

    def step(carry, key):
        keys, after = jax.random.split(key), []
        for env, (observation, state) in zip(together, carry, strict=True):
            action = jnp.asarray(act(observation, keys[0]), env.action_space(params).dtype)
            after.append(env.step(keys[1], state, action, params))
        return [out[:2] for out in after], [(seen, *rest) for seen, _, *rest in after]

    def run(key):
        starts = [env.reset(key, params) for env in together]
        records = jax.lax.scan(step, starts, jax.random.split(key, steps))[1]
        return [(seen, record) for (seen, _), record in zip(starts, records, strict=True)]

    return jax.device_get(jax.jit(run)(jax.random.key(seed)))


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("name", NAMES)
def test_the_twin_is_the_same_task_and_shows_what_is_hidden(name):
    env, params = envs.make(name)
    twin, twin_params = envs.make(name, observability="full")
    assert twin_params == params and not envs.needs_previous_action(twin)
    sample = lambda observation, key: env.action_space(params).sample(key)  # noqa: E731
    record, twin_record = played([env, twin], params, sample, 150)
    first, (seen, *rest, info) = record
    twin_first, (shown, *twin_rest, twin_info) = twin_record
    space = twin.observation_space(params)
    for pair in (twin_first, jax.tree.map(lambda x: x[-1], shown)):
        assert space.contains(jax.tree.map(jnp.asarray, pair))
    final = twin_info["final_observation"]
    assert jax.tree.map(jnp.shape, final) == jax.tree.map(jnp.shape, shown)
    if name not in DRAWN:
        mine = first, seen, *rest, info["final_observation"]
        theirs = twin_first[0], shown[0], *twin_rest, final[0]
        jax.tree.map(np.testing.assert_array_equal, mine, theirs)


@pytest.mark.quick_rows(2)
@pytest.mark.parametrize("name", TELLS)
def test_what_is_hidden_is_all_that_memory_is_for(name):
    act, best = TELLS[name]
    twin, params = envs.make(name, observability="full")
    steps = 2 * envs.episode_steps(twin, params)
    [(_, (_, rewards, terminated, truncated, _))] = played(
        [twin], params, lambda pair, key: act(*pair), steps
    )
    end = int(np.argmax(terminated | truncated)) + 1
    if best is None:
        # The best of ten arms pays ten times of eleven, in the mean over episodes.
        assert rewards[:end].sum() > 0.4
    else:
        np.testing.assert_allclose(rewards[:end].sum(), best, rtol=1e-5)


@pytest.mark.slow
def test_pairs_that_are_turned_knowingly_match():
    twin, params = envs.make("ConcentrationEasy", observability="full")

    def act(pair, key):
        # Places in the order of their kinds, two by two.
        board, first = pair[1][:-1], pair[1][-1]
        down = pair[0] == twin.kinds
        kind = jnp.where(first < 52, board[first % 52], board[jnp.argmax(down)])
        return jnp.argmax(down & (board == kind) & (jnp.arange(52) != first))

    [(_, (_, rewards, terminated, _, _))] = played([twin], params, act, 200)
    end = int(np.argmax(terminated)) + 1
    np.testing.assert_allclose(rewards[:end].sum(), 1, rtol=1e-5)


@pytest.mark.slow
def test_the_state_before_tells_where_the_third_returns_to():
    twin, params = envs.make("three_state", observability="full", scored="all")
    [(_, ((seen, hidden), rewards, *_))] = played([twin], params, lambda pair, key: pair[1], 99)
    assert (rewards[1:][seen[:-1] == 2] > 0).all() and (seen[:-1] == 2).sum() > 10
    np.testing.assert_array_equal(hidden[1:], seen[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hallway_cookie", "hallway_keys", "MemoryS7", "RedBlueDoors-8x8"])
def test_what_a_map_hides_is_the_rest_of_its_state(name):
    twin, params = envs.make(name, observability="full")
    (_, hidden), state = twin.reset(jax.random.key(1), params)
    told = {
        "hallway_cookie": lambda s: [s.cookie + 1],
        "hallway_keys": lambda s: [*s.keys, s.carries, *s.locked],
        "MemoryS7": lambda s: [s.x, s.y, s.direction, s.shown == 3, s.upper == 3],
        "RedBlueDoors-8x8": lambda s: [
            *(s.x, s.y, s.direction, s.red_y, s.blue_y),
            *(s.red_open, s.blue_open),
        ],
    }[name]
    actions = jax.random.split(jax.random.key(2), 40)
    for key in actions:
        np.testing.assert_array_equal(np.ravel(hidden), np.asarray(told(state), np.int32))
        action = twin.action_space(params).sample(key)
        (_, hidden), state, *_ = twin.step(key, state, action, params)


@pytest.mark.slow
def test_an_agent_takes_what_is_seen_and_what_is_hidden():
    options = {"env": "HigherLowerEasy", "env_options": {"observability": "full"}}
    ppo = agents.PPO(
        **options, memory=zoo.spec("mlp", hidden=4), num_envs=4, rollout_length=8, minibatches=1
    )
    state = jax.eval_shape(lambda: ppo.init(key=jax.random.key(0)))
    after, _ = jax.eval_shape(ppo.iterate, state)
    assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, state)


def test_what_is_no_choice_is_refused():
    with pytest.raises(
        ValueError, match=r"`observability` \(='all'\) must be one of partial, full"
    ):
        envs.make("t_maze", observability="all")
    with pytest.raises(ValueError, match=r"Unknown option `observability` \(='full'\) of trace_"):
        envs.make("trace_conditioning", observability="full")
    with pytest.raises(ValueError, match=r"must be one of: .*observability"):
        envs.make("t_maze", observable="full")
