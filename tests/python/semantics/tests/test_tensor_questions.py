"""Queries to a tensor in the middle of a captured call: expressions over an argument `a` and a result `y`."""

from __future__ import annotations

import types

import pytest
import torch
from compare import assert_same

import cresset

HEADER = """
import collections, copy, gc, inspect, math, operator, pickle, struct, sys, weakref
import numpy as np
import torch
"""

ROWS = """
y.type()
isinstance(y, torch.FloatTensor)
isinstance(a, torch.FloatTensor)
y.type(torch.DoubleTensor)
y.type('torch.LongTensor')
y.type(a.type())
y.is_cpu
y.get_device()
str(y.device)
torch.FloatTensor([1,2])+y[:2]
torch.typename(y)
y.new([1,2])
y.new().shape
a.new(3).shape
a.new([1.,2])
y.new_tensor([1,2])
y.type_as(a)
y.layout
y.is_mkldnn
y.is_sparse
y.has_names() if hasattr(y,'has_names') else 0
y.is_shared()
y.element_size()
y.nbytes
y.itemsize
y.storage_offset()
y.untyped_storage().nbytes()
y.is_pinned()
y.is_inference()
y.retains_grad
y.grad_fn is None
y.is_leaf
y._version
y.output_nr
y.dim_order()
y.is_contiguous()
torch.Tensor(y)
torch.LongTensor([1,2])
torch.FloatTensor(2,3).shape
torch.tensor(y)
torch.as_tensor(y)
torch.asarray(y)
copy.copy(y)
copy.deepcopy(y)
y.__array__()
np.asarray(y)
list(y)
tuple(y)
y.tolist()
bool((y>100).all())
str(y)
f'{y}'
f'{y.sum():.2f}'
y in [y]
[y].index(y)
y.is_signed()
y.is_complex()
y.real
torch.is_storage(y)
torch.numel(y)
torch.result_type(y,1)
torch.can_cast(y.dtype,torch.int)
y.is_same_size(a)
y.is_set_to(a)
y.data.shape
y.detach().data
y.cpu()
y.to('cpu')
y.float()
y.numpy().sum()
y.apply_(lambda v: v+1)
y.map_(a, lambda u,v:u+v)
y.resize_(2)
y.set_(a)
y.requires_grad_().requires_grad
y.register_hook is not None
y.pin_memory is not None
pickle.loads(pickle.dumps(y))
y.__reduce_ex__(2)[0].__name__
y.__deepcopy__({})
torch.equal(y,y)
torch.allclose(y,y)
a.data_ptr()!=y.data_ptr()
y.stride()
y.to_sparse().to_dense()
y.unsafe_chunk(2)
torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(y))
torch.from_dlpack(y)
struct.pack('f',y[0])
math.sin(y[0])
int(y[0])
operator.index(y.long()[0])
[10,20,30][abs(y.long()[0])%3]
range(3)[int(y.long()[0])%3]
'abc'*(abs(y.long()[0])%3)
sorted(y)
max(y)
sum(y)
min(y,key=lambda v:-v)
any(y>0)
all(y>0)
round(float(y[0]),2)
divmod(y,2)
y//2, y%2
-y, +y, abs(y), ~(y>0)
y@a
2**y
1-y, 1/y, 3//y, 3%y
y[None]
y[...,None]
y[[0,1]]
y[torch.tensor([True,False,True,False])]
y[y>0].shape[0]>=0
y.unbind()
zip(y,a).__next__()
enumerate(y).__next__()
reversed(y).shape
iter(y).__next__()
np.add(y,a.numpy())
a.numpy()+y.numpy()
y.numpy(force=True)
torch.from_numpy(a.numpy())+y
y.char(), y.half(), y.bfloat16(), y.double()
y.__class__.__name__
y.__module__
type(y).__mro__[0].__name__
super(torch.Tensor,y).__class__.__name__
callable(y)
y is y
weakref.ref(y)() is y
sys.getrefcount(y)>0
gc.is_tracked(y) in (True,False)
inspect.isclass(y)
vars(y)
y.__dict__
setattr(y,'foo',1), y.foo
hasattr(y,'nope')
getattr(y,'nope',3)
y.mT if y.dim()>1 else 0
torch.overrides.is_tensor_like(y)
torch.overrides.has_torch_function((y,))
torch.get_default_dtype()
torch.is_floating_point(y)
torch.is_nonzero(y[0])
torch.broadcast_shapes(y.shape,(1,))
torch.Size([1,2])+y.shape
y.size()==a.size()
y.shape.numel()
torch.nn.Parameter(y)
torch.nn.Parameter(y.detach()).requires_grad
torch.nn.Buffer(y)
isinstance(y,torch.nn.Parameter)
isinstance(torch.nn.Parameter(a.clone()),torch.nn.Parameter)
torch.nn.utils.parameters_to_vector([y,a])
torch.einsum('i,i->',y,a)
torch.compiler.is_compiling() in (True,False)
torch.jit.is_tracing()
torch.jit.is_scripting()
torch.onnx.is_in_onnx_export()
torch._C._get_tracing_state()
torch.utils._pytree.tree_map(lambda t:t+1,{'a':[y]})
torch.manual_seed(3).initial_seed()
torch.initial_seed()>=0
torch.get_rng_state().shape
torch.random.get_rng_state().shape
torch.get_num_threads()
y.new(3).shape, y.new(2, 3).shape, y.new(a.shape).shape
a.new_tensor([3]).dtype, y.new_tensor(a), y.new_tensor([1], dtype=torch.int64)
y.to_sparse().to_dense() + 1
torch.sparse.mm(y.outer(a).to_sparse(), a[:, None])
y.to_sparse().coalesce().indices()
isinstance(y, (int, torch.DoubleTensor)), isinstance(a, (torch.LongTensor, torch.FloatTensor))
isinstance(a.long(), torch.LongTensor), isinstance(y.to_sparse(), torch.FloatTensor)
copy.deepcopy([y, y])[0], copy.deepcopy(a)
y.untyped_storage().nbytes(), y.untyped_storage().size()
torch.quantize_per_tensor(y, 0.1, 10, torch.quint8).dequantize()
torch.ops.aten.add(y, a), torch.ops.aten.add.Tensor(y, a)
""".strip().split("\n")


def outcome(f):
    a = torch.tensor([1.5, -2.0, 0.25, 3.0])
    try:
        result = f(a)
    except Exception as e:
        result = type(e).__name__, str(e)
    return [numpy_free(result), a]


def numpy_free(value):
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(map(numpy_free, value))
    if type(value).__module__ == "numpy":
        return "numpy", type(value).__name__, torch.from_numpy(value.copy()) if value.shape else value.item()
    return value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", ROWS)
def test_expression(text):
    space = {}
    exec(f"{HEADER}\ndef f(a):\n    y = a + 1\n    return {text}\n", space)
    expected = outcome(space["f"])
    cresset.reset()
    compiled = cresset.compile(space["f"])
    for _ in range(3):
        assert_same(outcome(compiled), expected)


@pytest.mark.parametrize(
    "ask",
    [
        "t.tolist()",
        "t.numpy().sum().item()",
        "t.data_ptr() == address",
        "list(t.numpy())[0].item()",
        "t.untyped_storage().nbytes()",
    ],
)
@pytest.mark.parametrize("holder", ["namespace", "object", "list", "global", "closure", "module"])
def test_memory_of_a_tensor_in_state(ask, holder):
    """A tensor without any other use in the call is read, and changes between calls."""

    def program(f):
        t = torch.tensor([1.0, 2.0])
        space = types.SimpleNamespace(t=t) if holder != "module" else torch.nn.Module()
        if holder == "module":
            space.register_buffer("t", t)
        holders = {"namespace": space, "module": space, "object": Holder(t), "list": [t]}
        read = {"list": "w[0]", "global": "GLOBAL", "closure": "c"}.get(holder, "w.t")
        names = {"address": t.data_ptr(), "GLOBAL": t}
        exec(f"def make(c):\n    def f(w, x):\n        t = {read}\n        return x + 1, {ask}\n    return f\n", names)
        run, out = f(names["make"](t)), []
        for step in range(4):
            out.append(run(holders.get(holder), torch.ones(2)))
            t.mul_(2) if step else None
        return out

    assert_same(program(cresset.compile), program(lambda f: f))


class Holder:
    def __init__(self, t):
        self.t = t


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "TransformerDecoderLayer", "MultiheadAttention"])
def test_modules_with_results_left_out(kind):
    """Operators omit results without a reader; some write views of themselves."""
    torch.manual_seed(0)
    x, memory = torch.randn(3, 5, 16), torch.randn(3, 4, 16)
    if kind in ("LSTM", "GRU", "RNN"):
        module, args = getattr(torch.nn, kind)(16, 8, 2, batch_first=True, bidirectional=True), (x,)
    elif kind == "MultiheadAttention":
        module, args = torch.nn.MultiheadAttention(16, 2, batch_first=True), (x, x, x, None, False)
    else:
        module, args = torch.nn.TransformerDecoderLayer(16, 2, 32, batch_first=True), (x, memory)
    module.eval()
    cresset.reset()
    compiled = cresset.compile(module)
    with torch.no_grad():
        for _ in range(3):
            assert_same(compiled(*args), module(*args), tolerance=1e-5)
    assert cresset.stats()["eager_calls"] == 0 and cresset.stats()["graphs"] >= 1
