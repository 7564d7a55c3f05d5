"""What a kernel of `scan.methods.kernel` is made from."""

import math
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Tuning:
    """How a recurrence is laid out over the chip."""

    lanes: int = 32
    """Channels of a program; a power of two."""
    warps: int = 1
    """Groups of 32 threads that share them."""
    steps: int = 8
    """Steps of a tile; a power of two."""
    tiles: int = 4
    """Tiles of a round of the loop."""
    stages: int = 1
    """Rounds whose words are on their way through shared memory; with 1 a round's are on theirs to
    registers."""
    chunks: int = 1
    """Pieces of time that run side by side."""


class Operand(NamedTuple):
    """One array that the kernel reads: its axes are the leading ones and the features."""

    name: str
    leading: tuple[int, ...]
    features: tuple[int, ...]
    broadcasts: bool


@dataclass(frozen=True)
class Plan:
    """All that a kernel is made from.

    `what` is "solve" or "adjoint", or "solve_summary" or "adjoint_summary": what a chunk does to
    any state, as a product and an end. `reverse` is the direction of the kernel's own loop, which
    for an adjoint is not that of the recurrence.
    """

    what: str
    time: int
    features: tuple[int, ...]
    features_of_a: tuple[int, ...]
    features_of_begin: tuple[int, ...] | None
    varies: bool
    reverse: bool
    wants_a: bool
    dtype: str
    tuning: Tuning

    @property
    def channels(self) -> int:
        """How many recurrences there are side by side."""
        return math.prod(self.features)

    @property
    def chunk(self) -> int:
        """Steps of a chunk."""
        return -(-self.time // self.tuning.chunks)

    @property
    def operands(self) -> list[Operand]:
        """What the kernel reads, in order."""
        time, chunks = (self.time,), (self.tuning.chunks,)
        found = [
            Operand("a", time if self.varies else (), self.features_of_a, True),
            Operand("b", time, self.features, False),
        ]
        if self.features_of_begin is not None:
            found.append(Operand("begin", time, self.features_of_begin, True))
        if self.what in ("solve", "adjoint"):
            found.append(Operand("start", chunks, self.features, False))
        if self.what == "adjoint" and self.wants_a:
            found.append(Operand("h", time, self.features, False))
            found.append(Operand("h0", (1,), self.features, False))
        return found

    @property
    def outputs(self) -> list[tuple[int, ...]]:
        """Shapes of what it writes."""
        whole, by_chunk = (self.time, *self.features), (self.tuning.chunks, *self.features)
        if self.what == "solve":
            return [whole]
        if self.what != "adjoint":
            return [by_chunk, by_chunk]  # product, end
        # d_b, what flows out of every chunk, and d_a: where a is constant its sum over a chunk.
        return [whole, by_chunk] + [whole if self.varies else by_chunk] * self.wants_a
