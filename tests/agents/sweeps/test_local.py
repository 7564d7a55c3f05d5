"""Runs as processes: what ends them, what is left of them, and that others go on."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agents.running.folder import has_writer, sole_writer
from agents.sweeps import job as jobs_module
from agents.sweeps.engines import local
from agents.sweeps.folder import exit_code
from agents.sweeps.job import Job, execute
from tests.project import source


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """A function that makes jobs by what their stand-ins do: an exit code, or `once`."""
    monkeypatch.setattr(jobs_module, "CHILD", "tests.agents.sweeps.stand_in")
    return lambda **acts: [Job(name, (act,), tmp_path, source.ROOT) for name, act in acts.items()]


def until(holds, seconds=30.0):
    latest = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < latest
        time.sleep(0.02)


def never():
    return False


def test_a_run_that_fails_stops_no_other(jobs, tmp_path):
    found = {job.name: problem for job, problem in local.run(jobs(a="0", b="3", c="0"), 2, never)}
    assert found == {"a": "", "b": "exit code 3", "c": ""}
    assert [exit_code(tmp_path, name) for name in "abc"] == [0, 3, 0]
    log = (tmp_path / "logs" / "b.log").read_text()
    assert log == f"$ python -m agents train 3 --out {tmp_path}/runs/b\ndone\n"


@pytest.mark.slow
def test_a_folder_of_the_users_is_not_taken_for_ours(tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").write_text("raise SystemExit('not ours')")
    outcome = execute(Job("a", ("--help",), tmp_path / "out", tmp_path))
    assert outcome.problem == "", (tmp_path / "out" / "logs" / "a.log").read_text()


@pytest.mark.slow
def test_who_asks_to_stop_gets_checkpoints_and_the_same_runs_go_on(jobs, tmp_path):
    wanted = jobs(a="once", b="once", c="once")
    stopping = threading.Event()
    found = []
    engine = threading.Thread(
        target=lambda: found.extend(local.run(wanted, 2, stopping.is_set)), daemon=True
    )
    engine.start()
    until(lambda: len(list((tmp_path / "runs").glob("* lasts"))) == 2)
    stopping.set()
    engine.join(30)
    assert {o.job.name: o.problem for o in found} == {"a": "stopped", "b": "stopped"}
    assert not any(has_writer(job.folder) for job in wanted)
    assert [job.command()[-1] == "--resume" for job in wanted] == [True, True, False]
    assert all(o.problem == "" for o in local.run(wanted[:2], 2, never))


@pytest.mark.slow
def test_who_leaves_kills(jobs, tmp_path):
    (job,) = jobs(a="once")
    outcomes = local.run([job, *jobs(b="0")], 2, never)
    until(lambda: next(outcomes).job.name == "b")
    until(lambda: (tmp_path / "runs" / "a lasts").exists())
    outcomes.close()
    assert exit_code(tmp_path, "a") == -signal.SIGKILL
    assert not has_writer(job.folder)


def test_a_run_that_is_killed_is_told_and_goes_on(jobs, tmp_path):
    (job,) = jobs(a="once")

    def kill():
        until(lambda: (tmp_path / "runs" / "a lasts").exists())
        (found,) = [int(p.name) for p in Path("/proc").glob("[0-9]*") if _is_of(p, job.folder)]
        os.kill(found, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    assert execute(job).problem == "killed by SIGKILL"
    killer.join()
    assert execute(job).problem == ""


def _is_of(process, folder):
    try:
        return str(folder).encode() in (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


@pytest.mark.slow
def test_a_sweep_that_is_killed_leaves_nobody_behind(jobs, tmp_path):
    code = f"""
from pathlib import Path
from agents.sweeps import job
job.CHILD = {jobs_module.CHILD!r}
job.execute(job.Job("a", ("once",), Path({str(tmp_path)!r}), Path({str(source.ROOT)!r})))
"""
    sweep = subprocess.Popen([sys.executable, "-c", code], cwd=source.ROOT)
    until(lambda: (tmp_path / "runs" / "a lasts").exists())
    sweep.kill()
    sweep.wait()
    (job,) = jobs(a="once")
    assert execute(job).problem == ""  # which waits for the lock, until the other has stopped


@pytest.mark.slow
def test_a_folder_that_is_another_processs_is_refused(jobs, monkeypatch):
    monkeypatch.setattr(jobs_module, "_PATIENCE", 0.1)
    one, other = jobs(a="0", b="0")
    with sole_writer(one.folder):
        found = {o.job.name: o.problem for o in local.run([one, other], 1, never)}
    assert found == {"a": "exit code 1", "b": ""}
    assert "another process writes to `out`" in one.log.read_text()


def test_where_nothing_can_be_written_the_run_fails_and_says_why(jobs, tmp_path):
    (tmp_path / "logs").write_text("")
    (one,) = jobs(a="0")
    assert execute(one).problem == f"[Errno 17] File exists: '{tmp_path}/logs'"


def test_a_folder_that_disappears(jobs, tmp_path):
    (job,) = jobs(a="once")

    def remove():
        until(lambda: (tmp_path / "runs" / "a lasts").exists())
        shutil.rmtree(tmp_path)

    remover = threading.Thread(target=remove)
    remover.start()
    found = execute(job, lambda: not tmp_path.exists())
    remover.join()
    assert found.problem == "stopped"
    tmp_path.mkdir()
