"""What an environment hides, and the environment that hides nothing: its fully observed twin."""

import abc
import functools
from typing import Any, ClassVar

from gymnax.environments import spaces
from gymnax.environments.environment import Environment, EnvParams
from jaxtyping import Array

CHOICES = ("partial", "full")
"""Values of the option `observability`."""


class Hides(Environment[Any, EnvParams], abc.ABC):
    """Abstract: an environment that can tell what its observations hide.

    **Attributes:**

    - `shown_by`: the names of the two methods that make observations: at the beginning of an
      episode and after an action. Both return the observation first and the state second.
    """

    shown_by: ClassVar[tuple[str, str]] = ("reset_env", "step_env")

    @property
    @abc.abstractmethod
    def hidden_space(self) -> Any:
        """The space of what is hidden."""

    @abc.abstractmethod
    def hidden(self, state: Any) -> Array:
        """Tell what the observation of a state hides, of that which can matter to an action.

        **Arguments:**

        - `state`: the environment's, unbatched.

        **Returns:**

        An element of `hidden_space`.
        """

    def uncovered(self, key: Any, state: Any) -> Any:
        """Draw now what is otherwise drawn where it is first met; nothing by default.

        **Arguments:**

        - `key`: of the episode; what `shown_by`'s first method is given.
        - `state`: at the beginning of the episode.

        **Returns:**

        The state with everything drawn: the episode has the same distribution.
        """
        del key
        return state


class FullyObserved:
    """What twins are besides: a class of them has in `hiding` the one that hides something."""

    hiding: ClassVar[type[Hides]]


@functools.cache
def fully_observed(kind: type[Hides]) -> type[Hides]:
    """Make the class whose observations are a pair: what is seen, and what is hidden.

    It needs no memory and no previous action; everything else is as in the class that is given.
    """
    begins, goes_on = kind.shown_by

    def begin(self, key, *rest):
        observation, state = getattr(kind, begins)(self, key, *rest)
        state = self.uncovered(key, state)
        return (observation, self.hidden(state)), state

    def go_on(self, *arguments):
        observation, state, *rest = getattr(kind, goes_on)(self, *arguments)
        return (observation, self.hidden(state)), state, *rest

    def observation_space(self, params: Any = None):
        return spaces.Tuple((kind.observation_space(self, params), self.hidden_space))

    namespace = {
        begins: begin,
        goes_on: go_on,
        "observation_space": observation_space,
        "needs_previous_action": False,
        "hiding": kind,
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
    }
    return type(f"FullyObserved{kind.__name__}", (FullyObserved, kind), namespace)
