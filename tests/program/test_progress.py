"""What a search tells while it works, and how it is given up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from ortools.sat.python import cp_model

from builders import Planning, cluster, group, job, model, planning
from planner.domain.progress import UNKNOWN, Part, Reporter, Standing
from planner.errors import NoFeasiblePlan
from planner.pipeline.plan import make_plan
from planner.program import Search
from planner.program.solver import new_solver, run
from planner.units import NANOSECOND


class Ear(Reporter):
    """Keeps what it hears, with what was left at the time."""

    def __init__(self) -> None:
        """Begin with nothing heard."""
        self.heard: list[tuple[Standing, int]] = []

    def progress(self, standing: Standing) -> None:
        """Keep it."""
        self.heard.append((standing, standing.left() if standing.left else -1))

    @property
    def phases(self) -> list[str]:
        """The phases in the order in which they came."""
        return list(dict.fromkeys(standing.phase for standing, _ in self.heard))


class Given(Exception):
    """A search is given up."""


def asked(memory: float = 1e12, time_limit: float = 0.0) -> Planning:
    """Return a problem of two groups whose best plan takes some search."""
    groups = (group("a", per_node=2, memory=memory), group("b", per_node=2, speed=0.4, memory=memory))
    return planning(cluster(*groups), model(5, heads=2), job(4, time_limit=time_limit))


def made(problem: Planning, reporter: Reporter) -> None:
    make_plan(problem.cluster, problem.model, problem.job, reporter=reporter)


def test_phases_come_in_order() -> None:
    """Candidates, both searches and the replay, then the same for each reference."""
    ear = Ear()
    made(asked(), ear)
    own = [phase for phase in ear.phases if not phase.startswith("references")]
    assert own == ["candidates", "first plans", "equal replicas", "unlike replicas", "replay"]
    assert {phase.split(", ")[1] for phase in ear.phases if phase not in own} == {"a alone", "b alone", "whole layers"}


def test_a_search_for_what_would_help_is_told() -> None:
    """Where nothing fits, the searches for changes are a phase of their own."""
    ear = Ear()
    with pytest.raises(NoFeasiblePlan):
        made(asked(memory=1e6), ear)
    assert "what would help, candidates" in ear.phases


def test_what_is_left_falls_to_nothing() -> None:
    """Subproblems whose bound reaches the cutoff do not count: none is left at the end, though some are open."""
    problem, ear = asked(), Ear()
    search = Search(problem.space, 0.0, reporter=ear)
    result = search.run()
    left = [left for standing, left in ear.heard if standing.phase == "equal replicas"]
    assert min(left) > 0
    assert search.left() == 0
    assert result.open > 0


def test_bounds_rise_and_the_best_falls() -> None:
    """Best-first, the smallest bound never falls; it stays below the best plan, which only gets better."""
    ear, problem = Ear(), asked()
    result = Search(problem.space, 0.0, reporter=ear).run()
    searched = [standing for standing, _ in ear.heard if standing.left]
    bounds, bests = [one.bound for one in searched], [one.best for one in searched]
    assert bounds == sorted(bounds)
    assert bests == sorted(bests, reverse=True)
    assert all(one.bound <= one.best for one in searched)
    assert bests[-1] == pytest.approx(result.found[0].objective * NANOSECOND)


@pytest.mark.parametrize(("time_limit", "ends_in"), [(0.0, UNKNOWN), (500.0, 500.0)])
def test_only_a_time_limit_tells_when_a_search_ends(
    monkeypatch: pytest.MonkeyPatch, time_limit: float, ends_in: float
) -> None:
    """Without one the time left is not known; with one it is the rest of it, all of it where no time passes."""
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    ear, problem = Ear(), asked(time_limit=time_limit)
    Search(problem.space, 0.0, time_limit, ear).run()
    assert {standing.ends_in for standing, _ in ear.heard} == {ends_in}


@pytest.mark.parametrize(
    "phase",
    ["candidates", "first plans", "equal replicas", "unlike replicas", "replay", "references, a alone, candidates"],
)
def test_what_a_reporter_raises_gives_the_search_up(phase: str) -> None:
    """In every phase the error goes through all of it; no best plan so far is made of it, unlike of an interrupt."""

    class Impatient(Reporter):
        def progress(self, standing: Standing) -> None:
            if standing.phase == phase:
                raise Given

    with pytest.raises(Given):
        made(asked(), Impatient())


def test_a_part_is_named_after_the_whole() -> None:
    """Everything else is passed on as it is."""
    ear = Ear()
    Part(Part(ear, "references"), "a alone").progress(Standing(phase="replay", best=2.0))
    assert ear.heard == [(Standing(phase="references, a alone, replay", best=2.0), -1)]


def hard() -> cp_model.CpModel:
    """Return a program that takes CP-SAT very long: 40 pigeons in 39 holes."""
    program = cp_model.CpModel()
    sits = [[program.new_bool_var("") for _ in range(39)] for _ in range(40)]
    for pigeon in sits:
        program.add(sum(pigeon) >= 1)
    for hole in zip(*sits, strict=True):
        for first in range(40):
            for second in range(first):
                program.add_bool_or(~hole[first], ~hole[second])
    return program


def ticks(number: int, error: type[BaseException]) -> Callable[[], None]:
    """Return a function that raises the error when it is called for the `number`-th time."""

    def count() -> Iterator[None]:
        yield from (None for _ in range(number - 1))
        raise error

    counted = count()
    return lambda: next(counted)


@pytest.mark.parametrize("error", [Given, KeyboardInterrupt])
@pytest.mark.parametrize("number", [1, 3])
def test_a_solver_at_work_is_stopped(error: type[BaseException], number: int) -> None:
    """What is raised while it works ends it: the test ends, though the program would take it very long."""
    with pytest.raises(error):
        run(new_solver(1e9), hard(), ticks(number, error))


def test_a_solver_that_is_left_alone_ends() -> None:
    """Its status is returned as always."""
    program = cp_model.CpModel()
    program.maximize(program.new_int_var(0, 7, "x"))
    solver = new_solver(1.0)
    assert run(solver, program, ticks(10**9, Given)) == cp_model.OPTIMAL
    assert solver.objective_value == 7
