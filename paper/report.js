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
for (const cell of document.querySelectorAll(".repeat")) {
  const above = cell.closest("tr").previousElementSibling.cells[0];
  cell.innerHTML = (above.querySelector(".repeat") ?? above).innerHTML;
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
for (const svg of document.querySelectorAll("figure svg")) {
  const words = new Map();
  const lines = svg.querySelector("desc.told");
  if (!lines) continue;
  const spots = document.createElementNS(svg.namespaceURI, "g");
  spots.setAttribute("class", "told");
  let before = "";
  for (const line of lines.textContent.split("\n")) {
    // The number of letters in common with the line before stands in their place.
    const [, x, y, kept, rest] = line.match(/^(\S+) (\S+) (\d+) (.*)$/);
    const text = before.slice(0, kept) + rest;
    before = text;
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
}

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
open();
