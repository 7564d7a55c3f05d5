"""The running loop: its folder's rules, rhythm, divergence, signals; with the smallest agent."""

import dataclasses
import gc
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog

import agents
from agents.acting import AbstractBehavior, Decision, evaluate
from agents.agent import AbstractAgent, AgentState, Report
from agents.cli import main
from agents.envs import from_gymnasium
from agents.running import (
    CheckpointError,
    RunFolderError,
    TrainingDiverged,
    TrainingInterrupted,
    saving,
)
from agents.running.checkpoint import read_header
from agents.running.events import TensorBoardLog
from agents.running.load import load_run
from agents.running.loop import Loop
from agents.running.programs import Programs, check_report, evaluation_keys
from agents.running.scalars import ScalarLog, ScalarsError, read_scalars
from tests.agents.damage import rewritten
from tests.agents.tasks import closed_pipe
from tests.agents.trackers import install_tracker

pytestmark = pytest.mark.usefixtures("traced_once")


class Anything(AbstractBehavior):
    """Takes the action that the position tells."""

    position: jax.Array

    def init_state(self):
        return ()

    def __call__(self, state, inputs, key):
        action = (100 * jnp.abs(self.position.sum())).astype(jnp.int32) % 4
        return state, Decision(jnp.broadcast_to(action, inputs.begin.shape))


@dataclass(frozen=True, kw_only=True)
class Walk(AbstractAgent):
    """`position` walks at random; one seed of several can go wrong."""

    env: str = "t_maze"
    scale: float = 1.0
    bad_loss_at: int = 0
    bad_state_at: int = 0

    @property
    def steps_per_iteration(self):
        return 100

    def init(self, *, key):
        position = jnp.zeros(3)
        # The same array twice, and one that is not finite on purpose.
        learner = {"position": position, "same": position, "unset": jnp.asarray(-jnp.inf)}
        return AgentState(learner, (), None, jnp.asarray(0, jnp.int32), key)

    def iterate(self, state):
        key, draw = jax.random.split(state.key)
        count, learner = state.iteration + 1, state.learner
        position = learner["position"] + self.scale * jax.random.normal(draw, (3,))
        unlucky = position[0] > 0
        loss = jnp.where(unlucky & (count == self.bad_loss_at), jnp.nan, position.sum())
        position = jnp.where(unlucky & (count == self.bad_state_at), jnp.inf, position)
        finished = jnp.where(count % 3 == 0, position[0], jnp.nan)
        never = {"never": jnp.asarray(-jnp.inf)}  # on purpose: a diagnostic
        report = Report({"loss": loss}, never, {"return": finished, "episodes": count % 3})
        learner = learner | {"position": position}
        return AgentState(learner, (), None, count, key), report

    def policy(self, learner):
        return agents.Policy(Anything(learner["position"]), *self.spaces)


agents.register("walk_of_the_tests", Walk)


def train(agent, out, steps=600, **options):
    defaults = {"seeds": 2, "evaluate_every": 2, "evaluation_episodes": 3, "progress": False}
    return agents.train(agent, steps=steps, out=out, **(defaults | options))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that went through; tests only read its folder."""
    return train(Walk(), tmp_path_factory.mktemp("runs") / "whole")


@pytest.fixture
def copy(whole, tmp_path):
    """A copy of its folder, for tests that change it."""
    return Path(shutil.copytree(whole.folder, tmp_path / "copy"))


def snapshot(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def column(folder, name):
    lines = [line.split(",") for line in (folder / "scalars.csv").read_text().splitlines()]
    return [line[lines[0].index(name)] for line in lines[1:]]


def test_a_run_leaves_its_files_and_final_metrics(whole):
    assert (whole.iterations, whole.env_steps) == (6, 600)
    assert {entry.name for entry in whole.folder.iterdir()} - {".lock"} == {
        "checkpoint.eqx",
        "config.json",
        "learning_curve.png",
        "scalars.csv",
        "tensorboard",
    }
    assert (whole.folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    config = json.loads((whole.folder / "config.json").read_text())
    assert config["algorithm"] == "walk_of_the_tests"
    assert config["agent"] == dataclasses.asdict(Walk())
    assert config["steps"] == 600
    events = sorted(path.name for path in (whole.folder / "tensorboard").iterdir())
    assert events == ["mean", "seed_0", "seed_1"]
    position = whole.state.learner["position"]
    np.testing.assert_allclose(whole.metrics["loss"], position.sum(axis=1))
    np.testing.assert_allclose(whole.metrics["return"], position[:, 0])
    assert "never" not in whole.metrics and set(column(whole.folder, "never")) == {"-inf"}
    assert whole.compile_seconds > 0 and whole.steps_per_second > 0
    agent, state, config = load_run(whole.folder)
    assert agent == Walk() and config["seeds"] == 2
    np.testing.assert_array_equal(state.learner["position"], position)


@pytest.mark.slow
def test_seeds_differ_and_do_not_depend_on_their_number_nor_on_evaluation(whole, tmp_path):
    position = whole.state.learner["position"]
    assert len(np.unique(position)) == position.size
    three = train(Walk(), tmp_path / "three", seeds=3, evaluate_every=0)
    np.testing.assert_array_equal(three.state.learner["position"][:2], position)
    assert set(three.metrics) == {"loss", "return", "episodes"}
    other = train(Walk(), tmp_path / "other", seed=1, evaluate_every=0)
    assert not np.any(other.state.learner["position"] == position)


def test_evaluation_keys_are_apart_from_all_others():
    """Of training: the seeds' keys, and all that is drawn from them."""
    seeds = jax.random.split(jax.random.key(0), 50)
    drawn = jax.vmap(lambda key: jax.random.split(key, 8))(seeds).ravel()
    keys = [evaluation_keys(0, iteration, 3) for iteration in range(20)]
    numbers = np.concatenate([jax.random.key_data(key) for key in (seeds, drawn, *keys)])
    assert len(np.unique(numbers, axis=0)) == 50 + 400 + 60


@pytest.mark.slow
def test_evaluation_happens_in_its_rhythm_and_at_the_end(tmp_path):
    train(Walk(), tmp_path / "a", steps=500, seeds=1)
    cells = column(tmp_path / "a", "evaluation_return")
    assert [bool(cell) for cell in cells] == [False, True, False, True, True]


def test_rows_after_the_checkpoint_are_dropped_on_resuming(
    whole, tmp_path, same_state, traced_once
):
    """What comes after a crash that is no request to stop, more steps than at first included."""
    folder = tmp_path / "parts"
    train(Walk(), folder, steps=400, checkpoint_every=4)
    with (folder / "scalars.csv").open("a") as file:
        file.write("5,500,0,1.0,,,,\n5,500,1,1.0,,,,\n6,60")  # torn
    traced_once.cache_clear()  # as in a new process
    rest = train(Walk(), folder, resume=True)
    same_state(whole.state, rest.state)
    for name in ("scalars.csv", "config.json"):
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes()


@pytest.mark.slow
def test_what_was_told_before_the_first_checkpoint_is_void_on_resuming(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(loop):
        written = loop.pending is not None
        flush(loop)
        if written:
            raise Killed

    flush = Loop._flush
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Loop, "_flush", killed)
        train(Walk(), tmp_path, checkpoint_every=6)
    (first,) = (tmp_path / "tensorboard" / "seed_0").iterdir()
    train(Walk(), tmp_path, resume=True)
    (second,) = set((tmp_path / "tensorboard" / "seed_0").iterdir()) - {first}
    assert void_from(second) == [1]


def void_from(path):
    """From which environment steps on a file of TensorBoard's voids what those before it hold."""
    # A record is the length of its event, a checksum, the event, and another one.
    content, starts = path.read_bytes(), []
    while content:
        end = 12 + int.from_bytes(content[:8], "little")
        event, content = Event.FromString(content[12:end]), content[end + 4 :]
        starts += [event.step] * (event.session_log.status == SessionLog.START)
    return starts


@pytest.mark.slow
def test_the_row_of_an_end_that_is_none_any_more_is_void_in_all_records(tmp_path):
    options = {"log_every": 2, "evaluate_every": 0}
    train(Walk(), tmp_path, steps=500, **options)
    assert list(read_scalars(tmp_path).iteration) == [2, 4, 5]
    before = set((tmp_path / "tensorboard" / "mean").iterdir())
    train(Walk(), tmp_path, steps=800, resume=True, **options)
    assert list(read_scalars(tmp_path).iteration) == [2, 4, 6, 8]
    (new,) = set((tmp_path / "tensorboard" / "mean").iterdir()) - before
    assert void_from(new) == [401]


@pytest.mark.slow
def test_the_default_rhythm_of_evaluation_stays_when_steps_grow(tmp_path):
    train(Walk(), tmp_path / "a", steps=4000, evaluate_every=None)
    result = train(Walk(), tmp_path / "a", steps=6000, evaluate_every=None, resume=True)
    assert result.iterations == 60
    config = json.loads((tmp_path / "a" / "config.json").read_text())
    assert (config["evaluate_every"], config["steps"]) == (2, 6000)


def test_resuming_a_complete_run_changes_nothing(whole, copy, same_state):
    again = train(Walk(), copy, resume=True)
    same_state(whole.state, again.state)
    assert (copy / "scalars.csv").read_bytes() == (whole.folder / "scalars.csv").read_bytes()
    np.testing.assert_array_equal(whole.metrics["loss"], again.metrics["loss"])


def test_divergence_names_iteration_step_seed_and_metric_and_keeps_the_checkpoint(tmp_path):
    folder = tmp_path / "a"
    with pytest.raises(TrainingDiverged) as diverged:
        train(Walk(bad_loss_at=4), folder, checkpoint_every=3, seeds=6, evaluate_every=0)
    state = load_run(folder)[1]
    assert list(state.iteration) == [3] * 6 and np.isfinite(state.learner["position"]).all()
    message = str(diverged.value)
    unlucky = column(folder, "loss")[-6:].index("nan")
    assert f"iteration 4 (environment step 400), seed {unlucky}: `loss` is nan." in message
    assert f"checkpoint, of iteration 3, is kept in {folder / 'checkpoint.eqx'}" in message


def test_a_state_that_is_not_finite_never_replaces_a_checkpoint(tmp_path):
    """The parameters overflow in the last update, after the metrics were taken."""
    bad = Walk(bad_state_at=6)
    with pytest.raises(TrainingDiverged, match=r"array `.*position.*` of the state is not finite"):
        train(bad, tmp_path / "a", checkpoint_every=4, seeds=6, evaluate_every=0)
    state = load_run(tmp_path / "a")[1]
    assert list(state.iteration) == [4] * 6 and np.isfinite(state.learner["position"]).all()


@pytest.mark.slow
def test_what_takes_long_is_said_and_so_is_what_is_rounded(tmp_path, capsys):
    train(Walk(), tmp_path / "a", steps=101, evaluate_every=0, progress="lines")
    rounded, compiling, compiled, *lines = capsys.readouterr().out.splitlines()
    assert rounded == "steps: 200 of each seed, 101 rounded up to 2 iterations of 100"
    assert compiling == "compiling Walk on t_maze (2 seeds) …"
    assert re.fullmatch(r"compiled in \d+\.\d s", compiled)
    assert [line[:5] for line in lines] == [" 50 %", "100 %"]
    train(Walk(), tmp_path / "a", steps=200, evaluate_every=0, progress="lines", resume=True)
    assert capsys.readouterr().out.splitlines()[0] == compiling


@pytest.fixture
def hangup():
    """A function that handles SIGHUP, which is ignored where the tests run under nohup."""
    before = signal.getsignal(signal.SIGHUP)
    yield lambda handler: signal.signal(signal.SIGHUP, handler)
    signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_are_honored_like_interrupt(tmp_path, interrupt, number, hangup):
    hangup(signal.SIG_DFL)
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    interrupt(2, number)
    with pytest.raises(TrainingInterrupted, match="Go on with resume=True") as stopped:
        train(Walk(), tmp_path / "a")
    path = tmp_path / "a" / "checkpoint.eqx"
    done = int(re.search(r"after iteration (\d) of 6", stopped.value.where)[1])
    assert stopped.value.where.endswith(
        f"({done}00 of 600 steps of each seed), which {path} holds."
    )
    assert read_header(path).progress == {"iteration": done, "env_steps": 100 * done}
    assert stopped.value.number == number
    assert (tmp_path / "a" / "learning_curve.png").exists()
    after = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert after == before


def test_a_signal_in_the_last_iteration_stops_what_would_come_after(tmp_path, interrupt):
    interrupt(6)
    with pytest.raises(TrainingInterrupted, match="stopped after iteration 6 of 6 "):
        train(Walk(), tmp_path / "a")
    assert read_header(tmp_path / "a" / "checkpoint.eqx").progress["iteration"] == 6
    assert (tmp_path / "a" / "learning_curve.png").exists()
    assert train(Walk(), tmp_path / "a", resume=True).iterations == 6


def test_output_that_nobody_reads_ends_no_training(tmp_path, monkeypatch):
    with closed_pipe() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert train(Walk(), tmp_path / "a", progress="lines").iterations == 6


@pytest.mark.slow
def test_a_hangup_that_is_ignored_stays_so(tmp_path, interrupt):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        interrupt(2, signal.SIGHUP)
        assert train(Walk(), tmp_path / "a").iterations == 6
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
def test_seeds_side_by_side_begin_on_two_cores():
    """Factorizations of a batch made XLA's threads wait for each other, where there are two."""
    code = """
import jax, agents, zoo
from agents.running.programs import init_seeds
ppo = agents.PPO(env="RepeatPreviousEasy", memory=zoo.spec("rtu", hidden=32))
jax.block_until_ready(jax.tree.leaves(jax.jit(init_seeds(ppo, 0, 2))()))
"""
    limited = []
    if shutil.which("taskset"):
        limited = ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))]
    subprocess.run([*limited, sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.slow
def test_it_runs_outside_the_main_thread(tmp_path):
    results = []
    thread = threading.Thread(target=lambda: results.append(train(Walk(), tmp_path / "a")))
    thread.start()
    thread.join()
    assert results[0].iterations == 6


# The folder


@dataclass(frozen=True, kw_only=True)
class Counting(Walk):
    """Has a flag among its numbers."""

    def iterate(self, state):
        state, report = super().iterate(state)
        return state, Report(report.metrics, {"flag": state.iteration > 0}, report.episodes)


agents.register("counting_of_the_tests", Counting)


def test_what_cannot_be_a_column_of_numbers_is_told_before_anything_is_trained(tmp_path):
    with pytest.raises(ValueError, match=r"`Report`: `flag` \(=bool\[\]\) must be one real number"):
        train(Counting(), tmp_path)
    assert not (tmp_path / "checkpoint.eqx").exists()

    def report(learned, **given):
        made = Report({"loss": jnp.zeros(2, jnp.bfloat16)}, given, {"episodes": jnp.arange(2)})
        return eqx.tree_at(lambda r: r.learned, made, learned)

    flag = jax.ShapeDtypeStruct((2,), bool)
    check_report(jax.eval_shape(report, flag))
    for other in (jax.ShapeDtypeStruct((2, 3), bool), jax.ShapeDtypeStruct((2,), np.int32)):
        with pytest.raises(ValueError, match=r"^`Report`: `learned` \(=.*\) must be one flag"):
            check_report(jax.eval_shape(report, other))
    for name, dtype, shape, message in (
        ("x", np.complex64, (2,), r"`x` \(=complex64\[\]\) must be one real number"),
        ("x", np.float32, (2, 3), r"`x` \(=float32\[3\]\) must be one real number"),
        ("seed", np.float32, (2,), r"`seed` must have another name"),
        ("evaluation_return", np.float32, (2,), r"`evaluation_return` must have another name"),
        ("loss", np.float32, (2,), r"`loss` must have another name"),
    ):
        with pytest.raises(ValueError, match=f"^`Report`: {message}"):
            given = {name: jax.ShapeDtypeStruct(shape, dtype)}
            check_report(jax.eval_shape(report, flag, **given))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, r: s, r"returns AgentState, and not \(state, report\)"),
        (lambda s, r: (s, r, r), r"returns 3 values, and not \(state, report\)"),
        (lambda s, r: (s.learner, r), r"returns a state of dict, which must be agents\.AgentState"),
        (lambda s, r: (s, {}), r"returns a report of dict, which must be agents\.Report"),
        (
            lambda s, r: (s, Report({}, {}, None)),
            r"`episodes` \(=None\) must be a dictionary of nu",
        ),
        (
            lambda s, r: (dataclasses.replace(s, iteration=s.iteration * 1.5), r),
            r"a state whose iteration is float\d\d\[\], and was called with int32\[\]",
        ),
        (
            lambda s, r: (dataclasses.replace(s, learner={**s.learner, "same": jnp.ones(2)}), r),
            r"a state whose learner\['same'\] is float\d\d\[2\], and was called with floa",
        ),
        (
            lambda s, r: (dataclasses.replace(s, learner={"position": jnp.zeros(3)}), r),
            r"a state without learner\['same'\], and was called with one that has it",
        ),
        (
            lambda s, r: (dataclasses.replace(s, replay=jnp.zeros(3)), r),
            r"a state with replay, and was called with one that has none",
        ),
        (lambda s, r: (dataclasses.replace(s, actors=[]), r), "a state of PyTreeDef.*of PyTreeDef"),
    ],
)
def test_an_iteration_that_breaks_its_contract_is_told_by_name(change, message, unhooked):
    iterate = lambda self, state: change(*Walk.iterate(self, state))  # noqa: E731
    kind = dataclass(frozen=True, kw_only=True)(type("Broken", (Walk,), {"iterate": iterate}))
    with pytest.raises((TypeError, ValueError), match=message):
        Programs(kind(), seed=0, seeds=2, evaluation_episodes=0)


class Endless(gymnasium.Env):
    """Its episodes have no end."""

    observation_space = action_space = gymnasium.spaces.Discrete(4)


def test_an_evaluation_in_episodes_without_an_end_is_refused_before_anything(tmp_path, capsys):
    """It would not come to its end, deaf to Ctrl-C."""
    walk = Walk(env=from_gymnasium(Endless))  # pyright: ignore[reportArgumentType]
    message = r"`env` \(=gymnasium/Endless\) must have a time limit .*`evaluate_every` \(=0\)"
    with pytest.raises(ValueError, match=message):
        train(walk, tmp_path, evaluate_every=None, progress="lines")
    assert not capsys.readouterr().out and not list(tmp_path.iterdir())
    policy = walk.policy({"position": np.zeros(3)})
    with pytest.raises(ValueError, match=message):
        evaluate(walk.actor, policy, episodes=1, key=jax.random.key(0))


@pytest.mark.slow
def test_training_goes_on_in_episodes_without_an_end(tmp_path):
    walk = Walk(env=from_gymnasium(Endless))  # pyright: ignore[reportArgumentType]
    assert train(walk, tmp_path, steps=100, evaluate_every=0).iterations == 1


def test_a_run_in_the_folder_needs_resume(whole):
    before = snapshot(whole.folder)
    with pytest.raises(RunFolderError, match=r"holds a run already; resume it, or choose another"):
        train(Walk(), whole.folder)
    assert snapshot(whole.folder) == before


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_of_another_configuration_is_refused_with_what_differs(whole, resume):
    before = snapshot(whole.folder)
    with pytest.raises(RunFolderError, match="another configuration") as refused:
        train(replace(Walk(), scale=2.0), whole.folder, seeds=3, resume=resume)
    assert "agent.scale: 1.0 there, 2.0 asked for" in str(refused.value)
    assert "seeds: 2 there, 3 asked for" in str(refused.value)
    assert "bad_loss_at" not in str(refused.value)
    assert snapshot(whole.folder) == before


def with_config(folder, **changed):
    """Write other things into the configuration of a checkpoint; `None` takes something out."""
    path = folder / "checkpoint.eqx"
    header = json.loads(rewritten(path)[0])
    config = header["config"]
    for name, value in changed.items():
        inner, _, key = name.rpartition("__")
        place = config[inner] if inner else config
        place[key] = value
        if value is None:
            del place[key]
    rewritten(path, header)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seeds": None}, r"its configuration has \['algorithm', .* 'seeds', .* is expected"),
        ({"curriculum": 1}, r"its configuration has \[.*'curriculum'\], and"),
        ({"seeds": "2"}, r"`seeds` \(='2'\) must be a whole number"),
        ({"seeds": 0}, r"`seeds` \(=0\) must be a whole number of at least 1"),
        ({"seeds": 3}, "holds another state"),
        ({"seed": -1}, r"`seed` \(=-1\) must be a whole number from 0"),
        ({"agent": []}, r"`agent` \(=\[\]\) must be a dictionary"),
        ({"algorithm": "walk_2"}, r"`algorithm` \(='walk_2'\) must be one of"),
        ({"agent__scale": None}, "`scale`, a setting of Walk, is missing"),
        ({"agent__sprint": True}, r"`sprint` \(=True\) is not a setting of Walk, which has"),
        ({"agent__scale": "fast"}, r"`scale` \(='fast'\) must be a number"),
        ({"agent__env": 3}, r"`env` \(=3\) must be the name of an environment"),
        ({"agent__env": "no_such"}, r"`name` \(='no_such'\) must be the name of an environment"),
        ({"agent__env": "gymnasium/evil:X-v0"}, "environment of a module .* give it as `env`"),
        (
            {"agent__env": "gymnasium/GymV26Environment-v0", "agent__env_options": {"id": "a:X"}},
            "environment of a module .* does not import",
        ),
        (
            {"agent__env": "gymnasium/Ant-v5", "agent__env_options": {"xml_file": "/etc/hosts"}},
            r"names a file \('/etc/hosts'\) in an option of 'gymnasium/Ant-v5', .* does not open",
        ),
    ],
)  # fmt: skip
def test_a_run_of_another_version_or_a_strangers_is_refused(copy, changed, message):
    with_config(copy, **changed)
    before = set(sys.modules)
    with pytest.raises(CheckpointError, match=message) as refused:
        load_run(copy)
    assert str(refused.value).startswith(f"{copy / 'checkpoint.eqx'}")
    assert not {"evil", "a", "shimmy"} & (set(sys.modules) - before)


def test_a_module_that_is_trusted_may_bring_the_environment(copy, tmp_path, monkeypatch, capsys):
    """By `--env` of `play`, or because somebody has imported it, as `--import` does."""
    (tmp_path / "brought.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    name = "gymnasium/brought:CartPole-v1"
    with_config(copy, agent__env=name)
    for trusted in (None, "gymnasium/brought:Acrobot-v1"):
        with pytest.raises(CheckpointError, match=r"import the module first \(--import on the"):
            load_run(copy, trusted=trusted)
    assert "brought" not in sys.modules
    assert main(["play", str(copy), "--env", name, "--agent", "9", "--out", "a.gif"]) == 2
    assert "--agent (=9) must be in 0 … 1" in capsys.readouterr().err  # it was loaded
    assert "brought" in sys.modules
    assert load_run(copy)[0].env == name
    monkeypatch.delitem(sys.modules, "brought")


def test_a_folder_has_one_writer(whole, tmp_path):
    """Another process holds the lock; that it is killed frees it."""
    code = "import sys, time; from filelock import FileLock; "
    code += "lock = FileLock(sys.argv[1]); lock.acquire(); "
    code += "print('held', flush=True); time.sleep(60)"
    folder = tmp_path / "run"
    shutil.copytree(whole.folder, folder)
    words = [sys.executable, "-c", code, str(folder / ".lock")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        before = snapshot(folder)
        with pytest.raises(RunFolderError, match=r"another process writes to `out` \(=.*run"):
            train(Walk(), folder, resume=True)
        assert snapshot(folder) == before
        holder.kill()
    assert train(Walk(), folder, resume=True).iterations == whole.iterations


def test_a_run_of_another_algorithm_is_refused(whole):
    with pytest.raises(RunFolderError, match='algorithm: "walk_of_the_tests" there, "tabular" ask'):
        train(agents.Tabular(env="t_maze"), whole.folder, resume=True)


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunFolderError, match=r"holds other files \(thesis\.tex\)"):
        train(Walk(), tmp_path)
    assert snapshot(tmp_path) == {"thesis.tex": b"years of work"}
    with pytest.raises(RunFolderError, match="is a file, not a folder"):
        train(Walk(), tmp_path / "thesis.tex")
    with pytest.raises(
        RunFolderError, match=r"`out` \(=.*thesis\.tex/run\) cannot be made a folder"
    ):
        train(Walk(), tmp_path / "thesis.tex" / "run")


def test_the_rest_of_a_crashed_first_checkpoint_does_not_block(tmp_path):
    (tmp_path / "checkpoint.eqx.tmp").write_bytes(b"torn")
    assert train(Walk(), tmp_path, steps=100).iterations == 1


@pytest.mark.parametrize("make", [False, True])
def test_nothing_to_resume(tmp_path, make):
    if make:
        (tmp_path / "a").mkdir()
    with pytest.raises(RunFolderError, match="there is nothing to resume in"):
        train(Walk(), tmp_path / "a", resume=True)
    assert (tmp_path / "a").exists() == make


def test_fewer_steps_are_refused_before_anything_is_compiled(copy, capsys):
    with pytest.raises(ValueError, match=r"`steps` \(=300\) is less than .* has done: 600"):
        train(Walk(), copy, steps=300, resume=True, progress="lines")
    assert "compiling" not in capsys.readouterr().out


def test_a_torn_checkpoint_is_not_resumed(copy):
    path = copy / "checkpoint.eqx"
    path.write_bytes(path.read_bytes()[:-20])
    before = snapshot(copy)
    with pytest.raises(CheckpointError, match="is truncated"):
        train(Walk(), copy, resume=True)
    assert snapshot(copy) == before


def test_missing_rows_are_noticed_on_resuming(copy):
    (copy / "scalars.csv").unlink()
    before = (copy / "config.json").read_bytes()
    with pytest.raises(ScalarsError, match=r"lacks rows .*: 0 rows up to iteration 6, .* be 12"):
        train(Walk(), copy, steps=700, resume=True)
    assert (copy / "config.json").read_bytes() == before
    assert read_header(copy / "checkpoint.eqx").progress["iteration"] == 6


@pytest.mark.slow
def test_damaged_rows_stay_blank_if_asked(whole, copy):
    path = copy / "scalars.csv"
    rows = path.read_text().splitlines(keepends=True)
    rows[3], rows[6] = "2,\0,0,9.9\n", ""
    path.write_text("".join(rows))
    with pytest.raises(
        ScalarsError, match=r"scalars\.csv is damaged in line 4: it has 4 cells in 9"
    ):
        train(Walk(), copy, resume=True)
    before = path.read_bytes()
    train(Walk(), copy, resume=True, drop_scalars=True)
    assert (copy / "scalars.damaged-1.csv").read_bytes() == before
    sound = (whole.folder / "scalars.csv").read_text().splitlines()
    sound[3], sound[6] = "2,200,0,,,,,,", "3,300,1,,,,,,"
    assert path.read_text().splitlines() == sound
    train(Walk(), copy, resume=True, drop_scalars=True)  # nothing is wrong any more
    assert not (copy / "scalars.damaged-2.csv").exists()
    with pytest.raises(ValueError, match=r"`drop_scalars` \(=True\) has no meaning without"):
        train(Walk(), copy, drop_scalars=True)


def test_a_full_disk_is_one_line_with_the_path_and_keeps_the_checkpoint(copy):
    """The device is always full, and stands where the next checkpoint is prepared."""
    (copy / "checkpoint.eqx.tmp").symlink_to("/dev/full")
    before = (copy / "checkpoint.eqx").read_bytes()
    threads = threading.active_count()
    message = r"No space left on device; the checkpoint of iteration 6 is kept: '.*checkpoint.eqx'$"
    with pytest.raises(OSError, match=message) as full:
        train(Walk(), copy, steps=1200, checkpoint_every=2, resume=True)
    assert "\n" not in str(full.value) and threading.active_count() == threads
    assert (copy / "checkpoint.eqx").read_bytes() == before
    assert not (copy / "checkpoint.eqx.tmp").exists()
    assert train(Walk(), copy, steps=1200, resume=True).iterations == 12


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scalars.csv", "events"])
def test_a_full_disk_is_told_wherever_it_is_met(copy, name):
    """Files may grow no further than to a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = (copy / "scalars.csv").stat().st_size
    limit = largest + 200 if name == "scalars.csv" else 400
    watched = {"scalars.csv": ScalarLog, "events": TensorBoardLog}[name]
    write = watched.write

    def write_with_limit(self, *rest, **options):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        try:
            return write(self, *rest, **options)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(watched, "write", write_with_limit)
        with pytest.raises(OSError, match=rf"File too large; the .* is kept: '.*{name}.*'$"):
            train(Walk(), copy, steps=3000, checkpoint_every=30, resume=True)
    assert train(Walk(), copy, steps=3000, resume=True).iterations == 30


def test_a_folder_that_is_removed_has_lost_its_checkpoint(copy, monkeypatch):
    save = saving.save

    def remove_and_save(path, *rest, **options):
        shutil.rmtree(copy, ignore_errors=True)
        return save(path, *rest, **options)

    monkeypatch.setattr(saving, "save", remove_and_save)
    message = r"No such file or directory; the checkpoint of iteration 6 is no longer at /.+: '"
    with pytest.raises(OSError, match=message):
        train(Walk(), copy, steps=1200, checkpoint_every=2, resume=True)


@pytest.mark.slow
def test_a_tracker_goes_on_with_a_resumed_run_and_may_fail(copy, monkeypatch):
    sent = install_tracker(monkeypatch, "wandb")
    train(Walk(), copy, steps=800, resume=True, track="wandb", track_project="memories")
    assert [call[0] for call in sent] == ["init", "log", "log", "finish"]
    assert sent[0][1]["config"] == json.loads((copy / "config.json").read_text())
    assert sent[0][1]["project"] == "memories" and sent[0][1]["config"]["steps"] == 800
    losses = [float(x) for x in column(copy, "loss")[-4:]]
    means = [call[1]["loss"] for call in sent[1:3]]
    np.testing.assert_allclose(means, np.reshape(losses, (2, 2)).mean(axis=1))
    assert [call[2] for call in sent[1:3]] == [700, 800] and "steps_per_second" in sent[1][1]
    again = install_tracker(monkeypatch, "wandb", "log")
    with pytest.warns(UserWarning, match="wandb has failed and gets no more of") as told:
        result = train(Walk(), copy, steps=1000, resume=True, track="wandb")
    assert len(told) == 1 and result.iterations == 10
    assert again[0][1]["id"] == sent[0][1]["id"]


def test_too_little_memory_says_what_to_lower(tmp_path, monkeypatch):
    def compile_programs(*_, **options):
        raise jax.errors.JaxRuntimeError(
            "RESOURCE_EXHAUSTED: trying to allocate 51539607552 bytes."
        )

    monkeypatch.setattr("agents.running.train.Programs", compile_programs)
    words = r"^out of memory: 48\.0 GiB were asked for\. Lower `seeds` \(=2\) or `evaluation_epi"
    with pytest.raises(MemoryError, match=words):
        train(Walk(), tmp_path / "a")


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("steps", 0, "at least 1"),
        ("steps", 2**31, "at most 2147483647"),
        ("seed", -1, "a whole number from 0 to 4294967295"),
        ("seed", 2**32, "a whole number from 0 to 4294967295"),
        ("seeds", 0, "at least 1"),
        ("evaluation_episodes", 0, "at least 1"),
        ("checkpoint_every", 0, "at least 1"),
        ("evaluate_every", -1, "at least 0"),
    ],
)
def test_counts_out_of_range_are_named(tmp_path, name, value, rule):
    with pytest.raises(ValueError, match=rf"`{name}` \(={value}\) must be .*{rule}"):
        train(Walk(), tmp_path / "a", **{name: value})
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
def test_rows_are_bounded_and_go_on_in_their_rhythm(tmp_path):
    """Of iterations 1 to 10: every fourth, those evaluated, and the last."""
    options = {"log_every": 4, "evaluate_every": 7}
    whole = train(Walk(), tmp_path / "whole", steps=1000, **options)
    assert column(whole.folder, "iteration") == [n for n in ["4", "7", "8", "10"] for _ in range(2)]
    path = train(Walk(), tmp_path / "parts", steps=600, **options).folder / "scalars.csv"
    # As one that was stopped there, and of which no more is asked: its last row was not due.
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-2]))
    train(Walk(), tmp_path / "parts", steps=600, resume=True, **options)
    assert column(path.parent, "iteration") == ["4", "4"]
    path.write_text(path.read_text().replace("4,400,1,", "4,400,x,"))
    mend = {"resume": True, "drop_scalars": True}
    train(Walk(), tmp_path / "parts", steps=600, **mend, **options)
    assert column(path.parent, "iteration") == ["4", "4"]
    (damaged,) = path.parent.glob("scalars.damaged-*.csv")
    path.write_text(damaged.read_text().replace("4,400,x,", "4,400,1,"))
    parts = train(Walk(), tmp_path / "parts", steps=1000, resume=True, **options)
    assert (parts.folder / "scalars.csv").read_bytes() == (
        whole.folder / "scalars.csv"
    ).read_bytes()
    short = train(Walk(), tmp_path / "short", steps=200)
    assert json.loads((short.folder / "config.json").read_text())["log_every"] == 1


@pytest.mark.slow
def test_memory_does_not_grow_with_iterations(tmp_path, monkeypatch):
    """Neither arrays of devices nor objects of Python are kept of an iteration."""
    arrays, blocks, write = [], [], ScalarLog.write

    def write_and_count(self, now, *rest):
        write(self, now, *rest)
        gc.collect(1)  # the young: to look at what other tests have left takes a second
        arrays.append(len(jax.live_arrays()))
        if len(arrays) in (2, 7):
            gc.collect()  # also what became garbage when it was young no more
            blocks.append(sys.getallocatedblocks())

    monkeypatch.setattr(ScalarLog, "write", write_and_count)
    gc.collect()
    train(Walk(), tmp_path / "run", steps=40_000, evaluate_every=0, log_every=50)
    assert len(arrays) == 8
    assert arrays[5:7] == arrays[3:5] == arrays[1:3]  # by turns, as checkpoints are written
    early, late = blocks
    assert late - early < 250, "less than one for each iteration"
