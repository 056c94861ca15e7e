"""The web page at the end of a sign-in: what happened, and what to do. One file that loads nothing else."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from html import escape
from typing import Literal

Outcome = Literal["success", "denied", "error", "unknown"]

DETAIL_MAX = 240  # characters of the error

_MARKS: dict[Outcome, str] = {
    "success": '<path d="M20 33.5l8.5 8.5L45 25"/>',
    "denied": '<path d="M20 32h24"/>',
    "error": '<path d="M32 19v17"/><path d="M32 44.5v.5"/>',
    "unknown": '<path d="M25.5 26.5a6.7 6.7 0 1 1 9.6 6c-2 1-3.1 2.3-3.1 4.5"/><path d="M32 45v.5"/>',
}
_AGAIN = "Try again from the tray icon, or with"
_STYLE = """
:root{color-scheme:light dark;--back:#f4f5f8;--card:#fff;--ink:#1a1d26;--soft:#5b6170;--line:#e3e6ec;
--shade:0 1px 2px rgba(20,24,40,.06),0 12px 40px rgba(20,24,40,.08)}
.success{--mark:#15803d;--tint:#dcfce7}.denied{--mark:#a16207;--tint:#fef3c7}
.error{--mark:#b91c1c;--tint:#fee2e2}.unknown{--mark:#475569;--tint:#e8ecf2}
@media (prefers-color-scheme:dark){
:root{--back:#0f1116;--card:#191c24;--ink:#eceef3;--soft:#a2a9b8;--line:#2b303b;--shade:0 12px 40px rgba(0,0,0,.45)}
.success{--mark:#4ade80;--tint:#12301f}.denied{--mark:#fbbf24;--tint:#33280d}
.error{--mark:#f87171;--tint:#3a1719}.unknown{--mark:#94a3b8;--tint:#252b37}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:flex;align-items:center;justify-content:center;padding:24px;
background:var(--back);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{width:100%;max-width:440px;background:var(--card);border:1px solid var(--line);border-radius:16px;
box-shadow:var(--shade);padding:40px 36px 28px;text-align:center}
svg{width:64px;height:64px;display:block;margin:0 auto 20px}
svg circle{fill:var(--tint)}svg path{transform:scale(1.2);transform-origin:center;fill:none;stroke:var(--mark);
stroke-width:4;stroke-linecap:round;stroke-linejoin:round}
h1{margin:0 0 8px;font-size:22px;line-height:1.3;font-weight:650;letter-spacing:-.01em;overflow-wrap:anywhere}
p{margin:0;color:var(--soft);overflow-wrap:anywhere}
.detail{margin:16px 0 0;padding:12px 14px;border:1px solid var(--line);border-radius:10px;background:var(--back);
color:var(--ink);font-size:14px;text-align:left}
.again{margin:18px 0 0;font-size:14px}
.again code{display:inline-block;margin-top:6px;padding:5px 12px;border-radius:8px;background:var(--back);
border:1px solid var(--line);color:var(--ink)}
footer{margin:26px -36px 0;padding:16px 36px 0;border-top:1px solid var(--line);font-size:13px;color:var(--soft)}
footer b{color:var(--ink);font-weight:600}
code{font:.92em ui-monospace,SFMono-Regular,Consolas,"DejaVu Sans Mono",monospace}
@media (max-width:420px){main{padding:32px 22px 22px}footer{margin:22px -22px 0;padding:14px 22px 0}}
"""
# The page needs only its own style: no script, no picture, no frame, no form.
POLICY = "; ".join(
    ("default-src 'none'", "style-src 'unsafe-inline'", "img-src data:", "base-uri 'none'", "form-action 'none'",
     "frame-ancestors 'none'")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallbackPage:
    """The content of the page. `server`: its name in servers.yaml; `detail`: the error, from any source."""

    outcome: Outcome
    server: str
    detail: str = ""


def html(page: CallbackPage) -> bytes:
    """Return the page as sent. Its texts are escaped, whatever they contain."""
    title, words = _words(page)
    detail = " ".join(page.detail.split())[:DETAIL_MAX] if page.outcome == "error" else ""
    said = f"<p>{words}</p>" if words else ""
    box = f'<p class="detail">{escape(detail)}</p>' if detail else ""
    command = "" if page.outcome == "success" else f"multi-mcp auth {_server(page)}"
    again = f'<p class="again">{_AGAIN}<br><code>{escape(command)}</code></p>' if command else ""
    return f"""<!doctype html>
<html lang="en" class="{page.outcome}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><link rel="icon" href="data:,">
<title>{escape(title)} - multi-mcp</title><style>{_STYLE}</style></head>
<body><main>
<svg viewBox="0 0 64 64" aria-hidden="true"><circle cx="32" cy="32" r="32"/>{_MARKS[page.outcome]}</svg>
<h1>{escape(title)}</h1>
{said}{box}{again}
<footer><b>multi-mcp</b> &middot; You can close this tab.</footer>
</main></body></html>
""".encode()


def _server(page: CallbackPage) -> str:
    """Return the server's name quoted for a shell. An answer to no known sign-in has no server."""
    return "SERVER" if page.outcome == "unknown" else shlex.quote(page.server)


def _words(page: CallbackPage) -> tuple[str, str]:
    """Return the title and the text."""
    said: dict[Outcome, tuple[str, str]] = {
        "success": (
            f"Signed in to {page.server}",
            "Your AI tools can use the server now. multi-mcp renews the sign-in by itself if the service allows it.",
        ),
        "denied": (f"Not signed in to {page.server}", "The request was declined. Nothing was changed."),
        "error": (f"The sign-in to {page.server} failed", ""),
        "unknown": (
            "This sign-in is over",
            "The address belongs to no sign-in in progress. It has expired or was used before.",
        ),
    }
    return said[page.outcome]
