"""nginx with the nchan module: channels in the memory of one worker process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from bench import wire, wrk
from bench.load import ConnectionScript
from bench.peers.base import HTTP_ANSWERS, BenchServer, Route

MODULES = (
    "/usr/lib/nginx/modules/ngx_nchan_module.so",
    "/usr/lib64/nginx/modules/ngx_nchan_module.so",
    "/etc/nginx/modules/ngx_nchan_module.so",
)
_CONFIGURATION = """
load_module {module};
daemon off;
{user}
worker_processes 1;
worker_rlimit_nofile 20000;
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 18000; use epoll; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    tcp_nodelay on;
    nchan_shared_memory_size 1024M;
    nchan_message_timeout 1h;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location ~ ^/sub/(\\d+)$ {{
            nchan_subscriber websocket;
            nchan_channel_id $1;
            nchan_subscriber_first_message newest;
        }}
        location ~ ^/replay/(\\d+)$ {{
            nchan_subscriber websocket;
            nchan_channel_id $1;
            nchan_subscriber_first_message oldest;
        }}
        location ~ ^/pub/(\\d+)$ {{
            nchan_publisher http;
            nchan_channel_id $1;
            nchan_message_buffer_length {history_events};
        }}
    }}
}}
"""


class Nchan(BenchServer):
    """Published over HTTP, pipelined on one connection where many requests are in flight. Batches do not exist."""

    name = "nchan"
    label = "nginx + nchan"
    durability = "memory of the process"
    routes = {Route.HTTP: HTTP_ANSWERS}
    fanout_route = Route.HTTP
    replay_events_max = 10_000  # measured: its time grows with the square, and 100,000 take minutes

    @classmethod
    def missing(cls) -> str | None:
        if shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
            return "nginx is not installed (Debian: apt install nginx libnginx-mod-nchan)"
        if not any(Path(module).exists() for module in MODULES):
            return "nginx has no nchan module here (Debian: apt install libnginx-mod-nchan)"
        return None

    def start(self) -> None:
        program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        assert program is not None
        configuration = self.folder / "nginx.conf"
        configuration.write_text(
            _CONFIGURATION.format(
                module=next(module for module in MODULES if Path(module).exists()),
                user="user root;" if os.geteuid() == 0 else "",
                folder=self.folder,
                port=self.port,
                history_events=self.replay_events_max,
            )
        )
        self.processes.start("nginx", [program, "-e", "stderr", "-p", str(self.folder), "-c", str(configuration)])
        self.processes.await_port(self.port)

    def reader(self, streams: Sequence[int], *, from_start: bool = False) -> ConnectionScript:
        (stream,) = streams  # one channel per connection here
        return ConnectionScript(wire.upgrade(self.port, f"/{'replay' if from_start else 'sub'}/{stream}"))

    def publisher(self, route: Route) -> ConnectionScript:
        return ConnectionScript()

    def posts(self, stream: int) -> Sequence[wrk.Post]:
        return [wrk.Post("text/plain", f"/pub/{stream}", [("Content-Type", "text/plain")], "x" * wire.DATA_BYTES)]

    def request(self, route: Route, stream: int, events: int = 1) -> bytes:
        assert events == 1
        return wire.post(self.port, f"/pub/{stream}", wire.data(stream), [("Content-Type", "text/plain")])
