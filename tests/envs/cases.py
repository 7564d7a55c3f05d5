"""The environments that every common test runs on: a new class of environments adds a row.

Names that fix other options of the same class, such as levels, need none: each is made and stepped.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents import envs
from tests.cases import slow_but
from tests.envs.fake_packages import PORTS

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
    one_key: bool = False  # the auto-reset has the step's key, and not a part of it
    slow: bool = False  # its tests are slow ones: quick is one of a kind
    heavy: bool = False  # its programs take seconds to compile

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{o}={v}" for o, v in self.options.items())])


_CARDS = (
    Case("Autoencode", one_key=True, slow=True),
    Case("Concentration", {"decks": 1, "deck_type": "ranks"}, slow=True),
    Case("CountRecall", {"decks": 2, "deck_type": "ranks"}, one_key=True, slow=True),
    Case("HigherLower", one_key=True, slow=True),
    Case("MultiarmedBandit", {"arms": 3, "episode_length": 9}, slow=True),
    Case("RepeatFirst", {"decks": 2}, one_key=True, slow=True),
    Case("RepeatPrevious", {"decks": 2, "k": 1}, one_key=True, slow=True),
    Case("RepeatPreviousEasy", one_key=True),
)

_BOARDS = (
    Case("Battleship", {"board_size": 3, "ship_sizes": (2, 1)}, slow=True),
    Case("LabyrinthEscape", {"size": 6}, slow=True),
    Case("LabyrinthExplore", {"size": 6}, slow=True),
    Case("MineSweeper", {"board_size": 3, "num_mines": 1}, slow=True),
)

_CONTROL = (
    Case("PositionOnlyCartPole", slow=True),
    Case("VelocityOnlyCartPole", slow=True),
    Case("NoisyPositionOnlyCartPole", slow=True),
    Case("PositionOnlyPendulum", slow=True),
    Case("NoisyPositionOnlyPendulum", slow=True),
)

_PREDICTION = (
    Case("trace_conditioning", slow=True),
    Case("trace_conditioning", {"num_distractors": 0, "expected_isi": 30}, slow=True),
    Case("copy", {"max_bits": 2}, ends_first=True),
    Case("three_state", slow=True),
    Case("three_state_cycle", slow=True),
    Case("t_maze"),
    Case("memory_chain", {"length": 2, "bits": 2}, ends_first=True, slow=True),
    Case("mortar_mayhem", slow=True),
    Case("mystery_path", slow=True),
)

_REMEMBERING = (
    Case("recall", ends_first=True, slow=True),
    Case("gravity", slow=True),
    Case("gravity", {"external_memory": "O2"}, slow=True),
    Case("RepeatPreviousEasy", {"external_memory": "K2"}, one_key=True),
    Case("CartPole-v1", {"external_memory": "B2"}, slow=True),
    Case("hallway_cookie", slow=True),
    Case("hallway_keys", {"external_memory": "OA2"}, slow=True),
    Case("hallway_keys", slow=True),
    Case("MemoryS7", slow=True),
    Case("RedBlueDoors-8x8", slow=True),
)

# One class: `test_brax.py` looks at the other bodies, and at what is shown of each.
_BRAX = (
    Case("brax/inverted_pendulum", slow=True),
    Case("brax/reacher-pomdp", slow=True),
)

# Each port with a small game in the way of its package, which the tests do not install.
_PORTS = tuple(Case(name, slow=True, heavy=name != "fake/craftax") for name in PORTS)

# The packages themselves, where they are installed: CONTRIBUTING.md says how.
_PACKAGES = (
    Case("craftax/Craftax-Symbolic-v1", slow=True, heavy=True),
    Case("craftax/Craftax-Classic-Symbolic-v1", slow=True, heavy=True),
    Case("craftax/Craftax-Classic-Pixels-v1", slow=True, heavy=True),
    Case("jumanji/Maze-v0", slow=True),
    Case("jumanji/Knapsack-v1", slow=True),
    Case("jumanji/Minesweeper-v0", slow=True),
    Case("navix/Navix-DoorKey-Random-5x5-v0", slow=True),
    Case("navix/Navix-LavaGapS5-v0", {"observe": "all"}, slow=True),
    Case("playground/CartpoleBalance", slow=True, heavy=True),
    Case("xminigrid/MiniGrid-MemoryS8", slow=True),
    Case("xminigrid/MiniGrid-DoorKey-5x5", {"view_size": 5}, slow=True),
)

_GYMNAX = (
    Case("CartPole-v1"),
    Case("Pendulum-v1", slow=True),
    Case("Acrobot-v1", slow=True, heavy=True),
    Case("MountainCar-v0", slow=True, heavy=True),
    Case("MountainCarContinuous-v0", slow=True, heavy=True),
    Case("Asterix-MinAtar", slow=True, heavy=True),
    Case("Breakout-MinAtar", slow=True, heavy=True),
    Case("Breakout-MinAtar", {"mask": "top"}, slow=True, heavy=True),
    Case("Freeway-MinAtar", slow=True, heavy=True),
    Case("Seaquest-MinAtar", slow=True, heavy=True),
    Case("SpaceInvaders-MinAtar", slow=True, heavy=True),
    Case("Catch-bsuite", slow=True),
    # bsuite's own score, counted over episodes, is part of the state.
    Case("DeepSea-bsuite", kept=("total_bad_episodes", "denoised_return"), slow=True),
    Case("MemoryChain-bsuite", {"memory_length": 3}, ends_first=True, slow=True),
    Case("MemoryChain-bsuite", {"memory_length": 10, "num_bits": 3}, slow=True),
    Case("UmbrellaChain-bsuite", slow=True),
    Case("DiscountingChain-bsuite", shows_limit=True, slow=True),
    Case("SimpleBandit-bsuite", ends_first=True, slow=True),
    Case("FourRooms-misc", slow=True),
    Case("MetaMaze-misc", slow=True, heavy=True),
    Case("PointRobot-misc", slow=True, heavy=True),
    Case("BernoulliBandit-misc", slow=True),
    Case("GaussianBandit-misc", slow=True, heavy=True),
    Case("Reacher-misc", slow=True, heavy=True),
    Case("Swimmer-misc", slow=True, heavy=True),
    Case("Pong-misc", slow=True, heavy=True),
    Case("FrozenLake-misc", slow=True),
)

CASES = (
    *_CARDS,
    *_BOARDS,
    *_CONTROL,
    *_PREDICTION,
    *_REMEMBERING,
    *_BRAX,
    *_PORTS,
    *(case for case in _PACKAGES if case.name in envs.names()),
    *_GYMNAX,
)


def parametrize(
    cases: Iterable[Case], *, quick: Collection[str] | None = None
) -> pytest.MarkDecorator:
    """Run a test for every row, as `case`; slow rows are marked.

    - `quick`: mark all rows slow but those of these names, and of them those that are slow anyway.
    """
    cases = tuple(cases)
    kept = [case for case in cases if not case.slow and (quick is None or case.name in quick)]
    return pytest.mark.parametrize("case", slow_but(kept, cases), ids=str)
