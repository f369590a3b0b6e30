// Everything that a list shows is opened, or closed if all of it is open.
for (const { expand, entries } of lists) {
  expand?.addEventListener("click", () => {
    const shown = entries.filter((entry) => entry.state === "shown");
    const isOpen = shown.some((entry) => !entry.details.open);
    for (const { details } of shown) details.open = isOpen;
  });
}

// Paper has room for every entry that matches; and where the style cannot open what is closed, the script does.
const canStyleOpen = CSS.supports("selector(::details-content)");
let closed = [];
addEventListener("beforeprint", () => {
  for (const entry of entries) if (entry.state === "later") entry.element.hidden = false;
  if (!canStyleOpen) closed = [...document.querySelectorAll("details:not([open])")];
  for (const details of closed) details.open = true;
});
addEventListener("afterprint", () => {
  for (const entry of entries) if (entry.state === "later") entry.element.hidden = true;
  for (const details of closed) details.open = false;
  closed = [];
});
readAddress();
