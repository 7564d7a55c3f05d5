"""CountRecall: how many cards of the kind asked for have been dealt so far?"""

from typing import Any

import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Float32, Int, Int32, UInt32

from zoo.annotations import checked

from ...core.lookup import at
from ...core.spaces import MultiDiscrete
from .card_game import (
    CARDS_PER_DECK,
    KINDS,
    CardGame,
    Decks,
    check_kinds,
    deal,
    full_deck,
)


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of CountRecall; batched states have leading axes.

    `time`: steps taken. `remaining`: cards of each kind in the deck of cards and in the deck of
    questions, shape `(2, kinds)`. `query`: the kind that is asked for. All are int32.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    remaining: Any
    query: Any


class CountRecall(CardGame):
    r"""Say how many cards of the kind asked for have been dealt, the present one included.

    Two decks, of cards and of questions, are dealt side by side; an observation is the kind of the
    new card and the kind asked for. The action is the count. It gives \( 1 / (52 d - 1) \) if it
    is right and as much less than zero if it is wrong, so the best return is 1. It takes
    \( 52 d - 1 \) steps to deal the decks out. The same, step by step, as `CountRecall` of the
    Python package `popgym` 1.0.7 with the same order of cards and questions; that package's
    `error_clamp`, which it does not use, does not exist here.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    @checked
    def __init__(self, decks: Decks = 1, deck_type: str = "colors"):
        """**Arguments:**

        - `decks`: number of decks of 52 cards, shuffled together; at least 1. POPGym's Easy,
            Medium and Hard have 1, 2 and 4.
        - `deck_type`: what is counted: `"colors"` (2 kinds), `"suits"` (4) or `"ranks"` (13), as
            in Easy, Medium and Hard.

        **Raises:**

        `TypeError` or `ValueError` if `decks` is not a positive integer; `ValueError` if
        `deck_type` is not one of the three.
        """
        self.deck_type = deck_type
        kinds = check_kinds(deck_type, tuple(KINDS))
        self.most = decks * CARDS_PER_DECK // kinds
        super().__init__(
            decks,
            MultiDiscrete((kinds,) * 2),
            num_actions=self.most + 1,
            kinds=kinds,
            side_by_side=(2,),
        )

    def begin(self, bits: UInt32[Array, "2"]) -> tuple[Int32[Array, "2"], EnvState]:
        """Deal the first card and the first question."""
        full = full_deck(self.decks, self.kinds)
        observation, remaining = deal(bits, jnp.stack([full, full]))
        state = EnvState(time=jnp.int32(0), remaining=remaining, query=observation[1])
        return observation, state

    def play(
        self, bits: UInt32[Array, "2"], state: EnvState, action: int | Int[Array, ""]
    ) -> tuple[Int32[Array, "2"], EnvState, Float32[Array, ""]]:
        """Score the action, then deal a card and a question."""
        scale = jnp.float32(1 / (self.num_cards - 1))
        count = self.most - at(state.query, state.remaining[0])
        reward = jnp.where(action == count, scale, -scale)
        observation, remaining = deal(bits, state.remaining)
        state = EnvState(time=state.time + 1, remaining=remaining, query=observation[1])
        return observation, state, reward

    @property
    def hidden_space(self) -> spaces.Discrete:
        """A count."""
        return spaces.Discrete(self.most + 1)

    def hidden(self, state: EnvState) -> Int32[Array, ""]:
        """Tell how many cards of the kind asked for have been dealt."""
        return self.most - at(state.query, state.remaining[0])
