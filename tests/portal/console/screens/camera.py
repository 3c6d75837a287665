"""Takes a picture of a page, small and without anything secret on it."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np  # this and Pillow come with matplotlib, which the benchmarks draw with
from PIL import Image

COLOURS = 256
KIND = 12
"""Colours whose parts differ by less than this may count as one."""

HEIGHT_MAX = {1280: 1900, 1152: 1500, 1024: 1500, 390: 1700}
"""CSS pixels by the width of the view: lists go on below, a picture need not."""

SECRETS = re.compile(r"eyJ[\w-]{8,}\.[\w-]+\.[\w-]+|/login/once/[\w-]+|-----BEGIN")
"""Tokens, one-time links, keys: none of them is on a picture, though all of them ended with the domain."""

_HIDE_TOKENS = r"""
() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    node.data = node.data.replace(/eyJ[\w-]{8,}\.[\w-]+\.[\w-]+/g, "eyJ…");
  }
}
"""
_HEIGHT = "Math.ceil(document.querySelector('.frame').getBoundingClientRect().bottom)"
_SHOWN = "[document.body.innerText, ...[...document.querySelectorAll('input, textarea')].map((one) => one.value)].join('\\n')"


def take(page: Any, path: Path) -> None:
    """Write the page as a PNG of few colours. Raises AssertionError where it would show a secret."""
    page.evaluate(_HIDE_TOKENS)
    secret = SECRETS.search(page.evaluate(_SHOWN))
    assert secret is None, f"{path.name} would show {secret[0][:12]}…" if secret else ""
    page.evaluate("scrollTo(0, 0)")
    view = page.viewport_size
    whole = view["height"] if page.locator("dialog[open]").count() else page.evaluate(_HEIGHT)
    height = max(view["height"], min(whole, HEIGHT_MAX[view["width"]]))
    clip = {"x": 0, "y": 0, "width": view["width"], "height": height}
    taken = page.screenshot(full_page=whole > view["height"], clip=clip, animations="disabled")
    image = Image.open(io.BytesIO(taken)).convert("RGB")
    path.parent.mkdir(parents=True, exist_ok=True)
    _few_colours(image).save(path, optimize=True)


def _few_colours(image: Image.Image) -> Image.Image:
    """The picture in the colours that it has most of, one of each kind: a page is flat colours, and shades of letters' edges."""
    pixels = np.asarray(image).astype(np.int64) @ (1 << 16, 1 << 8, 1)
    colours, where, often = np.unique(pixels, return_inverse=True, return_counts=True)
    parts = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1)
    best: dict[tuple[int, ...], int] = {}
    for at in np.argsort(-often, kind="stable"):
        best.setdefault(tuple(parts[at] // KIND), int(at))
    chosen = parts[list(best.values())[:COLOURS]]
    nearest = np.array([np.abs(chosen - one).sum(axis=1).argmin() for one in parts], dtype=np.uint8)
    made = Image.fromarray(nearest[where].reshape(pixels.shape), mode="P")
    made.putpalette([int(part) for part in chosen.ravel()])
    return made
