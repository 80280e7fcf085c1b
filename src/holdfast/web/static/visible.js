// Nothing on the page is invisible: characters that show nothing, or that change the order of others, appear as their code points. Every
// text of every element passes here.
import { options } from "./vendor/preact.js";

const HIDDEN = /(?![\n\t ])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}\ufe00-\ufe0f\u{e0100}-\u{e01ef}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]/gu;
const EMOJI = /\p{Emoji}[\ufe0f\u200d]/u;
const visible = (text) => text.replace(HIDDEN, (char, place) =>
  (char === "\ufe0f" || char === "\u200d") && EMOJI.test(text.slice(Math.max(0, place - 2), place + 1)) ? char : `<U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`);

const clean = (child) => typeof child === "string" ? visible(child) : Array.isArray(child) ? child.map(clean) : child;
const before = options.vnode;
options.vnode = (node) => {
  if (typeof node.type === "string" && node.props.children != null) node.props.children = clean(node.props.children);
  before?.(node);
};
