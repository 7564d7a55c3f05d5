"""Cells by name: `get`, `names`, and the serializable recipe `spec`."""

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
from jaxtyping import Array

from rtrl import AbstractSensitivity, Exact
from zoo.cells.block_diagonal import BlockDiagonal
from zoo.cells.deltanet import DeltaNet
from zoo.cells.dnc import DNC
from zoo.cells.elman import Elman
from zoo.cells.elstm import ELSTM
from zoo.cells.felstm import FeLSTM
from zoo.cells.ffm import FFM
from zoo.cells.fwp import FWP
from zoo.cells.gru import GRU
from zoo.cells.indrnn import IndRNN
from zoo.cells.linear_attention import LinearAttention
from zoo.cells.linear_rnn import LinearRNN
from zoo.cells.linoss import LinOSS
from zoo.cells.lmu import LMU
from zoo.cells.lru import LRU
from zoo.cells.lstm import LSTM
from zoo.cells.mgu import MGU
from zoo.cells.mingru import MinGRU
from zoo.cells.minlstm import MinLSTM
from zoo.cells.mlp import MLP
from zoo.cells.mlstm import MLSTM
from zoo.cells.positional_mlp import PositionalMLP
from zoo.cells.qrnn import QRNN
from zoo.cells.retnet import RetNet
from zoo.cells.rotrnn import RotRNN
from zoo.cells.rtu import RTU, NonlinearRTU
from zoo.cells.rwkv import RWKV
from zoo.cells.s4d import S4D
from zoo.cells.s5 import S5
from zoo.cells.s6 import S6
from zoo.cells.shm import SHM
from zoo.cells.sru import SRU
from zoo.cells.tcn import TCN
from zoo.cells.transformer import Transformer
from zoo.kinds.choices import name_of, sensitivity_of
from zoo.memory import AbstractMemory
from zoo.parts import check_sizes
from zoo.stack import Block, Stack, check_credit
from zoo.windowed import Windowed


def _rtu(
    inputs: int,
    hidden: int,
    *,
    nonlinear: bool = False,
    activation: str | None = None,
    r_min: float = 0.0,
    r_max: float = 1.0,
    max_phase: float = 6.283185307179586,
    modulus: str = "exp_exp",
    phase: str = "exp",
    key: Array,
) -> AbstractMemory:
    """A linear or nonlinear RTU; see `zoo.RTU` and `zoo.NonlinearRTU`."""
    chosen = {} if activation is None else {"activation": activation}
    kind = NonlinearRTU if nonlinear else RTU
    return kind(
        inputs,
        hidden,
        r_min=r_min,
        r_max=r_max,
        max_phase=max_phase,
        modulus=modulus,
        phase=phase,
        key=key,
        **chosen,
    )


def _qrnn(inputs: int, hidden: int, *, window: int = 2, key: Array) -> AbstractMemory:
    """A QRNN with filters as wide as the window; see `zoo.QRNN`."""
    check_sizes(inputs=inputs, hidden=hidden, window=window)
    return Windowed(QRNN(window * inputs, hidden, key=key), window)


def _rwkv(inputs: int, hidden: int, *, key: Array) -> AbstractMemory:
    """RWKV-4's mixing over time; see `zoo.RWKV`."""
    check_sizes(inputs=inputs, hidden=hidden)
    return Windowed(RWKV(2 * inputs, hidden, key=key), 2)


def _frame_stack(
    inputs: int, hidden: int, *, window: int = 4, activation: str = "relu", key: Array
) -> AbstractMemory:
    """A memoryless network that sees the last inputs side by side; see `zoo.MLP`."""
    check_sizes(inputs=inputs, hidden=hidden, window=window)
    return Windowed(MLP(window * inputs, hidden, activation=activation, key=key), window)


def _gated_deltanet(
    inputs: int,
    hidden: int,
    *,
    keys: int | None = None,
    sensitivity: AbstractSensitivity = Exact(),
    key: Array,
) -> AbstractMemory:
    """A delta rule network whose memory decays; see `zoo.DeltaNet`."""
    return DeltaNet(inputs, hidden, keys=keys, gated=True, sensitivity=sensitivity, key=key)


def _deltanet(
    inputs: int,
    hidden: int,
    *,
    keys: int | None = None,
    sensitivity: AbstractSensitivity = Exact(),
    key: Array,
) -> AbstractMemory:
    """A delta rule network; see `zoo.DeltaNet`."""
    return DeltaNet(inputs, hidden, keys=keys, sensitivity=sensitivity, key=key)


_CELLS: dict[str, Callable[..., AbstractMemory]] = {
    "block_diagonal": BlockDiagonal,
    "deltanet": _deltanet,
    "dnc": DNC,
    "elman": Elman,
    "elstm": ELSTM,
    "felstm": FeLSTM,
    "ffm": FFM,
    "frame_stack": _frame_stack,
    "fwp": FWP,
    "gated_deltanet": _gated_deltanet,
    "gru": GRU,
    "indrnn": IndRNN,
    "linear_attention": LinearAttention,
    "linear_rnn": LinearRNN,
    "linoss": LinOSS,
    "lmu": LMU,
    "lru": LRU,
    "lstm": LSTM,
    "mgu": MGU,
    "mingru": MinGRU,
    "minlstm": MinLSTM,
    "mlp": MLP,
    "mlstm": MLSTM,
    "positional_mlp": PositionalMLP,
    "qrnn": _qrnn,
    "retnet": RetNet,
    "rotrnn": RotRNN,
    "rtu": _rtu,
    "rwkv": _rwkv,
    "s4d": S4D,
    "s5": S5,
    "s6": S6,
    "shm": SHM,
    "sru": SRU,
    "tcn": TCN,
    "transformer": Transformer,
}


def names() -> tuple[str, ...]:
    """The names that `zoo.get` and `zoo.spec` know, sorted.

    **Returns:**

    A tuple of strings.
    """
    return tuple(sorted(_CELLS))


def options(name: str) -> dict[str, Any]:
    """The options of a cell and their default values.

    **Arguments:**

    - `name`: one of `zoo.names()`.

    **Returns:**

    A dictionary from option to default.

    **Raises:**

    `ValueError` for an unknown name, with the nearest known ones.
    """
    signature = inspect.signature(_lookup(name))
    keyword_only = [p for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    defaults = {p.name: p.default for p in keyword_only if p.name != "key"}
    return {name: _plain(default) for name, default in defaults.items()}


def _plain(value: Any) -> Any:
    """An option's value as a recipe holds it: choices by name."""
    return name_of(value) if isinstance(value, AbstractSensitivity) else value


def _lookup(name: str) -> Callable[..., AbstractMemory]:
    if name not in _CELLS:
        near = difflib.get_close_matches(name, _CELLS, n=3, cutoff=0.4)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"`name` (={name!r}) must be one of {', '.join(names())}.{hint}")
    return _CELLS[name]


@dataclass(frozen=True)
class Spec:
    """The recipe of a memory: a name and numbers, no arrays. Made by `zoo.spec`."""

    name: str
    hidden: int
    layers: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    credit: str = "layerwise"

    def __post_init__(self):
        known = options(self.name)
        check_sizes(hidden=self.hidden, layers=self.layers)
        sensitivity = sensitivity_of(self.options.get("sensitivity", "exact"))
        check_credit(self.credit, sensitivity)
        for option in self.options:
            if option not in known:
                listed = ", ".join(f"{k}={v!r}" for k, v in known.items()) or "none"
                raise ValueError(
                    f"`{option}` (={self.options[option]!r}) is not an option of {self.name!r}, "
                    f"which has: {listed}."
                )

    def __hash__(self):
        listed = tuple(sorted(self.options.items()))
        return hash((self.name, self.hidden, self.layers, listed, self.credit))

    def build(self, inputs: int, key: Array) -> AbstractMemory:
        """Make the memory.

        **Arguments:**

        - `inputs`: width of `x`.
        - `key`: PRNG key.

        **Returns:**

        The cell, or for more than one layer a `zoo.Stack` of gated residual blocks.

        **Raises:**

        `ValueError` for an option's value that the cell does not take.
        """
        make, options = _lookup(self.name), dict(self.options)
        if "sensitivity" in options:
            options["sensitivity"] = sensitivity_of(options["sensitivity"])
        if self.layers == 1:
            return make(inputs, self.hidden, key=key, **options)
        blocks = []
        for layer_key in jax.random.split(key, self.layers):
            cell_key, block_key = jax.random.split(layer_key)
            cell = make(inputs, self.hidden, key=cell_key, **options)
            blocks.append(Block(cell, key=block_key))
        return Stack(blocks, credit=self.credit)

    def to_dict(self) -> dict[str, Any]:
        """The recipe as a dictionary of plain values, for JSON.

        **Returns:**

        A dictionary that `Spec(**dictionary)` turns back into the recipe.
        """
        return {
            "name": self.name,
            "hidden": self.hidden,
            "layers": self.layers,
            "options": dict(self.options),
            "credit": self.credit,
        }


def spec(
    name: str, *, hidden: int, layers: int = 1, credit: str = "layerwise", **options: Any
) -> Spec:
    """The serializable recipe of a memory.

    **Arguments:**

    - `name`: one of `zoo.names()`.
    - `hidden`: number of recurrent units, as the cell's paper counts them.
    - `layers`: more than one makes a `zoo.Stack` of gated residual blocks.
    - `credit`: what RTRL follows through several layers, `"layerwise"` or `"exact"`; see
      `zoo.Stack`. The gradient of one layer is exact either way.
    - `options`: the cell's own; see `zoo.options(name)`.

    **Returns:**

    A `zoo.Spec`; `spec.build(inputs, key)` makes the memory.

    **Raises:**

    `ValueError` for an unknown name or option, or a size that is not a whole number above 0.
    """
    return Spec(name, hidden, layers, {k: _plain(v) for k, v in options.items()}, credit)


def get(
    name: str,
    *,
    hidden: int,
    inputs: int | None = None,
    layers: int = 1,
    credit: str = "layerwise",
    key: Array | None = None,
    **options: Any,
) -> AbstractMemory:
    """A memory by name: `zoo.get("rtu", hidden=256)`.

    **Arguments:**

    - `name`: one of `zoo.names()`.
    - `hidden`: number of recurrent units, as the cell's paper counts them.
    - `inputs`: width of `x`; `hidden` by default.
    - `layers`: more than one makes a `zoo.Stack` of gated residual blocks.
    - `credit`: what RTRL follows through several layers, `"layerwise"` or `"exact"`; see
      `zoo.Stack`. The gradient of one layer is exact either way.
    - `key`: PRNG key; `jax.random.key(0)` by default.
    - `options`: the cell's own; see `zoo.options(name)`.

    **Returns:**

    A `zoo.AbstractMemory`.

    **Raises:**

    `ValueError` for an unknown name or option, or a value that the cell does not take.
    """
    recipe = spec(name, hidden=hidden, layers=layers, credit=credit, **options)
    return recipe.build(
        hidden if inputs is None else inputs, jax.random.key(0) if key is None else key
    )
