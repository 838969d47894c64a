"""What is wrong: problems with their places, and why there is no plan."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.errors import NoFeasiblePlan, NoPlanInTime, Problem, Repair, Shortage
from planner.report.figures import count, gib, plural, seconds
from planner.report.layout import WIDTH, bullet, heading, labelled, worded

_NUMBERED = re.compile(r"(.*\[)(\d+)(\].*)")
"""A place with a number, as in ``stages[3].group``."""
REASONS = 8
"""Reasons of rejections that are shown."""


def problem_lines(problems: Sequence[Problem], width: int = WIDTH) -> list[str]:
    """Return one item for each problem; what is wrong in the same way of several stages is one."""
    items = [
        f"{Problem(f'{before}{spans(numbers)}{after}' if numbers else before, message)}{f' [{code}]' * bool(code)}"
        for (before, after, message, code), numbers in _alike(problems).items()
    ]
    return [line for item in items for line in bullet(item, width)]


def problem_count(problems: Sequence[Problem], noun: str = "problem") -> str:
    """Return how many problems there are, and how many items `problem_lines` makes of them where these are fewer."""
    number, kinds = len({*problems}), len(_alike(problems))
    return plural(number, noun) + (f" of {plural(kinds, 'kind')}" if kinds < number else "")


def _alike(problems: Sequence[Problem]) -> dict[tuple[str, str, str, str], list[int]]:
    """Return (place before a number, behind it, message, code) -> the numbers of the places that have that problem."""
    alike: dict[tuple[str, str, str, str], list[int]] = {}
    for problem in dict.fromkeys(problems):
        match = _NUMBERED.fullmatch(problem.place)
        before, after = (match[1], match[3]) if match else (problem.place, "")
        numbers = alike.setdefault((before, after, problem.message, problem.code), [])
        numbers += [int(match[2])] if match else []
    return alike


def spans(numbers: Sequence[int]) -> str:
    """Return ascending numbers, neighbours joined, ``0-2, 7``."""
    parts: list[str] = []
    start = previous = numbers[0]
    for number in [*numbers[1:], -1]:
        if number != previous + 1:
            parts.append(f"{start}-{previous}" if previous > start else str(start))
            start = number
        previous = number
    return ", ".join(parts)


def problems_text(problems: Sequence[Problem]) -> str:
    """Return the problems of an input, one a line, as editors and scripts read them."""
    lines = [f"planner: {problem}" for problem in dict.fromkeys(problems)]
    if len(lines) > 1:
        lines.append(f"planner: {plural(len(lines), 'problem')}")
    return "\n".join(lines) + "\n"


def check_text(
    source: str,
    problems: Sequence[Problem],
    notes: Sequence[str],
    summary: Sequence[str] = (),
    width: int = WIDTH,
    *,
    warnings: Sequence[Problem] = (),
    more: Sequence[str] = (),
) -> str:
    """Return what is to be said of one file.

    Args:
        source: where it stands.
        problems: what is wrong with it.
        notes: what is good to know.
        summary: what the plan is, a text for each line.
        width: [columns] of the page.
        warnings: what works, but hurts.
        more: lines behind all that, such as repairs.
    """
    answer = problem_count(problems) if problems else "good"
    answer += f", {problem_count(warnings, 'warning')}" if warnings else ""
    marked = [replace(one, message=f"warning: {one.message}") for one in warnings]
    lines = [f"{source}: {answer}", *problem_lines(problems, width), *problem_lines(marked, width)]
    lines += [line for text in summary for line in labelled("", text, width, indent=2)]
    lines += [line for note in notes for line in labelled("  note:", note, width)]
    lines += [f"  {line}" for line in more]
    return "\n".join(lines) + "\n"


def no_plan_text(error: NoFeasiblePlan, width: int = WIDTH) -> str:
    """Return why no plan exists: which limit binds, by how much, and what would help."""
    lines = [f"planner: no feasible plan: {error}"]
    if error.shortage is not None:
        lines += labelled("misses", _shortage(error.shortage), width)
    if error.repairs:
        lines += repair_lines(error.repairs, width)
    lines += rejection_lines(error.rejections, width)
    return "\n".join(lines) + "\n"


def repair_lines(repairs: Sequence[Repair], width: int = WIDTH) -> list[str]:
    """Return changes that would help, one a row, in their order."""
    head = ["change", "step", "slower", "effect"]
    rows = [[repair.change, _step(repair), _slower(repair), repair.effect] for repair in repairs]
    shown = worded(head, rows, width, right="step,slower", indent=2)
    rough = " (about: of a good plan, not of the best)" if any(repair.is_rough for repair in repairs) else ""
    return [*heading(f"what would help, cheapest first{rough}", width), *shown]


def no_time_text(error: NoPlanInTime) -> str:
    """Return that the time ran out, and what was proved until then."""
    bound = f"; none can be faster than {seconds(error.lower_bound)}" if error.lower_bound > 0 else ""
    return f"planner: no plan was found in time: {error}{bound}\n"


def _shortage(shortage: Shortage) -> str:
    text = (
        f"{gib(shortage.missing_bytes)} GiB in stage {shortage.stage} of {shortage.num_stages} on {shortage.group}: "
        f"it needs {gib(shortage.needed_bytes)} GiB of a device, {gib(shortage.limit_bytes)} GiB may be used"
    )
    return f"{text} ({shortage.description})" if shortage.description else text


def _step(repair: Repair) -> str:
    about = "about " if repair.is_rough else ""
    return f"{about}{seconds(repair.step_time)}" if repair.step_time else ""


def _slower(repair: Repair) -> str:
    return "" if repair.slower_by is None else f"{repair.slower_by:+.1%}"


def rejection_lines(rejections: Mapping[str, int], width: int = WIDTH) -> list[str]:
    """Return why candidates were rejected, the most frequent reason first."""
    ordered = sorted(rejections.items(), key=lambda item: (-item[1], item[0]))
    if not ordered:
        return []
    head = ["number", "reason"]
    rows = [[count(number), reason] for reason, number in ordered[:REASONS]]
    if len(ordered) > REASONS:
        rows.append([count(sum(number for _, number in ordered[REASONS:])), "other reasons"])
    lines = worded(head, rows, width, right="number", indent=2)
    return ["candidates that were rejected", *lines]
