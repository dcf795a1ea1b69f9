"""Check that imports inside `src/crowdgram` point down the layers only.

    python tools/check_layers.py [PACKAGE]

Every import in every file counts: at the top, in a function, under TYPE_CHECKING, relative or absolute, and
`import_module("...")` or `__import__("...")` with a literal name. Prints one line and exits 0, or prints one
line per breach and exits 1.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "crowdgram"

# From low to high. A module may import what is in lower layers and its own parts, never its siblings.
LAYERS = (
    {"arrays", "errors", "escaping", "interrupts", "later", "shortage", "stages"},
    {"adjacency", "files"},
    {"privacy"},
    {"tables"},
    {"mechanisms"},
    {"paper"},
    {"results"},
    {"inference"},
    {"export"},
    {"present"},
    {"releases"},
    {"planning"},
    {"audit"},
    {"explore"},
    {"cli"},
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

# Beside the layers: `theory` is plain mathematics that any layer above `errors` may use; `synth` makes public
# tables from seeded randomness, which nothing that takes part in a release may reach, and `samples` holds a public one.
BESIDE = {"theory": {"arrays"}, "synth": {"arrays", "errors", "files"}, "samples": {"synth"}}
THEORY_LIBRARIES = {"numpy", "scipy"} | sys.stdlib_module_names

# Methods of a release may call these higher layers. Such a method is one call: the import, and one statement.
METHODS = {
    ("results", "base"),
    ("results", "release"),
    ("results", "grouped"),
    ("results", "grouped_reach"),
    ("results", "groups"),
    ("results", "reach"),
    ("results", "series"),
}
CALLED_BY_METHODS = {"inference", "export", "present"}

# Draws synthetic items from a release that is made: ordinary randomness, which nothing but the release may reach.
SAMPLING = ("results", "sampling")
MAY_SAMPLE = ("results", "release")
# Draws simulated crowds, and noise of the right size for them: nobody's rows are in it.
PLANNED = ("planning", "simulation")
SIMULATION = {("synth",), SAMPLING, PLANNED}

ENGINES = {"ibis", "duckdb", "pyspark", "sqlglot"}  # only under tables
ENTROPY = {"opendp", "secrets"}  # only in privacy/noise.py
KEYS = ("export", "keys")  # makes keys to sign with, and signs: the one place for `cryptography`
TOKENS = ("explore", "access")  # makes the secret of an address, which is no noise: it may have `secrets`
NOISE = ("privacy", "noise")
MAY_DRAW = {"privacy", "audit"}  # all others draw through a phase of `Spending`, which records it, and name no sampler
SAMPLERS = {"sampler", "_sampler", "EXACT", "OPENDP", "_spending"}
HANDS_ON = ("releases", "pipeline")  # takes the sampler of an audit, and hands it to `Spending`
FRONT = "__init__"  # crowdgram/__init__.py: may import anything of the package


@dataclass(frozen=True)
class Import:
    """One imported module, or a name from one, as a dotted absolute path."""

    line: int
    path: tuple[str, ...]


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).parents[1] / "src" / PACKAGE
    files = sorted(root.rglob("*.py"))
    breaches = [breach for file in files for breach in check(file, root)]
    if not files:
        breaches = [f"{shown(root)}:1: no Python files here; give the folder of the package"]
    if breaches:
        print("\n".join(breaches))
        return 1
    print(f"layers: {len(files)} modules, in order")
    return 0


def check(file: Path, root: Path) -> Iterator[str]:
    """Yield `path:line: what is wrong` for each breach in a file, in the order of lines."""
    parts = file.relative_to(root).with_suffix("").parts
    module = parts[0]
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (SyntaxError, ValueError) as error:
        yield f"{shown(file)}:{getattr(error, 'lineno', None) or 1}: cannot be parsed"
        return
    found: set[tuple[int, str]] = set()
    if module not in RANK and module not in BESIDE and parts != (FRONT,):
        found.add((1, f"`{module}` is unknown: add it to the layers"))
    calls = one_call_imports(nodes) if parts in METHODS else set()
    for one in imports(nodes, (PACKAGE, *parts[:-1])):
        ours = one.path[:1] == (PACKAGE,)
        if ours and one.line in calls and one.path[1] in CALLED_BY_METHODS:
            continue
        fault = inside(module, one.path[1:]) if ours else outside(parts, one.path)
        if ours and one.path[1:3] == SAMPLING and parts != MAY_SAMPLE:
            fault = fault or "`results.sampling` is for results/release.py only: it is no noise"
        if ours and one.path[1:3] == NOISE and module not in MAY_DRAW:
            fault = fault or "`privacy.noise` is for privacy and audit only: draw through a phase of `Spending`"
        if fault:
            found.add((one.line, fault))
    if parts not in SIMULATION:
        found.update(
            (line, "numpy.random belongs in synth.py, results/sampling.py and planning/simulation.py only")
            for line in numpy_random(nodes)
        )
    if parts != NOISE:
        found.update((line, "random bytes come through privacy/noise.py only") for line in random_bytes(nodes))
    if module not in MAY_DRAW and parts not in (HANDS_ON, PLANNED):
        found.update((line, "only an audit hands a sampler in") for line in sampler_named(nodes))
    for line, fault in sorted(found):
        yield f"{shown(file)}:{line}: {fault}"


def inside(module: str, path: tuple[str, ...]) -> str | None:
    """What is wrong with importing crowdgram.`path` from `module`, a top-level module of the package."""
    if module == FRONT:
        return None
    target = path[0] if path else ""
    if target == module or path == ("__version__",):
        return None
    if module in BESIDE:
        allowed = BESIDE[module]
        if target in allowed:
            return None
        listed = " and ".join(sorted(allowed)) or "nothing"
        return f"`{module}` may import {listed} of {PACKAGE}, not `{target or PACKAGE}`"
    if target not in RANK and target not in BESIDE:
        name = ".".join((PACKAGE, *path))
        return f"`{module}` imports `{name}`, which is in no layer: import from the module that holds it"
    rank = RANK.get(module)
    if rank is None:  # An unknown module: said already, and it has no place to judge its imports from.
        return None
    if target == "theory":
        return None if rank > 0 else f"`{module}` is the lowest layer and may not import `theory`"
    if target in ("synth", "samples"):
        above = [name for layer in LAYERS[RANK["releases"] + 1 :] for name in sorted(layer)]
        return None if module in above else f"`{module}` may not import `{target}`: only {', '.join(above)} may"
    if RANK[target] < rank:
        return None
    relation = "its sibling" if RANK[target] == rank else "the higher layer"
    return f"`{module}` may not import {relation} `{target}`"


def outside(parts: tuple[str, ...], path: tuple[str, ...]) -> str | None:
    """What is wrong with importing a module from elsewhere in the file `parts`."""
    if not path:
        return "a relative import reaches above the package"
    library = path[0]
    if library == "random":
        return "`random` belongs nowhere: privacy/noise.py is the only door to randomness"
    if library == "secrets" and parts == TOKENS:
        return None
    if library in ENTROPY and parts != ("privacy", "noise"):
        return f"`{library}` belongs in privacy/noise.py only"
    if library == "cryptography" and parts != KEYS:
        return "`cryptography` belongs in export/keys.py only"
    if library in ENGINES and parts[0] != "tables":
        return f"`{library}` belongs under tables only"
    if parts[0] == "theory" and library not in THEORY_LIBRARIES:
        return f"`theory` may import numpy, scipy and the standard library only, not `{library}`"
    return None


def imports(nodes: Sequence[ast.AST], package: tuple[str, ...]) -> Iterator[Import]:
    """Every import in a file of `package`; a name imported from crowdgram itself counts as a module of it."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, tuple(alias.name.split(".")))
        elif isinstance(node, ast.ImportFrom):
            source = absolute(node.level, node.module or "", package)
            for alias in node.names:
                # `from crowdgram import *` takes from the package itself, like `import crowdgram`.
                names = () if alias.name == "*" else (alias.name,)
                yield Import(node.lineno, (*source, *names) if source else ())
        elif isinstance(node, ast.Call) and called(node.func) in ("import_module", "__import__"):
            literal = node.args[0] if node.args else None
            if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
                name = literal.value.lstrip(".")
                yield Import(node.lineno, absolute(len(literal.value) - len(name), name, package))


def one_call_imports(nodes: Sequence[ast.AST]) -> set[int]:
    """The lines of imports in methods that are one call: a docstring, the import, and one more statement."""
    methods = [
        method
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef)
    ]
    bodies = [method.body[ast.get_docstring(method) is not None :] for method in methods]
    return {
        body[0].lineno
        for body in bodies
        if len(body) == 2 and isinstance(body[0], ast.ImportFrom) and isinstance(body[1], (ast.Expr, ast.Return))
    }


def absolute(level: int, name: str, package: tuple[str, ...]) -> tuple[str, ...]:
    """The absolute path of `name` with `level` dots before it; empty if that is above the package."""
    names = tuple(part for part in name.split(".") if part)
    if level == 0:
        return names
    if level > len(package):
        return ()
    return (*package[: len(package) - level + 1], *names)


def called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def numpy_random(nodes: Sequence[ast.AST]) -> Iterator[int]:
    """Lines that import numpy.random or reach it as an attribute of numpy, under whatever name."""
    names = {"np", "numpy"}
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.asname for alias in node.names if alias.name == "numpy" and alias.asname)
    for one in imports(nodes, ()):
        if one.path[:2] == ("numpy", "random"):
            yield one.line
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr == "random":
            base = node.value
            if isinstance(base, ast.Name) and base.id in names:
                yield node.lineno


def random_bytes(nodes: Sequence[ast.AST]) -> Iterator[int]:
    """Lines that name a function of `os` that gives random bytes."""
    for node in nodes:
        names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        names += [node.attr] if isinstance(node, ast.Attribute) else []
        if isinstance(node, (ast.expr, ast.stmt)) and {"urandom", "getrandom"} & set(names):
            yield node.lineno


def sampler_named(nodes: Sequence[ast.AST]) -> Iterator[int]:
    """Lines that name a sampler, or the record behind a phase: an argument, an attribute, a variable, an import."""
    for node in nodes:
        names: list[object] = []
        if isinstance(node, ast.Call):
            names = [keyword.arg for keyword in node.keywords]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        elif isinstance(node, (ast.Attribute, ast.Name, ast.Constant)):
            names = [node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", getattr(node, "value", ""))]
        if isinstance(node, (ast.expr, ast.stmt)) and SAMPLERS & {name for name in names if isinstance(name, str)}:
            yield node.lineno


def shown(path: Path) -> str:
    """The path as short as it can be from here."""
    path, here = path.resolve(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
