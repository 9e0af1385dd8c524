"""Sample calls of operators for check_ops.py: (qualified name, arguments)."""

import torch

F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
I64, I32, U8, BOOL = torch.int64, torch.int32, torch.uint8, torch.bool
INF, NAN = float("inf"), float("nan")


def make(shape, dtype=F32, low=-3.0, high=3.0):
    if dtype == BOOL:
        return torch.rand(shape) > 0.5
    if dtype == U8:
        return torch.randint(0, 9, shape, dtype=U8)
    if not dtype.is_floating_point:
        return torch.randint(-9, 9, shape, dtype=dtype)
    return (torch.rand(shape, dtype=F64) * (high - low) + low).to(dtype)


def layouts(dtype=F32):
    """Tensors of several layouts: dense, permuted, with gaps, broadcast, with sizes 1."""
    yield make((3, 4), dtype)
    yield make((2, 3, 4, 5), dtype).permute(0, 2, 3, 1)
    yield make((2, 3, 4, 5), dtype).contiguous(memory_format=torch.channels_last)
    yield make((3, 8), dtype)[:, ::2]
    yield make((4, 6), dtype).t()[1:5]
    yield make((3, 1), dtype).expand(3, 4)
    yield make((1, 4, 1), dtype)
    yield make((), dtype)
    yield make((0, 3), dtype)


def special(dtype=F32):
    return torch.tensor(
        [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.5, INF, -INF, NAN, 1e-30, 7.25, -88.0, 100.0], dtype=dtype
    )


UNARY_FLOAT = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "lgamma",
    "sigmoid",
    "sinc",
    "special_entr",
    "logit",
    "reciprocal",
    "deg2rad",
    "rad2deg",
]
UNARY_SAME = [
    "floor",
    "ceil",
    "trunc",
    "round",
    "frac",
    "neg",
    "abs",
    "sign",
    "sgn",
    "nan_to_num",
    "bitwise_not",
    "relu",
    "gelu",
    "silu",
    "mish",
    "hardsigmoid",
    "hardswish",
    "leaky_relu",
    "elu",
    "celu",
    "softplus",
    "hardshrink",
    "softshrink",
    "hardtanh",
    "log_sigmoid_forward",
]
UNARY_TEST = ["logical_not", "isnan", "isinf", "isposinf", "isneginf", "signbit"]


def unary():
    for name in UNARY_FLOAT + UNARY_SAME + UNARY_TEST:
        for dtype in (F32, BF16, F64, F16, I64, I32, U8, BOOL):
            yield name, (make((3, 5), dtype),)
        for x in layouts():
            yield name, (x,)
        for dtype in (F32, BF16, F64):
            # gelu(+-inf) differs between torch's own kernels.
            yield name, (special(dtype) if name != "gelu" else special(dtype).nan_to_num(posinf=50, neginf=-50),)
    x = make((4, 5))
    yield "gelu", (x, {"approximate": "tanh"})
    yield "elu", (x, 0.7, 1.3, 2.0)
    yield "celu", (x, 0.5)
    yield "softplus", (x, 2.0, 1.5)
    yield "threshold", (x, 0.1, 20.0)
    yield "hardtanh", (x, -0.5, 2)
    yield "logit", (make((9,), F32, 0, 1), 0.1)
    yield "nan_to_num", (special(), 1.0, 2.0, -3.0)
    yield "nan_to_num", (special(BF16),)
    for dim in (0, 1, -1, 5):
        yield "glu", (make((4, 6)), dim)
    yield "glu", (make((2, 4, 3, 3)).contiguous(memory_format=torch.channels_last), 1)
    yield "_prelu_kernel", (make((2, 3, 4)), make((3, 1)).expand(2, 3, 4))


def pairs(dtype=F32, other=None):
    other = other or dtype
    yield make((3, 4), dtype), make((3, 4), other)
    yield make((3, 4), dtype), make((4,), other)
    yield make((3, 1, 4), dtype), make((2, 1), other)
    yield make((1, 4), dtype), make((3, 1), other)
    yield make((3, 4), dtype), make((), other)
    yield make((), dtype), make((2, 3), other)
    yield make((4, 3), dtype).t(), make((3, 4), other)
    yield make((4, 3), dtype).t(), make((4, 3), other).t()
    yield make((3, 4), dtype), make((4, 3), other).t()
    yield make((2, 3, 4, 5), dtype).contiguous(memory_format=torch.channels_last), make((3, 1, 1), other)
    yield make((3, 1, 1), dtype), make((2, 3, 4, 5), other).contiguous(memory_format=torch.channels_last)
    yield (
        make((2, 3, 4, 5), dtype).contiguous(memory_format=torch.channels_last),
        make((2, 3, 4, 5), other).contiguous(memory_format=torch.channels_last),
    )
    yield make((2, 3, 4, 5), dtype).permute(2, 0, 3, 1), make((4, 2, 5, 3), other)
    yield make((3, 8), dtype)[:, ::2], make((3, 4), other)
    yield make((3, 1), dtype).expand(3, 4), make((3, 4), other).t().contiguous().t()
    yield make((2, 5, 3), dtype).transpose(1, 2), make((1, 3, 1), other)


MIXED = [(F32, BF16), (I64, F32), (F32, I64), (I32, I64), (U8, I32), (BOOL, F32), (BOOL, I64), (F64, F32),
         (BF16, F16), (BOOL, BOOL), (U8, U8), (I64, I64), (BF16, BF16), (BF16, I64)]  # fmt: skip
NUMBERS = [2, -3, 0.3, True, 2.0]

TENSOR_TENSOR = [
    "add.Tensor",
    "sub.Tensor",
    "rsub.Tensor",
    "mul.Tensor",
    "div.Tensor",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "atan2",
    "hypot",
    "copysign.Tensor",
    "xlogy.Tensor",
    "special_xlog1py",
    "logaddexp",
    "heaviside",
    "remainder.Tensor",
    "fmod.Tensor",
    "floor_divide",
    "pow.Tensor_Tensor",
    "eq.Tensor",
    "ne.Tensor",
    "lt.Tensor",
    "le.Tensor",
    "gt.Tensor",
    "ge.Tensor",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and.Tensor",
    "bitwise_or.Tensor",
    "bitwise_xor.Tensor",
    "bitwise_left_shift.Tensor",
    "bitwise_right_shift.Tensor",
    "nextafter",
]
TENSOR_SCALAR = [
    "add.Scalar",
    "sub.Scalar",
    "rsub.Scalar",
    "mul.Scalar",
    "div.Scalar",
    "copysign.Scalar",
    "xlogy.Scalar_Other",
    "remainder.Scalar",
    "fmod.Scalar",
    "floor_divide.Scalar",
    "pow.Tensor_Scalar",
    "eq.Scalar",
    "ne.Scalar",
    "lt.Scalar",
    "le.Scalar",
    "gt.Scalar",
    "ge.Scalar",
    "bitwise_and.Scalar",
    "bitwise_or.Scalar",
    "bitwise_xor.Scalar",
    "bitwise_left_shift.Tensor_Scalar",
    "bitwise_right_shift.Tensor_Scalar",
    "clamp_min",
    "clamp_max",
    "special_xlog1py.other_scalar",
]
SCALAR_TENSOR = [
    "xlogy.Scalar_Self",
    "remainder.Scalar_Tensor",
    "pow.Scalar",
    "bitwise_and.Scalar_Tensor",
    "bitwise_left_shift.Scalar_Tensor",
    "bitwise_right_shift.Scalar_Tensor",
    "special_xlog1py.self_scalar",
]


def binary():
    for name in TENSOR_TENSOR:
        for a, b in pairs():
            yield name, (a, b)
        for da, db in MIXED:
            yield name, (make((3, 4), da), make((3, 4), db))
            yield name, (make((3, 4), da), make((), db))
            yield name, (make((), da), make((3, 4), db))
        yield name, (special()[:, None], special()[None, :])
        yield name, (make((3, 4)), make((3, 5)))
    for name in TENSOR_SCALAR:
        for dtype in (F32, BF16, F64, I64, I32, U8, BOOL):
            for n in NUMBERS:
                yield name, (make((3, 4), dtype), n)
                yield name, (make((), dtype), n)
        for x in layouts():
            yield name, (x, 2)
        yield name, (special(), 0.5)
        yield name, (special(), INF)
        yield name, (special(), NAN)
    for exponent in (0, 1, 2, 3, 0.5, -0.5, -1, -2, 1.5, 5, -3, 0.0, 2.5):
        for dtype in (F32, BF16, I64, U8):
            yield "pow.Tensor_Scalar", (make((7,), dtype), exponent)
        yield "pow.Tensor_Scalar", (special(), exponent)
    for name in SCALAR_TENSOR:
        for dtype in (F32, I64, BF16):
            for n in NUMBERS:
                yield name, (n, make((3, 4), dtype))
    for name in ("add", "sub", "rsub"):
        for alpha in (2, 0.5, -1):
            for dtype in (F32, BF16, I64, BOOL):
                yield f"{name}.Tensor", (make((3, 4), dtype), make((4,), dtype), {"alpha": alpha})
                yield f"{name}.Scalar", (make((3, 4), dtype), 3, alpha)
    for mode in (None, "trunc", "floor", "up"):
        for da, db in MIXED:
            yield "div.Tensor_mode", (make((3, 4), da), make((3, 4), db), {"rounding_mode": mode})
        for n in (2, -3, 0.7, 0):
            for dtype in (F32, I64, BF16, U8):
                yield "div.Scalar_mode", (make((3, 4), dtype), n, {"rounding_mode": mode})
        yield "div.Tensor_mode", (special()[:, None], special()[None, :], {"rounding_mode": mode})


def select():
    for a, b in pairs():
        yield "where.self", (make((3, 1)) > 0 if a.dim() < 3 and b.dim() < 3 else make((1,)) > 0, a, b)
    for da, db in MIXED:
        yield "where.self", (make((3, 4), BOOL), make((3, 4), da), make((), db))
    cl = make((2, 3, 4, 5)).contiguous(memory_format=torch.channels_last)
    yield "where.self", (make((4, 5), BOOL), cl, make(()))
    yield "where.self", (make((2, 1, 4, 5), BOOL).expand(2, 3, 4, 5), cl, make(()))
    yield "where.self", (make((5, 4), BOOL).t().expand(2, 3, 4, 5), make((3, 4, 5)), make((2, 3, 4, 5)))
    for dtype in (F32, BF16, I64, BOOL):
        yield "masked_fill.Scalar", (make((3, 4), dtype), make((3, 4), BOOL), 1)
        yield "masked_fill.Tensor", (make((3, 4), dtype), make((4,), BOOL), make((), dtype))
    yield "masked_fill.Scalar", (make((3, 4)).t(), make((2, 4, 3), BOOL), -INF)
    yield "masked_fill.Scalar", (make((3, 4)), make((3, 4)), -INF)
    yield "masked_fill.Tensor", (make((3, 4)), make((3, 4), BOOL), make((2,)))
    for dtype in (F32, BF16, I64, U8):
        for low, high in ((-1, 1), (None, 0.5), (0, None), (2, -2), (None, None), (NAN, 1.0)):
            yield "clamp", (make((3, 4), dtype), low, high)
        yield "clamp.Tensor", (make((3, 4), dtype), make((4,), dtype), make((), dtype))
        yield "clamp.Tensor", (make((3, 4), dtype), None, make((3, 1), dtype))
        yield "clamp_min.Tensor", (make((3, 4), dtype), make((4,), dtype))
        yield "clamp_max.Tensor", (make((3, 4), dtype), make((4,), F32))
    yield "clamp", (special(), -1.0, 1.0)
    for dtype in (F32, BF16, F64, I64):
        a, b, c = make((3, 4), dtype), make((3, 4), dtype), make((4,), dtype)
        yield "lerp.Scalar", (a, b, 0.3)
        yield "lerp.Scalar", (a, b, 0.8)
        yield "lerp.Tensor", (a, b, c)
        yield "addcmul", (a, b, c)
        yield "addcmul", (a, b, c, {"value": 2})
        yield "addcmul", (a, b, c, {"value": 0.5})
        yield "addcdiv", (a, b, c)
        yield "addcdiv", (a, b, c, {"value": -0.5})
    yield "lerp.Tensor", (make((3, 4)), make((3, 4), F64), make((4,)))


def copies():
    formats = (None, torch.contiguous_format, torch.preserve_format, torch.channels_last)
    for x in layouts():
        yield "clone", (x,)
        yield "_to_copy", (x, {"dtype": F64})
        if x.dim() == 4:
            for memory_format in formats:
                yield "clone", (x, {"memory_format": memory_format})
                yield "_to_copy", (x, {"memory_format": memory_format, "dtype": BF16})
    for a in (F32, BF16, F16, F64, I64, I32, U8, BOOL):
        for b in (F32, BF16, F16, F64, I64, I32, U8, BOOL):
            yield "_to_copy", (make((9,), a, 0 if b == U8 else -3, 5), {"dtype": b})
    for a, b in pairs(F32, I64):
        if a.dim() >= b.dim():
            yield "copy", (a, b)
    yield "copy", (make((3, 4)), make((3, 1)))
    yield "copy", (make((3, 1)), make((3, 4)))
    for dtype in (F32, BF16, I64):
        yield "native_dropout", (make((3, 4), dtype).t(), 0.5, False)


def reductions():
    for name in ("sum", "prod", "any", "all", "max", "min", "mean"):
        for dtype in (F32, BF16, F64, I64, I32, U8, BOOL):
            yield name, (make((3, 4), dtype, 0.5, 2),)
        for x in layouts():
            yield name, (x,)
        yield name, (special(),)
    for name in ("sum.dim_IntList", "mean.dim", "nansum", "amax", "amin", "any.dims", "all.dims", "logsumexp"):
        for dtype in (F32, BF16, F64, I64, U8, BOOL):
            for dim in ([0], [1], [-1, 0], [], [2], [0, 0]):
                yield name, (make((3, 4), dtype), dim, False)
        for x in layouts():
            yield name, (x, [0], True)
            yield name, (x, [-1], False)
        yield name, (make((2, 3, 4, 5)).permute(3, 1, 0, 2), [1, 3], True)
        yield name, (torch.stack([special(), special().flip(0)]), [1], False)
    for name in ("sum.dim_IntList", "nansum", "mean.dim"):
        yield name, (make((3, 4)), None, True)
        for dtype in (F64, BF16, I64, F32):
            yield name, (make((3, 4)), [1], False, {"dtype": dtype})
            yield name, (make((3, 4), I32), [1], False, {"dtype": dtype})
    yield "sum", (make((3, 4), I32), {"dtype": I32})
    for name in ("any.dim", "all.dim", "prod.dim_int", "argmax", "argmin", "max.dim", "min.dim"):
        for dtype in (F32, BF16, F64, I64, U8, BOOL):
            yield name, (make((3, 4), dtype), 0, False)
            yield name, (make((3, 4), dtype), -1, True)
        for x in layouts():
            yield name, (x, 0, True)
        yield name, (torch.stack([special(), special().flip(0)]), 1, False)
        yield name, (make((3, 4)), 2, False)
    for name in ("argmax", "argmin"):
        yield name, (make((3, 4)),)
        yield name, (make((3, 4)), None, True)
        yield name, (torch.ones(3, 4), 1)
        yield name, (make((2, 3, 4)).permute(2, 0, 1),)
    for dim in (None, 0, 1):
        yield "aminmax", (make((3, 4)), {"dim": dim, "keepdim": True})
        yield "count_nonzero", (make((3, 4), I64), dim)
    yield "count_nonzero.dim_IntList", (make((3, 4)), [0, 1])
    for name in ("var.correction", "std.correction", "var_mean.correction", "std_mean.correction"):
        for dtype in (F32, BF16, F64, I64):
            for dim in ([0], [1], None, []):
                for correction in (None, 0, 1, 1.5):
                    yield name, (make((3, 4), dtype), dim, {"correction": correction})
        yield name, (make((2, 3, 4)).transpose(0, 2), [1], {"keepdim": True})
        yield name, (make((3, 1)), [1])
        yield name, (make((0, 1)), [1])
    for order in (2, 1, 0, INF, -INF, 3, 0.5):
        for dtype in (F32, BF16, F64):
            yield "linalg_vector_norm", (make((3, 4), dtype), order, [1], True)
            yield "linalg_vector_norm", (make((3, 4), dtype), order)
        yield "norm.Scalar", (make((3, 4)), order)
        yield "norm.ScalarOpt_dim", (make((3, 4)), order, [0], False)
    yield "norm.ScalarOpt_dim", (make((3, 4)), None, [0], False)
    yield "norm.ScalarOpt_dim_dtype", (make((3, 4)), 2, [0], False, {"dtype": F64})
    yield "norm.ScalarOpt_dtype", (make((3, 4)), 2, {"dtype": F64})
    yield "linalg_vector_norm", (make((3, 4), BF16), 2, [1], False, {"dtype": F32})


def normalizations():
    for name in ("_softmax", "_log_softmax"):
        for dtype in (F32, BF16, F64):
            for dim in (0, 1, -1):
                yield name, (make((3, 4), dtype), dim, False)
        for x in layouts():
            yield name, (x, -1, False)
        yield name, (special()[:, None] + torch.zeros(1, 3), 1, False)
    masked = make((3, 4))
    masked[1] = -INF
    yield "_softmax", (masked, 1, False)
    yield "_safe_softmax", (masked, 1)
    yield "_safe_softmax", (masked, 0, F64)
    for dtype, weights in ((F32, F32), (BF16, BF16), (BF16, F32), (F64, F64), (F32, BF16)):
        x, w, b = make((2, 3, 4), dtype), make((4,), weights), make((4,), weights)
        yield "native_layer_norm", (x, [4], w, b, 1e-5)
        yield "native_layer_norm", (x, [4], None, None, 1e-5)
        yield "native_layer_norm", (x, [3, 4], make((3, 4), weights), None, 1e-5)
        yield "native_layer_norm", (make((2, 4, 3), dtype).transpose(1, 2), [4], w, b, 1e-5)
        yield "native_layer_norm", (x, [3], None, None, 1e-5)
        c = make((6,), weights)
        image = make((2, 6, 4, 5), dtype)
        for group in (1, 2, 3, 6):
            yield "native_group_norm", (image, c, c, 2, 6, 20, group, 1e-5)
        yield "native_group_norm", (image, None, None, 2, 6, 20, 2, 1e-5)
        yield "native_group_norm", (image.contiguous(memory_format=torch.channels_last), c, c, 2, 6, 20, 2, 1e-5)
        yield "native_group_norm", (make((2, 6), dtype), c, c, 2, 6, 1, 2, 1e-5)
        mean, variance = make((6,), weights), make((6,), weights, 0.5, 2)
        for y in (
            image,
            image.contiguous(memory_format=torch.channels_last),
            image.permute(0, 1, 3, 2),
            make((5, 6), dtype),
            make((2, 6, 7), dtype),
            make((2, 6, 2, 3, 2), dtype),
        ):
            yield "native_batch_norm", (y, c, c, mean, variance, False, 0.1, 1e-5)
            yield "native_batch_norm", (y, None, None, mean, variance, False, 0.1, 1e-5)
            yield "native_batch_norm", (y, c, c, None, None, True, 0.1, 1e-5)
            yield "_native_batch_norm_legit_no_training", (y, c, c, mean, variance, 0.1, 1e-5)
            yield "_native_batch_norm_legit.no_stats", (y, c, c, True, 0.1, 1e-5)
            yield "_batch_norm_no_update", (y, c, c, mean, variance, 0.1, 1e-5)


def samples():
    for family in (unary, binary, select, copies, reductions, normalizations):
        for name, args in family():
            yield f"aten::{name}", args
