"""Prediction and diagnostics by name."""

from ..core.entries import Entries
from .copy_task import CopyTask
from .memory_chain import MemoryChain
from .mortar_mayhem import MortarMayhem
from .mystery_path import MysteryPath
from .t_maze import TMaze
from .three_state import ThreeState
from .three_state_cycle import ThreeStateCycle
from .trace_conditioning import TraceConditioning

ENTRIES: Entries = {
    "trace_conditioning": (TraceConditioning, {}),
    "copy": (CopyTask, {}),
    "three_state": (ThreeState, {}),
    "three_state_cycle": (ThreeStateCycle, {}),
    "t_maze": (TMaze, {}),
    "memory_chain": (MemoryChain, {}),
    "mortar_mayhem": (MortarMayhem, {}),
    "mystery_path": (MysteryPath, {}),
}
"""By name: class, and the constructor's arguments that the name fixes."""
