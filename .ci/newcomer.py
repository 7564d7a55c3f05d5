"""A newcomer's path with the wheel alone: an environment of one's own, trained in, exported.

Usage: `python newcomer.py docs/how-to/own-environment.md`, in a folder that does not hold the
packages. What is run is that page's own code; the exported policy acts in a process that cannot
import any of them, and has to do what the loaded one does.
"""

import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import export

page = Path(sys.argv[1]).read_text()
blocks = re.findall(r'^```python exec="1"[^\n]*session="corridor"\n(.*?)^```', page, re.M | re.S)
space: dict = {"__name__": "newcomer"}
for block in blocks:
    exec(compile(block, sys.argv[1], "exec"), space)
policy = space["policy"]
leaves, structure = jax.tree.flatten(policy.init_state())


@jax.jit
def act(leaves, observation, begin):
    state, action = policy.act(jax.tree.unflatten(structure, leaves), observation, begin)
    return jax.tree.leaves(state), action


SEEN = [1, 2, 2, 2, 0, 2, 2, 2]
exported = export.export(act)(leaves, jnp.int32(0), jnp.bool_(False))
Path("policy.jax").write_bytes(exported.serialize())
actions = []
for step, seen in enumerate(SEEN):
    leaves, action = act(leaves, jnp.int32(seen), jnp.bool_(step % 4 == 0))
    actions.append(int(action))

ELSEWHERE = f"""
import sys
sys.modules.update(dict.fromkeys(["scan", "rtrl", "zoo", "agents", "equinox"]))  # barred
from pathlib import Path

import numpy as np
from jax import export

act = export.deserialize(Path("policy.jax").read_bytes())
state = [np.zeros(x.shape, x.dtype) for x in act.in_avals[:-2]]
for step, seen in enumerate({SEEN}):
    state, action = act.call(state, np.int32(seen), np.bool_(step % 4 == 0))
    print(int(action), end=" ")
"""
there = subprocess.run(
    [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, check=True
)
assert [int(word) for word in there.stdout.split()] == actions, (there.stdout, actions)
assert actions[3] == 1 and actions[7] == 0, f"the cues were 1 and 0: {actions}"
print(f"{len(blocks)} blocks of {sys.argv[1]} ran; the exported policy acts as the loaded one")
