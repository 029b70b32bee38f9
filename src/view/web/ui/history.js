// What a stream has told so far, as a page that begins to follow it later needs it. Pure.

/** Of the feed of a run: every line, and how the run stands. */
export class FeedHistory {
  static events = ['message', 'reset', 'status', 'caught_up', 'stream_warning', 'stream_error'];

  constructor() { this.clear(); }

  clear() {
    this.lines = [];
    this.at = 0; // the id of the last line
    this.last = new Map(); // event -> its data, of those of which the last one counts
  }

  /** Where a stream goes on that begins anew. */
  get from() { return this.at > 0 ? `?from=${this.at}` : ''; }

  /** A connection was made. It tells what it knows already once more. */
  connected() {}

  /** Takes an event; says whether it is one to pass on. */
  take(event, data, id) {
    if (event === 'message') {
      // Ids are places in a file: they grow.
      if (Number(id) <= this.at) return false;
      this.at = Number(id);
      this.lines.push(data);
      return true;
    }
    if (event === 'reset') this.clear();
    else this.last.set(event, data);
    return true;
  }

  /** The events that bring a page here from nothing. */
  replay() {
    const order = FeedHistory.events.filter((event) => this.last.has(event));
    return [...this.lines.map((line) => ['message', line]), ...order.map((event) => [event, this.last.get(event)])];
  }
}

/** Of all runs: the last card of each that this connection told of. */
export class CardsHistory {
  static events = ['card', 'card_removed', 'totals', 'cards_ready', 'stream_error'];

  constructor() { this.clear(); }

  clear() {
    this.cards = new Map();
    this.last = new Map();
  }

  get from() { return ''; }

  /** A connection was made: it tells everything that is open, and what it does not tell is settled or gone. */
  connected() { this.clear(); }

  take(event, data) {
    if (event === 'card') this.cards.set(JSON.parse(data).run_id, data);
    else if (event === 'card_removed') this.cards.delete(JSON.parse(data).run_id);
    else this.last.set(event, data);
    return true;
  }

  replay() {
    const order = CardsHistory.events.filter((event) => this.last.has(event));
    return [...[...this.cards.values()].map((card) => ['card', card]), ...order.map((event) => [event, this.last.get(event)])];
  }
}
