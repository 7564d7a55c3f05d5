"""Memory cells: each defined once, each with a step, a parallel scan and two forms of RTRL."""

from zoo.cell import AbstractCell as AbstractCell
from zoo.cells.block_diagonal import BlockDiagonal as BlockDiagonal
from zoo.cells.ctrnn import CTRNN as CTRNN
from zoo.cells.delta_product import DeltaProduct as DeltaProduct
from zoo.cells.deltanet import DeltaNet as DeltaNet
from zoo.cells.dnc import DNC as DNC
from zoo.cells.elman import Elman as Elman
from zoo.cells.elstm import ELSTM as ELSTM
from zoo.cells.felstm import FeLSTM as FeLSTM
from zoo.cells.ffm import FFM as FFM
from zoo.cells.fwp import FWP as FWP
from zoo.cells.gated_linear_attention import GatedLinearAttention as GatedLinearAttention
from zoo.cells.gru import GRU as GRU
from zoo.cells.gtrxl import GTrXL as GTrXL
from zoo.cells.indrnn import IndRNN as IndRNN
from zoo.cells.linear_attention import LinearAttention as LinearAttention
from zoo.cells.linear_rnn import LinearRNN as LinearRNN
from zoo.cells.linoss import LinOSS as LinOSS
from zoo.cells.lmu import LMU as LMU
from zoo.cells.lru import LRU as LRU
from zoo.cells.lstm import LSTM as LSTM
from zoo.cells.ltc import LTC as LTC
from zoo.cells.mamba2 import Mamba2 as Mamba2
from zoo.cells.mgu import MGU as MGU
from zoo.cells.mingru import MinGRU as MinGRU
from zoo.cells.minlstm import MinLSTM as MinLSTM
from zoo.cells.mlp import MLP as MLP
from zoo.cells.mlstm import MLSTM as MLSTM
from zoo.cells.positional_mlp import PositionalMLP as PositionalMLP
from zoo.cells.qrnn import QRNN as QRNN
from zoo.cells.retnet import RetNet as RetNet
from zoo.cells.rotrnn import RotRNN as RotRNN
from zoo.cells.rtu import RTU as RTU
from zoo.cells.rtu import NonlinearRTU as NonlinearRTU
from zoo.cells.rwkv import RWKV as RWKV
from zoo.cells.s4d import S4D as S4D
from zoo.cells.s5 import S5 as S5
from zoo.cells.s6 import S6 as S6
from zoo.cells.shm import SHM as SHM
from zoo.cells.sru import SRU as SRU
from zoo.cells.tcn import TCN as TCN
from zoo.cells.transformer import Transformer as Transformer
from zoo.cells.ttt import TTT as TTT
from zoo.fronted import Fronted as Fronted
from zoo.kinds import AbstractAttentiveLayer as AbstractAttentiveLayer
from zoo.kinds import AbstractAttentiveMemory as AbstractAttentiveMemory
from zoo.kinds import AbstractDenseCell as AbstractDenseCell
from zoo.kinds import AbstractDiagonalCell as AbstractDiagonalCell
from zoo.kinds import AbstractFiniteMemory as AbstractFiniteMemory
from zoo.kinds import AbstractLinearCell as AbstractLinearCell
from zoo.kinds import AbstractMonoidCell as AbstractMonoidCell
from zoo.kinds import AbstractNonlinearCell as AbstractNonlinearCell
from zoo.kinds import AbstractOuterProductCell as AbstractOuterProductCell
from zoo.kinds import AbstractTimeInvariantCell as AbstractTimeInvariantCell
from zoo.kinds import AbstractTwoAxisCell as AbstractTwoAxisCell
from zoo.kinds import AbstractUnstructuredCell as AbstractUnstructuredCell
from zoo.memory import AbstractMemory as AbstractMemory
from zoo.memory import AbstractStepper as AbstractStepper
from zoo.memory import PlainStepper as PlainStepper
from zoo.proofs.report import ProofError as ProofError
from zoo.proofs.report import Report as Report
from zoo.prove import prove as prove
from zoo.registry import Spec as Spec
from zoo.registry import get as get
from zoo.registry import names as names
from zoo.registry import options as options
from zoo.registry import register as register
from zoo.registry import spec as spec
from zoo.stack import Block as Block
from zoo.stack import Stack as Stack
from zoo.windowed import Windowed as Windowed

__all__ = [
    "CTRNN",
    "DNC",
    "ELSTM",
    "FFM",
    "FWP",
    "GRU",
    "LMU",
    "LRU",
    "LSTM",
    "LTC",
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
    "TTT",
    "AbstractAttentiveLayer",
    "AbstractAttentiveMemory",
    "AbstractCell",
    "AbstractDenseCell",
    "AbstractDiagonalCell",
    "AbstractFiniteMemory",
    "AbstractLinearCell",
    "AbstractMemory",
    "AbstractMonoidCell",
    "AbstractNonlinearCell",
    "AbstractOuterProductCell",
    "AbstractStepper",
    "AbstractTimeInvariantCell",
    "AbstractTwoAxisCell",
    "AbstractUnstructuredCell",
    "Block",
    "BlockDiagonal",
    "DeltaNet",
    "DeltaProduct",
    "Elman",
    "FeLSTM",
    "Fronted",
    "GTrXL",
    "GatedLinearAttention",
    "IndRNN",
    "LinOSS",
    "LinearAttention",
    "LinearRNN",
    "Mamba2",
    "MinGRU",
    "MinLSTM",
    "NonlinearRTU",
    "PlainStepper",
    "PositionalMLP",
    "ProofError",
    "Report",
    "RetNet",
    "RotRNN",
    "Spec",
    "Stack",
    "Transformer",
    "Windowed",
    "get",
    "names",
    "options",
    "prove",
    "register",
    "spec",
]
