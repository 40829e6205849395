// Moves the moment of an entity's page with its slider, without a button.
"use strict";

document.addEventListener("input", (event) => {
  if (event.target.id !== "event") return;
  document.getElementById("events-before").textContent = event.target.value;
});

document.addEventListener("change", async (event) => {
  if (event.target.id !== "event") return;
  const address = `${location.pathname}?event=${event.target.value}`;
  const answer = await fetch(address).catch(() => null);
  // Log-ins, errors and progress are pages of their own.
  if (!answer || !answer.ok || answer.redirected) {
    location.assign(address);
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector("main").replaceWith(page.querySelector("main"));
  document.querySelector("footer").replaceWith(page.querySelector("footer"));
  history.replaceState(null, "", address);
  document.getElementById("event").focus();
});
