"""A program that runs the threaded Windows shim on any system, for its tests."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import trayapp.shim.relay
from trayapp.shim.windows import ThreadedShim
from trayapp.wire.rundir import run_dir

if __name__ == "__main__":
    if sys.argv[1:] == ["impatient"]:
        trayapp.shim.relay.MUTE_S = 0.3
    shim = ThreadedShim({}, run_dir(os.environ))
    if not shim._connect_within(5.0):
        sys.exit(4)
    shim.relay()
