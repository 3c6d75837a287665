"""Markdown to HTML that is safe on a page of the console: no markup of a document is passed on, links lead to other pages here.

The documents are ours, and are treated as a stranger's all the same: HTML in them is shown as text (but for pictures with a
size), addresses with another scheme than http, https and mailto are no links, and pictures are this domain's only.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from eventing.core.container import memoized
from portal.documentation.sources import Source, sources

PAGES_MAX = 512  # bound: rendered documents kept per process; the least recently used is rendered again
_PICTURE = re.compile(r'<img src="([\w./-]+)"(?: width="\d+")? alt="([^"<>]*)">')
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")
_TITLES = ("h1", "h2")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the second level: its anchor and text."""

    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A rendered document."""

    title: str
    html: str
    headings: tuple[Heading, ...]


@memoized(maxsize=PAGES_MAX)
def document(source: Source) -> Document:
    """Render a document."""
    return rendered(source.path.read_text(), source.name)


def rendered(text: str, name: str) -> Document:
    """Render `text`, the document at path `name` of the source tree."""
    tokens = _parser().parse(text)
    _name_headings(tokens)
    _resolve_links(tokens, name)
    headings = [
        (token.tag, Heading(str(token.attrGet("id")), _plain(following)))
        for token, following in pairwise(tokens)
        if token.type == "heading_open" and token.tag in _TITLES
    ]
    title = next((heading.text for tag, heading in headings if tag == "h1"), name)
    html = _parser().renderer.render(tokens, _parser().options, {"name": name})
    return Document(title, html, tuple(heading for tag, heading in headings if tag == "h2"))


class Renderer(RendererHTML):
    """Renders tokens as HTML; a rule is a method, by the type of its token."""

    def table_open(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        """Begin a table that scrolls by itself, by keyboard too."""
        return '<div class="table-scroll" tabindex="0"><table>\n'

    def table_close(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        """End a table."""
        return "</table></div>\n"

    def source_open(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        """Begin what names a file that is not shown."""
        return f'<span title="{escape(tokens[at].content)}, in the source tree">'

    def source_close(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        """End it."""
        return "</span>"

    def fence(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        """Render code with a button that copies it; long lines are scrolled to, by keyboard too."""
        text = escape(tokens[at].content.rstrip("\n"))
        return (
            f'<div class="command"><pre tabindex="0"><code>{text}</code></pre>'
            f'<button type="button" class="copy" data-copy="{text}" hidden>Copy</button></div>\n'
        )

    def code_block(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        """Render indented code as fenced."""
        return self.fence(tokens, at, options, env)

    def html_block(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        """Render pictures that are written as markup, drop comments, and show everything else as text."""
        text, made, end = tokens[at].content, "", 0
        if text.lstrip().startswith("<!--"):
            return ""
        for found in _PICTURE.finditer(text):
            source = address(found[1], env["name"])
            made += str(escape(text[end : found.start()]))
            made += f'<img src="{escape(source)}" alt="{escape(found[2])}" loading="lazy">' if source else ""
            end = found.end()
        return made + str(escape(text[end:]))

    def html_inline(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        """Render markup within a paragraph as that outside of one."""
        return self.html_block(tokens, at, options, env)


@memoized(maxsize=1)
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}, renderer_cls=Renderer).enable(["table", "strikethrough"])


def _name_headings(tokens: Sequence[Token]) -> None:
    """Give every heading the anchor that the common renderers give it."""
    taken: dict[str, int] = {}
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            anchor = _NOT_IN_ANCHORS.sub("", following.content.strip().lower()).replace(" ", "-")
            taken[anchor] = taken.get(anchor, -1) + 1
            token.attrSet("id", f"{anchor}-{taken[anchor]}" if taken[anchor] else anchor)


def _resolve_links(tokens: Sequence[Token], name: str) -> None:
    for token in tokens:
        children = token.children or []
        opened: list[Token] = []
        for child in children:
            if child.type == "link_open":
                _resolve_link(child, name)
                opened.append(child)
            elif child.type == "link_close" and opened.pop().type == "source_open":
                child.type = "source_close"
            elif child.type == "image":
                if (found := address(str(child.attrGet("src")), name)) is None:
                    child.type = "text"  # its content is the text that replaces the picture
                else:
                    child.attrSet("src", found)


def _resolve_link(token: Token, name: str) -> None:
    """Let a link lead to the page of what it names; a file that is not shown is named on hover instead."""
    target = str(token.attrGet("href"))
    if re.match(r"https?:|mailto:", target):
        token.attrSet("rel", "noreferrer")
    elif not target.startswith("#"):
        found = address(target, name)
        if found is None:
            token.type, token.content = "source_open", _path(target, name)
        else:
            token.attrSet("href", found)


def address(target: str, name: str) -> str | None:
    """The address of the file that a document at path `name` calls `target`; None if that file is not shown."""
    path, _, anchor = target.partition("#")
    known = sources().by_name
    full = _path(path, name)
    source = known.get(full) or known.get(posixpath.join(full, "README.md"))
    if source is None:
        return None
    return source.link + (f"#{anchor}" if anchor else "")


def _path(target: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(target.partition("#")[0])))


def _plain(token: Token) -> str:
    return "".join(child.content for child in token.children or [] if child.type in ("text", "code_inline"))
