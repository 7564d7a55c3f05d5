"""An agent's settings as options of the command line."""

import ast
import dataclasses
import functools
import inspect
import itertools
import textwrap
import typing
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Union

import tyro

import zoo
from agents.agent import AbstractAgent
from agents.cli.words import Count, KeyValues
from agents.learning import BPTT, RTRL, TBPTT
from agents.learning.gradients import Gradient, OnlineGradient
from zoo.options import parse_options


@dataclass(frozen=True)
class MemoryOptions:
    """The agent's memory."""

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

    def make(self) -> zoo.Spec:
        """Return the recipe."""
        options = parse_options(self.memory_options, "--memory-options")
        credit = {} if self.credit is None else {"credit": self.credit}
        return zoo.Spec(self.memory, self.hidden, self.layers, options, **credit)

    @classmethod
    def standing_for(cls, memory: zoo.Spec) -> "MemoryOptions":
        """Return the options whose recipe is this one."""
        texts = tuple(f"{name}={value!r}" for name, value in memory.options.items())
        credit: Any = None if memory.credit == "layerwise" else memory.credit
        return cls(memory.name, memory.hidden, memory.layers, credit, texts)


@dataclass(frozen=True)
class GradientOptions:
    """How far credit reaches back in time."""

    gradient: Literal["rtrl", "tbptt", "bptt"] = "rtrl"
    """Real-time recurrent learning (untruncated), truncated backpropagation through time, or
    backpropagation through the whole rollout."""
    segment: Count | None = None
    """Steps of a segment (rtrl) or at which credit is cut off (tbptt); 8 by default, and a whole
    unroll where that is the algorithm's (rtrl)."""
    refresh: Literal["never", "epoch"] | None = None
    """When sensitivities are recomputed with the new parameters (rtrl); never by default."""
    storage: Literal["full", "bfloat16"] | None = None
    """How the sensitivities of a rollout's segments are kept (rtrl): full by default, or with two
    or three digits in half the memory."""

    def make(self, usual: Any) -> Gradient:
        """Return the choice, from the agent's `usual` one where that is of the same kind.

        **Raises:**

        `ValueError` for an option that it does not have.
        """
        names = {"rtrl": ("segment", "refresh", "storage"), "tbptt": ("segment",), "bptt": ()}
        given = {name: getattr(self, name) for name in names["rtrl"]}
        given = {name: value for name, value in given.items() if value is not None}
        for name in given:
            if name not in names[self.gradient]:
                raise ValueError(f"--{name} has no meaning with --gradient {self.gradient}")
        if self.gradient == "tbptt":
            given = {"length": given["segment"]} if given else {}
        kind = _GRADIENTS[self.gradient]
        return dataclasses.replace(usual if isinstance(usual, kind) else kind(), **given)

    @classmethod
    def standing_for(cls, gradient: Gradient) -> "GradientOptions":
        """Return the options that `make` this one, where it is the algorithm's usual one."""
        (name,) = (name for name, kind in _GRADIENTS.items() if isinstance(gradient, kind))
        return cls(name)


_GRADIENTS: dict[Any, Any] = {"rtrl": RTRL, "tbptt": TBPTT, "bptt": BPTT}


# Settings that are no numbers or words, and the options that stand for them.
_GROUPS = {
    zoo.Spec: MemoryOptions,
    Gradient: GradientOptions,
    OnlineGradient: GradientOptions,
}


@functools.cache
def options_of(kind: type[AbstractAgent], preset: str | None = None) -> type:
    """Make the options of an algorithm, as a dataclass for tyro.

    They are read off its fields, their docstrings, and their defaults or those of a preset, which
    are its `usual`.

    **Raises:**

    `ValueError` for a preset that the algorithm does not have.
    """
    given = {} if preset is None else kind.named_settings(preset)
    annotations, docs = typing.get_type_hints(kind), field_docs(kind)  # without bounds
    options, usual = [], {**_defaults(kind), **given}
    for setting in dataclasses.fields(kind):
        if setting.name == "_":
            continue
        annotation = annotations[setting.name]
        default = usual.get(setting.name, dataclasses.MISSING)
        if setting.name == "env":
            annotation = str
        elif setting.name == "env_options":
            annotation, default = KeyValues, ()
        elif annotation in _GROUPS:
            group = _GROUPS[annotation]
            make: Any = group
            if setting.name in usual:
                make = functools.partial(group.standing_for, usual[setting.name])
            options.append((setting.name, group, field(default_factory=make)))
            continue
        elif annotation is int:
            annotation = Count
        elif annotation == int | None:
            annotation = Union[Count, None]  # pyright: ignore  # noqa: UP007
        annotation = Annotated[annotation, tyro.conf.arg(help=docs.get(setting.name))]
        if default is dataclasses.MISSING:
            options.append((setting.name, annotation))
        else:
            options.append((setting.name, annotation, field(default_factory=lambda x=default: x)))
    made = dataclasses.make_dataclass(
        kind.__name__, options, frozen=True, kw_only=True, namespace={"usual": usual}
    )
    made.__doc__ = (inspect.getdoc(kind) or "").partition("\n")[0]
    return made


def make_agent(kind: type[AbstractAgent], options: Any, **changed: Any) -> AbstractAgent:
    """Make the agent that parsed options describe, an instance of `options_of(kind)`.

    **Arguments:**

    - `changed`: settings that take the place of what was parsed.

    **Raises:**

    `ValueError` naming the setting that is wrong.
    """
    settings = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
    usual = options.usual
    typed = parse_options(settings["env_options"], "--env-options")
    # Those of the agent's own environment are no other's. One that is no name was not typed.
    env, own = settings["env"], usual.get("env")
    its_own = own is None or not isinstance(env, str) or (isinstance(own, str) and env == own)
    settings["env_options"] = usual["env_options"] if its_own and not typed else typed
    given = settings.get("memory"), settings.get("gradient")
    match given:
        case MemoryOptions(credit=credit), GradientOptions(gradient=gradient):
            if credit is not None and gradient != "rtrl":
                raise ValueError(f"--credit has no meaning with --gradient {gradient}")
    try:
        for name, value in settings.items():
            if isinstance(value, MemoryOptions):
                settings[name] = value.make()
            elif isinstance(value, GradientOptions):
                settings[name] = value.make(usual.get(name))
        return kind(**settings | changed)
    except TypeError as error:  # of a wrong kind: an error of the user's here, not of a program's
        raise ValueError(str(error)) from error


def _defaults(kind: type) -> dict[str, Any]:
    """Return the settings that need not be given."""
    missing, found = dataclasses.MISSING, {}
    for setting in dataclasses.fields(kind):
        if setting.default_factory is not missing:
            found[setting.name] = setting.default_factory()
        elif setting.default is not missing:
            found[setting.name] = setting.default
    return found


def field_docs(kind: type) -> dict[str, str]:
    """Return the docstrings that stand under a dataclass's fields, and under those it inherits."""
    found: dict[str, str] = {}
    for parent in reversed(kind.__mro__[:-1]):
        try:
            definition = ast.parse(textwrap.dedent(inspect.getsource(parent))).body[0]
        except (OSError, TypeError):  # made without a file
            continue
        body = getattr(definition, "body", [])
        for statement, following in itertools.pairwise(body):
            if not (isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr)):
                continue
            if isinstance(following.value, ast.Constant) and isinstance(following.value.value, str):
                text = " ".join(following.value.value.split())
                found[ast.unparse(statement.target)] = text
    return found
