"""brax's robots and the environments of other JAX packages by name."""

from collections.abc import Mapping

from ..core.entries import Entries
from . import craftax_port, jumanji_port, navix_port, playground_port, xminigrid_port
from .brax_env import LAYOUTS, SUFFIXES, BraxEnvironment
from .package_env import is_installed

_PORTS = (
    (craftax_port.CraftaxPort, craftax_port.craftax, craftax_port.NAMES),
    (jumanji_port.JumanjiPort, jumanji_port.jumanji, jumanji_port.NAMES),
    (navix_port.NavixPort, navix_port.navix, navix_port.NAMES),
    (playground_port.PlaygroundPort, playground_port.playground, playground_port.NAMES),
    (xminigrid_port.XMiniGridPort, xminigrid_port.xminigrid, xminigrid_port.NAMES),
)

ENTRIES: Entries = {
    **{
        f"brax/{body}{SUFFIXES[observe]}": (
            BraxEnvironment,
            {"env_name": body, "observe": observe},
        )
        for body in LAYOUTS
        for observe in ("all", "positions", "velocities")
    },
    "brax/reacher-pomdp": (BraxEnvironment, {"env_name": "reacher", "observe": "target_once"}),
    **{
        f"{kind.extra}/{name}": (make, {"env_name": name})
        for kind, make, names in _PORTS
        for name in names
    },
}
"""By name: class, and the constructor's arguments that the name fixes."""

_PACKAGES: Mapping[str, str] = {kind.extra: kind.package for kind, _, _ in _PORTS}


def absent() -> tuple[str, ...]:
    """List the beginnings of the names whose package is not installed, which are not listed."""
    return tuple(f"{extra}/" for extra, module in _PACKAGES.items() if not is_installed(module))


_AGENTS = "it has a reward for each of several agents"
_ROBOTS = "MuJoCo Playground downloads its robot when it is made"

REFUSED: Mapping[str, str] = {
    "jumanji/Sokoban": "it downloads its levels when it is made",
    **dict.fromkeys(
        ("jumanji/Connector", "jumanji/LevelBasedForaging", "jumanji/SearchAndRescue"), _AGENTS
    ),
    **dict.fromkeys(
        (
            f"playground/{robot}"
            for robot in (
                *("Aero", "Aloha", "Apollo", "Barkour", "Berkeley", "G1", "Go1", "H1", "Leap"),
                *("Op3", "Panda", "Spot", "T1"),
            )
        ),
        _ROBOTS,
    ),
    "xminigrid/XLand-": "it has no goal without rules, which are downloaded",
}
"""How the names of environments begin that these packages have and the library has not: why."""
