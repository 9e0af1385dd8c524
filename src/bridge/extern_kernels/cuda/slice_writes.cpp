// Writes of slices on a GPU: index_copy, and index_put with one vector of indices, as a cache of keys and values is
// filled. ATen's kernels work out each element's place by divisions, and end the context where an index is out of
// range; here a generated kernel writes rows, and reports such an index
// (docs/decisions/0019-kernels-report-indices.md).
#include <ATen/Context.h>

#include <numeric>

#include "bridge/aten/dtypes.h"
#include "bridge/executor/extern_kernel.h"
#include "bridge/executor/index_errors.h"
#include "bridge/extern_kernels/cuda/written_kernel.h"
#include "bridge/extern_kernels/extern_call.h"
#include "codegen/nvptx/nvptx_backend.h"

namespace cresset::bridge {
namespace {

using loop::Dim;
using loop::ExprId;
using loop::Op;
using loop::ScalarId;
using runtime::TensorId;

struct SliceWrite {
  TensorId self, index, source, out;
  size_t dim;
  bool from_the_end;  // negative indices count from the end
};

// out[p, index[n], q] = source[p, n, q] where the index is in range. Size symbols: the loops' extents, the extent of
// the written dimension, and the distances of the source's outer loops. Buffers: index, source, report, out.
WrittenKernel write_kernel(DType dtype, bool from_the_end) {
  WrittenKernel kernel;
  sym::ExprPool& pool = kernel.pool();
  loop::ScalarBuilder& b = kernel.scalars();
  const ExprId before = kernel.size("before"), slices = kernel.size("slices"), within = kernel.size("within"),
               extent = kernel.size("extent"), outer = kernel.size("outer"), inner = kernel.size("inner");
  const ExprId p = kernel.loop(before, Dim::Kind::Outer), n = kernel.loop(slices, Dim::Kind::Outer),
               q = kernel.loop(within, Dim::Kind::Outer);
  const ScalarId given = kernel.load(DType::I64, n), zero = b.constant_int(DType::I64, 0), end = b.size(extent);
  const ScalarId index =
      from_the_end ? b.select(b.binary(Op::Lt, given, zero), b.binary(Op::Add, given, end), given) : given;
  const ScalarId value = kernel.load(dtype, pool.add(pool.add(pool.mul(p, outer), pool.mul(n, inner)), q));
  const auto place = b.checked_index(index, extent, kernel.report(), 0, given);
  const ExprId row = pool.add(pool.mul(p, extent), place.index);
  const ScalarId inside = b.binary(Op::BitAnd, b.binary(Op::Ge, index, zero), b.binary(Op::Lt, index, end));
  kernel.store(dtype, pool.add(pool.mul(row, within), q), value, {.condition = inside});
  return kernel;
}

using Key = std::pair<DType, bool>;
const WrittenKernels<Key>::Compiled& compiled_write(const Key& key) {
  static auto& all = *new WrittenKernels<Key>;
  return all.get(key, [&] { return write_kernel(key.first, key.second); });
}

class SliceWriteKernel final : public ExternKernel {
 public:
  SliceWriteKernel(const WrittenKernels<Key>::Compiled& compiled, const std::vector<int64_t>& symbols,
                   const SliceWrite& write, const std::shared_ptr<runtime::GpuDevice>& gpu, ReportedSite site)
      : write_(write), kernel_(compiled.kernel, 4, symbols), gpu_(gpu), report_(gpu, {std::move(site)}) {}

  bool only_enqueues() const override { return true; }
  bool allocates_results() const override { return false; }

  void run(BoundContext& context) override {
    const at::Tensor &out = context.planned(write_.out), &self = context.tensor(write_.self);
    if (out.const_data_ptr() != self.const_data_ptr()) out.copy_(self);
    const runtime::LaunchContext& launching = context.launch_context();
    kernel_.launch_at(launching, {context.tensor(write_.index).data_ptr(), context.tensor(write_.source).data_ptr(),
                                  report_.address(), out.data_ptr()});
    if (std::exchange(waited_, true) || gpu_->is_recording(launching.stream)) return;
    gpu_->synchronize(launching.stream);  // as for other reports: the first call waits for its own
    raise_reported();
  }

 private:
  const SliceWrite write_;
  BoundWrittenKernel kernel_;
  const std::shared_ptr<runtime::GpuDevice> gpu_;
  const ReportWords report_;
  bool waited_ = false;
};

std::optional<SliceWrite> slice_write(const runtime::ExternCall& call, const BoundContext& context) {
  static const graph::OpId copy = graph::op_id("aten::index_copy"), put = graph::op_id("aten::index_put");
  if ((call.op != copy && call.op != put) || call.args.size() < 3) return std::nullopt;
  const bool is_copy = call.op == copy;
  const auto *self = std::get_if<TensorId>(&call.args[0]), *source = std::get_if<TensorId>(&call.args[is_copy ? 3 : 2]);
  if (self == nullptr || source == nullptr) return std::nullopt;
  SliceWrite out{*self, {}, *source, call.results[0], 0, !is_copy};
  if (is_copy) {
    const auto* dim = std::get_if<runtime::SizeRef>(&call.args[1]);
    const auto* index = std::get_if<TensorId>(&call.args[2]);
    if (dim == nullptr || index == nullptr) return std::nullopt;
    const int64_t given = context.size(*dim), rank = static_cast<int64_t>(context.slot(*self).sizes.size());
    out.dim = static_cast<size_t>(given < 0 ? given + rank : given);
    out.index = *index;
    return out;
  }
  const auto* indices = std::get_if<std::vector<std::optional<TensorId>>>(&call.args[1]);
  const auto* accumulate = call.args.size() > 3 ? std::get_if<bool>(&call.args[3]) : nullptr;
  if (indices == nullptr || (accumulate != nullptr && *accumulate)) return std::nullopt;
  size_t given = 0;
  for (size_t i = 0; i < indices->size(); ++i) {
    if (!(*indices)[i]) continue;
    ++given;
    out.dim = i;
    out.index = *(*indices)[i];
  }
  return given == 1 ? std::optional(out) : std::nullopt;
}

bool is_dense(const BoundSlot& slot, size_t begin, size_t end) {
  int64_t step = 1;
  for (size_t d = end; d-- > begin; step *= slot.sizes[d])
    if (slot.sizes[d] != 1 && slot.strides[d] != step) return false;
  return true;
}

// The distance of the elements that dimensions [0, end) have as one dimension; nullopt: they are not one.
std::optional<int64_t> common_step(const BoundSlot& slot, size_t end) {
  std::optional<int64_t> step;
  int64_t reach = 0;
  for (size_t d = end; d-- > 0;) {
    if (slot.sizes[d] == 1) continue;
    if (step && slot.strides[d] != reach) return std::nullopt;
    if (!step) step = slot.strides[d];
    reach = slot.strides[d] * slot.sizes[d];
  }
  return step.value_or(0);
}

}  // namespace

std::unique_ptr<ExternKernel> bind_slice_write(const runtime::ExternCall& call, const BoundContext& context) {
  if (at::globalContext().deterministicAlgorithms()) return nullptr;
  const std::optional<SliceWrite> write = slice_write(call, context);
  if (!write || !context.has_planned_memory(write->out)) return nullptr;
  const BoundSlot &out = context.slot(write->out), &self = context.slot(write->self),
                  &index = context.slot(write->index), &source = context.slot(write->source);
  const size_t rank = out.sizes.size(), dim = write->dim;
  if (dim >= rank || source.sizes.size() != rank || source.dtype != out.dtype || self.dtype != out.dtype ||
      index.dtype != at::kLong || index.sizes.size() != 1 || source.sizes[dim] != index.sizes[0])
    return nullptr;
  for (size_t d = 0; d < rank; ++d)
    if (d != dim && source.sizes[d] != out.sizes[d]) return nullptr;
  const std::optional<DType> dtype = from_torch(out.dtype);
  const std::optional<int64_t> outer = common_step(source, dim);
  const bool in_order = is_dense(index, 0, 1) && is_dense(out, 0, rank) && is_dense(source, dim + 1, rank);
  if (!dtype || category(*dtype) == DTypeCategory::Complex || !outer || !in_order || source.numel == 0 ||
      out.numel == 0)
    return nullptr;
  const auto& found = compiled_write({*dtype, write->from_the_end});
  const std::shared_ptr<runtime::GpuDevice>& gpu = codegen::nvptx::NvptxBackend::get().device();
  if (found.kernel == nullptr || gpu == nullptr) return nullptr;
  const auto product = [&](size_t begin, size_t end) {
    return std::accumulate(out.sizes.begin() + static_cast<long>(begin), out.sizes.begin() + static_cast<long>(end),
                           int64_t{1}, std::multiplies<>());
  };
  const std::vector<int64_t> symbols = found.source->in_order({{"before", product(0, dim)},
                                                               {"slices", index.numel},
                                                               {"within", product(dim + 1, rank)},
                                                               {"extent", out.sizes[dim]},
                                                               {"outer", *outer},
                                                               {"inner", source.strides[dim]}});
  ReportedSite site{IndexFault::OfDimension, static_cast<int64_t>(dim), out.sizes[dim], context.location(call)};
  return std::make_unique<SliceWriteKernel>(found, symbols, *write, gpu, std::move(site));
}

}  // namespace cresset::bridge
