"""Every bug that can be planted in one file, from its syntax tree: operators and comparisons turned, constants moved,
arguments swapped or left out, statements dropped or exchanged, conditions negated, wrong axes, calls removed, branches
swapped, defaults in place of what was passed, arguments returned as they came.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

COMPARISONS = {"Lt": "LtE GtE", "LtE": "Lt Gt", "Gt": "GtE LtE", "GtE": "Gt Lt", "Eq": "NotEq", "NotEq": "Eq"}
COMPARISONS |= {"Is": "IsNot", "IsNot": "Is", "In": "NotIn", "NotIn": "In"}
OPERATORS = {"Add": "Sub", "Sub": "Add", "Mult": "Div", "Div": "Mult", "FloorDiv": "Div", "Pow": "Mult", "Mod": "FloorDiv"}
TWINS = "min max amin amax minimum maximum any all cos sin floor ceil mean sum std var height width argmin argmax"
REMOVABLE = (
    "clamp clamp_min clamp_max clip flip round detach clone conj sqrt square abs exp log real strip lower sorted fsync flush"
)
COSMETIC = "dtype device encoding help strict daemon name prefix parents repr compare init flush file metavar optimize stable"
"""Keyword arguments whose change fails at once or changes nothing that anybody sees."""
OTHER_NAME = dict(zip(TWINS.split()[::2], TWINS.split()[1::2])) | dict(zip(TWINS.split()[1::2], TWINS.split()[::2]))
OTHER_AXIS = {0: 1, 1: 0, 2: 3, 3: 2, -1: -2, -2: -1, -3: -2}
SKIPPED = (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Assert, ast.Global, ast.Nonlocal)
UNSEEN = {"annotation", "returns", "decorator_list", "type_params"}
UNTOUCHED = {"__repr__", "_repr_html_", "__rich__"}


@dataclass(frozen=True)
class Edit:
    """Bytes `start` to `end` of a file of the package replaced by `put`; `owner` is the function around it, "" for none."""

    file: str
    kind: str
    start: int
    end: int
    put: str
    owner: str

    def apply(self, text: str) -> str:
        """The file's text with the edit in it."""
        raw = text.encode()
        return (raw[: self.start] + self.put.encode() + raw[self.end :]).decode()


def find_edits(file: str, text: str) -> Iterator[Edit]:
    """Every edit of a file. A few are no Python, or mean the same as before: `Bug.texts` refuses those."""
    starts = [0]
    for line in text.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def place(first: ast.AST, last: ast.AST) -> tuple[int, int]:
        return starts[first.lineno - 1] + first.col_offset, starts[last.end_lineno - 1] + last.end_col_offset  # type: ignore[attr-defined]

    for node, owner, names in walk_code(ast.parse(text)):
        for kind, first, last, put in _edits_of(node, names):
            yield Edit(file, kind, *place(first, last), put, owner)


Change = tuple[str, ast.AST, ast.AST, str]
"""The kind of bug, first and last node that go, and the text in their place."""
Defaults = tuple[tuple[str, str], ...]
"""Parameters of the function around a node, with their defaults as text ("" for none)."""


def walk_code(
    node: ast.AST, owner: str = "", names: Defaults = (), inside: bool = False
) -> Iterator[tuple[ast.AST, str, Defaults]]:
    """Everything that is executed, with its outermost function: no annotations, decorators, errors or docstrings."""
    if isinstance(node, SKIPPED) or getattr(node, "name", "") in UNTOUCHED:
        return
    if getattr(node, "arg", "") in COSMETIC.split() or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
        return
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and not inside:
        owner, inside = f"{owner}.{node.name}".lstrip("."), isinstance(node, ast.FunctionDef)
    if isinstance(node, ast.FunctionDef):
        given = node.args.posonlyargs + node.args.args
        defaults = [""] * (len(given) - len(node.args.defaults)) + [ast.unparse(value) for value in node.args.defaults]
        named = [
            (arg.arg, ast.unparse(value) if value else "") for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults)
        ]
        names = (*zip((arg.arg for arg in given), defaults), *named)
    if isinstance(node, ast.expr | ast.stmt):
        yield node, owner, names
    for name, value in ast.iter_fields(node):
        if name not in UNSEEN:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from walk_code(child, owner, names, inside)


def _edits_of(node: ast.AST, names: Defaults) -> Iterator[Change]:
    if isinstance(node, ast.expr):
        for kind, new in _of_expression(node, names):
            yield kind, node, node, f"({ast.unparse(ast.fix_missing_locations(new))})"
    elif isinstance(node, ast.stmt):
        yield from _of_statement(node, names)
        yield from _of_block(getattr(node, "body", []))
        yield from _of_block(getattr(node, "orelse", []))


def _of_expression(node: ast.expr, names: Defaults) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        *near, far = COMPARISONS[type(node.ops[0]).__name__].split()
        counts = any(_is_count(side) for side in (node.left, node.comparators[0]))
        for other in (far, *(near if counts else ())):  # between decimals that are hardly ever equal, < and <= are the same
            yield "comparison", ast.Compare(node.left, [getattr(ast, other)()], node.comparators)
    elif isinstance(node, ast.BinOp) and not (_is_text(node.left) or _is_text(node.right)):
        if (name := OPERATORS.get(type(node.op).__name__)) is not None:
            yield "operator", ast.BinOp(node.left, getattr(ast, name)(), node.right)
    elif isinstance(node, ast.BoolOp):
        yield "and for or", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        if len(node.values) == 2:
            yield "half a condition", node.values[0]
            yield "half a condition", node.values[1]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "sign or not dropped", node.operand
    elif isinstance(node, ast.Constant):
        yield from _of_constant(node)
    elif isinstance(node, ast.IfExp):
        yield "swapped branches", ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Subscript) and (axis := _axis(node.slice)) is not None and isinstance(node.ctx, ast.Load):
        yield "wrong axis", ast.Subscript(node.value, axis, node.ctx)
    elif isinstance(node, ast.Attribute) and node.attr in OTHER_NAME and isinstance(node.ctx, ast.Load):
        yield "another name", ast.Attribute(node.value, OTHER_NAME[node.attr], node.ctx)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for name, default in names:
            if name == node.id and default not in ("", "None", "()"):
                yield "default for the passed value", ast.parse(default, mode="eval").body


def _of_constant(node: ast.Constant) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node.value, bool):
        yield "flag turned", ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield "constant off by one", ast.Constant(node.value + 1)
        if node.value > 0:
            yield "constant off by one", ast.Constant(node.value - 1)
    elif isinstance(node.value, float):
        for factor in (2.0, 0.5, 1.25):
            yield "constant scaled", ast.Constant(factor * node.value)


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in OTHER_NAME and isinstance(node.func, ast.Name):
        yield "another name", ast.Call(ast.Name(OTHER_NAME[name], ast.Load()), node.args, node.keywords)
    if name in REMOVABLE.split():
        module = isinstance(node.func, ast.Name) or ast.unparse(node.func).startswith(("torch.", "math.", "np.", "os."))
        if module and node.args:
            yield "call removed", node.args[0]
        elif isinstance(node.func, ast.Attribute) and not module:
            yield "call removed", node.func.value
    plain = ast.Name | ast.Attribute | ast.Constant | ast.Subscript
    for index, (first, second) in enumerate(zip(node.args, node.args[1:])):
        if (
            isinstance(first, plain)
            and isinstance(second, plain)
            and name not in ("isinstance", "getattr", "min", "max", "minimum", "maximum")
        ):
            swapped = [*node.args[:index], second, first, *node.args[index + 2 :]]
            yield "swapped arguments", ast.Call(node.func, swapped, node.keywords)
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in COSMETIC.split():
            continue
        if keyword.arg in ("dim", "axis") and (axis := _axis(keyword.value)) is not None:
            turned = [ast.keyword(other.arg, axis if other is keyword else other.value) for other in node.keywords]
            yield "wrong axis", ast.Call(node.func, node.args, turned)
        yield "argument dropped", ast.Call(node.func, node.args, [other for other in node.keywords if other is not keyword])


def _of_statement(node: ast.stmt, names: Defaults) -> Iterator[Change]:
    if isinstance(node, ast.If | ast.While):
        yield "negated condition", node.test, node.test, f"(not ({ast.unparse(node.test)}))"
    if isinstance(node, ast.If) and node.orelse:
        yield "swapped branches", node, node, _indent(ast.If(node.test, node.orelse, node.body), node.col_offset)
    elif isinstance(node, ast.If) or _acts(node):
        yield "dropped statement", node, node, "pass"
    elif isinstance(node, ast.With | ast.Try):
        yield "block without its guard", node, node, _indent(node.body, node.col_offset)
    elif isinstance(node, ast.Continue):
        yield "break for continue", node, node, "break"
    elif isinstance(node, ast.Return) and node.value is not None:
        given = [name for name, _ in names if name not in ("self", "cls")]
        if given and not isinstance(node.value, ast.Constant | ast.Name):
            yield "argument returned", node, node, f"return {given[0]}"
        if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            yield "swapped results", node, node, f"return {', '.join(ast.unparse(part) for part in node.value.elts[::-1])}"


def _of_block(body: list[ast.stmt]) -> Iterator[Change]:
    """Bugs of several lines: two neighbours of which one needs the other in the wrong order, or both gone."""
    for first, second in pairwise(body):
        kinds = ast.Assign | ast.AugAssign | ast.Expr
        if isinstance(first, kinds) and isinstance(second, kinds) and _written(first) & _read(second):
            yield "exchanged statements", first, second, _indent([second, first], first.col_offset)
        if _acts(first) and _acts(second):
            yield "dropped statements", first, second, "pass"


def _written(node: ast.Assign | ast.AugAssign | ast.Expr) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    return {ast.unparse(target) for target in targets}


def _read(node: ast.AST) -> set[str]:
    parts = (part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute))
    return {ast.unparse(part) for part in parts if isinstance(part.ctx, ast.Load)}


def _acts(node: ast.AST) -> bool:
    """Whether a statement can be left out and the rest still has its names."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        rebinds = isinstance(target, ast.Name) and any(getattr(part, "id", "") == target.id for part in ast.walk(node.value))
        return rebinds or isinstance(target, ast.Attribute | ast.Subscript)
    return isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))


def _axis(node: ast.expr) -> ast.expr | None:
    """The axis beside the one named; None where none is named."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return ast.Constant(OTHER_AXIS[value]) if type(value) is int and value in OTHER_AXIS else None


def _is_count(node: ast.AST) -> bool:
    call = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len"
    return call or (isinstance(node, ast.Constant) and type(node.value) is int)


def _indent(nodes: ast.stmt | list[ast.stmt], by: int) -> str:
    module = ast.Module(nodes if isinstance(nodes, list) else [nodes], [])
    return ast.unparse(ast.fix_missing_locations(module)).replace("\n", "\n" + " " * by)


def _is_text(node: ast.AST) -> bool:
    """Whether it is a text, whose + and % are no arithmetic."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
