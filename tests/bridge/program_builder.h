// Programs made by hand, with kernels that are C++ functions.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bridge/executor/executor.h"
#include "codegen/cpu/host_kernel.h"

namespace cresset::bridge {

using codegen::cpu::KernelFn;

// buffers: a, out. symbols: elements.
inline void double_kernel(void* const* buffers, const int64_t*, int64_t begin, int64_t end, void*) {
  const auto* a = static_cast<const float*>(buffers[0]);
  auto* out = static_cast<float*>(buffers[1]);
  for (int64_t i = begin; i < end; ++i) out[i] = a[i] * 2;
}

class ProgramBuilder {
 public:
  using Expr = sym::ExprId;
  using Tensor = runtime::TensorId;

  Expr symbol() {
    const sym::VarId var = pool.new_var();
    slot_of[var] = static_cast<uint32_t>(program.symbols.size());
    program.symbols.push_back(var);
    return pool.var(var);
  }
  Expr c(int64_t value) { return pool.constant(value); }
  runtime::SizeRef ref(Expr e) {
    outputs.push_back(e);
    return {static_cast<uint32_t>(outputs.size() - 1)};
  }
  runtime::SizeRef ref(int64_t value) { return ref(c(value)); }
  std::vector<runtime::SizeRef> refs(const std::vector<int64_t>& values) {
    std::vector<runtime::SizeRef> out;
    for (const int64_t v : values) out.push_back(ref(v));
    return out;
  }

  std::vector<Expr> contiguous(const std::vector<Expr>& sizes) {
    std::vector<Expr> strides(sizes.size());
    Expr stride = c(1);
    for (size_t d = sizes.size(); d-- > 0; stride = pool.mul(stride, sizes[d])) strides[d] = stride;
    return strides;
  }

  Tensor slot(runtime::Home home, const std::vector<Expr>& sizes, std::vector<Expr> strides = {},
              DType dtype = DType::F32) {
    if (strides.empty()) strides = contiguous(sizes);
    runtime::TensorSlot s;
    s.home = home;
    s.dtype = dtype;
    Expr bytes = c(byte_size(dtype));
    for (const Expr e : sizes) {
      s.sizes.push_back(ref(e));
      bytes = pool.mul(bytes, e);
    }
    for (const Expr e : strides) s.strides.push_back(ref(e));
    s.bytes = ref(bytes);
    s.offset = ref(0);
    program.tensors.push_back(std::move(s));
    return {static_cast<uint32_t>(program.tensors.size() - 1)};
  }
  Tensor input(const std::vector<Expr>& sizes, std::vector<Expr> strides = {}, DType dtype = DType::F32) {
    const Tensor t = slot(runtime::Home::Input, sizes, std::move(strides), dtype);
    program.tensors[t.index].position = static_cast<uint32_t>(program.inputs.size());
    program.inputs.push_back(t);
    return t;
  }
  Tensor constant(const at::Tensor& value) {
    std::vector<Expr> sizes, strides;
    for (const int64_t n : value.sizes()) sizes.push_back(c(n));
    for (const int64_t n : value.strides()) strides.push_back(c(n));
    const Tensor t = slot(runtime::Home::Constant, sizes, strides);
    program.tensors[t.index].position = static_cast<uint32_t>(program.constants.size());
    program.constants.push_back(t);
    constants.push_back(value);
    return t;
  }
  Tensor view(Tensor base, const std::vector<Expr>& sizes, std::vector<Expr> strides, Expr offset,
              DType dtype = DType::F32) {
    const Tensor t = slot(runtime::Home::View, sizes, std::move(strides), dtype);
    program.tensors[t.index].base = base;
    program.tensors[t.index].offset = ref(offset);
    return t;
  }

  // A kernel written in C++, whose one symbol is the number of work items.
  void launch(KernelFn fn, std::vector<Tensor> buffers, Expr items, int64_t cost = 1, int64_t scratch = 0) {
    const sym::VarId count = pool.new_var();
    const Expr numbers[] = {pool.var(count), c(cost), c(scratch)};  // in the order of codegen::cpu::Number
    runtime::KernelRecord record{DeviceKind::Cpu, "", {sym::SizeProgram::compile(pool, numbers, {{count, 0}})}};
    program.kernels.push_back(std::make_shared<codegen::cpu::HostKernel>(fn, std::move(record)));
    program.steps.push_back(runtime::Launch{
        static_cast<uint32_t>(program.kernels.size() - 1), DeviceKind::Cpu, std::move(buffers), {ref(items)}});
  }
  void call(std::string_view op, std::vector<runtime::ExternArg> args, std::vector<Tensor> results) {
    program.steps.push_back(runtime::ExternCall{graph::op_id(op), std::move(args), std::move(results)});
  }
  void copy(Tensor from, Tensor to) { program.steps.push_back(runtime::Copy{from, to}); }

  std::unique_ptr<Executor> build(std::vector<Tensor> results) {
    program.outputs = std::move(results);
    program.sizes = sym::SizeProgram::compile(pool, outputs, slot_of);
    return std::make_unique<Executor>(driver::Compiled{std::move(program), {}}, constants);
  }

  sym::ExprPool pool;
  runtime::Program program;
  std::vector<Expr> outputs;
  std::unordered_map<sym::VarId, uint32_t> slot_of;
  std::vector<at::Tensor> constants;
};

}  // namespace cresset::bridge
