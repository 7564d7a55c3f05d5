"""Which tests are quick, and what a process that crashes costs: the one test that it ran."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

CONFTEST = """
def pytest_xdist_make_scheduler(config, log):
    from tests.scheduling import Grouped

    return Grouped(config, log, lambda nodeid: nodeid[-2])  # by the letter
"""

TESTS = """
import os
import time
import pytest

@pytest.mark.parametrize("letter", "abcdef")
@pytest.mark.parametrize("number", range(3))
def test_it(number, letter):
    with open(f"{letter}-{os.getpid()}", "a") as file:
        file.write(str(number))
    if (number, letter) == (1, "b"):
        time.sleep(2)  # until what went before is reported
        os._exit(3)
"""


def test_of_a_table_the_first_rows_are_quick(request):
    tables = [item for item in request.session.items if item.get_closest_marker("quick_rows")]
    if not tables:
        pytest.skip("no such table was collected")
    quick = [item for item in tables if not item.get_closest_marker("slow")]
    rows = Counter(item.nodeid.partition("[")[0] for item in quick)
    most = {item.nodeid.partition("[")[0]: item.get_closest_marker("quick_rows") for item in quick}
    assert {test: count for test, count in rows.items() if count > most[test].args[0]} == {}


@pytest.mark.slow
def test_a_crash_fails_one_test_and_the_rest_runs_in_groups(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    variables = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", "--rootdir=."],
        cwd=tmp_path,
        env=variables | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 failed, 17 passed" in run.stdout, run.stdout
    assert "crashed while running 'test_it.py::test_it[1-b]'" in run.stdout

    files = {path.name: path.read_text() for path in tmp_path.glob("?-*")}
    together = sorted(text for name, text in files.items() if name[0] != "b")
    assert together == ["012"] * 5
    assert sorted(text for name, text in files.items() if name[0] == "b") == ["01", "2"]
