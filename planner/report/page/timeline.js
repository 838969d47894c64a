// One step: zoomed, and read pass by pass.
(() => {
  "use strict";
  const pane = document.querySelector(".pane");
  const readout = document.querySelector("#timeline .readout");
  const svg = pane && pane.querySelector("svg");
  const help = readout && readout.textContent;
  let zoom = 1;
  let chosen = null;

  const share = (element, name) => parseFloat(element.getAttribute(name)) / 100;

  // Places on the axis back to times: the axis is in one piece, or in two with a gap between them.
  const parts = svg ? JSON.parse(svg.dataset.axis) : [];
  const time = (place) => {
    const part = parts.find(([, , , right]) => place <= right + 1e-9) || parts[parts.length - 1];
    return part[0] + (place - part[2]) / (part[3] - part[2]) * (part[1] - part[0]);
  };

  const names = { F: "forward", B: "backward", I: "backward (input)", W: "backward (weights)" };
  const described = (block) => {
    const stage = block.closest("[data-stage]").dataset.stage;
    const { m, c, o, w } = block.dataset;
    const kinds = block.classList;
    const batch = m === undefined ? "" : `, micro-batch ${m}` + (c === undefined ? "" : `, chunk ${c}`)
      + (w === undefined ? "" : ", from the other end");
    const what = kinds.contains("pass") ? names[kinds[1][0]]
      : kinds.contains("send") ? `sends ${kinds.contains("back") ? "gradients" : "activations"} to stage ${o}`
        : kinds.contains("exchange") ? "gradient exchange"
          : kinds.contains("update") ? "optimizer" : "overhead of the step";
    const start = time(share(block, "x"));
    const end = time(share(block, "x") + share(block, "width"));
    return `stage ${stage}: ${what}${batch}, ${seconds(start)} - ${seconds(end)} (${seconds(end - start)})`;
  };

  const choose = (block, follow) => {
    if (chosen) chosen.classList.remove("chosen");
    chosen = block;
    if (!block) { readout.textContent = help; return; }
    block.classList.add("chosen");
    readout.textContent = described(block);
    if (!follow) return;
    const left = share(block, "x") * svg.clientWidth;
    const right = left + share(block, "width") * svg.clientWidth;
    if (left < pane.scrollLeft || right > pane.scrollLeft + pane.clientWidth) {
      pane.scrollLeft = (left + right) / 2 - pane.clientWidth / 2;
    }
  };

  // Names of passes are written where they have room.
  const label = () => {
    const width = svg.clientWidth;
    const first = svg.querySelector(".pass");
    svg.classList.toggle("fine", share(first, "width") * width < 6);
    for (const row of svg.querySelectorAll("[data-stage]")) {
      const texts = row.querySelector(".texts");
      texts.replaceChildren();
      for (const block of row.querySelectorAll(".pass")) {
        const { m, c } = block.dataset;
        const name = c === undefined ? m : `${m}.${c}`;
        if (share(block, "width") * width < 7 * name.length + 5) continue;
        const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
        text.textContent = name;
        text.setAttribute("x", `${100 * (share(block, "x") + share(block, "width") / 2)}%`);
        text.setAttribute("y", svg.dataset.text);
        if (!block.classList.contains("F0")) text.setAttribute("class", "dark");
        texts.append(text);
      }
    }
    pane.dataset.detail = width > 2400 ? "2" : width > 640 ? "1" : "0";
  };

  const zoomTo = (value, centre) => {
    const at = (pane.scrollLeft + centre) / svg.clientWidth;
    zoom = Math.min(64, Math.max(1, value));
    svg.style.width = `${100 * zoom}%`;
    label();
    pane.scrollLeft = at * svg.clientWidth - centre;
  };

  // The chosen pass stays where it is, or the middle of what is seen.
  const centre = () => {
    const left = chosen ? share(chosen, "x") * svg.clientWidth - pane.scrollLeft : -1;
    return left >= 0 && left <= pane.clientWidth ? left : pane.clientWidth / 2;
  };

  const act = {
    "+": () => zoomTo(zoom * 2, centre()),
    "=": () => zoomTo(zoom * 2, centre()),
    "-": () => zoomTo(zoom / 2, centre()),
    "0": () => zoomTo(1, 0),
  };

  // Arrow keys walk from pass to pass, and to the nearest pass of the next stage.
  const walk = (key) => {
    if (!chosen) return svg.querySelector(".pass");
    const row = chosen.closest("[data-stage]");
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const blocks = [...row.querySelectorAll("rect:not(.send)")];
      const at = blocks.indexOf(chosen);
      return blocks[at + (key === "ArrowRight" ? 1 : -1)] || chosen;
    }
    const next = key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling;
    if (!next || next.dataset.stage === undefined) return chosen;
    const middle = share(chosen, "x") + share(chosen, "width") / 2;
    const away = (block) => Math.abs(share(block, "x") + share(block, "width") / 2 - middle);
    return [...next.querySelectorAll("rect:not(.send)")].reduce((best, one) => (away(one) < away(best) ? one : best));
  };

  if (pane) {
    label();
    window.addEventListener("resize", label);
    for (const button of document.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", act[button.dataset.zoom]);
    }
    pane.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in act) act[event.key]();
      else if (event.key.startsWith("Arrow")) choose(walk(event.key), true);
      else if (event.key === "Escape") choose(null);
      else return;
      event.preventDefault();
    });
    pane.addEventListener("pointermove", (event) => {
      if (event.target.closest("[data-stage] > rect")) choose(event.target);
    });
    pane.addEventListener("click", (event) => {
      if (event.target.closest("[data-stage] > rect")) choose(event.target);
    });
    pane.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoomTo(event.deltaY < 0 ? zoom * 1.25 : zoom / 1.25, event.clientX - pane.getBoundingClientRect().left);
    }, { passive: false });
  }
})();
