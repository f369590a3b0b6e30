// `/` goes to the search, the arrow keys go from row to row and from tab to tab, and Escape closes what is open or clears the search.
function stepTab(from, key) {
  const all = [...tabs.children].filter((tab) => !tab.hidden);
  const to = (all.indexOf(from) + (key === "ArrowRight" ? 1 : all.length - 1)) % all.length;
  all[to].focus();
  all[to].click();
}

addEventListener("keydown", (event) => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isField = target.matches("input, select, textarea");
  if (key === "/" && !isField) {
    search.focus();
    search.select();
  } else if (key === "Escape" && target === search && search.value) {
    change({ q: "" });
  } else if (key === "Escape" && state.item && !isField) {
    leave();
  } else if (target === search ? key === "ArrowDown" : target.matches("a.row") && /^(Arrow(Up|Down)|Home|End)$/.test(key)) {
    step([...list.querySelectorAll("a.row")], target, key);
  } else if (target.matches("[role=tab]") && /^Arrow(Left|Right)$/.test(key)) {
    stepTab(target, key);
  } else {
    return;
  }
  event.preventDefault();
});
