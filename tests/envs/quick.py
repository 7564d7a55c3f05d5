"""`quick.jit`: `jax.jit` for programs that run for a moment, where compiling takes the time."""

import functools

import jax

_OPTIONS = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}


def _accepted(option: str) -> bool:
    """Whether this version of XLA has the option."""
    try:
        jax.jit(lambda: 0, compiler_options={option: _OPTIONS[option]})()
    except Exception:
        return False
    return True


@functools.cache
def _options() -> dict:
    return {option: value for option, value in _OPTIONS.items() if _accepted(option)}


def jit(function, **kwargs):
    """`jax.jit` with little optimization: a fifth of the time to compile, on a CPU."""
    return jax.jit(function, compiler_options=_options(), **kwargs)
