"""RepeatFirst: name the suit of the first card, all episode long."""

from typing import Any

import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

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

        **Raises:** `TypeError` or `ValueError` if `decks` is not a positive integer.
        """
        super().__init__(decks, spaces.Discrete(SUITS), num_actions=SUITS)

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Int32[Array, ""], EnvState]:
        """Deal the first card of a full deck.

        **Arguments:**

        - `key`: a PRNG key.
        - `params`: not used.

        **Returns:** the suit of the card, and the state.
        """
        suit, remaining = deal(key, full_deck(self.decks))
        return suit, EnvState(time=jnp.int32(0), remaining=remaining, first=suit)

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, ""], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Score the action, then deal a card. There is no auto-reset here: see `step`.

        **Arguments:**

        - `key`: a PRNG key.
        - `state`: the state.
        - `action`: a suit, from 0 to 3.
        - `params`: not used.

        **Returns:** the suit of the new card, the new state, the reward, whether the deck is dealt
        out, and an empty `info`.
        """
        scale = jnp.float32(1 / (self.num_cards - 1))
        reward = jnp.where(action == state.first, scale, -scale)
        suit, remaining = deal(key, state.remaining)
        state = EnvState(time=state.time + 1, remaining=remaining, first=state.first)
        return suit, state, reward, self.is_terminated(state, params), {}
