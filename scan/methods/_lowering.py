"""The two lowerings of the kernel in `scan.methods._body`.

`complex64` is read and written as it lies in memory, as 64-bit words. Triton has no complex
numbers, and two planes would be copies of all arrays. Pallas refuses complex operands, so that its
program is taken out of a lowering for such words and put into a call with the arrays as they are.
"""

import contextlib
import io
import math
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
from jax.extend.mlir import ir
from jax.interpreters import mlir

from scan.methods._body import follow
from scan.methods._plan import Plan

_TRITON = "__gpu$xla.gpu.triton"
_WORDS = {"complex64": "uint64", "bool": "int8"}
_LOCK = threading.Lock()


def interpreted(ctx, *operands, plan: Plan):
    """The lowering for platforms that the kernel was not written for: operation by operation."""
    with jax.enable_x64(True):
        return mlir.lower_fun(partial(_interpret, plan), multiple_results=True)(ctx, *operands)


def _interpret(plan, *operands):
    call, _ = _pallas_call(plan, interpret=True)
    out = call(*[_as_words(x).reshape(-1) for x in operands])
    shaped = zip(out, plan.outputs, strict=True)
    return [_from_words(x, plan.dtype).reshape(shape) for x, shape in shaped]


def _as_words(x):
    if x.dtype != jnp.complex64:
        return x.astype(_WORDS.get(x.dtype.name, x.dtype))
    return jax.lax.bitcast_convert_type(jnp.stack([x.real, x.imag], -1), jnp.uint64)


def _from_words(x, dtype):
    if dtype != "complex64":
        return x
    pair = jax.lax.bitcast_convert_type(x, jnp.float32)
    return jax.lax.complex(pair[..., 0], pair[..., 1])


def lowered_for_cuda(ctx, *operands, plan: Plan):
    """The lowering for NVIDIA GPUs."""
    config = {name: ir.Attribute.parse(text) for name, text in _triton(plan).items()}
    return jax.ffi.ffi_lowering(_TRITON, backend_config=config)(ctx, *operands)


@lru_cache(256)
def _triton(plan: Plan) -> dict[str, str]:
    """The attributes of a call of the kernel, as text: its program, its grid, its warps."""
    # A mesh, such as the one of a `jax.shard_map`, is set for one thread, and inside it Pallas asks
    # what varies over devices. A kernel knows of one device only. One at a time, since Python keeps
    # what warnings are ignored for all threads.
    with _LOCK, ThreadPoolExecutor(1) as without_mesh:
        return without_mesh.submit(_lower, plan).result()


def _lower(plan: Plan) -> dict[str, str]:
    with jax.enable_x64(True), _some_chip(), warnings.catch_warnings():
        # JAX 0.11 announces the end of Pallas for Triton, and it is there in all that we allow.
        warnings.filterwarnings("ignore", "The Pallas Triton", DeprecationWarning)
        call, arguments = _pallas_call(plan, interpret=False)
        lowered = jax.jit(call).trace(*arguments).lower(lowering_platforms=("cuda",))
    calls = []

    def keep_calls(operation):
        if operation.name == "stablehlo.custom_call":
            calls.append(operation.attributes["mhlo.backend_config"])
        return ir.WalkResult.ADVANCE

    module = lowered.compiler_ir("stablehlo")
    assert module is not None
    module.operation.walk(keep_calls)
    (attributes,) = calls
    found = {entry.name: entry.attr for entry in attributes}
    if plan.tuning.stages > 1:
        with module.context:
            found["ir"] = _pipelined(found["ir"], plan.tuning.stages)
    return {name: str(attribute) for name, attribute in found.items()}


def _pipelined(program, stages: int):
    """The program with its loop marked: its loads are copies into shared memory on their way."""
    from jaxlib.triton import dialect

    # A context of its own, because a program of Triton needs the dialects of Triton.
    with ir.Context() as context, ir.Location.unknown():
        dialect.register_dialect(context)
        context.load_all_available_dialects()
        module = ir.Module.parse(program.value_bytes)

        def mark(operation):
            if operation.name == "scf.for":
                number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), stages)
                operation.attributes["tt.num_stages"] = number
            return ir.WalkResult.ADVANCE

        module.operation.walk(mark)
        code = io.BytesIO()
        module.operation.write_bytecode(code)
    return ir.StringAttr.get(code.getvalue())


def _some_chip():
    """Whichever chip is there or not: nothing that the kernel does depends on it."""
    if jax.__version_info__ < (0, 11):  # takes one by itself where there is none
        return contextlib.nullcontext()
    chip = jax.sharding.AbstractDevice("NVIDIA H100", num_cores=None, platform="gpu")
    mesh = jax.sharding.AbstractMesh((1,), ("gpu",), abstract_device=chip)
    return jax.sharding.use_abstract_mesh(mesh)


def _pallas_call(plan: Plan, *, interpret: bool):
    """A function of flat arrays of words, and their shapes."""
    # Here, because importing them takes a while and most programs never come here.
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    def words(shape, dtype):
        return jax.ShapeDtypeStruct((math.prod(shape),), _WORDS.get(dtype, dtype))

    tuning = plan.tuning
    params = triton.CompilerParams(num_warps=tuning.warps, num_stages=1)
    call = pl.pallas_call(
        partial(follow, plan, interpret),
        grid=(-(-plan.channels // tuning.lanes), tuning.chunks),
        out_shape=[words(shape, plan.dtype) for shape in plan.outputs],
        interpret=interpret,
        compiler_params=None if interpret else params,
        name=f"linear_recurrence_{plan.what}",
    )
    dtypes = {"begin": "bool"}
    return call, [
        words((*x.leading, *x.features), dtypes.get(x.name, plan.dtype)) for x in plan.operands
    ]
