// A libtorch program compiled by cresset, with no Python in the process: checks results, shapes and training flags.
#include <cresset/compile.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>

namespace {

struct BlockImpl : torch::nn::Module {
  BlockImpl(int64_t width)
      : norm(torch::nn::LayerNormOptions({width})), up(width, 4 * width), down(4 * width, width), drop(0.1) {
    register_module("norm", norm);
    register_module("up", up);
    register_module("down", down);
    register_module("drop", drop);
  }
  at::Tensor forward(const at::Tensor& x) {
    return x + drop->forward(down->forward(torch::gelu(up->forward(norm->forward(x)))));
  }

  torch::nn::LayerNorm norm;
  torch::nn::Linear up, down;
  torch::nn::Dropout drop;
};
TORCH_MODULE(Block);

void expect(bool condition, const char* what) {
  std::printf("%-60s %s\n", what, condition ? "ok" : "FAILED");
  if (!condition) std::exit(1);
}

void check_module() {
  Block block(64);
  block->eval();
  cresset::CompiledFunction fast = cresset::compile(block);
  for (const int64_t batch : {4, 1, 9, 32}) {
    const at::Tensor x = torch::randn({batch, 10 + batch, 64});
    expect(torch::allclose(fast({x})[0], block->forward(x), 1e-4, 1e-5), "a module, one compilation for all sizes");
  }
  expect(fast.stats().graphs == 1, "one graph");
  expect(fast.stats().kernels > 0, "kernels were generated");
  block->train();
  torch::manual_seed(7);
  const at::Tensor x = torch::randn({2, 3, 64});
  torch::manual_seed(7);
  const at::Tensor expected = block->forward(x);
  torch::manual_seed(7);
  fast({x});
  expect(fast.stats().graphs + fast.stats().eager_calls >= 2, "training mode has another cache entry");
  expect(expected.defined(), "eager still runs");
}

void check_function() {
  const at::Tensor weight = torch::randn({8, 8});
  cresset::CompiledFunction fast = cresset::compile([&](const std::vector<at::Tensor>& x) {
    at::Tensor y = torch::relu(x[0].matmul(weight)).add_(1);
    return std::vector<at::Tensor>{y, y.sum(-1), y.transpose(0, 1)};
  });
  const at::Tensor x = torch::randn({5, 8});
  const auto got = fast({x});
  const at::Tensor y = torch::relu(x.matmul(weight)).add_(1);
  expect(torch::allclose(got[0], y) && torch::allclose(got[1], y.sum(-1)), "a function of several results");
  expect(got[2].strides() == y.transpose(0, 1).strides(), "strides as in eager");
  expect(got[2].is_alias_of(got[0]), "results alias as in eager");
}

// What weights alone decide is computed once, and again when one of them was written to.
void check_frozen() {
  torch::nn::Sequential layers(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3)), torch::nn::BatchNorm2d(8));
  layers->eval();
  cresset::CompileSettings settings;
  settings.freeze = true;
  cresset::CompiledFunction fast = cresset::compile(layers, settings);
  for (const int64_t batch : {2, 1, 5}) {
    const at::Tensor x = torch::randn({batch, 3, 8, 8});
    expect(torch::allclose(fast({x})[0], layers->forward(x), 1e-4, 1e-5), "frozen weights");
    layers->parameters()[0].mul_(2);
    expect(torch::allclose(fast({x})[0], layers->forward(x), 1e-4, 1e-5), "written since");
  }
  expect(fast.stats().graphs == 1, "one graph");
}

void check_errors() {
  cresset::CompiledFunction fast =
      cresset::compile([](const std::vector<at::Tensor>& x) { return std::vector<at::Tensor>{x[0].matmul(x[1])}; });
  std::string message, eager;
  const at::Tensor a = torch::randn({2, 3}), b = torch::randn({4, 5});
  try {
    a.matmul(b);
  } catch (const c10::Error& e) {
    eager = e.what_without_backtrace();
  }
  try {
    fast({a, b});
  } catch (const c10::Error& e) {
    message = e.what_without_backtrace();
  }
  expect(!message.empty() && message == eager, "bad shapes raise what eager raises");
}

}  // namespace

int main() {
  torch::NoGradGuard no_grad;
  check_function();
  check_module();
  check_frozen();
  check_errors();
  std::puts("all good");
}
