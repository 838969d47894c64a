"""What is written for torchtitan says the plan, reads back as the plan, and breaks none of the rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import titan_plans
from planner.checks import refusals
from planner.configurations.engine import broken
from planner.configurations.forms.torchtitan import TORCHTITAN as FORM
from planner.domain.configuration import ERROR, Setting, Spot
from planner.errors import CannotExpress
from planner.export import Exporter
from planner.export.frameworks.torchtitan import TORCHTITAN, TORCHTITAN_TOML
from planner.specs.catalog import framework
from planner.specs.plan import PlanFile

BOTH = (TORCHTITAN, TORCHTITAN_TOML)


def written(exporter: Exporter, file: PlanFile) -> str | None:
    """Return the printed part, None where it is refused."""
    if refusals(file.plan, framework("torchtitan"), file.cluster):
        return None
    try:
        return exporter.parts(file)[0].text
    except CannotExpress:
        return None


@pytest.mark.parametrize("exporter", BOTH, ids=lambda one: one.name)
@given(seed=st.integers(0, 10**6))
def test_what_is_written_reads_back_as_the_plan(exporter: Exporter, seed: int) -> None:
    """Layout, world, model and precision come back, and no rule has a word to say against it."""
    file = titan_plans.drawn(seed)
    text = written(exporter, file)
    if text is None:
        return
    name = exporter.parts(file)[0].name
    assert FORM.recognises(text, name)
    found = FORM.read(text, name)
    found = replace(found, world=Setting(name="ranks", value=file.plan.num_devices, spot=Spot("launcher")))
    assert [one for one in broken(FORM, found) if one.severity == ERROR] == []
    assert found.notes == ()
    setup = FORM.setup(found)
    assert replace(setup.layout, ep=1, etp=None) == titan_plans.layout(file)
    assert setup.world == file.plan.num_devices
    assert setup.precision == "bf16"
    assert setup.model is not None
    assert setup.model["num_hidden_layers"] == file.model.num_layers
