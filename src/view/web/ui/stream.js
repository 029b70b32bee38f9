// How a page follows a stream of the server. All pages of a browser share one worker and with it one stream for each run: a browser
// has six connections for a server, and a seventh page would wait for ever. Where there is no such worker, the page has a hub of its own.
import { meta } from './dom.js';
import { Hub } from './hub.js';

/** Where the worker lies: pages below another one share that of the root. */
const ROOT = new URL(/\/run\/[^/]+\/$/.test(location.pathname) ? '../../' : './', location.href);

/**
 * Calls `on[event](data)` for what the stream at `path` tells, of `kind` feed or cards. Besides the events of the server there are `open` and `lost`
 * of its connection, and `begin`: everything is told anew, from nothing.
 */
export async function follow(kind, path, on) {
  const lock = await heldLock();
  let port = null;
  let watched = null; // the lock of the worker that is there now
  const say = (more) => port?.postMessage({ isHidden: document.hidden, ...more });
  const take = ({ data }) => {
    if (data.lock) return watch(data.lock);
    for (const [event, told] of data) on[event]?.(told);
  };
  const watch = (worker) => {
    if (worker === watched) return;
    watched = worker;
    navigator.locks.request(worker, { mode: 'shared' }, () => { on.lost?.(); join(); });
  };
  const join = () => {
    port = lock ? sharedPort(() => { port = ownPort(); begin(); }) : ownPort();
    begin();
  };
  const begin = () => {
    port.onmessage = take;
    say({ follow: new URL(path, location.href).href, kind, lock });
  };
  document.addEventListener('visibilitychange', () => say());
  // Of windows side by side, the one that a person turns to comes first.
  addEventListener('focus', () => say());
  // A page that is kept for the way back hears nothing meanwhile.
  addEventListener('pagehide', () => say({ isGone: true }));
  addEventListener('pageshow', ({ persisted }) => { if (persisted) join(); });
  join();
}

/** The name of a lock that this page holds as long as it lives; `null` where there are none, or no worker to hear of it. */
function heldLock() {
  if (!globalThis.SharedWorker || !navigator.locks) return null;
  const name = `omg-page-${crypto.randomUUID()}`;
  return new Promise((done) => {
    navigator.locks.request(name, () => {
      done(name);
      return new Promise(() => {});
    });
  });
}

/** A port of the shared worker; each build has its own, since pages and worker must speak alike. */
function sharedPort(otherwise) {
  const name = `omg ${meta('omg-version')} ${meta('omg-built-at')}`;
  const worker = new SharedWorker(new URL('hub_worker.js', ROOT), { type: 'module', name });
  worker.onerror = otherwise;
  return worker.port;
}

function ownPort() {
  const { port1, port2 } = new MessageChannel();
  new Hub({ isForHidden: false }).connect(port2);
  return port1;
}
