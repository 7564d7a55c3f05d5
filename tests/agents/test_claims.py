"""Claims: what an experiment's numbers say of them."""

import numpy as np
import pytest

from agents.experiments import Alike, Better, Ratio, Reaches


def spread(center, seeds=4):
    return center + 0.01 * np.arange(seeds)[:, None]


@pytest.mark.parametrize(
    ("claim", "one", "other", "outcome"),
    [
        (Better(text="", better="a", than="b"), spread(1.0), spread(0.0), "reproduced"),
        (Better(text="", better="a", than="b"), spread(0.0), spread(1.0), "not reproduced"),
        (Better(text="", better="a", than="b"), spread(1.0), spread(1.0), "not settled"),
        (Better(text="", better="a", than="b", by=2.0), spread(1.0), spread(0.0), "not reproduced"),
        (Better(text="", better="a", than="b", by=-0.1), spread(1.0), spread(1.0), "reproduced"),
        (Better(text="", better="a", than="b"), spread(1.0, 2), spread(0.0), "not settled"),
        (Alike(text="", one="a", other="b", within=0.1), spread(1.0), spread(1.0), "reproduced"),
        (
            Alike(text="", one="a", other="b", within=0.1),
            spread(1.0),
            spread(2.0),
            "not reproduced",
        ),
        (Alike(text="", one="a", other="b", within=0.1), spread(1.0), spread(0.9), "not settled"),
        (Ratio(text="", one="a", other="b", above=1.5), spread(2.0), spread(1.0), "reproduced"),
        (Ratio(text="", one="a", other="b", below=1.5), spread(2.0), spread(1.0), "not reproduced"),
        (Ratio(text="", one="a", other="b", above=1.0), spread(1.0), spread(1.0), "not settled"),
        (Ratio(text="", one="a", other="b", above=1.0), spread(1.0), spread(-0.015), "not settled"),
        (
            Ratio(text="", one="a", other="b", above=2.5),
            spread(-2.0),
            spread(-1.0),
            "not reproduced",
        ),
        (Reaches(text="", variant="a", value=0.9), spread(1.0), spread(0.0), "reproduced"),
        (Reaches(text="", variant="a", value=2.0), spread(1.0), spread(0.0), "not reproduced"),
    ],
)
def test_a_verdict_needs_the_whole_interval(claim, one, other, outcome):
    assert claim.judge({"a": one, "b": other}).outcome == outcome


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Better(text="", better="a", than="b", by="0.1"),
            r"`by` \(='0\.1'\) must be a num",
        ),
        (lambda: Better(text="", better="a", than="b", by=np.nan), r"`by` \(=nan\) must be a num"),
        (
            lambda: Alike(text="", one="a", other="b", within=-1.0),
            r"`within` \(=-1\.0\) must be ab",
        ),
        (lambda: Alike(text="", one="a", other=3, within=0.1), r"`other` \(=3\) must be a string"),
        (lambda: Reaches(text="", variant="a", value=None), r"`value` \(=None\) must be a number"),
        (lambda: Ratio(text="", one="a", other="b", above="1"), r"`above` \(='1'\) must be a num"),
        (lambda: Ratio(text="", one="a", other="b", below=np.nan), r"`below` \(=nan\) must be a n"),
        (
            lambda: Reaches(text="", variant="a", value=0.0, environments="long"),
            r"`environments` \(='long'\) must be a list, each of it a string",
        ),
    ],
)
def test_a_claim_that_cannot_be_judged_is_refused_when_it_is_made(make, message, unhooked):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
