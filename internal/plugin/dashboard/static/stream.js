// The server's stream. It reconnects automatically, and records since when it is disconnected.

const retry = 2000; // milliseconds until a reconnect after the browser has given up
const silence = 45000; // milliseconds without a message until a reconnect; the server sends one every 15 s
const hidden = 60000; // milliseconds until a hidden page closes its connection

export class Stream {
  since = undefined; // when the connection was lost; undefined while connected
  #fleet;
  #source;
  #heard = 0;
  #timer;

  constructor(fleet) {
    this.#fleet = fleet;
    document.addEventListener("visibilitychange", () => this.#seen());
    window.addEventListener("pagehide", () => this.#source?.close());
    window.addEventListener("pageshow", (event) => event.persisted && this.connect());
  }

  connect() {
    this.#source?.close();
    this.#heard = Date.now();
    const source = new EventSource("api/stream");
    this.#source = source;
    const on = (kind, take) => source.addEventListener(kind, (event) => {
      this.#heard = Date.now();
      this.since = undefined;
      take(JSON.parse(event.data));
    });
    on("snapshot", (message) => this.#fleet.snapshot(message));
    on("changes", (message) => this.#fleet.changes(message));
    on("beat", (message) => this.#fleet.beat(message));
    source.addEventListener("error", () => {
      this.since ??= Date.now();
      if (source.readyState === EventSource.CLOSED) this.#later(source);
    });
  }

  // check is called every second, because a dead connection raises no error.
  check() {
    const open = this.#source?.readyState !== EventSource.CLOSED;
    if (open && !document.hidden && Date.now() - this.#heard > silence) {
      this.since ??= this.#heard;
      this.connect();
    }
  }

  #later(source) {
    setTimeout(() => this.#source === source && !document.hidden && this.connect(), retry);
  }

  // seen closes the connection while the page is hidden: a browser allows few connections per server.
  #seen() {
    clearTimeout(this.#timer);
    if (document.hidden) this.#timer = setTimeout(() => this.#source.close(), hidden);
    else if (this.#source?.readyState === EventSource.CLOSED) this.connect();
  }
}
