// Kernels of extern calls, written in the loop IR: beside the library calls which they serve or replace.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/backend.h"
#include "loop/kernel.h"
#include "runtime/compiled_kernel.h"

namespace cresset::bridge {

class WrittenKernel {
 public:
  WrittenKernel() : kernel_(std::make_unique<loop::Kernel>(std::make_shared<sym::ShapeEnv>())), scalars_(*kernel_) {}

  sym::ExprPool& pool() { return kernel_->env().pool(); }
  loop::ScalarBuilder& scalars() { return scalars_; }

  loop::ExprId size(const std::string& name) {
    constexpr int64_t kSomeSize = 64;
    const loop::ExprId made = kernel_->env().new_backed(name, kSomeSize);
    names_[pool().var_of(made)] = name;
    return made;
  }
  // The index of a new loop. Outer loops come first.
  loop::ExprId loop(loop::ExprId extent, loop::Dim::Kind kind) {
    const loop::ExprId var = kernel_->env().new_index_var(extent);
    kernel_->dims.push_back({pool().var_of(var), extent, kind});
    return var;
  }
  // Each load and store has a buffer of its own, in the order of these calls.
  loop::ScalarId load(DType dtype, loop::ExprId address) {
    kernel_->buffers.push_back({.dtype = dtype, .read = true});
    return scalars_.load(last_buffer(), address);
  }
  // how: the condition of the store, and how it updates the element.
  void store(DType dtype, loop::ExprId address, loop::ScalarId value, loop::Store how = {}) {
    kernel_->buffers.push_back({.dtype = dtype, .written = true});
    how.buffer = last_buffer();
    how.address = address;
    how.value = value;
    kernel_->stores.push_back(how);
  }

  // A buffer for an index out of range (ScalarBuilder::checked_index).
  loop::BufferId report() {
    kernel_->buffers.push_back({.dtype = DType::I64, .written = true});
    return last_buffer();
  }

  std::shared_ptr<const runtime::CompiledKernel> compile() const {  // nullptr: no code was generated
    auto compiled = codegen::backend_of(DeviceKind::Cuda)->compile({kernel_.get()});
    return compiled.ok() ? compiled->front() : nullptr;
  }
  // The values of the kernel's size symbols, in its order.
  std::vector<int64_t> in_order(const std::map<std::string, int64_t>& values) const {
    std::vector<int64_t> out;
    for (const loop::VarId symbol : kernel_->size_symbols()) out.push_back(values.at(names_.at(symbol)));
    return out;
  }

 private:
  loop::BufferId last_buffer() const { return {static_cast<uint32_t>(kernel_->buffers.size() - 1)}; }

  std::unique_ptr<loop::Kernel> kernel_;
  loop::ScalarBuilder scalars_;
  std::unordered_map<loop::VarId, std::string> names_;
};

// A written kernel for sizes: the values of its symbols, in its order. Buffers are given at each launch, in order.
class BoundWrittenKernel {
 public:
  BoundWrittenKernel(std::shared_ptr<const runtime::CompiledKernel> kernel, size_t buffers,
                     const std::vector<int64_t>& symbols)
      : block_(runtime::ParamBlock::size(buffers, symbols.size())),
        params_{block_.data(), static_cast<uint32_t>(buffers), static_cast<uint32_t>(symbols.size())},
        kernel_(std::move(kernel)) {
    std::copy(symbols.begin(), symbols.end(), params_.symbol(0));
    bound_ = kernel_->bind(params_);
  }
  BoundWrittenKernel(const BoundWrittenKernel&) = delete;

  // Rows that several blocks share need memory beside the buffers.
  bool needs_memory() const { return bound_->scratch_bytes({}) != 0; }
  void launch(const runtime::LaunchContext& context,
              std::initializer_list<std::reference_wrapper<const at::Tensor>> buffers) {
    size_t next = 0;
    for (const at::Tensor& t : buffers) *params_.buffer(next++) = t.data_ptr();
    bound_->launch(context, nullptr);
  }
  void launch_at(const runtime::LaunchContext& context, const std::vector<void*>& buffers) {
    size_t next = 0;
    for (void* const buffer : buffers) *params_.buffer(next++) = buffer;
    bound_->launch(context, nullptr);
  }

 private:
  std::vector<std::byte> block_;
  const runtime::ParamBlock params_;
  const std::shared_ptr<const runtime::CompiledKernel> kernel_;
  std::unique_ptr<runtime::BoundKernel> bound_;
};

// Written kernels by key, each compiled when it is first needed. Thread-safe.
template <class Key>
class WrittenKernels {
 public:
  struct Compiled {
    std::unique_ptr<WrittenKernel> source;
    std::shared_ptr<const runtime::CompiledKernel> kernel;  // nullptr: no code was generated
  };
  template <class Write>
  const Compiled& get(const Key& key, Write&& write) {
    const std::lock_guard lock(mutex_);
    Compiled& found = all_[key];
    if (found.source == nullptr) {
      found.source = std::make_unique<WrittenKernel>(write());
      found.kernel = found.source->compile();
    }
    return found;
  }

 private:
  std::mutex mutex_;
  std::map<Key, Compiled> all_;
};

}  // namespace cresset::bridge
