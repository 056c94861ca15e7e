"""The relay between an AI tool's stdin and stdout and the gateway's local socket.

The relay survives the loss of its gateway, because `ledger` keeps the state for the next one.

Never here: asyncio, json, threads, anything that costs start-up time.
"""

import os
import select
import sys
import time

from trayapp.wire.rundir import PIPES, STOPPING, socket_path

CHUNK = 1 << 20  # bytes per read, once a line has turned out to be long
FIRST_CHUNK = 1 << 16  # bytes per read before that, because consecutive buffers of 1 MiB would touch 2 MiB of the heap
UNJOINED_FROM = 1 << 17  # bytes; a longer line is passed on in parts, because joining them takes 1.5 ms per MiB
SWELLS_FROM = 4 << 20  # bytes; after a line of at least this size, freeing its memory is worth the effort
GIVE_BACK_MS = 5000  # idle time after such a line, before its memory is given back to the system
QUIET_MS = 50  # idle time before the ledger is loaded
EARLY_MOST = 32  # batches of lines that may wait for the ledger
PIPE_HOLDS = 1 << 16  # bytes, the default size of a pipe
START_PATIENCE_S = 20.0  # how long a gateway that was just started may take to listen
START_AGAIN_S = 2.0  # after a failed start, requests are refused for this long without another attempt
# How long to try the gateway that was already running when the shim started one. The started one then exits, and the
# running one may be shutting down.
NEXT_TRY_S = 0.5
AWAIT_OTHERS_S = 0.7  # time for the tray, if it runs, to restart a crashed gateway; then the shim starts one
DRAIN_S = 0.2  # wait for the rest of what a lost gateway sent; its end of file follows immediately
REPLAY_PATIENCE_S = 5.0  # limit for the answer to a replayed request, which usually takes a millisecond
PING_S = 2.0  # silence after the first request of a connection, before a ping tests if the gateway answers at all
MUTE_S = 12.0  # a gateway that is silent for this long may hang; a ping is usually answered in milliseconds
MUTE_TRIES = 2  # silences of MUTE_S before the client gets the error; clients wait 30 s or more
PASSED_BYTES = 64  # room for the file descriptors of two pipes, which arrive with a message
LOOK_MS = 1000  # how often to look for a gateway while there is none, and for a silent gateway's answer


def say(words: str) -> None:
    """Write a line to stderr, never to stdout. Ignore failures, because stderr may be closed or on a full disk."""
    if sys.stderr is not None:
        try:
            os.write(2, f"{words}\n".encode("utf-8", "replace"))
        except OSError:
            pass


def greeting(options: dict[str, str]) -> bytes:
    """Return the first line of the connection (wire/endpoint), written without the json module."""
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""  # the working folder has been removed
    members = {"kind": "session", "cwd": cwd, "pid": str(os.getpid()), **options}
    text = ",".join(f"{quoted(name)}:{quoted(value)}" for name, value in members.items())
    return f"multi-mcp/1 {{{text}}}\n".encode("utf-8", "replace")


def quoted(text: str) -> str:
    """Return `text` as a JSON string."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in text) + '"'


class Shim:
    """One client's session. It forwards only whole lines, so neither side gets half a frame from a broken connection.

    The class is broad because both directions share the open requests when the gateway is lost.
    """

    def __init__(self, hello: bytes, run: str) -> None:
        self._hello = hello
        self._run = run
        self._gateway = -1  # file descriptor to read from; -1: none
        self._to = -1  # file descriptor to write to: the same for a socket, another for two pipes
        self._socket: _socket.socket | None = None  # the connection until the gateway passes its pipes
        self._from_client: list[bytes] = []  # the beginning of an incomplete line
        self._from_gateway: list[bytes] = []
        self._early: list[tuple[bool, bytes]] = []  # traffic from before the ledger was loaded
        self._ledger: Ledger | None = None
        self._stopped = False  # the gateway was stopped on purpose: start none before the client sends a request
        self._start_again_at = 0.0  # monotonic time before which no gateway is started
        self._heard = True  # the gateway has sent something on this connection
        self._asked_at = 0.0  # monotonic time of the first request on a connection that is still silent; else 0
        self._pinged = False  # a ping was sent on this connection
        self._mute = 0  # consecutive times that the gateway was silent for MUTE_S
        # _large: an answer was larger than a pipe. _swollen: the memory of a line of SWELLS_FROM or more is held.
        self._large = self._swollen = False
        if sys.platform != "win32":  # the module `windows` has its own way of waiting
            self._poll = select.poll()

    def run(self) -> None:
        """Run one session from start to end. Without a gateway, each request gets an error."""
        try:
            if not self.open_gateway():
                say(f"multi-mcp: {self._load_ledger().refusal}")
            self.relay()
        except (KeyboardInterrupt, BrokenPipeError):
            pass  # the client is gone

    # -- finding a gateway ---------------------------------------------------------------------------------------

    def open_gateway(self) -> bool:
        """Connect, and start a gateway if none runs. Return False if none could be reached."""
        if self._connect():
            return True
        until = time.monotonic() + START_PATIENCE_S
        while time.monotonic() < until:
            if (found := self._started(until)) is not None:
                return found
            if self._connect_within(NEXT_TRY_S):
                return True
        return False

    def _started(self, until: float) -> "bool | None":
        """Start a gateway and connect. Return True if connected, None if another gateway exists, False on failure."""
        from trayapp.shim.start import IS_PAUSED, RUNS_ALREADY, start

        exit_code = start(self._connect, self._pause, until)
        if exit_code is None:
            return True
        if exit_code == RUNS_ALREADY:
            return None
        self._start_again_at = time.monotonic() + START_AGAIN_S
        self._load_ledger().note_failed_start(is_paused=exit_code == IS_PAUSED)
        return False

    def _connect_within(self, seconds: float) -> bool:
        deadline, pause = time.monotonic() + seconds, 0.005
        while not self._connect():
            if time.monotonic() > deadline or not self._pause(pause):
                return False
            pause = min(pause * 1.5, 0.1)
        return True

    # -- relaying ------------------------------------------------------------------------------------------------

    def relay(self) -> None:
        """Relay until the client closes our stdin. Raises BrokenPipeError if the client no longer reads."""
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
                    most = CHUNK if self._from_gateway else FIRST_CHUNK
                    received = read_socket(source, most) if self._socket is None else self._received(most)
                    if received:
                        self._gateway_sent(received)
                    elif received is not None:
                        self._gateway_lost()
            if self._asked_at:
                self._look_for_mute()
            if self._gateway < 0 and self._connect() and not self._replayed():
                self._drop()

    def _rest(self) -> None:
        """Do the work that waited for a pause in the traffic: load the ledger, and give back memory."""
        if self._early:
            self._load_ledger()
        if self._swollen:
            from trayapp.wire.memory import give_back_freed_memory

            self._swollen = False
            give_back_freed_memory()

    def _patience_ms(self) -> "int | None":
        if self._gateway >= 0 and self._early:
            return QUIET_MS
        if self._gateway < 0 or self._asked_at:
            return LOOK_MS
        return GIVE_BACK_MS if self._swollen else None

    def _client_sent(self, data: bytes) -> None:
        if lines := whole_lines(self._from_client, data):
            self._forward(lines)

    def _forward(self, lines: bytes) -> None:
        if self._gateway < 0 and self._load_ledger().has_request(lines):
            self._reopen()
        if self._gateway < 0:
            write_all(1, self._load_ledger().refuse_requests(lines))
            return
        try:
            self._to_gateway(lines)
        except PartlyWritten as failure:
            while data := self._next_of_gateway(DRAIN_S):  # for example answers, or the gateway's stop note
                self._gateway_sent(data)
            if failure.written:
                self._note(True, lines)  # the gateway may have begun these requests: do not send them again
            self._gateway_lost()
            if not failure.written:
                self._forward(lines)
            return
        self._note(True, lines)
        if not self._heard:
            self._asked_at = self._asked_at or time.monotonic()

    def _gateway_sent(self, data: bytes) -> None:
        if not self._heard:
            self._heard, self._asked_at, self._mute = True, 0.0, 0
        if self._from_gateway and self._large and self._passed_on(data):
            return
        lines = whole_lines(self._from_gateway, data)
        if lines.endswith(STOPPING):  # the gateway's note that it was stopped on purpose
            self._stopped = True
            lines = lines[: -len(STOPPING)]
        if self._ledger is not None and self._ledger.own_ids:
            lines = self._ledger.drop_own_answers(lines)
        if not lines:
            return
        if len(lines) > PIPE_HOLDS and not self._large:  # widen the client's pipe for large answers
            from trayapp.wire.memory import widen

            self._large = True
            widen(1)
        write_all(1, lines)
        self._note(False, lines)
        if len(self._early) > EARLY_MOST:
            self._load_ledger()

    def _passed_on(self, data: bytes) -> bool:
        """Pass on a long answer that `data` completes, in the parts received. Return False for other data.

        Joining the parts first would cost more than twice as much.
        """
        parts = [*self._from_gateway, data]
        size = sum(map(len, parts))
        is_one = data.find(b"\n") == len(data) - 1 and size >= UNJOINED_FROM
        if not is_one or self._ledger is None or not self._ledger.begins_answer(parts[0]):
            return False
        for part in parts:
            write_all(1, part)
        self._swollen = self._swollen or size >= SWELLS_FROM
        self._from_gateway.clear()
        return True

    def _note(self, from_client: bool, lines: bytes) -> None:
        if len(lines) >= SWELLS_FROM:
            self._swollen = True
        if self._ledger is None:
            self._early.append((from_client, lines))
        elif from_client:
            self._ledger.record_client_lines(lines)
        else:
            self._ledger.record_gateway_lines(lines)

    def _load_ledger(self) -> "Ledger":
        """Return the ledger. The first call loads it and records the traffic so far."""
        if self._ledger is None:
            from trayapp.shim.ledger import Ledger as LoadedLedger

            self._ledger = LoadedLedger()
            early, self._early = self._early, []
            for from_client, lines in early:
                self._note(from_client, lines)
        return self._ledger

    # -- the gateway is gone -------------------------------------------------------------------------------------

    def _gateway_lost(self) -> None:
        """Answer each open call with one error. Then find a new gateway, if one is needed.

        No new gateway is needed if the old one was stopped on purpose and no handshake is open.
        """
        self._drop()
        ledger = self._load_ledger()
        write_all(1, ledger.fail_open_calls())
        if not self._stopped or ledger.has_open_handshake:  # otherwise the client needs no gateway now
            self._reopen()
        if self._gateway < 0 and ledger.has_open_handshake:
            write_all(1, ledger.fail_initialize())

    def _look_for_mute(self) -> None:
        """Give up a new connection on which the gateway does not even answer a ping.

        An open handshake is then sent once more on another connection. An open call is not sent again, because the
        gateway may have read it. Instead, the gateway gets MUTE_TRIES times as long to answer.
        """
        silent_s = time.monotonic() - self._asked_at
        if silent_s >= PING_S and not self._pinged:
            self._pinged = True
            try:
                self._to_gateway(self._load_ledger().ping())
            except PartlyWritten:
                pass  # the next read finds the end of the connection
        if silent_s < MUTE_S:
            return
        ledger, self._asked_at = self._load_ledger(), 0.0
        if not ledger.open:
            return
        self._mute += 1
        if self._mute % MUTE_TRIES and ledger.has_open_calls:
            self._asked_at = time.monotonic()
            return
        self._drop()
        write_all(1, ledger.fail_unanswered_calls())
        if self._mute % MUTE_TRIES:
            self._reopen()
        if self._gateway < 0 and ledger.has_open_handshake:
            write_all(1, ledger.fail_initialize())
            say(f"multi-mcp: {ledger.refusal}")

    def _new_connection(self) -> None:
        self._stopped = self._heard = self._pinged = False
        self._asked_at = 0.0

    def _drop(self) -> None:
        self._hang_up()
        self._from_gateway.clear()  # discard a partial answer: its call gets an error

    def _reopen(self) -> None:
        until = time.monotonic() + START_PATIENCE_S
        while time.monotonic() < until:
            if time.monotonic() < self._start_again_at:
                found = self._connect()
            else:
                found = (not self._stopped and self._connect_within(AWAIT_OTHERS_S)) or self.open_gateway()
            if not found or self._replayed():
                return
            self._drop()  # a gateway that is ending still accepts connections: find the next one

    def _replayed(self) -> bool:
        """Replay the session state to a new gateway before anything else. Return False if the gateway ended."""
        ledger = self._load_ledger()
        try:
            self._to_gateway(ledger.replay())
        except PartlyWritten:
            return False
        if ledger.open:
            self._asked_at = time.monotonic()
        while ledger.own_ids:
            data = self._next_of_gateway(REPLAY_PATIENCE_S)
            if data is None:
                break
            if not data:
                return False
            self._gateway_sent(data)
        return True

    # -- the connection, and waiting for it; `windows` has its own versions --------------------------------------

    def _connect(self) -> bool:
        import _socket  # costs half as much as `socket`

        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            sock.connect(socket_path(self._run))
            sock.send(self._hello)
        except OSError:
            sock.close()
            return False
        self._socket, self._gateway = sock, sock.fileno()
        self._to = self._gateway
        self._new_connection()
        self._poll.register(self._gateway, select.POLLIN)
        return True

    def _received(self, most: int) -> "bytes | None":
        """Return the bytes received over the socket, or b"" if the gateway is gone.

        If they end with the message that carries pipes, switch to the pipes and return the bytes before that message,
        or None if there are none.
        """
        from _socket import MSG_CMSG_CLOEXEC

        assert self._socket is not None
        try:
            data, passed, _, _ = self._socket.recvmsg(most, PASSED_BYTES, MSG_CMSG_CLOEXEC)
        except OSError:
            return b""
        if not passed:
            return data
        pair = [int.from_bytes(passed[0][2][at : at + 4], sys.byteorder) for at in (0, 4)]
        self._hang_up()
        self._gateway, self._to = pair
        self._poll.register(self._gateway, select.POLLIN)
        return data.removesuffix(PIPES) or None

    def _hang_up(self) -> None:
        if self._gateway < 0:
            return
        self._poll.unregister(self._gateway)
        if self._socket is not None:
            self._socket.close()
        else:
            os.close(self._gateway)
            os.close(self._to)
        self._socket, self._gateway = None, -1

    def _to_gateway(self, data: bytes) -> None:
        write_all(self._to, data)

    def _next_of_gateway(self, patience_s: float) -> "bytes | None":
        """Return the gateway's next bytes, b"" if it is gone, or None if it sends nothing in time."""
        while select.select([self._gateway], [], [], patience_s)[0]:
            data = read_socket(self._gateway) if self._socket is None else self._received(CHUNK)
            if data is not None:
                return data
        return None

    def _pause(self, seconds: float) -> bool:
        """Wait and return True. If the client is gone, return False immediately."""
        client = select.poll()
        client.register(0, 0)  # a hang-up of the other end is always reported
        return not client.poll(seconds * 1000)


class PartlyWritten(OSError):
    """Raised if the other end closes the connection after `written` bytes of a write."""

    def __init__(self, written: int) -> None:
        super().__init__("the other end closed the connection")
        self.written = written


def whole_lines(rest: list[bytes], data: bytes) -> bytes:
    """Return the complete lines of `rest` and `data`. Leave the beginning of the next line in `rest`."""
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
    """Return the bytes received, or b"" if the other end is gone, by a close or an error."""
    try:
        return os.read(descriptor, most)
    except OSError:
        return b""


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, and wait if the other side is slow. Raises PartlyWritten, or BrokenPipeError for our stdout."""
    written = 0
    try:
        while True:
            try:
                written += os.write(descriptor, memoryview(data)[written:] if written else data)
            except BlockingIOError:  # another process that shares our stdout made it non-blocking
                select.select([], [descriptor], [])
            if written == len(data):
                return
    except OSError:
        if descriptor == 1:
            raise BrokenPipeError from None
        raise PartlyWritten(written) from None


TYPE_CHECKING = False  # typing costs 5 ms
if TYPE_CHECKING:
    import _socket

    from trayapp.shim.ledger import Ledger
