"""The stdio process that an AI tool starts: its stdin and stdout, joined to the gateway's local socket.

It outlives the gateway: see ledger for what it then needs to know. Never here: asyncio, json, threads, anything that
costs start-up time.
"""

import os
import select
import sys
import time

from trayapp.wire.rundir import STOPPING, socket_path

CHUNK = 1 << 20  # bytes a read, once a line has turned out to be long
FIRST_CHUNK = 1 << 16  # bytes a read before that: buffers of 1 MiB, one after the other, wander over 2 MiB of the heap
UNJOINED_FROM = 4 << 20  # bytes of a line: memory for one more of it is worth the trouble, during it and after it
GIVE_BACK_MS = 5000  # nobody has said anything since such a line: what it freed is not kept for the next one
QUIET_MS = 50  # nobody wants anything for this long: time to load the ledger
EARLY_MOST = 32  # messages that may wait for the ledger
PIPE_HOLDS = 1 << 16  # bytes, unless told otherwise
START_PATIENCE_S = 20.0  # how long a gateway that was just started may take to listen
START_AGAIN_S = 2.0  # after a start that failed, requests are refused for so long without another try
NEXT_TRY_S = 0.5  # from the end of a gateway that found another one, which may be ending, to the next start
AWAIT_OTHERS_S = 0.7  # a crashed gateway is restarted by the tray, where there is one; after this we do it
DRAIN_S = 0.2  # for what a lost gateway had said already; its end follows at once
REPLAY_PATIENCE_S = 5.0  # a gateway answers a handshake in a millisecond; one that hangs is not waited for
MUTE_S = 12.0  # a gateway answers its first request in milliseconds; what says nothing for so long is none that works
MUTE_TRIES = 2  # connections in a row that said nothing, before the client is told; its own patience is 30 s or more
LOOK_MS = 1000  # how often a gateway that was stopped on purpose is looked for while the client wants nothing


def run(shim: "Shim") -> int:
    """One session from start to end; the exit code. Without a gateway each request of the client is told so."""
    try:
        if not shim.open_gateway():
            say(f"multi-mcp: {shim.why_not()}")
        shim.relay()
    except (KeyboardInterrupt, BrokenPipeError):
        return 0  # the client is gone
    return 0


def say(words: str) -> None:
    """Write a line to stderr, if there is one: it may be closed, or on a full disk. Never to stdout, as print would."""
    if sys.stderr is not None:
        try:
            os.write(2, f"{words}\n".encode("utf-8", "replace"))
        except OSError:
            pass


def greeting(options: dict[str, str]) -> bytes:
    """The first line of the connection (wire/endpoint), written without the json module."""
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""  # the folder was removed under us
    members = {"kind": "session", "cwd": cwd, "pid": str(os.getpid()), **options}
    text = ",".join(f"{quoted(name)}:{quoted(value)}" for name, value in members.items())
    return f"multi-mcp/1 {{{text}}}\n".encode("utf-8", "replace")


def quoted(text: str) -> str:
    """`text` as a JSON string."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in text) + '"'


class Shim:
    """One client's session. Only whole lines travel: neither side ever gets half a frame of a connection that broke.

    It is broad because both directions share what is open when the gateway is lost.
    """

    def __init__(self, hello: bytes, run: str) -> None:
        self._hello = hello
        self._run = run
        self._gateway = -1  # descriptor; -1: none
        self._from_client: list[bytes] = []  # the beginning of a line
        self._from_gateway: list[bytes] = []
        self._early: list[tuple[bool, bytes]] = []  # what passed before the ledger was loaded
        self._ledger: Ledger | None = None
        self._stopped = False  # on purpose: not started again before the client wants something
        self._start_again_at = 0.0  # by the monotonic clock
        self._heard = True  # this connection has said something
        self._asked_at = 0.0  # by the monotonic clock: when it was asked first, while it has said nothing; else 0
        self._mute = 0  # connections in a row that said nothing
        self._large = self._swollen = False  # by answers that a pipe does not hold; by lines from UNJOINED_FROM
        if sys.platform != "win32":  # there windows waits in its own way
            self._poll = select.poll()

    # -- finding a gateway ---------------------------------------------------------------------------------------

    def open_gateway(self, patience_s: float = START_PATIENCE_S) -> bool:
        """Connect, starting a gateway when none runs; False when none could be had."""
        if self._connect():
            return True
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            found = self._started(until)
            if found is not None:
                return found
            if self._connect_within(NEXT_TRY_S):
                return True
        return False

    def _started(self, until: float) -> "bool | None":
        """Start a gateway and connect; None when it ended because it found another one."""
        from trayapp.shim.start import CONNECTED, FOUND_ANOTHER, PAUSED, start

        outcome = start(self._connect, self._pause, until)
        if outcome in (CONNECTED, FOUND_ANOTHER):
            return True if outcome == CONNECTED else None
        self._start_again_at = time.monotonic() + START_AGAIN_S
        ledger = self._known()
        ledger.is_paused, ledger.is_mute = outcome == PAUSED, False
        return False

    def why_not(self) -> str:
        """Why no gateway could be had, and what to do, as the client is told it."""
        return self._known().refusal

    def _connect_within(self, seconds: float) -> bool:
        deadline, pause = time.monotonic() + seconds, 0.005
        while not self._connect():
            if time.monotonic() > deadline or not self._pause(pause):
                return False
            pause = min(pause * 1.5, 0.1)
        return True

    # -- relaying ------------------------------------------------------------------------------------------------

    def relay(self) -> None:
        """Until the client closes our stdin. Raises BrokenPipeError when it does not read any more."""
        self._poll.register(0, select.POLLIN)
        while True:
            ready = self._poll.poll(self._patience_ms())
            if not ready:
                self._rest()
            for source, _ in ready:
                if source == 0:
                    data = read_socket(0, CHUNK if self._from_client else FIRST_CHUNK)
                    if not data:
                        return
                    self._client_sent(data)
                elif source == self._gateway:
                    data = read_socket(source, CHUNK if self._from_gateway else FIRST_CHUNK)
                    if data:
                        self._gateway_sent(data)
                    else:
                        self._gateway_lost()
            if self._asked_at:
                self._look_for_mute()
            if self._gateway < 0 and self._connect() and not self._replayed():
                self._drop()

    def _patience_ms(self) -> "int | None":
        if self._gateway < 0:
            return LOOK_MS
        if self._early:
            return QUIET_MS
        return LOOK_MS if self._asked_at else GIVE_BACK_MS if self._swollen else None

    def _rest(self) -> None:
        """Nobody wants anything: time for the ledger, and to give memory back."""
        if self._early:
            self._known()
        if self._swollen:
            from trayapp.wire.memory import give_back_freed_memory

            self._swollen = False
            give_back_freed_memory()

    def _client_sent(self, data: bytes) -> None:
        lines = whole_lines(self._from_client, data)
        if lines:
            self._forward(lines)

    def _forward(self, lines: bytes) -> None:
        if self._gateway < 0 and self._known().asks(lines):
            self._reopen()
        if self._gateway < 0:
            write_all(1, self._known().undelivered(lines))
            return
        try:
            self._to_gateway(lines)
        except PartlyWritten as failure:
            self._drain()
            if failure.written:
                self._note(True, lines)  # it may have been read, and begun: it is not sent again
            self._gateway_lost()
            if not failure.written:
                self._forward(lines)
            return
        self._note(True, lines)
        if not self._heard:
            self._asked_at = self._asked_at or time.monotonic()

    def _drain(self) -> None:
        """What a gateway said before it went: answers above all, and that it was stopped on purpose."""
        while data := self._next_of_gateway(DRAIN_S):
            self._gateway_sent(data)

    def _gateway_sent(self, data: bytes) -> None:
        if not self._heard:
            self._heard, self._asked_at, self._mute = True, 0.0, 0
        if self._from_gateway and self._large and self._passed_on(data):
            return
        lines = self._without_our_own(whole_lines(self._from_gateway, data))
        if not lines:
            return
        if len(lines) > PIPE_HOLDS and not self._large:
            self._first_large(lines)
        else:
            write_all(1, lines)
        self._note(False, lines)
        if len(self._early) > EARLY_MOST:
            self._known()

    def _first_large(self, lines: bytes) -> None:
        """Pass on the first answer that a pipe does not hold; the next one will take less."""
        from trayapp.wire.memory import keep_freed_memory, widen

        self._large = True
        widen(1)
        write_all(1, lines)
        keep_freed_memory()

    def _passed_on(self, data: bytes) -> bool:
        """A very long answer that `data` ends goes out as it came: joined first, it costs more than twice as much."""
        parts = [*self._from_gateway, data]
        if self._ledger is None or data.find(b"\n") != len(data) - 1 or sum(map(len, parts)) < UNJOINED_FROM:
            return False
        if not self._ledger.begins_answer(parts[0]):
            return False
        for part in parts:
            write_all(1, part)
        self._swollen = True
        self._from_gateway.clear()
        return True

    def _without_our_own(self, lines: bytes) -> bytes:
        """What the client is to see of what the gateway said."""
        if lines.endswith(STOPPING):
            self._stopped = True
            lines = lines[: -len(STOPPING)]
        if self._ledger is not None and self._ledger.swallows:
            lines = self._ledger.without_swallowed(lines)
        return lines

    def _note(self, from_client: bool, lines: bytes) -> None:
        if len(lines) >= UNJOINED_FROM:
            self._swollen = True
        if self._ledger is None:
            self._early.append((from_client, lines))
        elif from_client:
            self._ledger.client_sent(lines)
        else:
            self._ledger.gateway_sent(lines)

    def _known(self) -> "Ledger":
        """The ledger, loaded once the first answers are out."""
        if self._ledger is None:
            from trayapp.shim.ledger import Ledger as Loaded

            self._ledger = Loaded()
            early, self._early = self._early, []
            for from_client, lines in early:
                self._note(from_client, lines)
        return self._ledger

    # -- the gateway is gone -------------------------------------------------------------------------------------

    def _gateway_lost(self) -> None:
        """Each call under way gets its one error; then a new gateway, at once unless it was stopped on purpose."""
        self._drop()
        ledger = self._known()
        write_all(1, ledger.lost())
        if not self._stopped or ledger.open:  # a handshake under way: the client wants something
            self._reopen()
        if self._gateway < 0 and ledger.open:
            write_all(1, ledger.given_up())

    def _look_for_mute(self) -> None:
        """Give up a new connection that was asked and says nothing: it is tried again once, then the client is told."""
        if time.monotonic() - self._asked_at < MUTE_S:
            return
        ledger, self._asked_at = self._known(), 0.0
        if not ledger.open:
            return  # nobody waits
        self._drop()
        self._mute += 1
        write_all(1, ledger.mute())
        if self._mute % MUTE_TRIES:
            self._reopen()
        if self._gateway < 0 and ledger.open:
            write_all(1, ledger.given_up())
            say(f"multi-mcp: {ledger.refusal}")

    def _new_connection(self) -> None:
        self._stopped, self._heard, self._asked_at = False, False, 0.0

    def _drop(self) -> None:
        self._hang_up()
        self._from_gateway.clear()  # half an answer: its call gets the error

    def _reopen(self) -> None:
        until = time.monotonic() + START_PATIENCE_S
        while time.monotonic() < until:
            if not self._found_again():
                return
            if self._replayed():
                return
            self._drop()  # a gateway in its last moments still takes connections: find the next one

    def _found_again(self) -> bool:
        if time.monotonic() < self._start_again_at:
            return self._connect()
        return (not self._stopped and self._connect_within(AWAIT_OTHERS_S)) or self.open_gateway()

    def _replayed(self) -> bool:
        """Bring a new gateway to where the old one was, before anything else is sent; False when it ended meanwhile."""
        ledger = self._known()
        try:
            self._to_gateway(ledger.replay())
        except PartlyWritten:
            return False
        if ledger.open:
            self._asked_at = time.monotonic()
        while ledger.swallows:
            data = self._next_of_gateway(REPLAY_PATIENCE_S)
            if data is None:
                break
            if not data:
                return False
            self._gateway_sent(data)
        return True

    # -- the only places that touch connection and client; windows has its own -----------------------------------

    def _connect(self) -> bool:
        import _socket  # half of what `socket` costs

        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            sock.connect(socket_path(self._run))
            sock.send(self._hello)
        except OSError:
            sock.close()
            return False
        self._gateway = sock.detach()
        self._new_connection()
        self._poll.register(self._gateway, select.POLLIN)
        return True

    def _hang_up(self) -> None:
        if self._gateway >= 0:
            self._poll.unregister(self._gateway)
            os.close(self._gateway)
            self._gateway = -1

    def _to_gateway(self, data: bytes) -> None:
        write_all(self._gateway, data)

    def _next_of_gateway(self, patience_s: float) -> "bytes | None":
        """What the gateway says next; empty when it is gone, None when it says nothing."""
        if not select.select([self._gateway], [], [], patience_s)[0]:
            return None
        return read_socket(self._gateway)

    def _pause(self, seconds: float) -> bool:
        """Wait; False at once when the client is gone: nothing need be waited for."""
        client = select.poll()
        client.register(0, 0)  # that the other end hung up is always told
        return not client.poll(seconds * 1000)


class PartlyWritten(OSError):
    """The other end went away after `written` bytes."""

    def __init__(self, written: int) -> None:
        super().__init__("the other end went away")
        self.written = written


def whole_lines(rest: list[bytes], data: bytes) -> bytes:
    """All that is complete of `rest` and `data`; the beginning of the next line is left in `rest`."""
    if not rest and data.endswith(b"\n"):
        return data
    end = data.rfind(b"\n") + 1
    if not end:
        rest.append(data)
        return b""
    whole = data if end == len(data) else data[:end]
    if rest:
        whole = b"".join((*rest, whole))
        rest.clear()
    if end < len(data):
        rest.append(data[end:])
    return whole


def read_socket(descriptor: int, most: int = CHUNK) -> bytes:
    """What came; nothing when the other end is gone, whatever way."""
    try:
        return os.read(descriptor, most)
    except OSError:
        return b""


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, waiting where the other side is slow. Raises PartlyWritten, for our stdout BrokenPipeError."""
    written = 0
    try:
        while True:
            try:
                written += os.write(descriptor, memoryview(data)[written:] if written else data)
            except BlockingIOError:  # somebody who shares our stdout wants it so
                select.select([], [descriptor], [])
            if written == len(data):
                return
    except OSError:
        if descriptor == 1:
            raise BrokenPipeError from None
        raise PartlyWritten(written) from None


TYPE_CHECKING = False  # typing costs 5 ms
if TYPE_CHECKING:
    from trayapp.shim.ledger import Ledger
