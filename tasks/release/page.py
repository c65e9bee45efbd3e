"""The page: evidence and circumstances arranged for the template, which only writes them down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from tasks.evaluation.estimates import NO_DATA, Estimate, NoData
from tasks.evaluation.perplexity import Perplexity
from tasks.release.charts import number
from tasks.release.circumstances import Circumstances
from tasks.release.curves import alignment_charts, pretraining_chart
from tasks.release.evidence import LAYERS, MODELS, Evidence
from tasks.release.funnel import breakdown, funnel
from tasks.release.profile_plots import profile_plots
from tasks.release.review_section import percentage, quantity

TEMPLATE = "report.html.j2"
STAGES = (*LAYERS, "profile", "snapshot", "encode", *MODELS, "assess", "release")


def render(title: str, evidence: Evidence, circumstances: Circumstances) -> str:
    """The page as HTML. With the same evidence and circumstances it is the same text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": count,
        "estimate": estimate,
        "number": number,
        "duration": duration,
        "squeezed": squeezed,
        "percentage": percentage,
        "quantity": quantity,
    }
    return environment.get_template(TEMPLATE).render(
        title=title,
        run=circumstances,
        evidence=evidence,
        results=evidence.results,
        steps=funnel(evidence),
        sources=breakdown(evidence, "kept_by_source"),
        languages=breakdown(evidence, "kept_by_language"),
        plots=profile_plots(evidence.profile),
        headlines=headlines(evidence),
        pretraining=pretraining_chart(evidence),
        alignment=alignment_charts(evidence),
        stages=STAGES,
        longest=max((timing.seconds for timing in circumstances.timings.values()), default=0.0),
        parameters={name: list(flat(section)) for name, section in circumstances.parameters.items()},
        Perplexity=Perplexity,
        no_data=Markup('<span class="none">no data</span>'),
    )


def absent(evidence: Evidence) -> list[str]:
    """Names of the parts of the journey that left nothing."""
    missing = [f"reports/{stage}.json" for stage in LAYERS if stage not in evidence.counts]
    missing += [f"ledger of {layer}" for stage, layer in LAYERS.items() if stage not in evidence.ledgers]
    missing += [
        f"history of {stage}"
        for stage in ("pretrain", "sft", "reward", "ppo")
        if stage not in evidence.histories
    ]
    parts = {
        "profile": evidence.profile,
        "snapshot": evidence.manifest,
        "tokens": evidence.encode,
        "assessment": evidence.results,
        "samples": evidence.samples or None,
        "release": evidence.release,
    }
    return missing + [name for name, part in parts.items() if part is None]


def headlines(evidence: Evidence) -> list[tuple[str, str, str]]:
    """(what, figure, what it is compared with) of the figures that matter most."""
    first, last = evidence.counts.get("collect"), evidence.counts.get("dedup") or evidence.counts.get("clean")
    results = evidence.results
    encode = evidence.encode
    tokens, vocabulary = (encode.tokens.get("train"), encode.vocabulary) if encode else (None, None)
    figures = [
        (
            "documents kept",
            count(last.kept if last else None),
            f"of {count(first.records_in if first else None)} collected",
        ),
        ("training tokens", count(tokens), f"vocabulary of {count(vocabulary)}"),
        ("parameters", compact(results.parameters if results else None), "in the base model"),
    ]
    base = results.validation.models.get("base", NO_DATA) if results else NO_DATA
    unigram = results.validation.models.get("unigram", NO_DATA) if results else NO_DATA
    if isinstance(base, Perplexity) and isinstance(unigram, Perplexity):
        ratio = unigram.perplexity / base.perplexity
        figures.append(
            (
                "validation perplexity",
                number(base.perplexity),
                f"{ratio:.1f} times below the unigram baseline",
            )
        )
    else:
        figures.append(("validation perplexity", NO_DATA, "against the unigram baseline"))
    gain = results.rewards.gain if results else NO_DATA
    kl = results.rewards.kl_per_token if results else NO_DATA
    signed = f"{gain.value:+.3g}".replace("-", "−") if isinstance(gain, Estimate) else NO_DATA
    error = f"± {gain.standard_error:.2g}, " if isinstance(gain, Estimate) and gain.standard_error else ""
    figures.append(("reward, aligned over tuned", signed, f"{error}KL {estimate(kl, False)} per token"))
    return figures


def flat(section: Any, prefix: str = "") -> Iterable[tuple[str, str]]:
    """Dotted names and values of a section; lists of plain values stay together."""
    if isinstance(section, Mapping) and section:
        for key, inner in section.items():
            yield from flat(inner, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(section, list) and any(isinstance(item, Mapping | list) for item in section):
        for index, inner in enumerate(section):
            yield from flat(inner, f"{prefix}[{index}]")
    else:
        yield prefix, ", ".join(map(str, section)) if isinstance(section, list) else str(section)


def count(value: int | None) -> str:
    """A whole number with separators, or "no data"."""
    return NO_DATA if value is None else f"{value:,}"


def compact(value: int | None) -> str:
    """A large number in millions or thousands."""
    if value is None:
        return NO_DATA
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return str(value)


def estimate(value: Estimate | NoData, error: bool = True) -> str:
    """A mean, with its standard error if wanted."""
    if not isinstance(value, Estimate):
        return value
    shown = number(value.value)
    return f"{shown} ± {value.standard_error:.2g}" if error and value.standard_error is not None else shown


def squeezed(text: str) -> str:
    """Runs of blanks and of empty lines as one, for excerpts."""
    return re.sub(r"[^\S\n]+", " ", re.sub(r"\s*\n\s*", "\n", text))


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
