// Copies a fix, an object, the object as admission would store it, or the address of an object.
const announcement = document.getElementById("announcement");

function copied(button) {
  const entry = button.closest("[data-entry]");
  if (button.dataset.copy === "link") return location.href.split("#")[0] + addressOf([entry.dataset.entry]);
  const text = button.closest(".copied").querySelector(".text, pre").textContent;
  if (button.dataset.copy !== "stored") return text;
  return text.split("\n").filter((line) => !line.startsWith("-")).map((line) => line.slice(1)).join("\n");
}

// Without permission for the clipboard: what is selected can always be copied.
function copySelected(text) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

async function copy(button) {
  const text = copied(button);
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copySelected(text);
    button.focus();
  }
  button.classList.add("done");
  announcement.textContent = "Copied";
  setTimeout(() => { button.classList.remove("done"); announcement.textContent = ""; }, 2000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});
