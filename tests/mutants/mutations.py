"""Small changes of a source file, each of which a test should notice."""

import ast
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

OPERATORS = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*", ast.FloorDiv: "*",
    ast.Mod: "*", ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip
COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
BRANCHES = ("where", "select", "cond")  # the condition, what if true, what if false
# What stands there for people and compilers: texts, errors, types, names for profilers.
UNSEEN = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)


@dataclass(frozen=True)
class Mutation:
    """One change of a file: `old`, from byte `begin` to byte `end`, becomes `new`."""

    file: str
    line: int
    kind: str
    begin: int
    end: int
    old: str
    new: str

    @property
    def name(self) -> str:
        change = f"{_short(self.old)} -> {_short(self.new)}"
        # Several of one line may look alike.
        mark = f"{self.begin}-{self.end}-{zlib.crc32(self.new.encode()):08x}"
        return f"{self.file}:{self.line}: {self.kind}: {change} [{mark}]"

    def apply(self, source: bytes) -> bytes:
        return source[: self.begin] + self.new.encode() + source[self.end :]


def _short(text: str) -> str:
    return " ".join(text.split())[:60]


def mutations(file: str, source: str) -> Iterator[Mutation]:
    """Every mutation of the functions of a file."""
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def place(node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        begin = lines[node.lineno - 1] + node.col_offset
        return begin, lines[node.end_lineno - 1] + node.end_col_offset

    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.Lambda):
            continue
        defaults = [d for d in [*function.args.defaults, *function.args.kw_defaults] if d]
        body = function.body if isinstance(function.body, list) else [function.body]
        for node in (inner for part in [*body, *defaults] for inner in _seen(part)):
            begin, end = place(node)
            old = source.encode()[begin:end].decode()
            changes = [*_changes(node)]
            if isinstance(node, ast.If | ast.While):
                begin, end = place(node.test)
                old = source.encode()[begin:end].decode()
                changes = [("condition", f"not ({ast.unparse(node.test)})")]
            for kind, new in changes:
                # A node stands for itself: without brackets it could bind to what is around it.
                new = f"({new})" if isinstance(node, ast.expr) else new
                yield Mutation(file, node.lineno, kind, begin, end, old, new)


def _seen(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """A node and all below it, but functions of its own, annotations and what is not seen."""
    if isinstance(node, UNSEEN):
        return
    if isinstance(node, ast.expr | ast.stmt) and not isinstance(node, ast.FunctionDef):
        yield node
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and field != "annotation":
                yield from _seen(child)


def _changes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Every `(kind, source)` that takes a node's place."""
    text = ast.unparse
    match node:
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            yield "operator", f"({text(left)}) {OPERATORS[type(op)]} ({text(right)})"
        case ast.AugAssign(target, op, value) if type(op) in OPERATORS:
            yield "operator", f"{text(target)} {OPERATORS[type(op)]}= {text(value)}"
        case ast.Compare(left, [op], [right]):
            yield "comparison", f"({text(left)}) {COMPARISONS[type(op)]} ({text(right)})"
        case ast.BoolOp(op, values):
            joined = " or " if isinstance(op, ast.And) else " and "
            yield "logic", joined.join(f"({text(value)})" for value in values)
        case ast.UnaryOp(ast.USub(), operand):
            yield "sign", text(operand)
        case ast.UnaryOp(ast.Not() | ast.Invert(), operand):
            yield "logic", text(operand)
        case ast.Constant(bool(value)):
            yield "flag", str(not value)
        case ast.Constant(int(value)):
            yield "number", str(value + 1)
        case ast.Constant(float(value)):
            yield "number", str(2 * value or 1.0)
        case ast.IfExp(test, body, orelse):
            yield "condition", f"({text(orelse)}) if ({text(test)}) else ({text(body)})"
        case ast.Expr(ast.Call()):
            yield "call left out", "pass"
        case ast.Call(function, arguments, keywords):
            yield from _of_call(text(function), [*map(text, arguments)], [*map(text, keywords)])


def _of_call(function: str, arguments: list[str], keywords: list[str]) -> Iterator[tuple[str, str]]:
    name = function.split(".")[-1]
    if name in BRANCHES and len(arguments) >= 3:
        test, yes, no, *rest = arguments
        yield "branches", f"{function}({', '.join([test, no, yes, *rest, *keywords])})"
    if (
        function.startswith(("jnp.", "jax.lax.", "jax.nn."))
        and len(arguments) == 1
        and arguments[0][0] != "*"
    ):
        yield "function left out", arguments[0]
    for i, keyword in enumerate(keywords):
        if keyword.startswith("strict="):  # of zip: a check of what holds
            continue
        rest = [*arguments, *keywords[:i], *keywords[i + 1 :]]
        yield "keyword left out", f"{function}({', '.join(rest)})"
