// What the page lists: objects, findings, write loops, and rows of tables; each with what it can be filtered by.
const search = document.getElementById("search");
const selects = [...document.querySelectorAll("select[name]")];
// A list shows so many entries at first, and more of them when its end comes into view; the page has all of them.
const CHUNK = 200;
const lists = [...document.querySelectorAll("[data-list]")].map((section) => ({
  limit: CHUNK,
  rest: section.querySelector(".rest"),
  expand: section.querySelector(".expand"),
  count: section.querySelector(".count"),
  empty: section.querySelector(".empty"),
  entries: [...section.querySelectorAll("[data-entry]")].map(entryOf),
}));
const entries = lists.flatMap((list) => list.entries);

function entryOf(element) {
  const { found, entry, ...labels } = element.dataset;
  const findings = found ? found.split(",").map((one) => { const [severity, rule] = one.split(" "); return { severity, rule }; }) : [];
  return {
    element, id: entry, labels, findings, details: element.querySelector("details"), text: null, isHit: true,
    state: element.hidden ? "later" : "shown",
  };
}

// An entry is shown, or it is not for a reason: it does not match ("hidden"), or there is not yet room for it ("later").
function setState(entry, state) {
  const isHidden = state !== "shown";
  // A change of the page is slow, so it is made only where there is one.
  if (isHidden !== (entry.state !== "shown")) entry.element.hidden = isHidden;
  entry.state = state;
}

// The searched text of an entry, gathered when it is first needed; not the names of its parts, which all entries have.
function textOf(entry) {
  if (entry.text === null) {
    const parts = entry.details ? [...entry.element.querySelectorAll("summary, .text, pre")] : [entry.element];
    entry.text = parts.map((part) => part.textContent).join("\n").toLowerCase();
  }
  return entry.text;
}
