"""What a reader finds in a drawing: its texts, its elements, and that it is whole."""

import re
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    """All labels; each drawing is also checked: whole, no script, nothing from elsewhere, its references resolved."""
    root = whole(svg)
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def whole(svg: str) -> ElementTree.Element:
    root = ElementTree.fromstring(svg)
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]
    assert root.get("role") == "img"
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert set((root.get("aria-labelledby") or "").split()) <= set(ids)
    assert set(re.findall(r"url\(#([^)]*)\)", svg)) <= set(ids)
    assert not re.search(r"<script|<foreignObject|href=|url\((?!#)|@import", svg)
    assert "nan" not in re.sub(r"<(title|desc|text)[^>]*>[^<]*", "", svg)
    return root
