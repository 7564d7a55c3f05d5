"""RepeatPrevious: name the suit of the card from k - 1 steps ago."""

from typing import Any

import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Float32, Int, Int32, UInt32

from zoo.annotations import checked

from ...core.lookup import at
from .card_game import CARDS_PER_DECK, SUITS, CardGame, Decks, deal, full_deck


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of RepeatPrevious; batched states have leading axes.

    `time`: steps taken. `remaining`: cards of each suit in the deck, shape `(4,)`. `recent`: suits
    of the last k cards, shape `(k,)`; card i of the episode is at `i % k`, and a place without a
    card is 0. All are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    remaining: Any
    recent: Any


class RepeatPrevious(CardGame):
    r"""Name the suit of the card k - 1 steps before the present one; k = 1 is the present card.

    As soon as k cards have been seen, a step gives \( 1 / (52 d - k) \) for the right suit and as
    much less than zero for a wrong one; before that it gives 0. That scores \( 52 d - k \) of an
    episode's \( 52 d - 1 \) steps, so the best return is 1. The same, step by step, as
    `RepeatPrevious` of the Python package `popgym` 1.0.7 with the same order of cards.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    @checked
    def __init__(self, decks: Decks = 1, k: int = 4):
        """**Arguments:**

        - `decks`: number of decks of 52 cards, shuffled together; at least 1.
        - `k`: how many cards must be kept in mind, the present one among them; at least 1 and less
            than 52 times `decks`. POPGym's Easy, Medium and Hard have 4, 32 and 64, with 1, 2 and
            3 decks.
        """
        super().__init__(decks, spaces.Discrete(SUITS), num_actions=SUITS)
        self.k = k
        if not 1 <= self.k < self.num_cards:
            raise ValueError(
                f"`k` (={k}) must be at least 1 and less than "
                f"{CARDS_PER_DECK} * decks (={self.num_cards})."
            )

    def begin(self, bits: UInt32[Array, ""]) -> tuple[Int32[Array, ""], EnvState]:
        suit, remaining = deal(bits, full_deck(self.decks))
        recent = jnp.zeros((self.k,), jnp.int32).at[0].set(suit)
        return suit, EnvState(time=jnp.int32(0), remaining=remaining, recent=recent)

    def play(
        self, bits: UInt32[Array, ""], state: EnvState, action: int | Int[Array, ""]
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""]]:
        """Score the action, then deal a card."""
        time = state.time + 1
        # The new card goes where the oldest of the last k is, and the oldest is the one asked for.
        oldest = time % self.k
        scale = jnp.float32(1 / (self.num_cards - self.k))
        reward = jnp.where(action == at(oldest, state.recent), scale, -scale)
        reward = jnp.where(time >= self.k, reward, jnp.float32(0))
        suit, remaining = deal(bits, state.remaining)
        here = jnp.arange(self.k, dtype=jnp.int32) == oldest
        recent = jnp.where(here, suit, state.recent)
        state = EnvState(time=time, remaining=remaining, recent=recent)
        return suit, state, reward

    @property
    def hidden_space(self) -> spaces.Discrete:
        """A suit."""
        return spaces.Discrete(SUITS)

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell the suit to name; 0 where none is asked for yet."""
        return at((state.time + 1) % self.k, state.recent)
