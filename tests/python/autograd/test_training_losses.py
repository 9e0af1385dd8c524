"""Training of models and losses of many kinds, with gradients of gradients, transforms, sparse gradients."""

from __future__ import annotations

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from training import check, mlp, table, xy

PROGRAMS, program = table()
TOLERANCE = {"bn_conv": 3e-3, "lbfgs": 1e-2, "tied_lm": 3e-3}


@program
def focal_multihead():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.b = mlp(8, 16, 8)
            s.h = nn.ModuleDict({"a": nn.Linear(8, 4), "b": nn.Linear(8, 1)})
            s.logv = nn.Parameter(torch.zeros(2))

        def forward(s, x):
            f = s.b(x)
            return {k: h(f) for k, h in s.h.items()}

    m = M()
    opt = torch.optim.NAdam(m.parameters(), 1e-2)

    def step(x, y):
        o = m(x)
        ce = F.cross_entropy(o["a"], y, reduction="none")
        pt = (-ce).exp()
        l1 = ((1 - pt) ** 2 * ce).mean()
        l2 = F.huber_loss(o["b"].squeeze(1), y.float())
        loss = (m.logv.neg().exp() * torch.stack([l1, l2]) + m.logv).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach(), {"a": l1.item()}

    return dict(m=m, opt=opt, step=step, data=xy)


@program
def crf():
    class C(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Embedding(10, 8)
            s.o = nn.Linear(8, 4)
            s.t = nn.Parameter(torch.randn(4, 4) * 0.1)

        def forward(s, x, y, mask):
            em = s.o(s.e(x))
            a = em[:, 0]
            sc = em[:, 0].gather(1, y[:, :1]).squeeze(1)
            for t in range(1, x.shape[1]):
                n = torch.logsumexp(a[:, :, None] + s.t[None] + em[:, t][:, None], 1)
                a = torch.where(mask[:, t : t + 1], n, a)
                sc = sc + (s.t[y[:, t - 1], y[:, t]] + em[:, t].gather(1, y[:, t : t + 1]).squeeze(1)) * mask[:, t]
            return (torch.logsumexp(a, 1) - sc).mean()

    m = C()
    opt = torch.optim.SGD(m.parameters(), 0.1)

    def step(x, y, mask):
        loss = m(x, y, mask)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    def data(c):
        L = 5 + c % 3
        return (
            torch.randint(0, 10, (3 + c, L)),
            torch.randint(0, 4, (3 + c, L)),
            torch.arange(L)[None] < torch.randint(2, L + 1, (3 + c, 1)),
        )

    return dict(m=m, opt=opt, step=step, data=data)


@program
def packed():
    from torch.nn.utils.rnn import pack_padded_sequence as P
    from torch.nn.utils.rnn import pad_packed_sequence as U

    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Embedding(10, 8, padding_idx=0)
            s.r = nn.LSTM(8, 8, batch_first=True)
            s.o = nn.Linear(8, 4)

        def forward(s, x, value):
            p = P(s.e(x), value, batch_first=True, enforce_sorted=False)
            o, (h, _c) = s.r(p)
            o, _ = U(o, batch_first=True)
            return s.o(o.mean(1) + h[-1])

    m = M()
    opt = torch.optim.Adam(m.parameters(), 1e-2)

    def step(x, value, y):
        loss = F.cross_entropy(m(x, value), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    def data(c):
        n = 3 + c
        return torch.randint(1, 10, (n, 6)), torch.randint(1, 7, (n,)), torch.randint(0, 4, (n,))

    return dict(m=m, opt=opt, step=step, data=data)


@program
def sparse_embed():
    m = nn.Sequential(nn.Embedding(12, 8, sparse=True), nn.Flatten(), nn.Linear(24, 4))
    o1 = torch.optim.SparseAdam([m[0].weight], 1e-2)
    o2 = torch.optim.Adam(m[2].parameters(), 1e-2)

    def step(x, y):
        loss = F.cross_entropy(m(x), y)
        o1.zero_grad()
        o2.zero_grad()
        loss.backward()
        o1.step()
        o2.step()
        return loss.detach()

    return dict(
        m=m, o1=o1, o2=o2, step=step, data=lambda c: (torch.randint(0, 12, (4 + c, 3)), torch.randint(0, 4, (4 + c,)))
    )


@program
def bag():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.EmbeddingBag(12, 8, mode="mean")
            s.o = nn.Linear(8, 4)

        def forward(s, x, o):
            return s.o(s.e(x, o))

    m = M()
    opt = torch.optim.SGD(m.parameters(), 0.1)

    def step(x, o, y):
        loss = F.cross_entropy(m(x, o), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    def data(c):
        n = 3 + c
        return torch.randint(0, 12, (4 * n,)), torch.arange(0, 4 * n, 4), torch.randint(0, 4, (n,))

    return dict(m=m, opt=opt, step=step, data=data)


@program
def bn_conv():
    m = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=2),
        nn.GroupNorm(2, 8),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(8, 4),
    )
    opt = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)

    def step(x, y):
        loss = F.cross_entropy(m(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sch.step()
        return loss.detach(), sch.get_last_lr()[0]

    return dict(
        m=m,
        opt=opt,
        step=step,
        data=lambda c: (torch.randn(3 + c, 3, 8 + c, 8), torch.randint(0, 4, (3 + c,))),
        tol=2e-3,
    )


@program
def retain_two():
    m = mlp(8, 16, 4)
    opt = torch.optim.SGD(m.parameters(), 0.1)

    def step(x, y):
        o = m(x)
        a = F.cross_entropy(o, y)
        b = o.pow(2).mean()
        opt.zero_grad()
        a.backward(retain_graph=True)
        ga = [p.grad.clone() for p in m.parameters()]
        b.backward()
        cos = sum((g * (p.grad - g)).sum() for g, p in zip(ga, m.parameters()))
        opt.step()
        return a.detach(), b.detach(), cos

    return dict(m=m, opt=opt, step=step, data=xy)


@program
def wgan_gp():
    D = mlp(8, 16, 1)
    opt = torch.optim.Adam(D.parameters(), 1e-2)

    def step(x, f):
        e = torch.rand(len(x), 1)
        i = (e * x + (1 - e) * f).requires_grad_()
        o = D(i)
        g = torch.autograd.grad(o, i, torch.ones_like(o), create_graph=True, retain_graph=True)[0]
        gp = ((g.norm(2, 1) - 1) ** 2).mean()
        loss = D(f).mean() - D(x).mean() + 10 * gp
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach(), gp.detach()

    return dict(D=D, opt=opt, step=step, data=lambda c: (torch.randn(4 + c, 8), torch.randn(4 + c, 8)))


@program
def r1_print():
    D = mlp(8, 16, 1)
    opt = torch.optim.Adam(D.parameters(), 1e-2)
    log = []

    def step(x, f):
        x = x.requires_grad_()
        o = D(x)
        log.append(o.mean().item())
        (g,) = torch.autograd.grad(o.sum(), x, create_graph=True)
        r1 = g.pow(2).sum(1).mean()
        loss = F.softplus(-o).mean() + F.softplus(D(f)).mean() + r1
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return dict(D=D, opt=opt, log=log, step=step, data=lambda c: (torch.randn(4 + c, 8), torch.randn(4 + c, 8)))


@program
def maml():
    m = mlp(8, 16, 1)
    opt = torch.optim.Adam(m.parameters(), 1e-2)

    def step(xs, ys, xq, yq):
        tot = 0.0
        for i in range(2):
            p = dict(m.named_parameters())
            for _ in range(2):
                value = F.mse_loss(torch.func.functional_call(m, p, (xs[i],)), ys[i])
                gs = torch.autograd.grad(value, list(p.values()), create_graph=True)
                p = {k: v - 0.1 * g for (k, v), g in zip(p.items(), gs)}
            tot = tot + F.mse_loss(torch.func.functional_call(m, p, (xq[i],)), yq[i])
        opt.zero_grad()
        tot.backward()
        opt.step()
        return tot.detach()

    return dict(
        m=m,
        opt=opt,
        step=step,
        data=lambda c: (
            torch.randn(2, 4 + c, 8),
            torch.randn(2, 4 + c, 1),
            torch.randn(2, 3 + c, 8),
            torch.randn(2, 3 + c, 1),
        ),
    )


@program
def func_grad():
    from torch.func import functional_call, grad, vmap

    m = mlp(8, 16, 4)
    st = {"p": {k: v.detach().clone() for k, v in m.named_parameters()}}

    def step(x, y):
        def lf(p, a, b):
            return F.cross_entropy(functional_call(m, p, (a[None],)), b[None])

        g = vmap(grad(lf), (None, 0, 0))(st["p"], x, y)
        n = torch.stack([v.flatten(1).norm(dim=1) for v in g.values()], 1).norm(dim=1)
        c = (1 / (n + 1e-6)).clamp(max=1)
        st["p"] = {k: v - 0.1 * torch.einsum("n,n...->...", c, g[k]) / len(x) for k, v in st["p"].items()}
        return n

    return dict(m=m, st=st, step=step, data=xy)


@program
def jac():
    from torch.func import jacrev, vmap

    m = mlp(8, 8, 3)
    opt = torch.optim.SGD(m.parameters(), 0.05)

    def step(x):
        J = vmap(jacrev(lambda a: m(a)))(x)
        loss = m(x).pow(2).mean() + J.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    return dict(m=m, opt=opt, step=step, data=lambda c: (torch.randn(4 + c, 8),))


@program
def lbfgs():
    m = mlp(8, 4, 1)
    opt = torch.optim.LBFGS(m.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")

    def step(x, y):
        def closure():
            opt.zero_grad()
            value = F.mse_loss(m(x), y)
            value.backward()
            return value

        return opt.step(closure).detach()

    return dict(m=m, opt=opt, step=step, data=lambda c: (torch.randn(12, 8), torch.randn(12, 1)), tol=5e-3)


@program
def sam():
    m = mlp(8, 16, 4)
    opt = torch.optim.SGD(m.parameters(), 0.1)

    def step(x, y):
        value = F.cross_entropy(m(x), y)
        opt.zero_grad()
        value.backward()
        es = []
        with torch.no_grad():
            n = torch.norm(torch.stack([p.grad.norm() for p in m.parameters()]))
            for p in m.parameters():
                e = p.grad * (0.05 / (n + 1e-12))
                p.add_(e)
                es.append(e)
        opt.zero_grad()
        F.cross_entropy(m(x), y).backward()
        with torch.no_grad():
            for p, e in zip(m.parameters(), es):
                p.sub_(e)
        opt.step()
        return value.detach()

    return dict(m=m, opt=opt, step=step, data=xy)


@program
def byol_shared():
    enc = mlp(8, 16, 8)
    pred = mlp(8, 8, 8)
    tgt = copy.deepcopy(enc)
    for p in tgt.parameters():
        p.requires_grad_(False)
    opt = torch.optim.AdamW([*enc.parameters(), *pred.parameters()], 1e-2)

    def step(x):
        a, b = x + 0.1 * torch.randn_like(x), x * (torch.rand_like(x) > 0.1)

        def value(p, z):
            return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=-1)

        loss = (value(pred(enc(a)), tgt(b)) + value(pred(enc(b)), tgt(a))).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        with torch.no_grad():
            torch._foreach_mul_(list(tgt.parameters()), 0.99)
            torch._foreach_add_(list(tgt.parameters()), list(enc.parameters()), alpha=0.01)
        return loss.detach()

    return dict(enc=enc, pred=pred, _t=tgt, opt=opt, step=step, data=lambda c: (torch.randn(4 + c, 8),))


@program
def tied_lm():
    class LM(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Embedding(20, 16)
            s.l = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True, dropout=0.1)
            s.o = nn.Linear(16, 20, bias=False)
            s.o.weight = s.e.weight

        def forward(s, x):
            n = x.shape[1]
            return s.o(s.l(s.e(x), src_mask=nn.Transformer.generate_square_subsequent_mask(n), is_causal=True))

    m = LM()
    opt = torch.optim.SGD(m.parameters(), 1e-1, foreach=True)
    sc = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: min(1, (i + 1) / 4))

    def step(x):
        lg = m(x[:, :-1])
        loss = F.cross_entropy(lg.flatten(0, 1), x[:, 1:].flatten(), ignore_index=0)
        loss.backward()
        g = nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        opt.step()
        sc.step()
        opt.zero_grad()
        return loss.detach(), g

    return dict(m=m, opt=opt, step=step, data=lambda c: (torch.randint(0, 20, (2 + c, 6 + c)),), tol=2e-3)


@program
def rnn_tbptt():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.c = nn.LSTMCell(4, 8)
            s.o = nn.Linear(8, 2)

        def forward(s, x, st):
            h, c = s.c(x, st)
            return s.o(h), (h, c)

    m = M()
    opt = torch.optim.RMSprop(m.parameters(), 1e-2)

    def step(x, y):
        st = (torch.zeros(x.shape[1], 8), torch.zeros(x.shape[1], 8))
        tot = 0
        for k in range(0, x.shape[0], 3):
            loss = 0
            for t in range(k, min(k + 3, x.shape[0])):
                o, st = m(x[t], st)
                loss = loss + F.mse_loss(o, y[t])
            opt.zero_grad()
            loss.backward()
            opt.step()
            st = tuple(s.detach() for s in st)
            tot += loss.item()
        return tot

    return dict(
        m=m, opt=opt, step=step, data=lambda c: (torch.randn(6 + c % 2, 3 + c, 4), torch.randn(6 + c % 2, 3 + c, 2))
    )


@program
def vq():
    class VQ(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Linear(8, 4)
            s.d = nn.Linear(4, 8)
            s.register_buffer("cb", torch.randn(6, 4))
            s.register_buffer("n", torch.ones(6))
            s.register_buffer("avg", s.cb.clone())

        def forward(s, x):
            z = s.e(x)
            i = torch.cdist(z, s.cb).argmin(1)
            q = s.cb[i]
            if s.training:
                with torch.no_grad():
                    oh = F.one_hot(i, 6).float()
                    s.n.mul_(0.9).add_(oh.sum(0), alpha=0.1)
                    s.avg.mul_(0.9).add_(oh.T @ z, alpha=0.1)
                    s.cb.copy_(s.avg / s.n[:, None].clamp(min=1e-5))
            return s.d(z + (q - z).detach()), F.mse_loss(z, q.detach())

    m = VQ()
    opt = torch.optim.Adam(m.parameters(), 1e-2)

    def step(x):
        r, c = m(x)
        loss = F.mse_loss(r, x) + 0.25 * c
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    return dict(m=m, opt=opt, step=step, data=lambda c: (torch.randn(8 + c, 8),))


@program
def moe_aux():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.g = nn.Linear(8, 3, bias=False)
            s.ex = nn.ModuleList(mlp(8, 8, 8) for _ in range(3))
            s.o = nn.Linear(8, 4)
            s.aux = None

        def forward(s, x):
            w, i = s.g(x).softmax(-1).topk(2)
            w = w / w.sum(-1, keepdim=True)
            out = torch.zeros_like(x)
            for e in range(3):
                r, k = torch.where(i == e)
                if r.numel() == 0:
                    continue
                out[r] += w[r, k, None] * s.ex[e](x[r])
            s.aux = (F.one_hot(i, 3).float().mean((0, 1)) * s.g(x).softmax(-1).mean(0)).sum() * 3
            return s.o(out)

    m = M()
    opt = torch.optim.AdamW(m.parameters(), 1e-2)

    def step(x, y):
        loss = F.cross_entropy(m(x), y) + 0.01 * m.aux
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    return dict(m=m, opt=opt, step=step, data=xy)


@program
def hvp():
    m = mlp(8, 8, 1)

    def step(x, y, v):
        ps = list(m.parameters())
        value = F.mse_loss(m(x), y)
        g = torch.autograd.grad(value, ps, create_graph=True)
        fl = torch.cat([a.reshape(-1) for a in g])
        h = torch.autograd.grad(fl @ v[: fl.numel()], ps)
        return value.detach(), [a for a in h]

    return dict(m=m, step=step, data=lambda c: (torch.randn(5 + c, 8), torch.randn(5 + c, 1), torch.randn(200)))


@program
def distill_swa():
    t = mlp(8, 16, 4).eval()
    m = mlp(8, 16, 4)
    opt = torch.optim.ASGD(m.parameters(), 1e-1)
    swa = torch.optim.swa_utils.AveragedModel(m)

    def step(x, y):
        with torch.inference_mode():
            tl = t(x)
        o = m(x)
        loss = F.kl_div(
            (o / 2).log_softmax(-1), (tl.clone() / 2).softmax(-1), reduction="batchmean"
        ) * 4 + F.cross_entropy(o, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        swa.update_parameters(m)
        return loss.detach()

    return dict(m=m, _t=t, _s=swa, opt=opt, step=step, data=xy)


@program
def reinforce():
    m = mlp(4, 8, 2)
    opt = torch.optim.Adam(m.parameters(), 1e-2)

    def step(s):
        lps = []
        rs = []
        for _t in range(5):
            d = torch.distributions.Categorical(logits=m(s))
            a = d.sample()
            lps.append(d.log_prob(a))
            s = (s + 0.1 * (a * 2 - 1)[:, None]).clamp(-2, 2)
            rs.append(-s.pow(2).sum(1))
            if rs[-1].mean().item() < -8:
                break
        R = torch.zeros_like(rs[0])
        G = []
        for r in reversed(rs):
            R = r + 0.9 * R
            G.insert(0, R)
        G = torch.stack(G)
        G = (G - G.mean()) / (G.std() + 1e-5)
        loss = -(torch.stack(lps) * G).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item(), len(rs)

    return dict(m=m, opt=opt, step=step, data=lambda c: (torch.randn(3 + c, 4),))


@program
def grad_reversal():
    class Rev(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, value):
            ctx.l = value
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return -ctx.l * g, None

    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.f = nn.Linear(8, 8)
            s.c = nn.Linear(8, 4)
            s.d = nn.Linear(8, 2)

        def forward(s, x, value):
            f = s.f(x).relu()
            return s.c(f), s.d(Rev.apply(f, value))

    m = M()
    opt = torch.optim.SGD(m.parameters(), 0.1)

    def step(x, y, c):
        a, b = m(x, 2 / (1 + math.exp(-c)) - 1)
        loss = F.cross_entropy(a, y) + F.cross_entropy(b, y % 2)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    return dict(m=m, opt=opt, step=step, data=lambda c: (*xy(c), c))


@pytest.mark.parametrize("mode", ["model", "step"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_training(name, mode):
    check(PROGRAMS[name], mode, TOLERANCE.get(name, 5e-4))
