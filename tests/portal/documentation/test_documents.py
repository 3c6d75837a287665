"""The documents of the release, as a domain shows them: all of them, every link leads somewhere, nothing of another host is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from django.test import Client

from eventing.core.container import fresh_container
from portal.documentation.rendering import rendered
from portal.documentation.search import EXCERPT_CHARS, FOUND_MAX, search
from portal.documentation.sources import sources

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


@pytest.fixture(autouse=True)
def own_container() -> Iterator[None]:
    with fresh_container():
        yield


class Page(HTMLParser):
    """Anchors, links and what a page loads."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        if found.get("id"):
            self.anchors.add(str(found["id"]))
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        if found.get("src"):
            self.loads.append(str(found["src"]))
        if tag == "link":
            self.loads.append(str(found["href"]))


def test_every_document_is_shown_and_every_link_of_it_leads_somewhere() -> None:
    client = Client()
    pages: dict[str, Page] = {}
    for source in sources().pages:
        answer = client.get(source.link)
        assert answer.status_code == 200, source.name
        pages[source.link] = Page(answer.content.decode())
    assert len(pages) > 100
    files = {source.link for source in sources().by_name.values()}
    broken = []
    for here, page in pages.items():
        assert {address for address in page.loads if urlsplit(address).netloc} == set(), here
        assert {urljoin(here, address) for address in page.loads if "/docs/" in urljoin(here, address)} <= files
        for link in page.links:
            parts = urlsplit(urljoin(here, link))
            if parts.netloc or not parts.path.startswith("/docs/") or parts.path == "/docs/search":
                continue
            target = pages.get(parts.path)
            if parts.path not in files or (parts.fragment and (target is None or parts.fragment not in target.anchors)):
                broken.append((here, link))
    assert broken == []


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("/docs", "/docs/"),
        ("/docs/protocol.md", "/docs/protocol"),
        ("/docs/README.md", "/docs/"),
        ("/docs/simulation", "/docs/simulation/"),
        ("/docs/client/README.md", "/docs/client/"),
    ],
)
def test_an_address_as_in_the_source_tree_leads_to_the_page(asked: str, shown: str) -> None:
    assert Client().get(asked)["Location"] == shown


@pytest.mark.parametrize(
    "address",
    ["nowhere", "../manage.py", "..%2Fmanage.py", "%2e%2e/manage.py", "/etc/passwd", "x" * 5000, "client/pyproject.toml",
     "requirements/run.txt", "protocol/", "%00"],
)  # fmt: skip
def test_no_other_file_is_ever_shown(address: str) -> None:
    assert Client().get(f"/docs/{address}").status_code == 404


def test_pictures_and_descriptions_are_sent_as_what_they_are() -> None:
    picture = Client().get("/docs/screens/overview.png")
    assert picture["Content-Type"] == "image/png"
    assert picture.content.startswith(b"\x89PNG")
    assert picture["X-Content-Type-Options"] == "nosniff"
    assert Client().get("/docs/asyncapi.yaml")["Content-Type"].startswith("text/plain")


HOSTILE = """# A <script>alert(1)</script> title

<script>alert(2)</script> and <b onclick="x">inline</b>, [run](javascript:alert(3)), ![picture](https://evil.example/x.png)

<iframe src="https://evil.example/"></iframe>

<img src="x" onerror="alert(4)" alt="">

| a <svg onload=x> | b |
|---|---|
| [data](data:text/html,x) | `<i>` |

```html"><script>alert(5)</script>
</code></pre><script>alert(6)</script>
```
"""


def test_markup_in_a_document_is_shown_as_text() -> None:
    page = Page(rendered(HOSTILE, "docs/x.md").html)
    assert page.tags <= {"h1", "p", "a", "div", "table", "thead", "tbody", "tr", "th", "td", "pre", "code", "button"}
    assert page.links == []
    assert page.loads == []


def test_a_link_to_a_file_that_is_not_shown_names_it_instead() -> None:
    html = rendered(
        "[the code](../portal/urls.py) [there](protocol.md#close-codes) [out](https://example.org/)", "docs/x.md"
    ).html
    assert '<span title="portal/urls.py, in the source tree">the code</span>' in html
    assert '<a href="/docs/protocol#close-codes">there</a>' in html
    assert '<a href="https://example.org/" rel="noreferrer">out</a>' in html


def test_headings_that_are_alike_have_anchors_of_their_own() -> None:
    shown = rendered("# T\n\n## Same\n\n## Same\n\n### `code` & more\n", "docs/x.md")
    assert [heading.anchor for heading in shown.headings] == ["same", "same-1"]
    assert 'id="code--more"' in shown.html
    assert shown.title == "T"


def test_search_finds_documents_with_all_words_titles_first() -> None:
    found = search("durable WORKER misses nothing")
    assert found[0].source.address == "tutorials/durable-worker"
    assert all(len(one.excerpt) <= EXCERPT_CHARS + 2 for one in found)
    assert 0 < len(search("the")) <= FOUND_MAX
    assert search("nothingofthekind xyzzy") == []
    assert search("") == search("   ") == []
    page = Client().get("/docs/search", {"q": '"><script>alert(1)</script>'}).content.decode()
    assert "<script>alert" not in page
    assert "No document has all of these words" in page
    assert 'href="/docs/protocol"' in Client().get("/docs/search", {"q": "close codes"}).content.decode()


def test_every_page_of_the_console_leads_to_the_documents_and_the_api() -> None:
    page = Client().get("/login").content.decode()
    assert re.search(r'<footer.*href="/docs/".*href="/api/docs".*</footer>', page, re.DOTALL)
    for address, description in (("/api/docs", "/api/v1/schema"), ("/api/docs/events", "/api/v1/asyncapi")):
        answer = Client().get(address)
        assert f'data-address="{description}"' in answer.content.decode()
        assert "unsafe" not in answer["Content-Security-Policy"]


def test_a_file_that_is_a_link_to_elsewhere_is_not_shown(tmp_path: Path) -> None:
    from portal.documentation.sources import DocumentSources

    (tmp_path / "docs").mkdir()
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "docs" / "a.md").write_text("# A")
    (tmp_path / "docs" / "b.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "docs" / "key.pem").write_text("secret")
    assert set(DocumentSources(tmp_path).by_address) == {"a"}
