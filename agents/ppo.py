"""Proximal policy optimization with a memory and a choice of gradient."""

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from gymnax.environments import spaces
from jaxtyping import Array, Float, Int, PyTree

import zoo
from agents.checks import check_kind, check_numbers
from agents.envs import make, needs_previous_action
from agents.evaluation import evaluate
from agents.gradients import RTRL, AbstractGradient, gradient_from_dict
from agents.losses import Sample, ppo_loss, sample_of
from agents.networks import ActorCritic
from agents.normalization import RunningStatistics
from agents.returns import running_return
from agents.rollout import Actor, Runner, across_seeds, episode_statistics
from agents.segments import to_segments, to_starts
from agents.update import staleness, update
from zoo.parts.checks import check_counts

Metrics = dict[str, Array]


class PPOState(eqx.Module):
    """Everything that training carries from one iteration to the next.

    **Attributes:**

    - `network`, `optimizer`: parameters and the optimizer's state.
    - `runner`: where acting stands.
    - `sensitivity`: of the memory's state in each environment, or `None`.
    - `observation_statistics`, `return_statistics`: for normalization, or `None`.
    - `discounted`: running discounted return per environment, for reward normalization.
    - `iteration`: iterations so far.
    - `key`: PRNG key.
    """

    network: ActorCritic
    optimizer: PyTree
    runner: Runner
    sensitivity: PyTree
    observation_statistics: RunningStatistics | None
    return_statistics: RunningStatistics | None
    discounted: Float[Array, " env"]
    iteration: Int[Array, ""]
    key: Array


@dataclass(frozen=True)
class PPO:
    """Proximal policy optimization of a recurrent actor-critic.

    A configuration with pure functions: `init` makes a state, `iterate` collects one rollout and
    learns from it, `evaluate` plays. All of them run under `jit`, and under
    `vmap(..., axis_name="seed")` over seeds.

    **Arguments:**

    - `env`: name of an environment, see `agents.envs.names()`.
    - `memory`: recipe of the memory, `zoo.spec(...)`.
    - `gradient`: `agents.RTRL(...)`, `agents.TBPTT(...)` or `agents.BPTT()`.
    - `env_options`: options of the environment.
    - `num_envs`: environments side by side.
    - `rollout_length`: steps per environment and iteration.
    - `epochs`, `minibatches`: passes over a rollout, and parts of it per pass.
    - `learning_rate`: of Adam; `anneal_steps` lets it fall linearly to zero over as many
      environment steps.
    - `discount`, `gae_lambda`: γ and λ.
    - `clip`: ε of the policy loss; `value_clip` of the value loss, `None` for none.
    - `entropy_coefficient`, `value_coefficient`: weights of those terms.
    - `max_grad_norm`: gradients are scaled down to this norm.
    - `encoder_size`: width of the layer in front of the memory; 0 for none. Without it RTRL has
      the exact gradient of the whole network; an encoder learns from the present segment only.
    - `head_size`: width of the heads' hidden layers.
    - `previous_action`, `previous_reward`: whether they are inputs; by default the action is one
      where the environment asks for it (`agents.envs.needs_previous_action`).
    - `normalize_observation`, `normalize_reward`: by running statistics.
    - `staleness_every`: every so many iterations, measure the cosine between the gradient with the
      carries as they were stored and with fresh ones; 0 for never.

    **Raises:**

    `ValueError` or `TypeError` naming the argument, its value and the rule.

    Source: Schulman et al. (2017), *Proximal Policy Optimization Algorithms*; with RTRL: Elelimy et
    al. (2024), *Real-Time Recurrent Learning using Trace Units in Reinforcement Learning*.
    """

    env: str
    memory: zoo.Spec
    gradient: AbstractGradient = field(default_factory=RTRL)
    env_options: dict[str, Any] = field(default_factory=dict)
    num_envs: int = 64
    rollout_length: int = 128
    epochs: int = 4
    minibatches: int = 4
    learning_rate: float = 1e-3
    anneal_steps: int | None = None
    discount: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    value_clip: float | None = None
    entropy_coefficient: float = 0.01
    value_coefficient: float = 0.5
    max_grad_norm: float = 0.5
    encoder_size: int = 64
    head_size: int = 64
    previous_action: bool | None = None
    previous_reward: bool = False
    normalize_observation: bool = False
    normalize_reward: bool = False
    staleness_every: int = 0

    def __post_init__(self):
        check_kind(zoo.Spec, "a recipe, such as zoo.spec('rtu')", memory=self.memory)
        choice = "a choice, such as agents.RTRL(segment=8)"
        check_kind(AbstractGradient, choice, gradient=self.gradient)
        given = lambda *names: {name: getattr(self, name) for name in names}  # noqa: E731
        check_counts(1, **given("num_envs", "rollout_length", "epochs", "minibatches", "head_size"))
        check_counts(0, **given("encoder_size", "staleness_every"))
        check_numbers("in [0, 1]", lambda x: 0 <= x <= 1, **given("discount", "gae_lambda"))
        positive = given("learning_rate", "clip", "max_grad_norm")
        check_numbers("above 0", lambda x: x > 0, **positive)
        optional = given("value_clip", "anneal_steps")
        check_numbers("above 0, or None", lambda x: x is None or x > 0, **optional)
        weights = given("entropy_coefficient", "value_coefficient")
        check_numbers("at least 0", lambda x: x >= 0, **weights)
        segments = self.num_envs * self.rollout_length // self._segment
        if segments % self.minibatches:
            raise ValueError(
                f"`minibatches` (={self.minibatches}) must divide the number of segments "
                f"(={segments} = num_envs * rollout_length / segment length)."
            )
        box = isinstance(self._observation_space, spaces.Box)  # makes the environment: errors now
        if self.normalize_observation and not box:
            raise ValueError(
                f"`normalize_observation` (=True) needs a Box observation; {self.env} has "
                f"{self._observation_space!r}."
            )

    @cached_property
    def environment(self) -> tuple[Any, Any]:
        """The environment and its parameters."""
        return make(self.env, **self.env_options)

    @property
    def steps_per_iteration(self) -> int:
        """Environment steps of one iteration."""
        return self.num_envs * self.rollout_length

    @property
    def _segment(self) -> int:
        return self.gradient.segment_length(self.rollout_length)

    @property
    def _observation_space(self):
        env, params = self.environment
        return env.observation_space(params)

    @cached_property
    def _optimizer(self) -> optax.GradientTransformation:
        rate = self.learning_rate
        if self.anneal_steps is not None:
            iterations = max(1, self.anneal_steps // self.steps_per_iteration)
            rate = optax.linear_schedule(rate, 0.0, iterations * self.epochs * self.minibatches)
        return optax.chain(
            optax.clip_by_global_norm(self.max_grad_norm), optax.adam(rate, eps=1e-5)
        )

    def network(self, *, key: Array) -> ActorCritic:
        """A fresh network.

        **Arguments:**

        - `key`: PRNG key.

        **Returns:**

        `ActorCritic`.
        """
        env, params = self.environment
        asked = self.previous_action
        return ActorCritic(
            env.observation_space(params),
            env.action_space(params),
            self.memory,
            encoder_size=self.encoder_size,
            head_size=self.head_size,
            previous_action=needs_previous_action(env) if asked is None else asked,
            previous_reward=self.previous_reward,
            key=key,
        )

    def init(self, *, key: Array) -> PPOState:
        """The state before the first iteration.

        **Arguments:**

        - `key`: PRNG key.

        **Returns:**

        `PPOState`.
        """
        network_key, env_key, key = jax.random.split(key, 3)
        network = self.network(key=network_key)
        env, params = self.environment
        sensitivity = self.gradient.init_sensitivity(network.memory)
        copies = lambda x: jnp.broadcast_to(x, (self.num_envs, *x.shape))  # noqa: E731
        shape = self._observation_space.shape
        return PPOState(
            network=network,
            optimizer=self._optimizer.init(eqx.filter(network, eqx.is_inexact_array)),
            runner=Actor(env, params).reset(network, self.num_envs, key=env_key),
            sensitivity=jax.tree.map(copies, sensitivity),
            observation_statistics=(
                RunningStatistics.init(shape) if self.normalize_observation else None
            ),
            return_statistics=RunningStatistics.init(()) if self.normalize_reward else None,
            discounted=jnp.zeros(self.num_envs),
            iteration=jnp.zeros((), jnp.int32),
            key=key,
        )

    def iterate(self, state: PPOState) -> tuple[PPOState, Metrics]:
        """Collect one rollout and learn from it.

        **Arguments:**

        - `state`: as `init` or the previous call returned it.

        **Returns:**

        `(state, metrics)`; metrics are scalars. `return` and `length` are means over the episodes
        that ended in this rollout, NaN if there were none; `ratio_error` is the largest |ρ - 1| of
        the very first minibatch.
        """
        key, rollout_key, update_key = jax.random.split(state.key, 3)
        actor = Actor(*self.environment, state.observation_statistics)
        runner, rollout, starts = actor.collect(
            state.network,
            state.runner,
            length=self.rollout_length,
            segment=self._segment,
            key=rollout_key,
        )
        start = (state.runner.memory, state.sensitivity)

        def fresh_carries(network):
            return self.gradient.carries(network, start, rollout.inputs, segment=self._segment)

        (_, sensitivity), rolled = fresh_carries(state.network)
        carries = to_starts((starts, rolled[1]))

        reward, discounted, return_statistics = self._scaled_reward(state, rollout)
        sample = sample_of(
            rollout,
            reward,
            actor.last_value(state.network, runner),
            discount=self.discount,
            gae_lambda=self.gae_lambda,
        )
        sample = to_segments(sample, self._segment)

        def refresh(network):
            return to_starts(fresh_carries(network)[1])

        network, optimizer, metrics = update(
            self._loss,
            self._optimizer,
            (state.network, state.optimizer),
            sample,
            carries,
            refresh=refresh if self.gradient.refreshes else None,
            epochs=self.epochs,
            minibatches=self.minibatches,
            key=update_key,
        )
        if self.staleness_every:
            metrics["staleness"] = jax.lax.cond(
                across_seeds(state.iteration) % self.staleness_every == 0,
                lambda: staleness(self._loss, network, sample, carries, refresh(network)),
                lambda: jnp.full((), jnp.nan, sample.value.dtype),
            )
        metrics |= episode_statistics(rollout)
        observation_statistics = state.observation_statistics
        if observation_statistics is not None:
            observation_statistics = observation_statistics.update(rollout.raw_observation)
        return (
            PPOState(
                network=network,
                optimizer=optimizer,
                runner=runner,
                sensitivity=sensitivity,
                observation_statistics=observation_statistics,
                return_statistics=return_statistics,
                discounted=discounted,
                iteration=state.iteration + 1,
                key=key,
            ),
            metrics,
        )

    def evaluate(
        self, state: PPOState, *, key: Array, episodes: int, greedy: bool = True
    ) -> Metrics:
        """Play whole episodes with the present network.

        **Arguments:**

        - `state`: a training state.
        - `key`: PRNG key.
        - `episodes`: number of episodes.
        - `greedy`: take the most probable action; otherwise sample.

        **Returns:**

        `evaluation_return` and `evaluation_length`, means over the episodes.
        """
        played = self.play(state, key=key, episodes=episodes, greedy=greedy)
        return {
            "evaluation_return": jnp.mean(played["returns"]),
            "evaluation_length": jnp.mean(played["lengths"].astype(jnp.float32)),
        }

    def play(self, state: PPOState, *, key: Array, episodes: int, greedy: bool = True) -> Metrics:
        """Play whole episodes with the present network, and keep what each brought.

        **Arguments:**

        - `state`, `key`, `episodes`, `greedy`: see `evaluate`.

        **Returns:**

        `returns` and `lengths`, each of shape `[episodes]`.
        """
        actor = Actor(*self.environment, state.observation_statistics)
        return evaluate(actor, state.network, episodes=episodes, greedy=greedy, key=key)

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain values, for JSON.

        **Returns:**

        A dictionary for `PPO.from_dict`.
        """
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return plain | {
            "memory": self.memory.to_dict(),
            "gradient": self.gradient.to_dict(),
            "env_options": dict(self.env_options),
        }

    @staticmethod
    def from_dict(settings: dict[str, Any]) -> "PPO":
        """The configuration that `to_dict` described.

        **Arguments:**

        - `settings`: a dictionary.

        **Returns:**

        `PPO`.
        """
        settings = dict(settings)
        memory, gradient = settings.pop("memory"), settings.pop("gradient")
        return PPO(memory=zoo.Spec(**memory), gradient=gradient_from_dict(gradient), **settings)

    def _scaled_reward(self, state, rollout):
        if state.return_statistics is None:
            return rollout.reward, state.discounted, None
        # Scaled by what was known before this rollout, so that one rollout has one scale.
        begin = rollout.inputs.begin
        discounted = running_return(rollout.reward, begin, state.discounted, discount=self.discount)
        statistics = state.return_statistics.update(discounted)
        return state.return_statistics.scale(rollout.reward), discounted[-1], statistics

    def _loss(self, network: ActorCritic, sample: Sample, carry: PyTree) -> tuple[Array, Metrics]:
        policy, value = self.gradient.outputs(network, carry, sample.inputs)
        return ppo_loss(
            policy,
            value,
            sample,
            clip=self.clip,
            value_clip=self.value_clip,
            value_coefficient=self.value_coefficient,
            entropy_coefficient=self.entropy_coefficient,
        )
