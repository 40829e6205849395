"use strict";
// Shows only what has every word that is typed. Each thing that can be found says what it is found by in `data-find`.
const input = document.querySelector("#search");
const matches = document.querySelector("#matches");
const nothing = document.querySelector("#nothing");
const blocks = [...document.querySelectorAll("[data-block]")].map((block) => ({
  block,
  find: block.dataset.find || "",
  items: [...block.querySelectorAll("[data-item]")].map((item) => ({ item, find: item.dataset.find })),
  tables: [...block.querySelectorAll("[data-table]")],
}));
const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.getAttribute("href").slice(1), link]));

function filter() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text) => words.every((word) => text.includes(word));
  let members = 0;
  let shown = 0;
  for (const { block, find, items, tables } of blocks) {
    let any = words.length === 0 || has(find);
    for (const { item, find } of items) {
      const fits = words.length === 0 || has(find);
      item.hidden = !fits;
      any = any || fits;
      members += fits ? 1 : 0;
    }
    for (const table of tables) {
      table.hidden = words.length > 0 && !table.querySelector("[data-item]:not([hidden])");
    }
    block.hidden = !any;
    shown += any ? 1 : 0;
    const link = links.get(block.id);
    if (link) link.parentElement.hidden = !any;
  }
  for (const list of document.querySelectorAll("nav ul")) {
    list.previousElementSibling.hidden = !list.querySelector("li:not([hidden])");
  }
  nothing.hidden = shown > 0;
  matches.textContent = words.length === 0 ? "" : members + (members === 1 ? " match" : " matches");
}

function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.closest("[hidden]")) {
    input.value = "";
    filter();
    target.scrollIntoView();
  }
}

input.closest("[hidden]").hidden = false;
input.addEventListener("input", filter);
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    input.value = "";
    filter();
  }
  if (event.key === "Enter") {
    const first = document.querySelector("main [data-item]:not([hidden]) a")
      || document.querySelector("main [data-block]:not([hidden]) h2 a");
    if (first) first.focus();
  }
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, textarea, select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    input.focus();
    input.select();
  }
});
window.addEventListener("hashchange", reveal);
const menu = document.querySelector("nav details");
const narrow = window.matchMedia("(max-width: 60rem)");
const fold = () => { menu.open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();
filter();
reveal();
