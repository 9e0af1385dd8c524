"""Types of the public interface. The documentation is with the functions (`help(cresset.compile)`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, overload

from torch import Tensor, nn

__version__: str

_P = ParamSpec("_P")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any])
_Module = TypeVar("_Module", bound=nn.Module)

class _Settings(TypedDict, total=False):
    fullgraph: bool
    dynamic: bool | Literal["auto"] | None
    backend: str | Callable[..., Any]
    mode: str | None
    options: Mapping[str, Any] | None
    name: str | None
    disable: bool
    recompile_limit: int | None
    isolate_recompiles: bool
    dynamic_shapes: Any
    shapes_spec: Any
    guard_filter_fn: Callable[[Sequence[GuardEntry]], Sequence[bool]] | None

class _Decorator(Protocol):
    @overload
    def __call__(self, model: _Module, /) -> _Module: ...
    @overload
    def __call__(self, model: Callable[_P, _R], /) -> Callable[_P, _R]: ...

# A compiled function has the signature of the function, a compiled module the class of the module.
@overload
def compile(model: _Module, **settings: Unpack[_Settings]) -> _Module: ...
@overload
def compile(model: Callable[_P, _R], **settings: Unpack[_Settings]) -> Callable[_P, _R]: ...
@overload
def compile(model: None = None, **settings: Unpack[_Settings]) -> _Decorator: ...
@overload
def trace(model: _Module, **settings: Unpack[_Settings]) -> _Module: ...
@overload
def trace(model: Callable[_P, _R], **settings: Unpack[_Settings]) -> Callable[_P, _R]: ...
@overload
def trace(model: None = None, **settings: Unpack[_Settings]) -> _Decorator: ...
def compile_in_place(module: _Module, **settings: Unpack[_Settings]) -> _Module: ...

# ---- Sizes

def mark_dynamic(
    tensor: Tensor,
    dim: int | Sequence[int],
    *,
    min: int | None = None,
    max: int | None = None,
    typical: int | None = None,
) -> None: ...
def maybe_mark_dynamic(tensor: Tensor, dim: int | Sequence[int], *, typical: int | None = None) -> None: ...
def mark_unbacked(tensor: Tensor, dim: int | Sequence[int], *, typical: int | None = None) -> None: ...
def mark_static(tensor: Tensor, dim: int | Sequence[int] | None = None) -> None: ...
def check(condition: Any, message: str | Callable[[], str] | None = None) -> None: ...
def shapes(function: Callable[_P, Any]) -> Callable[_P, Any]: ...
def solve(function: Callable[..., Any], *args: Any, limit: int = 16, **kwargs: Any) -> list[Any]: ...

# ---- Files

def report(path: str | PathLike[str]) -> AbstractContextManager[Any]: ...
def minify(
    function: Callable[..., Any],
    *args: Any,
    check: Callable[[Callable[..., Any], list[Any]], str | None] | None = None,
    settings: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> str | None: ...
def save_cache(file: str | PathLike[str]) -> int: ...
def load_cache(file: str | PathLike[str]) -> int: ...

# ---- Reports

class CaptureError(RuntimeError): ...
class ConstraintError(RuntimeError): ...

@dataclass(frozen=True)
class BreakReason:
    kind: str
    description: str
    text: str
    detail: str
    location: str
    remedy: str

class Explanation:
    name: str
    segments: list[dict[str, Any]]
    counters: dict[str, Any]
    learned: list[str]
    no_effect: list[str]
    recompiles: list[str]
    @property
    def break_reasons(self) -> list[BreakReason]: ...
    @property
    def graph_breaks(self) -> list[str]: ...
    def summary(self) -> str: ...
    def details(self) -> str: ...
    def graphs(self) -> str: ...
    def guards(self) -> str: ...
    def kernels(self) -> str: ...
    def programs(self) -> str: ...

def explain(
    function: Callable[_P, Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    backend: str | Callable[..., Any] | None = None,
    **settings: Any,
) -> Callable[_P, Explanation]: ...

# ---- Export

class ExportError(RuntimeError): ...

@dataclass(frozen=True)
class _GraphSignature:
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    user_inputs: tuple[str, ...]
    buffer_mutations: tuple[str, ...]
    user_input_mutations: tuple[str, ...]
    outputs: tuple[str, ...]

@dataclass(frozen=True)
class _GraphNode:
    op: str
    results: str
    arguments: str
    location: str

class _ExportedGraph:
    nodes: list[_GraphNode]
    def __iter__(self) -> Iterator[_GraphNode]: ...
    def __len__(self) -> int: ...

class ExportedProgram:
    graph: _ExportedGraph
    signature: _GraphSignature
    state_dict: dict[str, Tensor]
    assertions: list[str]
    input_structure: str
    output_structure: str
    level: str
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def module(self) -> nn.Module: ...

def export(
    model: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    level: Literal["inference", "training"] = "inference",
) -> ExportedProgram: ...
def stats() -> dict[str, Any]: ...
def reset() -> None: ...

# ---- Control of the capture

class GuardEntry:
    kind: str
    owner: object
    key: object
    value: object
    is_global: bool
    @property
    def name(self) -> str: ...
    @property
    def has_value(self) -> bool: ...
    @property
    def guard_type(self) -> str: ...

class _Comptime(Protocol):
    def __call__(self, fn: Callable[[Any], object], fallback_fn: Callable[[], object] = ...) -> None: ...
    def print(self, value: object) -> None: ...
    def print_locals(self) -> None: ...
    def print_graph(self) -> None: ...
    def print_guards(self) -> None: ...
    def print_bt(self) -> None: ...
    def graph_break(self) -> None: ...
    def breakpoint(self) -> None: ...

class _CallTable(Protocol):
    TREATMENTS: Mapping[str, str]
    def __call__(self, *functions: Callable[..., Any]) -> Any: ...

comptime: _Comptime
call_table: _CallTable

def is_compiling() -> bool: ...
def graph_break(msg: str = "") -> None: ...
@overload
def disable(fn: None = None, recursive: bool = True, *, reason: str | None = None) -> Callable[[_F], _F]: ...
@overload
def disable(fn: _F, recursive: bool = True, *, reason: str | None = None) -> _F: ...
@overload
def allow_in_graph(fn: list[_F] | tuple[_F, ...]) -> list[_F]: ...
@overload
def allow_in_graph(fn: _F) -> _F: ...
def substitute_in_graph(original_fn: Callable[..., Any]) -> Callable[[_F], _F]: ...
def cond(
    pred: bool | Tensor, true_fn: Callable[..., _R], false_fn: Callable[..., _R], operands: Iterable[Any] = ()
) -> _R: ...
def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: tuple[Any, ...]
) -> tuple[Any, ...]: ...

# ---- torch.compile itself

def install() -> AbstractContextManager[Any]: ...
def uninstall() -> None: ...
