"""Learning curves: reading, the confidence band, and what is drawn."""

import json
import re

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure

from agents.cli import main
from agents.running.curves import learning_curve
from agents.running.scalars import ScalarLog, default_metric, read_scalars
from agents.running.statistics import confidence_band, last_known, smooth, spread


def write_run(folder, *, seeds=3, iterations=20, lift=0.0, metrics=("return", "evaluation_return")):
    folder.mkdir()
    log = ScalarLog(folder / "scalars.csv", list(metrics), seeds=seeds)
    random = np.random.default_rng(seeds)
    for iteration in range(1, iterations + 1):
        level = np.tanh(iteration / 8) + lift
        row = {"return": level + random.normal(size=seeds) / 3}
        row["return"][0] = np.nan if iteration % 5 == 0 else row["return"][0]
        if "evaluation_return" in metrics and iteration % 4 == 0:
            row["evaluation_return"] = level + random.normal(size=seeds) / 9
        log.write(iteration, 1000 * iteration, row)
    log.close()
    return folder


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved."""
    figures = []
    savefig = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **k: (figures.append(self), savefig(self, *a, **k))
    )
    return figures


def test_scalars_are_read_by_iteration_and_seed(tmp_path):
    run = read_scalars(write_run(tmp_path / "a"))
    np.testing.assert_array_equal(run.iteration, np.arange(1, 21))
    np.testing.assert_array_equal(run.env_steps, 1000 * np.arange(1, 21))
    assert run.metrics["return"].shape == (20, 3)
    steps, values = run.curve("evaluation_return")
    np.testing.assert_array_equal(steps, [4000, 8000, 12000, 16000, 20000])
    assert not np.isnan(values).any()


def test_an_iteration_that_is_half_written_is_left_out(tmp_path):
    write_run(tmp_path / "a")
    with (tmp_path / "a" / "scalars.csv").open("a") as file:
        file.write("21,21000,0,1.0,\n21,21000,1,9")
    run = read_scalars(tmp_path / "a")
    assert run.iteration[-1] == 20
    assert run.metrics["return"].shape == (20, 3)


def test_what_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"holds no run: there is no scalars\.csv"):
        read_scalars(tmp_path)
    with pytest.raises(ValueError, match="there is no run to draw"):
        learning_curve({}, tmp_path / "a.png")


def test_an_unknown_or_empty_metric_is_named(tmp_path):
    run = read_scalars(write_run(tmp_path / "a", iterations=3))
    with pytest.raises(ValueError, match=r"metric 'reward' is not logged; there are: return, eval"):
        run.curve("reward")
    with pytest.raises(ValueError, match="'evaluation_return' has no finite value in this"):
        run.curve("evaluation_return")


def test_what_is_not_finite_is_left_out_of_the_picture(tmp_path, drawn):
    folder = write_run(tmp_path / "a", metrics=("return",))
    with (folder / "scalars.csv").open("a") as file:
        file.write("".join(f"21,21000,{seed},inf\n" for seed in range(3)))
    learning_curve({"a": folder}, tmp_path / "a.png")
    low, high = drawn[0].axes[0].get_ylim()
    assert -2 < low < high < 3
    (folder / "scalars.csv").write_text("iteration,env_steps,seed,return\n1,10,0,inf\n")
    with pytest.raises(ValueError, match="b: metric 'return' has no finite value"):
        learning_curve({"b": folder}, tmp_path / "a.png")


def test_the_default_metric_is_the_evaluation_that_all_runs_have(tmp_path):
    both = read_scalars(write_run(tmp_path / "a"))
    early = read_scalars(write_run(tmp_path / "b", iterations=3))
    none = read_scalars(write_run(tmp_path / "c", metrics=("return",)))
    assert default_metric([both]) == "evaluation_return"
    assert default_metric([both, early]) == "return"
    assert default_metric([both, none]) == "return"


def test_the_band_is_students_confidence_interval():
    from scipy import stats  # which takes half a second, of every worker that collects tests

    values = np.random.default_rng(0).normal(size=(6, 5))
    mean, half = confidence_band(values)
    scale = stats.sem(values, axis=1)
    low, high = stats.t.interval(0.95, df=4, loc=values.mean(axis=1), scale=scale)
    np.testing.assert_allclose(mean - half, low, rtol=1e-12)
    np.testing.assert_allclose(mean + half, high, rtol=1e-12)


def test_the_band_is_over_the_seeds_that_have_a_value():
    nan = np.nan
    mean, half = confidence_band(np.array([[1.0, nan, 3.0], [nan, 4.0, nan]]))
    np.testing.assert_array_equal(mean, [2, 4])
    _, expected = confidence_band(np.array([[1.0, 3.0]]))
    np.testing.assert_array_equal(half, [expected[0], nan])


def test_smoothing_averages_the_last_points_of_each_seed():
    nan = np.nan
    values = np.array([[1.0, 5.0], [3.0, nan], [8.0, 7.0], [10.0, 9.0]])
    np.testing.assert_array_equal(smooth(values, 1), [[1, 5], [3, 5], [8, 7], [10, 9]])
    np.testing.assert_allclose(smooth(values, 2), [[1, 5], [2, 5], [5.5, 7], [9, 8]])
    np.testing.assert_allclose(smooth(values, 100)[-1], [5.5, 7])
    with pytest.raises(ValueError, match=r"`smoothing` \(=0\) must be at least 1"):
        smooth(values, 0)


@pytest.mark.parametrize("huge", [np.inf, 1e20])
def test_one_huge_value_is_forgotten_after_the_window(huge):
    values = np.array([[1.0], [huge], [2.0], [3.0], [4.0]])
    np.testing.assert_allclose(smooth(values, 2)[3:, 0], [2.5, 3.5])


def test_a_seed_keeps_its_value_where_it_has_none():
    nan = np.nan
    values = np.array([[nan, 5.0], [3.0, nan], [nan, nan], [4.0, 9.0]])
    np.testing.assert_array_equal(last_known(values), [[nan, 5], [3, 5], [3, 5], [4, 9]])


@pytest.mark.slow
def test_a_curve_may_be_smoothed_by_its_number_of_points(tmp_path, drawn):
    folder = write_run(tmp_path / "a", iterations=160)
    for smoothing in (None, 3, 1):
        learning_curve({"a": folder}, tmp_path / "a.png", metric="return", smoothing=smoothing)
    of_points, of_three, of_one = (f.axes[0].get_lines()[0].get_ydata() for f in drawn)
    np.testing.assert_array_equal(of_points, of_three)
    assert not np.array_equal(of_points, of_one)


def test_several_runs_in_one_figure(tmp_path, drawn):
    runs = {"RTRL": write_run(tmp_path / "a"), "BPTT": write_run(tmp_path / "b", seeds=1, lift=1)}
    learning_curve(runs, tmp_path / "a.png", title="RepeatFirst")
    (axes,) = drawn[0].axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "RTRL (3 seeds)",
        "BPTT (1 seed)",
    ]
    assert axes.get_xlabel() == "environment steps (per seed)"
    assert axes.get_ylabel() == "return per episode (evaluation)"
    assert axes.get_title() == "RepeatFirst"
    assert len(axes.collections) == 1  # one seed has no band
    assert axes.get_legend().get_title().get_text() == "mean and 95 % confidence band"
    one, two = axes.get_lines()
    assert one.get_color() != two.get_color()
    steps, values = read_scalars(tmp_path / "a").curve("evaluation_return")
    np.testing.assert_array_equal(one.get_xdata(), steps)
    np.testing.assert_allclose(one.get_ydata(), values.mean(axis=1))
    assert matplotlib.image.imread(tmp_path / "a.png").shape == (630, 1050, 4)


def test_one_seed_has_no_band_and_no_word_of_it(tmp_path, drawn):
    learning_curve({"a": write_run(tmp_path / "a", seeds=1)}, tmp_path / "a.png", smoothing=3)
    (axes,) = drawn[0].axes
    assert not axes.collections
    assert axes.get_legend().get_title().get_text() == ""


def test_more_runs_than_colors_can_be_told_apart(tmp_path, drawn):
    folder = write_run(tmp_path / "a", seeds=1)
    learning_curve({str(n): folder for n in range(12)}, tmp_path / "a.png")
    looks = {(line.get_color(), line.get_linestyle()) for line in drawn[0].axes[0].get_lines()}
    assert len(looks) == 12


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, 5])
def test_many_names_stand_beside_the_curves(tmp_path, drawn, count):
    folder = write_run(tmp_path / "a", seeds=1)
    learning_curve({f"a memory, {n}": folder for n in range(count)}, tmp_path / "a.png")
    (axes,) = drawn[0].axes
    names, curves = axes.get_legend().get_window_extent(), axes.get_window_extent()
    assert (names.x0 >= curves.x1) == (count > 4)
    assert names.x1 <= drawn[0].bbox.x1
    assert curves.width > 5 * drawn[0].dpi


@pytest.mark.slow
@pytest.mark.parametrize(("count", "words"), [(25, "a"), (10, "learning_rate=0.0003," * 6)])
def test_as_many_names_as_there_are_have_room(tmp_path, drawn, count, words):
    folder = write_run(tmp_path / "a", seeds=1)
    title = 6 * "one of many "
    learning_curve({f"{words} {n}": folder for n in range(count)}, tmp_path / "a.png", title=title)
    (axes,) = drawn[0].axes
    names, picture = axes.get_legend().get_window_extent(), drawn[0].bbox
    assert axes.title.get_window_extent().x1 <= names.x0
    assert picture.y0 <= names.y0
    assert names.y1 <= picture.y1
    assert names.x1 <= picture.x1


def test_a_long_name_and_a_long_title_stay_in_the_picture(tmp_path, drawn):
    folder = write_run(tmp_path / "a", seeds=1)
    name, title = "learning_rate=3e-4,memory=" + 14 * "gru$lstm-", 14 * "one of many "
    learning_curve({name: folder}, tmp_path / "a.png", title=title)
    (axes,) = drawn[0].axes
    (shown,) = axes.get_legend().get_texts()
    said = "".join(shown.get_text().split())
    assert said.replace("\\$", "$") == f"{name}(1seed)"
    for text in (shown, axes.title):
        extent = text.get_window_extent()
        assert extent.x0 >= 0
        assert extent.x1 <= drawn[0].bbox.x1
    assert axes.get_window_extent().width > 5 * drawn[0].dpi


def test_drawing_leaves_no_global_figure(tmp_path):
    import matplotlib.pyplot as plt

    learning_curve({"a": write_run(tmp_path / "a")}, tmp_path / "a.png", metric="return")
    assert plt.get_fignums() == []


def test_of_two_seeds_the_band_is_their_range_and_of_one_there_is_none():
    nan = np.nan
    values = np.array([[1.0, 2.0, 6.0], [1.0, 2.0, nan], [nan, 2.0, nan]])
    mean, low, high = spread(values)
    expected, half = confidence_band(values[:1])
    np.testing.assert_array_equal(mean, [3, 1.5, 2])
    np.testing.assert_array_equal(low, [expected[0] - half[0], 1, nan])
    np.testing.assert_array_equal(high, [expected[0] + half[0], 2, nan])


@pytest.mark.parametrize("seeds", [2, 3])
def test_the_axis_holds_every_seed_and_no_band_rules_it(tmp_path, drawn, seeds):
    folder = write_run(tmp_path / "a", seeds=seeds)
    learning_curve({"a": folder}, tmp_path / "a.png")
    (axes,) = drawn[0].axes
    _, values = read_scalars(folder).curve("evaluation_return")
    margin = 0.05 * (values.max() - values.min())
    np.testing.assert_allclose(axes.get_ylim(), (values.min() - margin, values.max() + margin))
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.max() > axes.get_ylim()[1]) == (seeds == 3)
    words = {2: "mean and range of two seeds", 3: "mean and 95 % confidence band"}
    assert axes.get_legend().get_title().get_text() == words[seeds]


def write_values(folder, values):
    folder.mkdir()
    log = ScalarLog(folder / "scalars.csv", ["return"], seeds=values.shape[1])
    for iteration, row in enumerate(values, 1):
        log.write(iteration, 10 * iteration, {"return": row})
    log.close()
    return folder


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.ones((1, 2)), (0.45, 1.55)),
        (np.array([[1.0], [1 + 1e-15]]), (0.45, 1.55)),
        (np.full((2, 1), 1e17), (1e17 - 1.1e11, 1e17 + 1.1e11)),
    ],
)
def test_a_curve_that_does_not_change_can_be_drawn(tmp_path, drawn, values, expected):
    learning_curve({"a": write_values(tmp_path / "a", values)}, tmp_path / "a.png")
    assert drawn[0].axes[0].get_ylim() == pytest.approx(expected, rel=1e-12)


def test_a_seed_without_any_value_counts_nowhere(tmp_path, drawn, capsys):
    values = np.array([[1.0, 2.0, np.nan], [2.0, 3.0, np.inf]])
    folder = write_values(tmp_path / "a", values)
    assert main(["compare", str(folder), "--out", str(tmp_path / "a.png")]) == 0
    assert re.search(r"^a +2 +20 +2\.500 \(2\.000 and 3\.000\)", capsys.readouterr().out, re.M)
    legend = drawn[0].axes[0].get_legend()
    assert legend.get_title().get_text() == "mean and range of two seeds"
    assert legend.get_texts()[0].get_text() == "a (2 seeds)"


@pytest.mark.parametrize("statistic", ["mean", "iqm"])
def test_a_last_value_that_is_not_finite_counts_as_none(tmp_path, capsys, statistic):
    values = np.array([[1.0, 2.0, 3.0], [np.inf, 2.0, 3.0]])
    folder = write_values(tmp_path / "a", values)
    words = ["compare", str(folder), "--out", str(tmp_path / "a.png"), "--statistic", statistic]
    assert main(words) == 0
    assert re.search(r"^a +3 +20 +2\.000 ", capsys.readouterr().out, re.M)


def configure(folder, env, gradient):
    memory = {"name": "rtu", "hidden": 4, "layers": 1}
    agent = {"env": env, "env_options": {}, "memory": memory, "gradient": {"name": gradient}}
    (folder / "config.json").write_text(json.dumps({"agent": agent}))


@pytest.mark.slow
def test_each_environment_has_its_part_with_what_its_runs_share_above(tmp_path, drawn, capsys):
    settings = {"a": ("X", "RTRL"), "b": ("Y", "BPTT"), "c": ("X", "BPTT")}
    runs = {label: write_run(tmp_path / label, seeds=1) for label in settings}
    for label, given in settings.items():
        configure(runs[label], *given)
    words = ["compare", *map(str, runs.values()), "--out", str(tmp_path / "a.png")]
    assert main(words) == 0
    left, right = drawn[0].axes
    assert (left.get_title(), right.get_title()) == ("X: rtu of 4 units", "Y: rtu of 4 units, BPTT")
    assert [line.get_label() for line in left.get_lines()] == ["a (1 seed)", "c (1 seed)"]
    colors = [line.get_color() for axes in (left, right) for line in axes.get_lines()]
    assert len(set(colors)) == 3
    tables = capsys.readouterr().out.partition("\nY\n")
    lines = [table.splitlines() for table in (tables[0], tables[2])]
    rows = [[x.split()[0] for x in t if re.match(r"[abc] +1 ", x)] for t in lines]
    assert rows == [["a", "c"], ["b"]]
    assert main([*words, "--title", "mine"]) == 0
    assert drawn[1].get_suptitle() == "mine" and drawn[1].axes[0].get_title() == left.get_title()


def test_runs_of_several_environments_are_drawn_together_where_it_is_asked(tmp_path, drawn):
    runs = {label: write_run(tmp_path / label, seeds=1) for label in "abc"}
    for label, env in zip("abc", "XYX", strict=True):
        configure(runs[label], env, "RTRL")
    learning_curve(runs, tmp_path / "a.png", title="mine", together=True)
    (axes,) = drawn[0].axes
    assert axes.get_title() == "mine"
    assert [line.get_label()[0] for line in axes.get_lines()] == ["a", "b", "c"]
