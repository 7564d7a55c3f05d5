"""Attention to the last tokens of an episode."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Heads = Float[Array, "tokens heads size"]


def attention(
    q: Heads,
    k: Heads,
    v: Heads,
    bias: Float[Array, "... heads window"],
    age: Int[Array, " tokens"],
    sound: Bool[Array, " tokens"],
) -> Float[Array, "tokens width"]:
    """What every token of a sequence reads from itself and the `window - 1` before it.

    The weights of a head are `softmax(q · k / √size + bias)`. They are computed in blocks of the
    window, each with the keys of its own block and of the one before: time × window, not
    time × time.

    **Arguments:**

    - `q`, `k`, `v`: queries, keys and values, shape `[tokens, heads, size]`.
    - `bias`: by distance, 0 for the token itself; shape `[heads, window]`, or with an axis of
      tokens in front, for queries with a bias each.
    - `age`: how many tokens of the same episode come before each; others are not seen.
    - `sound`: where it is not set, NaN is read. Keys and values are finite also there: NaN times
      the weight of a token that is not seen, 0, is NaN.

    **Returns:**

    The values' means, heads side by side, shape `[tokens, heads * size]`.
    """
    (length, heads, size), window = q.shape, bias.shape[-1]
    blocks = -(-length // window)

    def in_blocks(x):
        padded = jnp.pad(x, ((0, blocks * window - length), *((0, 0),) * (x.ndim - 1)))
        return padded.reshape(blocks, window, *x.shape[1:])

    def with_block_before(x):
        x = in_blocks(x)
        return jnp.concatenate([jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]]), x], 1)

    age = in_blocks(age)
    lag = jnp.arange(window)[:, None] + window - jnp.arange(2 * window)[None]
    seen = (lag >= 0) & (lag < window)
    allowed = seen[None] & (lag[None] <= jnp.maximum(age, 0)[..., None])
    row, lag = jnp.arange(window)[:, None], jnp.clip(lag, 0, window - 1)
    by_lag = bias[None, :, lag] if bias.ndim == 2 else _of_queries(in_blocks(bias), row, lag)
    products = jnp.einsum("bqhd,bkhd->bhqk", in_blocks(q), with_block_before(k))
    harm = with_block_before(jnp.where(sound, 0, jnp.nan).astype(q.dtype))[:, None, None]
    logits = jnp.where(allowed[:, None], products * size**-0.5 + by_lag + harm, -jnp.inf)
    weights = jax.nn.softmax(logits, -1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, with_block_before(v))
    return mixed.reshape(blocks * window, heads * size)[:length]


def attention_of_last(
    q: Float[Array, "heads size"],
    k: Float[Array, "heads window size"],
    v: Float[Array, "heads window size"],
    bias: Float[Array, "heads window"],
    lag: Int[Array, " window"],
    age: Int[Array, ""],
) -> Float[Array, " width"]:
    """What the last token alone reads: the last row of `attention`.

    **Arguments:**

    - `q`: its query.
    - `k`, `v`: keys and values of the window, its own among them, in any order. NaN is read from a
      key that is NaN; values are finite.
    - `bias`: by distance, 0 for the token itself.
    - `lag`: the distance of each key: how many tokens later the last one came.
    - `age`: how many tokens of the same episode come before it.

    **Returns:**

    The values' mean, heads side by side.
    """
    logits = jnp.einsum("hd,hkd->hk", q, k) * q.shape[-1] ** -0.5 + bias[:, lag]
    weights = jax.nn.softmax(jnp.where((lag <= age)[None], logits, -jnp.inf), -1)
    return jnp.einsum("hk,hkd->hd", weights, v).reshape(-1)


def _of_queries(bias, row, lag):
    """From `[blocks, queries, heads, distances]` to `[blocks, heads, queries, keys]`."""
    return jnp.moveaxis(bias, 2, 1)[:, :, row, lag]
