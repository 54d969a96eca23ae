// Marks the current page in the navigation, and keeps a form from being sent twice.
document.addEventListener("DOMContentLoaded", () => {
  for (const link of document.querySelectorAll("nav a")) {
    if (link.pathname === location.pathname) link.classList.add("here");
  }
  for (const form of document.querySelectorAll("form")) {
    form.addEventListener("submit", () => {
      for (const button of form.querySelectorAll("button")) button.disabled = true;
    });
  }
});
