"""Pages taken apart: their tables, their data, and what is left without the style and the script that all of them "
"share."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from html import unescape
from html.parser import HTMLParser

from crowdgram.present.pages.templating import _script, _style


@cache
def assets():
    """The style and the script of the package as they stand in a page, and the policy that lets each of them in."""
    found = []
    for directive, whole in (
        ("style-src", f"<style>{_style()}</style>"),
        ("script-src", f"<script>{_script()}</script>"),
    ):
        inner = re.sub(r"^<\w+>|</\w+>$", "", whole)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        found.append((whole, f"{directive} 'sha256-{digest}'"))
    return found


def without_assets(text):
    """The page without its one style and its one script, which must be those of the package and named by the policy."""
    for whole, allowed in assets():
        before, after = text.split(whole)  # it is there once
        text = before + after
        policy = unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', before)[1])
        assert allowed in policy
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    return text


def said(text):
    """The texts of a page as a reader sees them, without its data."""
    bare = re.sub(r"<script.*?</script>", " ", without_assets(text), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", "", re.sub(r"</(p|td|th|dd|dt|h\d|li|small|b)>", " ", bare))).split())


class Tables(HTMLParser):
    """The tables of a page, as lists of rows of texts; the links and the places they lead to; the folds; the data."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.links, self.places, self.folds, self.tags, self.data = [], [], [], 0, set(), {}
        self._in_a_cell, self._block = False, None
        self.feed(without_assets(text) if "<style>" in text else text)
        self.close()

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.add(tag)
        if tag == "script":
            assert found["type"] == "application/json"
            self._block = found["id"]
            self.data[self._block] = ""
            return
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._in_a_cell = True
        elif tag == "details":
            self.folds += 1
        if "id" in found:
            self.places.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])

    def handle_endtag(self, tag):
        self._in_a_cell = self._in_a_cell and tag not in ("td", "th")
        if tag == "script":
            self.data[self._block] = json.loads(self.data[self._block])
            self._block = None

    def handle_data(self, data):
        if self._block is not None:
            self.data[self._block] += data
        elif self._in_a_cell:
            self.tables[-1][-1][-1] += data

    def column(self, key, name):
        """A column of a list of all items."""
        return next(field["values"] for field in self.data[key]["fields"] if field["name"] == name)
