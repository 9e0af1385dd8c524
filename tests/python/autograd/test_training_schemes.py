"""Training as users write it: optimizers, clipping, hooks, parametrizations, custom functions, agents."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from training import check, classifying, mlp, table, xy

PROGRAMS, program = table()
TOLERANCE = {"autocast_scaler": 3e-2}


@program
def accum_clip_ema():
    m = mlp(8, 16, 4)
    ema = copy.deepcopy(m)
    opt = torch.optim.AdamW(m.parameters(), 1e-2)
    st = {"i": 0}

    def step(x, y):
        loss = F.cross_entropy(m(x), y, label_smoothing=0.1) / 2
        loss.backward()
        st["i"] += 1
        if st["i"] % 2 == 0:
            nn.utils.clip_grad_norm_(m.parameters(), 0.5)
            opt.step()
            opt.zero_grad()
            with torch.no_grad():
                for a, b in zip(ema.parameters(), m.parameters()):
                    a.lerp_(b, 0.1)
        return loss.detach()

    return dict(m=m, _ema=ema, opt=opt, step=step, data=xy)


@program
def clip_print():
    m = mlp(8, 16, 4)
    opt = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9, nesterov=True)
    log = []

    def step(x, y):
        opt.zero_grad()
        out = m(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        g = nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        log.append((loss.item(), g.item()))
        opt.step()
        return out

    return dict(m=m, opt=opt, log=log, step=step, data=xy)


@program
def autocast_scaler():
    m = mlp(8, 16, 4)
    opt = torch.optim.Adam(m.parameters(), 1e-2)
    st = {"scale": 1024.0, "good": 0}

    def step(x, y):
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(m(x), y)
        (loss * st["scale"]).backward()
        inf = False
        for p in m.parameters():
            p.grad.div_(st["scale"])
            if not torch.isfinite(p.grad).all():
                inf = True
        if not inf:
            opt.step()
            st["good"] += 1
            if st["good"] % 3 == 0:
                st["scale"] *= 2
        else:
            st["scale"] /= 2
        return loss.detach()

    return dict(m=m, opt=opt, st=st, step=step, data=xy, tol=3e-2)


@program
def freeze_toggle():
    m = mlp(8, 16, 4)
    opt = torch.optim.SGD(m.parameters(), 0.1)

    def step(x, y, c):
        for p in m[0].parameters():
            p.requires_grad_(c % 2 == 0)
        opt.zero_grad()
        loss = F.cross_entropy(m(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return dict(m=m, opt=opt, step=step, data=lambda c: (*xy(c), c))


@program
def weight_norm_spectral():
    m = nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Linear(8, 16)),
        nn.ReLU(),
        nn.utils.parametrizations.spectral_norm(nn.Linear(16, 4)),
    )
    opt = torch.optim.SGD(m.parameters(), 0.05)

    return classifying(m, opt)


@program
def old_weight_norm():
    m = nn.Sequential(nn.utils.weight_norm(nn.Linear(8, 16)), nn.ReLU(), nn.utils.spectral_norm(nn.Linear(16, 4)))
    opt = torch.optim.SGD(m.parameters(), 0.05)

    return classifying(m, opt)


class Sym(nn.Module):
    def forward(s, x):
        return x.triu() + x.triu(1).T


@program
def parametrize_sym():
    m = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
    nn.utils.parametrize.register_parametrization(m[0], "weight", Sym())
    opt = torch.optim.RMSprop(m.parameters(), 1e-2)

    def step(x, y):
        opt.zero_grad()
        with nn.utils.parametrize.cached():
            loss = F.cross_entropy(m(x) + m(x.flip(0)), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return dict(m=m, opt=opt, step=step, data=xy)


class MyFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, k, flag):
        ctx.save_for_backward(x, w)
        ctx.k = k
        ctx.flag = flag
        ctx.set_materialize_grads(False)
        return (x @ w) * k, x.sum(1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g, g2):
        x, w = ctx.saved_tensors
        gx = gw = None
        if g is None and g2 is None:
            return None, None, None, None
        if ctx.needs_input_grad[0]:
            gx = torch.zeros_like(x)
            if g is not None:
                gx = gx + (g @ w.T) * ctx.k
            if g2 is not None:
                gx = gx + g2[:, None]
        if ctx.needs_input_grad[1] and g is not None:
            gw = (x.T @ g) * ctx.k
        return gx, gw, None, None


@program
def custom_fn():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.a = nn.Linear(8, 8)
            s.w = nn.Parameter(torch.randn(8, 4) * 0.3)

        def forward(s, x):
            y, _z = MyFn.apply(s.a(x).tanh(), s.w, 2.0, True)
            return y

    m = M()
    opt = torch.optim.Adagrad(m.parameters(), 1e-2)

    return classifying(m, opt)


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.s = s
        x.mul_(s)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.s, None


@program
def mark_dirty():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.a = nn.Linear(8, 8)
            s.b = nn.Linear(8, 4)

        def forward(s, x):
            h = s.a(x) * 1.0
            Dirty.apply(h, 3.0)
            return s.b(h.relu())

    m = M()
    opt = torch.optim.SGD(m.parameters(), 1e-2)

    return classifying(m, opt)


class STE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-1, 1)


@program
def ste_gumbel():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.a = nn.Linear(8, 8)
            s.b = nn.Linear(8, 4)
            s.code = nn.Embedding(4, 4)

        def forward(s, x):
            h = STE.apply(s.a(x))
            value = s.b(h)
            g = F.gumbel_softmax(value, tau=0.7, hard=True)
            q = (value.round() - value).detach() + value
            return g @ s.code.weight + q

    m = M()
    opt = torch.optim.Adam(m.parameters(), 1e-2)

    return classifying(m, opt)


@program
def hooks():
    m = mlp(8, 16, 4)
    opt = torch.optim.SGD(m.parameters(), 0.1)
    seen = []
    m[0].register_full_backward_hook(lambda mod, gi, go: seen.append(float(go[0].abs().sum())))
    m[2].weight.register_hook(lambda g: g * 0.5)
    m[0].bias.register_post_accumulate_grad_hook(lambda p: p.grad.clamp_(-0.01, 0.01) is None or None)

    def step(x, y):
        opt.zero_grad()
        out = m(x)
        out.register_hook(lambda g: g.clamp(-0.2, 0.2))
        loss = F.cross_entropy(out, y)
        loss.backward()
        opt.step()
        return loss.detach()

    return dict(m=m, opt=opt, seen=seen, step=step, data=xy)


@program
def checkpointed():
    from torch.utils.checkpoint import checkpoint

    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.l = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3), nn.ReLU()) for _ in range(3))
            s.o = nn.Linear(8, 4)

        def forward(s, x):
            for _i, value in enumerate(s.l):
                x = checkpoint(value, x, use_reentrant=False, preserve_rng_state=True) + x
            return s.o(x)

    m = M()
    opt = torch.optim.SGD(m.parameters(), 0.1)

    return classifying(m, opt)


@program
def moco_queue():
    q = mlp(8, 16, 4)
    k = copy.deepcopy(q)

    class Q(nn.Module):
        def __init__(s):
            super().__init__()
            s.register_buffer("queue", F.normalize(torch.randn(4, 32), dim=0))
            s.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

        @torch.no_grad()
        def push(s, keys):
            p = int(s.ptr)
            n = keys.shape[0]
            e = min(p + n, 32)
            s.queue[:, p:e] = keys[: e - p].T
            s.ptr[0] = (p + n) % 32

    Qm = Q()
    opt = torch.optim.SGD(q.parameters(), 0.1)

    def step(x):
        with torch.no_grad():
            for a, b in zip(k.parameters(), q.parameters()):
                a.data = a.data * 0.9 + b.data * 0.1
            kk = F.normalize(k(x + 0.1 * torch.randn_like(x)), dim=1)
        qq = F.normalize(q(x), dim=1)
        pos = (qq * kk).sum(1, keepdim=True)
        neg = qq @ Qm.queue.clone().detach()
        logits = torch.cat([pos, neg], 1) / 0.2
        loss = F.cross_entropy(logits, torch.zeros(len(x), dtype=torch.long))
        opt.zero_grad()
        loss.backward()
        opt.step()
        Qm.push(kk)
        return loss.detach()

    return dict(q=q, _k=k, _Q=Qm, opt=opt, step=step, data=lambda c: (torch.randn(5 + c, 8),))


@program
def vae():
    class V(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Linear(8, 16)
            s.mu = nn.Linear(16, 3)
            s.lv = nn.Linear(16, 3)
            s.d = mlp(3, 16, 8)

        def forward(s, x):
            h = s.e(x).relu()
            mu, lv = s.mu(h), s.lv(h)
            z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
            return s.d(z), mu, lv

    m = V()
    opt = torch.optim.Adamax(m.parameters(), 1e-2)

    def step(x):
        r, mu, lv = m(x)
        loss = F.mse_loss(r, x, reduction="sum") - 0.5 * (1 + lv - mu**2 - lv.exp()).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return dict(m=m, opt=opt, step=step, data=lambda c: (torch.randn(5 + c, 8),))


@program
def gan():
    G = mlp(3, 16, 8)
    D = mlp(8, 16, 1)
    og = torch.optim.Adam(G.parameters(), 1e-2, betas=(0.5, 0.9))
    od = torch.optim.Adam(D.parameters(), 1e-2)
    bce = nn.BCEWithLogitsLoss()

    def step(x):
        n = len(x)
        fake = G(torch.randn(n, 3))
        od.zero_grad()
        ld = bce(D(x), torch.ones(n, 1)) + bce(D(fake.detach()), torch.zeros(n, 1))
        ld.backward()
        od.step()
        og.zero_grad()
        lg = bce(D(fake), torch.ones(n, 1))
        lg.backward()
        og.step()
        return ld.item(), lg.item()

    return dict(G=G, D=D, og=og, od=od, step=step, data=lambda c: (torch.randn(5 + c, 8),))


@program
def dqn():
    q = mlp(8, 16, 3)
    t = copy.deepcopy(q)
    opt = torch.optim.RMSprop(q.parameters(), 1e-3)

    def step(s, a, r, s2, d, c):
        qa = q(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            best = q(s2).argmax(1)
            y = r + 0.9 * t(s2)[torch.arange(len(r)), best] * (1 - d)
        loss = F.smooth_l1_loss(qa, y)
        opt.zero_grad()
        loss.backward()
        for p in q.parameters():
            p.grad.data.clamp_(-1, 1)
        opt.step()
        if c % 2 == 1:
            t.load_state_dict(q.state_dict())
        return loss.detach()

    def data(c):
        n = 5 + c
        return (
            torch.randn(n, 8),
            torch.randint(0, 3, (n,)),
            torch.randn(n),
            torch.randn(n, 8),
            (torch.rand(n) < 0.3).float(),
            c,
        )

    return dict(q=q, _t=t, opt=opt, step=step, data=data)


@program
def ppo():
    class AC(nn.Module):
        def __init__(s):
            super().__init__()
            s.b = nn.Linear(8, 16)
            s.p = nn.Linear(16, 3)
            s.v = nn.Linear(16, 1)

        def forward(s, x):
            h = s.b(x).tanh()
            return s.p(h), s.v(h).squeeze(-1)

    m = AC()
    opt = torch.optim.Adam(m.parameters(), 3e-3)

    def step(s, a, old, ret):
        value, v = m(s)
        dist = torch.distributions.Categorical(logits=value)
        lp = dist.log_prob(a)
        adv = ret - v.detach()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        ratio = (lp - old).exp()
        kl = ((ratio - 1) - (lp - old)).mean()
        loss = (
            -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
            + 0.5 * F.mse_loss(v, ret)
            - 0.01 * dist.entropy().mean()
        )
        if kl.item() > 1.5:
            return loss.detach(), kl.detach()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach(), kl.detach()

    def data(c):
        n = 6 + c
        return torch.randn(n, 8), torch.randint(0, 3, (n,)), -torch.rand(n), torch.randn(n)

    return dict(m=m, opt=opt, step=step, data=data)


@program
def triplet():
    m = mlp(8, 16, 4)
    opt = torch.optim.SGD(m.parameters(), 0.1)

    def step(x, y):
        e = F.normalize(m(x), dim=1)
        d = torch.cdist(e, e)
        same = y[:, None] == y[None]
        ap = (d * same).max(1)
        an = (d + same * 1e6).min(1)
        loss = F.relu(ap.values - an.values + 0.3)
        idx = loss.detach().nonzero().flatten()
        if len(idx) == 0:
            return loss.sum().detach()
        loss = loss[idx].mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    return dict(m=m, opt=opt, step=step, data=xy)


@program
def ctc():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.r = nn.GRU(4, 8, batch_first=True, bidirectional=True)
            s.o = nn.Linear(16, 5)

        def forward(s, x):
            return s.o(s.r(x)[0]).log_softmax(-1)

    m = M()
    opt = torch.optim.Adam(m.parameters(), 1e-2)

    def step(x, y, il, tl):
        loss = F.ctc_loss(m(x).transpose(0, 1), y, il, tl, zero_infinity=True)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    def data(c):
        return torch.randn(3, 8 + c, 4), torch.randint(1, 5, (3, 3)), torch.full((3,), 8 + c), torch.tensor([3, 2, 1])

    return dict(m=m, opt=opt, step=step, data=data)


@pytest.mark.parametrize("mode", ["model", "step"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_training(name, mode):
    check(PROGRAMS[name], mode, TOLERANCE.get(name, 5e-4))
