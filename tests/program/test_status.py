"""Every way in which a search can end."""

from __future__ import annotations

import numpy as np
import pytest
from exhaustive import Exhaustive

import planner.program.search as searching
from builders import Planning, cluster, group, job, model, planning
from planner.domain.progress import Reporter, Standing
from planner.errors import NoFeasiblePlan, NoPlanInTime
from planner.pipeline.plan import search
from planner.program import Search
from planner.units import NANOSECOND


def asked(*texts: str, memory: float = 1e12, time_limit: float = 0.0) -> Planning:
    """Return a problem of two groups whose best plan takes some search."""
    groups = (group("a", per_node=2, memory=memory), group("b", per_node=2, speed=0.4, memory=memory))
    return planning(cluster(*groups), model(5, heads=2), job(4, *texts, time_limit=time_limit))


def run(problem: Planning, reporter: Reporter | None = None) -> searching.Result:
    return search(problem.cluster, problem.model, problem.job, problem.framework, problem.target, reporter)[1]


class Clock:
    """Time that passes only when told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put this clock in place of the real one."""
        self.now = 0.0
        monkeypatch.setattr(searching.time, "monotonic", lambda: self.now)


class Watch(Reporter):
    """Does something at the first progress of the search proper."""

    def __init__(self, react: object) -> None:
        """React by calling `react`."""
        self.react, self.heard = react, 0

    def progress(self, standing: Standing) -> None:
        """Count, and react once there is a plan."""
        if standing.left:
            self.heard += 1
            assert np.isfinite(standing.best)
            self.react()  # type: ignore[operator]


def interrupt() -> None:
    raise KeyboardInterrupt


def test_optimal() -> None:
    """Searched to the end, nothing stopped the search, and bound and plan meet."""
    result = run(asked())
    assert result.stopped == ""
    assert result.lower_bound == pytest.approx(result.found[0].objective, rel=1e-6)


def test_nothing_fits() -> None:
    """Too little memory for any plan is proved, and counted as the reason."""
    with pytest.raises(NoFeasiblePlan, match="needs more memory than there is") as raised:
        run(asked(memory=1e6))
    assert any("memory" in reason for reason in raised.value.rejections)
    assert all(count > 0 for count in raised.value.rejections.values())


def test_nothing_satisfies_the_constraints() -> None:
    """Constraints that contradict one another are told from too little memory."""
    with pytest.raises(NoFeasiblePlan, match="no numbers of replicas, stages and devices satisfy"):
        run(asked("micro_batch = 3"))


def test_no_degree_is_legal() -> None:
    """Without a single choice there is no plan; the refused degrees are named."""
    with pytest.raises(NoFeasiblePlan) as raised:
        run(asked("tp >= 3"))
    assert any("tp" in reason for reason in raised.value.rejections)


def test_time_limit_with_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of time with a plan: it is returned, and the bound is below every plan."""
    clock = Clock(monkeypatch)

    def wait() -> None:
        clock.now = 10.0

    problem = asked(time_limit=5.0)
    watch = Watch(wait)
    result = run(problem, watch)
    assert result.stopped == "time_limit"
    assert watch.heard == 1
    assert result.found
    assert result.lower_bound <= Exhaustive(problem).optimum / NANOSECOND + 50
    assert result.seconds == 10.0


def test_time_limit_without_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of time without a plan: that is no proof that there is none, and the bound is said."""
    clock = Clock(monkeypatch)
    monkeypatch.setattr(Search, "meet", lambda *_: setattr(clock, "now", 10.0))
    problem = asked(time_limit=5.0)
    with pytest.raises(NoPlanInTime, match="no plan was found in 5 s") as raised:
        run(problem)
    assert 0 < raised.value.lower_bound <= Exhaustive(problem).optimum


def test_interrupted_with_a_plan() -> None:
    """Interrupted at the first progress: the plan is kept, and the bounds still hold."""
    problem = asked()
    result = run(problem, Watch(interrupt))
    assert result.stopped == "interrupted"
    assert result.found
    optimum = Exhaustive(problem).optimum / NANOSECOND
    assert 0 < result.lower_bound <= optimum + 50
    assert result.replay_bound <= optimum + 50


def test_interrupted_without_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted before the first plan, the interrupt goes on."""
    monkeypatch.setattr(Search, "meet", lambda *_: interrupt())
    with pytest.raises(KeyboardInterrupt):
        run(asked())


@pytest.mark.parametrize("name", ["price", "bound", "tighten", "solve"])
@pytest.mark.parametrize("when", [1, 2, 5, 9])
def test_bounds_hold_wherever_an_interrupt_falls(monkeypatch: pytest.MonkeyPatch, name: str, when: int) -> None:
    """An interrupt before or after any refinement leaves bounds that are proved."""
    problem = asked()
    made = Search(problem.space, 0.0)
    refine, calls = getattr(made._refiner, name), []

    def interrupted(*args: object, **rest: object) -> object:
        calls.append(1)
        if len(calls) == when:
            raise KeyboardInterrupt
        children = list(refine(*args, **rest))
        if len(calls) == when - 1 and when % 2:
            raise KeyboardInterrupt
        return iter(children)

    monkeypatch.setattr(made._refiner, name, interrupted)
    result = made.run()
    assert result.stopped == ("interrupted" if len(calls) >= max(1, when - when % 2) else "")
    optimum = Exhaustive(problem).optimum / NANOSECOND
    assert result.lower_bound <= optimum + 50
    assert result.replay_bound <= optimum + 50


def test_the_strictest_of_several_limits_holds() -> None:
    """Of two lower limits on devices the larger one counts, in either order."""
    for texts in (("devices >= 3", "devices >= 2"), ("devices >= 2", "devices >= 3")):
        assert asked(*texts).space.least.max() == 3
