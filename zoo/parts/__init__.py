"""What cells are made of, for authors of cells."""

from zoo.parts.activations import activation_function as activation_function
from zoo.parts.attention import attention as attention
from zoo.parts.attention import attention_of_last as attention_of_last
from zoo.parts.checks import check_counts as check_counts
from zoo.parts.checks import check_heads as check_heads
from zoo.parts.checks import check_norm_width as check_norm_width
from zoo.parts.checks import check_sizes as check_sizes
from zoo.parts.checks import keys_of_a_head as keys_of_a_head
from zoo.parts.delta_rule import overwritten as overwritten
from zoo.parts.delta_rule import overwritten_reads as overwritten_reads
from zoo.parts.delta_rule import overwritten_states as overwritten_states
from zoo.parts.discretization import discretize as discretize
from zoo.parts.dtypes import real_dtype as real_dtype
from zoo.parts.dtypes import to_complex as to_complex
from zoo.parts.dtypes import widened as widened
from zoo.parts.initial_values import linear_weights as linear_weights
from zoo.parts.initial_values import ring as ring
from zoo.parts.join import join as join
from zoo.parts.linear import Linear as Linear
from zoo.parts.linear import arranged as arranged
from zoo.parts.norms import layer_norm as layer_norm
from zoo.parts.norms import rms_norm as rms_norm
from zoo.parts.norms import unit as unit
from zoo.parts.positions import positions as positions
from zoo.parts.positions import sinusoids as sinusoids
from zoo.parts.ring_buffer import RingBuffer as RingBuffer
from zoo.parts.stabilizers import NOTHING as NOTHING
from zoo.parts.stabilizers import decayed as decayed
from zoo.parts.stabilizers import decaying_maximum as decaying_maximum
from zoo.parts.times import signal_and_time as signal_and_time
from zoo.parts.times import signals as signals
from zoo.parts.times import step_biases as step_biases
from zoo.parts.times import time_constants as time_constants

__all__ = [
    "NOTHING",
    "Linear",
    "RingBuffer",
    "activation_function",
    "arranged",
    "attention",
    "attention_of_last",
    "check_counts",
    "check_heads",
    "check_norm_width",
    "check_sizes",
    "decayed",
    "decaying_maximum",
    "discretize",
    "join",
    "keys_of_a_head",
    "layer_norm",
    "linear_weights",
    "overwritten",
    "overwritten_reads",
    "overwritten_states",
    "positions",
    "real_dtype",
    "ring",
    "rms_norm",
    "signal_and_time",
    "signals",
    "sinusoids",
    "step_biases",
    "time_constants",
    "to_complex",
    "unit",
    "widened",
]
