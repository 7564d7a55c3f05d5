"""What the card games share: a deck that costs nothing to reset, spaces and the rules of ending."""

import abc
import functools
from collections.abc import Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from annotated_types import Interval
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, UInt32

from zoo.annotations import checked

from ...core.base import BaseEnvironment
from ...core.hidden import Hides
from ...core.one_end import OneEnd

SUITS = 4
"""Kinds of cards of most games; a deck holds equally many of each."""

KINDS = {"colors": 2, "suits": SUITS, "ranks": 13}
"""What can tell cards apart, and how many kinds of cards that makes."""

CARDS_PER_DECK = 52

Decks = Annotated[int, Interval(ge=1, le=(2**16 - 1) // CARDS_PER_DECK)]
"""How many decks there may be: those that `deal` can deal from."""


def check_kinds(deck_type: Any, allowed: Sequence[str]) -> int:
    """Check what a game tells cards apart by.

    **Arguments:**

    - `deck_type`: what was given.
    - `allowed`: the keys of `KINDS` that the game accepts.

    **Returns:**

    How many kinds of cards there are.

    **Raises:**

    `ValueError` if `deck_type` is not allowed.
    """
    if deck_type not in allowed:
        rule = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
        raise ValueError(f"`deck_type` (={deck_type!r}) must be {rule}.")
    return KINDS[deck_type]


def full_deck(decks: int, kinds: int = SUITS) -> Int32[Array, " kinds"]:
    """Count the cards of each kind in some decks of 52."""
    return jnp.full((kinds,), decks * CARDS_PER_DECK // kinds, jnp.int32)


def deal(
    bits: UInt32[Array, "*games"], remaining: Int32[Array, "*games kinds"]
) -> tuple[Int32[Array, "*games"], Int32[Array, "*games kinds"]]:
    """Deal one card without replacement.

    Dealing from the counts of what remains has the distribution of dealing from a shuffled deck,
    but needs no permutation when the deck is made. gymnax computes a reset at every step, so a
    permutation there would be paid for at every step.

    **Arguments:**

    - `bits`: 32 random bits for each deck.
    - `remaining`: cards of each kind that are still in the deck, or in each of several decks; less
        than 65,536 in all. From an empty deck comes a card that means nothing.

    **Returns:**

    The kind of the card, and what remains after it; from each deck.
    """
    # The upper half of the 64 bits of `bits * cards`, which favors a card by at most
    # (number of cards) / 2^32. A remainder would do, but a CPU divides one number at a time.
    cards = remaining.sum(axis=-1, dtype=jnp.uint32)
    position = ((bits >> 16) * cards + (((bits & 0xFFFF) * cards) >> 16)) >> 16
    edges = jnp.cumsum(remaining[..., :-1], axis=-1, dtype=jnp.uint32)
    kind = (position[..., None] >= edges).sum(axis=-1, dtype=jnp.int32)
    # A comparison, not `.at[kind].add`, because it fuses with its neighbors and a scatter does not.
    return kind, remaining - jax.nn.one_hot(kind, remaining.shape[-1], dtype=jnp.int32)


class CardGame(OneEnd[Any, EnvParams], Hides, BaseEnvironment, abc.ABC):
    """Abstract: a game of naming something at every step until the deck is dealt out.

    The first card is dealt by the reset and one more by every step, so an episode has
    `num_cards - 1` steps, or more if the game goes over the deck again; then it terminates. Games
    give the state, which has `time`, in `begin` and `play`.
    """

    shown_by = ("begin", "play")

    @checked
    def __init__(
        self,
        decks: Decks,
        observations: spaces.Space,
        num_actions: int,
        *,
        kinds: int = SUITS,
        passes: int = 1,
        side_by_side: tuple[int, ...] = (),
    ):
        """**Arguments:**

        - `decks`: number of decks of 52 cards, shuffled together; at least 1.
        - `observations`: the space of observations.
        - `num_actions`: number of actions.
        - `kinds`: number of kinds of cards.
        - `passes`: how often an episode goes over the deck.
        - `side_by_side`: `(n,)` if n such decks are dealt side by side, as `begin` and `play` want
            them.
        """
        self.decks = decks
        self.kinds = kinds
        self._passes = passes
        self._side_by_side = side_by_side
        actions = spaces.Discrete(num_actions)
        super().__init__(observations=observations, actions=actions, limit=self.num_steps)

    @abc.abstractmethod
    def begin(self, bits: UInt32[Array, "*decks"]) -> tuple[Any, Any]:
        """Deal the first card of a full deck.

        **Arguments:**

        - `bits`: 32 random bits for `deal`.

        **Returns:**

        The observation and the state.
        """

    @abc.abstractmethod
    def play(
        self, bits: UInt32[Array, "*decks"], state: Any, action: Any
    ) -> tuple[Any, Any, Float32[Array, ""]]:
        """Score an action and deal a card.

        **Arguments:**

        - `bits`: 32 random bits for `deal`.

        **Returns:**

        The observation, the new state and the reward.
        """

    def _bits(self, key: PRNGKeyArray) -> UInt32[Array, "*decks"]:
        return jax.random.bits(key, self._side_by_side, jnp.uint32)

    def reset_env(self, key: PRNGKeyArray, params: EnvParams) -> tuple[Any, Any]:
        """Deal the first card of a full deck."""
        return self.begin(self._bits(key))

    def step_env(
        self, key: PRNGKeyArray, state: Any, action: Any, params: EnvParams
    ) -> tuple[Any, Any, Float32[Array, ""], Bool[Array, ""], dict]:
        """Score the action and deal a card."""
        observation, state, reward = self.play(self._bits(key), state, action)
        return observation, state, reward, self.is_terminated(state, params), {}

    @functools.partial(jax.jit, static_argnames=("self",))
    def step(
        self, key: PRNGKeyArray, state: Any, action: Any, params: EnvParams | None = None
    ) -> tuple[Any, Any, Float32[Array, ""], Bool[Array, ""], Bool[Array, ""], dict]:
        """Take a step, and reset with the same key where the episode ends.

        gymnax's own `step` calls the random number generator for two keys, for the card and for the
        reset; that is most of its time. Here one word serves both: the reset's card is one of
        `kinds` equally likely ones, and what is left of 32 random bits after that choice is as good
        as new for dealing the other card.
        """
        params = self.default_params if params is None else params
        bits = self._bits(key)
        last, state, reward = self.play(bits * jnp.uint32(self.kinds), state, action)
        terminated = self.is_terminated(state, params)
        truncated = self.is_truncated(state, params)
        done = terminated | truncated
        observation, state = jax.tree.map(
            lambda new, old: jnp.where(done, new, old), self.begin(bits), (last, state)
        )
        info = {"terminated": terminated, "truncated": truncated, "final_observation": last}
        return observation, state, reward, terminated, truncated, info

    @property
    def num_cards(self) -> int:
        """Cards in all decks together."""
        return CARDS_PER_DECK * self.decks

    @property
    def num_steps(self) -> int:
        """Steps of an episode that no time limit cuts off."""
        return self._passes * self.num_cards - 1

    def is_terminated(self, state: Any, params: EnvParams) -> Bool[Array, ""]:
        """Tell whether the game is over."""
        return state.time >= self.num_steps
