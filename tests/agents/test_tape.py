"""The tape against a plain list of episodes, and its segments against flashbax."""

from functools import cache
from types import SimpleNamespace

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given

from agents.learning.tape import Tape, sample_episodes, sample_segments

TIME, CAPACITY = 4, 11
# What becomes of an episode with a step: it goes on, or ends in one of three ways.
GOES_ON, TERMINATED, TRUNCATED, BOTH = range(4)


class Model:
    """The episodes as lists of `(number, is a step)`, the oldest first."""

    def __init__(self, capacity):
        self.capacity, self.episodes, self.running, self.number = capacity, [], [], 0

    def rows(self):
        return sum(map(len, self.episodes)) + len(self.running or ())

    def append(self, end, begins):
        """One step, whose row is its number; a final observation's is a half more."""
        if begins:
            self.running = []
        new = [(float(self.number), True)]
        if end == TRUNCATED:
            new.append((self.number + 0.5, False))
        self.number += 1
        if self.running is None:  # too long: left out to its end
            return
        self.running += new
        while self.rows() > self.capacity and self.episodes:
            self.episodes.pop(0)
        if self.rows() > self.capacity:
            self.running = None
        elif end != GOES_ON:
            self.episodes.append(self.running)
            self.running = []


def flags_of(ends, begin):
    """`begin`, `terminated` and `truncated` of steps that end so."""
    ends = np.asarray(ends)
    done = ends != GOES_ON
    starts = np.concatenate([[begin], done[:-1]])
    terminated, truncated = np.isin(ends, (TERMINATED, BOTH)), np.isin(ends, (TRUNCATED, BOTH))
    flags = {"begin": starts, "terminated": terminated, "truncated": truncated}
    return jax.tree.map(jnp.asarray, flags)


@cache
def programs(capacity, time):
    """The compiled functions that all tests share."""
    row = {"number": jnp.zeros((), jnp.float32), "wide": jnp.zeros(2, jnp.int32)}

    def extend(tape, first, flags):
        number = (first + jnp.arange(time)).astype(jnp.float32)
        made = lambda x: {"number": x, "wide": jnp.stack([x, -x], 1).astype(jnp.int32)}  # noqa: E731
        return tape.extend(made(number), made(number + 0.5), **flags)

    return SimpleNamespace(empty=lambda: Tape.init(row, capacity), extend=jax.jit(extend))


def one_of(tapes):
    """The first of tapes side by side."""
    return jax.tree.map(lambda x: x[0], tapes)


def held(tape):
    """The complete episodes on one tape, the oldest first, as lists of rows."""
    places, found = tape.starts.shape[0], []
    for age in range(int(tape.episodes)):
        place = (int(tape.oldest) + age) % places
        start, end = int(tape.starts[place]), int(tape.starts[(place + 1) % places])
        length = (end - start - 1) % tape.capacity + 1
        numbers = np.asarray(tape.rows["number"])[(start + np.arange(length)) % tape.capacity]
        steps = int(tape.steps[place])
        found.append([(float(x), i < steps) for i, x in enumerate(numbers)])
    return found


def filled(ends, capacity=CAPACITY, time=TIME):
    """A tape and the model after the same steps, in calls of `time`."""
    compiled, model, begin = programs(capacity, time), Model(capacity), True
    tape = compiled.empty()
    for first in range(0, len(ends), time):
        flags = flags_of(ends[first : first + time], begin)
        tape = compiled.extend(tape, first, flags)
        for end, begins in zip(ends[first : first + time], flags["begin"], strict=True):
            model.append(end, begins)
        begin = ends[first + time - 1] != GOES_ON
    return tape, model


def side_by_side(*tapes):
    return jax.tree.map(lambda *x: jnp.stack(x), *tapes)


def steps(most):
    """Ways in which steps end, most of them going on, in whole calls."""
    end = st.sampled_from([GOES_ON] * 5 + [TERMINATED, TRUNCATED, BOTH])
    return st.lists(end, min_size=TIME, max_size=most).map(lambda x: x[: len(x) // TIME * TIME])


@given(ends=steps(80))
@example([TERMINATED] * 11 + [TRUNCATED])  # two of one row make room for one of two
@example([GOES_ON] * 10 + [TERMINATED, TERMINATED])  # all the room there is
@example([GOES_ON] * 12 + [TERMINATED, GOES_ON, TRUNCATED, GOES_ON])  # more than that
def test_a_tape_holds_what_a_list_of_episodes_holds(ends):
    """After every call, so that nothing is ever half dropped, nothing moved and nothing lost."""
    compiled, model, begin = programs(CAPACITY, TIME), Model(CAPACITY), True
    tape = compiled.empty()
    for first in range(0, len(ends), TIME):
        flags = flags_of(ends[first : first + TIME], begin)
        tape = compiled.extend(tape, first, flags)
        for end, begins in zip(ends[first : first + TIME], flags["begin"], strict=True):
            model.append(end, begins)
        begin = ends[first + TIME - 1] != GOES_ON
        assert held(tape) == model.episodes
        assert int(tape.kept) == sum(map(len, model.episodes))
        assert int(tape.unfinished) == len(model.running or ())
    np.testing.assert_array_equal(tape.rows["wide"][:, 0], tape.rows["number"].astype(jnp.int32))


LENGTH = 7
episodes_of = jax.jit(
    lambda tapes, key: jax.vmap(
        lambda k: sample_episodes(tapes, length=LENGTH, truncated=LENGTH, key=k)
    )(jax.random.split(key, 16))
)


@given(ends=steps(60), others=steps(40), seed=st.integers(0, 99))
def test_whole_episodes_are_drawn_to_exactly_so_many_steps(ends, others, seed):
    (tape, model), (other, second) = filled(ends), filled(others)
    # The second tape's rows are told apart by their sign.
    other = jax.tree.map(lambda x: -x - 1 if x.dtype == jnp.float32 else x, other)
    known = {tuple(e) for e in model.episodes}
    known |= {tuple((-x - 1, step) for x, step in e) for e in second.episodes}
    samples = episodes_of(side_by_side(tape, other), jax.random.key(seed))
    for rows, mask in zip(samples.rows["number"][..., 0], samples.mask[..., 0], strict=True):
        assert mask.sum() == (LENGTH if known else 0)
        if not known:
            continue
        row, left = 0, LENGTH
        starts = {episode[0][0]: episode for episode in known}
        while left:
            whole = starts[float(rows[row])]
            for number, is_step in whole:
                # All of it, until there are enough: also what the last step is followed by.
                assert float(rows[row]) == number and bool(mask[row]) == (is_step and left > 0)
                left -= is_step and left > 0
                row += 1
                if left == 0 and not mask[row - 1]:
                    break
        assert not mask[row:].any()


def chi_square(counts):
    """How probable counts at least so uneven are if all are equally likely."""
    from scipy import stats  # which takes half a second, of every worker that collects tests

    return stats.chisquare(counts).pvalue


def test_every_episode_is_equally_likely_the_newest_too():
    lengths = [1, 5, 2, 7, 3, 1, 4]
    ends = [e for n in lengths for e in [GOES_ON] * (n - 1) + [TERMINATED]]
    ends += [GOES_ON] * (-len(ends) % TIME)
    tape, model = filled(ends, capacity=40)
    assert len(model.episodes) == 7 and model.running == [(23.0, True)]
    draw = jax.jit(
        jax.vmap(lambda k: sample_episodes(side_by_side(tape), length=1, truncated=0, key=k))
    )
    drawn = draw(jax.random.split(jax.random.key(0), 7000)).rows["number"][:, 0, 0]
    firsts, counts = np.unique(drawn, return_counts=True)
    np.testing.assert_array_equal(firsts, [e[0][0] for e in model.episodes])
    assert chi_square(counts) > 0.01
    assert chi_square(counts * np.array(lengths)) < 1e-9, "the test sees no difference"


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("burn_in", [0, 2])
def test_every_segment_is_equally_likely_and_is_padded_and_masked(burn_in):
    """Segments of 3 of episodes of 1, 7 and 3 steps, the second of which was truncated."""
    ends = [TERMINATED, *[GOES_ON] * 6, TRUNCATED, GOES_ON, GOES_ON, BOTH, GOES_ON]
    tape, _ = filled(ends, capacity=40)
    expected = {  # the first of the rows that are learned from: all of them and the next
        0.0: ([0, 0, 0, 0], [1, 0, 0]),
        1.0: ([1, 2, 3, 4], [1, 1, 1]),
        4.0: ([4, 5, 6, 7], [1, 1, 1]),
        7.0: ([7, 7.5, 7.5, 7.5], [1, 0, 0]),
        8.0: ([8, 9, 10, 10], [1, 1, 1]),
    }
    before = {0.0: [0, 0], 1.0: [1, 1], 4.0: [2, 3], 7.0: [5, 6], 8.0: [8, 8]}
    sample = jax.jit(
        lambda key: sample_segments(
            side_by_side(tape), length=3, sequences=5000, burn_in=burn_in, key=key
        )
    )(jax.random.key(0))
    rows, mask = np.asarray(sample.rows["number"]), np.asarray(sample.mask)
    assert rows.shape == (burn_in + 4, 5000) and mask.shape == (3, 5000)
    firsts, counts = np.unique(rows[burn_in], return_counts=True)
    np.testing.assert_array_equal(firsts, list(expected))
    assert chi_square(counts) > 0.01
    for column in range(0, 5000, 50):
        numbers, learned = expected[float(rows[burn_in, column])]
        np.testing.assert_array_equal(rows[burn_in:, column], numbers)
        np.testing.assert_array_equal(mask[:, column], learned)
        if burn_in:
            np.testing.assert_array_equal(rows[:2, column], before[float(numbers[0])])


@pytest.mark.slow
def test_nothing_is_learned_from_an_empty_tape():
    tape, _ = filled([GOES_ON] * TIME)
    sample = sample_segments(side_by_side(tape, tape), length=3, sequences=4, key=jax.random.key(0))
    assert not sample.mask.any()


@pytest.mark.slow
def test_segments_are_those_of_flashbax():
    """One long episode, of which flashbax gives the sequences that start at multiples of 4."""
    fbx = pytest.importorskip("flashbax")
    envs, time, length = 3, 24, 4
    buffer = fbx.make_trajectory_buffer(
        add_batch_size=envs,
        sample_batch_size=4000,
        sample_sequence_length=length,
        period=length,
        min_length_time_axis=length,
        max_length_time_axis=time,
    )
    numbers = 100.0 * jnp.arange(envs)[:, None] + jnp.arange(time)[None]
    numbers = numbers.astype(jnp.float32)
    state = buffer.init(jnp.zeros((), jnp.float32))
    with jax.numpy_rank_promotion("allow"):  # which flashbax relies on
        state = jax.jit(buffer.add)(state, numbers)
        theirs = jax.jit(buffer.sample)(state, jax.random.key(1)).experience

    flags = flags_of([GOES_ON] * (time - 1) + [TERMINATED], True)
    tapes = jax.vmap(lambda _: Tape.init(jnp.zeros((), jnp.float32), 2 * time))(jnp.arange(envs))
    tapes = jax.jit(jax.vmap(lambda tape, rows: tape.extend(rows, rows, **flags)))(tapes, numbers)
    sample = jax.jit(lambda key: sample_segments(tapes, length=length, sequences=4000, key=key))
    drawn = sample(jax.random.key(1))
    assert drawn.mask.all()
    ours = drawn.rows[:length].T
    (one, some), (other, many) = (np.unique(x, axis=0, return_counts=True) for x in (theirs, ours))
    np.testing.assert_array_equal(one, other)
    assert len(one) == envs * time // length
    assert min(chi_square(some), chi_square(many)) > 0.01


def test_an_unfinished_episode_begun_anew_is_dropped():
    compiled = programs(CAPACITY, TIME)
    goes_on = [GOES_ON] * TIME
    tape = compiled.extend(compiled.empty(), 0, flags_of(goes_on, True))
    tape = compiled.extend(tape, 4, flags_of([GOES_ON, TERMINATED, GOES_ON, GOES_ON], True))
    assert held(tape) == [[(4.0, True), (5.0, True)]] and int(tape.unfinished) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: Tape.init(jnp.zeros(2), 0), r"`capacity` \(=0\) must be a whole number of at"),
        (
            lambda t: programs(2 * TIME - 1, TIME).extend(
                programs(2 * TIME - 1, TIME).empty(), 0, flags_of([0] * TIME, True)
            ),
            r"`capacity` \(=7\) must be at least twice the number of steps .* at once \(=4\)",
        ),
        (
            lambda t: sample_episodes(t, length=0, truncated=0, key=jax.random.key(0)),
            r"`length` \(=0\) must be",
        ),
        (
            lambda t: sample_segments(t, length=1, sequences=1, burn_in=-1, key=jax.random.key(0)),
            r"`burn_in` \(=-1\) must be",
        ),
        (
            lambda t: sample_episodes(one_of(t), length=1, truncated=0, key=jax.random.key(0)),
            r"`tapes` \(whose `episodes` have shape \(\)\) must have one leading axis over tapes",
        ),
        (
            lambda t: sample_segments(one_of(t), length=1, sequences=1, key=jax.random.key(0)),
            r"`tapes` \(whose `episodes` have shape \(\)\) must have one leading axis over tapes",
        ),
        *(
            (
                lambda t, flag=flag: one_of(t).extend(
                    *[jnp.zeros(2)] * 2,
                    **flags_of([GOES_ON] * 2, True) | {flag: jnp.zeros(3, bool)},
                ),
                rf"`{flag}` \(shape \(3,\)\) must have the shape of `begin`, \(2,\)\.",
            )
            for flag in ("terminated", "truncated")
        ),
        *(
            (
                lambda t, rows=rows, finals=finals: one_of(t).extend(
                    jnp.zeros(rows), jnp.zeros(finals), **flags_of([GOES_ON] * 2, True)
                ),
                rf"`{name}` \(of 1 steps\) must be of those of `begin`, 2\.",
            )
            for name, rows, finals in (("rows", 1, 2), ("finals", 2, 1))
        ),
    ],
)
def test_bad_sizes_are_named(call, message, unhooked):
    with pytest.raises(ValueError, match=message):
        call(side_by_side(programs(CAPACITY, TIME).empty()))
