"""Differentiable neural computer."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import rtrl
from zoo.kinds import AbstractUnstructuredCell
from zoo.parts import Linear, check_sizes, widened
from zoo.registry import register


class _Memory(eqx.Module):
    """What the computer holds after a step."""

    h: Float[Array, " hidden"]
    c: Float[Array, " hidden"]
    memory: Float[Array, "slots word"]
    usage: Float[Array, " slots"]
    precedence: Float[Array, " slots"]
    link: Float[Array, "slots slots"]
    write: Float[Array, " slots"]
    read: Float[Array, "heads slots"]
    words: Float[Array, "heads word"]


class DNC(AbstractUnstructuredCell):
    r"""Differentiable neural computer: an LSTM that writes to and reads from a memory of slots.

    The controller sees `[x, words read before]` and emits keys, strengths and gates; the memory
    follows the paper's equations for content addressing, allocation by usage, temporal links and
    reading. `y = W [h', words read]`.

    Source: *Hybrid computing using a neural network with dynamic external memory*, Graves et al.
    (2016), Methods.
    """

    controller: eqx.nn.LSTMCell
    interface: Linear
    output: Linear
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    slots: int = eqx.field(static=True)
    word: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)
    sensitivity: rtrl.AbstractSensitivity = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        slots: int = 8,
        word: int = 8,
        heads: int = 1,
        sensitivity: rtrl.AbstractSensitivity = rtrl.Exact(),
        key: Array,
    ):
        """**Arguments:**

        - `inputs`: width of `x`.
        - `hidden`: units of the controller, and width of `y`.
        - `slots`: number of slots of the memory.
        - `word`: width of a slot.
        - `heads`: number of read heads.
        - `sensitivity`: what RTRL follows; see `zoo.AbstractUnstructuredCell`.
        """
        check_sizes(inputs=inputs, hidden=hidden, slots=slots, word=word, heads=heads)
        keys = jax.random.split(key, 3)
        self.controller = eqx.nn.LSTMCell(inputs + heads * word, hidden, key=keys[0])
        emitted = heads * (word + 5) + 3 * word + 3
        self.interface = Linear(hidden, emitted, key=keys[1])
        self.output = Linear(hidden + heads * word, hidden, key=keys[2])
        self.inputs, self.hidden = inputs, hidden
        self.slots, self.word, self.heads = slots, word, heads
        self.sensitivity = sensitivity

    def init_state(self) -> _Memory:

        def zeros(*shape):
            return jnp.zeros(shape, self.output.weight.dtype)

        slots, heads, word = self.slots, self.heads, self.word
        return _Memory(
            h=zeros(self.hidden),
            c=zeros(self.hidden),
            memory=zeros(slots, word),
            usage=zeros(slots),
            precedence=zeros(slots),
            link=zeros(slots, slots),
            write=zeros(slots),
            read=zeros(heads, slots),
            words=zeros(heads, word),
        )

    def update(self, state: _Memory, x: Float[Array, " inputs"]) -> _Memory:
        """Controller, then writing, then reading."""
        inputs = jnp.concatenate([x, state.words.ravel()])
        h, c = self.controller(inputs, (state.h, state.c))
        heads, word = self.heads, self.word
        sizes = [heads * word, heads, word, 1, word, word, heads, 1, 1, 3 * heads]
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
        (
            read_keys, read_strengths, write_key, write_strength, erase, written, free,
            allocation_gate, write_gate, modes,
        ) = jnp.split(self.interface(h), ends)  # fmt: skip
        sigmoid = jax.nn.sigmoid

        kept = jnp.prod(1 - sigmoid(free)[:, None] * state.read, 0)
        usage = (state.usage + state.write - state.usage * state.write) * kept
        strength = 1 + jax.nn.softplus(write_strength[0])
        by_content = _similar(state.memory, write_key, strength)
        gate = sigmoid(allocation_gate)
        write = sigmoid(write_gate) * (gate * _allocation(usage) + (1 - gate) * by_content)
        memory = state.memory * (1 - write[:, None] * sigmoid(erase)[None])
        memory = memory + write[:, None] * written[None]

        link = (1 - write[:, None] - write[None]) * state.link
        link = link + write[:, None] * state.precedence[None]
        link = link * (1 - jnp.eye(self.slots, dtype=link.dtype))
        precedence = (1 - jnp.sum(write)) * state.precedence + write

        strengths = 1 + jax.nn.softplus(read_strengths)
        alike = jax.vmap(_similar, (None, 0, 0))(memory, read_keys.reshape(heads, word), strengths)
        backward, content, forward = jax.nn.softmax(modes.reshape(heads, 3), -1).T[:, :, None]
        read = backward * (state.read @ link) + content * alike + forward * (state.read @ link.T)
        return _Memory(h, c, memory, usage, precedence, link, write, read, read @ memory)

    def readout(self, state: _Memory, x: Array) -> Float[Array, " hidden"]:
        """`W [h', words read]`."""
        return self.output(jnp.concatenate([state.h, state.words.ravel()]))


def _similar(memory, key, strength):
    """Weights of the slots by their cosine similarity to a key."""
    slots, key = widened(memory), widened(key)  # float16 has no 1e-12
    norms = jnp.sqrt(jnp.sum(slots**2, 1) + 1e-12) * jnp.sqrt(jnp.sum(key**2) + 1e-12)
    return jax.nn.softmax(strength * (slots @ key) / norms).astype(memory.dtype)


def _allocation(usage):
    """Weights of the slots by how free they are: the freest first."""
    order = jnp.argsort(usage)
    ascending = usage[order]
    before = jnp.concatenate([jnp.ones_like(usage[:1]), jnp.cumprod(ascending)[:-1]])
    return jnp.zeros_like(usage).at[order].set((1 - ascending) * before)


register("dnc", DNC)
