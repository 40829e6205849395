// Keeps the figures of a page current. The console renders them, and escapes all text in them.
"use strict";

const figures = document.getElementById("figures");
const state = document.getElementById("live-state");
let source = null;

function open() {
  if (source) source.close();
  source = new EventSource(`${location.pathname}/events`);
  source.onmessage = (message) => {
    const part = new DOMParser().parseFromString(JSON.parse(message.data).html, "text/html");
    // What is being read or operated stays.
    const focused = document.activeElement;
    if (!figures.contains(focused) && String(getSelection()) === "") figures.replaceChildren(...part.body.childNodes);
    say("Live", true);
  };
  source.onerror = (event) => say(failure(event.target), false);
}

function failure(stream) {
  if (stream.readyState !== EventSource.CLOSED) return "Not connected to the console. Trying again.";
  return "Refused by the console: too much is watched, or you are no longer logged in. Load the page again.";
}

function say(text, isCurrent) {
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle("stale", !isCurrent);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) open();
  else if (source) source.close();
});
open();
