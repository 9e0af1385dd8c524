#include "bridge/extern_kernels/cpu/epilogue.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>

namespace cresset::bridge {
namespace {

constexpr Epilogue kEpilogues[] = {
    {"relu", "relu", "", [](at::Tensor& t) { at::relu_(t); }},
    {"gelu", "gelu", "none", [](at::Tensor& t) { at::gelu_(t, "none"); }},
    {"gelu_tanh", "gelu", "tanh", [](at::Tensor& t) { at::gelu_(t, "tanh"); }},
    {"silu", "swish", "", [](at::Tensor& t) { at::silu_(t); }},
    {"sigmoid", "sigmoid", "", [](at::Tensor& t) { at::sigmoid_(t); }},
    {"tanh", "tanh", "", [](at::Tensor& t) { at::tanh_(t); }},
    {"hardswish", "hardswish", "", [](at::Tensor& t) { at::hardswish_(t); }},
    {"hardsigmoid", "hardsigmoid", "", [](at::Tensor& t) { at::hardsigmoid_(t); }},
};

}  // namespace

const Epilogue* find_epilogue(std::string_view name) {
  for (const Epilogue& epilogue : kEpilogues)
    if (epilogue.name == name) return &epilogue;
  return nullptr;
}

}  // namespace cresset::bridge
