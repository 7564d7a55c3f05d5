"""Runs on a Ray cluster, and in jobs of submitit on this machine."""

import contextlib
import importlib
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agents.cli import main
from agents.cli.sweep import _judge
from agents.running.errors import RunsFailed
from agents.sweeps.engines import ray, slurm
from agents.sweeps.folder import exit_code
from agents.sweeps.job import Job
from tests.agents.sweeps.processes import TABULAR, parent, said, same, sweep, trainings, until
from tests.project import source

# What a cluster does to its own files it does in these; none of it is told to anybody.
RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}


WORDS = ("--grid", "epsilon=0.1,0.2", "--steps", "100000")


@contextlib.contextmanager
def ray_cluster():
    """The address of a Ray cluster of one worker, on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="ray")  # a short path: sockets are in it
    words = [Path(sys.executable).with_name("ray"), "start", "--head", "--block", "--num-cpus=1"]
    words += [f"--port={port}", f"--temp-dir={folder}", "--include-dashboard=false"]
    words += ["--node-ip-address=127.0.0.1", "--disable-usage-stats"]
    head = subprocess.Popen(
        words, env={**os.environ, **RAY}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield f"127.0.0.1:{port}"
    finally:
        head.terminate()
        head.communicate(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The folder of one of the runs, by itself and undisturbed."""
    out = tmp_path_factory.mktemp("alone") / "run"
    words = ["train", *TABULAR, *WORDS[2:], "--epsilon", "0.1", "--out", str(out)]
    subprocess.run([sys.executable, "-m", "agents", *words], cwd=source.ROOT, check=True)
    return out


@pytest.mark.slow
def test_ray_trains_and_goes_on_where_a_worker_or_the_sweep_has_ended(tmp_path, alone):
    """On a cluster that is there, and then on one that the sweep starts for itself."""
    words = [*WORDS, "--out", str(tmp_path), "--engine", "ray"]
    with ray_cluster() as address:
        begun = sweep(*words, RAY_ADDRESS=address, **RAY)
        until(lambda: len(list(tmp_path.glob("runs/*/scalars.csv"))) == 1)
        (one,) = trainings(tmp_path)  # the other waits: the cluster has one worker
        os.kill(parent(one), signal.SIGKILL)
        until(lambda: set(trainings(tmp_path)) - {one})  # another worker goes on
        begun.send_signal(signal.SIGINT)
        assert "the others keep what they have" in said(begun, 130)
        until(lambda: not set(trainings(tmp_path)))
    begun = sweep(*words, "--workers", "2", **RAY)
    until(lambda: len(set(trainings(tmp_path))) == 2)  # at once
    told = said(begun, 0)
    assert "2 of 2  epsilon=0." in told
    assert same(tmp_path / "runs" / "epsilon=0.1", alone)


@pytest.mark.slow
def test_submitit_queues_a_preempted_run_again_and_says_which_job_died(tmp_path, alone):
    """And cancels its jobs where it is interrupted, each of which writes a checkpoint."""
    words = ["--grid", "epsilon=0.1,0.2", "--engine", "slurm"]
    words += ["--engine-options", "cluster=local", "--engine-options", "timeout_min=60"]
    begun = sweep(*words, *WORDS[2:], "--out", str(tmp_path))
    until(lambda: len(list(tmp_path.glob("runs/*/scalars.csv"))) == 2)
    preempted, killed = (next(trainings(tmp_path / "runs" / f"epsilon={e}")) for e in (0.1, 0.2))
    os.kill(parent(preempted), signal.SIGUSR2)  # what submitit lets Slurm send
    os.kill(parent(killed), signal.SIGKILL)

    # While submitit waits 15 s for what a killed job may still have to say.
    other = tmp_path / "other"
    endless = sweep(*words, "--steps", "1e9", "--out", str(other))
    until(lambda: len(set(trainings(other))) == 2)
    endless.send_signal(signal.SIGINT)
    said(endless, 130)
    until(lambda: not set(trainings(other)))

    told = said(begun, 1)
    assert re.search(r"^1 of 2  epsilon=0.1: complete$", told, re.M)
    assert re.search(r"^1 of 2 runs failed.*\n  epsilon=0.2: job \d+: .+; \S+\.log$", told, re.M)
    log = (tmp_path / "logs" / "epsilon=0.1.log").read_text()
    attempts = [line for line in log.splitlines() if line.startswith("$ python -m agents train")]
    assert [line.endswith(" --resume") for line in attempts] == [False, True]
    assert same(tmp_path / "runs" / "epsilon=0.1", alone)


@pytest.fixture
def submitit(monkeypatch):
    """The package, whose import closes all handlers of logging: absl's with pytest's own stream."""
    monkeypatch.setattr(logging, "shutdown", lambda handlers: None)
    return importlib.import_module("submitit")


@pytest.mark.parametrize(
    ("engine", "option", "message"),
    [
        ("local", "num_gpus=1", "--engine-options have no meaning with --engine local"),
        ("slurm", "colour=1", "--engine-options are not submitit's: "),
        (
            "slurm",
            "cluster=nowhere",
            "--engine-options are not submitit's: .* doesn't know any executor named nowhere",
        ),
        ("slurm", "timeout_min=ten", "--engine-options are not submitit's: .*timeout_min.*int"),
        ("slurm", "num_gpus", r"--engine-options \(='num_gpus'\) must be written as key=value"),
    ],
)
def test_options_that_an_engine_does_not_have(engine, option, message, tmp_path, capsys, submitit):
    words = ["sweep", *TABULAR, *WORDS, "--out", str(tmp_path), "--engine", engine]
    if engine == "slurm" and "cluster" not in option:
        words += ["--engine-options", "cluster=local"]
    assert main([*words, "--engine-options", option]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_what_slurm_refuses_is_one_line(tmp_path, capsys, submitit, monkeypatch):
    def refused(self):
        raise RuntimeError("sbatch: error: invalid partition specified\nand more")

    monkeypatch.setattr(submitit.AutoExecutor, "batch", refused)
    words = ["sweep", *TABULAR, *WORDS, "--out", str(tmp_path), "--engine", "slurm"]
    assert main([*words, "--engine-options", "cluster=local"]) == 2
    told = capsys.readouterr().err
    expected = "--engine (='slurm') cannot be used: sbatch: error: invalid partition specified\n"
    assert told.endswith(expected)


TRACE = """Job (task=0) failed during processing with trace:
----------------------
Traceback (most recent call last):
ModuleNotFoundError: No module named 'mine'

----------------------
You can check full logs with 'job.stderr(0)'"""
LOST = """Job 4711_0 (task: 0) with path x/4711_0_0_result.pkl
has not produced any output (state: OUT_OF_MEMORY)
No error stream produced. Look at stdout: x"""


def test_why_a_job_ended_before_its_training_is_told_and_where(tmp_path, monkeypatch, submitit):
    """And so many at once as there are workers, where no cluster holds them back."""
    from submitit.core.utils import FailedJobError, JobPaths, UncompletedJobError

    begun, lasting = [], []

    class Executor:
        def __init__(self, folder, **options):
            self.folder, self.options = folder, options
            made.append(self)

        def update_parameters(self, **parameters):
            self.options |= parameters

        def batch(self):
            return contextlib.nullcontext()

        def submit(self, training):
            lasting.append(training)
            begun.append(len(lasting))
            return Submitted(self.folder, training)

    class Submitted:
        job_id = "4711_0"

        def __init__(self, folder, training):
            self.training, self.paths = training, JobPaths(folder, "4711_0")

        def done(self):
            lasting.remove(self.training)
            return True

        def result(self):
            text = texts.pop(0)
            raise (FailedJobError if text == TRACE else UncompletedJobError)(text)

    monkeypatch.setattr(submitit, "AutoExecutor", Executor)
    monkeypatch.setattr(slurm, "_LOOK", 0)
    jobs = [Job(name, (), tmp_path, tmp_path) for name in "abc"]
    (tmp_path / "submitit").mkdir()
    for cluster, most in (("slurm", [1, 2, 3]), ("local", [1, 1, 1])):
        made, texts = [], [TRACE, LOST, LOST]
        found = list(slurm.run(jobs, 1, {"cluster": cluster}, lambda: False))
        assert begun == most
        begun.clear()
        told = ["Job (task=0) failed during processing with trace: ModuleNotFoundError: No module"]
        told += ["Job 4711_0 (task: 0) with path x/4711_0_0_result.pkl has not produced any output"]
        for outcome, expected in zip(found, [*told, told[1]], strict=True):
            assert outcome.problem.startswith(f"job 4711_0: {expected}")
            assert outcome.problem.endswith(f"; {tmp_path}/submitit")
        assert "(state: OUT_OF_MEMORY)" in found[1].problem
        assert [exit_code(tmp_path, name) for name in "abc"] == [1, 1, 1]
        assert made[0].options["slurm_python"] == f"{sys.executable} -P"
        assert made[0].options["slurm_array_parallelism"] == 1
    (tmp_path / "submitit" / "4711_0_0_log.err").touch()
    texts = [TRACE]
    (lost,) = slurm.run(jobs[:1], None, {}, lambda: False)
    with pytest.raises(RunsFailed) as failed:
        _judge([lost], 1, 0, tmp_path, None)
    assert str(failed.value).endswith(f"; {tmp_path}/submitit/4711_0_0_log.err")


@pytest.mark.slow
def test_a_folder_of_the_users_is_not_taken_for_ours_in_a_job(tmp_path, monkeypatch, submitit):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").write_text("raise SystemExit('not ours')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(source.ROOT))
    job = Job("a", ("--help",), tmp_path / "out", tmp_path)
    (outcome,) = slurm.run([job], None, {"cluster": "local", "timeout_min": 5}, lambda: False)
    assert outcome.problem == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_gpus": 1}, r"ask for num_gpus=1, and no node has more than 0"),
        ({"num_cpus": 64}, r"ask for num_cpus=64, and no node has more than 2"),
        ({"num_cpus": "many"}, r"`engine_options`: The type of keyword 'num_cpus' must be"),
    ],
)
def test_ray_would_wait_forever_for_what_no_node_has(options, message, monkeypatch):
    def init(*address, **settings):
        if address and not there:
            raise ConnectionError

    there = False
    package = importlib.import_module("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(package, "init", init)
    monkeypatch.setattr(
        package, "nodes", lambda: [{"Alive": True, "Resources": {"CPU": 2.0, "memory": 1e9}}]
    )
    with pytest.raises(ValueError, match=message):
        next(ray.run([], None, options, lambda: False))
    if "many" not in options.values():  # a cluster that is there may grow
        there = True
        with pytest.warns(match=message + ": the runs wait"):
            assert not list(ray.run([], None, options, lambda: False))


@pytest.mark.parametrize(("engine", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_an_engine_that_is_not_installed(engine, package, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    words = ["sweep", *TABULAR, *WORDS, "--out", str(tmp_path), "--engine", engine]
    assert main(words) == 2
    told = f"--engine {engine} needs the package {package}: pip install 'trace-zoo[{engine}]'\n"
    assert capsys.readouterr().err == told
    assert not list(tmp_path.iterdir())
