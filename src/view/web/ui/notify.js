// Tells a person who looks elsewhere, through the browser's notifications, once they allowed it.

const isThere = () => 'Notification' in window;

/** Shows `button` while it is open whether there may be notifications; it asks. */
export function offer(button) {
  button.hidden = !isThere() || Notification.permission !== 'default';
  button.addEventListener('click', async () => {
    await Notification.requestPermission();
    button.hidden = Notification.permission !== 'default';
  });
}

/** Says `text` of run `id`. What is said of a run takes the place of what was, on whichever page. */
export function notify(id, text, onclick = () => {}) {
  if (!isThere() || Notification.permission !== 'granted') return;
  const note = new Notification(text, { tag: id });
  note.onclick = () => { window.focus(); note.close(); onclick(); };
}
