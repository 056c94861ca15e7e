"""A program for a separate network namespace: it changes the network and prints whether each change was reported."""

from __future__ import annotations

import anyio
import anyio.lowlevel

from trayapp.backends.wake.linux import network_changes

QUIET_S = 0.3  # ample, because the kernel reports changes immediately
STEPS = (
    "addr add 10.9.9.9/32 dev lo",
    "addr change 10.9.9.9/32 dev lo valid_lft 1000 preferred_lft 500",
    "link set lo up",
    "route add default dev lo",
    "route add 10.8.0.0/16 dev lo",
    "addr add 169.254.7.7/32 dev lo scope link",
    "route del default dev lo",
    "addr del 10.9.9.9/32 dev lo",
)


async def main() -> None:
    heard: list[str] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(network_changes, heard.append)
        await anyio.lowlevel.checkpoint()
        for step in STEPS:
            await anyio.run_process(["ip", *step.split()])
            await anyio.sleep(QUIET_S)
            print(f"{step}: {'news' if heard else 'nothing'}", flush=True)
            heard.clear()
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main)
