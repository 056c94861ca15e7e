"""The macOS app: its property list, signing, notarization and disk image."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from devtools.bundle import NAME
from devtools.places import PACKAGING
from devtools.steps import StepFailed, run

BUNDLE_ID = "dev.multimcp.tray"  # also used by the LaunchAgent (service/autostart)
BUNDLE_TYPE = "dev.multimcp.mcpb"
ENTITLEMENTS = PACKAGING / "macos" / "entitlements.plist"
IDENTITY = "MULTI_MCP_CODESIGN"  # such as "Developer ID Application: ..."
PROFILE = "MULTI_MCP_NOTARY_PROFILE"  # the name of a profile that `xcrun notarytool store-credentials` made
UNSIGNED = "MULTI_MCP_UNSIGNED"  # "1": an unsigned build for personal use

INFO: dict[str, object] = {
    "CFBundleName": NAME,
    "CFBundleDisplayName": NAME,
    "CFBundleExecutable": "multi-mcp-tray",
    "LSUIElement": True,  # no icon in the Dock
    "LSMinimumSystemVersion": "12.0",
    "NSHighResolutionCapable": True,
    "NSHumanReadableCopyright": "MIT license",
    # install links and bundles: the tray receives them as Apple events (trayapp/tray/darwin) and opens the panel
    "CFBundleURLTypes": [{"CFBundleURLName": BUNDLE_ID, "CFBundleURLSchemes": [NAME]}],
    "CFBundleDocumentTypes": [
        {
            "CFBundleTypeName": "MCP bundle",
            "CFBundleTypeRole": "Viewer",
            "LSHandlerRank": "Alternate",  # another program may be the default
            "LSItemContentTypes": [BUNDLE_TYPE],
        }
    ],
    "UTImportedTypeDeclarations": [
        {
            "UTTypeIdentifier": BUNDLE_TYPE,
            "UTTypeDescription": "MCP bundle",
            "UTTypeConformsTo": ["public.zip-archive"],
            "UTTypeTagSpecification": {
                "public.filename-extension": ["mcpb"],
                "public.mime-type": ["application/x-mcpb"],
            },
        }
    ],
}


def build_image(work: Path, version: str, out: Path) -> Path:
    """Write the disk image multi-mcp-VERSION-macos-ARCHITECTURE.dmg into `out`. Raises StepFailed."""
    app = work / "out" / f"{NAME}.app"
    target = out / f"{NAME}-{version}-macos-{platform.machine()}.dmg"
    out.mkdir(parents=True, exist_ok=True)
    for command in steps(app, target, dict(os.environ)):
        run(command)
    return target


def steps(app: Path, image: Path, environ: Mapping[str, str]) -> list[list[str]]:
    """Return the commands that make the app's image.

    Raises StepFailed if the identity or the profile is missing and MULTI_MCP_UNSIGNED is not "1".
    """
    folder = app.parent / "image"
    laid = [
        ["rm", "-rf", str(folder)],
        ["mkdir", "-p", str(folder)],
        ["ditto", str(app), str(folder / app.name)],
        ["ln", "-s", "/Applications", str(folder / "Applications")],
        ["hdiutil", "create", "-volname", NAME, "-srcfolder", str(folder), "-ov", "-format", "UDZO", str(image)],
    ]
    if environ.get(UNSIGNED) == "1":
        return laid
    identity, profile = environ.get(IDENTITY, ""), environ.get(PROFILE, "")
    missing = [name for name, value in ((IDENTITY, identity), (PROFILE, profile)) if not value]
    if missing:
        raise StepFailed(
            f"cannot sign the app: missing {' and '.join(missing)}",
            f"Set them, or {UNSIGNED}=1 for a build that macOS opens only with explicit permission.",
        )
    sign = ["codesign", "--force", "--timestamp", "--sign", identity]
    archive = app.with_suffix(".zip")  # notarytool does not accept a folder
    return [
        [*sign, "--deep", "--options", "runtime", "--entitlements", str(ENTITLEMENTS), str(app)],
        ["codesign", "--verify", "--deep", "--strict", "--verbose=2", str(app)],
        ["ditto", "-c", "-k", "--keepParent", str(app), str(archive)],
        *_notarized(archive, app, profile),
        *laid,
        [*sign, str(image)],
        *_notarized(image, image, profile),
        ["spctl", "--assess", "--type", "open", "--context", "context:primary-signature", "--verbose", str(image)],
    ]


def _notarized(submitted: Path, stapled: Path, profile: str) -> list[list[str]]:
    """Return the commands that notarize a file and staple the ticket to it, so the first start needs no network."""
    return [
        ["xcrun", "notarytool", "submit", str(submitted), "--keychain-profile", profile, "--wait"],
        ["xcrun", "stapler", "staple", str(stapled)],
    ]
