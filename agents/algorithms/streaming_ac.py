"""Actor-critic that learns at every step, with eligibility traces and bounded steps."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from agents.acting import AbstractNetworkBehavior, ActorState, Decision, Policy, Transition
from agents.acting.behavior import normalized
from agents.agent import AgentState, Metrics
from agents.learning.scaling import Scaling
from agents.learning.traces import TraceOptimizer, accumulate_trace, cut_trace
from agents.mapped import mapped
from agents.networks import Inputs, PolicyHead, Recurrent, ValueHead
from agents.networks.spaces import check_vectors, is_discrete, width
from agents.streaming import AbstractStreaming
from zoo.annotations import NonNegative, Positive
from zoo.parts.checks import check_key


class Learner(eqx.Module):
    """What StreamingAC learns: the networks, what ObGD keeps of each, and the scales."""

    actor: Recurrent
    critic: Recurrent
    optimizers: tuple[PyTree, PyTree]
    scaling: Scaling


class Actors(eqx.Module):
    """What StreamingAC carries for each environment: besides acting, whose memory is the gradient's
    carry of both networks, their eligibility traces, and the running discounted return."""

    acting: ActorState
    traces: tuple[PyTree, PyTree]
    discounted: Float[Array, " env"]


class ByScaledActor(AbstractNetworkBehavior):
    """Draws actions from a policy network; `statistics` are of observations, or `None`."""

    network: Any
    statistics: Any

    def __call__(self, state: Any, inputs: Inputs, key: Array | None) -> tuple[Any, Decision]:
        state, policy = mapped(self.network.step)(state, self.seen(inputs))
        return state, Decision(policy.mode() if key is None else policy.sample(key))

    def seen(self, inputs: Inputs) -> Inputs:
        """Return what the network sees, for any leading axes: observations normalized."""
        return normalized(self.statistics, inputs, limit=jnp.inf)


@dataclass(frozen=True, kw_only=True)
class StreamingAC(AbstractStreaming):
    r"""Actor-critic AC(λ) that learns from every step as it comes, in constant memory.

    At each step, for critic v and policy π,

    $$ \delta = r + \gamma v(o') - v(o), \quad
       z_v \leftarrow \gamma \lambda z_v + \nabla v(o), \quad
       z_\pi \leftarrow \gamma \lambda z_\pi
           + \nabla (\log \pi(a | o) + \tau \, \mathrm{sgn}(\delta) H), $$

    and each network moves along δ z by overshooting-bounded gradient descent, with sparse initial
    weights, layers normalized without parameters, and running scales of observations and rewards.
    Both values are of the weights before the step. A truncation is no termination: the value of the
    final observation is bootstrapped from, and only then are the traces cut.

    Actor and critic have a memory each. Of several environments, each has memories and traces of
    its own; they share the networks, and the average of their bounded steps is taken. Seeds side by
    side share nothing.

    ```python
    ac = agents.StreamingAC(env="MemoryChain-bsuite", memory=zoo.spec("rtu", hidden=32))
    state, report = jax.jit(ac.iterate)(ac.init(key=jax.random.key(0)))
    ```

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.

    Source: Elsayed, Vasan and Mahmood (2024), *Streaming Deep Reinforcement Learning Finally
    Works*; its code takes truncations for terminations, this does not.
    """

    actor_kappa: Positive = 3.0
    """κ of the actor: how far its steps stay below overshooting."""
    critic_kappa: Positive = 2.0
    """The same of the critic."""
    entropy_coefficient: NonNegative = 0.01
    """τ, the weight of the policy's entropy."""

    def _check_own(self) -> None:
        check_vectors(self.spaces[1], self.env_name)

    @property
    def _optimizers(self) -> tuple[TraceOptimizer, TraceOptimizer]:
        return self._optimizer(self.actor_kappa), self._optimizer(self.critic_kappa)

    def networks(self, *, key: Array) -> tuple[Recurrent, Recurrent]:
        """Return fresh networks, for policy and value."""
        actor_key, critic_key = jax.random.split(key)
        actions = self.spaces[1]
        log_std = None if is_discrete(actions) else jnp.zeros(width(actions))
        policy = lambda layers: PolicyHead(layers, log_std, actions)  # noqa: E731
        actor = self._new_network(width(actions), policy, key=actor_key)
        return actor, self._new_network(1, ValueHead, key=critic_key)

    def init(self, *, key: Array) -> AgentState:
        check_key(key)
        network_key, env_key, key = jax.random.split(key, 3)
        actor, critic = networks = self.networks(key=network_key)
        scaling = self._new_scaling()
        optimizers = tuple(
            optimizer.init(eqx.filter(network, eqx.is_inexact_array))
            for optimizer, network in zip(self._optimizers, networks, strict=True)
        )
        behavior = ByScaledActor(actor, None)
        return AgentState(
            learner=Learner(actor, critic, optimizers, scaling),
            actors=Actors(*self._new_actors(behavior, networks, scaling, key=env_key)),
            replay=None,
            iteration=jnp.zeros((), jnp.int32),
            key=key,
        )

    def policy(self, learner: Learner) -> Policy:
        """Return the policy of a learner."""
        return Policy(ByScaledActor(learner.actor, learner.scaling.of_observations), *self.spaces)

    def _step(
        self, learner: Learner, actors: Actors, steps: Int[Array, ""], key: Array
    ) -> tuple[Learner, Actors, Transition, Metrics]:
        gradient, acting = self.gradient, actors.acting
        act_key, env_key = jax.random.split(key)
        scaling, inputs = learner.scaling.see(acting.inputs())
        actor_carry, critic_carry = acting.memory

        # Which way the entropy is pushed is known after the step only: the policy's gradient is
        # taken then, and here is just the action.
        state = gradient.online_state(actor_carry)
        policy = mapped(learner.actor.step)(state, inputs)[1]
        action = policy.sample(act_key).astype(acting.action.dtype)

        def value_of(network, carry, inputs):
            carry, value = gradient.online_step(network, carry, inputs)
            return value, carry

        over_envs = lambda f, *axes: mapped(  # noqa: E731
            eqx.filter_value_and_grad(f, has_aux=True), (None, *axes)
        )
        (value, critic_carry), value_slope = over_envs(value_of, 0, 0)(
            learner.critic, critic_carry, inputs
        )
        after, transition, following = self.actor.advance(acting, acting.memory, action, env_key)
        scaling, reward, discounted = scaling.reward(
            transition.reward, actors.discounted, inputs.begin, discount=self.discount
        )
        scaling, following = scaling.follow(following)
        state = gradient.online_state(critic_carry)
        next_value = mapped(learner.critic.step)(state, following)[1]
        bootstrap = jnp.where(transition.terminated, 0, next_value)
        error = reward + self.discount * bootstrap - value

        def preference(network, carry, inputs, action, sign):
            carry, policy = gradient.online_step(network, carry, inputs)
            entropy = self.entropy_coefficient * sign * policy.entropy()
            return policy.log_prob(action) + entropy, carry

        (_, actor_carry), policy_slope = over_envs(preference, 0, 0, 0, 0)(
            learner.actor, actor_carry, inputs, action, jnp.sign(error)
        )
        slopes = policy_slope, value_slope

        def moved(i: int, network: Recurrent) -> tuple[Recurrent, PyTree, PyTree]:
            trace = accumulate_trace(actors.traces[i], slopes[i], self.discount * self.trace_decay)
            updates, kept = self._optimizers[i].update(trace, error, learner.optimizers[i])
            trace = cut_trace(trace, transition.done)
            return eqx.apply_updates(network, updates), kept, trace

        actor, actor_optimizer, actor_trace = moved(0, learner.actor)
        critic, critic_optimizer, critic_trace = moved(1, learner.critic)
        after = dataclasses.replace(after, memory=(actor_carry, critic_carry))
        metrics = {
            "td_error": jnp.mean(jnp.abs(error)),
            "value": jnp.mean(value),
            "entropy": jnp.mean(policy.entropy()),
        }
        return (
            Learner(actor, critic, (actor_optimizer, critic_optimizer), scaling),
            Actors(after, (actor_trace, critic_trace), discounted),
            transition,
            metrics,
        )
