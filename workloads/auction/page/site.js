// Shows on the home page how many bids the site has decided.
fetch("/api/books")
  .then((answer) => answer.json())
  .then((books) => { document.querySelector("#bids").textContent = books.bids; });
