"""Scalars in CSV and TensorBoard and at trackers, progress on the terminal."""

import io
import re
import struct
import sys

import numpy as np
import pytest
from rich.console import Console
from tensorboardX.proto.event_pb2 import Event

from agents.running.events import TensorBoardLog, mean_over_seeds
from agents.running.progress import ProgressReport
from agents.running.scalars import ScalarLog, ScalarsError, read_rows, read_scalars
from agents.running.tracking import Tracking
from tests.agents.trackers import install_tracker


@pytest.fixture
def path(tmp_path):
    return tmp_path / "scalars.csv"


def numbers(*values, dtype=np.float32):
    return np.array(values, dtype)


def test_one_row_for_each_iteration_and_seed(path):
    log = ScalarLog(path, ["loss", "evaluation_return"], seeds=2)
    log.write(1, 100, {"loss": numbers(0.1, np.nan)})
    # Flushed at once: another process can watch.
    assert path.read_text() == (
        "iteration,env_steps,seed,loss,evaluation_return\n1,100,0,0.1,\n1,100,1,nan,\n"
    )
    log.write(2, 200, {"loss": numbers(1, 2), "evaluation_return": numbers(-1e-9, 3e20)})
    log.close()
    assert path.read_text().splitlines()[3:] == ["2,200,0,1.0,-1e-09", "2,200,1,2.0,3e+20"]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_disappears_is_noticed_before_the_checkpoint(path, replaced):
    log = ScalarLog(path, ["loss"], seeds=1)
    log.write(1, 100, {"loss": numbers(1)})
    log.sync()
    path.rename(path.with_suffix(".bak"))
    if replaced:
        path.touch()
    with pytest.raises(FileNotFoundError, match=rf"'{path}'"):
        log.sync()
    log.close()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_numbers_read_back_exactly(path, dtype):
    values = (np.random.default_rng(0).normal(size=50) * 1e4).astype(dtype)
    log = ScalarLog(path, ["x"], seeds=50)
    log.write(1, 1, {"x": values})
    log.close()
    back = np.array([row["x"] for row in read_rows(path)], float).astype(dtype)
    np.testing.assert_array_equal(back, values)


@pytest.mark.parametrize("name", ["loss, critic", 'a "b"', "a\nb", "a\tb", ""])
def test_a_name_that_could_not_be_read_again_is_refused(path, name):
    with pytest.raises(ValueError, match="a name must be without commas and quotes"):
        ScalarLog(path, [name], seeds=1)
    log = ScalarLog(path, ["loss"], seeds=1)
    with pytest.raises(ValueError, match="a name must be without commas and quotes"):
        log.write(1, 10, {"loss": np.zeros(1), name: np.zeros(1)})
    log.close()


def test_a_new_metric_adds_a_column_and_loses_nothing(path):
    log = ScalarLog(path, ["loss"], seeds=1)
    log.write(1, 10, {"loss": numbers(1)})
    log.write(2, 20, {"speed": numbers(5), "loss": numbers(2)})
    log.write(3, 30, {"loss": numbers(3)})
    log.close()
    assert path.read_text() == (
        "iteration,env_steps,seed,loss,speed\n1,10,0,1.0,\n2,20,0,2.0,5.0\n3,30,0,3.0,\n"
    )


def test_resuming_drops_what_came_after_the_checkpoint(path):
    log = ScalarLog(path, ["loss"], seeds=2)
    for iteration in (1, 2, 3):
        log.write(iteration, 10 * iteration, {"loss": numbers(iteration, iteration)})
    log.sync()
    log.close()
    whole = path.read_bytes()
    with path.open("a") as file:
        file.write("4,4")
    log = ScalarLog(path, ["loss"], seeds=2, keep=range(1, 3))
    assert [row["iteration"] for row in read_rows(path)] == ["1", "1", "2", "2"]
    log.write(3, 30, {"loss": numbers(3, 3)})
    log.close()
    assert path.read_bytes() == whole


def test_missing_rows_are_noticed(path):
    log = ScalarLog(path, ["loss"], seeds=2)
    log.write(1, 10, {"loss": numbers(1, 2)})
    log.close()
    with pytest.raises(ValueError, match="2 rows up to iteration 3, there should be 6"):
        ScalarLog(path, ["loss"], seeds=2, keep=range(1, 4))
    assert len(read_rows(path)) == 2


ROWS = "iteration,env_steps,seed,loss\n1,10,0,1.0\n1,10,1,2.0\n2,20,0,3.0\n2,20,1,4.0\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2.0", "two", r"line 3: 'loss' \(='two'\) is no number"),
        ("2,20,0", "2.0,20,0", r"line 4: 'iteration' \(='2\.0'\) is no number"),
        ("2.0", "2.0,7", "line 3: it has 5 cells in 4 columns"),
        ("1,10,1,2.0", "\0\0\x1b[2J", "line 3: it has 1 cells in 4 columns"),
        ("iteration", "epoch", "line 2: its columns do not begin with iteration, env_steps, seed"),
        ("loss", "seed", "line 2: its columns do not begin"),
        ("1,10,1,", "1,10,-1,", r"line 3: 'seed' \(='-1'\) must be in 0 … 9223372036854775807"),
        ("2,20,0", "2,1" + 20 * "0" + ",0", r"line 4: 'env_steps' \(='10{20}'\) must be in 0 … "),
        ("1.0", "\udcff", r"line 2: 'loss' \(='�'\) is no number"),
        ("loss", "lo\x1b[2Jss", "line 2: its columns have names that cannot be printed"),
    ],
)
def test_damaged_rows_are_named(path, old, new, message):
    path.write_bytes(ROWS.replace(old, new).encode(errors="surrogateescape"))
    with pytest.raises(ScalarsError, match=f"scalars.csv is damaged in {message}") as refused:
        read_scalars(path.parent)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1,10,1,2.0\n", "", "its rows do not name seed after seed"),
        ("2,20,1", "2,30,1", "its rows do not name seed after seed"),
        ("2,20,1", "2,20,999999999999", "it names seed 999999999999 in 4 rows"),
        ("1,10,", "5,10,", "its iterations and steps do not rise"),
        ("1,10,", "1,20,", "its iterations and steps do not rise"),
    ],
)
def test_rows_that_cannot_be_of_one_training_are_noticed(path, old, new, message):
    path.write_text(ROWS.replace(old, new))
    with pytest.raises(ScalarsError, match=message):
        read_scalars(path.parent)


def test_rows_that_a_resumed_run_lacks_are_noticed(path):
    path.write_text(ROWS.replace("1,10,1,2.0\n", ""))
    with pytest.raises(
        ScalarsError, match=r"3 rows up to iteration 2, there should be 4\. With `dr"
    ):
        ScalarLog(path, ["loss"], seeds=2, keep=range(1, 3))


def test_rows_that_stand_for_others_are_noticed(path):
    path.write_text(ROWS.replace("1,10,1,2.0", "1,10,0,1.0"))
    with pytest.raises(ScalarsError, match=r"3 rows up to iteration 2, there should be 4"):
        ScalarLog(path, ["loss"], seeds=2, keep=range(1, 3))


def test_damaged_rows_stay_blank_if_asked(path):
    damaged = ROWS.replace("1,10,1,2.0", "1,10,") + "9,9"
    path.write_text(damaged)
    ScalarLog(path, ["loss"], seeds=2, keep=range(1, 3), blank=10).close()
    assert path.read_text() == ROWS.replace("2.0", "")
    assert path.with_name("scalars.damaged-1.csv").read_text() == damaged
    ScalarLog(path, ["loss"], seeds=2, keep=range(1, 3), blank=10).close()
    assert not path.with_name("scalars.damaged-2.csv").exists()
    path.write_text("?")
    ScalarLog(path, ["loss"], seeds=1, keep=range(1, 3), blank=10).close()
    assert path.read_text() == "iteration,env_steps,seed,loss\n1,10,0,\n2,20,0,\n"
    assert path.with_name("scalars.damaged-2.csv").read_text() == "?"


def read_events(folder):
    """Tag, step and value of each scalar, in order, from TensorBoard's records."""
    found = []
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            event = Event.FromString(data[12 : 12 + length])
            found += [(v.tag, event.step, v.simple_value) for v in event.summary.value]
            data = data[12 + length + 4 :]
    return found


def test_tensorboard_has_each_seed_and_the_mean(tmp_path):
    board = TensorBoardLog(tmp_path, seeds=2)
    board.write(100, {"return": numbers(1, 3), "length": numbers(np.nan, np.nan)}, speed=7.0)
    board.write(200, {"return": numbers(np.nan, 5)})
    board.close()
    assert read_events(tmp_path / "seed_0") == [("return", 100, 1.0)]
    assert read_events(tmp_path / "seed_1") == [("return", 100, 3.0), ("return", 200, 5.0)]
    expected = [("return", 100, 2.0), ("speed", 100, 7.0), ("return", 200, 5.0)]
    assert read_events(tmp_path / "mean") == expected


def test_the_mean_is_over_the_seeds_that_have_a_value():
    assert mean_over_seeds(numbers(1, np.nan, 3)) == 2
    assert np.isnan(mean_over_seeds(numbers(np.nan)))


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_tracker_gets_the_configuration_and_the_means_and_goes_on(name, tmp_path, monkeypatch):
    sent = install_tracker(monkeypatch, name)
    folder = tmp_path / "demo"
    folder.mkdir()
    for steps, failed in ((100, True), (200, False)):
        tracking = Tracking(name, "memories")
        tracking.begin(folder, {"seeds": 2, "steps": steps})
        metrics = {"return": numbers(1, 3), "length": numbers(np.nan, np.nan)}
        tracking.write(steps, metrics, speed=7.0)
        tracking.close(failed=failed)
        tracking.write(steps + 1, metrics)  # it is closed
    identity = (folder / "run_id").read_text().strip()
    assert re.fullmatch(r"[0-9a-f]{12}", identity)
    begun = {"project": "memories", "resume": "allow"}
    begun |= {
        "wandb": {"name": "demo", "id": identity, "dir": str(folder)},
        "trackio": {"name": f"demo-{identity}"},
    }[name]
    ends = {"wandb": [{"exit_code": 1}, {"exit_code": 0}], "trackio": [{}, {}]}[name]
    expected = []
    for steps, end in zip((100, 200), ends, strict=True):
        expected += [
            ("init", begun | {"config": {"seeds": 2, "steps": steps}}),
            ("log", {"return": 2.0, "speed": 7.0}, steps),
            ("finish", end),
        ]
    assert sent == expected


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_what_a_killed_run_had_sent_is_not_sent_again(name, tmp_path, monkeypatch):
    sent = install_tracker(monkeypatch, name)
    for steps in ((100, 200, 300), (200, 300, 400)):
        tracking = Tracking(name, "memories")
        tracking.begin(tmp_path, {})
        for step in steps:
            tracking.write(step, {"return": numbers(1)})
    assert [call[2] for call in sent if call[0] == "log"] == [100, 200, 300, 400]


@pytest.mark.parametrize("broken", ["init", "log", "finish"])
def test_a_tracker_that_fails_is_told_once_and_left(broken, tmp_path, monkeypatch):
    sent = install_tracker(monkeypatch, "wandb", broken)
    tracking = Tracking("wandb", "memories")
    message = rf"wandb has failed and gets no more of {tmp_path}.*: ConnectionError: {broken} is"
    with pytest.warns(UserWarning, match=message) as told:
        tracking.begin(tmp_path, {})
        for steps in (100, 200):
            tracking.write(steps, {"return": numbers(1)})
        tracking.close()
    assert len(told) == 1
    done = {"init": [], "log": ["init"], "finish": ["init", "log", "log"]}[broken]
    assert [call[0] for call in sent] == done


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("tracked_steps", b"abc", r"tracked_steps \(='abc'\) is no number of steps"),
        ("tracked_steps", b"\xff", "tracked_steps is no text"),
        ("run_id", b"\xff", "run_id is no text"),
    ],
)
def test_a_damaged_file_of_a_tracker_ends_no_training(name, content, said, tmp_path, monkeypatch):
    sent = install_tracker(monkeypatch, "wandb")
    (tmp_path / name).write_bytes(content)
    tracking = Tracking("wandb", "memories")
    with pytest.warns(UserWarning, match=f"whose training goes on: ValueError: .*{said}"):
        tracking.begin(tmp_path, {})
    tracking.write(100, {"return": numbers(1)})
    tracking.close()
    assert not sent


def test_a_tracker_goes_on_where_its_steps_are_blank(tmp_path, monkeypatch):
    sent = install_tracker(monkeypatch, "wandb")
    (tmp_path / "tracked_steps").write_text("\n")
    tracking = Tracking("wandb", None)
    tracking.begin(tmp_path, {})
    tracking.write(100, {"return": numbers(1)})
    assert [call[0] for call in sent] == ["init", "log"]
    assert sent[0][1]["project"] == "trace-zoo"


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_tracker_that_is_not_installed_is_named_with_its_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    words = rf"`track` \(='{name}'\) needs the package {name}: pip install 'trace-zoo\[{name}\]'"
    with pytest.raises(ModuleNotFoundError, match=words):
        Tracking(name, "memories")


@pytest.mark.parametrize("project", ["memories", "trace-zoo"])
def test_a_project_without_a_tracker_is_told(project):
    told = rf"`track_project` \(='{project}'\) has no effect without `track`"
    with pytest.warns(UserWarning, match=told):
        Tracking(None, project)


def report(show, *, terminal, total=40, start=0, scores=None):
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=120, color_system=None)
    options = {"steps": 100, "show": show, "console": console, "start": start}
    with ProgressReport(total, **options) as progress:
        for iteration in range(start + 1, total + 1):
            score = 0.5 if scores is None else scores[iteration - 1]
            speed = progress.update(iteration, score)
    return text.getvalue(), speed


def test_without_a_terminal_a_line_every_tenth():
    text, speed = report(True, terminal=False)
    lines = text.splitlines()
    assert len(lines) == 11  # the first iteration, and every tenth of the way
    assert [line[:5] for line in lines[:3]] == ["  2 %", " 10 %", " 20 %"]
    assert "iteration 40/40  return 0.500" in lines[-1]
    assert "0:00:00 left" in lines[-1]
    assert speed > 0


def test_while_no_episode_has_ended_there_is_no_return():
    text, _ = report("lines", terminal=False, scores=[np.nan] * 20 + [0.25] + [np.nan] * 19)
    lines = text.splitlines()
    assert "return –  " in lines[0] and "nan" not in text
    assert "return 0.250" in lines[-1]


def test_on_a_terminal_a_bar():
    text, _ = report(True, terminal=True)
    assert "40/40" in text
    assert "return 0.500" in text
    assert "steps/s" in text
    assert "100 %" in text


def test_forms_can_be_forced_or_left_out():
    assert "━" in report("bar", terminal=True)[0]
    assert "━" not in report("lines", terminal=True)[0]
    assert report(False, terminal=True)[0] == ""


def test_a_return_that_was_not_measured_shows_the_last_one():
    text, _ = report("lines", terminal=False, total=3, scores=[0.25, np.nan, np.nan])
    assert text.splitlines()[-1].count("return 0.250") == 1


def test_a_resumed_report_starts_where_it_is():
    text, _ = report("lines", terminal=False, total=40, start=30)
    assert [line[:5] for line in text.splitlines()] == [" 77 %", " 80 %", " 90 %", "100 %"]
