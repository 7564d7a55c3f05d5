"""Memory cells: each defined once, each with a step, a parallel scan and two forms of RTRL."""

from zoo.base import AbstractCell as AbstractCell
from zoo.base import AbstractMemory as AbstractMemory
from zoo.block_diagonal import BlockDiagonal as BlockDiagonal
from zoo.deltanet import DeltaNet as DeltaNet
from zoo.dnc import DNC as DNC
from zoo.elman import Elman as Elman
from zoo.elstm import ELSTM as ELSTM
from zoo.felstm import FeLSTM as FeLSTM
from zoo.ffm import FFM as FFM
from zoo.finite import AbstractFiniteMemory as AbstractFiniteMemory
from zoo.fwp import FWP as FWP
from zoo.gru import GRU as GRU
from zoo.indrnn import IndRNN as IndRNN
from zoo.kinds import AbstractDenseCell as AbstractDenseCell
from zoo.kinds import AbstractDiagonalCell as AbstractDiagonalCell
from zoo.kinds import AbstractLinearCell as AbstractLinearCell
from zoo.kinds import AbstractNonlinearCell as AbstractNonlinearCell
from zoo.kinds import AbstractTimeInvariantCell as AbstractTimeInvariantCell
from zoo.kinds import AbstractTwoAxisCell as AbstractTwoAxisCell
from zoo.kinds import AbstractUnstructuredCell as AbstractUnstructuredCell
from zoo.linear_attention import LinearAttention as LinearAttention
from zoo.linear_rnn import LinearRNN as LinearRNN
from zoo.linoss import LinOSS as LinOSS
from zoo.lmu import LMU as LMU
from zoo.lru import LRU as LRU
from zoo.lstm import LSTM as LSTM
from zoo.mgu import MGU as MGU
from zoo.mingru import MinGRU as MinGRU
from zoo.minlstm import MinLSTM as MinLSTM
from zoo.mlp import MLP as MLP
from zoo.mlstm import MLSTM as MLSTM
from zoo.monoid import AbstractMonoidCell as AbstractMonoidCell
from zoo.positional_mlp import PositionalMLP as PositionalMLP
from zoo.qrnn import QRNN as QRNN
from zoo.registry import Spec as Spec
from zoo.registry import get as get
from zoo.registry import names as names
from zoo.registry import options as options
from zoo.registry import spec as spec
from zoo.retnet import RetNet as RetNet
from zoo.rotrnn import RotRNN as RotRNN
from zoo.rtu import RTU as RTU
from zoo.rtu import NonlinearRTU as NonlinearRTU
from zoo.rwkv import RWKV as RWKV
from zoo.s4d import S4D as S4D
from zoo.s5 import S5 as S5
from zoo.s6 import S6 as S6
from zoo.shm import SHM as SHM
from zoo.sru import SRU as SRU
from zoo.stack import Block as Block
from zoo.stack import Stack as Stack
from zoo.tcn import TCN as TCN
from zoo.transformer import Transformer as Transformer
from zoo.windowed import Windowed as Windowed

__all__ = [
    "DNC",
    "ELSTM",
    "FFM",
    "FWP",
    "GRU",
    "LMU",
    "LRU",
    "LSTM",
    "MGU",
    "MLP",
    "MLSTM",
    "QRNN",
    "RTU",
    "RWKV",
    "S4D",
    "S5",
    "S6",
    "SHM",
    "SRU",
    "TCN",
    "AbstractCell",
    "AbstractDenseCell",
    "AbstractDiagonalCell",
    "AbstractFiniteMemory",
    "AbstractLinearCell",
    "AbstractMemory",
    "AbstractMonoidCell",
    "AbstractNonlinearCell",
    "AbstractTimeInvariantCell",
    "AbstractTwoAxisCell",
    "AbstractUnstructuredCell",
    "Block",
    "BlockDiagonal",
    "DeltaNet",
    "Elman",
    "FeLSTM",
    "IndRNN",
    "LinOSS",
    "LinearAttention",
    "LinearRNN",
    "MinGRU",
    "MinLSTM",
    "NonlinearRTU",
    "PositionalMLP",
    "RetNet",
    "RotRNN",
    "Spec",
    "Stack",
    "Transformer",
    "Windowed",
    "get",
    "names",
    "options",
    "spec",
]
