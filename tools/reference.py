"""The API reference as pages of Sphinx: every public name with its signature, its types, its examples and its source.

Names are those that `dir()` of the public modules gives.  Signatures and types are the stubs', or the running function's
where a module has none; the text is the docstring.  A value that several modules offer is described in one of them, and the
others point there.  Modules of many names become a page for each of the library's files that they come from.
"""
import ast
import builtins
import copy
import functools
import importlib
import inspect
import re
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from sphinx.ext.napoleon import Config, GoogleDocstring

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "hlotrace"
sys.path.insert(0, str(ROOT))

import hlotrace.numpy as jnp  # noqa: E402 - after the path, like the next ones
from hlotrace.core.primitive import Primitive  # noqa: E402
from tools import stubs  # noqa: E402

LONGEST = 40        # names on a page
# Names of JAX's that modules have without listing them.
BESIDES = {
    "hlotrace": "__version__ __version_info__",
    "hlotrace.extend.core.primitives": "create_call_primitive eval_jaxpr_transpose register_call_primitive_rules",
    "hlotrace.lax": """copy_p device_put_p eq_to_p le_to_p lt_to_p scatter_sub_p select_and_scatter_p sharding_constraint_p
        split_p stack_p stage_p tile_p unstack_p"""}
# The topics of names at the root, by the files that they are from; the first that fits.
AT_ROOT = {
    "api/contexts": "options", "core/config": "options", "runtime/devices/transfer_guards": "options",
    "api/parallel/": "many devices", "sharding/": "many devices", "placement/make_": "many devices",
    "placement/shardings": "many devices", "runtime/": "devices", "placement/": "devices", "distributed/": "devices",
    "api/": "transformations", "numpy/indexing/refs": "refs", "core/refs": "refs"}
SHORT_NAMES = {"jax.": "hlotrace.", "jnp.": "hlotrace.numpy.", "lax.": "hlotrace.lax.", "nn.": "hlotrace.nn.", "": "hlotrace."}
NAPOLEON = Config(napoleon_use_rtype=False, napoleon_google_docstring=True)
PLAIN_VALUES = (int, float, str, bool, tuple, type(None))


# --- which names there are ------------------------------------------------------------------------------------------

def modules():
    """{name: module}: those with stubs, and those for authors of primitives."""
    found = dict(stubs.faces())
    waiting = [importlib.import_module(name) for name in (*stubs.OPEN, stubs.BY_HAND)]
    while waiting:
        module = waiting.pop(0)
        found[module.__name__] = module
        waiting += [value for name in stubs.public(module) if isinstance(value := getattr(module, name), ModuleType)
                    and value.__name__ == f"{module.__name__}.{name}"]
    return dict(sorted(found.items()))


def names(module):
    """What a module offers: the names that `dir` gives, and those that it has besides."""
    more = BESIDES.get(module.__name__, "").split()
    return [name for name in [*stubs.public(module), *more] if not isinstance(getattr(module, name), ModuleType)]


# --- signatures -----------------------------------------------------------------------------------------------------

class Stub(NamedTuple):
    functions: dict     # name -> its definitions, several where it is overloaded
    classes: dict       # name -> the definition
    kinds: dict         # name -> the annotation of a value
    elsewhere: dict     # name -> (module, name there)


@functools.cache
def stub_of(module):
    """What a module's stub says; nothing where there is no stub."""
    here = ROOT.joinpath(*module.split("."))
    path = next((p for p in (here.with_suffix(".pyi"), here / "__init__.pyi", here.with_suffix(".py")) if p.exists()), None)
    stub = Stub(defaultdict(list), {}, {}, {})
    for node in ast.parse(path.read_text("utf-8")).body if path else ():
        if isinstance(node, ast.FunctionDef):
            stub.functions[node.name].append(node)
        elif isinstance(node, ast.ClassDef):
            stub.classes[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            stub.kinds[node.target.id] = node.annotation
        elif isinstance(node, ast.ImportFrom) and node.module:
            stub.elsewhere.update({each.asname or each.name: (node.module, each.name) for each in node.names})
    return stub


def class_in_stub(module, name):
    """The definition of a class that a module's stub has or imports."""
    stub = stub_of(module)
    if name in stub.classes or name not in stub.elsewhere:
        return stub.classes.get(name)
    return class_in_stub(*stub.elsewhere[name])


class Words(ast.NodeTransformer):
    """The words of annotations as links to where they are described."""

    def __init__(self, described):
        self.described = described

    def visit_Name(self, node):
        target = self.described.get(node.id)
        return ast.Name(f"~{target}") if target else node

    def visit_Attribute(self, node):
        return ast.Name(node.attr) if isinstance(node.value, ast.Name) and node.value.id == "builtins" else node

    def signature(self, function, bound=False):
        """The text `(parameters) -> result` of a definition."""
        function = copy.deepcopy(function)
        arguments = function.args
        for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
            if each is not None and each.annotation is not None:
                each.annotation = self.visit(each.annotation)
        if bound and not any(getattr(d, "id", "") == "staticmethod" for d in function.decorator_list):
            del (arguments.posonlyargs or arguments.args)[:1]
        result = f" -> {ast.unparse(self.visit(function.returns))}" if function.returns else ""
        return f"({ast.unparse(arguments)}){result}"


def running_signature(function):
    """The same of a function without a stub: parameters and those defaults that are short."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    plain = lambda value: value is inspect.Parameter.empty or type(value) in (bool, int, str, float, type(None))
    parameters = [p.replace(annotation=p.empty, default=p.default if plain(p.default) else ...)
                  for p in found.parameters.values() if not p.name.startswith("_") or p.kind is p.VAR_POSITIONAL]
    return str(found.replace(parameters=parameters, return_annotation=inspect.Signature.empty)).replace("Ellipsis", "...")


# --- text -----------------------------------------------------------------------------------------------------------

class Text:
    """Docstrings as reStructuredText: code in backquotes is code, or a link where it is a public name."""

    def __init__(self, known):
        self.known = known
        self.exceptions = {name.rpartition(".")[2]: f"~{name}" for name in known if name.startswith("hlotrace.errors.")}

    def code(self, text):
        word, called, _ = text.partition("(")
        linked = (called or "." in word) and not word.startswith(("numpy.", "scipy."))  # parameters; NumPy's, SciPy's
        for short, full in SHORT_NAMES.items() if linked else ():
            target = full + word.removeprefix(short)
            if word.startswith(short) and target in self.known:
                return f":py:obj:`{text} <{target}>`"
        return f"``{text.strip()}``" if text.strip() else ""

    def line(self, text):
        """Code as code, and what reStructuredText reads as a sign as itself."""
        pieces = re.split(r"(``?[^`]+``?)", text)
        bullet = re.match(r"\s*[*-] ", pieces[0])
        for i, piece in enumerate(pieces):
            if i % 2:
                after = pieces[i + 1][:1]
                pieces[i] = self.code(piece.strip("`")) + ("\\ " if after.isalnum() or after in "(" and after else "")
                if pieces[i - 1][-1:].strip() and pieces[i - 1][-1] not in "([{'\"-/:":
                    pieces[i] = "\\ " + pieces[i]
            else:
                start = bullet.end() if bullet and not i else 0
                pieces[i] = piece[:start] + re.sub(r"([\\*_|])", r"\\\1", piece[start:])
        return "".join(pieces)

    def lines(self, doc):
        """The lines of a docstring's page."""
        ready, section, verbatim = [], False, False     # verbatim: in an example, or in code that is set in
        for line in inspect.cleandoc(doc).splitlines():
            section = re.fullmatch(r"[A-Z]\w+:", line) or section and (not line or line.startswith(" "))
            example = line.lstrip().startswith(">>>")
            code = line.startswith("    ") and not section and not any(ready[-1:])
            if (example or code) and not verbatim:
                ready += [""] if example else ["::", ""]
            verbatim = bool(line.strip()) and (example or code or verbatim)
            ready.append(line if verbatim else self.line(line))
        return list(self.apart(GoogleDocstring(ready, NAPOLEON).lines()))

    def apart(self, lines):
        """Lines with an empty one where an indented part ends, and exceptions by their full names."""
        indent, example = 0, False
        for line in lines:
            here = len(line) - len(line.lstrip())
            example = bool(line.strip()) and (line.lstrip().startswith(">>>") or example)
            if line.strip() and not example and here < indent:
                yield ""
            yield re.sub(r"^:raises (\w+):", lambda m: f":raises {self.exceptions.get(m[1], m[1])}:", line)
            indent = here if line.strip() else 0

    def first(self, doc):
        """The first sentence of a docstring, on one line."""
        paragraph = re.split(r"\n\s*\n|>>>", inspect.cleandoc(doc or ""))[0]
        sentence = re.match(r"(?:`[^`]*`|[^`])*?\.(?=\s|$)|.*", " ".join(paragraph.split()))[0]
        return self.line(sentence)


def foreign(value):
    """The full name of what is not hlotrace's own: Python's, NumPy's or ml_dtypes' functions and classes."""
    home, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    ours = not isinstance(home, str) or home.partition(".")[0] in ("hlotrace", "builtins", "nanobind", "typing", "types")
    return None if ours or name is None else f"{home}.{name}"


def is_type(value):
    """Is it an annotation, as dict[str, Any] or a NewType?"""
    return type(value).__module__ in ("types", "typing") and not inspect.isroutine(value)


def own_doc(value):
    """The docstring that belongs to a value, and not to its class."""
    doc = getattr(value, "__doc__", None)
    if inspect.isclass(value):
        return doc if doc and doc != getattr(value.__base__, "__doc__", None) else ""
    return "" if doc is None or doc == type(value).__doc__ or is_type(value) else doc


# --- source ---------------------------------------------------------------------------------------------------------

@functools.cache
def lines_of_assignments(path):
    """name -> the first line of a file that gives it a value."""
    found = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        given = []
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            given = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            given = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        for name in given:
            found.setdefault(name, node.lineno)
    return found


def source(value, module, name):
    """(path in the repository, line or None) of what a name is."""
    bare = inspect.unwrap(value) if callable(value) else value
    code = getattr(bare, "__code__", None)
    if code is not None and Path(code.co_filename).is_relative_to(LIBRARY):
        return Path(code.co_filename).relative_to(ROOT), code.co_firstlineno
    called, places = getattr(bare, "__name__", name), []
    for home in (type(bare).__module__, getattr(bare, "__module__", None), module):
        file = getattr(sys.modules.get(home), "__file__", None)
        if file and Path(file).is_relative_to(LIBRARY) and Path(file).suffix == ".py":
            known = lines_of_assignments(Path(file))
            places.append((Path(file).relative_to(ROOT), known.get(name, known.get(called))))
    return next((place for place in places if place[1]), places[-1] if places else None)


# --- entries --------------------------------------------------------------------------------------------------------

class Reference:
    """All pages; `source_link(page, path, line)` is the address of a file of the repository, seen from a page."""

    def __init__(self, source_link):
        self.modules = modules()
        self.source_link = source_link
        values = stubs.homes(self.modules)
        self.homes = values["values"]
        for module in sorted(self.modules, key=lambda module: module != "hlotrace.extend.core.primitives"):
            for name in names(self.modules[module]):
                if isinstance(value := getattr(self.modules[module], name), Primitive):
                    self.homes.setdefault(id(value), (module, name))
        self.known = {f"{module}.{name}" for module in self.modules for name in names(self.modules[module])}
        words = {**{w: f"{m}.{w}" for w, m in stubs.homes(stubs.faces())["words"].items() if not hasattr(builtins, w)},
                 **{w: f"hlotrace.typing.{w}" for w in ("ArrayLike", "DTypeLike", "Shape")},
                 **{w: f"hlotrace._types.{w}" for w in self.helpers()}, "Array": "hlotrace.Array"}
        self.words = Words(words)
        self.text = Text(self.known)

    @staticmethod
    def helpers():
        """The aliases of hlotrace/_types.pyi, as it writes them: name -> (definition, comment)."""
        text = stubs.HELPERS.read_text("utf-8")
        return {m[1]: (m[2].strip(), m[3] or "") for m in re.finditer(
            r"^([A-Z]\w+): TypeAlias = (.*?)(?:  # (.*))?$", text, re.M)}

    def home(self, module, name):
        """Where a name is described, if elsewhere."""
        home = self.homes.get(id(getattr(self.modules[module], name)))
        return home if home and home != (module, name) else None

    def signatures(self, module, name, value):
        stub = stub_of(module)
        if stub.functions.get(name):
            return [self.words.signature(each) for each in stub.functions[name]]
        kind = getattr(stub.kinds.get(name), "id", "")
        if kind.startswith("Ufunc"):
            call = next(item for item in class_in_stub("hlotrace._types", kind).body
                        if getattr(item, "name", "") == "__call__")
            return [self.words.signature(call, bound=True)]
        return [running_signature(value)]

    def entry(self, page, module, name):
        """The lines of one name."""
        value = getattr(self.modules[module], name)
        home = self.home(module, name)
        if home:
            target = ".".join(home)
            return [f".. py:data:: {name}", "", f"   The same as :py:obj:`{target}`.", ""]
        if foreign(value):
            return [f".. py:data:: {name}", "", f"   ``{foreign(value)}``, as it is.", ""]
        doc = own_doc(value)
        body = self.text.lines(doc) if doc else []
        where = source(value, module, name)
        if where:
            path, line = where
            body += ["", f"`Source: {path.as_posix()} <{self.source_link(page, path.as_posix(), line)}>`__"]
        if inspect.isclass(value):
            head, members = self.a_class(module, name, value)
            body += ["", *members]
        elif isinstance(value, Primitive):
            head = [f".. py:data:: {name}"]
            body = [f"The primitive ``{value.name}``.", "", *body]
        elif callable(value) and not is_type(value):
            first, *others = self.signatures(module, name, value)
            indent = "                  "
            head = [f".. py:function:: {name}{first}", *(f"{indent}{name}{each}" for each in others)]
        else:
            head = [f".. py:data:: {name}"]
            if (is_type(value) or isinstance(value, PLAIN_VALUES)) and " at 0x" not in repr(value):
                head.append(f"   :value: {value!r}")
        return [*head, "", *(f"   {line}".rstrip() for line in body), ""]

    def a_class(self, module, name, value):
        """The head of a class, and the lines of its members."""
        definition = class_in_stub(module, name)
        kind = "exception" if issubclass(value, BaseException) else "class"
        if definition is None:
            return [f".. py:{kind}:: {name}"], []
        methods, lines, start = defaultdict(list), [], ""
        bases = [f":py:class:`{self.words.visit(base).id}`" for base in definition.bases
                 if isinstance(base, ast.Name) and base.id in self.words.described]
        if bases:
            lines += [f"It has the members of {', '.join(bases)} too.", ""]
        for item in definition.body:
            if isinstance(item, ast.FunctionDef):
                methods[item.name].append(item)
            elif isinstance(item, ast.AnnAssign | ast.Assign):
                target = item.target if isinstance(item, ast.AnnAssign) else item.targets[0]
                if not target.id.startswith("_"):
                    lines += [f".. py:attribute:: {target.id}", ""]
        if "__init__" in methods:
            start = self.words.signature(methods.pop("__init__")[0], bound=True).partition(" -> ")[0]
        _, _, fields = (own_doc(value) or "").partition("Attributes:")
        described = set(re.findall(r"^\s+(\w+):", fields, re.MULTILINE))
        for member, found in methods.items():
            if not member.startswith("_") and member not in described:
                lines += self.member(value, member, found)
        return [f".. py:{kind}:: {name}{start}"], lines

    def member(self, cls, member, found):
        decorators = {getattr(d, "id", "") for d in found[0].decorator_list}
        attribute = inspect.getattr_static(cls, member, None)
        doc = own_doc(getattr(attribute, "__func__", attribute))
        body = [f"   {line}".rstrip() for line in self.text.lines(doc)] if doc else []
        if "property" in decorators:
            kind = copy.deepcopy(found[0].returns)
            return [f".. py:property:: {member}", *([f"   :type: {ast.unparse(self.words.visit(kind))}"] if kind else []), "",
                    *body, ""]
        option = [f"   :{d}:" for d in ("staticmethod", "classmethod") if d in decorators]
        first, *others = [self.words.signature(each, bound=True) for each in found]
        indent = "                "
        return [f".. py:method:: {member}{first}", *(f"{indent}{member}{each}" for each in others), *option, "",
                *body, ""]

    # --- pages ---

    def topics(self, module):
        """{topic: names} of a module of many names: the files that they are from; {"": names} of one of few."""
        own = names(self.modules[module])
        if len(own) <= LONGEST:
            return {"": own}
        found = defaultdict(list)
        for name in own:
            value = getattr(self.modules[module], name)
            where = source(value, module, name)
            if isinstance(value, Primitive):
                found["primitives"].append(name)
            elif name != "Array" and (where is None or self.home(module, name) or where[0].stem == "__init__"):
                found["dtypes" if isinstance(value, type) and issubclass(value, jnp.generic) else "others"].append(name)
            else:
                found[self.topic(module, name, where[0])].append(name)
        for topic in [t for t, listed in found.items() if len(listed) < 3 and t not in ("Array", "others")]:
            found["others"] += found.pop(topic)
        return dict(sorted(self.divided(found)))

    @staticmethod
    def topic(module, name, path):
        """The topic of a name that is from a file."""
        if name == "Array":
            return name
        if module != "hlotrace":
            return path.stem
        inside = path.relative_to("hlotrace").as_posix()
        return next((AT_ROOT[start] for start in AT_ROOT if inside.startswith(start)), "others")

    @staticmethod
    def divided(topics):
        """Topics of too many names in parts, by the alphabet."""
        for topic, listed in topics.items():
            listed = sorted(listed, key=str.lower)
            parts = -(-len(listed) // LONGEST)
            for i in range(parts):
                part = listed[i * len(listed) // parts:(i + 1) * len(listed) // parts]
                yield topic if parts == 1 else f"{topic}, {part[0]} to {part[-1]}", part

    def pages(self):
        """{docname: text}.  Only the first is in the site's contents: it lists the others, and those link back."""
        found = {"reference/index": self.index(), "reference/words": self.words_page()}
        for module in self.modules:
            topics = self.topics(module)
            page = f"reference/{module}"
            head = [":orphan:", "", ":doc:`Reference <index>`", "", f".. py:module:: {module}", "", *title(module),
                    *self.lead(self.modules[module].__doc__), ""]
            if list(topics) == [""]:
                found[page] = "\n".join([*head, *self.entries(page, module, topics[""])])
                continue
            children = {topic: f"{page}-{slug(topic)}" for topic in topics}
            found[page] = "\n".join([*head, *(line for topic, child in children.items()
                                              for line in self.summary(module, topic, child, topics[topic]))])
            for topic, child in children.items():
                found[child] = "\n".join([
                    ":orphan:", "", f":doc:`Reference <index>` / :doc:`{module} </{page}>`", "",
                    f".. py:currentmodule:: {module}", "", *title(f"{module}: {topic}"),
                    *self.entries(child, module, topics[topic])])
        return found

    def lead(self, doc):
        return self.text.lines(re.split(r"\n\s*\n", inspect.cleandoc(doc or ""))[0])

    def entries(self, page, module, listed):
        return [line for name in listed for line in self.entry(page, module, name)]

    def summary(self, module, topic, page, listed):
        """A table: each name of a topic, and what it is in a sentence."""
        lines = [*title(topic, "-"), f"On :doc:`a page of their own </{page}>`:", "", ".. list-table::", "   :widths: auto", ""]
        for name in listed:
            home = self.home(module, name)
            value = getattr(self.modules[module], name)
            elsewhere = ".".join(home) if home else foreign(value)
            said = f"``{elsewhere}``" if elsewhere else self.text.first(own_doc(value))
            lines += [f"   * - :py:obj:`{name} <{module}.{name}>`", f"     - {said}"]
        return [*lines, ""]

    def index(self):
        lines = [*title("Reference"),
                 f"The {len(self.known)} public names of {len(self.modules)} modules; all are in the :ref:`index <genindex>` "
                 "and in the search.  Examples are run by the tests; they are written for ``import hlotrace as jax``, ``import "
                 "hlotrace.numpy as jnp`` and ``from hlotrace import lax, nn``.  Types of arguments that are no classes have "
                 ":doc:`a page <words>`.", "",
                 ".. list-table::", "   :widths: auto", ""]
        for module, value in self.modules.items():
            lines += [f"   * - :doc:`{module} <{module}>`", f"     - {self.text.first(value.__doc__.removeprefix(f'{module}: '))}"]
        return "\n".join([*lines, ""])

    def words_page(self):
        lines = [":orphan:", "", ":doc:`Reference <index>`", "", ".. py:module:: hlotrace._types", "   :no-index-entry:", "",
                 *title("Words of the signatures"),
                 "What annotations of the reference call their kinds.  They are for readers and type checkers; a program cannot "
                 "import them.", ""]
        for name, (definition, comment) in self.helpers().items():
            lines += [f".. py:data:: {name}", "", f"   ``{definition}``{': ' + self.text.line(comment) if comment else ''}", ""]
        return "\n".join(lines)


def title(text, line="="):
    return [text, line * len(text), ""]


def slug(topic):
    return re.sub(r"\W+", "-", topic)
