"""A folder for what a sweep's many processes compile.

Other tests have none: to read a program that was compiled without optimization takes longer than to
compile it again.
"""

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache


@pytest.fixture(scope="package", autouse=True)
def compiled_once(tmp_path_factory):
    """What several runs compile is kept in a folder: by `JAX_COMPILATION_CACHE_DIR`, or here."""
    settings = {
        "jax_compilation_cache_dir": jax.config.jax_compilation_cache_dir
        or str(tmp_path_factory.mktemp("compiled")),
        "jax_persistent_cache_min_compile_time_secs": 0.1,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
