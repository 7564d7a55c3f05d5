"""Run time, compile time and memory of competing programs, and tables of them."""

import contextlib
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import jax
import jax.numpy as jnp
import rich.box
import rich.console
import rich.table

from benchmarks._command import check_file

Row = dict[str, Any]


@dataclass(frozen=True)
class Budget:
    """How long to measure."""

    seconds: float = 1.0
    """Measured time per candidate."""
    least: int = 5
    """Runs of a candidate at the least."""
    most: int = 100
    """Runs of a candidate at the most."""
    compilations: int = 3
    """How often each candidate is compiled, unless that takes over two seconds."""


# A GPU is given its programs from a queue. So many seconds of them hide how long the waiting for
# their end takes, and a program that takes less than `_SHORT` stands in one several times, because
# a call of it takes longer than many a kernel.
_LEAST = 0.01
_SHORT = 2e-4
_TIMES = 8
# Of the environment: a file that processes lock while they measure.
LOCK = "TRACE_ZOO_BENCHMARKS_LOCK"

QUICK = Budget(seconds=0.0, least=2, most=2, compilations=1)


@dataclass(frozen=True)
class Measurement:
    """One program's medians: seconds to run, seconds to compile, bytes of XLA's scratch memory.

    `argument_bytes` and `output_bytes` are what it must read and write at the very least.
    """

    run_seconds: float
    compile_seconds: float
    temp_bytes: float
    argument_bytes: int
    output_bytes: int


def measure(function: Callable, *arguments, budget: Budget | None = None) -> Measurement:
    """Compile and time one function; see `compete`.

    **Arguments:**

    - `function`: of arrays, traceable.
    - `arguments`: pytrees of arrays.
    - `budget`: how long to measure.

    **Returns:**

    Its `Measurement`.
    """
    return compete({"": (function, arguments)}, budget=budget)[""]


def compete(
    candidates: Mapping[str, tuple[Callable, tuple]], *, budget: Budget | None = None
) -> dict[str, Measurement]:
    """Compile every candidate ahead of time and run them in turn.

    Round-robin, so that whatever else the machine does hits all alike; medians over the rounds.
    Candidates should need memory of one magnitude: gigabytes that one gives back to the system
    slow down the next. For a GPU the processor's cores compile them side by side, where each is
    compiled once only.

    **Arguments:**

    - `candidates`: from name to `(function, arguments)`; functions of arrays only, traceable.
    - `budget`: how long to measure.

    **Returns:**

    From name to `Measurement`.
    """
    budget = budget or Budget()
    compiled, compile_seconds = {}, {name: [] for name in candidates}
    threads = 1 if _on_cpu() or budget.compilations > 1 else os.cpu_count()
    with ThreadPoolExecutor(threads) as pool:
        for i in range(budget.compilations):
            names = [n for n in candidates if i == 0 or compile_seconds[n][0] < 2]
            found = pool.map(lambda name: _compile(*candidates[name]), names)
            for name, (seconds, program) in zip(names, found, strict=True):
                compiled[name] = program
                compile_seconds[name].append(seconds)
        with device_alone():
            timed = {n: _Timed(compiled[n], arguments) for n, (_, arguments) in candidates.items()}
        short = [n for n in candidates if not _on_cpu() and timed[n].seconds < _SHORT]
        several = {n: (_several(candidates[n][0]), _copies(candidates[n][1])) for n in short}
        found = dict(
            zip(short, pool.map(lambda name: _compile(*several[name]), short), strict=True)
        )
    with device_alone():
        for name, (_, program) in found.items():
            timed[name] = _Timed(program, several[name][1], runs=_TIMES)
        rounds = {name: t.rounds(budget) for name, t in timed.items()}
        run_seconds = {name: [] for name in candidates}
        most = max(rounds.values(), default=0)
        for i in range(most):
            for name, t in timed.items():
                # A slow candidate runs in fewer of the rounds, spread evenly over them.
                if i * rounds[name] // most != (i - 1) * rounds[name] // most:
                    run_seconds[name].append(t.run())
    measured = {
        name: Measurement(
            statistics.median(run_seconds[name]),
            statistics.median(compile_seconds[name]),
            temp_bytes(compiled[name]),
            tree_bytes(arguments),
            tree_bytes(jax.eval_shape(function, *arguments)),
        )
        for name, (function, arguments) in candidates.items()
    }
    for name, m in measured.items():
        # A log in which nothing is lost that was measured before something fails.
        words = f"{name or 'program'}: {m.run_seconds * 1e3:.4g} ms, {m.argument_bytes} bytes in"
        print(f"{words}, compiled in {m.compile_seconds:.3g} s", file=sys.stderr, flush=True)
    return measured


def _compile(function: Callable, arguments: tuple):
    fresh = lambda *arguments: function(*arguments)  # noqa: E731  a new function is traced anew
    start = time.perf_counter()
    compiled = jax.jit(fresh).lower(*arguments).compile()
    return time.perf_counter() - start, compiled


class _Timed:
    """A compiled program with arguments, and how often it runs between two looks at the clock."""

    def __init__(self, program, arguments: tuple, runs: int = 1):
        self._program, self._arguments, self._runs = program, arguments, runs
        _run(program, arguments)
        seconds, self._repeats = _run(program, arguments), 1
        if not _on_cpu():
            self._repeats = math.ceil(min(max(_LEAST / seconds, 1), 200))
            seconds = _run(program, arguments, self._repeats)
        self.seconds = seconds / runs

    def run(self) -> float:
        """Seconds of one run."""
        return _run(self._program, self._arguments, self._repeats) / self._runs

    def rounds(self, budget: Budget) -> int:
        """How often to look."""
        wanted = budget.seconds / (self.seconds * self._runs * self._repeats)
        return math.ceil(min(max(wanted, budget.least), budget.most))


def device_alone() -> contextlib.AbstractContextManager:
    """While this lasts no other process of `benchmarks.all` runs what it measures."""
    path = os.environ.get(LOCK)
    return filelock.FileLock(path) if path else contextlib.nullcontext()


def computed(function: Callable, *arguments: Any) -> Any:
    """What a function returns, compiled while others may measure and run while none does."""
    program = jax.jit(function).lower(*arguments).compile()
    with device_alone():
        return jax.block_until_ready(program(*arguments))


def _several(function: Callable) -> Callable:
    """A program that runs a function so many times, one behind the other.

    Each run has arguments of its own: of the same it would be computed once, and they would lie in
    a cache.
    """

    def run(*arguments):
        found: list = []
        for given in arguments:
            if found:
                # Each waits for the one before.
                given, found[-1] = jax.lax.optimization_barrier((given, found[-1]))
            found.append(function(*given))
        return found

    return run


def _copies(arguments: tuple) -> tuple:
    """`_TIMES` of the arguments, each at a place of its own in memory."""
    return tuple(jax.tree.map(jnp.copy, arguments) for _ in range(_TIMES))


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def _run(compiled, arguments: tuple, repeats: int = 1) -> float:
    """Seconds of one run, of several one behind the other."""
    start = time.perf_counter()
    for _ in range(repeats):
        outputs = compiled(*arguments)
    jax.block_until_ready(outputs)
    seconds = time.perf_counter() - start
    del outputs  # giving back hundreds of megabytes is not part of the program's time
    return seconds / repeats


def temp_bytes(compiled: jax.stages.Compiled) -> float:
    """The bytes that a program wants besides arguments and results; NaN where XLA does not say."""
    analysis = compiled.memory_analysis()
    return math.nan if analysis is None else analysis.temp_size_in_bytes


def tree_bytes(tree: Any) -> int:
    """The bytes of all arrays (or `jax.ShapeDtypeStruct`s) of a pytree."""
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(tree))


def gradient(run: Callable) -> Callable:
    """The gradient of a program's sum of squares with respect to its first argument.

    **Arguments:**

    - `run`: a function that returns an array.

    **Returns:**

    A function of the same arguments.
    """
    return lambda first, *rest: jax.grad(lambda x: jnp.sum(run(x, *rest) ** 2))(first)


def copy(num_bytes: int) -> tuple[Callable, tuple]:
    """A candidate for `compete` that reads and writes `num_bytes` in all: the floor.

    **Arguments:**

    - `num_bytes`: bytes read plus bytes written.

    **Returns:**

    `(function, arguments)`.
    """
    return (lambda x: -x), (jnp.ones(max(1, num_bytes // 8), jnp.float32),)


def copy_seconds(num_bytes: int, *, budget: Budget | None = None) -> float:
    """Seconds that the device takes to read and write `num_bytes` in all.

    **Arguments:**

    - `num_bytes`: bytes read plus bytes written.
    - `budget`: how long to measure.

    **Returns:**

    Seconds, the median.
    """
    function, arguments = copy(num_bytes)
    return measure(function, *arguments, budget=budget).run_seconds


def device() -> str:
    """Platform and chip, for the heading of a table."""
    chip = jax.devices()[0]
    kind = chip.device_kind
    if chip.platform == "cpu":
        info = Path("/proc/cpuinfo")
        lines = info.read_text().splitlines() if info.exists() else []
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        kind = f"{len(names)} × {names[0]}" if names else kind
    return f"{chip.platform}: {kind}, JAX {jax.__version__}"


def heading(title: str, *, budget: Budget | None = None) -> str:
    """A title with the device's name and its copy bandwidth."""
    num_bytes = 1 << (24 if budget is QUICK else 28)
    bandwidth = num_bytes / copy_seconds(num_bytes, budget=budget)
    return f"{title} ({device()}, copies {bandwidth / 1e9:.1f} GB/s)"


def ratio(a: float, b: float) -> float:
    """`a / b`; NaN where `b` is zero."""
    return a / b if b else math.nan


@dataclass(frozen=True)
class Output:
    """Where the tables go."""

    markdown: bool = False
    """Print tables that can be pasted into the documentation."""
    json: Path | None = None
    """Also write all rows to this file."""

    def __post_init__(self):
        if self.json is not None:
            check_file("json", self.json)

    def table(self, title: str, rows: Sequence[Row]) -> None:
        """Print rows under a title; the columns are the keys in order of appearance."""
        columns = list(dict.fromkeys(key for row in rows for key in row))
        cells = [[_format(row.get(column, "")) for column in columns] for row in rows]
        if self.markdown:
            lines = [columns, ["---"] * len(columns), *cells]
            print(f"\n{title}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines))
            return
        table = rich.table.Table(*columns, title=title, title_justify="left", box=rich.box.SIMPLE)
        for line in cells:
            table.add_row(*line)
        width = None if rich.console.Console().is_terminal else 200
        rich.console.Console(width=width).print(table)

    def save(self, tables: Mapping[str, Sequence[Row]], on: str | None = None) -> None:
        """Write all rows to the JSON file, if one was asked for, and what they are of."""
        if self.json is not None:
            content = {"device": on or device(), **tables}
            self.json.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _format(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"
