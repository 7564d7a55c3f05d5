"""HigherLower: will the next card be higher or lower than the present one?"""

from typing import Any

import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Float32, Int, Int32, UInt32

from .card_game import KINDS, CardGame, deal, full_deck

RANKS = KINDS["ranks"]


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of HigherLower; batched states have leading axes.

    `time`: steps taken. `remaining`: cards of each rank in the deck, shape `(13,)`. `rank`: rank of
    the present card, 0 for an ace up to 12 for a king. All are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    remaining: Any
    rank: Any


class HigherLower(CardGame):
    r"""Guess whether the next card is higher (action 0) or lower (action 1) than the present one.

    An observation is the rank of the present card, 0 to 12. A step gives \( 1 / (52 d) \) for a
    right guess, as much less than zero for a wrong one, and 0 if the two ranks are equal. It takes
    \( 52 d - 1 \) steps to deal \( d \) decks out. Who knows the order of the cards gets
    \( 12/13 \) on average; a player can do no better than to count the cards that remain. The
    same, step by step, as `HigherLower` of the Python package `popgym` 1.0.7 with the same order of
    cards.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    def __init__(self, decks: int = 1):
        """**Arguments:**

        - `decks`: number of decks of 52 cards, shuffled together; at least 1. POPGym's Easy,
            Medium and Hard have 1, 2 and 3.
        """
        super().__init__(decks, spaces.Discrete(RANKS), num_actions=2, kinds=RANKS)

    def begin(self, bits: UInt32[Array, ""]) -> tuple[Int32[Array, ""], EnvState]:
        rank, remaining = deal(bits, full_deck(self.decks, RANKS))
        return rank, EnvState(time=jnp.int32(0), remaining=remaining, rank=rank)

    def play(
        self, bits: UInt32[Array, ""], state: EnvState, action: int | Int[Array, ""]
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""]]:
        """Deal a card and compare it with the guess."""
        rank, remaining = deal(bits, state.remaining)
        scale = jnp.float32(1 / self.num_cards)
        right = (rank > state.rank) == (jnp.asarray(action) == 0)
        reward = jnp.where(right, scale, -scale)
        reward = jnp.where(rank == state.rank, jnp.float32(0), reward)
        state = EnvState(time=state.time + 1, remaining=remaining, rank=rank)
        return rank, state, reward

    @property
    def hidden_space(self) -> spaces.Box:
        """Shares, of each rank."""
        return spaces.Box(0.0, 1.0, (RANKS,), jnp.float32)

    def hidden(self, state: EnvState) -> Float32[Array, " ranks"]:
        """Tell which share of the cards of each rank is still in the deck."""
        return state.remaining.astype(jnp.float32) * RANKS / self.num_cards
