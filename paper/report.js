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
  let to = "";
  for (const cell of row.cells) {
    const link = cell.querySelector("a");
    if (link) to = link.getAttribute("href");
    else if (to && /\d/.test(cell.textContent)) {
      const number = document.createElement("a");
      number.href = to;
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

// Figures: a click enlarges one to the window, another to twice its width; Escape closes it.
const dialog = document.querySelector("dialog");
const pane = dialog.querySelector(".pane");
for (const button of document.querySelectorAll(".zoom")) {
  button.addEventListener("click", () => {
    const image = button.closest("figure").querySelector("svg").cloneNode(true);
    pane.className = "pane fit";
    pane.replaceChildren(image);
    dialog.showModal();
  });
}
pane.addEventListener("click", (event) => {
  if (event.target !== pane) pane.className = pane.classList.contains("fit") ? "pane full" : "pane fit";
  else dialog.close();
});
dialog.querySelector(".close").addEventListener("click", () => dialog.close());

// Points: one that is pointed at, or tapped, tells its run, value and log.
const here = document.body.appendChild(document.createElement("div"));
here.className = "told-here";
here.hidden = true;
const point = (svg) => {
  const words = new Map();
  const lines = svg.querySelector("desc.told");
  if (!lines) return;
  const spots = document.createElementNS(svg.namespaceURI, "g");
  spots.setAttribute("class", "told");
  for (const line of lines.textContent.split("\n")) {
    const [, x, y, text] = line.match(/^(\S+) (\S+) (.*)$/);
    const spot = spots.appendChild(document.createElementNS(svg.namespaceURI, "circle"));
    spot.setAttribute("cx", x);
    spot.setAttribute("cy", y);
    words.set(spot, text);
  }
  lines.replaceWith(spots);
  const tell = (event) => {
    const text = words.get(event.target);
    here.hidden = !text;
    if (!text) return;
    here.textContent = text;
    here.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - here.offsetWidth - 4))}px`;
    here.style.top = `${Math.max(4, event.clientY - here.offsetHeight - 10)}px`;
  };
  for (const kind of ["pointerover", "pointerdown", "pointerleave"]) svg.addEventListener(kind, tell);
};

// Drawings are packed.  A browser that can't unpack them shows their files, as one without scripts does.
const unpacked = (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
};
const draw = async () => {
  const packed = document.getElementById("drawings");
  const boxes = [...document.querySelectorAll("figure.drawing .scroll")];
  try {
    const drawings = packed.textContent ? (await unpacked(packed.textContent)).split(/(?=[<]svg )/) : [];
    boxes.forEach((box, i) => {
      box.innerHTML = drawings[i];
      point(box.firstElementChild);
    });
  } catch {
    for (const box of boxes) box.innerHTML = box.querySelector("noscript")?.textContent ?? box.innerHTML;
  }
  packed.remove();
};

// Numbers: a link to the runs behind one opens their list.
const open = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target || !target.closest("#runs")) return;
  for (let part = target; part; part = part.parentElement) {
    if (part.tagName === "DETAILS") part.open = true;
  }
  target.scrollIntoView();
};
addEventListener("hashchange", open);
draw().then(open);
