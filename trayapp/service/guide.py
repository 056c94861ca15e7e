"""Functions that find and read the pages of the guide, which come with the program. cli/help and the panel use them."""

from __future__ import annotations

from pathlib import Path

FIRST_TOPICS = ("install", "ai-tools", "servers-yaml", "tray", "safety", "verbs", "http")  # the order for new users


def guide_folder() -> Path:
    """Return the folder of the pages, which is in the package or in a clone of the repository."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "guide"
    return inside if inside.is_dir() else package.parent / "packaging" / "guide"


def topics() -> dict[str, str]:
    """Return the titles of all pages by topic."""
    names = [path.stem for path in sorted(guide_folder().glob("*.md"))]
    ordered = [name for name in FIRST_TOPICS if name in names] + [name for name in names if name not in FIRST_TOPICS]
    return {name: page(name).partition("\n")[0].removeprefix("# ") for name in ordered}


def page(topic: str) -> str:
    """Return a page as Markdown. Raises FileNotFoundError."""
    return (guide_folder() / f"{topic}.md").read_text(encoding="utf-8")
