"""What agents that learn from replay share: they act, keep it on a tape, and learn from samples."""

import abc
import warnings
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PyTree

import zoo
from agents.acting import AbstractBehavior, Transition, episode_statistics
from agents.acting.values import Recorded
from agents.agent import AbstractAgent, AgentState, Metrics, Report
from agents.envs import episode_steps, needs_previous_action
from agents.learning.tape import Sample, Tape, sample_episodes, sample_segments
from agents.mapped import for_all, mapped, side_by_side
from agents.networks import Inputs
from agents.networks.layers import check_normalized
from agents.settings import warn_unused
from zoo.annotations import Count, Positive, Share, Size
from zoo.parts.checks import check_key


class Step(eqx.Module):
    """What a tape keeps of a step; of a final observation, `inputs` alone mean something.

    **Attributes:**

    - `state`: the memory's, before the step, where samples start from it; `None` elsewhere.
    """

    inputs: Inputs
    action: Array
    reward: Float[Array, "..."]
    terminated: Bool[Array, "..."]
    state: PyTree


# The settings that each way of drawing needs; first, what divides a sample.
_NEEDED = {
    "tape": ("tapes",),
    "zero": ("segment",),
    "stored": ("segment",),
    "burn_in": ("segment", "burn_in"),
}


@dataclass(frozen=True)
class AbstractOffPolicy(AbstractAgent):
    """A learner from replay: settings that all of them have, and the loop that all of them run.

    An iteration acts for `rollout_length` steps in each environment, appends them to that
    environment's tape, and learns `updates` times from a sample of all tapes. A subclass says how
    it acts and how it learns from a sample.
    """

    _: KW_ONLY
    memory: zoo.Spec
    """Recipe of the memory, `zoo.spec(...)`."""
    num_envs: Count = 16
    """Environments side by side, for each seed."""
    rollout_length: Count = 32
    """Steps in each environment between updates."""
    updates: Count = 4
    """Updates after each rollout."""
    replay_steps: Count = 100_000
    """Steps that replay holds, of all environments together."""
    warm_up: Size = 5_000
    """Environment steps at random before the first update."""
    batch_steps: Count = 1000
    """Steps of a sample; of segments, their padding included."""
    sampling: Literal["tape", "zero", "stored", "burn_in"] = "tape"
    """What is drawn: whole episodes end to end, or segments from the zero state, from the state
    stored while acting, or from that state some steps before the segment, which rebuild it."""
    tapes: Count = 1
    """Tapes of equal length side by side, each of whole episodes, that make up a sample: one cuts
    fewest episodes short, several are faster where a loop reads them."""
    segment: Count = 50
    """Steps of a segment."""
    burn_in: Count = 20
    """Steps before a segment that rebuild its first state."""
    learning_rate: Positive = 3e-4
    """Of Adam."""
    rate_warm_up: Size = 0
    """Updates over which the learning rate rises linearly from zero."""
    max_grad_norm: Positive = 10.0
    """Gradients are scaled down to this norm."""
    discount: Share = 0.99
    """γ."""
    reward_scale: Positive = 1.0
    """What rewards are multiplied by before anything is learned from them."""
    target_kept: Share = 0.995
    """β: what target networks keep of themselves at each update."""
    encoder_size: Size = 64
    """Width of the layer in front of the memory; 0 for none."""
    head_size: Count = 64
    """Width of the hidden layers behind the memory."""
    head_layers: Size = 1
    """Hidden layers behind the memory."""
    layer_norm: bool = True
    """Whether the layers around the memory are normalized, without parameters."""
    previous_action: bool | None = None
    """Whether the previous action is an input; by default where the environment asks for it."""
    previous_reward: bool = False
    """Whether the previous reward is an input."""

    def check(self) -> None:
        if self._capacity < 2 * self.rollout_length:
            raise ValueError(
                f"`replay_steps` (={self.replay_steps}) must be at least twice "
                f"`num_envs` * `rollout_length` (={self.steps_per_iteration})."
            )
        longest = episode_steps(*self.environment)
        if self._capacity <= longest:
            warnings.warn(
                f"`replay_steps` (={self.replay_steps}) keep {self._capacity} steps of each of "
                f"`num_envs` (={self.num_envs}), and only whole episodes are learned from: of "
                f"{self.env_name}'s, which have up to {longest:,}, none that is longer.",
                stacklevel=2,
            )
        elif self._capacity < 2 * (longest + 1):  # a truncated one has a final observation besides
            warnings.warn(
                f"`replay_steps` (={self.replay_steps}) keep {self._capacity} steps of each of "
                f"`num_envs` (={self.num_envs}), less than two of {self.env_name}'s longest "
                f"episodes, of {longest:,}: while one is recorded no whole one may be left, and "
                "where no environment has one, updates are left out. From "
                f"{2 * (longest + 1) * self.num_envs:,} steps on one always stays.",
                stacklevel=2,
            )
        parts, *_ = needed = _NEEDED[self.sampling]
        if self.batch_steps % (count := getattr(self, parts)):
            raise ValueError(
                f"`batch_steps` (={self.batch_steps}) must be divisible by `{parts}` (={count})."
            )
        unused = [name for name in ("tapes", "segment", "burn_in") if name not in needed]
        warn_unused(self, f"`sampling={self.sampling!r}`", *unused)
        if not self.head_layers:
            warn_unused(self, "`head_layers=0`", "head_size")
        if self.layer_norm:
            check_normalized(self.encoder_size, self.head_size, self.head_layers)
        self._check_own()

    @abc.abstractmethod
    def _check_own(self) -> None:
        """Check the settings that a subclass adds; see `check`."""

    @property
    def steps_per_iteration(self) -> int:
        return self.num_envs * self.rollout_length

    @property
    def _capacity(self) -> int:
        return self.replay_steps // self.num_envs

    @property
    def _stores(self) -> bool:
        return self.sampling in ("stored", "burn_in")

    @property
    def _reads_action(self) -> bool:
        return needs_previous_action(self.environment[0], self.previous_action)

    @property
    def _burn_in(self) -> int:
        return self.burn_in if self.sampling == "burn_in" else 0

    @cached_property
    def optimizer(self) -> optax.GradientTransformation:
        """The optimizer of each network, of optax: a subclass may have another."""
        rate = self.learning_rate
        if self.rate_warm_up:
            rate = optax.linear_schedule(0.0, rate, self.rate_warm_up)
        return optax.chain(optax.clip_by_global_norm(self.max_grad_norm), optax.adam(rate))

    def _fresh(self, part: PyTree) -> PyTree:
        """Return the optimizer's state before the first step."""
        return self.optimizer.init(eqx.filter(part, eqx.is_inexact_array))

    def _descend(self, loss: Any, network: Any, optimizer: PyTree) -> tuple[Any, PyTree, Metrics]:
        """Take a step of the optimizer on `network -> (loss, metrics)`."""
        gradient, metrics = eqx.filter_grad(loss, has_aux=True)(network)
        updates, optimizer = self.optimizer.update(gradient, optimizer)
        return eqx.apply_updates(network, updates), optimizer, metrics

    @abc.abstractmethod
    def _new_learner(self, *, key: Array) -> Any:
        """Return what is learned, before the first update."""

    @abc.abstractmethod
    def _exploring(self, learner: Any, steps: Array) -> AbstractBehavior:
        """Return how to act for learning, after so many environment steps."""

    @abc.abstractmethod
    def _learned(self, learner: Any, sample: Sample, key: Array) -> tuple[Any, Metrics]:
        """Learn once, from a sample of `Step`s."""

    def init(self, *, key: Array) -> AgentState:
        check_key(key)
        learner_key, env_key, key = jax.random.split(key, 3)
        learner = self._new_learner(key=learner_key)
        behavior = Recorded(self._exploring(learner, jnp.int32(0)))
        actors = self.actor.reset(behavior, self.num_envs, key=env_key)

        def one_step() -> Step:
            _, taken = self.actor.step(behavior, actors, env_key)
            return jax.tree.map(lambda x: x[0], self._steps(taken, actors.memory))

        row = jax.eval_shape(one_step)
        tapes = jax.vmap(lambda _: Tape.init(row, self._capacity))(jnp.arange(self.num_envs))
        return AgentState(learner, actors, tapes, jnp.zeros((), jnp.int32), key)

    def _steps(self, rollout: Transition, states: PyTree) -> Step:
        return Step(
            rollout.inputs,
            rollout.action,
            self.reward_scale * rollout.reward,
            rollout.terminated,
            states if self._stores else None,
        )

    def iterate(self, state: AgentState) -> tuple[AgentState, Report]:
        """Act, keep it, and learn from what is kept.

        **Returns:**

        `(state, report)`.
        """
        key, act_key, learn_key = jax.random.split(state.key, 3)
        behavior = self._exploring(state.learner, self.steps_before(state.iteration))
        acting, rollout, memories = self.actor.collect(
            Recorded(behavior),
            state.actors,
            length=self.rollout_length,
            segment=1 if self._stores else None,
            key=act_key,
        )
        tapes = self._extended(state.replay, rollout, memories)
        learner, metrics, learned = self._updated(state.learner, tapes, state.iteration, learn_key)
        return (
            AgentState(learner, acting, tapes, state.iteration + 1, key),
            Report(metrics, {}, episode_statistics(rollout), learned),
        )

    def _extended(self, tapes: Tape, rollout: Transition, memories: PyTree) -> Tape:
        steps = self._steps(rollout, jax.tree.map(lambda x: x[:-1], memories))
        # A final observation has no action of its own: that of the step before stands in its place.
        finals = eqx.tree_at(lambda s: s.inputs, steps, rollout.last)
        by_env = lambda tree: jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), tree)  # noqa: E731
        flags = by_env((rollout.inputs.begin, rollout.terminated, rollout.truncated))

        def extend(tape, steps, finals, flags):
            begin, terminated, truncated = flags
            return tape.extend(
                steps, finals, begin=begin, terminated=terminated, truncated=truncated
            )

        return jax.vmap(extend)(tapes, by_env(steps), by_env(finals), flags)

    def _updated(
        self, learner: Any, tapes: Tape, iteration: Array, key: Array
    ) -> tuple[Any, Metrics, Bool[Array, ""]]:
        def learn(learner: Any, key: Array) -> tuple[Any, Metrics]:
            sample_key, learn_key = jax.random.split(key)
            return self._learned(learner, self._drawn(tapes, sample_key), learn_key)

        def learn_all(learner: Any) -> tuple[Any, Metrics]:
            learner, metrics = jax.lax.scan(learn, learner, jax.random.split(key, self.updates))
            return learner, jax.tree.map(jnp.mean, metrics)

        def wait(learner: Any) -> tuple[Any, Metrics]:
            _, metrics = jax.eval_shape(learn_all, learner)
            return learner, jax.tree.map(lambda x: jnp.full(x.shape, jnp.nan, x.dtype), metrics)

        def learn_of_episodes(learner: Any) -> tuple[Any, Metrics]:
            # A choice, because seeds side by side share conditions, and none may learn because
            # another has something to learn from.
            choose = lambda new, old: jnp.where(is_there, new, old)  # noqa: E731
            return jax.tree.map(choose, learn_all(learner), wait(learner))

        is_there = jnp.sum(tapes.episodes) > 0
        warm = self.steps_before(iteration) + self.steps_per_iteration >= self.warm_up
        learner, metrics = jax.lax.cond(for_all(warm), learn_of_episodes, wait, learner)
        return learner, metrics, warm & is_there

    def _drawn(self, tapes: Tape, key: Array) -> Sample:
        if self.sampling == "tape":
            length = self.batch_steps // self.tapes
            truncated = length // episode_steps(*self.environment)

            def draw(key: Array) -> Sample:
                return sample_episodes(tapes, length=length, truncated=truncated, key=key)

            drawn = jax.vmap(draw)(jax.random.split(key, self.tapes))
            return jax.tree.map(lambda x: jnp.moveaxis(x[:, :, 0], 0, 1), drawn)
        return sample_segments(
            tapes,
            length=self.segment,
            sequences=self.batch_steps // self.segment,
            burn_in=self._burn_in,
            key=key,
        )

    def _along(self, network: Any, sample: Sample) -> PyTree:
        """What a network gives along a sample's rows behind the burn-in, `[time, sequence]`."""
        inputs = sample.rows.inputs
        if self._stores:
            state = jax.tree.map(lambda x: x[0], sample.rows.state)
        else:
            state = side_by_side(network.init_state(), inputs.begin.shape[1])
        run = mapped(network.scan, (0, 1), (0, 1))
        if self._burn_in:
            before = jax.tree.map(lambda x: x[: self._burn_in], inputs)
            inputs = jax.tree.map(lambda x: x[self._burn_in :], inputs)
            state, _ = run(state, before)
        return run(jax.lax.stop_gradient(state), inputs)[1]

    def _rows(self, sample: Sample) -> Step:
        """The rows that may be learned from, without those of the burn-in and the last one."""
        rows = eqx.tree_at(lambda s: s.state, sample.rows, None)
        return jax.tree.map(lambda x: x[self._burn_in : -1], rows)
