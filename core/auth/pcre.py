"""Patterns in syntax of RabbitMQ that RE2 lacks, such as lookaround and back-references.

PCRE2 backtracks, so some patterns would take years for some names: a match has a limit of steps and
of memory. PCRE2's compiler, which would make code for the processor, is not used.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Final

from .errors import AuthError

logger = logging.getLogger(__name__)

MAX_STEPS: Final = 2_500
"""Steps of a match from one position in a name: some 0.05 ms, so at most some 20 ms for a name."""
MAX_MATCH_KIB: Final = 1_024
MAX_CACHED_NAMES: Final = 10_000
"""Per pattern; a client that invents names can't fill the memory."""
MAX_SHOWN: Final = 200
"""Characters of a pattern in a message."""

_LIMITS: Final = f"(*LIMIT_MATCH={MAX_STEPS})(*LIMIT_HEAP={MAX_MATCH_KIB})"
"""A pattern may begin with limits too; PCRE2 uses the lower ones."""
_CODES: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\x(?:\{(?P<braced>[0-9A-Fa-f]+)\}|(?P<bare>[0-9A-Fa-f]{0,2}))|\\.",
    re.DOTALL,
)
"""Quoted text, characters by their codes, other escapes."""


class LimitedPattern:
    """A pattern that matches no name for which it needs more steps than a match may take.

    `owner` says in logs whose pattern it is. Raises `AuthError` for an invalid pattern.
    """

    __slots__ = ("_answers", "_search", "exceeded_at", "owner", "written")

    def __init__(self, pattern: str, written: str, owner: str) -> None:
        import pcre2  # on first need: RE2 takes most patterns

        options = pcre2.DOTALL | pcre2.ASCII
        try:
            compiled = pcre2.compile(_LIMITS + _with_octal_codes(pattern), options, jit=False)
        except pcre2.PatternError as error:
            raise not_regular(written, error.msg.rpartition("; ")[2]) from error
        self.written = written
        self.owner = owner
        self.exceeded_at: str | None = None
        """The first name that needed more steps, None if there was none yet."""
        self._search = compiled.search
        self._answers: dict[str, bool] = {}

    def __call__(self, name: str) -> bool:
        answer = self._answers.get(name)
        return self._evaluate(name) if answer is None else answer

    def _evaluate(self, name: str) -> bool:
        if len(self._answers) >= MAX_CACHED_NAMES:
            self._answers.clear()
        answer = self._answers[name] = self._matches(name)
        return answer

    def _matches(self, name: str) -> bool:
        import pcre2

        try:
            return self._search(name) is not None
        except pcre2.LibraryError as error:
            if self.exceeded_at is None:
                self.exceeded_at = name
                logger.warning("%s (%s); no more such names are logged", self.complaint, error.msg)
            return False

    @property
    def complaint(self) -> str:
        """Says what exceeded the limit."""
        return (
            f"{self.owner}: the pattern '{self.written[:MAX_SHOWN]}' needs more than {MAX_STEPS} "
            f"steps or {MAX_MATCH_KIB} KiB for '{self.exceeded_at}', so it does not match: "
            "simplify it"
        )


def not_regular(pattern: str, reason: str) -> AuthError:
    """Returns the error for a pattern that is no regular expression."""
    return AuthError(f"pattern '{pattern[:MAX_SHOWN]}' is not a regular expression: {reason}")


def exceeded(matchers: Iterable[object]) -> list[LimitedPattern]:
    """Returns the patterns that have exceeded a limit."""
    return [
        found
        for found in matchers
        if isinstance(found, LimitedPattern) and found.exceeded_at is not None
    ]


def _with_octal_codes(pattern: str) -> str:
    r"""Returns the pattern with `\x{20AC}` and `\x9` written as `\o{20254}` and `\o{11}`.

    The binding has PCRE2 read `\x` as JavaScript does, where `\x{9}` is nine times the letter x.
    """
    return _CODES.sub(_octal_code, pattern)


def _octal_code(found: re.Match[str]) -> str:
    digits = found["braced"] or found["bare"]
    return found[0] if digits is None else f"\\o{{{int(digits or '0', 16):o}}}"
