"""An hour of live updates, played to a page in less time: its own code from the client library on, over a simulated
socket.

The test of the overview's heap (tests/portal/console/test_browser_overview.py) plays the same.
"""

from __future__ import annotations

PLAYED_SOCKET = """
  window.WebSocket = class {
    constructor() {
      window.played = this;
      setTimeout(() => this.onopen({}));
    }
    send(text) {
      const { op, id, rp } = JSON.parse(text);
      if (op === "subscribe") setTimeout(() => this.say({ op: "ok", id, rp, epoch: "e", offset: 0, recovered: true }));
    }
    say(frame) {
      this.onmessage({ data: JSON.stringify(frame) });
    }
    close() {}
  };
"""
"""A simulated WebSocket: the page's own code from the client library on."""

PLAY = """
  async ([first, last, perFrame]) => {
    const begun = Date.now();
    for (let number = first; number < last; number++) {
      const at = new Date(begun + 1000 * (number - first)).toISOString();
      const names = ["publishes", "events_in", "bytes_in", "deliveries", "bytes_out", "refused", "accepts", "closes"];
      const hot = Array.from({ length: 20 }, (_, busy) => (
        { rp: `${number % 7}x`.padEnd(26, busy), events_in: 9 + busy, deliveries: number % 90, readings: 3 }));
      const now = { sessions: number, readings: number, cpu_s: 0.1, rss_bytes: 1e8, lag_ms: 1 };
      const gateway = `gateway${Math.floor(number / 1200)}`;
      const sample = { gateway, at, interval_s: 1, hot, ...now, ...Object.fromEntries(names.map((name) => [name, number])) };
      const lost = { gateway: `gateway${Math.floor(number / 1200) - 1}`, reason: "stopped" };
      const [type, data] = number % 1200 === 0 ? ["io.herald.gateway.lost", lost] : ["io.herald.load.sampled", sample];
      const event = { specversion: "1.0", id: `${number}`, source: "/localhost", type, time: at, data };
      window.played.say({ op: "event", rp: "domain.admin", epoch: "e", offset: number, event });
      if (number % perFrame === 0) await new Promise(requestAnimationFrame);
    }
  }
"""
"""The samples of the seconds from `first` to before `last`, `perFrame` of them in a frame; gateways start and end, the
busiest change.
"""
