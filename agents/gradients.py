"""How far credit goes back in time: three choices, one mechanism.

A rollout is cut into segments, each with the carry stored at its start. The choices differ in the
length of a segment and in what the carry holds: the state alone, or the sensitivity as well.
"""

import abc
from dataclasses import asdict, dataclass
from typing import Any

import jax
from jaxtyping import Array, PyTree

import zoo
from agents.networks import Inputs
from zoo.parts.checks import check_counts

_REFRESH = ("never", "epoch")


@dataclass(frozen=True)
class AbstractGradient(abc.ABC):
    """A way to compute the gradient of a recurrent network over a rollout."""

    @abc.abstractmethod
    def segment_length(self, rollout_length: int) -> int:
        """The number of steps per segment.

        **Arguments:**

        - `rollout_length`: steps per rollout and environment.

        **Returns:**

        A divisor of `rollout_length`.

        **Raises:**

        `ValueError` where the rollout cannot be cut into equal segments.
        """

    @property
    @abc.abstractmethod
    def uses_sensitivity(self) -> bool:
        """Whether the carry holds the sensitivity beside the state."""

    @property
    def refreshes(self) -> bool:
        """Whether the carries are recomputed before every epoch after the first."""
        return getattr(self, "refresh", "never") == "epoch"

    def carries(
        self, network: Any, start: PyTree, inputs: Inputs, *, segment: int
    ) -> tuple[PyTree, PyTree]:
        """Run a network along a rollout and keep the carry at the start of every segment.

        **Arguments:**

        - `network`: a module with `scan` and `rtrl_scan`, such as `agents.ActorCritic`.
        - `start`: the `(state, sensitivity)` of each environment at the rollout's start.
        - `inputs`: of the rollout, leading axes `[time, env]`.
        - `segment`: steps per segment.

        **Returns:**

        `(end, carries)`: the carry after the rollout, `[env, ...]`, and those at the segments'
        starts, `[segment, env, ...]`.
        """
        pieces = jax.tree.map(lambda x: x.reshape(-1, segment, *x.shape[1:]), inputs)

        def advance(carry, piece):
            run, begin = (
                (network.rtrl_scan, carry) if self.uses_sensitivity else (network.scan, carry[0])
            )
            end, _ = jax.vmap(run, (0, 1), (0, 1))(begin, piece)
            return (end if self.uses_sensitivity else (end, None)), carry

        return jax.lax.scan(advance, start, pieces)

    def outputs(self, network: Any, carry: PyTree, inputs: Inputs) -> tuple[Any, Array]:
        """Policies and values of segments, with the gradient that this choice stands for.

        **Arguments:**

        - `network`: a module with `scan` and `rtrl_scan`, such as `agents.ActorCritic`.
        - `carry`: the `(state, sensitivity)` at each segment's start, `[segment, ...]`.
        - `inputs`: leading axes `[time, segment]`.

        **Returns:**

        `(policy, value)`, leading axes `[time, segment]`.
        """
        if self.uses_sensitivity:
            run, start = network.rtrl_scan, carry
        else:
            run, start = network.scan, jax.lax.stop_gradient(carry[0])
        return jax.vmap(lambda c, i: run(c, i)[1], (0, 1), 1)(start, inputs)

    def to_dict(self) -> dict[str, Any]:
        """The choice as a dictionary of plain values, for JSON.

        **Returns:**

        The name of the choice and its settings.
        """
        return {"name": type(self).__name__, **asdict(self)}

    def init_sensitivity(self, memory: zoo.AbstractMemory) -> Any:
        """The sensitivity at the beginning of an episode, or `None` where none is used.

        **Arguments:**

        - `memory`: the network's memory.

        **Returns:**

        A pytree of zeros, or `None`.
        """
        return memory.rtrl_init() if self.uses_sensitivity else None


def _whole_segments(rollout_length: int, name: str, segment: int) -> int:
    check_counts(1, **{name: segment})
    if rollout_length % segment:
        raise ValueError(
            f"`rollout_length` (={rollout_length}) must be divisible by `{name}` (={segment})."
        )
    return segment


@dataclass(frozen=True)
class TBPTT(AbstractGradient):
    """Truncated backpropagation through time.

    The gradient of a step's loss reaches back to the start of its segment and no further: steps
    are cut into segments of `length`, so it reaches between 0 and `length - 1` steps back. The
    state at a segment's start is the one stored while acting.
    """

    length: int = 8

    def segment_length(self, rollout_length: int) -> int:
        """`length`."""
        return _whole_segments(rollout_length, "length", self.length)

    @property
    def uses_sensitivity(self) -> bool:
        """No."""
        return False


@dataclass(frozen=True)
class RTRL(AbstractGradient):
    """Real-time recurrent learning, in segments.

    The gradient of a step's loss reaches back through the whole episode: by backpropagation to the
    start of its segment, by the sensitivity from there on. `segment=1` is the classical form with
    independent minibatches of steps; longer segments give the same gradient with less memory and
    more parallelism.

    Parameters move while a rollout is used for several epochs, and sensitivities computed with the
    older ones grow stale. `refresh="never"` keeps them; `"epoch"` recomputes states and
    sensitivities along the rollout before every epoch after the first.
    """

    segment: int = 8
    refresh: str = "never"

    def __post_init__(self):
        if self.refresh not in _REFRESH:
            raise ValueError(f"`refresh` (={self.refresh!r}) must be one of {', '.join(_REFRESH)}.")

    def segment_length(self, rollout_length: int) -> int:
        """`segment`."""
        return _whole_segments(rollout_length, "segment", self.segment)

    @property
    def uses_sensitivity(self) -> bool:
        """Yes."""
        return True


@dataclass(frozen=True)
class BPTT(AbstractGradient):
    """Backpropagation through the whole rollout by a parallel scan.

    The gradient of a step's loss reaches back to the start of the rollout or of the episode,
    whichever is later.
    """

    def segment_length(self, rollout_length: int) -> int:
        """The whole rollout."""
        return rollout_length

    @property
    def uses_sensitivity(self) -> bool:
        """No."""
        return False


_CHOICES = {choice.__name__: choice for choice in (TBPTT, RTRL, BPTT)}


def gradient_from_dict(settings: dict[str, Any]) -> AbstractGradient:
    """The gradient choice that `to_dict` described.

    **Arguments:**

    - `settings`: a dictionary with `name` and the settings of that choice.

    **Returns:**

    `TBPTT`, `RTRL` or `BPTT`.

    **Raises:**

    `ValueError` for an unknown name.
    """
    settings = dict(settings)
    name = settings.pop("name")
    if name not in _CHOICES:
        raise ValueError(f"`gradient` (={name!r}) must be one of {', '.join(_CHOICES)}.")
    return _CHOICES[name](**settings)
