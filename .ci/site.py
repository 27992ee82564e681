"""Check a site that Sphinx built: its links lead somewhere, and it asks no other host for anything.

    python .ci/site.py FOLDER

Links to other hosts that a reader may follow are not looked at.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that make a browser fetch something by itself.
FETCHED = {
    "script": ["src"],
    "img": ["src"],
    "link": ["href"],
    "iframe": ["src"],
    "source": ["src", "srcset"],
    "video": ["src"],
}


class Page(HTMLParser):
    """Names that others may link to, links, and what is fetched."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        given = {key: value for key, value in attrs if value}
        self.names.update(given[key] for key in ("id", "name") if key in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.fetched += [given[key] for key in FETCHED.get(tag, []) if key in given]


def faults(root: Path) -> list[str]:
    """Return a line for each fault."""
    pages = {path: Page(path) for path in root.rglob("*.html") if "_static" not in path.parts}
    if not pages:
        return [f"{root}: no pages"]
    found = []
    for path, page in pages.items():
        for target in page.links + page.fetched:
            parts = urlsplit(target)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if target in page.fetched:
                    found.append(f"{path}: fetches {target}")
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if there.is_dir():
                there /= "index.html"
            if not there.exists():
                found.append(f"{path}: no file {target}")
            elif (
                there in pages
                and parts.fragment
                and unquote(parts.fragment) not in pages[there].names
            ):
                found.append(f"{path}: no anchor {target}")
    for path in root.rglob("*.css"):
        for url in re.findall(
            r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]+)", path.read_text()
        ):
            found.append(f"{path}: fetches {url}")
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links")
    return found


if __name__ == "__main__":
    lines = faults(Path(sys.argv[1]).resolve())
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(bool(lines))
