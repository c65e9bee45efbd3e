"""What counts as a clean document: presets and rules as a person writes them, and the policy made of them."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import Field, field_validator, model_validator

from tasks.corpus.policies.presets import PRESETS, PresetName
from tasks.corpus.policies.rules import LanguageCode, Rule, completed
from tasks.corpus.scoring.parts import FIXED_SIGNALS, LEXICON_SIGNAL
from tasks.parameters import StageParams

LEDGER_NAMES = frozenset(("empty", "language", "perplexity_bucket"))
"""What clean says in the ledger beside the rules."""


class LexiconAction(StageParams):
    """What becomes of a document that has words of a list (`score.lexicons`)."""

    lexicon: str = Field(description="the list's name")
    action: Literal["drop", "mask", "tag"] = Field(
        default="tag",
        description="drop the document, mask the words, or leave it at the count in its signals",
    )
    minimum_rate: float = Field(
        default=0.0, ge=0, description="hits per 1,000 words above which the action is taken; 0: one hit"
    )


class CleanParams(StageParams):
    """What counts as a clean document."""

    presets: list[PresetName] = Field(default=["multilingual"], description="policies whose rules all apply")
    rules: list[Rule] = Field(default=[], description="more rules, or other bounds for those of the presets")
    languages: list[LanguageCode] | None = Field(
        default=None, min_length=1, description="languages that are kept; null: all"
    )
    edit_lines: bool = Field(
        default=True, description="whether a preset that edits lines (C4, FineWeb) edits what is kept"
    )
    lexicons: list[LexiconAction] = Field(
        default=[], description="what becomes of documents with listed words"
    )
    mask: list[Literal["email", "phone", "ip", "card", "iban", "national_id", "secret"]] = Field(
        default=["email", "phone", "ip", "card", "iban", "national_id", "secret"],
        description="kinds of personal data that are replaced by placeholders",
    )
    mask_key: str = Field(
        default="",
        description="a salt for the placeholders; with another one they cannot be told from a guess",
    )
    perplexity_buckets: list[float] = Field(
        default=[0.333, 0.667],
        description="shares of a language's documents where head, middle and tail part",
    )
    keep_buckets: list[Literal["head", "middle", "tail"]] | None = Field(
        default=None, min_length=1, description="buckets that are kept; null: all"
    )

    @field_validator("lexicons")
    @classmethod
    def _one_action_each(cls, actions: list[LexiconAction]) -> list[LexiconAction]:
        names = [action.lexicon for action in actions]
        if len(set(names)) < len(names):
            raise ValueError(
                "a list has one action; named twice: "
                + ", ".join(sorted({n for n in names if names.count(n) > 1}))
            )
        return actions

    @field_validator("perplexity_buckets")
    @classmethod
    def _two_shares(cls, shares: list[float]) -> list[float]:
        if len(shares) != 2 or not 0 < shares[0] < shares[1] < 1:
            raise ValueError(f"are two shares between 0 and 1, ascending, as [0.33, 0.67], not {shares}")
        return shares

    @field_validator("rules")
    @classmethod
    def _names_are_free(cls, rules: list[Rule]) -> list[Rule]:
        for rule in rules:
            if rule.name in LEDGER_NAMES or rule.name.startswith(("pii_", "lexicon_")):
                raise ValueError(
                    f"rule {rule.name}: clean itself says this in the ledger; choose another name"
                )
        return rules

    @model_validator(mode="after")
    def _signals_exist(self) -> CleanParams:
        known = {*FIXED_SIGNALS, *(LEXICON_SIGNAL.format(action.lexicon) for action in self.lexicons)}
        known |= {rule.signal for rule in self.rules if rule.signal and rule.signal.startswith("lexicon_")}
        completed(self._entries(), known)
        return self

    @cached_property
    def all_rules(self) -> list[Rule]:
        """The rules of the presets, those of ``rules``, and one for each list that drops."""
        entries = self._entries()
        return completed(entries, {*FIXED_SIGNALS, *(rule.signal for rule in entries if rule.signal)})

    @property
    def bucket_shares(self) -> tuple[float, float]:
        """Where head and middle end."""
        head, middle = self.perplexity_buckets
        return head, middle

    @property
    def line_rule(self) -> str | None:
        """The line rule that edits what is kept: that of the last preset that has one."""
        rules = [rule for name in self.presets if (rule := PRESETS[name].line_rule)]
        return rules[-1] if rules and self.edit_lines else None

    def _entries(self) -> list[Rule]:
        of_presets = [rule for name in self.presets for rule in PRESETS[name].rules]
        drops = [
            Rule(
                name=f"lexicon_{action.lexicon}",
                signal=LEXICON_SIGNAL.format(action.lexicon),
                maximum=action.minimum_rate,
            )
            for action in self.lexicons
            if action.action == "drop"
        ]
        return [*of_presets, *self.rules, *drops]
