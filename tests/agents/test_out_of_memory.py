"""Too little memory: what was asked for, and which settings to lower."""

import jax
import jax.numpy as jnp
import pytest

import agents
import zoo
from agents.running.memory import check_size, telling_what_to_lower

PPO = agents.PPO(env="RepeatFirst", memory=zoo.spec("rtu", hidden=96), num_envs=4096)
LOWER = (
    "`num_envs` (=4096), `rollout_length` (=128), `hidden` (=96), `seeds` (=3) or "
    "`evaluation_episodes` (=64)."
)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 137438953472 bytes.",
            "128.0 GiB were",
        ),
        (
            "INTERNAL: Error dispatching computation: Out of memory allocating 34359738368 bytes.",
            "32.0 GiB were",
        ),
        (
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.50TiB.\n  of 139.8GiB",
            "1.5 TiB were",
        ),
        ("RESOURCE_EXHAUSTED: Failed to allocate request for 512.0KiB (524288B)", "512.0 KiB were"),
        ("RESOURCE_EXHAUSTED: no stream", "there was less than the program needs"),
    ],
)
def test_what_was_asked_for_is_told_with_what_to_lower(text, asked):
    with (
        pytest.raises(MemoryError) as told,
        telling_what_to_lower(PPO, seeds=3, evaluation_episodes=64),
    ):
        raise jax.errors.JaxRuntimeError(text)
    message = str(told.value)
    assert message.startswith(f"out of memory: {asked}") and message.endswith(f" Lower {LOWER}")
    assert "\n" not in message


def test_other_errors_stay_what_they_are():
    with (
        pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT"),
        telling_what_to_lower(PPO),
    ):
        raise jax.errors.JaxRuntimeError("INVALID_ARGUMENT: shapes")


def test_a_state_that_no_machine_holds_is_refused_before_it_is_compiled():
    check_size({"a": jax.ShapeDtypeStruct((2**46,), jnp.float32)})
    too_large = {"a": jax.ShapeDtypeStruct((2**31 - 1, 2**31 - 1), jnp.float32)}
    with pytest.raises(MemoryError, match=r" 16384\.0 PiB"), telling_what_to_lower(PPO):
        check_size(too_large)
