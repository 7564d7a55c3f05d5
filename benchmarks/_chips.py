"""NVIDIA GPUs that are not here, for which XLA compiles all the same."""

import jax
from jax.experimental import topologies

from agents.envs.bridges.package_env import is_installed

ABSENT = "NVIDIA H200, which need not be there"
# What XLA asks of an H200 before it chooses tiles, splits loops and lays out memory.
_H200 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  memory_bandwidth: 4800000000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 150000000000
  cuda_compute_capability { major: 9 minor: 0 }
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
device_description_str: "NVIDIA H200"
"""


def absent_gpus(count: int) -> list[jax.Device]:
    """So many H200 of one machine, for `jax.jit(f).lower(…).compile()` and nothing else.

    No GPU and no driver have to be there. JAX's plugin has to be, which compiles.

    **Raises:**

    `RuntimeError` without it; `ValueError` for no GPUs.
    """
    if count < 1:
        raise ValueError(f"`gpus` (={count}) must be at least 1.")
    plugins = ("jax_cuda12_plugin", "jax_cuda13_plugin")
    if not any(map(is_installed, plugins)):
        raise RuntimeError(
            "Programs for an NVIDIA GPU are compiled by JAX's plugin, which is not installed: "
            "pip install 'trace-zoo[cuda12]'"
        )
    shape = f"1x1x{count}"  # slices, machines and devices of each
    found = topologies.get_topology_desc(shape, "cuda", topology=shape, target_config=_H200)
    return list(found.devices)


def platform_of(device: jax.Device) -> str:
    """The platform that a program is lowered for, by which scans choose their method."""
    return "cuda" if device.platform == "gpu" else device.platform
