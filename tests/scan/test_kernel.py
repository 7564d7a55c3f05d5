"""The kernel for GPUs: against the loop, interpreted, and lowered for a chip that is not here."""

import contextlib
import re
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.mlir import ir
from jaxlib import triton

import scan
from scan.methods import kernel, loop
from tests.cases import slow_but

TIME = 7
TWO_AT_A_TIME = kernel.Tuning(lanes=8, steps=2, tiles=2)
THROUGH_SHARED_MEMORY = kernel.Tuning(lanes=8, steps=2, tiles=2, stages=3)


def normal(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return jnp.asarray(x if jnp.issubdtype(dtype, jnp.complexfloating) else x.real, dtype)


def case(dtype, *, time=TIME, features=(3, 5), of_a=None, varies=True, begin_axes=2):
    """Arguments of `solve`, and a cotangent, with the ranks that `scan.linear` gives them."""
    of_a = features if of_a is None else of_a
    a = normal(0, ((time,) if varies else ()) + of_a, dtype) * jnp.asarray(0.7, dtype)
    b, h0, cotangent = (
        normal(i, s, dtype) for i, s in enumerate([(time, *features), features, (time, *features)])
    )
    begin = None
    if begin_axes is not None:
        shape = (time, *features[: begin_axes - 1])
        begin = jnp.asarray(np.random.default_rng(3).random(shape) < 0.3)
        begin = begin.reshape(shape + (1,) * (len(features) + 1 - begin.ndim))
    return a, b, h0, begin, cotangent


def assert_equal(got, expected, tolerance):
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        scale = 1 + np.max(np.abs(theirs))
        np.testing.assert_allclose(mine / scale, theirs / scale, atol=tolerance, rtol=0)


CASES = {
    "varying": {},
    "constant": {"varies": False},
    "shared by a batch": {"of_a": (1, 5)},
    "constant, one for all": {"varies": False, "of_a": (3, 1)},
    "flags of all": {"begin_axes": 1},
    "no flags": {"begin_axes": None},
    "one channel": {"features": (), "begin_axes": 1},
    # Whole rounds of two tiles of two steps; whole tiles, but of rounds a half is left.
    "whole rounds": {"time": 24},
    "whole tiles": {"time": 18, "features": (2, 4)},
}
# In chunks of real numbers, whose kernels are the same for complex ones, and those as a whole.
ROWS = [
    *((name, "float64", 3, False) for name in CASES),
    *((name, "complex64", 1, True) for name in ("varying", "constant", "whole rounds")),
]
SHARED = [
    *((name, "float64", 3, False) for name in ("varying", "flags of all", "constant")),
    *((name, "complex64", 1, True) for name in ("whole rounds", "no flags")),
]
QUICK = [("varying", "float64", 3, False), ("constant", "complex64", 1, True)]


def check(name, dtype, tuning, reverse):
    a, b, h0, begin, cotangent = case(jnp.dtype(dtype), **CASES[name])

    @jax.jit
    def both():
        found = []
        for by, options in ((loop, {}), (kernel, {"tuning": tuning})):
            h = by.solve(a, b, h0, begin, reverse=reverse, **options)
            found.append((h, by.adjoint(a, h, h0, begin, cotangent, reverse=reverse, **options)))
        return found

    expected, got = both()
    assert_equal(got, expected, 1e-14 if dtype == "float64" else 1e-6)


@pytest.mark.parametrize(("name", "dtype", "chunks", "reverse"), slow_but(QUICK, ROWS))
def test_the_solution_and_its_adjoint_equal_the_loop(name, dtype, chunks, reverse):
    check(name, dtype, replace(TWO_AT_A_TIME, chunks=chunks), reverse)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype", "chunks", "reverse"), SHARED)
def test_through_shared_memory_they_do_too(name, dtype, chunks, reverse):
    check(name, dtype, replace(THROUGH_SHARED_MEMORY, chunks=chunks), reverse)


def test_scan_linear_and_all_its_derivatives():
    a, b, h0, begin, _ = case(jnp.dtype("complex64"))
    begin = begin[..., 0]

    def loss(method, a, b, h0):
        # One row by itself, so that `a` is shared by those that are vmapped over the second axis.
        solve = partial(scan.linear, method=method)
        h = jax.vmap(solve, in_axes=(None, 1, 0, 1), out_axes=1)(a[:, 0], b, h0, begin)
        return jnp.sum(jnp.abs(h) ** 2)

    @jax.jit
    def of(a, b, h0):
        found = []
        for method in ("sequential", "kernel"):
            f = partial(loss, method)
            value, gradients = jax.value_and_grad(f, (0, 1, 2))(a, b, h0)
            _, tangent = jax.jvp(f, (a, b, h0), (b, b, h0))
            steepest = lambda b, h0, f=f: jax.grad(lambda a: f(a, b, h0).real)(a)  # noqa: E731
            _, second = jax.jvp(steepest, (b, h0), (a, h0))
            found.append((value, gradients, tangent, second))
        return found

    expected, got = of(a, b, h0)
    assert_equal(got, expected, 1e-5)


def test_a_nan_does_not_cross_the_border_of_an_episode():
    a, b = jnp.full((4, 2), 0.5), jnp.ones((4, 2)).at[1].set(jnp.nan)
    begin = jnp.array([True, False, True, False])

    def solve(b):
        h = scan.linear(a, b, begin=begin, method="kernel")
        return jnp.sum(h[2:]), h

    (_, h), d_b = jax.jit(jax.value_and_grad(solve, has_aux=True))(b)
    np.testing.assert_array_equal(h[2:], [[1.0, 1.0], [1.5, 1.5]])
    np.testing.assert_array_equal(d_b, [[0, 0], [0, 0], [1.5, 1.5], [1, 1]])


@pytest.mark.slow
def test_it_is_one_program_where_nothing_is_to_be_compiled(float32):
    """It was applied by itself there, for ever."""
    with jax.disable_jit():
        found = scan.linear(jnp.full(3, 0.5), jnp.ones((3, 3)), method="kernel")
    np.testing.assert_allclose(found[:, 0], [1, 1.5, 1.75])


@pytest.mark.slow
def test_halves_are_summed_in_float32():
    b = jnp.full((300, 2), 1.0, jnp.bfloat16)
    h = jax.jit(partial(scan.linear, method="kernel"))(jnp.ones(2, jnp.bfloat16), b)
    assert h.dtype == jnp.bfloat16
    # Carried in bfloat16 a count stops at 256.
    np.testing.assert_array_equal(h[-1], jnp.asarray(300.0, jnp.bfloat16))


@pytest.mark.parametrize("what", ["solve", "adjoint"])
def test_neither_few_nor_many_channels_go_through_shared_memory(what):
    stages = lambda dtype, *sizes: kernel.choose(what, dtype, *sizes).stages  # noqa: E731
    assert stages("complex64", 1024, 4096) > 1
    assert stages("complex64", 1024, 1 << 18) == stages("complex64", 1024, 256) == 1
    # Halves are too small to be copied there, and a few steps are on their way at once anyway.
    assert stages("bfloat16", 1024, 4096) == stages("float32", 8, 4096) == 1


@pytest.mark.parametrize("what", ["solve", "adjoint"])
def test_few_channels_are_cut_into_chunks_and_many_are_not(what):
    assert kernel.choose(what, "complex64", 16_384, 256).chunks > 1
    assert kernel.choose(what, "float32", 1024, 1 << 20).chunks == 1
    assert kernel.choose(what, "float32", 8, 1).chunks == 1


def test_no_more_steps_are_asked_for_than_there_are():
    for time in (2, 3, 8, 20):
        tuning = kernel.choose("solve", "float32", time, 1)
        assert tuning.steps * tuning.tiles < 2 * max(time, 8)


def test_types_that_the_kernel_does_not_take_are_refused():
    with pytest.raises(ValueError, match=r"`method` \(='kernel'\) takes .* `b` is complex128"):
        scan.linear(jnp.ones(2), jnp.ones((3, 2), complex), method="kernel")


def lowered_for_cuda(shape):
    """The text of a gradient's program, and its calls of the kernel."""

    def loss(a, b, begin):
        return jnp.sum(jnp.abs(scan.linear(a, b, begin=begin, method="kernel")) ** 2)

    b = jax.ShapeDtypeStruct(shape, jnp.complex64)
    begin = jax.ShapeDtypeStruct(shape[:2], bool)
    traced = jax.jit(jax.grad(loss, (0, 1))).trace(b, b, begin)
    program = traced.lower(lowering_platforms=("cuda",)).as_text()
    return program, kernels_of(program)


def kernels_of(program):
    """The calls of the kernel in a program's text."""
    return [line for line in program.splitlines() if "@__gpu$xla.gpu.triton" in line]


@pytest.mark.slow
def test_it_is_lowered_for_cuda_with_complex_arrays_as_they_are(float32):
    program, calls = lowered_for_cuda((1024, 16, 8))
    # Three launches forward and three backward: chunks, their ends, chunks again.
    grids = [re.findall(r"grid_[xyz] = (\d+)", line) for line in calls]
    assert grids == 2 * [["4", "16", "1"], ["4", "1", "1"], ["4", "16", "1"]]
    assert all(re.search(r"ir = \".*num_warps = 1 ", line) for line in calls)
    assert all("complex<f32>" in line.rsplit(":", 1)[1] for line in calls)
    assert "ui64" not in program and "xi64" not in program
    assert not any("tt.num_stages" in line for line in calls)


def triton_program(call):
    """The text of a kernel, which a call has as MLIR's bytecode."""
    code = re.search(r' ir = "(.*?)(?<!\\)"', call)[1].encode()
    code = re.sub(rb"\\([0-9A-F]{2})", lambda found: bytes.fromhex(found[1].decode()), code)
    with ir.Context() as context, ir.Location.unknown():
        triton.dialect.register_dialect(context)
        context.load_all_available_dialects()
        return str(ir.Module.parse(code))


@pytest.mark.parametrize("shape", [(13, 3, 5), (1001, 16, 251)])
def test_what_is_no_channel_and_no_step_is_neither_read_nor_written(float32, shape):
    """Interpreted, it makes no difference."""
    _, calls = lowered_for_cuda(shape)
    moved = [
        line
        for call in calls
        for line in triton_program(call).splitlines()
        if re.search(r"tt\.(load|store) ", line)
    ]
    assert len(moved) > 9
    # Where from, what is written, and the mask.
    fewest = {"load": 2, "store": 3}
    for line in moved:
        kind, operands = re.search(r"tt\.(load|store) (.*?) (?::|\{|evict)", line).groups()
        assert len(operands.split(", ")) >= fewest[kind], line


def test_a_loop_through_shared_memory_is_marked_for_triton(float32):
    _, calls = lowered_for_cuda((1024, 16, 256))
    # One launch forward and one backward.
    assert [re.findall(r"grid_[xyz] = (\d+)", line) for line in calls] == 2 * [["128", "1", "1"]]
    assert all("tt.num_stages" in line for line in calls)


@pytest.mark.parametrize(("batch", "width"), [(256, 128), (16, 256)])
def test_a_batch_under_vmap_is_laid_out_as_channels_are(float32, batch, width):
    def layouts(solve):
        x = jax.ShapeDtypeStruct((1024, batch, width), jnp.float32)
        gradient = jax.grad(lambda a, b: jnp.sum(solve(a, b) ** 2), (0, 1))
        program = jax.jit(gradient).trace(x, x).lower(lowering_platforms=("cuda",)).as_text()
        return [re.findall(r"grid_[xyz] = (\d+)|(num_stages)", x) for x in kernels_of(program)]

    assert len(layouts(scan.linear)) == 2  # one launch forward and one backward
    assert layouts(jax.vmap(scan.linear, 1, 1)) == layouts(scan.linear)


def test_auto_takes_it_for_cuda_where_it_takes_the_type(float32):
    def program(dtype, platform):
        b = jax.ShapeDtypeStruct((4, 2), dtype)
        traced = jax.jit(scan.linear).trace(b, b)
        return traced.lower(lowering_platforms=(platform,)).as_text()

    assert "gpu.triton" in program(jnp.complex64, "cuda")
    assert "gpu.triton" not in program(jnp.complex64, "cpu")
    with jax.enable_x64(True):
        assert "gpu.triton" not in program(jnp.complex128, "cuda")


# Of so many steps that no other row has left the kernel.
@pytest.mark.parametrize(("checked", "time"), [(True, 5), (False, 6), (None, 9)])
def test_it_is_lowered_for_cuda_within_a_mesh(float32, checked, time):
    mesh = jax.sharding.Mesh(jax.devices("cpu")[:2], ("i",))
    split = jax.sharding.PartitionSpec(None, "i")

    def gradient(a, b):
        return jax.grad(lambda a, b: jnp.sum(scan.linear(a, b) ** 2), (0, 1))(a, b)

    if checked is not None:
        specs = {"in_specs": split, "out_specs": split, "check_vma": checked}
        gradient = jax.shard_map(gradient, mesh=mesh, **specs)
    b = jax.ShapeDtypeStruct((time, 4), jnp.float32)
    with jax.set_mesh(mesh) if checked is None else contextlib.nullcontext():
        traced = jax.jit(gradient).trace(b, b)
        program = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert program.count("gpu.triton") >= 2


@pytest.mark.parametrize("batched", [False, True])
def test_arrays_whose_places_do_not_fit_32_bits_are_left_to_the_tree(float32, batched):
    def program(width, method="auto"):
        a = jax.ShapeDtypeStruct((1, width), jnp.float32)
        b = jax.ShapeDtypeStruct((2**6, 2**15, width), jnp.float32)
        solve = partial(scan.linear, method=method)
        solve = jax.vmap(solve, (None, 1), 1) if batched else solve
        a = a if batched else jax.ShapeDtypeStruct((2**6, 1, width), jnp.float32)
        return jax.jit(solve).trace(a, b).lower(lowering_platforms=("cuda",)).as_text()

    assert "gpu.triton" in program(2**10 - 1)
    assert "gpu.triton" not in program(2**10)
    with pytest.raises(ValueError, match=r"`b` \(of 2147483648 numbers\) must have at most 2147"):
        program(2**10, "kernel")
