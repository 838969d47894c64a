// What is told of the part of a drawing that is pointed at or walked to; what is opened on paper; copying.
(() => {
  "use strict";
  // Drawings whose parts are told in a line below: rows of parts, walked through with the arrow keys.
  const walkable = (group) => {
    const said = document.getElementById(group.dataset.walk);
    const text = said.textContent;
    const rows = [...group.querySelectorAll("[data-row]")].map((row) => [...row.querySelectorAll("g:has(> title)")]);
    let part = null;
    const choose = (one) => {
      if (part) part.classList.remove("chosen");
      part = one;
      if (part) part.classList.add("chosen");
      said.textContent = part ? part.closest("[data-row]").dataset.row + part.querySelector("title").textContent : text;
    };
    const next = (key) => {
      const row = rows.findIndex((parts) => parts.includes(part));
      if (row < 0) return rows[0][0];
      const at = rows[row].indexOf(part);
      if (key === "ArrowLeft" || key === "ArrowRight") return rows[row][at + (key === "ArrowRight" ? 1 : -1)] || part;
      const other = rows[row + (key === "ArrowDown" ? 1 : -1)] || rows[row];
      return other[Math.min(at, other.length - 1)];
    };
    group.addEventListener("keydown", (event) => {
      if (event.key.startsWith("Arrow")) choose(next(event.key));
      else if (event.key === "Escape") choose(null);
      else return;
      event.preventDefault();
    });
    for (const name of ["pointermove", "click"]) {
      group.addEventListener(name, (event) => {
        const one = event.target.closest("g:has(> title)");
        if (one) choose(one);
      });
    }
  };
  document.querySelectorAll("[data-walk]").forEach(walkable);

  // Memory over time: a cursor on one of the curves, and what it shows.
  const STEPS = 50;
  const curves = [...document.querySelectorAll(".curves svg")];
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
  let curve = 0;
  let moment = null;
  const level = (path, x) => {
    let found = 0;
    for (const [, start, height] of path.matchAll(/H([\d.]+)V([\d.]+)/g)) {
      if (parseFloat(start) > x + 1e-9) break;
      found = 100 - parseFloat(height);
    }
    return found;
  };
  const point = (index, at) => {
    [curve, moment] = [index, at];
    const one = curves[index];
    for (const [name, value] of [["x1", at], ["x2", at], ["y1", 0], ["y2", 100], ["class", "cursor"]]) {
      cursor.setAttribute(name, value);
    }
    one.append(cursor);
    const size = level(one.querySelector(".area").getAttribute("d"), at) * parseFloat(one.dataset.unit);
    const time = at / 1000 * parseFloat(one.dataset.end);
    document.getElementById("curves-said").textContent = `${one.dataset.row} at ${seconds(time)}: ${size.toFixed(1)} GiB`;
  };
  const within = (value, most) => Math.max(0, Math.min(most, value));
  const move = {
    ArrowLeft: () => point(curve, within(moment - 1000 / STEPS, 1000)),
    ArrowRight: () => point(curve, within(moment + 1000 / STEPS, 1000)),
    ArrowUp: () => point(within(curve - 1, curves.length - 1), moment),
    ArrowDown: () => point(within(curve + 1, curves.length - 1), moment),
  };
  for (const group of document.querySelectorAll(".curves")) {
    group.addEventListener("keydown", (event) => {
      if (!(event.key in move)) return;
      if (moment === null) point(0, 0);
      else move[event.key]();
      event.preventDefault();
    });
    for (const name of ["pointermove", "click"]) {
      group.addEventListener(name, (event) => {
        const one = event.target.closest("svg");
        if (!one) return;
        const box = one.getBoundingClientRect();
        point(curves.indexOf(one), within(1000 * (event.clientX - box.left) / box.width, 1000));
      });
    }
  }

  // On paper nothing can be opened.
  const closed = () => document.querySelectorAll("details.figures:not([open])");
  let opened = [];
  addEventListener("beforeprint", () => { opened = [...closed()]; for (const one of opened) one.open = true; });
  addEventListener("afterprint", () => { for (const one of opened) one.open = false; });

  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", () => {
      const text = document.getElementById(button.dataset.copy);
      getSelection().selectAllChildren(text);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected: copy it with the keyboard";
    });
  }
})();
