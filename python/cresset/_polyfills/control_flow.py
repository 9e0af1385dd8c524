"""torch.cond and torch.while_loop during a capture.

They are operators of the graph where their branches and bodies can be recorded; else the host decides, as for `if` and
`while`. torch's associative_scan is a loop of these.
"""

import types

from torch.utils import _pytree as pytree

from .. import _C
from .._genuine import attribute, capability, module, own, torch

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_NO_GRADIENTS = "gradients are wanted of what it gives"
_PLAIN = (int, float, bool, str, type(None))


def _wants_gradients(leaves):
    return torch.is_grad_enabled() and any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves)


def _record(function, operands):
    """(the subgraph of a call, its results except tensors, their structure); None when the call cannot be recorded.

    Only the recorded operators remain of the call: side effects on older objects raise before they happen. Subgraphs
    have no derivative. So the host decides where gradients are wanted, also for tensors in the function's closure.
    """
    if not _C.begin_subgraph((function, operands)):
        return None
    try:
        leaves, structure = pytree.tree_flatten(function(*operands))
    except Exception as error:
        _C.abandon_subgraph(f"it raises {type(error).__name__}")
        return None
    except BaseException:
        _C.abandon_subgraph("it is interrupted")
        raise
    if _wants_gradients(leaves):
        _C.abandon_subgraph(_NO_GRADIENTS)
        return None
    part = _C.end_subgraph([leaf for leaf in leaves if isinstance(leaf, torch.Tensor)])
    if part is None:
        return None
    return part, [None if isinstance(leaf, torch.Tensor) else (leaf,) for leaf in leaves], structure


def _same(first, second):
    """Whether two branches give the same results except for the contents of tensors."""
    if first[2] != second[2] or len(first[1]) != len(second[1]):
        return False
    for a, b in zip(first[1], second[1]):
        if (a is None) != (b is None):
            return False
        if a is not None and not (type(a[0]) is type(b[0]) and isinstance(a[0], _PLAIN) and a[0] == b[0]):
            return False
    return True


def _put_together(recorded, tensors):
    left = iter(tensors)
    return pytree.tree_unflatten([next(left) if leaf is None else leaf[0] for leaf in recorded[1]], recorded[2])


def _captured_cond(pred, true_fn, false_fn, operands):
    """The results in a list; None when the branches cannot be captured."""
    if_true = _record(true_fn, operands)
    if if_true is None:
        return None
    if_false = _record(false_fn, operands)
    if if_false is None:
        return None
    if not _same(if_true, if_false):
        _C.explain_subgraph("torch.cond", "the branches give results of different structure")
        return None
    tensors = _C.add_cond(pred, if_true[0], if_false[0])
    return None if tensors is None else [_put_together(if_true, tensors)]


def _check_cond(pred, true_fn, false_fn, operands):
    """Checks the arguments as torch.cond does, with its messages."""
    if not isinstance(pred, (bool, torch.Tensor, torch.SymBool)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, torch.Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or any(
        not isinstance(t, torch.Tensor) for t in pytree.tree_leaves(operands)
    ):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only "
            f"consists of tensor leaves, but got {operands}."
        )


def cond(pred, true_fn, false_fn, operands=()):
    if isinstance(pred, (bool, int, float)):
        return true_fn(*operands) if pred else false_fn(*operands)
    _check_cond(pred, true_fn, false_fn, operands)
    if isinstance(pred, torch.Tensor):
        captured = _captured_cond(pred, true_fn, false_fn, operands)
        if captured is not None:
            return captured[0]
        _C.explain_subgraph("torch.cond", None)
    return true_fn(*operands) if pred else false_fn(*operands)


def _as_tuple(carried):
    return tuple(carried) if isinstance(carried, (tuple, list)) else (carried,)


def _captured_loop(cond_fn, body_fn, carried):
    """The results of the last iteration; None when the loop cannot be captured."""
    leaves, structure = pytree.tree_flatten(carried)
    if not leaves or not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        _C.explain_subgraph("torch.while_loop", "it carries what is no tensor")
        return None
    if _wants_gradients(leaves):
        _C.explain_subgraph("torch.while_loop", _NO_GRADIENTS)
        return None
    stand_ins = _C.add_carried(leaves)
    if stand_ins is None:
        return None
    given = pytree.tree_unflatten(stand_ins[0], structure)
    condition = _record(cond_fn, given)
    if condition is None:
        return None
    body = _record(lambda *args: _as_tuple(body_fn(*args)), given)
    if body is None:
        return None
    if condition[1] != [None] or body[2] != structure or any(leaf is not None for leaf in body[1]):
        _C.explain_subgraph("torch.while_loop", "its parts give something else than tensors, or in another structure")
        return None
    tensors = _C.add_while(leaves, stand_ins[1], condition[0], body[0])
    return None if tensors is None else pytree.tree_unflatten(tensors, structure)


def while_loop(cond_fn, body_fn, carried_inputs):
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    carried = tuple(carried_inputs)
    captured = _captured_loop(cond_fn, body_fn, carried)
    if captured is not None:
        return captured
    _C.explain_subgraph("torch.while_loop", None)
    while cond_fn(*carried):
        carried = _as_tuple(body_fn(*carried))
    return carried


def _as_scanned(combine_fn, structure, mode):
    """The function on two lists of tensors, with the scanned dimension moved to 0."""
    if mode == "generic":
        dims = pytree.tree_unflatten([0] * structure.num_leaves, structure)
        combine_fn = torch.vmap(combine_fn, in_dims=(dims, dims), out_dims=0)

    def combine(left, right):
        return pytree.tree_leaves(
            combine_fn(pytree.tree_unflatten(left, structure), pytree.tree_unflatten(right, structure))
        )

    return combine


def _scanned_by_doubling(combine, leaves):
    """After the iteration with step 2^k, position i holds the combination of the positions i - 2^(k+1) + 1 to i. The
    number of positions is not specialized: it is only compared with the step at run time."""

    def turn(step, *leaves):
        place = torch.arange(leaves[0].shape[0], device=step.device)
        before = (place - step).clamp(min=0)
        combined = combine([leaf.index_select(0, before) for leaf in leaves], list(leaves))
        reached = place >= step
        kept = [
            torch.where(reached.view(-1, *[1] * (leaf.dim() - 1)), new, leaf) for new, leaf in zip(combined, leaves)
        ]
        return (step * 2, *kept)

    first = torch.ones((), dtype=torch.int64, device=leaves[0].device)
    return list(while_loop(lambda step, *leaves: step < leaves[0].shape[0], turn, (first, *leaves)))[1:]


def _scanned_in_turns(combine, leaves):
    """The same in plain operators, for autograd. The number of iterations is specialized, not the length."""
    step = 1
    while step < leaves[0].shape[0]:
        combined = combine([leaf[:-step] for leaf in leaves], [leaf[step:] for leaf in leaves])
        leaves = [torch.cat([leaf[:step], new]) for leaf, new in zip(leaves, combined)]
        step *= 2
    return leaves


def _can_scan(combine_fn, leaves, dim, reverse, mode):
    if not callable(combine_fn) or type(dim) is not int or type(reverse) is not bool:
        return False
    if not leaves or any(type(leaf) is not torch.Tensor or leaf.is_sparse for leaf in leaves):
        return False
    if mode not in ("generic", "pointwise") or (mode == "pointwise" and leaves[0].device.type == "cpu"):
        return False
    rank = leaves[0].dim()
    if not -rank <= dim < rank or any(leaf.dim() != rank for leaf in leaves):
        return False
    return all(leaf.shape[dim] > 0 and leaf.shape[dim] == leaves[0].shape[dim] for leaf in leaves)


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """A single program for all lengths; torch's own code is a recursion over halves of the length. Unsuitable arguments
    go to torch's function."""
    leaves, structure = pytree.tree_flatten(xs)
    if not _can_scan(combine_fn, leaves, dim, reverse, combine_mode):
        return _torch_associative_scan(combine_fn, xs, dim, reverse, combine_mode)
    combine = _as_scanned(combine_fn, structure, combine_mode)
    leaves = [leaf.movedim(dim, 0) for leaf in leaves]
    if reverse:
        leaves = [leaf.flip(0) for leaf in leaves]
    differentiable = torch.is_grad_enabled() and any(leaf.requires_grad for leaf in leaves)
    scanned = (_scanned_in_turns if differentiable else _scanned_by_doubling)(combine, leaves)
    if reverse:
        scanned = [leaf.flip(0) for leaf in scanned]
    return pytree.tree_unflatten([leaf.movedim(0, dim) for leaf in scanned], structure)


def _in_place_of(name, function):
    """Replaces torch's operator. A call of the original runs natively all the same, between two graph segments."""
    package = module("torch._higher_order_ops")
    found = attribute(package, name)  # the function, or the module with its name, as torch imported it
    original = own(found if isinstance(found, types.ModuleType) else package, name)
    _C._substitute(original, function)
    _C._mark(original, f"a call of torch.{name} that is no operator of the program", "ControlFlow")
    return original


@capability("torch.cond()")
def _begin_cond():
    _in_place_of("cond", cond)


@capability("torch.while_loop()")
def _begin_while_loop():
    _in_place_of("while_loop", while_loop)


@capability("associative_scan()")
def _begin_associative_scan():
    global _torch_associative_scan
    _torch_associative_scan = _in_place_of("associative_scan", associative_scan)
