# size: table
"""Programs with objects whose state is in C code alone (arrays, buffers), made in the call or before, and with integer
tensors made from sizes. As programs_library, with the prelude of programs_torch."""

PROGRAMS = r"""
array_made_and_read
|import numpy as np
a = np.arange(x.shape[0])
y = x + 1
return y * int(a.sum()), a.shape, a.dtype, len(a), a.ndim

array_is_a_result
|import numpy as np
a = np.ones((x.shape[0], 2)); b = a
y = x * 2
return y.sum(), a, b is a, [a, b], {"a": a}

arrays_in_a_comprehension
|import numpy as np
rows = [np.full(3, i) for i in range(2)]
y = x.cos()
m = np.stack(rows, axis=0)
return y.sum() + torch.tensor(m, dtype=torch.float32).sum(), m.shape, m

array_is_written
|import numpy as np
a = np.zeros(4)
y = x + 1
a[0] = w.n; a[1:3] = 7
z = y * 2
return z, a, float(a.sum())

array_attributes_by_name
|import numpy as np
a = np.arange(6.0).reshape(2, 3) * w.n
y = x * 2
return y, list(a.T.shape), getattr(a, "size"), hasattr(a, "nothing"), a.T[0].tolist(), a.flags.writeable

array_of_a_tensor_shares_its_memory
y = x * 2
a = y.numpy()
z = y + 1
a[0] = 5.0
return z, y, a.sum()

tensor_of_an_array_shares_its_memory
|import numpy as np
a = np.ones(4, dtype=np.float32)
t = torch.from_numpy(a)
t.add_(w.n)
y = x * t
a[1] = 0
return y, t, a

state_array_sliced
|import numpy as np
|A = np.arange(8.0)
A[w.n % 8] += 1
return x * float(A[1:3].sum()), x + float(A[np.int64(2)]), x - float((A + np.float64(1))[0]), A[..., 1].item()

array_chosen_by_data
|import numpy as np
a = np.arange(4)
b = a if x.sum() > 0 else a[::-1].copy()
return x * int(b[0]), b

array_passed_down
|import numpy as np
|def scale(t, a, k=2): return t * float(a[k])
|def spaced(n): return np.linspace(0, 1, n)
a = spaced(5)
return scale(x, a), scale(x, a, k=w.n % 3), a

array_and_object
|import numpy as np
|class Box:
|    def __init__(s, a): s.a = a; s.t = None
b = Box(np.arange(3) + w.n)
b.t = x * 2
c = b.a.max()
return b.t + int(c), b.a, b.t

array_same_name_twice
|import numpy as np
a = np.array([1, 2, 3]); d = {"a": a, "l": [a]}
y = x + 1
print(end="")
d["l"][0][0] = 9
return y, d["a"], d["a"] is d["l"][0]

array_truth_and_compare
|import numpy as np
a = np.array([w.n])
y = x * 2
r = "big" if (a > 4).all() else "small"
return y, r, (a == 5).any(), a is None, isinstance(a, np.ndarray)

array_raises
|import numpy as np
a = np.arange(3)
y = x * 2
try: a[7]
except IndexError as e: return y, str(e)

array_in_a_loop
|import numpy as np
t = x
for i in range(3):
    a = np.full((2,), i + 1.0)
    t = t * float(a.sum())
return t

array_formatted
|import numpy as np
a = np.array([w.n, 2])
y = x + 1
return y, f"{a}", "%s" % a, str(a)

bytes_buffer
b = io.BytesIO()
y = x * 2
b.write(b"ab")
z = y + 1
return z, b.getvalue(), b.tell()

text_buffer_and_loop
b = io.StringIO()
t = x
for i in range(3):
    b.write(str(i)); t = t + 1
return t, b.getvalue()

memory_of_bytes
m = memoryview(bytearray(b"abc"))
y = x * 2
print(end="")
m[0] = 65
return y + 1, bytes(m), m.nbytes

size_in_a_tensor
n = torch.tensor(x.shape[0])
half = torch.div(n, 2, rounding_mode="trunc")
return x[: int(half)], half, n.item() + 1, bool(n > 2)

sizes_in_a_list_of_tensors
t = torch.as_tensor([x.shape[0], x.shape[1]])
return x.reshape(int(t.prod())), t.tolist(), int(t[0]) + int(t[-1]), int(t.max()), t[1:].sum().item()

size_divided_for_a_view
y = torch.cat([x, x])
return y.view(torch.div(y.size(0), 2, rounding_mode="floor"), 2, y.size(1)), y.new_zeros((torch.tensor(y.size(0)) // 2, 3))

size_tensor_written
n = torch.zeros((), dtype=torch.int64)
n += x.shape[0]
n.mul_(2)
m = n.clone()
n.sub_(1)
return x.new_ones(int(m)), int(n), m

size_in_int32_wraps
n = torch.tensor(x.shape[0], dtype=torch.int32)
return (n * 1000000000).item(), torch.tensor(x.shape[0]) * 2**62, (torch.tensor(x.shape[0]) * 2**62).item()

size_divides_by_zero
n = torch.tensor(x.shape[0])
try: return (n // (x.shape[0] - 3)).item()
except Exception as e: return type(e).__name__, str(e)

size_negative_division
n = torch.tensor(-x.shape[0])
return [int(torch.div(n, 2, rounding_mode=m)) for m in ("trunc", "floor")], int(n % 3), int(torch.remainder(n, -4)), int(-n)

sizes_compared_in_tensors
n = torch.tensor(x.shape)
if bool(n[0] < n[1]): return x * 2, "wide"
return x + 1, "tall"

strides_asked
y = (x * 2).view(x.shape[0], 2, 2)
s = list(y.stride()); s[0] = s[0] // 2
return y, s, y.transpose(1, 2).stride(), x.is_contiguous()
"""
