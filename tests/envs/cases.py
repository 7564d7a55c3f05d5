"""The environments that every common test runs on: a new environment adds a row."""

from dataclasses import dataclass, field
from typing import Any

LIMIT = 6
"""Time limit of the conformance tests: short, so that every environment meets it."""


@dataclass(frozen=True)
class Case:
    """A name, options of `make`, and what is particular about the environment."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    ends_first: bool = False  # it always terminates before the limit, which is then not reached
    kept: tuple[str, ...] = ()  # fields of the state that a reset keeps, by design
    shows_limit: bool = False  # observations depend on the time limit
    slow: bool = (
        False  # its programs are compiled by `make test-all` only; types are always checked
    )

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{o}={v}" for o, v in self.options.items())])


_CARDS = (
    Case("RepeatFirst"),
    Case("RepeatFirst", {"decks": 2}),
    Case("RepeatFirstEasy"),
    Case("RepeatFirstMedium"),
    Case("RepeatFirstHard"),
    Case("RepeatPrevious"),
    Case("RepeatPrevious", {"decks": 2, "k": 1}),
    Case("RepeatPrevious", {"k": 10}),
    Case("RepeatPreviousEasy"),
    Case("RepeatPreviousMedium"),
    Case("RepeatPreviousHard"),
)

_BOARDS = ()

_CONTROL = ()

_PREDICTION = ()

_REMEMBERING = (
    Case("Recall", ends_first=True),
    Case("RecallVariation", ends_first=True),
    Case("RecallFour", ends_first=True),
    Case("Gravity"),
    Case("Gravity", {"external_memory": "O2"}),
    Case("RepeatPreviousEasy", {"external_memory": "K2"}),
    Case("RepeatFirst", {"external_memory": "OA1"}),
    Case("MemoryChain-bsuite", {"external_memory": "O1", "num_bits": 3, "memory_length": 10}),
    Case("CartPole-v1", {"external_memory": "B2"}),
    Case("Pendulum-v1", {"external_memory": "K1"}),
    Case("HallwayCookie"),
    Case("HallwayKeys"),
    Case("MemoryS7"),
    Case("RedBlueDoors8x8"),
)

_BRAX = ()

_GYMNAX = (
    Case("CartPole-v1"),
    Case("Pendulum-v1"),
    Case("Acrobot-v1", slow=True),
    Case("MountainCar-v0", slow=True),
    Case("MountainCarContinuous-v0", slow=True),
    Case("Asterix-MinAtar", slow=True),
    Case("Breakout-MinAtar", slow=True),
    Case("Freeway-MinAtar", slow=True),
    Case("Seaquest-MinAtar", slow=True),
    Case("SpaceInvaders-MinAtar", slow=True),
    Case("Catch-bsuite"),
    # bsuite's own score, counted over episodes, is part of the state.
    Case("DeepSea-bsuite", kept=("total_bad_episodes", "denoised_return")),
    Case("MemoryChain-bsuite", {"memory_length": 3}, ends_first=True),
    Case("MemoryChain-bsuite", {"memory_length": 10, "num_bits": 3}),
    Case("UmbrellaChain-bsuite"),
    Case("DiscountingChain-bsuite", shows_limit=True),
    Case("SimpleBandit-bsuite", ends_first=True),
    Case("FourRooms-misc"),
    Case("MetaMaze-misc", slow=True),
    Case("PointRobot-misc", slow=True),
    Case("BernoulliBandit-misc"),
    Case("GaussianBandit-misc", slow=True),
    Case("Reacher-misc", slow=True),
    Case("Swimmer-misc", slow=True),
    Case("Pong-misc", slow=True),
    Case("FrozenLake-misc"),
)

CASES = (
    *_CARDS,
    *_BOARDS,
    *_CONTROL,
    *_PREDICTION,
    *_REMEMBERING,
    *_BRAX,
    *_GYMNAX,
)
