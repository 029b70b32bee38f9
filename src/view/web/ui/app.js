// The page of one run: its feed as lines, and buttons for the gates that wait.
const token = document.querySelector('meta[name="omg-token"]').content;
const byId = (id) => document.getElementById(id);
const feed = byId('feed');

const say = (list, text) => {
  const item = document.createElement('li');
  item.textContent = text;
  list.append(item);
  return item;
};

const decide = async (gate, choice, item) => {
  const buttons = item.querySelectorAll('button');
  buttons.forEach((button) => { button.disabled = true; });
  const answer = await fetch(`api/gate/${choice}`, {
    method: 'POST',
    headers: { 'X-OMG-Token': token, 'Content-Type': 'application/json' },
    body: JSON.stringify({ node: gate }),
  });
  if (!answer.ok) {
    byId('hint').textContent = await answer.text();
    buttons.forEach((button) => { button.disabled = false; });
  }
};

const showStatus = (status) => {
  byId('title').textContent = status.run_id;
  byId('state').textContent = status.state;
  document.title = `${status.state}: ${status.run_id}`;
  byId('hint').textContent = status.hint ?? status.error ?? '';
  byId('gates').replaceChildren();
  for (const gate of status.in_flight ? [] : status.waiting ?? []) {
    const item = say(byId('gates'), `${gate} `);
    for (const choice of ['approve', 'reject']) {
      const button = document.createElement('button');
      button.textContent = choice;
      button.addEventListener('click', () => decide(gate, choice, item));
      item.append(button);
    }
  }
};

const events = new EventSource('api/events');
events.onmessage = ({ data }) => {
  const { ts, event, node_id: node = '', detail = '', outcome = '' } = JSON.parse(data);
  say(feed, [ts, event, node, outcome, detail].filter(Boolean).join('  '));
};
events.addEventListener('reset', () => feed.replaceChildren());
events.addEventListener('status', ({ data }) => showStatus(JSON.parse(data)));
events.addEventListener('stream_warning', ({ data }) => say(feed, JSON.parse(data).error));
events.addEventListener('stream_error', ({ data }) => { events.close(); say(feed, JSON.parse(data).error); });
events.onerror = () => { byId('state').textContent = 'reconnecting'; };
