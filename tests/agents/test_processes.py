"""Two processes of two devices each: the run of one process, also where one of them was killed."""

import os
import signal
import socket
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from agents.cli import main
from agents.running import load_run
from agents.running.checkpoint import read_header
from agents.running.processes import join
from agents.running.scalars import read_scalars

STEPS = 64  # of an iteration of either
WORDS = """
--env t_maze --env-options length=1 --checkpoint-every 1 --evaluate-every 5
--evaluation-episodes 4 --progress lines --no-cache --log-every 1
""".split()  # noqa: SIM905
TABULAR = f"--algorithm tabular --rollout-length {STEPS} --seeds 4".split()
PPO = """
--memory gru --hidden 3 --gradient tbptt --segment 4 --num-envs 8 --rollout-length 8
--minibatches 2 --epochs 2 --encoder-size 4 --head-size 4 --seeds 1
""".split()  # noqa: SIM905


def train_alone(out, *words):
    """Train in the tests' own process, on as many devices as both processes of a job have."""
    assert main(["train", *WORDS, "--out", str(out), *words, "--devices", "4"]) == 0


def begin(out, *words):
    """Begin a process that trains, on two devices, in float64 as the tests' own."""
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    env = {
        **os.environ,
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": "cpu",
        "PYTHONWARNINGS": "ignore",
        "XLA_FLAGS": flags,
    }
    command = [sys.executable, "-m", "agents", "train", *WORDS, "--out", str(out), *words]
    return subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def free_port():
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return free.getsockname()[1]


def begin_both(out, *words):
    """Begin two processes of one job, of two devices each, which share in its checkpoints."""
    job = ["--checkpoints", "sharded", "--coordinator", f"localhost:{free_port()}"]
    job += ["--processes", "2", "--process"]
    return [begin(out, *words, *job, str(number)) for number in range(2)]


def ended(processes, seconds=300):
    """What they have printed, once they have come to their end."""
    texts = [process.communicate(timeout=seconds)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), texts
    return texts


def iterations(folder):
    """How many a run's checkpoint has done."""
    path = folder / "checkpoint.eqx"
    return read_header(path).progress["iteration"] if path.exists() else 0


with_several = pytest.mark.skipif(jax.__version_info__ < (0, 9, 1), reason="refused by `join`")


def test_older_versions_of_jax_are_refused(monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", (0, 9, 0))
    with pytest.raises(ValueError, match=r"`processes` \(=2\) needs JAX 0.9.1 or newer; this is "):
        join("localhost:1", 0, 2)


@with_several
@pytest.mark.slow
def test_a_job_can_be_stopped_before_its_training_begins():
    code = f"""
import os, signal, time
from agents.running.processes import join
join("localhost:{free_port()}", 0, 1)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(5)
"""
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    ended = subprocess.run([sys.executable, "-c", code], env=env, stderr=subprocess.DEVNULL)
    assert ended.returncode == -signal.SIGTERM


@with_several
@pytest.mark.slow
def test_jax_has_the_barrier_that_is_no_public_part_of_it():
    """A job of one process, for which it is the same."""
    text = (
        "from agents.running.processes import join, wait_at_barrier\n"
        f"join('localhost:{free_port()}', 0, 1)\n"
        "wait_at_barrier()\n"
        "print('passed')"
    )
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", text], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "passed\n", done.stderr


def check_split_environments(folder):
    """The environments of one seed, split over two processes: it learns what one process does."""
    one, two = folder / "one", folder / "two"
    words = [*PPO, "--steps", str(6 * STEPS)]
    ended(begin_both(two, *words))
    train_alone(one, *words)
    expected, found = (read_scalars(folder).metrics for folder in (one, two))
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert values.shape == (6, 1)
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-12, err_msg=name)


@with_several
@pytest.mark.slow
def test_two_processes_are_one_also_after_one_was_killed(tmp_path, same_state, eight_devices):
    """Each with seeds of its own; and with environments of its own, while a job is left waiting."""
    one, two = tmp_path / "one", tmp_path / "two"
    words = [*TABULAR, "--steps"]
    first, second = begin_both(two, *words, str(1000 * STEPS))
    while iterations(two) < 3:
        assert first.poll() is None and second.poll() is None, first.communicate()[0]
        time.sleep(0.1)
    second.send_signal(signal.SIGKILL)
    second.communicate()
    # While the first one waits for it, 20 s. What that one was writing may be another iteration.
    count = max(6, iterations(two) + 4)
    words += [str(count * STEPS)]
    train_alone(one, *words)
    check_split_environments(tmp_path / "split")
    said = first.communicate(timeout=60)[0]
    assert first.returncode != 0
    assert "another process of this job has ended" in said or "another task died" in said

    assert iterations(two) <= count - 3
    said = ended(begin_both(two, *words, "--resume"))
    assert "100 %" in said[0] and "%" not in said[1], "the first one alone reports"
    same_state(load_run(one)[1], load_run(two)[1])
    assert (one / "scalars.csv").read_bytes() == (two / "scalars.csv").read_bytes()
