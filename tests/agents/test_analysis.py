"""What a memory remembers, against cases worked by hand; and what the pictures show."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces
from matplotlib.image import imread

import zoo
from agents import DQN, Policy, StreamingTD, Tabular, analysis, envs
from agents.acting import Actor, ByPolicy
from agents.analysis import draw_eigenvalues, draw_sensitivity, draw_traces
from agents.networks import Inputs, actor_critic
from agents.networks.values import q_network

TIME = 9
sensitivity = jax.jit(analysis.value_sensitivity)
BOX = spaces.Box(-1.0, 1.0, (3,))


def network(memory, observation=BOX, **options):
    sizes = {"encoder_size": 0, "head_size": 4} | options
    make = lambda key: actor_critic(  # noqa: E731
        observation, spaces.Discrete(2), memory, **sizes, key=key
    )
    return eqx.filter_jit(make)(jax.random.key(0))


def tape(seed=0, begin=()):
    rng = np.random.default_rng(seed)
    return Inputs(
        observation=jax.device_put(rng.normal(size=(TIME, 3))),
        action=jax.device_put(rng.integers(0, 2, TIME)),
        reward=jax.device_put(rng.normal(size=TIME)),
        begin=jax.device_put(np.isin(np.arange(TIME), begin)),
    )


def linear_heads(net):
    """The same network with a critic whose hidden units are all on: linear."""
    return eqx.tree_at(lambda n: n.head.critic.hidden.b, net, jnp.full(4, 1e3))


def through_critic(net):
    return (net.head.critic.output.w @ net.head.critic.hidden.w)[0]


def only_lag(lag):
    """A value that depends on the observation of `lag` steps ago and on no other; linearly."""
    net = linear_heads(network(zoo.spec("frame_stack", hidden=5, activation="identity")))
    w = net.memory.cell.w.reshape(5, 4, 3)  # the oldest comes first
    kept = jnp.arange(4)[:, None] == 3 - lag
    return eqx.tree_at(lambda n: n.memory.cell.w, net, jnp.where(kept, w, 0).reshape(5, 12))


@pytest.mark.slow
@pytest.mark.parametrize("lag", [0, 2, 3])
def test_a_value_that_depends_on_one_past_observation(lag):
    net = only_lag(lag)
    got = sensitivity(net, tape())
    w = net.memory.cell.w.reshape(5, 4, 3)[:, 3 - lag]
    expected = np.zeros(TIME)
    expected[TIME - 1 - lag] = np.linalg.norm(through_critic(net) @ w)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=0)
    assert analysis.value_memory_length(got) == lag + 1
    # The episode began too late for the lag to lie in it.
    reset = sensitivity(net, tape(begin=[TIME - lag]) if lag else tape())
    np.testing.assert_array_equal(reset, expected * (lag == 0))
    earlier = sensitivity(net, tape(), step=5)
    np.testing.assert_allclose(earlier, np.roll(expected, 5 - (TIME - 1)), rtol=1e-12)


@pytest.mark.slow
def test_sensitivity_against_finite_differences_and_episodes_apart():
    options = {"encoder_size": 6, "previous_action": True, "previous_reward": True}
    net, inputs = network(zoo.spec("gru", hidden=5), **options), tape(begin=[3])
    got = sensitivity(net, inputs)
    value = jax.jit(lambda o: net.scan(
        net.memory.init_state(), eqx.tree_at(lambda i: i.observation, inputs, o)
    )[1][1][-1])  # fmt: skip
    for i in range(TIME):
        moved = [
            (value(inputs.observation.at[i, j].add(h)) - value(inputs.observation.at[i, j].add(-h)))
            / (2 * h)
            for j in range(3)
            for h in [1e-6]
        ]
        np.testing.assert_allclose(got[i], np.linalg.norm(moved), rtol=1e-6, atol=1e-9)
    assert np.all(got[:3] == 0) and np.all(got[3:] > 0)
    other = tape(1, begin=[3])
    mixed = jax.tree.map(lambda a, b: jnp.concatenate([a[:3], b[3:]]), other, inputs)
    np.testing.assert_allclose(sensitivity(net, mixed), got, rtol=1e-12)


@pytest.mark.slow
def test_a_state_that_is_carried_in_counts_as_past():
    net, inputs = network(zoo.spec("gru", hidden=5)), tape()
    first, last = (jax.tree.map(lambda x, p=p: x[p], inputs) for p in (slice(4), slice(4, None)))
    state, _ = jax.jit(lambda *carry: net.scan(*carry))(net.memory.init_state(), first)
    whole = sensitivity(net, inputs)
    part = sensitivity(net, last, state=state)
    np.testing.assert_allclose(part, whole[4:], rtol=1e-10)


def test_shares_by_hand():
    np.testing.assert_allclose(
        analysis.relative_sensitivity(np.array([1.0, 1, 2])), [0.5, 0.25, 0.25]
    )
    np.testing.assert_allclose(
        analysis.cumulative_sensitivity([np.array([1.0, 1, 2])]), [0, 0.5, 0.75, 1]
    )
    two = [np.array([1.0, 1, 2]), np.array([3.0, 1]), np.zeros(4)]
    np.testing.assert_allclose(analysis.relative_sensitivity(two), [0.375, 0.5, 0.125, 0])
    np.testing.assert_array_equal(analysis.cumulative_sensitivity(np.zeros(2)), [0, 0, 0])


@pytest.mark.parametrize(
    ("values", "fraction", "expected"),
    [
        ([1, 1, 2], 0.4, 1),
        ([1, 1, 2], 0.5, 1),
        ([1, 1, 2], 0.51, 2),
        ([1, 1, 2], 0.9, 3),
        ([1] * 10, 0.9, 9),
        ([5, 0, 0, 0], 0.1, 4),
        ([0, 5, 0, 0], 1e-12, 3),
        ([0, 0], 0.5, 0),
    ],
)
def test_value_memory_length_by_hand(values, fraction, expected):
    assert analysis.value_memory_length(np.array(values, float), fraction) == expected


def test_bad_sensitivities_are_named():
    with pytest.raises(ValueError, match=r"`fraction` \(=1.0\) must be above 0 and below 1"):
        analysis.value_memory_length(np.ones(3), 1.0)
    for wrong in ([], [np.ones((2, 2))], [np.ones(0)]):
        with pytest.raises(ValueError, match=r"`sensitivities` \(shapes .*\) must be arrays over"):
            analysis.relative_sensitivity(wrong)
    message = "`sensitivities` must be finite and at least 0, which 2 of 5 numbers are not"
    for wrong in ([np.nan, 1.0, np.inf], [-1.0, 1.0, -np.inf]):
        with pytest.raises(ValueError, match=message):
            analysis.value_memory_length([np.ones(2), np.array(wrong)])


@pytest.mark.parametrize("step", [2.0, True, None])
def test_a_step_that_is_no_whole_number_is_refused(step, unhooked):
    net = eqx.filter_eval_shape(network, zoo.spec("gru", hidden=5))
    with pytest.raises(TypeError, match=rf"`step` \(={step}\) must be a whole number"):
        analysis.value_sensitivity(net, tape(), step=step)


@pytest.mark.parametrize("step", [TIME, 50, -TIME - 1])
def test_a_step_that_there_is_not_is_refused(step):
    net = eqx.filter_eval_shape(network, zoo.spec("gru", hidden=5))
    with pytest.raises(ValueError, match=rf"`step` \(={step}\) must be in -9 … 8: there are 9"):
        analysis.value_sensitivity(net, tape(), step=step)


@pytest.mark.slow
def test_the_value_of_a_critic_apart_and_of_the_best_action():
    """Against the derivative through the network's own scan; of the actor nothing is told."""
    apart = network(zoo.spec("lru", hidden=3), separate=True)
    values = q_network(
        BOX,
        spaces.Discrete(2),
        zoo.spec("lru", hidden=3),
        encoder_size=0,
        head_size=4,
        head_layers=1,
        layer_norm=True,
        dueling=True,
        key=jax.random.key(1),
    )
    for net, value in ((apart, lambda out: out[1][-1]), (values, lambda out: out[-1].max())):
        inputs = tape()

        def at_end(observation, net=net, value=value, inputs=inputs):
            seen = eqx.tree_at(lambda i: i.observation, inputs, observation)
            return value(net.scan(net.init_state(), seen)[1])

        slope = jax.jit(jax.grad(at_end))(inputs.observation)
        expected = np.linalg.norm(slope, axis=1)
        assert expected.min() > 0
        np.testing.assert_allclose(sensitivity(net, inputs), expected, rtol=1e-9)


@pytest.mark.slow
def test_episodes_are_played_to_their_end(float32):
    """A pole that nobody balances falls, and the episode ends, before the limit."""
    env, params = envs.make("CartPole-v1")
    space = env.observation_space(params)
    net = network(zoo.spec("mlp", hidden=4, activation="tanh"), space)
    actor, key = Actor(env, params), jax.random.key(0)
    policy = Policy(ByPolicy(net), space, env.action_space(params))
    episodes = analysis.episode_sensitivities(actor, policy, episodes=3, max_steps=50, key=key)
    lengths = [len(values) for values in episodes]
    assert all(7 < n < 50 for n in lengths) and len(set(lengths)) > 1
    for values in episodes:  # without a memory, only the last observation counts
        assert values[-1] > 0 and not values[:-1].any()
    with pytest.raises(ValueError, match=r"`max_steps` \(=0\) must be a whole number of at"):
        analysis.episode_sensitivities(actor, policy, episodes=3, max_steps=0, key=key)

    env, params = envs.make("trace_conditioning")
    actor = Actor(env, params)
    policy = Policy(policy.behavior, env.observation_space(params), env.action_space(params))
    with pytest.raises(ValueError, match=r"`max_steps` \(=None\) must be given: .* 200,000 steps"):
        analysis.episode_sensitivities(actor, policy, episodes=1, key=key)
    dqn = DQN(env="t_maze", env_options={"length": 2}, memory=zoo.spec("lru", hidden=4))
    by_values = dqn.policy(jax.jit(dqn.init)(key=key).learner)
    episodes = analysis.episode_sensitivities(
        dqn.actor, by_values, episodes=2, max_steps=6, greedy=False, key=key
    )
    assert all(values.all() for values in episodes)
    table = Tabular(env="gravity")
    of_table = table.policy(table.init(key=key).learner)
    with pytest.raises(
        TypeError, match=r"`policy` \(of ByTable\) must be one that has the value as"
    ):
        analysis.episode_sensitivities(table.actor, of_table, episodes=1, key=key)
    td = StreamingTD(env="t_maze", env_options={"length": 2}, memory=zoo.spec("lru", hidden=4))
    by_chance = td.policy(jax.jit(td.init)(key=key).learner)
    episodes = analysis.episode_sensitivities(td.actor, by_chance, episodes=2, max_steps=6, key=key)
    assert all(values.all() for values in episodes)


# Traces


@pytest.mark.slow
def test_durability_and_period_are_what_the_recurrence_does():
    cell = zoo.FFM(3, 4, traces=3, contexts=2, t_e=50.0, key=jax.random.key(0))
    durability, period = analysis.trace_durability(cell, beta=0.02), analysis.context_period(cell)
    assert durability.shape == (3,) and period.shape == (2,)
    gamma = np.asarray(cell.recurrence_parameters().both)
    np.testing.assert_allclose(np.abs(gamma[:, 0]) ** durability, 0.02, rtol=1e-9)
    np.testing.assert_allclose(gamma[0, 1] ** period[1], abs(gamma[0, 1]) ** period[1], rtol=1e-9)
    np.testing.assert_allclose(durability, np.log(0.02) / -np.abs(cell.alpha))
    np.testing.assert_allclose(period, [1, 50])
    later = eqx.tree_at(lambda c: (c.alpha, c.omega), cell, (2 * cell.alpha, cell.omega / 3))
    np.testing.assert_allclose(
        analysis.trace_durability([cell, later], 0.02), [durability, durability / 2]
    )
    np.testing.assert_allclose(analysis.context_period((cell, later)), [period, 3 * period])


@pytest.mark.slow
def test_traces_that_never_end():
    cell = zoo.FFM(2, 2, traces=2, contexts=2, decay=False, context=False, key=jax.random.key(0))
    assert np.all(np.isinf(analysis.trace_durability(cell)))
    assert np.all(np.isinf(analysis.context_period(cell)))
    free = zoo.FFM(2, 2, traces=3, contexts=2, hadamard=True, key=jax.random.key(0))
    assert analysis.trace_durability([free]).shape == (1, 3, 2)


@pytest.mark.slow
def test_other_cells_have_no_traces(unhooked):
    with pytest.raises(TypeError, match=r"`cells` \(a GRU\) must be a zoo.FFM"):
        analysis.trace_durability(zoo.get("gru", hidden=2))
    with pytest.raises(
        TypeError, match=r"`cells` \(=Spec.* must be a memory, or several of one kind"
    ):
        analysis.trace_durability(zoo.spec("ffm", hidden=2))
    with pytest.raises(TypeError, match=r"`memories` \(with 'gru'\) must hold memories only"):
        analysis.eigenvalues(["gru"])
    with pytest.raises(
        ValueError, match=r"`memories` \(with 2, 3 eigenvalues\) must be the same one"
    ):
        analysis.eigenvalues([zoo.get("rtu", hidden=n) for n in (2, 3)])
    with pytest.raises(ValueError, match=r"`beta` \(=1.0\) must be above 0 and below 1"):
        analysis.trace_durability(zoo.get("ffm", hidden=2), beta=1.0)


WRONG = {
    "beta": (
        lambda cell: analysis.trace_durability(cell, "a"),
        r"`beta` \(='a'\) must be a number",
    ),
    "fraction": (
        lambda _: analysis.value_memory_length(np.ones(3), "a"),
        r"`fraction` \(='a'\) must be a number",
    ),
    "state": (
        lambda cell: analysis.eigenvalues(cell, state=np.zeros(7)),
        r"`state` \(=float64\[7\]\) must be like",
    ),
    "x": (
        lambda cell: analysis.eigenvalues(cell, x=np.zeros(7)),
        r"`x` \(shape \(7,\)\) must have the shape \(3,\) for ",
    ),
    "axes": (
        lambda _: draw_eigenvalues(np.zeros((2, 3, 4))),
        r"`values` \(shape \(2, 3, 4\)\) must be \[n\] or \[times, n\]",
    ),
    "texts": (
        lambda _: draw_eigenvalues(["a"]),
        r"`values` \(=array.*\) must be numbers",
    ),
    "not finite": (
        lambda _: draw_eigenvalues([np.nan, 1.0]),
        r"`values` must be finite, which 1 of 2 numbers are not",
    ),
    "times": (
        lambda _: draw_eigenvalues(np.ones((2, 3)), steps=["a", "b"]),
        r"`steps` \(=\['a', 'b'\]\) must be real numbers",
    ),
    "none": (
        lambda _: analysis.relative_sensitivity(None),
        r"`sensitivities` \(=None\) must be an array over time, or a list",
    ),
    "by label": (
        lambda _: analysis.relative_sensitivity({"a": [1.0]}),
        r"`sensitivities` \(=\{'a': \[1.0\]\}\) must be an array over time",
    ),
    "a number": (
        lambda _: analysis.relative_sensitivity(np.array(1.0)),
        r"`sensitivities` \(shapes \[\(\)\]\) must be arrays over time",
    ),
    "complex": (
        lambda _: analysis.relative_sensitivity(np.array([1j])),
        r"`sensitivities` \(=array.*\) must be real numbers",
    ),
    "a policy": (
        lambda _: analysis.value_sensitivity(Policy(ByPolicy(None), BOX, BOX), tape()),
        r"`network` \(=Policy.*\) must be a network, such as `policy.behavior.network`",
    ),
    "labels": (
        lambda _: draw_sensitivity([np.ones(3)]),
        r"`sensitivities` \(=\[array.*\) must be a dictionary, by label",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_analyzed_is_named(name, unhooked):
    call, message = WRONG[name]
    cell = zoo.get("linear_rnn", hidden=2, inputs=3)
    with pytest.raises((TypeError, ValueError), match=message):
        call(cell)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"episodes": 1.5}, r"`episodes` \(=1.5\) must be a whole number"),
        ({"max_steps": 2.5}, r"`max_steps` \(=2.5\) must be a whole number or None"),
        ({"key": 0}, r"`key` \(=0\) must be a"),
    ],
)
def test_what_no_episodes_are_played_with_is_named(given, message, unhooked):
    env, params = envs.make("t_maze")
    space = env.observation_space(params)
    policy = Policy(ByPolicy(None), space, env.action_space(params))
    options = {"episodes": 1, "key": jax.random.key(0)} | given
    with pytest.raises(TypeError, match=message):
        analysis.episode_sensitivities(Actor(env, params), policy, **options)


def test_a_recurrence_that_is_not_finite_is_refused():
    cell = eqx.filter_eval_shape(zoo.LinearRNN, 2, 2, key=jax.random.key(0))
    broken = jax.tree.map(lambda leaf: np.full(leaf.shape, np.nan), cell)
    with pytest.raises(ValueError, match=r"\(with a .*hidden=2\)\) must have a finite recurrence"):
        analysis.eigenvalues(broken)


# Eigenvalues


def _sorted(values):
    return np.sort_complex(np.round(values, 9))


# Constant and real, constant and complex, dependent on the input, and of two axes.
@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("name", ["rtu", "linear_rnn", "mingru", "ffm", "retnet"])
def test_coefficients_are_the_eigenvalues_of_the_jacobian(name):
    small = {"traces": 2, "contexts": 2} if name == "ffm" else {}
    cell = zoo.get(name, hidden=2, inputs=2, **small)
    x = jnp.array([0.3, -1.2])
    got = analysis.eigenvalues(cell, x=x)
    state = cell.init_state()
    if np.iscomplexobj(state):
        got = np.concatenate([got, got.conj()])
    assert len(got) == cell.state_size
    parts = [np.real, np.imag] if np.iscomplexobj(state) else [np.real]

    def real_step(numbers):
        shape = (len(parts), *state.shape)
        parted = numbers.reshape(shape)
        state_in = jax.lax.complex(*parted) if len(parts) == 2 else parted[0]
        out = cell.step(state_in, x)[0]
        return jnp.concatenate([jnp.ravel(p(out)) for p in (jnp.real, jnp.imag)[: len(parts)]])

    jacobian = jax.jit(jax.jacobian(real_step))(jnp.zeros(cell.state_size))
    np.testing.assert_allclose(_sorted(got), _sorted(np.linalg.eigvals(jacobian)), atol=1e-8)


class OneDecayARow(zoo.AbstractLinearCell):
    """A state `[3, hidden]` whose rows have a decay each."""

    inputs: int = 2
    hidden: int = 2
    outputs = 6

    def coefficients(self, x):
        return jnp.array([[0.9], [0.5], [0.1]]), jnp.broadcast_to(x, (3, 2))

    def readout(self, state, x):
        return state.ravel()


def test_a_decay_that_broadcasts_is_the_eigenvalue_of_every_entry():
    got = analysis.eigenvalues(OneDecayARow())
    np.testing.assert_array_equal(got, [0.9, 0.9, 0.5, 0.5, 0.1, 0.1])


@pytest.mark.slow
def test_eigenvalues_of_a_dense_cell_are_those_of_its_jacobian():
    cell = zoo.Elman(2, 4, key=jax.random.key(0))
    state, x = jnp.array([0.1, -0.4, 0.2, 0.9]), jnp.array([0.5, -0.3])
    slope = 1 - cell.step(state, x)[0] ** 2
    expected = np.linalg.eigvals(np.asarray(slope)[:, None] * np.asarray(cell.u[:, 0]))
    got = analysis.eigenvalues(cell, state=state, x=x)
    np.testing.assert_allclose(_sorted(got), _sorted(expected))
    at_rest = (1 - np.tanh(cell.b) ** 2) * cell.u[:, 0]
    np.testing.assert_allclose(
        _sorted(analysis.eigenvalues(cell)), _sorted(np.linalg.eigvals(np.asarray(at_rest)))
    )


@pytest.mark.slow
def test_a_count_of_steps_has_no_eigenvalues():
    for name in ("positional_mlp", "mlp"):
        assert analysis.eigenvalues(zoo.get(name, hidden=3)).shape == (0,)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_a_count_of_steps_beside_other_numbers_has_no_eigenvalue(dtype):
    """Without parameters the stable Hadamard memory keeps its four numbers as they are."""
    cell = eqx.filter_eval_shape(zoo.get, "shm", hidden=2, inputs=2)
    cell = jax.tree.map(lambda leaf: np.zeros(leaf.shape, dtype), cell)
    np.testing.assert_array_equal(analysis.eigenvalues(cell), np.ones(4))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [("shm", {}), ("transformer", {"window": 3}), ("gtrxl", {"window": 3}), ("tcn", {"blocks": 2})],
)
def test_eigenvalues_of_what_counts_steps_are_those_of_the_rest(name, options):
    cell = eqx.filter_jit(lambda: zoo.get(name, hidden=2, inputs=2, **options))()
    (start, steps), x = cell.init_state(), jnp.array([0.5, -0.3])

    def step(numbers):
        return cell.step((numbers.reshape(start.shape), steps), x)[0][0].ravel()

    expected = np.linalg.eigvals(jax.jit(jax.jacfwd(step))(jnp.zeros(start.size)))
    got = analysis.eigenvalues(cell, x=x)
    np.testing.assert_allclose(_sorted(got), _sorted(expected), atol=1e-8)


@pytest.mark.slow
def test_eigenvalues_of_a_stack_are_those_of_its_layers():
    """Lower layers do not hear the upper ones: the Jacobian is block triangular."""
    stack = eqx.filter_jit(lambda: zoo.get("rtu", hidden=2, inputs=3, layers=2))()
    layers = np.concatenate([analysis.eigenvalues(block.cell) for block in stack.blocks])
    expected = np.concatenate([layers, layers.conj()])
    np.testing.assert_allclose(_sorted(analysis.eigenvalues(stack)), _sorted(expected), atol=1e-8)


# Pictures


@pytest.mark.slow
def test_sensitivities_are_drawn(tmp_path):
    values = {"GRU": np.array([1.0, 1, 2]), "FFM": [np.array([0.0, 4]), np.array([1.0, 0, 0])]}
    path = tmp_path / "a.png"
    figure = draw_sensitivity(values, path, reward_memory_length=2, title="Task")
    by_age, cumulated = figure.axes
    np.testing.assert_allclose(by_age.get_lines()[0].get_ydata(), [0.5, 0.25, 0.25])
    np.testing.assert_allclose(by_age.get_lines()[2].get_xdata(), [1.5, 1.5])
    curve, dot = cumulated.get_lines()[:2]
    np.testing.assert_allclose(curve.get_ydata(), [0, 0.5, 0.75, 1])
    np.testing.assert_allclose((dot.get_xdata(), dot.get_ydata()), ([3], [1]))
    texts = [text.get_text() for text in cumulated.get_legend().get_texts()]
    assert texts == ["GRU: 3 for 90%", "FFM: 3 for 90%", "reward memory: 2"]
    assert imread(path).shape == (600, 1500, 4)
    with pytest.raises(ValueError, match="must hold at least one agent's"):
        draw_sensitivity({})


@pytest.mark.parametrize("length", [0, -3, 1.5])
def test_a_reward_memory_length_that_is_none(length, unhooked):
    with pytest.raises(ValueError, match=rf"`reward_memory_length` \(={length}\) must be a whole"):
        draw_sensitivity({"a": np.ones(3)}, reward_memory_length=length)


def test_names_with_signs_of_formulas_are_drawn_as_they_are(tmp_path):
    values = {"cost $5 and $6": np.ones(3), "memory_$x_$": np.ones(3), "_hidden": np.ones(3)}
    figure = draw_sensitivity(values, tmp_path / "a", title="$x_$")
    texts = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert [text.replace("\\$", "$").strip() for text in texts] == [
        f"{name}: 3 for 90%" for name in values
    ]
    assert imread(tmp_path / "a", format="png").shape == (600, 1500, 4)


@pytest.mark.slow
def test_traces_are_drawn(tmp_path):
    cells = [zoo.FFM(2, 2, traces=3, contexts=2, key=jax.random.key(0))] * 2
    durability, period = draw_traces(cells, tmp_path / "a.png", steps=[0, 1000]).axes
    assert (len(durability.get_lines()), len(period.get_lines())) == (3, 2)
    np.testing.assert_array_equal(durability.get_lines()[0].get_xdata(), [0, 1000])
    np.testing.assert_allclose(
        durability.get_lines()[2].get_ydata(), analysis.trace_durability(cells)[:, 2]
    )
    assert durability.get_xlabel() == "environment steps"
    assert draw_traces(cells[0]).axes[0].get_lines()[0].get_marker() == "o"
    with pytest.raises(ValueError, match=r"`steps` \(1 of them\) must be as many as `cells` \(2\)"):
        draw_traces(cells, steps=[0])
    with pytest.raises(ValueError, match=r"`cells` \(=\[\]\) must hold at least one"):
        draw_traces([])


@pytest.mark.slow
def test_eigenvalues_are_drawn(tmp_path):
    values = np.array([[0.5 + 0.5j, -0.2], [0.6j, 0.1]])
    figure = draw_eigenvalues(values, tmp_path / "a.png", steps=[0, 100])
    axes, bar = figure.axes
    (points,) = axes.collections
    np.testing.assert_allclose(points.get_offsets(), [[0.5, 0.5], [-0.2, 0], [0, 0.6], [0.1, 0]])
    np.testing.assert_array_equal(points.get_array(), [0, 0, 100, 100])
    (circle,) = axes.get_lines()
    np.testing.assert_allclose(np.hypot(*circle.get_data()), 1)
    assert bar.get_ylabel() == "environment steps"
    assert len(draw_eigenvalues(values[0]).axes) == 1
