"""The three gradients: where they agree, how far they reach, and what they carry."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

import zoo
from agents import BPTT, RTRL, TBPTT
from agents.learning.credit import along, outputs
from agents.learning.segments import take, to_segments
from agents.networks import Inputs, Recurrent, actor_critic

TIME, ENVS = 12, 3


def network(memory="rtu", memory_options=None, **options):
    return actor_critic(
        spaces.Box(-1, 1, (3,)),
        spaces.Discrete(2),
        zoo.spec(memory, hidden=4, **(memory_options or {})),
        encoder_size=5,
        head_size=4,
        key=jax.random.key(1),
        **options,
    )


def tape():
    """Inputs `[time, env]` in which episodes begin anywhere, but not in the last environment."""
    draw = np.random.default_rng(0)
    shape = (TIME, ENVS)
    begin = (draw.random(shape) < 0.2) & (np.arange(ENVS) < ENVS - 1)
    assert begin.any()
    parts = draw.normal(size=(*shape, 3)), np.zeros(shape, int), draw.normal(size=shape), begin
    return Inputs(*map(jnp.asarray, parts))


def start(gradient, net):
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (ENVS, *x.shape)), gradient.begin(net))


def loss_gradient(gradient, net):
    """Of a fixed loss over the tape from a beginning, by the mechanism that algorithms use."""
    weight = jnp.asarray(np.random.default_rng(1).normal(size=(TIME, ENVS)))
    segment = gradient.segment_length(TIME)
    order_of_each = np.tile(np.arange(TIME // segment), (ENVS, 1))

    @eqx.filter_jit
    @eqx.filter_grad
    def of(net):
        starts = along(gradient, net, start(gradient, net), tape())[1]
        # As in a minibatch: some segments of every environment, in any order.
        order = jnp.asarray(np.random.default_rng(2).permuted(order_of_each, axis=1))
        inputs, weights = take(to_segments((tape(), weight), segment), order, axis=1)
        chosen = gradient.chosen(jax.lax.stop_gradient(starts), order)
        policy, value = outputs(gradient, net, chosen, inputs)
        return jnp.sum(weights * (value + policy.logits.sum(-1)) ** 2)

    return of(net)


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize("memory", ["rtu", "gru"])
def test_the_three_gradients_agree_where_they_must(memory):
    net = network(memory)
    of = functools.cache(lambda gradient: loss_gradient(gradient, net))

    def difference(gradient, part):
        whole, other = (jax.device_get(jax.tree.leaves(part(of(g)))) for g in (BPTT(), gradient))
        pairs = zip(whole, other, strict=True)
        return max(np.abs(a - b).max() / np.abs(a).max() for a, b in pairs)

    assert difference(TBPTT(TIME), lambda net: net) < 1e-9
    # In shorter segments the memory's own parameters, and the head's, still have the whole
    # gradient; the encoder learns from the present segment only.
    assert difference(RTRL(4), lambda net: (net.memory, net.head)) < 1e-9
    assert difference(RTRL(1), lambda net: net.memory) < 1e-9
    assert difference(RTRL(4), lambda net: net.features) > 1e-3
    assert difference(TBPTT(4), lambda net: net.memory) > 1e-3


@pytest.mark.slow
def test_they_agree_for_a_memory_without_a_state():
    net = network("frame_stack", {"window": 1})
    assert not any(x.size for x in jax.tree.leaves(net.memory.init_state()))
    whole, by_rtrl = (loss_gradient(choice, net) for choice in (BPTT(), RTRL(4)))
    for a, b in zip(*map(jax.tree.leaves, (whole, by_rtrl)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_they_agree_for_two_memories_side_by_side():
    net = network(separate=True)
    whole, by_rtrl = (loss_gradient(choice, net) for choice in (BPTT(), RTRL(4)))
    for part in ("actor", "critic"):
        one, other = (getattr(gradient, part) for gradient in (whole, by_rtrl))
        pairs = (jax.tree.leaves((g.memory, g.head)) for g in (one, other))
        for a, b in zip(*pairs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * float(jnp.abs(a).max()))
            assert jnp.abs(a).max() > 0


def test_a_truncated_gradient_reaches_back_to_the_start_of_its_segment():
    memory = zoo.get("rtu", hidden=4, inputs=2)
    net = Recurrent(lambda inputs: inputs.observation, memory, lambda y: y)
    no = jnp.zeros((TIME, 1), bool)

    def output(xs):
        inputs = Inputs(xs[:, None], no, no.astype(float), no)
        begin = jax.tree.map(lambda x: x[None], TBPTT(4).begin(net))
        starts = along(TBPTT(4), net, begin, inputs)[1]
        return outputs(TBPTT(4), net, starts, to_segments(inputs, 4)).sum(-1).T.ravel()

    xs = jax.random.normal(jax.random.key(0), (TIME, 2))
    reach = jnp.any(jax.jit(jax.jacrev(output))(xs) != 0, axis=-1)
    step = np.arange(TIME)
    same = step[:, None] // 4 == step[None] // 4
    np.testing.assert_array_equal(reach, same & (step[None] <= step[:, None]))


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [RTRL(4, refresh="epoch"), RTRL(4), TBPTT(4), BPTT()])
def test_refreshed_carries_are_those_collected_while_parameters_stand(gradient):
    net = network()
    segment = gradient.segment_length(TIME)

    @eqx.filter_jit
    def carries(net):
        state = jax.tree.map(lambda x: jnp.broadcast_to(x, (ENVS, *x.shape)), net.init_state())

        def act(state, inputs):
            return jax.vmap(net.step)(state, inputs)[0], state

        end, states = jax.lax.scan(act, state, tape())
        border = lambda x, e: jnp.concatenate([x[::segment], e[None]])  # noqa: E731
        memories = jax.tree.map(border, states, end)
        begin = start(gradient, net)
        last, starts = gradient.collected(net, begin, tape(), memories)
        again = gradient.refreshed(net, begin, tape(), starts, jnp.int32(1))
        first = gradient.refreshed(net, begin, tape(), starts, jnp.int32(0))
        return (last, along(gradient, net, begin, tape())[0]), starts, again, first

    ends, starts, again, first = carries(net)
    jax.tree.map(np.testing.assert_array_equal, starts, first)
    # The states that acted are rounded otherwise than those that are rolled.
    close = functools.partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-12)
    jax.tree.map(close, *ends)
    jax.tree.map(close, starts, again)
    if isinstance(gradient, RTRL):
        jax.tree.map(np.testing.assert_array_equal, starts[1], again[1])
    moved = eqx.tree_at(
        lambda n: n.features.encoder.linear.b, net, net.features.encoder.linear.b + 0.1
    )
    if isinstance(gradient, RTRL):
        changed = [
            gradient.refreshed(moved, start(gradient, net), tape(), starts, jnp.int32(number))[1]
            for number in range(2)
        ]
        jax.tree.map(np.testing.assert_array_equal, changed[0], starts[1])
        differ = any(
            bool(jnp.any(a != b))
            for a, b in zip(jax.tree.leaves(changed[1]), jax.tree.leaves(starts[1]), strict=True)
        )
        assert differ == (gradient.refresh == "epoch")


def test_one_segment_has_nothing_to_refresh():
    net, whole = network(), RTRL(None, refresh="epoch")
    begin = start(whole, net)
    starts = jax.jit(lambda begin: along(whole, net, begin, tape())[1])(begin)
    jax.tree.map(np.testing.assert_array_equal, starts, begin)
    assert whole.refreshed(net, begin, tape(), starts, jnp.int32(1)) is starts


def test_the_published_refresh_is_one_step_late():
    """With segments of a step, every carry is the one of the next step."""
    net, late = network(), RTRL(1, refresh="published")

    @eqx.filter_jit
    def carries(net):
        begin = start(late, net)
        starts = along(late, net, begin, tape())[1]
        return starts, [late.refreshed(net, begin, tape(), starts, jnp.int32(e)) for e in (0, 1)]

    starts, (first, second) = carries(net)
    jax.tree.map(np.testing.assert_array_equal, first, starts)
    by_env = lambda x: np.asarray(x).reshape(ENVS, TIME, *x.shape[1:])  # noqa: E731
    for correct, shifted in zip(jax.tree.leaves(starts), jax.tree.leaves(second), strict=True):
        correct, shifted = by_env(correct), by_env(shifted)
        np.testing.assert_allclose(shifted[:, :-1], correct[:, 1:], rtol=1e-12, atol=1e-14)
        assert (shifted != correct).any()


def test_bad_gradients_are_named(unhooked):
    for make, name in ((RTRL, "segment"), (TBPTT, "length")):
        with pytest.raises(ValueError, match=rf"`{name}` .* must be a whole number of at least 1"):
            make(0)
        with pytest.raises(TypeError, match=rf"`{name}` \(='8'\) must be a whole number"):
            make("8")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"`rollout_length` \(=18\) .* by `segment` \(=4\)"):
        RTRL(4).segment_length(18)
    with pytest.raises(ValueError, match=r"`refresh` \(='always'\) must be one of never, epoch"):
        RTRL(refresh="always")  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
def test_sensitivities_in_half_the_memory_give_nearly_the_same_gradient():
    net = network("rtu")
    full, half = (loss_gradient(RTRL(4, storage=storage), net) for storage in ("full", "bfloat16"))
    flat = lambda tree: np.concatenate([x.ravel() for x in jax.tree.leaves(tree)])  # noqa: E731
    difference = flat(half.memory) - flat(full.memory)
    assert 0 < np.linalg.norm(difference) < 2**-8 * np.linalg.norm(flat(full.memory))
    np.testing.assert_array_equal(flat(half.head), flat(full.head))

    carries, sizes = {}, {}
    for storage in ("full", "bfloat16"):
        gradient = RTRL(4, storage=storage)
        begun = start(gradient, net)
        carries[storage], starts = eqx.filter_jit(along)(gradient, net, begun, tape())
        sizes[storage] = sum(x.nbytes for x in jax.tree.leaves(starts[1]))
    # What is carried on to the next rollout is not rounded.
    jax.tree.map(np.testing.assert_array_equal, carries["full"], carries["bfloat16"])
    assert sizes["full"] == 4 * sizes["bfloat16"]  # of float64
