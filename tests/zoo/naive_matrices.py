"""Loops written from the papers' equations: fast weights, windows, and a neural computer."""

import jax
import numpy as np
import scipy.linalg

from tests.zoo.naive_math import (
    XS,
    affine,
    gelu,
    norm,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    unit,
)


def windows(width):
    padded = np.concatenate([np.zeros((width - 1, XS.shape[1])), XS])
    return [padded[t : t + width] for t in range(len(XS))]


def qrnn(w):
    c, h = w.cell, np.zeros(4)
    for seen in windows(w.window):
        z, f, o = (affine(part)(seen.ravel()) for part in (c.candidate, c.forget, c.output))
        h = sigmoid(f) * h + (1 - sigmoid(f)) * np.tanh(z)
        yield sigmoid(o) * h


def frame_stack(w):
    c = w.cell
    for seen in windows(w.window):
        yield relu(np.asarray(c.w) @ seen.ravel() + np.asarray(c.b))


def rwkv(w):
    c = w.cell
    mu_r, mu_k, mu_v = np.asarray(c.shift)
    decay, bonus = np.exp(c.decay_log), np.asarray(c.bonus)
    a, b = np.zeros(4), np.zeros(4)
    for earlier, now in windows(2):
        r = np.asarray(c.receptance) @ (mu_r * now + (1 - mu_r) * earlier)
        k = np.asarray(c.key) @ (mu_k * now + (1 - mu_k) * earlier)
        v = np.asarray(c.value) @ (mu_v * now + (1 - mu_v) * earlier)
        average = (a + np.exp(bonus + k) * v) / (b + np.exp(bonus + k))
        a, b = np.exp(-decay) * a + np.exp(k) * v, np.exp(-decay) * b + np.exp(k)
        yield np.asarray(c.output) @ (sigmoid(r) * average)


def shm(c):
    state = np.zeros((4, 4))
    for t, x in enumerate(XS):
        draw = jax.random.randint(jax.random.fold_in(jax.random.key(0), t), (), 0, c.theta.shape[1])
        factor = 1 + np.tanh(np.outer(c.theta[:, draw], c.calibration @ x))
        written = sigmoid(c.write_gate @ x) * np.outer(c.value @ x, relu(c.key @ x))
        state = state * factor + written
        yield state @ relu(c.query @ x)


def mlstm(c):
    n = 4 // c.heads
    memory, normalizer = np.zeros((c.heads, n, n)), np.zeros((c.heads, n))
    for x in XS:
        gates = (np.asarray(c.gates) @ x + np.asarray(c.gates_bias)).reshape(2, c.heads)
        y = np.zeros(4)
        for h, part in enumerate(np.split(np.arange(4), c.heads)):
            i, f = np.exp(gates[0, h]), sigmoid(gates[1, h])
            q, k, v = (affine(layer)(x)[part] for layer in (c.query, c.key, c.value))
            memory[h] = f * memory[h] + i * np.outer(k / np.sqrt(n), v)
            normalizer[h] = f * normalizer[h] + i * k / np.sqrt(n)
            y[part] = memory[h].T @ q / max(abs(normalizer[h] @ q), 1)
        yield sigmoid(affine(c.output)(x)) * y


def deltanet(c):
    heads = getattr(c, "heads", 1)  # a product of one write is the same
    n = 4 // heads
    s = np.zeros((heads, n, n))
    for x in XS:
        betas, alphas = sigmoid(affine(c.learning_rate)(x)), np.ones(heads)
        if c.decay_rate is not None:
            alphas = np.exp(-np.exp(c.decay_log) * softplus(affine(c.decay_rate)(x)))
        y = np.zeros(4)
        for h, part in enumerate(np.split(np.arange(4), heads)):
            q, k = (unit(silu(affine(layer)(x)[part])) for layer in (c.queries, c.keys))
            v, beta, alpha = silu(affine(c.values)(x)[part]), betas[h], alphas[h]
            s[h] = alpha * s[h] @ (np.eye(n) - beta * np.outer(k, k)) + beta * np.outer(v, k)
            y[part] = s[h] @ q
        yield y


def gated_linear_attention(c):
    n, keys = 4 // c.heads, len(c.key) // c.heads
    s = np.zeros((c.heads, keys, n))
    for x in XS:
        low = np.asarray(c.decay_down) @ x
        alpha = sigmoid(np.asarray(c.decay_up) @ low + np.asarray(c.decay_bias)) ** (1 / 16)
        o = np.zeros((c.heads, n))
        for h in range(c.heads):
            rows, part = slice(h * keys, (h + 1) * keys), slice(h * n, (h + 1) * n)
            q, k = (np.asarray(w)[rows] @ x for w in (c.query, c.key))
            v = np.asarray(c.value)[part] @ x
            s[h] = np.diag(alpha[rows]) @ s[h] + np.outer(k, v)
            o[h] = norm(q @ s[h])
        yield affine(c.output)(silu(affine(c.gate)(x)) * o.ravel())


def delta_product(c):
    s, n = np.zeros((4, 4)), c.writes
    for x in XS:
        q, beta = unit(silu(affine(c.queries)(x))), sigmoid(affine(c.learning_rate)(x))
        keys, values = (np.split(silu(affine(part)(x)), n) for part in (c.keys, c.values))
        if c.decay_rate is not None:
            s = s * np.exp(-np.exp(c.decay_log) * softplus(affine(c.decay_rate)(x))[0])
        for j in range(n):
            k, b = unit(keys[j]), beta[j] * (2 if c.negative_eigenvalues else 1)
            s = s @ (np.eye(4) - b * np.outer(k, k)) + b * np.outer(values[j], k)
        yield s @ q


def ttt(c):
    w, b, g = (np.array(part) for part in (c.w, c.b, c.g))

    def normed(z):
        deviation = np.sqrt(z.var() + 1e-6)
        return (z - z.mean()) / deviation, deviation

    for x in XS:
        q, k, v = (affine(part)(x) for part in (c.queries, c.keys, c.values))
        eta = c.learning_rate * sigmoid(affine(c.rate)(x)[0])
        n, deviation = normed(w @ k + b)
        error = g * (k + g * n + c.c - v) / 4
        # Through the norm: what is along (1, …, 1) and along n does not count.
        slope = (error - error.mean() - n * (error @ n) / 4) / deviation
        w, b = w - eta * np.outer(slope, k), b - eta * slope
        yield q + g * normed(w @ q + b)[0] + c.c


def lmu(c):
    order, theta = len(c.encode_m), c.theta
    a, b = np.zeros((order + 1, order + 1)), None
    for i in range(order):
        for j in range(order):
            a[i, j] = (2 * i + 1) / theta * (-1 if i < j else (-1) ** (i - j + 1))
        a[i, order] = (2 * i + 1) / theta * (-1) ** i
    both = scipy.linalg.expm(a)  # of the system together with its constant input
    a, b = both[:order, :order], both[:order, order]
    h, m = np.zeros(4), np.zeros(order)
    for x in XS:
        u = c.encode_x @ x + c.encode_h @ h + c.encode_m @ m
        m = a @ m + b * u
        h = np.tanh(c.w_x @ x + c.w_h @ h + c.w_m @ m)
        yield h


def positional_mlp(c):
    for t, x in enumerate(XS):
        angles = [t / 10000 ** (2 * (i // 2) / 3) for i in range(3)]
        encoding = [np.sin(angles[0]), np.cos(angles[1]), np.sin(angles[2])]
        yield relu(np.asarray(c.w) @ (x + encoding) + np.asarray(c.b))


def _convolved(layer, sequence):
    out = []
    for t in range(len(sequence)):
        total = np.array(layer.bias)
        for j in range(layer.weight.shape[1]):
            if t >= j * layer.dilation:
                total += layer.weight[:, j] @ sequence[t - j * layer.dilation]
        out.append(total)
    return np.stack(out)


def tcn(c):
    z = XS
    for i, (first, second) in enumerate(c.convolutions):
        through = relu(_convolved(second, relu(_convolved(first, z))))
        z = relu((np.stack([affine(c.widen)(x) for x in z]) if i == 0 else z) + through)
    yield from z


def transformer(c):
    z = np.stack([affine(c.embed)(x) for x in XS])
    for layer in c.layers:
        heads, window = layer.bias.shape
        width = 4 // heads
        normed = norm(z)
        qkv = np.stack([affine(layer.queries_keys_values)(u) for u in normed])
        q, k, v = qkv.reshape(len(XS), 3, heads, width).transpose(1, 2, 0, 3)
        mixed = np.zeros((len(XS), heads, width))
        for t in range(len(XS)):
            seen = range(max(0, t - window + 1), t + 1)
            for h in range(heads):
                logits = [
                    q[h, t] @ k[h, s] / np.sqrt(width) + float(layer.bias[h, t - s]) for s in seen
                ]
                mixed[t, h] = softmax(np.array(logits)) @ v[h, list(seen)]
        z = z + np.stack([affine(layer.mix)(u) for u in mixed.reshape(len(XS), 4)])
        inner = [affine(layer.down)(gelu(affine(layer.up)(u))) for u in norm(z)]
        z = z + np.stack(inner)
    yield from norm(z)


def _gated(gate, x, y):
    w, u, u_n = (np.asarray(layer.weight) for layer in (gate.w, gate.u, gate.u_n))
    r = sigmoid(w[:4] @ y + u[:4] @ x)
    z = sigmoid(w[4:8] @ y + u[4:] @ x - gate.b)
    return (1 - z) * x + z * np.tanh(w[8:] @ y + u_n @ (r * x))


def gtrxl(c):
    e = np.stack([affine(c.embed)(x) for x in XS])
    for layer in c.layers:
        heads, size = layer.of_content.shape
        qkv = np.stack([affine(layer.queries_keys_values)(u) for u in norm(e)])
        q, k, v = qkv.reshape(len(XS), 3, heads, size).transpose(1, 0, 2, 3)
        out = np.zeros_like(e)
        for t in range(len(XS)):
            read = np.zeros((heads, size))
            seen = list(range(max(0, t - layer.window + 1), t + 1))
            for h in range(heads):
                logits = []
                for s in seen:
                    angles = [(t - s) / 10000 ** (2 * (i // 2) / 4) for i in range(4)]
                    place = [(np.cos if i % 2 else np.sin)(a) for i, a in enumerate(angles)]
                    r = (np.asarray(layer.distances.weight) @ place).reshape(heads, size)[h]
                    content = (q[t, h] + layer.of_content[h]) @ k[s, h]
                    logits.append((content + (q[t, h] + layer.of_distance[h]) @ r) / np.sqrt(size))
                read[h] = softmax(np.array(logits)) @ v[seen, h]
            y = _gated(layer.attention_gate, e[t], relu(affine(layer.mix)(read.ravel())))
            inner = affine(layer.down)(relu(affine(layer.up)(norm(y))))
            out[t] = _gated(layer.network_gate, y, relu(inner))
        e = out
    yield from e


def _cosine(u, v):
    return u @ v / np.sqrt((u @ u + 1e-12) * (v @ v + 1e-12))


def dnc(c):
    n, w, heads = c.slots, c.word, c.heads
    h, cell = np.zeros(4), np.zeros(4)
    memory, usage, precedence = np.zeros((n, w)), np.zeros(n), np.zeros(n)
    link, write = np.zeros((n, n)), np.zeros(n)
    read, words = np.zeros((heads, n)), np.zeros((heads, w))
    lstm = c.controller
    for x in XS:
        inputs = np.concatenate([x, words.ravel()])
        gates = lstm.weight_ih @ inputs + lstm.weight_hh @ h + lstm.bias
        i, f, g, o = np.split(np.asarray(gates), 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(cell)
        emitted = list(affine(c.interface)(h))

        def take(count, emitted=emitted):
            return np.array([emitted.pop(0) for _ in range(count)])

        read_keys, read_strengths = take(heads * w).reshape(heads, w), 1 + softplus(take(heads))
        write_key, write_strength = take(w), 1 + softplus(take(1))[0]
        erase, written, free = sigmoid(take(w)), take(w), sigmoid(take(heads))
        allocation_gate, write_gate = sigmoid(take(1))[0], sigmoid(take(1))[0]
        modes = take(3 * heads).reshape(heads, 3)
        assert not emitted

        retention = np.prod([1 - free[r] * read[r] for r in range(heads)], axis=0)
        usage = (usage + write - usage * write) * retention
        allocation, product = np.zeros(n), 1.0
        for slot in sorted(range(n), key=lambda s: usage[s]):
            allocation[slot] = (1 - usage[slot]) * product
            product *= usage[slot]
        alike = softmax(write_strength * np.array([_cosine(row, write_key) for row in memory]))
        write = write_gate * (allocation_gate * allocation + (1 - allocation_gate) * alike)
        memory = memory * (1 - np.outer(write, erase)) + np.outer(write, written)
        for a in range(n):
            for b in range(n):
                link[a, b] = (1 - write[a] - write[b]) * link[a, b] + write[a] * precedence[b]
        np.fill_diagonal(link, 0)
        precedence = (1 - write.sum()) * precedence + write
        for r in range(heads):
            alike = np.array([_cosine(row, read_keys[r]) for row in memory])
            alike = softmax(read_strengths[r] * alike)
            backward, content, forward = softmax(modes[r])
            read[r] = backward * link.T @ read[r] + content * alike + forward * link @ read[r]
        words = read @ memory
        yield affine(c.output)(np.concatenate([h, words.ravel()]))


CASES = [
    ("qrnn", {"window": 3}, qrnn),
    ("frame_stack", {}, frame_stack),
    ("rwkv", {}, rwkv),
    ("shm", {}, shm),
    ("gated_linear_attention", {"heads": 2, "keys": 3, "rank": 2}, gated_linear_attention),
    ("mlstm", {"heads": 2}, mlstm),
    ("deltanet", {}, deltanet),
    ("deltanet", {"heads": 2}, deltanet),
    ("gated_deltanet", {"heads": 2}, deltanet),
    ("delta_product", {"writes": 3, "gated": True}, delta_product),
    ("delta_product", {"writes": 1, "negative_eigenvalues": False}, deltanet),
    ("ttt", {"learning_rate": 0.1}, ttt),
    ("lmu", {"order": 5}, lmu),
    ("positional_mlp", {}, positional_mlp),
    ("tcn", {"blocks": 2, "taps": 3}, tcn),
    ("transformer", {"window": 2, "depth": 2, "heads": 2}, transformer),
    ("gtrxl", {"window": 3, "depth": 2, "heads": 2}, gtrxl),
    ("dnc", {"slots": 3, "word": 2, "heads": 2}, dnc),
]
