// The panel beside the feed that the map is in: open or closed, how wide, and how near.
import { byId } from './dom.js';
import { map } from './map.js';
import { remember, remembered } from './theme.js';

const WIDE = matchMedia('(min-width: 900px)');
const [MAP_MIN, FEED_MIN] = [240, 280];
const ZOOM = 1.25;
/** A map opens no smaller than this; a broad one is scrolled until one asks to see it whole. */
const LEGIBLE = 0.5;
/** From here on nothing pulses, and states are shown twice a second at most: each change draws much of the map anew. */
const CALM = 200;
const CALM_MS = 500;

/** The panel. `draw(drawing, href)` puts a graph in it, `paint(stateOf)` its states. */
export function mapPanel() {
  const [panel, grip, drawing] = [byId('map'), byId('grip'), byId('drawing')];
  let drawn = null;
  let zoom = null; // null fits the width
  let least = LEGIBLE; // what fitting may shrink to

  let stateOf = null; // what was to be painted last
  let paintedAt = -CALM_MS;
  let painting = null;

  const paintNow = () => {
    clearTimeout(painting);
    painting = null;
    paintedAt = performance.now();
    if (stateOf && !panel.hidden) drawn?.paint(stateOf);
  };
  const paint = (states) => {
    stateOf = states;
    const wait = drawn?.classList.contains('calm') ? paintedAt + CALM_MS - performance.now() : 0;
    if (wait <= 0) paintNow();
    else painting ??= setTimeout(paintNow, wait);
  };
  const scale = () => {
    if (!drawn) return;
    drawn.style.width = zoom === null ? `max(min(100%, ${drawn.size[0]}px), ${drawn.size[0] * least}px)` : `${drawn.size[0] * zoom}px`;
  };
  const zoomBy = (by) => {
    const now = zoom ?? (drawn?.getBoundingClientRect().width ?? 1) / (drawn?.size[0] ?? 1);
    zoom = Math.min(4, Math.max(0.05, now * by));
    scale();
  };
  const open = (isOpen) => {
    panel.hidden = !isOpen;
    grip.hidden = !isOpen;
    byId('show-map').setAttribute('aria-expanded', String(isOpen));
    paintNow();
  };
  const toggle = () => {
    open(panel.hidden);
    remember('omg-map', panel.hidden ? 'closed' : 'open');
  };
  const widen = (width) => {
    const most = Math.max(MAP_MIN, innerWidth - FEED_MIN);
    const now = Math.round(Math.min(most, Math.max(MAP_MIN, width)));
    panel.style.flexBasis = `${now}px`;
    grip.setAttribute('aria-valuemin', MAP_MIN);
    grip.setAttribute('aria-valuemax', most);
    grip.setAttribute('aria-valuenow', now);
    return now;
  };
  const width = () => panel.getBoundingClientRect().width;

  byId('show-map').addEventListener('click', toggle);
  byId('zoom-in').addEventListener('click', () => zoomBy(ZOOM));
  byId('zoom-out').addEventListener('click', () => zoomBy(1 / ZOOM));
  byId('zoom-fit').addEventListener('click', () => { zoom = null; least = 0; scale(); });
  grip.addEventListener('pointerdown', (event) => grip.setPointerCapture(event.pointerId));
  grip.addEventListener('pointermove', (event) => {
    if (grip.hasPointerCapture(event.pointerId)) remember('omg-map-width', widen(panel.getBoundingClientRect().right - event.clientX));
  });
  grip.addEventListener('keydown', (event) => {
    const by = { ArrowLeft: 20, ArrowRight: -20 }[event.key];
    if (by) remember('omg-map-width', widen(width() + by));
  });
  const kept = remembered('omg-map');
  open(kept ? kept === 'open' : WIDE.matches);
  widen(Number(remembered('omg-map-width')) || 340);

  return {
    toggle,
    draw: (told, href) => {
      drawn = map(told, href);
      drawn.classList.toggle('calm', told.nodes.length > CALM);
      drawing.replaceChildren(drawn);
      scale();
      paintNow();
    },
    paint,
  };
}
