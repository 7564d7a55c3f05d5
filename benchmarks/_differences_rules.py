"""Rules of papers, and rules that were read in repositories: a function for each row.

What was read is written anew, in the few lines that differ; nothing of those repositories runs.
"""

import jax
import jax.numpy as jnp
import numpy as np

import zoo
from agents import envs
from benchmarks._differences_row import row
from benchmarks._measure import Row

_UNITS, _STEPS = 16, 20


def _problem():
    """Moduli, logarithms of phases, input weights and inputs of linear complex units."""
    rng = np.random.default_rng(0)
    moduli, phases = np.sqrt(rng.random(_UNITS)), 2 * np.pi * rng.random(_UNITS)
    b = rng.normal(size=(2, _UNITS)) / 2
    return moduli, np.log(phases), b[0] + 1j * b[1], rng.normal(size=_STEPS)


def autodiff() -> tuple[np.ndarray, np.ndarray]:
    """Gradients in the phases' logarithms and in the input weights, of half the sum of |h|²."""
    moduli, log_phases, b, xs = _problem()

    def loss(log_phases, b):
        a = moduli * jnp.exp(1j * jnp.exp(log_phases))
        scaled = jnp.sqrt(1 - moduli**2) * (b[0] + 1j * b[1])
        h, total = 0, 0
        for x in xs:
            h = a * h + scaled * x
            total = total + jnp.sum(h.real**2 + h.imag**2) / 2
        return total

    found = jax.jit(jax.grad(loss, (0, 1)))(log_phases, np.stack([b.real, b.imag]))
    return np.asarray(found[0]), np.ravel(found[1])


def by_traces(*, phase_factor: bool, log_gamma: bool) -> tuple[np.ndarray, np.ndarray]:
    """The same gradients by traces.

    **Arguments:**

    - `phase_factor`: whether θ, the derivative of exp(ϑ), is in the trace of ϑ, as it should.
    - `log_gamma`: whether log γ stands in the trace of B, where γ should.
    """
    moduli, log_phases, b, xs = _problem()
    phases, gamma = np.exp(log_phases), np.sqrt(1 - moduli**2)
    a = moduli * np.exp(1j * phases)
    h = trace = trace_b = np.zeros(_UNITS, complex)
    gradient, gradient_b = np.zeros(_UNITS), np.zeros((2, _UNITS))
    for x in xs:
        trace = a * trace + 1j * a * h * (phases if phase_factor else 1)
        trace_b = a * trace_b + x * (np.log(gamma) if log_gamma else gamma)
        h = a * h + gamma * b * x
        gradient = gradient + (h.conj() * trace).real
        gradient_b = gradient_b + np.stack([(h.conj() * e).real for e in (trace_b, 1j * trace_b)])
    return gradient, gradient_b.ravel()


def phase_trace() -> Row:
    """The trace of log θ has the factor θ."""
    right, _ = autodiff()
    found, _ = by_traces(phase_factor=False, log_gamma=False)
    error = float(np.linalg.norm(found - right) / np.linalg.norm(right))
    what = "gradient in log θ of 16 units, 20 steps: error over its norm"
    where = "models/rtus/rtus_utils.py, derivatives in w_theta (read)"
    return row("jax_rtrl 8f669b2", where, what, "autodiff", error, 0.0)


def input_trace() -> Row:
    """The trace of B has the factor γ."""
    _, right = autodiff()
    _, found = by_traces(phase_factor=True, log_gamma=True)
    cosine = float(found @ right / np.linalg.norm(found) / np.linalg.norm(right))
    what = "gradient in B of 16 units, 20 steps: cosine to the right one"
    where = "models/cells/lru.py, the trace of B (read)"
    return row("jax_rtrl 122fca1", where, what, "autodiff", cosine, 1.0)


def time_index() -> Row:
    """Steps taken one by one decay as a sequence does."""
    decay, calls = 0.1, 10
    left, before = 1.0, 0  # the first call leaves the index at 0
    for _ in range(calls):
        now = 0  # a call counts its own steps from 0
        left, before = left * np.exp(-decay * (now - before)), now
    what = f"decay {decay}: the share of a trace that is left after {calls} calls of one step"
    where = "networks/sequence_models/ffm.py, `binary_operator` (read)"
    expected = float(np.exp(-decay * calls))
    return row("memorax 74975d7", where, what, "one call of as many steps", float(left), expected)


def returns() -> Row:
    """A return sums what comes after a step."""
    discount, rewards = jnp.full(3, 0.5), jnp.ones(3)
    combine = lambda one, other: (one[0] * other[0], one[0] * other[1] + one[1])  # noqa: E731
    _, sums = jax.lax.associative_scan(combine, (discount, rewards))
    what = "three rewards of 1, γ = .5: returns from each step, by a forward scan"
    where = "section 4, accelerated discounted returns"
    package, found = "Memoroids (paper)", ", ".join(f"{x:g}" for x in sums)
    return row(package, where, what, "the definition of a return", found, "1.75, 1.5, 1")


def fastest_trace() -> Row:
    """The fastest trace is gone after one step."""
    cell = zoo.FFM(4, 4, key=jax.random.key(0))
    steps = float(jnp.min(cell.trace_durability()))
    what = "steps until the fastest trace is at 1 %, from the limits of α"
    return row("FFM (paper)", "appendix B", what, "its t_α ∈ [1, 1024]", steps, 1.0)


def periods() -> Row:
    """Periods are those of the formula."""
    cell = zoo.FFM(4, 4, key=jax.random.key(0))
    code = ", ".join(f"{x:.0f}" for x in cell.context_period())
    formula = ", ".join(f"{1024 + j / 4 * (1 - 1024):.0f}" for j in range(1, 5))
    what = "first periods of the four contexts"
    return row("FFM (code)", "initial ω (read)", what, "its paper, appendix B", code, formula)


def open_grid() -> Row:
    """On gravity's grid without walls one action for each cell is enough."""
    env, params = envs.make("gravity", walls=())
    step = jax.jit(env.step_env)
    _, state = env.reset_env(jax.random.key(0), params)
    steps, done, most = 0, False, 100
    up, right, left = 0, 1, 3
    while not done and steps < most:
        # Right along the bottom, up at the button, left along the top: a function of the cell.
        action = right if state.row == 2 else left if state.row == 0 else up
        if state.row == 2 and state.column == 4:
            action = up
        _, state, _, done, _ = step(jax.random.key(steps), state, action, params)
        steps += 1
    what = "steps to the cookie of a policy without memory, on the grid without walls"
    source = "the paper's premise; with a memory 10"
    found = steps if done else f"above {most}"
    return row("The Act of Remembering (paper)", "gravity", what, source, found, "above 10")


ROWS = (phase_trace, input_trace, time_index, returns, fastest_trace, periods, open_grid)
