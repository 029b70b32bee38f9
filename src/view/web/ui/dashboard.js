// The page of all runs: one line a run, as they change.
const list = document.getElementById('cards');
const cards = new Map();

const place = (card) => {
  const link = document.createElement('a');
  link.href = `run/${card.run_id}/`;
  link.textContent = `${card.run_id}  ${card.name ?? ''}`;
  const item = cards.get(card.run_id) ?? document.createElement('li');
  item.replaceChildren(link, `  ${card.state}  ${card.hint ?? card.error ?? ''}`);
  cards.set(card.run_id, item);
};

const order = () => list.replaceChildren(...[...cards.keys()].sort().reverse().map((id) => cards.get(id)));

const events = new EventSource('api/cards/events');
events.addEventListener('card', ({ data }) => { place(JSON.parse(data)); order(); });
events.addEventListener('card_removed', ({ data }) => { cards.delete(JSON.parse(data).run_id); order(); });
