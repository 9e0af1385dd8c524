"""Decompositions of norms and normalizations (base.py): powers and epsilons may be symbolic floats, groups sizes."""

from .. import _C
from .._genuine import math, torch
from .._numbers import NUMBERS, SYMFLOATS
from .base import form, hide, is_float, is_symbol

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_nn = torch._C._nn


def wide(tensor):
    """The tensor in the dtype in which kernels compute."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def fit(tensors, dtype, shape):
    """Whether weights and the like are None, or of this dtype and shape."""
    return all(t is None or (isinstance(t, torch.Tensor) and t.dtype == dtype and t.shape == shape) for t in tensors)


def centered(input, dims, eps):
    """The input with mean 0 and variance 1 over some dimensions."""
    mean = input.mean(dims, keepdim=True)
    return (input - mean) * torch.rsqrt(input.var(dims, unbiased=False, keepdim=True) + eps)


def lying_as(out, input):
    """The layout of ATen's kernels: channels last if the input is channels last, else contiguous."""
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(input.dim())
    if last is not None and not input.is_contiguous() and input.is_contiguous(memory_format=last):
        return out.contiguous(memory_format=last)
    return out.contiguous()


def affine(out, weight, bias, shape):
    if weight is not None:
        out = out * weight.view(shape)
    return out if bias is None else out + bias.view(shape)


@form(torch.layer_norm)
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    shape = tuple(normalized_shape)
    rank = len(shape)
    usual = is_symbol(eps) and is_float(input) and 0 < rank <= input.dim() and input.shape[-rank:] == shape
    if not usual or not fit((weight, bias), input.dtype, shape):
        return torch.layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable)
    out = affine(centered(wide(input), list(range(-rank, 0)), eps), weight, bias, shape)
    return out.to(input.dtype).contiguous()


@form(torch.rms_norm)
def rms_norm(input, normalized_shape, weight=None, eps=None):
    shape = tuple(normalized_shape)
    rank = len(shape)
    usual = is_symbol(eps) and is_float(input) and 0 < rank <= input.dim() and input.shape[-rank:] == shape
    if not usual or not fit((weight,), input.dtype, shape):
        return torch.rms_norm(input, normalized_shape, weight, eps)
    x = wide(input)
    out = x * torch.rsqrt(x.square().mean(list(range(-rank, 0)), keepdim=True) + eps)
    return lying_as(affine(out, weight, None, shape).to(input.dtype), input)


@form(torch.group_norm)
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    usual = is_float(input) and input.dim() >= 2 and num_groups > 0 and input.numel() > 0
    if not usual or input.shape[1] % num_groups != 0 or not fit((weight, bias), input.dtype, input.shape[1:2]):
        return torch.group_norm(input, num_groups, weight, bias, eps, cudnn_enabled)
    x = wide(input).reshape(input.shape[0], num_groups, input.shape[1] // num_groups, -1)
    out = centered(x, [2, 3], eps).reshape(input.shape)
    return lying_as(affine(out, weight, bias, (-1, *[1] * (input.dim() - 2))).to(input.dtype), input)


def of_batch(input, weight, bias, mean, variance, eps):
    shape = (-1, *[1] * (input.dim() - 2))
    scale = torch.rsqrt(variance + eps)
    if weight is not None:
        scale = scale * weight
    out = (input - mean.view(shape)) * scale.view(shape)
    return lying_as(out if bias is None else out + bias.view(shape), input)


@form(torch.batch_norm)
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    every = (weight, bias, running_mean, running_var)
    usual = is_float(input) and input.dtype in (torch.float32, torch.float64) and input.dim() >= 2
    if not usual or input.numel() == 0 or not fit(every, input.dtype, input.shape[1:2]):
        return torch.batch_norm(input, *every, training, momentum, eps, cudnn_enabled)
    if not training and (running_mean is None or running_var is None):
        return torch.batch_norm(input, *every, training, momentum, eps, cudnn_enabled)
    if not training:
        return of_batch(input, weight, bias, running_mean, running_var, eps)
    dims = [0, *range(2, input.dim())]
    mean, variance = input.mean(dims), input.var(dims, unbiased=False)
    with torch.no_grad():
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean * momentum)
        if running_var is not None:
            running_var.mul_(1 - momentum).add_(input.var(dims) * momentum)
    return of_batch(input, weight, bias, mean, variance, eps)


@form(torch.instance_norm)
def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    every = (weight, bias, running_mean, running_var)
    usual = is_float(input) and input.dim() >= 3 and input.numel() > 0 and use_input_stats and running_mean is None
    if not usual or running_var is not None or not fit((weight, bias), input.dtype, input.shape[1:2]):
        return torch.instance_norm(input, *every, use_input_stats, momentum, eps, cudnn_enabled)
    out = centered(wide(input), list(range(2, input.dim())), eps)
    return affine(out, weight, bias, (-1, *[1] * (input.dim() - 2))).to(input.dtype).contiguous()


# ---- powers


def is_power(p):
    """Whether guards exclude the powers with a meaning of their own."""
    return type(p) in NUMBERS and p > 0 and p != math.inf


def norm_of(tensor, p, dims, keep):
    """(sum of |x| ** p) ** (1 / p). Where it is not smooth, at 0, its derivative is 0."""
    p, size = torch.sym_float(p), wide(tensor).abs()
    there = size != 0
    total = torch.where(there, torch.where(there, size, 1.0) ** p, 0.0)
    total = total.sum(dims, keepdim=keep) if dims is None or dims != [] else total
    some = total != 0
    return torch.where(some, torch.where(some, total, 1.0) ** (1 / p), 0.0).to(tensor.dtype)


@form(torch.linalg.vector_norm)
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    if not is_float(x) or dtype is not None or type(ord) not in SYMFLOATS or not is_power(ord):
        return torch.linalg.vector_norm(x, ord, dim, keepdim, dtype=dtype)
    dims = list(range(x.dim())) if dim is None else list(dim) if isinstance(dim, (tuple, list)) else [dim]
    return norm_of(x, ord, dims or list(range(x.dim())), keepdim)


@form(torch.dist, torch._C.TensorBase.dist)
def dist(input, other, p=2):
    if not is_float(input) or not is_float(other) or not is_power(p):
        return torch.dist(input, other, p)
    return vector_norm(input - other, p)


@form(torch.pairwise_distance)
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    if not is_float(x1) or not is_float(x2) or not is_power(p):
        return torch.pairwise_distance(x1, x2, p, eps, keepdim)
    between = x1 - x2 + eps
    if is_symbol(p):
        return norm_of(between, p, [-1], keepdim)
    return torch.linalg.vector_norm(between, p, -1, keepdim)


def has_distances(x):
    """Whether the operators' kernels accept the tensor: other dtypes are an error."""
    return isinstance(x, torch.Tensor) and x.dtype in (torch.float32, torch.float64)


@form(torch._C._VariableFunctions.cdist, always=True)
def cdist(x1, x2, p=2.0, compute_mode=None):
    """A data-dependent number of rows must not choose among algorithms."""
    plain = not is_symbol(p) and isinstance(x1, torch.Tensor) and isinstance(x2, torch.Tensor)
    if plain and not any(is_symbol(n) and not n.node.has_hint() for x in (x1, x2) for n in x.shape[-2:-1]):
        return torch._C._VariableFunctions.cdist(x1, x2, p, compute_mode)
    usual = has_distances(x1) and has_distances(x2) and x1.dtype == x2.dtype and x1.dim() >= 2 and x2.dim() >= 2
    if not usual or not is_power(p) or x1.shape[-1] != x2.shape[-1]:
        return torch._C._VariableFunctions.cdist(x1, x2, p, compute_mode)
    return norm_of(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, [-1], False)


@form(torch.pdist)
def pdist(input, p=2.0):
    if not has_distances(input) or input.dim() != 2 or not is_power(p) or not input.shape[0] > 1:
        return torch.pdist(input, p)
    count = input.shape[0]
    first, second = torch.ones(count, count, dtype=torch.bool).triu(1).nonzero().unbind(1)
    return norm_of(input[first] - input[second], p, [-1], False)


def divided_by_norm(x, dim, eps):
    """The contribution of the bound has no derivative."""
    norm = torch.linalg.vector_norm(x, 2, dim, keepdim=True)
    return x / (norm + (norm.clamp_min(eps) - norm).detach())


@form(torch.cosine_similarity)
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    if not is_float(x1) or not is_float(x2) or x1.dtype != x2.dtype:
        return torch.cosine_similarity(x1, x2, dim, eps)
    x1, x2 = torch.broadcast_tensors(x1, x2)
    return (divided_by_norm(x1, dim, eps) * divided_by_norm(x2, dim, eps)).sum(dim)


@form(torch.renorm, torch._C.TensorBase.renorm)
def renorm(input, p, dim, maxnorm):
    if not is_float(input) or input.dim() < 2 or not maxnorm >= 0 or not is_power(p):
        return torch.renorm(input, p, dim, maxnorm)
    others = [d for d in range(input.dim()) if d != dim % input.dim()]
    norm = vector_norm(input, torch.sym_float(p) if is_symbol(p) else p, others, True)
    return (input * torch.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)).contiguous()


hide(globals())
