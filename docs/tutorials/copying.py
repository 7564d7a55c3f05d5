"""Copying by RTRL: a network reads bits, then blanks, and says the bits again.

    python docs/tutorials/copying.py --out copying.csv

Source of the task: Irie et al. (2024), *Exploring the Promise and Limits of Real-Time Recurrent
Learning*, appendix B.1.
"""

import csv
import functools
from dataclasses import dataclass, replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import tyro

import zoo

BLANK, NOTHING = 2, -1


def sequences(key, count, longest):
    """Draw sequences of 1 to `longest` bits and as many blanks, padded: `[time, count]` each.

    **Returns:**

    `(symbols, targets)`: what is read, and the bit to say, or -1 where none is asked for.
    """
    length_key, bit_key = jax.random.split(key)
    length = jax.random.randint(length_key, (count,), 1, longest + 1)
    bits = jax.random.bernoulli(bit_key, shape=(2 * longest, count)).astype(jnp.int32)
    time = jnp.arange(2 * longest)[:, None]
    again = jnp.take_along_axis(bits, jnp.maximum(time - length, 0), axis=0)
    asked = (time >= length) & (time < 2 * length)
    return jnp.where(time < length, bits, BLANK), jnp.where(asked, again, NOTHING)


class Network(eqx.Module):
    """A memory of symbols, and a linear layer that says bits."""

    cell: zoo.AbstractMemory
    readout: eqx.nn.Linear

    def __init__(self, cell, hidden, *, key):
        cell_key, readout_key = jax.random.split(key)
        self.cell = zoo.get(cell, inputs=3, hidden=hidden, key=cell_key)
        self.readout = eqx.nn.Linear(self.cell.outputs, 2, key=readout_key)


# --8<-- [start:advance]
def advance(rule, network, carry, symbol):
    """Read a symbol: the new carry, and a logit for each bit."""
    x = jax.nn.one_hot(symbol, 3)
    if rule == "rtrl":
        carry, y = network.cell.rtrl_step(carry, x)
    else:
        state, y = network.cell.step(jax.lax.stop_gradient(carry[0]), x)
        carry = state, carry[1]
    return carry, network.readout(y)


# --8<-- [end:advance]


# --8<-- [start:step]
def step(rule, optimizer, learner, now):
    """Read one symbol of every sequence of a batch, and learn from what is said."""
    network, moments, carries = learner
    symbols, targets = now
    asked = targets != NOTHING

    def loss(network):
        read = functools.partial(advance, rule, network)
        new, logits = jax.vmap(read)(carries, symbols)
        surprise = optax.softmax_cross_entropy_with_integer_labels(logits, targets * asked)
        mean = jnp.sum(surprise * asked) / jnp.maximum(jnp.sum(asked), 1)
        return mean, (new, jnp.argmax(logits, axis=-1))

    gradient, (carries, said) = eqx.filter_grad(loss, has_aux=True)(network)
    updates, moments = optimizer.update(gradient, moments)
    return (eqx.apply_updates(network, updates), moments, carries), said


# --8<-- [end:step]


@dataclass(frozen=True)
class Copying:
    """Learning to copy, with an update at every step of a batch of sequences.

    Each batch has two updates for each of the `longest` bits, and over all of them Adam's rate
    falls to zero. `rule` says how far credit reaches: `"rtrl"` through the whole sequence,
    `"tbptt"` not past the step itself.
    """

    cell: str = "elstm"
    hidden: int = 128
    longest: int = 10
    batch: int = 64
    batches: int = 10_000
    rate: float = 1e-3
    rule: str = "rtrl"

    @property
    def optimizer(self):
        rate = optax.linear_schedule(self.rate, 0.0, self.batches * 2 * self.longest)
        return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate, 0.9, 0.995))

    def init(self, key):
        network = Network(self.cell, self.hidden, key=key)
        return network, self.optimizer.init(eqx.filter(network, eqx.is_inexact_array))

    def learn(self, network, moments, key):
        """Learn from one batch: as many updates as its sequences have steps."""
        symbols, targets = sequences(key, self.batch, self.longest)
        one = network.cell.init_state(), network.cell.rtrl_init()
        carries = jax.tree.map(lambda x: jnp.broadcast_to(x, (self.batch, *x.shape)), one)
        (network, moments, _), said = jax.lax.scan(
            functools.partial(step, self.rule, self.optimizer),
            (network, moments, carries),
            (symbols, targets),
        )
        return network, moments, scores(said, targets)


def scores(said, targets):
    """The share of zeros and of ones that are said right, and of sequences without an error."""
    right = said == targets
    share = lambda value: jnp.sum(right & (targets == value)) / jnp.sum(targets == value)  # noqa: E731
    return jnp.stack([share(0), share(1), jnp.mean(jnp.all(right | (targets == NOTHING), axis=0))])


def learn(task, seeds, every):
    """Learn with several seeds side by side.

    **Returns:**

    Of each `every` batches the mean of `scores`, before each was learned from:
    `[task.batches / every, seeds, 3]`.
    """
    keys = jax.random.split(jax.random.key(0), seeds)
    learners = jax.vmap(task.init)(keys)
    arrays, rest = eqx.partition(learners, eqx.is_array)

    @jax.jit
    @jax.vmap
    def several(arrays, key):
        def one(arrays, key):
            network, moments, found = task.learn(*eqx.combine(arrays, rest), key)
            return eqx.filter((network, moments), eqx.is_array), found

        arrays, found = jax.lax.scan(one, arrays, jax.random.split(key, every))
        return arrays, jnp.mean(found, axis=0)

    out = []
    for block in range(task.batches // every):
        keys = jax.random.split(jax.random.key(1 + block), seeds)
        arrays, found = several(arrays, keys)
        out.append(found)
    return jnp.stack(out)


def main(out: Path, task: Copying = Copying(), seeds: int = 3):
    """Learn with both rules and write a table of the mean scores of every 100 batches."""
    with out.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["rule", "seed", "batches", "zeros", "ones", "sequences"])
        for rule in ("rtrl", "tbptt"):
            found = learn(replace(task, rule=rule), seeds, 100)
            for block, of_seeds in enumerate(found.tolist()):
                for seed, row in enumerate(of_seeds):
                    table.writerow([rule, seed, 100 * (block + 1), *(f"{x:.4f}" for x in row)])


if __name__ == "__main__":
    tyro.cli(main)
