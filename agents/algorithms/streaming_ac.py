"""Actor-critic that learns at every step, with eligibility traces and bounded steps."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

import zoo
from agents.acting import (
    AbstractBehavior,
    ActorState,
    Decision,
    Policy,
    Transition,
    episode_statistics,
)
from agents.acting.actor import side_by_side
from agents.acting.behavior import normalized
from agents.agent import AbstractAgent, AgentState, Metrics, Report
from agents.envs import needs_previous_action
from agents.learning.gradients import RTRL, AbstractOnlineGradient, OnlineGradient
from agents.learning.scaling import Scaling
from agents.learning.traces import TraceOptimizer, accumulate_trace, cut_trace, obgd
from agents.networks import Inputs, PolicyHead, Recurrent, ValueHead, sparse_recurrent
from agents.networks.spaces import is_discrete, width
from agents.settings import check_kind, check_numbers
from zoo.parts.checks import check_counts


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


class ByScaledActor(AbstractBehavior):
    """Draws actions from a policy network; `statistics` are of observations, or `None`."""

    network: Recurrent
    statistics: Any

    def init_state(self) -> Any:
        return self.network.init_state()

    def __call__(self, state: Any, inputs: Inputs, key: Array | None) -> tuple[Any, Decision]:
        state, policy = jax.vmap(self.network.step)(state, normalized(self.statistics, inputs))
        return state, Decision(policy.mode() if key is None else policy.sample(key))


@dataclass(frozen=True, kw_only=True)
class StreamingAC(AbstractAgent):
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

    memory: zoo.Spec
    """Recipe of the memories of actor and critic, `zoo.spec(...)`."""
    gradient: OnlineGradient = field(default_factory=RTRL)
    """How far credit reaches back from each step: `agents.RTRL()` or `agents.TBPTT(...)`."""
    num_envs: int = 1
    """Environments side by side, for each seed; they share the networks."""
    rollout_length: int = 1000
    """Steps of an iteration, after which it is reported; learning happens at every step."""
    discount: float = 0.99
    """γ."""
    trace_decay: float = 0.8
    """λ, how long a gradient stays eligible."""
    learning_rate: float = 1.0
    """α of ObGD."""
    actor_kappa: float = 3.0
    """κ of the actor: how far its steps stay below overshooting."""
    critic_kappa: float = 2.0
    """The same of the critic."""
    adaptive: bool = False
    """Whether ObGD divides traces by the root of their running mean square."""
    entropy_coefficient: float = 0.01
    """τ, the weight of the policy's entropy."""
    encoder_size: int = 0
    """Width of the layer in front of each memory; 0 for none. RTRL's gradient ends there."""
    head_size: int = 128
    """Width of the hidden layers behind each memory; 0 for none."""
    head_layers: int = 1
    """Number of the hidden layers behind each memory."""
    sparsity: float = 0.9
    """Share of weights outside of the memories that begin with zero."""
    previous_action: bool | None = None
    """Whether the previous action is an input; by default where the environment asks for it."""
    previous_reward: bool = False
    """Whether the previous reward is an input."""
    normalize_observation: bool = True
    """Whether observations are normalized by running statistics, where they are a Box."""
    normalize_reward: bool = True
    """Whether rewards are scaled by running statistics of the return."""

    def check(self) -> None:
        choice = "agents.RTRL() or agents.TBPTT(...), which have an online form"
        check_kind(AbstractOnlineGradient, choice, gradient=self.gradient)
        given = lambda *names: {name: getattr(self, name) for name in names}  # noqa: E731
        check_counts(1, **given("num_envs", "rollout_length"))
        check_counts(0, **given("encoder_size", "head_size", "head_layers"))
        shares = given("discount", "trace_decay", "sparsity")
        check_numbers("in [0, 1]", lambda x: 0 <= x <= 1, **shares)
        positive = given("learning_rate", "actor_kappa", "critic_kappa")
        check_numbers("above 0", lambda x: x > 0, **positive)
        check_numbers("at least 0", lambda x: x >= 0, **given("entropy_coefficient"))

    @property
    def steps_per_iteration(self) -> int:
        return self.num_envs * self.rollout_length

    @property
    def _optimizers(self) -> tuple[TraceOptimizer, TraceOptimizer]:
        kappas = (self.actor_kappa, self.critic_kappa)
        actor, critic = (obgd(self.learning_rate, k, adaptive=self.adaptive) for k in kappas)
        return actor, critic

    def networks(self, *, key: Array) -> tuple[Recurrent, Recurrent]:
        """Return fresh networks, for policy and value."""
        actor_key, critic_key = jax.random.split(key)
        actions = self.spaces[1]
        log_std = None if is_discrete(actions) else jnp.zeros(width(actions))

        def network(outputs, head, key):
            return sparse_recurrent(
                *self.spaces,
                self.memory,
                outputs=outputs,
                head=head,
                encoder_size=self.encoder_size,
                head_size=self.head_size,
                head_layers=self.head_layers,
                sparsity=self.sparsity,
                previous_action=needs_previous_action(self.environment[0], self.previous_action),
                previous_reward=self.previous_reward,
                key=key,
            )

        policy = lambda layers: PolicyHead(layers, log_std, actions)  # noqa: E731
        actor = network(width(actions), policy, actor_key)
        return actor, network(1, ValueHead, critic_key)

    def init(self, *, key: Array) -> AgentState:
        network_key, env_key, key = jax.random.split(key, 3)
        actor, critic = networks = self.networks(key=network_key)
        parameters = tuple(eqx.filter(network, eqx.is_inexact_array) for network in networks)
        optimizers = (o.init(p) for o, p in zip(self._optimizers, parameters, strict=True))
        scaling = Scaling.init(
            self.spaces[0], observations=self.normalize_observation, rewards=self.normalize_reward
        )
        acting = self.actor.reset(ByScaledActor(actor, None), self.num_envs, key=env_key)
        first = jax.tree.map(lambda x: x[0], scaling.scaled(acting.inputs()))
        carries = tuple(self.gradient.online_begin(network, first) for network in networks)
        return AgentState(
            learner=Learner(actor, critic, tuple(optimizers), scaling),
            actors=Actors(
                dataclasses.replace(acting, memory=side_by_side(carries, self.num_envs)),
                jax.tree.map(jnp.zeros_like, side_by_side(parameters, self.num_envs)),
                jnp.zeros(self.num_envs, jnp.float32),
            ),
            replay=None,
            iteration=jnp.zeros((), jnp.int32),
            key=key,
        )

    def policy(self, learner: Learner) -> Policy:
        """Return the policy of a learner."""
        return Policy(ByScaledActor(learner.actor, learner.scaling.observation), self.spaces[1])

    def iterate(self, state: AgentState) -> tuple[AgentState, Report]:
        """Take `rollout_length` steps, and learn at each."""
        key, steps_key = jax.random.split(state.key)
        keys = jax.random.split(steps_key, self.rollout_length)

        def step(loop: tuple[Learner, Actors], key: Array):
            learner, actors, transition, metrics = self._step(*loop, key)
            return (learner, actors), (transition, metrics)

        (learner, actors), (rollout, metrics) = jax.lax.scan(
            step, (state.learner, state.actors), keys
        )
        report = Report(jax.tree.map(jnp.mean, metrics), {}, episode_statistics(rollout))
        return AgentState(learner, actors, None, state.iteration + 1, key), report

    def _step(
        self, learner: Learner, actors: Actors, key: Array
    ) -> tuple[Learner, Actors, Transition, Metrics]:
        """Take one step in every environment and learn from it."""
        gradient, acting = self.gradient, actors.acting
        act_key, env_key = jax.random.split(key)
        scaling, inputs = learner.scaling.see(acting.inputs())
        actor_carry, critic_carry = acting.memory

        # Which way the entropy is pushed is known after the step only: the policy's gradient is
        # taken then, and here is just the action.
        state = gradient.online_state(actor_carry)
        policy = jax.vmap(learner.actor.step)(state, inputs)[1]
        action = policy.sample(act_key).astype(acting.action.dtype)

        def value_of(network, carry, inputs):
            carry, value = gradient.online_step(network, carry, inputs)
            return value, carry

        over_envs = lambda f, *axes: jax.vmap(  # noqa: E731
            eqx.filter_value_and_grad(f, has_aux=True), (None, *axes)
        )
        (value, critic_carry), value_slope = over_envs(value_of, 0, 0)(
            learner.critic, critic_carry, inputs
        )
        after, transition, following = self.actor.advance(acting, acting.memory, action, env_key)
        scaling, reward, discounted = scaling.reward(
            transition.reward, actors.discounted, inputs.begin, discount=self.discount
        )
        state = gradient.online_state(critic_carry)
        next_value = jax.vmap(learner.critic.step)(state, scaling.scaled(following))[1]
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
