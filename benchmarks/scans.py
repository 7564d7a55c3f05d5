"""`scan.linear` by each method against `jax.lax.associative_scan` and `jax.lax.scan`.

Forward, and with the gradient of a real loss with respect to a, b and h0. The named figure is
complex64, time-major, 1024 × 16 × 256. Beside each stand the bytes that it must read and write, by
its time, and those of a copy. `alternatives` are other ways to go through time, for devices with
many cores: loops of several steps at once, the tree, chunks in two passes.

    python -m benchmarks.scans --markdown
    python -m benchmarks.scans --times 1024 --widths 16x256 --dtypes complex64
"""

import itertools
import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import tyro

import scan
from benchmarks._alternatives import after, alternatives
from benchmarks._command import command
from benchmarks._measure import (
    QUICK,
    Budget,
    Measurement,
    Output,
    Row,
    compete,
    copy,
    heading,
    tree_bytes,
)
from benchmarks._measure import ratio as _ratio

BASELINE = "lax.associative_scan"
METHODS = ("auto", "sequential", "associative")
LARGEST_BYTES = 10**9
# The baseline's gradient keeps every level of its tree: minutes and many gigabytes above this.
LARGEST_BASELINE_GRADIENT = 65_536 * 256


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.scans` measures."""

    times: tuple[int, ...] = (128, 1024, 8192)
    """Numbers of steps."""
    widths: tuple[str, ...] = ("16", "16x256")
    """Features per step."""
    dtypes: tuple[Literal["float32", "complex64"], ...] = ("float32", "complex64")
    """Number types."""
    coefficients: tuple[Literal["varying", "constant"], ...] = ("varying", "constant")
    """One a per step, or one for all."""
    alternatives: tuple[str, ...] = ("1024x16x256", "16384x1x256")
    """Steps and features of the comparison with other ways to go through time."""
    unrolls: tuple[int, ...] = (1, 4, 16, 64, 256)
    """Steps of a loop's body among those."""
    chunks: tuple[int, ...] = (16, 64, 256)
    """Steps of a chunk among those."""
    named: bool = False
    """Only the named figure and the price of batch-major arrays."""
    budget: tyro.conf.OmitArgPrefixes[Budget] = field(default_factory=Budget)
    quick: bool = False
    """Small and short, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


_QUICK = {
    "times": (4,),
    "widths": ("2x3",),
    "dtypes": ("float32",),
    "coefficients": ("constant",),
    "alternatives": ("8x2x3",),
    "unrolls": (1, 4),
    "chunks": (4,),
    "budget": QUICK,
}


def _by_associative_scan(a, b, h0):
    b = b.at[0].add((a[0] if a.ndim == b.ndim else a) * h0)
    return jax.lax.associative_scan(after, (jnp.broadcast_to(a, b.shape), b))[1]


def _by_lax_scan(a, b, h0):
    def step(h, inputs):
        a_t, b_t = inputs
        h = (a if a_t is None else a_t) * h + b_t
        return h, h

    return jax.lax.scan(step, h0, (a if a.ndim == b.ndim else None, b))[1]


def _loss(solve, arguments):
    h = solve(*arguments)
    return 0.5 * jnp.sum(jnp.real(h) ** 2 + jnp.imag(h) ** 2)


def with_gradient(solve):
    """The loss and its gradient with respect to `(a, b, h0)`, as a function of them."""
    return lambda *arguments: jax.value_and_grad(partial(_loss, solve))(arguments)


def solvers() -> dict:
    """Every way to solve the recurrence, by name: functions of `(a, b, h0)`."""
    ours = {f"scan.linear {m}": partial(scan.linear, method=m) for m in METHODS}
    return {BASELINE: _by_associative_scan, "lax.scan": _by_lax_scan, **ours}


def arguments(time: int, features: tuple[int, ...], dtype: str, constant: bool):
    """Random `(a, b, h0)`, with |a| < 1."""
    keys = jax.random.split(jax.random.key(0), 3)
    shape = (time, *features)
    a = 0.9 * jax.random.uniform(keys[0], features if constant else shape, jnp.float32)
    if dtype == "complex64":
        a = a * jnp.exp(1j * a)
    b, h0 = jax.random.normal(keys[1], shape, dtype), jax.random.normal(keys[2], features, dtype)
    return a.astype(dtype), b, h0


def skipped(time: int, features: tuple[int, ...], dtype: str, gradient: bool) -> dict[str, str]:
    """Which solvers are left out for a shape, and why; `""` stands for all of them."""
    size = time * math.prod(features)
    if size * jnp.dtype(dtype).itemsize > LARGEST_BYTES:
        return {"": f"skipped: an array of {size * jnp.dtype(dtype).itemsize / 1e9:.1f} GB"}
    if gradient and size > LARGEST_BASELINE_GRADIENT // (1 + (dtype == "complex64")):
        return {BASELINE: "skipped: minutes and its whole tree in memory"}
    return {}


def rows_for(
    time: int, features: tuple[int, ...], dtype: str, constant: bool, budget: Budget
) -> list[Row]:
    """The rows of one shape: every solver, forward and with gradient."""
    rows = []
    for gradient in (False, True):
        case = {
            "time": time,
            "features": "×".join(map(str, features)),
            "dtype": dtype,
            "a": "constant" if constant else "varying",
            "pass": "gradient" if gradient else "forward",
        }
        skips = skipped(time, features, dtype, gradient)
        if "" in skips:
            rows.append({**case, "solver": "all", "note": skips[""]})
            continue
        given = arguments(time, features, dtype, constant)
        wrap = with_gradient if gradient else lambda solve: solve
        candidates = {n: (wrap(s), given) for n, s in solvers().items() if n not in skips}
        rows += [{**case, **row} for row in _compared(candidates, BASELINE, budget)]
        rows += [{**case, "solver": name, "note": why} for name, why in skips.items()]
    return rows


def _compared(candidates: dict, baseline: str, budget: Budget) -> list[Row]:
    function, given = next(iter(candidates.values()))
    moved = given, jax.eval_shape(function, *given)
    num_bytes = tree_bytes(moved)
    floor = "copy"
    results = compete({**candidates, floor: copy(num_bytes)}, budget=budget)
    copied = results.pop(floor)
    base = results.get(baseline)

    def row(name: str, m: Measurement) -> Row:
        return {
            "solver": name,
            "ms": m.run_seconds * 1e3,
            f"× faster than {baseline}": _ratio(base.run_seconds, m.run_seconds)
            if base
            else math.nan,
            "× copy": _ratio(m.run_seconds, copied.run_seconds),
            "GB/s": num_bytes / m.run_seconds / 1e9,
            "a copy's GB/s": num_bytes / copied.run_seconds / 1e9,
            "compile s": m.compile_seconds,
            "temp MB": m.temp_bytes / 1e6,
        }

    return [row(name, m) for name, m in results.items()]


def alternative_rows(
    sizes: tuple[int, ...], dtype: str, gradient: bool, options: Options
) -> list[Row]:
    """The rows of one shape, number type and pass: ours and every other way."""
    time, *features = sizes
    given = arguments(time, tuple(features), dtype, False)
    chunks = tuple(n for n in options.chunks if time % min(n, time) == 0)
    ways = {"scan.linear auto": scan.linear, **alternatives(options.unrolls, chunks)}
    wrap = with_gradient if gradient else lambda solve: solve
    candidates = {name: (wrap(solve), given) for name, solve in ways.items()}
    case = {
        "steps": time,
        "features": "×".join(map(str, features)),
        "dtype": dtype,
        "pass": "gradient" if gradient else "forward",
    }
    return [{**case, **row} for row in _compared(candidates, "tree", options.budget)]


def layouts(time: int, batch: int, width: int, budget: Budget) -> list[Row]:
    """Batch-major arrays under a plain `vmap` against time-major ones mapped over axis 1."""
    a, b, h0 = arguments(time, (batch, width), "complex64", False)
    axes = {"vmap(in_axes=1), time-major": 1, "vmap, batch-major": 0}
    rows = []
    for gradient in (False, True):
        wrap = with_gradient if gradient else lambda solve: solve
        candidates = {}
        for name, axis in axes.items():
            solve = jax.vmap(scan.linear, in_axes=(axis, axis, 0), out_axes=axis)
            given = (jnp.moveaxis(a, 1, axis), jnp.moveaxis(b, 1, axis), h0)
            candidates[name] = (wrap(solve), jax.block_until_ready(given))
        case = {"pass": "gradient" if gradient else "forward"}
        first = next(iter(axes))
        rows += [{**case, **row} for row in _compared(candidates, first, budget)]
    return rows


def run(options: Options) -> dict[str, list[Row]]:
    """Measure and print; returns the rows of every table by name.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    `named` (the named figure), `layouts`, and unless only the named figure was wanted
    `alternatives` and `grid`.
    """
    sizes = (1024, 16, 256)
    if options.quick:
        sizes, options = (5, 2, 4), replace(options, **_QUICK)
    budget = options.budget
    time, *features = sizes
    tables = {
        "named": rows_for(time, tuple(features), "complex64", False, budget),
        "layouts": layouts(*sizes, budget),
    }
    output = options.output
    output.table(heading("The named figure", budget=budget), tables["named"])
    output.table(f"Layouts of {'×'.join(map(str, sizes))} complex64", tables["layouts"])
    output.save(tables)
    if not options.named:
        tables["alternatives"] = []
        by_dtype = itertools.product(options.alternatives, options.dtypes, (False, True))
        for shape, dtype, gradient in by_dtype:
            rows = alternative_rows(tuple(map(int, shape.split("x"))), dtype, gradient, options)
            output.table(f"Ways through time: {shape}, {dtype}", rows)
            tables["alternatives"] += rows
            output.save(tables)
        cases = itertools.product(options.widths, options.dtypes, options.coefficients)
        shapes = [(tuple(map(int, w.split("x"))), d, c == "constant") for w, d, c in cases]
        tables["grid"] = []
        for time in options.times:
            rows = [row for shape in shapes for row in rows_for(time, *shape, budget)]
            output.table(f"{time:,} steps", rows)
            tables["grid"] += rows
            output.save(tables)
    return tables


if __name__ == "__main__":
    command(run, Options, __doc__)
