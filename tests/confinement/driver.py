"""A program that runs the named escape attempts of hostile.py as the current user: `driver.py FACTS NAME...`.

It prints {name: [without, confined]} as JSON. It needs only the standard library and the confinement, so an ordinary
user can run it with the system's Python.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from trayapp.confinement.policy import Program, make_policy, make_scratch
from trayapp.confinement.seccomp_requests import AttributeChanges, Requests
from trayapp.confinement.spawn import spawn_confined
from trayapp.model.config import Confine


async def attempts(facts_file: str, names: list[str]) -> dict[str, list[str]]:
    """Return the outcome of each attempt, first without and then with confinement."""
    facts: dict[str, Any] = json.loads(Path(facts_file).read_text())
    env = {"HOME": facts["home"], "PATH": "/usr/bin:/bin"}
    argv = (sys.executable, str(Path(facts["cwd"], "hostile.py")), facts_file, *names)
    free = await asyncio.to_thread(subprocess.check_output, argv, text=True, env=env, close_fds=False)
    own = (facts["ours"], *(str(Path(facts["ours"], part)) for part in ("cache", "logs", "run")))
    scratch = make_scratch(str(Path(facts["ours"], "cache/confined/hostile")))
    policy = make_policy(Confine(network=False), Program(argv, facts["cwd"], env, own, scratch))
    options = {"args": argv, "stdout": subprocess.PIPE, "env": env, "text": True}
    process, listener = await asyncio.to_thread(spawn_confined, policy, None, options)
    changes = AttributeChanges(policy, lambda path: None)
    requests = Requests(listener, None, lambda unix: None, changes=changes)
    kept, _ = await asyncio.to_thread(process.communicate)
    requests.close()
    found = [json.loads(text) for text in (free, kept)]
    return {name: [one[name] for one in found] for name in names}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(attempts(sys.argv[1], sys.argv[2:]))))
