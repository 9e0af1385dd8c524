"""Decompositions of operators with random numbers (base.py), whose probabilities and parameters may be symbolic floats.
The random numbers are the same as in eager mode."""

from .. import _C
from .._genuine import math, torch
from .._numbers import SYMFLOATS
from .base import are_floats_alike, form, hide, is_float

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


def keeps_all(input, p, train):
    """Whether the result is the input itself."""
    return isinstance(input, torch.Tensor) and 0 <= p <= 1 and (not train or p == 0 or input.numel() == 0)


def draws(input, p):
    """Whether random numbers are drawn; torch handles the rest, including errors."""
    return is_float(input) and 0 < p < 1


def drawn_into(noise, chance):
    """1 with probability `chance`, else 0, drawn in the memory order of the noise, as noise.bernoulli_() does."""
    if noise.is_contiguous():
        return _C.drawn("aten::bernoulli.p", noise, chance)
    strides = noise.stride()
    order = sorted(range(noise.dim()), key=lambda d: strides[d], reverse=True)
    return _C.drawn("aten::bernoulli.p", noise.permute(order), chance).permute(
        [order.index(d) for d in range(noise.dim())]
    )


def dropped(input, p):
    return input * (drawn_into(torch.empty_like(input), 1 - p) / (1 - p))


def per_channel(input):
    return torch.empty((*input.shape[:2], *[1] * (input.dim() - 2)), dtype=input.dtype, device=input.device)


def dropped_to_alpha(input, noise, p):
    """The values that keep mean and variance of SELU's results."""
    alpha = 1.7580993408473766
    a = ((alpha * alpha * p + 1) * (1 - p)) ** -0.5
    kept = drawn_into(noise, 1 - p)
    shift = (kept - 1) * (alpha * a) + (alpha * a) * p
    return input * (kept * a) + shift


@form(torch.dropout)
def dropout(input, p, train):
    if keeps_all(input, p, train):
        return input
    return dropped(input, p) if draws(input, p) else torch.dropout(input, p, train)


@form(torch.feature_dropout)
def feature_dropout(input, p, train):
    if keeps_all(input, p, train):
        return input
    if not draws(input, p) or input.dim() < 2:
        return torch.feature_dropout(input, p, train)
    return input * (drawn_into(per_channel(input), 1 - p) / (1 - p))


@form(torch.alpha_dropout)
def alpha_dropout(input, p, train):
    if keeps_all(input, p, train):
        return input
    if not draws(input, p):
        return torch.alpha_dropout(input, p, train)
    return dropped_to_alpha(input, torch.empty_like(input), p)


@form(torch.feature_alpha_dropout)
def feature_alpha_dropout(input, p, train):
    if keeps_all(input, p, train):
        return input
    if not draws(input, p) or input.dim() < 2:
        return torch.feature_alpha_dropout(input, p, train)
    return dropped_to_alpha(input, per_channel(input), p)


@form(torch.dropout_)
def dropout_(input, p, train):
    if keeps_all(input, p, train):
        return input
    if not draws(input, p):
        return torch.dropout_(input, p, train)
    return input.mul_(drawn_into(torch.empty_like(input), 1 - p) / (1 - p))


@form(torch._C.TensorBase.bernoulli_)
def bernoulli_(self, p=0.5):
    if not is_float(self) or not p >= 0 or not p <= 1:
        return self.bernoulli_(p)
    return self.copy_(drawn_into(self.detach(), p))


@form(torch.bernoulli, torch._C.TensorBase.bernoulli)
def bernoulli(input, p):
    if not is_float(input) or input.requires_grad or not 0 <= p <= 1:
        return torch.bernoulli(input, p)
    return _C.drawn("aten::bernoulli.p", input.detach(), p)


@form(torch._C.TensorBase.normal_)
def normal_(self, mean=0.0, std=1.0):
    if not is_float(self) or not std >= 0:
        return self.normal_(mean, std)
    return self.copy_(_C.drawn("aten::normal_functional", self.detach(), mean, std))


@form(torch._C.TensorBase.uniform_)
def uniform_(self, a=0.0, b=1.0):
    if not is_float(self) or not a <= b or b - a > torch.finfo(self.dtype).max:
        return self.uniform_(a, b)
    return self.copy_(_C.drawn("aten::uniform", self.detach(), a, b))


@form(torch._C.TensorBase.exponential_)
def exponential_(self, lambd=1.0):
    if not is_float(self) or not lambd > 0:
        return self.exponential_(lambd)
    return self.copy_(_C.drawn("aten::exponential", self.detach(), lambd))


@form(torch._C.TensorBase.log_normal_)
def log_normal_(self, mean=1.0, std=2.0):
    if not is_float(self) or not std > 0:
        return self.log_normal_(mean, std)
    return self.copy_(_C.drawn("aten::log_normal", self.detach(), mean, std))


@form(torch._C.TensorBase.cauchy_)
def cauchy_(self, median=0.0, sigma=1.0):
    if not is_float(self) or not sigma > 0:
        return self.cauchy_(median, sigma)
    return self.copy_(_C.drawn("aten::cauchy", self.detach(), median, sigma))


@form(torch._C.TensorBase.geometric_)
def geometric_(self, p):
    if not is_float(self) or not 0 < p < 1:
        return self.geometric_(p)
    return self.copy_(_C.drawn("aten::geometric", self.detach(), p))


@form(torch.normal)
def normal(mean, std=1.0, size=None):
    tensors = [n for n in (mean, std) if isinstance(n, torch.Tensor)]
    if size is None and len(tensors) == 1 and is_float(tensors[0]) and not tensors[0].requires_grad:
        if tensors[0] is mean and std >= 0:
            return _C.drawn("aten::normal_functional", mean.new_empty(mean.shape), 0.0, std) + mean
        return torch.normal(torch.full_like(std, mean), std)
    if size is None or tensors or not std >= 0:
        return torch.normal(mean, std) if size is None else torch.normal(mean, std, size)
    return _C.drawn("aten::normal_functional", torch.empty(size), mean, std)


@form(torch._C._nn.scaled_dot_product_attention)
def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    def original():
        return torch._C._nn.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, bool(is_causal), scale=scale, enable_gqa=bool(enable_gqa)
        )

    tensors = [query, key, value]
    if not are_floats_alike(*tensors) or not all(t.dim() >= 2 for t in tensors):
        return original()
    if query.dtype not in (torch.float32, torch.float64) or enable_gqa or (is_causal and attn_mask is not None):
        return original()
    if type(dropout_p) not in SYMFLOATS:  # without dropout, only a symbolic scale needs the decomposition
        if type(scale) not in SYMFLOATS:
            return original()
        return torch._C._nn.scaled_dot_product_attention(
            query * scale, key, value, attn_mask, dropout_p, is_causal, scale=1.0
        )
    if dropout_p <= 0 or dropout_p >= 1:
        return original()
    if scale is not None and not scale > 0:
        return original()
    root = query.shape[-1] ** -0.25 if scale is None else scale**0.5
    logits = (query * root) @ (key * root).transpose(-2, -1)
    if is_causal:
        attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
    if attn_mask is not None:
        minus = attn_mask.dtype is torch.bool
        logits = logits.masked_fill(attn_mask.logical_not(), -math.inf) if minus else logits + attn_mask
    return dropped(logits.softmax(-1), dropout_p) @ value


hide(globals())
