#!/usr/bin/env python3
"""Checks all links between the pages of a built book and prints the broken ones."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlparse


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" and value:
                self.places.add(value)
            elif (tag, name) in (("a", "href"), ("img", "src")) and value:
                self.links.append(value)


book = Path(sys.argv[1]).resolve()
pages = {path: Page(path) for path in book.glob("*.html") if path.name not in ("print.html", "toc.html", "404.html")}
lost = []
for path, page in sorted(pages.items()):
    for link in page.links:
        url = urlparse(link)
        if url.scheme:
            continue
        target = (path.parent / url.path).resolve() if url.path else path
        if not target.exists() or (url.fragment and target in pages and url.fragment not in pages[target].places):
            lost.append(f"{path.name}: {link}")
print("\n".join(lost) or f"{len(pages)} pages, no broken links")
sys.exit(bool(lost))
