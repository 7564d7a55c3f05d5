"""RepeatFirst: name the suit of the first card, all episode long."""

from typing import Any

import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Float32, Int, Int32, UInt32

from .card_game import SUITS, CardGame, deal, full_deck


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of RepeatFirst; batched states have leading axes.

    `time`: steps taken. `remaining`: cards of each suit in the deck, shape `(4,)`. `first`: suit of
    the first card. All are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    remaining: Any
    first: Any


class RepeatFirst(CardGame):
    r"""Name the suit of the first card at every step.

    A step gives \( 1 / (52 d - 1) \) for the right suit and as much less than zero for a wrong one,
    so the best return is 1. It takes \( 52 d - 1 \) steps to deal \( d \) decks out. The same, step
    by step, as `RepeatFirst` of the Python package `popgym` 1.0.7 with the same order of cards.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    def __init__(self, decks: int = 1):
        """**Arguments:**

        - `decks`: number of decks of 52 cards, shuffled together; at least 1. POPGym's Easy,
            Medium and Hard have 1, 8 and 16.
        """
        super().__init__(decks, spaces.Discrete(SUITS), num_actions=SUITS)

    def begin(self, bits: UInt32[Array, ""]) -> tuple[Int32[Array, ""], EnvState]:
        suit, remaining = deal(bits, full_deck(self.decks))
        return suit, EnvState(time=jnp.int32(0), remaining=remaining, first=suit)

    def play(
        self, bits: UInt32[Array, ""], state: EnvState, action: int | Int[Array, ""]
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""]]:
        """Score the action, then deal a card."""
        scale = jnp.float32(1 / (self.num_cards - 1))
        reward = jnp.where(action == state.first, scale, -scale)
        suit, remaining = deal(bits, state.remaining)
        state = EnvState(time=state.time + 1, remaining=remaining, first=state.first)
        return suit, state, reward

    @property
    def hidden_space(self) -> spaces.Discrete:
        """A suit."""
        return spaces.Discrete(SUITS)

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell the suit to name."""
        return state.first
