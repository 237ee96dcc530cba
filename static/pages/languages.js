// A page with the same program in several languages shows the one that the reader has chosen, on
// all such pages. Without this they show all.

const LANGUAGES = ["Python", "JavaScript", "Java", "Go", "Rust", "curl"];
const ALL = "All";
const KEPT = "warren-language";

// "Python: pika" is Python.
const languageOf = (name) => name.split(":")[0];

function partsOf(heading) {
  const parts = [heading, document.querySelector(`.contents a[href="#${heading.id}"]`)?.parentElement];
  for (let next = heading.nextElementSibling; next && !next.matches("h2, footer"); next = next.nextElementSibling) parts.push(next);
  return parts.filter(Boolean);
}

const headings = [...document.querySelectorAll("main h2")].filter((one) => LANGUAGES.includes(languageOf(one.textContent)));
const sections = new Map(headings.map((heading) => [heading.textContent, { id: heading.id, parts: partsOf(heading) }]));
const names = [...sections.keys()];

// Another page's "Python: pika" may be this one's "Python".
const here = (name) => names.find((one) => one === name) ?? names.find((one) => languageOf(one) === languageOf(name)) ?? ALL;

function show(chosen) {
  for (const [name, { parts }] of sections) {
    for (const part of parts) part.hidden = ![ALL, name].includes(chosen);
  }
  for (const button of choice.children) button.ariaPressed = button.textContent === chosen;
}

// A link to a section shows it, whatever was chosen.
function showTarget() {
  const name = names.find((one) => location.hash === `#${sections.get(one).id}`);
  if (!name || !sections.get(name).parts[0].hidden) return;
  show(name);
  sections.get(name).parts[0].scrollIntoView();
}

const choice = document.createElement("div");
if (sections.size > 2) {
  choice.className = "languages";
  choice.role = "group";
  choice.ariaLabel = "Language of the programs";
  for (const name of [ALL, ...names]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => {
      localStorage.setItem(KEPT, name);
      show(name);
    });
    choice.append(button);
  }
  headings[0].before(choice);
  show(here(localStorage.getItem(KEPT) ?? ALL));
  showTarget();
  addEventListener("hashchange", showTarget);
}
