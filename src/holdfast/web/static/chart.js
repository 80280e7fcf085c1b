// Bars of our own, as SVG. A table below every chart has the same figures for those who cannot see it.
import { number } from "./parts.js";
import { html } from "./vendor/preact.js";

const WIDTH = 720, HEIGHT = 130;
export function Bars({ rows, unit }) {
  const shown = rows.slice(-60), most = Math.max(1, ...shown.map((each) => each.value)), step = Math.min(72, WIDTH / Math.max(shown.length, 1));
  const label = (row, i, more) => html`<text class="key" x=${more ? Math.max(step * shown.length, 300) : (i + 0.15) * step} y=${HEIGHT + 17} text-anchor=${more ? "end" : "start"}>${row.key.slice(0, shown.length < 8 ? 10 : 24)}</text>`;
  return html`<svg class="chart" viewBox=${`0 0 ${WIDTH} ${HEIGHT + 24}`} role="img" aria-label=${`${unit} of ${shown.length} rows; the table below has the figures`}><line class="axis" x1="0" y1=${HEIGHT} x2=${WIDTH} y2=${HEIGHT}/>
    ${shown.map((row, i) => { const tall = row.value / most * (HEIGHT - 16); return html`<rect key=${row.key} x=${i * step + step * 0.15} y=${HEIGHT - tall} width=${step * 0.7} height=${Math.max(tall, 1)} rx="2"/>`; })}
    <text x="0" y="11">${number(most)} ${unit}</text>${shown.length < 8 ? shown.map((row, i) => label(row, i)) : html`${label(shown[0], 0)}${label(shown.at(-1), 0, true)}`}</svg>`;
}
