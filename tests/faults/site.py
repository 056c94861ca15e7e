"""A program that runs an HTTP server: `python -m tests.faults.site HOST PORT`."""

from __future__ import annotations

import sys

import anyio

from tests.contract.http_servers import HttpServer


async def serve(host: str, port: int) -> None:
    """Run the server until this process is killed. Print the URL once the server listens."""
    async with HttpServer(host=host, port=port).running() as server:
        print(server.url(), flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(serve, sys.argv[1], int(sys.argv[2]))
