"""The search for this system's trusted certificates, for a program that comes with its own OpenSSL.

It imports only os and sys.
"""

import os
import sys

TYPE_CHECKING = False  # replaces typing.TYPE_CHECKING: importing typing takes too long
if TYPE_CHECKING:
    from collections.abc import MutableMapping

# OpenSSL looks only in the places of the system on which it was built. PLACES: the certificate files of all systems.
BUILT_FOR = ("/usr/lib/ssl/certs", "/usr/lib/ssl/cert.pem")  # Debian, Ubuntu
PLACES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # macOS
)


def name_them(
    environ: "MutableMapping[str, str]" = os.environ,
    built_for: tuple[str, ...] = BUILT_FOR,
    places: tuple[str, ...] = PLACES,
) -> None:
    """Set SSL_CERT_FILE if OpenSSL would not find the certificates, unless the user set it or SSL_CERT_DIR.

    Windows uses its own store.
    """
    if sys.platform == "win32" or "SSL_CERT_FILE" in environ or "SSL_CERT_DIR" in environ:
        return
    if sys.platform == "linux" and any(os.path.exists(place) for place in built_for):
        return
    found = next((place for place in places if os.path.exists(place)), None)
    if found is not None:
        environ["SSL_CERT_FILE"] = found
