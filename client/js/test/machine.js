/**
 * The JavaScript session machine behind the inputs and outputs of tests/client/session_vectors.json, which
 * tests/client/session_vectors.py describes. The counterpart in Python is tests/client/session_machine.py.
 */

import { Session } from "../session.js";
import { ReplicaLocations } from "../replica_locations.js";

/** As the Python client's: both compute the same delays then. */
const TUNING = { backoffMinMs: 100, backoffMaxMs: 15_000 };

const https = (urls) =>
  Array.isArray(urls) ? urls.filter((url) => typeof url === "string" && url.startsWith("https:")) : [];

/** One connection of a client, at the replicas `urls`; `toOthers` makes one for what some of them refuse. */
export class Machine {
  #refreshable;
  #session;
  #at = 0;
  #url = null; // where the session said to connect, until it is dialled
  #retryAt = null;
  leaving = new Map(); // key -> what another machine is to go on with
  sent = []; // ids, in order

  constructor(
    urls,
    { refreshable = false, where = new ReplicaLocations(urls, https), refused = undefined, now = 0 } = {},
  ) {
    this.where = where;
    this.#refreshable = refreshable;
    const refuses = (target, url, error) => where.refuses(target, url, error);
    const random = () => 0.5;
    this.#session = new Session({ random, refreshable, urls, refused, now, learnable: https, refuses, ...TUNING });
  }

  /** Take an input at `at` milliseconds; what is to be done, in order. */
  handle({ do: kind, ...members }, at) {
    this.#at = at;
    if (kind === "dial") return this.#dial();
    if (kind === "open" || kind === "lost" || kind === "wake") this.#retryAt = null;
    const input = INPUTS[kind](members);
    return this.#neutral(this.#session.handle(input, at));
  }

  /** A machine for the replicas that have not refused what left with `key`. */
  toOthers(key, now) {
    const { target } = this.leaving.get(key);
    const { where } = this;
    return new Machine(where.candidates(target), {
      refreshable: this.#refreshable,
      where,
      refused: where.refused(target),
      now,
    });
  }

  /** Go on with what left `other`. */
  takeOver(key, other, at) {
    this.#at = at;
    const { wanted, frame } = other.leaving.get(key);
    other.leaving.delete(key);
    const input = frame ? { kind: "request", key, frame } : { kind: "adopt", key, wanted };
    return this.#neutral(this.#session.handle(input, at));
  }

  /** The session says where to connect as soon as it may; the vectors when that is done. */
  #dial() {
    const outputs =
      this.#url === null ? this.#neutral(this.#session.handle({ kind: "timer", name: "reconnect" }, this.#at)) : [];
    const connect = this.#url === null ? [] : [{ connect: this.#url }];
    this.#url = null;
    return [...connect, ...outputs];
  }

  #neutral(outputs) {
    const end = outputs.find(({ kind, key, state }) => kind === "state" && key === null && state === "ended");
    if (end) {
      return [
        ...outputs.filter(({ kind }) => kind === "disconnect").map(() => ({ disconnect: true })),
        { end: end.detail.error.code },
      ];
    }
    return outputs.flatMap((output) => OUTPUTS[output.kind]?.(output, this) ?? []);
  }

  connect(url) {
    this.#url = url;
  }

  timer(name, ms) {
    if (name === "probe" && ms !== null) return [{ probe_at: this.#at + ms }];
    if (name !== "retry") return [];
    const before = this.#retryAt;
    this.#retryAt = ms === null ? null : this.#at + ms;
    return ms === null || before === this.#retryAt ? [] : [{ retry_at: this.#retryAt }];
  }
}

const INPUTS = {
  subscribe: (members) => ({ kind: "subscribe", ...members }),
  unsubscribe: ({ key }) => ({ kind: "unsubscribe", key }),
  pause: ({ key }) => ({ kind: "pause", key }),
  resume: ({ key }) => ({ kind: "resume", key }),
  request: ({ key, frame }) => ({ kind: "request", key, frame }),
  abandon: ({ key }) => ({ kind: "abandon", key }),
  open: () => ({ kind: "opened" }),
  frame: ({ text }) => ({ kind: "frame", text }),
  wake: () => ({ kind: "timer", name: "retry" }),
  lost: ({ code, reason = "" }) => ({ kind: "closed", code, reason }),
  probed: ({ good }) => ({ kind: "probed", good }),
  return: () => ({ kind: "timer", name: "return" }),
};

const OUTPUTS = {
  connect: ({ url }, machine) => machine.connect(url),
  send: ({ text }, machine) => {
    const { id, ...frame } = JSON.parse(text);
    machine.sent.push(id);
    return [{ send: frame }];
  },
  event: ({ key, delivery: { event, ...place } }) => [{ event: key, ...place, value: event }],
  gap: ({ key, gap: { previousEpoch, ...gap } }) => [{ gap: key, ...gap, previous_epoch: previousEpoch }],
  settled: ({ key, answer }) => [{ settled: key, answer }],
  failed: ({ key, error }) => [{ failed: key, code: error.code }],
  elsewhere: (output, machine) => {
    machine.leaving.set(output.key, output);
    return [{ elsewhere: output.key }];
  },
  moved: ({ move }) => [{ moved: move }],
  disconnect: () => [{ disconnect: true }],
  timer: ({ name, ms }, machine) => machine.timer(name, ms),
  state: ({ key, state, detail }) => {
    if (key === null) {
      return state === "reconnecting" && "retryInMs" in detail
        ? [{ reconnect_in_ms: Math.round(detail.retryInMs) }]
        : [];
    }
    if (state === "live") return [{ live: key, cursor: detail.cursor }];
    return state === "ended" && detail.error ? [{ ended: key, code: detail.error.code }] : [];
  },
};

/** The steps of a scenario: number, outputs of the machine, outputs expected. */
export function* play({ urls, refreshable, steps }) {
  const machines = [new Machine(urls, { refreshable })];
  for (const [
    index,
    {
      at,
      in: { on = 0, ...given },
      out,
    },
  ] of steps.entries()) {
    if (given.do === "go-on") {
      if (on === machines.length) machines.push(machines[given.from].toOthers(given.key, at));
      yield [index + 1, machines[on].takeOver(given.key, machines[given.from], at), out];
    } else {
      const input = given.do === "frame" ? { ...given, text: answering(given.text, machines[on].sent) } : given;
      yield [index + 1, machines[on].handle(input, at), out];
    }
  }
}

/** `$sent(n)` stands for the id of the n-th frame that the machine sent. */
function answering(text, sent) {
  return text.replace(/\$sent\((\d+)\)/g, (_all, number) => JSON.stringify(sent[number - 1]));
}
