"""Pipelines from both ends, M = P: an integer program proves that no order is shorter than the replay's."""

from __future__ import annotations

import pytest
from ortools.sat.python import cp_model

from pipelines import alike
from planner.schedules import BACKWARD, FORWARD, schedule

TIMES = {FORWARD: 1, BACKWARD: 2}
"""Of a pass of a chunk."""
LENGTHS = {"chimera": {2: 6, 4: 16, 6: 26, 8: 36}, "bitpipe": {2: 12, 4: 28, 6: 44, 8: 60}}
"""Forward passes of a chunk in a step of so many ranks: 3 v P + 2 (P - 2); Li and Hoefler 2021, Wu et al. 2024."""
CASES = [(name, stages) for name, lengths in LENGTHS.items() for stages in lengths]


def step(name: str, num_stages: int, limit: int) -> cp_model.CpModel:
    """Return the program of all orders that end within `limit`, whose objective is the length.

    Ranks run one pass at a time, passes of a micro-batch follow one another. Micro-batches of a direction are alike, so
    that each pass may take them in one order: where one overtakes another the two swap names, and nothing else changes.
    """
    listed = schedule(name)
    last = num_stages * listed.virtual_stages - 1
    program = cp_model.CpModel()
    end = program.new_int_var(0, limit, "end")
    lanes: list[list[cp_model.IntervalVar]] = [[] for _ in range(num_stages)]
    passes = [(FORWARD, stage) for stage in range(last + 1)] + [(BACKWARD, stage) for stage in range(last, -1, -1)]
    for direction in range(listed.directions):
        before: list[cp_model.IntVar] = []
        for microbatch in range(num_stages // 2):
            starts: list[cp_model.IntVar] = []
            for kind, stage in passes:
                start = program.new_int_var(0, limit, f"{kind}{microbatch} on {stage} of {direction}")
                rank = listed.rank(stage, direction, num_stages)
                lanes[rank].append(program.new_fixed_size_interval_var(start, TIMES[kind], ""))
                if starts:
                    program.add(start >= starts[-1] + TIMES[passes[len(starts) - 1][0]])
                if microbatch:
                    program.add(start >= before[len(starts)] + TIMES[kind])
                starts.append(start)
            program.add(end >= starts[-1] + TIMES[BACKWARD])
            before = starts
    for lane in lanes:
        program.add_no_overlap(lane)
    program.minimize(end)
    return program


def solved(name: str, num_stages: int, limit: int) -> tuple[str, float]:
    """Return status and length of the shortest order within `limit`; 0 if there is none."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(step(name, num_stages, limit))
    return solver.status_name(status), solver.objective_value if status == cp_model.OPTIMAL else 0.0


@pytest.mark.parametrize(("name", "stages"), CASES)
def test_no_order_is_shorter(name: str, stages: int) -> None:
    """The optimum is proved, is the closed form, and is what the replay of the schedule's own order takes."""
    length, chunks = LENGTHS[name][stages], schedule(name).virtual_stages
    assert length == 3 * chunks * stages + 2 * (stages - 2)
    assert solved(name, stages, 2 * length) == ("OPTIMAL", length)
    observed = alike(schedule(name), (stages, stages), (1.0 * chunks, 1.0 * chunks, 1.0 * chunks))
    assert observed.step_time == pytest.approx(length)


@pytest.mark.parametrize("name", LENGTHS)
def test_nothing_fits_into_less(name: str) -> None:
    """Beyond 8 ranks, too: one forward pass less has no order."""
    for stages in (10, 12, 16):
        length = 3 * schedule(name).virtual_stages * stages + 2 * (stages - 2)
        assert solved(name, stages, length - 1) == ("INFEASIBLE", 0.0)
