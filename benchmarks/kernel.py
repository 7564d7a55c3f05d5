"""Layouts of the kernel of `scan.linear` over the chip, against the tree and a copy's bandwidth.

For an NVIDIA GPU; elsewhere the kernel is interpreted, which says nothing. Forward and adjoint each
by itself: a row has the bytes that a pass must read and write by its time, as a share of what a
copy of as many reaches, and how far the values are from the tree's.

    python -m benchmarks.kernel --markdown
    python -m benchmarks.kernel --shapes 1024x16x256 --layouts 32x1x8x4x1x1 32x1x4x2x8x1
"""

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import tyro

from benchmarks import scans
from benchmarks._command import command
from benchmarks._measure import (
    QUICK,
    Budget,
    Output,
    Row,
    compete,
    computed,
    copy,
    heading,
    tree_bytes,
)
from benchmarks._measure import ratio as _ratio
from scan.methods import kernel, tree


@dataclass(frozen=True)
class Options:
    """What `python -m benchmarks.kernel` measures."""

    shapes: tuple[str, ...] = ("1024x16x256", "16384x1x256", "128x4096x64", "1024x16", "128x64x64")
    """Steps and features."""
    dtypes: tuple[Literal["float32", "complex64", "bfloat16"], ...] = ("complex64", "float32")
    """Number types."""
    coefficients: tuple[Literal["varying", "constant"], ...] = ("varying",)
    """One a per step, or one for all."""
    layouts: tuple[str, ...] = (
        *("32x1x8x2x1x1", "32x1x8x4x1x1", "32x1x32x1x1x1", "64x2x8x4x1x1", "128x4x8x1x1x1"),
        *("32x1x2x4x8x1", "32x1x2x2x16x1", "32x1x4x4x8x1", "32x1x8x1x12x1"),
        *("32x1x8x2x1x8", "32x1x8x4x1x32", "32x1x8x2x1x128"),
    )
    """Lanes, warps, steps of a tile, tiles, stages, chunks; beside what is chosen for the shape."""
    budget: tyro.conf.OmitArgPrefixes[Budget] = field(
        default_factory=lambda: Budget(seconds=0.2, compilations=1)
    )
    quick: bool = False
    """Small and short, to see that it works."""
    output: tyro.conf.OmitArgPrefixes[Output] = field(default_factory=Output)


_QUICK = {
    "shapes": ("8x2x3",),
    "dtypes": ("complex64",),
    "layouts": ("4x1x2x2x1x2", "4x1x2x1x2x1"),
    "budget": QUICK,
}


def rows_for(shape: tuple[int, ...], dtype: str, constant: bool, options: Options) -> list[Row]:
    """The rows of one shape: every layout, forward and adjoint."""
    a, b, h0 = scans.arguments(shape[0], shape[1:], dtype, constant)
    cotangent = jax.random.normal(jax.random.key(1), b.shape, dtype)
    solve = jax.jit(partial(tree.solve, reverse=False))
    passes = {
        "forward": ("solve", (a, b, h0, None)),
        "adjoint": ("adjoint", (a, solve(a, b, h0, None), h0, None, cotangent)),
    }
    layouts: dict[str, kernel.Tuning | None] = {"chosen": None}
    for words in options.layouts:
        tuning = kernel.Tuning(*map(int, words.split("x")))
        if tuning.chunks <= shape[0]:
            layouts[words] = tuning
    rows = []
    for name, (function, given) in passes.items():
        reference = partial(getattr(tree, function), reverse=False)
        expected = computed(reference, *given)
        moved = tree_bytes(given) + tree_bytes(expected)
        candidates = {"tree": (reference, given)}
        for layout, tuning in layouts.items():
            run = partial(getattr(kernel, function), reverse=False, tuning=tuning)
            candidates[f"kernel {layout}"] = (run, given)
        results = compete({**candidates, "copy": copy(moved)}, budget=options.budget)

        def error(candidate, candidates=candidates, given=given, expected=expected):
            return _error(computed(candidates[candidate][0], *given), expected)

        with ThreadPoolExecutor() as pool:  # for what they are compiled in
            errors = dict(zip(candidates, pool.map(error, candidates), strict=True))
        for candidate in candidates:
            m = results[candidate]
            rows.append(
                {
                    "pass": name,
                    "layout": candidate,
                    "us": m.run_seconds * 1e6,
                    "compile s": m.compile_seconds,
                    "temp MB": m.temp_bytes / 1e6,
                    "GB/s": moved / m.run_seconds / 1e9,
                    "× copy": _ratio(results["copy"].run_seconds, m.run_seconds),
                    "× tree": _ratio(results["tree"].run_seconds, m.run_seconds),
                    "error": errors[candidate],
                }
            )
    return rows


def _error(got, expected) -> float:
    """The largest difference, in units of the largest value."""
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True)
    wide = ((x.astype(jnp.promote_types(x.dtype, "float32")), y) for x, y in pairs)
    return max(float(jnp.max(jnp.abs(x - y)) / jnp.max(jnp.abs(y))) for x, y in wide)


def run(options: Options) -> dict[str, list[Row]]:
    """Measure and print.

    **Arguments:**

    - `options`: see `Options`.

    **Returns:**

    The rows of every shape, by its name; none where there is no GPU, but for `quick`.
    """
    if options.quick:
        options = replace(options, **_QUICK)
    elif jax.default_backend() != "gpu":
        print(f"not measured: the kernel would be interpreted on this {jax.default_backend()}")
        return {}
    print(heading("The kernel of scan.linear", budget=options.budget))
    tables = {}
    cases = itertools.product(options.shapes, options.dtypes, options.coefficients)
    for shape, dtype, coefficients in cases:
        sizes = tuple(map(int, shape.split("x")))
        title = f"{shape}, {dtype}, {coefficients} a"
        tables[title] = rows_for(sizes, dtype, coefficients == "constant", options)
        options.output.table(title, tables[title])
        options.output.save(tables)
    return tables


if __name__ == "__main__":
    command(run, Options, __doc__)
