"""What tests of training share."""

import json

import jax
import pytest

from agents import training


@pytest.fixture(scope="module")
def shared_programs():
    """Runs of one configuration share their compiled programs; clear it to compile anew."""
    programs = {}
    compiled = training._Programs

    def share(algorithm, config):
        settings = {name: config[name] for name in ("seed", "seeds", "evaluation_episodes")}
        settings |= {"evaluate": bool(config["evaluate_every"]), "x64": jax.config.jax_enable_x64}
        key = type(algorithm), json.dumps([algorithm.to_dict(), settings], sort_keys=True)
        if key not in programs:
            programs[key] = compiled(algorithm, config)
        return programs[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "_Programs", share)
        yield programs
