"""An operator that raises by its data or by dtypes raises at its place in the program: inside of the `try` around it,
and before later operators. Beside eager, the first call included."""

import pytest
import torch
import torch.nn.functional as F
from torch import tensor

import cresset

ZEROS = torch.zeros(3, 3)
NAN = torch.full((3, 3), float("nan"))
MINUS = -torch.eye(3)
WIDE = torch.zeros(2, 3)
FAR = tensor([0, 4])

# name: the raising operator, its argument
CALLS = {
    "index": (lambda a, b: a[b], (WIDE, FAR)),
    "index_computed": (lambda a, b: a[(b * 2).abs() + 1], (WIDE, FAR)),
    "index_columns": (lambda a, b: a[:, b], (WIDE, FAR)),
    "index_negative": (lambda a, b: a[b], (WIDE, tensor([-3]))),
    "position": (lambda a, b: a[b], (WIDE, tensor(2))),
    "position_negative": (lambda a, b: a[b], (WIDE, tensor(-3))),
    "position_computed": (lambda a, b: a[b.argmax() + 1], (WIDE, tensor([1, 2]))),
    "position_of_columns": (lambda a, b: a[:, b.sum()], (WIDE, tensor([1, 2]))),
    "position_assignment": (lambda a, b: a.__setitem__(b, 1.0), (WIDE, tensor(2))),
    "index_put": (lambda a, b: a.index_put((b,), tensor(1.0)), (WIDE, FAR)),
    "item_assignment": (lambda a, b: a.__setitem__(b, 1.0), (WIDE, FAR)),
    "index_select": (lambda a, b: a.index_select(1, b), (WIDE, FAR)),
    "index_add": (lambda a, b: a.index_add(0, b, torch.ones(2, 3)), (WIDE, FAR)),
    "gather": (lambda a, b: a.gather(1, b), (WIDE, tensor([[0, 4]]))),
    "scatter": (lambda a, b: a.scatter(1, b, 1.0), (WIDE, tensor([[0, 4]]))),
    "scatter_in_place": (lambda a, b: a.scatter_(1, b, 1.0), (WIDE, tensor([[0, 4]]))),
    "scatter_add": (lambda a, b: a.scatter_add(1, b, torch.ones(1, 2)), (WIDE, tensor([[0, 4]]))),
    "take": (lambda a, b: a.take(b), (WIDE, tensor([0, 9]))),
    "embedding": (lambda a, b: F.embedding(b, a), (WIDE, FAR)),
    "embedding_negative": (lambda a, b: F.embedding(b, a), (WIDE, tensor([-1]))),
    "embedding_bag": (lambda a, b: F.embedding_bag(b, a), (WIDE, tensor([[0, 4]]))),
    "one_hot": (lambda a: F.one_hot(a, 3), (tensor([0, 9]),)),
    "nll_loss": (F.nll_loss, (WIDE, FAR)),
    "cross_entropy": (F.cross_entropy, (WIDE, FAR)),
    "cross_entropy_2d": (F.cross_entropy, (torch.zeros(2, 3, 2), tensor([[0, 1], [3, 1]]))),
    "binary_cross_entropy": (F.binary_cross_entropy, (tensor([1.0, 2.0]), tensor([0.0, 1.0]))),
    "multi_margin_loss": (F.multi_margin_loss, (WIDE, FAR)),
    "floor_division": (lambda a, b: a // b, (tensor([1, 2]), tensor([0, 1]))),
    "remainder": (lambda a, b: a % b, (tensor([1, 2]), tensor([0, 1]))),
    "fmod": (torch.fmod, (tensor([1, 2]), tensor([0, 1]))),
    "cholesky": (torch.linalg.cholesky, (MINUS,)),
    "inv": (torch.linalg.inv, (ZEROS,)),
    "solve": (lambda a: torch.linalg.solve(a, torch.ones(3)), (ZEROS,)),
    "eigh": (torch.linalg.eigh, (NAN,)),
    "svd": (torch.linalg.svd, (NAN,)),
    "pinv": (torch.linalg.pinv, (NAN,)),
    "lu_factor": (torch.linalg.lu_factor, (ZEROS,)),
    "multinomial": (lambda a: torch.multinomial(a, 1), (-torch.ones(3),)),
    "bernoulli": (torch.bernoulli, (-torch.ones(3),)),
    "normal": (lambda a: torch.normal(a, a), (-torch.ones(3),)),
    "bincount": (torch.bincount, (tensor([-1, 2]),)),
    "repeat_interleave": (torch.repeat_interleave, (tensor([-1, 2]),)),
    "masked_scatter": (lambda a: a.masked_scatter(a >= 0, torch.ones(2)), (torch.zeros(3),)),
    "max_unpool1d": (lambda a, b: F.max_unpool1d(a, b, 2), (torch.zeros(1, 1, 2), tensor([[[0, 9]]]))),
    "assert_async": (lambda a: torch._assert_async(a.sum() > 5), (torch.zeros(2),)),
    "check_tensor_all": (lambda a: torch._check_tensor_all(a > 5), (torch.zeros(2),)),
    "check_tensor_all_in_words": (lambda a: torch._check_tensor_all(a > 5, lambda: f"small: {a}"), (torch.zeros(2),)),
    "check_tensor_all_of_numbers": (lambda a: torch._check_tensor_all(a), (torch.zeros(2),)),
    "renormed_embedding": (lambda a: F.embedding(tensor([0, 7]), a, max_norm=1.0), (torch.ones(3, 3),)),
    # by dtypes allowed by meta kernels
    "product_of_two_dtypes": (lambda a: a @ a.to(torch.complex64), (ZEROS,)),
    "cdist_of_two_dtypes": (lambda a: torch.cdist(a, a.double()), (ZEROS,)),
    "bits_of_floats": (lambda a: a & a, (ZEROS,)),
    "softmax_of_integers": (lambda a: a.long().softmax(0), (ZEROS,)),
    "gelu_of_integers": (lambda a: F.gelu(a.long()), (ZEROS,)),
    "relu_of_booleans": (lambda a: F.relu(a > 0), (ZEROS,)),
    "topk_of_booleans": (lambda a: (a > 0).topk(1), (ZEROS,)),
    "maximum_of_complex_numbers": (lambda a: torch.maximum(a.to(torch.complex64), a), (ZEROS,)),
    "range_of_booleans": (lambda a: torch.arange(a.shape[0], dtype=torch.bool), (ZEROS,)),
    "indices_copied_of_two_dtypes": (lambda a: a.index_copy(0, tensor([0]), a[:1].double()), (ZEROS,)),
    "indices_added_of_two_dtypes": (lambda a: a.index_add(0, tensor([0]), a[:1].long()), (ZEROS,)),
    "scatter_of_two_dtypes": (lambda a: a.scatter_add(0, tensor([[0, 1, 2]]), a.double()), (ZEROS,)),
    "index_put_of_two_dtypes": (lambda a: a.index_put((tensor([0]),), tensor(1)), (ZEROS,)),
    "cross_of_two_dtypes": (lambda a: torch.linalg.cross(a, a.long()), (ZEROS,)),
    "heaviside_of_two_dtypes": (lambda a: torch.heaviside(a, a.long()), (ZEROS,)),
    "layer_norm_of_two_dtypes": (lambda a: F.layer_norm(a, (3,), a[0].long(), a[1].long()), (ZEROS,)),
    "tensordot_of_two_dtypes": (lambda a: torch.tensordot(a, a.double(), dims=1), (ZEROS,)),
    "targets_of_two_dtypes": (lambda a: F.binary_cross_entropy(a, a.double()), (ZEROS,)),
    "unique_of_complex_numbers": (lambda a: a.to(torch.complex64).unique(), (ZEROS,)),
    "standard_deviation_of_integers": (lambda a: a.long().std(), (ZEROS,)),
}


def seen(function, given, calls=3):
    out = []
    for k in range(calls):
        torch.manual_seed(k)
        given_now, log = [t.clone() for t in given], []
        try:
            result = repr(function(*given_now, log))
        except Exception as e:
            result = type(e).__name__, str(e)
        out.append((result, log, repr(given_now), repr(torch.rand(1))))
    return out


@pytest.mark.parametrize("name", CALLS)
def test_in_a_try(name):
    call, given = CALLS[name]

    def program(*arguments):
        *tensors, log = arguments
        x = tensors[0] + 0
        log.append("before")
        try:
            call(*tensors)
            log.append("behind")
            return x
        except Exception as e:
            log.append((type(e).__name__, str(e)))
        return x * 2

    assert seen(cresset.compile(program), given) == seen(program, given)


@pytest.mark.parametrize("name", CALLS)
def test_what_stands_behind_has_not_happened(name):
    call, given = CALLS[name]

    def program(*arguments):
        *tensors, log = arguments
        log.append("before")
        tensors[0].add_(0)
        result = call(*tensors)
        log.append("behind")
        tensors[0].add_(1)
        return result

    assert seen(cresset.compile(program), given) == seen(program, given)


@pytest.mark.parametrize("order", [(0, 9, 1, 9), (9, 1, 9, 0)])
def test_good_data_beside_bad(order):
    def program(x, i):
        y = x.sin()
        try:
            found, how = F.embedding(i, y), "found"
        except IndexError:
            found, how = y[:1], "not found"
        return found * 2, how

    compiled = cresset.compile(program)
    for i in order:
        x = torch.randn(4, 3)
        (got, how), (wanted, as_wanted) = compiled(x, tensor([i])), program(x, tensor([i]))
        assert how == as_wanted
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("first_is_good", [True, False])
def test_a_check_whose_result_nobody_uses(first_is_good):
    def is_positive(a):
        try:
            torch.linalg.cholesky(a * 2)
            return a + 1, True
        except torch.linalg.LinAlgError:
            return a - 1, False

    compiled = cresset.compile(is_positive)
    for good in [first_is_good, not first_is_good, True, False]:
        a = torch.eye(3) if good else -torch.eye(3)
        assert repr(compiled(a)) == repr(is_positive(a))


# the operator, accepted data, rejected data
UNUSED = {
    "index": (lambda a, b: a[b], (WIDE, tensor([1])), (WIDE, FAR)),
    "gather": (lambda a, b: a.gather(1, b), (WIDE, tensor([[0, 1]])), (WIDE, tensor([[0, 4]]))),
    "embedding": (lambda a, b: F.embedding(b, a), (WIDE, tensor([1])), (WIDE, FAR)),
    "index_select": (lambda a, b: a.index_select(1, b), (WIDE, tensor([1])), (WIDE, FAR)),
    "cross_entropy": (F.cross_entropy, (WIDE, tensor([0, 1])), (WIDE, FAR)),
    "floor_division": (lambda a, b: a // b, (tensor([1]), tensor([1])), (tensor([1]), tensor([0]))),
    "inv": (torch.linalg.inv, (torch.eye(3),), (ZEROS,)),
    "solve": (lambda a: torch.linalg.solve(a, torch.ones(3)), (torch.eye(3),), (ZEROS,)),
    "eigh": (torch.linalg.eigh, (torch.eye(3),), (NAN,)),
    "multinomial": (lambda a: torch.multinomial(a, 1), (torch.ones(3),), (-torch.ones(3),)),
    "one_hot": (lambda a: F.one_hot(a, 3), (tensor([0, 1]),), (tensor([0, 9]),)),
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", UNUSED)
def test_what_later_calls_refuse_though_nobody_uses_it(name, grad):
    call, good, bad = UNUSED[name]

    def is_taken(*given):
        try:
            call(*given)
        except Exception as e:
            return given[0].detach() - 1, type(e).__name__, str(e)
        return given[0].detach() + 1, True

    compiled = cresset.compile(is_taken)
    for given in (good, bad, good, bad, bad):
        mine, its = ([t.clone().requires_grad_(grad and t.is_floating_point()) for t in given] for _ in range(2))
        assert repr(compiled(*mine)) == repr(is_taken(*its))


def test_behind_much_work_where_it_may_be_caught():
    net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).requires_grad_(False)

    def program(x):
        a = net(x) * 0
        try:
            return torch.linalg.inv(a)
        except RuntimeError as e:
            return type(e).__name__

    x = torch.randn(512, 512)
    assert cresset.compile(program)(x) == program(x) == "_LinAlgError"


def test_fullgraph_raises_what_eager_raises():
    def program(x, i):
        return F.embedding(i, x * 2)

    compiled = cresset.compile(program, fullgraph=True)
    for _ in range(2):
        with pytest.raises(IndexError, match="index out of range in self"):
            compiled(torch.ones(3, 2), tensor([5]))
        assert compiled(torch.ones(3, 2), tensor([1])).tolist() == [[2.0, 2.0]]


def test_good_calls_are_one_piece():
    def program(x, i, target):
        h = x[i].index_select(1, i).scatter_add(0, i[None], torch.ones(1, 2))
        return F.cross_entropy(h, target) + torch.linalg.cholesky(torch.eye(2) + h.T @ h).sum()

    compiled = cresset.compile(program, fullgraph=True)
    x = torch.rand(3, 3)
    given = x, tensor([0, 1]), tensor([1, 0])
    torch.testing.assert_close(compiled(*given), program(*given))


def cleans_up(x, i, log):
    try:
        (x.sin() @ x.t())[i]
        return x + 1
    finally:
        log.append("f")


def keeps_by_returning(x, i, log):
    try:
        x[i]
        return x + 1
    finally:
        log.append(len(log))
        if len(log) > 0:
            return x + 2  # noqa: B012


def keeps_by_breaking(x, i, log):
    for k in range(3):
        try:
            x[i]
            x = x + 1
        finally:
            log.append(k)
            if k == 1:
                break  # noqa: B012
            else:
                continue
    return x


def keeps_by_a_try_inside(x, i, log):
    try:
        try:
            x[i]
        finally:
            try:
                log.append(int(len(log) / 0))
            except ZeroDivisionError:
                log.append("zero")
    except IndexError:
        return x + 3
    return x + 1


@pytest.mark.parametrize("keeps", [keeps_by_returning, keeps_by_breaking, keeps_by_a_try_inside])
@torch.no_grad()
def test_what_a_finally_keeps_is_raised_though_nobody_uses_it(keeps):
    compiled = cresset.compile(keeps)
    for i in (tensor([1]), FAR, tensor([1]), FAR):
        mine, its = [], []
        assert torch.equal(compiled(WIDE, i, mine), keeps(WIDE, i, its))
        assert mine == its


@torch.no_grad()
def test_what_nobody_uses_is_not_computed_for_a_finally_that_cleans_up():
    compiled = cresset.compile(cleans_up, fullgraph=True)
    for _ in range(2):
        log = []
        assert torch.equal(compiled(WIDE, tensor([1]), log), WIDE + 1)
        assert log == ["f"]
    # The indices alone are checked: neither the sine nor the product is computed.
    found = cresset._C.cache_entries(compiled)
    assert [(v["extern_calls"], v["kernel_count"]) for v in found] == [(1, 1)]


def unused_rows(x, i):
    x.exp().index_select(0, i)
    F.embedding(i, x.cos())
    x.tanh().gather(0, i[:, None])
    torch.index_put(x.abs(), (i,), torch.ones(()))
    return x + 1


@torch.no_grad()
def test_indices_of_unused_operators_are_checked_alone():
    compiled = cresset.compile(unused_rows, fullgraph=True)
    x = torch.randn(5, 5)
    for i in ([1], [2, 3], [4], [0, 0, 4], [], [5], [-1], [1, 9], [0], [-6]):
        given = torch.tensor(i, dtype=torch.int64)
        outcomes = []
        for f in (unused_rows, compiled):
            try:
                outcomes.append(f(x, given).tolist())
            except IndexError as e:
                outcomes.append(str(e))
        assert outcomes[0] == outcomes[1], i
    found = cresset._C.cache_entries(compiled)
    assert [(v["extern_calls"], v["kernel_count"]) for v in found] == [(4, 1)]
