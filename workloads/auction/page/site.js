// The page: who logs in sees the open auctions, joins one, and follows its bids as they are made.
"use strict";

const at = (selector) => document.querySelector(selector);
const money = (cents) => (cents / 100).toFixed(2);
let page = 0;
let shown = null;

/** The answer to a request; what the site refuses is an error with its words. */
async function ask(method, path, body) {
  const sent = body && {headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)};
  const answer = await fetch(`/api${path}`, {method, ...sent});
  const found = answer.status === 204 ? null : await answer.json();
  if (!answer.ok) throw new Error(found.refused);
  return found;
}

/** Does something, and says what goes wrong. */
function attempt(work) {
  at("#message").textContent = "";
  return work().catch((error) => { at("#message").textContent = error.message; });
}

function show(section) {
  for (const id of ["login", "list", "auction"]) at(`#${id}`).hidden = id !== section;
}

async function list() {
  shown = null;
  const found = await ask("GET", `/auctions?page=${page}`);
  if (!found.length && page) { page = 0; return list(); }
  at("#list tbody").replaceChildren(...found.map((one) => {
    const row = document.createElement("tr");
    for (const text of [one.name, one.title, one.price ? money(one.price) : "none"]) row.insertCell().textContent = text;
    const join = document.createElement("button");
    join.textContent = "Join";
    join.addEventListener("click", () => attempt(() => enter(one)));
    row.insertCell().append(join);
    return row;
  }));
  show("list");
}

async function enter(auction) {
  await ask("POST", `/auctions/${auction.auction}/attendance`);
  at("#auction h2").textContent = auction.name;
  draw(await ask("GET", `/auctions/${auction.auction}/item`));
  show("auction");
  follow(auction.auction);
}

function draw(state) {
  const other = !shown || shown.item !== state.item;
  shown = state;
  at("#title").textContent = state.title;
  at("#price").textContent = state.price ? money(state.price) : `none yet, from ${money(state.starting)}`;
  at("#leader").textContent = state.leader ? `by ${state.leader}` : "";
  if (other) ask("GET", `/items/${state.item}`).then((item) => {
    at("#image").hidden = !item.image;
    if (item.image) at("#image").src = `/api/items/${state.item}/image`;
  });
}

/** Waits for one bid after another, for as long as the auction is shown. */
async function follow(auction) {
  while (shown && shown.auction === auction) {
    try {
      const state = await ask("GET", `/auctions/${auction}/next?after=${shown.seq}`);
      if (state && shown && shown.auction === auction) draw(state);
    } catch (error) {
      at("#message").textContent = error.message;
      return;
    }
  }
}

addEventListener("DOMContentLoaded", () => {
  at("#login").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(async () => {
      const known = await ask("POST", "/login", Object.fromEntries(new FormData(event.target)));
      at("#who").textContent = known.name;
      at("#logout").hidden = false;
      await list();
    });
  });
  at("#bid").addEventListener("submit", (event) => {
    event.preventDefault();
    const amount = Math.round(100 * event.target.elements.amount.value);
    attempt(() => ask("POST", `/auctions/${shown.auction}/bids`, {item: shown.item, amount}));
  });
  at("#more").addEventListener("click", () => { page += 1; attempt(list); });
  at("#leave").addEventListener("click", () => attempt(async () => {
    await ask("DELETE", `/auctions/${shown.auction}/attendance`);
    await list();
  }));
  at("#logout").addEventListener("click", () => attempt(async () => {
    await ask("POST", "/logout");
    location.reload();
  }));
});
