// Holds the streams that pages follow, one for each run however many pages show it, and passes on what they tell. A page comes with a
// port and says what it follows; it gets lists of `[event, data]`. Knows of no page: it runs in a worker that all pages share.
import { CardsHistory, FeedHistory } from './history.js';

/** A browser has six connections for a server. What is left over is for what a person does. */
const STREAMS_MAX = 4;
/** How long to wait before a stream that was refused is asked for again. */
const AGAIN_MS = 3_000;
/** How often a run is asked about that nobody looks at and that has no stream, so that its title stays true. */
const ASK_MS = 10_000;
/** What comes within one frame is passed on together. */
const TOGETHER_MS = 16;
const HISTORIES = { feed: FeedHistory, cards: CardsHistory };

export class Hub {
  #topics = new Map(); // address of a stream -> Topic
  #isForHidden;
  #turn = 0;
  #asking = null;

  /** With `isForHidden` false, what no visible page follows has no stream: each page of such a browser has a hub of its own. */
  constructor({ isForHidden = true } = {}) {
    this.#isForHidden = isForHidden;
  }

  /** Serves the page at the other end of `port`. It says `{follow, kind, isHidden, lock}` once, then `{isHidden}` at every change, and `{isGone}`. */
  connect(port) {
    let page = null;
    let topic = null;
    const leave = () => {
      topic?.pages.delete(page);
      this.#arrange();
    };
    port.onmessage = ({ data }) => {
      if (data.isGone) return leave();
      if (data.follow) {
        page = { port };
        topic = this.#topic(data.follow, data.kind);
        topic.pages.add(page);
        port.postMessage([['begin'], ...(topic.isOpen === null ? [] : [[topic.isOpen ? 'open' : 'lost']]), ...topic.history.replay()]);
        // A page cannot be trusted to say that it is gone: one that crashes lets go of its lock all the same.
        if (data.lock) navigator.locks.request(data.lock, leave);
      }
      page.isHidden = data.isHidden;
      if (!page.isHidden) topic.seen = ++this.#turn;
      this.#arrange();
    };
  }

  #topic(address, kind) {
    let topic = this.#topics.get(address);
    // Who comes anew tries anew what had failed.
    if (topic?.isBroken) {
      topic.isBroken = false;
      topic.history.clear();
      this.#tell(topic, 'begin');
    }
    if (!topic) this.#topics.set(address, topic = { address, kind, history: new HISTORIES[kind](), pages: new Set(), source: null, isOpen: null, due: [], seen: 0 });
    this.#pass(topic);
    return topic;
  }

  /** Gives streams to what is looked at, or was last, and takes them from the rest. */
  #arrange() {
    const rank = (topic) => [topic.kind === 'cards', isSeen(topic), topic.seen].map(Number);
    const ranked = [...this.#topics.values()].map((topic) => [rank(topic), topic]).sort(([a], [b]) => b[0] - a[0] || b[1] - a[1] || b[2] - a[2]);
    let streams = 0;
    let isAsked = false;
    for (const [, topic] of ranked) {
      const gets = topic.pages.size > 0 && !topic.isBroken && (this.#isForHidden || isSeen(topic)) && streams++ < STREAMS_MAX;
      if (!gets) this.#close(topic);
      else if (!topic.source) this.#open(topic);
      if (topic.pages.size === 0) this.#topics.delete(topic.address);
      isAsked ||= isAskedAbout(topic);
    }
    if (isAsked) this.#asking ??= setInterval(() => this.#ask(), ASK_MS);
    else this.#asking = void clearInterval(this.#asking);
  }

  #open(topic) {
    const source = new EventSource(topic.address + topic.history.from);
    topic.source = source;
    const isCurrent = () => topic.source === source;
    for (const event of topic.history.constructor.events) {
      source.addEventListener(event, ({ data, lastEventId }) => { if (isCurrent()) this.#take(topic, event, data, lastEventId); });
    }
    source.onopen = () => {
      if (!isCurrent()) return;
      topic.history.connected();
      topic.isOpen = true;
      this.#tell(topic, 'open');
    };
    source.onerror = () => {
      if (!isCurrent()) return;
      topic.isOpen = false;
      this.#tell(topic, 'lost');
      if (source.readyState !== EventSource.CLOSED) return;
      // The browser does not come back by itself.
      setTimeout(() => {
        if (!isCurrent()) return;
        topic.source = null;
        this.#arrange();
      }, AGAIN_MS);
    };
  }

  #close(topic) {
    topic.source?.close();
    topic.source = null;
  }

  #take(topic, event, data, id) {
    if (!topic.history.take(event, data, id)) return;
    this.#tell(topic, event, data);
    if (event !== 'stream_error') return;
    topic.isBroken = true;
    this.#arrange();
  }

  #tell(topic, event, data) {
    if (topic.due.length === 0) setTimeout(() => this.#pass(topic), TOGETHER_MS);
    topic.due.push([event, data]);
  }

  #pass(topic) {
    const { due } = topic;
    topic.due = [];
    if (due.length > 0) for (const { port } of topic.pages) port.postMessage(due);
  }

  async #ask() {
    for (const topic of [...this.#topics.values()].filter(isAskedAbout)) {
      const { run } = await fetch(new URL('run', topic.address)).then((answer) => answer.json()).catch(() => ({}));
      if (run && !topic.source) this.#take(topic, 'status', JSON.stringify(statusOf(run)));
    }
  }
}

const isSeen = (topic) => [...topic.pages].some(({ isHidden }) => !isHidden);
const isAskedAbout = (topic) => topic.kind === 'feed' && !topic.source && !topic.isBroken && topic.pages.size > 0;

/** How a run stands, by the document that `omg show --json` prints. */
export function statusOf(run) {
  const words = { PASS: 'passed', FAIL: 'failed' };
  return { ...run, state: words[run.status] ?? run.status?.toLowerCase() ?? 'pending' };
}
