"""The running loop: bitwise resume, divergence, interruption and the output folder's rules."""

import json
import os
import signal
import threading
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents import checkpoint as checkpoints
from agents.checkpoint import RunFolderError
from agents.logs import ScalarLog
from agents.plots import learning_curve
from agents.training import (
    TrainingDiverged,
    TrainingInterrupted,
    evaluation_keys,
    load_run,
    train,
)
from tests.cases import slow_but


class WalkState(eqx.Module):
    """A random walk; `same` is the same array as `position` at first."""

    position: jax.Array
    same: jax.Array
    count: jax.Array
    unset: jax.Array
    key: jax.Array


def noise(key, count, size):
    """Numbers in [-1, 1] that differ by key and count; `jax.random` compiles for seconds."""
    phase = (jax.random.key_data(key) % 9973).sum().astype(float)
    return jnp.sin(phase * (1.0 + count) + 7.0 * jnp.arange(size))


@dataclass(frozen=True)
class Walk:
    """The smallest algorithm: `position` walks at random."""

    scale: float = 1.0
    bad_loss_at: int = 0
    bad_state_at: int = 0
    steps_per_iteration: int = 100

    def init(self, *, key):
        position = jnp.zeros(3)
        return WalkState(position, position, jnp.asarray(0), jnp.asarray(-jnp.inf), key)

    def iterate(self, state):
        count = state.count + 1
        position = state.position + self.scale * noise(state.key, count, 3)
        # Only one seed goes wrong: that of the larger key.
        number = jax.random.key_data(state.key).sum()
        unlucky = number == jax.lax.pmax(number, "seed")
        loss = jnp.where(unlucky & (count == self.bad_loss_at), jnp.nan, position.sum())
        position = jnp.where(unlucky & (count == self.bad_state_at), jnp.inf, position)
        state = WalkState(position, state.same, count, state.unset, state.key)
        finished = jnp.where(count % 3 == 0, position[0], jnp.nan)
        return state, {"loss": loss, "return": finished, "episodes": count % 3}

    def evaluate(self, state, *, key, episodes):
        returns = state.position.mean() + noise(key, 1, episodes)
        return {"evaluation_return": returns.mean(), "evaluation_length": returns.size * 1.0}

    def to_dict(self):
        return asdict(self)


def run(algorithm, out, steps=600, **options):
    defaults = {"seeds": 2, "evaluate_every": 2, "evaluation_episodes": 3, "progress": False}
    return train(algorithm, steps=steps, out=out, **(defaults | options))


pytestmark = pytest.mark.usefixtures("shared_programs")


@pytest.fixture(autouse=True)
def quick_picture(monkeypatch):
    """Drawing takes longer than the walk; one test below draws."""
    monkeypatch.setattr("agents.training.learning_curve", lambda runs, path: path.touch())


@pytest.fixture
def interrupt(monkeypatch):
    """Sends a signal to this process when the rows of an iteration are written."""

    def arrange(iteration, number=signal.SIGINT):
        write = ScalarLog.write

        def write_and_interrupt(self, now, *rest):
            if now == iteration:
                os.kill(os.getpid(), number)
            return write(self, now, *rest)

        monkeypatch.setattr(ScalarLog, "write", write_and_interrupt)

    return arrange


def same_state(one, two):
    one, two = (jax.tree.map(as_integers, tree) for tree in (one, two))
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert a.dtype == b.dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def as_integers(leaf):
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


def test_a_run_leaves_its_files_and_final_metrics(tmp_path, monkeypatch):
    monkeypatch.setattr("agents.training.learning_curve", learning_curve)
    result = run(Walk(), tmp_path / "a", steps=550)
    assert result.iterations == 6
    assert result.env_steps == 600
    assert {entry.name for entry in (tmp_path / "a").iterdir()} == {
        "checkpoint.eqx",
        "config.json",
        "learning_curve.png",
        "scalars.csv",
        "tensorboard",
    }
    assert (tmp_path / "a" / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    config = json.loads((tmp_path / "a" / "config.json").read_text())
    assert config["algorithm"] == Walk().to_dict()
    assert config["steps"] == 600
    events = sorted(path.name for path in (tmp_path / "a" / "tensorboard").iterdir())
    assert events == ["mean", "seed_0", "seed_1"]
    np.testing.assert_allclose(result.metrics["loss"], result.state.position.sum(axis=1))
    np.testing.assert_allclose(result.metrics["return"], result.state.position[:, 0])
    assert result.compile_seconds > 0
    assert result.steps_per_second > 0


@pytest.mark.slow
def test_seeds_differ_and_do_not_depend_on_their_number(tmp_path):
    one = run(Walk(), tmp_path / "one", seeds=1).state.position
    three = run(Walk(), tmp_path / "three", seeds=3).state.position
    assert len(np.unique(three)) == three.size
    np.testing.assert_array_equal(one[0], three[0])
    other = run(Walk(), tmp_path / "other", seeds=1, seed=1).state.position
    assert not np.any(one == other)


@pytest.mark.parametrize("at", slow_but([4], [1, 3, 4]))
def test_an_interrupted_and_resumed_run_is_bitwise_the_run_that_went_through(
    tmp_path, interrupt, shared_programs, at
):
    whole = run(Walk(), tmp_path / "whole")
    interrupt(at)
    with pytest.raises(
        TrainingInterrupted, match=r"stopped after .* Go on with resume=True"
    ) as stopped:
        run(Walk(), tmp_path / "parts")
    assert stopped.value.number == signal.SIGINT
    reached = checkpoints.read_header(tmp_path / "parts" / "checkpoint.eqx").progress
    assert at <= reached["iteration"] < 6
    if at == 3:
        shared_programs.clear()  # as in another process
    rest = run(Walk(), tmp_path / "parts", resume=True)
    same_state(whole.state, rest.state)
    names = ("scalars.csv", "config.json")
    for name in names:
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_rows_after_the_checkpoint_are_dropped_on_resuming(tmp_path, monkeypatch):
    whole = run(Walk(), tmp_path / "whole", checkpoint_every=2)
    write = ScalarLog.write

    def write_and_crash(self, iteration, *rest):
        write(self, iteration, *rest)
        if iteration == 5:
            raise OSError("crash")

    monkeypatch.setattr(ScalarLog, "write", write_and_crash)
    with pytest.raises(OSError, match="crash"):
        run(Walk(), tmp_path / "parts", checkpoint_every=2)
    monkeypatch.undo()
    with (tmp_path / "parts" / "scalars.csv").open("a") as file:
        file.write("6,60")  # torn
    rest = run(Walk(), tmp_path / "parts", checkpoint_every=2, resume=True)
    same_state(whole.state, rest.state)
    scalars = [(tmp_path / name / "scalars.csv").read_bytes() for name in ("whole", "parts")]
    assert scalars[0] == scalars[1]


@pytest.mark.slow
def test_more_steps_go_on_from_where_the_run_ended(tmp_path):
    # 3 iterations would end with an evaluation that 6 iterations do not have: 4 has it too.
    whole = run(Walk(), tmp_path / "whole", steps=600)
    run(Walk(), tmp_path / "parts", steps=400)
    longer = run(Walk(), tmp_path / "parts", steps=600, resume=True)
    same_state(whole.state, longer.state)
    scalars = [(tmp_path / name / "scalars.csv").read_bytes() for name in ("whole", "parts")]
    assert scalars[0] == scalars[1]


@pytest.mark.slow
def test_the_default_rhythm_of_evaluation_stays_when_steps_grow(tmp_path):
    run(Walk(), tmp_path / "a", steps=4000, evaluate_every=None)
    result = run(Walk(), tmp_path / "a", steps=6000, evaluate_every=None, resume=True)
    assert result.iterations == 60
    config = json.loads((tmp_path / "a" / "config.json").read_text())
    assert (config["evaluate_every"], config["steps"]) == (2, 6000)


@pytest.mark.slow
def test_resuming_a_complete_run_changes_nothing(tmp_path):
    first = run(Walk(), tmp_path / "a")
    before = (tmp_path / "a" / "scalars.csv").read_bytes()
    again = run(Walk(), tmp_path / "a", resume=True)
    same_state(first.state, again.state)
    assert (tmp_path / "a" / "scalars.csv").read_bytes() == before
    np.testing.assert_array_equal(first.metrics["loss"], again.metrics["loss"])


def test_fewer_steps_than_done_are_refused(tmp_path):
    run(Walk(), tmp_path / "a")
    with pytest.raises(ValueError, match=r"`steps` \(=300\) is less than .* has done: 600"):
        run(Walk(), tmp_path / "a", steps=300, resume=True)


@pytest.mark.slow
def test_evaluation_happens_in_its_rhythm_and_at_the_end(tmp_path):
    run(Walk(), tmp_path / "a", steps=500, seeds=1)
    lines = (tmp_path / "a" / "scalars.csv").read_text().splitlines()
    names = lines[0].split(",")
    assert names[:3] == ["iteration", "env_steps", "seed"]
    cells = [line.split(",")[names.index("evaluation_return")] for line in lines[1:]]
    assert [bool(cell) for cell in cells] == [False, True, False, True, True]
    assert len(set(cells)) == 4  # new episodes each time


@pytest.mark.slow
def test_evaluation_can_be_left_out(tmp_path):
    result = run(Walk(), tmp_path / "a", evaluate_every=0)
    assert set(result.metrics) == {"loss", "return", "episodes"}


def test_divergence_names_iteration_step_seed_and_metric_and_keeps_the_checkpoint(tmp_path):
    bad = Walk(bad_loss_at=4)
    with pytest.raises(TrainingDiverged) as diverged:
        run(bad, tmp_path / "a", checkpoint_every=3)
    path = tmp_path / "a" / "checkpoint.eqx"
    state = load_run(tmp_path / "a", lambda config: Walk(**config))[1]
    assert np.isfinite(state.position).all()
    assert list(state.count) == [3, 3]
    message = str(diverged.value)
    assert "iteration 4 (environment step 400), seed " in message
    assert ": `loss` is nan. The last good checkpoint, of iteration 3, is kept in " in message
    assert str(path) in message
    last = (tmp_path / "a" / "scalars.csv").read_text().splitlines()[-2:]
    names = (tmp_path / "a" / "scalars.csv").read_text().splitlines()[0].split(",")
    unlucky = [row.split(",")[2] for row in last if row.split(",")[names.index("loss")] == "nan"]
    assert f"seed {unlucky[0]}:" in message
    assert len(unlucky) == 1


def test_a_state_that_is_not_finite_never_replaces_a_checkpoint(tmp_path):
    bad = Walk(bad_state_at=6)
    with pytest.raises(TrainingDiverged, match=r"array `\.position` of the state is not finite"):
        run(bad, tmp_path / "a", checkpoint_every=4, evaluate_every=0)
    state = load_run(tmp_path / "a", lambda config: Walk(**config))[1]
    assert list(state.count) == [4, 4]
    assert np.isfinite(state.position).all()


def test_a_diverged_first_iteration_leaves_the_initial_checkpoint(tmp_path):
    with pytest.raises(TrainingDiverged, match="checkpoint, of iteration 0,"):
        run(Walk(bad_loss_at=1), tmp_path / "a")


@pytest.mark.slow
def test_terminate_is_honored_like_interrupt(tmp_path, interrupt):
    interrupt(2, signal.SIGTERM)
    with pytest.raises(TrainingInterrupted) as stopped:
        run(Walk(), tmp_path / "a")
    assert stopped.value.number == signal.SIGTERM
    assert (tmp_path / "a" / "learning_curve.png").exists()


def test_signal_handlers_are_put_back(tmp_path):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    run(Walk(), tmp_path / "a", steps=100)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.slow
def test_it_runs_outside_the_main_thread(tmp_path):
    results = []
    thread = threading.Thread(target=lambda: results.append(run(Walk(), tmp_path / "a")))
    thread.start()
    thread.join()
    assert results[0].iterations == 6


@pytest.mark.slow
def test_the_step_is_compiled_once(tmp_path):
    traces = []

    @dataclass(frozen=True)
    class Counted(Walk):
        def iterate(self, state):
            traces.append(1)
            return super().iterate(state)

    run(Counted(), tmp_path / "a")
    assert len(traces) == 1


@pytest.mark.slow
def test_the_initial_state_has_no_weak_types(tmp_path):
    class Weak(Walk):
        def init(self, *, key):
            return eqx.tree_at(lambda s: s.unset, super().init(key=key), 2.0)

    state = run(Weak(), tmp_path / "a", steps=100).state
    assert not any(leaf.weak_type for leaf in (state.position, state.count, state.unset))


def test_an_existing_run_needs_resume(tmp_path):
    run(Walk(), tmp_path / "a")
    before = snapshot(tmp_path)
    with pytest.raises(RunFolderError, match=r"holds a run already; pass --resume to go on, or an"):
        run(Walk(), tmp_path / "a")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_of_another_configuration_is_refused_with_what_differs(tmp_path, resume):
    run(Walk(), tmp_path / "a")
    before = snapshot(tmp_path)
    with pytest.raises(RunFolderError, match="another configuration") as refused:
        run(replace(Walk(), scale=2.0), tmp_path / "a", seeds=3, resume=resume)
    assert "algorithm.scale: 1.0 there, 2.0 asked for" in str(refused.value)
    assert "seeds: 2 there, 3 asked for" in str(refused.value)
    assert "bad_loss_at" not in str(refused.value)
    assert snapshot(tmp_path) == before


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunFolderError, match=r"holds other files \(thesis\.tex\)"):
        run(Walk(), tmp_path)
    assert snapshot(tmp_path) == {"thesis.tex": b"years of work"}
    with pytest.raises(RunFolderError, match="is a file, not a folder"):
        run(Walk(), tmp_path / "thesis.tex")


def test_the_rest_of_a_crashed_first_checkpoint_does_not_block(tmp_path):
    (tmp_path / "checkpoint.eqx.tmp").write_bytes(b"torn")
    assert run(Walk(), tmp_path, steps=100).iterations == 1


@pytest.mark.parametrize("make", [False, True])
def test_nothing_to_resume(tmp_path, make):
    if make:
        (tmp_path / "a").mkdir()
    with pytest.raises(RunFolderError, match="there is nothing to resume in"):
        run(Walk(), tmp_path / "a", resume=True)
    assert (tmp_path / "a").exists() == make


def test_a_torn_checkpoint_is_not_resumed(tmp_path):
    run(Walk(), tmp_path / "a")
    path = tmp_path / "a" / "checkpoint.eqx"
    path.write_bytes(path.read_bytes()[:-20])
    before = snapshot(tmp_path)
    with pytest.raises(checkpoints.CheckpointError, match="is truncated"):
        run(Walk(), tmp_path / "a", resume=True)
    assert snapshot(tmp_path) == before


def test_missing_rows_are_noticed_on_resuming(tmp_path):
    run(Walk(), tmp_path / "a")
    (tmp_path / "a" / "scalars.csv").unlink()
    with pytest.raises(ValueError, match=r"lacks rows .*: 0 rows up to iteration 6, .* be 12"):
        run(Walk(), tmp_path / "a", steps=700, resume=True)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("steps", 0, "at least 1"),
        ("steps", True, "at least 1"),
        ("seeds", 0, "at least 1"),
        ("evaluation_episodes", 0, "at least 1"),
        ("checkpoint_every", 0, "at least 1"),
        ("evaluate_every", -1, "at least 0"),
    ],
)
def test_counts_out_of_range_are_named(tmp_path, name, value, rule):
    with pytest.raises(
        ValueError, match=rf"`{name}` \(={value}\) must be a whole number of {rule}"
    ):
        run(Walk(), tmp_path / "a", **{name: value})
    assert not (tmp_path / "a").exists()


def test_load_run_gives_back_the_algorithm_and_its_state(tmp_path):
    result = run(Walk(scale=0.5), tmp_path / "a")
    algorithm, state, config = load_run(tmp_path / "a", lambda config: Walk(**config))
    assert algorithm == Walk(scale=0.5)
    assert config["seeds"] == 2
    same_state(state, result.state)


@pytest.mark.slow
def test_evaluation_keys_are_apart_from_all_others():
    seeds = jax.random.split(jax.random.key(0), 50)
    keys = [evaluation_keys(0, iteration, 3) for iteration in range(20)]
    numbers = np.concatenate([jax.random.key_data(key) for key in (seeds, *keys)])
    assert len(np.unique(numbers, axis=0)) == 50 + 60


def snapshot(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
