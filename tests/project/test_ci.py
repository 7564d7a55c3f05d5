"""`.ci/run`, with a shell script in place of Python: it fails and ends where it has to."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / ".ci" / "run"


def start(tmp_path, python, **settings):
    """Run it with a shell script for Python, which is asked for its version first of all."""
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nif [ "$1" = -c ]; then exit 0; fi\n{python}\n')
    script.chmod(0o755)
    environment = os.environ | settings | {"PYTHON": str(script), "TMPDIR": str(tmp_path)}
    return subprocess.Popen([RUN], env=environment, stdout=subprocess.PIPE, text=True)


def is_running(process):
    """Whether it runs; one that has ended may wait for a parent to notice."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_failing_stage_ends_it(tmp_path):
    run = start(tmp_path, "exit 7")
    out, _ = run.communicate(timeout=60)
    assert run.returncode not in (0, None)
    assert "== FAILED in stage: wheel" in out and "== quick start" not in out


@pytest.mark.parametrize("ending", ["clock", "signal"])
def test_it_ends_when_it_is_to_and_leaves_nothing(tmp_path, ending):
    note = tmp_path / "process"
    settings = {"LAST_SECOND": "1"} if ending == "clock" else {}
    run = start(tmp_path, f"echo $$ > {note}; exec sleep 300", **settings)
    if ending == "signal":
        while not note.exists() or not note.read_text().strip():
            time.sleep(0.05)
        run.send_signal(signal.SIGTERM)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == {"clock": 124, "signal": 143}[ending]
    assert "== FAILED in stage: wheel" in out
    assert not is_running(int(note.read_text()))
    assert not list(tmp_path.glob("trace-zoo-ci.*"))
