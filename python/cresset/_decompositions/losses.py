"""Decompositions of losses (base.py) whose margins, bounds and smoothing may be symbolic floats."""

from .. import _C
from .._genuine import torch
from .._numbers import SYMFLOATS
from .base import form, hide, is_float, is_symbol
from .norms import pairwise_distance

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_nn = torch._C._nn


def reduced(loss, reduction):
    """Reductions in torch's numbering: 0 none, 1 mean, 2 sum."""
    return loss.mean() if reduction == 1 else loss.sum() if reduction == 2 else loss


@form(_nn.huber_loss)
def huber_loss(input, target, reduction=1, delta=1.0):
    if not is_float(input) or not is_float(target) or not delta > 0:
        return _nn.huber_loss(input, target, reduction, delta)
    z = (input - target).abs()
    return reduced(torch.where(z <= delta, 0.5 * z * z, delta * (z - 0.5 * delta)), reduction)


@form(_nn.smooth_l1_loss)
def smooth_l1_loss(input, target, reduction=1, beta=1.0):
    if not is_float(input) or not is_float(target) or not beta > 0:
        return _nn.smooth_l1_loss(input, target, reduction, beta)
    z = (input - target).abs()
    return reduced(torch.where(z < beta, 0.5 * z * z / beta, z - 0.5 * beta), reduction)


@form(torch.margin_ranking_loss)
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1):
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@form(torch.hinge_embedding_loss)
def hinge_embedding_loss(self, target, margin=1.0, reduction=1):
    zeros = torch.zeros_like(self)
    margin_loss = torch.where(target != 1, (margin - self).clamp_min(0), zeros)
    return reduced(margin_loss + torch.where(target != -1, self, zeros), reduction)


@form(torch.cosine_embedding_loss)
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=1):
    if target.dim() not in (0, 1) or input1.shape != input2.shape or target.dim() + 1 != input1.dim():
        return torch.cosine_embedding_loss(input1, input2, target, margin, reduction)
    dim, tiny = target.dim(), 1e-12
    product = (input1 * input2).sum(dim)
    sizes = ((input1 * input1).sum(dim) + tiny) * ((input2 * input2).sum(dim) + tiny)
    cosine = product / sizes.sqrt()
    zeros = torch.zeros_like(cosine)
    positive = torch.where(target == 1, 1 - cosine, zeros)
    return reduced(positive + torch.where(target == -1, (cosine - margin).clamp_min(0), zeros), reduction)


@form(torch.triplet_margin_loss)
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1):
    whole = type(eps) not in SYMFLOATS or anchor.dtype in (torch.float32, torch.float64)
    if anchor.dim() != positive.dim() or anchor.dim() != negative.dim() or not whole:
        return torch.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = torch.min(far, pairwise_distance(positive, negative, p, eps))
    return reduced((margin + near - far).clamp_min(0), reduction)


@form(torch.poisson_nll_loss)
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    if not is_float(input) or not is_float(target) or full or log_input:
        unused = log_input and is_symbol(eps)
        return torch.poisson_nll_loss(input, target, log_input, full, 1e-8 if unused else eps, reduction)
    return reduced(input - target * (input + eps).log(), reduction)


@form(_nn.multi_margin_loss)
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, reduction=1):
    usual = is_float(input) and input.dtype in (torch.float32, torch.float64) and input.dim() == 2
    usual = usual and isinstance(target, torch.Tensor) and target.dim() == 1
    usual = usual and target.dtype is torch.int64 and type(p) is int and p in (1, 2) and weight is None
    if not usual or input.shape[0] != target.shape[0] or not input.numel() > 0:
        return _nn.multi_margin_loss(input, target, p, margin, weight, reduction)
    own = target.unsqueeze(1)
    over = (margin - input.gather(1, own) + input).clamp_min(0).scatter(1, own, 0.0)
    return reduced((over * over if p == 2 else over).sum(1) / input.shape[1], reduction)


@form(_nn.cross_entropy_loss)
def cross_entropy_loss(input, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    def original():
        return _nn.cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)

    usual = type(label_smoothing) in SYMFLOATS and is_float(input) and isinstance(target, torch.Tensor)
    if not usual or not label_smoothing > 0 or not label_smoothing <= 1 or input.dim() == 0:
        return original()
    dim = 0 if input.dim() == 1 else 1
    classes = input.shape[dim]
    if is_float(target):
        smooth = target * (1 - label_smoothing) + label_smoothing / classes
        return _nn.cross_entropy_loss(input, smooth, weight, reduction, ignore_index, 0.0)
    logs = input.log_softmax(dim)
    known = torch.nn.functional.nll_loss(
        logs, target, weight, ignore_index=ignore_index, reduction=("none", "mean", "sum")[reduction]
    )
    if weight is not None:
        shape = [1] * input.dim()
        shape[dim] = -1
        logs = logs * weight.view(shape)
    ignored = target == ignore_index
    smooth = (-logs.sum(dim)).masked_fill(ignored, 0.0)
    if reduction == 1 and weight is not None:
        smooth = smooth.sum() / weight[target.masked_fill(ignored, 0)].masked_fill(ignored, 0.0).sum()
    elif reduction == 1:
        smooth = smooth.sum() / ignored.logical_not().sum()
    elif reduction == 2:
        smooth = smooth.sum()
    return known * (1 - label_smoothing) + smooth * (label_smoothing / classes)


hide(globals())
