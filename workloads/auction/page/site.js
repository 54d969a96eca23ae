// The page: who logs in sees the open auctions.
"use strict";

const at = (selector) => document.querySelector(selector);

/** The answer to a request; what the site refuses is an error with its words. */
async function ask(method, path, body) {
  const sent = body && {headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)};
  const answer = await fetch(`/api${path}`, {method, ...sent});
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

async function show() {
  await ask("POST", "/login", Object.fromEntries(new FormData(at("#login"))));
  at("tbody").replaceChildren(...(await ask("GET", "/auctions?page=0")).map((one) => {
    const row = document.createElement("tr");
    for (const text of [one.name, one.title, (one.price / 100).toFixed(2)]) row.insertCell().textContent = text;
    return row;
  }));
}

at("#login").addEventListener("submit", (event) => {
  event.preventDefault();
  show().catch((error) => { at("#message").textContent = error.message; });
});
