// The stream of the server. It comes back by itself, and says since when it is gone.

const retry = 2000; // milliseconds, where the browser has given up
const silence = 45000; // a stream beats every 15 s: longer than this it is dead
const hidden = 60000; // a page that nobody sees gives its connection back after this

export class Stream {
  since = undefined; // when the connection was lost; undefined while it is there
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

  // check is called every second: a dead connection makes no error.
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

  // seen gives the connection back while nobody looks: a browser has few for one server.
  #seen() {
    clearTimeout(this.#timer);
    if (document.hidden) this.#timer = setTimeout(() => this.#source.close(), hidden);
    else if (this.#source?.readyState === EventSource.CLOSED) this.connect();
  }
}
