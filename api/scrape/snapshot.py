"""A script for the page: its HTML, with marks on what a reader doesn't see; the page itself stays as it is."""

from __future__ import annotations

from typing import Final

from api.scrape.tree import HIDDEN_MARK, SNAPSHOT_MARK

# - The copy is made in a document without a window: nothing in it loads, runs or is upgraded.
# - Getters are taken from the prototypes: `<input name=firstChild>` hides a form's own property.
# - A stack and no recursion: pages nest as deep as they like.
# - `display: none` ends the walk (`tree`); an invisible element (`own`) may hold visible ones.
# - `<area>` and `<rp>` are never rendered themselves, but what they say belongs to the page.
# - Links with characters beyond ASCII are written as the browser resolves them: only it knows the
#   character set in which the query of such a page is sent.
SNAPSHOT_JS: Final = (
    """
({flatten = false} = {}) => {
  const getter = (type, name) => {
    const get = Object.getOwnPropertyDescriptor(type.prototype, name).get;
    return (node) => get.call(node);
  };
  const firstChild = getter(Node, 'firstChild'), nextSibling = getter(Node, 'nextSibling');
  const nodeType = getter(Node, 'nodeType'), localName = getter(Element, 'localName');
  const parentNode = getter(Node, 'parentNode'), shadowRoot = getter(Element, 'shadowRoot');
  const outerHTML = getter(Element, 'outerHTML'), rootOf = getter(Document, 'documentElement');
  const compatMode = getter(Document, 'compatMode'), hrefOf = getter(HTMLAnchorElement, 'href');
  const implementation = getter(Document, 'implementation');
  const {insertBefore, removeChild, appendChild} = Node.prototype;
  const {setAttribute, getAttribute} = Element.prototype;
  const {importNode, createElement, createDocumentFragment} = Document.prototype;
  const assignedNodes = HTMLSlotElement.prototype.assignedNodes;

  const root = rootOf(document);
  if (!root) return '';
  const inert = implementation(document).createHTMLDocument('');
  const copyOf = (node) => importNode.call(inert, node, true);
  const copy = copyOf(root);
  const stack = [];
  const pushChildren = (live, twin) => {
    let a = firstChild(live), b = firstChild(twin);
    while (a && b) {
      const next = nextSibling(b);
      if (nodeType(a) === 1) stack.push(a, b);
      a = nextSibling(a);
      b = next;
    }
  };
  const replace = (old, nodes) => {
    const parent = parentNode(old);
    for (const node of nodes) insertBefore.call(parent, node, old);
    removeChild.call(parent, old);
  };
  // In place of the host's children comes its shadow tree; these wait here until a slot takes them.
  const twins = new Map();
  const pushShadow = (live, twin, shadow) => {
    let a = firstChild(live), b = firstChild(twin);
    while (a && b) {
      const next = nextSibling(b);
      twins.set(a, b);
      removeChild.call(twin, b);
      a = nextSibling(a);
      b = next;
    }
    for (let child = firstChild(shadow); child; child = nextSibling(child)) {
      const childTwin = copyOf(child);
      appendChild.call(twin, childTwin);
      if (nodeType(child) === 1) stack.push(child, childTwin);
    }
  };

  pushChildren(root, copy);
  while (stack.length) {
    let twin = stack.pop();
    const live = stack.pop(), name = localName(live);
    if (name === 'head') continue;
    if (name !== 'body' && name !== 'area' && name !== 'rp') {
      const style = getComputedStyle(live), display = style.display;
      // No display at all: its host shows a shadow tree without a slot for it.
      if (display === 'none' || display === '') {
        setAttribute.call(twin, 'HIDDEN_MARK', 'tree');
        continue;
      }
      if (style.visibility !== 'visible') setAttribute.call(twin, 'HIDDEN_MARK', 'own');
    }
    if ((name === 'a' || name === 'area') && /[^\\x00-\\x7f]/.test(getAttribute.call(live, 'href') || '')) {
      const href = name === 'a' && live instanceof HTMLAnchorElement ? hrefOf(live) : live.href;
      if (typeof href === 'string') setAttribute.call(twin, 'href', href);
    }
    if (name === 'noscript' && firstChild(live) && nodeType(firstChild(live)) === 1) {
      // It has elements only where scripts are off, and is shown there.
      const div = createElement.call(inert, 'div');
      replace(twin, [div]);
      while (firstChild(twin)) appendChild.call(div, firstChild(twin));
      twin = div;
    }
    const shadow = flatten ? shadowRoot(live) : null;
    if (shadow) {
      pushShadow(live, twin, shadow);
      continue;
    }
    const assigned = flatten && name === 'slot' ? assignedNodes.call(live) : [];
    if (assigned.length) {
      const taken = [];
      for (const node of assigned) {
        const nodeTwin = twins.get(node) || copyOf(node);
        taken.push(nodeTwin);
        if (nodeType(node) === 1) stack.push(node, nodeTwin);
      }
      replace(twin, taken);
      continue;
    }
    pushChildren(live, twin);
  }
  setAttribute.call(copy, 'SNAPSHOT_MARK', '');
  // Without a doctype a table may stand in a paragraph, with it not: the parser must know.
  return (compatMode(document) === 'CSS1Compat' ? '<!DOCTYPE html>' : '') + outerHTML(copy);
}
""".replace("HIDDEN_MARK", HIDDEN_MARK)
    .replace("SNAPSHOT_MARK", SNAPSHOT_MARK)
    .strip()
)
"""A function for ``page.evaluate``, called with ``{"flatten": bool}``; returns the HTML of the page.

``flatten`` puts the content of open shadow roots in the place of their hosts' children, and what is
slotted into its slot. Works under any content security policy and any character set.
"""
