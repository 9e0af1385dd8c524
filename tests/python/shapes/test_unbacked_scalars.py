"""Unbacked scalars where C code or a string needs their values; sizes of tensors without any elements."""

import operator

import pytest
import torch

import cresset

ITEMS = [10, 20, 30, 40]
X = torch.arange(12.0).reshape(3, 4) * 0.1 - 0.4

ASKED = {
    "index_of_a_list": lambda x: ITEMS[x[0].argmax()],
    "index_of_a_text": lambda x: "abcd"[x[0].argmax()],
    "end_of_a_range": lambda x: list(range(x[0].argmax())),
    "operator_index": lambda x: operator.index(x[0].argmax()),
    "two_of_them": lambda x: ITEMS[x.argmax() // 4] / 3 + ITEMS[(x.argmax() % 3).item()],
    "text_of_a_decision": lambda x: (f"{x.sum().item() > 0}", str(x.sum().item() < 0), f"{x.argmax().item() > 3}"),
    "text_of_a_float": lambda x: (f"{x.min().item()}", repr(x.max().item()), f"{x.max().item():.3f}"),
    "text_of_a_boolean": lambda x: f"{(x > 9).any()} {(x > 0).any().item()}",
    "list_as_an_index": lambda x: x[torch.arange(x.shape[0]).flip(0).tolist()],
}


@pytest.mark.parametrize("name", ASKED)
def test_values_that_are_asked_for(name):
    f = ASKED[name]
    compiled = cresset.compile(f, options={"capture_scalar_outputs": True})
    for x in (X, X.flip(1), X, -X):
        got, wanted = compiled(x), f(x)
        if isinstance(wanted, torch.Tensor):
            assert torch.equal(got, wanted)
        else:
            assert got == wanted


def test_a_list_of_symbols_as_an_index_leaves_memory_alone():
    """A list being filled at a graph break is not given to other code."""

    def f(x):
        return x[torch.arange(x.shape[0]).tolist()]

    with pytest.raises(cresset.CaptureError, match="a decision needs the value"):
        cresset.compile(f, fullgraph=True)(X)
    assert torch.equal(cresset.compile(f)(X), X)


def test_check_tensor_all_is_no_break():
    def f(x):
        torch._check_tensor_all(x > 0)
        return x.log()

    compiled = cresset.compile(f, fullgraph=True)
    for n in (3, 5):
        x = torch.rand(n) + 0.1
        torch.testing.assert_close(compiled(x), f(x))
    with pytest.raises(RuntimeError, match="Expected cond to be True, but got False"):
        compiled(torch.zeros(4))


def test_item_of_a_boolean_stays_a_symbol_under_fullgraph():
    compiled = cresset.compile(lambda x: ((x > 0).all().item(), (x > 0).any().item()), fullgraph=True)
    assert compiled(X) == (False, True) and compiled(X + 1) == (True, True) and compiled(X - 9) == (False, False)
    with pytest.raises(cresset.CaptureError, match="a decision needs the value"):
        cresset.compile(lambda x: x + 1 if (x > 0).all().item() else x, fullgraph=True)(X)


WITHOUT_SIZES = {
    "size": lambda x: x.sum().size(0),
    "size_from_the_end": lambda x: x.sum().size(-1),
    "stride": lambda x: x.sum().stride(1),
    "shape": lambda x: x.sum().shape[0],
    "first": lambda x: x.sum()[0],
    "far": lambda x: x.sum()[100],
    "last": lambda x: (x.sum() * 2)[-9],
    "len": lambda x: len(x.sum()),
    "take_along": lambda x: torch.take_along_dim(x.sum(), torch.tensor(0), 0).shape,
}


@pytest.mark.parametrize("name", WITHOUT_SIZES)
def test_tensors_without_sizes(name):
    def outcome(f):
        try:
            return f(X)
        except (IndexError, TypeError, RuntimeError) as error:
            return type(error), str(error)

    f = WITHOUT_SIZES[name]
    assert outcome(cresset.compile(f)) == outcome(f)
