"""The cart-poles and pendulums by name."""

from ...core.entries import Entries, levels
from .cartpole import NoisyPositionOnlyCartPole, PositionOnlyCartPole, VelocityOnlyCartPole
from .pendulum import NoisyPositionOnlyPendulum, PositionOnlyPendulum

_CARTS = {
    "Easy": {"max_episode_length": 200},
    "Medium": {"max_episode_length": 400},
    "Hard": {"max_episode_length": 600},
}
_NOISY = {
    "Easy": {"max_episode_length": 200, "noise_sigma": 0.1},
    "Medium": {"max_episode_length": 200, "noise_sigma": 0.2},
    "Hard": {"max_episode_length": 200, "noise_sigma": 0.3},
}

ENTRIES: Entries = {
    **levels("PositionOnlyCartPole", PositionOnlyCartPole, **_CARTS),
    **levels("VelocityOnlyCartPole", VelocityOnlyCartPole, **_CARTS),
    **levels("NoisyPositionOnlyCartPole", NoisyPositionOnlyCartPole, **_NOISY),
    **levels(
        "PositionOnlyPendulum",
        PositionOnlyPendulum,
        Easy={"max_episode_length": 200},
        Medium={"max_episode_length": 150},
        Hard={"max_episode_length": 100},
    ),
    **levels("NoisyPositionOnlyPendulum", NoisyPositionOnlyPendulum, **_NOISY),
}
"""By name: class, and the constructor's arguments that the name fixes."""
