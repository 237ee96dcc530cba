// What makes the documentation handier; it can be read without.

const SHOWN_MS = 2000;

// Each block of code gets a button that copies it, where the browser lets pages copy.
function addCopyButton(block) {
  const frame = document.createElement("div");
  frame.className = "block";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block);
      button.textContent = "Press Ctrl-C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, SHOWN_MS);
  });
  block.replaceWith(frame);
  frame.append(block, button);
}

if (navigator.clipboard) document.querySelectorAll("main pre").forEach(addCopyButton);

// The page's own entry is in sight in the list of pages.
const pages = document.querySelector("#pages");
const current = pages.querySelector("[aria-current]");
if (current) pages.scrollTop = current.offsetTop - pages.clientHeight / 2;
