"""What a shuffled deck is, and what shuffling one costs."""

import numpy as np


def assert_shuffled(cards, kinds):
    """Chi-square against the law of a shuffled deck; the bounds are five standard deviations.

    `cards` are `[episode, card]`, with equally many of each kind in an episode.
    """
    episodes, n = cards.shape
    counts = np.stack([(cards == kind).sum(axis=0) for kind in range(kinds)])
    chi_square = ((counts - episodes / kinds) ** 2 / (episodes / kinds)).sum(axis=0)
    assert abs(chi_square.mean() - (kinds - 1)) < 5 * np.sqrt(2 * (kinds - 1) / n)
    # A pair of neighbors, wherever it is: the second card lacks the first one in its deck.
    probability = np.full((kinds, kinds), n / kinds) - np.eye(kinds)
    probability /= kinds * (n - 1)
    freedom = kinds**2 - 1
    for place in (0, n // 2, n - 2):
        pairs = np.bincount(kinds * cards[:, place] + cards[:, place + 1], minlength=kinds**2)
        expected = episodes * probability.ravel()
        deviation = ((pairs - expected) ** 2 / expected).sum() - freedom
        assert deviation < 5 * np.sqrt(2 * freedom)
    # All pairs together tell dealing without replacement from dealing with it.
    repeats = (cards[:, 1:] == cards[:, :-1]).mean()
    law = (n / kinds - 1) / (n - 1)
    error = np.sqrt(law * (1 - law) / episodes / (n - 1))
    assert abs(repeats - law) < 5 * error < 1 / kinds - law


def primitives(program):
    """Names of all primitives of a jaxpr, inside of inner ones too."""
    for equation in program.eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from primitives(inner)
