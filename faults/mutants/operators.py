"""Which changes are made to a line. The operators are cosmic-ray's where it has them.

Each mutant changes one thing at one place. Kept of cosmic-ray's operators:

    + -> -      - -> +      * -> /      / -> *      // -> /      % -> //      ** -> *
    ==, !=, <, <=, >, >= each by the five others; is <-> is not; in <-> not in
    a number by itself plus 1 and minus 1; True <-> False; and <-> or; break <-> continue
    not put before the condition of an if, while or conditional expression (unless that is a single comparison)
    a unary minus or not deleted
    a for loop that runs over nothing

and of our own, which it does not have:

    += -> -=    -= -> +=    |= -> &=    *= -> /=    /= -> *=
    min <-> max, minimum <-> maximum, argmin <-> argmax, any <-> all, floor <-> ceil

Left out: names replaced by other names, decorators removed and exceptions replaced; and what does not compute:
annotations, what a decorator is given, the text of an error (all that stands in a raise), f-strings, `__repr__` and
`__str__`.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import MutationVisitor
from cosmic_ray.operators import (
    binary_operator_replacement,
    boolean_replacer,
    break_continue,
    comparison_operator_replacement,
    number_replacer,
    unary_operator_replacement,
    zero_iteration_for_loop,
)
from cosmic_ray.operators.operator import Operator
from parso.tree import NodeOrLeaf

BINARY = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Div", "Mod_FloorDiv", "Pow_Mul")
ORDERED = ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE")
UNARY = ("Delete_USub", "Delete_Not")
AUGMENTED = {"+=": "-=", "-=": "+=", "|=": "&=", "*=": "/=", "/=": "*="}
TWINS = {"min": "max", "minimum": "maximum", "argmin": "argmax", "any": "all", "floor": "ceil"}
TWINS |= {other: name for name, other in TWINS.items()}
ARITHMETIC = ("arith_expr", "term", "power")  # where an operator is binary
SILENT = ("raise_stmt", "decorator", "fstring", "tname")  # nothing below these nodes computes
WORDS = ("__repr__", "__str__")


class ReplaceAugmented(Operator):
    """`x += y` becomes `x -= y`, and so on."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Where."""
        if node.type == "operator" and node.value in AUGMENTED:
            yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        """How."""
        node.value = AUGMENTED[node.value]
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        """None: cosmic-ray's own tests read them."""
        return ()


class ReplaceTwin(ReplaceAugmented):
    """`min(x, y)` becomes `max(x, y)`, and so on. `floor` is a word of ours, too: only `np.floor` and `math.floor`."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Where: the name of a function that is called."""
        if node.type == "name" and node.value in TWINS:
            called = (node.parent if node.parent.type == "trailer" else node).get_next_sibling()
            if called is not None and called.type == "trailer" and called.children[0].value == "(":
                yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        """How."""
        node.value = TWINS[node.value]
        return node


class ReplaceNumber(number_replacer.NumberReplacer):
    """cosmic-ray's, which forgets what stands before a number: that may be the end of the line before."""

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        """How."""
        changed = super().mutate(node, index)
        if "\n" in node.prefix:
            changed.prefix, changed.value = node.prefix, changed.value.strip()
        return changed


class ReplaceMembership(ReplaceAugmented):
    """`x in y` becomes `x not in y`, and the other way round."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Where."""
        if node.type == "comparison" and _word(node.children[1]) in ("in", "not in"):
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        """How."""
        swapped = " not in" if _word(node.children[1]) == "in" else " in"
        node.children[1] = parso.parse(swapped)
        return node


def operators() -> list[Operator]:
    """All of them, in a fixed order."""
    binary = {f"ReplaceBinaryOperator_{name}" for name in BINARY}
    compared = {f"ReplaceComparisonOperator_{a}_{b}" for a in ORDERED for b in ORDERED}
    compared |= {"ReplaceComparisonOperator_Is_IsNot", "ReplaceComparisonOperator_IsNot_Is"}
    unary = {f"ReplaceUnaryOperator_{name}" for name in UNARY}
    chosen = [
        *(kind for kind in binary_operator_replacement.operators() if kind.__name__ in binary),
        *(kind for kind in comparison_operator_replacement.operators() if kind.__name__ in compared),
        *(kind for kind in unary_operator_replacement.operators() if kind.__name__ in unary),
        boolean_replacer.AddNot,
        boolean_replacer.ReplaceTrueWithFalse,
        boolean_replacer.ReplaceFalseWithTrue,
        boolean_replacer.ReplaceAndWithOr,
        boolean_replacer.ReplaceOrWithAnd,
        break_continue.ReplaceBreakWithContinue,
        break_continue.ReplaceContinueWithBreak,
        ReplaceNumber,
        zero_iteration_for_loop.ZeroIterationForLoop,
        ReplaceAugmented,
        ReplaceTwin,
        ReplaceMembership,
    ]
    return [kind() for kind in chosen]


class Mutant(NamedTuple):
    """One change. A place is known by its text, not by its number: what stands above it may change."""

    path: str  # below src/surefoot
    function: str  # in which it stands, with the class
    line: str  # without indentation and comment
    becomes: str
    nth: int  # of those that are alike in all of the above, from 1
    number: int  # of the line, for people
    source: str  # of the whole file, changed

    @property
    def key(self) -> str:
        """By which it is known again."""
        return " | ".join((self.path, self.function, self.line, self.becomes, str(self.nth)))


def mutants_of(path: str, source: str) -> list[Mutant]:
    """All changes to one file, in the order of its lines. Each top-level piece is parsed by itself: that is fast."""
    found, often = [], Counter[tuple[str, str, str]]()
    above = ""
    for piece in get_ast(source).children:
        text = piece.get_code()
        first, below = above.count("\n"), source[len(above) + len(text) :]
        seen = {text}
        for number, operator, occurrence, function in places_in(text):
            changed = MutationVisitor.mutate_code(text, operator, occurrence)
            if changed is None or changed in seen:
                continue
            seen.add(changed)
            line, becomes = (_bare(x.splitlines()[number - 1]) for x in (text, changed))
            often[function, line, becomes] += 1
            nth, whole = often[function, line, becomes], above + changed + below
            found.append(Mutant(path, function, line, becomes, nth, first + number, whole))
        above += text
    return found


def places_in(text: str) -> list[tuple[int, Operator, int, str]]:
    """Where a text can be changed: line, operator, the operator's how-manieth, and the function."""
    tree, places = get_ast(text), []
    for operator in operators():
        occurrence = 0
        for node in ast_nodes(tree):
            for (line, _), _ in operator.mutation_positions(node):
                if computes(node) and not (isinstance(operator, boolean_replacer.AddNot) and compares(node)):
                    places.append((line, operator, occurrence, function_of(node)))
                occurrence += 1
    return sorted(places, key=lambda place: place[0])


def compares(node: NodeOrLeaf) -> bool:
    """Is the condition a single comparison? Then `not` before it is one of the other comparisons."""
    condition = node.children[2 if node.type == "test" else 1]
    return condition.type == "comparison" and len(condition.children) == 3


def computes(node: NodeOrLeaf) -> bool:
    """Does a change here change what is computed?"""
    if node.type == "operator" and node.value not in AUGMENTED and node.parent.type not in ARITHMETIC:
        return False
    child, parent = node, node.parent
    while parent is not None:
        if parent.type in SILENT or (parent.type == "funcdef" and parent.name.value in WORDS):
            return False
        if parent.type == "annassign" and child is parent.children[1]:
            return False  # the annotation, not the value
        if parent.type == "funcdef" and parent.annotation is child:
            return False
        child, parent = parent, parent.parent
    return True


def function_of(node: NodeOrLeaf) -> str:
    """The name of the function in which a node stands, after that of its class."""
    names = []
    while node is not None:
        if node.type in ("funcdef", "classdef"):
            names.append(node.name.value)
        node = node.parent
    return ".".join(reversed(names))


def _word(node: NodeOrLeaf) -> str:
    return " ".join(node.get_code().split())


def _bare(line: str) -> str:
    """Without indentation and comment, with single spaces."""
    return " ".join(line.partition("  # ")[0].split()).replace("[ ", "[").replace("( ", "(")
