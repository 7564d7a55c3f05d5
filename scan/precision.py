"""The precision of products that stand for sums of elementwise products."""

import jax

# On a GPU the default product of float32 arrays has ten bits of mantissa.
EXACTLY = jax.lax.Precision.HIGHEST
