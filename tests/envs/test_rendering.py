"""Pictures: every environment has one, it shows the state, and films can be read back."""

import contextlib

import jax
import numpy as np
import pytest
from gymnax.environments import spaces
from gymnax.environments.environment import Environment
from PIL import Image

from agents import envs
from agents.envs import wrappers
from agents.envs.core.hidden import Hides
from agents.envs.registry import OWN
from agents.envs.rendering.canvas import BLUE
from tests.cases import slow_but
from tests.envs import fake_packages
from tests.envs.cases import CASES
from tests.envs.test_conformance import recorded

STEPS = 8
HEADER = 46  # pixels of the title, which has the time

# brax draws itself. Of gymnax, heavy rows have pictures of their own below.
DRAWN = [case for case in CASES if not case.name.startswith("brax/") and not case.heavy]


def _kind(case):
    """What is drawn alike: levels of one game are."""
    env = envs.make(case.name, **case.options)[0]
    return case.name if isinstance(env, envs.GymnaxEnvironment) else type(env)


FAMILIES = {_kind(case): case for case in reversed(DRAWN)}
QUICK = ("CartPole-v1", "HigherLower", "MineSweeper")


def walked(case):
    """The environment, its parameters, and observation and state at first and after each step.

    In the rollout of the conformance tests, whose program is there already.
    """
    r = recorded(case)
    first, later = (jax.tree.map(lambda x: x[0], x) for x in (r.first, (r.observation, r.state)))
    return r.env, r.params, first, later


def check_picture(picture):
    assert picture.ndim == 3 and picture.shape[2] == 3
    assert picture.dtype == np.uint8
    body = picture[HEADER:].reshape(-1, 3)
    assert (body != body[0]).any()


def check_render(env, params, state, observation):
    picture = envs.render(env, params, state, observation=observation)
    check_picture(picture)
    check_picture(envs.render(env, params, state))
    again = envs.render(env, params, state, observation=observation)
    np.testing.assert_array_equal(picture, again)
    return picture


@pytest.mark.quick_rows(1)
@pytest.mark.parametrize(
    "case", slow_but(QUICK, FAMILIES.values(), lambda case: case.name), ids=str
)
def test_every_environment_has_pictures_that_show_its_state(case):
    env, params, (observation, state), later = walked(case)
    fake = case.name.startswith("fake/")
    # Craftax imports what draws it, and its textures, when it draws.
    with fake_packages.installed() if fake else contextlib.nullcontext():
        first = check_render(env, params, state, observation)
        pictures = []
        for t in range(STEPS):
            observation, state = jax.tree.map(lambda x, t=t: x[t], later)
            pictures.append(envs.render(env, params, state, observation=observation))
        assert pictures[-1].shape == first.shape
        check_render(env, params, state, observation)
    differs = [(first[HEADER:] != picture[HEADER:]).any() for picture in pictures]
    assert any(differs) or case.name == "SimpleBandit-bsuite"  # which always shows a 1


@pytest.mark.slow
def test_hidden_truth_is_drawn():
    env, params = envs.make("MineSweeperEasy")
    state = env.reset(jax.random.key(0), params)[1]
    moved = state.replace(mines=state.mines[::-1])
    assert (state.mines != moved.mines).any()
    assert (envs.render(env, params, state) != envs.render(env, params, moved)).any()


@pytest.mark.slow
def test_scale_is_pixels_per_cell():
    env, params = envs.make("BattleshipEasy")
    state = jax.jit(env.reset)(jax.random.key(0), params)[1]
    small, large = (envs.render(env, params, state, scale=scale) for scale in (10, 20))
    assert small.shape == (99, 80, 3)
    assert large.shape == (198, 160, 3)


def test_pictures_that_are_too_small():
    env, params = envs.make("gravity")
    state = env.reset(jax.random.key(0), params)[1]
    with pytest.raises(ValueError, match=r"`scale` \(=3\) must be a whole number of at least 4"):
        envs.render(env, params, state, scale=3)


def test_only_environments_are_drawn():
    with pytest.raises(TypeError, match=r"`env` \(='gravity'\) must be a gymnax environment"):
        envs.render("gravity", None, None)


@pytest.mark.slow
def test_a_wrapper_shows_what_is_inside():
    env, params = envs.make("RepeatFirst")
    observation, state = env.reset(jax.random.key(0), params)
    wrapped = wrappers.Log(env)
    seen, wrapped_state = wrapped.reset(jax.random.key(0), params)
    expected = envs.render(env, params, state, observation=observation)
    picture = envs.render(wrapped, params, wrapped_state, observation=seen)
    np.testing.assert_array_equal(picture, expected)
    # A vector is not what the game shows: its card is not known, and lies face down.
    coded = wrappers.OneHot(env)
    seen, coded_state = coded.reset(jax.random.key(0), params)
    picture = envs.render(coded, params, coded_state, observation=seen)
    np.testing.assert_array_equal(picture, envs.render(env, params, state))
    assert (picture != expected).any()


TWINS = {  # one of each class
    kind: name
    for name, (kind, _) in OWN.items()
    if isinstance(kind, type) and issubclass(kind, Hides)
}
QUICK_TWINS = ("RepeatFirstHard", "PositionOnlyPendulumHard")


@pytest.mark.parametrize("name", slow_but(QUICK_TWINS, TWINS.values()))
def test_a_twin_is_drawn_as_what_hides_something(name):
    env, params = envs.make(name)
    twin, _ = envs.make(name, observability="full")
    observation, state = jax.jit(twin.reset)(jax.random.key(0), params)
    expected = envs.render(env, params, state, observation=observation[0])
    picture = envs.render(twin, params, state, observation=observation)
    np.testing.assert_array_equal(picture[HEADER:], expected[HEADER:])
    logged = wrappers.Log(twin)
    _, logged_state = jax.jit(logged.reset)(jax.random.key(0), params)
    picture = envs.render(logged, params, logged_state, observation=observation)
    np.testing.assert_array_equal(picture[HEADER:], expected[HEADER:])


class Shown(Environment):
    """Shows what it is given."""

    def __init__(self, space):
        super().__init__()
        self.space = space

    def observation_space(self, params):
        return self.space


def test_other_environments_show_bars_of_several_parts():
    parts = spaces.Tuple((spaces.Discrete(3), spaces.Box(0, 1, (2, 4))))
    seen = (np.int32(2), np.linspace(0, 1, 8).reshape(2, 4))
    check_picture(envs.render(Shown(parts), None, None, observation=seen))


def test_an_image_may_be_black():
    env = Shown(spaces.Box(0, 255, (60, 80, 3)))
    black, gray = (
        envs.render(env, None, None, observation=np.full((60, 80, 3), shade, np.uint8))
        for shade in (0, 99)
    )
    assert black.shape == gray.shape and (black[HEADER:, 60] == 0).all()
    assert (gray[HEADER:, 60] == 99).all()
    # Numbers up to 1, or without a bound, are planes.
    for high in (1, np.inf, np.finfo(np.float32).max):
        planes = Shown(spaces.Box(0, high, (6, 8, 3)))
        picture = envs.render(planes, None, None, observation=np.full((6, 8, 3), 99.0))
        assert picture.shape == (6 * 24 + HEADER, 8 * 24, 3)


@pytest.mark.parametrize("shape", [(84, 80), (84, 80, 1)])
def test_a_gray_image_has_a_pixel_for_a_number(shape):
    frame = np.arange(84 * 80).reshape(shape) % 256
    picture = envs.render(Shown(spaces.Box(0, 255, shape)), None, None, observation=frame)
    assert len(picture) == 84 + HEADER
    left = (picture.shape[1] - 80) // 2
    for color in range(3):
        shown = picture[HEADER:, left : left + 80, color]
        np.testing.assert_array_equal(shown, frame.reshape(84, 80))
    board = Shown(spaces.Box(0, 3, (6, 8)))  # its numbers are no shades
    picture = envs.render(board, None, None, observation=np.ones((6, 8)))
    assert picture.shape == (6 * 24 + HEADER, 8 * 24, 3)


@pytest.mark.slow
def test_a_planes_color_is_its_own():
    env, params = envs.make("Breakout-MinAtar", mask="top")
    observation, state = jax.jit(env.reset)(jax.random.key(0), params)
    masked = envs.render(env, params, state, observation=observation)
    whole = envs.render(env, params, state)
    assert masked.shape == whole.shape
    half = HEADER + 5 * 24
    assert (masked[HEADER:half] != whole[HEADER:half]).any()  # the bricks
    np.testing.assert_array_equal(masked[half:], whole[half:])


@pytest.mark.parametrize(
    ("name", "place", "places"),
    [
        ("t_maze", "position", (0, 1, 19, 20, 1500, 2985, 3000)),
        ("mystery_path", "column", (0, 1, 19, 20, 1500, 2985, 3000)),
    ],
)
def test_of_a_long_way_the_part_around_the_agent_is_drawn(name, place, places):
    env, params = envs.make(name, length=3000)
    observation, state = env.reset(jax.random.key(0), params)
    shapes = set()
    for at in places:
        state = state.replace(**{place: np.int32(at)})
        picture = envs.render(env, params, state, observation=observation)
        shapes.add(picture.shape)
        blue = (picture == BLUE).all(-1).any(0).nonzero()[0]
        assert blue.size > 5
        # In the middle of the way it is in the middle of the picture.
        if at == 1500:
            assert abs(blue.mean() / picture.shape[1] - 0.5) < 0.05
    (shape,) = shapes
    assert shape[1] < 50 * shape[0]


def _frames(count, size=(6, 8)):
    return [np.full((*size, 3), 20 * number, np.uint8) for number in range(count)]


def test_a_gif_reads_back(tmp_path):
    path = tmp_path / "film.gif"
    envs.save_gif(_frames(5), path, fps=10)
    with Image.open(path) as film:
        assert film.n_frames == 5
        assert film.size == (8, 6)
        for number in range(5):
            film.seek(number)
            assert film.info["duration"] == 100
            np.testing.assert_allclose(np.asarray(film.convert("RGB")), 20 * number, atol=2)
    assert [file.name for file in tmp_path.iterdir()] == ["film.gif"]


@pytest.mark.parametrize(
    ("frames", "fps", "message"),
    [
        ([], 5, "`frames` must hold at least one frame"),
        (_frames(2), 0, r"`fps` \(=0\) must be from 0.1 to 50"),
        (_frames(2), 51, r"`fps` \(=51\) must be from 0.1 to 50"),
        (
            [*_frames(2), *_frames(1, (7, 8))],
            5,
            r"`frames\[2\]` \(of shape \(7, 8, 3\)\) must have the first one's shape",
        ),
        ([np.zeros((6, 8, 3))], 5, r"type float64\) must have shape \[height, width, 3\] and"),
        (
            [*_frames(1), *[_frames(2)[1]] * 66],
            0.1,
            r"`fps` \(=0.1\) must be higher: 66 equal frames in a row are .* at most 655 s",
        ),
        (
            [np.broadcast_to(np.uint8(0), (1, 2**16, 3))],
            5,
            r"`frames` \(of shape \(1, 65536, 3\)\) must have sides of at most 65535 pixels",
        ),
        (
            # Of 1000/28 milliseconds, which are rounded up to 36.
            [*_frames(1, (1, 1)), *[_frames(2, (1, 1))[1]] * 18_339],
            28,
            r"`fps` \(=28\) must be higher: 18339 equal frames",
        ),
        ([np.zeros((6, 8), np.uint8)], 5, r"shape \(6, 8\) and type uint8\) must have shape"),
    ],
)
def test_what_is_no_film_leaves_the_old_one(frames, fps, message, tmp_path):
    path = tmp_path / "film.gif"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match=message):
        envs.save_gif(frames, path, fps=fps)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["film.gif"]


def test_a_film_is_written_to_a_folder_that_is_there(tmp_path):
    path = tmp_path / "none" / "film.gif"
    with pytest.raises(FileNotFoundError, match=r"`path` \(='.*film\.gif'\) must be in a folder"):
        envs.save_gif([np.zeros((6, 8, 3), np.uint8)], path)


def test_a_film_that_cannot_be_finished_leaves_the_old_one(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise OSError("the disk is full")

    path = tmp_path / "film.gif"
    path.write_bytes(b"old")
    monkeypatch.setattr(Image.Image, "save", fails)
    with pytest.raises(OSError, match="the disk is full"):
        envs.save_gif(_frames(2), path)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["film.gif"]


def test_only_brax_has_a_page():
    env, params = envs.make("gravity")
    with pytest.raises(TypeError, match="must be an environment of brax"):
        envs.save_brax_html(env, [env.reset(jax.random.key(0), params)[1]], "x.html")
