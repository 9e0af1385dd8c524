#include "bridge/extern_kernels/cuda/copy_rows.h"

#include <compare>

#include "bridge/aten/dtypes.h"
#include "bridge/extern_kernels/cuda/written_kernel.h"

namespace cresset::bridge {
namespace {

WrittenKernel copy_kernel(DType dtype) {
  using loop::ExprId;
  WrittenKernel kernel;
  sym::ExprPool& pool = kernel.pool();
  const ExprId rows = kernel.size("rows"), columns = kernel.size("columns"), from = kernel.size("from"),
               to = kernel.size("to");
  const ExprId m = kernel.loop(rows, loop::Dim::Kind::Outer), n = kernel.loop(columns, loop::Dim::Kind::Outer);
  const loop::ScalarId value = kernel.load(dtype, pool.add(pool.mul(m, from), n));
  kernel.store(dtype, pool.add(pool.mul(m, to), n), value);
  return kernel;
}

// Rows that follow each other in `to` are written as a single row, in whole vectors where the length of a row is odd.
WrittenKernel gather_kernel(DType dtype) {
  using loop::ExprId;
  WrittenKernel kernel;
  sym::ExprPool& pool = kernel.pool();
  const ExprId elements = kernel.size("elements"), columns = kernel.size("columns"), gap = kernel.size("gap");
  const ExprId n = kernel.loop(elements, loop::Dim::Kind::Outer);
  const ExprId skipped = pool.mul(pool.floor_div(n, columns), gap);
  kernel.store(dtype, n, kernel.load(dtype, pool.add(n, skipped)));
  return kernel;
}

struct CopyKind {
  DType dtype;
  bool gathers;
  auto operator<=>(const CopyKind&) const = default;
};

const WrittenKernels<CopyKind>::Compiled& compiled_copy(CopyKind kind) {
  static auto& all = *new WrittenKernels<CopyKind>;
  return all.get(kind, [&] { return kind.gathers ? gather_kernel(kind.dtype) : copy_kernel(kind.dtype); });
}

bool has_rows(const at::Tensor& t) { return t.dim() == 2 && (t.stride(1) == 1 || t.size(1) == 1); }

}  // namespace

RowCopies::Bound& RowCopies::bound(const at::Tensor& from, const at::Tensor& to) {
  const std::vector<int64_t> sizes{to.size(0), to.size(1), from.stride(0), to.stride(0)};
  const auto [entry, is_new] = bound_.try_emplace(sizes);
  Bound& out = entry->second;
  if (!is_new) return out;
  const std::optional<DType> dtype = from_torch(to.scalar_type());
  if (!dtype || !has_rows(from) || !has_rows(to)) return out;
  const std::map<std::string, int64_t> numbers{{"rows", sizes[0]},       {"columns", sizes[1]},
                                               {"from", sizes[2]},       {"to", sizes[3]},
                                               {"elements", to.numel()}, {"gap", sizes[2] - sizes[1]}};
  const auto& found = compiled_copy({*dtype, to.is_contiguous() && sizes[2] >= sizes[1]});
  if (found.kernel == nullptr) return out;
  const std::vector<int64_t> symbols = found.source->in_order(numbers);
  constexpr size_t kBuffers = 2;
  out.block.resize(runtime::ParamBlock::size(kBuffers, symbols.size()));
  out.params = {out.block.data(), kBuffers, static_cast<uint32_t>(symbols.size())};
  std::copy(symbols.begin(), symbols.end(), out.params.symbol(0));
  out.kernel = found.kernel->bind(out.params);
  return out;
}

void RowCopies::copy(BoundContext& context, const at::Tensor& from, const at::Tensor& to) {
  if (to.numel() == 0) return;
  Bound& found = bound(from, to);
  if (found.kernel == nullptr) {
    to.copy_(from);
    return;
  }
  *found.params.buffer(0) = from.data_ptr();
  *found.params.buffer(1) = to.data_ptr();
  found.kernel->launch(context.launch_context(), nullptr);
}

}  // namespace cresset::bridge
