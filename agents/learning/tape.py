"""A tape: a ring of steps that holds whole episodes end to end, and what is sampled from it.

```
 oldest ─┐                                     ┌─ where the unfinished episode begins
   ······│ o o o o │ o o o │ o o o o o f │ o o o ······
          complete: these are drawn from        free
```

Each `o` is a step, and `f` an observation that a truncated episode ended with: a row of its own, so
that one pass over the rows sees every observation once and in order, and the value after a row is
that of the next. An episode that was terminated needs none.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PyTree

import scan
from zoo.parts.checks import check_counts, check_shapes


class Tape(eqx.Module):
    """A ring of rows that holds whole episodes end to end.

    Where room is needed, the oldest episode is dropped whole. An unfinished one is kept, and drawn
    from once it is complete; one that does not fit at all is left out. Tapes side by side, one for
    each environment, have a leading axis: `jax.vmap` what one tape does; what is sampled is drawn
    from all of them.

    **Attributes:**

    - `rows`: what is kept, a leading axis of `capacity`.
    - `starts`: a ring of the rows at which episodes start, the unfinished one after the newest.
    - `steps`: how many steps each of them has, in the same places.
    - `oldest`: the place of the oldest episode in these two.
    - `episodes`: how many are complete.
    - `kept`, `unfinished`: rows of complete episodes, and of the unfinished one.
    - `recording`: whether the present episode is written; one that does not fit is not.
    """

    rows: PyTree
    starts: Int[Array, "*tapes places"]
    steps: Int[Array, "*tapes places"]
    oldest: Int[Array, "*tapes"]
    episodes: Int[Array, "*tapes"]
    kept: Int[Array, "*tapes"]
    unfinished: Int[Array, "*tapes"]
    recording: Bool[Array, "*tapes"]

    @classmethod
    def init(cls, row: PyTree, capacity: int) -> "Tape":
        """Return an empty tape.

        **Arguments:**

        - `row`: a row, or its shapes and dtypes.
        - `capacity`: how many rows there is room for.

        **Raises:**

        `ValueError` if there is room for none.
        """
        check_counts(1, capacity=capacity)
        places = jnp.zeros(capacity + 1, jnp.int32)
        none = jnp.int32(0)
        rows = jax.tree.map(lambda x: jnp.zeros((capacity, *x.shape), x.dtype), row)
        return cls(rows, places, places, none, none, none, none, jnp.bool_(False))

    @property
    def capacity(self) -> int:
        """How many rows there is room for."""
        return self.starts.shape[-1] - 1

    def extend(
        self,
        rows: PyTree,
        finals: PyTree,
        *,
        begin: Bool[Array, " time"],
        terminated: Bool[Array, " time"],
        truncated: Bool[Array, " time"],
    ) -> "Tape":
        """Append consecutive steps.

        **Arguments:**

        - `rows`: of each step, a leading time axis.
        - `finals`: the row for an episode's final observation; read where a step truncates an
          episode and does not terminate it.
        - `begin`: whether an episode begins at a step: at the first, and after each end.
        - `terminated`, `truncated`: whether it ends with it.

        **Raises:**

        `ValueError` where the capacity is less than two rows for each step, or flags, rows or
        finals are not of as many steps.
        """
        check_shapes(begin.shape, "`begin`", terminated=terminated, truncated=truncated)
        time = begin.shape[0]
        for name, tree in (("rows", rows), ("finals", finals)):
            if (steps := scan.check_steps(name, tree)) != time:
                raise ValueError(
                    f"`{name}` (of {steps} steps) must be of those of `begin`, {time}."
                )
        if self.capacity < 2 * time:
            raise ValueError(
                f"`capacity` (={self.capacity}) must be at least twice the number of steps that "
                f"are appended at once (={time})."
            )
        final = truncated & ~terminated
        flags = begin, terminated | truncated, final
        # Where each row goes is found step by step, in small numbers; then all are written at once.
        # No place is written twice, for capacity is at least what is appended.
        book, (at, final_at) = jax.lax.scan(_place, eqx.tree_at(_rows, self, None), flags)
        write = lambda kept, new, last: (  # noqa: E731
            kept.at[at].set(new, mode="drop").at[final_at].set(last, mode="drop")
        )
        written = jax.tree.map(write, self.rows, rows, finals)
        return eqx.tree_at(_rows, book, written)


def _rows(tape: Tape) -> PyTree:
    return tape.rows


def _place(tape: Tape, flags: tuple[Array, Array, Array]) -> tuple[Tape, tuple[Array, Array]]:
    """Make room for one step, and say at which row it is written, and its final observation."""
    begin, done, final = flags
    capacity, places = tape.capacity, tape.capacity + 1
    # An episode begun anew, where none has ended, takes the place of the unfinished one.
    unfinished = jnp.where(begin, 0, tape.unfinished)
    recording = begin | tape.recording
    needed = jnp.where(recording, 1 + final.astype(jnp.int32), 0)
    oldest, episodes, kept = tape.oldest, tape.episodes, tape.kept
    for _ in range(2):  # an episode has at least one row, and two are needed at most
        drops = (capacity - kept - unfinished < needed) & (episodes > 0)
        length = _length(tape.starts[oldest], tape.starts[(oldest + 1) % places], capacity)
        kept = kept - jnp.where(drops, length, 0)
        oldest = jnp.where(drops, (oldest + 1) % places, oldest)
        episodes = episodes - drops
    lost = capacity - kept - unfinished < needed
    recording = recording & ~lost
    place = (oldest + episodes) % places
    # What comes after a lost episode is not written over it: its rows may be of the same call.
    start = (tape.starts[place] + jnp.where(lost, unfinished, 0)) % capacity
    unfinished = jnp.where(lost, 0, unfinished)
    at = (start + unfinished) % capacity
    nowhere = jnp.int32(capacity)
    where = jnp.where(recording, at, nowhere)
    final_at = jnp.where(recording & final, (at + 1) % capacity, nowhere)
    unfinished = unfinished + jnp.where(recording, needed, 0)

    ends = recording & done
    length = jnp.where(ends, unfinished, 0)
    starts = tape.starts.at[place].set(start)
    following = (place + 1) % places
    starts = starts.at[following].set(
        jnp.where(ends, (start + length) % capacity, starts[following])
    )
    tape = Tape(
        rows=None,
        starts=starts,
        steps=tape.steps.at[place].set(length - final),
        oldest=oldest,
        episodes=episodes + ends,
        kept=kept + length,
        unfinished=jnp.where(ends, 0, unfinished),
        recording=recording,
    )
    return tape, (where, final_at)


def _length(start: Array, end: Array, capacity: int) -> Array:
    """The rows from a start to an end, of which there is one at least."""
    return (end - start - 1) % capacity + 1


class Sample(eqx.Module):
    """What was drawn: sequences of rows side by side.

    **Attributes:**

    - `rows`: leading axes `[time, sequence]`. The last row is there to bootstrap from.
    - `mask`: of all rows between the burn-in and the last one, whether they are learned from: not
      padding, and not final observations.
    """

    rows: PyTree
    mask: Bool[Array, "time sequence"]


class _Episodes(eqx.Module):
    """Complete episodes: on which tape, from which row, of how many rows and steps."""

    tape: Int[Array, "*drawn"]
    start: Int[Array, "*drawn"]
    rows: Int[Array, "*drawn"]
    steps: Int[Array, "*drawn"]


def sample_episodes(tapes: Tape, *, length: int, truncated: int, key: Array) -> Sample:
    """Draw whole episodes end to end until there are `length` steps, and cut the last one there.

    Every complete episode is as likely as any other, however long, and may come more than once.

    **Arguments:**

    - `tapes`: with a leading axis over them.
    - `length`: B, the steps to learn from.
    - `truncated`: how many episodes that end truncated B steps can hold. If there are more, fewer
      than B steps are learned from.

    **Returns:**

    One sequence of `length + truncated + 1` rows, in whose mask `length` are true; none is while
    there is no complete episode.

    **Raises:**

    `ValueError` for a count that breaks its rule, or tapes without their leading axis.
    """
    _check_axis(tapes)
    check_counts(1, length=length)
    check_counts(0, truncated=truncated)
    size = length + truncated + 1
    counts = jnp.cumsum(tapes.episodes, dtype=jnp.int32)
    total = counts[-1]
    # So many that they suffice if each has one row.
    drawn = jax.random.randint(key, (size,), 0, jnp.maximum(total, 1), jnp.int32)
    tape = jnp.minimum(jnp.searchsorted(counts, drawn, side="right"), counts.shape[0] - 1)
    place = tapes.oldest[tape] + drawn - (counts - tapes.episodes)[tape]
    episodes = _episodes(tapes, tape, place % tapes.starts.shape[1])
    room = jnp.minimum(episodes.rows, size)  # a sum of whole lengths could pass 2^31
    ends = jnp.cumsum(room, dtype=jnp.int32)
    row = jnp.arange(size, dtype=jnp.int32)
    which = jnp.searchsorted(ends, row, side="right")
    chosen = jax.tree.map(lambda x: x[which], episodes)
    offset = row - (ends - room)[which]
    is_step = (offset < chosen.steps) & (total > 0)
    # One past the last step: what follows it is the next row, never another sequence's.
    mask = (is_step & (jnp.cumsum(is_step) <= length))[:-1]
    return Sample(_gather(tapes, chosen, offset, axis=1), mask[:, None])


def sample_segments(
    tapes: Tape, *, length: int, sequences: int, burn_in: int = 0, key: Array
) -> Sample:
    """Draw segments: each episode is cut at `length`, `2 length`, …, and the last one is padded.

    Every segment of every complete episode is as likely as any other, and may come more than once.

    **Arguments:**

    - `tapes`: with a leading axis over them.
    - `length`: L, steps of a segment, padding included.
    - `sequences`: how many are drawn.
    - `burn_in`: how many rows before each segment come with it. Where the episode begins later,
      its first row is repeated in front: it resets the memory as soon as it is reached.

    **Returns:**

    Sequences of `burn_in + length + 1` rows.

    **Raises:**

    `ValueError` for a count that breaks its rule, or tapes without their leading axis.
    """
    _check_axis(tapes)
    check_counts(1, length=length, sequences=sequences)
    check_counts(0, burn_in=burn_in)
    places = tapes.starts.shape[1]
    age = (jnp.arange(places)[None] - tapes.oldest[:, None]) % places
    complete = age < tapes.episodes[:, None]
    pieces = jnp.where(complete, -(-tapes.steps // length), 0).ravel()
    ends = jnp.cumsum(pieces, dtype=jnp.int32)
    total = ends[-1]
    drawn = jax.random.randint(key, (sequences,), 0, jnp.maximum(total, 1), jnp.int32)
    which = jnp.minimum(jnp.searchsorted(ends, drawn, side="right"), pieces.size - 1)
    episodes = _episodes(tapes, which // places, which % places)
    piece = drawn - (ends - pieces)[which]
    row = jnp.arange(-burn_in, length + 1, dtype=jnp.int32)
    offset = piece[None] * length + row[:, None]
    chosen = jax.tree.map(lambda x: jnp.broadcast_to(x, offset.shape), episodes)
    mask = (offset < chosen.steps) & (total > 0)
    offset = jnp.clip(offset, 0, chosen.rows - 1)
    return Sample(_gather(tapes, chosen, offset), mask[burn_in:-1])


def _check_axis(tapes: Tape) -> None:
    if tapes.episodes.ndim != 1:
        raise ValueError(
            f"`tapes` (whose `episodes` have shape {tapes.episodes.shape}) must have one leading "
            "axis over tapes."
        )


def _episodes(tapes: Tape, tape: Array, place: Array) -> _Episodes:
    start = tapes.starts[tape, place]
    end = tapes.starts[tape, (place + 1) % tapes.starts.shape[1]]
    return _Episodes(tape, start, _length(start, end, tapes.capacity), tapes.steps[tape, place])


def _gather(tapes: Tape, episodes: _Episodes, offset: Array, axis: int | None = None) -> Any:
    at = (episodes.start + offset) % tapes.capacity
    take = lambda x: x.at[episodes.tape, at].get(mode="promise_in_bounds")  # noqa: E731
    rows = jax.tree.map(take, tapes.rows)
    return rows if axis is None else jax.tree.map(lambda x: jnp.expand_dims(x, axis), rows)
