"""Learning curves in the terminal: the plot in characters, and runs watched until they end."""

import json
import re
import threading

import numpy as np
import pytest

from agents.cli import main
from agents.cli.plot import plot, short, ticks
from agents.running.folder import has_writer, sole_writer
from agents.running.scalars import ScalarLog


def drawn(ys, *, xs=None, width=24, height=10):
    xs = np.arange(1.0, len(ys) + 1) if xs is None else np.asarray(xs, float)
    return [line.plain for line in plot({"a": (xs, np.asarray(ys))}, width=width, height=height)]


def dots(lines):
    """Which dots of the braille are set, [row, column] from the upper left corner."""
    rows = [re.split("[│┤]", line)[1] for line in lines[:-2]]
    bits = np.array([[ord(c) - 0x2800 if c != " " else 0 for c in row.ljust(99)] for row in rows])
    order = [[0, 3], [1, 4], [2, 5], [6, 7]]
    cells = np.stack([np.stack([bits >> b & 1 for b in pair], -1) for pair in order], 1)
    return cells.reshape(4 * len(rows), -1).astype(bool)


def test_a_straight_line_goes_from_corner_to_corner():
    lines = drawn([0.0, 1.0], xs=[0, 10], width=20)
    assert len(lines) == 10 and all(len(line) <= 20 for line in lines)
    found = dots(lines)
    rows, columns = np.nonzero(found)
    wide = columns.max() + 1
    assert (columns.min(), rows.min(), rows.max()) == (0, 0, found.shape[0] - 1)
    assert found[-1, 0] and found[0, wide - 1]
    expected = (1 - columns / (wide - 1)) * (found.shape[0] - 1)
    assert np.abs(rows - expected).max() <= found.shape[0] / wide + 1
    assert all(found[:, column].any() for column in range(wide))


def test_a_jump_is_drawn_without_a_gap():
    assert dots(drawn([0.0, 0.0, 1.0, 1.0], xs=[0, 5, 5.1, 10])).any(axis=1).all()


def test_the_axes_carry_round_numbers():
    lines = drawn([0.0, 1.0], xs=[0, 3e6], width=100, height=14)
    marks = {line.partition("┤")[0].strip() for line in lines if "┤" in line}
    assert marks == {"0", "0.5", "1"}
    assert lines[0].startswith("   1┤") and lines[-3].startswith("   0┤")
    assert lines[-1].split() == ["0", "1M", "2M", "3M"]
    assert lines[-1].index("1M") - lines[-2].index("┬", lines[-2].index("┬") + 1) in (-1, 0)


def test_a_curve_of_one_point_and_one_that_does_not_change():
    assert dots(drawn([2.0])).sum() == 1
    rows = np.nonzero(dots(drawn([2.0, 2.0, 2.0])))[0]
    assert len(set(rows)) == 1
    for value in (0.1, 1e17):  # rounding is no change
        rows = np.nonzero(dots(drawn([value, value * (1 + 2e-16), value])))[0]
        assert np.ptp(rows) <= 1
    assert dots(drawn([1e-310, 5e-310])).any()
    with pytest.raises(ValueError, match="has no point that could be drawn"):
        plot({"a": (np.ones(2), np.full(2, np.nan))}, width=20, height=8)


def test_what_is_not_finite_is_left_out():
    """As at the end of a run that diverged."""
    assert drawn([0.0, 1.0, np.inf, np.nan]) == drawn([0.0, 1.0, np.nan, np.nan])


def test_large_marks_differ():
    lines = drawn([1.2e6, 1.2e6 + 100], width=40)
    marks = [line.partition("┤")[0] for line in lines if "┤" in line]
    assert len(set(marks)) == len(marks) > 1


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 1, 3, [0, 0.5, 1]),
        (-0.5, 1, 4, [-0.5, 0, 0.5, 1]),
        (0, 1e6, 6, [0, 2e5, 4e5, 6e5, 8e5, 1e6]),
        (3, 4, 2, [3, 4]),
        (0.1, 0.3, 3, [0.1, 0.2, 0.3]),
    ],
)
def test_ticks_are_round(low, high, most, expected):
    assert ticks(float(low), float(high), most) == expected


def test_large_numbers_are_short():
    numbers = [0, 500, 1000, 1.5e6, 2e9]
    assert [short(float(x)) for x in numbers] == ["0", "500", "1k", "1.5M", "2G"]


def make_run(folder, iterations, planned=400):
    folder.mkdir(exist_ok=True)
    agent = {"env": "X", "env_options": {}, "memory": {"name": "rtu", "hidden": 4, "layers": 1}}
    (folder / "config.json").write_text(json.dumps({"agent": agent, "steps": planned}))
    log = ScalarLog(folder / "scalars.csv", ["return"], seeds=2)
    for iteration in range(1, iterations + 1):
        log.write(iteration, 100 * iteration, {"return": np.array([iteration, iteration + 1.0])})
    log.close()
    return folder


def test_what_there_is_is_drawn_once(tmp_path, capsys):
    runs = [make_run(tmp_path / "one", 4), make_run(tmp_path / "other", 3)]
    assert main(["watch", *map(str, runs), "--once"]) == 0
    title, *lines = capsys.readouterr().out.rstrip().splitlines()
    assert title.split() == ["X:", "rtu", "of", "4", "units", "return"]
    assert all(len(line) <= 80 for line in lines)
    assert lines[-2:] == [
        "━━ one      4.500  400 of 400 steps, 100 %, complete",
        "━━ other    3.500  300 of 400 steps, 75 %, stopped",
    ]


def test_a_long_name_leaves_room_for_what_is_said(tmp_path, capsys):
    name = "memory=rtu,learning_rate=0.0003,gradient=rtrl,segment=8,env=RepeatPreviousEasy"
    runs = [make_run(tmp_path / name, 4), make_run(tmp_path / "other", 3)]
    assert main(["watch", *map(str, runs), "--once"]) == 0
    long, short = capsys.readouterr().out.rstrip().splitlines()[-2:]
    assert len(long) <= 80
    assert re.fullmatch(r"━━ memory=\S+…\S+Easy +4\.500  400 of 400 steps, 100 %, complete", long)
    assert re.fullmatch(r"━━ other +3\.500  300 of 400 steps, 75 %, stopped", short)


def test_a_mean_that_is_finite_nowhere_ends_nothing(tmp_path, capsys):
    folder = make_run(tmp_path / "a", 0)
    log = ScalarLog(folder / "scalars.csv", ["return"], seeds=2)
    log.write(1, 100, {"return": np.array([np.inf, 1.0])})
    log.write(2, 200, {"return": np.array([np.inf, 2.0])})
    log.close()
    assert main(["watch", str(folder), "--once"]) == 0
    assert "2.000" in capsys.readouterr().out
    log = ScalarLog(folder / "scalars.csv", ["return"], seeds=2)
    log.write(1, 100, {"return": np.array([np.inf, np.inf])})
    log.close()
    assert main(["watch", str(folder), "--once"]) == 0
    assert "nothing to draw yet: no finite return" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_is_watched_until_its_writer_ends(tmp_path, capsys):
    folder = make_run(tmp_path / "a", 3)
    let_go = threading.Event()

    def write():
        with sole_writer(folder):
            held.set()
            let_go.wait(10)

    held, writer = threading.Event(), threading.Thread(target=write)
    writer.start()
    held.wait(10)
    try:
        assert has_writer(folder)
        assert main(["watch", str(folder), "--once"]) == 0
        assert "75 %, training" in capsys.readouterr().out
        threading.Timer(0.3, let_go.set).start()
        assert main(["watch", str(folder), "--every", "0.05"]) == 0
        assert let_go.is_set()
        assert "75 %, stopped" in capsys.readouterr().out
    finally:
        let_go.set()
        writer.join()
    assert not has_writer(folder)


def test_a_complete_run_that_goes_on_is_trained(tmp_path, capsys):
    folder = make_run(tmp_path / "a", 4)
    with sole_writer(folder):
        assert main(["watch", str(folder), "--once"]) == 0
    assert "100 %, training" in capsys.readouterr().out


def test_a_writer_is_seen_where_one_may_only_read(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    with sole_writer(tmp_path), monkeypatch.context() as patched:
        patched.setattr("agents.running.folder.FileLock", refused)
        assert has_writer(tmp_path)
    (tmp_path / ".lock").touch()
    monkeypatch.setattr("agents.running.folder.FileLock", refused)
    assert not has_writer(tmp_path)


def test_a_run_that_diverged_is_drawn_up_to_there(tmp_path, capsys):
    folder = make_run(tmp_path / "a", 2)
    with (folder / "scalars.csv").open("a") as file:
        file.write("3,300,0,inf\n3,300,1,inf\n")
    assert main(["watch", str(folder), "--once"]) == 0
    assert "┤" in capsys.readouterr().out
    (folder / "scalars.csv").write_text("iteration,env_steps,seed,return\n1,100,0,inf\n")
    assert main(["watch", str(folder), "--once"]) == 0
    assert "nothing to draw yet" in capsys.readouterr().out


def test_a_run_that_still_compiles_is_waited_for(tmp_path, capsys):
    with sole_writer(tmp_path / "a"):
        assert main(["watch", str(tmp_path / "a"), "--once"]) == 0
    out = capsys.readouterr().out
    assert "nothing to draw yet" in out and "━━ a        –  0 steps, compiling" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("{new}", "holds no run: there is no scalars.csv"),
        ("{run} --every 0", "--every (=0.0) must be a number of seconds above 0"),
        ("{run} --metric reward", ": metric 'reward' is not logged; there are: return"),
    ],
)
def test_what_cannot_be_watched_is_told(words, message, tmp_path, capsys):
    names = {"run": make_run(tmp_path / "a", 1), "new": tmp_path / "new"}
    assert main(["watch", *words.format(**names).split()]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
