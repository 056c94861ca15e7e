"""Where this system keeps the authorities that https trusts, for a program that brings its own OpenSSL.

Never here: imports beyond os and sys.
"""

import os
import sys

TYPE_CHECKING = False  # as in typing, whose import is felt
if TYPE_CHECKING:
    from collections.abc import MutableMapping

# OpenSSL looks where the system looked that it was built on; these are the places of others.
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
    """Tell OpenSSL by its own variable, unless the user did. Windows asks its own store."""
    if sys.platform == "win32" or "SSL_CERT_FILE" in environ or "SSL_CERT_DIR" in environ:
        return
    if sys.platform == "linux" and any(os.path.exists(place) for place in built_for):
        return
    found = next((place for place in places if os.path.exists(place)), None)
    if found is not None:
        environ["SSL_CERT_FILE"] = found
