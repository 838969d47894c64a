"""Every rule of `planner check`: its code, its story, and the page that lists them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import transcripts
from planner.checks import CHECKS
from planner.configurations import FORMS
from planner.domain.configuration import SEVERITIES, Story
from planner.pipeline.rules import OWN, stories

PAGE = transcripts.ROOT / "docs" / "rules.md"
HEAD = """# Rules

What `planner check` holds files to, by code. `planner explain CODE` tells why, and what to do. *itself* says whether
the framework refuses the configuration before it trains; where it does not, the run dies later, trains something else
or is slow, and only the planner tells. A rule that several kinds of files share stands under the first of them, with
the others named. A test writes this page (`pytest tests/test_rules.py --update-golden`).

Codes are stable: one is never used again for another rule.
"""
STORIES = stories()


def page() -> str:
    """Return the page as it should be."""
    parts = [HEAD]
    for of in ("plan", *(form.name for form in FORMS)):
        title = "Plans" if of == "plan" else of
        found = [one for one in STORIES.values() if one.of[0] == of]
        parts.append(
            f"\n## {title}\n\n| code | holds | severity | versions | itself | source |\n|---|---|---|---|---|---|\n"
        )
        parts += [_row(one) for one in found]
    return "".join(parts)


def _row(one: Story) -> str:
    itself = "" if one.of == ("plan",) else "yes" if one.caught else "no"
    also = f" (also {', '.join(one.of[1:])})" if one.of[1:] else ""
    cells = (one.code, f"{one.title}: {one.summary}{also}", one.severity, one.versions, itself, one.source)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"


def test_the_page_is_that_of_the_rules(update_golden: bool) -> None:
    """docs/rules.md lists every rule."""
    if update_golden:
        transcripts.rewrite(PAGE, page())
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("one", STORIES.values(), ids=STORIES)
def test_a_rule_has_a_story(one: Story) -> None:
    """A code of its form, a severity that is known, and sentences."""
    assert re.fullmatch(r"[A-Z]{2}\d{3}", one.code)
    assert one.severity in SEVERITIES
    assert one.title
    assert one.summary
    assert one.why.strip().endswith(".")
    assert one.source or one.of == ("plan",)


def test_codes_are_those_of_one_rule_and_one_kind() -> None:
    """No code stands for two rules, though forms may share one, and every kind of file has letters of its own."""
    rules = [*OWN, *(check.code for check in CHECKS), *{rule.code for form in FORMS for rule in form.rules}]
    assert [code for code, number in Counter(rules).items() if number > 1] == []
    for form in FORMS:
        assert [code for code, number in Counter(rule.code for rule in form.rules).items() if number > 1] == []
    told: dict[str, set[tuple[str, str, str, str]]] = {}
    for rule in (rule for form in FORMS for rule in form.rules):
        told.setdefault(rule.code, set()).add((rule.name, rule.summary, rule.why, rule.source))
    assert [code for code, ways in told.items() if len(ways) > 1] == []
    letters = {(one.code[:2], one.of[0]) for one in STORIES.values()}
    assert Counter(code for code, _ in letters).most_common(1)[0][1] == 1


def test_every_code_that_is_written_has_a_story() -> None:
    """What readers find by themselves (unknown keys, values of a wrong kind) is explained, too."""
    folder = transcripts.ROOT / "planner"
    letters = "|".join(sorted({code[:2] for code in STORIES}))
    pattern = re.compile(rf'"((?:{letters})\d{{3}})"')
    written = {code for path in folder.rglob("*.py") for code in pattern.findall(path.read_text("utf-8"))}
    assert sorted(written - STORIES.keys()) == []
