"""The table of the agents' conformance suite: a new algorithm adds a row and gets every test."""

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import agents
import zoo
from agents import AbstractAgent
from tests.agents.tasks import STEERED, steered_t_maze_has_a_name
from tests.cases import slow_but

# A sign at the start says where to turn two steps later. The limit truncates many an episode of an
# agent that has learned nothing, a turn at the junction terminates it.
_TASK = {"env": "t_maze", "env_options": {"length": 1, "max_steps_in_episode": 4}}
_WORDS = "--env t_maze --env-options length=1 --env-options max_steps_in_episode=4 "
# What the best agent without a memory gets in a T-maze, and the best with one.
MEMORYLESS, BEST = 1.95, 4.0


@dataclass(frozen=True)
class AgentCase:
    """An agent, small.

    - `words`: the same from the command line.
    - `solver`: one that solves a T-maze within `steps`; `None` for agents that cannot have one.
    - `first`: whether the row is its class's first: some tests are of the class.
    """

    name: str
    agent: AbstractAgent
    words: str
    solver: AbstractAgent | None = None
    steps: int = 0
    first: bool = False


def _ppo(name, gradient, words, first=False):
    sizes = {"num_envs": 4, "rollout_length": 16, "minibatches": 2, "epochs": 2}
    widths = {"encoder_size": 6, "head_size": 6, "previous_action": True}
    agent = agents.PPO(
        **_TASK, **sizes, **widths, memory=zoo.spec("rtu", hidden=5), gradient=gradient
    )
    flags = " ".join(f"--{n.replace('_', '-')} {v}" for n, v in (sizes | widths).items())
    return AgentCase(
        name,
        agent,
        f"--algorithm ppo {_WORDS} {flags} --hidden 5 {words}",
        solver=_ppo_solver(gradient) if first else None,
        steps=12_000,
        first=first,
    )


def _ppo_in_full():
    """One environment, single steps, and all that is off by default."""
    settings = {
        "num_envs": 1,
        "rollout_length": 48,
        "minibatches": 4,
        "epochs": 2,
        "encoder_size": 6,
        "head_size": 6,
        "activation": "tanh",
        "targets": "fresh",
        "value_clip": 0.2,
        "anneal_steps": 1000,
        "final_clip": 0.1,
        "final_entropy_coefficient": 0.0,
        "separate_memories": True,
        "normalize_reward": True,
        "staleness_every": 2,
    }
    agent = agents.PPO(
        **_TASK, **settings, memory=zoo.spec("rtu", hidden=5), gradient=agents.RTRL(1)
    )
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in settings.items())
    words = f"--algorithm ppo {_WORDS} {flags} --hidden 5 --gradient rtrl --segment 1"
    return AgentCase("ppo in full", agent, re.sub(" True", "", words))


def _ppo_solver(gradient):
    return agents.PPO(
        env="t_maze",
        env_options={"length": 1},
        memory=zoo.spec("rtu", hidden=16),
        gradient=gradient,
        num_envs=32,
        rollout_length=16,
        learning_rate=3e-3,
        encoder_size=16,
        head_size=16,
    )


def _r2ac(name, memory, gradient, words, first=False, memory_options=None):
    sizes = {"num_envs": 4, "unroll_length": 8, "lag": 1, "head_size": 6, "encoder_size": 6}
    recipe = zoo.spec(memory, hidden=5, **(memory_options or {}))
    agent = agents.R2AC(**_TASK, **sizes, memory=recipe, gradient=gradient)
    flags = " ".join(f"--{n.replace('_', '-')} {v}" for n, v in sizes.items())
    return AgentCase(
        name,
        agent,
        f"--algorithm r2ac {_WORDS} {flags} --memory {memory} --hidden 5 {words}",
        solver=_r2ac_solver() if first else None,
        steps=60_000,
        first=first,
    )


def _r2ac_solver():
    return agents.R2AC(
        env="t_maze",
        env_options={"length": 1},
        memory=zoo.spec("rtu", hidden=16),
        reward_clip=None,
        learning_rate=3e-3,
    )


def _pqn(name, gradient, words, first=False):
    sizes = {"num_envs": 4, "rollout_length": 16, "minibatches": 2, "epochs": 2}
    widths = {"encoder_size": 6, "head_size": 6, "previous_action": True}
    agent = agents.PQN(
        **_TASK, **sizes, **widths, memory=zoo.spec("rtu", hidden=5), gradient=gradient
    )
    flags = " ".join(f"--{n.replace('_', '-')} {v}" for n, v in (sizes | widths).items())
    return AgentCase(
        name,
        agent,
        f"--algorithm pqn {_WORDS} {flags} --hidden 5 {words}",
        solver=_pqn_solver(gradient),
        steps=40_000,
        first=first,
    )


def _pqn_solver(gradient):
    return agents.PQN(
        env="t_maze",
        env_options={"length": 1, "max_steps_in_episode": 20},
        memory=zoo.spec("rtu", hidden=16),
        gradient=gradient,
        num_envs=32,
        rollout_length=16,
        learning_rate=3e-3,
        discount=0.9,
        epsilon_steps=20_000,
        encoder_size=16,
        head_size=16,
    )


_DRAWN = {
    "tape": {},
    "zero": {"segment": 4},
    "stored": {"segment": 4},
    "burn_in": {"segment": 4, "burn_in": 2},
}


def _dqn(name, sampling, first=False):
    sizes = {"num_envs": 4, "rollout_length": 16, "updates": 2, "replay_steps": 1024, "warm_up": 64}
    sample = {"batch_steps": 32, **_DRAWN[sampling]}
    widths = {"encoder_size": 6, "head_size": 6, "previous_action": True}
    agent = agents.DQN(
        **_TASK, **sizes, **sample, **widths, memory=zoo.spec("rtu", hidden=5), sampling=sampling
    )
    numbers = sizes | sample | widths
    flags = " ".join(f"--{n.replace('_', '-')} {v}" for n, v in numbers.items())
    return AgentCase(
        name,
        agent,
        f"--algorithm dqn {_WORDS} {flags} --hidden 5 --sampling {sampling}",
        solver=_dqn_solver() if sampling == "tape" else None,
        steps=16_000,
        first=first,
    )


def _dqn_solver():
    return agents.DQN(
        env="t_maze",
        env_options={"length": 1, "max_steps_in_episode": 20},
        memory=zoo.spec("rtu", hidden=16),
        num_envs=8,
        rollout_length=16,
        updates=4,
        batch_steps=128,
        warm_up=1000,
        epsilon=0.5,
        epsilon_steps=10_000,
        learning_rate=3e-3,
        target_kept=0.97,
        discount=0.9,
        encoder_size=16,
        head_size=16,
    )


def _actor_critic(kind, sampling):
    task = {**_TASK, "env": STEERED}
    sizes = {"num_envs": 4, "rollout_length": 16, "updates": 2, "replay_steps": 1024, "warm_up": 64}
    sample = {"batch_steps": 32, **_DRAWN[sampling]}
    widths = {"encoder_size": 6, "head_size": 6, "previous_action": True}
    numbers, name = sizes | sample | widths, kind.__name__.lower()
    with steered_t_maze_has_a_name():
        agent = kind(**task, **numbers, memory=zoo.spec("rtu", hidden=5), sampling=sampling)
    flags = " ".join(f"--{n.replace('_', '-')} {v}" for n, v in numbers.items())
    words = _WORDS.replace("t_maze", STEERED)
    return AgentCase(
        f"{name} {sampling}",
        agent,
        f"--algorithm {name} {words} {flags} --hidden 5 --sampling {sampling}",
        solver=_actor_critic_solver(kind),
        steps=28_000,
        first=True,
    )


def _actor_critic_solver(kind):
    # Small noise seldom makes another number the greatest.
    noise = {"noise": 0.5} if kind is agents.TD3 else {}
    with steered_t_maze_has_a_name():
        return kind(
            env=STEERED,
            env_options={"length": 1, "max_steps_in_episode": 20},
            memory=zoo.spec("rtu", hidden=16),
            num_envs=8,
            rollout_length=16,
            updates=8,
            batch_steps=128,
            warm_up=2000,
            learning_rate=3e-3,
            target_kept=0.97,
            discount=0.9,
            encoder_size=16,
            head_size=32,
            **noise,
        )


def _tabular(name, rule, first=False):
    agent = agents.Tabular(**_TASK, rule=rule, trace_decay=0.8, rollout_length=40)
    options = {"length": 1, "max_steps_in_episode": 20}
    solver = agents.Tabular(
        env="t_maze",
        env_options=options | {"external_memory": "B1"},
        rule=rule,
        trace_decay=0.9,
        epsilon=0.05,
    )
    return AgentCase(
        name,
        agent,
        f"--algorithm tabular {_WORDS} --rule {rule} --trace-decay 0.8 --rollout-length 40",
        solver=solver,
        steps=20_000,
        first=first,
    )


def _tabular_actor_critic():
    solver = agents.TabularActorCritic(
        env="t_maze",
        env_options={"length": 1, "max_steps_in_episode": 20, "external_memory": "O1"},
        unroll_length=20,
        policy_rate=0.5,
        value_rate=0.1,
    )

    return AgentCase(
        "tabular actor-critic",
        agents.TabularActorCritic(**_TASK, unroll_length=4, updates=10),
        f"--algorithm tabular_actor_critic {_WORDS} --unroll-length 4 --updates 10",
        solver=solver,
        steps=100_000,
        first=True,
    )


def _streaming_td(name, options, words, first=False):
    agent = agents.StreamingTD(
        **_TASK, memory=zoo.spec("rtu", hidden=5), rollout_length=40, **options
    )
    words = f"--algorithm streaming_td {_WORDS} --hidden 5 --rollout-length 40 {words}"
    return AgentCase(name, agent, words, first=first)


def _streaming_ac(name, options, words, first=False):
    sizes = {"rollout_length": 40, "head_size": 6, "discount": 0.9}
    agent = agents.StreamingAC(**_TASK, memory=zoo.spec("rtu", hidden=5), **sizes, **options)
    flags = " ".join(f"--{n.replace('_', '-')} {v}" for n, v in sizes.items())
    return AgentCase(
        name,
        agent,
        f"--algorithm streaming_ac {_WORDS} --hidden 5 {flags} {words}",
        solver=_streaming_ac_solver() if first else None,
        steps=12_000,
        first=first,
    )


def _streaming_q(name, rule, first=False):
    sizes = {"rollout_length": 40, "head_size": 6, "epsilon_steps": 100, "epsilon_end": 0.5}
    agent = agents.StreamingQ(
        **_TASK, memory=zoo.spec("rtu", hidden=5), rule=rule, num_envs=2, **sizes
    )
    flags = " ".join(f"--{n.replace('_', '-')} {v}" for n, v in sizes.items())
    return AgentCase(
        name,
        agent,
        f"--algorithm streaming_q {_WORDS} --hidden 5 {flags} --num-envs 2 --rule {rule}",
        solver=_streaming_q_solver() if first else None,
        steps=12_000,
        first=first,
    )


def _streaming_q_solver():
    return agents.StreamingQ(
        env="t_maze",
        env_options={"length": 1},
        memory=zoo.spec("rtu", hidden=8),
        head_size=16,
        adaptive=True,
        discount=0.9,
        epsilon_end=0.05,
        epsilon_steps=5_000,
    )


def _streaming_ac_solver():
    return agents.StreamingAC(
        env="t_maze",
        env_options={"length": 1},
        memory=zoo.spec("rtu", hidden=8),
        head_size=16,
        adaptive=True,
        discount=0.9,
    )


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-an-agent.md"


def documented_agent() -> str:
    """The code of the agent that the documentation adds, which the table tests like ours."""
    blocks = re.findall(r"^```python[^\n]*\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (code,) = [block for block in blocks if "class Bias" in block]
    return code


def _documented():
    names = {"__name__": "documented"}
    exec(documented_agent(), names)
    agent = names["Bias"](**_TASK, num_envs=4, rollout_length=16)
    words = f"--algorithm bias {_WORDS} --num-envs 4 --rollout-length 16"
    return AgentCase("documented", agent, words, first=True)


CASES = [
    # With `refresh`, which goes through all that stored carries do and more.
    _ppo(
        "ppo rtrl",
        agents.RTRL(4, refresh="epoch"),
        "--gradient rtrl --segment 4 --refresh epoch",
        first=True,
    ),
    _ppo("ppo tbptt", agents.TBPTT(4), "--gradient tbptt --segment 4"),
    _ppo_in_full(),
    _ppo("ppo bptt", agents.BPTT(), "--gradient bptt"),
    _r2ac(
        "r2ac snap1",
        "felstm",
        agents.RTRL(segment=None),
        "--memory-options sensitivity=snap1",
        first=True,
        memory_options={"sensitivity": "snap1"},
    ),
    _r2ac("r2ac rtrl", "elstm", agents.RTRL(segment=4), "--segment 4"),
    _pqn("pqn rtrl", agents.RTRL(4), "--gradient rtrl --segment 4", first=True),
    _dqn("dqn burn_in", "burn_in", first=True),
    _dqn("dqn tape", "tape"),
    _actor_critic(agents.SAC, "tape"),
    _actor_critic(agents.TD3, "zero"),
    _tabular("sarsa", "sarsa", first=True),
    _tabular_actor_critic(),
    _streaming_td(
        "td rtrl",
        {"num_envs": 2, "discount": 0.9, "head_size": 6},
        "--num-envs 2 --discount 0.9 --head-size 6 --gradient rtrl",
        first=True,
    ),
    _streaming_td(
        "td tbptt",
        {"gradient": agents.TBPTT(2), "optimizer": "obgd", "previous_reward": True},
        "--optimizer obgd --previous-reward --gradient tbptt --segment 2",
    ),
    _streaming_ac(
        "ac rtrl",
        {"num_envs": 2, "adaptive": True},
        "--num-envs 2 --adaptive --gradient rtrl",
        True,
    ),
    _streaming_q("streaming q", "q", first=True),
    _streaming_q("streaming sarsa", "sarsa"),
    _documented(),
]

# For the quick tests: the row that compiles in no time, as it has no network. What an algorithm
# does with one has quick tests of its own; the slow ones have all rows that carry something else
# from one iteration to the next.
QUICK = ["documented"]
SAME_STATE = ("ppo bptt", "ppo tbptt", "r2ac rtrl", "dqn tape", "td tbptt", "streaming sarsa")


def rows(chosen: Callable[[AgentCase], bool], quick: Iterable[str] = QUICK) -> list:
    """Rows of a parametrized test, of which all are slow but the quick ones."""
    return slow_but(quick, filter(chosen, CASES), lambda case: case.name)


ROWS = rows(lambda case: case.name not in SAME_STATE)
FIRST = rows(lambda case: case.first)


def words_of(case: AgentCase, command: str) -> list[str]:
    """The words of a command that trains the row's agent."""
    return shlex.split(f"train {case.words} {command}")
