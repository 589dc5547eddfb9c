/* The weaving room and the cards of the guest book, drawn in the browser. */
"use strict";

const element = (name, className, text) => {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text ?? "";
  return made;
};

function drawLooms(items, onlyFree) {
  const cards = items
    .filter((item) => item.free || !onlyFree)
    .map((item) => {
      const card = element("article", "loom");
      card.dataset.id = item.id;
      card.append(
        element("span", item.free ? "state free" : "state taken", item.free ? "Free" : "Taken"),
        element("h2", "name", item.name),
        element("p", "kind", `${item.kind}, ${item.shafts} shafts, ${item.width_cm} cm`),
      );
      return card;
    });
  document.getElementById("app").replaceChildren(...cards);
}

async function openRoom() {
  const answer = await fetch("/api/items");
  const { items } = await answer.json();
  const free = items.filter((item) => item.free).length;
  document.getElementById("summary").textContent = `${free} of ${items.length} looms are free.`;
  const onlyFree = document.getElementById("only-free");
  onlyFree.addEventListener("change", () => drawLooms(items, onlyFree.checked));
  drawLooms(items, onlyFree.checked);
}

const sheet = '<link rel="stylesheet" href="/style.css">';

customElements.define("loom-stamp", class extends HTMLElement {
  connectedCallback() {
    const root = this.attachShadow({ mode: "open" });
    root.innerHTML = `${sheet}<span class="stamp">Seen and signed</span>`;
  }
});

customElements.define("loom-card", class extends HTMLElement {
  connectedCallback() {
    const root = this.attachShadow({ mode: "open" });
    root.innerHTML = `${sheet}<div class="card"><h2></h2><slot></slot><loom-stamp></loom-stamp></div>`;
    root.querySelector("h2").textContent = this.getAttribute("name");
  }
});

if (document.getElementById("app")) openRoom();
