"""Change the source in one place, run the quick tests, and see whether they notice.

    python -m tests.mutants --sample 150 --seed 0

Draws mutations of `scan`, `rtrl` and three folders of `agents`, and runs the quick tests of each
one's package in a copy of the repository, up to the first that fails. A mutation that no test
notices has survived. Results are kept in a file: the same command goes on where it was stopped, and
a larger sample contains a smaller one of the same seed. Prints the share that died, by kind and by
folder, and the survivors.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from pathlib import Path

from tests.mutants.mutations import Mutation, mutations

ROOT = Path(__file__).resolve().parents[2]
# What is changed, and the tests that are to notice.
FORMS = ("test_forms", "test_transformations", "test_forward_mode", "test_platforms")
CELLS = [f"tests/zoo/{name}.py" for name in FORMS]
TESTS = {
    "scan": ["tests/scan", *CELLS],
    "rtrl": ["tests/rtrl", *CELLS, "tests/zoo/test_stack.py"],
    "agents/learning": ["tests/agents"],
    "agents/acting": ["tests/agents"],
    "agents/algorithms": ["tests/agents"],
}
COPIED = ("scan", "rtrl", "zoo", "agents", "tests", "benchmarks", "docs", ".ci")
# What takes long to import and is not ours: once, before the processes of the mutations are forked.
IMPORTED = (
    "equinox",
    "optax",
    "hypothesis",
    "scipy.stats",
    "matplotlib.pyplot",
    "seaborn",
)  # of gymnax


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--sample", type=int, default=150, help="how many (0: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--only", default="", help="only files whose path starts with this")
    parser.add_argument("--out", type=Path, default=ROOT / ".cache" / "mutants.jsonl")
    options = parser.parse_args()

    drawn = draw(options.only, options.seed)[: options.sample or None]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    known = read(options.out)
    for name in IMPORTED:
        __import__(name)
    with tempfile.TemporaryDirectory(prefix="trace-zoo-mutants.") as folder:
        copy_to(Path(folder))
        limits: dict[tuple[str, ...], float] = {}
        for number, (target, mutation) in enumerate(drawn, 1):
            if mutation.name in known:
                continue
            tests = tuple(TESTS[target])
            if tests not in limits:
                limits[tests] = limit_of(tests)
            result = run_with(mutation, tests, limits[tests])
            known[mutation.name] = {"name": mutation.name, "kind": mutation.kind, **result}
            with options.out.open("a") as file:
                file.write(json.dumps(known[mutation.name]) + "\n")
            print(f"{number}/{len(drawn)} {result['end']:8s} {mutation.name}", flush=True)
    report([known[mutation.name] for _, mutation in drawn])


def draw(only: str, seed: int) -> list[tuple[str, Mutation]]:
    """All mutations, in an order drawn at random."""
    drawn = [
        (target, mutation)
        for target in TESTS
        for path in sorted((ROOT / target).rglob("*.py"))
        if (file := path.relative_to(ROOT).as_posix()).startswith(only)
        for mutation in mutations(file, path.read_text())
    ]
    random.Random(seed).shuffle(drawn)
    return drawn


def read(path: Path) -> dict[str, dict]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {result["name"]: result for result in map(json.loads, lines)}


def copy_to(folder: Path) -> None:
    """Copy what the tests need, so that no mutation is ever in the repository, and go there."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (ROOT / name for name in ("pyproject.toml", "README.md", "CHANGELOG.md")):
        shutil.copy(path, folder)
    os.chdir(folder)
    sys.path[:] = [str(folder), *(p for p in sys.path if p not in ("", str(ROOT)))]
    sys.dont_write_bytecode = True  # a file that changes twice a second must be read again
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder / "jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


def limit_of(tests: tuple[str, ...]) -> float:
    """How long the tests of a mutation may take: three times what they take without one."""
    begin = time.monotonic()
    result = run_tests(tests, "", 3600)
    if result["end"] != "survived":
        output = Path("pytest.log").read_text()
        sys.exit(f"{output}\nWithout a mutation {' '.join(tests)} fail: {result}")
    return 30 + 3 * (time.monotonic() - begin)


def run_with(mutation: Mutation, tests: tuple[str, ...], limit: float) -> dict[str, str]:
    path = Path(mutation.file)
    source = path.read_bytes()
    path.write_bytes(mutation.apply(source))
    try:
        return run_tests(tests, path.stem.strip("_"), limit)
    finally:
        path.write_bytes(source)


def run_tests(tests: tuple[str, ...], module: str, limit: float) -> dict[str, str]:
    """Run the quick tests in a process of their own: how it ended, and the first failure."""
    found = ([*Path(t).rglob("test_*.py")] if Path(t).is_dir() else [Path(t)] for t in tests)
    files = sorted(file for part in found for file in part)
    files.sort(key=lambda file: module not in file.stem)  # the module's own come first
    log = Path("pytest.log").absolute()
    child = os.fork()
    if child == 0:
        try:
            os._exit(pytest_on(files, log))
        except BaseException:
            traceback.print_exc()
            os._exit(99)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if status == 0:
                return {"end": "survived", "by": ""}
            failed = [x for x in log.read_text().splitlines() if x.startswith(("FAILED", "ERROR"))]
            return {"end": "died", "by": (failed or [f"status {status}"])[0][:200]}
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return {"end": "died", "by": f"not done after {limit:.0f} s"}


def pytest_on(files: list[Path], log: Path) -> int:
    """Run pytest in this process, with its output in a file."""
    os.setsid()
    file = log.open("w")
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)
    for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
        del sys.modules[name]  # they come from the repository, not from its copy
    import pytest

    quick = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
    quick += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # imported before the fork
    return pytest.main([*quick, "--tb=line", *map(str, files)])


def report(results: list[dict]) -> None:
    def folder_of(result: dict) -> str:
        return result["name"].partition(":")[0].rpartition("/")[0]

    for heading, group_of in (("kind", lambda result: result["kind"]), ("folder", folder_of)):
        counts = defaultdict(lambda: [0, 0])
        for result in results:
            counts[group_of(result)][result["end"] == "died"] += 1
        print(f"\n{heading:20s} mutants  died")
        for group, (survived, died) in sorted(counts.items()):
            print(f"{group:20s} {survived + died:7d} {died / (survived + died):5.0%}")
    survivors = sorted(result["name"] for result in results if result["end"] == "survived")
    print(f"\n{1 - len(survivors) / len(results):.1%} of {len(results)} died. Survivors:")
    print("\n".join(survivors))


if __name__ == "__main__":
    main()
