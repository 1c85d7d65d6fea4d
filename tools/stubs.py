"""Write the stubs (.pyi) from which type checkers and editors know the public modules.

    python tools/stubs.py            writes hlotrace/__init__.pyi, hlotrace/numpy/__init__.pyi, ...
    python tools/stubs.py --check    writes nothing; says which are out of date, and ends with status 1 if one is

A stub holds the names that `dir()` of its module gives, no more.  Signatures are those of the running module; types come
from the source for the functions that ANNOTATED in tools/stub_types.py lists, for others from its tables, and from
hlotrace/_types.pyi, which is written by hand.  So what is made at run time (ufuncs, tables of functions, names imported on
first use) is as visible as what is written down.
"""
import ast
import builtins
import enum
import functools
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - after the path, like the next ones

import hlotrace  # noqa: E402
from hlotrace.runtime.array_impl import ArrayImpl  # noqa: E402
from tools.stub_types import ANNOTATED, FUNCTIONS, PARAMETERS, RESULTS  # noqa: E402

HEADER = "# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.\n"
WIDTH = 125
BY_HAND = "hlotrace.typing"     # annotated itself
# for those who extend the library: not typed yet
OPEN = ["hlotrace.core", "hlotrace.extend", "hlotrace.interpreters"]
UNTYPED = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"
HELPERS = ROOT / "hlotrace" / "_types.pyi"

SOURCES = {     # where the words of annotations come from
    "typing": ["Any", "ClassVar", "Literal", "NamedTuple", "Protocol", "TypeAlias", "overload"],
    "collections.abc": ["Callable", "Iterable", "Iterator", "Mapping", "Sequence"],
    "hlotrace.typing": ["ArrayLike", "DTypeLike"],
}
OPERATORS = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift".split()
SPECIAL = {f"__{name}__" for name in [
    *OPERATORS, *("r" + name for name in OPERATORS), *"""neg pos abs invert eq ne lt le gt ge init call enter exit len iter
    reversed getitem contains getattr bool int float complex index round array array_namespace
    dlpack dlpack_device get""".split()]}
UNMADE = {"Array", "_IndexUpdateHelper", "_IndexUpdateRef", "Traced", "Lowered", "Compiled", "Exported",
          "Config", "Initializer"}
# Above: classes that users make no instance of.  Here: members that only the library itself asks.
HIDDEN = {"Array": {"check_alive", "mark_deleted"}, "JitFunction": {"call_any", "device_assignment", "flat", "given_values", "trace_given"}}


def public(module):
    return [name for name in dir(module) if not name.startswith("_")]


def faces():
    """The public modules by their names: hlotrace, and those that `dir` of one of them gives."""
    found, waiting = {}, [hlotrace]
    while waiting:
        module = waiting.pop(0)
        if module.__name__ in found or module.__name__ in (BY_HAND, *OPEN):
            continue
        found[module.__name__] = module
        waiting += [value for name in public(module) if isinstance(value := getattr(module, name), ModuleType)
                    and value.__name__.startswith("hlotrace.")]
    return found


def helper_names():
    """The names that hlotrace/_types.pyi defines, and its classes' members."""
    names, classes = set(), {}
    for node in ast.parse(HELPERS.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
            classes[node.name] = {item.name if isinstance(item, ast.FunctionDef) else item.target.id
                                  for item in node.body if isinstance(item, (ast.FunctionDef, ast.AnnAssign))}
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            names.add((node.target if isinstance(node, ast.AnnAssign) else node.targets[0]).id)
    return names, classes


class Line:
    """What stub_types says of one function or overload: types of parameters, which of them have a default,
    the result."""

    def __init__(self, text):
        head = ast.parse(f"def {text}: ...").body[0]
        arguments = [*head.args.posonlyargs, *head.args.args, *head.args.kwonlyargs]
        self.types = {a.arg: ast.unparse(a.annotation) for a in arguments}
        defaults = [None] * (len(arguments) - len(head.args.defaults)) + head.args.defaults
        self.optional = {a.arg for a, default in zip(arguments, defaults) if default is not None}
        self.result = ast.unparse(head.returns)


def lines():
    """(face or class, name) -> its Lines; an attribute has a str, its type."""
    found = {}
    for owner, text in FUNCTIONS.items():
        for line in re.sub(r",\n\s+", ", ", text).split("\n"):
            if line := line.strip():
                name, brace, _ = re.match(r"([\w*]+)\s*(\(?)(.*)", line).groups()
                if brace:
                    found.setdefault((owner, name), []).append(Line(line.replace("*(", "_(", 1) if name == "*"
                                                                    else line))
                else:
                    found[owner, name] = line.partition("->")[2].strip()
    return found


BY_NAME = {name: kind for kind, names in PARAMETERS.items() for name in names.split()}
LINES = lines()
OF_SOURCE = {(face, name) for face, names in ANNOTATED.items() for name in names.split()}
HELPER_NAMES, HELPER_CLASSES = helper_names()


class Stub:
    """The stub of one face, written name by name."""

    def __init__(self, name, module, homes):
        self.name, self.module, self.homes = name, module, homes
        self.own = set(public(module))
        self.imports = set()
        self.body = []          # lines
        self.later = []         # those that name others of this stub

    def borrow(self, source, what, name=None):
        """Import a name, maybe as another."""
        if source != self.name:
            self.imports.add((source, what if name in (None, what) else f"{what} as {name}"))

    # --- words ---

    def word(self, match):
        """A word of an annotation, imported from where it is; a builtin whose name the face uses for another
        thing."""
        word = match[0]
        source = next((module for module, words in SOURCES.items() if word in words), None)
        if word == "np":
            self.imports.add(("", "numpy as np"))
        elif source:
            self.borrow(source, word)
        elif word in HELPER_NAMES:
            self.borrow("hlotrace._types", word)
        elif hasattr(builtins, word):
            if word in self.own:
                self.imports.add(("", "builtins"))
                return f"builtins.{word}"
        elif word not in self.own and word in self.homes["words"]:
            self.borrow(self.homes["words"][word], word)
        return word

    def typed(self, text):
        return re.sub(r"(?<![\w.'\"])[A-Za-z_]\w*", self.word, text)

    # --- signatures ---

    def parameter(self, p, line, overloaded, of_source=False):
        """The text `name: type = default`."""
        kind = line.types.get(p.name) if line else None
        if of_source and p.annotation not in ("Any", p.empty):
            kind = p.annotation
        kind = kind or BY_NAME.get(p.name)
        default = p.default
        if line and overloaded and p.name in line.types and p.name not in line.optional:
            default = p.empty
        if kind is None:
            kind = {bool: "bool", str: "str"}.get(type(default), "Any")
        if default is None and kind != "Any" and not kind.endswith("None"):
            kind += " | None"
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            stars = "*" if p.kind == p.VAR_POSITIONAL else "**"
            return f"{stars}{p.name}: {self.typed(line.types.get(p.name, 'Any') if line else 'Any')}"
        text = f"{p.name}: {self.typed(kind)}"
        if default is p.empty:
            return text
        plain = default is None or type(default) in (bool, int, str) or type(default) is float and (
            repr(default)[-1].isdigit() and len(repr(default)) < 9)
        return f"{text} = {default!r}" if plain else f"{text} = ..."

    def signature(self, function, owner, name, method=False):
        """The text `(parameters) -> result` for each overload of a function."""
        try:
            if type(function).__module__ == "nanobind":
                raise ValueError("which of its parameters it tells depends on jaxlib's version")
            found = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):     # written in C
            found = [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                     inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)]
            found = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY), *found] if method else found
        if (owner, name) in OF_SOURCE:
            result = inspect.signature(function).return_annotation
            return [self.render(found, None, False, [], result, True)]
        known = LINES.get((owner, name)) or LINES.get((owner, "*")) or [None]
        unknown = {n for line in known if line and (owner, name) in LINES
                   for n in line.types} - {p.name for p in found}
        if unknown:
            raise SystemExit(f"stubs: tools/stub_types.py names {sorted(unknown)} in its line for "
                             f"{owner}.{name}, which has the parameters {[p.name for p in found]}: mend the "
                             "line")
        return [self.render(found[method:], line, len(known) > 1, ["self"] if method else [],
                            "None" if name == "__init__" else line.result if line
                            else RESULTS.get(owner, "Any")) for line in known]

    def render(self, parameters, line, overloaded, texts, result, of_source=False):
        """The texts of the parameters, behind those given, and that of the result."""
        starred = optional = False
        for i, p in enumerate(parameters):
            if p.name.startswith("_") and p.kind is not p.VAR_POSITIONAL:
                continue        # the library's own
            text = self.parameter(p, line, overloaded, of_source)
            positional = p.kind is p.POSITIONAL_OR_KEYWORD
            if not starred and (p.kind is p.KEYWORD_ONLY or positional and optional and " = " not in text):
                texts.append("*")
                starred = True
            starred |= p.kind is p.VAR_POSITIONAL
            optional |= " = " in text
            texts.append(text)
            last = i + 1 == len(parameters) or parameters[i + 1].kind is not p.POSITIONAL_ONLY
            if p.kind is p.POSITIONAL_ONLY and last:
                texts.append("/")
        return texts, self.typed(result)

    def function(self, function, owner, name, indent="", method=False, decorators=()):
        found = self.signature(function, owner, name, method)
        for texts, result in found:
            if len(found) > 1:
                self.body.append(f"{indent}@{self.typed('overload')}")
            self.body += [f"{indent}@{decorator}" for decorator in decorators]
            head, tail = f"{indent}def {name}(", f") -> {result}: ..."
            if name in ("__eq__", "__ne__") and result != "bool":
                tail += "  # type: ignore[override]"
            if len(head + ", ".join(texts) + tail) <= WIDTH:
                self.body.append(head + ", ".join(texts) + tail)
            else:
                self.body += [head, *rows(texts, f"{indent}    "), indent + tail]

    # --- values ---

    def write(self, name):
        """What the face says of one of its names: the first of these that fits."""
        value = getattr(self.module, name)
        if isinstance(value, ModuleType):
            parent, _, child = value.__name__.rpartition(".")
            self.imports.add((parent, f"{child} as {name}"))
            return
        home = self.homes["values"].get(id(value))
        if home and home != (self.name, name):
            if home[0] != self.name:
                self.borrow(home[0], home[1], name)
            else:
                self.later.append(f"{name} = {home[1]}")
        elif inspect.isclass(value) and value.__name__ in HELPER_CLASSES:
            self.by_hand(value, name)
        elif numpy_home := self.from_numpy(value):
            self.borrow(numpy_home, value.__name__, name)
        # which has no types of its own
        elif inspect.isclass(value) and value.__module__.startswith("ml_dtypes"):
            self.body.append(f"{name}: {self.typed('Any')}")
        elif inspect.isclass(value) and type(value).__name__ != "_ScalarMeta":
            self.a_class(value, name)
        elif inspect.isclass(value):
            self.body.append(f"{name}: {self.typed('ScalarType')}")
        elif (kind := self.ufunc(value)) and (self.name, name) not in LINES:
            self.body.append(f"{name}: {self.typed(kind)}")
        elif isinstance(value, np.dtype):
            self.body.append(f"{name}: {self.typed('np.dtype[Any]')}")
        elif value is None or type(value) in (bool, int, float, str):
            self.body.append(f"{name}: {self.typed(type(value).__name__ if value is not None else 'None')}")
        elif "typing" in type(value).__module__ or type(value).__name__ in ("GenericAlias", "UnionType"):
            self.body.append(f"{name}: {self.typed('TypeAlias')} = {self.typed('Any')}")
        elif callable(value):
            self.function(value, self.name, name)
        elif type(value).__module__.startswith("hlotrace") and type(value).__name__ == "Config":
            self.a_class(type(value), "_Config")
            self.body.append(f"{name}: _Config")
        else:
            self.body.append(f"{name}: {self.typed('Any')}")

    def from_numpy(self, value):
        """The module of NumPy that offers this value."""
        module = getattr(value, "__module__", None) or ""
        if module.partition(".")[0] != "numpy" or isinstance(value, np.dtype):
            return None
        return next((m for m in ("numpy", "numpy.exceptions")
                     if getattr(sys.modules[m], getattr(value, "__name__", "?"), None) is value), None)

    def ufunc(self, value):
        sizes = getattr(value, "nin", 0), getattr(value, "nout", 0)
        return {(1, 1): "Ufunc1", (2, 1): "Ufunc2"}.get(sizes) if not inspect.isclass(value) else None

    def by_hand(self, value, name):
        """A class that _types.pyi describes.  It has to name all public methods."""
        here = {n for n in HELPER_CLASSES[value.__name__] if not n.startswith("_")}
        there = {n for n in dir(value) if not n.startswith("_") and callable(getattr(value, n))}
        missing = there - here - HIDDEN.get(value.__name__, set())
        if here and missing and value.__module__.startswith("hlotrace"):
            raise SystemExit(f"stubs: {value.__name__} has {sorted(missing)}, of which hlotrace/_types.pyi "
                             "says nothing: add them there")
        self.borrow("hlotrace._types", value.__name__, name)

    def a_class(self, cls, name):
        owner = f"{self.name}.{cls.__name__}"
        if issubclass(cls, enum.Enum):
            return self.an_enum(cls, name)
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            self.body.append(f"class {name}({self.typed('NamedTuple')}):")
            for field in cls._fields:
                default = " = ..." if field in cls._field_defaults else ""
                kind = cls.__annotations__.get(field)
                kind = {bool: "bool", int: "int", float: "float", tuple: "tuple[Any, ...]"}.get(kind, "Any")
                self.body.append(f"    {field}: {self.typed(kind)}{default}")
            members = {n: v for n, v in vars(cls).items()
                       if self.wanted(n, cls) and n not in cls._fields}
            for n in sorted(members, key=lambda n: (n.startswith("__"), n)):
                self.member(members[n], owner, n)
                if n == "__mul__":      # a tuple's takes an int
                    self.body[-1] += "  # type: ignore[override]"
            return None
        own, base = self.lineage(cls)
        # NumPy's stubs: abstract, yet subclassed
        quiet = "  # type: ignore[misc]" if issubclass(cls, np.generic) else ""
        self.body.append(f"class {name}{f'({base})' if base else ''}:")
        start = len(self.body)
        if name == "Array":
            own = [ArrayImpl, *own]
        members = {}
        for each in reversed(own):
            members.update({n: v for n, v in vars(each).items() if type(v).__name__ != "Absent"})
            for attribute in (*self.assigned(each), *inspect.get_annotations(each)):
                members.setdefault(attribute, property())
        if "__new__" in members and cls.__init__ is object.__init__:
            members["__init__"] = members["__new__"].__func__
        members = {n: v for n, v in members.items() if self.wanted(n, cls)}
        for n in sorted(members, key=lambda n: (n != "__init__", n.startswith("__"), n)):
            self.member(members[n], owner, n)
        if name == "Array":
            self.body.append("    __hash__: ClassVar[None]  # type: ignore[assignment]")
            self.typed("ClassVar")
        if len(self.body) == start:
            self.body[-1] += f" ...{quiet}"
        return None

    def wanted(self, name, cls):
        if name in HIDDEN.get(cls.__name__, ()) or name == "__init__" and cls.__name__ in UNMADE:
            return False
        compares = name in ("__eq__", "__ne__") and cls.__name__ != "Array"
        return not compares and (name in SPECIAL or not name.startswith("_"))

    def lineage(self, cls):
        """The classes whose members are written here, and the text of the base that has a stub or is
        Python's."""
        own = []
        for each in cls.__mro__:
            home = self.homes["values"].get(id(each))
            if each is not cls and home:
                if home[0] != self.name:
                    self.borrow(home[0], home[1])
                return own, home[1]
            if each.__module__ == "builtins" or each.__name__ == "Protocol":
                base = "" if each is object else self.typed("tuple[Any, ...]" if each is tuple else each.__name__)
                return own, base
            own.append(each)
        return own, ""

    def assigned(self, cls):
        """Attributes that methods of a class give its instances."""
        try:
            source = inspect.getsource(cls)
        except (TypeError, OSError):        # written in C
            return []
        return re.findall(r"self\.([a-z]\w*)(?=(?:, self\.\w+)* = |: [^=\n]+ = )", source)

    def member(self, value, owner, name):
        line = LINES.get((owner, name))
        if isinstance(value, (staticmethod, classmethod)):
            kind = type(value).__name__
            start = len(self.body)
            self.function(value.__func__, owner, name, "    ", isinstance(value, classmethod), (kind,))
            if kind == "classmethod":
                self.body[start + 1] = self.body[start + 1].replace("(self", "(cls", 1)
        elif inspect.isfunction(value) or callable(value) and not inspect.isclass(value) and (
                not hasattr(type(value), "__get__") or inspect.ismethoddescriptor(value)):
            self.function(value, owner, name, "    ", method=True)
        elif inspect.isclass(value):
            return
        elif isinstance(value, functools.cached_property) or inspect.isdatadescriptor(value) or name.islower():
            kind = line if isinstance(line, str) else "Any"
            self.body += ["    @property", f"    def {name}(self) -> {self.typed(kind)}: ..."]
        else:
            self.body.append(f"    {name}: {self.typed(line if isinstance(line, str) else 'Any')}")

    def an_enum(self, cls, name):
        self.imports.add(("", "enum"))
        self.body.append(f"class {name}(enum.{'IntEnum' if issubclass(cls, int) else 'Enum'}):")
        for member, value in cls.__members__.items():
            self.body.append(f"    {member} = {value.value!r}" if type(value.value) in (int, str)
                             else f"    {member} = ...")

    # --- the file ---

    def text(self):
        for name in sorted(self.own):
            self.write(name)
        for hidden in self.homes["hidden"].get(self.name, ()):
            self.a_class(hidden, hidden.__name__)
        sources = {}
        for source, name in self.imports:
            sources.setdefault(source, set()).add(name)
        parts = [f"import {name}" for name in sorted(sources.pop("", ()))]
        parts += [f"from {source} import {', '.join(sorted(names))}" for source,
                  names in sorted(sources.items())]
        wrapped = [piece for part in parts for piece in wrap(part)]
        offered = wrap(f"__all__ = [{', '.join(map(repr, sorted(self.own)))}]")
        return "\n".join([HEADER.rstrip(), *wrapped, "", *offered, "",
                          *spaced([*self.body, *self.later])]) + "\n"


def spaced(body):
    """The lines with an empty one before and after each class."""
    for i, line in enumerate(body):
        before = body[i - 1] if i else ""
        if i and (line.startswith("class ") or before.startswith("    ") and line[0] not in " )"):
            yield ""
        yield line


def rows(texts, indent):
    """Texts with commas after them, as many in a line as it holds."""
    found = []
    for text in texts:
        if found and len(f"{found[-1]} {text},") <= WIDTH:
            found[-1] += f" {text},"
        else:
            found.append(f"{indent}{text},")
    return found


def wrap(line):
    """A line with a list of names, in as many lines as it takes."""
    if len(line) <= WIDTH:
        return [line]
    head, names = re.match(r"(.* import |.* = \[)(.*?)\]?$", line).groups()
    brackets = "[]" if head.endswith("[") else "()"
    return [f"{head.rstrip('[')}{brackets[0]}", *rows(names.split(", "), "    "), brackets[1]]


def homes(modules):
    """Where each function and class is written down: in the face that has it under its own name, else in the
    first."""
    values, words = {}, {}
    order = sorted(modules, key=lambda face: face not in ("hlotrace", "hlotrace.numpy", "hlotrace.sharding"))
    for exact in (True, False):
        for face in order:
            module = modules[face]
            for name in public(module):
                value = getattr(module, name)
                if not (callable(value) or inspect.isclass(value)) or isinstance(value, ModuleType):
                    continue
                if not exact or getattr(value, "__name__", None) == name:
                    values.setdefault(id(value), (face, name))
                    if inspect.isclass(value):
                        words.setdefault(name, face)
    helper = hlotrace.Array.at.fget
    hidden = {"hlotrace": [helper, type(helper(None)[0])]}
    words.update({cls.__name__: face for face, classes in hidden.items() for cls in classes})
    return {"values": values, "words": words, "hidden": hidden}


def place(name, module):
    """The path of a stub, also for a module that is made from a table and has no file."""
    return Path(getattr(module, "__file__", ROOT.joinpath(*name.split(".")))).with_suffix(".pyi")


def stubs():
    """The path of each stub, and its text."""
    modules = faces()
    known = homes(modules)
    texts = {place(name, module): Stub(name, module, known).text() for name, module in modules.items()}
    return texts | {ROOT.joinpath(*name.split("."), "__init__.pyi"): HEADER + UNTYPED for name in OPEN}


def main(arguments):
    wanted = stubs()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]
    extra = [path for path in (ROOT / "hlotrace").rglob("*.pyi") if path not in wanted and path != HELPERS]
    if "--check" in arguments:
        for path in [*stale, *extra]:
            print(f"{path.relative_to(ROOT)} is out of date: run python tools/stubs.py")
        return bool(stale or extra)
    for path in stale:
        path.write_text(wanted[path], "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    for path in extra:
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
