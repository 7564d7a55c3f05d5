"""Checkpoints in shards: the same guarantees as those in a file."""

import dataclasses
import json
import shutil
import sys

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import agents
from agents.running import checkpoint, load_run, saving, shards
from agents.running.errors import CheckpointError, TrainingInterrupted
from agents.running.loop import Loop
from agents.running.saving import ShardedSaver
from tests.agents.damage import rewritten
from tests.agents.test_devices import PPO

CONFIG = {"env": "RepeatFirst"}


def make(seed=0):
    """Arrays of every kind, split over devices, the same on all, or on one."""
    mesh = Mesh(np.array(jax.devices()[:4]), ("device",))
    split, same = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("device",), ()))
    key = jax.random.key(seed)
    return {
        "weights": jax.device_put(jax.random.normal(key, (8, 3)), split),
        "half": jax.device_put(np.array([1, np.nan, -0.0], jax.numpy.bfloat16), same),
        "phases": jax.device_put(np.array(1 + 2j), same),
        "flags": jax.device_put(np.arange(4) % 2 == 0, split),
        "keys": jax.device_put(jax.random.split(key, 4), split),
        "nothing": jax.numpy.zeros((0, 3)),
        "count": jax.numpy.array(7),
    }


def saved(folder, *seeds):
    """A folder in which a checkpoint was written for each seed."""
    saver = ShardedSaver(folder, 0)
    for number, seed in enumerate(seeds):
        saver.save(make(seed), config=CONFIG, progress={"iteration": number})
    saver.finish()
    saver.close()
    return folder / "checkpoint.eqx"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("shards"), 1, 0).parent


@pytest.fixture
def path(written, tmp_path):
    """A checkpoint that a test may damage."""
    return shutil.copytree(written, tmp_path / "copy") / "checkpoint.eqx"


def test_what_is_written_anew_meanwhile_is_read_again(path, tmp_path, monkeypatch, same_state):
    """As of a run in training, which removes the arrays before once the next are there."""
    later = saved(tmp_path / "later", 5, 6, 7)
    read, times = shards.read, []

    def removed_at_first(*arguments):
        times.append(1)
        if len(times) == 1:
            shutil.rmtree(path.parent)
            shutil.copytree(later.parent, path.parent)
        return read(*arguments)

    monkeypatch.setattr(shards, "read", removed_at_first)
    state, progress = checkpoint.load(path, make(), config=CONFIG)
    same_state(state, make(7))
    assert progress == {"iteration": 2} and len(times) == 2
    shutil.rmtree(path.parent / "shards")
    with pytest.raises(CheckpointError, match=r"is damaged: .* missing"):
        checkpoint.load(path, make(), config=CONFIG)
    assert len(times) == 3  # it stays as it is: nothing more to wait for


@pytest.mark.slow
def test_it_comes_back_bitwise_where_it_was_or_elsewhere(written, same_state):
    state, path = make(), written / "checkpoint.eqx"
    where = jax.tree.map(lambda x: x.sharding, state)
    like = jax.eval_shape(lambda: state)
    for places in (where, None):
        back, progress = checkpoint.load(path, like, config=CONFIG, where=places)
        same_state(state, back)
        assert progress == {"iteration": 1}
    back = checkpoint.load(path, like, config=CONFIG, where=where)[0]
    assert back["weights"].sharding == where["weights"]
    assert back["keys"].sharding == where["keys"]


def test_one_folder_is_kept_and_what_a_killed_process_left_is_removed(path):
    assert [entry.name for entry in (path.parent / "shards").iterdir()] == ["1"]
    (path.parent / "shards" / "2.orbax-checkpoint-tmp").mkdir()
    ShardedSaver(path.parent, 1).close()
    assert [entry.name for entry in (path.parent / "shards").iterdir()] == ["1"]


def test_a_changed_byte_or_a_missing_file_is_refused(path):
    like = jax.eval_shape(make)
    files = [file for file in (path.parent / "shards").rglob("*") if file.is_file()]
    assert len(files) > 5
    for file in files:
        content = file.read_bytes()
        for damaged in (content[:-1] + bytes([content[-1] ^ 1]), content[:-1]):
            file.write_bytes(damaged)
            with pytest.raises(CheckpointError, match=r"1 is damaged: .* not match its checksum"):
                checkpoint.load(path, like, config=CONFIG)
        file.unlink()
        with pytest.raises(CheckpointError, match=rf"is damaged: .*{file.name} is missing\.$"):
            checkpoint.load(path, like, config=CONFIG)
        file.write_bytes(content)
    checkpoint.load(path, like, config=CONFIG)


@pytest.mark.parametrize(
    "described",
    [
        b"",
        b"[]",
        b"{",
        b'{"folder": "1"}',
        b'{"folder": 1, "files": {}}',
        b'{"folder": "../1", "files": {}}',
        b'{"folder": "..", "files": {}}',
        b'{"folder": "1", "files": {"a": [1]}}',
    ],
)
def test_a_description_that_is_not_ours_is_refused(path, described):
    rewritten(path, arrays=shards._MARK + described)
    with pytest.raises(CheckpointError, match="is damaged: it does not say where its arrays are"):
        checkpoint.load(path, jax.eval_shape(make), config=CONFIG)


def test_what_orbax_does_not_read_is_refused(path):
    folder = path.parent / "shards" / "1"
    shutil.rmtree(folder)
    folder.mkdir()
    rewritten(path, arrays=shards._MARK + json.dumps({"folder": "1", "files": {}}).encode())
    with pytest.raises(CheckpointError, match="1 is not what orbax reads here: "):
        checkpoint.load(path, jax.eval_shape(make), config=CONFIG)


def test_configuration_and_arrays_are_compared_as_those_of_a_file(path):
    with pytest.raises(CheckpointError, match="of another configuration"):
        checkpoint.load(path, jax.eval_shape(make), config={})
    other = jax.eval_shape(make) | {"count": jax.ShapeDtypeStruct((2,), int)}
    with pytest.raises(CheckpointError, match=r"array \['count'\] is int64\[\] there"):
        checkpoint.load(path, other, config=CONFIG)


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(path, monkeypatch, same_state):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    saver = ShardedSaver(path.parent, 1)
    monkeypatch.setattr(saving, "save_described", full)
    saver.save(make(5), config=CONFIG, progress={"iteration": 2})
    with pytest.raises(OSError, match="No space left"):
        saver.finish()
    assert saver.saved == 1
    monkeypatch.undo()
    same_state(checkpoint.load(path, jax.eval_shape(make), config=CONFIG)[0], make())
    saver.save(make(5), config=CONFIG, progress={"iteration": 3})
    saver.finish()
    saver.close()
    same_state(checkpoint.load(path, jax.eval_shape(make), config=CONFIG)[0], make(5))


def test_errors_of_the_disk_are_told_as_such(tmp_path):
    for said, code in (("Error writing: No space left on device [28]", 28), ("broken\nmore", 5)):
        with pytest.raises(OSError) as raised, shards._as_errors_of_the_system(tmp_path):
            raise ValueError(said)
        assert raised.value.errno == code and raised.value.filename == str(tmp_path)


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "orbax.checkpoint", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'trace-zoo\[orbax\]'"):
        ShardedSaver(tmp_path, 0)


@pytest.mark.slow
@pytest.mark.usefixtures("traced_once")
def test_a_run_that_is_killed_before_its_second_checkpoint_goes_on(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(loop, *_):
        assert checkpoint.iterations_in(loop.folder / "checkpoint.eqx") == 0
        raise Killed

    agent = dataclasses.replace(PPO, num_envs=4)
    options = {"seeds": 1, "progress": False, "evaluate_every": 0, "checkpoints": "sharded"}
    options |= {"steps": agent.steps_per_iteration, "out": tmp_path / "run"}
    # Before anything else is in the folder, and when all of it is.
    for resume, place in ((False, "_records"), (True, "_iterate")):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(Loop, place, killed)
            agents.train(agent, resume=resume, **options)
    assert agents.train(agent, resume=True, **options).iterations == 1


@pytest.mark.slow
@pytest.mark.usefixtures("traced_once")
@pytest.mark.parametrize("devices", [None, 4])
def test_a_run_resumes_from_either_kind_as_the_other(tmp_path, same_state, interrupt, devices):
    agent = dataclasses.replace(PPO, num_envs=4)
    steps, options = agent.steps_per_iteration, {"seeds": 1, "devices": devices, "progress": False}
    options |= {"checkpoint_every": 1, "evaluate_every": 2, "evaluation_episodes": 4}
    train = lambda out, n, **more: agents.train(  # noqa: E731
        agent, out=tmp_path / out, steps=n * steps, **options, **more
    )
    whole = train("whole", 6)
    interrupt(2)
    with pytest.raises(TrainingInterrupted, match=r"after iteration \d of 6"):
        train("shards", 6, checkpoints="sharded")
    one = train("shards", 4, resume=True, checkpoints="sharded")
    assert agents.load_policy(one.folder) is not None
    same_state(one.state, load_run(one.folder)[1])
    resumed = train("shards", 6, resume=True)
    assert not (one.folder / "shards").exists(), "the file has them now"
    same_state(whole.state, resumed.state)
    csv = [(result.folder / "scalars.csv").read_bytes() for result in (whole, resumed)]
    assert csv[0] == csv[1]
    back = train("shards", 7, resume=True, checkpoints="sharded")
    same_state(back.state, train("whole", 7, resume=True).state)
