"""The options of `python -m agents train`, and the algorithm that they describe."""

import ast
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

import zoo
from agents.envs import make
from agents.gradients import BPTT, RTRL, TBPTT, AbstractGradient
from agents.ppo import PPO

_DEFAULT: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(PPO)}
KeyValues = tyro.conf.UseAppendAction[
    Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE")]
]
Switch = tyro.conf.FlagCreatePairsOff[bool]


def parse_count(text: str) -> int:
    """A whole number, also as `1e6` or `1_000_000`.

    **Arguments:**

    - `text`: as typed.

    **Returns:**

    The number.

    **Raises:**

    - `ValueError`: if it is not a whole number.
    """
    try:
        value = float(text)
        count = int(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a whole number") from None
    if count != value:
        raise ValueError(f"{text!r} is not a whole number")
    return count


Count = Annotated[
    int,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda texts: parse_count(texts[0]),
        is_instance=lambda x: isinstance(x, int),
        str_from_instance=lambda x: [str(x)],
    ),
]


@dataclass(frozen=True)
class TaskOptions:
    """What is learned."""

    env: str
    """Name of the environment; `python -m agents envs` lists them."""
    env_options: KeyValues = ()
    """An option of the environment; may be given several times."""


@dataclass(frozen=True)
class MemoryOptions:
    """The agent's memory and the layers around it."""

    memory: str = "rtu"
    """Name of the cell; `python -m agents cells` lists them with their options."""
    hidden: Count = 128
    """Recurrent units."""
    layers: Count = 1
    """Cells above each other; more than one are joined by gated residual blocks."""
    credit: Literal["layerwise", "exact"] | None = None
    """What RTRL follows through several layers: layerwise by default; exact is for small ones."""
    memory_options: KeyValues = ()
    """An option of the cell; may be given several times."""
    encoder_size: Count = _DEFAULT["encoder_size"]
    """Width of the layer in front of the memory."""
    head_size: Count = _DEFAULT["head_size"]
    """Width of the hidden layer of actor and critic."""
    previous_action: bool | None = _DEFAULT["previous_action"]
    """Whether the previous action is an input; by default where the environment asks for it."""
    previous_reward: bool = _DEFAULT["previous_reward"]
    """Whether the previous reward is an input."""


@dataclass(frozen=True)
class GradientOptions:
    """How far credit reaches back in time."""

    gradient: Literal["rtrl", "tbptt", "bptt"] = "rtrl"
    """Real-time recurrent learning (untruncated), truncated backpropagation through time, or
    backpropagation through the whole rollout."""
    segment: Count | None = None
    """Steps of a segment (rtrl) or at which credit is cut off (tbptt); 8 by default."""
    refresh: Literal["never", "epoch"] | None = None
    """When sensitivities are recomputed with the new parameters (rtrl); never by default."""
    staleness_every: Count = _DEFAULT["staleness_every"]
    """Iterations between measurements of how stale the sensitivities are; 0 for none."""


@dataclass(frozen=True)
class LearningOptions:
    """Proximal policy optimization."""

    num_envs: Count = _DEFAULT["num_envs"]
    """Environments side by side, for each seed."""
    rollout_length: Count = _DEFAULT["rollout_length"]
    """Steps in each environment between updates."""
    epochs: Count = _DEFAULT["epochs"]
    """Passes over a rollout."""
    minibatches: Count = _DEFAULT["minibatches"]
    """Parts of a rollout in each pass."""
    learning_rate: float = _DEFAULT["learning_rate"]
    """Of Adam."""
    anneal: bool = False
    """Whether the learning rate falls linearly to zero over `--steps`, which then cannot change on
    resuming."""
    discount: float = _DEFAULT["discount"]
    """γ."""
    gae_lambda: float = _DEFAULT["gae_lambda"]
    """λ of generalized advantage estimation."""
    clip: float = _DEFAULT["clip"]
    """ε of the clipped policy loss."""
    value_clip: float | None = _DEFAULT["value_clip"]
    """The same for the value loss, if any."""
    entropy_coefficient: float = _DEFAULT["entropy_coefficient"]
    """Weight of the policy's entropy."""
    value_coefficient: float = _DEFAULT["value_coefficient"]
    """Weight of the value loss."""
    max_grad_norm: float = _DEFAULT["max_grad_norm"]
    """Gradients are scaled down to this norm."""
    normalize_observation: bool = _DEFAULT["normalize_observation"]
    """Whether observations are normalized by running statistics."""
    normalize_reward: bool = _DEFAULT["normalize_reward"]
    """Whether rewards are scaled by running statistics of the return."""


@dataclass(frozen=True)
class RunOptions:
    """How long, how often and where to."""

    out: Path
    """Folder for curves, logs and the checkpoint: new or empty, or with --resume that of the run
    to go on with."""
    steps: Count = 1_000_000
    """Environment steps for each seed, such as 1e6; with --resume it may be larger than before."""
    seeds: Count = 1
    """Seeds trained side by side."""
    seed: int = 0
    """Root of all randomness."""
    resume: Switch = False
    """Go on from the checkpoint in --out."""
    evaluate_every: Count | None = None
    """Iterations between evaluations; about 20 evaluations by default; 0 for none."""
    evaluation_episodes: Count = 64
    """Episodes of each evaluation, for each seed."""
    checkpoint_every: Count | None = None
    """Iterations between checkpoints; about 20 checkpoints by default."""
    progress: Literal["auto", "bar", "lines", "none"] = "auto"
    """How to report progress; auto is a bar on a terminal and lines elsewhere."""


@dataclass(frozen=True)
class Train:
    """Train an agent with PPO and leave a folder with its curves, logs and checkpoint."""

    task: TaskOptions
    memory: MemoryOptions
    gradient: GradientOptions
    learning: LearningOptions
    running: RunOptions


def build_algorithm(options: Train) -> PPO:
    """The algorithm that the options of `train` describe.

    **Arguments:**

    - `options`: as parsed.

    **Returns:**

    `PPO`.

    **Raises:**

    - `ValueError`: naming the option that is wrong.
    """
    memory, learning = options.memory, options.learning
    given = {**vars(options.task), **vars(memory), **vars(options.gradient), **vars(learning)}
    same = {name: value for name, value in given.items() if name in _DEFAULT}
    if memory.credit is not None and options.gradient.gradient != "rtrl":
        raise ValueError(f"--credit has no meaning with --gradient {options.gradient.gradient}")
    recipe = zoo.Spec(
        memory.memory,
        memory.hidden,
        memory.layers,
        parse_options(memory.memory_options, "--memory-options"),
        **({} if memory.credit is None else {"credit": memory.credit}),
    )
    env_options = parse_options(options.task.env_options, "--env-options")
    make_environment(options.task.env, env_options)  # so that its wrong options are told as such
    return PPO(
        **same
        | {
            "memory": recipe,
            "gradient": build_gradient(options.gradient),
            "env_options": env_options,
            "anneal_steps": options.running.steps if learning.anneal else None,
        }
    )


def build_gradient(options: GradientOptions) -> AbstractGradient:
    """The choice of gradient that the options describe.

    **Arguments:**

    - `options`: as parsed.

    **Returns:**

    `RTRL`, `TBPTT` or `BPTT`.

    **Raises:**

    - `ValueError`: if an option is given that the choice does not have.
    """
    names = {"rtrl": ("segment", "refresh"), "tbptt": ("segment",), "bptt": ()}
    given = {name: getattr(options, name) for name in ("segment", "refresh")}
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in names[options.gradient]:
            raise ValueError(f"--{name} has no meaning with --gradient {options.gradient}")
    if options.gradient == "tbptt":
        return TBPTT(**({"length": given["segment"]} if given else {}))
    return RTRL(**given) if options.gradient == "rtrl" else BPTT()


def make_environment(name: str, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """The environment that options of the command line describe.

    **Arguments:**

    - `name`: its name.
    - `options`: as parsed.

    **Returns:**

    The environment and its parameters.

    **Raises:**

    - `ValueError`: if there is no such environment, or an option is wrong.
    """
    try:
        return make(name, **options)
    except TypeError as error:
        raise ValueError(f"--env-options: {error}") from error


def parse_options(texts: Sequence[str], flag: str) -> dict[str, Any]:
    """Options given as `key=value`; values are Python literals, else text.

    **Arguments:**

    - `texts`: as typed.
    - `flag`: the flag they were given to, for errors.

    **Returns:**

    Values by key.

    **Raises:**

    - `ValueError`: if one is not `key=value`, or a key is given twice.
    """
    parsed: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise ValueError(f"{flag} (={text!r}) must be written as key=value")
        if key in parsed:
            raise ValueError(f"{flag} gives {key!r} twice")
        parsed[key] = _literal(value)
    return parsed


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
