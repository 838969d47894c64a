"""The page in a real browser: it loads without a complaint, asks for nothing, and obeys the keyboard.

A headless Chromium on the path is enough (``apt install chromium``); without one these tests are skipped.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import transcripts
from planner.domain.job import Job
from planner.report.figures import gib, seconds
from planner.report.page import page
from planner.specs.cluster import read_cluster
from planner.specs.model import read_model
from report.pages import grouped, hostile, subject
from report.report_cases import Case

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OWN = (".google.com", ".googleapis.com", ".gvt1.com")
"""Hosts that Chromium asks whatever it shows; their names are not resolved here."""
TIME_LIMIT = 120
"""[s] after which a browser hangs."""

pytestmark = pytest.mark.browser

WALK = """
addEventListener("load", () => {
  const pane = document.querySelector(".pane"), said = () => document.querySelector(".readout").textContent;
  const press = (key) => pane.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const found = { help: said(), wide: document.documentElement.scrollWidth, inner: innerWidth };
  press("ArrowRight"); found.first = said();
  press("ArrowRight"); found.second = said();
  press("ArrowDown"); found.below = said();
  press("+"); press("+"); found.zoomed = pane.querySelector("svg").clientWidth / pane.clientWidth;
  press("0"); found.whole = pane.querySelector("svg").clientWidth / pane.clientWidth;
  press("Escape"); found.left = said();
  document.documentElement.dataset.found = JSON.stringify(found);
});
"""
"""Presses keys and writes down what the page says."""


TIPS = """
addEventListener("load", () => {
  const press = (place, key) => document.querySelector(place).dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const said = (name) => document.getElementById(name).textContent;
  const found = { help: said("parts-said") };
  press(".fills", "ArrowRight"); found.part = said("parts-said");
  press(".fills", "ArrowRight"); press(".fills", "ArrowDown"); found.below = said("parts-said");
  press(".fills", "Escape"); found.left = said("parts-said");
  press(".curves", "ArrowRight"); found.start = said("curves-said");
  for (let i = 0; i < 25; i += 1) press(".curves", "ArrowRight");
  press(".curves", "ArrowDown"); found.middle = said("curves-said");
  press(".charts", "ArrowRight"); found.plan = said("options-said");
  press(".charts", "ArrowRight"); found.other = said("options-said");
  dispatchEvent(new Event("beforeprint"));
  found.opened = document.querySelectorAll("details.figures[open]").length;
  dispatchEvent(new Event("afterprint"));
  found.closed = document.querySelectorAll("details.figures[open]").length;
  document.documentElement.dataset.found = JSON.stringify(found);
});
"""
"""The same of the other drawings, and opens what is printed."""


LOOK = """
addEventListener("load", () => {
  const box = (one) => { const { x, y, width, height } = one.getBBox(); return [x, y, x + width, y + height]; };
  const words = [...document.querySelectorAll(".map text")];
  const places = words.map((one) => [one.textContent, box(one)]);
  const frames = [...document.querySelectorAll(".map .box")].map(box);
  for (const path of document.querySelectorAll(".map .arc")) {
    const [left, top, low, right] = path.getAttribute("d").match(/[\\d.]+/g).map(parseFloat);
    for (const line of [[left, top, left, low], [right, top, right, low], [left, low, right, low]]) {
      places.push(["line", line]);
    }
  }
  const overlaps = [];
  places.forEach(([name, [x, y, right, low]], at) => {
    if (name === "line") return;
    places.forEach(([other, [x2, y2, right2, low2]], there) => {
      if (at !== there && x < right2 && x2 < right && y < low2 && y2 < low) overlaps.push([name, other]);
    });
    const frame = frames.find((one) => y < one[3] && x < one[2] && one[0] < right);
    if (frame && (x < frame[0] || right > frame[2])) overlaps.push([name, "its box"]);
  });
  const wide = document.documentElement.scrollWidth;
  document.documentElement.dataset.found = JSON.stringify({ overlaps, wide, inner: innerWidth, words: words.length });
});
"""
"""Measures the drawing of the links."""


@pytest.fixture(scope="module")
def browser() -> str:
    """The path of a browser."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the path")
    return found


@pytest.fixture(scope="module")
def case() -> Case:
    """Three groups of unlike devices."""
    specs = transcripts.ROOT
    return Case(
        read_cluster(str(specs / "cluster_specs/mixed-h100-a100-l40s.yaml")),
        read_model(str(specs / "model_specs/llama-3-405b.json")),
        Job(global_batch=64, sequence=4096, precision="bf16", framework="megatron"),
    )


def opened(browser: str, text: str, folder: Path, width: int) -> tuple[str, str, dict[str, Any]]:
    """Return the page after its script, what the console says, and the log of the network."""
    file, log = folder / "page.html", folder / "net.json"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--no-first-run",
            "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}",
            f"--log-net-log={log}",
            f"--window-size={width},900",
            "--virtual-time-budget=2000",
            "--dump-dom",
            file.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=True,
    )
    return done.stdout, "\n".join(re.findall(r".*CONSOLE.*", done.stderr)), json.loads(log.read_text(encoding="utf-8"))


def asked(log: dict[str, Any]) -> set[str]:
    """Return the addresses that were asked for, files and what the browser asks on its own behalf left out."""
    found = {str(event.get("params", {}).get("url", "")) for event in log["events"]}
    hosts = {url: urlsplit(url).hostname or "" for url in found if url.startswith(("http", "ws"))}
    return {url for url, host in hosts.items() if not host.endswith(OWN)}


def walked(browser: str, text: str, script: str, folder: Path) -> dict[str, Any]:
    """Return what a script finds that runs on a page as narrow as a phone; the console stays silent."""
    text = text.replace("</body>", f"<script>{script}</script></body>")
    document, console, _ = opened(browser, text, folder, 500)
    assert console == ""
    written = re.search(r"data-found=\"([^\"]*)\"", document)
    assert written
    found: dict[str, Any] = json.loads(written[1].replace("&quot;", '"'))
    return found


def test_a_request_would_be_seen(browser: str, tmp_path: Path) -> None:
    """A page that loads a picture and complains is caught at both."""
    text = "<img src='http://localhost:9/picture'><script>console.error('a complaint')</script>"
    _, console, log = opened(browser, text, tmp_path, 500)
    assert "a complaint" in console
    assert asked(log) == {"http://localhost:9/picture"}


def test_a_page_loads_quietly(browser: str, case: Case, tmp_path: Path) -> None:
    """No error in the console, no request; names of passes are written where there is room."""
    plan = case.plan([("h100", 70), ("a100", 40), ("l40s", 16)], dp=4)
    document, console, log = opened(browser, page(subject(case, plan)), tmp_path, 1400)
    assert console == ""
    assert asked(log) == set()
    assert 'data-detail="1"' in document


def test_the_timeline_obeys_the_keyboard(browser: str, case: Case, tmp_path: Path) -> None:
    """Arrows walk from pass to pass and stage to stage, + zooms, 0 shows all; a phone scrolls downwards only."""
    plan = case.plan([("h100", 70), ("a100", 40), ("l40s", 16)], dp=4)
    found = walked(browser, page(subject(case, plan)), WALK, tmp_path)
    assert found["first"].startswith("stage 0: forward, micro-batch 0, 0.00 s - ")
    assert found["second"].startswith("stage 0: forward, micro-batch 1, ")
    assert found["below"].startswith("stage 1: forward, micro-batch 0, ")
    assert found["zoomed"] == pytest.approx(4, rel=0.02)
    assert found["whole"] == pytest.approx(1, rel=0.02)
    assert found["left"] == found["help"]
    assert found["wide"] <= found["inner"]


def test_every_tip_is_reached_by_keyboard(browser: str, case: Case, tmp_path: Path) -> None:
    """Parts of the memory, memory at a time, and the plans in the charts, with the figures of the prediction."""
    plan = case.plan([("h100", 70), ("a100", 40), ("l40s", 16)], dp=4)
    other = case.plan([("h100", 126)], dp=2)
    about = subject(case, plan, (other,))
    found = walked(browser, page(about), TIPS, tmp_path)
    first, second = (dict(stage.memory) for stage in about.prediction.stages[:2])
    assert found["part"] == f"stage 0: weights {gib(first['weights'])} GiB"
    assert found["below"] == f"stage 1: gradients {gib(second['gradients'])} GiB"
    assert found["left"] == found["help"]
    assert found["start"].startswith("stage 0 at 0.00 s: ")
    half, points = about.timeline.step_time / 2, about.timeline.memory[1]
    level = [size for time, size in points if time <= half][-1]
    assert found["middle"].startswith(f"stage 1 at {seconds(half)}: ")
    assert float(found["middle"].split()[-2]) == pytest.approx(level / 2**30, rel=0.002)
    predictions = (case.predicted(other), about.prediction)
    for said, name, one in zip((found["plan"], found["other"]), ("1", "this plan"), predictions, strict=True):
        assert said.startswith(f"{name}: step {seconds(one.step_time)}, ")
    assert f"GiB]: {gib(predictions[0].peak_memory)}" in found["plan"]
    assert found["opened"] > found["closed"] == 0


def test_names_from_files_run_nothing(browser: str, case: Case, tmp_path: Path) -> None:
    """A script in every name: the page's title stays what it was, and the console silent."""
    plan = case.plan([("h100", 70), ("a100", 40), ("l40s", 16)], dp=4)
    evil = "</script><img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
    document, console, log = opened(browser, page(hostile(subject(case, plan), evil)), tmp_path, 1400)
    assert console == ""
    assert asked(log) == set()
    assert "<title>owned" not in document


def renamed(case: Case, names: list[str]) -> Case:
    """Return a case of as many groups with such names."""
    made = grouped(case, len(names))
    old = {group.name: name for group, name in zip(made.cluster.groups, names, strict=True)}
    groups = tuple(replace(group, name=old[group.name]) for group in made.cluster.groups)
    links = tuple(replace(link, first=old[link.first], second=old[link.second]) for link in made.cluster.links)
    return replace(made, cluster=replace(made.cluster, groups=groups, links=links))


@pytest.mark.parametrize(
    "names",
    [
        ["h100", "a100"],
        ["h100-sxm-80gb", "a100-sxm-80gb", "l40s-48gb"],
        ["the-first-group-of-the-site", "MI300X-WEST-2", "c"],
        [f"group-with-a-long-name-{index}" for index in range(8)],
    ],
    ids=["two", "three", "long", "eight"],
)
def test_links_are_drawn_without_overlaps(browser: str, case: Case, names: list[str], tmp_path: Path) -> None:
    """No word lies on another one, on a line down to it, or outside its box; the page scrolls downwards only."""
    found = renamed(case, names)
    plan = found.plan([(names[0], 80), (names[1], 46)], dp=4)
    seen = walked(browser, page(subject(found, plan)), LOOK, tmp_path)
    assert seen["overlaps"] == []
    assert seen["wide"] <= seen["inner"]
    assert seen["words"] == (0 if len(names) > 3 else 2 * len(names) + 2 * (len(names) * (len(names) - 1) // 2))
