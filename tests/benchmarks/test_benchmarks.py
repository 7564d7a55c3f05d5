"""The benchmarks run, print finite ratios, and compare programs that compute the same thing."""

import importlib
import json
import math
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import filelock
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tyro

import scan
import zoo
from agents import envs
from benchmarks import (
    _alternatives,
    _chips,
    _differences_rules,
    _measure,
    _online,
    _packages,
    against,
    communication,
    compiled,
    conditioning,
    depth,
    differences,
    gradients,
    kernel,
    learning,
    matrices,
    memory_chain,
    newton,
    ppo,
    replay,
    returns,
    rules,
    scans,
    start,
    streaming,
    sweeps,
    turns,
)
from benchmarks import all as everything
from benchmarks import envs as environments
from benchmarks import zoo as cells


def _check_ratios(rows):
    for row in rows:
        ratios = {key: value for key, value in row.items() if key.startswith("×")}
        assert ratios
        assert all(math.isfinite(value) and value > 0 for value in ratios.values()), row


@pytest.mark.slow
def test_against():
    here = str(against.ROOT)
    few = against.Options(here, quick=True, gradients=("BPTT",), encoder_sizes=(0,), cells=("mlp",))
    rows = against.run(few)["against"]
    assert [row["program"] for row in rows] == ["ppo BPTT 0", "cell mlp scan", "cell mlp gradient"]
    _check_ratios([{"×": row["× before"]} for row in rows])
    assert all(row["compile s before"] > 0 and row["compile s now"] > 0 for row in rows)
    with pytest.raises(RuntimeError, match=r"'compile cell mlq scan' ended the process of .*'mlq'"):
        against.run(replace(few, gradients=(), cells=("mlq",)))


def test_what_is_neither_a_folder_nor_a_commit_is_compared_with_nothing():
    words = r"`before` \(='no-such-thing'\) must be a folder or a commit: .+"
    with pytest.raises(ValueError, match=words):
        against.run(against.Options("no-such-thing"))
    with pytest.raises(ValueError, match=r"`rounds` \(=1\) must be at least 2"):
        against.run(against.Options(str(against.ROOT), rounds=1))


@pytest.mark.slow
def test_communication(float32):
    (row,) = communication.run(communication.Options(quick=True))
    # 44 bytes more of each minibatch, and 12 of the rollout.
    assert row["all"] == row["gradients"] + 44 * row["minibatches"] + 12


@pytest.mark.slow
def test_compiled(float32, monkeypatch, tmp_path):
    """For a device that is here, as JAX's plugin for GPUs is not."""
    monkeypatch.setattr(compiled, "absent_gpus", lambda count: jax.devices("cpu")[:count])
    output = _measure.Output(json=tmp_path / "rows.json")
    tables = compiled.run(compiled.Options(quick=True, output=output))
    forms = ["step", "scan", "rtrl_scan", "rtrl_step"]
    assert [row["form"] for row in tables["cells"]] == 2 * forms
    assert {row["cell"] for row in tables["cells"]} == {"mlp", "lru"}
    assert [row["gradient"] for row in tables["ppo"]] == ["RTRL(8)"]
    for row in [*tables["cells"], *tables["ppo"]]:
        assert row["compile s"] > 0 and row["temp MB"] >= 0 and row["kernels"] >= 0
    assert tables["ppo"][0]["loops"] > 0 and tables["ppo"][0]["kernels"] > 0
    assert json.loads((tmp_path / "rows.json").read_text()).keys() >= tables.keys()


def test_gpus_that_are_not_here_want_the_plugin(monkeypatch):
    monkeypatch.setattr(_chips, "is_installed", lambda module: False)
    with pytest.raises(
        RuntimeError, match=r"by JAX's plugin, .*: pip install 'trace-zoo\[cuda12\]'"
    ):
        communication.run(communication.Options(gpus=2))
    with pytest.raises(ValueError, match=r"`gpus` \(=-1\) must be at least 1"):
        communication.run(communication.Options(gpus=-1))


def test_environments_that_devices_do_not_divide_are_refused(eight_devices):
    with pytest.raises(ValueError, match=r"`envs` \(=12\) must be divisible by 8 devices"):
        communication.run(communication.Options(envs=(16, 12)))


@pytest.mark.slow
def test_kernel(float32, capsys):
    (rows,) = kernel.run(kernel.Options(quick=True)).values()
    layouts = ("kernel chosen", "kernel 4x1x2x2x1x2", "kernel 4x1x2x1x2x1")
    assert [row["layout"] for row in rows] == 2 * ["tree", *layouts]
    assert all(row["error"] < 1e-6 for row in rows)
    _check_ratios(rows)
    if jax.default_backend() == "cpu":
        assert kernel.run(kernel.Options()) == {}
        assert "would be interpreted on this cpu" in capsys.readouterr().out


@pytest.mark.slow
def test_scans(float32, tmp_path, capsys):
    path = tmp_path / "rows.json"
    output = _measure.Output(markdown=True, json=path)
    tables = scans.run(scans.Options(quick=True, output=output))
    assert set(tables) == {"named", "layouts", "alternatives", "grid"}
    assert [row["solver"] for row in tables["alternatives"]] == 2 * [
        *("scan.linear auto", "lax.scan, unroll 1", "lax.scan, unroll 4", "tree"),
        "chunks of 4, two passes",
    ]
    for name in ("named", "grid"):
        for direction in ("forward", "gradient"):
            solvers = [r["solver"] for r in tables[name] if r["pass"] == direction]
            assert sorted(solvers) == sorted(scans.solvers())
    for rows in tables.values():
        _check_ratios(rows)
        assert all(row["temp MB"] >= 0 and row["compile s"] > 0 for row in rows)
    saved = json.loads(path.read_text())
    assert [row["solver"] for row in saved["grid"]] == [row["solver"] for row in tables["grid"]]
    assert "| solver |" in capsys.readouterr().out


@pytest.mark.slow
def test_zoo(float32, tmp_path):
    picture = tmp_path / "zoo.png"
    tables = cells.run(cells.Options(quick=True, picture=picture))
    assert [row["cell"] for row in tables["cells"]] == ["mlp", "lru", "tcn"]
    assert [row["cell"] for row in tables["memax"]] == ["lru"]
    _check_ratios(tables["cells"] + tables["memax"])
    assert picture.stat().st_size > 5000


@pytest.mark.slow
def test_matrices(float32):
    rows = matrices.run(matrices.Options(quick=True))
    assert [row["cell"] for row in rows] == ["mlstm"]
    assert all(row["difference"] < 1e-5 for row in rows)
    _check_ratios(rows)


@pytest.mark.slow
def test_streaming(float32):
    tables = streaming.run(streaming.Options(quick=True, optimizers=("adam",)))
    assert [row["gradient"] for row in tables["gradients"]] == ["RTRL", "TBPTT(1)", "TBPTT(2)"]
    assert [row["steps"] for row in tables["lengths"]] == [10, 20]
    first = tables["gradients"][1]
    for row in tables["gradients"]:
        speed = row["updates per second"]
        assert speed > 0
        ratio = speed / first["updates per second"]
        assert row["speed relative to TBPTT(1)"] == pytest.approx(ratio)
    assert all(row["microseconds per step"] > 0 for row in tables["lengths"])


@pytest.mark.slow
def test_ppo(float32):
    rows = ppo.run(ppo.Options(quick=True, choices=("RTRL(8), exact encoder",)))
    assert [(row["encoder"], row["gradient"]) for row in rows] == [
        (0, "BPTT"),
        (64, "BPTT"),
        (64, "RTRL(8), exact encoder"),
    ]
    assert all(row["environment steps per second"] > 0 for row in rows)
    with pytest.raises(ValueError, match=r"`choices` \(='RTRL\(2\)'\) must be among BPTT, TBPTT"):
        ppo.run(ppo.Options(quick=True, choices=("RTRL(2)",)))


@pytest.mark.slow
def test_replay(float32):
    rows = replay.run(replay.Options(quick=True))
    assert [row["sample"] for row in rows] == ["tape", "2 tapes", "segments of 4"]
    _check_ratios(rows)


@pytest.mark.slow
def test_returns(float32):
    rows = returns.run(returns.Options(quick=True))
    assert [row["what"] for row in rows] == ["discounted returns", "advantages"]
    _check_ratios(rows)


@pytest.mark.slow
def test_conditioning(float32, tmp_path):
    """Rows that are done are not measured again."""
    names, path = ("TD(.9)", "no memory"), tmp_path / "errors.csv"
    options = conditioning.Options(rows=names[:1], seeds=2, steps=200, out=path)
    first = conditioning.run(options)
    assert first["TD(.9)"].shape == (10, 2)
    second = conditioning.run(replace(options, rows=names))
    assert list(second) == ["no memory"]
    lines = [line.split(",") for line in path.read_text().splitlines()]
    assert [line[0] for line in lines] == ["row", "TD(.9)", "TD(.9)", "no memory", "no memory"]
    np.testing.assert_allclose([float(x) for x in lines[1][3:]], first["TD(.9)"][:, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("benchmark", "options", "rule"),
    [
        (conditioning, {"rows": ("TD(0)",), "seeds": 3}, "`seeds`.*must be as many as .* of 'TD"),
        (conditioning, {"out": Path("none/errors.csv")}, "`out`.*in a folder that there is"),
        (memory_chain, {"out": Path("none/chain.csv")}, "`out`.*in a folder that there is"),
        (memory_chain, {"steps": 30}, r"`points` \(=40\) must be 1 to `steps` \(=30\)"),
        (rules, {"out": Path("none/rules.csv")}, "`out`.*in a folder that there is"),
        (rules, {"rules": ("snap0", "snap2")}, r"`rules` \(='snap2'\) must be among exact, snap1"),
        (rules, {"rules": ("snap0",)}, r"`rules` \(=\('snap0',\)\) must hold exact and snap0"),
        (rules, {"updates": 3, "every": 2}, r"`updates` \(=3\) must be a multiple of `every`"),
        (sweeps, {"workers": 1}, r"`workers` \(=1\) must be at least 2"),
        (cells, {"picture": Path("none/zoo.png")}, "`picture`.*in a folder that there is"),
        (
            cells,
            {"picture": Path("zoo.foo")},
            r"`picture` \(=zoo.foo\) must end in .png, .pdf, .svg",
        ),
        (rules, {"out": Path("rules.png")}, r"`out` \(=rules.png\) must end in .csv"),
        (memory_chain, {"steps": 50}, r"`steps` \(=50\) must be a multiple of `points` \(=40\)"),
        (conditioning, {"steps": 25}, r"`steps` \(=25\) must be a multiple of 10"),
        (conditioning, {"rows": ("TD(7)",)}, r"`rows` \(='TD\(7\)'\) must be among .*TD\(0\)"),
        (newton, {"cells": ("lru",)}, r"`cells` \(='lru'\) must be among .*elstm"),
        (learning, {"names": ("ppo",)}, r"`names` \(='ppo'\) must be among dqn, pqn, sac, td3"),
        (matrices, {"times": (8,)}, r"`times` \(=\(8,\)\) must be as many as `widths` \(=\(16, 32"),
        (
            everything,
            {"parts": ("depth",), "few": True, "out": Path("none")},
            r"`parts` \(=depth\) must hold one with `few` sizes: kernel, scans",
        ),
    ],
)
def test_what_would_fail_in_the_end_is_refused_before(benchmark, options, rule):
    with pytest.raises(ValueError, match=rule):
        benchmark.run(benchmark.Options(**options))


def test_a_file_of_rows_has_to_have_a_folder():
    with pytest.raises(ValueError, match=r"`json`.*in a folder that there is"):
        _measure.Output(json=Path("none/rows.json"))


@pytest.mark.slow
def test_no_folder_of_compiled_programs_is_read_or_written(tmp_path):
    kept = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    kept |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    code = (
        "import pathlib, sys; from benchmarks import _command, returns\n"
        "for path in pathlib.Path(sys.argv.pop(1)).iterdir(): path.unlink()  # of importing\n"
        "_command.command(returns.run, returns.Options, None)"
    )
    words = [sys.executable, "-c", code, str(tmp_path), "--quick"]
    subprocess.run(words, env={**os.environ, **kept}, check=True, capture_output=True)
    assert not list(tmp_path.iterdir())


def test_sequences_are_cut_into_whole_pieces():
    steps = {name: gradients.steps_of(g) for name, g in gradients.GRADIENTS.items()}
    assert {steps[name] for name in ("BPTT", "RTRL segment", "grad of rtrl_step loop")} == {1}
    assert (steps["TBPTT(8)"], steps["rtrl.accumulate(32)"]) == (8, 32)


@pytest.mark.slow
def test_learning(float32, tmp_path):
    options = learning.Options(names=("dqn",), seeds=2, steps=512, out=tmp_path)
    assert set(learning.run(options)["dqn"]) == {"lru", "mlp"}
    lines = (tmp_path / "dqn.csv").read_text().splitlines()
    assert lines[0] == "memory,environment steps,seed,evaluation return" and len(lines) == 9
    assert (tmp_path / "dqn.png").stat().st_size > 5000


@pytest.mark.slow
def test_newton(float32):
    rows = newton.run(newton.Options(quick=True))
    assert [(row["cell"], row["pass"]) for row in rows] == [
        (cell, kind) for cell in ("elstm", "gru") for kind in ("forward", "gradient")
    ]
    assert all(0 < row["iterations"] <= 8 for row in rows)  # as many as steps at most
    _check_ratios(rows)


@pytest.mark.slow
def test_turns(float32, capsys):
    rows = turns.run(turns.Options(quick=True))
    assert [(row["pass"], row["steps of a turn"]) for row in rows] == [
        (kind, way) for kind in ("forward", "gradient") for way in ("one by one", "2", "Newton")
    ]
    _check_ratios(rows)
    if jax.default_backend() == "cpu":
        assert turns.run(turns.Options()) == []
        assert "a CPU goes step by step" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("name", "hidden"), [("rtu", 4), ("gru", 8), ("mlp", 8), ("fwp", 3)])
def test_cells_are_compared_at_equal_state(name, hidden):
    assert cells.hidden_for(name, 8, 3) == hidden


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "constant"),
    [("complex64", False), ("float32", True)],
)
def test_solvers_agree(dtype, constant):
    given = scans.arguments(5, (2, 3), dtype, constant)
    solvers = scans.solvers()
    results = {
        name: jax.jit(lambda *a, s=s: (s(*a), scans.with_gradient(s)(*a)))(*given)
        for name, s in solvers.items()
    }
    for name, result in results.items():
        jax.tree.map(
            lambda x, y, name=name: np.testing.assert_allclose(x, y, 1e-4, 1e-4, err_msg=name),
            result,
            results[scans.BASELINE],
        )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.complex128])
def test_alternatives_are_the_recurrence_and_its_gradient(dtype):
    rng = np.random.default_rng(0)
    turn = 1j if dtype == jnp.complex128 else 0
    normal = lambda *n: jnp.asarray(rng.normal(size=n) + turn * rng.normal(size=n))  # noqa: E731
    given = 0.9 * normal(8, 3), normal(8, 3), normal(3)
    ways = {"ours": scan.linear, **_alternatives.alternatives((1, 3, 256), (1, 2, 4, 256))}

    @jax.jit
    def all_of_them(*given):
        return {name: (way(*given), scans.with_gradient(way)(*given)) for name, way in ways.items()}

    results = all_of_them(*given)
    expected = results.pop("ours")
    for name, result in results.items():
        jax.tree.map(
            lambda x, y, name=name: np.testing.assert_allclose(x, y, 1e-12, 1e-12, err_msg=name),
            result,
            expected,
        )
    with pytest.raises(ValueError, match=r"`steps` \(=3\) must divide the number of steps of time"):
        _alternatives.in_chunks(*given, steps=3)


def test_large_shapes_are_left_out_and_said_so():
    (row, _) = scans.rows_for(65_536, (16, 256), "complex64", False, _measure.QUICK)
    assert row["note"] == "skipped: an array of 2.1 GB"
    assert scans.skipped(65_536, (256,), "complex64", True) == {
        scans.BASELINE: "skipped: minutes and its whole tree in memory"
    }
    assert scans.skipped(1024, (16, 256), "complex64", True) == {}


@pytest.mark.slow
def test_gradients(float32, capsys):
    tables = gradients.run(gradients.Options(quick=True))
    assert set(tables) == {"online", "gradients"}
    online = {row["online loop"]: row for row in tables["online"]}
    assert set(online) == {gradients.OURS, gradients.OURS_BEHIND, gradients.PLAIN}
    assert all(row["gradient's relative difference"] < 1e-4 for row in online.values())
    ours, plain = (
        online[name]["sensitivity kB per environment"] for name in (gradients.OURS, gradients.PLAIN)
    )
    assert ours == plain / 2
    for rows in tables.values():
        _check_ratios(rows)
    assert {row["gradient"] for row in tables["gradients"]} >= {"BPTT", "RTRL segment"}


@pytest.mark.slow
def test_rules(float32, tmp_path):
    out = tmp_path / "rules.csv"
    some = ("exact", "snap0", "snap1", "uoro")
    rows = rules.run(rules.Options(quick=True, rules=some, out=out))["rules"]
    _check_ratios(rows)
    found = {(row["cell"], row["rule"]): row for row in rows}
    assert {rule for cell, rule in found if cell == "elman"} == {*some}
    assert {rule for cell, rule in found if cell == "elstm"} == {"exact", "snap0"}
    for (cell, rule), row in found.items():
        cosines = row["cosine, first half"], row["cosine, second half"]
        # Sequences of three steps: all but the exact one lose a little.
        assert all((abs(c - 1) < 1e-5) == (rule == "exact") and abs(c) <= 1 + 1e-5 for c in cosines)
        exact = found[cell, "exact"]["kept bytes"]
        if rule == "snap1":
            assert 2 * row["kept bytes"] == exact  # of two units
        assert (row["kept bytes"] == 0) == (rule == "snap0")
    assert out.with_suffix(".png").exists()
    # The cosine and the error of both seeds, under the heading.
    assert len(out.read_text().splitlines()) == 1 + 2 * 2 * len(rows)


@pytest.mark.slow
def test_depth(capsys):
    tables = depth.run(depth.Options(quick=True, output=_measure.Output(markdown=True)))
    (every,), (lowest,) = tables["all"], tables["lowest"]
    assert (every["cell"], every["layers"]) == ("rtu", 2)
    assert 0 < every["exact credit: error"] < 1e-12
    for row in (every, lowest):
        assert row["RTRL(4)"] == pytest.approx(1, abs=1e-12)  # one segment is BPTT
        assert row["TBPTT(2)"] < row["RTRL(2)"] < 1 - 1e-6 and "TBPTT(4)" not in row
    assert "| cell | layers | RTRL(2) |" in capsys.readouterr().out


@pytest.mark.slow
def test_envs(float32, capsys):
    output = _measure.Output(markdown=True)
    ours, alone = environments.run(environments.Options(quick=True, output=output))["envs"]
    assert (ours["environment"], ours["package"]) == ("RepeatPreviousEasy", "popgym")
    for num_envs in (1, 4):
        assert ours[f"× {num_envs}"] == pytest.approx(
            ours[f"steps/s, {num_envs}"] / ours["package's steps/s"]
        )
    assert alone["package"] == "" and "× 1" not in alone
    _check_ratios([ours])
    assert all(row["compile s"] > 0 and row["steps/s, 4"] > 0 for row in (ours, alone))
    assert "| RepeatPreviousEasy | popgym |" in capsys.readouterr().out


@pytest.mark.slow
def test_every_environment_is_measured_once_and_against_its_package():
    names = environments.distinct()
    assert {"RepeatPreviousEasy", "gravity", "brax/ant"} <= set(names) <= set(envs.names())
    assert not {"RepeatPrevious", "brax/ant-P", "brax/reacher-pomdp"} & set(names)
    found = {name: (_packages.package_of(name) or ("",))[0] for name in names}
    assert found["MemoryS7"] == "minigrid" and found["gravity"] == found["brax/ant"] == ""
    assert sum(package == "popgym" for package in found.values()) == 3 * 16


@pytest.mark.slow
def test_environments_start_all_over_an_episode(float32):
    env, params = envs.make("RepeatPreviousEasy")
    states = environments.spread(env, params, 256)
    assert len(np.unique(states.time)) > 40
    run, arguments = environments.program(env, params, 256, 2, states)
    after, (_, _, terminated, _) = jax.jit(run)(*arguments)
    np.testing.assert_array_equal(terminated > 0, states.time >= 49)
    np.testing.assert_array_equal(after.time, (states.time + 2) % 51)


@pytest.mark.slow
def test_sensitivity_of_the_named_cell_is_at_most_51_kilobytes(float32):
    cell = gradients.make_cell("rtu", 96, 64)
    assert _measure.tree_bytes(cell.rtrl_init()) <= 51_000


@pytest.mark.slow
def test_plain_traces_have_the_gradient_of_rtrl_step():
    cell = gradients.make_cell("rtu", 5, 3)
    cell = jax.tree.map(lambda x: x.astype(jnp.float64), cell)
    _, xs, targets = gradients.make_data(cell, 12, 4)
    carry = _online.library_carry(cell, 4)
    parameters = _online.plain_parameters(cell)
    total = jax.jit(_online.total_gradient, static_argnums=0)
    ours = total(_online.library_step, cell, carry, xs, targets)
    plain = total(_online.plain_step, parameters, _online.plain_carry(parameters, 4), xs, targets)
    for name, gradient in _online.plain_parameters(ours).items():
        np.testing.assert_allclose(gradient, plain[name], rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.slow
def test_gradients_agree_where_they_are_exact():
    cell = gradients.make_cell("rtu", 4, 3)
    cell = jax.tree.map(lambda x: x.astype(jnp.float64), cell)
    _, xs, targets = gradients.make_data(cell, 16, 2)
    carry = _online.library_carry(cell, 2)
    results = {
        name: jax.jit(lambda c, *data, g=g: g(c, *data)[:2])(cell, carry, xs, targets)
        for name, g in gradients.GRADIENTS.items()
        if name not in ("rtrl.accumulate(1)", "rtrl.accumulate(32)")
    }
    truncated = results.pop("TBPTT(8)")
    reference = results.pop(gradients.BASELINE)
    for name, result in results.items():
        jax.tree.map(
            lambda x, y, name=name: np.testing.assert_allclose(x, y, 1e-9, 1e-12, err_msg=name),
            result,
            reference,
        )
    np.testing.assert_allclose(truncated[0], reference[0], rtol=1e-9)
    assert not np.allclose(truncated[1].parameters.w1, reference[1].parameters.w1, rtol=1e-3)


def test_measurements_are_medians_of_what_ran(float32):
    m = _measure.measure(lambda x: x + 1, jnp.zeros(8, jnp.float32), budget=_measure.QUICK)
    assert m.run_seconds > 0 and m.compile_seconds > 0
    assert (m.argument_bytes, m.output_bytes) == (32, 32)
    assert _measure.copy_seconds(1 << 12, budget=_measure.QUICK) > 0
    assert "cpu" in _measure.device() or jax.default_backend() != "cpu"


def test_a_run_ends_with_its_last_output_and_the_median_of_runs_counts(monkeypatch):
    clock, waited = iter(range(100)), []
    monkeypatch.setattr(_measure.time, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(_measure.jax, "block_until_ready", waited.append)

    def program(x):
        next(clock)  # takes a second more
        return x

    assert _measure._run(program, (1,)) == 2.0 and waited == [1]
    runs = iter([1.0, 1.0, 9.0, 2.0, 4.0])
    monkeypatch.setattr(_measure, "_run", lambda *_: next(runs))
    monkeypatch.setattr(_measure, "_compile", lambda *_: (0.5, lambda x: x))
    monkeypatch.setattr(_measure, "temp_bytes", lambda _: 0.0)
    budget = _measure.Budget(seconds=0.0, least=3, most=3, compilations=1)
    m = _measure.measure(lambda x: x, jnp.zeros(2), budget=budget)
    assert (m.run_seconds, m.compile_seconds) == (4.0, 0.5)


def test_a_short_program_of_a_gpu_stands_several_times_in_one(float32, monkeypatch):
    monkeypatch.setattr(_measure, "_on_cpu", lambda: False)
    function, given = lambda x, key: x + 1, (jnp.ones(3), jax.random.key(0))
    m = _measure.measure(function, *given, budget=_measure.QUICK)
    assert m.run_seconds > 0 and m.output_bytes == 12
    found = jax.jit(_measure._several(function))(*_measure._copies(given))
    np.testing.assert_array_equal(found, np.full((_measure._TIMES, 3), 2.0))


def test_processes_measure_in_turn(tmp_path, monkeypatch):
    path = str(tmp_path / "lock")
    with _measure.device_alone():
        pass  # nobody is beside this one
    monkeypatch.setenv(_measure.LOCK, path)
    with _measure.device_alone(), pytest.raises(filelock.Timeout):
        filelock.FileLock(path).acquire(timeout=0)
    held, run = [], _measure._run

    def look(*given):
        try:
            filelock.FileLock(path).acquire(timeout=0)
            held.append(False)
        except filelock.Timeout:
            held.append(True)
        return run(*given)

    monkeypatch.setattr(_measure, "_run", look)
    _measure.measure(lambda x: x + 1, jnp.zeros(2), budget=_measure.QUICK)
    assert len(held) >= 4 and all(held), "something runs while another process measures"


@pytest.mark.slow
def test_differences(float32, capsys):
    output = _measure.Output(markdown=True)
    tables = differences.run(differences.Options(quick=True, output=output))
    rows = [row for table in tables.values() for row in table]
    assert [row["row"] for row in rows] == list(differences.QUICK)
    assert all(row["there"] != row["by the source"] for row in rows)
    page = (Path(__file__).parents[2] / "docs" / "known-differences.md").read_text()
    shown, printed = (
        {cells[0]: cells[2:] for cells in rows if cells[0] in differences.ROWS}  # of any version
        for rows in (
            [line.removeprefix("| ").split(" | ") for line in text.splitlines()]
            for text in (page, capsys.readouterr().out)
        )
    )
    assert set(shown) == set(differences.ROWS) and set(printed) == set(differences.QUICK)
    assert printed.items() <= shown.items()
    with pytest.raises(ValueError, match=r"`rows` \(='gru'\) must be among linear_attention, "):
        differences.run(differences.Options(rows=("gru",)))


@pytest.mark.slow
def test_differing_rules_are_right_without_their_difference():
    right = _differences_rules.by_traces(phase_factor=True, log_gamma=False)
    for found, expected in zip(right, _differences_rules.autodiff(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_start():
    (row,) = start.run(start.Options(quick=True))["start"]
    assert row["start"] == "--help" and row["wall s"] > 0 and row["processor s"] > 0


@pytest.mark.slow
def test_a_part_that_fails_loses_nothing_of_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(everything, "PARTS", {"absent": 1.0, "_measure": 1.0})
    options = everything.Options(out=tmp_path, parts=("absent", "_measure"))
    outcomes = everything.run(options)
    assert outcomes["absent"].startswith("failed after")
    assert outcomes["_measure"].startswith("done in")
    assert "No module named benchmarks.absent" in (tmp_path / "absent.txt").read_text()
    side_by_side = everything.run(replace(options, together=2))
    assert side_by_side.keys() == outcomes.keys()
    assert side_by_side["_measure"].startswith("done in")
    assert everything.run(replace(options, minutes=0.0)) == {
        "absent": "not done within 0 s",
        "_measure": "not done within 0 s",
    }
    lines = (tmp_path / "summary.txt").read_text().splitlines()
    assert lines == ["absent: not done within 0 s", "_measure: not done within 0 s"]
    with pytest.raises(ValueError, match=r"`parts` \(='ppo'\) must be among absent, _measure"):
        everything.run(replace(options, parts=("ppo",)))


def test_the_few_sizes_are_words_of_their_benchmarks():
    assert set(everything.FEW) <= set(everything.PARTS)
    for name, words in everything.FEW.items():
        options = importlib.import_module(f"benchmarks.{name}").Options
        assert tyro.cli(options, args=shlex.split(words)) != options()
    choices = tyro.cli(ppo.Options, args=shlex.split(everything.FEW["ppo"])).choices
    assert set(choices) <= set(ppo.CHOICES)


@pytest.mark.slow
def test_kills():
    """In a process of its own: forks must not have JAX's threads."""
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.kills"]
    done = subprocess.run(
        [*words, "--kills", "2", "--chain", "2", "--writers", "1"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'wrong': [], " in done.stdout and "'wrong pairs': []" in done.stdout


@pytest.mark.slow
def test_kills_of_a_sweep():
    words = [sys.executable, "-m", "benchmarks.sweep_kills", "--kills", "1"]
    done = subprocess.run(
        [*words, "--iterations", "40"], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'wrong': []}" in done.stdout


def test_sweeps_are_compared_with_one_worker(monkeypatch):
    seconds = iter([9.0, 9.0, 4.0, 3.0, 6.0, 3.0, 8.0, 2.0])
    monkeypatch.setattr(sweeps, "sweep_seconds", lambda *_: next(seconds))
    (row,) = sweeps.run(sweeps.Options(engines=("local",)))["sweeps"]
    assert (row["1 worker s"], row["2 workers s"]) == (6.0, 3.0)
    assert [row[name] for name in ("× of one", "least ×", "most ×")] == [0.5, 0.25, 0.75]


@pytest.mark.slow
def test_a_sweep_is_timed(tmp_path):
    options = sweeps.Options(runs=1, steps=2000)
    assert sweeps.sweep_seconds(options, "local", 1, tmp_path / "sweep") > 0
    assert (tmp_path / "sweep" / "runs" / "seed=0" / "learning_curve.png").exists()


@pytest.mark.slow
def test_a_step_of_rtrl_makes_its_sensitivity():
    """What nobody asks for is left out by XLA: the time would be of a step without it."""
    cell = eqx.filter_jit(lambda: zoo.get("rtu", hidden=2, inputs=3))()
    arrays, static = eqx.partition(cell, eqx.is_array)
    carry = jax.tree.map(lambda x: jnp.stack([x] * 4), (cell.init_state(), cell.rtrl_init()))
    gradient, new = jax.jit(cells.learning_step(static))(arrays, carry, jnp.ones((4, 3)))
    shapes = lambda tree: jax.tree.map(jnp.shape, tree)  # noqa: E731
    assert shapes(new) == shapes(carry) and shapes(gradient) == shapes(arrays)
    assert any(jnp.any(x != 0) for x in jax.tree.leaves(new[1]))
