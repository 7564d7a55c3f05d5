"""The forms of a memory, and one program that takes values and gradients of any of them."""

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import scan
from zoo.memory import AbstractMemory, PlainStepper
from zoo.proofs.loop import plain_loop, segment_step
from zoo.proofs.losses import along, is_key, of_state, total

TIME = 9
SEGMENTS = (1, 4)  # the lengths of segments that are compiled
BATCH = 4
# Compiling takes the time: with these a half to a third of what it takes without.
_OPTIONS = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}

# Called as `function(memory, carry, xs, begin, cuts)`, returns `(end, ys)`.
Function = Callable[[Any, Any, Any, Any, Any], tuple[Any, Any]]


def _loop(memory, carry, xs, begin, cuts):
    """Run the plain loop, with what RTRL's sensitivity follows across the cuts."""
    states, ys = plain_loop(memory, carry[0], xs, begin, cuts)
    return (jax.tree.map(lambda h: h[-1], states), ()), ys


def _loop_of_rules(memory, carry, xs, begin, cuts):
    """Run the plain loop, with what RTRL follows across the cuts and between them."""
    states, ys = plain_loop(memory, carry[0], xs, begin, cuts, within=segment_step)
    return (jax.tree.map(lambda h: h[-1], states), ()), ys


def _steps(memory, carry, xs, begin, cuts):
    """Loop over `step`."""
    end, ys = jax.lax.scan(lambda h, inputs: memory.step(h, *inputs), carry[0], (xs, begin))
    return (end, ()), ys


def _scan(memory, carry, xs, begin, cuts):
    end, ys = memory.scan(carry[0], xs, begin)
    return (end, ()), ys


def _scan_in_chunks(memory, carry, xs, begin, cuts):
    """Take `scan` without the states of all steps, which long sequences take by themselves."""
    end, ys = memory.scan(carry[0], xs, begin, method="chunks")
    return (end, ()), ys


def _rtrl_step(memory, carry, xs, begin, cuts):
    """Take one step: no gradient comes back from the next, so that none goes through a loop."""
    carry, y = memory.rtrl_step(carry, xs[0], begin[0])
    return carry, y[None]


def _rtrl_scan(memory, carry, xs, begin, cuts):
    return memory.rtrl_scan(carry, xs, begin)


def _stepper(memory, carry, xs, begin, cuts):
    """Loop over the steps of `stepper`, from the cache of a state to the state of a cache."""
    stepper = memory.stepper()
    one = lambda cache, inputs: stepper.step(cache, *inputs)  # noqa: E731
    cache, ys = jax.lax.scan(one, stepper.cache(carry[0]), (xs, begin))
    return (stepper.state(cache), ()), ys


@dataclass(frozen=True)
class Form:
    """A way to run a memory over a sequence, in one or several parts.

    - `parts`: what each part is given to, and its length. A pair is traced and compiled once.
    - `cuts`: where segments start, whose gradients end there; none but for RTRL.
    """

    parts: tuple[tuple[Function, int], ...]
    cuts: tuple[int, ...] = ()

    def slices(self) -> list[slice]:
        """The parts' places in time."""
        ends = np.cumsum([0, *(length for _, length in self.parts)])
        return [slice(*ends[i : i + 2]) for i in range(len(self.parts))]


def _whole(function: Function) -> Form:
    return Form(((function, TIME),))


def in_scans(*lengths: int) -> Form:
    """Take `rtrl_scan` in segments of these lengths."""
    cuts = tuple(int(n) for n in np.cumsum([0, *lengths[:-1]]))
    return Form(tuple((_rtrl_scan, n) for n in lengths), cuts)


def in_segments(*lengths: int) -> Form:
    """Take segments of these lengths: by `rtrl_scan`, but single steps by `rtrl_step`."""
    form = in_scans(*lengths)
    return replace(form, parts=tuple((_rtrl_step, 1) if n == 1 else (f, n) for f, n in form.parts))


LOOP, LOOP_OF_RULES = _whole(_loop), _whole(_loop_of_rules)
# The gradient of `scan`'s end state, and in the state carried in, says what its parts would.
FORMS = {"step": _whole(_steps), "scan": _whole(_scan)}
STEPPER = Form(((_stepper, 3),) * 3)
RTRL_STEP = in_segments(*(1,) * TIME)
# Segments of both forms with a past to reach and a future to be reached from. A segment of all
# steps would show no more: a first segment is one without a past.
RTRL_FORMS = {
    "rtrl_step": RTRL_STEP,
    "rtrl_scan of 4 steps, rtrl_step, rtrl_scan of 4": in_segments(4, 1, 4),
    "rtrl_step, rtrl_scan of 4 steps and of 4": in_segments(1, 4, 4),
}
# Of the library's own forms the step is a segment of one.
_SCANS_OF_ONE = {"rtrl_scan, segments of 4, 1 and 4": in_scans(4, 1, 4)}
_NAMES = (
    "step", "scan", "rtrl_step", "rtrl_scan",
    "states", "segment_states", "surrogate_states", "scan_in_chunks",
)  # fmt: skip
_OURS = re.compile(r"rtrl\.segment|zoo\.(memory|cell|kinds\..*)")


def states_forms_itself(memory: AbstractMemory) -> bool:
    """Whether a form is not all the kind's own, of which the library's tests look at every one."""
    definers = (
        next((c for c in type(memory).__mro__ if name in vars(c)), AbstractMemory)
        for name in _NAMES
    )
    return not all(_OURS.fullmatch(definer.__module__) for definer in definers)


def forms_of(memory: AbstractMemory) -> dict[str, Form]:
    """Name the forms without a sensitivity that a memory has."""
    has_chunks = getattr(memory, "has_chunks", False)
    return FORMS | ({"scan in chunks": _whole(_scan_in_chunks)} if has_chunks else {})


def rtrl_forms_of(memory: AbstractMemory) -> dict[str, Form]:
    """Name the forms with a sensitivity."""
    return RTRL_FORMS | (_SCANS_OF_ONE if states_forms_itself(memory) else {})


def all_forms(memory: AbstractMemory) -> dict[str, Form]:
    """Name all forms that a memory has."""
    kept = {} if isinstance(memory.stepper(), PlainStepper) else {"stepper": STEPPER}
    return {**forms_of(memory), **kept, **rtrl_forms_of(memory)}


class Outcome(NamedTuple):
    """What a form computes for a batch, and the gradients of a loss of it.

    - `end`, `sensitivity`: at the end; `sensitivity` is `()` for forms without one.
    - `ys`: outputs.
    - `memory`, `state`, `xs`: gradients of the loss in the parameters (summed over the batch), the
      state carried in, and the inputs.
    """

    end: Any
    sensitivity: Any
    ys: Any
    memory: Any
    state: Any
    xs: Any


@dataclass(frozen=True)
class Problem:
    """A memory, and a batch of carries, inputs, resets and weights of a loss.

    - `on_state`: the weight of a loss of the state at the end.
    """

    memory: AbstractMemory
    carry: Any
    xs: Any
    begin: Any
    weights: Any
    on_state: float = 0.0

    def outcome(self, form: Form, cuts: tuple[int, ...] = ()) -> Outcome:
        """Run a form on every problem of the batch.

        - `cuts`: those that the loop is to know.
        """
        at, parts = np.isin(np.arange(TIME), cuts), form.slices()
        functions = [function for function, _ in form.parts]
        carries = [self.carry if form.cuts else (self.carry[0], ())]
        zeros = jax.tree.map(np.zeros_like, _floats(carries[0])) if len(parts) > 1 else None
        outs, pulled = [], []

        def run(i, later):
            part, on_state = parts[i], np.asarray(self.on_state if i + 1 == len(parts) else 0.0)
            given = (self.xs[:, part], self.begin[:, part], self.weights[:, part], at[part])
            return _part(functions[i], self.memory, carries[i], *given, on_state, later)

        for i in range(len(parts)):
            (end, ys), gradient = run(i, zeros)
            carries.append(end)
            outs.append(ys)
            pulled.append(gradient)
        # The chain rule over the parts. Where nothing comes back from the next, as with RTRL, what
        # the part's own loss gives is all.
        for i in reversed(range(len(parts) - 1)):
            later = pulled[i + 1][1]
            if any(np.asarray(g).any() for g in jax.tree.leaves(later)):
                pulled[i] = run(i, later)[1]
        memory, carry, xs = zip(*pulled, strict=True)
        memory = jax.tree.map(lambda *g: sum(map(np.asarray, g[1:]), np.asarray(g[0])), *memory)
        ys, xs = np.concatenate(outs, 1), np.concatenate(xs, 1)
        end, sensitivity = carries[-1]
        return Outcome(end, sensitivity, ys, memory, carry[0][0], xs)


def _floats(tree):
    return eqx.filter(tree, eqx.is_inexact_array)


def known_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the compiler's options that this XLA has: their names come and go."""

    def is_known(name: str) -> bool:
        try:
            jax.jit(lambda: 0, compiler_options={name: options[name]}).lower().compile()
        except jax.errors.JaxRuntimeError:
            return False
        return True

    return {name: value for name, value in options.items() if is_known(name)}


_options = functools.cache(lambda: known_options(_OPTIONS))


def _platform() -> str:
    """That of where JAX puts what has no device: the backend's, or of one or a mesh a user sets."""
    return next(iter(jnp.zeros(()).devices())).platform


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """`eqx.filter_jit` that traces and compiles fast what runs for a moment.

    Of a choice between platforms only the side of the one it runs on is traced.
    """

    @functools.cache  # not while modules are imported: it asks the compiler
    def jitted() -> Callable[..., Any]:
        return eqx.filter_jit(function, compiler_options=_options())  # pyright: ignore[reportCallIssue]

    @functools.wraps(function)
    def call(*args, **kwargs):
        with scan.traced_for(_platform()):
            return jitted()(*args, **kwargs)

    return call


@jit
def _part(function, memory, carry, xs, begin, weights, cuts, on_state, later):
    """Run a part of every sequence, and pull its loss back.

    - `later`: the cotangent of the carry that comes out; `None` where no part follows.

    **Returns:**

    `((carry, ys), gradient)`, the gradient in `(memory, carry, xs)`.
    """

    def loss(differentiated):
        memory, carry, xs = differentiated
        run = lambda carry, xs, begin: function(memory, carry, xs, begin, cuts)  # noqa: E731
        end, ys = jax.vmap(run)(carry, xs, begin)
        loss = total(ys, weights) + on_state * of_state(end[0])
        return loss + (0.0 if later is None else along(later, _floats(end))), (end, ys)

    (_, out), gradient = eqx.filter_value_and_grad(loss, has_aux=True)((memory, carry, xs))
    return out, gradient


@jit
def _start(memory):
    return memory.init_state(), memory.rtrl_init()


def problem(memory: AbstractMemory, seed: int = 0) -> Problem:
    """Draw random inputs, resets and losses for a memory, and states that it can be in.

    Episodes begin nowhere, here and there, rarely, and everywhere.
    """
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.normal(size=(BATCH, TIME, *shape))  # noqa: E731

    def repeat(tree):
        def one(h):
            return (jnp if is_key(h) else np).broadcast_to(h, (BATCH, *np.shape(h)))

        return jax.tree.map(one, tree)

    begin = np.stack(
        [
            np.zeros(TIME, bool),
            rng.random(TIME) < 0.5,
            rng.random(TIME) < 0.2,
            np.ones(TIME, bool),
        ]
    )
    start = repeat(_start(memory))
    never = np.zeros((BATCH, TIME), bool)
    before = Problem(memory, start, normal(memory.inputs), never, normal(memory.outputs))
    reached = before.outcome(LOOP).end
    return Problem(
        memory, (reached, start[1]), normal(memory.inputs), begin, normal(memory.outputs)
    )


def perturbed(memory: Any, seed: int = 0, scale: float = 0.3) -> Any:
    """Move every parameter at random: at its initial value one may be zero, or all the same."""
    rng = np.random.default_rng(seed)

    def moved(p):
        noise = rng.normal(size=p.shape)
        if jnp.iscomplexobj(p):
            noise = noise + 1j * rng.normal(size=p.shape)
        # Put, not `jnp.asarray`, which is a program for each shape.
        return jax.device_put(np.asarray(p) + (scale * noise).astype(p.dtype))

    arrays, rest = eqx.partition(memory, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(moved, arrays), rest)
