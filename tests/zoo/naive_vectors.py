"""Loops written from the papers' equations: states that are vectors, or decay entry by entry."""

import numpy as np

from tests.zoo.naive_math import XS, affine, elu, gelu, norm, sigmoid


def linear_rnn(c):
    h = np.zeros(4)
    for x in XS:
        g = sigmoid(affine(c.gate)(x))
        h = g * h + (1 - g) * np.tanh(affine(c.impulse)(x))
        yield h


def mingru(c):
    h = np.zeros(4)
    for x in XS:
        z = sigmoid(affine(c.gate)(x))
        h = (1 - z) * h + z * affine(c.candidate)(x)
        yield h


def minlstm(c):
    h = np.zeros(4)
    for x in XS:
        f, i = sigmoid(affine(c.forget)(x)), sigmoid(affine(c.admit)(x))
        h = f / (f + i) * h + i / (f + i) * affine(c.candidate)(x)
        yield h


def indrnn(c):
    h = np.zeros(4)
    for x in XS:
        h = np.maximum(affine(c.drive)(x) + c.u * h, 0)
        yield h


def sru(c):
    cell = np.zeros(4)
    for x in XS:
        f = sigmoid(affine(c.forget)(x) + c.v_forget * cell)
        r = sigmoid(affine(c.reset)(x) + c.v_reset * cell)
        cell = f * cell + (1 - f) * affine(c.value)(x)
        yield r * cell + (1 - r) * affine(c.highway)(x)


def elstm(c):
    cell = np.zeros(4)
    for x in XS:
        f = sigmoid(affine(c.forget)(x) + c.w_f * cell)
        z = np.tanh(affine(c.value)(x) + c.w_z * cell)
        cell = f * cell + (1 - f) * z
        yield sigmoid(affine(c.output)(x) + c.w_o @ cell) * cell


def felstm(c):
    cell = np.zeros(4)
    for x in XS:
        f = sigmoid(c.w[:, 0] @ x + c.u[:, 0] @ cell + c.b[:, 0])
        z = np.tanh(c.w[:, 1] @ x + c.u[:, 1] @ cell + c.b[:, 1])
        cell = f * cell + (1 - f) * z
        yield sigmoid(affine(c.output)(x) + c.w_o @ cell) * cell


def block_diagonal(c):
    h = np.zeros((4, 2))
    for x in XS:
        drive = np.stack([c.w1 @ x, c.w2 @ x], 1)
        h = np.tanh(np.einsum("nij,nj->ni", c.a, h) + drive)
        yield np.concatenate([h[:, 0], h[:, 1]])


def elman(c):
    h = np.zeros(4)
    for x in XS:
        h = np.tanh(c.w[:, 0] @ x + c.u[:, 0] @ h + c.b[:, 0])
        yield h


def mgu(c):
    h = np.zeros(4)
    for x in XS:
        f = sigmoid(c.w[:, 0] @ x + c.u_f[:, 0] @ h + c.b[:, 0])
        n = np.tanh(c.w[:, 1] @ x + c.u_n[:, 0] @ (f * h) + c.b[:, 1])
        h = (1 - f) * h + f * n
        yield h


def _timed(c):
    for x in XS:
        signal, time = (x[:-1], max(x[-1], 0)) if c.time_step == "input" else (x, c.time_step)
        yield c.w[:, 0] @ signal + c.b[:, 0], time / c.unfolds


def ctrnn(c):
    h, tau = np.zeros(4), np.exp(c.tau_log)
    for drive, part in _timed(c):
        for _ in range(c.unfolds):
            rest = np.tanh(drive + c.u[:, 0] @ h)
            if c.solver == "exponential":
                h = rest + np.exp(-part / tau) * (h - rest)
            else:
                h = h + part * (rest - h) / tau
        yield h


def ltc(c):
    h, tau = np.zeros(4), np.exp(c.tau_log)
    for drive, part in _timed(c):
        for _ in range(c.unfolds):
            f = sigmoid(drive + c.u[:, 0] @ h)
            h = (h + part * f * c.a) / (1 + part * (1 / tau + f))
        yield h


def lstm(c):
    cell, h = np.zeros(4), np.zeros(4)
    for x in XS:
        i, f, g, o = (c.w[:, k] @ x + c.u[:, k] @ h + c.b[:, k] for k in range(4))
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(cell)
        yield h


def s5(c):
    lam = -np.exp(c.decay_log) + 1j * np.asarray(c.frequency)
    dt = np.exp(c.step_log)
    if c.discretization == "zoh":
        a = np.exp(lam * dt)
        b = ((a - 1) / lam)[:, None] * (np.asarray(c.b_real) + 1j * c.b_imag)
    else:
        a = (1 + lam * dt / 2) / (1 - lam * dt / 2)
        b = (dt / (1 - lam * dt / 2))[:, None] * (np.asarray(c.b_real) + 1j * c.b_imag)
    h = np.zeros(4, complex)
    for x in XS:
        h = a * h + b @ x
        u = gelu(2 * np.real((np.asarray(c.c_real) + 1j * c.c_imag) @ h))
        yield affine(c.value)(u) * sigmoid(affine(c.gate)(u))


def s4d(c):
    lam = -np.exp(c.decay_log) + 1j * np.asarray(c.frequency)
    a = np.exp(lam * np.exp(c.step_log)[:, None])
    s = np.zeros(a.shape, complex)
    for x in XS:
        u = np.asarray(c.project) @ x
        s = a * s + (a - 1) / lam * u[:, None]
        weights = np.asarray(c.c_real) + 1j * c.c_imag
        v = gelu(2 * np.real(np.sum(weights * s, 1)) + c.d * u)
        yield affine(c.value)(v) * sigmoid(affine(c.gate)(v))


def ffm(c):
    alpha, omega = np.asarray(c.alpha), np.asarray(c.omega)
    if alpha.ndim == 1:
        alpha, omega = alpha[:, None], omega[None]
    gamma = np.exp(-np.abs(alpha) * c.decay) * np.exp(-1j * omega * c.context)
    state = np.zeros(gamma.shape, complex)
    for x in XS:
        drive = affine(c.input)(x)
        if c.input_gate is not None:
            drive = drive * sigmoid(affine(c.input_gate)(x))
        state = gamma * state + np.outer(drive, np.ones(gamma.shape[1]))
        z = norm(affine(c.mix)(np.concatenate([state.real.ravel(), state.imag.ravel()])))
        if c.output_gate is not None:
            gate = sigmoid(affine(c.output_gate)(x))
            z = z * gate + affine(c.skip)(x) * (1 - gate)
        yield z


def linear_attention(c):
    matrix = np.zeros((c.heads, 4 // c.heads, 4 // c.heads))
    total = np.zeros(matrix.shape[:2])
    for x in XS:
        u = affine(c.skip)(x)
        for h, part in enumerate(np.split(np.arange(4), c.heads)):
            k, q = (1 + elu(np.asarray(w)[part] @ x) for w in (c.key, c.query))
            matrix[h] += np.outer(k, np.asarray(c.value)[part] @ x)
            total[h] += k
            u[part] += matrix[h].T @ q / (total[h] @ q)
        yield affine(c.second)(gelu(affine(c.first)(u)))


def fwp(c):
    w = np.zeros((c.heads, 4 // c.heads, 4 // c.heads))
    for x in XS:
        y = np.zeros(4)
        for h, part in enumerate(np.split(np.arange(4), c.heads)):
            k, v, q = (np.asarray(p)[part] @ x for p in (c.key, c.value, c.query))
            w[h] += np.outer(v, k)
            y[part] = w[h] @ (np.exp(q) / np.exp(q).sum())
        yield y


def retnet(c):
    """The parallel form of the paper: rotated keys and queries, and a matrix of decays."""
    heads = c.key.shape[1]
    size, values = 2 * c.key.shape[2], 4 // heads
    theta = 10000.0 ** (-np.arange(size // 2) / (size // 2))
    time = np.arange(len(XS))
    turn = np.exp(1j * time[:, None] * theta)
    out = np.zeros((len(XS), heads, values))
    for head in range(heads):
        q, k = (
            np.einsum("ki,ti->tk", np.asarray(w[0, head]) + 1j * np.asarray(w[1, head]), XS)
            for w in (c.query, c.key)
        )
        v = XS @ np.asarray(c.value[head]).T
        past = time[:, None] >= time[None]
        decay = np.where(past, (1 - 2.0 ** (-5 - head)) ** (time[:, None] - time[None]), 0)
        scores = np.real((q.conj() * turn) @ (k * turn.conj()).T) / np.sqrt(size)
        out[:, head] = (scores * decay) @ v
    for x, o in zip(XS, out, strict=True):
        g = affine(c.gate)(x)
        yield affine(c.output)(g * sigmoid(g) * norm(o).ravel())


def rotrnn(c):
    import scipy.linalg

    p = scipy.linalg.expm(np.asarray(c.basis - c.basis.T))
    assert np.allclose(p @ p.T, np.eye(len(p)))
    gamma, theta = np.exp(-np.exp(c.nu_log)), np.exp(c.theta_log)
    blocks = [[[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]] for t in theta]
    turn = p @ scipy.linalg.block_diag(*blocks) @ p.T
    b = np.sqrt((1 - gamma**2) / np.sum(np.square(c.b))) * np.asarray(c.b)
    h = np.zeros(8)
    for x in XS:
        h = gamma * turn @ h + b @ x
        yield np.asarray(c.c) @ h + affine(c.d)(x)


def linoss(c):
    dt, a = sigmoid(np.asarray(c.step_logit)), np.exp(c.a_log)
    z, q = np.zeros(4), np.zeros(4)
    for x in XS:
        drive = np.asarray(c.b) @ x
        if c.discretization == "im":  # solve z' = z + Δ (-A q' + B x), q' = q + Δ z'
            z = (z + dt * (drive - a * q)) / (1 + dt**2 * a)
        else:
            z = z + dt * (drive - a * q)
        q = q + dt * z
        yield np.asarray(c.c) @ q


SET = {"durations": (2, 50), "periods": (4, 9)}
CASES = [
    ("linear_rnn", {}, linear_rnn),
    ("mingru", {}, mingru),
    ("minlstm", {}, minlstm),
    ("indrnn", {}, indrnn),
    ("sru", {}, sru),
    ("elstm", {}, elstm),
    ("felstm", {}, felstm),
    ("block_diagonal", {}, block_diagonal),
    ("elman", {}, elman),
    ("mgu", {}, mgu),
    ("ctrnn", {"time_step": 0.5, "unfolds": 3}, ctrnn),
    ("ctrnn", {"time_step": "input", "solver": "exponential"}, ctrnn),
    ("ltc", {}, ltc),
    ("ltc", {"time_step": "input", "unfolds": 2, "tau_min": 0.1}, ltc),
    ("lstm", {}, lstm),
    ("s5", {}, s5),
    ("s5", {"discretization": "bilinear"}, s5),
    ("s4d", {"states": 3, "init": "inv"}, s4d),
    ("ffm", {"traces": 3, "contexts": 2}, ffm),
    ("ffm", {"traces": 3, "contexts": 2, "input_gate": False, "context": False}, ffm),
    ("ffm", {"traces": 3, "contexts": 2, "output_gate": False, "decay": False}, ffm),
    ("ffm", {"traces": 3, "contexts": 2, "hadamard": True} | SET, ffm),
    ("linear_attention", {"heads": 2}, linear_attention),
    ("fwp", {}, fwp),
    ("fwp", {"heads": 2}, fwp),
    ("retnet", {"heads": 2}, retnet),
    ("rotrnn", {}, rotrnn),
    ("linoss", {}, linoss),
    ("linoss", {"discretization": "imex"}, linoss),
]
