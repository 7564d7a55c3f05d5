"""A memory with ends, in the memory's four forms."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

import zoo
from agents.networks.encoders import Convolutions, front
from agents.networks.heads import ActorCritic, PolicyHead, ValueHead
from agents.networks.inputs import Features, Inputs, beginning
from agents.networks.layers import ACTIVATIONS, Encoder, Linear, TwoLayers
from agents.networks.spaces import is_discrete, width
from agents.networks.steppers import RecurrentStepper, SeparateStepper
from zoo.parts.checks import check_counts, shown


class Recurrent(eqx.Module):
    """A network with a memory: features → memory → head.

    It has a cell's four forms and a cell's signature, over `Inputs` in place of `x`: what
    gradients, actors and `rtrl.accumulate` drive. Episodes begin where `inputs.begin` says so, or
    `begin`, of the same shape. The state is the memory's, and so is the sensitivity: of the
    parameters in front of the memory, RTRL's gradient is that of the present segment.

    **Attributes:**

    - `features`: `Inputs` of one step to the memory's input, such as `Features`.
    - `memory`: any memory of the zoo.
    - `head`: the memory's output at one step to whatever an algorithm needs, such as `ActorCritic`.
    """

    features: Callable[[Inputs], Array]
    memory: zoo.AbstractMemory
    head: Callable[[Array], Any]

    def __check_init__(self):
        if not isinstance(self.memory, zoo.AbstractMemory):
            raise TypeError(
                f"`memory` (={shown(self.memory)}) must be a memory, as `zoo.get` makes one."
            )
        for name in ("features", "head"):
            if not callable(end := getattr(self, name)):
                raise TypeError(f"`{name}` (={shown(end)}) must be a function.")

    def init_state(self) -> Any:
        """Return the memory's state at the beginning of an episode."""
        return self.memory.init_state()

    def step(self, state: Any, inputs: Inputs, begin: Any = False) -> tuple[Any, Any]:
        """Take one step, for acting: `(state, output)`, the output of the head."""
        inputs = beginning(inputs, begin)
        state, y = self.memory.step(state, self.features(inputs), inputs.begin)
        return state, self.head(y)

    def scan(self, state: Any, inputs: Inputs, begin: Any = None) -> tuple[Any, Any]:
        """Run a sequence, every leaf of `inputs` with a leading time axis: `(state, outputs)`."""
        inputs = beginning(inputs, begin)
        state, ys = self.memory.scan(state, jax.vmap(self.features)(inputs), inputs.begin)
        return state, jax.vmap(self.head)(ys)

    def stepper(self) -> RecurrentStepper:
        """Return steps for acting while the parameters stay."""
        return RecurrentStepper(self.features, self.memory.stepper(), self.head)

    def rtrl_init(self) -> Any:
        """Return the sensitivity at the beginning of an episode."""
        return self.memory.rtrl_init()

    def rtrl_step(self, carry: Any, inputs: Inputs, begin: Any = False) -> tuple[Any, Any]:
        """Take one step whose gradient in the memory's parameters is that of the whole past."""
        inputs = beginning(inputs, begin)
        carry, y = self.memory.rtrl_step(carry, self.features(inputs), inputs.begin)
        return carry, self.head(y)

    def rtrl_scan(self, carry: Any, inputs: Inputs, begin: Any = None) -> tuple[Any, Any]:
        """Run a segment whose gradient in the memory's parameters reaches beyond its start."""
        inputs = beginning(inputs, begin)
        carry, ys = self.memory.rtrl_scan(carry, jax.vmap(self.features)(inputs), inputs.begin)
        return carry, jax.vmap(self.head)(ys)


def around_memory(
    observation_space: Any,
    action_space: Any,
    memory: zoo.Spec,
    *,
    encoder: Callable[[int], Callable[[Array], Array]] | None,
    encoder_size: int,
    encoder_credit: str = "segment",
    convolutions: Callable[..., Convolutions] = Convolutions,
    head: Callable[[int], Callable[[Array], Any]],
    previous_action: bool = False,
    previous_reward: bool = False,
    key: Array,
) -> Recurrent:
    """Put a memory between what is read of the inputs and a head.

    Where there is an encoder and observations are or hold pictures or planes, each a `Box` of three
    axes, it stands behind convolutions; see `agents.networks.Convolutions`.

    **Arguments:**

    - `observation_space`, `action_space`: gymnax spaces.
    - `memory`: recipe of the memory.
    - `encoder`: makes what stands in front of the memory, given how many numbers are read; `None`
      for nothing, so that the memory reads them itself.
    - `encoder_size`: how many numbers the encoder gives.
    - `encoder_credit`: `"segment"` puts it among the features, where it learns from the present
      segment in the RTRL forms; `"exact"` makes it a part of the memory, see `zoo.Fronted`.
    - `convolutions`: makes those of a picture, given its space and a key.
    - `head`: makes the head, given the width of the memory's output.
    - `previous_action`, `previous_reward`: whether they are read too.
    - `key`: for the memory.

    **Raises:**

    `TypeError` for a space that is not supported, and for a memory with a number that is no array.
    """
    numbers = width(observation_space) + width(action_space) * previous_action + previous_reward
    before = None
    if encoder is not None:
        front_key = jax.random.fold_in(key, 1)
        before = front(
            observation_space, numbers, encoder, convolutions=convolutions, key=front_key
        )
    cell = _arrays_alone(memory.build(numbers if before is None else encoder_size, key))
    if before is not None and encoder_credit == "exact":
        cell, before = zoo.Fronted(before, cell, inputs=numbers), None
    return Recurrent(
        Features(before, observation_space, action_space, previous_action, previous_reward),
        cell,
        head(cell.outputs),
    )


def _arrays_alone(memory: zoo.AbstractMemory) -> zoo.AbstractMemory:
    """A memory whose leaves are arrays, as an agent's state is: functions become static.

    **Raises:**

    `TypeError` for another leaf, which a program would make an array of, and an optimizer learn.
    """

    def one(path: Any, leaf: Any) -> Any:
        if eqx.is_array(leaf):
            return leaf
        if callable(leaf):  # such as the activation of an `eqx.nn.MLP`
            return jax.tree_util.Partial(leaf)
        raise TypeError(
            f"`memory` (a {type(memory).__name__}) has {jax.tree_util.keystr(path)} "
            f"(={shown(leaf)}), which is no array: make it one if it is to be learned, or its "
            "field static."
        )

    return jax.tree_util.tree_map_with_path(one, memory)


class Separate(eqx.Module):
    """Two networks side by side, each with a memory of its own: what one learns leaves the other
    alone.

    It has the four forms too; states, sensitivities and outputs are pairs.

    **Attributes:**

    - `actor`, `critic`: the networks; with `PolicyHead` and `ValueHead` for heads the output is
      `(policy, value)`.
    """

    actor: Recurrent
    critic: Recurrent

    @property
    def memory(self) -> tuple[zoo.AbstractMemory, zoo.AbstractMemory]:
        """The memories of both."""
        return self.actor.memory, self.critic.memory

    def init_state(self) -> Any:
        """Return the memories' states at the beginning of an episode."""
        return self.actor.init_state(), self.critic.init_state()

    def step(self, state: Any, inputs: Inputs, begin: Any = False) -> tuple[Any, Any]:
        """Take one step, for acting: `(state, output)`, each a pair."""
        return self._both("step", state, inputs, begin)

    def scan(self, state: Any, inputs: Inputs, begin: Any = None) -> tuple[Any, Any]:
        """Run a sequence, every leaf of `inputs` with a leading time axis: `(state, outputs)`."""
        return self._both("scan", state, inputs, begin)

    def stepper(self) -> SeparateStepper:
        """Return steps for acting while the parameters stay."""
        return SeparateStepper(self.actor.stepper(), self.critic.stepper())

    def rtrl_init(self) -> Any:
        """Return the sensitivities at the beginning of an episode."""
        return self.actor.rtrl_init(), self.critic.rtrl_init()

    def rtrl_step(self, carry: Any, inputs: Inputs, begin: Any = False) -> tuple[Any, Any]:
        """Take one step whose gradient in the memories' parameters is that of the whole past."""
        carries, output = self._both("rtrl_step", zip(*carry, strict=True), inputs, begin)
        return tuple(zip(*carries, strict=True)), output

    def rtrl_scan(self, carry: Any, inputs: Inputs, begin: Any = None) -> tuple[Any, Any]:
        """Run a segment whose gradient in the memories' parameters reaches beyond its start."""
        carries, outputs = self._both("rtrl_scan", zip(*carry, strict=True), inputs, begin)
        return tuple(zip(*carries, strict=True)), outputs

    def _both(self, form: str, carries: Any, inputs: Inputs, begin: Any) -> tuple[Any, Any]:
        """One form of both networks: the carries after it, and the outputs."""
        found = [
            getattr(network, form)(carry, inputs, begin)
            for network, carry in zip((self.actor, self.critic), carries, strict=True)
        ]
        (one, policy), (other, value) = found
        return (one, other), (policy, value)


def actor_critic(
    observation_space: Any,
    action_space: Any,
    memory: zoo.Spec,
    *,
    encoder_size: int = 64,
    encoder_credit: str = "segment",
    head_size: int = 64,
    activation: str = "relu",
    separate: bool = False,
    squashed: bool = False,
    previous_action: bool = False,
    previous_reward: bool = False,
    key: Array,
) -> Recurrent | Separate:
    """Make a network that gives policy and value.

    **Arguments:**

    - `observation_space`, `action_space`: gymnax spaces.
    - `memory`: recipe of the memory.
    - `encoder_size`: width of the layer in front of the memory, which stands behind convolutions
      where observations are pictures; 0 for none, so that the memory reads the observation itself.
    - `encoder_credit`: `"segment"` puts it among the features, where it learns from the present
      segment in the RTRL forms; `"exact"` makes it a part of the memory, see `zoo.Fronted`.
    - `head_size`: width of the hidden layer of actor and critic; 0 for none, so that both are
      linear.
    - `activation`: `"relu"` or `"tanh"`, of encoder and hidden layers.
    - `separate`: whether actor and critic have a memory and an encoder each.
    - `squashed`: whether continuous actions go through a tanh into their box.
    - `previous_action`, `previous_reward`: whether they are inputs too.

    **Raises:**

    `TypeError` for a space that is not supported; `ValueError` for a width that is not one.
    """
    check_counts(0, encoder_size=encoder_size, head_size=head_size)
    actions, activate = width(action_space), ACTIVATIONS[activation]

    def part(head: Callable[[int, Any], Any], key: Array) -> Recurrent:
        encoder_key, memory_key, *keys = jax.random.split(key, 6)
        encoder = lambda n: Encoder(Linear(n, encoder_size, key=encoder_key), activate)  # noqa: E731
        return around_memory(
            observation_space,
            action_space,
            memory,
            encoder=encoder if encoder_size else None,
            encoder_size=encoder_size,
            encoder_credit=encoder_credit,
            head=lambda outputs: head(outputs, keys),
            previous_action=previous_action,
            previous_reward=previous_reward,
            key=memory_key,
        )

    def layers(inputs: int, outputs: int, scale: float, keys: Any) -> Linear | TwoLayers:
        if not head_size:
            return Linear(inputs, outputs, scale=scale, key=keys[1])
        return TwoLayers(
            inputs, head_size, outputs, scale=scale, activation=activate, keys=(keys[0], keys[1])
        )

    def actor(inputs: int, keys: Any) -> Linear | TwoLayers:
        return layers(inputs, actions, 0.01, keys[:2])

    def critic(inputs: int, keys: Any) -> Linear | TwoLayers:
        return layers(inputs, 1, 1.0, keys[2:])

    log_std = None if is_discrete(action_space) else jnp.zeros(actions)
    if separate:
        keys = jax.random.split(key)
        return Separate(
            part(lambda n, k: PolicyHead(actor(n, k), log_std, action_space, squashed), keys[0]),
            part(lambda n, k: ValueHead(critic(n, k)), keys[1]),
        )
    head = lambda n, k: ActorCritic(actor(n, k), critic(n, k), log_std, action_space, squashed)  # noqa: E731
    return part(head, key)
