"""What every agent has: each test runs on every row of `tests/agents/cases.py`."""

import copy
import dataclasses
import json
import pickle
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import agents
import zoo
from agents.acting import evaluate
from agents.cli import main
from agents.cli.main import parse_command
from agents.cli.options import make_agent
from agents.running import TrainingInterrupted, load_run
from agents.running.checkpoint import read_header
from agents.running.messages import unordered
from agents.running.programs import Programs
from agents.running.scalars import read_scalars
from agents.settings import from_plain, to_plain
from tests.agents.cases import BEST, CASES, FIRST, MEMORYLESS, ROWS, AgentCase, rows, words_of
from tests.agents.tasks import Spans, poisonable, poisoned
from zoo.proofs.dtypes import changed

pytestmark = pytest.mark.usefixtures("traced_once")

ITERATIONS, SEEDS, DEVICES = 5, 2, 4


def by_name(case):
    return case.name


@dataclasses.dataclass
class Trained:
    case: AgentCase
    folder: str


@pytest.fixture(scope="module", params=ROWS, ids=by_name)
def trained(request, tmp_path_factory):
    """The folder of a small run from the command line, which tests only read."""
    case, folder = request.param, tmp_path_factory.mktemp("runs") / "demo"
    options = f"--steps {ITERATIONS * case.agent.steps_per_iteration} --seeds {SEEDS}"
    rhythm = "--evaluate-every 2 --evaluation-episodes 4 --progress none"
    assert main(words_of(case, f"{options} {rhythm} --out {folder}")) == 0
    return Trained(case, folder)


def train(agent, folder, **options):
    steps = ITERATIONS * agent.steps_per_iteration
    defaults = {"seeds": SEEDS, "evaluate_every": 2, "evaluation_episodes": 4, "progress": False}
    return agents.train(agent, steps=steps, out=folder, **(defaults | options))


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_the_words_of_the_command_line_are_the_settings(case):
    command = parse_command(words_of(case, "--out nowhere"))
    assert make_agent(type(case.agent), command.agent) == case.agent


def test_the_command_line_trains_the_agent_of_the_settings(trained):
    agent = trained.case.agent
    assert load_run(trained.folder)[0] == agent
    scalars = read_scalars(trained.folder)
    assert scalars.metrics["return"].shape == (ITERATIONS, SEEDS)
    assert scalars.metrics["episodes"].sum() > 10
    # Truncated ones and terminated ones.
    assert 2 < np.nanmean(scalars.metrics["length"]) < 4
    for name, values in scalars.metrics.items():
        if name in ("ratio_error", "value_error"):
            assert values.max() < 1e-12
        if name.startswith("evaluation"):
            assert np.isfinite(values[[1, 3, 4]]).all() and np.isnan(values[[0, 2]]).all()


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_settings_survive_json_and_copies(case):
    agent = case.agent
    from_json = from_plain(type(agent), json.loads(json.dumps(to_plain(agent))))
    for again in (from_json, copy.deepcopy(agent)):
        assert again == agent and hash(again) == hash(agent)
    assert dataclasses.asdict(agent)["env_options"] == agent.env_options
    with pytest.raises(TypeError, match="options do not change"):
        agent.env_options["length"] = 2
    assert dataclasses.replace(agent, env_options={}) != agent


def test_an_interrupted_and_resumed_run_is_bitwise_the_run_that_went_through(
    trained, tmp_path, interrupt, same_state
):
    agent, folder = trained.case.agent, tmp_path / "parts"
    interrupt(2)
    with pytest.raises(TrainingInterrupted):
        train(agent, folder)
    assert 2 <= read_header(folder / "checkpoint.eqx").progress["iteration"] < ITERATIONS
    result = train(agent, folder, resume=True)
    same_state(load_run(trained.folder)[1], result.state)
    for name in ("scalars.csv", "config.json"):
        assert (folder / name).read_bytes() == (trained.folder / name).read_bytes()


@pytest.mark.parametrize("case", rows(lambda c: c.first and c.name != "documented"), ids=by_name)
def test_what_is_no_key_is_named(case, unhooked):
    for key in (0, None, jax.random.split(jax.random.key(0))):
        with pytest.raises(TypeError, match=r"`key` \(=.*\) must be a PRNG key, such as"):
            case.agent.init(key=key)


def of_each_class(test):
    """The policy is the class's: one row of each is enough."""
    return pytest.mark.parametrize("trained", FIRST, ids=by_name, indirect=True)(test)


@pytest.mark.parametrize("trained", FIRST[-1:], ids=by_name, indirect=True)
def test_one_program_serves_all_iterations(trained):
    agent, traces = trained.case.agent, []

    @jax.jit
    def iterate(state):
        traces.append(1)
        return agent.iterate(state)

    key = jax.random.split(jax.random.key(0), SEEDS)[1]
    state = jax.jit(lambda: agent.init(key=key))()
    scalars = read_scalars(trained.folder).metrics
    for number in range(ITERATIONS):
        state, report = iterate(state)
        for name, value in report.scalars().items():
            expected = scalars[name][number, 1]
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-7, err_msg=name)
    assert len(traces) == 1, "a later iteration was compiled again"


@dataclasses.dataclass
class Alone:
    """The programs of one seed, over several devices where the environments can be split."""

    programs: Programs
    devices: int | None


@pytest.fixture(scope="module")
def alone(trained, eight_devices):
    """Seed 0 of the run by itself, whose rewards can be poisoned: compiled once for two tests."""
    agent = poisonable(trained.case.agent)
    devices = DEVICES if getattr(agent, "num_envs", 1) % DEVICES == 0 else None
    return Alone(Programs(agent, seed=0, seeds=1, evaluation_episodes=0, devices=devices), devices)


@of_each_class
def test_a_seed_alone_and_over_several_devices_learns_the_same(trained, alone):
    if alone.devices is None:
        with pytest.raises(ValueError, match=r"`devices` \(=4\) must divide `seeds` \(=1\)"):
            Programs(trained.case.agent, seed=0, seeds=1, evaluation_episodes=0, devices=DEVICES)
    else:
        messages = unordered(alone.programs.step)
        assert messages == [], "its messages need an order between processes"
    state, scalars = alone.programs.init(), read_scalars(trained.folder).metrics
    for number in range(ITERATIONS):
        # Compiled for the first state: it refuses one of other types, weak ones too.
        state, report = alone.programs.step(state)
        for name, value in report.scalars().items():
            expected = scalars[name][number, 0]
            np.testing.assert_allclose(value[0], expected, rtol=1e-5, atol=1e-7, err_msg=name)
    leaves = [x for x in jax.tree.leaves(state) if not jnp.issubdtype(x.dtype, jax.dtypes.prng_key)]
    assert not any(leaf.weak_type for leaf in leaves)
    assert list(state.iteration) == [ITERATIONS]
    together = load_run(trained.folder)[1].learner
    both = zip(jax.tree.leaves(together), jax.tree.leaves(state.learner), strict=True)
    for a, b in both:
        np.testing.assert_allclose(a[0], b[0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("case", [case for case in CASES if case.first], ids=by_name)
def test_an_iteration_returns_a_state_of_the_types_that_it_took(case):
    """Only traced, as is a greedy evaluation: what of every class the quick tests see."""
    agent = case.agent
    state = jax.eval_shape(lambda: agent.init(key=jax.random.key(0)))
    after, _ = jax.eval_shape(agent.iterate, state)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert changed(state, after) == ""

    def played(learner, key):
        policy = agent.policy(learner)
        return evaluate(agent.actor, policy, episodes=3, greedy=True, key=key)

    found = jax.eval_shape(played, state.learner, jax.random.key(0))
    assert found["returns"].shape == found["lengths"].shape == (3,)


def numbers_in(program):
    """The sizes of all numbers with a fraction that are written in a program."""
    return np.array(re.findall(r"\d+\.\d+(?:e[-+]?\d+)?", str(program)), float)


@pytest.mark.parametrize("case", rows(lambda case: case.first, quick=["r2ac snap1"]), ids=by_name)
def test_every_number_of_the_settings_is_in_the_program(case):
    """By itself, or less than 1, or with another of them: else it would have no effect."""
    agent = case.agent
    # In the program that makes what is learned.
    elsewhere = {"sparsity", "initial_value", "temperature"}
    if getattr(agent, "optimizer", None) == "adam":
        elsewhere.add("kappa")  # of the other optimizer
    fields = [field.name for field in dataclasses.fields(agent) if field.name not in elsewhere]
    names = [name for name in fields if isinstance(getattr(agent, name), float)]
    drawn = np.random.default_rng(0).uniform(0.5, 0.9, len(names)).round(5)
    numbers = dict(zip(names, drawn.tolist(), strict=True))
    steps = {"epsilon_steps": 1000} if hasattr(agent, "epsilon_steps") else {}
    agent = dataclasses.replace(agent, **numbers, **steps)
    state = jax.eval_shape(lambda: agent.init(key=jax.random.key(0)))
    found = numbers_in(jax.make_jaxpr(agent.iterate)(state))
    for name, x in numbers.items():
        others = [y for y in numbers.values() if y != x]
        forms = [x, 1 - x, *(f for y in others for f in (x * y, abs(x - y)))]
        assert any(np.isclose(found, form, rtol=3e-6).any() for form in forms), name


@pytest.mark.slow  # nothing is jitted
@pytest.mark.parametrize("case", FIRST, ids=by_name)
def test_a_new_state_holds_every_array_once(case):
    """Or a program could not be lent it, as the tutorials' loops do with `donate_argnums`."""
    agent = case.agent
    if isinstance(agent, agents.R2AC):
        agent = dataclasses.replace(agent, lag=2)
    leaves = eqx.filter(jax.tree.leaves(agent.init(key=jax.random.key(0))), eqx.is_inexact_array)
    places = [x.unsafe_buffer_pointer() for x in leaves if x is not None and x.size]
    assert places and len(places) == len(set(places))


@of_each_class
def test_policies_are_of_one_structure_and_travel(trained):
    """Those of two seeds can be averaged, and one that was pickled or copied is like itself."""
    one, other = (agents.load_policy(trained.folder, seed=seed) for seed in (0, 1))
    structure, copies = jax.tree.structure(one), [copy.deepcopy(one)]
    if trained.case.name != "documented":  # whose class is a page's, made anew at every loading
        copies += [other, pickle.loads(pickle.dumps(one))]
    for same in copies:
        assert jax.tree.structure(same) == structure
        assert hash(jax.tree.structure(same)) == hash(structure)


@of_each_class
def test_a_loaded_policy_acts_outside_as_inside(trained):
    policy, actor = agents.load_policy(trained.folder, seed=1), trained.case.agent.actor
    state = actor.reset(policy.behavior, 1, key=jax.random.key(4))
    act = eqx.filter_jit(policy.act)

    @jax.jit
    def step(state, key):
        memory, decision = policy.behavior(state.memory, state.inputs(), None)
        return actor.advance(state, memory, decision.action, key)[:2]

    carried, lengths = policy.init_state(), []
    for number in range(12):  # over the ends of episodes
        carried, action = act(carried, state.observation[0], state.begin[0], state.reward[0])
        state, taken = step(state, jax.random.key(number))
        np.testing.assert_array_equal(action, taken.action[0])
        lengths.append(int(taken.episode_length[0]))
    assert lengths.count(1) > 1
    _, drawn = act(carried, state.observation[0], state.begin[0], key=jax.random.key(5))
    assert drawn.dtype == action.dtype
    with pytest.raises(ValueError, match=r"`seed` \(=2\) must be in 0 … 1: the run has 2 seeds"):
        agents.load_policy(trained.folder, seed=2)


@pytest.mark.parametrize(
    "case", rows(lambda case: case.name in ("documented", "ppo rtrl")), ids=by_name
)
def test_an_evaluation_is_of_the_first_episode_of_each_environment(case):
    actor = case.agent.actor
    learner = jax.jit(lambda key: case.agent.init(key=key).learner)(jax.random.key(0))
    policy = case.agent.policy(learner)
    key, episodes = jax.random.key(1), 64
    played = jax.jit(lambda key: evaluate(actor, policy, episodes=episodes, greedy=False, key=key))(
        key
    )
    reset_key, key = jax.random.split(key)
    state = jax.jit(lambda k: actor.reset(policy.behavior, episodes, key=k))(reset_key)
    step = jax.jit(
        lambda s, number: actor.step(policy.behavior, s, jax.random.fold_in(key, number))
    )
    returns, lengths = np.full((2, episodes), np.nan)
    for number in range(4):
        state, taken = step(state, number)
        first = np.asarray(taken.done) & np.isnan(returns)
        returns[first] = np.asarray(taken.episode_return)[first]
        lengths[first] = np.asarray(taken.episode_length)[first]
    np.testing.assert_array_equal(played["returns"], returns)
    np.testing.assert_array_equal(played["lengths"], lengths)
    assert len(set(lengths)) > 1


class Poisoned(Spans):
    """A reward that is not a number, now and then; the actions are another environment's."""

    def __init__(self, actions):
        super().__init__()
        self.actions = actions

    def action_space(self, params):
        return self.actions

    def step_env(self, key, state, action, params):
        seen, state, reward, ended, info = super().step_env(key, state, action, params)
        return seen, state, jnp.where(ended & (state.length == 7), jnp.nan, reward), ended, info


@pytest.mark.slow
@pytest.mark.parametrize("case", FIRST[-1:], ids=by_name)
def test_a_number_that_is_none_stops_training_and_keeps_the_last_good_checkpoint(case, tmp_path):
    env, params = case.agent.environment
    env = Poisoned(env.action_space(params))
    agent = dataclasses.replace(case.agent, env=env, env_options={})
    with pytest.raises(agents.TrainingDiverged) as diverged:
        agents.train(
            agent,
            steps=100_000,
            out=tmp_path,
            evaluate_every=0,
            checkpoint_every=1,
            progress=False,
        )
    kept = int(re.findall(r"checkpoint, of iteration (\d+)", str(diverged.value))[0])
    state = load_run(tmp_path, env=env)[1]
    assert list(state.iteration) == [kept]
    for leaf in jax.tree.leaves(eqx.filter(state.learner, eqx.is_inexact_array)):
        assert np.isfinite(leaf).all()


@of_each_class
def test_a_reward_that_is_no_number_is_in_a_metric_as_soon_as_in_the_learner(trained, alone):
    """Where training stops, see above: the checkpoint of before is then good."""
    state = poisoned(alone.programs.init())
    for _ in range(100):
        state, report = alone.programs.step(state)
        if not all(np.isfinite(value).all() for value in report.metrics.values()):
            return
        for leaf in jax.tree.leaves(eqx.filter(state.learner, eqx.is_inexact_array)):
            assert np.isfinite(leaf).all()
    raise AssertionError("no metric tells")


@pytest.mark.slow
@pytest.mark.parametrize(
    "trained",
    [case for case in CASES if case.name in ("documented", "ppo rtrl", "sac tape")],
    ids=by_name,
    indirect=True,
)
def test_the_command_line_evaluates_plays_and_compares(trained, tmp_path, capsys):
    assert main(["evaluate", str(trained.folder), "--episodes", "4"]) == 0
    rows = [re.findall(r"-?\d+\.?\d*", r) for r in capsys.readouterr().out.splitlines() if "│" in r]
    assert [row[0] for row in rows[:SEEDS]] == ["0", "1"]
    for row in rows[:SEEDS]:
        mean, error, low, high, length = map(float, row[1:])
        assert -0.4 <= low <= mean <= high <= 4 and error >= 0 and 1 <= length <= 4
    film = tmp_path / "play.gif"
    words = ["play", str(trained.folder), "--agent", "1", "--out", str(film)]
    assert main(words) == 0
    _, _, length = re.findall(r"│ (1) +│ (-?\d\.\d+) +│ (\d) +│", capsys.readouterr().out)[0]
    with Image.open(film) as frames:
        assert frames.n_frames == int(length) + 1, "the last state is missing"
    picture = tmp_path / "figure.png"
    runs = [str(trained.folder), f"{trained.folder}/../demo", "--labels", "one", "two"]
    assert main(["compare", *runs, "--out", str(picture)]) == 0
    steps = ITERATIONS * trained.case.agent.steps_per_iteration
    text = capsys.readouterr().out
    assert "final evaluation_return" in text and re.search(rf"^one +2 +{steps} ", text, re.M)
    assert picture.read_bytes().startswith(b"\x89PNG")


def learned(agent, steps, enough=np.inf):
    """Mean return of the greedy policy over two seeds, after so many steps of each or when enough.

    Looked at eight times.
    """
    keys = jax.random.split(jax.random.key(0), SEEDS)
    state = jax.jit(jax.vmap(lambda key: agent.init(key=key)))(keys)
    iterate = jax.jit(jax.vmap(agent.iterate))
    play = jax.jit(
        jax.vmap(lambda x, key: evaluate(agent.actor, agent.policy(x), episodes=256, key=key))
    )
    for _ in range(8):
        for _ in range(-(-steps // (8 * agent.steps_per_iteration))):
            state, _ = iterate(state)
        mean = float(jnp.mean(play(state.learner, keys)["returns"]))
        if mean > enough:
            break
    return mean


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case.solver], ids=by_name)
def test_it_learns_what_no_policy_without_memory_can(case, float32):
    enough = BEST - 0.3
    assert learned(case.solver, case.steps, enough) > enough


@pytest.mark.slow
def test_without_a_memory_it_does_not(float32):
    """Which no agent can: the task is what the test above takes it for."""
    (case,) = (case for case in CASES if case.name == "ppo rtrl")
    memoryless = dataclasses.replace(case.solver, memory=zoo.spec("mlp", hidden=16))
    assert learned(memoryless, case.steps) < MEMORYLESS + 0.4
