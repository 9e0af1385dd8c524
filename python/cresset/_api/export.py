"""``cresset.export``: one whole graph of a function or a module, with parameters and buffers as named inputs."""

import copy
import dataclasses
import gc
import re
import types

import torch
from torch.nn.utils.stateless import _reparametrize_module
from torch.utils import _pytree as pytree

from .. import _C
from . import export_shapes
from .compile import CaptureError, ConstraintError
from .control import comptime
from .settings import check_options, native

_PLAIN = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.layout)
_PLAIN += (torch.memory_format, torch.SymInt, torch.SymFloat, torch.SymBool)
_REMEDIES = "Make it an argument, or embed it: register it as a buffer of the module"
_LEVELS = ("inference", "training")


class ExportError(RuntimeError):
    """The function cannot be exported, or a call breaks an assertion of an exported program."""


@dataclasses.dataclass(frozen=True)
class GraphSignature:
    """The meaning of the graph's inputs and outputs. All names are qualified names of the module, or paths such as
    ``args[0]`` and ``kwargs['mask']``.

    ``parameters``, ``buffers``: all of the module, in its order. ``user_inputs``, ``outputs``: a path for each leaf.
    ``buffer_mutations``, ``user_input_mutations``: inputs which a call writes to."""

    parameters: tuple
    buffers: tuple
    user_inputs: tuple
    buffer_mutations: tuple
    user_input_mutations: tuple
    outputs: tuple


@dataclasses.dataclass(frozen=True)
class GraphNode:
    """An operator: its results and arguments as in the printed graph. ``location`` is "file.py:12 in f", or empty."""

    op: str
    results: str
    arguments: str
    location: str


class ExportedGraph:
    """The captured graph. It prints as text; iteration gives each :class:`GraphNode` in order of execution."""

    _NODE = re.compile(r"(%\d.*) = (\w+::[\w.]+)\((.*)\)$")

    def __init__(self, text):
        self._text, self.nodes, location = text, [], ""
        for line in text.splitlines():
            if line.startswith("# ") and not line.startswith("#   "):
                location = line[2:]
            elif found := self._NODE.match(line):
                self.nodes.append(GraphNode(found[2], found[1], found[3], location))

    def __iter__(self):
        return iter(self.nodes)

    def __len__(self):
        return len(self.nodes)

    def __str__(self):
        return self._text

    __repr__ = __str__


def _leaves(tree, root):
    """(path, leaf) of each leaf. Raises ExportError for a leaf of an unknown type."""
    found = [(root + pytree.keystr(path), leaf) for path, leaf in pytree.tree_flatten_with_path(tree)[0]]
    for path, leaf in found:
        if not isinstance(leaf, (torch.Tensor, *_PLAIN)):
            raise ExportError(
                f"cresset.export: {path} is a {type(leaf).__qualname__}; expected a tensor or a plain value. Register "
                "the type with torch.utils._pytree.register_pytree_node, or pass its parts"
            )
    return found


def _structure(tree, root):
    spec = pytree.tree_structure(tree)
    try:
        return spec, pytree.treespec_dumps(spec)
    except NotImplementedError as e:
        raise ExportError(f"cresset.export: the structure of {root} has no form on disk: {e}") from e


def _copies(tree):
    """The tree with each tensor in its own memory, for the capture, which may write to it. A tensor that occurs several
    times stays one tensor."""
    known = {}

    def copied(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) not in known:
            is_parameter = isinstance(leaf, torch.nn.Parameter)
            plain = leaf.detach().clone().requires_grad_(leaf.requires_grad)
            known[id(leaf)] = copy.deepcopy(leaf) if is_parameter else plain
        return known[id(leaf)]

    return pytree.tree_map(copied, tree)


def _check_results(out, older):
    """Raises ExportError for a result that is older than the capture: a tensor from outside, returned as it is."""
    ids = {id(tensor) for tensor in older}
    for path, leaf in _leaves(out, "result"):
        if isinstance(leaf, torch.Tensor) and id(leaf) in ids:
            raise ExportError(f"cresset.export: {path} is a tensor from outside. {_REMEDIES}")


class ExportedProgram:
    """A whole graph with its state; the result of :func:`export`. A call takes the arguments of the function, of any
    sizes which :attr:`assertions` allow, and returns its result in the same structure.

    ``graph``: an :class:`ExportedGraph`. ``signature``: a :class:`GraphSignature`. ``state_dict``: name -> tensor, the
    parameters and buffers that calls read and write. ``assertions``: conditions on sizes, checked at each call.
    ``input_structure``, ``output_structure``: torch.utils._pytree's versioned JSON. ``level``: as given to export.

    Raises:
        ExportError: at a call whose structure, types, dtypes, devices or sizes differ from the exported ones.
    """

    def __init__(self, target, args, kwargs, level, dynamic_shapes=None):
        self.level, self._sealed = level, False
        self._dynamic_shapes, self._dims = dynamic_shapes, {}
        self._spec, self.input_structure = _structure((args, kwargs), "the arguments")
        self._inputs = [*_leaves(args, "args"), *_leaves(kwargs, "kwargs")]
        self._owned = target if isinstance(target, torch.nn.Module) else None
        self._names, self.state_dict, run = (), {}, target
        if self._owned is not None:
            self._owned = copy.deepcopy(target)
            parameters = dict(self._owned.named_parameters())
            self.state_dict = parameters | dict(self._owned.named_buffers())
            self._names, run = tuple(self.state_dict), _lifted(self._owned, tuple(self.state_dict))
        self._run = native(
            _guarded(run, self._owned is not None, self._refuse),
            {**check_options(None, None), "dynamic": True, "fullgraph": True, "recompile_limit": 1},
            keep_text=True,
        )
        self._capture(target, args, kwargs)
        self._sealed = True

    def __call__(self, *args, **kwargs):
        self._check(args, kwargs)
        kwargs = {name: kwargs[name] for name in self._kwargs}
        try:
            return self._call([self.state_dict[name] for name in self._names], args, kwargs)
        except CaptureError as e:
            raise ExportError(self._violation(args, kwargs, e)) from None

    def _violation(self, args, kwargs, error):
        new = pytree.tree_leaves((args, kwargs))
        lines = [
            f"{path} is {now!r}, and was {old!r} at export"
            for (path, old), now in zip(self._inputs, new, strict=True)
            if not isinstance(old, torch.Tensor) and now != old
        ]
        lines += [f"assert {assertion}" for assertion in self.assertions]
        lines.append("strides, aliasing of arguments, and the Python state that was read must be as at export")
        return f"cresset.export: the call breaks a condition of the exported program ({error}):\n  " + "\n  ".join(
            lines
        )

    def module(self):
        """A module whose forward() runs this program. It has no parameters; they are in :attr:`state_dict`."""
        module = torch.nn.Module()
        module.forward = types.MethodType(lambda _, *args, **kwargs: self(*args, **kwargs), module)
        return module

    def __str__(self):
        return f"{self.graph}{self.signature}\n" + "".join(f"assert {a}\n" for a in self.assertions)

    def _refuse(self, _):
        if self._sealed:
            raise ExportError("cresset.export: the compiled code was dropped by a reset; export the function again")

    def _call(self, state, args, kwargs):
        with torch.set_grad_enabled(self.level == "training"):
            return self._run(state, args, kwargs)

    def _capture(self, target, args, kwargs):
        self._kwargs = tuple(kwargs)
        state, own_args, own_kwargs = _copies((list(self.state_dict.values()), args, kwargs))
        older = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor)]
        own = {id(leaf) for leaf in pytree.tree_leaves((state, own_args, own_kwargs))}
        self._constrain(target, own_args, own_kwargs)
        with torch.random.fork_rng():
            try:
                out = self._call(state, own_args, own_kwargs)
            except ConstraintError as e:
                raise ExportError(f"cresset.export: dynamic_shapes cannot be kept: {e}") from e
            except CaptureError as e:
                raise ExportError(f"cresset.export: the function cannot be captured whole: {e}") from e
        _check_results(out, [tensor for tensor in older if id(tensor) not in own])
        self._outputs = [path for path, _ in _leaves(out, "result")]
        _, self.output_structure = _structure(out, "the result")
        entries = _C.cache_entries(self._run)
        if len(entries) != 1 or entries[0]["eager_reason"]:
            reason = entries[0]["eager_reason"] if entries else "no program was made"
            raise ExportError(f"cresset.export: the function cannot be captured whole: {reason}")
        self._describe(entries[0])
        self._verify(args, kwargs)

    def _constrain(self, target, args, kwargs):
        if self._dynamic_shapes is not None:
            leaves = pytree.tree_leaves((args, kwargs))
            paths = {id(leaf): path for (path, _), leaf in zip(self._inputs, leaves, strict=True)}
            self._dims = export_shapes.apply(target, args, kwargs, self._dynamic_shapes, paths)
            self._check_dims(leaves)

    def _check_dims(self, leaves):
        by_path = {path: leaf for (path, _), leaf in zip(self._inputs, leaves, strict=True)}

        def size_of(path):
            tensor, _, dim = path.rpartition(".size(")
            return by_path[tensor].size(int(dim[:-1]))

        if pair := export_shapes.unequal(self._dims, size_of):
            a, b = pair
            raise ExportError(
                f"cresset.export: {a} is {size_of(a)} and {b} is {size_of(b)}; dynamic_shapes gives both the Dim "
                f"{self._dims[a]!r}, so they must be equal"
            )

    def _verify(self, args, kwargs):
        """Runs the program on the examples again: a program that refuses them depends on state that its call changes."""
        state, own_args, own_kwargs = _copies((list(self.state_dict.values()), args, kwargs))
        with torch.random.fork_rng():
            try:
                self._call(state, own_args, own_kwargs)
            except CaptureError as e:
                raise ExportError(
                    f"cresset.export: a second call with the same arguments would need another program, because the "
                    f"first call changes Python state that it reads ({e}). Keep such state in buffers"
                ) from None

    def _describe(self, entry):
        text = self._renamed(entry["graph"])
        self.graph = ExportedGraph(text)
        last_names = {name.rpartition(".")[2] for name in self._names}
        state_guards = [g for g in entry["state_guards"] if not any(f"['{name}'] is" in g for name in last_names)]
        _check_outside_tensors(text, self.graph, state_guards)
        symbols = dict(re.findall(r'^symbol (\w+) .*"(.*)"$', text, re.MULTILINE))
        self.assertions = [
            re.sub(r"\bs\d+\b", lambda m: symbols.get(m[0], m[0]), guard.split(" at ")[0].split("  asked by ")[0])
            + "".join(re.findall(r" at .*$", guard))
            for guard in entry["guards"]
        ]
        if wrong := export_shapes.undeclared(self._dims, self.assertions):
            raise ExportError("cresset.export: dynamic_shapes cannot be kept:\n  " + "\n  ".join(wrong))
        inputs = re.findall(r'^%\d+: .* = input "(.*)"$', text, re.MULTILINE)
        known = {*self._names, *(path for path, _ in self._inputs)}
        for name in inputs:
            if name not in known and "::" not in name:  # later stages of a program have inputs named by operators
                raise ExportError(f"cresset.export: a tensor from outside is read: {name}. {_REMEDIES}")
        written = [inputs[int(i)] for i in re.findall(r"^mutate input (\d+)", text, re.MULTILINE)]
        parameters = tuple(n for n in self._names if isinstance(self.state_dict[n], torch.nn.Parameter))
        self.signature = GraphSignature(
            parameters=parameters,
            buffers=tuple(n for n in self._names if n not in parameters),
            user_inputs=tuple(path for path, _ in self._inputs),
            buffer_mutations=tuple(n for n in written if n in self._names),
            user_input_mutations=tuple(n for n in written if n not in self._names),
            outputs=tuple(self._outputs),
        )

    def _renamed(self, text):
        """The graph's text with the names that users know."""
        text = re.sub(r'"args\[0\]\[(\d+)\]', lambda m: '"' + self._names[int(m[1])], text)
        return text.replace('"args[1][', '"args[').replace('"args[2][', '"kwargs[')

    def _check(self, args, kwargs):
        if set(kwargs) != set(self._kwargs):
            raise ExportError(f"cresset.export: expected keyword arguments {self._kwargs}, got {tuple(kwargs)}")
        kwargs = {name: kwargs[name] for name in self._kwargs}
        spec = pytree.tree_structure((args, kwargs))
        if spec != self._spec:
            raise ExportError(f"cresset.export: expected arguments of the structure {self._spec}, got {spec}")
        leaves = pytree.tree_leaves((args, kwargs))
        for (path, old), new in zip(self._inputs, leaves, strict=True):
            for word, of in _LEAF_CHECKS:
                if of(old) != of(new):
                    raise ExportError(f"cresset.export: {path} has the {word} {of(new)}; expected {of(old)}")
        self._check_dims(leaves)


def _of_tensor(read):
    return lambda leaf: read(leaf) if isinstance(leaf, torch.Tensor) else None


_LEAF_CHECKS = (
    ("type", lambda leaf: type(leaf).__qualname__),
    ("dtype", _of_tensor(lambda t: t.dtype)),
    ("device", _of_tensor(lambda t: t.device)),
    ("number of dimensions", _of_tensor(lambda t: t.dim())),
)


def _guarded(run, has_state, refuse):
    """The function that is captured. ``refuse`` is called by captures only, never by compiled code."""

    def exported(state, args, kwargs):
        comptime(refuse)
        return run(state, *args, **kwargs) if has_state else run(*args, **kwargs)

    return exported


def _lifted(module, names):
    """The module's call as a function of its state, a list of tensors in the order of the names."""
    places = [(module.get_submodule(n.rpartition(".")[0]), n.rpartition(".")[2]) for n in names]

    def run(state, *args, **kwargs):
        with _reparametrize_module(module, dict(zip(names, state)), tie_weights=True):
            out = module(*args, **kwargs)
            for i, (owner, name) in enumerate(places):
                if getattr(owner, name) is not state[i]:
                    raise ExportError(f"cresset.export: forward() assigns to {names[i]}; write to it in place instead")
        return out

    return run


def _check_outside_tensors(text, graph, state_guards):
    """Raises ExportError for a tensor that is neither argument, parameter, buffer nor a literal in the code."""
    constants = re.findall(r'^(%\d+): .* = constant "', text, re.MULTILINE)
    uses = [
        node
        for node in graph
        if node.op != "aten::lift_fresh" and any(re.search(rf"{c}\b", node.arguments) for c in constants)
    ]
    names = [g for g in state_guards if g.endswith((" is the same Tensor", " is the same Parameter"))]
    names = [g.rpartition(" is the same ")[0] for g in names]
    if not uses:
        return
    places = ", ".join(dict.fromkeys(f"{node.op} at {node.location}" for node in uses))
    raise ExportError(
        f"cresset.export: a tensor from outside is read: {', '.join(names) or 'a tensor without a name'} (by {places}). "
        f"{_REMEDIES}"
    )


def export(model, args=(), kwargs=None, *, dynamic_shapes=None, level="inference"):
    """Captures ``model(*args, **kwargs)`` as one whole graph and returns an :class:`ExportedProgram`.

    ``model``: a function or a module; a module is copied, so later changes to it have no effect. ``args``, ``kwargs``:
    examples, whose tensors keep their contents. ``dynamic_shapes``: torch.export's spelling;
    with None all sizes are symbolic, as in :func:`compile`. ``level``: "inference"
    captures and runs without gradients, "training" with them.

    Raises:
        TypeError, ValueError: ``model`` is not callable, ``args`` is not a tuple, the level is unknown,
            or dynamic_shapes does not fit the arguments.
        ExportError: the function cannot be captured whole, has a leaf of an unknown type in its arguments or result,
            reads a tensor that is neither argument, parameter nor buffer, or breaks dynamic_shapes. The message names the path or the line.
    """
    if not callable(model):
        raise TypeError(f"cresset.export: expected a function or a module, got {type(model).__name__}")
    if not isinstance(args, tuple):
        raise TypeError(f"cresset.export: args must be a tuple, got {type(args).__name__}")
    if level not in _LEVELS:
        raise ValueError(f"cresset.export: unknown level {level!r}; expected one of {', '.join(map(repr, _LEVELS))}")
    return ExportedProgram(model, args, dict(kwargs or {}), level, dynamic_shapes)
