"""Acting: environments and a recurrent network side by side, with episodes that begin and end."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from gymnax.environments import spaces
from jaxtyping import Array, Bool, Float, Int

from agents.networks import Inputs
from agents.normalization import RunningStatistics


class Runner(eqx.Module):
    """Where acting stands: everything has a leading axis over environments.

    **Attributes:**

    - `env_state`, `observation`: of the environments, before the next action.
    - `begin`: whether `observation` is the first of an episode.
    - `action`, `reward`: the previous ones.
    - `memory`: the memory's state, before `observation`.
    - `episode_return`, `episode_length`: of the running episodes so far.
    """

    env_state: Any
    observation: Any
    begin: Bool[Array, " env"]
    action: Array
    reward: Float[Array, " env"]
    memory: Any
    episode_return: Float[Array, " env"]
    episode_length: Int[Array, " env"]


class Step(eqx.Module):
    """One step of all environments; in a rollout every leaf has a leading time axis as well.

    **Attributes:**

    - `inputs`: what the network saw.
    - `raw_observation`: the observation before normalization; `None` where that is off.
    - `action`, `log_prob`, `value`: what the network answered.
    - `reward`, `terminated`, `truncated`: what came of it.
    - `final_value`: the value of the episode's last observation where the step truncated it, from
      the memory's state before the reset; zero elsewhere.
    - `episode_return`, `episode_length`: of the episode so far, this step included.
    """

    inputs: Inputs
    raw_observation: Any
    action: Array
    log_prob: Float[Array, "..."]
    value: Float[Array, "..."]
    reward: Float[Array, "..."]
    terminated: Bool[Array, "..."]
    truncated: Bool[Array, "..."]
    final_value: Float[Array, "..."]
    episode_return: Float[Array, "..."]
    episode_length: Int[Array, "..."]


def across_seeds(x: Array) -> Array:
    """The maximum of `x` over the seeds that train side by side under `vmap`.

    All seeds then take the same branch of a `cond`, which stays one: under `vmap` a condition that
    differs between seeds would run both branches every time.

    **Arguments:**

    - `x`: a scalar, a flag or a count.

    **Returns:**

    An integer scalar; that of the one seed outside `jax.vmap(..., axis_name="seed")`.
    """
    try:
        return jax.lax.pmax(x.astype(jnp.int32), "seed")
    except NameError:
        return x.astype(jnp.int32)


class Actor(eqx.Module):
    """An environment with a network that acts in it.

    **Attributes:**

    - `env`, `params`: a gymnax environment and its parameters.
    - `observation_statistics`: for normalizing observations, or `None`.
    """

    env: Any = eqx.field(static=True)
    params: Any
    observation_statistics: RunningStatistics | None = None

    def reset(self, network: Any, envs: int, *, key: Array) -> Runner:
        """Start `envs` environments.

        **Arguments:**

        - `network`: for the memory's initial state.
        - `envs`: number of environments.
        - `key`: PRNG key.

        **Returns:**

        A `Runner` at the beginning of an episode.
        """
        keys = jax.random.split(key, envs)
        observation, env_state = jax.vmap(self.env.reset, (0, None))(keys, self.params)
        space = self.env.action_space(self.params)
        action = jnp.zeros((envs, *space.shape), space.dtype)
        memory = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (envs, *x.shape)), network.memory.init_state()
        )
        return Runner(
            env_state=env_state,
            observation=observation,
            begin=jnp.ones(envs, bool),
            action=action,
            reward=jnp.zeros(envs, jnp.float32),
            memory=memory,
            episode_return=jnp.zeros(envs, jnp.float32),
            episode_length=jnp.zeros(envs, jnp.int32),
        )

    def inputs(self, runner: Runner) -> Inputs:
        """What the network sees next."""
        observation = self._normalize(runner.observation)
        return Inputs(observation, runner.action, runner.reward, runner.begin)

    def step(
        self, network: Any, runner: Runner, key: Array, *, greedy: bool = False
    ) -> tuple[Runner, Step]:
        """Take one action in every environment.

        **Arguments:**

        - `network`: chooses the actions; a module with `memory` and `step`, such as
          `agents.ActorCritic`.
        - `runner`: where acting stands.
        - `key`: PRNG key.
        - `greedy`: take the most probable action instead of a random one.

        **Returns:**

        `(runner, step)`.
        """
        action_key, env_key = jax.random.split(key)
        inputs = self.inputs(runner)
        memory, (policy, value) = jax.vmap(network.step)(runner.memory, inputs)
        action = policy.mode() if greedy else policy.sample(action_key)
        action = action.astype(runner.action.dtype)
        keys = jax.random.split(env_key, runner.begin.shape[0])
        observation, env_state, reward, terminated, truncated, info = jax.vmap(
            self.env.step, (0, 0, 0, None)
        )(keys, runner.env_state, self._legal(action), self.params)
        reward = reward.astype(jnp.float32)
        final_value = jax.lax.cond(
            across_seeds(jnp.any(truncated & ~terminated)) > 0,
            lambda: self._final_value(network, memory, info["final_observation"], action, reward),
            lambda: jnp.zeros_like(value),
        )
        done = terminated | truncated
        step = Step(
            inputs=inputs,
            raw_observation=runner.observation if self.observation_statistics else None,
            action=action,
            log_prob=policy.log_prob(action),
            value=value,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            final_value=final_value,
            episode_return=runner.episode_return + reward,
            episode_length=runner.episode_length + 1,
        )
        runner = Runner(
            env_state=env_state,
            observation=observation,
            begin=done,
            action=action,
            reward=reward,
            memory=memory,
            episode_return=jnp.where(done, 0, step.episode_return),
            episode_length=jnp.where(done, 0, step.episode_length),
        )
        return runner, step

    def collect(
        self, network: Any, runner: Runner, *, length: int, segment: int, key: Array
    ) -> tuple[Runner, Step, Any]:
        """Act for `length` steps.

        **Arguments:**

        - `network`: chooses the actions; a module with `memory` and `step`, such as
          `agents.ActorCritic`.
        - `runner`: where acting stands.
        - `length`: number of steps.
        - `segment`: steps per segment; a divisor of `length`.
        - `key`: PRNG key.

        **Returns:**

        `(runner, rollout, starts)`: the rollout with leading axes `[length, env]`, and the memory's
        states at the segments' starts, `[length / segment, env]`.
        """
        keys = jax.random.split(key, length).reshape(length // segment, segment)

        def one_segment(runner, keys):
            start = runner.memory
            runner, steps = jax.lax.scan(lambda r, k: self.step(network, r, k), runner, keys)
            return runner, (steps, start)

        runner, (steps, starts) = jax.lax.scan(one_segment, runner, keys)
        return runner, jax.tree.map(lambda x: x.reshape(length, *x.shape[2:]), steps), starts

    def last_value(self, network: Any, runner: Runner) -> Float[Array, " env"]:
        """The value of the observation at which acting stands."""
        _, (_, value) = jax.vmap(network.step)(runner.memory, self.inputs(runner))
        return value

    def _final_value(self, network, memory, observation, action, reward):
        inputs = Inputs(self._normalize(observation), action, reward, jnp.zeros(reward.shape, bool))
        _, (_, value) = jax.vmap(network.step)(memory, inputs)
        return value

    def _normalize(self, observation):
        if self.observation_statistics is None:
            return observation
        return jax.vmap(self.observation_statistics.normalize)(observation)

    def _legal(self, action):
        space = self.env.action_space(self.params)
        if isinstance(space, spaces.Box):
            clip = lambda a: jnp.clip(a, space.low, space.high)  # noqa: E731
            return jax.vmap(clip)(action)
        return action


def episode_statistics(rollout: Step) -> dict[str, Float[Array, ""]]:
    """Means over the episodes that ended in a rollout.

    **Arguments:**

    - `rollout`: leading axes `[time, env]`.

    **Returns:**

    `return`, `length` (NaN where no episode ended) and the number of `episodes`.
    """
    done = rollout.terminated | rollout.truncated
    count = jnp.sum(done)
    mean = lambda x: jnp.sum(jnp.where(done, x, 0)) / count  # noqa: E731
    return {
        "return": mean(rollout.episode_return),
        "length": mean(rollout.episode_length.astype(jnp.float32)),
        "episodes": count.astype(jnp.float32),
    }
