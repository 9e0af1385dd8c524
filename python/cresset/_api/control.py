"""Controls for the program: exclude code from compilation, break the graph, inspect the capture."""

import functools
import inspect
import sys
import types

import torch

from .. import _C
from .module import disabled_module


def _natively(function, why_not=None):
    """Marks a function to run in CPython's evaluator during a capture, unseen. Its operators are captured all the same.
    With the user's reason `why_not` against capture, the call causes a graph break."""
    _C._mark(function, why_not, "UserRequest")
    return function


#: ``is_compiling()``: True while the program around the call is being captured, False in eager runs and in disabled
#: functions.
is_compiling = _C.is_compiling


@_natively
def graph_break(msg=""):
    """Breaks the graph here; an error with the message under ``fullgraph=True``. Does nothing in an eager run."""
    _C.graph_break(f"cresset.graph_break(): {msg}" if msg else "cresset.graph_break()")


class _NotCompiling:
    """Makes torch.compiler.is_compiling() False in the block, and keeps modules called there from being compiled."""

    __slots__ = ("_compiling", "_rest")

    def __enter__(self):
        self._compiling = _C._exchange_compiling(0)
        self._rest = _C._exchange_fallback(0)

    def __exit__(self, *raised):
        _C._exchange_fallback(self._rest)
        _C._exchange_compiling(self._compiling)


def disable(fn=None, recursive=True, *, reason=None):
    """Excludes a function from compilation: its call in a compiled program is a graph break and runs eagerly.

    Usable as a decorator, with and without arguments. For a module, returns a module with shared state and a disabled
    call. For a class, disables the calls of its instances.

    ``recursive=False``: functions called by this function are compiled, each separately. Raises TypeError
    for an object without a call.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if inspect.isclass(fn):
        fn.__call__ = disable(fn.__call__, recursive, reason=reason)
        return fn
    if isinstance(fn, torch.nn.Module):
        settings = {"recursive": recursive, "reason": reason}
        return disabled_module(fn, disable(type(fn).__call__, **settings), settings)
    if not callable(fn):
        raise TypeError(f"cresset.disable: expected a callable, got {type(fn).__name__}")
    name = getattr(fn, "__qualname__", type(fn).__name__)
    why = f"a call of {name}, which cresset.disable keeps out" + (f": {reason}" if reason else "")

    def disabled(*args, **kwargs):
        if _C.is_capturing():
            _C.graph_break(why)  # unless a graph break has come already: in a call from C code
            args, kwargs = _C.plain(args), _C.plain(kwargs)
        with _NotCompiling():
            return fn(*args, **kwargs) if recursive else _C.call_shallow(fn, args, kwargs, _compiled_callee)

    return _natively(functools.wraps(fn)(disabled), why)


def is_disabled(fn):
    mark = _C._mark_of(fn)
    return mark is not None and mark[0] is not None


def _compiled_callee(function):
    """The compiled form of a callee of a function disabled with ``recursive=False``; None: call the original."""
    from .compile import compile

    if (function.__module__ or "").partition(".")[0] == "cresset":
        return None
    known = function.__dict__.get("_cresset_compiled")
    if known is None or known.__wrapped__ is not function:
        known = function.__dict__["_cresset_compiled"] = compile(function)
    return known


def allow_in_graph(fn):
    """Lets a function run in CPython's evaluator during a capture, without evaluating its bytecode.

    Operators on tensors go into the graph. Other reads of the function are not guarded, so it must depend only on its
    arguments and change nothing else. fn: a function, a C function, or a list of functions. Returns its argument.
    Raises TypeError for a class, a module, or an object without a call.
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(f) for f in fn]
    function = getattr(fn, "__func__", fn)
    if isinstance(function, types.FunctionType):
        _natively(function)
    elif callable(function) and not inspect.isclass(function) and not isinstance(function, torch.nn.Module):
        _C.allow(function)
    else:
        raise TypeError(f"cresset.allow_in_graph: expected a function, got {type(fn).__name__}")
    return fn


def substitute_in_graph(original_fn):
    """A decorator for polyfills: a captured program evaluates the Python function instead of C's ``original_fn``.

    Reads, writes and callbacks hidden in C code become visible. Results and exceptions must be the same. Eager runs
    call the original. Returns the Python function. Raises TypeError if the kinds of functions differ from these.
    """
    if not callable(original_fn) or isinstance(original_fn, types.FunctionType):
        raise TypeError(f"cresset.substitute_in_graph: expected a C function, got {original_fn!r}")

    def decorate(traceable_fn):
        if not isinstance(traceable_fn, types.FunctionType):
            raise TypeError(f"cresset.substitute_in_graph: expected a Python function, got {traceable_fn!r}")
        _C._substitute(original_fn, traceable_fn)
        return traceable_fn

    return decorate


class ComptimeVariable:
    """A variable of the captured program."""

    def __init__(self, value):
        self._value = value

    def is_tensor(self):
        return isinstance(self._value, torch.Tensor)

    def size(self):
        """The symbolic sizes of a tensor, as strings."""
        return tuple(map(_number, self._value.shape))

    def as_fake(self):
        """The value inside the program: a tensor has no data, its sizes are symbols."""
        return self._value

    def python_type(self):
        return int if isinstance(self._value, torch.SymInt) else type(self._value)

    def as_python_constant(self):
        """The value, where it is a constant and no tensor; else raises TypeError."""
        if self.is_tensor() or isinstance(self._value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise TypeError(f"{self} is no constant")
        return self._value

    def __repr__(self):
        return _describe(self._value)


def _number(value):
    """A number in the notation of the graph."""
    return _C.size_text(value) or str(value)


def _describe(value):
    if isinstance(value, torch.Tensor):
        sizes = ", ".join(map(_number, value.shape))
        grad = ", requires_grad" if value.requires_grad else ""
        return f"{type(value).__name__}[{sizes}] {value.dtype} {value.device}{grad}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(_describe, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if type(value) is dict:
        return "{" + ", ".join(f"{k!r}: {_describe(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, str, bytes, type(None))):
        return _number(value) if not isinstance(value, (str, bytes)) else repr(value)
    return f"<{type(value).__qualname__}>"


class ComptimeContext:
    """The argument of a function under ``cresset.comptime``: the frame being captured, the graph, the guards."""

    def __init__(self, frame):
        self._frame = frame

    def _at(self, stacklevel):
        frame = self._frame
        for _ in range(stacklevel):
            frame = frame.f_back
        return frame

    def get_local(self, name, *, stacklevel=0):
        """A local variable, including a variable in a closure; raises KeyError when there is none."""
        return ComptimeVariable(self._at(stacklevel).f_locals[name])

    def locals(self, *, stacklevel=0):
        return {name: ComptimeVariable(value) for name, value in self._at(stacklevel).f_locals.items()}

    def graph(self):
        """The graph so far, as a string."""
        return _C.captured_graph()

    def guards(self):
        """The guards so far: on sizes, and on Python state."""
        return _C.captured_guards()

    def graph_break(self, msg=""):
        _C.graph_break(f"cresset.comptime: graph_break(): {msg}" if msg else "cresset.comptime: graph_break()")

    def print(self, value, *, file=None):
        print(value if isinstance(value, (str, ComptimeVariable)) else _describe(value), file=file)

    def print_locals(self, *, file=None, stacklevel=0):
        for name, value in self.locals(stacklevel=stacklevel).items():
            print(f"{name} = {value}", file=file)

    def print_graph(self, *, verbose=True, file=None):
        print(self.graph(), file=file)

    def print_guards(self, *, file=None):
        for guard in self.guards():
            print(guard, file=file)

    def print_bt(self, *, file=None, stacklevel=0):
        """The user's stack at the line being captured."""
        import traceback

        traceback.print_stack(self._at(stacklevel), file=file or sys.stdout)

    def breakpoint(self):
        """Opens the debugger at the user's line, with the capture in progress, for inspection: `c` continues."""
        import pdb

        debugger = pdb.Pdb()
        debugger.reset()
        debugger.interaction(self._frame, None)


def _user_frame():
    """The innermost frame outside this file."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame


def _do_nothing():
    pass


@_natively
def comptime(fn, fallback_fn=_do_nothing):
    """Calls ``fn(context)`` when this line is captured, and never when the captured program runs.

    Eager runs call ``fallback_fn()``. The call does not change the program's result. Usable as a decorator of a
    function at its place of call. See :class:`ComptimeContext`.
    """
    if _C.is_compiling():
        fn(ComptimeContext(_user_frame()))
    elif fallback_fn is not _do_nothing:
        fallback_fn()


def _shortcut(name, what):
    @_natively
    def shortcut(*args, **kwargs):
        if _C.is_compiling():
            getattr(ComptimeContext(_user_frame()), name)(*args, **kwargs)

    shortcut.__name__ = name
    shortcut.__doc__ = what
    setattr(comptime, name, shortcut)


for _name, _what in [
    ("print", "Prints a value of the program: a tensor's symbolic sizes, not its data. The graph segment continues."),
    ("print_locals", "Prints the local variables."),
    ("print_graph", "Prints the graph so far."),
    ("print_guards", "Prints the guards so far."),
    ("print_bt", "Prints the user's stack."),
    ("graph_break", "Breaks the graph at this line, in the capture and in later calls."),
    ("breakpoint", "Stops in the debugger at this line."),
]:
    _shortcut(_name, _what)
