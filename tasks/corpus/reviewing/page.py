"""The page on which a person judges a sample: one file, which loads nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from tasks.corpus.reviewing.sample import KEPT_RULE, Sample

TEMPLATE = "review.html.j2"


def render_page(sample: Sample, items: Sequence[dict[str, Any]]) -> str:
    """The page as HTML. Texts stand in it as data that no browser takes for markup, whatever is in them."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rules = [rule for rule, drawn in sample.rules.items() if drawn.drawn and rule != KEPT_RULE]
    content = {"sample": sample.name, "kept": KEPT_RULE, "rules": rules, "items": list(items)}
    return environment.get_template(TEMPLATE).render(documents=len(items), content=script_json(content))


def script_json(content: Any) -> Markup:
    """JSON that can stand inside a script element: pure ASCII, no ``<``, hence no end tag and no comment."""
    return Markup(json.dumps(content, ensure_ascii=True).replace("<", "\\u003c"))
