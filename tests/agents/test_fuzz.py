"""Random wrong values for random settings: every error is ours and names the setting.

`HYPOTHESIS_PROFILE=thorough pytest tests/agents/test_fuzz.py` draws ten times as many.
"""

import dataclasses
import inspect
import re
import traceback
from pathlib import Path
from typing import Any

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

import agents
import zoo
from agents import envs
from agents.algorithms import agent_class, names
from agents.envs.registry import OWN

OURS = tuple(str(Path(inspect.getfile(package)).parent) for package in (agents, zoo))
MEMORY = zoo.spec("rtu", hidden=4)
HOMES = {
    "sac": "Pendulum-v1",
    "td3": "Pendulum-v1",
    "streaming_td": "trace_conditioning",
    "ideal_policy_iteration": "recall",
}
ENVIRONMENTS = [name for name in OWN if "/" not in name]  # not of other packages

WRONG = st.one_of(
    st.sampled_from(
        [None, True, "", "no", "nan", b"1", (), [], {}, {"a": 1}, object(), print, int, 1j, ...]
    ),
    st.sampled_from([np.nan, np.inf, -np.inf, 1e39, -1e99, 2**31, 2**63, 10**99, -1, -0.5]),
    st.sampled_from([np.float64("nan"), np.int64(-3), np.zeros(2), np.zeros((2, 2), object)]),
    st.sampled_from([jnp.zeros(3), MEMORY, agents.RTRL, agents.BPTT(), Path("x"), range(3)]),
    st.integers(-9, 9),
    st.floats(),
    st.text(max_size=4),
    st.lists(st.one_of(st.integers(), st.text(max_size=2), st.floats()), max_size=3),
)


def shapes_of(name):
    """A function that makes a cell without drawing its parameters."""
    return lambda **options: jax.eval_shape(lambda: (zoo.get(name, **options), None)[1])


@st.composite
def constructions(draw):
    """What is made, the setting that is wrong, and a function that makes it."""
    what = draw(st.sampled_from(["agent", "cell", "gradient", "environment"]))
    if what == "agent":
        name = draw(st.sampled_from(names()))
        kind = agent_class(name)
        fields = [f.name for f in dataclasses.fields(kind) if f.name != "env"]
        given: dict[str, Any] = {"memory": MEMORY} if "memory" in fields else {}
        given["env"] = HOMES.get(name, "gravity")
        setting = draw(st.sampled_from(fields))
        return name, setting, kind, given, draw(WRONG)
    if what == "cell":
        name = draw(st.sampled_from(zoo.names()))
        setting = draw(
            st.sampled_from(["hidden", "inputs", "layers", "credit", *zoo.options(name)])
        )
        given = {"hidden": 4, "inputs": 3}
        return name, setting, shapes_of(name), given, draw(WRONG)
    if what == "gradient":
        kind, setting = draw(
            st.sampled_from(
                [(agents.RTRL, "segment"), (agents.RTRL, "refresh"), (agents.TBPTT, "length")]
            )
        )
        return kind.__name__, setting, kind, {}, draw(WRONG)
    name = draw(st.sampled_from(ENVIRONMENTS))
    factory, fixed = OWN[name]
    options = [option for option in inspect.signature(factory).parameters if option not in fixed]
    setting = draw(st.sampled_from([*options, "max_steps_in_episode", "external_memory"]))
    return name, setting, lambda **options: envs.make(name, **options), {}, draw(WRONG)


@pytest.mark.slow
@hypothesis.settings(max_examples=6 * hypothesis.settings.default.max_examples)
@hypothesis.given(constructions())
def test_every_error_is_ours_and_names_the_setting(unhooked, construction):
    name, setting, make, given, wrong = construction
    try:
        make(**(given | {setting: wrong}))
        hypothesis.event("taken")  # random values are not always wrong
    except (ValueError, TypeError) as error:
        hypothesis.event("refused")
        assert type(error) in (ValueError, TypeError), (name, setting, wrong)
        frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        assert frames[-1].startswith(OURS), (name, setting, wrong, error)
        message = str(error)
        # A size of an environment may be fine, and a place that is given by default not in it.
        named = setting in message or (name in ENVIRONMENTS or setting == "env_options")
        assert re.search(r"`\w+` ", message), (name, setting, wrong, message)
        assert named and message.isprintable(), (name, setting, wrong, message)
        assert len(message) < 500
