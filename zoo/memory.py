"""What every memory offers: four forms, and steps for acting."""

import math
from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import scan
from rtrl.segment import check_pair
from scan.trees import built, converts, described
from zoo.parts import real_dtype
from zoo.parts.checks import as_array

State = Any
Cache = Any
Sensitivity = Any
Begin = Bool[Array, ""] | bool
Carry = tuple[State, Sensitivity]


class AbstractMemory(eqx.Module):
    """A memory in four forms: step, parallel scan, RTRL step and RTRL segment.

    Unbatched and time-major; callers `vmap`. `begin` says that `x` is the first observation of an
    episode: where it is true, the state and the sensitivity are replaced by their initial values
    before `x` is consumed. It is the only reset, so a scan over several episodes end to end is the
    same as a scan of each.
    """

    inputs: eqx.AbstractVar[int]
    hidden: eqx.AbstractVar[int]

    @property
    def outputs(self) -> int:
        """The width of the output `y`: `hidden` by default."""
        return self.hidden

    @property
    def state_size(self) -> int:
        """The number of real numbers in the state."""
        leaves = jax.tree.leaves(jax.eval_shape(self.init_state))
        return sum(math.prod(x.shape) * (1 + jnp.iscomplexobj(x)) for x in leaves)

    @abstractmethod
    def init_state(self) -> State:
        """The state at the beginning of an episode.

        **Returns:**

        A pytree of arrays; a constant, not a function of parameters.
        """

    @abstractmethod
    def step(
        self, state: State, x: Float[Array, " inputs"], begin: Begin = False
    ) -> tuple[State, Float[Array, " outputs"]]:
        """One step, for acting.

        **Arguments:**

        - `state`: the state carried so far.
        - `x`: the input, shape `[inputs]`.
        - `begin`: whether `x` is the first input of an episode.

        **Returns:**

        `(state, y)`.

        **Raises:**

        `ValueError` for an `x` of another shape.
        """

    @abstractmethod
    def scan(
        self,
        state: State,
        xs: Float[Array, "time inputs"],
        begin: Bool[Array, " time"] | None = None,
    ) -> tuple[State, Float[Array, "time outputs"]]:
        """A whole sequence, parallel over time where the recurrence allows it.

        **Arguments:**

        - `state`: the state carried in.
        - `xs`: inputs, shape `[time, inputs]`.
        - `begin`: shape `[time]`, or `None` for no episode border.

        **Returns:**

        `(state, ys)`: the state after the last step and the outputs of all steps.

        **Raises:**

        `ValueError` for `xs` or `begin` of another shape.
        """

    @abstractmethod
    def rtrl_init(self) -> Sensitivity:
        """The sensitivity of the initial state.

        **Returns:**

        A pytree of zeros; see `rtrl.init`.
        """

    @abstractmethod
    def rtrl_step(
        self, carry: Carry, x: Float[Array, " inputs"], begin: Begin = False
    ) -> tuple[Carry, Float[Array, " outputs"]]:
        """One step whose gradient is that of the whole past.

        The gradient of `y` with respect to the parameters is supplied from the sensitivity; the
        path to `x` is open. The carry is a constant, the one that goes in as well as the one that
        comes out: what made the initial state learns nothing here, but by `step` it does.

        **Arguments:**

        - `carry`: `(state, sensitivity)`.
        - `x`: the input, shape `[inputs]`.
        - `begin`: whether `x` is the first input of an episode.

        **Returns:**

        `(carry, y)`.

        **Raises:**

        `ValueError` for an `x` of another shape.
        """

    @abstractmethod
    def rtrl_scan(
        self,
        carry: Carry,
        xs: Float[Array, "time inputs"],
        begin: Bool[Array, " time"] | None = None,
    ) -> tuple[Carry, Float[Array, "time outputs"]]:
        """A segment: BPTT inside it, the sensitivity across its start.

        The gradient is untruncated, and the backward pass holds one sensitivity per segment, not
        one per step. It has no derivatives of its own, which would need those of the sensitivity,
        and is for reverse mode only: `rtrl_step` is for forward mode too.
        The carry is a constant, the one that goes in as well as the one that comes out: what made
        the initial state learns nothing here, but by `scan` it does.

        **Arguments:**

        - `carry`: `(state, sensitivity)` at the segment's start.
        - `xs`: inputs, shape `[time, inputs]`.
        - `begin`: shape `[time]`, or `None` for no episode border.

        **Returns:**

        `(carry, ys)`.

        **Raises:**

        `ValueError` for `xs` or `begin` of another shape.
        """

    def stepper(self) -> "AbstractStepper":
        """Prepare `step` for acting, where parameters stay as they are for many steps.

        **Returns:**

        A `zoo.AbstractStepper` with the same outputs: a `zoo.PlainStepper`, unless the memory can
        keep something from one step to the next that a `step` computes anew.
        """
        return PlainStepper(self)

    def check_input(self, x: Any) -> Float[Array, " inputs"]:
        """The input of one step, in the precision of the parameters.

        **Arguments:**

        - `x`: of any real dtype, shape `[inputs]`.

        **Returns:**

        `x` as an array: whole numbers and booleans would make a cell compute in whole numbers, and
        a higher precision would change that of the state.

        **Raises:**

        `ValueError` for another shape, `TypeError` for complex numbers and for what is no array.
        """
        x = as_array("x", x)
        self._check(x.shape, (self.inputs,), "x")
        return self._cast(x, "x")

    def check_inputs(
        self, xs: Any, begin: Any
    ) -> tuple[Float[Array, "time inputs"], Bool[Array, " time"] | None]:
        """The inputs of a sequence, in the precision of the parameters, and its borders.

        **Arguments:**

        - `xs`: of any real dtype, shape `[time, inputs]`.
        - `begin`: shape `[time]`, or `None`.

        **Returns:**

        `(xs, begin)` as arrays; see `check_input`.

        **Raises:**

        `ValueError` for other shapes, `TypeError` for complex `xs` and for a `begin` that is not
        boolean.
        """
        xs = as_array("xs", xs)
        time = xs.shape[0] if xs.ndim else 0
        if time == 0:
            raise ValueError(f"`xs` (shape {xs.shape}) must have at least one step of time.")
        self._check(xs.shape, (time, self.inputs), "xs")
        if begin is not None:
            begin = scan.check_begin(begin)
            self._check(begin.shape, (time,), "begin")
        return self._cast(xs, "xs"), begin

    def check_state(self, state: State) -> State:
        """Return a state in the precision of that of `init_state`.

        **Raises:**

        `ValueError` for one that is not built like it.
        """
        expected = jax.eval_shape(self.init_state)
        if built(state) == built(expected) and all(
            map(converts, jax.tree.leaves(state), jax.tree.leaves(expected))
        ):
            return jax.tree.map(
                lambda h, e: h if jnp.result_type(h) == e.dtype else jnp.asarray(h, e.dtype),
                state,
                expected,
            )
        raise ValueError(
            f"`state` (={described(state)}) must be like {described(expected)}, which "
            f"`init_state` gives for {named(self)}. For several sequences side by side use "
            "`jax.vmap`."
        )

    def check_carry(self, carry: Carry) -> Carry:
        """Return a pair of such a state and a sensitivity; `ValueError` for anything else."""
        check_pair(carry)
        return self.check_state(carry[0]), carry[1]

    def _cast(self, x: Array, name: str) -> Array:
        if jnp.iscomplexobj(x):
            raise TypeError(f"`{name}` (dtype {x.dtype}) must be real.")
        return x.astype(real_dtype(self))

    def _check(self, shape: tuple[int, ...], expected: tuple[int, ...], name: str) -> None:
        if shape != expected:
            several = len(shape) > len(expected)
            raise ValueError(
                f"`{name}` (shape {shape}) must have the shape {expected} for {named(self)}"
                f"{': of several, use `jax.vmap`' if several else ''}."
            )


def named(memory: AbstractMemory) -> str:
    """A memory's class and sizes, for a title or an error."""
    return f"{type(memory).__name__}(inputs={memory.inputs}, hidden={memory.hidden})"


class AbstractStepper(eqx.Module):
    """A memory's `step` under parameters that stay: for a rollout, an evaluation, a deployment.

    A memory's state outlives an update of the parameters. A cache need not: it holds the state, and
    what a step would otherwise compute again from parameters and past, such as the keys and values
    of attention. It is made from a state, and gives it back before the parameters change.

    ```python
    cell = zoo.get("transformer", inputs=3, hidden=16)
    stepper = cell.stepper()
    cache = stepper.init_cache()
    cache, y = stepper.step(cache, jnp.ones(3), begin=True)
    state = stepper.state(cache)
    ```
    """

    memory: eqx.AbstractVar[AbstractMemory]

    def init_cache(self) -> Cache:
        """The cache at the beginning of an episode."""
        return self.cache(self.memory.init_state())

    def cache(self, state: State) -> Cache:
        """The cache of a state: the state itself by default.

        **Arguments:**

        - `state`: the memory's.

        **Returns:**

        A pytree of arrays.
        """
        return state

    @abstractmethod
    def step(
        self, cache: Cache, x: Float[Array, " inputs"], begin: Begin = False
    ) -> tuple[Cache, Float[Array, " outputs"]]:
        """One step: that of the memory, on a cache.

        **Arguments:**

        - `cache`: the cache carried so far.
        - `x`: the input, shape `[inputs]`.
        - `begin`: whether `x` is the first input of an episode.

        **Returns:**

        `(cache, y)`.

        **Raises:**

        `ValueError` for an `x` of another shape.
        """

    def state(self, cache: Cache) -> State:
        """The memory's state in a cache: the cache itself by default.

        **Arguments:**

        - `cache`: as `cache` or `step` returned it.

        **Returns:**

        The state.
        """
        return cache


class PlainStepper(AbstractStepper):
    """The step of a memory that has nothing to keep: the cache is the state."""

    memory: AbstractMemory

    def step(
        self, cache: Cache, x: Float[Array, "..."], begin: Begin = False
    ) -> tuple[Cache, Float[Array, " outputs"]]:
        return self.memory.step(cache, x, begin)
