// What is shown: a view, the words of the search, a namespace, a node, and whether only findings or conflicts count.
const search = document.getElementById("search");
const selects = { namespace: document.getElementById("namespace"), node: document.getElementById("node"), findings: document.getElementById("findings") };
const reset = document.getElementById("reset");
const status = document.getElementById("status");
const NO_STATE = { view: "overview", q: "", namespace: null, node: null, findings: null, item: null };
let state = { ...NO_STATE };
let words = [];

function matches(item) {
  if (state.namespace !== null && !item.namespaces.includes(state.namespace)) return false;
  if (state.node !== null && !nodesOf(item).includes(state.node)) return false;
  if (state.findings === "any" && !item.findings.length) return false;
  if (state.findings === "conflicts" && !hasConflict(item)) return false;
  return words.every((word) => textOf(item).includes(word));
}

// The matching items of each type, found again only when a filter changes.
let matching = new Map();
let matchedBy = "";
function matched(type) {
  const by = JSON.stringify([state.q, state.namespace, state.node, state.findings]);
  if (by !== matchedBy) [matching, matchedBy] = [new Map(), by];
  if (!matching.has(type)) matching.set(type, items[type].filter(matches));
  return matching.get(type);
}

function change(changes) {
  state = { ...state, ...changes };
  words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  show();
  writeAddress();
}

function showFilters() {
  if (search.value !== state.q) search.value = state.q;
  for (const [name, select] of Object.entries(selects)) {
    const index = state[name] === null ? 0 : [...select.options].findIndex((option, at) => at > 0 && option.value === state[name]);
    select.selectedIndex = Math.max(index, 0);
    select.classList.toggle("on", select.selectedIndex > 0);
  }
  reset.disabled = !state.q && state.namespace === null && state.node === null && state.findings === null;
}

function option(value, label) {
  return element("option", { value }, label);
}

const nodeNames = unique([...items.user.map((user) => user.row.node), ...items.pf.map((pf) => pf.row.node), ...map.resources.flatMap((resource) => resource.nodes.map((node) => node.node))].filter(Boolean)).sort();
selects.namespace.append(...map.namespaces.map(({ name }) => option(name, name || "(no namespace)")));
selects.node.append(...nodeNames.map((name) => option(name, name)));
selects.node.closest("label").hidden = nodeNames.length === 0;

search.addEventListener("input", () => change({ q: search.value }));
for (const [name, select] of Object.entries(selects)) select.addEventListener("change", () => change({ [name]: select.selectedIndex > 0 ? select.value : null }));
reset.addEventListener("click", () => { change({ ...NO_STATE, view: state.view, item: state.item }); search.focus(); });
