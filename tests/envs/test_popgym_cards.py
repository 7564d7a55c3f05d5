"""POPGym's card games and bandit: the same as the Python package with the same cards and luck."""

import numpy as np
import pytest
from popgym.envs import (
    autoencode,
    concentration,
    count_recall,
    higher_lower,
    multiarmed_bandit,
    repeat_first,
    repeat_previous,
)

from agents import envs
from tests.envs.popgym_oracle import assert_same_episode, order_of, our_episodes, stack

SEEDS = 60
FEW = 5  # of the levels that differ from another in the number of cards only


def deal_suits(theirs, seen):
    """Cards are dealt from the end of POPGym's deck."""
    suits = seen.reshape(len(seen), -1)[: theirs.deck.num_cards, -1]
    stack(theirs.deck, order_of(theirs.deck.suits_idx, suits)[::-1])


def deal_ranks(theirs, seen):
    stack(theirs.deck, order_of(theirs.deck.ranks_idx, seen)[::-1])


def deal_values_and_queries(theirs, seen):
    for deck, kinds in zip((theirs.value_deck, theirs.query_deck), seen.T, strict=True):
        stack(deck, order_of(theirs.deck_idx_type, kinds)[::-1])


GAMES = [
    ("RepeatFirstEasy", {}, repeat_first.RepeatFirstEasy, deal_suits),
    ("RepeatFirstMedium", {}, repeat_first.RepeatFirstMedium, deal_suits),
    ("RepeatFirstHard", {}, repeat_first.RepeatFirstHard, deal_suits),
    ("RepeatFirst", {"decks": 2}, lambda: repeat_first.RepeatFirst(2), deal_suits),
    ("RepeatPreviousEasy", {}, repeat_previous.RepeatPreviousEasy, deal_suits),
    ("RepeatPreviousMedium", {}, repeat_previous.RepeatPreviousMedium, deal_suits),
    ("RepeatPreviousHard", {}, repeat_previous.RepeatPreviousHard, deal_suits),
    ("RepeatPrevious", {"k": 1}, lambda: repeat_previous.RepeatPrevious(1, 1), deal_suits),
    ("RepeatPrevious", {"k": 10}, lambda: repeat_previous.RepeatPrevious(1, 10), deal_suits),
    ("RepeatPrevious", {"k": 51}, lambda: repeat_previous.RepeatPrevious(1, 51), deal_suits),
    (
        "RepeatPrevious",
        {"decks": 2, "k": 57},
        lambda: repeat_previous.RepeatPrevious(2, 57),
        deal_suits,
    ),
    ("AutoencodeEasy", {}, autoencode.AutoencodeEasy, deal_suits),
    ("AutoencodeMedium", {}, autoencode.AutoencodeMedium, deal_suits),
    ("AutoencodeHard", {}, autoencode.AutoencodeHard, deal_suits),
    ("CountRecallEasy", {}, count_recall.CountRecallEasy, deal_values_and_queries),
    ("CountRecallMedium", {}, count_recall.CountRecallMedium, deal_values_and_queries),
    ("CountRecallHard", {}, count_recall.CountRecallHard, deal_values_and_queries),
    (
        "CountRecall",
        {"decks": 3, "deck_type": "ranks"},
        lambda: count_recall.CountRecall(3, deck_type="ranks"),
        deal_values_and_queries,
    ),
    ("HigherLowerEasy", {}, higher_lower.HigherLowerEasy, deal_ranks),
    ("HigherLowerMedium", {}, higher_lower.HigherLowerMedium, deal_ranks),
    ("HigherLowerHard", {}, higher_lower.HigherLowerHard, deal_ranks),
]


def make_both(name, options, oracle):
    """Our environment, its parameters and theirs, after comparing their spaces."""
    env, params = envs.make(name, **options)
    theirs = oracle()
    assert env.num_actions == theirs.action_space.n
    assert sizes(env.observation_space(params)) == sizes(theirs.observation_space)
    return env, params, theirs


def sizes(space):
    """How many values each number of an observation has, in gymnax's spaces and in gymnasium's."""
    if hasattr(space, "spaces"):
        return [n for part in space.spaces for n in sizes(part)]
    return [int(n) for n in (space.nvec if hasattr(space, "nvec") else [space.n])]


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    ("name", "options", "oracle", "prepare"),
    [
        pytest.param(*game, marks=() if game[0].endswith("Easy") else pytest.mark.slow)
        for game in GAMES
    ],
)
def test_same_cards_same_episode(name, options, oracle, prepare):
    env, params, theirs = make_both(name, options, oracle)
    steps = getattr(theirs, "max_episode_length", env.num_cards - 1)
    assert envs.episode_steps(env, params) == steps
    seeds = FEW if name.endswith(("Medium", "Hard")) else SEEDS
    actions = np.random.default_rng(5).integers(env.num_actions, size=(seeds, steps))
    episodes = our_episodes(env, params, actions)
    for episode in episodes:
        prepare(theirs, episode[0])
        assert_same_episode(theirs, episode)
        assert episode[2].sum() == episode[2][-1] == 1
    # Both rewards occur, so that a constant one would have been noticed.
    assert {-1, 1} <= {np.sign(reward) for episode in episodes for reward in episode[1]}


CONCENTRATION = pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("ConcentrationEasy", concentration.ConcentrationEasy),
        ("ConcentrationMedium", concentration.ConcentrationMedium),
        ("ConcentrationHard", concentration.ConcentrationHard),
    ],
)


def shuffled_board(rng, env):
    return rng.permutation(env.num_cards) % env.kinds


def clicks(rng, board, waste):
    """Clicks that match all cards, and so many others that lead to nothing before the last pair."""
    pairs = [
        pair
        for kind in np.unique(board)
        for pair in rng.permutation(np.flatnonzero(board == kind)).reshape(-1, 2).tolist()
    ]
    rng.shuffle(pairs)
    script, up = [], []
    while pairs:
        if not waste or (len(pairs) > 1 and (rng.random() < 0.5 or (waste == 1 and not up))):
            pair = pairs.pop()
            script += pair
            up += pair
        elif waste == 1 or (up and rng.random() < 0.3):
            script.append(rng.choice(up))  # a matched card as the first of a turn
            waste -= 1
        else:
            down = np.ravel(pairs)
            first = rng.choice(down)
            others = down[board[down] != board[first]].tolist()
            # The same card again, a matched one, another kind.
            second = rng.choice([first, rng.choice(up or [first]), rng.choice(others or [first])])
            script += [first, second]
            waste -= 2
    return np.asarray(script)


@pytest.mark.slow
@CONCENTRATION
def test_concentration_with_random_clicks(name, oracle):
    """Our board, which is drawn card by card, laid out in theirs."""
    env, params, theirs = make_both(name, {}, oracle)
    assert envs.episode_steps(env, params) == theirs.episode_length == env.num_steps
    actions = np.random.default_rng(6).integers(env.num_cards, size=(SEEDS, env.num_steps))
    actions[::2, 1::3] = actions[::2, 0:-1:3]  # the same card again
    deck = theirs.deck
    for episode in our_episodes(env, params, actions):
        board = episode[0].min(axis=0)  # face down is the largest number
        missing = np.flatnonzero(board == env.kinds)
        left = env.num_cards // env.kinds - np.bincount(board, minlength=env.kinds + 1)
        board[missing] = np.repeat(np.arange(env.kinds), left[:-1])
        stack(deck, order_of(theirs.deck_idx_type, board))
        assert_same_episode(theirs, episode)


@pytest.mark.slow
@CONCENTRATION
def test_concentration_with_clicks_that_finish(name, oracle):
    """Their board, laid out in ours."""
    env, params, theirs = make_both(name, {}, oracle)
    rng = np.random.default_rng(7)
    n, steps = env.num_cards, env.num_steps
    boards = np.stack([shuffled_board(rng, env) for _ in range(SEEDS)]).astype(np.int32)
    # None wasted; the last pair at the last step, one step too late; any number.
    waste = [0, n, n + 1, *rng.integers(0, 5 * n // 4, SEEDS - 3)]
    scripts = [clicks(rng, board, w) for board, w in zip(boards, waste, strict=True)]
    assert all(len(script) == n + w for script, w in zip(scripts, waste, strict=True))
    actions = np.stack([np.resize(script, steps) for script in scripts])
    fields = {"board": boards, "remaining": np.zeros((SEEDS, env.kinds), np.int32)}
    episodes = our_episodes(env, params, actions, fields)
    deck = theirs.deck
    for episode, board, w in zip(episodes, boards, waste, strict=True):
        stack(deck, order_of(theirs.deck_idx_type, board))
        assert_same_episode(theirs, episode)
        flags = bool(episode[2][-1]), bool(episode[3][-1])
        assert flags == (w <= n, w >= n)
        assert len(episode[1]) == min(n + w, steps)
    np.testing.assert_allclose(episodes[0][1].sum(), 1, rtol=1e-6)  # the best return


class Luck:
    """A random generator that draws given probabilities, and then given luck."""

    def __init__(self, chances, pays):
        self.chances = chances
        # Luck pays if it is less than the arm's probability.
        self.luck = iter(np.where(pays, 0.0, np.nextafter(1.0, 0.0)))

    def random(self, size=None, dtype=None):
        return next(self.luck) if size is None else self.chances


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "oracle"),
    [
        ("MultiarmedBanditEasy", {}, multiarmed_bandit.MultiarmedBanditEasy),
        ("MultiarmedBanditMedium", {}, multiarmed_bandit.MultiarmedBanditMedium),
        ("MultiarmedBanditHard", {}, multiarmed_bandit.MultiarmedBanditHard),
        (
            "MultiarmedBandit",
            {"arms": 3, "episode_length": 50},
            lambda: multiarmed_bandit.MultiarmedBandit(3, 50),
        ),
    ],
)
def test_same_luck_same_episode(name, options, oracle):
    env, params, theirs = make_both(name, options, oracle)
    assert envs.episode_steps(env, params) == theirs.max_episode_length
    rng = np.random.default_rng(8)
    actions = rng.integers(env.arms, size=(SEEDS, env.episode_length))
    # Arms that always pay, never do, or sometimes: theirs must pay when ours does.
    chances = np.clip(rng.uniform(-0.5, 1.5, (SEEDS, env.arms)), 0, 1).astype(np.float32)
    episodes = our_episodes(env, params, actions, {"chances": chances})
    for episode, chance in zip(episodes, chances, strict=True):
        theirs.np_random = Luck(chance, episode[0][1:])
        assert_same_episode(theirs, episode)
        assert episode[3].sum() == episode[3][-1] == 1
