// What `source.js` is to a page that was exported: what a server would have answered when the file was made lies in it.
import { byId } from './dom.js';

const kept = JSON.parse(byId('omg-export').textContent);

export const isLive = false;
export const present = () => kept.at;

/** What was answered is found by its route and the values of its parameters. */
export async function ask(address) {
  const { pathname, searchParams } = new URL(address, 'http://export');
  const answer = kept.answers[[pathname.slice(1), ...searchParams.values()].join(' ')];
  return answer ? new Response(answer.text, { headers: { 'X-OMG-Bytes': answer.bytes } }) : new Response('it is not in this file', { status: 404 });
}

/** Tells everything at once, as soon as there is somebody to hear it. */
export function follow(on) {
  queueMicrotask(() => {
    on.begin();
    kept.feed.forEach((line) => on.message(line));
    on.status(kept.status);
    on.caught_up('{}');
    kept.warnings.forEach((error) => on.stream_warning(JSON.stringify({ error })));
  });
}
