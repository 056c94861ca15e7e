"""Checks of server addresses. An address may contain a secret, so no message repeats it."""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from urllib.parse import unquote, urlsplit

_VARIABLE = re.compile(r"\$\{|\$env:|\{env:")
_VALUE = re.compile(r"\$\{[^}]*\}|\$env:\w+|\{env:[^}]*\}")


def url_fault(url: str) -> str | None:
    """Return what is wrong with an address whose variables are resolved, or None if it is valid.

    The address must be http or https, name a host, and contain no user name or password.
    """
    if re.search(r"[\s\x00-\x1f\x7f]", url):
        return "contains spaces or control characters"
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises unless it is a number up to 65535
    except ValueError:
        return "is not a web address"
    if _IGNORED.search(parts.netloc):
        return "has invisible characters in its host"
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        return "must begin with http:// or https:// and name a host"
    if "@" in parts.netloc:
        return "contains a user name or password; put it into headers"
    return None


def has_variable(text: str) -> bool:
    """Return True if a text contains a variable (`${NAME}`, `$env:NAME`, `{env:NAME}`)."""
    return _VARIABLE.search(text) is not None


def unsafe_url(url: str, *, asks: bool = False) -> str | None:
    """Return the reason why a command must not add an address, or None if there is none.

    Unless a variable holds its scheme, the address must pass `url_fault` and use https, or http on this machine.
    With `asks`, the user confirms its `exposure`, so http is also allowed in the user's own network.
    """
    plain = _VALUE.sub("1", url)  # a number is valid both as a host and as a port
    fault = url_fault(plain)
    if fault is not None:
        return None if has_variable(url) and not plain.lower().startswith(("http://", "https://")) else fault
    if exposure(plain) and not (asks and _is_own_network(url)):
        why = "so others can read and change what is sent" if is_inside(url) else "and may leave your own network"
        return f"must begin with https://: http:// is not encrypted, {why}"
    return None


def _is_own_network(url: str) -> bool:
    """Return True if an address is in a private network, whatever its variables hold, and is not a forbidden place."""
    is_fixed = _host_of(_VALUE.sub("1", url)) == _host_of(_VALUE.sub("2", url))
    return is_fixed and is_inside(url) and not is_forbidden_place(url)


def exposure(url: str) -> str | None:
    """Return a warning that names who can read an unencrypted connection. Return None for https and this machine."""
    host = _host_of(url)
    address = _address(host)
    is_loopback = host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback)
    if not host or is_loopback or not url.lower().startswith("http:"):
        return None
    who = "others in the server's network" if is_inside(url) else "others on the way to the server"
    return f"http:// is not encrypted: {who} can read and change what is sent, including credentials"


def unsafe_url_hint(url: str) -> str:
    """Return the hint for an address that `unsafe_url` rejects."""
    by_hand = "write it into servers.yaml by hand: multi-mcp edit"
    if not url.lower().startswith("http://"):
        return f"Or {by_hand}"
    return f"Use its https:// address. If the server is in your own network and you trust that network, {by_hand}"


_HOSTS_OF_CONTAINERS = frozenset({"host.docker.internal", "gateway.docker.internal", "host.containers.internal"})


def outside_containers(url: str) -> str:
    """Return the address with localhost in place of a host name that works only inside containers."""
    host = _host_of(url)
    return url.replace(host, "localhost", 1) if host in _HOSTS_OF_CONTAINERS else url


_GENERIC = frozenset(
    {"mcp", "api", "www", "app", "sse", "server", "remote", "gateway"}
)  # labels too common to name a server
_SECOND_LEVEL = frozenset({"co", "com", "org", "net", "ac", "gov", "edu"})  # labels below a country code, as in co.uk


def name_of_url(url: str) -> str:
    """Return a name for the server at an address: `deepwiki` for https://mcp.deepwiki.com/mcp."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    labels = [label for label in host.split(".") if label] or [host]
    if _address(host) is not None or len(labels) == 1:
        return re.sub(r"[^a-z0-9]+", "-", host).strip("-") or "server"
    end = 2 if len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL else 1
    own = [label for label in labels[:-end] if label not in _GENERIC]
    return (own or labels)[-1] if own else labels[0]


_METADATA_LABELS = frozenset({"metadata", "instance-data"})  # the whole host name, or the first label below a zone
_METADATA_ZONES = ("internal", "goog", "azure.com", "platformequinix.com", "packet.net", "tencentyun.com")
_METADATA_ADDRESSES = frozenset(  # metadata services of clouds at addresses that are not link-local
    {"100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe"}
)
_INSIDE_ZONES = ("localhost", "local", "internal", "home.arpa", "localdomain", "lan")  # RFC 6761, 6762, 8375; ICANN
_IGNORED = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_CARRYING = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/96", "::ffff:0:0:0/96")))  # NAT64, SIIT
_COMPATIBLE = 1 << 32  # IPv6 addresses below this one embed IPv4 addresses (RFC 4291, deprecated)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_forbidden_place(url: str) -> bool:
    """Return True if an address is link-local or a cloud's metadata service. We must never connect there."""
    host = _host_of(url)
    address = _address(host)
    if address is not None:
        return address.is_link_local or str(address) in _METADATA_ADDRESSES
    first, _, rest = host.partition(".")
    return first in _METADATA_LABELS and (not rest or _is_in(rest, _METADATA_ZONES))


def is_inside(url: str) -> bool:
    """Return True for an address on this machine, its network or its cloud. Remote input must not lead there (SSRF)."""
    host = _host_of(url)
    address = _address(host)
    if address is not None:
        is_of_site = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
        return not address.is_global or address.is_multicast or is_of_site or is_forbidden_place(url)
    return "." not in host or _is_in(host, _INSIDE_ZONES) or is_forbidden_place(url)


def _is_in(host: str, zones: tuple[str, ...]) -> bool:
    return any(host == zone or host.endswith(f".{zone}") for zone in zones)


def _host_of(url: str) -> str:
    """Return the host of an address in the form that a name lookup uses, or "" if it has none.

    Digits and dots of other scripts are normalized, and invisible characters are removed (IDNA, UTS 46).
    """
    try:
        host = unquote(urlsplit(url.replace("\\", "/")).hostname or "")
    except ValueError:
        return ""
    return _IGNORED.sub("", unicodedata.normalize("NFKC", host)).replace("\u3002", ".").rstrip(".").lower()


def _address(host: str) -> Address | None:
    """Return the IP address in a host, in any spelling that connect(2) accepts, or None for a name.

    Examples: 169.254.169.254, 0xa9fea9fe, 2852039166, 127.1, ::ffff:0:1. An IPv4 address embedded in an IPv6 address
    counts as IPv4.
    """
    try:
        address: Address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None
    return (_carried(address) or address) if isinstance(address, ipaddress.IPv6Address) else address


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that an IPv6 address embeds, or None if there is none.

    Known forms: mapped, NAT64 (RFC 6052, 8215), SIIT (RFC 7915), 6to4, Teredo, and IPv4-compatible (deprecated).
    """
    if any(address in network for network in _CARRYING) or 1 < int(address) < _COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
