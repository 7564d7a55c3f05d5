"""Autoencode: watch a deck being dealt, then recite its suits backwards."""

from typing import Any

import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Float32, Int, Int32, UInt32

from ...core.lookup import at
from ...core.spaces import MultiDiscrete
from .card_game import SUITS, CardGame, deal, full_deck


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of Autoencode; batched states have leading axes.

    `time`: steps taken. `remaining`: cards of each suit in the deck, shape `(4,)`. `cards`: suits
    dealt so far in their order, shape `(52 d,)`; a place without a card is 0. All are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    remaining: Any
    cards: Any


class Autoencode(CardGame):
    r"""Watch all cards, then name their suits from the last to the first.

    An observation is the mode and a suit. The mode is 1 while cards are left in the deck, and the
    suit is that of the new card. With the last card the mode becomes 0; from the next step on the
    suit is 0 and shows nothing. An action that is taken in mode 0 names a suit and gives
    \( 1 / (52 d) \) if it is right and as much less than zero if it is wrong, so the best return
    is 1; the first one names the last card, which is still in sight. An action in mode 1 does
    nothing. It takes \( 52 d - 1 \) steps to watch and \( 52 d \) to recite. The same, step by
    step, as `Autoencode` of the Python package `popgym` 1.0.7 with the same order of cards.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    def __init__(self, decks: int = 1):
        """**Arguments:**

        - `decks`: number of decks of 52 cards, shuffled together; at least 1. POPGym's Easy,
            Medium and Hard have 1, 2 and 3.
        """
        super().__init__(decks, MultiDiscrete((2, SUITS)), num_actions=SUITS, passes=2)

    def begin(self, bits: UInt32[Array, ""]) -> tuple[Int32[Array, "2"], EnvState]:
        suit, remaining = deal(bits, full_deck(self.decks))
        cards = jnp.zeros((self.num_cards,), jnp.int32).at[0].set(suit)
        state = EnvState(time=jnp.int32(0), remaining=remaining, cards=cards)
        return jnp.stack([jnp.int32(1), suit]), state

    def play(
        self, bits: UInt32[Array, ""], state: EnvState, action: int | Int[Array, ""]
    ) -> tuple[Int32[Array, "2"], EnvState, Float32[Array, ""]]:
        """Deal a card, or score the action."""
        time = state.time + 1
        watching = time < self.num_cards
        dealt, remaining = deal(bits, state.remaining)
        suit = jnp.where(watching, dealt, 0)
        here = watching & (jnp.arange(self.num_cards, dtype=jnp.int32) == time)
        scale = jnp.float32(1 / self.num_cards)
        reward = jnp.where(action == at(2 * self.num_cards - 1 - time, state.cards), scale, -scale)
        reward = jnp.where(watching, jnp.float32(0), reward)
        state = EnvState(
            time=time,
            remaining=jnp.where(watching, remaining, state.remaining),
            cards=jnp.where(here, suit, state.cards),
        )
        # The mode tells what the next action is for, so it changes with the last card.
        mode = (time < self.num_cards - 1).astype(jnp.int32)
        return jnp.stack([mode, suit]), state, reward

    @property
    def hidden_space(self) -> spaces.Discrete:
        """A suit."""
        return spaces.Discrete(SUITS)

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell the suit to name; 0 while cards are dealt."""
        return at(2 * (self.num_cards - 1) - state.time, state.cards)
