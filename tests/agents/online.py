"""Learning at every step in plain loops, with dense Jacobians, on the episodes of `Tape`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from agents.networks import Inputs
from tests.agents.by_hand import episodes
from tests.agents.tasks import Tape


class Online:
    """A network whose gradients are carried forward by the dense recursion S' = J S + I.

    `credit` is how many steps back the gradient reaches; `None` for all. What it gives is of flat
    parameters `w`, with the network's memory in its flat state `h`.
    """

    def __init__(self, network, outcome, credit=None):
        """`outcome(output, extra)` is the number that is differentiated."""
        parameters, rest = eqx.partition(network, eqx.is_inexact_array)
        self.start, unravel = ravel_pytree(parameters)
        self.h0, states = ravel_pytree(network.init_state())
        self.credit, self.past = credit, []
        make = lambda w: eqx.combine(unravel(w), rest)  # noqa: E731

        def advance(w, h, inputs):
            net = make(w)
            return ravel_pytree(net.memory.step(states(h), net.features(inputs), inputs.begin)[0])[
                0
            ]

        def output(w, h, inputs):
            net = make(w)
            return net.head(net.memory.readout(states(h), net.features(inputs)))

        self.output, self.advance = jax.jit(output), jax.jit(advance)
        number = lambda w, h, inputs, extra: outcome(output(w, h, inputs), extra)  # noqa: E731
        self.jacobians = jax.jit(jax.jacfwd(advance, (0, 1)))
        self.slopes = jax.jit(jax.grad(number, (0, 1)))
        self.h, self.s = self.h0, np.zeros((self.h0.size, self.start.size))

    def step(self, w, inputs):
        """The output at a step; the state and its sensitivity go on."""
        if inputs.begin:
            self.s = np.zeros_like(self.s)
        if self.credit is not None:
            return self._window(w, inputs)
        immediate, jacobian = self.jacobians(w, self.h, inputs)
        self.h, self.s = self.advance(w, self.h, inputs), jacobian @ self.s + immediate
        return self.output(w, self.h, inputs)

    def _window(self, w, inputs):
        """Run the last steps again with the present parameters, from the state before them."""
        if not self.past:
            self.before = self.h0
        self.past.append(inputs)
        if len(self.past) > self.credit:
            self.before = self.advance(self.moved, self.before, self.past.pop(0))
        h, s = self.before, np.zeros_like(self.s)
        for seen in self.past:
            immediate, jacobian = self.jacobians(w, h, seen)
            h, s = self.advance(w, h, seen), jacobian @ s + immediate
        # The start moves on with the parameters of the step at which it was in the window.
        self.h, self.s, self.moved = h, s, w
        return self.output(w, self.h, inputs)

    def gradient(self, w, inputs, extra=0.0):
        """The gradient of the number at the step that was taken last."""
        direct, through = self.slopes(w, self.h, inputs, extra)
        return np.asarray(direct + through @ self.s)

    def following(self, w, inputs):
        """The output one step later, without taking it."""
        return self.output(w, self.advance(w, self.h, inputs), inputs)


def stream(env, steps):
    """What happens in `Tape`: lists of inputs, of what followed, and arrays as of `episodes`."""
    time, reward, terminated, truncated = episodes(env, steps)
    before = np.concatenate([[0.0], reward[:-1]])

    def seen(t, r, begin):
        return Inputs(
            Tape.observation(jnp.int32(t)), jnp.int32(0), jnp.float32(r), jnp.bool_(begin)
        )

    now = [seen(t, r, t == 0) for t, r in zip(time, before, strict=True)]
    following = [seen(t + 1, r, False) for t, r in zip(time, reward, strict=True)]
    return now, following, reward, terminated, truncated


def obgd_by_hand(w, z, error, rate, kappa):
    """Overshooting-bounded gradient descent, as its paper has it."""
    bound = rate * kappa * max(abs(error), 1) * np.abs(z).sum()
    return w + rate / max(bound, 1) * error * z


class Adam:
    """Adam, as its paper has it, on the gradient -δ z."""

    def __init__(self, rate):
        self.rate, self.m, self.v, self.t = rate, 0.0, 0.0, 0

    def __call__(self, w, z, error):
        self.t += 1
        g = -error * z
        self.m, self.v = 0.9 * self.m + 0.1 * g, 0.999 * self.v + 0.001 * g**2
        m, v = self.m / (1 - 0.9**self.t), self.v / (1 - 0.999**self.t)
        return w - self.rate * m / (np.sqrt(v) + 1e-8)
