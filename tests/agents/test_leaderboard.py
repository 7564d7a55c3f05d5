"""The leaderboard: what is run, kept and added, and who leads."""

import dataclasses
import errno
import itertools
import sys

import numpy as np
import pytest

import zoo
from agents.cli import main
from agents.experiments import Row, leaderboard
from agents.experiments.leaderboard import (
    BOARD,
    Table,
    check_label,
    entrant,
    fill,
    read_table,
    standings,
    twin,
)
from agents.experiments.leaderboard.table import Curve, thinned, write_table
from agents.experiments.results import RESULTS
from agents.experiments.runner import complete
from agents.learning import RTRL
from agents.running.folder import sole_writer
from tests.agents.test_experiments import TINY

FIRST = "RepeatPreviousEasy"
SMALL = dataclasses.replace(TINY, tune={}, claims=())


def row(task, memory, seed, final):
    return Row(task, memory, "", seed, 100, final, final, final)


def table(scores):
    rows = tuple(
        row(task, memory, seed, final)
        for (task, memory), finals in scores.items()
        for seed, final in enumerate(finals)
    )
    curves = tuple(Curve(r.environment, r.variant, r.seed, (0.5, r.final)) for r in rows)
    return Table(rows, curves, dict.fromkeys(scores, 12.0))


@pytest.mark.slow
def test_what_is_known_is_not_run_again(tmp_path):
    lines = []
    runs = list(itertools.product(SMALL.environments, SMALL.variants))
    found = fill(SMALL, Table(), tmp_path / "a", runs, scale="quick", say=lines.append)
    assert len(lines) == 4 and len(found.rows) == len(found.curves) == 12
    kept = read_table(tmp_path / "a")
    assert [r.seed for r in kept.rows] == [0, 1, 2] * 4
    assert kept.curves[0].values == pytest.approx(found.curves[0].values, rel=1e-3)
    assert set(kept.seconds) == {(t, m) for t in SMALL.environments for m in SMALL.variants}

    # What lacks is run, elsewhere too, to the same numbers.
    lines.clear()
    one = ("long", "one")
    lacking = dataclasses.replace(
        kept, rows=tuple(r for r in kept.rows if (r.environment, r.variant) != one)
    )
    again = fill(SMALL, lacking, tmp_path / "b", runs, scale="quick", say=lines.append)
    assert lines == ["runs/long/one: 200 steps, 3 seeds"]
    assert set(again.rows) >= {r for r in found.rows if (r.environment, r.variant) == one}

    with pytest.raises(ValueError, match=r"`memory` \(='gru'\) must be one of one, another"):
        fill(SMALL, Table(), tmp_path / "c", [("long", "gru")])


@pytest.mark.slow
def test_processes_share_a_folder_and_a_run_that_was_stopped_has_no_cost(tmp_path, monkeypatch):
    """What another wrote meanwhile is kept and not run again, and what it trains is left to it."""
    runs, lines = [("long", "one"), ("long", "another: (2)")], []
    elsewhere = fill(SMALL, Table(), tmp_path / "a", runs[1:], scale="quick")
    folder, module = tmp_path / "b", sys.modules[fill.__module__]

    def interrupted(*arguments, **options):
        whole = complete(*arguments, **options)
        write_table(folder, elsewhere)
        return whole

    def taken(agent, folder, *rest, **options):
        with sole_writer(folder):
            raise AssertionError("it is taken")

    monkeypatch.setattr(module, "complete", interrupted)
    table = fill(SMALL, Table(), folder, runs, scale="quick", say=lines.append)
    assert lines == ["runs/long/one: 200 steps, 3 seeds"]
    assert len(table.rows) == len(read_table(folder).rows) == 6

    with sole_writer(folder / "runs/long/one"):
        (folder / RESULTS).unlink()
        assert not fill(SMALL, Table(), folder, runs[:1], scale="quick", say=lines.append).rows
        # Where it is taken after it was looked at, too.
        monkeypatch.setattr(module, "has_writer", lambda folder: False)
        monkeypatch.setattr(module, "complete", taken)
        assert not fill(SMALL, Table(), folder, runs[:1], scale="quick", say=lines.append).rows
        monkeypatch.undo()
    assert lines[1:] == ["runs/long/one: another process trains it"] * 2
    (folder / RESULTS).unlink()
    again = fill(SMALL, Table(), folder, runs[:1], scale="quick")
    assert np.isnan(again.seconds["long", "one"]) and not np.isnan(table.seconds["long", "one"])


def test_a_run_that_diverges_is_no_row_and_the_others_go_on(tmp_path, monkeypatch):
    asked = []

    def diverges(agent, folder, *others, **options):
        asked.append(folder.name)
        return False

    monkeypatch.setattr(sys.modules[fill.__module__], "complete", diverges)
    runs = [("long", memory) for memory in SMALL.variants]
    assert fill(SMALL, Table(), tmp_path, runs, scale="quick") == Table()
    assert len(asked) == 2 and read_table(tmp_path) == Table()


def test_a_run_in_which_no_episode_ends_is_no_row_and_is_told(tmp_path, monkeypatch):
    def complete(agent, folder, *others, **options):
        folder.mkdir(parents=True)
        lines = "iteration,env_steps,seed,return\n1,50,0,nan\n1,50,1,0.5\n"
        (folder / "scalars.csv").write_text(lines)
        return True

    said = []
    monkeypatch.setattr(sys.modules[fill.__module__], "complete", complete)
    runs = [("long", memory) for memory in SMALL.variants]
    assert fill(SMALL, Table(), tmp_path, runs, scale="quick", say=said.append) == Table()
    assert said[0] == "runs/long/one: no value of 'return' of seed 0, as where no episode ended"
    assert len(said) == 2


def test_a_table_is_read_as_it_was_written(tmp_path):
    written = table({("a", "mlp"): (0.0, 0.5), ("a", "x, y"): (np.nan, 1.0)})
    for folder in ("one", "other"):
        write_table(tmp_path / folder, written)
        written = read_table(tmp_path / folder)
    for name in ("results.csv", "curves.csv", "costs.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    assert read_table(tmp_path / "none") == Table()


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("curves.csv", lambda b: b[:-1], r"curves\.csv is damaged in line 3"),
        (
            "curves.csv",
            lambda b: b[: b.rindex(b"a,mlp")],
            r"curves\.csv has no line for mlp on a, ",
        ),
        ("curves.csv", lambda b: b[: b.rindex(b",") + 1] + b"\n", r"curves\.csv is damaged in li"),
        ("curves.csv", lambda b: b"", r"curves\.csv must have the columns environment, variant, s"),
        ("costs.csv", lambda b: b.replace(b",12", b""), r"costs\.csv is damaged in line 2"),
        (
            "costs.csv",
            lambda b: b[: b.index(b"a,")],
            r"costs\.csv has no line for mlp on a, seed 0",
        ),
        ("results.csv", lambda b: b + b"\xff\n", r"results\.csv is no text"),
        (
            "results.csv",
            lambda b: b + b[b.rindex(b"a,") :],
            r"results\.csv must have seeds from 0 on, each once, of mlp on a, not 0, 1, 1",
        ),
        (
            "results.csv",
            lambda b: b[: b.index(b"a,")] + b[b.rindex(b"a,") :],
            r"results\.csv must have seeds from 0 on, each once, of mlp on a, not 1",
        ),
    ],
)
def test_a_damaged_file_is_named(name, damage, message, tmp_path):
    write_table(tmp_path, table({("a", "mlp"): (0.0, 0.5)}))
    path = tmp_path / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path)


def test_a_full_disk_leaves_the_table_that_was_there(tmp_path, monkeypatch):
    first = table({("a", "mlp"): (0.0, 0.5)})
    write_table(tmp_path, first)

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("agents.running.files.os.fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*curves\.csv"):
        write_table(tmp_path, table({("a", "mlp"): (0.0, 0.5), ("b", "mlp"): (0.0, 0.5)}))
    assert read_table(tmp_path) == first


def test_curves_are_means_over_equal_parts():
    curve = np.arange(80.0)
    curve[6:8] = np.nan
    assert thinned(curve)[:5] == pytest.approx((0.5, 2.5, 4.5, np.nan, 8.5), nan_ok=True)
    assert thinned(curve[:3]) == (0, 1, 2)


def test_all_are_counted_on_the_same_tasks():
    scores = {
        ("a", "mlp"): (0.0, 0.1, 0.2),
        ("a", "good"): (0.9, 0.8, 1.0),
        ("b", "mlp"): (0.5, 0.5, 0.5),
        ("b", "good"): (0.4, 0.4, 0.4),
        ("c", "mlp"): (0.0, 0.0, 0.0),
        (twin("a"), "mlp"): (1.1, 1.1, 1.1),
        (twin("b"), "mlp"): (0.9, 0.51, 0.9),  # in one seed nothing to gain
    }
    tasks, (first, second) = standings(table(scores))
    assert tasks == ("a", "b")
    assert (first.memory, second.memory) == ("good", "mlp")
    assert first.mean[0] == pytest.approx(0.65) and first.better == pytest.approx(0.5)
    assert first.gain[0] == pytest.approx(0.8) and second.gain == (0, 0, 0)
    assert first.gain[1] < first.gain[0] < first.gain[2]
    assert np.isnan(standings(table({("a", "mlp"): (0.0, 1.0)}))[1][0].gain[0])
    assert standings(table(scores), ("b",))[1][0].memory == "mlp"
    assert [s.memory for s in standings(table(scores), ("c",))[1]] == ["mlp"]
    with pytest.raises(ValueError, match=r"`table` has no task of these with 'mlp'"):
        standings(table(scores), ("d",))
    for without in ({("a", "good"): (0.9,)}, {(twin("a"), "mlp"): (1.0,), ("a", "good"): (0.9,)}):
        with pytest.raises(ValueError, match=r"`table` has no task with 'mlp'"):
            standings(table(without))


def test_seeds_are_as_many_in_all_tasks_and_more_than_two_for_an_interval():
    one = table({("a", "mlp"): (0.0,), ("a", "x"): (1.0,)})
    _, (first, *_) = standings(one)
    assert first.mean[0] == 1 and np.isnan(first.mean[1:]).all() and np.isnan(first.iqm[1:]).all()
    two = {("a", "mlp"): (0.0, 0.1), ("a", "x"): (0.5, 0.8), (twin("a"), "mlp"): (1.0, 1.1)}
    _, (first, _) = standings(table(two))
    assert first.gain[0] == pytest.approx(0.6) and np.isnan(first.gain[1:]).all()
    mixed = table({("a", "mlp"): (0.0, 0.1, 0.2), ("b", "mlp"): (0.0,)})
    with pytest.raises(ValueError, match=r"as many seeds of 'mlp' in all tasks, not {'a': 3, 'b'"):
        standings(mixed)


def test_the_largest_part_without_holes_is_counted():
    ran = {"mlp": "abcd", "one": "abc", "two": "abcd", "late": "a"}
    scores = {(task, memory): (0.0, 1.0) for memory, tasks in ran.items() for task in tasks}
    tasks, found = standings(table(scores))
    assert tasks == ("a", "b", "c") and {s.memory for s in found} == {"mlp", "one", "two"}
    # A memory of one's own, on as many tasks as the others, or on fewer.
    own = {(task, "mine"): (0.0, 1.0) for task in tasks}
    assert len(standings(table({**scores, **own}))[1]) == 4
    tasks, found = standings(table({**scores, ("a", "mine"): (0.0, 1.0)}))
    assert tasks == ("a", "b", "c") and len(found) == 3


@pytest.mark.slow
def test_every_run_of_the_board_can_be_made():
    for task in leaderboard.tasks("Easy"):
        assert BOARD.agent(twin(task), "mlp", {}).steps_per_iteration == 8192
        for memory in BOARD.variants if task == "RepeatPreviousEasy" else ("gru",):
            BOARD.agent(task, memory, {})
    assert len(leaderboard.tasks()) == 48
    with pytest.raises(ValueError, match=r"`levels` \(='easy'\) must be of Easy, Medium, Hard"):
        leaderboard.tasks("easy")


def test_a_stranger_has_everybodys_settings():
    memory = zoo.spec("mgu", hidden=8)
    board = entrant(BOARD, "mine", memory, RTRL(4))
    mine, other = (board.agent("RepeatFirstEasy", name, {}) for name in ("mine", "gru"))
    assert dataclasses.replace(mine, memory=other.memory, gradient=other.gradient) == other
    for label in ("gru", " ", "a\nb", ".", ".."):
        with pytest.raises(ValueError, match=r"`label` \(="):
            entrant(BOARD, label, memory, RTRL(4))


@pytest.mark.slow
def test_a_label_is_of_one_memory(tmp_path):
    """What an earlier memory has left behind is not the next one's."""
    runs = [("long", "one")]
    known = fill(SMALL, Table(), tmp_path, runs, scale="quick")
    check_label(known, tmp_path, ["long"], "one")
    with pytest.raises(ValueError, match=r"`label` \(='one'\) must be a new one: .* have long by"):
        check_label(known, tmp_path / "elsewhere", ["long"], "one")
    other = {"one": {"discount": 0.8}}
    changed = dataclasses.replace(SMALL, variants={**SMALL.variants, **other})
    for table_of in (known, Table()):
        with pytest.raises(ValueError, match=r"differs in:\n  agent\.discount"):
            fill(changed, table_of, tmp_path, runs, scale="quick")


def test_the_command_shows_and_refuses(tmp_path, capsys):
    scores = dict.fromkeys([("a", "mlp"), (twin("a"), "mlp")], (0.0, 0.1, 0.2))
    write_table(tmp_path, table(scores | {("a", "x"): (1.0, 1.0, 1.0)}))
    write_table(tmp_path / "empty", Table())
    assert main(["leaderboard", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert shown.index("x ") < shown.index("mlp ") and "1.000 (1.000 to 1.000)" in shown
    for words, message in (
        (["show", "--out", str(tmp_path / "empty")], "the board is empty"),
        (
            ["show", "--out", str(tmp_path / "none")],
            "holds no board: there is no results.csv in it",
        ),
        (
            ["add", "--out", str(tmp_path / "empty"), "--memory", "gru", "--label", "a"],
            "the board is empty; `leaderboard run` fills it",
        ),
        (["add", "--out", str(tmp_path), "--memory", "gru"], "add needs --label"),
        (["show", "--memories", "gru"], "--memories has no meaning with `show`"),
        (["add", "--memories", "gru"], "--memories has no meaning with `add`"),
        (["show", "--hidden", "32"], "--hidden has no meaning with `show`"),
        (["run", "--gradient", "rtrl"], "--gradient has no meaning with `run`"),
        (["show", "--out", str(tmp_path), "--tasks", "b"], "--tasks (='b') must be one of a"),
        (["run", "--tasks", twin(FIRST)], f"--tasks (='{twin(FIRST)}') must be one of {FIRST}, "),
        (["show", "--out", str(tmp_path), "--tasks", twin("a")], "must be one of a.\n"),
        (["run", "--memories", "lstn"], "--memories (='lstn') must be one of"),
        (["run", "--label", "a"], "--label has no meaning with `run`"),
        (["show", "--scale", "nope"], "--scale (='nope') must be one of"),
        (["add", "--out", str(tmp_path), "--memory", "gru", "--label", "gru"], "the board has it"),
        (["add", "--out", str(tmp_path), "--memory", "gr", "--label", "a"], "Did you mean gru"),
        (
            ["run", "--out", str(tmp_path), "--tasks", "a"],
            "--tasks (='a') must be one of RepeatPreviousEasy",
        ),
    ):
        assert main(["leaderboard", *words]) == 2
        assert message in capsys.readouterr().err


def test_what_was_run_is_kept_where_nothing_can_be_ranked(tmp_path, capsys, monkeypatch):
    """As a memory of one's own on a task that was not run without memory, or one that diverged."""
    words = ["run", "--memories", "mingru", "--tasks", FIRST, "--out", str(tmp_path)]
    for filled, message in (
        (table({(FIRST, "mingru"): (0.5,)}), "ranked: `table` has no task of these with 'mlp'"),
        (Table(), "ranked: the board is empty"),
    ):
        monkeypatch.setattr(leaderboard, "fill", lambda *a, found=filled, **options: found)
        assert main(["leaderboard", *words]) == 0
        shown = capsys.readouterr().out
        assert message in shown and "results: " in shown
