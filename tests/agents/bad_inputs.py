"""What users get wrong: commands and calls, each with what its error has to say.

In commands, `{new}` is a path where nothing is, `{run}` a run of two seeds, `{csv}`, `{torn}`,
`{newer}` and `{foreign}` are that run with damage to its scalars or its checkpoint, `{file}` is a
file and `{full}` a folder with somebody's work.
"""

# pyright: reportArgumentType=false

from typing import Any

import jax
import numpy as np

import agents
import zoo
from agents import DQN, PPO, RTRL, TBPTT, envs
from rtrl import UORO

TRAIN = "train --env RepeatFirst --out {new}"
TABULAR = "train --algorithm tabular --env gravity --out {new}"
GIF = "play --env gravity --out {new}.gif"

# Words of tyro's own stand in its box of usage; all others are one line.
USAGE = [
    ("train --env RepeatFirst", "required"),
    (f"{TRAIN} --steps many", "'many' is not a whole number"),
    (f"{TRAIN} --steps inf", "'inf' is not a whole number"),
    (f"{TRAIN} --steps 1.5", "'1.5' is not a whole number"),
    (f"{TRAIN} --steps nan", "'nan' is not a whole number"),
    (f"{TRAIN} --learning-rate fast", "--learning-rate"),
    (f"{TRAIN} --activation gelu", "--activation"),
    (f"{TRAIN} --targets new", "--targets"),
    (f"{TRAIN} --gradient exact", "--gradient"),
    (f"{TRAIN} --refresh often", "--refresh"),
    (f"{TRAIN} --progress loud", "--progress"),
    (f"{TRAIN} --previous-action maybe", "--previous-action"),
    (f"{TRAIN} --no-such-option 3", "--no-such-option"),
    (f"{TRAIN} --learning-rat 3", "--learning-rate"),
    (f"{TRAIN} --learning-rat 3", "agents train --help"),
    (f"{TRAIN} --hidden", "--hidden"),
    ("evaluate {run} --episodes x", "'x' is not a whole number"),
    ("evaluate {run} {run}", "agents evaluate --help"),
    ("play {run}", "--out"),
    ("compare {run} --smoothing x", "'x' is not a whole number"),
    ("watch {run} --every x", "--every"),
    ("no-such-command", "no-such-command"),
]

COMMANDS = [
    # where a job's other processes are
    (f"{TRAIN} --processes 2", "--processes (=2) needs "),
    # settings of the agent
    (f"{TRAIN} --memory rtv", "--memory (='rtv') must be one of"),
    (f"{TRAIN} --memory-options x=1", "`x` (=1) is not an option of 'rtu'"),
    (
        f"{TRAIN} --memory-options nonlinear=no",
        "--memory-options nonlinear (='no') of 'rtu' must be True or",
    ),
    (
        f"{TRAIN} --memory-options nonlinear=1",
        "--memory-options nonlinear (=1) of 'rtu' must be True or False",
    ),
    (
        f"{TRAIN} --memory-options r_max=big",
        "--memory-options r_max (='big') of 'rtu' must be a number",
    ),
    (
        f"{TRAIN} --memory-options r_max=1e99",
        "--memory-options r_max (=1e+99) of 'rtu' must be a number, fin",
    ),
    (
        f"{TRAIN} --memory-options r_max=1e999",
        "--memory-options r_max (=inf) of 'rtu' must be a number, fin",
    ),
    (f"{TRAIN} --memory-options r_min=0.9 --memory-options r_max=0.5", "must obey 0 <= r_min"),
    (f"{TRAIN} --memory-options r_min=0.9 --memory-options r_min=0.5", "gives 'r_min' twice"),
    (f"{TRAIN} --memory-options activation=relo", "(='relo') must be one of identity, relu"),
    (f"{TRAIN} --memory-options r_max", "--memory-options (='r_max') must be written as key="),
    (
        f"{TRAIN} --memory lru --memory-options outputs=2.5",
        "--memory-options outputs (=2.5) of 'lru' must be",
    ),
    (
        f"{TRAIN} --memory lru --memory-options outputs=-1",
        "--memory-options outputs (=-1) must be a whole",
    ),
    (f"{TRAIN} --memory gru --memory-options sensitivity=snap2", "must be one of exact, snap1"),
    (f"{TRAIN} --memory ffm --memory-options durations=(1,2,3)", "must be a list of 2 (a number"),
    (f"{TRAIN} --memory retnet --memory-options heads=999", "(=999) must divide --hidden (=128)"),
    (f"{TRAIN} --hidden 0", "--hidden (=0) must be a whole number of at least 1"),
    (f"{TRAIN} --hidden -4", "--hidden (=-4) must be a whole number of at least 1"),
    (f"{TRAIN} --hidden 1e12", "--hidden (=1000000000000) must be at most 2147483647"),
    (f"{TRAIN} --layers 0", "--layers (=0) must be a whole number of at least 1"),
    (f"{TRAIN} --segment 48", "--rollout-length (=128) must be divisible by --segment (=48)"),
    (f"{TRAIN} --segment 0", "--segment (=0) must be a whole number of at least 1"),
    (f"{TRAIN} --gradient tbptt --segment 0", "--segment (=0) must be a whole number of at"),
    (f"{TRAIN} --gradient bptt --segment 8", "--segment has no meaning with --gradient bptt"),
    (f"{TRAIN} --gradient tbptt --refresh epoch", "--refresh has no meaning with --gradient tb"),
    (f"{TRAIN} --gradient bptt --credit exact", "--credit has no meaning with --gradient bptt"),
    (f"{TRAIN} --gradient tbptt --encoder-credit exact", "--encoder-credit (='exact') needs"),
    (f"{TRAIN} --learning-rate nan", "--learning-rate (=nan) must be a number, finite and of"),
    (f"{TRAIN} --learning-rate inf", "--learning-rate (=inf) must be a number, finite and of"),
    (f"{TRAIN} --learning-rate 1e99", "--learning-rate (=1e+99) must be a number, finite"),
    (f"{TRAIN} --learning-rate 0", "--learning-rate (=0.0) must be above 0"),
    (f"{TRAIN} --clip -0.2", "--clip (=-0.2) must be above 0"),
    (f"{TRAIN} --discount 1.1", "--discount (=1.1) must be in [0, 1]"),
    (f"{TRAIN} --gae-lambda -1", "--gae-lambda (=-1.0) must be in [0, 1]"),
    (f"{TRAIN} --value-clip nan", "--value-clip (=nan) must be a number or None, finite"),
    (f"{TRAIN} --entropy-coefficient -1", "--entropy-coefficient (=-1.0) must be at least 0"),
    (f"{TRAIN} --max-grad-norm 0", "--max-grad-norm (=0.0) must be above 0"),
    (f"{TRAIN} --final-clip 0.1", "--final-clip (=0.1) must be None without"),
    (f"{TRAIN} --num-envs 0", "--num-envs (=0) must be a whole number of at least 1"),
    (f"{TRAIN} --num-envs 1e99", "of at most 64 bits"),
    (f"{TRAIN} --num-envs 1e9", "`steps_per_iteration` (=128000000000) must be at most 214748"),
    (f"{TRAIN} --minibatches 7", "--minibatches (=7) must divide"),
    (f"{TRAIN} --epochs 0", "--epochs (=0) must be a whole number of at least 1"),
    (f"{TRAIN} --encoder-size -1", "--encoder-size (=-1) must be a whole number of at least 0"),
    (f"{TRAIN} --squash-actions", "--squash-actions (=True) needs actions in a bounded Box"),
    (f"{TRAIN} --normalize-observation", "--normalize-observation (=True) needs a Box"),
    (f"{TABULAR} --learning-rate 2", "--learning-rate (=2.0) must be above 0 and at most 1"),
    (f"{TABULAR} --epsilon nan", "--epsilon (=nan) must be a number, finite"),
    (f"{TABULAR} --initial-value inf", "--initial-value (=inf) must be a number, finite"),
    (f"{TABULAR} --rollout-length 0", "--rollout-length (=0) must be a whole number of at le"),
    (f"{TABULAR} --rule q_learning --traces true_online", "needs rule 'sarsa'"),
    ("train --algorithm tabular --env CartPole-v1 --out {new}", "must have Discrete or Multi"),
    ("train --algorithm dqn --env Pendulum-v1 --out {new}", "must have Discrete actions"),
    ("train --algorithm sac --env RepeatFirst --out {new}", "must have actions in a"),
    ("train --algorithm dqn --env RepeatFirst --out {new} --tapes 3", "--batch-steps (=1000) mu"),
    ("train --algorithm dqn --env RepeatFirst --out {new} --preset fast", "(='fast') is not one"),
    (f"{TRAIN} --algorithm pppo", "--algorithm (='pppo') must be"),
    (f"{TRAIN} --preset fast", "(='fast') is not one of PPO"),
    # the environment
    ("train --env RepeatFrist --out {new}", "--env (='RepeatFrist') must be"),
    ("train --env gymnasium/NoSuch-v0 --out {new}", "NoSuch"),
    ("train --env gymnasium/no_such_module:X-v0 --out {new}", "no_such_module"),
    ("train --env MNISTBandit-bsuite --out {new}", "is not available: it downloads"),
    (f"{TRAIN} --env-options decks=two", "--env-options decks (='two') must be a whole number"),
    (f"{TRAIN} --env-options decks=0", "--env-options decks (=0) must be a whole number from 1 to"),
    (f"{TRAIN} --env-options decks=True", "--env-options decks (=True) must be a whole number"),
    (f"{TRAIN} --env-options cards=2", "Unknown option `cards` (=2) of RepeatFirst; it must be"),
    (f"{TRAIN} --env-options decks", "--env-options (='decks') must be written as key=value"),
    (
        f"{TRAIN} --env-options max_steps_in_episode=0",
        "--env-options max_steps_in_episode (=0) must be at",
    ),
    (f"{TRAIN} --env-options external_memory=X9", "external_memory"),
    (
        "train --env CartPole-v1 --out {new} --env-options gravity=1e99",
        "--env-options gravity (=1e+99) mu",
    ),
    (
        "train --env CartPole-v1 --out {new} --env-options gravity=x",
        "--env-options gravity (='x') must be a",
    ),
    (
        "train --env Breakout-MinAtar --out {new} --env-options mask=up",
        "--env-options mask (='up') must be",
    ),
    ("train --env Breakout-MinAtar --out {new} --env-options flicker=2", "must be in [0, 1]"),
    # the run
    (f"{TRAIN} --steps 0", "--steps (=0) must be a whole number of at least 1"),
    (f"{TRAIN} --steps 1e99", "of at most 64 bits"),
    (f"{TRAIN} --steps 1e10", "--steps (=10000000000) must be at most 2147483647"),
    (f"{TRAIN} --seeds 0", "--seeds (=0) must be a whole number of at least 1"),
    (f"{TRAIN} --evaluate-every -1", "--evaluate-every (=-1) must be a whole number of at le"),
    (f"{TRAIN} --evaluation-episodes 0", "--evaluation-episodes (=0) must be a whole number"),
    (f"{TRAIN} --checkpoint-every 0", "--checkpoint-every (=0) must be a whole number of at"),
    (f"{TRAIN} --resume", "there is nothing to resume in"),
    ("experiment --scale quick", "--scale has no meaning without the name of an experiment"),
    ("experiment --out {new}", "--out has no meaning without the name of an experiment"),
    (f"{TRAIN} --drop-scalars", "--drop-scalars (=True) has no meaning without --resume"),
    ("train --env RepeatFirst --out {run}", "holds a run of another configuration"),
    ("train --env RepeatFirst --out {file}", "--out (="),
    ("train --env RepeatFirst --out {full}", "holds other files (thesis.tex)"),
    ("train --env RepeatFirst --out {full} --resume", "there is nothing to resume in"),
    # what reads runs
    ("evaluate {new}", "There is no checkpoint at"),
    ("evaluate {torn}", "is truncated"),
    ("evaluate {newer}", "`warp` (=9) is not a setting of PPO"),
    ("evaluate {foreign}", "which loading does not import"),
    ("evaluate {file}", "is a file, and the folder of a run is expected"),
    ("evaluate {run} --greedy --sample", "--greedy and --sample exclude each other"),
    ("evaluate {run} --episodes 0", "--episodes (=0) must be at least 1"),
    ("evaluate {run} --episodes 1e99", "--episodes (="),
    ("compare {new}", "holds no run: there is no scalars.csv"),
    ("compare {file}", "holds no run: there is no scalars.csv"),
    ("compare {csv}", "scalars.csv is damaged in line 3: 'loss' (='?') is no number"),
    ("compare {run} --metric reward --out {new}.png", "metric 'reward' is not logged"),
    ("compare {run} {run} --out {new}.png", "run is given twice"),
    ("compare {run} --out {new}/a/b.png", "must be in a folder that exists"),
    ("compare {run} --out {new}.xyz", "must end in .png, .pdf, .svg"),
    ("analyze {run} --out {new}.txt", "must end in .png, .pdf, .svg"),
    ("compare {run} --smoothing 0 --out {new}.png", "(=0) must be at least 1 point"),
    ("analyze {new}", "There is no checkpoint at"),
    ("analyze {torn}", "is truncated"),
    ("analyze {run} --episodes 0 --out {new}.png", "--episodes (=0) must be a"),
    ("analyze {new} --fraction 2 --out {new}.png", "--fraction (=2.0) must be"),
    ("analyze {run} --fraction nan --out {new}.png", "--fraction (=nan) must be"),
    ("analyze {run} --max-steps 0 --out {new}.png", "--max-steps (=0) must be"),
    ("play --out {new}.gif", "a RUN or --env must be given"),
    ("play --env RepeatFrist --out {new}.gif", "--env (='RepeatFrist') must be"),
    ("play --env gravity --out {new}.html", "must end in .gif for Gravity"),
    ("play --env gravity --out {new}/a.gif", "must be in a folder that exists"),
    (f"{GIF} --steps 0", "--steps (=0) must be at least 1"),
    (f"{GIF} --episodes 0", "--episodes (=0) must be at least 1"),
    (f"{GIF} --sample", "no meaning without a RUN"),
    (f"{GIF} --fps 99", "--fps (=99.0) must be from"),
    (f"{GIF} --fps nan", "--fps (=nan) must be from"),
    (f"{GIF} --env-options rows=x", "--env-options rows (='x') must be a whole number"),
    ("play {new} --out {new}.gif", "There is no checkpoint at"),
    ("play {torn} --out {new}.gif", "is truncated"),
    ("play {run} --out {new}.gif --agent 2", "--agent (=2) must be in 0 … 1: "),
    ("play {run} --env gravity --out {new}.gif", "another observation_space than"),
    ("watch {new} --once --every 0", "--every (=0.0) must be a number of seconds above 0"),
    ("watch --once", "a RUN must be given"),
    (
        "envs --import no_such_module",
        "--import (=no_such_module) cannot be imported: No module named 'no_such_module'",
    ),
    ("envs --import mine.py", "--import (=mine.py) must be the name of a module, not of its file"),
    (f"{TRAIN} --algorithm mine", "One of your own is known once its module is: --import MODULE."),
    (f"{TRAIN} --memory mine", "One of your own is known once its module is: --import MODULE."),
    ("envs --filter chess", "no environment's name contains 'chess'"),
]


def ppo(**settings: Any) -> PPO:
    return PPO(**({"env": "RepeatFirst", "memory": zoo.spec("rtu", hidden=8)} | settings))


def train(**settings: Any) -> None:
    agents.train(agents.Tabular(env="gravity"), **({"steps": 9, "out": "never"} | settings))


CALLS = {
    "num_envs=True": (lambda: ppo(num_envs=True), "`num_envs` (=True) must be a whole number."),
    "num_envs=4.0": (lambda: ppo(num_envs=4.0), "`num_envs` (=4.0) must be a whole number."),
    "num_envs='4'": (lambda: ppo(num_envs="4"), "`num_envs` (='4') must be a whole number."),
    "num_envs=None": (lambda: ppo(num_envs=None), "`num_envs` (=None) must be a whole number."),
    "learning_rate='fast'": (lambda: ppo(learning_rate="fast"), "`learning_rate` (='fast') mu"),
    "learning_rate=True": (lambda: ppo(learning_rate=True), "`learning_rate` (=True) must be a nu"),
    "learning_rate=array": (
        lambda: ppo(learning_rate=np.ones(3)), "`learning_rate` (=array([1., 1., 1.])) must be a"
    ),
    "discount=None": (lambda: ppo(discount=None), "`discount` (=None) must be a number."),
    "normalize_reward='no'": (
        lambda: ppo(normalize_reward="no"), "`normalize_reward` (='no') must be True or False."
    ),
    "previous_action=1": (lambda: ppo(previous_action=1), "`previous_action` (=1) must be True"),
    "activation=jax.nn.relu": (lambda: ppo(activation=jax.nn.relu), "must be one of relu, tanh."),
    "memory='rtu'": (lambda: ppo(memory="rtu"), "`memory` (='rtu') must be a recipe"),
    "memory=cell": (lambda: ppo(memory=zoo.get("mlp", hidden=2)), "must be a recipe, such as"),
    "memory=None": (lambda: ppo(memory=None), "`memory` (=None) must be a recipe"),
    "gradient='rtrl'": (lambda: ppo(gradient="rtrl"), "`gradient` (='rtrl') must be a choice"),
    "gradient=RTRL": (lambda: ppo(gradient=RTRL), "must be a choice, such as agents.RTRL(seg"),
    "env=3": (lambda: ppo(env=3), "`env` (=3) must be the name of an environment"),
    "env=class": (lambda: ppo(env=envs.Gravity), "An instance is wanted, not a class"),
    "env_options=list": (lambda: ppo(env_options=[3]), "`env_options` (=[3]) must be a dictionary"),
    "env_options beside object": (
        lambda: ppo(env=envs.Gravity(), env_options={"a": 1}), "belong to a name"
    ),
    "sampling": (
        lambda: DQN(env="RepeatFirst", memory=zoo.spec("rtu", hidden=8), sampling="all"),
        "`sampling` (='all') must be one of tape, zero, stored, burn_in.",
    ),
    "streaming bptt": (
        lambda: agents.StreamingAC(
            env="RepeatFirst", memory=zoo.spec("rtu", hidden=8), gradient=agents.BPTT()
        ),
        "`gradient` (=BPTT()) must be agents.RTRL() or agents.TBPTT",
    ),
    "preset": (lambda: DQN.preset("memoroid"), "Did you mean memoroids?"),
    "PPO(nun_envs)": (lambda: ppo(nun_envs=3), "`nun_envs` (=3) is not a setting of PPO, which"),
    "PPO(nun_envs) asks": (lambda: ppo(nun_envs=3), "Did you mean num_envs"),
    "TBPTT(segment)": (lambda: TBPTT(segment=4), "`segment` (=4) is not a setting of TBPTT"),
    "RTRL('8')": (lambda: RTRL("8"), "`segment` (='8') must be a whole number or None."),
    "RTRL(0)": (lambda: RTRL(0), "`segment` (=0) must be a whole number of at least 1, or None."),
    "RTRL(refresh)": (
        lambda: RTRL(refresh=True),
        "`refresh` (=True) must be one of never, epoch, published.",
    ),
    "RTRL(storage)": (
        lambda: RTRL(storage="half"),
        "`storage` (='half') must be one of full, bfloat16.",
    ),
    "TBPTT(inf)": (lambda: TBPTT(float("inf")), "`length` (=inf) must be a whole number."),
    "UORO('x')": (lambda: UORO(seed="x"), "`seed` (='x') must be a whole number"),
    "UORO(-1)": (lambda: UORO(seed=-1), "`seed` (=-1) must be a whole number"),
    "spec without a name": (lambda: zoo.spec(None, hidden=3), "`name` (=None) must be a string."),
    "spec of layers": (lambda: zoo.spec("rtu", hidden=3, layers="2"), "`layers` (='2') must be a"),
    "spec of credit": (lambda: zoo.spec("rtu", hidden=3, credit="all"), "must be one of layerwise"),
    "spec of object": (lambda: zoo.spec("rtu", hidden=3, r_max=object()), "`r_max` (=<object obj"),
    "spec of function": (lambda: zoo.spec("mlp", hidden=3, activation=jax.nn.relu), "`activation`"),
    "get of inputs": (lambda: zoo.get("rtu", hidden=3, inputs="3"), "`inputs` (='3') must be a w"),
    "get of key": (lambda: zoo.get("rtu", hidden=3, key=0), "`key` (=0) must be an array or None."),
    "make without a name": (lambda: envs.make(3), "`name` (=3) must be"),
    "make of None": (lambda: envs.make("RepeatFirst", decks=None), "`decks` (=None) must be"),
    "make of list": (lambda: envs.make("gravity", rows=[3]), "`rows` (=[3]) must be a whole num"),
    "make of array": (lambda: envs.make("RepeatFirst", decks=np.ones(2)), "`decks` (=array([1., "),
    "train agent": (lambda: agents.train("ppo", steps=1, out="x"), "`agent` (='ppo') must be a Ab"),
    "train steps": (lambda: train(steps=1e6), "`steps` (=1000000.0) must be a whole number."),
    "train steps huge": (lambda: train(steps=10**99), "must be a whole number of at most 64 bits"),
    "train seeds": (lambda: train(seeds="3"), "`seeds` (='3') must be a whole number."),
    "train seed": (lambda: train(seed=2**32), "`seed` (=4294967296) must be a whole number from 0"),
    "train seed bool": (lambda: train(seed=True), "`seed` (=True) must be a whole number."),
    "train out": (lambda: train(out=3), "`out` (=3) must be a string or a path."),
    "train resume": (lambda: train(resume="yes"), "`resume` (='yes') must be True or False."),
    "train progress": (lambda: train(progress="loud"), "`progress` (='loud') must be True"),
    "train evaluate_every": (lambda: train(evaluate_every=0.5), "`evaluate_every` (=0.5) must be"),
    "load_policy folder": (lambda: agents.load_policy(3), "`folder` (=3) must be a string"),
    "load_policy seed": (lambda: agents.load_policy("x", seed="0"), "`seed` (='0') must be a"),
}  # fmt: skip
