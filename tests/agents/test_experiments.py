"""Experiments: what is run, what is judged, and that both can be repeated."""

import dataclasses
import itertools
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import agents
from agents import experiments
from agents.cli import main
from agents.experiments import Better, Experiment, Lines, Reaches, Scale
from agents.experiments.results import rows_of, write_rows
from agents.running.folder import CHECKPOINT

LENGTHS = {"short": {"env_options": {"length": 1}}, "long": {"env_options": {"length": 2}}}
TINY = Experiment(
    name="tiny",
    question="Does a rate matter?",
    source="ours",
    algorithm="tabular",
    base={"env": "t_maze", "rollout_length": 50},
    environments=LENGTHS,
    variants={"one": {"discount": 0.9}, "another: (2)": {"discount": 0.5}},
    tune={"learning_rate": (0.1, 0.5)},
    scales={"quick": Scale(200, 3), "small": Scale(400, 3)},
    claims=(Better(text="It does.", better="one", than="another: (2)", environments=("long",)),),
)


@pytest.mark.quick_rows(4)
@pytest.mark.parametrize("name", experiments.names())
def test_every_run_of_an_experiment_can_be_made(name):
    experiment = experiments.load(name)
    assert experiment.name == name
    for environment in experiment.environments:
        for variant in experiment.variants:
            for tuned in experiment.candidates():
                agent = experiment.agent(environment, variant, tuned)
                assert all(agent.steps_per_iteration <= s.steps for s in experiment.scales.values())
    assert experiment.claims and experiment.differs


def test_rates_that_are_carried_elsewhere_are_those_that_were_chosen():
    table = Path(__file__).parents[2] / "docs/assets/experiments/tuned_memories.csv"
    chosen = {(row.variant, row.settings) for row in experiments.read_rows(table)}
    carried = experiments.load("tuned_elsewhere").variants
    assert {(v, f"learning_rate={s['learning_rate']:g}") for v, s in carried.items()} == chosen


@pytest.mark.slow
def test_it_is_judged_and_can_be_repeated(tmp_path, each_traced_once):
    lines = []
    options = {"scale": "quick", "say": lines.append}
    (other,) = {*TINY.variants} - {"one"}
    part = experiments.run(TINY, tmp_path / "a", variants=(other,), **options)
    assert len(lines) == 2 * 2 + 2 and not (tmp_path / "a" / "results.csv").exists()
    rows = experiments.run(TINY, tmp_path / "a", **options)
    assert part == [row for row in rows if row.variant == other]
    table = (tmp_path / "a" / "results.csv").read_bytes()
    # Two rates for each variant and environment on tuning seeds, and what is reported.
    assert len(lines) == 2 * 2 * 2 + 2 * 2
    assert len(rows) == 2 * 2 * 3
    assert experiments.read_rows(tmp_path / "a" / "results.csv") == [
        dataclasses.replace(row, **{n: float(f"{getattr(row, n):.6g}") for n in rows_numbers()})
        for row in rows
    ]
    for variant in TINY.variants:
        chosen = {row.settings for row in rows if row.variant == variant}
        assert len(chosen) == 1 and chosen < {"learning_rate=0.1", "learning_rate=0.5"}
    assert (tmp_path / "a" / "long.png").stat().st_size > 0
    [(claim, verdict)] = experiments.verdicts(TINY, rows)
    assert claim.text == "It does." and verdict.seeds == 3
    # Nothing is run that is there; what is gone is run again, to the same bytes.
    lines.clear()
    shutil.rmtree(tmp_path / "a" / "runs" / "long" / "one")
    (tmp_path / "a" / "tuning" / "short" / "one" / "1" / CHECKPOINT).unlink()
    shutil.rmtree(tmp_path / "a" / "tuning" / "short" / "one" / "1")
    experiments.run(TINY, tmp_path / "a", **options)
    assert [line.split(":")[0] for line in lines] == ["tuning/short/one/1", "runs/long/one"]
    assert (tmp_path / "a" / "results.csv").read_bytes() == table
    with pytest.raises(ValueError, match=r"`scale` \(='large'\) must be one of quick, small"):
        experiments.run(TINY, tmp_path / "a", scale="large")


@pytest.mark.slow
def test_a_run_that_is_not_whole_makes_no_rows(tmp_path):
    one = dataclasses.replace(
        TINY, environments={"long": LENGTHS["long"]}, variants={"one": {}}, tune={}, claims=()
    )
    rows = experiments.run(one, tmp_path, scale="quick")
    path = tmp_path / "runs" / "long" / "one" / "scalars.csv"
    header, *lines = path.read_text().splitlines(keepends=True)
    for left, message in ((lines[:6], "2 iterations .* first of them 3;"), (lines[3:], "them 1;")):
        path.write_text("".join([header, *left]))
        with pytest.raises(ValueError, match=rf"scalars\.csv lacks rows of .*{message}"):
            experiments.run(one, tmp_path, scale="quick")
    path.write_text("".join([header, *lines]))
    saved = path.with_name("checkpoint.eqx")
    whole = saved.read_bytes()
    saved.write_bytes(whole[:-9])
    with pytest.raises(ValueError, match=r"checkpoint\.eqx is truncated"):
        experiments.run(one, tmp_path, scale="quick")
    saved.write_bytes(whole)
    assert experiments.run(one, tmp_path, scale="quick") == rows
    shorter = dataclasses.replace(one, scales={"quick": Scale(100, 3), "small": Scale(400, 3)})
    with pytest.raises(ValueError, match=r"`steps` \(=100\) is less than the run in .* done: 200"):
        experiments.run(shorter, tmp_path, scale="quick")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "trainng"}, r"`kind` \(='trainng'\) must be one of training, cost"),
        ({"measure": "fnal"}, r"`measure` \(='fnal'\) must be one of final, best, area"),
        ({"environments": ["long"]}, r"`environments` \(=\['long'\]\) must be a Mapping"),
        ({"tune": {"rate": 1e-3}}, r"`tune` \(=0.001\) of 'rate' must be a list"),
        ({"tune": {"rate": "abc"}}, r"`tune` \(='abc'\) of 'rate' must be a list"),
        ({"claims": TINY.claims[0]}, r"`claims` \(=Better\(.*\) must be a list"),
        (
            {"variants": {"..": {}}},
            r"`variants` of 'tiny' have '\.\.', which no folder can be",
        ),
        ({"environments": {"": {}}}, "`environments` of 'tiny' have '', which no folder"),
        ({"tune": {"discount": ()}}, "`tune` of 'tiny' has no value for 'discount'"),
        ({"variants": {1: {}}}, r"`variants` \(=1\) of 'tiny' must be a string"),
        ({"variants": {"a": None}}, r"`variants\['a'\]` \(=None\) of 'tiny' must be a Mapping"),
        ({"tune": {1: (0.1,)}}, r"`tune` \(=1\) of 'tiny' must be a string"),
        (
            {"scales": {"quick": (1, 2), "small": Scale(1, 2)}},
            r"`scales\['quick'\]` \(=\(1, 2\)\) of 'tiny' must be a Scale",
        ),
        ({"environments": {}}, "`environments` of 'tiny' must have one at least"),
        (
            {"variants": {"a+b": {}, "a_b": {}}, "claims": ()},
            r"`variants` of 'tiny' have 'a\+b' and 'a_b', whose runs would be in one folder, a_b",
        ),
    ],
)
def test_what_is_wrong_with_an_experiment_is_named(change, message, unhooked):
    with pytest.raises((TypeError, ValueError), match=message):
        dataclasses.replace(TINY, **change)


def test_settings_that_are_wrong_are_told_before_anything_is_trained(tmp_path):
    wrong = {"one": {}, "two": {"discont": 0.5}}
    with pytest.raises(ValueError, match=r"`discont` \(=0.5\) of 'two' is not a setting of Tabu"):
        experiments.run(dataclasses.replace(TINY, variants=wrong, claims=()), tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"`metric` \(='retrun'\) must be one of .*return"):
        experiments.run(dataclasses.replace(TINY, metric="retrun"), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cut", [5, 20])
def test_a_table_that_is_torn_is_named_with_its_line(tmp_path, cut):
    path = tmp_path / "results.csv"
    write_rows(path, [experiments.Row("a", "b", "", s, 9, 1.0, 2.0, 3.0) for s in (0, 1)])
    path.write_text(path.read_text()[:-cut].rstrip("123.") + "x")
    with pytest.raises(ValueError, match=r"results\.csv is damaged in line [23]"):
        experiments.read_rows(path)


def rows_numbers():
    return ("final", "best", "area")


@pytest.mark.slow
def test_costs_are_measured_with_the_same_command(tmp_path, monkeypatch):
    costs = dataclasses.replace(
        TINY,
        kind="cost",
        tune={},
        metric="megabytes",
        variants={"large": {"rollout_length": 1000}, "small": {"rollout_length": 1}},
        environments={"recall": {"env": "recall"}},
        claims=(),
    )
    rows = experiments.run(costs, tmp_path, scale="quick")
    assert [row.seed for row in rows] == [0, 0, 1, 1, 2, 2]
    assert len({row.final for row in rows if row.variant == "large"}) == 1
    first = {row.variant: row for row in rows}
    assert first["large"].final > first["small"].final > 0
    assert (first["large"].steps, first["small"].steps) == (1000, 200)
    assert experiments.read_rows(tmp_path / "results.csv")[0].variant == "large"
    # A clock that moves by a second whenever it is read: an iteration takes one.
    clock = itertools.count()
    monkeypatch.setattr("agents.experiments.costs.time.perf_counter", lambda: float(next(clock)))
    times = dataclasses.replace(costs, metric="microseconds per step")
    rows = experiments.run(times, tmp_path, scale="quick")
    for row in rows:
        steps = times.variants[row.variant]["rollout_length"]
        assert (row.final, row.best, row.area) == pytest.approx((1e6 / steps,) * 3)


@pytest.mark.parametrize(
    ("changed", "variants", "message"),
    [
        ({}, ("one", "two"), r"`variants` \(='two'\) must be one of one, another: \(2\)\."),
        (
            {"kind": "cost", "tune": {}, "metric": "megabytes"},
            ("one",),
            r"`variants` \(=one\) must be left out of 'tiny', which measures costs",
        ),
    ],
)
def test_variants_that_cannot_be_run_are_named(changed, variants, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        experiments.run(
            dataclasses.replace(TINY, **changed), tmp_path / "a", scale="quick", variants=variants
        )
    assert not (tmp_path / "a").exists()


def best_value(agent, policy):
    """The highest value of a table; of another policy for each seed."""
    return float(policy.behavior.table.max())


@pytest.mark.slow
def test_a_probe_is_asked_of_every_seed(tmp_path):
    asked = dataclasses.replace(
        TINY, tune={}, environments={"short": LENGTHS["short"]}, claims=(), probe=best_value
    )
    rows = experiments.run(asked, tmp_path, scale="quick")
    for row in rows:
        folder = tmp_path / "runs" / "short" / row.variant.replace(": (2)", "___2_")
        value = best_value(None, agents.load_policy(folder, seed=row.seed))
        assert row.final == row.best == row.area == value
        assert row.steps == 200
    assert len({row.final for row in rows}) > 1


@pytest.mark.parametrize("answer", ["s", np.array([1.0, 2.0]), None, 1j])
def test_a_probe_that_does_not_answer_with_a_number_is_named(answer, tmp_path, monkeypatch):
    state = SimpleNamespace(iteration=np.ones(2, int))
    run = SimpleNamespace(steps_per_iteration=50), state, {"seeds": 2}
    monkeypatch.setattr("agents.experiments.results.load_run", lambda folder: run)
    monkeypatch.setattr("agents.experiments.results.policy_of", lambda *_: None)
    rows = rows_of(
        dataclasses.replace(TINY, probe=lambda *_: np.float32(3)), "long", "one", {}, tmp_path
    )
    assert [(row.steps, row.area) for row in rows] == [(50, 3.0)] * 2
    asked = dataclasses.replace(TINY, probe=lambda *_: answer)
    with pytest.raises(
        TypeError, match=r"`probe\(agent, policy\)` \(=.*\) must be one real number"
    ):
        rows_of(asked, "long", "one", {}, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("updates", [10, 1])  # an episode ends before it diverges, or none does
def test_a_run_that_diverges_is_a_result(updates, tmp_path, float32, each_traced_once):
    """It is never the best of what is tuned, its rows are NaN, and nothing is settled by it."""
    rates = {"steady": {"policy_rate": 0.1}, "wild": {"policy_rate": 3e38}}
    wild = dataclasses.replace(
        TINY,
        algorithm="tabular_actor_critic",
        base={"env": "t_maze", "updates": updates},
        environments={"short": LENGTHS["short"]},
        variants=rates,
        tune={"value_rate": (3e38, 0.1)},
        claims=(Better(text="Wild is better.", better="wild", than="steady"),),
    )
    lines = []
    rows = experiments.run(wild, tmp_path, scale="quick", say=lines.append)
    assert sum("training diverged in iteration" in line for line in lines) == 4
    chosen = {row.variant: row.settings for row in rows}
    assert chosen == {"steady": "value_rate=0.1", "wild": "value_rate=3e+38"}
    read = experiments.read_rows(tmp_path / "results.csv")
    assert [np.isnan(row.final) for row in read] == [False] * 3 + [True] * 3
    assert all(0 <= row.steps < 200 for row in read[3:])
    [(_, verdict)] = experiments.verdicts(wild, read)
    assert verdict.outcome == "not settled" and np.isnan(verdict.value) and verdict.seeds == 3
    # Whoever asks again meets the same end.
    table = (tmp_path / "results.csv").read_bytes()
    experiments.run(wild, tmp_path, scale="quick")
    assert (tmp_path / "results.csv").read_bytes() == table


def test_a_run_in_which_no_episode_ends_is_a_result(tmp_path, monkeypatch):
    """It is told, its rows are NaN, of what is tuned it is never the best, and others go on."""
    cells = {"1": ("nan", "nan"), "0": ("0.5", "nan")}  # by candidate, of both seeds

    def complete(agent, folder, *others, **options):
        folder.mkdir(parents=True)
        lines = [
            f"1,50,{seed},{x}\n" for seed, x in enumerate(cells.get(folder.name, (".5", ".6")))
        ]
        (folder / "scalars.csv").write_text("".join(["iteration,env_steps,seed,return\n", *lines]))
        return True

    monkeypatch.setattr("agents.experiments.runner.complete", complete)
    short = dataclasses.replace(TINY, environments={"short": LENGTHS["short"]}, claims=())
    options, said = {"scale": "quick", "variants": ("one",)}, []
    [row, _] = experiments.run(short, tmp_path / "a", say=said.append, **options)
    assert row.final == 0.5 and row.settings == "learning_rate=0.1"
    assert said == [
        f"tuning/short/one/{candidate}: no value of 'return' of seed {seeds}, as where no episode "
        "ended"
        for candidate, seeds in (("0", "1"), ("1", "0, 1"))
    ]
    cells |= {"0": (".1", ".2"), "one": ("nan", "nan")}
    rows = experiments.run(short, tmp_path / "b", **options)
    assert [r.steps for r in rows] == [50, 50] and np.isnan([r.area for r in rows]).all()
    assert rows[0].settings == "learning_rate=0.1"


def test_a_variant_may_name_another_algorithm():
    mixed = dataclasses.replace(
        TINY,
        variants={**TINY.variants, "n-step": {"algorithm": "tabular_actor_critic", "updates": 4}},
        base={"env": "t_maze"},
        tune={},
    )
    assert type(mixed.agent("long", "n-step", {})) is agents.TabularActorCritic
    assert type(mixed.agent("long", "one", {})) is agents.Tabular


def test_what_cannot_be_judged_is_refused():
    with pytest.raises(ValueError, match=r"`claims` of 'tiny' name 'c', which must be one of one"):
        dataclasses.replace(TINY, claims=(Reaches(text="", variant="c", value=0.0),))
    with pytest.raises(ValueError, match=r"`lines` of 'tiny' name 'c', which must be one of one"):
        dataclasses.replace(TINY, lines=Lines("x", {"line": {1: "one", 2: "c"}}))
    with pytest.raises(ValueError, match=r"`metric` \(='return'\) of 'tiny' must be one of micro"):
        dataclasses.replace(TINY, kind="cost", tune={})
    with pytest.raises(ValueError, match=r"`scales` \(=\['small'\]\) of 'tiny' must have quick"):
        dataclasses.replace(TINY, scales={"small": Scale(1, 1)})
    with pytest.raises(ValueError, match=r"`name` \(='stalenes'\) must be.*Did you mean staleness"):
        experiments.load("stalenes")
    with pytest.raises(ValueError, match=r"`scores` \(of 'a', 'b'\) must have those of 'c'"):
        Better(text="", better="a", than="c").judge({"a": np.ones((3, 1)), "b": np.ones((3, 1))})


def test_a_scale_is_of_whole_numbers(unhooked):
    with pytest.raises(ValueError, match=r"`seeds` \(=0\) must be a whole number of at least 1"):
        Scale(10, 0)
    with pytest.raises(TypeError, match=r"`steps` \(='1e3'\) must be a whole number"):
        Scale("1e3", 2)


@pytest.mark.slow
def test_the_command_lists_and_runs(tmp_path, capsys, monkeypatch):
    assert main(["experiment"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in experiments.names())
    assert main(["experiment", "stalenes"]) == 2
    assert "Did you mean staleness" in capsys.readouterr().err
    monkeypatch.setattr(experiments, "load", lambda name: dataclasses.replace(TINY, tune={}))
    words = ["experiment", "tiny", "--scale", "quick", "--out", str(tmp_path / "a")]
    assert main([*words, "--variants", "one"]) == 0
    text = capsys.readouterr().out
    assert text.count("200 steps, 3 seeds") == 2 and "runs:" in text and "results" not in text
    for lines in (2, 0):
        assert main(words) == 0
        text = capsys.readouterr().out
        assert text.count("200 steps, 3 seeds") == lines
        assert re.search(r"It does\. +│ (not )?(reproduced|settled) +│ -?\d\.\d+ +│", text)
    assert main([*words[:2], "--scale", "huge", "--out", str(tmp_path / "b")]) == 2
    assert "--scale (='huge') must be one of quick, small" in capsys.readouterr().err
    assert main(["experiment", "--variants", "one"]) == 2
    assert "--variants has no meaning without" in capsys.readouterr().err
