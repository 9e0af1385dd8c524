"""Autograd in Python during a capture: hooks, activation checkpoints, the state of random numbers.

The state of random numbers is a value of the program (bridge/capture/rng_state.h), so `torch.random.fork_rng` is captured
unchanged. The autograd graph of a checkpoint keeps the arguments of the checkpoint's function. When the backward
program is captured, the function is called again, and its operators become a part of the backward program.
"""

import contextlib
import weakref

import torch
import torch.utils.checkpoint as checkpoints
import torch.utils.hooks

from .. import _C
from .._genuine import Missing, attribute, capability, module, own

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_STATE_BYTES = torch.get_rng_state().numel()
_CUDA_STATE_BYTES = 16  # a seed and an offset
_read = _write = _read_cuda = _write_cuda = None  # cresset's operators, found after their registration


def find_operators():
    global _read, _write, _read_cuda, _write_cuda
    _read, _write = torch.ops.cresset.get_rng_state.default, torch.ops.cresset.set_rng_state.default
    _read_cuda = torch.ops.cresset.get_cuda_rng_state.default
    _write_cuda = torch.ops.cresset.set_cuda_rng_state.default


def _is_state(state, size):
    return type(state) is torch.Tensor and state.dtype == torch.uint8 and state.shape == (size,)


def get_rng_state():
    return _read() if _C.is_compiling() else _get()


def set_rng_state(new_state):
    if not _C.is_compiling() or not _is_state(new_state, _STATE_BYTES):
        return _set(new_state)
    _write(new_state)
    return None


def _cuda_index(device):
    """None: not a device, or CUDA is not set up."""
    if not torch.cuda.is_initialized() or not isinstance(device, (int, str, torch.device)):
        return None
    index = device if isinstance(device, int) else torch.device(device).index
    return torch.cuda.current_device() if index is None else index


def get_cuda_rng_state(device="cuda"):
    index = _cuda_index(device) if _C.is_compiling() else None
    return _get_cuda(device) if index is None else _read_cuda(index)


def set_cuda_rng_state(new_state, device="cuda"):
    index = _cuda_index(device) if _C.is_compiling() and _is_state(new_state, _CUDA_STATE_BYTES) else None
    if index is None or new_state.is_cuda:
        return _set_cuda(new_state, device)
    _write_cuda(new_state, index)
    return None


def _cuda_devices_of(value):
    """The indices of the devices of a structure's CUDA tensors."""
    if isinstance(value, torch.Tensor):
        return [value.get_device()] if value.is_cuda else []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [index for item in items for index in _cuda_devices_of(item)]


def _casts(kind):
    """The arguments of torch.amp.autocast() for its present state."""
    return {
        "enabled": torch.is_autocast_enabled(kind),
        "dtype": torch.get_autocast_dtype(kind),
        "cache_enabled": torch.is_autocast_cache_enabled(),
    }


class _Keep(torch.autograd.Function):
    """Saves tensors for backward as operators do, so that autograd detects writes to them in the meantime."""

    @staticmethod
    def forward(ctx, _, *tensors):
        ctx.save_for_backward(*tensors)
        return torch.empty(0)

    @staticmethod
    def backward(ctx, _):
        raise AssertionError("nothing depends on it")


class _Stop(Exception):
    """All saved tensors have been recomputed."""


class _Region:
    """A function that the autograd graph calls again for its saved tensors.

    The autograd graph may run natively after all, in the capturing call. Then the function is called for its side
    effects alone. Its own operators may save tensors in another order than the captured operators did, so the tensors
    themselves are held, too. They are outdated where an argument was written since, unseen by autograd.

    A reentrant region gives the function leaves when it is called again. The leaves have an autograd graph of their
    own, which refuses tensors written since.
    """

    def __init__(self, function, preserve, args, kwargs, early_stop=False, reentrant=False):
        self.function, self.args, self.kwargs, self.early_stop = function, list(args), kwargs, early_stop
        self.reentrant = reentrant
        self.tensors = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
        self.kept = None
        if not reentrant:
            self.keep_arguments()
        self.state = get_rng_state() if preserve else None
        self.devices = list(dict.fromkeys(_cuda_devices_of(args))) if preserve else []
        self.cuda_states = [get_cuda_rng_state(index) for index in self.devices]
        self.cpu_casts = _casts("cpu")
        self.cuda_casts = _casts("cuda") if _cuda_devices_of(args) else None
        self.held = []
        self.again = {}

    def keep_arguments(self):
        self.contents = [self.args[i].detach().clone() for i in self.tensors]
        # Keeps the result, not its grad_fn, because older torch needs the result alive.
        self.kept = _Keep.apply(torch.empty(0, requires_grad=True), *(self.args[i] for i in self.tensors))
        for i in self.tensors:
            self.args[i] = None

    def pack(self, tensor):
        self.held.append(tensor.detach().clone())  # the program may write to it
        return len(self.held) - 1

    def unpack(self, number):
        if number not in self.again:
            self.again = self.compute() if _C.is_compiling() else self.run_natively()
        return self.again.pop(number)

    def call(self, keep):
        args = list(self.args)
        for i, tensor in zip(self.tensors, self.kept.grad_fn.saved_tensors):
            args[i] = tensor.detach().requires_grad_(tensor.requires_grad) if self.reentrant else tensor
        saved = []

        def note(tensor):
            saved.append((tensor, tensor._version))
            keep(tensor)

        preserves = contextlib.nullcontext()
        if self.devices:
            preserves = torch.random.fork_rng(devices=self.devices, device_type="cuda")
        elif self.state is not None:
            preserves = torch.random.fork_rng(devices=[])
        with (
            preserves,
            torch.enable_grad(),
            torch.amp.autocast("cpu", **self.cpu_casts),
            contextlib.nullcontext() if self.cuda_casts is None else torch.amp.autocast("cuda", **self.cuda_casts),
            torch.autograd.graph.saved_tensors_hooks(note if self.reentrant else keep, lambda _: None),
        ):
            if self.state is not None:
                set_rng_state(self.state)
            for index, state in zip(self.devices, self.cuda_states):
                set_cuda_rng_state(state, index)
            self.function(*args, **self.kwargs)
        written = [tensor for tensor, version in saved if tensor._version != version]
        saved.clear()  # the hooks hold the list, and the tensors' histories hold the hooks
        if written:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"[{written[0].type()} {list(written[0].shape)}] is at version {written[0]._version} instead."
            )

    def compute(self):
        again = {}

        def keep(tensor):
            again[len(again)] = tensor.detach()
            if self.early_stop and len(again) == len(self.held):  # operators behind the last tensor do not run again
                raise _Stop

        with contextlib.suppress(_Stop):
            self.call(keep)
        if len(again) != len(self.held):
            raise checkpoints.CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.held)}\n"
                f"Number of tensors saved during recomputation: {len(again)}."
            )
        return again

    def is_outdated(self):
        def differ(now, then):
            return now.shape != then.shape or bool(((now != then) & ((now == now) | (then == then))).any())

        return any(map(differ, self.kept.grad_fn.saved_tensors, self.contents))

    def run_natively(self):
        outdated, again = self.is_outdated(), []

        def keep(tensor):
            again.append(tensor.detach() if outdated else None)
            if self.early_stop and len(again) == len(self.held):
                raise _Stop

        with contextlib.suppress(_Stop):
            self.call(keep)
        return dict(enumerate(again if outdated and len(again) == len(self.held) else self.held))


def _choose_what_is_kept(contexts):
    """Whether the contexts are of create_selective_checkpoint_contexts(). The partitioner chooses the saved values
    itself: the results are the same, and policy functions are not called."""
    names = ("_CachingTorchDispatchMode", "_CachedTorchDispatchMode")
    return [type(c) for c in contexts] == [getattr(checkpoints, name, None) for name in names]


def _compiled_region(fn, args, kwargs, preserve_rng_state, context_fn, determinism_check, debug, early_stop):
    """(context_fn, context manager of the forward pass), the latter None where the region is left to torch."""
    plain = determinism_check in ("default", "none") and not debug and _C.is_compiling()
    if plain and context_fn is not checkpoints.noop_context_fn:
        contexts = context_fn()
        plain = _choose_what_is_kept(contexts)
        context_fn = lambda: contexts  # noqa: E731
    if not plain:
        return context_fn, None
    if not torch.is_grad_enabled():
        return context_fn, contextlib.nullcontext()
    stops = checkpoints._enable_checkpoint_early_stop
    region = _Region(fn, preserve_rng_state, args, kwargs, early_stop if stops is None else stops)
    return context_fn, torch.autograd.graph.saved_tensors_hooks(region.pack, region.unpack)


def without_reentrant(fn, preserve_rng_state, context_fn, determinism_check, debug, early_stop, *args, **kwargs):
    """_checkpoint_without_reentrant_generator of torch before 2.14."""
    context_fn, region = _compiled_region(
        fn, args, kwargs, preserve_rng_state, context_fn, determinism_check, debug, early_stop
    )
    if region is None:
        yield from _without_reentrant(
            fn, preserve_rng_state, context_fn, determinism_check, debug, early_stop, *args, **kwargs
        )
    else:
        with region:
            yield


def without_reentrant_of_packed(fn, args, kwargs, *, context_fn, **options):
    """_checkpoint_without_reentrant_generator_impl of torch 2.14 and later."""
    own_hooks = options.get("respect_saved_tensors_hooks") and context_fn is not checkpoints.noop_context_fn
    known = {name: options[name] for name in ("preserve_rng_state", "determinism_check", "debug", "early_stop")}
    region = None
    if not own_hooks:
        context_fn, region = _compiled_region(fn, args, kwargs, context_fn=context_fn, **known)
    if region is None:
        yield from _without_reentrant(fn, args, kwargs, context_fn=context_fn, **options)
    else:
        with region:
            yield


def _without_gradients(value):
    if isinstance(value, torch.Tensor):
        return value.detach()
    if type(value) in (tuple, list):
        return type(value)(map(_without_gradients, value))
    if type(value) is dict:
        return {key: _without_gradients(item) for key, item in value.items()}
    return value


class Reentrant:
    """CheckpointFunction, whose backward would run autograd's engine within itself and fill `.grad` on the way.

    Where gradients flow to the arguments, the other implementation gives the same results. A backward pass without
    filling `.grad` raises. Tensors inside of containers among the results have no gradients.
    """

    @staticmethod
    def apply(function, preserve, *args):
        wanted = torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in args)
        if not wanted or not _C.is_compiling():
            return _Reentrant.apply(function, preserve, *args)
        _C.note_reentrant()
        region = _Region(function, preserve, args, {}, reentrant=True)
        with torch.autograd.graph.saved_tensors_hooks(region.pack, region.unpack):
            result = function(*args)
        region.keep_arguments()
        if isinstance(result, torch.Tensor):
            return result
        if isinstance(result, tuple):
            return tuple(r if isinstance(r, torch.Tensor) else _without_gradients(r) for r in result)
        return _without_gradients(result)


def _begin_handle_of_call(self, hooks_dict, *, extra_dict=None):
    """Replaces RemovableHandle(). torch numbers handles across the whole process, so no two calls would be alike.
    During the call, the number is out of torch's reach, above the dictionary's numbers, and unique among the call's
    hooks."""
    numbers = [*hooks_dict]
    of_call = _C._hook_number() if _C.is_compiling() else 0
    if of_call == 0 or not all(type(number) is int for number in numbers):
        return _begin_handle(self, hooks_dict, extra_dict=extra_dict)
    extra = extra_dict if isinstance(extra_dict, list) else [extra_dict] if isinstance(extra_dict, dict) else []
    self.hooks_dict_ref = weakref.ref(hooks_dict)
    self.id = max([of_call, *[number + 1 for number in numbers]])
    self.extra_dict_ref = tuple([weakref.ref(d) for d in extra])
    _C._note_hook(self, (self.hooks_dict_ref, *self.extra_dict_ref))


def _push_tangents_of_call(*args, **kwargs):
    """The function behind jvp() and behind each direction of jacfwd()."""
    _C._begin_tangents()
    return _push_tangents(*args, **kwargs)


def _no_complex_in_call(func_name, args, is_input):
    """The first function that jacfwd() calls, outside of its vmap()."""
    if is_input and func_name == "jacfwd":
        _C._begin_tangents()
    return _no_complex(func_name, args, is_input)


@capability("classes of torch.autograd.Function that a compiled program makes")
def _begin_functions():
    """The process-wide number of a class is no side effect of the call. Later calls make no class, or share it."""
    attribute(torch.autograd.function, "AUTOGRAD_FUNCTION_COUNTER")
    _C._bookkeeping(torch.autograd.function, "AUTOGRAD_FUNCTION_COUNTER", True)


@capability("hooks that a compiled program registers")
def _begin_hooks():
    global _begin_handle
    _begin_handle = own(attribute(torch.utils.hooks, "RemovableHandle"), "__init__")
    _C._substitute(_begin_handle, _begin_handle_of_call)


@capability("torch.func.jvp() and jacfwd()")
def _begin_transforms():
    global _push_tangents, _no_complex
    transforms = module("torch._functorch.eager_transforms")
    push, check = own(transforms, "_jvp_with_argnums"), own(transforms, "error_if_complex")
    _push_tangents, _no_complex = push, check
    _C._substitute(push, _push_tangents_of_call)
    _C._substitute(check, _no_complex_in_call)


@capability("the state of random numbers as a value of the program")
def _begin_random():
    global _get, _set, _get_cuda, _set_cuda
    _get, _set = own(torch.random, "get_rng_state"), own(torch.random, "set_rng_state")
    _C._substitute(_get, get_rng_state)
    _C._substitute(_set, set_rng_state)
    _get_cuda, _set_cuda = own(torch.cuda.random, "get_rng_state"), own(torch.cuda.random, "set_rng_state")
    _C._substitute(_get_cuda, get_cuda_rng_state)
    _C._substitute(_set_cuda, set_cuda_rng_state)


@capability("activation checkpoints")
def _begin_checkpoints():
    global _without_reentrant
    for name in ("noop_context_fn", "CheckpointError", "_enable_checkpoint_early_stop"):
        if not hasattr(checkpoints, name):
            raise Missing(f"torch.utils.checkpoint has no {name}")
    packed = hasattr(checkpoints, "_checkpoint_without_reentrant_generator_impl")
    _without_reentrant = own(checkpoints, "_checkpoint_without_reentrant_generator" + ("_impl" if packed else ""))
    _C._substitute(_without_reentrant, without_reentrant_of_packed if packed else without_reentrant)


@capability("reentrant activation checkpoints")
def _begin_reentrant():
    global _Reentrant
    _Reentrant = own(checkpoints, "CheckpointFunction")
    apply = attribute(_Reentrant, "apply")
    _C._substitute(getattr(apply, "__func__", apply), Reentrant.apply, _Reentrant)  # since torch 2.14 a C method
