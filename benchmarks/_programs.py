"""What `benchmarks.against` times in a process of its own, by names that every commit has.

Reads lines, `compile` or `run` and a program's name, and answers each with the seconds that this
took. It is run as a text, in whichever tree is to be timed, and so takes nothing from `benchmarks`,
which another commit may not have like this.
"""

import json
import os
import sys
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

import agents
import zoo

_GRADIENTS = {
    "BPTT": lambda: agents.BPTT(),
    "TBPTT(8)": lambda: agents.TBPTT(8),
    "RTRL(8)": lambda: agents.RTRL(8),
}
_SECONDS = 0.15  # of one measurement


def ppo(gradient: str, encoder: str, quick: bool) -> tuple:
    """An iteration of PPO, and its state."""
    # Written out, because a default may be another one in another commit.
    sizes: dict[str, Any] = {"num_envs": 64, "rollout_length": 128, "epochs": 4, "minibatches": 4}
    if quick:
        sizes = {"num_envs": 4, "rollout_length": 16, "epochs": 1, "minibatches": 2}
    agent = agents.PPO(
        env="RepeatPreviousEasy",
        memory=zoo.spec("rtu", hidden=4 if quick else 96),
        encoder_size=int(encoder),
        gradient=_GRADIENTS[gradient](),
        **sizes,
    )
    state = jax.jit(lambda key: agent.init(key=key))(jax.random.key(0))
    return agent.iterate, (state,)


def cell(name: str, form: str, quick: bool) -> tuple:
    """A cell's outputs over sequences, or their gradient; and its parameters and inputs."""
    times, batch, width = (8, 2, 4) if quick else (256, 16, 64)
    memory = zoo.get(name, hidden=width, inputs=width, key=jax.random.key(0))
    parameters, rest = eqx.partition(memory, eqx.is_inexact_array)
    xs = jax.random.normal(jax.random.key(1), (times, batch, width))
    begin = jnp.zeros((times, batch), bool).at[::50].set(True)

    def loss(parameters, xs, begin):
        memory = eqx.combine(parameters, rest)
        run = lambda xs, begin: memory.scan(memory.init_state(), xs, begin)[1]  # noqa: E731
        return jnp.mean(jax.vmap(run, in_axes=1)(xs, begin) ** 2)

    return (loss if form == "scan" else jax.grad(loss)), (parameters, xs, begin)


def main(quick: bool) -> None:
    # Whatever else prints does so beside the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    made, compiled = {}, {}
    for line in sys.stdin:
        order, kind, *words = line.split()
        name = " ".join((kind, *words))
        if name not in made:
            made[name] = {"ppo": ppo, "cell": cell}[kind](*words, quick)
        function, arguments = made[name]
        start, runs = time.perf_counter(), 1
        if order == "compile":
            fresh = lambda *arguments, function=function: function(*arguments)  # noqa: E731
            compiled[name] = jax.jit(fresh).lower(*arguments).compile()
            seconds = time.perf_counter() - start
            jax.block_until_ready(compiled[name](*arguments))
        else:
            jax.block_until_ready(compiled[name](*arguments))
            while (seconds := time.perf_counter() - start) < _SECONDS and not quick:
                jax.block_until_ready(compiled[name](*arguments))
                runs += 1
        print(json.dumps(seconds / runs), file=answers)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
