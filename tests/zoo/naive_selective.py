"""Loops written from the papers' equations: selective state spaces."""

import numpy as np

from tests.zoo.naive_math import XS, affine, silu, softplus


def s6(c):
    state, a = np.zeros(c.a_log.shape), -np.exp(c.a_log)
    for x in XS:
        u = silu(c.input @ x)
        r = x if c.reads == "input" else u
        step = softplus(c.step_up @ (c.step_down @ r) + c.step_bias)
        for i in range(4):
            for j in range(a.shape[1]):
                state[i, j] = np.exp(step[i] * a[i, j]) * state[i, j]
                state[i, j] += step[i] * u[i] * (c.b @ r)[j]
        yield (state @ (c.c @ r) + c.d * u) * silu(c.gate @ x)


def mamba2(c):
    n = 4 // c.heads
    s, o = np.zeros((c.heads, len(c.key), n)), np.zeros((c.heads, n))
    for x in XS:
        k, q = silu(np.asarray(c.key) @ x), silu(np.asarray(c.query) @ x)
        u = silu(np.asarray(c.value) @ x).reshape(c.heads, n)
        step = softplus(affine(c.time_step)(x))
        for h in range(c.heads):
            decay = np.exp(-step[h] * np.exp(c.a_log[h]))
            s[h] = decay * s[h] + step[h] * np.outer(k, u[h])
            o[h] = q @ s[h] + c.d[h] * u[h]
        z = o.ravel() * silu(affine(c.gate)(x))
        yield affine(c.output)(np.asarray(c.g) * z / np.sqrt(np.mean(z**2) + 1e-5))


CASES = [
    ("s6", {"states": 3}, s6),
    ("s6", {"states": 3, "rank": 2, "reads": "signal"}, s6),
    ("mamba2", {"states": 3, "heads": 2}, mamba2),
]
