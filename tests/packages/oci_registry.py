"""An image registry with the OCI distribution API, and a stand-in for `docker` that pulls and runs its images.

An image is one Python program. Docker itself needs a daemon, which few machines have.
"""

from __future__ import annotations

import hashlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

MANIFEST = "application/vnd.oci.image.manifest.v1+json"

# Tests start this a thousand times, so it and the images load as little of Python as possible.
DOCKER = r"""#!{python} -IS
import os, sys

state, registry = {state!r}, open({address!r}).read()
os.makedirs(state, exist_ok=True)

def get(path):
    import _socket

    host, _, port = registry.removeprefix("http://").partition(":")
    connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    connection.settimeout(10)
    try:
        connection.connect((host, int(port)))
        connection.sendall(f"GET {{path}} HTTP/1.0\r\n\r\n".encode())
        head, _, body = b"".join(iter(lambda: connection.recv(1 << 16), b"")).partition(b"\r\n\r\n")
    finally:
        connection.close()
    if b" 200 " not in head.partition(b"\r\n")[0]:
        sys.exit("docker: no answer for " + path)
    return body

def write(name, text):
    with open(os.path.join(state, name), "w") as file:
        file.write(text)

def pull(name, reference):
    try:
        from _sha2 import sha256
    except ImportError:  # before Python 3.12
        from _sha256 import sha256

    def digest_of(data):
        return "sha256:" + sha256(data).hexdigest()

    manifest = get(f"/v2/{{name}}/manifests/{{reference}}")
    digest = digest_of(manifest)
    if reference.startswith("sha256:") and reference != digest:
        sys.exit("docker: manifest does not match its digest")
    told = eval(manifest)  # what this registry writes as JSON is Python, too
    blobs = [get(f"/v2/{{name}}/blobs/{{one['digest']}}") for one in (told["config"], told["layers"][0])]
    for one, data in zip((told["config"], told["layers"][0]), blobs):
        if one["digest"] != digest_of(data):
            sys.exit("docker: content does not match its digest")
    write(digest, blobs[1].decode())
    write(digest + ".created", eval(blobs[0])["created"])
    write(name.replace("/", "_"), digest)

def kept(image):
    name, _, tag = image.partition("@") if "@" in image else image.partition(":")
    path = os.path.join(state, name.replace("/", "_"))
    return name, tag or "latest", open(path).read() if os.path.exists(path) else None

words = sys.argv[2:] if sys.argv[1] == "container" else sys.argv[1:]
if words[0] == "pull":
    name, tag, _ = kept(words[-1])
    pull(name, tag)
elif words[:2] == ["image", "inspect"]:
    name, _, digest = kept(words[-1])
    if digest is None:
        sys.exit("no such image")
    created = open(os.path.join(state, digest + ".created")).read()
    print(created if "Created" in words[3] else f'["{{name}}@{{digest}}"] sha256:id')
elif words[0] == "run":
    name, reference, digest = kept(words[-1])
    if not reference.startswith("sha256:"):
        sys.exit("a tag may move: nothing runs by it here")
    if not os.path.exists(os.path.join(state, reference)):
        pull(name, reference)
    sys.argv = [reference]
    exec(open(os.path.join(state, reference)).read(), {{"__name__": "__main__"}})
sys.stdout.flush()
os._exit(0)  # taking the interpreter down would take as long as the work
"""


class OciRegistry:
    """An image registry with images by name and tag."""

    def __init__(self) -> None:
        self.url = ""
        self.online = True
        self._tags: dict[tuple[str, str], bytes] = {}
        self._blobs: dict[str, bytes] = {}

    def push(self, name: str, program: str, at: float = 0.0, tag: str = "latest") -> None:
        """Point the tag to a new image with this program."""
        created = datetime.fromtimestamp(at, UTC).isoformat()
        parts = [self._keep(json.dumps({"created": created}).encode()), self._keep(program.encode())]
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": parts[0], "layers": parts[1:]}
        self._tags[name, tag] = json.dumps(manifest).encode()
        self._keep(self._tags[name, tag])

    def withdraw(self, name: str, tag: str = "latest") -> None:
        """Remove an image under its tag and its digest."""
        manifest = self._tags.pop((name, tag))
        del self._blobs[f"sha256:{hashlib.sha256(manifest).hexdigest()}"]

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Return a manifest by tag or digest, a blob, or the answer to a check of the API version."""
        if path == "/v2/":
            return "application/json", b"{}"
        name, kind, reference = path.removeprefix("/v2/").rsplit("/", 2)
        data = self._tags.get((name, reference)) if kind == "manifests" else None
        data = data if data is not None else self._blobs.get(reference)
        return (MANIFEST, data) if data is not None else None

    def _keep(self, data: bytes) -> dict[str, object]:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self._blobs[digest] = data
        return {"digest": digest, "size": len(data)}

    def install_docker(self, folder: Path) -> None:
        """Write a `docker` that uses this registry into a folder."""
        address, program = folder / "registry.txt", folder / "docker"
        address.write_text(self.url, "utf-8")
        text = DOCKER.format(python=sys.executable, state=str(folder / "images"), address=str(address))
        program.write_text(text, "utf-8")
        program.chmod(0o755)
