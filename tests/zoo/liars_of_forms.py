"""Cells whose equations are honest, and of whose forms one is not."""

import equinox as eqx
import jax
import jax.numpy as jnp

import scan
from tests.zoo.liars import Alone


class NoFlagsAreABegin(Alone):
    """No flags are taken for the beginning of an episode."""

    def scan(self, state, xs, begin=None, *, method="auto"):
        state = self.init_state() if begin is None else state
        return super().scan(state, xs, begin, method=method)


class NoFlagsForgetThePast(Alone):
    """Without flags the sensitivity begins anew, which leaves the values as they are."""

    def rtrl_scan(self, carry, xs, begin=None):
        carry = (carry[0], self.rtrl_init()) if begin is None else carry
        return super().rtrl_scan(carry, xs, begin)


class EveryStepBegins(Alone):
    """A step is the first of an episode unless it is told otherwise."""

    def step(self, state, x, begin=True):
        return super().step(state, x, begin)


class OneStepIsTwice(Alone):
    """A scan of one step answers twice as much."""

    def scan(self, state, xs, begin=None, *, method="auto"):
        state, ys = super().scan(state, xs, begin, method=method)
        return state, ys * (1 + (len(xs) == 1))


class OneStepIsWithoutAPast(Alone):
    """A segment of one step has the gradient of that step alone; values are right."""

    def rtrl_scan(self, carry, xs, begin=None):
        if len(xs) > 1:
            return super().rtrl_scan(carry, xs, begin)
        (_, sensitivity), _ = super().rtrl_scan(carry, xs, begin)
        (state, _), ys = super().rtrl_scan((carry[0], self.rtrl_init()), xs, begin)
        return (state, sensitivity), ys


class OpenToThePast(Alone):
    """A gradient goes into the state that is carried in, for which the sensitivity stands."""

    def rtrl_step(self, carry, x, begin=False):
        out, ys = self.rtrl_scan(carry, x[None], jnp.asarray(begin)[None])
        return out, ys[0]

    def rtrl_scan(self, carry, xs, begin=None):
        out, ys = super().rtrl_scan(carry, xs, begin)
        through, around = (
            self.scan(state, xs, begin)[1] for state in (carry[0], jax.lax.stop_gradient(carry[0]))
        )
        return out, ys + through - around


class OpenToTheFuture(Alone):
    """A gradient comes out of the state that is carried out."""

    def rtrl_step(self, carry, x, begin=False):
        (_, sensitivity), y = super().rtrl_step(carry, x, begin)
        return (self.step(jax.lax.stop_gradient(carry[0]), x, begin)[0], sensitivity), y

    def rtrl_scan(self, carry, xs, begin=None):
        (_, sensitivity), ys = super().rtrl_scan(carry, xs, begin)
        return (self.scan(jax.lax.stop_gradient(carry[0]), xs, begin)[0], sensitivity), ys


class MultipliesItsReset(Alone):
    """A stepper resets by a factor of zero, which leaves a NaN."""

    def stepper(self):
        return _Multiplying(self)


class _Multiplying(eqx.Module):
    memory: Alone

    def cache(self, state):
        return state

    def state(self, cache):
        return cache

    def step(self, cache, x, begin=False):
        return self.memory.step(cache * (1 - begin), x)


class KeepsAFunction(Alone):
    """No liar: its stepper keeps a function of parameters and state, and is reset like a state."""

    def stepper(self):
        return _Keeping(self)


class _Keeping(eqx.Module):
    memory: Alone

    def cache(self, state):
        return state, self.memory.u * state

    def init_cache(self):
        return self.cache(self.memory.init_state())

    def state(self, cache):
        return cache[0]

    def step(self, cache, x, begin=False):
        _, past = scan.reset(begin, self.init_cache(), cache)
        y = jnp.tanh(self.memory.w @ x + past)
        return self.cache(y), y
