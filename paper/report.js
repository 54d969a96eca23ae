"use strict";

// Tables: a click on a heading sorts by its column, up, then down, then as at first.
const number = (text) => {
  const found = text.replace(/,/g, "").replace(/\u2212/g, "-").match(/-?\d+(\.\d+)?(e-?\d+)?/i);
  return found && /^[^A-Za-z]*$/.test(text.slice(0, 1)) ? parseFloat(found[0]) : NaN;
};

const compare = (a, b) => {
  const empty = (text) => text === "" || text === "\u2014";
  if (empty(a) || empty(b)) return empty(a) - empty(b);
  const [x, y] = [number(a), number(b)];
  if (isNaN(x) !== isNaN(y)) return isNaN(x) - isNaN(y);
  return isNaN(x) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
};

// A cell that repeats the one above has its text too, for those who hear it and for rows that are sorted.
for (const cell of document.querySelectorAll("tbody th:empty")) {
  const above = cell.closest("tr").previousElementSibling.cells[0];
  const text = cell.appendChild(document.createElement("span"));
  text.className = "repeat";
  text.innerHTML = (above.querySelector(".repeat") ?? above).innerHTML;
}

// In rows that say so, a number links to where the one before it does.
for (const row of document.querySelectorAll("tr[data-links]")) {
  let to = null;
  for (const cell of row.cells) {
    const link = cell.querySelector("a");
    if (link) to = link;
    else if (to && /\d/.test(cell.textContent)) {
      const number = to.cloneNode();
      const marks = [...cell.querySelectorAll("sup")];
      number.append(...[...cell.childNodes].filter((node) => !marks.includes(node)));
      cell.prepend(number);
    }
  }
}

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.querySelectorAll("tr.heads th")];
  for (const head of heads) {
    if (!head.textContent) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.title = "Sort by this column";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const next = { ascending: "descending", descending: "" }[head.getAttribute("aria-sort")] ?? "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      const rows = [...original];
      if (next) {
        head.setAttribute("aria-sort", next);
        const text = (row) => row.cells[head.dataset.column].textContent.trim();
        const sign = next === "ascending" ? 1 : -1;
        const blank = (row) => ["", "\u2014"].includes(text(row));
        rows.sort((a, b) => (blank(a) || blank(b) ? blank(a) - blank(b) : sign * compare(text(a), text(b))));
      }
      table.classList.toggle("sorted", next !== "");
      body.replaceChildren(...rows);
    });
  }
}

// Points: the one that is nearest to where is pointed at, or tapped, tells its run, value and log.  A drawing
// has thousands of them, so they are numbers and no elements.
const REACH = 4;
const here = document.body.appendChild(document.createElement("div"));
here.className = "told-here";
here.hidden = true;
const follow = (svg, spots) => {
  svg.spots = spots;
  const ring = svg.querySelector("circle.told") ?? svg.appendChild(document.createElementNS(svg.namespaceURI, "circle"));
  ring.setAttribute("class", "told");
  const tell = (spot, event) => {
    ring.classList.toggle("on", Boolean(spot));
    here.hidden = !spot;
    if (!spot) return;
    ring.setAttribute("cx", spot.x);
    ring.setAttribute("cy", spot.y);
    here.textContent = spot.words;
    here.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - here.offsetWidth - 4))}px`;
    here.style.top = `${Math.max(4, event.clientY - here.offsetHeight - 10)}px`;
  };
  const nearest = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let [found, least] = [undefined, REACH];
    for (const spot of spots) {
      const far = Math.hypot(spot.x - at.x, spot.y - at.y);
      if (far <= least) [found, least] = [spot, far];
    }
    tell(found, event);
  };
  for (const kind of ["pointermove", "pointerdown"]) svg.addEventListener(kind, nearest);
  svg.addEventListener("pointerleave", () => tell());
};
const point = (svg) => {
  const lines = svg.querySelector("desc.told");
  if (!lines) return;
  lines.remove();
  follow(svg, lines.textContent.split("\n").map((line) => {
    const [, x, y, words] = line.match(/^(\S+) (\S+) (.*)$/);
    return { x: Number(x), y: Number(y), words };
  }));
};

// Figures: a click enlarges one to the window, another to twice its width; Escape closes it.
const dialog = document.querySelector("dialog");
const pane = dialog.querySelector(".pane");
for (const button of document.querySelectorAll(".zoom")) {
  button.addEventListener("click", () => {
    const drawing = button.closest("figure").querySelector("svg");
    const image = drawing.cloneNode(true);
    if (drawing.spots) follow(image, drawing.spots);
    pane.className = "pane fit";
    pane.replaceChildren(image);
    dialog.showModal();
    dialog.append(here);
  });
}
dialog.addEventListener("close", () => {
  here.hidden = true;
  document.body.append(here);
});
pane.addEventListener("click", (event) => {
  if (event.target !== pane) pane.className = pane.classList.contains("fit") ? "pane full" : "pane fit";
  else dialog.close();
});
dialog.querySelector(".close").addEventListener("click", () => dialog.close());

// Drawings are packed.  A browser that can't unpack them shows their files, as one without scripts does.
const unpacked = (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
};
// Each is there from the start as an image with its size and its words; what is in it is drawn as it comes near.
const draw = async () => {
  const packed = document.getElementById("drawings");
  const boxes = [...document.querySelectorAll("figure.drawing .scroll")];
  try {
    const drawings = packed.textContent ? (await unpacked(packed.textContent)).split("\x1e") : [];
    const waiting = new Map(boxes.map((box, i) => [box, drawings[i]]));
    const show = (box) => {
      if (!waiting.has(box)) return;
      box.innerHTML = waiting.get(box);
      waiting.delete(box);
      point(box.firstElementChild);
    };
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) show(entry.target);
    }, { rootMargin: "600px" });
    for (const box of boxes) {
      box.innerHTML = `${waiting.get(box).match(/^<svg [^>]*>/)[0]}</svg>`;
      seen.observe(box);
    }
    addEventListener("beforeprint", () => boxes.forEach(show));
  } catch {
    for (const box of boxes) box.innerHTML = box.querySelector("noscript")?.textContent ?? box.innerHTML;
  }
  packed.remove();
};

// Numbers: a link to the runs behind one opens their list.  A list waits as a text until it is opened.
const fill = (list) => {
  const waiting = list.querySelector(":scope > noscript");
  if (waiting) waiting.outerHTML = waiting.textContent;
};
document.addEventListener("toggle", (event) => fill(event.target), true);
const open = () => {
  const id = decodeURIComponent(location.hash.slice(1));
  for (const waiting of document.querySelectorAll("#runs > details > noscript")) {
    if (id && waiting.textContent.includes(`id="${id}"`)) fill(waiting.parentElement);
  }
  const target = document.getElementById(id);
  if (!target || !target.closest("#runs")) return;
  for (let part = target; part; part = part.parentElement) {
    if (part.tagName === "DETAILS") {
      fill(part);
      part.open = true;
    }
  }
  target.scrollIntoView();
};
addEventListener("hashchange", open);
document.addEventListener("click", (event) => {
  const at = event.target.closest("a[data-at]")?.dataset.at;
  if (!at) return;
  event.preventDefault();
  if (location.hash === `#${at}`) open();
  else location.hash = at;
});
draw().then(open);
