"""What learners of an actor and two critics from replay share, for actions in a box."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from agents.acting import ByActor, Policy
from agents.agent import Metrics
from agents.learning.losses import masked_mean
from agents.learning.tape import Sample
from agents.networks import Recurrent
from agents.networks.continuous import check_box, continuous_network, values_along
from agents.off_policy.learner import AbstractOffPolicy


@dataclass(frozen=True)
class AbstractActorCritic(AbstractOffPolicy):
    """A learner of an actor and two critics, for actions in a box; its learner has an `actor`."""

    def _check_own(self) -> None:
        check_box(self.spaces[1], self.env_name)
        if self._stores:
            raise ValueError(
                f"`sampling` (={self.sampling!r}) must be tape or zero: the critics' memory does "
                "not act, so that none of its states is stored."
            )

    def policy(self, learner: Any) -> Policy:
        return Policy(self._acting(learner, jnp.bool_(False)), *self.spaces)

    def _acting(self, learner: Any, at_random: Bool[Array, ""]) -> ByActor:
        return ByActor(learner.actor, at_random, self.spaces[1])

    def _exploring(self, learner: Any, steps: Array) -> ByActor:
        return self._acting(learner, jnp.asarray(steps < self.warm_up))

    def _new_network(self, head: Any, *, key: Array) -> Recurrent:
        """Return a fresh network with one of the heads of `agents.networks.continuous`."""
        return continuous_network(
            *self.spaces,
            self.memory,
            head=head,
            encoder_size=self.encoder_size,
            head_size=self.head_size,
            head_layers=self.head_layers,
            layer_norm=self.layer_norm,
            previous_action=self._reads_action,
            previous_reward=self.previous_reward,
            key=key,
        )

    def _values(self, critic: Recurrent, sample: Sample, action: Array) -> Array:
        """Both values of an action at each step that may be learned from."""
        return values_along(critic.head, self._along(critic, sample)[:-1], action)

    def _critic_loss(
        self, critic: Recurrent, wanted: Float[Array, "time sequence"], sample: Sample
    ) -> tuple[Array, Metrics]:
        values = self._values(critic, sample, self._rows(sample).action)
        error = values - jax.lax.stop_gradient(wanted)[..., None]
        loss = masked_mean(0.5 * jnp.sum(error**2, axis=-1), sample.mask)
        return loss, {"critic_loss": loss, "value": masked_mean(values[..., 0], sample.mask)}
