"""Memories of outer products, read by queries: chunks of time as products of matrices.

A scan of `S_t = a_t ⊙ S_{t-1} + k_t v_tᵀ` that is read by `o_t = S_tᵀ q_t` never has to make the
states inside a chunk: with the decay `D_ts` between two steps of it,

    o_t = S_0ᵀ (D_t0 ⊙ q_t) + Σ_{s ≤ t} (q_t ⊙ D_ts)ᵀ k_s  v_s

which is attention with a mask. Only the state at the end of a chunk is made, and kept for the
backward pass, in which a chunk is computed again.

One chunk after another is fast where cores are few. Where thousands of threads wait for work, all
chunks go side by side, twice: what each does to any state that it may begin with, a linear map;
then, with these maps combined in a tree, what each reads.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from scan._checks import check_begin, check_steps
from scan._platform import check_method, loop_or_tree
from scan._varying import vary_together
from scan.associative import associative, match_rank
from scan.counts import check_counts
from scan.precision import EXACTLY, at_least_single

_product = partial(jnp.einsum, precision=EXACTLY)

LENGTH = 16
"""Steps in a chunk: see the table in the documentation's benchmarks."""


def outer_products(
    queries: Float[Array, "time *heads keys"],
    keys: Float[Array, "time *heads keys"],
    values: Float[Array, "time *heads values"],
    state: Float[Array, "*heads keys values"],
    log_decay: Float[Array, "time *heads one_or_keys"] | None = None,
    begin: Bool[Array, "..."] | None = None,
    *,
    length: int = LENGTH,
    method: str = "auto",
) -> tuple[Float[Array, "*heads keys values"], Float[Array, "time *heads values"]]:
    """Read a memory that decays and that outer products are added to.

    ```python
    q, k, v = jax.random.normal(jax.random.key(0), (3, 100, 8))
    state, reads = scan.outer_products(q, k, v, jnp.zeros((8, 8)))
    # state = kᵀ v, reads[t] = q[t] @ k[: t + 1].T @ v[: t + 1]
    ```

    `S_t = exp(log_decay_t) ⊙ S_{t-1} + k_t v_tᵀ` and `o_t = S_tᵀ q_t`. The decays between two steps
    are exponentials of sums of logarithms, none of them positive: nothing overflows.

    Source: *Gated Linear Attention Transformers with Hardware-Efficient Training*, Yang et al.
    (2024), section 3 and 4.

    **Arguments:**

    - `queries`, `keys`, `values`: of every step; axes between time and the last are heads.
    - `state`: the memory carried in.
    - `log_decay`: at most 0; one for a whole head (a last axis of 1) or one for each key. No decay
      by default. What is below the logarithm of the smallest number counts as that.
    - `begin`: shape `[time]`; where true, the memory is replaced by zeros before it is written to.
    - `length`: of a chunk; a power of two.
    - `method`: of the chunks, one after another or side by side: see `scan.loop_or_tree`.

    **Returns:**

    `(state, reads)`: the memory after the last step, and what was read after each, in the promoted
    dtype of all but the decays.

    **Raises:**

    `ValueError` where there are no steps, shapes do not fit, numbers are complex or all whole, a
    length is no power of two or a method is unknown; `TypeError` for a `begin` that is not boolean.
    """
    return _by_heads(queries, keys, values, None, state, log_decay, begin, length, method)


def delta_rule(
    queries: Float[Array, "time *heads keys"],
    keys: Float[Array, "time *heads keys"],
    values: Float[Array, "time *heads values"],
    rates: Float[Array, "time *heads"],
    state: Float[Array, "*heads keys values"],
    log_decay: Float[Array, "time *heads one_or_keys"] | None = None,
    begin: Bool[Array, "..."] | None = None,
    *,
    length: int = LENGTH,
    method: str = "auto",
) -> tuple[Float[Array, "*heads keys values"], Float[Array, "time *heads values"]]:
    """Read a memory whose answer to a key is moved towards a value.

    With `Z_t = exp(log_decay_t) ⊙ S_{t-1}`:

        S_t = Z_t + β_t k_t (v_t - Z_tᵀ k_t)ᵀ,   o_t = S_tᵀ q_t

    What is written in a chunk, `u_t = β_t (v_t - Z_tᵀ k_t)`, solves a triangular system of the
    chunk's size; the rest is `outer_products` with u for v.

    Source: *Parallelizing Linear Transformers with the Delta Rule over Sequence Length*, Yang et
    al. (2024), section 3; with decays *Gated Delta Networks*, Yang et al. (2024), section 3.3.

    **Arguments:** those of `scan.outer_products`, and

    - `rates`: β.

    **Returns:**

    `(state, reads)`: the memory after the last step, and what was read after each, in the promoted
    dtype of all but the decays.

    **Raises:**

    `ValueError` where there are no steps, shapes do not fit, numbers are complex or all whole, a
    length is no power of two or a method is unknown; `TypeError` for a `begin` that is not boolean.
    """
    return _by_heads(queries, keys, values, rates, state, log_decay, begin, length, method)


def _by_heads(q, k, v, rates, state, log_decay, begin, length, method):
    check_method(method)
    check_counts(1, length=length)
    if length & (length - 1):
        raise ValueError(f"`length` (={length}) must be a power of two.")
    q, k, v, state = map(jnp.asarray, (q, k, v, state))
    rates, log_decay = (None if x is None else jnp.asarray(x) for x in (rates, log_decay))
    check_steps("keys", k)
    _check_shapes(q, k, v, rates, state, log_decay)
    q, k, v, rates, state = _in_one_dtype(queries=q, keys=k, values=v, rates=rates, state=state)
    if log_decay is not None and not jnp.issubdtype(log_decay.dtype, jnp.floating):
        raise ValueError(f"`log_decay` (dtype {log_decay.dtype}) must be real floating point.")
    if begin is not None:
        begin = check_begin(begin, len(k))
    # A sequence shorter than two chunks is cut into shorter ones: most of a long one would be idle.
    length = min(length, 1 << max(len(k) // 2, 1).bit_length() - 1)
    if not state.size:  # no keys, no values or no heads
        return state, jnp.zeros(v.shape, v.dtype)
    q, k, v, rates, log_decay, begin, state = vary_together(q, k, v, rates, log_decay, begin, state)
    run = partial(_run, length, method)
    for _ in range(k.ndim - 2):
        run = jax.vmap(run, (1, 1, 1, 1, 1, None, 0), (0, 1))
    return run(q, k, v, rates, log_decay, begin, state)


def _check_shapes(q, k, v, rates, state, log_decay):
    if k.ndim < 2:
        raise ValueError(f"`keys` (shape {k.shape}) must have an axis of keys behind that of time.")
    steps, width = k.shape[:-1], k.shape[-1]
    allowed = [
        ("queries", q, [k.shape]),
        ("values", v, [(*steps, v.shape[-1])]),
        ("rates", rates, [steps]),
        ("state", state, [(*steps[1:], width, v.shape[-1])]),
        ("log_decay", log_decay, [(*steps, 1), k.shape]),
    ]
    for name, x, shapes in allowed:
        if x is not None and x.shape not in shapes:
            rule = " or ".join(map(str, shapes))
            raise ValueError(f"`{name}` (shape {x.shape}) must have the shape {rule}.")


def _in_one_dtype(**arrays: Array | None) -> list:
    given = {name: x for name, x in arrays.items() if x is not None}
    for name, x in given.items():
        if jnp.iscomplexobj(x):
            raise ValueError(f"`{name}` (dtype {x.dtype}) must be real.")
    dtype = jnp.result_type(*given.values())
    if not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError(f"`values` (dtype {dtype}) must be real floating point.")
    return [None if x is None else x.astype(dtype) for x in arrays.values()]


def _run(length, method, q, k, v, rates, log_decay, begin, state):
    if log_decay is not None:
        numbers = jnp.finfo(_summed_in(log_decay))
        log_decay = jnp.maximum(log_decay, jnp.log(numbers.tiny).astype(log_decay.dtype))
    time = len(k)

    def cut(x):
        x = jnp.pad(x, ((0, -time % length),) + ((0, 0),) * (x.ndim - 1))
        return x.reshape(-1, length, *x.shape[1:])

    # Steps that are added at the end write nothing, and nothing decays in them.
    chunks = jax.tree.map(cut, (q, k, v, rates, log_decay, begin))
    state, reads = loop_or_tree(_one_by_one, _side_by_side, state, chunks, method=method)
    return state, reads.reshape(-1, *reads.shape[2:])[:time]


def _one_by_one(state, chunks):
    # A chunk is computed again in the backward pass: what is kept is the state at its start.
    return jax.lax.scan(jax.checkpoint(_chunk, prevent_cse=False), state, chunks)


def _side_by_side(state, chunks):
    _, k, v, rates, _, begin = chunks
    apply = jnp.multiply if rates is None else partial(_product, "...ij,...jv->...iv")

    def combined(earlier, later):
        """`S ↦ A S + B` after another such map."""
        (a, b), (later_a, later_b) = earlier, later
        return apply(later_a, a), apply(later_a, b) + later_b

    # A is diagonal without rates: what a chunk keeps of ones.
    rows, columns = k.shape[2], v.shape[2]
    identity = jnp.ones((rows, 1), v.dtype) if rates is None else jnp.eye(rows, dtype=v.dtype)

    @jax.checkpoint
    @jax.vmap
    def maps(inputs):
        q, k, v, *others = inputs
        both = jnp.concatenate([v, jnp.zeros((len(v), identity.shape[1]), v.dtype)], 1)
        start = jnp.concatenate([jnp.zeros((rows, columns), v.dtype), identity], 1)
        end, _ = _chunk(start, (q, k, both, *others))
        return end[:, columns:], end[:, :columns]

    begins = None if begin is None else jnp.any(begin, 1)
    _, ends = associative(combined, maps(chunks), begins, initial=(identity, state))
    starts = jnp.concatenate([state[None], ends[:-1]])
    _, reads = jax.checkpoint(jax.vmap(_chunk))(starts, chunks)
    return ends[-1], reads


def _chunk(state, inputs):
    """The state at the end of a chunk, and what is read in it."""
    q, k, v, rates, log_decay, begin = inputs
    length = len(k)
    same = jnp.tril(jnp.ones((length, length), bool))
    from_start = to_end = jnp.ones((length, 1), bool)
    if begin is not None:
        episode = jnp.cumsum(begin)
        same = same & (episode[:, None] == episode[None])
        from_start, to_end = (episode == 0)[:, None], (episode == episode[-1])[:, None]
    # A product adds up zeros times what is later, or of another episode. What is not finite there
    # must not count, but where it does, it has to be seen.
    k, v, rates, log_decay, bad = _finite(k, v, rates, log_decay)
    bad_start = ~jnp.all(jnp.isfinite(state))
    state = jnp.where(bad_start, 0, state)
    kept, decay = state.dtype, log_decay  # that of all but the decays, which may be wider
    since = until = jnp.ones((), k.dtype)
    if decay is not None:
        decay = decay.astype(_summed_in(decay))
        since, until = map(jnp.exp, _sums(decay))
    since_start, until_end = jnp.where(from_start, since, 0), jnp.where(to_end, until, 0)

    if rates is not None:
        v = v - jnp.where(from_start, _product("tk,kv->tv", k * since_start, state), 0)
        v, overflown = _finite(rates[:, None] * v)
        bad = bad | overflown
        if length > 1:  # of one step there is nothing to solve
            system = jnp.tril(rates[:, None] * _decayed(k, k, decay, same), -1)
            # Where the inverse overflows in an episode, those after it have zeros times infinity.
            v, overflown = _finite(_product("ts,sv->tv", jnp.where(same, _inverse(system), 0), v))
            bad = bad | overflown
    bad = jnp.any(same & bad[None], 1) | (from_start[:, 0] & bad_start)
    reads = jnp.where(from_start, _product("tk,kv->tv", q * since_start, state), 0)
    reads = reads + _product("ts,sv->tv", _decayed(q, k, decay, same), v)
    end = jnp.where(from_start[-1:], since_start[-1][:, None] * state, 0)
    end = end + _product("tk,tv->kv", k * until_end, v)
    end, reads = jnp.where(bad[-1], jnp.nan, end), jnp.where(bad[:, None], jnp.nan, reads)
    return end.astype(kept), reads.astype(kept)


def _summed_in(log_decay: Array) -> Any:
    """The type to add decays up in: in half precision a strong one would hide those behind it."""
    return at_least_single(log_decay.dtype)


def _sums(decay: Array) -> tuple[Array, Array]:
    """The decays up to every step, and those behind it.

    Each is a sum of its own, and none a difference of two: what is left of a strong decay in a
    difference is its rounding. On a CPU a product with ones takes less time than `jnp.cumsum`.
    """
    until = jnp.tril(jnp.ones((len(decay),) * 2, decay.dtype))
    behind = jnp.triu(until.T, 1)
    return _product("tr,rk->tk", until, decay), _product("tr,rk->tk", behind, decay)


def _finite(*arrays: Array | None) -> Any:
    """The arrays, zero at steps where one of them is not finite, and which steps those are."""
    good = [jnp.isfinite(x).reshape(len(x), -1).all(1) for x in arrays if x is not None]
    good = jnp.stack(good).all(0)
    zeroed = (None if x is None else jnp.where(match_rank(good, x), x, 0) for x in arrays)
    return *zeroed, ~good


def _decayed(q, k, decay, same):
    """`Σ_i q_ti exp(Σ_{s<r≤t} decay_ri) k_si` for s ≤ t of one episode, and zero elsewhere."""
    if decay is None:
        return jnp.where(same, _product("tk,sk->ts", q, k), 0)
    if decay.shape[1] == 1:
        until = jnp.tril(jnp.ones(same.shape, decay.dtype))
        between = jnp.exp(_product("tr,rs->ts", until, decay * jnp.tril(until, -1)))
        # What nothing is left of, or what is of another episode, may overflow in the product.
        counts = same & (between > 0)
        return jnp.where(counts, _product("tk,sk->ts", q, k), 0) * between
    # With a decay for each key the exponential is inside of the product. It is that from s to the
    # middle times that from the middle to t, both at most 1, where the middle is between the two:
    # halves of the chunk, halves of halves, and so on.
    blocks = jnp.sum(q * k, 1)[:, None, None]
    since, until = decay[:, None], jnp.zeros_like(decay)[:, None]  # sums inside of every block
    while len(blocks) > 1:
        half = blocks.shape[1]
        q2, k2, first, second = (x.reshape(-1, 2, half, x.shape[-1]) for x in (q, k, since, until))
        later = _product(
            "btk,bsk->bts", q2[:, 1] * jnp.exp(first[:, 1]), k2[:, 0] * jnp.exp(second[:, 0])
        )
        blocks = _joined(blocks[::2], later, blocks[1::2])
        before, behind = (first[:, i, -1:] for i in (0, 1))
        since = jnp.concatenate([first[:, 0], first[:, 1] + before], 1)
        until = jnp.concatenate([second[:, 0] + behind, second[:, 1]], 1)
    return jnp.where(same, blocks[0], 0)


def _joined(first, corner, second):
    """`[[first, 0], [corner, second]]` for a batch of blocks."""
    upper = jnp.concatenate([first, jnp.zeros_like(corner)], 2)
    return jnp.concatenate([upper, jnp.concatenate([corner, second], 2)], 1)


@jax.custom_jvp
def _inverse(strict):
    """`(I + strict)⁻¹` for a matrix with zeros on and above the diagonal."""
    size = len(strict)
    inverse = jnp.ones((size, 1, 1), strict.dtype)
    while len(inverse) > 1:
        # [[A, 0], [C, B]] has the inverse [[A⁻¹, 0], [-B⁻¹ C A⁻¹, B⁻¹]]: as stable as substitution,
        # which goes through the rows one by one.
        half = inverse.shape[1]
        # One axis at a time: JAX does not split two at once of what is split over devices.
        rows = strict.reshape(size // (2 * half), 2 * half, size)
        blocks = rows.reshape(*rows.shape[:2], *rows.shape[:2])
        corner = jnp.einsum("btbs->bts", blocks)[:, half:, :half]
        first, second = inverse[::2], inverse[1::2]
        corner = -_product("btr,brs->bts", second, _product("btr,brs->bts", corner, first))
        inverse = _joined(first, corner, second)
    return inverse[0]


@_inverse.defjvp
def _inverse_tangent(primals, tangents):
    inverse = _inverse(*primals)
    return inverse, -_product("tr,rs,sq->tq", inverse, *tangents, inverse)
