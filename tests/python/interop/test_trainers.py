"""Training scripts of other libraries, unchanged, under cresset.install() and beside eager mode: equal losses."""

from __future__ import annotations

import copy
import os

import pytest
import torch

import cresset


@pytest.fixture(autouse=True)
def restored():
    """The libraries keep their settings in the environment and in a state of the process."""
    before = dict(os.environ)
    yield
    cresset.uninstall()
    for name in set(os.environ) - set(before):
        del os.environ[name]


def forget_accelerator():
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = torch.nn.Linear(4, 16), torch.nn.LayerNorm(16), torch.nn.Linear(16, 1)

    def forward(self, x, labels=None):
        out = self.last(torch.nn.functional.gelu(self.norm(self.first(x)))).squeeze(-1)
        return out if labels is None else {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}


def rows(count=24):
    generator = torch.Generator().manual_seed(1)
    xs = torch.randn(count, 4, generator=generator)
    return [{"x": x, "labels": x.sum().sin()} for x in xs]


def model():
    torch.manual_seed(0)
    return Net()


def test_transformers_trainer(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    def losses(compiled):
        forget_accelerator()
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path / str(compiled)),
            per_device_train_batch_size=5,
            num_train_epochs=2,
            logging_steps=1,
            learning_rate=1e-2,
            torch_compile=compiled,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            seed=3,
            disable_tqdm=True,
        )
        trainer = transformers.Trainer(model=model(), args=arguments, train_dataset=rows())
        trainer.train()
        return [row["loss"] for row in trainer.state.log_history if "loss" in row]

    expected = losses(False)
    with cresset.install():
        got = losses(True)
    assert len(got) == 10 and got == pytest.approx(expected, rel=1e-3)
    assert cresset.stats()["graphs"] > 0 and cresset.stats()["eager_calls"] == 0


def test_accelerate():
    accelerate = pytest.importorskip("accelerate")

    def losses(**settings):
        forget_accelerator()
        accelerator = accelerate.Accelerator(cpu=True, **settings)
        net = model()
        loader = torch.utils.data.DataLoader(rows(), batch_size=5)
        net, optimizer, loader = accelerator.prepare(net, torch.optim.AdamW(net.parameters(), 1e-2), loader)
        out = []
        for _ in range(2):
            for batch in loader:
                loss = net(**batch)["loss"]
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                out.append(float(loss))
        assert isinstance(accelerator.unwrap_model(net), Net)
        return out

    expected = losses()
    with cresset.install():
        got = losses(dynamo_backend="inductor")
    assert got == pytest.approx(expected, rel=1e-3)
    assert cresset.stats()["graphs"] > 0 and cresset.stats()["eager_calls"] == 0


def test_lightning(tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")

    class Module(lightning.LightningModule):
        def __init__(self, net):
            super().__init__()
            self.net, self.losses = net, []

        def training_step(self, batch, index):
            loss = self.net(**batch)["loss"]
            self.losses.append(float(loss.detach()))
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    def losses(compiled):
        module = Module(model())
        if compiled:
            module.net = torch.compile(module.net)
        trainer = lightning.Trainer(
            max_epochs=2,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
        )
        trainer.fit(module, torch.utils.data.DataLoader(rows(), batch_size=5))
        return module.losses

    expected = losses(False)
    with cresset.install():
        got = losses(True)
    assert got == pytest.approx(expected, rel=1e-3) and len(got) == 10
    assert cresset.stats()["graphs"] > 0 and cresset.stats()["eager_calls"] == 0


def test_blocks_compiled_with_keywords():
    """ComfyUI's way: single blocks are replaced by compiled ones while the model runs, then put back."""
    blocks = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
    x = torch.randn(5, 4)

    def run():
        y = x
        for block in blocks:
            y = block(y).relu()
        return y

    with torch.no_grad(), cresset.install():
        expected = run()
        originals = {name: block for name, block in blocks.named_children()}
        for name, block in originals.items():
            setattr(
                blocks, name, torch.compile(model=block, backend="inductor", fullgraph=False, dynamic=None, mode=None)
            )
        state = {k: v.clone() for k, v in blocks.state_dict().items()}
        torch.testing.assert_close(run(), expected)
        for parameter in blocks.parameters():
            parameter.mul_(2)
        doubled = run()
        for name, block in originals.items():
            setattr(blocks, name, block)
        torch.testing.assert_close(run(), doubled)
        blocks.load_state_dict(state)
        torch.testing.assert_close(run(), expected)
    assert cresset.stats()["graphs"] == 3


def test_a_copy_for_averaged_weights():
    """An averaged copy of a compiled module is compiled, too."""
    net = cresset.compile(model())
    averaged = torch.optim.swa_utils.AveragedModel(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    its = copy.deepcopy(net._orig_mod)
    its_averaged = torch.optim.swa_utils.AveragedModel(its)
    its_optimizer = torch.optim.SGD(its.parameters(), 0.1)
    batch = torch.utils.data.default_collate(rows(6))
    for one, average, steps in ((net, averaged, optimizer), (its, its_averaged, its_optimizer)):
        for _ in range(3):
            one(**batch)["loss"].backward()
            steps.step()
            steps.zero_grad()
            average.update_parameters(one)
    torch.testing.assert_close(averaged(batch["x"]), its_averaged(batch["x"]))
