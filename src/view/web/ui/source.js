// Where the page of one run gets what it shows: from the server that it came from. A page that was exported has
// `source_export.js` in the place of this file, with the same names.
import { follow as followStream } from './stream.js';

/** Whether there is a server, which tells what happens now and takes decisions. */
export const isLive = true;

/** The moment that the page shows, in ms. */
export const present = () => Date.now();

/** Asks for an address, as `fetch` does. */
export const ask = (address, options) => fetch(address, options);

/** Calls `on[event](data)` for the run's events, as `stream.js` says. */
export const follow = (on) => followStream('feed', 'api/events', on);
