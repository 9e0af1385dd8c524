"""Numbers, dtypes and strides of operators on rare arguments: large counts, large offsets, integers, empty tensors,
missing dimensions; and memory formats for a wrong rank."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same_call

import cresset

SPREADS = {
    "std": lambda x: x.std(),
    "var": lambda x: x.var(),
    "std of rows": lambda x: x.std(-1),
    "var of columns": lambda x: x.var(0, keepdim=True),
    "population": lambda x: torch.var(x, -1, correction=0),
    "var_mean": lambda x: torch.var_mean(x, -1),
    "std_mean": lambda x: torch.std_mean(x),
    "standardized": lambda x: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", SPREADS)
@torch.no_grad()
def test_spreads_are_as_accurate_as_eagers(name, dtype):
    """Eager adds in double."""
    f = SPREADS[name]
    compiled = cresset.compile(f)
    for shape, offset in (((1000, 100), 1e4), ((3, 40000), 0.0), ((64, 2000), 1e3), ((300000, 1), -2e3), ((7, 5), 1.0)):
        x = (torch.randn(shape, dtype=torch.float64) + offset).to(dtype)
        exact, expected, got = (
            [t.double() for t in (r if isinstance(r, tuple) else (r,))] for r in (f(x.double()), f(x), compiled(x))
        )
        for right, its, mine in zip(exact, expected, got):
            unit = torch.finfo(dtype).eps * right.abs().clamp_min(torch.finfo(dtype).tiny)
            assert torch.equal(mine.isfinite(), its.isfinite())
            finite = mine.isfinite() & right.isfinite()  # in 16 bits the spread may be 0 in double alone
            if not finite.any():
                continue
            worst = (its - right).abs()[finite].max()  # of none is it further off than eager of any
            if name == "standardized":
                worst = worst * 2  # both add the mean in the dtype, in another order
            assert ((mine - right).abs() <= torch.maximum(worst, unit))[finite].all()


EDGES = {
    "2 ** x": lambda x: torch.pow(2, x),
    "2 ** x.t()": lambda x: torch.pow(2, x.t()),
    "1 ** x.t()": lambda x: torch.pow(1, x.t()),
    "x.t() ** x.t()": lambda x: x.t() ** x.t(),
    "x.t() ** 3": lambda x: x.t() ** 3,
    "3 ** x.mT + 1": lambda x: 3**x.mT + 1,
    "one_hot": lambda x: F.one_hot(x.long(), 6),
    "one_hot transposed": lambda x: F.one_hot(x.t().long(), 6),
    "one_hot of what was computed": lambda x: F.one_hot((x.t() * 1).long().clamp(0, 3), 4),
    "one_hot of data": lambda x: F.one_hot(x.long()),
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(x.shape[1]), torch.ones(x.shape[1])),
    "batch_norm in training": lambda x: F.batch_norm(x, None, None, training=True),
    "batch_norm of whole statistics": lambda x: F.batch_norm(
        x, torch.zeros(x.shape[1]).long(), torch.ones(x.shape[1]).long()
    ),
    "batch_norm of doubles": lambda x: F.batch_norm(x.double(), torch.zeros(x.shape[1]), torch.ones(x.shape[1])),
    # A great epsilon: of a constant channel, x * scale + shift leaves eager's rounding instead of 0.
    "native_batch_norm": lambda x: torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "group_norm": lambda x: F.group_norm(x, 1),
    "softmax": lambda x: x.softmax(-1),
    "mean": lambda x: x.mean(),
    "std": lambda x: x.std(),
    "linear": lambda x: F.linear(x, x),
    "prelu": lambda x: F.prelu(x, torch.ones(1)),
    "gelu": lambda x: F.gelu(x),
    "cross_entropy": lambda x: F.cross_entropy(x, x[:, 0].long() * 0),
    "norm": lambda x: x.norm(),
    "conv1d": lambda x: F.conv1d(x[None], x[:, :, None]),
    "log_sigmoid": lambda x: F.logsigmoid(x.t()),
    "cumprod": lambda x: x.t().cumprod(0),
    "floor_divide": lambda x: x.t() // 2,
    "float_power": lambda x: torch.float_power(x.t(), 2),
    "dropout": lambda x: F.dropout(x.t(), 0.0),
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32, torch.bool, torch.uint8])
@pytest.mark.parametrize("name", EDGES)
@torch.no_grad()
def test_dtypes_that_operators_seldom_see(name, dtype):
    compiled = cresset.compile(EDGES[name])
    for rows, columns in ((2, 3), (3, 3), (1, 4), (4, 1), (0, 3)):
        x = torch.arange(rows * columns).view(rows, columns).remainder(5).to(dtype)
        got = assert_same_call(EDGES[name], compiled, x, elementwise=True)
        if isinstance(got, torch.Tensor):
            assert got.stride() == EDGES[name](x).stride(), (rows, columns)


FORMATS = {
    "to": lambda x, f: x.to(memory_format=f),
    "to of what was computed": lambda x, f: (x + 1).to(memory_format=f),
    "to another dtype": lambda x, f: x.to(torch.float64, memory_format=f),
    "contiguous": lambda x, f: x.contiguous(memory_format=f),
    "clone": lambda x, f: x.clone(memory_format=f),
    "empty_like": lambda x, f: torch.empty_like(x, memory_format=f).fill_(0),
    "zeros_like": lambda x, f: torch.zeros_like(x, memory_format=f),
    "rand_like": lambda x, f: torch.rand_like(x, memory_format=f) * 0,
    "empty": lambda x, f: torch.empty(x.shape, memory_format=f).fill_(0),
    "double": lambda x, f: x.double(memory_format=f),
    "module": lambda x, f: torch.nn.Identity().to(memory_format=f)(x),
    "is_contiguous": lambda x, f: x.is_contiguous(memory_format=f),
}


@pytest.mark.parametrize("name", FORMATS)
@torch.no_grad()
def test_formats_of_another_rank(name):
    for wanted in (torch.channels_last, torch.channels_last_3d, torch.contiguous_format, torch.preserve_format):
        f = lambda x, wanted=wanted: FORMATS[name](x, wanted)  # noqa: E731
        compiled = cresset.compile(f)
        for sizes in ((3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 5, 2), (3, 3, 4)):
            x = torch.randn(sizes)
            got = assert_same_call(f, compiled, x)
            if isinstance(got, torch.Tensor):
                assert got.stride() == f(x).stride()


def attention(q, k, v, **options):
    return F.scaled_dot_product_attention(q, k, v, **options)


@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 2.0}], ids=str)
def test_attention_over_nothing(options, wants):
    """Heads without dimensions, no queries, no keys, no batch."""
    compiled = cresset.compile(lambda q, k, v: attention(q, k, v, **options))
    for q, k in (((1, 2, 3, 4), (1, 2, 5, 4)), ((1, 2, 3, 0), (1, 2, 5, 0)), ((2, 2, 0, 4), (2, 2, 5, 4)), ((1, 2, 3, 4), (1, 2, 0, 4)),
                 ((0, 2, 3, 4), (0, 2, 5, 4)), ((2, 0, 3, 4), (2, 0, 5, 4)), ((1, 1, 1, 0), (1, 1, 1, 0)), ((3, 2, 3, 4), (3, 2, 3, 4))):  # fmt: skip
        found = []
        for call in (compiled.__wrapped__, compiled):
            torch.manual_seed(0)
            given = [torch.randn(s).requires_grad_(wants) for s in (q, k, k)]
            out = call(*given)
            if wants:
                out.sum().backward()
            found.append((out.detach(), out.stride(), [g.grad for g in given]))
        assert found[1][1] == found[0][1], (q, k)
        torch.testing.assert_close(found[1][0], found[0][0], equal_nan=True)
        torch.testing.assert_close(found[1][2], found[0][2], equal_nan=True)


EMPTY = """x.sum() x.sum(0) x.sum(1) x.mean(0) x.mean() x.std() x.var(0) x.prod() x.cumsum(0) x+1 x.t()+1 x.reshape(3,0) x.view(0,3,1)
    torch.cat([x,x]) torch.stack([x,x]) x.softmax(0) x.softmax(1) x.sort(0)[0] x@x.t() x.t()@x x.norm() x.all() x.any() x.nansum()
    x.logsumexp(0) F.pad(x,(1,1)) x.repeat(2,2) x.unfold(1,2,1) x.expand(2,0,3) x.flatten() F.linear(x,torch.ones(2,3)) F.layer_norm(x,(3,))
    F.mse_loss(x,x) F.cross_entropy(x,torch.zeros(0,dtype=torch.int64)) x.tril() x.diagonal() torch.linalg.norm(x) x.unique() x.nonzero()
    x.topk(0,1)[0] x.flip(0) x.roll(1,0) x.clone() x.contiguous() x.mT.contiguous() x.to(torch.float64) x.masked_select(x>0) torch.where(x>0,x,x)
    torch.zeros(0,4).t()+1 torch.outer(x[:,0],x[:,0]) F.embedding(torch.zeros(0,2,dtype=torch.int64),torch.ones(4,3)) F.normalize(x)
    F.one_hot(x.long(),3) x.unsqueeze(0).mT.contiguous() x.unsqueeze(0).mT+1 torch.einsum('ij,kj->ik',x,x) torch.cdist(x,x) F.dropout(x,0.5)
    x.movedim(0,-1) x.mT.clone() x[:,None].permute(2,1,0)*2 x.unsqueeze(1).expand(0,4,3)+1 torch.zeros_like(x.mT) x.half() x>0 x.amax(1)
    x.reshape(-1,3) x.reshape(0,1,3) x.unflatten(1,(1,3)) x.split(1) x.chunk(2) x.unbind(1) x[0:0] x[:,0:0] x[:,:1].reshape(-1) x.mT.flatten()"""


@pytest.mark.parametrize("text", sorted(set(EMPTY.split())))
@torch.no_grad()
def test_what_has_no_elements(text):
    f = eval("lambda x: " + text)
    compiled = cresset.compile(f)
    for sizes in ((0, 3), (0, 3), (2, 3), (0, 3)):
        x = torch.randn(sizes)
        got = assert_same_call(f, compiled, x)
        if isinstance(got, torch.Tensor):
            assert got.stride() == f(x).stride()
