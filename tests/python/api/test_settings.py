"""Settings of torch that change between calls: a program's query gets the setting at its time, and every call repeats
the program's own changes."""

import _thread
import abc
import dataclasses
import sys
import threading
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import cresset


def threads(i):
    torch.set_num_threads(1 + i % 2)


def precision(i):
    torch.set_float32_matmul_precision(["highest", "high", "medium"][i % 3])


def onednn(i):
    torch._C._set_mkldnn_enabled(i % 2 == 0)


def attention(i):
    torch.backends.cuda.enable_flash_sdp(i % 2 == 0)


def recursion(i):
    sys.setrecursionlimit(5000 + i % 3)


def anomaly(i):
    torch.set_anomaly_enabled(i % 2 == 1)


ASKED = {
    "threads": (threads, lambda x: (x * torch.get_num_threads(), torch.get_num_threads())),
    "precision": (precision, lambda x: (x + 1, torch.get_float32_matmul_precision())),
    "oneDNN": (onednn, lambda x: (x * 2 if torch.backends.mkldnn.enabled else x * 3, x)),
    "precision of a library": (precision, lambda x: (x, torch._C._get_fp32_precision_getter("mkldnn", "matmul"))),
    "attention": (attention, lambda x: (x * 2 if torch.backends.cuda.flash_sdp_enabled() else x * 3, x)),
    "recursion": (recursion, lambda x: (x + 1, sys.getrecursionlimit())),
    "anomaly": (anomaly, lambda x: (x + 1, torch.is_anomaly_enabled())),
}
STATE = (
    torch.get_num_threads,
    torch.get_float32_matmul_precision,
    torch._C._get_mkldnn_enabled,
    torch._C._get_flash_sdp_enabled,
    torch._C._get_math_sdp_enabled,
    torch.is_anomaly_enabled,
    sys.getrecursionlimit,
)


@pytest.fixture(autouse=True)
def as_before():
    before = [f() for f in STATE]
    yield
    threads(before[0] - 1)
    torch.set_float32_matmul_precision(before[1])
    onednn(1 - before[2])
    attention(1 - before[3])
    torch._C._set_sdp_use_math(before[4])
    torch.set_anomaly_enabled(before[5])
    sys.setrecursionlimit(before[6])


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("fullgraph", [False, True])
def test_what_is_asked(name, fullgraph):
    make, function = ASKED[name]
    cresset.reset()
    compiled = cresset.compile(function, fullgraph=fullgraph)
    for i in range(6):
        make(i)
        x = torch.full((2 + i % 2,), 1.5)
        assert repr(compiled(x)) == repr(function(x)), i
    assert cresset.stats()["graph_breaks"] == 0
    assert cresset.stats()["graphs"] <= 3  # a graph for each setting


def makes_and_leaves(x):
    torch.set_float32_matmul_precision("high")
    return x + 1, torch.get_float32_matmul_precision()


def makes_for_a_while(x):
    with sdpa_kernel(SDPBackend.MATH):
        y = F.scaled_dot_product_attention(x[None], x[None], x[None])
        inside = torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()
    return y, inside, torch.backends.cuda.flash_sdp_enabled()


def makes_over_a_break(x):
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    n = float(x.sum())
    inside = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(before)
    return x * n, inside, torch._C._get_mkldnn_enabled()


def makes_it_of_a_size(x):
    torch._C._set_sdp_use_math(x.shape[0] > 2)
    return x + 1


@pytest.mark.parametrize("function", [makes_and_leaves, makes_for_a_while, makes_over_a_break, makes_it_of_a_size])
def test_what_is_made(function):
    cresset.reset()
    compiled, seen = cresset.compile(function), {}
    for i in range(6):
        x = torch.full((2 + i % 2, 4), float(1 + i))
        for side in (function, compiled):
            precision(0), onednn(i), attention(i)
            result = side(x)
            seen[side] = repr(result), [f() for f in STATE]
        assert seen[compiled] == seen[function], i


def in_thread(function, *args):
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*args)))
    thread.start()
    thread.join()
    return results[0]


WHO = {
    "ident": lambda x: (x + 1, threading.get_ident(), _thread.get_ident()),
    "native": lambda x: (x + 1, threading.get_native_id()),
    "thread": lambda x: (x + 1, threading.current_thread().name),
    "main": lambda x: (x * 2 if threading.current_thread() is threading.main_thread() else x * 3,),
}


@pytest.mark.parametrize("name", WHO)
def test_which_thread_asks(name):
    function = WHO[name]
    cresset.reset()
    compiled = cresset.compile(function)

    def both(x):
        return repr(compiled(x)), repr(function(x))

    for i in range(6):
        got, expected = both(torch.ones(2)) if i % 2 else in_thread(both, torch.ones(2))
        assert got == expected, i


@dataclasses.dataclass
class Named:
    name: str
    size: int


def test_a_text_of_a_record_is_for_all_threads():
    record = Named("a", 3)
    cresset.reset()
    compiled = cresset.compile(lambda x: (x + 1, repr(record)))
    for i in range(6):
        result = in_thread(compiled, torch.ones(2)) if i % 2 else compiled(torch.ones(2))
        assert result[1] == repr(record)
    assert cresset.stats()["graphs"] == 1


def test_weak_references_are_counted():
    class Thing:
        pass

    thing, kept = Thing(), []
    cresset.reset()
    compiled = cresset.compile(lambda x: (x + 1, weakref.getweakrefcount(thing), len(weakref.getweakrefs(thing))))
    for _ in range(4):
        assert compiled(torch.ones(2))[1:] == (weakref.getweakrefcount(thing), len(weakref.getweakrefs(thing)))
        kept.append(weakref.ref(thing, lambda _: None))


def test_classes_that_were_registered():
    Abstract = abc.ABCMeta("Abstract", (), {})

    cresset.reset()
    compiled = cresset.compile(lambda x: (x + 1, abc.get_cache_token()))
    for i in range(4):
        assert compiled(torch.ones(2))[1] == abc.get_cache_token()
        Abstract.register(type(f"Registered{i}", (), {}))


def test_what_is_on_for_a_while_is_asked_in_each_call():
    def function(x):
        hooks = torch._C._autograd._saved_tensors_hooks_is_enabled()
        return (x + 1 if torch.autograd._profiler_enabled() else x - 1), hooks

    compiled, x = cresset.compile(function), torch.ones(2)

    def both():
        (a, told), (b, expected) = compiled(x), function(x)
        assert torch.equal(a, b) and told is expected

    for _ in range(2):
        both()
        with torch.autograd.profiler.profile():
            both()
        with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
            both()
    assert cresset.stats()["graph_breaks"] == 0
