// The worker that all pages of a server share: the hub of their streams.
import { Hub } from './hub.js';

const hub = new Hub();
// Held as long as this worker lives: a page that gets it knows that it needs another worker.
const lock = `omg-hub-${crypto.randomUUID()}`;
const isHeld = new Promise((done) => {
  navigator.locks.request(lock, () => {
    done();
    return new Promise(() => {});
  });
});
self.onconnect = async ({ ports: [port] }) => {
  await isHeld;
  port.postMessage({ lock });
  hub.connect(port);
};
