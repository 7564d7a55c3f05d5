"""What stands in front of a memory, by the observation space: convolutions for pictures."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from jaxtyping import Array, Float

from agents.networks.layers import orthogonal, sparse_weights
from agents.networks.spaces import is_bounded, places, width
from zoo.parts import layer_norm

# (channels, side of the kernel, stride), by the shortest side of a picture. The first are those of
# Mnih et al. (2015), the last those of Young and Tian (2019) for planes of 10 x 10.
_LAYERS = {
    36: ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
    16: ((32, 4, 2), (64, 3, 1)),
    1: ((16, 3, 1),),
}


class Convolution(eqx.Module):
    """A convolution without padding, and a ReLU; or normalized, with a leaky ReLU."""

    w: Float[Array, "channels inputs height width"]
    b: Float[Array, " channels"]
    stride: int = eqx.field(static=True)
    normalized: bool = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        channels: int,
        kernel: tuple[int, int],
        stride: int,
        *,
        normalized: bool = False,
        sparsity: float | None = None,
        key: Array,
    ):
        """**Arguments:**

        - `inputs`, `channels`: planes that come in, and that go out.
        - `kernel`: its sides.
        - `stride`: steps from one place to the next.
        - `normalized`: whether all numbers that go out are, together and without parameters.
        - `sparsity`: share of the weights of each plane that goes out which begin with zero, see
          `sparse_weights`; `None` for orthogonal weights.
        """
        shape = (channels, inputs * math.prod(kernel))
        if sparsity is None:
            w = orthogonal(key, shape, scale=math.sqrt(2))
        else:
            w = sparse_weights(key, *shape, sparsity=sparsity)
        self.w = w.reshape(channels, inputs, *kernel)
        self.b = jnp.zeros(channels)
        self.stride, self.normalized = stride, normalized

    def __call__(self, x: Float[Array, "inputs rows columns"]) -> Float[Array, "channels _ _"]:
        """Return the planes that go out."""
        strides = (self.stride, self.stride)
        y = jax.lax.conv_general_dilated(x[None], self.w, strides, "VALID")[0]
        y += self.b[:, None, None]
        if not self.normalized:
            return jax.nn.relu(y)
        return jax.nn.leaky_relu(layer_norm(y.ravel()).reshape(y.shape))


class Convolutions(eqx.Module):
    """Convolutions over a picture, which comes as a vector of its numbers.

    Sizes follow the picture: three layers from 36 pixels on, two from 16, one below. Numbers from 0
    to beyond 1 are divided by the bound of their space, as the 255 of pixels. Others are taken as
    they are: those of both signs are centered, and mostly of unit size.

    Source: Mnih et al. (2015), *Human-level control through deep reinforcement learning*; for small
    planes: Young and Tian (2019), *MinAtar*.

    **Attributes:**

    - `layers`: one after the other.
    - `shape`: of the picture. Planes are along the first axis or the last: the shorter one, and the
      last of two alike.
    - `scale`: what numbers are divided by.
    - `outputs`: how many numbers the last layer gives.
    """

    layers: tuple[Convolution, ...]
    shape: tuple[int, int, int] = eqx.field(static=True)
    scale: float = eqx.field(static=True)
    outputs: int = eqx.field(static=True)

    def __init__(
        self,
        space: spaces.Box,
        *,
        normalized: bool = False,
        sparsity: float | None = None,
        key: Array,
    ):
        """**Arguments:**

        - `space`: a `Box` of three axes.
        - `normalized`, `sparsity`: of each layer, see `Convolution`.
        """
        self.shape = tuple(space.shape)
        # As arrays of NumPy first: what NumPy asks of JAX's own is traced where a program is.
        low, high = np.asarray(space.low), np.asarray(space.high)
        one_sign = is_bounded(space) and low.min() >= 0
        self.scale = max(1.0, float(high.max())) if one_sign else 1.0
        planes, *sides = np.transpose(np.empty(self.shape), self._planes_first).shape
        (sizes,) = [_LAYERS[least] for least in sorted(_LAYERS) if least <= min(sides)][-1:]
        layers = []
        for (channels, kernel, stride), k in zip(
            sizes, jax.random.split(key, len(sizes)), strict=True
        ):
            window = tuple(min(kernel, side) for side in sides)
            options = {"normalized": normalized, "sparsity": sparsity}
            layers.append(Convolution(planes, channels, window, stride, **options, key=k))
            planes = channels
            sides = [(side - w) // stride + 1 for side, w in zip(sides, window, strict=True)]
        self.layers, self.outputs = tuple(layers), planes * math.prod(sides)

    @property
    def _planes_first(self) -> tuple[int, int, int]:
        return (0, 1, 2) if self.shape[0] < self.shape[2] else (2, 0, 1)

    def __call__(self, numbers: Float[Array, " numbers"]) -> Float[Array, " outputs"]:
        """Return the last layer's numbers."""
        x = (numbers / self.scale).reshape(self.shape).transpose(self._planes_first)
        for layer in self.layers:
            x = layer(x)
        return x.ravel()


class Behind(eqx.Module):
    """An encoder behind convolutions over the pictures in a vector; the other numbers go by.

    **Attributes:**

    - `places`: where each picture's numbers begin.
    - `convolutions`: one after the other, of each picture.
    - `encoder`: of what they make of the pictures, and then of the other numbers.
    """

    places: tuple[int, ...] = eqx.field(static=True)
    convolutions: tuple[Convolutions, ...]
    encoder: Callable[[Array], Array]

    def __call__(self, numbers: Float[Array, " numbers"]) -> Float[Array, " features"]:
        """Return the memory's input."""
        features, rest, end = [], [], 0
        for place, convolutions in zip(self.places, self.convolutions, strict=True):
            rest.append(numbers[end:place])
            end = place + math.prod(convolutions.shape)
            features.append(convolutions(numbers[place:end]))
        return self.encoder(jnp.concatenate([*features, *rest, numbers[end:]]))


def front(
    observation_space: Any,
    numbers: int,
    encoder: Callable[[int], Callable[[Array], Array]],
    *,
    convolutions: Callable[..., Convolutions] = Convolutions,
    key: Array,
) -> Callable[[Array], Array]:
    """Make what stands in front of a memory, by the observation space.

    Every `Box` of three axes, pixels or planes, gets convolutions in front of the encoder: the
    observation itself, or a part of a `Tuple` or `Dict`.

    **Arguments:**

    - `numbers`: how many are read, those of the observation first.
    - `encoder`: makes the encoder, given how many numbers come in.
    - `convolutions`: makes those of a picture, given its space and a key.
    - `key`: for the convolutions.

    **Returns:**

    A module over one vector of numbers.
    """
    pictures = {
        place: part
        for place, part in places(observation_space)
        if isinstance(part, spaces.Box) and len(part.shape) == 3
    }
    if not pictures:
        return encoder(numbers)
    keys = [key] if len(pictures) == 1 else jax.random.split(key, len(pictures))
    layers = tuple(
        convolutions(part, key=k) for part, k in zip(pictures.values(), keys, strict=True)
    )
    seen = sum(width(part) for part in pictures.values())
    made = sum(one.outputs for one in layers)
    return Behind(tuple(pictures), layers, encoder(numbers - seen + made))
