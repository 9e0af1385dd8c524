# size: table
"""Programs that look closely: how often something runs, which object it is, of which type a number is, what a hook's
number is. As programs_whole.py has them."""

from __future__ import annotations

from programs_whole import data, table_of_programs
from torch.utils.checkpoint import checkpoint

PROGRAMS, steady, bounded, growing = table_of_programs()


@bounded
def checkpoints_that_are_run_again(compiled):
    """What runs again in the backward pass prints, appends and branches as often as in eager, also in the first call."""
    log = []

    def block(x, w):
        y = (x @ w).sin()
        print("in the block", tuple(y.shape))
        log.append(len(log))
        return y * 2 if y.sum() > 0 else y * 3

    def quiet(x, w):
        y = (x @ w).cos()
        log.append("quiet")
        return (y @ w).exp()

    @compiled
    def f(x, w, function, reentrant):
        checkpoint(function, x, w, use_reentrant=reentrant).sum().backward()
        return x.grad, w.grad, len(log)

    for i in range(32):
        x = data(i, [3, 4, 5][i % 3], 4).requires_grad_()
        w = data(i + 3, 4, 4).requires_grad_()
        yield f(x, w, quiet if i % 4 < 2 else block, i >= 6)
        y = f(x.detach().requires_grad_(), w.detach().requires_grad_(), block, i % 2 == 0)
        yield y, list(log)
