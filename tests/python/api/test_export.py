"""``cresset.export``: values, structure, state and errors of exported programs, beside eager mode."""

from __future__ import annotations

import copy
import json

import pytest
import torch

import cresset

OUTSIDE = torch.full((4,), 2.0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, scale=None):
        self.calls.add_(1)
        y = self.norm(self.linear(x["a"]))
        return {"y": y.relu() if scale is None else y * scale, "rows": x["a"].shape[0], "parts": (y.sum(), None)}


def test_a_module_at_any_size_with_its_state():
    net = Net()
    state = copy.deepcopy(net.state_dict())
    example = torch.randn(5, 4)
    program = cresset.export(net, ({"a": example},))
    torch.testing.assert_close(dict(net.state_dict()), dict(state), rtol=0, atol=0)
    torch.testing.assert_close(dict(program.state_dict), dict(state), rtol=0, atol=0)
    for rows in (5, 7, 3):
        x = torch.randn(rows, 4)
        with torch.no_grad():
            expected = net({"a": x})
        got = program({"a": x})
        assert got["rows"] == rows and got["parts"][1] is None and not got["y"].requires_grad
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(dict(program.state_dict), dict(net.state_dict()))
    assert int(program.state_dict["calls"]) == 3
    torch.testing.assert_close(program.module()({"a": x})["y"], got["y"])


def test_the_signature_and_the_structures():
    program = cresset.export(Net(), ({"a": torch.randn(5, 4)},), {"scale": torch.ones(3)})
    signature = program.signature
    assert signature.parameters == ("linear.weight", "linear.bias", "norm.weight", "norm.bias")
    assert set(signature.buffers) == {"calls", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    assert set(signature.buffer_mutations) == set(signature.buffers) and signature.user_input_mutations == ()
    assert signature.user_inputs == ("args[0]['a']", "kwargs['scale']")
    assert signature.outputs[:2] == ("result['y']", "result['rows']")
    assert isinstance(json.loads(program.input_structure)[0], int) and json.loads(program.output_structure)
    assert 'input "linear.weight"' in str(program.graph)
    assert any(node.op == "aten::addmm" and "test_export.py" in node.location for node in program.graph)


def test_gradients_at_the_level_for_training():
    net = Net()
    program = cresset.export(net, ({"a": torch.randn(5, 4)},), level="training")
    x = torch.randn(6, 4)
    program({"a": x})["y"].square().sum().backward()
    net({"a": x})["y"].square().sum().backward()
    for name, parameter in net.named_parameters():
        torch.testing.assert_close(program.state_dict[name].grad, parameter.grad)


def test_a_write_to_an_argument():
    x = torch.zeros(3)
    program = cresset.export(lambda x: x.add_(1) * 2, (x,))
    assert program.signature.user_input_mutations == ("args[0]",) and torch.equal(x, torch.zeros(3))
    y = torch.zeros(5)
    assert torch.equal(program(y), torch.full((5,), 2.0)) and torch.equal(y, torch.ones(5))


def test_later_changes_of_the_module_have_no_effect():
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout()).eval()
    x = torch.randn(4, 3)
    expected, program = net(x), cresset.export(net, (x,))
    net.train()
    with torch.no_grad():
        net[0].weight.zero_()
    torch.testing.assert_close(program(x), expected.detach())


def test_replaced_state():
    net = torch.nn.Linear(3, 3)
    x = torch.randn(2, 3)
    program = cresset.export(net, (x,))
    program(x)
    weight = torch.nn.Parameter(torch.zeros(3, 3))
    program.state_dict["weight"] = weight
    torch.testing.assert_close(program(x), net.bias.detach().expand(2, 3))
    with torch.no_grad():
        weight.fill_(1)
    torch.testing.assert_close(program(x), (x.sum(1, keepdim=True) + net.bias).detach())
    program.state_dict["weight"] = torch.nn.Parameter(torch.zeros(3, 4))
    with pytest.raises(cresset.ExportError, match=r"weight.size\(1\) == args"):
        program(x)


class Unknown:
    def __init__(self, value):
        self.value = value


def reads_a_global(x):
    return x * OUTSIDE


class Assigns(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count = self.count + 1
        return x + self.count


def returns_a_global(x):
    return {"y": x + 1, "outside": OUTSIDE}


class ReadsAnAttribute(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.plain = torch.nn.Parameter(torch.ones(4)), torch.ones(4)

    def forward(self, x):
        return x * self.weight + self.plain


def breaks(x):
    return x + 1 if x.sum() > 0 else x - 1


@pytest.mark.parametrize(
    ("model", "args", "words"),
    [
        (lambda x: x["b"].value + 1, ({"b": Unknown(torch.ones(2))},), ["args[0]['b']", "Unknown", "Register"]),
        (lambda x: [x, {"u": Unknown(1)}], (torch.ones(2),), ["result[1]['u']", "Unknown"]),
        (reads_a_global, (torch.ones(4),), ["OUTSIDE", "test_export.py", "argument", "buffer"]),
        (returns_a_global, (torch.ones(4),), ["result['outside']", "argument", "buffer"]),
        (ReadsAnAttribute(), (torch.ones(4),), ["['plain'] (by", "test_export.py", "buffer"]),
        (torch.nn.LSTM(4, 3), (torch.ones(5, 2, 4),), ["second call", "Python state", "buffers"]),
        (Assigns(), (torch.ones(2),), ["count", "in place"]),
        (breaks, (torch.ones(2),), ["captured whole", "test_export.py"]),
    ],
)
def test_errors_at_export(model, args, words):
    with pytest.raises(cresset.ExportError) as error:
        cresset.export(model, args)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((torch.ones(3, 4, dtype=torch.float64),), {}, ["args[0]", "dtype", "float64", "float32"]),
        ((torch.ones(4),), {}, ["args[0]", "number of dimensions"]),
        ((3,), {}, ["args[0]", "int", "Tensor"]),
        (([torch.ones(3, 4)],), {}, ["structure"]),
        ((torch.ones(3, 4),), {"y": 1}, ["keyword arguments", "y"]),
        ((torch.ones(3, 5),), {}, ["args[0].size(1) == 4", "test_export.py"]),
    ],
)
def test_errors_at_a_call(args, kwargs, words):
    program = cresset.export(lambda x: x + torch.arange(4.0), (torch.ones(3, 4),))
    with pytest.raises(cresset.ExportError) as error:
        program(*args, **kwargs)
    for word in words:
        assert word in str(error.value)
    assert torch.equal(program(torch.zeros(2, 4)), torch.arange(4.0).expand(2, 4))


def test_numbers_and_data_dependent_sizes():
    program = cresset.export(lambda x, n, p: x[x > 0] * n + p, (torch.randn(4), 3, 0.5))
    x = torch.tensor([1.0, -1.0, 2.0])
    assert torch.equal(program(x, 5, 0.5), torch.tensor([5.5, 10.5]))
    with pytest.raises(cresset.ExportError, match=r"args\[2\] is 1.5, and was 0.5 at export"):
        program(x, 3, 1.5)


def test_one_tensor_as_several_arguments():
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    x, y = torch.randn(2, 5, 4), torch.randn(3, 7, 4)
    program = cresset.export(attention, (x, x, x), level="training")
    torch.testing.assert_close(program(y, y, y), attention(y, y, y))


def test_the_generator_is_as_before_and_calls_draw_as_eager():
    dropout, x = torch.nn.Dropout(0.5), torch.ones(64)
    torch.manual_seed(0)
    program = cresset.export(dropout, (x,))
    got = program(x)
    torch.manual_seed(0)
    assert torch.equal(got, dropout(x))


def test_dropped_code_is_not_captured_again():
    program = cresset.export(lambda x: x + 1, (torch.ones(3),))
    cresset._C.clear_cache_entries(program._run)
    with pytest.raises(cresset.ExportError, match="export the function again"):
        program(torch.ones(3))


def test_a_reset_keeps_the_program():
    program = cresset.export(lambda x: x + 1, (torch.ones(3),))
    cresset.reset()
    assert torch.equal(program(torch.ones(4)), torch.full((4,), 2.0))


def test_wrong_arguments_of_export():
    with pytest.raises(TypeError, match="args must be a tuple"):
        cresset.export(lambda x: x, [torch.ones(1)])
    with pytest.raises(TypeError, match="function or a module"):
        cresset.export(3)
    with pytest.raises(ValueError, match="unknown level"):
        cresset.export(lambda x: x, (torch.ones(1),), level="both")


def adds_rows(x, y):
    return x + y["b"]


ARGS = (torch.ones(4, 3), {"b": torch.ones(4, 3)})


def test_dynamic_shapes():
    batch = torch.export.Dim("batch", min=2, max=8)
    program = cresset.export(adds_rows, ARGS, dynamic_shapes={"x": {0: batch}, "y": {"b": (batch, None)}})
    assert program(torch.ones(8, 3), {"b": torch.ones(8, 3)}).shape == (8, 3)
    for sizes in ((9, 3), (1, 3), (4, 5)):
        with pytest.raises(cresset.ExportError, match="condition of the exported program"):
            program(torch.ones(sizes), {"b": torch.ones(sizes)})
    with pytest.raises(cresset.ExportError, match=r"args.0..size.0. is 4 and .* is 5; .*'batch'"):
        program(torch.ones(4, 3), {"b": torch.ones(5, 3)})


def test_hints_of_dynamic_shapes():
    hints = torch.export.Dim
    spec = ((hints.DYNAMIC, hints.AUTO), {"b": {0: hints.AUTO, 1: hints.AUTO}})
    program = cresset.export(adds_rows, ARGS, dynamic_shapes=spec)
    assert program(torch.ones(5, 7), {"b": torch.ones(5, 7)}).shape == (5, 7)
    static = cresset.export(adds_rows, ARGS, dynamic_shapes=((hints.STATIC, 3), None))
    with pytest.raises(cresset.ExportError, match="condition"):
        static(torch.ones(5, 3), {"b": torch.ones(5, 3)})


def test_dynamic_shapes_that_cannot_be_kept():
    dims = [torch.export.Dim(name, min=2, max=8) for name in "ab"]
    with pytest.raises(cresset.ExportError, match=r"cannot be kept(.|\n)*test_export.py(.|\n)*suggested fix"):
        cresset.export(adds_rows, ARGS, dynamic_shapes=((dims[0], None), {"b": (dims[1], None)}))
    with pytest.raises(cresset.ExportError, match=r"cannot be kept(.|\n)*test_export.py(.|\n)*mark_static"):
        cresset.export(lambda x: x + torch.ones(4, 1), (ARGS[0],), dynamic_shapes=({0: dims[0]},))


@pytest.mark.parametrize(
    "spec",
    [{"x": None}, (None,), 3, ({7: None}, None), ((None,), None), (None, {"c": None}), ((5, None), None)],
)
def test_wrong_dynamic_shapes(spec):
    with pytest.raises(ValueError, match="dynamic_shapes"):
        cresset.export(adds_rows, ARGS, dynamic_shapes=spec)
