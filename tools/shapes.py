"""Measure the shapes that tests/architecture/test_shapes.py keeps within limits, and write the limits down.

    python tools/shapes.py            # print what there is today
    python tools/shapes.py --write    # and write it to tests/architecture/shapes.toml: limits go down, reasons stay

Three shapes: functions of many parameters, strings that are multiplied by a truth value (`"x" * flag`), and decisions
that look into a sentence (`label.startswith("...")`). All are found in the syntax trees.
"""

import argparse
import ast
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "surefoot"
LIMITS = ROOT / "tests" / "architecture" / "shapes.toml"
MOST = 10  # parameters of a function, without self and cls
SENTENCES = {"promise", "label", "sentence", "words"}  # names of texts that are written for people
SEARCHES = {"startswith", "endswith", "find", "rfind", "index", "count", "partition", "split", "removeprefix"}
PATTERNS = {"match", "search", "fullmatch", "findall", "finditer", "sub", "split"}
Function = ast.FunctionDef | ast.AsyncFunctionDef
HEAD = """# What test_shapes.py allows. `python tools/shapes.py --write` writes it again: numbers may go down, never up.

"""


class Found(NamedTuple):
    """One place: the file within the package, the line, and what is there."""

    file: str
    line: int
    what: str


def trees(root: Path) -> Iterator[tuple[str, ast.Module]]:
    """Every file of the package with its syntax tree."""
    for path in sorted(root.rglob("*.py")):
        yield path.relative_to(root).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """All functions and methods by their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield f"{prefix}{node.name}", node
        named = isinstance(node, Function | ast.ClassDef)
        yield from functions(node, f"{prefix}{node.name}." if named else prefix)


def parameters(function: Function) -> int:
    """How many parameters a function has; the receiver is not counted."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    receiver = names[:1] in (["self"], ["cls"])
    return len(names) - receiver + len(given.kwonlyargs) + (given.vararg is not None) + (given.kwarg is not None)


def many_parameters(root: Path, most: int = MOST) -> dict[str, int]:
    """The functions with more than `most` parameters, as file::name."""
    return {
        f"{file}::{name}": parameters(function)
        for file, tree in trees(root)
        for name, function in functions(tree)
        if parameters(function) > most
    }


def is_text(node: ast.AST) -> bool:
    """A text that is written out, or a sum or a call of `join` or `format` on one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return is_text(node.left) or is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_number(node: ast.AST) -> bool:
    """Certainly a number: `"-" * 80`, `"  " * depth` with arithmetic, `"=" * len(title)`."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, bool)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in {"len", "int", "max", "min", "round", "sum", "abs"}
    return isinstance(node, ast.BinOp)


def multiplied_strings(root: Path) -> list[Found]:
    """Texts that are multiplied by what may be a truth value."""
    return [
        Found(file, node.lineno, ast.unparse(node))
        for file, tree in trees(root)
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
        for text, factor in ((node.left, node.right), (node.right, node.left))
        if is_text(text) and not is_number(factor)
    ]


def is_sentence(node: ast.AST) -> bool:
    """`trial.promise`, `label`, `row["label"]`, and the same within str(...), .lower() and the like."""
    if isinstance(node, ast.Attribute):
        return node.attr in SENTENCES
    if isinstance(node, ast.Name):
        return node.id in SENTENCES
    if isinstance(node, ast.Subscript):
        return (isinstance(node.slice, ast.Constant) and node.slice.value in SENTENCES) or is_sentence(node.value)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            return is_sentence(node.func.value)
        return isinstance(node.func, ast.Name) and node.func.id in {"str", "repr"} and any(map(is_sentence, node.args))
    return False


def _constants(node: ast.AST) -> bool:
    """A text with letters that is written out, a constant that stands for one (NOT_CERTIFIED), or several of them."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return bool(node.elts) and all(map(_constants, node.elts))
    spelled = is_text(node) and any(
        isinstance(part, ast.Constant) and re.search("[A-Za-z]", str(part.value)) for part in ast.walk(node)
    )
    return spelled or (isinstance(node, ast.Name) and node.id.isupper())


def by_sentence(root: Path) -> list[Found]:
    """Places that look into a sentence written for people, or compare it with one."""
    return [
        Found(file, node.lineno, ast.unparse(node))
        for file, tree in trees(root)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare | ast.Call) and _looks(node)
    ]


def _looks(node: ast.Compare | ast.Call) -> bool:
    if isinstance(node, ast.Compare):
        sides = (node.left, node.comparators[0])
        tested = isinstance(node.ops[0], ast.In | ast.NotIn | ast.Eq | ast.NotEq)
        return tested and any(is_sentence(one) and _constants(other) for one, other in (sides, sides[::-1]))
    if not isinstance(node.func, ast.Attribute):
        return False
    searched = node.func.attr in SEARCHES and is_sentence(node.func.value) and any(map(_constants, node.args))
    matched = node.func.attr in PATTERNS and ast.unparse(node.func.value) == "re"
    return searched or (matched and any(map(is_sentence, node.args)))


def limits(root: Path, known: dict[str, dict[str, str]]) -> str:
    """The limits as TOML: what there is today, with the reasons that are known."""
    lines = ["[strings_times_booleans] # of a file"]
    for file, n in sorted(Counter(found.file for found in multiplied_strings(root)).items()):
        lines.append(f"{json.dumps(file)} = {n}")
    lines += ["", "[decisions_by_sentence] # of a file"]
    for file, n in sorted(Counter(found.file for found in by_sentence(root)).items()):
        lines.append(f"{json.dumps(file)} = {n}")
    lines += ["", f"# Functions of more than {MOST} parameters, each with the reason why it may."]
    for name, n in sorted(many_parameters(root).items()):
        reason = known.get(name, {}).get("reason", "")
        lines += [
            "[[parameters]]",
            f"function = {json.dumps(name)}",
            f"most = {n}",
            f"reason = {json.dumps(reason)}",
            "",
        ]
    return HEAD + "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Print, and write where that is asked for."""
    parser = argparse.ArgumentParser(description="Shapes of the code that have a limit.")
    parser.add_argument("--write", action="store_true", help=f"write {LIMITS.relative_to(ROOT)}")
    given = parser.parse_args()
    for name, n in many_parameters(SOURCE).items():
        print(f"{name}: {n} parameters")
    for found in (*multiplied_strings(SOURCE), *by_sentence(SOURCE)):
        print(f"{found.file}:{found.line} {found.what}")
    if given.write:
        before = tomllib.loads(LIMITS.read_text()) if LIMITS.exists() else {}
        known = {entry["function"]: entry for entry in before.get("parameters", ())}
        LIMITS.write_text(limits(SOURCE, known))


if __name__ == "__main__":
    main()
