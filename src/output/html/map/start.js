// The views, and the first of them.
const tabs = document.getElementById("tabs");
const content = document.getElementById("content");
const ORDER = ["overview", "network", "nad", "range", "vlan", "resource", "pf", "policy", "ovn", "user", "finding"];
for (const view of ORDER) {
  if (view !== "overview" && !items[view].length && !["nad", "user", "finding"].includes(view)) continue;
  tabs.append(element("button", { type: "button", role: "tab", id: `tab-${view}`, "aria-controls": "content", onclick: () => change({ view, item: null }) }, view === "overview" ? "Overview" : TYPES[view].many, view === "overview" ? null : element("span", { class: "count" })));
}

function showTabs() {
  for (const tab of tabs.children) {
    const view = tab.id.slice(4);
    const isSelected = view === state.view;
    tab.setAttribute("aria-selected", isSelected);
    tab.tabIndex = isSelected ? 0 : -1;
    const end = tab.offsetLeft + tab.offsetWidth - tabs.offsetLeft;
    if (isSelected && (end > tabs.scrollLeft + tabs.clientWidth || end - tab.offsetWidth < tabs.scrollLeft)) tabs.scrollLeft = end - tabs.clientWidth / 2;
    if (view !== "overview") tab.querySelector(".count").textContent = digits(matched(view).length);
  }
  content.setAttribute("aria-labelledby", `tab-${state.view}`);
}

let shownState = {};
function show() {
  const isOverview = state.view === "overview";
  showFilters();
  showTabs();
  overview.hidden = !isOverview;
  for (const part of [list.parentElement, rest]) part.hidden = isOverview;
  if (isOverview) showOverview();
  // Opening an item does not change the list.
  else if (addressOf({ ...state, item: null }) !== addressOf({ ...shownState, item: null }) || !list.childElementCount) showList(state.view);
  else showRest();
  showDetail();
  shownState = state;
}

// Paper has room for every row that matches.
addEventListener("beforeprint", () => { if (state.view !== "overview" && shown.length > limit) showMore(shown.length - limit); });
addEventListener("hashchange", readAddress);

const conflicts = map.findings.filter((finding) => finding.is_conflict).length;
const conflictWords = conflicts ? `, ${counted(conflicts, "conflict")}` : "";
document.getElementById("lead").textContent = map.nads.length
  ? `${nadWord(map.nads.length)} in ${counted(map.namespaces.filter((one) => one.nads).length, "namespace")}, ${podWord(podsOf(items.user))}${conflictWords}`
  : unknown("NADs") ? "NADs could not be read" : "No NADs";
const { cluster } = map.source;
document.getElementById("source").textContent = cluster ? `${cluster.name}${cluster.namespace ? `, namespace ${cluster.namespace}` : ""}` : "from manifests";
readAddress();

// What a search and the filter of nodes read is gathered while there is nothing else to do.
const waiting = Object.values(items).flat().reverse();
function gather(deadline) {
  while (waiting.length && deadline.timeRemaining() > 2) {
    const item = waiting.pop();
    textOf(item);
    nodesOf(item);
  }
  if (waiting.length) requestIdleCallback(gather);
}
if (globalThis.requestIdleCallback) requestIdleCallback(gather);
