"""What the card games share: a deck that costs nothing to reset, spaces and the rules of ending."""

from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import spaces
from gymnax.environments.environment import Environment, EnvParams
from jaxtyping import Array, Bool, Int32, PRNGKeyArray

SUITS = 4
"""Kinds of cards; a deck holds equally many of each."""

CARDS_PER_DECK = 52


def check_integer(argument: str, value: Any) -> int:
    """Check that a constructor's argument is an integer.

    **Arguments:**

    - `argument`: its name, for the message.
    - `value`: what was given.

    **Returns:** the value as an `int`.

    **Raises:** `TypeError` if it is not an integer (a `bool` is none).
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"`{argument}` (={value!r}) must be an integer.")
    return int(value)


def full_deck(decks: int) -> Int32[Array, "4"]:
    """How many cards of each suit are in so many full decks.

    **Arguments:**

    - `decks`: number of decks of 52 cards.

    **Returns:** the count of each suit.
    """
    return jnp.full((SUITS,), decks * CARDS_PER_DECK // SUITS, jnp.int32)


def deal(
    key: PRNGKeyArray, remaining: Int32[Array, "4"]
) -> tuple[Int32[Array, ""], Int32[Array, "4"]]:
    """Deal one card without replacement.

    Dealing from the counts of what remains has the distribution of dealing from a shuffled deck,
    but needs no permutation when the deck is made. gymnax computes a reset at every step, so a
    permutation there would be paid for at every step.

    **Arguments:**

    - `key`: a PRNG key.
    - `remaining`: cards of each suit that are still in the deck; at least one in all.

    **Returns:** the suit of the card, and what remains after it.
    """
    # The remainder of 32 random bits favors a card by at most (number of cards) / 2^32.
    position = jax.random.bits(key, dtype=jnp.uint32) % remaining.sum(dtype=jnp.uint32)
    above = position >= jnp.cumsum(remaining[:-1], dtype=jnp.uint32)
    suit = above.sum(dtype=jnp.int32)
    # A comparison, not `.at[suit].add`, because it fuses with its neighbors and a scatter does not.
    return suit, remaining - (jnp.arange(SUITS, dtype=jnp.int32) == suit)


class CardGame(Environment[Any, EnvParams]):
    """Abstract: a game in which one card is shown at every step until the deck is dealt out.

    An observation is the suit of the present card, an action is a suit. The first card is dealt by
    the reset, so an episode has `num_cards - 1` steps; it terminates with the last card. Games
    give the state, which has `time`, in `reset_env` and `step_env`.
    """

    def __init__(self, decks: int):
        """**Arguments:**

        - `decks`: number of decks of 52 cards, shuffled together; at least 1.

        **Raises:** `TypeError` or `ValueError` if `decks` is not a positive integer.
        """
        super().__init__()
        self.decks = check_integer("decks", decks)
        if self.decks < 1:
            raise ValueError(f"`decks` (={decks}) must be at least 1.")

    @property
    def num_cards(self) -> int:
        """Cards in all decks together."""
        return CARDS_PER_DECK * self.decks

    @property
    def default_params(self) -> EnvParams:
        """Parameters whose time limit is the natural length of an episode."""
        return EnvParams(max_steps_in_episode=self.num_cards - 1)

    def is_terminated(self, state: Any, params: EnvParams) -> Bool[Array, ""]:
        """Whether the deck is dealt out.

        **Arguments:**

        - `state`: the state after a step.
        - `params`: the environment's parameters.

        **Returns:** a Boolean scalar.
        """
        return state.time >= self.num_cards - 1

    def is_truncated(self, state: Any, params: EnvParams) -> Bool[Array, ""]:
        """Whether the time limit, and not the end of the deck, ends the episode.

        **Arguments:**

        - `state`: the state after a step.
        - `params`: the environment's parameters.

        **Returns:** a Boolean scalar, never true together with `is_terminated`.
        """
        timeout = state.time >= params.max_steps_in_episode
        return timeout & ~self.is_terminated(state, params)

    @property
    def num_actions(self) -> int:
        """Number of actions: one for each suit."""
        return SUITS

    def action_space(self, params: EnvParams | None = None) -> spaces.Discrete:
        """The suits that can be named.

        **Arguments:**

        - `params`: not used.

        **Returns:** a discrete space of 4 actions.
        """
        return spaces.Discrete(SUITS)

    def observation_space(self, params: EnvParams | None = None) -> spaces.Discrete:
        """The suits that can be seen.

        **Arguments:**

        - `params`: not used.

        **Returns:** a discrete space of 4 observations.
        """
        return spaces.Discrete(SUITS)
