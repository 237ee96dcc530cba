"""Small mutations of a module's text, and the choice of some of them."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import NamedTuple

LINES_PER_MUTANT = 100
_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


class Mutation(NamedTuple):
    """Another text for the octets from `start` to `end` of a module."""

    kind: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def applied(self, source: str) -> str:
        raw = source.encode()
        return (raw[: self.start] + self.new.encode() + raw[self.end :]).decode()

    @property
    def lines(self) -> tuple[int, int]:
        return self.line, self.line + self.old.count("\n")

    def __str__(self) -> str:
        return f"{self.line}  {self.kind}: {_short(self.old)} -> {_short(self.new)}"


def mutations(source: str) -> list[Mutation]:
    """All that are known for a module, in the order of its text.

    Annotations, assertions, decorators and what stands below `if TYPE_CHECKING` stay as they are;
    so do constants of the module, such as limits: one more or less of them is hardly wrong.
    """
    raw = source.encode()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for kind, node, new in _Finder().found(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        old = raw[start:end].decode()
        found.append(Mutation(kind, node.lineno, start, end, old, new))
    return found


def chosen(path: str, source: str, seed: int) -> list[tuple[str, Mutation]]:
    """A rank and a mutation for about each `LINES_PER_MUTANT` lines: by seed and text alone."""
    count = round(source.count("\n") / LINES_PER_MUTANT)
    name = f"{seed} {path} {hashlib.sha256(source.encode()).hexdigest()}"
    ranked = sorted((_rank(name, one), one) for one in mutations(source)) if count else []
    valid = ((rank, one) for rank, one in ranked if _is_valid(one.applied(source)))
    return list(islice(valid, count))


def _rank(name: str, one: Mutation) -> str:
    return hashlib.sha256(f"{name} {one!r}".encode()).hexdigest()


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:57] + "..."


def _is_valid(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


Found = Iterator[tuple[str, ast.expr | ast.stmt, str]]


class _Finder:
    """Walks a tree and yields the kind, the node to be replaced, and its new text."""

    def found(self, node: ast.AST) -> Found:
        if isinstance(node, ast.Assert | ast.JoinedStr) or _is_for_types(node):
            return
        yield from self._here(node)
        for child in self._children(node):
            yield from self.found(child)

    def _children(self, node: ast.AST) -> Iterator[ast.AST]:
        match node:
            case ast.Module():
                yield from (one for one in node.body if not _is_constant(one))
            case ast.AnnAssign():
                yield from [node.value] if node.value else []
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from [*node.args.defaults, *(one for one in node.args.kw_defaults if one)]
                yield from node.body
            case ast.ClassDef():
                yield from node.body
            case _:
                yield from ast.iter_child_nodes(node)

    def _here(self, node: ast.AST) -> Found:
        match node:
            case ast.Compare(ops=[op]) if type(op) in _COMPARE:
                changed = ast.Compare(node.left, [_COMPARE[type(op)]()], node.comparators)
                yield "compare", node, f"({ast.unparse(changed)})"
            case ast.BinOp() if type(node.op) in _ARITHMETIC and not _has_text(node):
                other = ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
                yield "arithmetic", node, f"({ast.unparse(other)})"
            case ast.AugAssign() if type(node.op) in _ARITHMETIC:
                turned = ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)
                yield "arithmetic", node, ast.unparse(turned)
            case ast.BoolOp():
                other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
                yield "boolean", node, f"({ast.unparse(ast.BoolOp(other_op, node.values))})"
            case ast.UnaryOp(op=ast.Not()):
                yield "not removed", node, f"({ast.unparse(node.operand)})"
            case ast.Constant(value=bool(value)):
                yield "constant", node, str(not value)
            case ast.Constant(value=int(value)):
                yield "constant", node, str(value + 1)
            case ast.Return(value=ast.Tuple(elts=[first, second, *rest])) if not rest:
                yield "swapped", node, f"return {ast.unparse(second)}, {ast.unparse(first)}"
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self._early(node)

    def _early(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Found:
        """A return before each statement but the first, or before it where there is no other."""
        if not (isinstance(node.returns, ast.Constant) and node.returns.value is None):
            return
        body = [one for one in node.body if not _is_text(one) and not isinstance(one, ast.Pass)]
        if len(body) == 1 and not isinstance(body[0], ast.Raise):
            yield "early return", body[0], "return"
        for _, one in pairwise(body):
            yield "early return", one, "return"


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign | ast.AnnAssign)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _has_text(node: ast.BinOp) -> bool:
    """Text is put together, or a type is named by `|`: there is no other meaning to try."""
    sides = (node.left, node.right)
    texts = any(isinstance(one, ast.JoinedStr) or _holds_text(one) for one in sides)
    types = any(isinstance(one, ast.Constant) and one.value is None for one in sides)
    return texts or types


def _holds_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
