// The fragment of the address holds what is searched, chosen and open: `#q=words&severity=deny&open=apps/…`. `open=*` opens everything.
const MOST_OPEN = 20;
const byId = new Map(entries.filter((entry) => entry.details).map((entry) => [entry.id, entry]));
let isWriting = false;

function addressOf(open) {
  const address = new URLSearchParams();
  if (search.value) address.set("q", search.value);
  for (const [name, value] of chosen()) address.set(name, value);
  for (const id of open) address.append("open", id);
  return "#" + address.toString().replaceAll("%2F", "/");
}

// Many entries may open or close at once; the address is written once after them.
function writeAddress() {
  if (isWriting) return;
  isWriting = true;
  requestAnimationFrame(() => {
    isWriting = false;
    const open = [...byId.values()].filter((entry) => entry.details.open).map((entry) => entry.id);
    const isAll = open.length > 1 && open.length === byId.size;
    try {
      history.replaceState(null, "", addressOf(isAll ? ["*"] : open.slice(0, MOST_OPEN)));
    } catch {
      // A browser may allow only so many changes of the address in a while; the next one has all of it.
    }
  });
}

function readAddress() {
  if (location.hash && !location.hash.includes("=")) return;
  const address = new URLSearchParams(location.hash.slice(1));
  search.value = address.get("q") ?? "";
  for (const select of selects) choose(select.name, address.get(select.name));
  searchWords();
  show();
  const open = new Set(address.getAll("open"));
  for (const [id, { details }] of byId) details.open = open.has("*") || open.has(id);
  const first = byId.get(address.get("open"));
  if (!first) return;
  while (first.state === "later") showMore(lists.find((list) => list.entries.includes(first)));
  first.element.scrollIntoView({ block: "start" });
  first.details.firstElementChild.focus({ preventScroll: true });
}

document.addEventListener("toggle", (event) => { if (event.target.parentElement.dataset.entry !== undefined) writeAddress(); }, true);
addEventListener("hashchange", readAddress);
