"""Queries of programs to tensors: class, user-defined attributes, answers of autograd and of memory. A single compiled
function asks every query of every kind of tensor in turn, so an answer for a tensor must not be given for the next."""

from __future__ import annotations

import copy
import inspect
import warnings

import pytest
import torch
import torch.nn as nn

import cresset


class Picture(torch.Tensor):
    pass


class Weight(nn.Parameter):
    pass


def with_grad():
    w = nn.Parameter(torch.ones(3))
    w.grad = torch.ones(3)
    return w


def tagged(value):
    def make():
        t = torch.ones(3)
        t.tag = value
        return t

    return make


def marked_as_parameter():
    t = torch.ones(3)
    t._is_param = True
    return t


def written():
    return torch.zeros(3).add_(1)


def hooked():
    t = torch.ones(3, requires_grad=True)
    t.register_hook(lambda g: g)
    return t


def retaining():
    t = torch.ones(3, requires_grad=True) * 1
    t.retain_grad()
    return t


def in_inference():
    with torch.inference_mode():
        return torch.ones(3)


def named():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ones(3, names=("n",))


# Each makes a tensor of three ones.
KINDS = {
    "tensor": lambda: torch.ones(3),
    "parameter": lambda: nn.Parameter(torch.ones(3)),
    "leaf": lambda: torch.ones(3, requires_grad=True),
    "frozen_parameter": lambda: nn.Parameter(torch.ones(3), requires_grad=False),
    "result": lambda: torch.ones(3, requires_grad=True) * 1,
    "buffer": lambda: nn.Buffer(torch.ones(3)),
    "part": lambda: torch.ones(6)[3:],
    "part_of_leaf": lambda: torch.ones(6, requires_grad=True)[:3],
    "every_other": lambda: torch.ones(6)[::2],
    "expanded": lambda: torch.ones(1).expand(3),
    "with_grad": with_grad,
    "tag_1": tagged(1),
    "tag_2": tagged(2),
    "tag_none": tagged(None),
    "marked_as_parameter": marked_as_parameter,
    "subclass": lambda: torch.ones(3).as_subclass(Picture),
    "subclass_of_parameter": lambda: Weight(torch.ones(3)),
    "double": lambda: torch.ones(3, dtype=torch.float64),
    "int": lambda: torch.ones(3, dtype=torch.int64),
    "complex": lambda: torch.ones(3, dtype=torch.complex64),
    "conjugate": lambda: torch.ones(3, dtype=torch.complex64).conj(),
    "written": written,
    "hooked": hooked,
    "retaining": retaining,
    "in_inference": in_inference,
    "detached": lambda: torch.ones(3, requires_grad=True).detach(),
    "meta": lambda: torch.ones(3, device="meta"),
    "sparse": lambda: torch.ones(3).to_sparse(),
}
if hasattr(torch.Tensor, "names"):  # no longer in torch 2.11
    KINDS["named"] = named

ATTRIBUTES = sorted(
    name
    for name, what in inspect.getmembers(torch.Tensor)
    if (inspect.isdatadescriptor(what) or isinstance(what, property)) and not name.startswith("__")
)
# Attributes that need an absent device, or tensors of other shapes.
METHODS = sorted(
    name
    for name in dir(torch.Tensor)
    if name.startswith("is_") and callable(getattr(torch.Tensor, name)) and name not in ("is_set_to", "is_same_size")
) + [
    "dim",
    "numel",
    "nelement",
    "element_size",
    "stride",
    "size",
    "storage_offset",
    "data_ptr",
    "get_device",
    "type",
    "has_names",
    "_is_view",
    "_is_zerotensor",
    "is_shared",
    "is_pinned",
    "ndimension",
    "__len__",
    "__dir__",
]
CLASSES = [
    torch.Tensor,
    nn.Parameter,
    nn.Buffer,
    Weight,
    Picture,
    nn.UninitializedParameter,
    torch.FloatTensor,
    torch.LongTensor,
]


def attribute(name):
    return lambda t: getattr(t, name)


def instance_of(kind):
    return lambda t: isinstance(t, kind)


def method(name):
    return lambda t: getattr(t, name)()


QUESTIONS = {
    **{f".{n}": attribute(n) for n in ATTRIBUTES},
    **{f"{n}()": method(n) for n in METHODS},
    **{f"isinstance_{c.__name__}": instance_of(c) for c in CLASSES},
    "isinstance_of_several": lambda t: isinstance(t, (nn.Parameter, int)),
    "issubclass": lambda t: issubclass(type(t), nn.Parameter),
    "type": type,
    "class": lambda t: t.__class__,
    "class_name": lambda t: type(t).__name__,
    "exact": lambda t: type(t) is torch.Tensor,
    "mro": lambda t: len(type(t).__mro__),
    "module_of_class": lambda t: type(t).__module__,
    "match": lambda t: match_class(t),
    "table": lambda t: {torch.Tensor: 1, nn.Parameter: 2}.get(type(t)),
    "hasattr_tag": lambda t: hasattr(t, "tag"),
    "getattr_tag": lambda t: getattr(t, "tag", 7),
    "tag": lambda t: t.tag,
    "in_dict": lambda t: "tag" in t.__dict__,
    "vars": lambda t: dict(vars(t)),
    "size_of_dict": lambda t: len(t.__dict__),
    "hasattr_is_param": lambda t: getattr(t, "_is_param", False),
    "has_grad": lambda t: t.grad is not None,
    "is_leaf_or_frozen": lambda t: t.is_leaf and not t.requires_grad,
    "grad_fn_is_none": lambda t: t.grad_fn is None,
    "grad_fn_name": lambda t: t.grad_fn.name() if t.grad_fn is not None else None,
    "base_is_none": lambda t: t._base is None,
    "version": lambda t: t._version + 1,
    "at_start": lambda t: t.storage_offset() == 0,
    "bytes": lambda t: t.untyped_storage().nbytes(),
    "is_tensor": torch.is_tensor,
    "is_complex": torch.is_complex,
    "is_floating_point": torch.is_floating_point,
    "is_inference": torch.is_inference,
    "is_conj": torch.is_conj,
    "is_nonzero_count": lambda t: bool(t.numel()),
    "device_type": lambda t: t.device.type,
    "dtype_name": lambda t: str(t.dtype),
    "layout": lambda t: t.layout is torch.strided,
    "result_type": lambda t: torch.result_type(t, 1.5),
    "can_cast": lambda t: torch.can_cast(t.dtype, torch.float32),
    "overrides": lambda t: torch.overrides.is_tensor_like(t),
    "has_torch_function": lambda t: torch.overrides.has_torch_function((t,)),
    "typename": torch.typename,
    "copy_class": lambda t: type(copy.copy(t)),
    "hash": lambda t: hash(t) == id(t),
}


def match_class(t):
    match t:
        case nn.Parameter():
            return "parameter"
        case torch.Tensor(dtype=torch.float64):
            return "double"
        case torch.Tensor():
            return "tensor"


def shown(value):
    """A comparable form: an object that is new at each access is represented by its class."""
    if isinstance(value, torch.Tensor):
        whole = value.layout is torch.strided and value.device.type == "cpu"
        values = value.detach().resolve_conj().tolist() if whole else None
        return type(value), value.dtype, tuple(value.shape), values
    if isinstance(
        value, (bool, int, float, str, type(None), type, torch.dtype, torch.device, torch.layout, torch.Size)
    ):
        return type(value), value
    if isinstance(value, (list, tuple)):
        return type(value), [shown(v) for v in value]
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    return type(value)


def asked(f, t, way):
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        try:
            return shown(way(f, t))
        except Exception as e:
            return type(e), str(e).splitlines()[0] if str(e) else ""


class Box:
    def __init__(self):
        self.held = None


def answers(question, way, grad=True):
    """[(kind, eager's answer, ours)] of a function with a further computation."""
    box = Box()

    def ask(t):
        y = torch.ones(2) * 2
        return y, question(t)

    def ask_list(ts):
        y = torch.ones(2) * 2
        return [question(t) for t in ts], y

    def ask_dict(ts):
        y = torch.ones(2) * 2
        return {k: tuple(question(t) for t in v) for k, v in ts.items()}, y

    def ask_state(_):
        y = torch.ones(2) * 2
        return y, question(box.held)

    programs = {
        "argument": (ask, lambda f, t: f(t)[1]),
        "list": (ask_list, lambda f, t: f([t])[0][0]),
        "dict": (ask_dict, lambda f, t: f({"a": (t,)})[0]["a"][0]),
        "state": (ask_state, lambda f, t: f(0)[1]),
    }
    program, give = programs[way]
    compiled = cresset.compile(program)
    out = []
    with torch.set_grad_enabled(grad):
        for name, make in (*KINDS.items(), *list(KINDS.items())[:3]):
            with torch.enable_grad():
                t = box.held = make()
            out.append((name, asked(program, t, give), asked(compiled, t, give)))
    return out


@pytest.mark.parametrize("name", QUESTIONS)
def test_each_tensor_is_asked_itself(name):
    for kind, expected, got in answers(QUESTIONS[name], "argument"):
        assert got == expected, kind


# Other ways to hold the tensor, and no gradients: different paths for queries.
FEW = [
    *(n for n in QUESTIONS if n.startswith("isinstance")),
    *("type", "class", "exact", "match", "table", "hasattr_tag", "getattr_tag", "tag", "in_dict", "vars", "has_grad"),
    *(
        ".requires_grad",
        ".is_leaf",
        ".grad",
        ".grad_fn",
        ".names",
        "._version",
        "._base",
        ".device",
        ".layout",
        ".dtype",
    ),
    *(
        "is_inference()",
        "is_conj()",
        "data_ptr()",
        "stride()",
        "storage_offset()",
        "_is_view()",
        "typename",
        "is_leaf_or_frozen",
    ),
]
FEW = [name for name in FEW if name in QUESTIONS]


@pytest.mark.parametrize("way", ["list", "dict", "state", "no_grad"])
@pytest.mark.parametrize("name", FEW)
def test_wherever_the_tensor_is(name, way):
    grad = way != "no_grad"
    for kind, expected, got in answers(QUESTIONS[name], way if grad else "argument", grad):
        assert got == expected, kind


# The same tensor, with a change between calls.
CHANGES = {
    "requires_grad": lambda t: t.requires_grad_(),
    "frozen_again": lambda t: t.requires_grad_(False),
    "tag": lambda t: setattr(t, "tag", 1),
    "other_tag": lambda t: setattr(t, "tag", 2),
    "no_tag": lambda t: delattr(t, "tag"),
    "is_param": lambda t: setattr(t, "_is_param", True),
    "no_is_param": lambda t: delattr(t, "_is_param"),
    "grad": lambda t: setattr(t, "grad", torch.ones(3)),
    "no_grad": lambda t: setattr(t, "grad", None),
    "written": lambda t: t.detach().add_(0),
    "class": lambda t: setattr(t, "__class__", Picture),
    "class_again": lambda t: setattr(t, "__class__", torch.Tensor),
    "memory": lambda t: setattr(t, "data", torch.ones(6)[3:]),
    "dtype": lambda t: setattr(t, "data", torch.ones(3, dtype=torch.float64)),
}


@pytest.mark.parametrize("state", [False, True], ids=["argument", "state"])
@pytest.mark.parametrize("name", sorted({*FEW, "version", "at_start", "size_of_dict"}))
def test_a_tensor_that_changes(name, state):
    question = QUESTIONS[name]
    t = torch.ones(3)

    def of_argument(t):
        y = torch.ones(2) * 2
        return y, question(t)

    def of_state(_):
        y = torch.ones(2) * 2
        return y, question(t)

    program = of_state if state else of_argument
    compiled = cresset.compile(program)
    for change, make in CHANGES.items():
        for _ in range(2):
            expected, got = (asked(f, t, lambda f, t: f(t)[1]) for f in (program, compiled))
            assert got == expected, change
        try:
            make(t)
        except (RuntimeError, TypeError, AttributeError):
            continue  # this version of torch does not allow it
    expected, got = (asked(f, t, lambda f, t: f(t)[1]) for f in (program, compiled))
    assert got == expected


def test_a_class_steers_few_compilations():
    """Two kinds of argument are two programs, however often they alternate."""
    f = cresset.compile(lambda x, w: x * w + 1 if isinstance(w, nn.Parameter) else x - w)
    for _ in range(4):
        for w in (nn.Parameter(torch.ones(3), requires_grad=False), torch.ones(3)):
            assert torch.equal(f(torch.full((3,), 4.0), w), torch.full((3,), 5.0 if type(w) is nn.Parameter else 3.0))
    assert cresset.stats()["graphs"] == 2
