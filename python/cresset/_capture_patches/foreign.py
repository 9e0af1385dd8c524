"""Symbolic numbers of others: lengths of nested tensors, those of torch.compile. They answer as if cresset was not there.

What `integers`, `floats` and `__init__` give torch's classes is for the numbers of captures. To be imported before these.
"""

import types

import torch

CLASSES = (torch.SymInt, torch.SymFloat, torch.SymBool)
_OURS = torch._C._SymNode  # nodes made in C++; the others' are objects of Python classes
_before = {cls: dict(vars(cls)) for cls in CLASSES}


def is_foreign(number):
    return type(number.node) is not _OURS


def _as_it_was(cls, name):
    if name in _before[cls]:
        return _before[cls][name]
    inherited = getattr(object, name, None)
    if inherited is not None:
        return inherited
    if name.startswith("__"):
        return lambda self, *args: NotImplemented

    def absent(self, *args, **kwargs):
        raise AttributeError(f"'{cls.__name__}' object has no attribute '{name}'")

    return absent


def for_ours(cls, name, method):
    """The method for numbers of captures, and what others' had in its place."""
    if isinstance(method, property):
        return property(for_ours(cls, name, method.fget))
    if not isinstance(method, types.FunctionType):  # operators in C, which look at the node themselves; a class's name
        return method
    theirs = _as_it_was(cls, name)
    theirs = theirs.fget if isinstance(theirs, property) else theirs

    def chosen(self, *args, **kwargs):
        return (method if type(self.node) is _OURS else theirs)(self, *args, **kwargs)

    chosen.__name__, chosen.__qualname__ = method.__name__, method.__qualname__
    return chosen


def leave_alone():
    """To be called once the classes have all their methods."""
    for cls, before in _before.items():
        for name, method in list(vars(cls).items()):
            if before.get(name) is not method:
                setattr(cls, name, for_ours(cls, name, method))
