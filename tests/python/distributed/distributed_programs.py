"""Programs of several processes, run by test_distributed.py: each returns the results of a process, for a way of
compiling.

python distributed_programs.py RANK PROCESSES PORT OUTPUT FAMILY...

runs the families' programs in this process, in eager mode and compiled, and writes the differences to OUTPUT, by name.
The processes meet at PORT of this machine.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from datetime import timedelta

os.environ["OMP_NUM_THREADS"] = "1"

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.nn.functional as differentiable
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import cresset

# CRESSET_TEST_DEVICE=cuda: a GPU for each process, which meet by NCCL.
DEVICE = torch.device(os.environ.get("CRESSET_TEST_DEVICE", "cpu"))
FAMILIES: dict[str, dict] = {}


def program(family, name=None):
    def add(f):
        FAMILIES.setdefault(family, {})[name or f.__name__] = f
        return f

    return add


def identity(f, **settings):
    return f


def device():
    return torch.device("cuda", dist.get_rank()) if DEVICE.type == "cuda" else DEVICE


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def ramp(*shape):
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float32, device=DEVICE).reshape(shape) / count - 0.4) * (rank() + 1)


def waves(*shape):
    """Rows that are not on a line: activations are 0 only by rounding."""
    return (ramp(*shape) * 7 + rank()).sin()


# ---- Collectives, and where in a program they stand


def all_reduce(x):
    dist.all_reduce(x)
    return x


def all_reduce_max(x):
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    return x


def all_reduce_async(x):
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    return x


def all_reduce_coalesced(x):
    y = x + 1
    dist.all_reduce_coalesced([x, y])
    return x + y


def broadcast(x):
    dist.broadcast(x, 0)
    return x


def reduce(x):
    dist.reduce(x, 0)
    return x if rank() == 0 else x * 0


def all_gather(x):
    out = [torch.zeros_like(x) for _ in range(size())]
    dist.all_gather(out, x)
    return torch.cat(out)


def all_gather_into_tensor(x):
    out = x.new_zeros(size() * x.shape[0], *x.shape[1:])
    dist.all_gather_into_tensor(out, x.contiguous())
    return out


def gather(x):
    out = [torch.zeros_like(x) for _ in range(size())] if rank() == 0 else None
    dist.gather(x, out, 0)
    return torch.stack(out).sum(0) if out else x


def scatter(x):
    out = torch.zeros_like(x)
    dist.scatter(out, [x * (i + 1) for i in range(size())] if rank() == 0 else None, 0)
    return out


def reduce_scatter_tensor(x):
    wide = torch.cat([x] * size())
    out = torch.zeros_like(x)
    dist.reduce_scatter_tensor(out, wide)
    return out


def all_to_all_single(x):
    wide = torch.cat([x + i for i in range(size())])
    out = torch.empty_like(wide)
    dist.all_to_all_single(out, wide)
    return out


def barrier(x):
    dist.barrier()
    return x * 2


def send_and_receive(x):
    y = torch.zeros_like(x)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, x.contiguous(), (rank() + 1) % size()),
            dist.P2POp(dist.irecv, y, (rank() - 1) % size()),
        ]
    )
    for work in works:
        work.wait()
    return y


def all_gather_object(x):
    out = [None] * size()
    dist.all_gather_object(out, {"rank": rank(), "rows": x.shape[0]})
    return x + sum(o["rank"] + o["rows"] for o in out)


def broadcast_object_list(x):
    out = [rank() + 5]
    dist.broadcast_object_list(out, 0)
    return x * out[0]


def functional_all_reduce(x):
    return functional.all_reduce(x, "sum", dist.group.WORLD)


def functional_all_gather(x):
    return functional.all_gather_tensor(x, 0, dist.group.WORLD)


def functional_reduce_scatter(x):
    return functional.reduce_scatter_tensor(torch.cat([x] * size()), "sum", 0, dist.group.WORLD)


def functional_broadcast(x):
    return functional.broadcast(x, 0, dist.group.WORLD)


def functional_all_to_all(x):
    return functional.all_to_all_single(torch.cat([x + i for i in range(size())]), None, None, dist.group.WORLD)


def functional_coalesced(x):
    return torch.cat(functional.all_reduce_coalesced([x, x + 1], "sum", dist.group.WORLD))


def differentiable_all_reduce(x):
    return differentiable.all_reduce(x * 2)


def differentiable_all_gather(x):
    return torch.cat(differentiable.all_gather(x * 2))


COLLECTIVES = [
    all_reduce,
    all_reduce_max,
    all_reduce_async,
    all_reduce_coalesced,
    broadcast,
    reduce,
    all_gather,
    all_gather_into_tensor,
    gather,
    scatter,
    reduce_scatter_tensor,
    all_to_all_single,
    barrier,
    send_and_receive,
    all_gather_object,
    broadcast_object_list,
    functional_all_reduce,
    functional_all_gather,
    functional_reduce_scatter,
    functional_broadcast,
    functional_all_to_all,
    functional_coalesced,
    differentiable_all_reduce,
    differentiable_all_gather,
]


def of_an_argument(collective, compile):
    f = compile(lambda x: collective(x))
    for n in (3, 3, 5):
        x = ramp(n, 2)
        yield f(x)
        yield x


def between_operators(collective, compile):
    f = compile(lambda x: collective((x * 2 + 1).sin()).cos() + 1)
    for n in (3, 3, 4):
        yield f(ramp(n, 2))


def without_gradients(collective, compile):
    f = compile(lambda x: collective(x + 1) * 2)
    with torch.no_grad():
        for n in (2, 4, 4):
            yield f(ramp(n, 2))


def in_a_module(collective, compile):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.full((2,), 0.5, device=DEVICE))
            self.register_buffer("seen", torch.zeros(2, device=DEVICE))

        def forward(self, x):
            with torch.no_grad():
                self.seen += collective((x * 2).detach()).sum(0)
            return x * self.weight + self.seen

    layer = Layer()
    compiled = compile(layer)
    for n in (3, 3):
        y = compiled(ramp(n, 2))
        y.sum().backward()
        yield y
        yield layer.weight.grad.clone()
        yield layer.seen.clone()


def in_a_loop(collective, compile):
    def f(x):
        total = 0
        for i in range(3):
            total = total + collective(x * i).sum()
        return total

    g = compile(f)
    for _ in range(3):
        yield g(ramp(3, 2))


def in_a_hook(collective, compile):
    """A collective on the gradient, in a backward pass inside of the compiled call."""

    def f(x, w):
        y = x * w
        y.register_hook(lambda g: g + collective(g.clone()).sum())
        (dw,) = torch.autograd.grad((y * y).sum(), w)
        return dw

    g = compile(f)
    for _ in range(3):
        yield g(ramp(3, 2), ramp(2).requires_grad_())


def in_a_function_of_its_own(collective, compile):
    class Apply(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * collective(x.clone()).sum()

        @staticmethod
        def backward(ctx, g):
            return collective(g.contiguous().clone()).sum() * g

    def f(x):
        return Apply.apply(x * 3).sin()

    g = compile(f)
    for _ in range(3):
        x = ramp(3, 2).requires_grad_()
        y = g(x)
        y.sum().backward()
        yield y
        yield x.grad


def traced(collective, compile):
    way = identity if compile is identity else cresset.trace
    f = way(lambda x: collective((x * 2).sin()).cos() + 1)
    for n in (3, 3, 4):
        yield f(ramp(n, 2))


POSITIONS = [
    of_an_argument,
    between_operators,
    without_gradients,
    in_a_module,
    in_a_loop,
    in_a_hook,
    in_a_function_of_its_own,
    traced,
]


def at(collective, position):
    return lambda compile: position(collective, compile)


for c in COLLECTIVES:
    for p in POSITIONS:
        if (c, p) == (all_gather_object, traced):
            continue  # the tracing front end does not see pickle.dumps, which refuses the symbol of a size
        program("collectives", f"{c.__name__} {p.__name__}")(at(c, p))


# ---- Models over several processes


class Net(nn.Module):
    def __init__(self, buffers=False):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 4)
        self.norm = nn.BatchNorm1d(8) if buffers else nn.Identity()
        self.to(DEVICE)

    def forward(self, x):
        return self.last(self.norm(self.first(x)).relu())


def trained(model, call, steps=4, optimizer=None, rows=3):
    """A few steps; the losses, then the parameters."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for i in range(steps):
        optimizer.zero_grad()
        loss = (call(waves(rows, 4) + i * 0.1) ** 2).mean()
        loss.backward()
        optimizer.step()
        yield loss.detach()
    yield from whole(model)


def whole_step(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def whole(model):
    for _, p in sorted(model.named_parameters()):
        yield (p.full_tensor() if hasattr(p, "full_tensor") else p).detach().clone()
    for _, b in sorted(model.named_buffers()):
        yield b.clone()


@program("ddp")
def compiled_ddp(compile):
    model = DistributedDataParallel(Net())
    yield from trained(model, compile(model))


@program("ddp")
def compiled_ddp_with_buffers(compile):
    model = DistributedDataParallel(Net(buffers=True))
    yield from trained(model, compile(model))


@program("ddp")
def compiled_ddp_in_evaluation(compile):
    model = DistributedDataParallel(Net(buffers=True)).eval()
    call = compile(model)
    with torch.no_grad():
        for n in (2, 3, 3):
            yield call(waves(n, 4))


@program("ddp")
def ddp_of_a_compiled_module(compile):
    model = DistributedDataParallel(compile(Net(buffers=True)))
    yield from trained(model, model)


@program("ddp")
def ddp_of_a_module_compiled_in_place(compile):
    inner = Net(buffers=True)
    if compile is not identity:
        cresset.compile_in_place(inner)
    model = DistributedDataParallel(inner)
    yield from trained(model, model)


@program("ddp")
def whole_step_with_ddp(compile):
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @compile
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i in range(5):
        yield step(waves(3, 4) + i * 0.1)
    yield from whole(model)


@program("ddp")
def whole_step_with_ddp_and_buffers(compile):
    model = DistributedDataParallel(Net(buffers=True))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @compile
    def step(x):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i in range(5):
        yield step(waves(3 + i % 2, 4) + i * 0.1)
    yield from whole(model)


@program("ddp")
def loss_of_ddp(compile):
    """The backward pass is outside of the compiled call."""
    model = DistributedDataParallel(Net())
    yield from trained(model, compile(lambda x: model(x) * 2))


@program("ddp")
def ddp_that_looks_for_unused_parameters(compile):
    class Half(Net):
        def forward(self, x, way=True):
            return self.last(self.first(x)) if way else self.first(x)

    model = DistributedDataParallel(Half(), find_unused_parameters=True)
    call = compile(model)
    for way in (True, False, True, False):
        model.zero_grad()
        call(waves(3, 4), way).square().mean().backward()
        for p in model.parameters():
            yield p.grad.clone() if p.grad is not None else None


@program("ddp")
def ddp_without_synchronization(compile):
    model = DistributedDataParallel(Net())
    call = compile(model)
    for i in range(4):
        if i % 2 == 0:
            with model.no_sync():
                call(waves(3, 4)).sum().backward()
        else:
            call(waves(3, 4)).sum().backward()
        yield from [p.grad.clone() for p in model.parameters()]


@program("ddp")
def ddp_with_gradients_in_buckets(compile):
    model = DistributedDataParallel(Net(), gradient_as_bucket_view=True, static_graph=True)
    yield from trained(model, compile(model))


@program("ddp")
def ddp_with_a_hook_for_communication(compile):
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

    model = DistributedDataParallel(Net())
    model.register_comm_hook(None, fp16_compress_hook)
    yield from trained(model, compile(model))


@program("ddp")
def ddp_after_a_call_that_raised(compile):
    """The reducer is unchanged."""
    model = DistributedDataParallel(Net())
    call = compile(model)
    try:
        call(waves(3, 5))
    except RuntimeError as error:
        yield str(error).splitlines()[0]
    yield from trained(model, call)


@program("ddp")
def sharded_optimizer(compile):
    model = DistributedDataParallel(Net())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.05)
    yield from trained(model, compile(model), optimizer=optimizer)


@program("ddp")
def gradients_averaged_by_hand(compile):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= size()
        optimizer.step()
        return loss.detach()

    for i in range(4):
        yield step(waves(3, 4) + i)
    yield from whole(model)


# ---- Sharded models and tensors


def mesh():
    return init_device_mesh(DEVICE.type, (size(),))


@program("sharded")
def compiled_fully_sharded(compile):
    model = Net()
    fully_shard(model, mesh=mesh())
    yield from trained(model, compile(model))


@program("sharded")
def compiled_fully_sharded_layers(compile):
    model = Net(buffers=True)
    for layer in (model.first, model.last):
        fully_shard(layer, mesh=mesh())
    fully_shard(model, mesh=mesh())
    yield from trained(model, compile(model))


@program("sharded")
def fully_sharded_with_compiled_layers(compile):
    model = Net()
    model.first, model.last = compile(model.first), compile(model.last)
    fully_shard(model, mesh=mesh())
    yield from trained(model, model)


@program("sharded")
def whole_step_fully_sharded(compile):
    model = Net()
    fully_shard(model, mesh=mesh())
    step = compile(whole_step(model))
    for i in range(4):
        yield step(waves(3, 4) + i)
    yield from whole(model)


@program("sharded")
def fully_sharded_before(compile):
    """FullyShardedDataParallel applied first, around the module."""
    model = FullyShardedDataParallel(Net(), device_id=device(), use_orig_params=True)
    call = compile(model)
    for i in range(3):
        model.zero_grad()
        loss = call(waves(3, 4) + i).square().mean()
        loss.backward()
        yield loss.detach()


@program("sharded")
def tensor_parallel(compile):
    model = parallelize_module(Net(), mesh(), {"first": ColwiseParallel(), "last": RowwiseParallel()})
    call = compile(model)
    torch.manual_seed(1)
    for i in range(3):
        model.zero_grad()
        loss = call(torch.randn(3, 4, device=DEVICE) + i).square().mean()
        loss.backward()
        yield loss.detach()
        for p in model.parameters():
            yield p.grad.full_tensor()


@program("sharded")
def whole_step_tensor_parallel(compile):
    model = parallelize_module(Net(), mesh(), {"first": ColwiseParallel(), "last": RowwiseParallel()})
    step = compile(whole_step(model))
    torch.manual_seed(1)
    for _ in range(4):
        yield step(torch.randn(3, 4, device=DEVICE))
    yield from whole(model)


@program("sharded")
def operators_of_distributed_tensors(compile):
    here = mesh()
    torch.manual_seed(2)
    a, b = torch.randn(4, 6, device=DEVICE), torch.randn(6, 4, device=DEVICE)

    @compile
    def f(a, b):
        return ((a @ b).relu() + 1).sum(0)

    for placements in ((Shard(0), Replicate()), (Replicate(), Shard(1)), (Shard(1), Shard(0))):
        for _ in range(2):
            out = f(distribute_tensor(a, here, placements[:1]), distribute_tensor(b, here, placements[1:]))
            yield out.full_tensor()


@program("sharded")
def redistributed_inside(compile):
    here = mesh()
    torch.manual_seed(2)
    a = torch.randn(4, 6, device=DEVICE)

    @compile
    def f(x):
        d = distribute_tensor(x, here, [Shard(0)])
        return (d * 2).redistribute(here, [Replicate()]).to_local().sin() + 1

    for _ in range(3):
        yield f(a)


def same(got, expected):
    if isinstance(expected, torch.Tensor):
        return (
            isinstance(got, torch.Tensor)
            and got.dtype == expected.dtype
            and got.shape == expected.shape
            and got.stride() == expected.stride()
            and got.requires_grad == expected.requires_grad
            and torch.allclose(got.detach(), expected.detach(), rtol=1e-4, atol=1e-5, equal_nan=True)
        )
    return got == expected


def observed(run, compile):
    torch.manual_seed(0)
    seen = []
    try:
        for value in run(compile):
            seen.append(value)
    except Exception as error:
        seen.append(f"{type(error).__name__}: {str(error)[:300]}")
    return seen


def difference(run):
    expected = observed(run, identity)
    cresset.reset()
    got = observed(run, cresset.compile)
    if len(got) != len(expected):
        return f"{len(got)} instead of {len(expected)} values, the last one {got[-1:]!r}; {expected[-1:]!r}"
    for i, (a, b) in enumerate(zip(got, expected)):
        if not same(a, b):
            return f"value {i} is {a!r} instead of {b!r}"
    return ""


def main(this, processes, port, output, *names):
    """names: of families, or FAMILY/NAME."""
    warnings.simplefilter("ignore")
    if DEVICE.type == "cuda":
        torch.cuda.set_device(int(this))
    dist.init_process_group(
        "nccl" if DEVICE.type == "cuda" else "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=int(this),
        world_size=int(processes),
        timeout=timedelta(seconds=30),
    )
    found = {}
    for family, programs in FAMILIES.items():
        for name, run in programs.items():
            if family not in names and f"{family}/{name}" not in names:
                continue
            found[f"{family}/{name}"] = difference(run)
            if os.environ.get("VERBOSE") and this == "0":
                print(name, "-", found[f"{family}/{name}"] or "ok", flush=True)
            with open(output, "w") as file:
                json.dump(found, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
