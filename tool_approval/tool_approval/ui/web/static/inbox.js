// Updates the list of open requests and answers in place. Without this script, the page works with forms and reloading.
'use strict';

(() => {
  // Chosen: milliseconds in which a new request ignores clicks, which were meant for something else.
  const SETTLING_MS = 800;
  const base = document.body.dataset.base;
  const status = document.getElementById('status');
  const title = document.title;
  let announced = Promise.resolve();

  function say(text) {
    // One after another, so that a screen reader reads each.
    announced = announced.then(() => new Promise((done) => {
      status.textContent = text;
      setTimeout(done, 300);
    }));
  }

  // Show times in the reader's time zone, and the server's UTC time in the tooltip.
  function localTime(time) {
    const moment = new Date(time.dateTime);
    time.title = time.textContent || moment.toISOString();
    const isToday = moment.toDateString() === new Date().toDateString();
    time.textContent = isToday ? moment.toLocaleTimeString() : moment.toLocaleString();
  }

  const localTimes = (root) => root.querySelectorAll('time').forEach(localTime);

  // The days of the history and of a search are also in the reader's time zone.
  function localDays() {
    if (!document.querySelector('.day')) return;
    document.querySelectorAll('.day').forEach((day) => day.remove());
    let last;
    for (const card of document.querySelectorAll('main > .card')) {
      const day = new Date(card.querySelector('.outcome time').dateTime).toLocaleDateString([], { dateStyle: 'full' });
      if (day === last) continue;
      const heading = document.createElement('h2');
      heading.className = 'day';
      heading.textContent = last = day;
      card.before(heading);
    }
  }

  function localUntil(event) {
    const [year, month, day] = event.target.elements.until.value.split('-').map(Number);
    if (!day) return;
    const before = document.createElement('input');
    before.type = 'hidden';
    before.name = 'before';
    before.value = new Date(year, month - 1, day + 1).toISOString();
    event.target.append(before);
  }

  // Others may see a notification on a locked screen, so it names only the tool.
  function notify(name) {
    if (!document.hidden || !('Notification' in window) || Notification.permission !== 'granted') return;
    const shown = new Notification('Approval requested', { body: name });
    shown.addEventListener('click', () => { window.focus(); shown.close(); });
  }

  function offerNotifications() {
    if (!('Notification' in window) || Notification.permission !== 'default') return;
    const offer = document.createElement('button');
    offer.type = 'button';
    offer.textContent = 'Notify me';
    offer.addEventListener('click', async () => {
      await Notification.requestPermission();
      offer.remove();
    });
    document.querySelector('header.top nav').after(offer);
  }

  function line(text, look) {
    const made = document.createElement('p');
    made.className = look;
    made.textContent = text;
    return made;
  }

  function settle(card, { outcome, settled_at: at, state }) {
    if (!card || card.classList.contains('settled')) return;
    const actions = card.querySelector('.actions');
    const hadFocus = card.contains(document.activeElement);
    const block = document.createElement('div');
    block.className = 'actions settled';
    // Keep the height, so that elements below do not move under a click.
    block.style.minHeight = `${actions.offsetHeight}px`;
    const told = line(outcome, `outcome ${state ?? stateOf(outcome)}`);
    if (at) {
      const time = document.createElement('time');
      time.dateTime = at;
      localTime(time);
      told.append(', ', time);
    }
    block.append(told);
    actions.replaceWith(block);
    card.classList.add('settled');
    if (hadFocus) card.querySelector('h2').focus({ preventScroll: true });
    say(`${card.dataset.name}: ${outcome}`);
    count();
  }

  const stateOf = (outcome) => outcome.split(/[ :]/, 1)[0].toLowerCase();

  function problem(form, text) {
    form.querySelector('.problem')?.remove();
    const told = line(text, 'problem');
    told.setAttribute('role', 'alert');
    form.append(told);
  }

  function count() {
    const waiting = document.querySelectorAll('#open > .card:not(.settled):not(.moved)').length;
    const all = document.querySelectorAll('#open > .card:not(.moved)').length;
    document.title = waiting ? `(${waiting}) ${title}` : title;
    const empty = document.getElementById('empty');
    if (empty) empty.hidden = all > 0;
    const bar = document.getElementById('answered');
    if (bar) {
      bar.hidden = all === waiting;
      bar.querySelector('p').textContent = `${all - waiting} answered`;
    }
  }

  async function submit(event) {
    const form = event.target;
    if (!form.matches('form.answer, form.group')) return;
    event.preventDefault();
    // The first button of each form only takes Enter, and sends nothing.
    if (event.submitter?.formMethod === 'dialog' || form.dataset.sending) return;
    form.dataset.sending = 'true';
    const data = new URLSearchParams(new FormData(form, event.submitter));
    try {
      const answer = await fetch(form.action, {
        method: 'POST', body: data, headers: { Accept: 'application/json' }, redirect: 'error',
      });
      const told = await answer.json();
      if (answer.ok && told.outcomes) {
        for (const [id, each] of Object.entries(told.outcomes)) {
          if (each.outcome.startsWith('Not answered')) await look(id);
          else settle(document.getElementById(`request-${id}`), each);
        }
        put(form);
      } else if (answer.ok) {
        settle(form.closest('.card'), told);
      } else {
        const text = told.error.message;
        problem(form, `${text.charAt(0).toUpperCase()}${text.slice(1)}.`);
        const card = form.closest('.card');
        if (card && told.error.code === 'already_settled') await look(card.dataset.key);
      }
    } catch {
      problem(form, 'Your answer may not have been received. Try again.');
    } finally {
      delete form.dataset.sending;
    }
  }

  // Hide and disable an element without moving the elements below.
  function put(element) {
    element.classList.add('moved');
    element.inert = true;
    element.removeAttribute('data-key');
  }

  // Show the outcome of a request that is no longer open.
  async function look(id) {
    const answer = await fetch(`${base}/api/v1/requests/${encodeURIComponent(id)}`);
    const card = document.getElementById(`request-${id}`);
    if (answer.status === 404) return settle(card, { outcome: 'This request no longer exists.', state: 'withdrawn' });
    if (!answer.ok) return;
    const request = await answer.json();
    if (request.state !== 'pending') settle(card, request);
  }

  const keysOf = (root) => new Map([...root.querySelectorAll('#open > [data-key]')].map((item) => [item.dataset.key, item]));

  const canAnswer = (card) => card.querySelector('form.answer') !== null;

  // Insert a request next to those of the same response, or return false. Others go to the end, so that nothing moves.
  function place(made, before, after, mine) {
    const beside = (entry) => {
      const response = made.dataset.response;
      return entry && response && entry[1].dataset.response === response ? mine.get(entry[0]) : undefined;
    };
    const [previous, next] = [beside(before), beside(after)];
    if (previous) previous.after(made);
    else if (next) next.before(made);
    return previous || next;
  }

  async function refresh() {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, redirect: 'error' });
    if (answer.status === 401) return location.reload();
    if (!answer.ok) throw new Error('refused');
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const list = document.getElementById('open');
    const [mine, theirs] = [keysOf(document), keysOf(page)];
    for (const [key, item] of mine) {
      if (theirs.has(key)) continue;
      if (!item.classList.contains('card')) put(item);
      else if (!item.classList.contains('settled')) await look(key);
    }
    const items = [...theirs];
    for (const [index, [key, item]] of items.entries()) {
      const old = mine.get(key);
      // A rule may let others answer after a time. The buttons come with a card at the end, so that nothing moves.
      if (old && (old.classList.contains('settled') || canAnswer(old) || !canAnswer(item))) continue;
      if (old) {
        put(old);
        old.removeAttribute('id');
      }
      const made = document.importNode(item, true);
      const buttons = [...made.querySelectorAll('button:not([hidden])')];
      for (const button of buttons) button.disabled = true;
      setTimeout(() => buttons.forEach((button) => { button.disabled = false; }), SETTLING_MS);
      localTimes(made);
      place(made, items[index - 1], items[index + 1], mine) || list.append(made);
      mine.set(key, made);
      if (made.classList.contains('card')) {
        say(`New request: ${made.dataset.name}`);
        if (canAnswer(made)) notify(made.dataset.name);
      }
    }
    const filter = document.getElementById('filter');
    if (!filter.contains(document.activeElement)) filter.replaceWith(document.importNode(page.getElementById('filter'), true));
    count();
  }

  function live() {
    const bar = document.createElement('div');
    bar.id = 'answered';
    bar.className = 'bar';
    bar.hidden = true;
    const clear = document.createElement('button');
    clear.type = 'button';
    clear.textContent = 'Clear answered';
    clear.addEventListener('click', () => {
      document.querySelectorAll('#open > .settled, #open > .moved').forEach((card) => card.remove());
      document.getElementById('main').focus();
      count();
    });
    bar.append(line('', ''), clear);
    const lost = line('The connection is lost. This page may be out of date.', 'notice');
    lost.setAttribute('role', 'alert');
    document.getElementById('list').before(bar);

    let isAsking = false;
    let isDue = false;
    async function soon() {
      isDue = true;
      if (isAsking) return;
      isAsking = true;
      while (isDue) {
        isDue = false;
        try {
          await refresh();
          lost.remove();
        } catch {
          bar.before(lost);
        }
      }
      isAsking = false;
    }

    function connect() {
      const events = new EventSource(`${base}/events`);
      events.addEventListener('changed', soon);
      events.addEventListener('error', () => {
        bar.before(lost);
        // Browsers do not reconnect after an HTTP error.
        if (events.readyState === EventSource.CLOSED) setTimeout(() => { soon(); connect(); }, 3000);
      });
    }
    connect();
  }

  localTimes(document);
  localDays();
  document.getElementById('search')?.addEventListener('submit', localUntil);
  if (document.body.dataset.live === 'true') {
    document.addEventListener('submit', submit);
    count();
    live();
    offerNotifications();
  }
})();
