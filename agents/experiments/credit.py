"""What the experiments on rules of credit share: one dense cell under each of them."""

from typing import Any

import rtrl
import zoo

RULES: dict[str, rtrl.AbstractSensitivity] = {
    "exact": rtrl.Exact(),
    "SnAp-1": rtrl.SnAp1(),
    "e-prop": rtrl.EProp(),
    "immediate": rtrl.SnAp0(),
    "UORO": rtrl.UORO(),
}
"""Approximations of RTRL, and RTRL, by label."""


def gru(gradient: Any, rule: str | None = None) -> dict[str, Any]:
    """Set a GRU of 16 units and its gradient.

    **Arguments:**

    - `gradient`: of `agents.learning`.
    - `rule`: one of `RULES`, where the gradient is RTRL's.
    """
    options: dict[str, Any] = {} if rule is None else {"sensitivity": RULES[rule]}
    return {"memory": zoo.spec("gru", hidden=16, **options), "gradient": gradient}
