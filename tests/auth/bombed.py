"""A program that signs in, renews and signs out at each service in turn, with limited memory.

`python -m tests.auth.bombed URL...` prints the outcome of each step.
"""

from __future__ import annotations

import resource
import sys

import anyio
import psutil

import trayapp.auth.login  # imported early, because the memory limit must not apply to imports
from tests.auth.world import person
from trayapp.auth.grant import SignInError

ROOM = 256 << 20  # bytes of address space allowed beyond the current use


async def main(urls: list[str]) -> None:
    limit = psutil.Process().memory_info().vms + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for url in urls:
        await use(url)


async def use(url: str) -> None:
    """Sign in, renew and sign out, printing each outcome."""
    async with person() as made:
        try:
            await made.sign_in(url)
            print("signed in", flush=True)
            await made.clock.pass_(4000)
            await made.accounts.of(url).authorization(url)
            print("renewed", flush=True)
        except SignInError as error:
            print(error.title, flush=True)
        await made.accounts.sign_out(url)
        print("end", flush=True)


assert trayapp.auth.login
anyio.run(main, sys.argv[1:])
