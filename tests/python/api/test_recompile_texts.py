"""Texts of recompiles: the nearest cache entry, the path to the value that differs, both values. Golden: a change of a
text is a change of a row here."""

from __future__ import annotations

import torch

import cresset


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.drop, self.scale = torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), "none"

    def forward(self, x):
        y = self.drop(self.linear(x))
        return y if self.scale == "none" else y * 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(3))
        self.settings, self._seen = {"mode": "a"}, "nothing"

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x + len(self._seen) if self.settings["mode"] == "a" else x - 1


def net():
    return Net().eval()


def recompiles(function, *calls):
    """The recompiles of these calls, without the name of the function; between them, functions change the state."""
    cresset.reset()
    compiled = cresset.compile(function)
    with torch.no_grad():
        for call in calls:
            if callable(call):
                call()
            else:
                compiled(*call[0], **(call[1] if len(call) > 1 else {}))
    return [line.partition(": ")[2] for line in cresset.stats()["recompiles"]]


def arrange(x, factor=1, *, table=None):
    return x * factor + (0 if table is None else len(table))


X = torch.arange(12.0).reshape(3, 4)
MODE = "fast"


def reads_global(x):
    return x + 1 if MODE == "fast" else x - 1


def of_module(change):
    """The text of a recompile after a change of a module."""
    module = net()
    (line,) = recompiles(module, ((X,),), lambda: change(module), ((X,),))
    return line


def of_calls(*calls, function=arrange):
    (line,) = recompiles(function, *calls)
    return line


def transposed_weight(module):
    module.layers[0].linear.weight = torch.nn.Parameter(torch.randn(4, 4).t())


# ---------------------------------------------------------------------------------------------- state


def test_a_part_of_a_module():
    assert of_module(lambda m: m.layers[1].drop.train()) == "model.layers[1].drop.training: False -> True"


def test_train():
    assert of_module(lambda m: m.train()) == "model.layers[0].drop.training: False -> True"


def test_an_attribute():
    assert of_module(lambda m: setattr(m.layers[2], "scale", "some")) == "model.layers[2].scale: 'none' -> 'some'"


def test_an_item_of_a_dict():
    assert of_module(lambda m: m.settings.update(mode="b")) == "model.settings['mode']: 'a' -> 'b'"


def test_a_parameter_and_a_module_replaced():
    assert of_module(transposed_weight) == "model.layers[0].linear.weight: a Parameter -> another Parameter"
    replaced = of_module(lambda m: m.layers.__setitem__(0, torch.nn.Linear(4, 4)))
    assert replaced == "model.layers[0]: a Layer -> another Linear"


def test_books_of_a_class_are_named_where_nothing_else_has_changed():
    def both(module):
        module._seen = "much"
        module.layers[2].scale = "some"

    assert of_module(lambda m: setattr(m, "_seen", "much")) == "model._seen: 'nothing' -> 'much'"
    assert of_module(both) == "model.layers[2].scale: 'none' -> 'some'"


def test_a_global(monkeypatch):
    line = of_calls(((X,),), lambda: monkeypatch.setitem(globals(), "MODE", "slow"), ((X,),), function=reads_global)
    assert line == f"{__name__}.MODE: 'fast' -> 'slow'"


def test_variables_of_a_closure():
    items, mode = [1, 2], "up"

    def function(x):
        return x * items[0] + len(items) if mode == "up" else x

    def turn():
        nonlocal mode
        mode = "down"

    assert of_calls(((X,),), lambda: items.append(3), ((X,),), function=function) == "items: 2 items -> 3"
    assert of_calls(((X,),), turn, ((X,),), function=function) == "mode: 'up' -> 'down'"


def test_the_object_of_a_method():
    class Part:
        kind = "a"

        def __init__(self):
            self.inner = None
            self.word = "a"

        def run(self, x):
            return x + 1 if self.inner.word == "a" else x

    whole = Part()
    whole.inner = Part()
    line = of_calls(((X,),), lambda: setattr(whole.inner, "word", "b"), ((X,),), function=whole.run)
    assert line == "self.inner.word: 'a' -> 'b'"


# ---------------------------------------------------------------------------------------------- arguments


def test_a_dtype():
    assert of_calls(((X,),), ((X.double(),),)) == "argument x: dtype Float -> Double"


def test_strides():
    assert of_calls(((X,),), ((torch.randn(4, 3).t(),),)) == "argument x: strides (4, 1) -> (1, 3)"


def test_a_rank():
    assert of_calls(((X,),), ((X[0],),)) == "argument x: sizes (any, any) -> (4,)"


def test_numbers():
    lines = recompiles(arrange, ((X, 2),), ((X, 2.5),), ((X, True),))
    assert lines == ["argument factor: an int -> float", "argument factor: 2.5 -> True"]


def test_a_constant():
    line = of_calls(((X, "up"),), ((X, "down"),), function=lambda x, how: x if how == "up" else -x)
    assert line == "argument how: 'up' -> 'down'"


def test_keys():
    line = of_calls(((X,), {"table": {"a": 1}}), ((X,), {"table": {"a": 1, "b": 2}}))
    assert line == "argument table: keys ('a') -> ('a', 'b')"


def test_the_number_of_arguments():
    assert of_calls(((X,),), ((X,), {"table": {}})) == "keyword arguments: keys () -> ('table')"
    assert of_calls(((X,),), ((X, 2),)) == "positional arguments: 1 items -> 2"


def test_parameters_of_a_module():
    assert of_calls(((X,),), ((X.double(),),), function=torch.nn.ReLU()) == "argument input: dtype Float -> Double"


# ---------------------------------------------------------------------------------------------- sizes, modes, entries


def test_a_size_has_its_line():
    def function(x):
        return x[:4] if x.shape[0] > 4 else x + 1

    line = of_calls(((torch.ones(3),),), ((torch.ones(7),),), function=function)
    place = f"{__file__}:{function.__code__.co_firstlineno + 1} in "
    assert line.startswith(f"expected args[0].size(0) <= 4, {place}") and line.endswith("got args[0].size(0) = 7")


def test_the_grad_mode():
    compiled = cresset.compile(arrange)
    cresset.reset()
    with torch.no_grad():
        compiled(X)
    compiled(X)
    compiled(X.clone().requires_grad_())
    assert cresset.stats()["recompiles"] == [
        "arrange: grad mode is now on",
        "arrange: argument x: requires_grad False -> True",
    ]


def test_the_nearest_entry_is_compared():
    """The last call differs from the first entry in the number of arguments, and from the second in a dtype alone."""
    first, second = ((X,),), ((X.double(), 2.5),)
    lines = recompiles(arrange, first, second, first, ((X.half(), 2.5),))
    assert lines == ["positional arguments: 1 items -> 2", "argument x: dtype Double -> Half"]


def test_a_module_is_named_by_its_class():
    module = net()
    recompiles(module, ((X,),), module.train, ((X,),))
    assert cresset.stats()["recompiles"][0].startswith("Net: model.layers")
