"""Whether a server's address may be used (interp-10).

Never here: connecting, variables. An address may hold a secret, so no message repeats it.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from urllib.parse import urlsplit

_VARIABLE = re.compile(r"\$\{|\$env:|\{env:")
_VALUE = re.compile(r"\$\{[^}]*\}|\$env:\w+|\{env:[^}]*\}")


def url_fault(url: str) -> str | None:
    """What is wrong with an address whose variables are resolved; None when it is http or https with a host."""
    if re.search(r"[\s\x00-\x1f\x7f]", url):
        return "holds blanks or control characters"
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for one that is no number up to 65535
    except ValueError:
        return "is no web address"
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        return "must begin with http:// or https:// and name a host"
    if "@" in parts.netloc:
        return "holds a user name or password; put it into headers"
    return None


def has_variable(text: str) -> bool:
    """Whether a text may change when its variables are resolved."""
    return _VARIABLE.search(text) is not None


def unsafe_url(url: str) -> str | None:
    """What speaks against taking an address over with one command: as `url_fault`, and the way there must not be read
    along (http is for this machine). Whoever knows his network writes the address into servers.yaml."""
    plain = _VALUE.sub("1", url)  # a host of variables is any host, a port of one is a port
    fault = url_fault(plain)
    if fault is not None:
        return None if has_variable(url) and not plain.lower().startswith(("http://", "https://")) else fault
    parts = urlsplit(plain)
    if parts.scheme.lower() == "http" and not _is_loopback(parts.hostname or ""):
        return "must begin with https://: what is sent by http:// can be read on the way"
    return None


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback)


_GENERIC = frozenset({"mcp", "api", "www", "app", "sse", "server", "remote", "gateway"})  # hosts that many have
_SECOND_LEVEL = frozenset({"co", "com", "org", "net", "ac", "gov", "edu"})  # below a country's top level


def name_of_url(url: str) -> str:
    """A server's name from its address: `deepwiki` of https://mcp.deepwiki.com/mcp."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    labels = [label for label in host.split(".") if label] or [host]
    if _address(host) is not None or len(labels) == 1:
        return re.sub(r"[^a-z0-9]+", "-", host).strip("-") or "server"
    end = 2 if len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL else 1
    own = [label for label in labels[:-end] if label not in _GENERIC]
    return (own or labels)[-1] if own else labels[0]


_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_METADATA_ADDRESSES = frozenset({"100.100.100.200", "192.0.0.192", "fd00:ec2::254"})  # of clouds, beside 169.254/16


def is_forbidden_place(url: str) -> bool:
    """Whether an address names the machine's link or its cloud's metadata: nothing a web page may talk us into."""
    try:
        host = _as_looked_up(urlsplit(url).hostname or "")
    except ValueError:
        return False
    if host in _METADATA_NAMES:
        return True
    address = _address(host)
    if address is None:
        return False
    plain = _carried(address) or address
    return plain.is_link_local or str(plain) in _METADATA_ADDRESSES


def _as_looked_up(host: str) -> str:
    """A host as name lookups come to see it: other scripts' digits and full stops are plain ones (IDNA, UTS 46)."""
    return unicodedata.normalize("NFKC", host).replace("\u3002", ".").rstrip(".").lower()


def _carried(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address inside one of IPv6: mapped, by NAT64 (RFC 6052), by 6to4."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Numbers in every spelling that connecting would take: 169.254.169.254, 0xa9fea9fe, 2852039166."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None
