"""Concentration: turn over two cards at a time and find those that match."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from gymnax.environments.environment import EnvState as GymnaxEnvState
from jaxtyping import Array, Bool, Float32, Int, Int32, PRNGKeyArray

from zoo.annotations import checked

from ...core.base import BaseEnvironment
from ...core.hidden import Hides
from ...core.lookup import at
from ...core.spaces import MultiDiscrete
from .card_game import CARDS_PER_DECK, Decks, check_kinds, deal, full_deck


@struct.dataclass
class EnvState(GymnaxEnvState):
    """State of Concentration; batched states have leading axes.

    `time`: steps taken. `remaining`: cards of each kind that were never turned, shape `(kinds,)`.
    `board`: kind of the card at each place, shape `(52 d,)`, or `kinds` where it was never turned.
    `up`: which cards are matched, shape `(52 d,)`. `first`: place of the first card of this turn,
    or `52 d` if none is turned. All are int32, but `up` is bool.
    """

    # `Any`, because JAX rebuilds the state from tracers, batches and placeholders alike.
    time: Any
    remaining: Any
    board: Any
    up: Any
    first: Any


class Concentration(Hides, BaseEnvironment):
    r"""Turn over cards, two in a turn: a pair that matches stays face up, another goes back.

    An observation is the kind of the card at each of the \( n = 52 d \) places, or the number of
    kinds where it is face down. An action is a place. A pair gives \( 2 / n \), so the best return
    is 1. With \( T = 2 n \) steps allowed, a miss gives \( -2 / T \) for the second card, which may
    be the first one again. To choose a matched card ends the turn and gives \( -1 / T \) as the
    first card and \( -2 / T \) as the second. The observation of a turn's end shows its cards. The
    episode terminates when all cards are up, and is truncated after \( T \) steps; both are true if
    both happen at once.

    A card's kind is drawn when it is turned for the first time, from the cards that were not turned
    before. That is the distribution of a board that is shuffled beforehand, and costs a reset
    nothing. The same, step by step, as `Concentration` of the Python package `popgym` 1.0.7 with
    the same board. It says that an agent needs its previous action.

    Source: Morad et al., "POPGym: Benchmarking Partially Observable Reinforcement Learning",
    ICLR 2023.
    """

    needs_previous_action = True

    @checked
    def __init__(self, decks: Decks = 1, deck_type: str = "ranks"):
        """**Arguments:**

        - `decks`: number of decks of 52 cards, shuffled together; at least 1. POPGym's Easy,
            Medium and Hard have 1, 2 and 1.
        - `deck_type`: what has to match: `"colors"` (2 kinds), as in Easy and Medium, or `"ranks"`
            (13), as in Hard.

        **Raises:**

        `TypeError` or `ValueError` if `decks` is not a positive integer; `ValueError` if
        `deck_type` is not one of the two: a deck has 13 cards of a suit, so one has no match.
        """
        self.decks = decks
        self.deck_type = deck_type
        self.kinds = check_kinds(deck_type, ("colors", "ranks"))
        super().__init__(
            observations=MultiDiscrete([self.kinds + 1] * self.num_cards),
            actions=spaces.Discrete(self.num_cards),
            limit=self.num_steps,
        )

    @property
    def num_cards(self) -> int:
        """Cards in all decks together."""
        return CARDS_PER_DECK * self.decks

    @property
    def num_steps(self) -> int:
        """Steps of an episode in which not all cards are matched."""
        return 2 * self.num_cards

    def reset_env(
        self, key: PRNGKeyArray, params: EnvParams
    ) -> tuple[Int32[Array, " places"], EnvState]:
        """Lay all cards face down."""
        board = jnp.full((self.num_cards,), self.kinds, jnp.int32)
        state = EnvState(
            time=jnp.int32(0),
            remaining=full_deck(self.decks, self.kinds),
            board=board,
            up=jnp.zeros((self.num_cards,), bool),
            first=jnp.int32(self.num_cards),
        )
        return board, state

    def step_env(
        self,
        key: PRNGKeyArray,
        state: EnvState,
        action: int | Int[Array, ""],
        params: EnvParams,
    ) -> tuple[Int32[Array, " places"], EnvState, Float32[Array, ""], Bool[Array, ""], dict]:
        """Turn a card over."""
        action = jnp.asarray(action, jnp.int32)
        places = jnp.arange(self.num_cards, dtype=jnp.int32)
        turned = places == action
        known = at(action, state.board)
        bits = jax.random.bits(key, (), jnp.uint32)
        dealt, remaining = deal(bits, state.remaining)
        new = known == self.kinds
        kind = jnp.where(new, dealt, known)
        board = jnp.where(turned, kind, state.board)

        in_play = turned | (places == state.first)
        observation = jnp.where(state.up | in_play, board, self.kinds)

        second = state.first < self.num_cards
        already_up = jnp.any(turned & state.up)
        match = (kind == at(state.first, board)) & (action != state.first)
        pair = second & ~already_up & match
        miss = jnp.where(second, jnp.float32(-2 / self.num_steps), jnp.float32(-1 / self.num_steps))
        reward = jnp.where(second | already_up, miss, jnp.float32(0))
        reward = jnp.where(pair, jnp.float32(2 / self.num_cards), reward)

        state = EnvState(
            time=state.time + 1,
            remaining=jnp.where(new, remaining, state.remaining),
            board=board,
            up=state.up | (in_play & pair),
            first=jnp.where(second | already_up, jnp.int32(self.num_cards), action),
        )
        return observation, state, reward, self.is_terminated(state, params), {}

    def is_terminated(self, state: EnvState, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether all cards are matched."""
        return jnp.all(state.up)

    @property
    def hidden_space(self) -> MultiDiscrete:
        """The kind of the card at each place, and the place of the turn's first card."""
        return MultiDiscrete([self.kinds] * self.num_cards + [self.num_cards + 1])

    def hidden(self, state: EnvState) -> Int32[Array, " numbers"]:
        """Tell all cards, and which of them is turned: `52 d` if none is."""
        return jnp.append(state.board, state.first)

    def uncovered(self, key: PRNGKeyArray, state: EnvState) -> EnvState:
        """Shuffle the cards."""
        cards = jnp.repeat(jnp.arange(self.kinds, dtype=jnp.int32), self.num_cards // self.kinds)
        board, none_left = jax.random.permutation(key, cards), jnp.zeros_like(state.remaining)
        return state.replace(board=board, remaining=none_left)  # pyright: ignore
