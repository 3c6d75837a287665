/* The load generator of `python -m bench`: WebSocket sessions and paced publishers in one thread, on one core.
 *
 * It must cost much less than any server it measures, and its numbers must be beyond doubt. So it parses every frame
 * of every session, finds the mark in the data, and checks number, order and delay of each event; nothing is sampled.
 *
 *   load PLAN        PLAN is written by bench/load.py, which describes the keys
 *
 * Life of a run; after each line printed the program waits for a line on stdin, still answering pings meanwhile:
 *   connect all, send `open`     -> {"stage": "open", ...}     all upgraded (HTTP publishers: connected)
 *   send `hello`                 -> {"stage": "ready", ...}    all have seen their ready marker
 *   publish, receive, drain      -> {"stage": "done", ...}     every event arrived, or none came for drain_s after the last answer
 *   end of stdin                 exits
 * With `expect`, nothing is opened before the run: connecting and saying hello are part of what is measured.
 *
 * The mark in an event's data, filled in place in a template: bench#SSSSSS.QQQQQQQQQQ.TTTTTTTTTTTTTTTTTTTT
 * (stream, place in the stream from 1, CLOCK_MONOTONIC ns at send). `id#QQQQQQQQQQ` is filled with a number of its own.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MARK "bench#"
#define MARK_BYTES 44
#define STREAM_AT 6
#define SEQ_AT 13
#define TIME_AT 24
#define BUFFER_BYTES (4u << 20)
#define WAKEUPS 128          /* connections served between two looks at the publishing schedule */
#define SUB_BUCKETS 64       /* per power of two: latency is kept to 1.6 % */
#define WINDOW_MAX 4096
#define DRAINS_MAX 5         /* times drain_s, after the last publish: what has not come by then does not count */
#define STAGE_S 60           /* what is not open or ready by then has failed */

enum { CONNECTING, UPGRADING, OPEN, GREETING, READY, CLOSED };

struct slice { char *at; uint32_t size; };
struct place { uint32_t at, stream; };                        /* stream is UINT32_MAX for an id */
struct template { struct slice bytes; struct place *places; uint32_t count; };
struct conn {
    int fd, state, publisher, upgrade, watching_out;
    struct slice open, hello, carry, out;
    uint32_t carry_room, out_room, greetings, outstanding;
    uint64_t got, last, offset, requests;
    uint64_t *sent_ns;                                        /* publisher: when each unanswered request was sent */
};
struct histogram { uint64_t counts[64 * SUB_BUCKETS], total, max; };

static struct { long port, sessions_port, sources, sessions, publishers, templates, connect_window, window, streams, by_stream, ready_count;
                long count, events_per_request, deliveries_per_event, expect; double rate, seconds, drain_s;
                char ready[128], publisher_ready[128], good[128], offset[128], bad[4][128]; int bads; } plan;
static struct { uint64_t published, requests, good, bad, deliveries, repeated, skipped, broken_offsets, torn, frames, bytes, closed; } sum;
static struct conn *conns;
static struct template *templates;
static uint64_t *stream_sent, *stream_last, next_id = 1, publish_most, last_delivery_ns, last_answer_ns;
static struct histogram latency, answers;
static char buffer[BUFFER_BYTES + 1], complaint[200];
static int poller, in_flight, reached[CLOSED + 1], started;

static void die(const char *what) { fprintf(stderr, "load: %s: %s\n", what, strerror(errno)); exit(1); }
static void *grown(void *old, size_t bytes) { void *p = realloc(old, bytes ? bytes : 1); if (!p) die("memory"); return p; }
static void *zeroed(size_t count, size_t size) { void *p = calloc(count ? count : 1, size); if (!p) die("memory"); return p; }
static uint64_t now_ns(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }

static void record(struct histogram *h, uint64_t ns) {
    int shift = ns < SUB_BUCKETS ? 0 : 58 - __builtin_clzll(ns);          /* keeps the 6 highest bits */
    h->counts[shift * (SUB_BUCKETS / 2) + (ns >> shift)]++, h->total++;
    if (ns > h->max) h->max = ns;
}
static double quantile_ms(const struct histogram *h, double q) {
    uint64_t want = q * h->total, seen = 0;
    for (uint32_t b = 0; b < 64 * SUB_BUCKETS; b++)
        if ((seen += h->counts[b]) > want || (seen == h->total && seen)) {
            int shift = b < SUB_BUCKETS ? 0 : b / (SUB_BUCKETS / 2) - 1;
            return (double)((uint64_t)(b - shift * (SUB_BUCKETS / 2)) << shift) / 1e6;
        }
    return 0;
}
static uint64_t digits(const char *at, int count) { uint64_t n = 0; while (count--) n = n * 10 + (*at++ - '0'); return n; }
static void put_digits(char *at, int count, uint64_t n) { while (count--) at[count] = '0' + n % 10, n /= 10; }
static uint32_t occurrences(const char *at, size_t size, const char *what) {
    size_t length = strlen(what);
    uint32_t count = 0;
    for (const char *end = at + size; length && (at = memmem(at, end - at, what, length)); at += length) count++;
    return count;
}

/* ---- plan ---- */
static struct slice read_slice(FILE *file) {
    struct slice s = {0};
    if (fread(&s.size, 4, 1, file) != 1) die("plan");
    s.at = grown(NULL, s.size);
    if (s.size && fread(s.at, s.size, 1, file) != 1) die("plan");
    return s;
}
static void add_place(struct template *t, uint32_t at, uint32_t stream) {
    t->places = grown(t->places, (t->count + 1) * sizeof *t->places);
    t->places[t->count++] = (struct place){at, stream};
}
static void find_places(struct template *t) {
    char *end = t->bytes.at + t->bytes.size, *at;
    for (at = t->bytes.at; (at = memmem(at, end - at, "id#", 3)); at += 3) add_place(t, at + 3 - t->bytes.at, UINT32_MAX);
    for (at = t->bytes.at; (at = memmem(at, end - at, MARK, 6)); at += 6) add_place(t, at - t->bytes.at, digits(at + STREAM_AT, 6));
}
static void read_plan(const char *path) {
    FILE *file = fopen(path, "rb");
    char line[256];
    if (!file) die(path);
    while (fgets(line, sizeof line, file) && *line != '\n') {
        char *value = strchr(line, ' ');
        line[strcspn(line, "\n")] = 0, *value++ = 0;
#define NUMBER(key) if (!strcmp(line, #key)) plan.key = atof(value);
#define TEXT(key) if (!strcmp(line, #key)) snprintf(plan.key, sizeof plan.key, "%.127s", value);
        NUMBER(port) NUMBER(sessions_port) NUMBER(sources) NUMBER(sessions) NUMBER(publishers) NUMBER(templates) NUMBER(connect_window) NUMBER(window)
        NUMBER(streams) NUMBER(by_stream) NUMBER(ready_count) NUMBER(events_per_request) NUMBER(deliveries_per_event)
        NUMBER(expect) NUMBER(count) NUMBER(rate) NUMBER(seconds) NUMBER(drain_s)
        TEXT(ready) TEXT(publisher_ready) TEXT(good) TEXT(offset)
        if (!strcmp(line, "bad") && plan.bads < 4) snprintf(plan.bad[plan.bads++], 128, "%.127s", value);
    }
    if (plan.window > WINDOW_MAX) plan.window = WINDOW_MAX;
    conns = zeroed(plan.sessions + plan.publishers, sizeof *conns);
    for (long i = 0; i < plan.sessions + plan.publishers; i++) {
        conns[i].open = read_slice(file), conns[i].hello = read_slice(file);
        conns[i].upgrade = conns[i].open.size > 0, conns[i].publisher = i >= plan.sessions;
        if (conns[i].publisher) conns[i].sent_ns = zeroed(WINDOW_MAX, sizeof(uint64_t));
    }
    templates = zeroed(plan.templates, sizeof *templates);
    for (long i = 0; i < plan.templates; i++) templates[i].bytes = read_slice(file), find_places(&templates[i]);
    stream_sent = zeroed(plan.streams, sizeof *stream_sent), stream_last = zeroed(plan.streams, sizeof *stream_last);
    fclose(file);
}

/* ---- connections ---- */
static void watch(struct conn *c, int out, int operation) {
    struct epoll_event event = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(poller, operation, c->fd, &event)) die("epoll_ctl");
    c->watching_out = out;
}
static void greet(struct conn *c);
static void reach(struct conn *c, int state) {
    if (state == OPEN || state == READY || state == CLOSED) in_flight--;
    c->state = state, reached[state]++;
    if (state == OPEN && plan.expect) greet(c);
}
static void lose(struct conn *c, const char *why, int size) {
    if (c->state == CLOSED) return;
    if (!sum.closed++) snprintf(complaint, sizeof complaint, "%.*s", size, why);
    close(c->fd), reach(c, CLOSED);
}
static void append(struct slice *s, uint32_t *room, const char *at, uint32_t size) {
    if (s->size + size > *room) s->at = grown(s->at, *room = (s->size + size) * 2);
    memcpy(s->at + s->size, at, size), s->size += size;
}
static void transmit(struct conn *c, const char *at, uint32_t size) {
    ssize_t sent = c->out.size ? 0 : send(c->fd, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) { lose(c, strerror(errno), 60); return; }
    if (sent < 0) sent = 0;
    if ((uint32_t)sent == size) return;
    append(&c->out, &c->out_room, at + sent, size - sent);
    if (!c->watching_out) watch(c, 1, EPOLL_CTL_MOD);
}
static void start_connecting(struct conn *c, long number) {
    long port = !c->publisher && plan.sessions_port ? plan.sessions_port : plan.port;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    int one = 1;
    if ((c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) < 0) die("socket");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (plan.sources) {
        from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number % plan.sources);
        setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
        if (bind(c->fd, (struct sockaddr *)&from, sizeof from)) die("bind");
    }
    if (connect(c->fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS) die("connect");
    in_flight++, c->state = CONNECTING;
    watch(c, 1, EPOLL_CTL_ADD);
}
static void greet(struct conn *c) {
    const char *marker = c->publisher ? plan.publisher_ready : plan.ready;
    in_flight++;
    if (c->hello.size) transmit(c, c->hello.at, c->hello.size);
    if (c->state == CLOSED) return;
    if (!*marker || !c->hello.size) reach(c, READY); else c->state = GREETING;
}

/* ---- receiving ---- */
static void account(struct conn *c, const char *mark, const char *frame, size_t size, uint64_t now) {
    uint64_t stream = digits(mark + STREAM_AT, 6), seq = digits(mark + SEQ_AT, 10), sent = digits(mark + TIME_AT, 20);
    uint64_t *last = plan.by_stream && stream < (uint64_t)plan.streams ? &stream_last[stream] : &c->last;
    const char *at = *plan.offset ? memmem(frame, size, plan.offset, strlen(plan.offset)) : NULL;
    if (at && !plan.by_stream) {
        uint64_t offset = strtoull(at + strlen(plan.offset), NULL, 10);
        if (c->offset && offset != c->offset + 1) sum.broken_offsets++;
        c->offset = offset;
    } else if (*plan.offset && !at) sum.broken_offsets++;
    if (seq <= *last) { sum.repeated++; return; }
    sum.skipped += seq - *last - 1, *last = seq;
    c->got++, sum.deliveries++, last_delivery_ns = now;
    record(&latency, now > sent ? now - sent : 0);
}
static void count_answers(struct conn *c, const char *at, size_t size, uint64_t now) {
    uint64_t good = occurrences(at, size, plan.good), bad = 0;
    for (int i = 0; i < plan.bads; i++) bad += occurrences(at, size, plan.bad[i]);
    if (bad && !sum.bad) snprintf(complaint, sizeof complaint, "%.*s", (int)size, at);
    sum.good += good, sum.bad += bad;
    for (uint64_t i = good + bad; i && c->outstanding; i--, c->outstanding--)
        record(&answers, now - c->sent_ns[(c->requests - c->outstanding) % WINDOW_MAX]), last_answer_ns = now;
}
static void on_payload(struct conn *c, const char *at, size_t size, uint64_t now) {
    const char *end = at + size, *mark = at, *marker = c->publisher ? plan.publisher_ready : plan.ready;
    uint32_t wanted = c->publisher ? 1 : plan.ready_count;
    if (c->state == GREETING && (c->greetings += occurrences(at, size, marker)) >= wanted) reach(c, READY);
    for (int i = 0; c->state == GREETING && i < plan.bads; i++) if (occurrences(at, size, plan.bad[i])) { lose(c, at, size); return; }
    if (c->publisher) { if (started) count_answers(c, at, size, now); return; }
    for (; (mark = memmem(mark, end - mark, MARK, 6)); mark += MARK_BYTES) {
        if (mark + MARK_BYTES > end) { sum.torn++; return; }
        account(c, mark, at, size, now);
    }
}
static uint32_t parse_frames(struct conn *c, const char *at, uint32_t size, uint64_t now) {
    uint32_t used = 0;
    while (size - used >= 2) {
        const uint8_t *head = (const uint8_t *)at + used;
        uint64_t length = head[1] & 127, header = length < 126 ? 2 : length == 126 ? 4 : 10;
        if (size - used < header) break;
        if (header > 2) { length = 0; for (uint32_t i = 2; i < header; i++) length = length << 8 | head[i]; }
        if (length > BUFFER_BYTES / 2) { lose(c, "frame too large", 60); break; }
        if (size - used < header + length) break;
        const char *payload = at + used + header;
        used += header + length, sum.frames++;
        if ((head[0] & 15) <= 2) on_payload(c, payload, length, now);
        else if ((head[0] & 15) == 8) { lose(c, length > 2 ? payload + 2 : "closed", length > 2 ? length - 2 : 6); break; }
        else if ((head[0] & 15) == 9 && length < 126) {
            char pong[131] = {(char)0x8a, (char)(0x80 | length)};
            memcpy(pong + 6, payload, length), transmit(c, pong, 6 + length);
        }
        if (c->state == CLOSED) break;
    }
    return used;
}
static void on_readable(struct conn *c) {
    uint32_t size = c->carry.size, used = 0;
    if (size) memcpy(buffer, c->carry.at, size);
    ssize_t got = recv(c->fd, buffer + size, BUFFER_BYTES - size, 0);
    uint64_t now = now_ns();
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) { lose(c, got ? strerror(errno) : "connection ended", 60); return; }
    size += got, sum.bytes += got, buffer[size] = 0;
    if (c->state == UPGRADING) {
        char *end = memmem(buffer, size, "\r\n\r\n", 4);
        if (end && strncmp(buffer, "HTTP/1.1 101", 12)) { lose(c, buffer, end - buffer); return; }
        if (end) used = end + 4 - buffer, reach(c, OPEN);
    }
    if (c->state > UPGRADING && c->upgrade) used += parse_frames(c, buffer + used, size - used, now);
    else if (!c->upgrade) {                       /* markers have one length; what may be the start of one is kept */
        uint32_t kept = strlen(plan.good) - 1;
        if (started) count_answers(c, buffer, size, now);
        used = size > kept ? size - kept : 0;
    }
    if (c->state == CLOSED) return;
    c->carry.size = 0;
    append(&c->carry, &c->carry_room, buffer + used, size - used);
}
static void on_writable(struct conn *c) {
    int error = 0;
    socklen_t length = sizeof error;
    if (c->state == CONNECTING) {
        if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length) || error) { lose(c, strerror(error), 60); return; }
        watch(c, 0, EPOLL_CTL_MOD);
        if (!c->upgrade) { reach(c, OPEN); return; }
        c->state = UPGRADING;
        transmit(c, c->open.at, c->open.size);
        return;
    }
    ssize_t sent = send(c->fd, c->out.at, c->out.size, MSG_NOSIGNAL);
    if (sent < 0) { if (errno != EAGAIN) lose(c, strerror(errno), 60); return; }
    memmove(c->out.at, c->out.at + sent, c->out.size -= sent);
    if (!c->out.size) watch(c, 0, EPOLL_CTL_MOD);
}
/* Serves whatever is ready, waiting at most wait_ns. True once a line came on stdin; its end ends the program. */
static int serve(uint64_t wait_ns) {
    struct epoll_event events[WAKEUPS];
    struct timespec wait = {wait_ns / 1000000000, wait_ns % 1000000000};
    int count = epoll_pwait2(poller, events, WAKEUPS, &wait, NULL), told = 0;
    if (count < 0 && errno != EINTR) die("epoll_pwait2");
    for (int i = 0; i < count; i++) {
        struct conn *c = events[i].data.ptr;
        if (!c) { if (read(0, buffer, 1) <= 0) exit(0); told = 1; continue; }
        if (c->state != CLOSED && events[i].events & EPOLLOUT) on_writable(c);
        if (c->state != CLOSED && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(c);
    }
    return told;
}

/* ---- the run ---- */
static void publish(struct conn *c, uint64_t now) {
    struct template *t = &templates[sum.requests % plan.templates];
    for (uint32_t i = 0; i < t->count; i++) {
        char *at = t->bytes.at + t->places[i].at;
        if (t->places[i].stream == UINT32_MAX) { put_digits(at, 10, next_id++); continue; }
        put_digits(at + SEQ_AT, 10, ++stream_sent[t->places[i].stream]);
        put_digits(at + TIME_AT, 20, now);
        sum.published++;
    }
    c->sent_ns[c->requests++ % WINDOW_MAX] = now, c->outstanding++, sum.requests++;
    transmit(c, t->bytes.at, t->bytes.size);
}
static struct conn *free_publisher(void) {
    for (long i = 0; i < plan.publishers; i++) {
        struct conn *c = &conns[plan.sessions + (sum.requests + i) % plan.publishers];
        if (c->state == READY && c->outstanding < plan.window) return c;
    }
    return NULL;
}
/* Sends what is due, in bounded bursts so that receiving goes on; returns when to look again, at the latest. */
static uint64_t publish_due(uint64_t start, uint64_t now) {
    for (int burst = 0; burst < WAKEUPS && sum.published < publish_most; burst++) {
        uint64_t due = plan.rate > 0 ? start + sum.requests * plan.events_per_request / plan.rate * 1e9 : 0;
        struct conn *c = due > now ? NULL : free_publisher();
        if (!c) return due > now ? due : now + 1000000;
        publish(c, now);
    }
    return now;
}
static void stage(const char *name, uint64_t began) {
    printf("{\"stage\": \"%s\", \"elapsed_s\": %.6f, \"reached\": %d, \"wanted\": %ld, \"closed\": %lu, \"complaint\": \"", name,
           (now_ns() - began) / 1e9, reached[strcmp(name, "open") ? READY : OPEN], plan.expect ? 0 : plan.sessions + plan.publishers, sum.closed);
    for (char *p = complaint; *p; p++) putchar(*p < ' ' || *p == '"' || *p == '\\' ? ' ' : *p);
    printf("\"");
}
static void await_line(void) { printf("}\n"), fflush(stdout); while (!serve(100000000)); }
static void bring_to(int state, const char *name) {
    long total = plan.sessions + plan.publishers, next = 0;
    uint64_t began = now_ns();
    while (reached[state] + (long)sum.closed < total && now_ns() - began < STAGE_S * 1000000000ull) {
        for (; next < total && in_flight < plan.connect_window; next++) {
            if (state == OPEN) start_connecting(&conns[next], next);
            else if (conns[next].state != CLOSED) greet(&conns[next]);
        }
        serve(10000000);
    }
    stage(name, began), await_line();
}
static uint64_t missing(uint64_t *sessions_short) {
    uint64_t lost = 0;
    for (long i = 0; plan.by_stream && i < plan.streams; i++) lost += stream_sent[i] - stream_last[i];
    for (long i = 0; !plan.by_stream && i < plan.sessions; i++) {
        uint64_t wanted = plan.expect ? (uint64_t)plan.expect : sum.published * plan.deliveries_per_event / plan.sessions;
        if (conns[i].got < wanted) lost += wanted - conns[i].got, ++*sessions_short;
    }
    return lost + (plan.by_stream ? sum.skipped : 0);
}
static void run(void) {
    uint64_t start = now_ns(), end = start + plan.seconds * 1e9, limit, now = start, published_ns = start;
    publish_most = plan.count ? (uint64_t)plan.count : plan.rate > 0 ? (uint64_t)(plan.rate * plan.seconds + 0.5) : UINT64_MAX;
    started = 1, last_delivery_ns = last_answer_ns = start;
    if (plan.expect) for (long i = 0; i < plan.sessions; i++) start_connecting(&conns[i], i);
    while ((now = now_ns()) < end && sum.published < publish_most) {
        uint64_t next = publish_due(start, now);
        serve(next > now ? next - now : 0);
    }
    for (published_ns = now; ; serve(1000000)) {
        uint64_t wanted = plan.expect ? (uint64_t)(plan.expect * plan.sessions) : sum.published * plan.deliveries_per_event;
        int answered = !*plan.good || sum.good + sum.bad >= sum.requests;
        limit = last_delivery_ns > published_ns ? last_delivery_ns : published_ns;
        limit = (last_answer_ns > limit ? last_answer_ns : limit) + plan.drain_s * 1e9, now = now_ns();
        if (answered && (sum.deliveries >= wanted || now > limit)) break;
        if (now > published_ns + DRAINS_MAX * plan.drain_s * 1e9) break;
    }
    struct rusage used;
    uint64_t sessions_short = 0, lost = missing(&sessions_short), unanswered = *plan.good ? sum.requests - sum.good - sum.bad : 0;
    uint64_t excused = unanswered * plan.events_per_request * plan.deliveries_per_event;
    lost -= lost < excused ? lost : excused;
    getrusage(RUSAGE_SELF, &used);
    stage("done", start);
    printf(", \"published\": %lu, \"publish_s\": %.6f, \"requests\": %lu, \"good\": %lu, \"bad\": %lu", sum.published,
           (published_ns - start) / 1e9, sum.requests, sum.good, sum.bad);
    printf(", \"answered_s\": %.6f, \"received_s\": %.6f", (last_answer_ns - start) / 1e9, (last_delivery_ns - start) / 1e9);
    printf(", \"deliveries\": %lu, \"unanswered\": %lu, \"lost\": %lu, \"sessions_short\": %lu, \"repeated\": %lu, \"skipped\": %lu", sum.deliveries,
           unanswered, lost, sessions_short, sum.repeated, sum.skipped);
    printf(", \"broken_offsets\": %lu, \"torn\": %lu, \"frames\": %lu, \"bytes\": %lu", sum.broken_offsets, sum.torn, sum.frames, sum.bytes);
    printf(", \"p50_ms\": %.4f, \"p99_ms\": %.4f, \"max_ms\": %.4f", quantile_ms(&latency, .5), quantile_ms(&latency, .99), latency.max / 1e6);
    printf(", \"answer_p50_ms\": %.4f, \"answer_p99_ms\": %.4f, \"cpu_s\": %.6f", quantile_ms(&answers, .5), quantile_ms(&answers, .99),
           used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
    await_line();
}
int main(int count, char **arguments) {
    struct epoll_event input = {.events = EPOLLIN};
    if (count != 2) return fprintf(stderr, "usage: load PLAN\n"), 2;
    read_plan(arguments[1]);
    if ((poller = epoll_create1(0)) < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, 0, &input)) die("stdin must be a pipe");
    if (plan.expect) stage("open", now_ns()), await_line();
    else bring_to(OPEN, "open"), bring_to(READY, "ready");
    run();
    return 0;
}
