"""The manifests that AUR, Homebrew and winget need to install a release."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devtools.bundle import NAME
from devtools.deb import AUTHOR
from devtools.steps import StepFailed

PUBLISHER = AUTHOR.partition(" <")[0]
SHORT = "Tray app and local gateway that holds all your MCP servers"  # without a period, as Homebrew and winget require
WINGET = "multi-mcp.multi-mcp"
WINGET_SCHEMA = "1.6.0"
DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
BREW_NAMES = {"arm": "arm64", "intel": "x86_64"}


@dataclass(frozen=True, slots=True)
class Release:
    """A version and its files in `folder`. `home`: the repository's address on GitHub."""

    version: str
    home: str
    folder: Path

    def has(self, name: str) -> bool:
        """Return True if the release holds this file."""
        return (self.folder / name).is_file()

    def address(self, name: str) -> str:
        """Return the download address of this file."""
        return f"{self.home}/releases/download/v{self.version}/{name}"

    def sha256(self, name: str) -> str:
        """Return the checksum of this file."""
        return hashlib.sha256((self.folder / name).read_bytes()).hexdigest()


def write_manifests(release: Release, out: Path) -> list[Path]:
    """Write into `out` each manifest whose packages were built. Raises StepFailed."""
    if not release.home.startswith("https://"):
        raise StepFailed(f"{release.home} is not an https address", "Pass the repository's address on GitHub")
    texts = {**aur(release), **homebrew(release), **winget(release)}
    if not texts:
        raise StepFailed(f"no package of {release.version} is in {release.folder}", "Build them first: dev.py build")
    made: list[Path] = []
    for name, text in texts.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        made.append(path)
    return made


# --- AUR: the Debian package already holds every file at its path


def aur(release: Release) -> dict[str, str]:
    """Return PKGBUILD and .SRCINFO for the architectures whose packages were built."""
    debs = {arch: f"{NAME}_{release.version}_{debian}.deb" for arch, debian in DEBIAN_NAMES.items()}
    found = {arch: deb for arch, deb in debs.items() if release.has(deb)}
    if not found:
        return {}
    sources = [(arch, release.address(deb), release.sha256(deb)) for arch, deb in found.items()]
    return {"aur/PKGBUILD": pkgbuild(release, sources), "aur/.SRCINFO": srcinfo(release, sources)}


def pkgbuild(release: Release, sources: Sequence[tuple[str, str, str]]) -> str:
    """Return the recipe for makepkg. `sources`: architecture, address and checksum of each package."""
    per_arch = "\n".join(
        f"source_{arch}=('{address}')\nsha256sums_{arch}=('{digest}')" for arch, address, digest in sources
    )
    return f"""\
# Maintainer: {PUBLISHER}
pkgname={NAME}-bin
pkgver={release.version}
pkgrel=1
pkgdesc='{SHORT}'
arch=({" ".join(f"'{arch}'" for arch, *_ in sources)})
url='{release.home}'
license=('MIT')
depends=('glibc')
provides=('{NAME}')
conflicts=('{NAME}')
options=('!strip')
{per_arch}

package() {{
  bsdtar -xOf "$srcdir/{NAME}_$pkgver"_*.deb data.tar.xz | bsdtar -xf - -C "$pkgdir"
  install -Dm644 "$pkgdir/usr/share/zsh/vendor-completions/_{NAME}" "$pkgdir/usr/share/zsh/site-functions/_{NAME}"
  install -Dm644 "$pkgdir/usr/share/doc/{NAME}/copyright" "$pkgdir/usr/share/licenses/$pkgname/LICENSE"
  rm -r "$pkgdir/usr/share/zsh/vendor-completions" "$pkgdir/usr/share/lintian"
}}
"""


def srcinfo(release: Release, sources: Sequence[tuple[str, str, str]]) -> str:
    """Return the text of .SRCINFO, as `makepkg --printsrcinfo` prints it for the recipe."""
    rows = [("pkgdesc", SHORT), ("pkgver", release.version), ("pkgrel", "1"), ("url", release.home)]
    rows += [("arch", arch) for arch, *_ in sources]
    rows += [("license", "MIT"), ("depends", "glibc"), ("provides", NAME), ("conflicts", NAME), ("options", "!strip")]
    for arch, address, digest in sources:
        rows += [(f"source_{arch}", address), (f"sha256sums_{arch}", digest)]
    body = "".join(f"\t{key} = {value}\n" for key, value in rows)
    return f"pkgbase = {NAME}-bin\n{body}\npkgname = {NAME}-bin\n"


# --- Homebrew


def homebrew(release: Release) -> dict[str, str]:
    """Return a cask if the images of both architectures were built."""
    images = {arch: f"{NAME}-{release.version}-macos-{machine}.dmg" for arch, machine in BREW_NAMES.items()}
    if not all(map(release.has, images.values())):
        return {}
    sums = {arch: release.sha256(image) for arch, image in images.items()}
    address = release.address(f"{NAME}-#{{version}}-macos-#{{arch}}.dmg").replace(f"v{release.version}", "v#{version}")
    cask = f"""\
cask "{NAME}" do
  arch arm: "{BREW_NAMES["arm"]}", intel: "{BREW_NAMES["intel"]}"

  version "{release.version}"
  sha256 arm:   "{sums["arm"]}",
         intel: "{sums["intel"]}"

  url "{address}"
  name "{NAME}"
  desc "{SHORT}"
  homepage "{release.home}"

  depends_on macos: ">= :monterey"

  app "{NAME}.app"
  binary "#{{appdir}}/{NAME}.app/Contents/MacOS/{NAME}"

  uninstall early_script: {{
    executable: "#{{appdir}}/{NAME}.app/Contents/MacOS/{NAME}",
    args:       ["quit"],
  }}
end
"""
    return {f"homebrew/{NAME}.rb": cask}


# --- winget


def winget(release: Release) -> dict[str, str]:
    """Return the three parts of a manifest if the installer was built."""
    setup = f"{NAME}-{release.version}-setup.exe"
    if not release.has(setup):
        return {}
    installer = f"""\
InstallerType: inno
Scope: user
InstallModes:
- interactive
- silent
- silentWithProgress
UpgradeBehavior: install
Commands:
- {NAME}
Installers:
- Architecture: x64
  InstallerUrl: {release.address(setup)}
  InstallerSha256: {release.sha256(setup).upper()}
"""
    locale = f"""\
PackageLocale: en-US
Publisher: {PUBLISHER}
PackageName: {NAME}
PackageUrl: {release.home}
License: MIT
ShortDescription: {SHORT}
Tags:
- mcp
- gateway
"""
    folder = f"winget/manifests/m/multi-mcp/multi-mcp/{release.version}/{WINGET}"
    return {
        f"{folder}.yaml": part(release, "version", "DefaultLocale: en-US\n"),
        f"{folder}.installer.yaml": part(release, "installer", installer),
        f"{folder}.locale.en-US.yaml": part(release, "defaultLocale", locale),
    }


def part(release: Release, kind: str, body: str) -> str:
    """Return one file of the manifest: `body`, between the lines that all its files have."""
    schema = f"https://aka.ms/winget-manifest.{kind}.{WINGET_SCHEMA}.schema.json"
    return f"""\
# yaml-language-server: $schema={schema}
PackageIdentifier: {WINGET}
PackageVersion: {release.version}
{body}ManifestType: {kind}
ManifestVersion: {WINGET_SCHEMA}
"""
